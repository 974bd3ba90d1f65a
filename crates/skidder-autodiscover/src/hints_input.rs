//! The inputs that hints make.
//!
//! They are the input of `hints.default_config` with additions: maps are merged, lists are appended. The result is the
//! same as Filebeat's, of which `tests/golden` keeps samples; the differences are in `docs/hints.md`.

use crate::event::Event;
use crate::hint_places;
use crate::hints::{Hints, is_number};
use crate::hints_settings::{AllowList, HintSettings, OUTSIDE};
use crate::limits::{HINT_INPUTS_MAX, RAW_LEVELS_MAX};
use crate::resolve::{Resolver, names_container};
use serde_json::{Map as Object, Value as Json, json};
use skidder_config::{Lists, Node, Position, Problems, nearest};
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
    /// Of those, mistakes with which inputs run all the same.
    pub(crate) warnings: Vec<String>,
}

impl FromHints {
    fn warn(&mut self, mistake: String) {
        if !self.warnings.contains(&mistake) {
            self.warnings.push(mistake.clone());
            self.notes.push(mistake);
        }
    }

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
            made.warn(reason);
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
        None if !hints.text("enabled").is_empty() => {
            let text = hints.text("enabled");
            made.warn(format!(
                "the hint `{prefix}.{key}/enabled` is `{text}`, neither `true` nor `false`, and has no effect"
            ));
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
        made.warn(format!("only the first {HINT_INPUTS_MAX} sets of hints are used"));
    }
    for set in sets.iter().take(HINT_INPUTS_MAX) {
        match builder.input(&hints, set, &mut made) {
            Ok(input) => made.inputs.push(input),
            Err(_) if event.is_around_containers && names_container(&settings.default_config) => {}
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
    fn position(&self, hints: &Hints, hint: &str) -> Position {
        hint_places::position(OUTSIDE, &hints.name_of(hint), &self.event.about)
    }

    /// A value of the owner of the container, with its variables replaced. It is at `key` of an input.
    fn outside(&self, key: &str, value: Node) -> Result<Node, String> {
        let around = hint_places::position_of_several(OUTSIDE, &self.event.about);
        let map = Node::map_of(&around, [(key.to_owned(), value)]);
        let problems = Problems::new();
        let expanded = self.resolver.distrusted(&map.with_variables())?.with_levels(&problems);
        if problems.has_errors() { Err(problems.to_string()) } else { Ok(expanded) }
    }

    /// The value of a hint, each part of it at the place of its own label or annotation.
    fn tree(&self, hints: &Hints, hint: &str, value: &Json) -> Node {
        let position = self.position(hints, hint);
        let Json::Object(object) = value else { return Node::from_json(value, &position) };
        let below = |key: &String, value| self.tree(hints, &format!("{hint}.{key}"), value);
        match list_items(object) {
            Some(items) => Node::list_of(
                &position,
                items.iter().map(|(key, value)| below(key, value)).collect(),
            ),
            None => Node::map_of(
                &position,
                object.iter().map(|(key, value)| (key.clone(), below(key, value))),
            ),
        }
    }

    /// The list of one parser.
    fn parsers(&self, parser: &str, options: Node) -> Node {
        let around = hint_places::position_of_several(OUTSIDE, &self.event.about);
        Node::list_of(&around, vec![Node::map_of(&around, [(parser.to_owned(), options)])])
    }

    /// The options of a hint; lists among them stay maps, as in Filebeat.
    fn options(&self, hints: &Hints, hint: &str, options: &Object<String, Json>) -> Node {
        let position = self.position(hints, hint);
        let option = |(key, value): (&String, &Json)| {
            let name = format!("{hint}.{key}");
            let value = match value {
                Json::Object(inner) => self.options(hints, &name, inner),
                value => Node::from_json(value, &self.position(hints, &name)),
            };
            (key.clone(), value)
        };
        Node::map_of(&position, options.iter().map(option))
    }

    fn note_unknown(&self, hints: &Hints, made: &mut FromHints) {
        let HintSettings { prefix, key, .. } = self.settings;
        for name in
            hints.values.keys().filter(|name| !KNOWN.contains(&name.as_str()) && !is_number(name))
        {
            let meant = nearest(name, KNOWN).map_or_else(String::new, |meant| {
                format!("; did you mean `{prefix}.{key}/{meant}`?")
            });
            made.warn(format!("the hint `{prefix}.{key}/{name}` has no effect on logs{meant}"));
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
                made.warn(
                    "the hint `raw` is ignored: it is no JSON object, nor a list of them"
                        .to_owned(),
                );
                return false;
            }
            Err(error) => {
                made.warn(format!("the hint `raw` is ignored: it is no JSON: {error}"));
                return false;
            }
        };
        if list.len() > HINT_INPUTS_MAX {
            made.warn(format!(
                "only the first {HINT_INPUTS_MAX} inputs of the hint `raw` are used"
            ));
        }
        for value in list.iter().take(HINT_INPUTS_MAX) {
            match self.raw_input(hints, value) {
                Ok(input) => made.inputs.push(input),
                Err(reason) => made.fail(reason),
            }
        }
        true
    }

    fn raw_input(&self, hints: &Hints, value: &Json) -> Result<Node, String> {
        if levels(value) > RAW_LEVELS_MAX {
            return Err(format!("the hint `raw` has more than {RAW_LEVELS_MAX} levels"));
        }
        let problems = Problems::new();
        let position = self.position(hints, "raw");
        let node = if value.is_null() {
            Node::empty_map(&position)
        } else {
            Node::from_json(value, &position).with_levels(&problems)
        };
        if problems.has_errors() {
            return Err(problems.to_string());
        }
        let node = self.resolver.distrusted(&node.with_variables())?;
        if let Some(list) = &self.settings.allow_list {
            list.check_raw(&node).map_err(|reason| node.cover_secrets(&reason))?;
        }
        Ok(node)
    }

    /// The input of one set of hints; `all` are those of the container, of which the module counts.
    fn input(&self, all: &Hints, set: &Hints, made: &mut FromHints) -> Result<Node, String> {
        let (default, note) = self.settings.default_of(&self.event.log_driver)?;
        if let Some(note) = note.filter(|note| !made.notes.contains(note)) {
            made.notes.push(note);
        }
        let mut input = self.resolver.trusted(default).map_err(|it| it.reason)?;
        let kind = input.at("type").and_then(Node::text).unwrap_or_default().to_owned();
        let has_parsers = matches!(kind.as_str(), "filestream" | "docker_logs");
        let mut over: Vec<(&str, Node)> = Vec::new();
        for (hint, parser) in [("multiline", "multiline"), ("json", "ndjson")] {
            let options = set.values.get(hint).and_then(Json::as_object);
            let Some(options) = options.filter(|map| !map.is_empty()) else { continue };
            let options = self.options(set, hint, options);
            if !has_parsers {
                over.push((hint, options));
                continue;
            }
            if over.pop().is_some() {
                made.warn(
                    "the hint `multiline` is ignored because of the hint `json`, as in Filebeat"
                        .to_owned(),
                );
            }
            over.push(("parsers", self.parsers(parser, options)));
        }
        for hint in ["include_lines", "exclude_lines"] {
            let text = set.text(hint);
            if !text.is_empty() {
                let list: Vec<&str> = text.split(',').map(str::trim).collect();
                over.push((hint, Node::from_json(&json!(list), &self.position(set, hint))));
            }
        }
        let processors = self.processors(set);
        if let Some(list) = &self.settings.allow_list {
            list.check_processors(&processors.iter().map(Node::to_json).collect::<Vec<_>>())?;
        }
        if !processors.is_empty() {
            let around = hint_places::position_of_several(OUTSIDE, &self.event.about);
            over.push(("processors", Node::list_of(&around, processors)));
        }
        let pipeline = set.text("pipeline");
        if !pipeline.is_empty() {
            let position = self.position(set, "pipeline");
            over.push(("pipeline", Node::from_json(&pipeline.into(), &position)));
        }
        for (key, value) in over {
            input.overlay(&self.outside(key, value)?, Lists::Appended);
        }
        let module: String = all.text("module").chars().filter(|it| is_of_module(*it)).collect();
        if module.is_empty() {
            Ok(input)
        } else {
            Ok(self.module(all, &module, &kind, &input, made))
        }
    }

    /// The configuration of a module: each of its filesets reads the log with `input`, of the stream that it is for.
    fn module(
        &self,
        hints: &Hints,
        module: &str,
        kind: &str,
        input: &Node,
        made: &mut FromHints,
    ) -> Node {
        let position = self.position(hints, "module");
        let node = |value: &Json| Node::from_json(value, &position);
        let mut config = Node::empty_map(&position);
        config.set_at("module", node(&json!(module)));
        let Some(names) = (self.resolver.context.filesets)(module) else {
            made.notes.push(format!("there is no module `{module}`"));
            return config;
        };
        let mut filesets: BTreeMap<String, (bool, &str)> =
            names.into_iter().map(|name| (name, (false, "all"))).collect();
        let known: Vec<String> = filesets.keys().cloned().collect();
        let mut is_chosen = false;
        let mut unknown = Vec::new();
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
                None if !name.is_empty() => unknown.push(name),
                None => {}
            }
        }
        for name in unknown {
            let instead =
                if is_chosen { "it is left out" } else { "all its filesets read the log" };
            let known = known.join("`, `");
            made.warn(format!(
                "the module `{module}` has no fileset `{name}`, only `{known}`; {instead}"
            ));
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

/// The items of `{"0": …, "1": …}` in order: hints name the items of a list by their numbers. `None` if it is no list.
fn list_items(object: &Object<String, Json>) -> Option<Vec<(&String, &Json)>> {
    let is_list = !object.is_empty()
        && (0..object.len()).all(|index| object.contains_key(&index.to_string()));
    let mut items: Vec<(&String, &Json)> = object.iter().filter(|_| is_list).collect();
    items.sort_by_key(|(key, _)| key.parse::<usize>().unwrap_or_default());
    is_list.then_some(items)
}

/// The same with such lists at all levels.
fn with_lists(value: Json) -> Json {
    match value {
        Json::Array(items) => items.into_iter().map(with_lists).collect(),
        Json::Object(object) => match list_items(&object) {
            Some(items) => items.into_iter().map(|(_, value)| with_lists(value.clone())).collect(),
            None => {
                object.into_iter().map(|(key, value)| (key, with_lists(value))).collect::<Json>()
            }
        },
        value => value,
    }
}

impl Builder<'_> {
    /// The processors: the numbered ones, sorted as texts, then the others by name.
    fn processors(&self, set: &Hints) -> Vec<Node> {
        let Some(all) = set.values.get("processors").and_then(Json::as_object) else {
            return Vec::new();
        };
        let sorted = |are_numbers: bool| {
            let mut some: Vec<(&String, &Json)> =
                all.iter().filter(|(name, _)| is_number(name) == are_numbers).collect();
            some.sort_by_key(|(name, _)| *name);
            some
        };
        let numbered = sorted(true).into_iter().filter_map(|(number, value)| {
            Some(self.processor(set, &format!("processors.{number}"), value.as_object()?))
        });
        let named = sorted(false).into_iter().map(|(name, value)| {
            let one = Object::from_iter([(name.clone(), value.clone())]);
            self.processor(set, "processors", &one)
        });
        numbered.chain(named).collect()
    }

    /// One processor, whose settings can also be a text in JSON.
    fn processor(&self, set: &Hints, hint: &str, processor: &Object<String, Json>) -> Node {
        let setting = |(key, value): (&String, &Json)| {
            let name = format!("{hint}.{key}");
            let parsed = value.as_str().and_then(|text| serde_json::from_str::<Json>(text).ok());
            let value = match parsed.filter(Json::is_object) {
                Some(parsed) => Node::from_json(&with_lists(parsed), &self.position(set, &name)),
                None => self.tree(set, &name, value),
            };
            (key.clone(), value)
        };
        Node::map_of(&self.position(set, hint), processor.iter().map(setting))
    }
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
