//! `parsers`, `encoding`, `line_terminator`: what they read, their defaults, and the messages about bad values.

use super::tests::{bad, good, input};
use skidder_parse::chain::{Container, Format, Match, Multiline, Parser, Rule, Stream};
use skidder_read::{Encoding, FilestreamSettings, LineTerminator};
use std::time::Duration;

fn one(entry: &str) -> Parser {
    parsers(&good(&format!("parsers:\n- {entry}"))).remove(0)
}

fn parsers(settings: &FilestreamSettings) -> Vec<Parser> {
    settings.parsers.parsers().to_vec()
}

fn multiline(entry: &str) -> Multiline {
    match one(entry) {
        Parser::Multiline(multiline) => multiline,
        other => panic!("{other:?}"),
    }
}

/// The message about one parser with a mistake.
fn refused(entry: &str) -> String {
    let (_, problems) = input("filestream", &format!("id: a\npaths: [/x]\nparsers:\n- {entry}"));
    assert!(problems.starts_with("error: filebeat.yml:"), "{entry}: {problems}");
    problems
}

#[test]
fn without_parsers_lines_are_only_cut() {
    assert!(good("").is_direct());
    assert!(good("parsers: []").is_direct());
    assert!(good("encoding: utf-8").is_direct());
    assert!(good("encoding: plain\nline_terminator: auto").is_direct());
    assert!(!good("parsers: [{container: ~}]").is_direct());
}

#[test]
fn multiline_is_read_with_filebeats_defaults() {
    let read = multiline("multiline: {pattern: '^ ', match: after}");
    assert!(matches!(
        read.rule,
        Rule::Pattern { negate: false, side: Match::After, flush: None, .. }
    ));
    assert_eq!((read.max_lines, read.max_bytes), (500, 10 << 20));
    assert_eq!((read.timeout, read.skip_newline), (Some(Duration::from_secs(5)), false));
    let read = multiline(
        "multiline: {type: pattern, pattern: x, negate: true, match: before, flush_pattern: y, \
         max_lines: 3, timeout: 7s, skip_newline: true}",
    );
    assert!(matches!(
        read.rule,
        Rule::Pattern { negate: true, side: Match::Before, flush: Some(_), .. }
    ));
    assert_eq!((read.max_lines, read.timeout), (3, Some(Duration::from_secs(7))));
    assert!(read.skip_newline);
    assert_eq!(multiline("multiline: {pattern: x, match: after, timeout: 0}").timeout, None);
    let read = multiline("multiline: {type: count, count_lines: 4}");
    assert!(matches!(read.rule, Rule::Count(4)));
    assert_eq!(read.timeout, None, "Filebeat waits for ever, too");
    let read = multiline("multiline: {type: while_pattern, pattern: x, negate: true}");
    assert!(matches!(read.rule, Rule::While { negate: true, .. }));
    let settings = good("max_bytes: 1KiB\nparsers: [{multiline: {type: count, count_lines: 1}}]");
    let Parser::Multiline(read) = &parsers(&settings)[0] else { panic!("it is multiline") };
    assert_eq!(read.max_bytes, 1024);
}

#[test]
fn mistakes_in_multiline_are_told() {
    for (entry, said) in [
        ("multiline: {match: after}", "pattern"),
        ("multiline: {pattern: x}", "match"),
        ("multiline: {pattern: x, match: around}", "around"),
        ("multiline: {pattern: '(', match: after}", "("),
        ("multiline: {type: count}", "count_lines"),
        ("multiline: {type: count, count_lines: 0}", "count_lines"),
        ("multiline: {type: lines, pattern: x}", "lines"),
        ("multiline: {pattern: x, match: after, max_line: 3}", "max_lines"),
    ] {
        let problems = refused(entry);
        assert!(problems.contains(said), "{entry}: {problems}");
    }
    let (_, problems) = input(
        "filestream",
        "id: a\npaths: [/x]\nparsers:\n- multiline: {type: count, count_lines: 2, timeout: 3s}",
    );
    assert!(problems.starts_with("warning:") && problems.contains("timeout"), "{problems}");
}

