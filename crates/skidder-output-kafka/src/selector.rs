//! The topic of an event: `topics`, then `topic`.
//!
//! As libbeat's `outputs/outil/select.go`: the first rule whose condition holds and whose text is not empty;
//! a rule whose format string misses a field gives its `default`, or nothing. Topics keep their case.

use super::read::{TOPIC, TOPICS};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventRef, Format};
use skidder_kafka::topic::{NAME_BYTES_MAX, is_name};
use skidder_outputs::{Context, RULE, Rules};

pub(super) mod rule {
    use super::*;

    settings! {
        /// An item of `topics`.
        pub(crate) static TOPICS_ITEM =
            Group::new("output.kafka.topics", "A rule that gives a topic.").include(&[&RULE]);

        pub(super) TOPIC: String =
            Key::new("topic").required().noun("a format string").about("the topic: a format string");
    }
}

/// Why an event has no topic. It can never be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TopicError {
    #[error("no rule of `topics` holds for it, and `topic` {0}")]
    None(&'static str),
    #[error("`{0}` is no name for a topic: it has letters, digits, `.`, `_` and `-`, at most 249")]
    Name(String),
}

/// `topics` and `topic`.
#[derive(Clone, Debug, Default)]
pub struct Topics {
    rules: Rules,
    topic: Option<Format>,
}

impl Topics {
    /// Reads both; reports mistakes to the section's problems.
    pub(crate) fn read(section: &Section<'_>) -> Self {
        let rules = Rules::read(section, &TOPICS, &rule::TOPIC);
        let topic = section.get(&TOPIC).try_map(parse).optional();
        if topic.is_none() && !section.has_key(&TOPICS) && !section.has_key(&TOPIC) {
            let message = "neither `topic` nor `topics` is set";
            section.problem("topic", message, "for example `topic: logs`");
        }
        let topics = Self { rules, topic };
        if let Some(name) = topics.topic.as_ref().and_then(Format::constant)
            && !is_name(name.as_bytes())
        {
            section.problem("topic", TopicError::Name(name.to_owned()).to_string(), "");
        }
        topics
    }

    /// Puts in the constants of the process.
    pub(crate) fn bind(&mut self, context: &Context) {
        self.rules.bind(context);
        if let Some(topic) = &mut self.topic {
            context.bind(topic);
        }
    }

    /// The topic, if it is the same for all events.
    pub(crate) fn constant(&self) -> Option<&str> {
        self.topic.as_ref().filter(|_| self.rules.is_empty())?.constant()
    }

    /// Writes the topic of an event into `name`.
    pub(crate) fn select(&self, event: EventRef<'_>, name: &mut Vec<u8>) -> Result<(), TopicError> {
        if self.rules.select(event, name) {
            return check(name);
        }
        let Some(topic) = &self.topic else { return Err(TopicError::None("is not set")) };
        if topic.write(name, event).is_err() {
            name.clear();
            return Err(TopicError::None("names a field that it has not"));
        }
        if name.is_empty() {
            return Err(TopicError::None("is empty"));
        }
        check(name)
    }
}

fn parse(text: String) -> Result<Format, String> {
    Format::parse(&text).map_err(|error| error.to_string())
}

fn check(name: &[u8]) -> Result<(), TopicError> {
    if is_name(name) {
        return Ok(());
    }
    let shown = String::from_utf8_lossy(name).chars().take(NAME_BYTES_MAX).collect();
    Err(TopicError::Name(shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, event};
    use skidder_config::{Problems, Settings};

    fn read(settings: &str) -> (Topics, String) {
        let problems = Problems::new();
        let settings = Settings::parse("x", settings).expect("YAML");
        let root = settings.root(&problems);
        root.declared_by(&crate::read::KAFKA);
        let read = Topics::read(&root);
        root.finish();
        (read, problems.to_string())
    }

    fn selected(settings: &str, fields: &[(&str, &str)]) -> String {
        let (mut topics, problems) = read(settings);
        assert_eq!(problems, "", "{settings}");
        topics.bind(&context());
        let mut name = b"before".to_vec();
        match topics.select(event(fields).event(0), &mut name) {
            Ok(()) => String::from_utf8(name).expect("names are ASCII"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_first_topic_that_a_rule_gives_wins() {
        let rules = "{topic: rest, topics: [\
            {topic: 'critical-%{[agent.version]}', when.contains.message: CRITICAL},\
            {topic: '%{[fields.list]}', mappings: {first: one, Second: two}, default: other},\
            {topic: never}]}";
        assert_eq!(selected(rules, &[("fields.list", "first")]), "one");
        assert_eq!(selected(rules, &[("fields.list", "second")]), "other");
        assert_eq!(selected(rules, &[]), "other");
        let rules =
            "{topic: rest, topics: [{topic: '%{[x]}', mappings: {a: b}}, {topic: 'd-%{[x]}'}]}";
        assert_eq!(selected(rules, &[("x", "a")]), "b");
        assert_eq!(selected(rules, &[("x", "q")]), "d-q");
        assert_eq!(selected(rules, &[]), "rest");
        let rules = "{topic: rest, topics: [{topic: lines, when.equals.message: line}]}";
        assert_eq!(selected(rules, &[]), "lines");
        let rules = "{topics: [{topic: lines, when.equals.message: other}]}";
        assert!(selected(rules, &[]).contains("is not set"));
    }

    #[test]
    fn names_keep_their_case_and_must_be_names() {
        assert_eq!(selected("topic: 'Logs_%{+yyyy.MM}-%{[agent.name]}'", &[]), "Logs_2026.01-here");
        assert!(selected("topic: '%{[x]}'", &[]).contains("names a field"));
        assert!(selected("topic: '%{[x]}'", &[("x", "")]).contains("is empty"));
        for name in ["a b", "ä", "..", &"x".repeat(250)] {
            assert!(selected("topic: '%{[x]}'", &[("x", name)]).contains("no name"), "{name}");
        }
        assert_eq!(selected("topic: '%{[x]}'", &[("x", &"x".repeat(249))]).len(), 249);
    }

    #[test]
    fn mistakes_are_told() {
        for (settings, part) in [
            ("{}", "neither `topic` nor `topics`"),
            ("topic: '%{[x'", "closing"),
            ("topic: 'a b'", "no name for a topic"),
            ("topics: [{default: x}]", "no `topic`"),
            ("topics: [{topic: x, when: {equal.a: b}}]", "equal"),
            ("topics: [{topic: x, mapping: {a: b}}]", "mapping"),
        ] {
            let (_, problems) = read(settings);
            assert!(problems.contains(part), "{settings}: {problems}");
        }
    }
}
