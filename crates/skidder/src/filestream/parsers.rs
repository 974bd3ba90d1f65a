//! Reading how lines become events: `encoding`, `line_terminator` and `parsers`, and what the deprecated
//! inputs have instead of parsers (`json.*`, `multiline.*`, the records of `container`).

pub(super) mod kinds;

use super::{log, patterns};
use regex::bytes::Regex;
use skidder_config::{Declared, Group, Item, Key, OneOf, Parts, Section, Size, settings};
use skidder_event::Path;
use skidder_parse::chain::{Chain, Container, Format, Matcher, Multiline, Parser, Rule, Stream};
use skidder_parse::{auditd, ndjson, syslog};
use skidder_processors::compile_pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{Encoding, FilestreamSettings, InputKind, LineTerminator};
use std::time::Duration;

/// The most that `message_max_bytes` may be where lines are not only cut out of the bytes: lines, groups
/// and what is made of them are together in one batch.
const MESSAGE_MAX_BYTES_MAX: usize = 64 << 20;

settings! {
    /// How bytes become lines, of every input that reads files.
    pub(crate) static TEXT = Group::new("files.text", "How bytes become lines.");

    ENCODING: String = Key::new("encoding").default("plain").about(
        "what the bytes of a line mean; events are UTF-8. `plain`, `utf-8` (bytes that are not UTF-8 become U+FFFD in \
         JSON), `utf-16-bom` (the mark is required), `utf-16be-bom`, `utf-16le-bom`, `utf-16be`, `utf-16le`, `gbk`, \
         `gb18030`, `hz-gb-2312`, `big5`, `euc-kr`, `euc-jp`, `iso-2022-jp`, `shift-jis`, `iso8859-1` to `-16`, \
         `cp437` to `cp866`, `ebcdic-037`, `-1040`, `-1047`, `koi8r`, `koi8u`, `macintosh`, `windows874`, \
         `windows1250` to `1258`. *Cost*: all but the first two: each line is decoded into a copy",
    );
    LINE_TERMINATOR: OneOf<LineTerminator> =
        Key::one_of("line_terminator", &LineTerminator::WORDS).default("auto").about(
            "`auto`: a line feed, with or without a carriage return. `line_feed`, `vertical_tab`, `form_feed`, \
             `carriage_return`, `carriage_return_line_feed`, `next_line`, `line_separator`, `paragraph_separator`, \
             `null_terminator`: that and nothing else; the encoding must have it",
        );
}

settings! {
    /// What makes events of the lines of a filestream input.
    pub(crate) static PARSING = Group::new("filestream.parsing", "What makes events of lines.");

    PARSERS: Parts = Key::parts("parsers", &kinds::PARSER).default_words("`[]`").about(
        "what makes events of lines, in this order; [all of them](filestream.md#parsers). *Cost*: a way of its own from bytes to events: \
         without parsers, encoding and terminator lines are only cut",
    );
    MAX_BYTES: Size = Key::new("max_bytes").default(10 << 20).range(1, MESSAGE_MAX_BYTES_MAX as u64).about(
        "with parsers, at most 64 MiB: a message that `multiline` or `container` joins is cut \
         (`log.flags: truncated`)",
    );
}

/// Reads the settings of a filestream input.
pub(super) fn read(section: &Section<'_>, settings: &mut FilestreamSettings) {
    read_text(section, settings);
    let items = section.items_of(&PARSERS);
    // Without parsers there is nothing that it could bound.
    let max_bytes = if items.is_empty() { 0 } else { section.get(&MAX_BYTES).value() as usize };
    let mut parsers = Vec::new();
    for item in &items {
        parsers.extend(read_parser(item, settings, max_bytes));
    }
    let streams = parsers.iter().filter_map(stream_of).collect::<Vec<_>>();
    if streams.len() > 1 {
        section.problem(PARSERS.name(), "two of the parsers select a stream", "one can");
    }
    finish(section, super::MESSAGE_MAX_BYTES.name(), settings, parsers, max_bytes);
}