#[test]
fn container_is_read_and_a_stream_has_keys_of_its_own() {
    let read = |entry: &str| match one(entry) {
        Parser::Container(Container { stream, format, .. }) => (stream, format),
        other => panic!("{other:?}"),
    };
    assert_eq!(read("container: ~"), (None, Format::Auto));
    assert_eq!(
        read("container: {stream: stderr, format: json-file}"),
        (Some(Stream::Stderr), Format::Docker)
    );
    assert_eq!(read("container: {stream: all, format: cri}"), (None, Format::Cri));
    assert_eq!(good("parsers: [{container: ~}]").key_suffix, "");
    assert_eq!(good("parsers: [{container: {stream: stdout}}]").key_suffix, "stdout");
    assert!(refused("container: {stream: both}").contains("both"));
    assert!(refused("container: {format: xml}").contains("xml"));
    let two = "container: {stream: stdout}\n- container: {stream: stderr}";
    assert!(refused(two).contains("select a stream"));
}

#[test]
fn the_other_parsers_are_read() {
    let Parser::Ndjson { settings, log_errors } = one("ndjson: ~") else { panic!("ndjson") };
    assert!(settings.target.is_none() && !settings.overwrite_keys && !settings.expand_keys);
    assert!(!settings.add_error_key && settings.message_key.is_none() && log_errors);
    let all = "ndjson: {target: app.log, overwrite_keys: true, expand_keys: true, \
               add_error_key: true, message_key: msg, document_id: id, ignore_decoding_error: true}";
    let Parser::Ndjson { settings, log_errors } = one(all) else { panic!("ndjson") };
    assert_eq!(settings.target.as_ref().map(|path| path.as_str()), Some("app.log"));
    assert!(settings.overwrite_keys && settings.expand_keys && settings.add_error_key);
    assert_eq!(settings.message_key.as_deref(), Some("msg"));
    assert_eq!(settings.document_id.as_deref(), Some("id"));
    assert!(!log_errors);
    one("ndjson: {keys_under_root: true, target: ''}");
    assert!(refused("ndjson: {target: a..b}").contains("a..b"));

    let Parser::Syslog { settings, log_errors } = one("syslog: ~") else { panic!("syslog") };
    assert!(settings.add_error_key && !log_errors);
    assert_eq!(settings.format, skidder_parse::syslog::Format::Auto);
    let all =
        "syslog: {format: rfc3164, timezone: '+0200', log_errors: true, add_error_key: false}";
    let Parser::Syslog { settings, log_errors } = one(all) else { panic!("syslog") };
    assert!(!settings.add_error_key && log_errors);
    assert_eq!(settings.format, skidder_parse::syslog::Format::Rfc3164);
    assert!(refused("syslog: {format: rfc1}").contains("rfc1"));
    assert!(refused("syslog: {timezone: Mars/Base}").contains("Mars/Base"));

    let Parser::Auditd { settings, log_errors } = one("auditd: ~") else { panic!("auditd") };
    assert!(settings.add_error_key && !log_errors);
    let all = "auditd: {mode: parse, log_errors: true, add_error_key: false, resolve_ids: true}";
    let Parser::Auditd { settings, log_errors } = one(all) else { panic!("auditd") };
    assert!(!settings.add_error_key && log_errors);
    assert!(good("parsers: [{auditd: {mode: none}}]").is_direct());
    let refused_mode = refused("auditd: {mode: coalesce}");
    assert!(refused_mode.contains("`coalesce`, which came with Filebeat 9.6"), "{refused_mode}");

    let Parser::IncludeMessage(patterns) = one("include_message: {patterns: ['^a', b]}") else {
        panic!("include_message")
    };
    assert_eq!(patterns.len(), 2);
    assert!(refused("include_message: {patterns: []}").contains("patterns"));
}

