//! Settings as they are read.

use super::*;
use skidder_config::{Problems, Settings as Tree};
use skidder_os::RealFs;

fn read_text(text: &str) -> (Option<Kafka>, String) {
    let problems = Problems::new();
    let tree = Tree::parse("f.yml", text).expect("YAML");
    let section = tree.root(&problems);
    section.declared_by(&KAFKA_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let input = read(&section, &fs, (Chain::default(), 1000));
    section.finish();
    (input, problems.to_string())
}

#[test]
fn defaults_are_those_of_filebeat() {
    let (input, problems) = read_text("{hosts: [h], topics: [t], group_id: g}");
    assert_eq!(problems, "");
    let Kafka { settings, dialer, address } = input.expect("an input");
    assert_eq!((&*address, &*dialer.client_id), ("h:9092 g", "filebeat"));
    assert_eq!(dialer.timeout, Duration::from_secs(30));
    assert_eq!(settings.hosts, ["h:9092"]);
    assert_eq!(settings.group_instance_id, None);
    assert!(settings.timestamps && settings.headers);
    assert!(!settings.from_newest && !settings.read_committed);
    let second = Duration::from_secs(1);
    assert_eq!((settings.connect_backoff, settings.consume_backoff), (30 * second, 2 * second));
    assert_eq!((settings.wait_close, settings.max_wait), (2 * second, second / 4));
    assert_eq!((settings.session_timeout, settings.heartbeat_interval), (10 * second, 3 * second));
    assert_eq!((settings.fetch_min, settings.fetch_bytes), (1, 1 << 20));
    assert_eq!((settings.strategy, settings.rebalance_timeout), (Strategy::Range, 60 * second));
    assert_eq!((settings.rebalance_retries, settings.rebalance_backoff), (4, 2 * second));
    assert_eq!(settings.expand_field, None);
}

#[test]
fn every_setting_arrives() {
    let (input, problems) = read_text(
        "{hosts: ['a:1', b], topics: [t, u], group_id: g, group_instance_id: i, client_id: c, version: 2.3.0, \
         initial_offset: newest, isolation_level: read_committed, connect_backoff: 1s, consume_backoff: 3s, \
         wait_close: 4s, max_wait_time: 5s, session_timeout: 60s, heartbeat_interval: 7s, timeout: 8s, keep_alive: 9s, \
         fetch: {min: 10, default: 11KiB, max: 12}, rebalance: {strategy: roundrobin, timeout: 13s, max_retries: 14, \
         retry_backoff: 15s}, expand_event_list_from_field: records, username: user, password: secret, \
         sasl.mechanism: scram-sha-512, ssl.verification_mode: none}",
    );
    let shown = format!("{input:?}");
    assert!(input.is_some(), "{problems}");
    let expected = "Some(Kafka(Settings { hosts: [\"a:1\", \"b:9092\"], topics: [\"t\", \"u\"], group_id: \"g\", \
         group_instance_id: Some(\"i\"), timestamps: true, headers: true, from_newest: true, read_committed: true, \
         connect_backoff: 1s, consume_backoff: 3s, wait_close: 4s, max_wait: 5s, session_timeout: 60s, \
         heartbeat_interval: 7s, fetch_min: 10, fetch_bytes: 12, strategy: RoundRobin, rebalance_timeout: 13s, \
         rebalance_retries: 14, rebalance_backoff: 15s, expand_field: Some(\"records\")";
    assert!(shown.starts_with(expected), "{shown}");
    let (input, _) = read_text("{hosts: [h], topics: [t], group_id: g, version: 0.9.0}");
    let settings = input.expect("an input").settings;
    assert!(!settings.timestamps && !settings.headers, "records had none then");
}

#[test]
fn topics_are_names_that_kafka_takes() {
    let long = "x".repeat(250);
    for (topic, expected) in [
        ("''", "a topic has letters, digits"),
        ("a b", "`topics[1]` is `a b`; a topic has letters, digits, `.`, `_` and `-`, at most 249"),
        ("'.'", "is not `.` or `..`"),
        ("..", "is not `.` or `..`"),
        ("a/b", "a topic has letters"),
        (&*long, "at most 249"),
        ("'logs-*'", "patterns are not supported, name each topic"),
        ("'^logs'", "patterns are not supported, name each topic"),
    ] {
        let (input, problems) =
            read_text(&format!("{{hosts: [h], topics: [t, {topic}], group_id: g}}"));
        assert!(input.is_none(), "{topic}: {problems}");
        assert!(problems.starts_with("error: f.yml:1:26: "), "{topic}: {problems}");
        assert!(problems.contains(expected), "{topic}: {problems}");
    }
}

#[test]
fn a_least_answer_that_no_partition_fills_is_a_warning() {
    for (fetch, expected) in [
        ("{min: 2MiB}", "`fetch.min`, 2097152, is above `fetch.default`, 1048576,"),
        ("{min: 11, max: 10}", "`fetch.min`, 11, is above `fetch.max`, 10,"),
        ("{min: 11, default: 10, max: 12}", "`fetch.min`, 11, is above `fetch.default`, 10,"),
        ("{min: 10, default: 10}", ""),
    ] {
        let text = format!("{{hosts: [h], topics: [t], group_id: g, fetch: {fetch}}}");
        let (input, problems) = read_text(&text);
        assert!(input.is_some(), "{fetch}: {problems}");
        assert!(problems.contains(expected), "{fetch}: {problems}");
        assert_eq!(problems.starts_with("warning: "), !expected.is_empty(), "{fetch}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{fetch}: {problems}");
    }
}

#[test]
fn a_login_that_is_turned_off_is_none() {
    let off = "kerberos: {enabled: false, auth_type: password, username: u}";
    let text = format!("{{hosts: [h], topics: [t], group_id: g, {off}}}");
    let (input, problems) = read_text(&text);
    assert!(input.is_some() && problems.is_empty(), "{problems}");
}

#[test]
fn mistakes_are_reported() {
    let most = "hosts: [h], topics: [t], group_id: g";
    for (text, expected) in [
        ("{topics: [t], group_id: g}".to_owned(), "`hosts` is missing"),
        ("{hosts: [h], group_id: g}".to_owned(), "`topics` is missing"),
        ("{hosts: [h], topics: [t]}".to_owned(), "`group_id` is missing"),
        ("{hosts: [h], topics: [t], group_id: ''}".to_owned(), "`group_id` is missing"),
        (format!("{{{most}, username: u}}"), "`username` needs `password`"),
        (format!("{{{most}, password: p}}"), "`password` does nothing"),
        (format!("{{{most}, sasl.mechanism: PLAIN}}"), "`sasl.mechanism` does nothing"),
        (format!("{{{most}, group_instance_id: i}}"), "needs `version: 2.3.0`"),
        (format!("{{{most}, heartbeat_interval: 10s}}"), "shorter than `session_timeout`"),
        (format!("{{{most}, kerberos.enabled: true}}"), "no Kerberos"),
        (format!("{{{most}, kerberos.auth_type: password}}"), "no Kerberos"),
        (format!("{{{most}, rebalance.strategy: random}}"), "random"),
        (format!("{{{most}, initial_offset: middle}}"), "middle"),
        (format!("{{{most}, initial_offset: latest}}"), "hint: Kafka's `earliest` is `oldest`"),
        (format!("{{{most}, sasl.username: u}}"), "did you mean `username`?"),
        (format!("{{{most}, ssl.key_file: /k}}"), "did you mean `key`?"),
        (format!("{{{most}, isolation_level: none}}"), "none"),
        (format!("{{{most}, version: x}}"), "no version of Kafka"),
        (format!("{{{most}, ssl.certificate: /nothing, ssl.key: /nothing}}"), "/nothing"),
    ] {
        let (_, problems) = read_text(&text);
        assert!(problems.contains(expected), "{text}: {problems}");
    }
}
