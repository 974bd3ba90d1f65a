//! The JSON Schema (draft 2020-12) of a configuration, from its declarations.
//!
//! Each group is a definition in `$defs`. In Filebeat's files `a.b: 1` is the same as `a: {b: 1}` on every level, so
//! each object has a property for every dotted path to a setting below it, up to the next list. A text with `${` may
//! stand for any value.

use super::{Declared, Group, Inner};
use serde_json::{Map, Value as Json, json};

/// A text with a variable in it, which may stand for anything.
pub(super) const VARIABLE: &str = r"\$\{";

/// The schema of a text of a form, or with a variable.
pub(super) fn text_like(pattern: &str) -> Json {
    json!({"type": ["string", "null"], "pattern": format!("{pattern}|{VARIABLE}")})
}

/// The schema of a map with the settings of `root`, and of everything below it.
pub fn json_schema(root: &'static Group, id: &str, title: &str) -> Json {
    let mut definitions = Map::new();
    let reachable = root.reachable();
    let inner = reachable.iter().flat_map(|group| group.keys).filter_map(|key| key.inner());
    for group in inner.map(|inner| inner.group).chain([root]) {
        definitions.entry(group.id).or_insert_with(|| definition(group));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": id,
        "title": title,
        "description": root.about,
        "$ref": format!("#/$defs/{}", root.id),
        "$defs": definitions,
    })
}

/// A level of names: what stands under a name itself, and the names below it.
#[derive(Default)]
struct Level {
    own: Option<Json>,
    below: Vec<(String, Level)>,
    /// Any names may stand below it, with this schema.
    any_below: Option<Json>,
}

impl Level {
    fn add(&mut self, name: &str, schema: Json) {
        self.at(name).own = Some(schema);
    }

    /// The level of a dotted name.
    fn at(&mut self, name: &str) -> &mut Self {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let at = match self.below.iter().position(|(known, _)| known == first) {
            Some(at) => at,
            None => {
                self.below.push((first.to_owned(), Self::default()));
                self.below.len() - 1
            }
        };
        let level = &mut self.below[at].1;
        if rest.is_empty() { level } else { level.at(rest) }
    }

    /// Every dotted name below, with its schema.
    fn properties(&self, prefix: &str, found: &mut Map<String, Json>) {
        for (name, level) in &self.below {
            let path = format!("{prefix}{name}");
            level.properties(&format!("{path}."), found);
            let schema = match &level.own {
                Some(own) => own.clone(),
                None => level.object(false),
            };
            found.insert(path, schema);
        }
    }

    /// The patterns of names below those that take any names.
    fn patterns(&self, prefix: &str, found: &mut Map<String, Json>) {
        for (name, level) in &self.below {
            let path = format!("{prefix}{name}");
            if let Some(schema) = &level.any_below {
                found.insert(format!("^{}\\.", path.replace('.', "\\.")), schema.clone());
            }
            level.patterns(&format!("{path}."), found);
        }
    }

    fn object(&self, is_open: bool) -> Json {
        let mut properties = Map::new();
        self.properties("", &mut properties);
        let mut schema = object(properties, is_open);
        let mut patterns = Map::new();
        self.patterns("", &mut patterns);
        if !patterns.is_empty() {
            schema["patternProperties"] = Json::Object(patterns);
        }
        schema
    }
}

/// The schema of a map. A text must be a variable.
fn object(properties: Map<String, Json>, is_open: bool) -> Json {
    json!({
        "type": ["object", "string", "null"],
        "pattern": VARIABLE,
        "properties": properties,
        "additionalProperties": is_open,
    })
}

fn definition(group: &'static Group) -> Json {
    let mut names = Names::default();
    names.add_group(group, "", &mut Vec::new());
    let mut schema = names.top.object(group.is_open);
    schema["title"] = json!(group.id);
    schema["description"] = json!(plain(group.about));
    schema
}

/// What may stand in a map.
#[derive(Default)]
struct Names {
    top: Level,
}

