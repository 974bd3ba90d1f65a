//! Which output a configuration gives.

use super::*;
use crate::codec::CodecConfig;
use crate::testing::context;
use skidder_config::{Problems, Settings};

/// Stands for an output in another crate.
fn others() -> Vec<Other> {
    vec![(
        "kafka",
        Box::new(|section, _, _| {
            section.problem("hosts", "told by another crate", "");
            None
        }),
    )]
}

fn build_from(text: &str) -> (Option<&'static str>, String) {
    let settings = Settings::parse("filebeat.yml", text).unwrap();
    let problems = Problems::new();
    let built = {
        let root = settings.root(&problems);
        let outputs = root.section("output");
        let started = Timestamp(1_767_323_045_000_000_000);
        let built = build(&outputs, &[], &context(), started, &others());
        outputs.finish();
        built
    };
    (built.map(|built| built.output.kind()), problems.to_string())
}

#[test]
fn the_enabled_output_is_built() {
    let table = [
        ("output.logstash.hosts: [a, 'b:1']", "logstash"),
        ("output.logstash: {hosts: a, ssl.enabled: false, queue.mem.events: 5}", "logstash"),
        ("output.redis: {hosts: 'rediss://a', password: x}", "redis"),
        ("output.console.pretty: true", "console"),
        ("output.console: {enabled: true, codec.json.pretty: true, bulk_max_size: 0}", "console"),
        ("output.console.codec.format.string: '%{[message]}'", "console"),
        (
            "output.file: {path: '/var/spool/x-%{+yyyy}', rotate_every_kb: 5, permissions: 0640}",
            "file",
        ),
        ("output.discard.enabled: true", "discard"),
        ("output: {console: {enabled: false, pretty: 7}, discard: {enabled: true}}", "discard"),
        ("output: {kafka: {enabled: false}, discard: {enabled: true}}", "discard"),
    ];
    for (text, kind) in table {
        assert_eq!(build_from(text), (Some(kind), String::new()), "{text}");
    }
}

#[test]
fn anything_but_one_output_is_a_mistake() {
    let table = [
        ("output: {}", "no output is enabled"),
        ("output.console.enabled: false", "no output is enabled"),
        ("output: {console.enabled: true, discard.enabled: true}", "both enabled"),
        ("output.kafka.hosts: x", "told by another crate"),
        ("output.logstash: {hosts: a, ssl.certificate_authorities: /nothing}", "cannot read"),
        ("output.logstsh.hosts: x", "did you mean `logstash`"),
        ("output.file.path: ''", "path"),
        ("output.file.path: '/x/%{[message]}'", "only dates vary"),
        ("output.file: {path: /x, number_of_files: 1}", "number_of_files"),
        ("output.file: {path: /x, filename: a/b}", "without `/`"),
        ("output.console.codec: {json.pretty: true, format.string: x}", "expected one"),
    ];
    for (text, expected) in table {
        let (_, problems) = build_from(text);
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}

#[test]
fn the_directory_has_the_date_of_the_start() {
    let settings = Settings::parse("x", "path: '/logs/%{+yyyy.MM.dd}/%{[agent.version]}'").unwrap();
    let problems = Problems::new();
    let started = Timestamp(1_767_323_045_000_000_000);
    let config = FileConfig::read(&settings.root(&problems), &context(), started).unwrap();
    assert_eq!(config.path, std::path::Path::new("/logs/2026.01.02/9.5.0"));
}

#[test]
fn the_file_output_is_read() {
    let read = |text: &str| {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let config = FileConfig::read(&settings.root(&problems), &context(), Timestamp(0));
        assert_eq!(problems.to_string(), "");
        config.unwrap()
    };
    assert_eq!(read("path: /logs"), FileConfig::new("/logs".into()));
    let text = "path: /logs\nfilename: mine\nrotate_every_kb: 3\nnumber_of_files: 9\n\
                permissions: 0644\nrotate_on_startup: false\ncodec.json.pretty: true";
    let expected = FileConfig {
        filename: "mine".to_owned(),
        rotate_every_bytes: 3072,
        number_of_files: 9,
        permissions: 0o644,
        rotate_on_startup: false,
        codec: CodecConfig::Json { pretty: true, escape_html: false },
        ..FileConfig::new("/logs".into())
    };
    assert_eq!(read(text), expected);
}

#[test]
fn the_console_is_read() {
    let read = |text: &str| {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let config = ConsoleConfig::read(&settings.root(&problems));
        assert_eq!(problems.to_string(), "");
        config
    };
    let json = |pretty| CodecConfig::Json { pretty, escape_html: false };
    assert_eq!(read("{}"), ConsoleConfig { codec: json(false), bulk_max_size: 2048 });
    let pretty = ConsoleConfig { codec: json(true), bulk_max_size: 0 };
    assert_eq!(read("{pretty: true, bulk_max_size: -5}"), pretty);
    assert_eq!(read("{pretty: true, codec.json.pretty: false}").codec, json(false));
    assert!(matches!(read("codec.format.string: x").codec, CodecConfig::Format(_)));
}
