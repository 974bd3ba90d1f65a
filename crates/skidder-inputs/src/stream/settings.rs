//! Settings that all servers of streams share.

use super::framing::Framing;
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use std::time::Duration;

/// `max_message_size`.
pub(crate) const MESSAGE_BYTES_MAX: u64 = 20 << 20;

/// Most that `max_message_size` can be: a message must fit a batch.
pub(crate) const MESSAGE_BYTES_LIMIT: u64 = 512 << 20;

/// `timeout`.
const TIMEOUT: Duration = Duration::from_mins(5);

/// `line_delimiter`.
const LINE_DELIMITER: &str = "\n";

settings! {
    /// Settings of all streams.
    pub static CONNECTIONS = Group::new("input.connections", "How streams are split into messages.");

    FRAMING: OneOf<bool> = Key::one_of("framing", &[("delimiter", false), ("rfc6587", true)])
        .ignore_case()
        .default("delimiter")
        .about(
            "or `rfc6587`: octet counting, or lines where a message does not begin with a digit",
        );
    DELIMITER: String = Key::new("line_delimiter")
        .default(LINE_DELIMITER)
        .default_words("`\\n`")
        .about("any text. With `\\n` a `\\r` before it goes too");
    pub(crate) MAX_MESSAGE_SIZE: Size = Key::new("max_message_size")
        .default(MESSAGE_BYTES_MAX)
        .range(1, MESSAGE_BYTES_LIMIT)
        .about("1 byte to 512 MiB; a message that is longer with its delimiter (`rfc6587`: its length) is dropped, and its connection closed");
    MAX_CONNECTIONS: i64 = Key::new("max_connections")
        .default(0)
        .noun("a number of connections")
        .about("0 or less is no limit; further clients wait");
    IDLE: Duration = Key::new("timeout")
        .default(TIMEOUT)
        .at_least(Duration::from_nanos(1))
        .about("an idle connection is closed, its rest delivered");
}

/// The settings that all stream servers share.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// `framing`, `line_delimiter` and `max_message_size`.
    pub framing: Framing,
    /// `max_connections`; 0 = no limit.
    pub connections_max: usize,
    /// `timeout`: a connection without bytes for so long is closed.
    pub timeout: Duration,
}

impl StreamSettings {
    /// Reads the settings of [`CONNECTIONS`]. `None`, and the problems are reported, if something is wrong.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let counts = section.get(&FRAMING).value();
        let delimiter = section.get(&DELIMITER).value();
        if delimiter.is_empty() {
            let message = format!("`{}` is empty", section.path_of("line_delimiter"));
            section.problem("line_delimiter", message, "leave it out for lines");
        }
        let most = section.get(&MAX_MESSAGE_SIZE).value();
        let connections = section.get(&MAX_CONNECTIONS).value();
        let timeout = section.get(&IDLE).value();
        if delimiter.is_empty() {
            return None;
        }
        Some(Self {
            framing: Framing::new(counts, delimiter.as_bytes(), usize::try_from(most).ok()?),
            connections_max: usize::try_from(connections).unwrap_or(0),
            timeout,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn read(text: &str) -> (Option<StreamSettings>, String) {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let root = settings.root(&problems);
        let read = StreamSettings::read(&root);
        root.finish();
        (read, problems.to_string())
    }

    #[test]
    fn defaults_are_those_of_filebeat() {
        let (settings, problems) = read("{}");
        let settings = settings.unwrap();
        assert_eq!(problems, "");
        assert_eq!(settings.framing.message_bytes_max(), 20 << 20);
        assert_eq!((settings.connections_max, settings.timeout.as_secs()), (0, 300));
        let (settings, problems) = read(
            "{framing: RFC6587, line_delimiter: \"\\r\\n\", max_message_size: 10KiB, \
             max_connections: -1, timeout: 10s}",
        );
        let settings = settings.unwrap();
        assert_eq!(problems, "");
        assert_eq!(settings.framing.message_bytes_max(), 10 << 10);
        assert_eq!((settings.connections_max, settings.timeout.as_secs()), (0, 10));
    }

    #[test]
    fn wrong_values_are_reported_by_name() {
        for (text, expected) in [
            ("framing: lines", "`framing` is `lines`; expected `delimiter` or `rfc6587`"),
            ("line_delimiter: ''", "`line_delimiter` is empty"),
            ("max_message_size: 0", "`max_message_size`"),
            ("timeout: 0s", "`timeout`"),
        ] {
            let (_, problems) = read(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
