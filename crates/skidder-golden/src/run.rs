//! Running the cases of golden files.

use crate::build::{TIME, batch, document, map};
use crate::case::{Case, Expected, Step};
use crate::file::{GoldenFile, read_folder};
use anyhow::{Context as _, Result, bail, ensure};
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::{Value as Json, json};
use skidder_config::{Group, Problems, Section, Settings};
use skidder_event::{Batch, EventMut, Map, Path as FieldPath};
use skidder_os::Timestamp;
use skidder_processors::{BoundPlan, Compiled, Context, Machine, Plan, Shape, read_processors};
use skidder_testkit::{SimClock, SimFs};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// What the processors of a case see outside the event.
#[derive(Debug)]
pub struct World {
    /// Files.
    pub fs: SimFs,
    /// The time: fixed at [`TIME`], moved by `after`.
    pub clock: SimClock,
}

/// The machine that all cases run on: what its kernel reports, and its time zone. Files come with the case.
#[derive(Clone, Copy, Debug)]
pub struct FixedMachine;

impl Machine for FixedMachine {
    fn hostname(&self) -> String {
        "Web-1.example.org".to_owned()
    }

    fn kernel(&self) -> String {
        "6.12.9-amd64".to_owned()
    }

    fn architecture(&self) -> String {
        "x86_64".to_owned()
    }

    /// That of the middle of Europe.
    fn time_zone(&self) -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").expect("a constant that is a time zone")
    }
}

/// How the fields of an event are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// All of them its own.
    Own,
    /// All but the line and the time from the source.
    Source,
}

/// Runs all golden files of a folder. `make` gives the context for the world of a case: other clocks,
/// processors of other crates. `${NAME}` in the files is replaced by the variables of that name.
///
/// # Errors
/// The failures of all cases, one after the other.
pub fn run_folder(
    folder: &Path,
    variables: &[(&str, String)],
    make: &dyn Fn(&World) -> Context,
) -> Result<()> {
    let files = read_folder(folder, variables)?;
    ensure!(!files.is_empty(), "no golden files in {}", folder.display());
    let mut broken = Vec::new();
    for file in &files {
        for (place, case) in file.cases.iter().enumerate() {
            for variant in [Variant::Own, Variant::Source] {
                if let Err(error) = run_case(file, place, case, variant, make) {
                    let name = file.path.display();
                    broken.push(format!("{name}: `{}` ({variant:?}): {error:#}", case.name));
                }
            }
        }
        if let Err(error) = check_options(file, make) {
            broken.push(format!("{error:#}"));
        }
    }
    if broken.is_empty() { Ok(()) } else { bail!("{}", broken.join("\n\n")) }
}

fn run_case(
    file: &GoldenFile,
    place: usize,
    case: &Case,
    variant: Variant,
    make: &dyn Fn(&World) -> Context,
) -> Result<()> {
    let world = world_of(case)?;
    let (list, problems) = compile(file, place, &make(&world))?;
    if let Some(refused) = &case.refused {
        ensure!(
            problems.contains(refused),
            "expected to be refused with `{refused}`, got: {problems}"
        );
        return Ok(());
    }
    ensure!(problems.is_empty(), "{problems}");
    let plan = Plan::compile(&list, &Map::new(), &[]);
    for (number, step) in case.steps.iter().enumerate() {
        world.clock.advance(step.after);
        let got = run_event(&plan, &step.event, variant);
        compare(step, got).with_context(|| format!("event {}", number + 1))?;
    }
    Ok(())
}

/// The machine of a case.
pub(crate) fn world_of(case: &Case) -> Result<World> {
    let clock = SimClock::starting_at(Timestamp(TIME));
    let fs = SimFs::new(&clock);
    for (name, content) in &case.files {
        let path = Path::new(name);
        fs.create_dir_as_other(path.parent().context("a file in no folder")?);
        fs.write_as_other(path, content.as_bytes());
    }
    Ok(World { fs, clock })
}