/// Reads the parsers of an input whose lines are records of the container runtime interface.
pub(super) fn read_of_records(section: &Section<'_>, settings: &mut FilestreamSettings) {
    let max_bytes = section.get(&MAX_BYTES).value() as usize;
    settings.message_max_bytes = max_bytes;
    let mut parsers =
        vec![Parser::Container(Container { stream: None, format: Format::Cri, max_bytes })];
    for item in &section.items_of(&PARSERS) {
        match read_parser(item, settings, max_bytes) {
            Some(Parser::Container(_)) => section.warning(
                PARSERS.name(),
                format!("`{}` has no effect: the records are read without it", item.path()),
                "leave it out; `stream` of the input selects a stream",
            ),
            parser => parsers.extend(parser),
        }
    }
    finish(section, MAX_BYTES.name(), settings, parsers, max_bytes);
    settings.key_suffix = "";
}

/// Reads the parsers of an input whose messages come whole; returns them and the most bytes of a message.
pub(super) fn read_of_messages(section: &Section<'_>) -> (Chain, usize) {
    let mut settings = FilestreamSettings::new("", ScanSettings::default());
    settings.keep_null = skidder_inputs::read_common(section);
    let max_bytes = section.get(&MAX_BYTES).value() as usize;
    settings.message_max_bytes = max_bytes;
    let items = section.items_of(&PARSERS);
    let parsers = items.iter().filter_map(|item| read_parser(item, &settings, max_bytes)).collect();
    finish(section, MAX_BYTES.name(), &mut settings, parsers, max_bytes);
    (settings.parsers, max_bytes)
}

/// Reads how lines of objects become events: the bound of a message holds without parsers, too.
#[cfg(feature = "aws")]
pub(super) fn read_of_objects(section: &Section<'_>, settings: &mut FilestreamSettings) {
    read_text(section, settings);
    read_parsers_of_objects(section, settings);
}

/// The same, where `encoding: gzip` says that objects are compressed, as Filebeat understands it. Their first bytes say so, too.
#[cfg(any(feature = "azure", feature = "gcs"))]
pub(super) fn read_of_blobs(section: &Section<'_>, settings: &mut FilestreamSettings) {
    read_text_unless(section, settings, |name| name.eq_ignore_ascii_case("gzip"));
    read_parsers_of_objects(section, settings);
}

#[cfg(any(feature = "aws", feature = "azure", feature = "gcs"))]
fn read_parsers_of_objects(section: &Section<'_>, settings: &mut FilestreamSettings) {
    let max_bytes = section.get(&MAX_BYTES).value() as usize;
    settings.message_max_bytes = max_bytes;
    let items = section.items_of(&PARSERS);
    let parsers = items.iter().filter_map(|item| read_parser(item, settings, max_bytes)).collect();
    finish(section, MAX_BYTES.name(), settings, parsers, max_bytes);
    settings.key_suffix = "";
}

/// Reads the settings of a `log` or `container` input.
pub(super) fn read_deprecated(
    section: &Section<'_>,
    settings: &mut FilestreamSettings,
    kind: InputKind,
) {
    read_text(section, settings);
    let max_bytes = settings.message_max_bytes;
    let mut parsers = Vec::new();
    if kind == InputKind::Container {
        // Of a `docker` input.
        let containers = section.optional_part(&log::CONTAINERS);
        parsers.push(match containers.filter(|_| !section.has_key(&kinds::STREAM)) {
            Some(containers) => {
                let stream = containers.get(&log::CONTAINERS_STREAM).value();
                containers.skip();
                Parser::Container(Container { stream, format: Format::Auto, max_bytes })
            }
            None => read_container(section, max_bytes),
        });
    }
    // In this order, whatever that of the settings.
    if let Some(json) = section.optional_part(&log::JSON) {
        let under_root = json.get(&log::KEYS_UNDER_ROOT).value();
        let target = if under_root { None } else { Path::parse("json").ok() };
        parsers.push(read_ndjson(&json, settings.keep_null, target));
        json.finish();
    }
    if let Some(multiline) = section.optional_part(&log::MULTILINE) {
        parsers.extend(read_multiline(&multiline, max_bytes));
        multiline.finish();
    }
    finish(section, log::MAX_BYTES.name(), settings, parsers, max_bytes);
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
    read_text_unless(section, settings, |_| false);
}

