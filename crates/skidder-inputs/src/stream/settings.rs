//! Settings that all servers of streams share.

use super::framing::Framing;
use skidder_config::Section;
use std::time::Duration;

/// `max_message_size`.
const MESSAGE_BYTES_MAX: u64 = 20 << 20;

/// Most that `max_message_size` can be: a message must fit a batch.
const MESSAGE_BYTES_LIMIT: u64 = 512 << 20;

/// `timeout`.
const TIMEOUT: Duration = Duration::from_mins(5);

/// `line_delimiter`.
const LINE_DELIMITER: &str = "\n";

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
    /// Reads `framing`, `line_delimiter`, `max_message_size`, `max_connections`, `timeout` and `number_of_workers`. `None`,
    /// and the problems are reported, if something is wrong.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        let framing = section.string("framing").optional().unwrap_or_default();
        let counts = match &*framing.to_ascii_lowercase() {
            "" | "delimiter" => false,
            "rfc6587" => true,
            _ => {
                let message = format!(
                    "`{}` is `{framing}`; expected `delimiter` or `rfc6587`",
                    section.path_of("framing")
                );
                section.problem("framing", message, "");
                return None;
            }
        };
        let delimiter = section.string("line_delimiter").optional();
        let delimiter = delimiter.unwrap_or_else(|| LINE_DELIMITER.to_owned());
        if delimiter.is_empty() {
            let message = format!("`{}` is empty", section.path_of("line_delimiter"));
            section.problem("line_delimiter", message, "leave it out for lines");
            return None;
        }
        let most =
            section.size("max_message_size").range(1..=MESSAGE_BYTES_LIMIT).or(MESSAGE_BYTES_MAX);
        let connections = section.i64("max_connections").or(0);
        let timeout = section.duration("timeout").range(Duration::from_nanos(1)..).or(TIMEOUT);
        section.without_effect(
            &["number_of_workers"],
            "each connection runs the processors by itself, on as many cores as there are",
        );
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
            ("number_of_workers: 4", "`number_of_workers`"),
        ] {
            let (_, problems) = read(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