/// The processors of a case, and their problems.
pub(crate) fn compile(
    file: &GoldenFile,
    place: usize,
    context: &Context,
) -> Result<(Vec<Compiled>, String)> {
    let settings = Settings::parse(&file.path.display().to_string(), &file.text)?;
    let problems = Problems::new();
    let root = settings.root(&problems);
    let sections = root.sections("cases");
    let list = read_processors(sections[place].items("processors"), context);
    skip_all(sections, root);
    Ok((list, problems.to_string()))
}

/// The other keys were checked when the file was read.
fn skip_all(sections: Vec<Section<'_>>, root: Section<'_>) {
    for section in sections {
        section.skip();
    }
    root.skip();
}

/// The document of an event after the processors, or nothing if it was dropped.
pub(crate) fn run_event(plan: &Plan, event: &Json, variant: Variant) -> Option<Json> {
    let (bound, mut events) = prepare(plan, event, variant);
    bound.run(&mut events);
    let mut document = (events.len() == 1).then(|| document(&events, 0))?;
    tidy(&mut document, event);
    Some(document)
}

/// The plan bound to the source of an event, and the event.
pub(crate) fn prepare(plan: &Plan, event: &Json, variant: Variant) -> (BoundPlan, Batch) {
    prepare_many(plan, event, variant, 1)
}

/// The same with the event several times.
pub(crate) fn prepare_many(
    plan: &Plan,
    event: &Json,
    variant: Variant,
    times: usize,
) -> (BoundPlan, Batch) {
    let (line, mut fields, metadata) = taken_apart(event);
    let (bound, own) = match variant {
        Variant::Own => (plan.bind(&Map::new(), &Map::new(), Shape::Any), (fields, metadata)),
        Variant::Source => {
            let own = own_part(&mut fields);
            (plan.bind(&fields, &metadata, Shape::Lines), (own, Map::new()))
        }
    };
    let base = Arc::clone(bound.input_base());
    let mut events = batch(&vec![line.as_deref().unwrap_or_default(); times], &base);
    for row in 0..times {
        fill(events.event_mut(row, &base), line.is_some(), &own, event);
    }
    (bound, events)
}

/// `log.offset` and `log.flags` are never fields of a source.
fn own_part(fields: &mut Map) -> Map {
    let mut own = Map::new();
    for name in ["log.offset", "log.flags"] {
        if let Some(value) = fields.get_path(name).cloned() {
            fields.remove_path(name);
            own.insert_path(name, value);
        }
    }
    own
}

fn fill(mut row: EventMut<'_>, line: bool, own: &(Map, Map), event: &Json) {
    let path = |name| FieldPath::parse(name).expect("a constant path");
    row.delete(&path("log.offset"));
    if !line {
        row.delete(&path("message"));
    }
    if let Some(time) = event.get("@timestamp").and_then(Json::as_str) {
        let time: jiff::Timestamp = time.parse().expect("`@timestamp` of a case is RFC 3339");
        row.set_time(i64::try_from(time.as_nanosecond()).expect("a time before 2262"));
    }
    row.merge(&own.0);
    row.merge_metadata(&own.1);
}

/// The line of an event, its other fields, its `@metadata`.
fn taken_apart(event: &Json) -> (Option<String>, Map, Map) {
    let mut event = event.as_object().expect("an event is an object").clone();
    event.remove("@timestamp");
    let metadata = event.remove("@metadata").unwrap_or_else(|| json!({}));
    let line = match event.get("message") {
        Some(Json::String(line)) => Some(line.clone()),
        _ => None,
    };
    if line.is_some() {
        event.remove("message");
    }
    (line, map(&Json::Object(event)), map(&metadata))
}

/// Leaves out what every event has: a time that did not change, an empty `@metadata`, the empty object
/// that is left of `log`.
fn tidy(document: &mut Json, event: &Json) {
    let object = document.as_object_mut().expect("a document is an object");
    let before = match event.get("@timestamp") {
        Some(time) => time.clone(),
        None => json!("2026-11-21T20:52:57.123Z"),
    };
    if object.get("@timestamp") == Some(&before) {
        object.remove("@timestamp");
    }
    for name in ["@metadata", "log"] {
        if object.get(name) == Some(&json!({})) && event.get(name).is_none() {
            object.remove(name);
        }
    }
}

