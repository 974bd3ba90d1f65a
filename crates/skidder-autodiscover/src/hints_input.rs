//! The inputs that hints make.
//!
//! They are the input of `hints.default_config` with additions: maps are merged, lists are appended. The result is the
//! same as Filebeat's, of which `tests/golden` keeps samples; the differences are in `docs/hints.md`.

use crate::event::Event;
use crate::hints::{Hints, is_number};
use crate::hints_settings::{AllowList, HintSettings, OUTSIDE};
use crate::limits::{HINT_INPUTS_MAX, RAW_LEVELS_MAX};
use crate::resolve::Resolver;
use serde_json::{Map as Object, Value as Json, json};
use skidder_config::{Lists, Node, Position, Problems, Source};
use std::collections::BTreeMap;

/// Hints that mean something for logs.
const KNOWN: [&str; 10] = [
    "enabled",
    "multiline",
    "json",
    "include_lines",
    "exclude_lines",
    "processors",
    "pipeline",
    "raw",
    "module",
    "fileset",
];

/// The inputs of one event, and what there is to say about them.
#[derive(Debug, Default)]
pub(crate) struct FromHints {
    pub(crate) inputs: Vec<Node>,
    pub(crate) notes: Vec<String>,
    /// Of those, why an input does not run.
    pub(crate) failures: Vec<String>,
}

impl FromHints {
    fn fail(&mut self, reason: String) {
        self.failures.push(reason.clone());
        self.notes.push(reason);
    }
}

/// Makes the inputs of one container and port.
pub(crate) fn inputs(settings: &HintSettings, event: &Event, resolver: &Resolver<'_>) -> FromHints {
    let mut made = FromHints::default();
    let HintSettings { prefix, key, .. } = settings;
    let hints = match Hints::of(&event.annotations, prefix, key, &event.container) {
        Ok(hints) => hints,
        Err(reason) => {
            made.notes.push(reason);
            return made;
        }
    };
    match hints.enabled() {
        Some(false) => {
            made.notes.push(format!("the hint `{prefix}.{key}/enabled` is `false`"));
            return made;
        }
        None if !settings.reads_all => {
            made.notes.push(format!(
                "`hints.default_config.enabled` is `false`, and there is no hint `{prefix}.{key}/enabled: true`"
            ));
            return made;
        }
        _ => {}
    }
    let builder = Builder { settings, event, resolver };
    builder.note_unknown(&hints, &mut made);
    if builder.raw(&hints, &mut made) {
        return made;
    }
    let sets = hints.sets();
    if sets.len() > HINT_INPUTS_MAX {
        made.notes.push(format!("only the first {HINT_INPUTS_MAX} sets of hints are used"));
    }
    for set in sets.iter().take(HINT_INPUTS_MAX) {
        match builder.input(&hints, set, &mut made.notes) {
            Ok(input) => made.inputs.push(input),
            Err(reason) => made.fail(reason),
        }
    }
    made
}

struct Builder<'a> {
    settings: &'a HintSettings,
    event: &'a Event,
    resolver: &'a Resolver<'a>,
}

