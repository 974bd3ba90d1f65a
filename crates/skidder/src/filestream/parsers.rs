//! Reading how lines become events: `encoding`, `line_terminator` and `parsers`, and what the deprecated
//! inputs have instead of parsers (`json.*`, `multiline.*`, the records of `container`).

use super::patterns;
use regex::bytes::Regex;
use skidder_config::{Item, Section};
use skidder_event::Path;
use skidder_parse::chain::{
    Chain, Container, Format, Match, Matcher, Multiline, Parser, Rule, Stream,
};
use skidder_parse::{auditd, ndjson, syslog};
use skidder_processors::compile_pattern;
use skidder_read::{Encoding, FilestreamSettings, InputKind, LineTerminator};
use std::time::Duration;

/// The most that `message_max_bytes` may be where lines are not only cut out of the bytes: lines, groups
/// and what is made of them are together in one batch.
const MESSAGE_MAX_BYTES_MAX: usize = 64 << 20;

/// Default of `max_bytes`, the bound of joined messages.
const MAX_BYTES: u64 = 10 << 20;

/// Parsers of Filebeat, all of them here.
const NAMES: [&str; 6] =
    ["auditd", "container", "include_message", "multiline", "ndjson", "syslog"];

/// Reads what a filestream input says.
pub(super) fn read(section: &Section<'_>, settings: &mut FilestreamSettings) {
    read_text(section, settings);
    let items = section.items("parsers");
    // Without parsers there is nothing that it could bound.
    let max_bytes = if items.is_empty() {
        0
    } else {
        let max_bytes = section.size("max_bytes").range(1..=MESSAGE_MAX_BYTES_MAX as u64);
        max_bytes.or(MAX_BYTES) as usize
    };
    let mut parsers = Vec::new();
    for item in &items {
        parsers.extend(read_parser(item, settings, max_bytes));
    }
    let streams = parsers.iter().filter_map(stream_of).collect::<Vec<_>>();
    if streams.len() > 1 {
        section.problem("parsers", "two of the parsers select a stream", "one can");
    }
    finish(section, "message_max_bytes", settings, parsers, max_bytes);
}

/// Reads what a `log` or `container` input says.
pub(super) fn read_deprecated(
    section: &Section<'_>,
    settings: &mut FilestreamSettings,
    kind: InputKind,
) {
    read_text(section, settings);
    let max_bytes = settings.message_max_bytes;
    let mut parsers = Vec::new();
    if kind == InputKind::Container {
        match section.optional_section("containers").filter(|_| !section.has("stream")) {
            // Of a `docker` input.
            Some(containers) => {
                parsers.push(read_container(&containers, max_bytes));
                containers.skip();
            }
            None => parsers.push(read_container(section, max_bytes)),
        }
    }
    // In this order, whatever that of the settings.
    if let Some(json) = section.optional_section("json") {
        let under_root = json.bool("keys_under_root").or(false);
        parsers.push(read_ndjson(&json, settings.keep_null, |_| {
            if under_root { None } else { Path::parse("json").ok() }
        }));
        json.finish();
    }
    if let Some(multiline) = section.optional_section("multiline") {
        parsers.extend(read_multiline(&multiline, max_bytes));
        multiline.finish();
    }
    finish(section, "max_bytes", settings, parsers, max_bytes);
}

fn finish(
    section: &Section<'_>,
    bound: &str,
    settings: &mut FilestreamSettings,
    parsers: Vec<Parser>,
    max_bytes: usize,
) {
    if let Some(stream) = parsers.iter().find_map(stream_of) {
        settings.key_suffix = match stream {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        };
    }
    settings.parsers = Chain::new(parsers, 2 * settings.message_max_bytes.max(max_bytes) as u64);
    if !settings.is_direct() && settings.message_max_bytes > MESSAGE_MAX_BYTES_MAX {
        let message = format!(
            "`{}` is {}; with parsers or an encoding it can be at most {MESSAGE_MAX_BYTES_MAX}",
            section.path_of(bound),
            settings.message_max_bytes
        );
        section.problem(bound, message, "");
    }
}

fn stream_of(parser: &Parser) -> Option<Stream> {
    match parser {
        Parser::Container(container) => container.stream,
        _ => None,
    }
}