impl Names {
    /// Adds the settings of a group, and those of maps in it under their dotted names.
    fn add_group(&mut self, group: &'static Group, prefix: &str, above: &mut Vec<&'static str>) {
        above.push(group.id);
        for part in group.all() {
            self.add_rules(part, prefix);
        }
        for key in group.declared() {
            let spec = key.spec();
            for name in [spec.name, spec.alias].into_iter().filter(|name| !name.is_empty()) {
                let name = format!("{prefix}{name}");
                match key.inner() {
                    Some(Inner { group, is_list: false }) if !above.contains(&group.id) => {
                        self.add_group(group, &format!("{name}."), above);
                        if group.is_open {
                            self.below(&name, json!({}));
                        }
                    }
                    _ if key.takes_names() => self.below(&name, json!({})),
                    _ => {}
                }
                self.top.add(&name, schema_of(key));
            }
        }
        above.pop();
    }

    /// Everything below `name` has this schema.
    fn below(&mut self, name: &str, schema: Json) {
        self.top.at(name).any_below = Some(schema);
    }

    /// Adds what is known about settings that have no effect, or are an error.
    fn add_rules(&mut self, group: &Group, prefix: &str) {
        for (pattern, advice) in group.deprecated.iter().chain(group.without_effect) {
            let advice = plain(advice);
            let schema = json!({"deprecated": true, "description": format!("No effect: {advice}")});
            self.add_rule(&format!("{prefix}{pattern}"), schema);
        }
        for (pattern, advice) in group.unsupported {
            let advice = plain(advice);
            let schema = json!({"not": {}, "description": format!("Not supported: {advice}")});
            self.add_rule(&format!("{prefix}{pattern}"), schema);
        }
    }

    fn add_rule(&mut self, pattern: &str, schema: Json) {
        let name = match pattern.strip_suffix(".*") {
            Some(name) => {
                self.below(name, schema.clone());
                name
            }
            None => pattern,
        };
        self.top.add(name, schema);
    }
}

/// The schema of one setting.
fn schema_of(key: &dyn Declared) -> Json {
    let spec = key.spec();
    let mut schema = match key.inner() {
        None => key.schema(),
        Some(Inner { group, is_list: false }) => {
            let map = json!({"$ref": format!("#/$defs/{}", group.id)});
            match key.schema() {
                Json::Object(other) if !other.is_empty() => json!({"anyOf": [other, map]}),
                _ => map,
            }
        }
        Some(Inner { group, is_list: true }) => {
            let one = json!({"$ref": format!("#/$defs/{}", group.id)});
            json!({"anyOf": [{"type": "array", "items": one}, one]})
        }
    };
    schema["description"] = json!(description(key));
    if let Some(default) = key.default_json().filter(|default| !default.is_null()) {
        schema["default"] = default;
    }
    if spec.is_secret {
        schema["writeOnly"] = json!(true);
    }
    schema
}

/// The sentence that an editor shows.
fn description(key: &dyn Declared) -> String {
    let spec = key.spec();
    let mut text = plain(spec.about);
    if !spec.noun.is_empty() {
        text = format!("{}: {text}", spec.noun);
    }
    if spec.is_required {
        text.push_str(". Required");
    }
    if !spec.default_words.is_empty() {
        text.push_str(&format!(". Default: {}", plain(spec.default_words)));
    }
    if !spec.differs.is_empty() {
        text.push_str(&format!(". {}", plain(spec.differs)));
    }
    if spec.is_ours {
        text.push_str(". Filebeat does not have it");
    }
    text
}

/// Markdown without links and bold marks, for editors that show it as it is.
fn plain(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some((before, behind)) = rest.split_once("](") {
        let (head, label) = before.rsplit_once('[').unwrap_or(("", before));
        text.push_str(head);
        text.push_str(label);
        rest = behind.split_once(')').map_or(behind, |(_, after)| after);
    }
    text.push_str(rest);
    text.replace("**", "")
}
