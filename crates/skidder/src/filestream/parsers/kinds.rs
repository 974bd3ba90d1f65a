//! The parsers and their settings.

use skidder_config::{Group, Kinds};
use skidder_parse::chain::{Format, Match, Multiline, Stream};

pub(in crate::filestream) use auditd::*;
pub(in crate::filestream) use container::*;
pub(in crate::filestream) use include_message::*;
pub(in crate::filestream) use multiline::*;
pub(in crate::filestream) use ndjson::*;
pub(in crate::filestream) use syslog::*;

/// An item of `parsers`.
pub(in crate::filestream) static PARSER: Group =
    Group::new("parser", "A parser, by its name.").kinds(Kinds::by_name(list));

/// All parsers of Filebeat.
pub(in crate::filestream) fn list() -> Vec<(&'static str, &'static Group)> {
    vec![
        ("multiline", &MULTILINE),
        ("container", &CONTAINER),
        ("ndjson", &NDJSON),
        ("syslog", &SYSLOG),
        ("include_message", &INCLUDE_MESSAGE),
        ("auditd", &AUDITD),
    ]
}

/// What a group of lines is made by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::filestream) enum MultilineType {
    Pattern,
    Count,
    WhilePattern,
}

mod multiline {
    use super::{Match, Multiline, MultilineType};
    use skidder_config::{Group, Key, OneOf, settings};
    use std::time::Duration;

    settings! {
        /// `multiline`.
        pub(in crate::filestream) static MULTILINE =
            Group::new("parser.multiline", "Joins lines to events.");

        pub(in crate::filestream) TYPE: OneOf<MultilineType> = Key::one_of(
            "type",
            &[
                ("pattern", MultilineType::Pattern),
                ("count", MultilineType::Count),
                ("while_pattern", MultilineType::WhilePattern),
            ],
        )
        .default("pattern")
        .about(
            "`pattern`, `count`, `while_pattern`: which lines make an event. One of several lines has \
             `log.flags: multiline`",
        );
        pub(in crate::filestream) PATTERN: String = Key::new("pattern").default_words("required").about(
            "regular expression; not for `count`. *Cost*: a search each line; of one that begins with `^` usually a \
             look at the first byte",
        );
        pub(in crate::filestream) NEGATE: bool = Key::new("negate")
            .default(false)
            .about("it is the lines that do not match that count");
        pub(in crate::filestream) MATCH: OneOf<Match> =
            Key::one_of("match", &[("after", Match::After), ("before", Match::Before)])
                .default_words("required for `pattern`")
                .about(
                    "`after`: a line that matches belongs to the one before; `before`: to the one that follows. \
                     *Differs*: with `before` a complete event is given out at once",
                );
        pub(in crate::filestream) FLUSH_PATTERN: String = Key::new("flush_pattern").about(
            "for `pattern`: a line that matches is the last of its event. *Cost*: a second search each line",
        );
        pub(in crate::filestream) COUNT_LINES: u32 = Key::new("count_lines")
            .at_least(1)
            .noun("a number of lines")
            .default_words("required for `count`")
            .about("lines of an event. *Differs*: lines beyond `max_bytes` count");
        pub(in crate::filestream) MAX_LINES: u32 = Key::new("max_lines")
            .default(Multiline::MAX_LINES)
            .about(
                "lines of a message, 0: no bound, which is the default for `count`; those beyond are discarded \
                 (`log.flags: truncated`)",
            );
        pub(in crate::filestream) TIMEOUT: Duration = Key::new("timeout").default(Multiline::TIMEOUT).about(
            "an event is complete when no line has come for so long, 0: never; not for `count`. *Cost*: until then \
             its lines are read again with each look at the file",
        );
        pub(in crate::filestream) SKIP_NEWLINE: bool = Key::new("skip_newline").default(false).about(
            "lines are joined without a line feed. *Cost*: a copy of the message; with the line feed none if the \
             lines stand together in the file",
        );
    }
}

mod container {
    use super::{Format, Stream};
    use skidder_config::{Group, Key, OneOf, settings};

    /// The values of `stream`.
    pub(in crate::filestream) const STREAMS: [(&str, Option<Stream>); 3] =
        [("all", None), ("stdout", Some(Stream::Stdout)), ("stderr", Some(Stream::Stderr))];

    settings! {
        /// `container`.
        pub(in crate::filestream) static CONTAINER =
            Group::new("parser.container", "Records that container runtimes write.");

        pub(in crate::filestream) STREAM: OneOf<Option<Stream>> =
            Key::one_of("stream", &STREAMS).default("all").about(
                "`stdout`, `stderr`: the other is dropped, counted as `parser`, and the stream is part of the \
                 registry keys, so that two inputs can read the two streams of one file. *Differs*: partial records \
                 and lines of the two streams are never joined",
            );
        pub(in crate::filestream) FORMAT: OneOf<Format> = Key::one_of(
            "format",
            &[
                ("auto", Format::Auto),
                ("docker", Format::Docker),
                ("json-file", Format::Docker),
                ("cri", Format::Cri),
            ],
        )
        .default("auto")
        .about(
            "`docker` (or `json-file`), `cri`. Gives `@timestamp`, `stream`, `docker.attrs`; joins partial records. \
             One that nothing follows for 5 s, or at the end of a file, is given out with `log.flags: partial`. \
             *Differs*: what is no record is kept, with `error.message`",
        );
    }
}

