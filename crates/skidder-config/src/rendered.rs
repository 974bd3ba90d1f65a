//! Settings that templates produce: YAML text with a name, and maps laid over each other.
//!
//! Modules make input configurations this way. Problems name the template and the line of the text that it produced.

use crate::node::{Content, Map, Node, Value, Variables};
use crate::problem::{Position, Problems, Source};
use crate::section::Section;
use crate::settings::Settings;
use crate::{tree, yaml};
use std::collections::BTreeMap;

/// What becomes of a list that both maps have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lists {
    /// The items of the upper one replace those of the lower one at the same place; the rest stays.
    Mixed,
    /// The upper one replaces the lower one.
    Replaced,
    /// The items of the upper one follow those of the lower one.
    Appended,
}

/// The value of a YAML text, whose keys are taken as they are: a dot in them means nothing.
pub fn yaml_value(name: &str, text: &str) -> Result<Value, Problems> {
    let problems = Problems::new();
    match yaml::parse(&Source::new(0, name), text, &problems) {
        Some(node) if !problems.has_errors() => Ok(node.to_value()),
        _ => Err(problems),
    }
}

impl Settings {
    /// Settings of a text that is called `name` in messages, with the paths and secrets of these. Its variables stay
    /// as they are until [`Settings::expand`]. A value that holds one of `secrets` is never shown.
    pub fn part_of_text(
        &self,
        name: &str,
        text: &str,
        secrets: &[String],
    ) -> Result<Self, Problems> {
        let problems = Problems::new();
        problems.hide(|veil| veil.add_texts(secrets));
        let Some(node) = yaml::parse(&Source::new(0, name), text, &problems) else {
            return Err(problems);
        };
        let mut root = tree::expand_dots(node, &problems);
        if problems.has_errors() {
            return Err(problems);
        }
        tree::settle_lists(&mut root);
        hide(&mut root, secrets);
        Ok(Self { pending: problems.sorted(), ..self.with_root(root) })
    }

    /// These settings, which are a map, with the map `over` laid over them: its settings win, except that an empty
    /// one leaves the lower one alone. `lists` returns what becomes of the lists with this name.
    #[must_use]
    pub fn overlaid(&self, over: &Node, lists: &dyn Fn(&str) -> Lists) -> Self {
        let mut root = self.root.clone();
        overlay(&mut root, over, "", lists);
        Self { pending: self.pending.clone(), ..self.with_root(root) }
    }

    /// These settings with a text at `key`, in which nothing is a variable.
    #[must_use]
    pub fn with_text(&self, key: &str, text: &str) -> Self {
        let mut root = self.root.clone();
        let mut node = Node::scalar(root.position.clone(), Content::String, text);
        node.variables = Variables::Expanded;
        tree::set(&mut root, key, node);
        Self { pending: self.pending.clone(), ..self.with_root(root) }
    }

    /// The settings `part` with their variables replaced by settings of these and by the environment.
    #[must_use]
    pub fn expanded_part(&self, part: &Self, environment: &dyn Fn(&str) -> Option<String>) -> Self {
        let root = self.expand(&part.root, &|_| None, environment);
        Self { pending: part.pending.clone(), ..self.with_root(root) }
    }

    /// These settings as a section with this path in messages.
    pub fn section_at<'a>(&'a self, path: &str, problems: &'a Problems) -> Section<'a> {
        self.hand_over(problems);
        Section::new(Some(&self.root), path.to_owned(), problems)
    }

    /// These settings as the only item of a list, as a file with inputs has it.
    #[must_use]
    pub fn as_item(&self) -> Self {
        let root = self.root.clone();
        let list = Node::collection(root.position.clone(), Content::List(vec![root]));
        Self { pending: self.pending.clone(), ..self.with_root(list) }
    }

    /// The tree of `-M key=value` in order, later ones win: see `-E`. Mistakes go to `problems`.
    pub fn of_overrides(&self, overrides: &[String], problems: &Problems) -> Self {
        let nothing = Content::Map(Map::default());
        let mut root = Node::collection(Position::whole(&Source::new(0, "-M")), nothing);
        for (order, text) in (1..).zip(overrides) {
            if let Some(tree) = tree::parse_override("-M", text, order, problems) {
                tree::merge(&mut root, tree, problems);
            }
        }
        tree::settle_lists(&mut root);
        self.with_root(root)
    }
}