#[test]
fn parsers_keep_their_order_and_unknown_ones_are_told() {
    let settings =
        good("parsers:\n- container: ~\n- ndjson: ~\n- include_message: {patterns: [x]}");
    let read = parsers(&settings);
    assert!(matches!(
        read[..],
        [Parser::Container(_), Parser::Ndjson { .. }, Parser::IncludeMessage(_)]
    ));
    assert!(refused("xml: ~").contains("`filebeat.inputs[0].parsers[0].xml` is no parser"));
    assert!(refused("{ndjson: ~, container: ~}").contains("2 keys"));
}

#[test]
fn encodings_and_terminators_are_read() {
    assert_eq!(good("encoding: utf-16le").encoding, Encoding::find("utf-16le").unwrap());
    assert!(bad("encoding: klingon").contains("klingon"));
    assert_eq!(
        good("line_terminator: null_terminator").line_terminator,
        LineTerminator::NullTerminator
    );
    assert!(bad("line_terminator: full_stop").contains("full_stop"));
    let (_, problems) = input(
        "filestream",
        "id: a\npaths: [/x]\nencoding: iso8859-1\nline_terminator: line_separator",
    );
    assert!(problems.contains("has no character `line_separator`"), "{problems}");
    let (_, problems) =
        input("filestream", "id: a\npaths: [/x]\nencoding: gbk\nmessage_max_bytes: 100000000");
    assert!(problems.contains("message_max_bytes"), "{problems}");
}

#[test]
fn deprecated_inputs_have_the_same_under_other_names() {
    let read = |kind: &str, options: &str| {
        let all = format!("allow_deprecated_use: true\npaths: [/x]\n{options}");
        let (settings, problems) = input(kind, &all);
        assert_eq!(problems, "", "{options}");
        settings
    };
    let settings = read(
        "log",
        "encoding: gbk\nline_terminator: line_feed\nmax_bytes: 2000\n\
         multiline.pattern: '^ '\nmultiline.match: after\njson.message_key: log",
    );
    assert_eq!(settings.line_terminator, LineTerminator::LineFeed);
    let found = parsers(&settings);
    let [Parser::Ndjson { settings: json, .. }, Parser::Multiline(multiline)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(json.target.as_ref().map(|path| path.as_str()), Some("json"));
    assert_eq!(multiline.max_bytes, 2000);
    let settings = read("log", "json.keys_under_root: true");
    assert!(
        matches!(&parsers(&settings)[..], [Parser::Ndjson { settings, .. }] if settings.target.is_none())
    );
    assert!(read("log", "").is_direct());
    let settings = read("container", "stream: stderr\nformat: cri");
    assert!(matches!(
        parsers(&settings)[..],
        [Parser::Container(Container { stream: Some(Stream::Stderr), format: Format::Cri, .. })]
    ));
    assert_eq!(settings.key_suffix, "stderr");
}

#[test]
fn inputs_of_messages_have_these_parsers_and_keep_null_is_for_them_too() {
    for keep_null in [false, true] {
        let text = format!(
            "{{keep_null: {keep_null}, max_bytes: 1KiB, parsers: [{{ndjson: {{target: ''}}}}]}}"
        );
        let settings = skidder_config::Settings::parse("f.yml", &text).unwrap();
        let problems = skidder_config::Problems::new();
        let section = settings.root(&problems);
        section.declared_by(&super::journald::JOURNALD);
        let (chain, max_bytes) = super::parsers::read_of_messages(&section);
        section.finish();
        assert_eq!((problems.to_string(), max_bytes), (String::new(), 1024));
        let [Parser::Ndjson { settings, .. }] = chain.parsers() else { panic!("{chain:?}") };
        assert_eq!(settings.keep_null, keep_null);
    }
}
