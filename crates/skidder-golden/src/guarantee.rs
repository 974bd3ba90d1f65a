//! The guarantee: a processor that fails leaves the event exactly as it came, plus the note.
//!
//! The settings come from the golden files, the events from their events, changed at random.

use crate::build::document;
use crate::file::{GoldenFile, read_folder};
use crate::run::{Variant, World, compile, prepare, world_of};
use anyhow::{Result, ensure};
use serde_json::{Value as Json, json};
use skidder_event::{EventMut, Map};
use skidder_processors::{
    Compiled, Constants, Context, Failure, Footprint, Outcome, Plan, Processor,
};
use skidder_testkit::Random;
use std::path::Path;
use std::sync::Arc;

/// Runs every single processor of the golden files of a folder over `rounds` random events for each case:
/// as it is, and with a failure after its work. `seed` replays.
///
/// # Errors
/// The first event that was not as it came.
pub fn guarantee(
    folder: &Path,
    variables: &[(&str, String)],
    make: &dyn Fn(&World) -> Context,
    seed: u64,
    rounds: usize,
) -> Result<()> {
    let mut random = Random::new(seed);
    for file in &read_folder(folder, variables)? {
        for (place, case) in file.cases.iter().enumerate() {
            if case.refused.is_some() || !case.single {
                continue;
            }
            let world = world_of(case)?;
            let (list, _) = compile(file, place, &make(&world))?;
            for _ in 0..rounds {
                let mut event = case.steps[0].event.clone();
                for _ in 0..random.below(4) {
                    change(&mut event, &mut random);
                }
                for variant in [Variant::Own, Variant::Source] {
                    check(file, &list, &event, variant)?;
                }
            }
        }
    }
    Ok(())
}

fn check(file: &GoldenFile, list: &[Compiled], event: &Json, variant: Variant) -> Result<()> {
    let empty = Plan::compile(&[], &Map::new(), &[]);
    let before = run(&empty, event, variant).expect("nothing drops it");
    let Compiled::Run { when, processor, failures } = &list[0] else { return Ok(()) };

    let plan = Plan::compile(list, &Map::new(), &[]);
    let failed_before = failures.get();
    let after = run(&plan, event, variant);
    if failures.get() > failed_before
        && let Some(after) = after
    {
        let (before, after) = (without_notes(&before), without_notes(&after));
        ensure!(
            before == after,
            "{}: failed, and the event {event} is not as it came ({variant:?}): {after:#}",
            file.path.display()
        );
    }

    let failing = Failing(Arc::clone(processor));
    let plan = Plan::compile(&[Compiled::new(failing, when.clone())], &Map::new(), &[]);
    let after = run(&plan, event, variant).expect("a failure drops nothing");
    let failures: u64 = plan.failures().iter().map(|failures| failures.get()).sum();
    let mut expected = before;
    if failures > 0 {
        note(&mut expected);
    }
    ensure!(
        expected == after,
        "{}: after an injected failure {event} is ({variant:?}) {after:#}\nnot {expected:#}",
        file.path.display()
    );
    Ok(())
}

fn run(plan: &Plan, event: &Json, variant: Variant) -> Option<Json> {
    let (bound, mut events) = prepare(plan, event, variant);
    bound.run(&mut events);
    (events.len() == 1).then(|| document(&events, 0))
}

/// Notes are all a failure may leave: `error`, `log.flags`, `tags`.
fn without_notes(document: &Json) -> Json {
    let mut document = document.clone();
    if let Some(object) = document.as_object_mut() {
        object.remove("error");
        object.remove("tags");
        if let Some(log) = object.get_mut("log").and_then(Json::as_object_mut) {
            log.remove("flags");
        }
        if object.get("log").is_some_and(|log| *log == json!({})) {
            object.remove("log");
        }
    }
    document
}

/// The note that a failure leaves, if it can.
fn note(document: &mut Json) {
    let Some(object) = document.as_object_mut() else { return };
    if let Some(error) = object.entry("error").or_insert_with(|| json!({})).as_object_mut() {
        error.insert("message".to_owned(), json!("injected"));
    }
}

/// Changes something somewhere in an event.
fn change(event: &mut Json, random: &mut Random) {
    let Some(object) = event.as_object_mut() else { return };
    let keys: Vec<String> = object.keys().filter(|key| *key != "@timestamp").cloned().collect();
    if keys.is_empty() || random.one_in(8) {
        let names = ["error", "tags", "log", "message", "extra"];
        let name = names[random.below(names.len() as u64) as usize];
        object.insert(name.to_owned(), value(random, name));
        return;
    }
    let key = &keys[random.below(keys.len() as u64) as usize];
    let is_object = object[key].is_object();
    if is_object && !random.one_in(4) {
        change(&mut object[key], random);
    } else if key == "@metadata" || random.one_in(4) {
        object.remove(key);
    } else {
        let new = match &object[key] {
            Json::String(text) if random.one_in(2) => changed_text(text, random),
            _ => value(random, key),
        };
        object.insert(key.clone(), new);
    }
}

fn value(random: &mut Random, key: &str) -> Json {
    if key == "error" && random.one_in(2) {
        return json!({"code": 7, "message": "before"});
    }
    let values = [
        json!(null),
        json!(true),
        json!(-7),
        json!(18_446_744_073_709_551_615_u64),
        json!(1.5),
        json!(""),
        json!("text"),
        json!("ünï %{x} %zz \u{0}"),
        json!([]),
        json!(["a", 1, null]),
        json!({}),
        json!({"inner": {"deep": 1}}),
    ];
    values[random.below(values.len() as u64) as usize].clone()
}

fn changed_text(text: &str, random: &mut Random) -> Json {
    let mut letters: Vec<char> = text.chars().collect();
    let place = random.below(letters.len() as u64 + 1) as usize;
    match random.below(3) {
        0 => letters.truncate(place),
        1 => letters.insert(place, ['%', '"', '\u{0}', 'ä', ' ', '9'][random.below(6) as usize]),
        _ => {
            letters.drain(..place);
        }
    }
    json!(letters.into_iter().collect::<String>())
}

/// Does what the processor inside does, and then fails.
#[derive(Debug)]
struct Failing(Arc<dyn Processor>);

impl Processor for Failing {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        // Whatever the result: a drop or a failure of its own is undone as well.
        drop(self.0.run(event));
        Err(Failure::new("injected"))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }
}