mod ndjson {
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `ndjson`.
        pub(in crate::filestream) static NDJSON =
            Group::new("parser.ndjson", "Lines that are JSON objects.").include(&[&JSON]);

        pub(in crate::filestream) TARGET: String =
            Key::new("target").default("").default_words("`\"\"`").about(
                "the object that takes the keys; empty: the root",
            );
        pub(in crate::filestream) UNDER_ROOT: bool =
            Key::new("keys_under_root").about("accepted: `target` says it");
    }

    settings! {
        /// What `ndjson` and `json` of the input `log` have.
        pub(in crate::filestream) static JSON = Group::new("parser.json", "How JSON is decoded.");

        pub(in crate::filestream) OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
            .default(false)
            .about("keys win over what the event has, `@timestamp` included");
        pub(in crate::filestream) EXPAND_KEYS: bool =
            Key::new("expand_keys").default(false).about("`a.b` becomes an object");
        pub(in crate::filestream) ADD_ERROR_KEY: bool = Key::new("add_error_key")
            .default(false)
            .about("`error.message` and `error.type: json` on what cannot be decoded");
        pub(in crate::filestream) MESSAGE_KEY: String = Key::new("message_key")
            .about("the key whose text becomes the message for what follows");
        pub(in crate::filestream) DOCUMENT_ID: String =
            Key::new("document_id").about("the key whose text becomes `@metadata._id`");
        pub(in crate::filestream) IGNORE_DECODING_ERROR: bool = Key::new("ignore_decoding_error")
            .default(false)
            .about("lines that cannot be decoded are not logged");
    }
}

mod syslog {
    use skidder_config::{Group, Key, OneOf, settings};
    use skidder_parse::syslog::Format;

    settings! {
        /// `syslog`.
        pub(in crate::filestream) static SYSLOG =
            Group::new("parser.syslog", "Messages of RFC 3164 and RFC 5424.");

        pub(in crate::filestream) SYSLOG_FORMAT: OneOf<Format> = Key::one_of(
            "format",
            &[("auto", Format::Auto), ("rfc3164", Format::Rfc3164), ("rfc5424", Format::Rfc5424)],
        )
        .default("auto")
        .about("`rfc3164`, `rfc5424`");
        pub(in crate::filestream) TIMEZONE: String = Key::new("timezone").default("Local").about(
            "of times without one: `UTC`, a name as `Europe/Berlin`, an offset as `+0200`",
        );
        pub(in crate::filestream) SYSLOG_LOG_ERRORS: bool =
            Key::new("log_errors").default(false).about("lines that cannot be read are logged");
        pub(in crate::filestream) SYSLOG_ADD_ERROR_KEY: bool =
            Key::new("add_error_key").default(true).about("`error.message` on them");
    }
}

mod include_message {
    use skidder_config::{Group, Key, settings};

    settings! {
        /// `include_message`.
        pub(in crate::filestream) static INCLUDE_MESSAGE =
            Group::new("parser.include_message", "Which messages stay.");

        pub(in crate::filestream) PATTERNS: Vec<String> = Key::new("patterns").required().about(
            "regular expressions: a message that matches none is dropped, counted as `parser`. *Cost*: a search each \
             message and expression",
        );
    }
}

/// What becomes of records of auditd.
#[derive(Clone, Copy)]
pub(in crate::filestream) enum AuditdMode {
    Parse,
    None,
    /// Of Filebeat 9.6.
    Coalesce,
}

mod auditd {
    use super::AuditdMode;
    use skidder_config::{Any, Group, Key, OneOf, settings};

    settings! {
        /// `auditd`. `mode` and `resolve_ids` came to Filebeat after 9.5 (elastic/beats pull request 52648), whose
        /// parser has the other two options only.
        pub(in crate::filestream) static AUDITD =
            Group::new("parser.auditd", "Records of the audit daemon.");

        pub(in crate::filestream) MODE: OneOf<AuditdMode> = Key::one_of(
            "mode",
            &[
                ("parse", AuditdMode::Parse),
                ("none", AuditdMode::None),
                ("coalesce", AuditdMode::Coalesce),
            ],
        )
        .default("parse")
        .about(
            "`none`: nothing is parsed. 9.5 has no such option and always parses; it is of 9.6, whose third mode, \
             `coalesce`, is an error",
        );
        pub(in crate::filestream) RESOLVE_IDS: Any =
            Key::new("resolve_ids").about("no effect, as without `coalesce` in Filebeat 9.6");
        pub(in crate::filestream) AUDITD_LOG_ERRORS: bool =
            Key::new("log_errors").default(false).about("as of `syslog`");
        pub(in crate::filestream) AUDITD_ADD_ERROR_KEY: bool =
            Key::new("add_error_key").default(true).about("as of `syslog`");
    }
}
