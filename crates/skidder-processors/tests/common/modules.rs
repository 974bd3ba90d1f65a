//! Runs the processors of our own modules (`crates/skidder-modules/own`) over lines.
//!
//! Templates are filled in by a few lines here, which know as much of Go's templates as our own need.

use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Value as Json;
use skidder_config::{Problems, Settings};
use skidder_event::Map;
use skidder_golden::{batch, document};
use skidder_processors::{Context, Machine, Plan, Shape, read_processors};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder of the modules.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../skidder-modules/own")
}

/// A machine two hours west of Greenwich.
pub(crate) struct West;

impl Machine for West {
    fn hostname(&self) -> String {
        "web-1".to_owned()
    }

    fn kernel(&self) -> String {
        String::new()
    }

    fn architecture(&self) -> String {
        String::new()
    }

    fn time_zone(&self) -> TimeZone {
        TimeZone::fixed(jiff::tz::offset(-2))
    }
}

/// A fileset with its variables filled in.
pub(crate) struct Fileset {
    pub(crate) plan: Plan,
    /// How lines are joined: the expression, and whether lines without a match are continuations.
    multiline: Option<(Regex, bool)>,
    /// Lines that are left out.
    excluded: Vec<Regex>,
}

impl Fileset {
    /// `module/fileset` with these variables; all others are those of the manifest.
    pub(crate) fn new(name: &str, variables: &[(&str, &str)], context: &Context) -> Self {
        let folder = folder().join(name);
        let manifest = read(&folder.join("manifest.yml"));
        let manifest = Settings::parse("manifest.yml", &manifest).expect("a manifest is YAML");
        let problems = Problems::new();
        let root = manifest.root(&problems);
        let mut values = BTreeMap::new();
        for variable in root.sections("var") {
            let key = variable.string("name").required();
            if key != "paths" {
                values.insert(key, variable.string("default").optional().unwrap_or_default());
            }
            variable.skip();
        }
        for (key, value) in variables {
            assert!(values.contains_key(*key), "{name} has no variable {key}");
            values.insert((*key).to_owned(), (*value).to_owned());
        }
        let input = folder.join(root.string("input").required());
        root.skip();
        Self::of_text(&input, &rendered(&read(&input), &values), context)
    }

    fn of_text(path: &Path, text: &str, context: &Context) -> Self {
        let name = path.display().to_string();
        let settings = Settings::parse(&name, text).unwrap_or_else(|error| panic!("{error}"));
        let problems = Problems::new();
        let root = settings.root(&problems);
        let list = read_processors(root.items("processors"), context);
        let pattern = root.string("multiline.pattern").optional();
        let negate = root.bool("multiline.negate").or(false);
        let excluded = root.strings("exclude_lines").or_else(Vec::new);
        root.skip();
        assert!(problems.is_empty(), "{name}: {problems}");
        let multiline =
            pattern.map(|pattern| (Regex::new(&pattern).expect("an expression"), negate));
        let excluded =
            excluded.iter().map(|pattern| Regex::new(pattern).expect("an expression")).collect();
        Self { plan: Plan::compile(&list, &Map::new(), &[]), multiline, excluded }
    }

    /// The events of a file.
    pub(crate) fn events(&self, text: &str) -> Vec<Json> {
        let mut messages: Vec<String> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let continues = |(pattern, negate): &(Regex, bool)| pattern.is_match(line) != *negate;
            match messages.last_mut() {
                Some(last) if self.multiline.as_ref().is_some_and(continues) => {
                    last.push('\n');
                    last.push_str(line);
                }
                _ => messages.push(line.to_owned()),
            }
        }
        let is_kept = |message: &&String| !self.excluded.iter().any(|no| no.is_match(message));
        messages.iter().filter(is_kept).filter_map(|message| self.event(message)).collect()
    }

    /// The event of a line; `None` if it is dropped.
    fn event(&self, message: &str) -> Option<Json> {
        let bound = self.plan.bind(&Map::new(), &Map::new(), Shape::Lines);
        let base = Arc::clone(bound.input_base());
        let mut events = batch(&[message], &base);
        bound.run(&mut events);
        if events.rows().is_empty() {
            return None;
        }
        let mut event = document(&events, 0);
        let object = event.as_object_mut().expect("a document is an object");
        object.remove("@metadata");
        if let Some(log) = object.get_mut("log").and_then(Json::as_object_mut) {
            log.remove("offset");
            if log.is_empty() {
                object.remove("log");
            }
        }
        Some(event)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `{{ range }}` has one path, `{{ if .name }}` is true if the variable is not empty.
fn rendered(text: &str, values: &BTreeMap<String, String>) -> String {
    let value = |name: &str| {
        values.get(name).unwrap_or_else(|| panic!("the manifest has no variable {name}"))
    };
    let range = Regex::new(r"(?s)\{\{ range .*?\{\{ end \}\}").expect("an expression");
    let mut text = range.replace_all(text, " - /var/log/test.log").into_owned();
    let condition = Regex::new(r"(?s)\{\{ if \.(\w+) \}\}((?:[^{]|\{[^{])*?)\{\{ end \}\}")
        .expect("an expression");
    let quoted = Regex::new(r"\{\{ tojson \.(\w+) \}\}").expect("an expression");
    text = quoted
        .replace_all(&text, |found: &regex::Captures<'_>| {
            // With the end of a line, as in Filebeat.
            serde_json::to_string(value(&found[1])).expect("a text is JSON") + "\n"
        })
        .into_owned();
    text = condition
        .replace_all(&text, |found: &regex::Captures<'_>| {
            if value(&found[1]).is_empty() { String::new() } else { found[2].to_owned() }
        })
        .into_owned();
    assert!(!text.contains("{{"), "a template that this test does not know: {text}");
    text
}
