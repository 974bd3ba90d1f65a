//! The JSON Schema (draft 2020-12) of a configuration, from its declarations.
//!
//! Each group is a definition in `$defs`. In Filebeat's files `a.b: 1` is the same as `a: {b: 1}` on every level, so
//! each object has a property for every dotted path to a setting below it, up to the next list. A text with `${` may
//! stand for any value.

use super::{By, Declared, Group, Inner, Kinds};
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
        definitions.entry(group.id).or_insert_with(|| definition(group, &[]));
    }
    for kinds in reachable.iter().filter_map(|group| group.kinds) {
        for (_, group) in (kinds.list)() {
            let kind = definition(group, kinds.every);
            let known = definitions.entry(group.id).or_insert_with(|| kind.clone());
            assert!(
                *known == kind,
                "`{}` is a kind of something, and has other settings elsewhere",
                group.id
            );
        }
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

/// A level of names: the setting under a name itself, and the names below it.
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

/// The schema of a map with the settings of `group` and of `every`.
fn definition(group: &'static Group, every: &[&'static Group]) -> Json {
    match group.kinds {
        Some(Kinds { by: By::Tag { key, default }, list, .. }) => {
            let mut schema = merged(group, every);
            // Each kind lists its keys.
            schema["additionalProperties"] = json!(true);
            let kinds = list();
            let names: Vec<&str> = kinds.iter().map(|(name, _)| *name).collect();
            let words = [json!({"enum": names}), text_like(VARIABLE)];
            schema["properties"][key] = json!({"anyOf": words});
            schema["allOf"] = kinds
                .into_iter()
                .map(|(name, group)| {
                    let mut condition = json!({"properties": {key: {"const": name}}});
                    if name != default {
                        condition["required"] = json!([key]);
                    }
                    json!({"if": condition, "then": reference(group.id)})
                })
                .collect();
            schema
        }
        Some(Kinds { by: By::Name, list, .. }) => {
            let mut schema = merged(group, every);
            let own: Vec<&str> = group.declared().map(|key| key.spec().name).collect();
            let own = (!own.is_empty()).then(|| format!("({})", own.join("|")));
            let names = list().into_iter().map(|(name, _)| name.to_owned()).chain(own);
            let only = |name| json!({"propertyNames": {"pattern": format!("^{name}(\\.|$)")}});
            schema["anyOf"] = names.map(only).collect();
            schema
        }
        None => merged(group, every),
    }
}

/// The same without the part of the kind.
fn merged(group: &'static Group, every: &[&'static Group]) -> Json {
    let mut names = Names::default();
    let above = &mut Vec::new();
    for part in every.iter().copied().chain([group]) {
        names.add_rules(part, "");
    }
    // What every kind has is the same in all of them.
    for part in [group].into_iter().chain(every.iter().copied()) {
        names.add_keys(part, "", above);
    }
    let mut schema = names.top.object(group.is_open);
    schema["title"] = json!(group.id);
    schema["description"] = json!(plain(group.about));
    schema
}

fn reference(id: &str) -> Json {
    json!({"$ref": format!("#/$defs/{id}")})
}

/// The schema of a list of maps that are described under `id`; a single map is a list of one.
pub(super) fn list_of(id: &str) -> Json {
    // Not `anyOf`, for which validators only report that nothing fits.
    json!({"if": {"type": "array"}, "then": {"items": reference(id)}, "else": reference(id)})
}

/// What may stand in a map.
#[derive(Default)]
struct Names {
    top: Level,
}

impl Names {
    /// Adds what may stand in a map with the settings of `group`, under their dotted names.
    fn add_group(&mut self, group: &'static Group, prefix: &str, above: &mut Vec<&'static str>) {
        self.add_rules(group, prefix);
        self.add_keys(group, prefix, above);
    }

    /// Adds the settings of a group, and those of maps in it under their dotted names.
    fn add_keys(&mut self, group: &'static Group, prefix: &str, above: &mut Vec<&'static str>) {
        above.push(group.id);
        for key in group.declared() {
            let spec = key.spec();
            for name in [spec.name, spec.alias].into_iter().filter(|name| !name.is_empty()) {
                let name = format!("{prefix}{name}");
                match key.inner() {
                    Some(Inner { group, is_list: false }) => self.add_part(group, &name, above),
                    // A single map is a list of one; with dots it is unusual, and the schema would be large.
                    Some(_) => self.below(&name, json!({})),
                    _ if key.takes_names() => self.below(&name, json!({})),
                    _ => {}
                }
                self.top.add(&name, schema_of(key));
            }
        }
        if let Some(kinds) = group.kinds {
            for (name, kind) in (kinds.list)() {
                for part in kinds.every.iter().copied().chain([kind]) {
                    match kinds.by {
                        By::Name => self.add_part(part, &format!("{prefix}{name}"), above),
                        By::Tag { .. } if prefix.is_empty() => {}
                        By::Tag { .. } => self.add_group(part, prefix, above),
                    }
                }
                if matches!(kinds.by, By::Name) {
                    self.top.add(&format!("{prefix}{name}"), reference(kind.id));
                }
            }
        }
        above.pop();
    }

    /// Adds the dotted names below `name`. Inside itself a group is not followed: anything may be there.
    fn add_part(&mut self, group: &'static Group, name: &str, above: &mut Vec<&'static str>) {
        if above.contains(&group.id) {
            self.below(name, json!({}));
            return;
        }
        self.add_group(group, &format!("{name}."), above);
        if group.is_open {
            self.below(name, json!({}));
        }
    }

    /// Everything below `name` has this schema.
    fn below(&mut self, name: &str, schema: Json) {
        self.top.at(name).any_below = Some(schema);
    }

    /// Adds what is known about settings that have no effect, or are an error.
    fn add_rules(&mut self, group: &'static Group, prefix: &str) {
        for group in group.all() {
            let idle = group.deprecated.iter().chain(group.without_effect).chain(group.of_others);
            for (pattern, advice) in idle {
                let text = format!("No effect: {}", plain(advice));
                let schema = json!({"deprecated": true, "description": text});
                self.add_rule(&format!("{prefix}{pattern}"), schema);
            }
            for (pattern, advice) in group.unsupported {
                let text = format!("Not supported: {}", plain(advice));
                self.add_rule(
                    &format!("{prefix}{pattern}"),
                    json!({"not": {}, "description": text}),
                );
            }
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
        Some(Inner { group, is_list: true }) => list_of(group.id),
        Some(Inner { group, .. }) => match key.schema() {
            // Something else may stand in the map's place.
            Json::Object(other) if !other.is_empty() => {
                json!({"anyOf": [other, reference(group.id)]})
            }
            _ => reference(group.id),
        },
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
