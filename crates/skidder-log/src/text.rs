//! One line of the log for a terminal: time, level, message, and the fields that matter.

use crate::calendar;
use crate::line::{Line, name_of};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use skidder_os::Timestamp;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use tracing::Level;

/// Fields that are shown, at most, beside error and advice; with level debug all are.
const FIELDS_MAX: usize = 3;
/// Fields that are shown first.
const FIRST: [&str; 16] = [
    "output.id",
    "host",
    "broker",
    "topic",
    "bucket",
    "path",
    "input",
    "name",
    "address",
    "events",
    "in_flight",
    "status",
    "reason",
    "why",
    "count",
    "version",
];
/// Fields that count: a line that differs only in them is a repetition.
const COUNTS: [&str; 6] = ["failures", "times", "events", "waiting", "in_flight", "log.held_back"];
/// Fields that are shown with the message, or are of no use to a user.
const HIDDEN: [&str; 5] = ["error.message", "advice", "remedy", "monitoring", "output"];
/// A repeated line is shown again after this time.
const AGAIN: Duration = Duration::from_mins(1);
/// Lines that are remembered for that.
const KNOWN_MAX: usize = 1024;

const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";

/// Makes texts of lines.
#[derive(Debug)]
pub(crate) struct Texts {
    zone: TimeZone,
    is_coloured: bool,
    /// It goes to a terminal, where something else may stand in the line.
    is_terminal: bool,
    /// When warnings and errors were shown last.
    shown: HashMap<u64, Timestamp>,
}

impl Texts {
    pub(crate) fn new(zone: TimeZone, is_terminal: bool, is_coloured: bool) -> Self {
        Self { zone, is_coloured, is_terminal, shown: HashMap::new() }
    }

    /// The text of a line with its line feed; empty if it is a repetition.
    pub(crate) fn text(&mut self, line: &Line) -> String {
        if !self.is_news(line) {
            return String::new();
        }
        // What draws a bar there draws it again.
        let mut text = if self.is_terminal { "\r\x1b[K".to_owned() } else { String::new() };
        let time = calendar::at(line.time, &self.zone).strftime("%H:%M:%S").to_string();
        self.push(&mut text, DIM, &time);
        text.push(' ');
        let level = format!("{:5}", name_of(line.level).to_uppercase());
        self.push(&mut text, colour_of(line.level), &level);
        text.push(' ');
        text.push_str(&one_line(&line.message));
        if let Some(error) = line.fields.get("error.message") {
            text.push_str(": ");
            text.push_str(&one_line(&shown(error)));
        }
        for name in ["advice", "remedy"] {
            let advice = line.fields.get(name).map(shown).filter(|advice| !advice.is_empty());
            if let Some(advice) = advice {
                text.push_str("; ");
                text.push_str(&one_line(&advice));
            }
        }
        let most = if line.level >= Level::DEBUG { usize::MAX } else { FIELDS_MAX };
        let fields: Vec<String> = chosen(&line.fields, most)
            .map(|(name, value)| format!("{name}={}", one_line(&shown(value))))
            .collect();
        if !fields.is_empty() {
            text.push_str("  ");
            self.push(&mut text, DIM, &fields.join(" "));
        }
        text.push('\n');
        text
    }

    fn push(&self, text: &mut String, colour: &str, part: &str) {
        if self.is_coloured {
            text.push_str(colour);
            text.push_str(part);
            text.push_str(RESET);
        } else {
            text.push_str(part);
        }
    }

    /// Whether nothing with the same text was shown lately. Only what repeats by itself is left
    /// out: warnings and errors.
    fn is_news(&mut self, line: &Line) -> bool {
        if line.level > Level::WARN {
            return true;
        }
        let mut hasher = DefaultHasher::new();
        line.message.hash(&mut hasher);
        for (name, value) in line.fields.iter().filter(|(name, _)| !COUNTS.contains(&name.as_str()))
        {
            name.hash(&mut hasher);
            value.to_string().hash(&mut hasher);
        }
        let key = hasher.finish();
        if self.shown.get(&key).is_some_and(|last| line.time.since(*last) < AGAIN) {
            return false;
        }
        if self.shown.len() >= KNOWN_MAX {
            self.shown.clear();
        }
        self.shown.insert(key, line.time);
        true
    }
}