/// The same; an `encoding` that is none of text, as `is_other` says, counts as none.
fn read_text_unless(
    section: &Section<'_>,
    settings: &mut FilestreamSettings,
    is_other: fn(&str) -> bool,
) {
    let name = section.get(&ENCODING).optional().filter(|name| !is_other(name));
    let name = name.unwrap_or_default();
    match Encoding::find(&name) {
        // Bytes that are not UTF-8 are replaced when written.
        Some(encoding) if encoding == Encoding::find("utf-8").unwrap_or_default() => {}
        Some(encoding) => settings.encoding = encoding,
        None => {
            let known = Encoding::names().collect::<Vec<_>>().join(", ");
            let message =
                format!("`{}` is `{name}`, which is no encoding", section.path_of(ENCODING.name()));
            section.problem(ENCODING.name(), message, format!("one of {known}"));
        }
    }
    settings.line_terminator = section.get(&LINE_TERMINATOR).value();
    if !settings.line_terminator.exists_in(settings.encoding) {
        let message =
            format!("encoding `{name}` has no character `{}`", settings.line_terminator.name());
        section.problem(LINE_TERMINATOR.name(), message, "");
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
            item.problem(message, format!("one of {}", kind_names()));
        }
        return None;
    };
    let Some(section) = entry.kind(name, &kinds::PARSER) else {
        entry.accept(name);
        let message = format!("`{}` is no parser", entry.path_of(name));
        entry.problem(name, message, format!("one of {}", kind_names()));
        return None;
    };
    let parser = match name {
        "multiline" => read_multiline(&section, max_bytes),
        "container" => Some(read_container(&section, max_bytes)),
        "ndjson" => {
            let target = read_target(&section);
            Some(read_ndjson(&section, settings.keep_null, target))
        }
        "syslog" => read_syslog(&section),
        "auditd" => read_auditd(&section),
        _ => Some(read_include_message(&section)),
    };
    section.finish();
    parser
}

/// The names of all parsers, for a hint.
fn kind_names() -> String {
    let mut names: Vec<&str> = kinds::list().into_iter().map(|(name, _)| name).collect();
    names.sort_unstable();
    names.join(", ")
}

fn read_include_message(section: &Section<'_>) -> Parser {
    let found = patterns(section, &kinds::PATTERNS);
    if found.is_empty() {
        let key = kinds::PATTERNS.name();
        let message = format!("`{}` has no pattern", section.path_of(key));
        section.problem(key, message, "all messages would be dropped");
    }
    Parser::IncludeMessage(found)
}

fn read_container(section: &Section<'_>, max_bytes: usize) -> Parser {
    Parser::Container(Container {
        stream: section.get(&kinds::STREAM).value(),
        format: section.get(&kinds::FORMAT).value(),
        max_bytes,
    })
}

fn read_multiline(section: &Section<'_>, max_bytes: usize) -> Option<Parser> {
    use kinds::MultilineType;
    let kind = section.get(&kinds::TYPE).value();
    let mut multiline = Multiline {
        rule: Rule::Count(1),
        max_lines: Multiline::MAX_LINES,
        max_bytes,
        timeout: None,
        skip_newline: section.get(&kinds::SKIP_NEWLINE).value(),
    };
    let max_lines = section.get(&kinds::MAX_LINES).optional();
    if kind == MultilineType::Count {
        multiline.rule = Rule::Count(section.get(&kinds::COUNT_LINES).required());
        multiline.max_lines = max_lines.unwrap_or(0);
        unused(
            section,
            &[
                &kinds::PATTERN,
                &kinds::NEGATE,
                &kinds::MATCH,
                &kinds::FLUSH_PATTERN,
                &kinds::TIMEOUT,
            ],
            "count",
        );
        return Some(Parser::Multiline(multiline));
    }
    multiline.max_lines = max_lines.unwrap_or(Multiline::MAX_LINES);
    let timeout = section.get(&kinds::TIMEOUT).value();
    multiline.timeout = Some(timeout).filter(|timeout| *timeout > Duration::ZERO);
    let negate = section.get(&kinds::NEGATE).value();
    let pattern = matcher(section, &kinds::PATTERN);
    if !section.has_key(&kinds::PATTERN) {
        let key = kinds::PATTERN.name();
        let message = format!("`{}` is missing", section.path_of(key));
        section.problem(key, message, "for example `pattern: '^[[:space:]]'`");
    }
    multiline.rule = if kind == MultilineType::Pattern {
        let side = section.get(&kinds::MATCH).required();
        unused(section, &[&kinds::COUNT_LINES], "pattern");
        let flush = matcher(section, &kinds::FLUSH_PATTERN);
        Rule::Pattern { pattern: pattern?, negate, side, flush }
    } else {
        unused(
            section,
            &[&kinds::MATCH, &kinds::FLUSH_PATTERN, &kinds::COUNT_LINES],
            "while_pattern",
        );
        Rule::While { pattern: pattern?, negate }
    };
    Some(Parser::Multiline(multiline))
}

