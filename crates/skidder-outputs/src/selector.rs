//! A name for each event, out of rules: `keys` and `key` of Redis, and other settings with a list of rules over one
//! format string.
//!
//! As libbeat's `outputs/outil/select.go`: the first rule whose condition holds and whose text is not empty; a rule
//! whose format string misses a field gives its `default`, or nothing. Then the single format string. Names keep
//! their case.

use crate::context::Context;
use skidder_config::{Any, Group, Item, Key, Parts, Section, Setting, settings};
use skidder_event::{EventRef, Format};
use skidder_processors::Condition;
use std::collections::BTreeMap;

settings! {
    /// The settings of a rule besides its format string.
    pub static RULE = Group::new("rule", "A rule that gives a name for an event.");

    MAPPINGS: BTreeMap<String, String> =
        Key::new("mappings").about("names and what replaces them; other names do not count");
    DEFAULT: String = Key::new("default").about("if the format string gives no name");
    WHEN: Any = Key::new("when").about("a condition; the rule is only for events that fulfil it");
}

/// An event has no name. It can never be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` gives no name for it")]
pub struct NoName(&'static str);

#[derive(Clone, Debug)]
struct Rule {
    name: Format,
    /// Names to be replaced; the others are not meant.
    mappings: Option<BTreeMap<String, String>>,
    default: Option<String>,
    when: Option<Condition>,
}

/// A list of rules, the first of which that gives a name for an event wins.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Reads the rules of `list`, each with its `setting`. Reports mistakes to the section's problems.
    pub fn read(section: &Section<'_>, list: &Key<Parts>, setting: &Key<String>) -> Self {
        let rule = |(item, section): &(Item<'_>, Section<'_>)| {
            Rule::read(section, item, setting.name(), section.get(setting))
        };
        Self(section.part_items(list).iter().filter_map(rule).collect())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Puts in the constants of the process.
    pub fn bind(&mut self, context: &Context) {
        for rule in &mut self.0 {
            context.bind(&mut rule.name);
        }
    }

    /// Replaces the content of `name` by the name for an event, or by nothing; returns whether there is one.
    pub fn select(&self, event: EventRef<'_>, name: &mut Vec<u8>) -> bool {
        name.clear();
        self.0.iter().any(|rule| {
            rule.select(event, name);
            !name.is_empty()
        })
    }
}

/// See the module's text.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Name of the setting with the format string, for messages.
    setting: &'static str,
    rules: Rules,
    last: Option<Format>,
}

impl Selector {
    /// Always the text of one format string.
    pub fn of(setting: &'static str, format: Format) -> Self {
        Self { setting, rules: Rules::default(), last: Some(format) }
    }

    /// Reads the rules of `list`, each with its `in_rule`, and `setting` itself. Reports mistakes to the section's
    /// problems.
    pub fn read(
        section: &Section<'_>,
        list: &Key<Parts>,
        in_rule: &Key<String>,
        setting: &Key<String>,
    ) -> Self {
        let rules = Rules::read(section, list, in_rule);
        let last = section.get(setting).try_map(parse).optional();
        Self { setting: setting.name(), rules, last }
    }

    /// Sets the default if no rule holds and the single format string is not set.
    pub fn or(mut self, format: Format) -> Self {
        self.last.get_or_insert(format);
        self
    }

    /// Puts in the constants of the process.
    pub fn bind(&mut self, context: &Context) {
        self.rules.bind(context);
        if let Some(format) = &mut self.last {
            context.bind(format);
        }
    }

    /// The name, if it is the same for all events.
    pub fn constant(&self) -> Option<&str> {
        let format = self.last.as_ref().filter(|_| self.rules.is_empty())?;
        format.constant().filter(|name| !name.is_empty())
    }

    /// Replaces the content of `name` by the name for an event.
    pub fn select(&self, event: EventRef<'_>, name: &mut Vec<u8>) -> Result<(), NoName> {
        if self.rules.select(event, name) {
            return Ok(());
        }
        let written = self.last.as_ref().is_some_and(|last| last.write(name, event).is_ok());
        if written && !name.is_empty() { Ok(()) } else { Err(NoName(self.setting)) }
    }
}

impl Rule {
    fn read(
        section: &Section<'_>,
        item: &Item<'_>,
        setting: &str,
        name: Setting<'_, String>,
    ) -> Option<Self> {
        let name = name.try_map(parse);
        if !name.is_set() {
            section.problem(setting, format!("`{}` has no `{setting}`", item.path()), "");
        }
        let rule = Self {
            mappings: section.get(&MAPPINGS).optional(),
            default: section.get(&DEFAULT).optional().filter(|text| !text.is_empty()),
            when: section.any(&WHEN).and_then(|item| Condition::read(&item)),
            name: name.optional()?,
        };
        Some(rule)
    }