fn compare(step: &Step, got: Option<Json>) -> Result<()> {
    match (&step.expected, got) {
        (Expected::Dropped, None) => Ok(()),
        (Expected::Dropped, Some(got)) => bail!("expected to be dropped, came out as {got:#}"),
        (Expected::Document(..), None) => bail!("was dropped"),
        (Expected::Document(expected, matches), Some(mut got)) => {
            let mut expected = expected.clone();
            if let Some(object) = expected.as_object_mut() {
                object
                    .remove("@timestamp")
                    .filter(|_| got.get("@timestamp").is_some())
                    .map(|time| object.insert("@timestamp".to_owned(), time));
            }
            for (name, pattern) in matches {
                let pointer = format!("/{}", name.replace('.', "/"));
                let value = got.pointer_mut(&pointer).map(Json::take).unwrap_or_default();
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                ensure!(
                    Regex::new(pattern)?.is_match(&text),
                    "`{name}` is {text}, not /{pattern}/"
                );
                if let Some(place) = expected.pointer_mut(&pointer) {
                    *place = Json::Null;
                }
            }
            ensure!(expected == got, "expected {expected:#}\ngot {got:#}");
            Ok(())
        }
    }
}

/// The options that are declared are those that the processor reads, and its sentence begins the summary of the file.
fn check_options(file: &GoldenFile, make: &dyn Fn(&World) -> Context) -> Result<()> {
    let mut options_read = BTreeSet::new();
    for (place, case) in file.cases.iter().enumerate() {
        let settings = Settings::parse(&file.path.display().to_string(), &file.text)?;
        let problems = Problems::new();
        problems.record_paths_read();
        let context = make(&world_of(case)?);
        let root = settings.root(&problems);
        let sections = root.sections("cases");
        drop(read_processors(sections[place].items("processors"), &context));
        skip_all(sections, root);
        let marker = format!("].{}.", file.processor);
        for path in problems.paths_read() {
            if let Some((_, option)) = path.split_once(&marker) {
                options_read.insert(without_numbers(option));
            }
        }
    }
    let name = file.path.display();
    let context = make(&world_of(&file.cases[0])?);
    let mut kinds = context.kinds();
    let group = kinds.find(|(name, ..)| *name == file.processor).map(|(_, group, _)| *group);
    let group = group.with_context(|| format!("{name}: there is no such processor"))?;
    ensure!(
        file.summary.starts_with(group.about),
        "{name}: the summary does not begin with the sentence of `{}`: {}",
        group.id,
        group.about
    );
    let mut explained = Vec::new();
    add_names(group, "", &mut explained);
    let is_inside = |inner: &str, outer: &str| {
        inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('.'))
    };
    for option in &options_read {
        let known =
            explained.iter().any(|other| is_inside(option, other) || is_inside(other, option));
        ensure!(
            known || option == "when" || option.starts_with("when."),
            "{name}: option `{option}` is read and not declared"
        );
    }
    for option in &explained {
        let read =
            options_read.iter().any(|other| is_inside(option, other) || is_inside(other, option));
        ensure!(read, "{name}: option `{option}` is declared and never read");
    }
    Ok(())
}

/// Adds the names of all settings of a group.
fn add_names(group: &'static Group, prefix: &str, names: &mut Vec<String>) {
    for key in group.declared() {
        let name = format!("{prefix}{}", key.spec().name);
        match key.inner() {
            Some(inner) if inner.group.declared().next().is_some() => {
                add_names(inner.group, &format!("{name}."), names);
            }
            _ => names.push(name),
        }
    }
}

/// `fields[0].from` is `fields.from`.
fn without_numbers(path: &str) -> String {
    let mut text = String::new();
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => {}
            _ => text.push(letter),
        }
    }
    text
}
