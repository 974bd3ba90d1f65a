//! One line of the log: ECS JSON, or the short form for syslog.

use serde_json::{Map, Value};
use skidder_os::Timestamp;
use std::borrow::Cow;
use std::fmt::Write as _;
use tracing::Level;

/// `service.name` of every line.
const SERVICE: &str = "skidder";
/// The version of ECS whose names are used; Filebeat reports the same.
const ECS: &str = "1.6.0";
/// Replaces user and password in an address.
const MASK: &str = "xxxxx";

/// Fields that every line has.
pub(crate) const FIXED: [&str; 7] = [
    "log.level",
    "@timestamp",
    "log.logger",
    "log.origin",
    "message",
    "service.name",
    "ecs.version",
];

/// One line, not yet written.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) level: Level,
    pub(crate) time: Timestamp,
    /// Crate and module, with dots.
    pub(crate) logger: String,
    /// File and line of our source.
    pub(crate) origin: Option<(&'static str, u32)>,
    pub(crate) message: String,
    pub(crate) fields: Map<String, Value>,
}

impl Line {
    /// A line of the log about itself.
    pub(crate) fn own(level: Level, time: Timestamp, message: &str) -> Self {
        let (logger, message) = ("skidder_log".to_owned(), message.to_owned());
        Self { level, time, logger, origin: None, message, fields: Map::new() }
    }

    /// With a field more.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(name.to_owned(), value.into());
        self
    }

    /// The line as JSON, with its line feed.
    pub(crate) fn json(&self) -> String {
        let mut text = String::with_capacity(256 + self.message.len());
        text.push_str("{\"log.level\":\"");
        text.push_str(name_of(self.level));
        text.push_str("\",\"@timestamp\":");
        push_text(&mut text, &time_of(self.time));
        text.push_str(",\"log.logger\":");
        push_text(&mut text, &self.logger);
        if let Some((file, line)) = self.origin {
            text.push_str(",\"log.origin\":{\"file.name\":");
            push_text(&mut text, file);
            text.push_str(&format!(",\"file.line\":{line}}}"));
        }
        text.push_str(",\"message\":");
        push_text(&mut text, &self.message);
        push_service(&mut text);
        self.push_fields(&mut text);
        text.push_str("}\n");
        text
    }

    /// The line for syslog, which brings time and name itself.
    pub(crate) fn short(&self) -> String {
        let mut text = format!("{} [{}] ", name_of(self.level).to_uppercase(), self.logger);
        if let Some((file, line)) = self.origin {
            text.push_str(&format!("{file}:{line} "));
        }
        // A line feed would be another message.
        text.push_str(&self.message.replace('\n', " "));
        let mut fields = String::new();
        push_service(&mut fields);
        self.push_fields(&mut fields);
        text.push_str(" {");
        text.push_str(&fields[1..]);
        text.push('}');
        text
    }

    fn push_fields(&self, text: &mut String) {
        for (name, value) in &self.fields {
            text.push(',');
            push_text(text, name);
            text.push(':');
            text.push_str(&value.to_string());
        }
    }
}

fn push_service(text: &mut String) {
    text.push_str(",\"service.name\":");
    push_text(text, SERVICE);
    text.push_str(",\"ecs.version\":");
    push_text(text, ECS);
}

fn push_text(into: &mut String, text: &str) {
    write!(into, "{}", Value::from(text)).expect("writing to a string cannot fail");
}

/// `log.level` as in Filebeat.
pub(crate) fn name_of(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG | Level::TRACE => "debug",
    }
}

fn time_of(time: Timestamp) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(time.0)) {
        Ok(time) => format!("{time:.3}"),
        Err(_) => String::new(),
    }
}

/// The text without user and password in the addresses of it.
pub fn masked(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    let mut masked = String::new();
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        let ends = |c: char| c.is_whitespace() || "/?#\"'`<>\\,".contains(c);
        let host = &after[..after.find(ends).unwrap_or(after.len())];
        masked.push_str(before);
        rest = after;
        if let Some(end) = host.rfind('@') {
            masked.push_str(MASK);
            rest = &after[end..];
        }
    }
    if masked.is_empty() {
        return Cow::Borrowed(text);
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line {
        let time = Timestamp(1_763_862_123_456_789_000);
        let mut line = Line::own(Level::WARN, time, "a \"text\"\nof two");
        line.origin = Some(("src/a.rs", 7));
        line.with("path", "/var/log/a").with("n", 3)
    }

    #[test]
    fn a_line_is_ecs_json_with_the_time_first() {
        assert_eq!(
            line().json(),
            "{\"log.level\":\"warn\",\"@timestamp\":\"2025-11-23T01:42:03.456Z\",\
             \"log.logger\":\"skidder_log\",\"log.origin\":{\"file.name\":\"src/a.rs\",\"file.line\":7},\
             \"message\":\"a \\\"text\\\"\\nof two\",\"service.name\":\"skidder\",\
             \"ecs.version\":\"1.6.0\",\"n\":3,\"path\":\"/var/log/a\"}\n"
        );
    }

    #[test]
    fn for_syslog_it_is_one_short_line() {
        assert_eq!(
            line().short(),
            "WARN [skidder_log] src/a.rs:7 a \"text\" of two {\"service.name\":\"skidder\",\
             \"ecs.version\":\"1.6.0\",\"n\":3,\"path\":\"/var/log/a\"}"
        );
    }

    #[test]
    fn user_and_password_in_addresses_are_masked() {
        let table = [
            ("no address", "no address"),
            ("http://host:9200/a@b", "http://host:9200/a@b"),
            ("http://u:p@host:9200", "http://xxxxx@host:9200"),
            ("`redis://:p@ss@h`, `tcp://u@h/x` end", "`redis://xxxxx@h`, `tcp://xxxxx@h/x` end"),
            ("\"https://u:ü@h\"://", "\"https://xxxxx@h\"://"),
            ("://", "://"),
        ];
        for (text, expected) in table {
            assert_eq!(masked(text), expected);
        }
    }
}