    /// The name, or nothing if the rule is not for this event.
    fn select(&self, event: EventRef<'_>, name: &mut Vec<u8>) {
        name.clear();
        if self.when.as_ref().is_some_and(|when| !when.check(event)) {
            return;
        }
        if self.name.write(name, event).is_err() {
            name.clear();
        }
        if let Some(mappings) = &self.mappings {
            let mapped = std::str::from_utf8(name).ok().and_then(|name| mappings.get(name));
            let mapped = mapped.map(|mapped| mapped.as_bytes().to_vec());
            name.clear();
            name.extend_from_slice(&mapped.unwrap_or_default());
        }
        if name.is_empty()
            && let Some(default) = &self.default
        {
            name.extend_from_slice(default.as_bytes());
        }
    }
}

fn parse(text: String) -> Result<Format, String> {
    Format::parse(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context};
    use skidder_config::{Problems, Settings};
    use skidder_event::Map;

    mod rule {
        use super::*;

        settings! {
            pub(super) static ITEM = Group::new("test.keys", "A rule.").include(&[&RULE]);

            pub(super) KEY: String = Key::new("key").noun("a format string");
        }
    }

    settings! {
        static TEST = Group::new("test", "Rules and a format string.");

        KEYS: Parts = Key::parts("keys", &rule::ITEM);
        KEY: String = Key::new("key").noun("a format string");
    }

    fn read(settings: &str) -> (Selector, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", settings).unwrap();
        let root = settings.root(&problems);
        root.declared_by(&TEST);
        let mut read = Selector::read(&root, &KEYS, &rule::KEY, &KEY);
        root.finish();
        read.bind(&context());
        (read, problems.to_string())
    }

    fn selected(settings: &str, field: &str) -> String {
        let (selector, problems) = read(settings);
        assert_eq!(problems, "", "{settings}");
        let mut fields = Map::new();
        if !field.is_empty() {
            fields.insert("list", field);
        }
        let batch = batch_with(&["line"], &fields, &Map::new());
        let mut name = b"before".to_vec();
        match selector.select(batch.event(0), &mut name) {
            Ok(()) => String::from_utf8(name).unwrap(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_first_rule_that_gives_a_name_wins() {
        let rules = "{key: rest, keys: [\
            {key: 'critical-%{[agent.version]}', when.contains.message: CRITICAL},\
            {key: '%{[list]}', mappings: {first: one, Second: two}, default: other},\
            {key: never}]}";
        assert_eq!(selected(rules, "first"), "one");
        assert_eq!(selected(rules, "second"), "other", "case is as written");
        assert_eq!(selected(rules, ""), "other");
        let rules =
            "{key: rest, keys: [{key: '%{[list]}', mappings: {a: b}}, {key: 'd-%{[list]}'}]}";
        assert_eq!(selected(rules, "a"), "b");
        assert_eq!(selected(rules, "Q"), "d-Q");
        assert_eq!(selected(rules, ""), "rest");
        assert_eq!(selected("keys: [{key: lines, when.equals.message: line}]", ""), "lines");
        let none = selected("keys: [{key: lines, when.equals.message: other}]", "");
        assert_eq!(none, "`key` gives no name for it");
        assert_eq!(selected("key: '%{[list]}'", ""), none);
    }

    #[test]
    fn only_a_single_text_is_the_same_for_all_events() {
        assert_eq!(read("key: 'a-%{[agent.version]}'").0.constant(), Some("a-9.5.0"));
        assert_eq!(read("{}").0.or(Format::parse("x").unwrap()).constant(), Some("x"));
        assert_eq!(read("{key: a, keys: [{key: a}]}").0.constant(), None);
        assert_eq!(read("key: '%{[list]}'").0.constant(), None);
    }

    #[test]
    fn mistakes_in_rules_are_told() {
        for (settings, part) in [
            ("key: '%{[x'", "closing"),
            ("keys: [{default: x}]", "no `key`"),
            ("keys: [{key: x, when: {equal.a: b}}]", "equal"),
            ("keys: [{key: x, mapping: {a: b}}]", "mapping"),
        ] {
            let (_, problems) = read(settings);
            assert!(problems.contains(part), "{settings}: {problems}");
        }
    }
}