/// `encoding` and `line_terminator`.
fn read_text(section: &Section<'_>, settings: &mut FilestreamSettings) {
    let name = section.string("encoding").or("");
    match Encoding::find(&name) {
        // What is not UTF-8 is replaced where it is written.
        Some(encoding) if encoding == Encoding::find("utf-8").unwrap_or_default() => {}
        Some(encoding) => settings.encoding = encoding,
        None => {
            let known = Encoding::names().collect::<Vec<_>>().join(", ");
            let message =
                format!("`{}` is `{name}`, which is no encoding", section.path_of("encoding"));
            section.problem("encoding", message, format!("one of {known}"));
        }
    }
    let names: Vec<(&str, LineTerminator)> = LineTerminator::names()
        .filter_map(|name| LineTerminator::find(name).map(|terminator| (name, terminator)))
        .collect();
    settings.line_terminator = section.one_of("line_terminator", &names).or(LineTerminator::Auto);
    if !settings.line_terminator.exists_in(settings.encoding) {
        let message =
            format!("encoding `{name}` has no character `{}`", settings.line_terminator.name());
        section.problem("line_terminator", message, "");
    }
}

/// One entry of `parsers`: `{name: settings}`.
fn read_parser(item: &Item<'_>, settings: &FilestreamSettings, max_bytes: usize) -> Option<Parser> {
    let entry = item.section();
    let names = entry.keys();
    let [name] = names[..] else {
        for name in &names {
            entry.accept(name);
        }
        if item.is_map() || item.node().is_null() {
            let message = format!(
                "`{}` has {} keys; expected exactly one, the name of a parser",
                item.path(),
                names.len()
            );
            item.problem(message, format!("one of {}", NAMES.join(", ")));
        }
        return None;
    };
    let section = entry.section(name);
    let parser = match name {
        "multiline" => read_multiline(&section, max_bytes),
        "container" => Some(read_container(&section, max_bytes)),
        "ndjson" => Some(read_ndjson(&section, settings.keep_null, read_target)),
        "syslog" => read_syslog(&section),
        "auditd" => read_auditd(&section),
        "include_message" => {
            let found = patterns(&section, "patterns");
            if found.is_empty() {
                let message = format!("`{}` has no pattern", section.path_of("patterns"));
                section.problem("patterns", message, "all messages would be dropped");
            }
            Some(Parser::IncludeMessage(found))
        }
        _ => {
            section.skip();
            let message = format!("`{}` is no parser", entry.path_of(name));
            entry.problem(name, message, format!("one of {}", NAMES.join(", ")));
            return None;
        }
    };
    section.finish();
    parser
}

fn read_container(section: &Section<'_>, max_bytes: usize) -> Parser {
    let streams =
        [("all", None), ("stdout", Some(Stream::Stdout)), ("stderr", Some(Stream::Stderr))];
    let formats = [
        ("auto", Format::Auto),
        ("docker", Format::Docker),
        ("json-file", Format::Docker),
        ("cri", Format::Cri),
    ];
    Parser::Container(Container {
        stream: section.one_of("stream", &streams).or(None::<Stream>),
        format: section.one_of("format", &formats).or(Format::Auto),
        max_bytes,
    })
}

fn read_multiline(section: &Section<'_>, max_bytes: usize) -> Option<Parser> {
    let kind = section
        .one_of(
            "type",
            &[("pattern", "pattern"), ("count", "count"), ("while_pattern", "while_pattern")],
        )
        .or("pattern");
    let mut multiline = Multiline {
        rule: Rule::Count(1),
        max_lines: Multiline::MAX_LINES,
        max_bytes,
        timeout: None,
        skip_newline: section.bool("skip_newline").or(false),
    };
    if kind == "count" {
        let count = section.u32("count_lines").named("a number of lines").range(1..).required();
        multiline.rule = Rule::Count(count);
        multiline.max_lines = section.u32("max_lines").or(0);
        unused(section, &["pattern", "negate", "match", "flush_pattern", "timeout"], kind);
        return Some(Parser::Multiline(multiline));
    }
    multiline.max_lines = section.u32("max_lines").or(Multiline::MAX_LINES);
    let timeout = section.duration("timeout").or(Multiline::TIMEOUT);
    multiline.timeout = Some(timeout).filter(|timeout| *timeout > Duration::ZERO);
    let negate = section.bool("negate").or(false);
    let pattern = matcher(section, "pattern");
    if !section.has("pattern") {
        let message = format!("`{}` is missing", section.path_of("pattern"));
        section.problem("pattern", message, "for example `pattern: '^[[:space:]]'`");
    }
    multiline.rule = if kind == "pattern" {
        let side = section
            .one_of("match", &[("after", Match::After), ("before", Match::Before)])
            .required();
        unused(section, &["count_lines"], kind);
        let flush = matcher(section, "flush_pattern");
        Rule::Pattern { pattern: pattern?, negate, side, flush }
    } else {
        unused(section, &["match", "flush_pattern", "count_lines"], kind);
        Rule::While { pattern: pattern?, negate }
    };
    Some(Parser::Multiline(multiline))
}

