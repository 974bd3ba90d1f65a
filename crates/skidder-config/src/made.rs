//! Settings that no file holds as they are: templates that are expanded at the time of use, and values
//! that come from outside, such as annotations of a pod.
//!
//! Positions stay useful: what a template wrote keeps its file and line, and a value from outside has the
//! position that its maker gives it (`hint co.elastic.logs/enabled of container web`).

use crate::declare::{Group, secrets};
use crate::node::{Content, Entry, Map, Node, Variables};
use crate::packed::MadeSettings;
use crate::problem::{Position, Problems};
use crate::rendered::{Lists, overlay};
use crate::settings::Settings;
use crate::vars::{self, Lookups};
use crate::{read, tree};
use serde_json::Value as Json;
use std::ops::ControlFlow;

/// A value for a variable that is known only at the time of use.
#[derive(Clone, Debug, PartialEq)]
pub enum VariableValue {
    /// A value with its type: a text stays a text, whatever it looks like.
    Known(Json),
    /// A secret, which is never shown.
    Secret(String),
}

/// What the variables of a template may refer to.
#[derive(Clone, Copy)]
pub struct VariableScope<'a> {
    /// Values that are known only now, by the name of the variable: `data.host`. They win over the environment.
    pub values: &'a dyn Fn(&str) -> Option<VariableValue>,
    /// Environment variables.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether other settings and the keystore may be named. No for values that come from outside.
    pub trusts: bool,
}

impl Settings {
    /// A copy of `node` with its remaining variables replaced. A variable without a value stays, see
    /// [`Node::missing`].
    pub fn expand_in(&self, node: &Node, scope: VariableScope<'_>) -> Node {
        let nothing = Node::collection(node.position.clone(), Content::Map(Map::default()));
        let root = if scope.trusts { &self.root } else { &nothing };
        let keystore = |name: &str| {
            let secret = self.secrets.get(name).filter(|_| scope.trusts);
            secret.map(|secret| secret.reveal().to_owned())
        };
        let values = |name: &str, position: &Position| {
            (scope.values)(name).map(|value| match value {
                VariableValue::Known(json) => Node::from_json(&json, position),
                VariableValue::Secret(text) => {
                    let mut node = Node::scalar(position.clone(), Content::String, text);
                    node.secret = true;
                    node
                }
            })
        };
        let lookups = Lookups {
            values: &values,
            extra: &|_| None,
            keystore: &keystore,
            environment: scope.environment,
            data_comes_later: false,
        };
        vars::expand(node, root, lookups)
    }

    /// Settings that hold the list of `items`, to be read like a file of further inputs.
    pub fn made(&self, position: &Position, items: Vec<Node>) -> MadeSettings {
        MadeSettings::new(self, &Node::collection(position.clone(), Content::List(items)))
    }
}

impl Node {
    /// The tree of `value`, with `position` everywhere. Keys and texts are taken as they are; see
    /// [`Node::with_levels`] and [`Node::with_variables`].
    pub fn from_json(value: &Json, position: &Position) -> Self {
        let place = || position.clone();
        let mut node = match value {
            Json::Null => Self::scalar(place(), Content::Null, ""),
            Json::Bool(truth) => Self::scalar(place(), Content::Bool(*truth), truth.to_string()),
            Json::Number(number) => {
                let content = match (number.as_i64(), number.as_u64(), number.as_f64()) {
                    (Some(number), _, _) => Content::Int(number),
                    (None, Some(number), _) => Content::UInt(number),
                    (None, None, number) => Content::Float(number.unwrap_or(f64::NAN)),
                };
                Self::scalar(place(), content, number.to_string())
            }
            Json::String(text) => Self::scalar(place(), Content::String, text.as_str()),
            Json::Array(list) => {
                let items = list.iter().map(|item| Self::from_json(item, position)).collect();
                Self::collection(place(), Content::List(items))
            }
            Json::Object(object) => {
                let mut map = Map::default();
                for (key, value) in object {
                    map.insert(entry(key, Self::from_json(value, position)));
                }
                Self::collection(place(), Content::Map(map))
            }
        };
        node.variables = Variables::Expanded;
        node
    }

    /// The same with dots in keys as levels, as in a file. Conflicts are reported.
    #[must_use]
    pub fn with_levels(self, problems: &Problems) -> Self {
        let mut node = tree::expand_dots(self, problems);
        tree::settle_lists(&mut node);
        node
    }

    /// The same with `${...}` in its texts as variables, which [`Settings::expand_in`] replaces.
    #[must_use]
    pub fn with_variables(mut self) -> Self {
        match &mut self.content {
            Content::List(list) => {
                let items = std::mem::take(list);
                *list = items.into_iter().map(Self::with_variables).collect();
            }
            Content::Map(map) => {
                for entry in map.iter_mut() {
                    let value = std::mem::replace(
                        &mut entry.value,
                        Self::scalar(entry.key_position.clone(), Content::Null, ""),
                    );
                    entry.value = value.with_variables();
                }
            }
            _ => {}
        }
        self.variables = Variables::Fresh;
        self
    }

