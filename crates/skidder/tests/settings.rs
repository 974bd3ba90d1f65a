//! Messages of `test config` about empty sections, settings beside a mistake, and parts that are turned off.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;

const INPUT: &str = "filebeat.inputs: [{type: filestream, id: a, paths: [LOGS/*.log]}]";
const CONSOLE: &str = "output.console: {}";

/// Whether the program takes it, and its problems without hints.
fn checked(configuration: &str) -> (bool, Vec<String>) {
    let place = Place::with_output("");
    place.write("a.log", b"one\n");
    place.configure(&configuration.replace("LOGS", &place.logs().display().to_string()));
    let ended = place.run(&["test", "config"]);
    let problem = |line: &str| {
        let (severity, rest) = line.split_once(": ")?;
        let (_, message) = rest.split_once(".yml:")?;
        let message = message.split_once(": ")?.1;
        matches!(severity, "error" | "warning").then(|| format!("{severity}: {message}"))
    };
    (ended.code() == Some(0), ended.log.lines().filter_map(problem).collect())
}

/// Each configuration has exactly this problem, or none if it is empty. Errors alone stop the program.
fn assert_problems(cases: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (configuration, expected) in cases {
        let (is_taken, found) = checked(configuration);
        let right = match (*expected, &found[..]) {
            ("", []) => is_taken,
            ("", _) => false,
            (expected, [found]) => {
                found.starts_with(expected) && is_taken != expected.starts_with("error")
            }
            _ => false,
        };
        if !right {
            wrong.push(format!("{configuration}\n  is taken: {is_taken}, {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn with_input(rest: &str) -> String {
    format!("{INPUT}\n{rest}\n")
}

fn with_processor(processor: &str) -> String {
    format!("{INPUT}\n{CONSOLE}\nprocessors: [{processor}]\n")
}

fn filestream(options: &str) -> String {
    format!(
        "filebeat.inputs: [{{type: filestream, id: a, paths: [LOGS/*.log], {options}}}]\n{CONSOLE}\n"
    )
}

#[test]
fn an_empty_section_is_as_if_it_were_not_there() {
    let outputs = [
        "output.logstash.hosts: [a]\noutput.logstash.ssl:",
        "output.redis.hosts: [a]\noutput.redis.ssl:",
        "output.elasticsearch.hosts: [a]\noutput.elasticsearch.ssl:",
        "output.kafka: {hosts: [a], topic: t, ssl: }\noutput.kafka.partition.round_robin:",
        "output.kafka: {hosts: [a], topic: t, partition: {random: }}",
        "output.kafka: {hosts: [a], topic: t, partition: {hash: }}",
        "output.console.codec.json:",
        "queue.mem:\noutput.console:",
    ];
    let mut cases: Vec<(String, &str)> =
        outputs.into_iter().map(|output| (with_input(output), "")).collect();
    let tcp = format!("filebeat.inputs: [{{type: tcp, host: '127.0.0.1:0', ssl: }}]\n{CONSOLE}\n");
    cases.push((tcp, ""));
    let multiline = "multiline: {pattern: a, match: after, count_lines: }";
    cases.push((filestream(&format!("parsers: [{{{multiline}}}]")), ""));
    cases.push((with_processor("include_fields: {fields: }"), ""));
    // What needs something inside.
    cases.push((with_input("output.console:\nqueue.disk:"), "error: `queue.disk` is empty"));
    let policy = "output.elasticsearch: {hosts: [a], non_indexable_policy.dead_letter_index: }";
    let missing =
        "error: `output.elasticsearch.non_indexable_policy.dead_letter_index.index` is missing";
    cases.push((with_input(policy), missing));
    let missing = "error: `output.console.codec.format.string` is missing";
    cases.push((with_input("output.console.codec.format:"), missing));
    let cases: Vec<(&str, &str)> = cases.iter().map(|(text, said)| (&**text, *said)).collect();
    assert_problems(&cases);
}

#[test]
fn right_settings_beside_a_mistake_are_not_called_unknown() {
    let cases = [
        ("move_fields: {fields: [a], ignore_missing: true}", "move_fields.to` is missing"),
        ("replace: {ignore_missing: true, fail_on_error: false}", "replace.fields` is missing"),
        (
            "parse_aws_vpc_flow_log: {field: message, ignore_missing: true}",
            "parse_aws_vpc_flow_log.format` is missing",
        ),
        (
            "dns: {type: reverze, fields: {a: b}, tag_on_failure: [x], nameservers: ['1.1.1.1']}",
            "dns.type` is `reverze`",
        ),
    ];
    for (processor, said) in cases {
        assert_problems(&[(&with_processor(processor), &format!("error: `processors[0].{said}"))]);
    }
    let (_, found) = checked(&with_processor("move_fields: {fields: [a], ignore_mising: true}"));
    assert_eq!(found.len(), 2, "{found:#?}");
    assert_eq!(found[1], "error: unknown setting `processors[0].move_fields.ignore_mising`");
}

#[test]
fn a_list_or_a_map_is_no_word_and_a_list_no_map() {
    let names = "`auto`, `gzip`, `zstd`, `bzip2`, `xz` or `lz4`";
    for (value, shown) in [
        ("[gzip]", "a list"),
        ("[]", "a list"),
        ("{}", "a map"),
        ("{a: 1}", "a map"),
        ("[null]", "a list"),
        ("gzp", "`gzp`"),
    ] {
        let said = format!("error: `filebeat.inputs[0].compression` is {shown}; expected {names}");
        assert_problems(&[(&filestream(&format!("compression: {value}")), &said)]);
    }
    assert_problems(&[(&filestream("compression: ''"), "")]);
    for key in ["headers", "parameters", "proxy_headers"] {
        let output = format!("output.elasticsearch: {{hosts: [a], {key}: ['X-My: 1']}}");
        let said = format!("error: `output.elasticsearch.{key}` is `xxxxx`; expected a map of");
        assert_problems(&[(&with_input(&output), &said)]);
    }
    let said = "error: unknown setting `output.console.codec.json.prety`";
    assert_problems(&[(&with_input("output.console.codec.json: {prety: true}"), said)]);
}

#[test]
fn unknown_names_in_what_is_turned_off_are_warnings() {
    let cases = [
        ("output.console:\nhttp.pprof: {enabeld: true}", "http.pprof.enabeld"),
        (
            "output.console:\nmonitoring.elasticsearch.usrname: a",
            "monitoring.elasticsearch.usrname",
        ),
        ("output.console:\nmonitoring: {a: 1}", "monitoring.a"),
        ("output.console:\nmonitoring.otlp: {endpont: a}", "monitoring.otlp.endpont"),
        ("output: {console: {enabled: false, prety: 1}, discard: }", "output.console.prety"),
        (
            "outputs: [{id: a, discard: }, {id: b, enabled: false, console: {prety: 1}}]",
            "outputs[1].console.prety",
        ),
    ];
    for (rest, name) in cases {
        let said = format!("warning: unknown setting `{name}`");
        assert_problems(&[(&with_input(rest), &said)]);
    }
    let inputs = |off: &str| {
        let on = "{type: filestream, id: a, paths: [LOGS/*.log]}";
        format!("filebeat.inputs: [{on}, {{enabled: false, {off}}}]\n{CONSOLE}\n")
    };
    let said = "warning: unknown setting `filebeat.inputs[1].hosst`";
    assert_problems(&[
        (&inputs("type: tcp, hosst: 1"), said),
        // Right names, whatever their values; and types that are not here.
        (&inputs("type: tcp, host: [1], tags: {a: b}, ssl.key: a, fields.a: b"), ""),
        (&inputs("paths: [/x], json.keys_under_root: 3"), ""),
        (&inputs("type: httpjson, request.url: a"), ""),
        (
            &with_input(
                "output: {elasticsearch: {enabled: false, hosts: a, ssl.key: b}, discard: }",
            ),
            "",
        ),
    ]);
}

#[test]
fn messages_name_the_setting_and_show_the_value_once() {
    let parser = filestream("parsers: [{syslog: {timezone: -1}}]");
    let fields = filestream("fields: abc");
    let identity = filestream("file_identity: {a: 1}");
    let indexer = with_processor("add_kubernetes_metadata: {indexers: [{a: 1}]}");
    assert_problems(&[
        (
            &parser,
            "error: `filebeat.inputs[0].parsers[0].syslog.timezone` is `-1`; not a time zone; expected `Local`",
        ),
        (&fields, "error: `filebeat.inputs[0].fields` is `abc`; expected a map of names to values"),
        (&identity, "error: `filebeat.inputs[0].file_identity`: there is no file identity `a`"),
        (
            &indexer,
            "error: `processors[0].add_kubernetes_metadata.indexers[0]`: unknown indexer `a`",
        ),
        (
            &format!("filebeat.inputs:\n- abc\n{CONSOLE}\n"),
            "error: `filebeat.inputs[0]` is `abc`; expected a map of settings",
        ),
        (
            &format!("filebeat.inputs:\n-\n{CONSOLE}\n"),
            "error: `filebeat.inputs[0]` is empty; expected an input",
        ),
    ]);
}