impl Builder<'_> {
    /// The place of a hint, for messages about its value.
    fn position(&self, hint: &str) -> Position {
        let HintSettings { prefix, key, .. } = self.settings;
        let name = format!("hint {prefix}.{key}/{hint} of {}", self.event.about);
        Position::whole(&Source::new(OUTSIDE, name))
    }

    /// What the owner of the container wrote, with its variables replaced.
    fn outside(&self, hint: &str, value: &Json) -> Result<Node, String> {
        let node = Node::from_json(value, &self.position(hint));
        self.resolver.distrusted(hint, &node.with_variables())
    }

    fn note_unknown(&self, hints: &Hints, made: &mut FromHints) {
        let HintSettings { prefix, key, .. } = self.settings;
        for name in
            hints.0.keys().filter(|name| !KNOWN.contains(&name.as_str()) && !is_number(name))
        {
            made.notes.push(format!("the hint `{prefix}.{key}/{name}` has no effect on logs"));
        }
    }

    /// The inputs of the hint `raw`, which says all; `false` if there is none, or if it is no JSON.
    fn raw(&self, hints: &Hints, made: &mut FromHints) -> bool {
        let text = hints.text("raw");
        if text.is_empty() {
            return false;
        }
        let list = match serde_json::from_str(text) {
            Ok(Json::Array(list)) if list.iter().all(|item| item.is_object() || item.is_null()) => {
                list
            }
            Ok(object @ Json::Object(_)) => vec![object],
            Ok(_) => {
                made.notes.push(
                    "the hint `raw` is ignored: it is no JSON object, nor a list of them"
                        .to_owned(),
                );
                return false;
            }
            Err(error) => {
                made.notes.push(format!("the hint `raw` is ignored: it is no JSON: {error}"));
                return false;
            }
        };
        if list.len() > HINT_INPUTS_MAX {
            made.notes.push(format!(
                "only the first {HINT_INPUTS_MAX} inputs of the hint `raw` are used"
            ));
        }
        for value in list.iter().take(HINT_INPUTS_MAX) {
            match self.raw_input(value) {
                Ok(input) => made.inputs.push(input),
                Err(reason) => made.fail(reason),
            }
        }
        true
    }

    fn raw_input(&self, value: &Json) -> Result<Node, String> {
        if levels(value) > RAW_LEVELS_MAX {
            return Err(format!("the hint `raw` has more than {RAW_LEVELS_MAX} levels"));
        }
        let problems = Problems::new();
        let node = if value.is_null() {
            Node::empty_map(&self.position("raw"))
        } else {
            Node::from_json(value, &self.position("raw")).with_levels(&problems)
        };
        if problems.has_errors() {
            return Err(problems.to_string());
        }
        let node = self.resolver.distrusted("raw", &node.with_variables())?;
        if let Some(list) = &self.settings.allow_list {
            list.check_raw(&node)?;
        }
        Ok(node)
    }

    /// The input of one set of hints; `all` are those of the container, of which the module counts.
    fn input(&self, all: &Hints, set: &Hints, notes: &mut Vec<String>) -> Result<Node, String> {
        let (default, note) = self.settings.default_of(&self.event.log_driver)?;
        if let Some(note) = note.filter(|note| !notes.contains(note)) {
            notes.push(note);
        }
        let mut input = self.resolver.trusted(default)?;
        let kind = input.at("type").and_then(Node::text).unwrap_or_default().to_owned();
        let has_parsers = matches!(kind.as_str(), "filestream" | "docker_logs");
        let mut over = Object::new();
        for (hint, parser) in [("multiline", "multiline"), ("json", "ndjson")] {
            let Some(options) =
                set.0.get(hint).and_then(Json::as_object).filter(|map| !map.is_empty())
            else {
                continue;
            };
            if !has_parsers {
                over.insert(hint.to_owned(), Json::Object(options.clone()));
            } else if over.insert("parsers".to_owned(), json!([{ parser: options }])).is_some() {
                notes.push(
                    "the hint `multiline` is ignored because of the hint `json`, as in Filebeat"
                        .to_owned(),
                );
            }
        }
        for hint in ["include_lines", "exclude_lines"] {
            let text = set.text(hint);
            if !text.is_empty() {
                let list: Vec<&str> = text.split(',').map(str::trim).collect();
                over.insert(hint.to_owned(), json!(list));
            }
        }
        let processors: Vec<Json> = processors(set).into_iter().map(with_lists).collect();
        if let Some(list) = &self.settings.allow_list {
            list.check_processors(&processors)?;
        }
        if !processors.is_empty() {
            over.insert("processors".to_owned(), Json::Array(processors));
        }
        let pipeline = set.text("pipeline");
        if !pipeline.is_empty() {
            over.insert("pipeline".to_owned(), pipeline.into());
        }
        for (hint, value) in over {
            let mut map = Node::empty_map(&self.position(&hint));
            let problems = Problems::new();
            map.set_at(&hint, self.outside(&hint, &value)?.with_levels(&problems));
            if problems.has_errors() {
                return Err(problems.to_string());
            }
            input.overlay(&map, Lists::Appended);
        }
        let module: String = all.text("module").chars().filter(|it| is_of_module(*it)).collect();
        if module.is_empty() {
            Ok(input)
        } else {
            Ok(self.module(all, &module, &kind, &input, notes))
        }
    }

    /// The configuration of a module: each of its filesets reads the log with `input`, of the stream that it is for.
    fn module(
        &self,
        hints: &Hints,
        module: &str,
        kind: &str,
        input: &Node,
        notes: &mut Vec<String>,
    ) -> Node {
        let position = self.position("module");
        let node = |value: &Json| Node::from_json(value, &position);
        let mut config = Node::empty_map(&position);
        config.set_at("module", node(&json!(module)));
        let Some(names) = (self.resolver.context.filesets)(module) else {
            notes.push(format!("there is no module `{module}`"));
            return config;
        };
        let mut filesets: BTreeMap<String, (bool, &str)> =
            names.into_iter().map(|name| (name, (false, "all"))).collect();
        let mut is_chosen = false;
        let chosen = [
            ("fileset", "all"),
            ("fileset.all", "all"),
            ("fileset.stdout", "stdout"),
            ("fileset.stderr", "stderr"),
        ];
        for (hint, stream) in chosen {
            let name = hints.text(hint);
            match filesets.get_mut(name) {
                Some(fileset) => {
                    // As in Filebeat, the hint without a stream leaves the stream as it is.
                    *fileset = (true, stream);
                    is_chosen = true;
                }
                None if !name.is_empty() => {
                    notes.push(format!("the module `{module}` has no fileset `{name}`"));
                }
                None => {}
            }
        }
        for (name, (enabled, stream)) in filesets {
            let mut input = input.clone();
            match kind {
                "container" | "docker_logs" => input.set_at("stream", node(&json!(stream))),
                "filestream" => {
                    let parser =
                        node(&json!({ "container": { "stream": stream, "format": "auto" } }));
                    input.set_item("parsers", 0, parser);
                }
                _ => input.set_at("containers.stream", node(&json!(stream))),
            }
            let mut fileset = Node::empty_map(&position);
            fileset.set_at("enabled", node(&json!(enabled || !is_chosen)));
            fileset.set_at("input", input);
            config.set_at(&name, fileset);
        }
        config
    }
}