    /// A map of these entries at `position`. Keys are taken as they are; see [`Node::with_levels`].
    pub fn map_of(position: &Position, entries: impl IntoIterator<Item = (String, Self)>) -> Self {
        let mut map = Map::default();
        for (key, value) in entries {
            map.insert(entry(&key, value));
        }
        let node = Self::collection(position.clone(), Content::Map(map));
        Self { variables: Variables::Expanded, ..node }
    }

    /// A list of these items at `position`.
    pub fn list_of(position: &Position, items: Vec<Self>) -> Self {
        let node = Self::collection(position.clone(), Content::List(items));
        Self { variables: Variables::Expanded, ..node }
    }

    /// An empty map at `position`.
    pub fn empty_map(position: &Position) -> Self {
        Self::from_json(&Json::Object(serde_json::Map::new()), position)
    }

    /// The value at a dotted path; numbers name items of lists.
    pub fn at(&self, path: &str) -> Option<&Self> {
        tree::find(self, path)
    }

    /// Sets the value at a dotted path; what is on the way and no map becomes one.
    pub fn set_at(&mut self, path: &str, value: Self) {
        tree::set(self, path, value);
    }

    /// Replaces an item of the list at a dotted path, or appends it if the list is shorter.
    pub fn set_item(&mut self, path: &str, index: usize, value: Self) {
        let mut items = self.at(path).and_then(Self::as_list).unwrap_or_default().to_vec();
        let position = value.position.clone();
        match items.get_mut(index) {
            Some(item) => *item = value,
            None => items.push(value),
        }
        self.set_at(path, Self::collection(position, Content::List(items)));
    }