/// Settings that have no effect with this type, in Filebeat neither.
fn unused(section: &Section<'_>, keys: &[&dyn Declared], kind: &str) {
    for key in keys.iter().map(|key| key.spec().name).filter(|key| section.has(key)) {
        section.accept(key);
        let message = format!("`{}` has no effect with `type: {kind}`", section.path_of(key));
        section.warning(key, message, "leave it out");
    }
}

fn matcher(section: &Section<'_>, key: &Key<String>) -> Option<Matcher> {
    let pattern = section.get(key).optional()?;
    match compile_pattern(&pattern) {
        Ok(regex) => Some(Matcher::new(regex)),
        Err(error) => {
            section.problem(key.name(), error.to_string(), "");
            // Something to go on with: the start is refused anyway.
            Regex::new("").ok().map(Matcher::new)
        }
    }
}

fn read_ndjson(section: &Section<'_>, keep_null: bool, target: Option<Path>) -> Parser {
    let name = |key: &Key<String>| {
        section.get(key).optional().filter(|name| !name.is_empty()).map(String::into_boxed_str)
    };
    let settings = ndjson::Settings {
        target,
        overwrite_keys: section.get(&kinds::OVERWRITE_KEYS).value(),
        expand_keys: section.get(&kinds::EXPAND_KEYS).value(),
        add_error_key: section.get(&kinds::ADD_ERROR_KEY).value(),
        message_key: name(&kinds::MESSAGE_KEY),
        document_id: name(&kinds::DOCUMENT_ID),
        keep_null,
        keep_message: false,
    };
    let log_errors = !section.get(&kinds::IGNORE_DECODING_ERROR).value();
    Parser::Ndjson { settings, log_errors }
}

fn read_target(section: &Section<'_>) -> Option<Path> {
    let target = section.get(&kinds::TARGET).optional().unwrap_or_default();
    // `target` defines its meaning.
    let under_root = section.get(&kinds::UNDER_ROOT).optional();
    if under_root.is_some_and(|under_root| under_root != target.is_empty()) {
        let key = kinds::UNDER_ROOT.name();
        let message = format!("`{}` has no effect: `target` says it", section.path_of(key));
        section.warning(key, message, "leave it out");
    }
    if target.is_empty() {
        return None;
    }
    match Path::parse(&target) {
        Ok(path) => Some(path),
        Err(error) => {
            section.problem(kinds::TARGET.name(), error.to_string(), "");
            None
        }
    }
}

fn read_syslog(section: &Section<'_>) -> Option<Parser> {
    let format = section.get(&kinds::SYSLOG_FORMAT).value();
    let add_error_key = section.get(&kinds::SYSLOG_ADD_ERROR_KEY).value();
    let log_errors = section.get(&kinds::SYSLOG_LOG_ERRORS).value();
    let zone = |name: String| syslog::timezone(&name).map_err(|error| error.to_string());
    let zone = section.get(&kinds::TIMEZONE).try_map(zone);
    let is_wrong = zone.is_wrong();
    let settings = syslog::Settings { format, timezone: zone.value(), add_error_key };
    (!is_wrong).then_some(Parser::Syslog { settings, log_errors })
}

fn read_auditd(section: &Section<'_>) -> Option<Parser> {
    use kinds::AuditdMode;
    let settings =
        auditd::Settings { add_error_key: section.get(&kinds::AUDITD_ADD_ERROR_KEY).value() };
    let log_errors = section.get(&kinds::AUDITD_LOG_ERRORS).value();
    // Only `coalesce` resolves numbers of users and groups.
    section.any(&kinds::RESOLVE_IDS);
    match section.get(&kinds::MODE).value() {
        AuditdMode::None => None,
        AuditdMode::Coalesce => {
            let key = kinds::MODE.name();
            let message = format!(
                "`{}` is `coalesce`, which came with Filebeat 9.6; skidder has what 9.5 has",
                section.path_of(key)
            );
            section.problem(key, message, "`parse` gives an event for each record, as 9.5 does");
            None
        }
        AuditdMode::Parse => Some(Parser::Auditd { settings, log_errors }),
    }
}