impl Node {
    /// The texts in this tree that came from the keystore.
    pub fn secret_texts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            found.extend(node.text.clone().filter(|text| node.secret && !text.is_empty()));
            match &node.content {
                Content::List(list) => pending.extend(list),
                Content::Map(map) => pending.extend(map.iter().map(|entry| &entry.value)),
                _ => {}
            }
        }
        found
    }

    /// The value of a map as a map of its keys, one level.
    pub fn entries(&self) -> BTreeMap<&str, &Node> {
        let map = self.as_map().into_iter().flat_map(Map::iter);
        map.map(|entry| (entry.key.as_str(), &entry.value)).collect()
    }
}

fn hide(node: &mut Node, secrets: &[String]) {
    if let Some(text) = &node.text {
        node.secret |= secrets.iter().any(|secret| text.contains(secret.as_str()));
    }
    match &mut node.content {
        Content::List(list) => list.iter_mut().for_each(|item| hide(item, secrets)),
        Content::Map(map) => map.iter_mut().for_each(|entry| hide(&mut entry.value, secrets)),
        _ => {}
    }
}

pub(crate) fn overlay(under: &mut Node, over: &Node, name: &str, lists: &dyn Fn(&str) -> Lists) {
    if over.is_null() {
        return;
    }
    match (&mut under.content, &over.content) {
        (Content::Map(map), Content::Map(more)) => {
            for entry in more.iter() {
                match map.get_mut(&entry.key) {
                    Some(old) => overlay(&mut old.value, &entry.value, &entry.key, lists),
                    None => map.insert(entry.clone()),
                }
            }
        }
        (Content::List(items), Content::List(more)) => match lists(name) {
            Lists::Replaced => items.clone_from(more),
            Lists::Appended => items.extend(more.iter().cloned()),
            Lists::Mixed => {
                for (place, item) in more.iter().enumerate() {
                    match items.get_mut(place) {
                        Some(old) => overlay(old, item, "", lists),
                        None => items.push(item.clone()),
                    }
                }
            }
        },
        _ => *under = over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Settings {
        Settings::parse("a.yml", text).unwrap()
    }

    #[test]
    fn lists_are_mixed_replaced_or_appended_by_their_names() {
        let under =
            "{a: [{x: 1, y: 2}, 3], paths: [1, 2], processors: [p], deep.paths: [4, 5], n: 1}";
        let over = "{a: [{x: 9}], paths: [7], processors: [q], deep.paths: [6], n: ~, new: {k: v}}";
        let merged = settings(under).overlaid(settings(over).node(), &|name| match name {
            "paths" => Lists::Replaced,
            "processors" => Lists::Appended,
            _ => Lists::Mixed,
        });
        let expected = "{a: [{x: 9, y: 2}, 3], paths: [7], processors: [p, q], deep: {paths: [6]}, n: 1, \
                        new: {k: v}}";
        assert_eq!(merged.node().to_value(), settings(expected).node().to_value());
    }

    #[test]
    fn a_rendered_text_keeps_its_variables_and_names_its_lines() {
        let main = Settings::parse("filebeat.yml", "path.home: /opt").unwrap();
        let part =
            main.part_of_text("a template", "type: log\npaths: ['${path.home}/x']", &[]).unwrap();
        let expanded = main.expanded_part(&part, &|_| None);
        let entries = expanded.node().entries();
        let paths = entries["paths"].as_list().unwrap();
        assert_eq!(paths[0].text(), Some("/opt/x"));
        assert_eq!(paths[0].position().to_string(), "a template:2:9");
        let wrong = main.part_of_text("a template", "type: log\na: [x", &[]).unwrap_err();
        assert!(wrong.to_string().contains("a template:3"), "{wrong}");
    }

    #[test]
    fn what_holds_a_secret_is_one() {
        let secrets = ["hush".to_owned()];
        let part = settings("").part_of_text("t", "{a: 'user:hush', b: open}", &secrets).unwrap();
        let entries = part.node().entries();
        assert!(entries["a"].is_secret());
        assert!(!entries["b"].is_secret());
        assert_eq!(part.node().secret_texts(), ["user:hush"]);
    }

    #[test]
    fn keys_of_a_value_may_hold_dots() {
        let value = yaml_value("p.yml", "a.b: {c: [1, yes]}").unwrap();
        assert_eq!(serde_json::Value::from(&value).to_string(), r#"{"a.b":{"c":[1,true]}}"#);
        assert!(yaml_value("p.yml", "a: 1\na: 2").is_err());
    }

    #[test]
    fn mistakes_in_overrides_of_modules_name_their_option() {
        let problems = Problems::new();
        let overrides = ["=1", "nginx.access.var.paths=[a"].map(str::to_owned);
        settings("").of_overrides(&overrides, &problems);
        let text = problems.to_string();
        for part in [
            "error: -M : the name",
            "`-M nginx.access.enabled=true`",
            "-M nginx.access.var.paths: ",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("-E"), "{text}");
    }
}