    /// The same without one key of its map.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        if let Content::Map(map) = &mut self.content {
            let mut rest = Map::default();
            for entry in std::mem::take(map).into_entries() {
                if entry.key != key {
                    rest.insert(entry);
                }
            }
            *map = rest;
        }
        self
    }

    /// Lays `over` upon it, as [`Settings::overlaid`] does with all lists alike.
    pub fn overlay(&mut self, over: &Self, lists: Lists) {
        overlay(self, over, "", &|_| lists);
    }

    /// The first value below this with a variable that has no value: its path, and the reason.
    pub fn missing(&self) -> Option<(String, String)> {
        let found = self.visit("", &mut |node, path| match &node.variables {
            Variables::Unresolved(unresolved) => {
                ControlFlow::Break((path.to_owned(), unresolved.reason.clone()))
            }
            _ => ControlFlow::Continue(()),
        });
        found.break_value()
    }

    /// Reports each text below this, the setting `path`, whose `${...}` are malformed, such as a `${` without its `}`:
    /// no value of a variable can mend that.
    pub fn report_malformed(&self, path: &str, problems: &Problems) {
        let visited: ControlFlow<()> = self.visit(path, &mut |node, path| {
            let is_text = matches!(node.content, Content::String);
            if is_text && node.variables != Variables::Expanded {
                let text = node.text.as_deref().unwrap_or_default();
                problems.extend(vars::malformed(text, path, &node.position));
            }
            ControlFlow::Continue(())
        });
        debug_assert!(visited.is_continue(), "all of them");
    }

    /// Calls `each` for this, the setting `path`, and for everything below it, until it breaks.
    fn visit<B>(
        &self,
        path: &str,
        each: &mut dyn FnMut(&Self, &str) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        each(self, path)?;
        match &self.content {
            Content::List(list) => {
                for (index, item) in list.iter().enumerate() {
                    item.visit(&format!("{path}[{index}]"), each)?;
                }
            }
            Content::Map(map) => {
                for entry in map.iter() {
                    entry.value.visit(&tree::join(path, &entry.key), each)?;
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// The text of a single value, whatever its type.
    pub fn scalar_text(&self) -> Option<&str> {
        read::text(self).ok()
    }

    /// The value as JSON, without positions. Shows secrets.
    pub fn to_json(&self) -> Json {
        (&self.to_value()).into()
    }

    /// The value, a map with the settings of `group`, as YAML with secrets replaced by `xxxxx`.
    pub fn to_masked_yaml(&self, group: &'static Group) -> String {
        let mut masked = self.clone();
        secrets::mark(&mut masked, group);
        crate::export::to_yaml(&masked)
    }
}

fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), key_position: value.position.clone(), value, indexed: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Source;
    use serde_json::json;

    fn node(value: &Json) -> Node {
        Node::from_json(value, &Position::whole(&Source::new(0, "hint x of container y")))
    }

    fn scope<'a>(values: &'a dyn Fn(&str) -> Option<VariableValue>) -> VariableScope<'a> {
        VariableScope { values, environment: &|_| None, trusts: true }
    }

    #[test]
    fn a_template_is_expanded_when_its_values_are_known() {
        let text =
            "password: p\nlist:\n- id: c-${data.id}\n  port: ${data.port}\n  none: ${data.no}";
        let settings = Settings::parse("a.yml", text).unwrap();
        let template = settings.node().at("list.0").unwrap();
        assert!(template.at("id").unwrap().is_unresolved());
        let values = |name: &str| match name {
            "data.id" => Some(VariableValue::Known(json!("7"))),
            "data.port" => Some(VariableValue::Known(json!(80))),
            _ => None,
        };
        let made = settings.expand_in(template, scope(&values));
        assert_eq!(made.at("id").unwrap().text(), Some("c-7"));
        assert_eq!(made.at("port").unwrap().content(), &Content::Int(80));
        assert_eq!(made.at("port").unwrap().position().to_string(), "a.yml:4:9");
        let (path, reason) = made.missing().unwrap();
        assert_eq!(
            (path.as_str(), reason.as_str()),
            ("none", "uses `${data.no}`, which is not set")
        );
    }

    #[test]
    fn malformed_variables_are_reported_before_there_are_values() {
        let text = "t:\n- id: c-${data.id\n  list: ['${data.x}', '${ENV']\n  ok: $${a";
        let settings = Settings::parse("a.yml", text).unwrap();
        let problems = Problems::new();
        settings.node().at("t.0").unwrap().report_malformed("t[0]", &problems);
        let hint = "hint: write `$${` for a `${` that is not a variable";
        let expected = format!(
            "error: a.yml:2:7: `t[0].id` has a `${{` without its `}}`\n{hint}\n\
             error: a.yml:3:23: `t[0].list[1]` has a `${{` without its `}}`\n{hint}"
        );
        assert_eq!(problems.to_string(), expected);
    }

    #[test]
    fn a_default_counts_when_the_values_are_known_and_not_before() {
        let text = "a: ${data.x:none}\nb: ${data.y:none}\nc: '${data.x:+there}'";
        let loaded = Settings::parse("a.yml", text).unwrap();
        let loaded = loaded.node();
        assert!(loaded.at("a").unwrap().is_unresolved());
        let settings = Settings::parse("a.yml", "").unwrap();
        let values = |name: &str| (name == "data.x").then(|| VariableValue::Known(json!("7")));
        let made = settings.expand_in(loaded, scope(&values));
        assert_eq!(made.to_json(), json!({"a": "7", "b": "none", "c": "there"}));
    }

    #[test]
    fn a_text_from_outside_keeps_its_type_and_names_no_setting() {
        let settings = Settings::parse("a.yml", "password: p").unwrap();
        let hint = node(&json!({"a": "${data.x}", "b": "${password}", "c": "${HOME}"}));
        let values = |name: &str| (name == "data.x").then(|| VariableValue::Known(json!("[1, 2]")));
        let plain = settings.expand_in(&hint, scope(&values));
        assert_eq!(plain.at("a").unwrap().text(), Some("${data.x}"));
        let distrusted = VariableScope { trusts: false, ..scope(&values) };
        let made = settings.expand_in(&hint.with_variables(), distrusted);
        assert_eq!(made.at("a").unwrap().content(), &Content::String);
        assert_eq!(made.at("a").unwrap().text(), Some("[1, 2]"));
        assert!(made.at("b").unwrap().is_unresolved());
        assert!(made.at("c").unwrap().is_unresolved());
    }

    #[test]
    fn secrets_are_masked() {
        let settings = Settings::parse("a.yml", "x: '${s}'").unwrap();
        let values = |_: &str| Some(VariableValue::Secret("geheim".to_owned()));
        let made = settings.expand_in(settings.node(), scope(&values));
        assert_eq!(made.at("x").unwrap().text(), Some("geheim"));
        assert_eq!(made.to_masked_yaml(&crate::PLACES), "x: xxxxx\n");
    }

    #[test]
    fn lists_are_appended_or_merged() {
        let base = json!({"a": [{"x": 1}], "b": {"c": 1, "d": 2}});
        let over = json!({"a": [{"y": 2}, 3], "b": {"c": 9}});
        let laid = |lists| {
            let mut base = node(&base);
            base.overlay(&node(&over), lists);
            base.to_json()
        };
        let appended = json!({"a": [{"x": 1}, {"y": 2}, 3], "b": {"c": 9, "d": 2}});
        assert_eq!(laid(Lists::Appended), appended);
        let by_index = json!({"a": [{"x": 1, "y": 2}, 3], "b": {"c": 9, "d": 2}});
        assert_eq!(laid(Lists::Mixed), by_index);
    }

    #[test]
    fn made_settings_are_read_like_a_file_of_inputs() {
        let settings = Settings::parse("a.yml", "x: 1").unwrap();
        let problems = Problems::new();
        let item = node(&json!({"a.b": 1, "type": "x"})).with_levels(&problems);
        let made = settings.made(&item.position().clone(), vec![item]).settings();
        assert!(made.is_list());
        let items = made.items(&problems);
        assert_eq!(items[0].section().u64("a.b").or(0), 1);
        items[0].section().skip();
        assert!(problems.to_string().contains("hint x of container y: "), "{problems}");
    }
}