/// Whether a character can be in the name of a module; others are left out, as a name is a part of a path.
fn is_of_module(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

/// The same with `{"0": …, "1": …}` as lists: hints name the items of a list by their numbers.
fn with_lists(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(with_lists).collect(),
        Json::Object(object) => {
            let is_list = !object.is_empty()
                && (0..object.len()).all(|index| object.contains_key(&index.to_string()));
            if !is_list {
                return Json::Object(
                    object.into_iter().map(|(key, value)| (key, with_lists(value))).collect(),
                );
            }
            let mut items: Vec<(usize, Json)> = object
                .into_iter()
                .map(|(key, value)| (key.parse().unwrap_or_default(), with_lists(value)))
                .collect();
            items.sort_by_key(|(index, _)| *index);
            items.into_iter().map(|(_, value)| value).collect()
        }
        value => value,
    }
}

/// The processors: the numbered ones, sorted as texts, then the others by name. One can also be a text in JSON.
fn processors(set: &Hints) -> Vec<Json> {
    let Some(all) = set.0.get("processors").and_then(Json::as_object) else { return Vec::new() };
    let mut numbered: Vec<(&String, &Json)> =
        all.iter().filter(|(name, _)| is_number(name)).collect();
    numbered.sort_by_key(|(name, _)| *name);
    let mut list: Vec<Object<String, Json>> =
        numbered.into_iter().filter_map(|(_, value)| value.as_object().cloned()).collect();
    let mut named: Vec<(&String, &Json)> =
        all.iter().filter(|(name, _)| !is_number(name)).collect();
    named.sort_by_key(|(name, _)| *name);
    list.extend(
        named.into_iter().map(|(name, value)| Object::from_iter([(name.clone(), value.clone())])),
    );
    for processor in &mut list {
        for value in processor.values_mut() {
            let parsed = value.as_str().and_then(|text| serde_json::from_str::<Json>(text).ok());
            if let Some(object) = parsed.filter(Json::is_object) {
                *value = object;
            }
        }
    }
    list.into_iter().map(Json::Object).collect()
}

/// Levels of lists and maps, with dots in keys.
fn levels(value: &Json) -> usize {
    match value {
        Json::Array(list) => 1 + list.iter().map(levels).max().unwrap_or(0),
        Json::Object(object) => {
            let below = |(key, value): (&String, &Json)| key.matches('.').count() + levels(value);
            1 + object.iter().map(below).max().unwrap_or(0)
        }
        _ => 0,
    }
}

impl AllowList {
    /// Refuses types, paths and processors that are not allowed.
    fn check_raw(&self, input: &Node) -> Result<(), String> {
        let value = input.to_json();
        let kind = value["type"].as_str().unwrap_or("log");
        if !self.types.iter().any(|allowed| allowed == kind) {
            return Err(format!(
                "`hints.input_allow_list.types` does not have the type `{kind}` of the hint `raw`"
            ));
        }
        let paths = match &value["paths"] {
            Json::Array(list) => list.clone(),
            Json::Null => Vec::new(),
            one => vec![one.clone()],
        };
        for path in paths {
            let text = path.as_str().unwrap_or_default();
            let is_below = self.folders.iter().any(|folder| text.starts_with(folder.as_str()));
            if !is_below || text.split('/').any(|part| part == "..") {
                return Err(format!(
                    "the path `{text}` of the hint `raw` is not below {}",
                    self.folders.join(" or ")
                ));
            }
        }
        let processors = value["processors"].as_array().cloned().unwrap_or_default();
        self.check_processors(&processors)
    }

    /// Refuses processors that run code.
    fn check_processors(&self, processors: &[Json]) -> Result<(), String> {
        let runs_code = |value: &Json| has_key(value, "script");
        if processors.iter().any(runs_code) {
            return Err("`hints.input_allow_list` does not allow the processor `script` in hints"
                .to_owned());
        }
        Ok(())
    }
}

fn has_key(value: &Json, wanted: &str) -> bool {
    match value {
        Json::Array(list) => list.iter().any(|item| has_key(item, wanted)),
        Json::Object(object) => {
            object.iter().any(|(key, value)| key == wanted || has_key(value, wanted))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_a_list_are_named_by_their_numbers() {
        let hint =
            json!({"rename": {"fields": {"0": {"from": "a"}, "1": {"from": "b"}}, "x": {"1": 2}}});
        let expected = json!({"rename": {"fields": [{"from": "a"}, {"from": "b"}], "x": {"1": 2}}});
        assert_eq!(with_lists(hint), expected);
    }
}