/// Settings that have no effect with this type, in Filebeat neither.
fn unused(section: &Section<'_>, keys: &[&str], kind: &str) {
    for key in keys.iter().filter(|key| section.has(key)) {
        section.accept(key);
        let message = format!("`{}` has no effect with `type: {kind}`", section.path_of(key));
        section.warning(key, message, "leave it out");
    }
}

fn matcher(section: &Section<'_>, key: &str) -> Option<Matcher> {
    let pattern = section.string(key).optional()?;
    match compile_pattern(&pattern) {
        Ok(regex) => Some(Matcher::new(regex)),
        Err(error) => {
            section.problem(key, error.to_string(), "");
            // Something to go on with: the start is refused anyway.
            Regex::new("").ok().map(Matcher::new)
        }
    }
}

fn read_ndjson(
    section: &Section<'_>,
    keep_null: bool,
    target: impl FnOnce(&Section<'_>) -> Option<Path>,
) -> Parser {
    let name = |key: &str| {
        section.string(key).optional().filter(|name| !name.is_empty()).map(String::into_boxed_str)
    };
    let settings = ndjson::Settings {
        target: target(section),
        overwrite_keys: section.bool("overwrite_keys").or(false),
        expand_keys: section.bool("expand_keys").or(false),
        add_error_key: section.bool("add_error_key").or(false),
        message_key: name("message_key"),
        document_id: name("document_id"),
        keep_null,
    };
    let log_errors = !section.bool("ignore_decoding_error").or(false);
    Parser::Ndjson { settings, log_errors }
}

fn read_target(section: &Section<'_>) -> Option<Path> {
    let target = section.string("target").or("");
    // What it means is said by `target`.
    let under_root = section.bool("keys_under_root").optional();
    if under_root.is_some_and(|under_root| under_root != target.is_empty()) {
        let message =
            format!("`{}` has no effect: `target` says it", section.path_of("keys_under_root"));
        section.warning("keys_under_root", message, "leave it out");
    }
    if target.is_empty() {
        return None;
    }
    match Path::parse(&target) {
        Ok(path) => Some(path),
        Err(error) => {
            section.problem("target", error.to_string(), "");
            None
        }
    }
}

fn read_syslog(section: &Section<'_>) -> Option<Parser> {
    use syslog::Format;
    let formats =
        [("auto", Format::Auto), ("rfc3164", Format::Rfc3164), ("rfc5424", Format::Rfc5424)];
    let format = section.one_of("format", &formats).or(Format::Auto);
    let add_error_key = section.bool("add_error_key").or(true);
    let log_errors = section.bool("log_errors").or(false);
    match syslog::timezone(&section.string("timezone").or("Local")) {
        Ok(timezone) => {
            let settings = syslog::Settings { format, timezone, add_error_key };
            Some(Parser::Syslog { settings, log_errors })
        }
        Err(error) => {
            section.problem("timezone", error.to_string(), "");
            None
        }
    }
}

fn read_auditd(section: &Section<'_>) -> Option<Parser> {
    let mode = section
        .one_of("mode", &[("parse", "parse"), ("none", "none"), ("coalesce", "coalesce")])
        .or("parse");
    let settings = auditd::Settings { add_error_key: section.bool("add_error_key").or(true) };
    let log_errors = section.bool("log_errors").or(false);
    // `mode` and `resolve_ids` came to Filebeat after 9.5 (elastic/beats pull request 52648), whose parser
    // has the other two options only. Only `coalesce` resolves numbers of users and groups.
    section.accept("resolve_ids");
    match mode {
        "none" => None,
        "coalesce" => {
            let message = format!(
                "`{}` is `coalesce`, which came with Filebeat 9.6; skidder has what 9.5 has",
                section.path_of("mode")
            );
            section.problem("mode", message, "`parse` gives an event for each record, as 9.5 does");
            None
        }
        _ => Some(Parser::Auditd { settings, log_errors }),
    }
}