/// The fields that are shown, in their order.
fn chosen(fields: &Map<String, Value>, most: usize) -> impl Iterator<Item = (&str, &Value)> {
    let first = FIRST.iter().filter_map(|name| Some((*name, fields.get(*name)?)));
    let rest = fields.iter().map(|(name, value)| (name.as_str(), value));
    let rest = rest.filter(|(name, _)| !FIRST.contains(name) && !HIDDEN.contains(name));
    first.chain(rest).filter(|(name, value)| is_informative(name, value)).take(most)
}

/// Whether a count is worth showing.
fn is_informative(name: &str, value: &Value) -> bool {
    let least = u64::from(matches!(name, "failures" | "times"));
    !COUNTS.contains(&name) || value.as_u64().is_none_or(|count| count > least)
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A text without what would move a terminal's cursor.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn colour_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[1;31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG | Level::TRACE => "\x1b[34m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: Level, second: i64) -> Line {
        let line = Line::own(
            level,
            Timestamp(second * 1_000_000_000),
            "cannot send events;\ntrying again",
        );
        line.with("host", "h:1")
            .with("error.message", "away")
            .with("events", second)
            .with("failures", second)
            .with("agent", "x")
            .with("zebra", "z")
    }

    fn texts(is_coloured: bool) -> Texts {
        Texts::new(TimeZone::UTC, false, is_coloured)
    }

    #[test]
    fn a_line_has_time_level_message_error_and_three_fields() {
        let text = texts(false).text(&line(Level::ERROR, 3661));
        assert_eq!(
            text,
            "01:01:01 ERROR cannot send events; trying again: away  host=h:1 events=3661 agent=x\n"
        );
        let text = texts(false).text(&line(Level::DEBUG, 2));
        assert!(text.ends_with("agent=x failures=2 zebra=z\n"), "{text}");
        let text = texts(true).text(&line(Level::WARN, 0).with("advice", "do it"));
        assert!(text.starts_with("\x1b[2m00:00:00\x1b[0m \x1b[33mWARN \x1b[0m cannot"), "{text:?}");
        assert!(text.contains("away; do it  \x1b[2mhost=h:1"), "{text:?}");
    }

    #[test]
    fn a_count_that_goes_without_saying_is_left_out() {
        let mut line = Line::own(Level::ERROR, Timestamp(0), "a");
        line = line.with("failures", 1).with("events", 0).with("times", 2);
        assert_eq!(texts(false).text(&line), "00:00:00 ERROR a  times=2\n");
    }

    #[test]
    fn what_differs_in_a_count_only_is_shown_once_a_minute() {
        let mut texts = texts(false);
        let shown: Vec<i64> =
            (0..130).filter(|at| !texts.text(&line(Level::ERROR, *at)).is_empty()).collect();
        assert_eq!(shown, [0, 60, 120]);
        assert!(
            !texts.text(&line(Level::ERROR, 121).with("host", "h:2")).is_empty(),
            "another host"
        );
        for _ in 0..2 {
            assert!(!texts.text(&line(Level::INFO, 0)).is_empty(), "actions are logged each time");
        }
    }

    #[test]
    fn on_a_terminal_the_line_is_cleared_first_and_a_text_cannot_steer_it() {
        let mut texts = Texts::new(TimeZone::UTC, true, false);
        let text = texts.text(&Line::own(Level::INFO, Timestamp(0), "a\x1b[2Jb"));
        assert_eq!(text, "\r\x1b[K00:00:00 INFO  a [2Jb\n");
    }
}
