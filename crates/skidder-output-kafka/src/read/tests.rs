//! Settings as users write them, and their mistakes.

use super::*;
use crate::lane::Load;
use skidder_config::{Problems, Settings};
use skidder_pipeline::QueueLimits;

fn read_text(settings: &str) -> (Option<Config>, String) {
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).expect("YAML");
    let section = settings.root(&problems);
    let config = read(&section);
    section.finish();
    (config, problems.to_string())
}

fn good(settings: &str) -> Config {
    let (config, problems) = read_text(&format!("hosts: [a]\ntopic: t\n{settings}"));
    assert_eq!(problems, "", "{settings}");
    config.expect("there are hosts")
}

#[test]
fn kafka_settings_are_those_of_filebeat() {
    let config = good("");
    assert_eq!(config.hosts, ["a:9092"]);
    assert_eq!(config.client_id, "beats");
    assert_eq!(config.bulk_max_size, 2048);
    assert_eq!(config.channel_buffer_size, 256);
    assert_eq!(config.max_message_bytes, 1_000_000);
    assert_eq!((config.compression, config.compression_level), (Compression::Gzip, 4));
    assert_eq!((config.required_acks, config.enable_idempotence), (1, false));
    assert_eq!(config.timeout, Duration::from_secs(30));
    assert_eq!(config.broker_timeout, Duration::from_secs(10));
    let backoff = (config.backoff_init, config.backoff_max);
    assert_eq!(backoff, (Duration::from_secs(1), Duration::from_mins(1)));
    assert_eq!(config.metadata.refresh_frequency, Duration::from_mins(10));
    assert_eq!((config.metadata.retry_max, config.metadata.full), (3, false));
    assert_eq!(config.metadata.retry_backoff, Duration::from_millis(250));
    assert!(!config.keep_alive && config.credentials.is_none() && !config.is_encrypted());
    assert_eq!(config.version, Version::DEFAULT);
}

#[test]
fn kafka_words_are_understood_as_in_filebeat() {
    assert_eq!(good("compression: Snappy").compression, Compression::Snappy);
    assert_eq!(good("compression: off").compression, Compression::None);
    assert_eq!(good("compression: 'no'").compression, Compression::None);
    assert_eq!(good("compression_level: -1000").compression_level, -1);
    let limits = QueueLimits { events: 10_000, bytes: 5_000_000, ..QueueLimits::default() };
    let load_max = |settings: &str| good(settings).load_max(&limits);
    assert_eq!(load_max("bulk_max_size: 0"), Load { records: 10_000, bytes: 10_000_000 });
    assert_eq!(load_max("bulk_max_size: 10").records, 256);
    assert_eq!(load_max("bulk_max_size: 200").records, 400);
    assert_eq!(load_max("max_message_bytes: 9MB").bytes, 18_000_000);
    let config = good(
        "client_id: me\nbroker_timeout: 3s\nbulk_flush_frequency: 4ms\nchannel_buffer_size: 5\n\
         metadata: {full: true, refresh_frequency: 6m}",
    );
    let times = (config.broker_timeout, config.bulk_flush_frequency);
    assert_eq!(times, (Duration::from_secs(3), Duration::from_millis(4)));
    assert_eq!((config.client_id.as_str(), config.channel_buffer_size), ("me", 5));
    assert!(config.metadata.full);
    assert_eq!(config.metadata.refresh_frequency, Duration::from_mins(6));
    assert!(good("keep_alive: 5s").keep_alive);
    assert!(good("ssl: {}").is_encrypted());
    assert!(!good("ssl.enabled: false").is_encrypted());
    let login = good("username: u\npassword: p").credentials.expect("credentials");
    assert_eq!(login.mechanism, Mechanism::Plain);
    let login = good("username: u\npassword: p\nsasl.mechanism: scram-sha-256").credentials;
    assert_eq!(login.expect("credentials").mechanism, Mechanism::ScramSha256);
    assert_eq!(good("headers: [{key: a, value: b}]").headers, [("a".into(), "b".into())]);
}

#[test]
fn kafka_mistakes_are_told() {
    for (settings, part) in [
        ("topic: t", "hosts"),
        ("hosts: []\ntopic: t", "at least one"),
        ("hosts: [a]", "topic"),
        ("hosts: [a]\ntopic: t\nkerberos: {auth_type: keytab}", "Kerberos is not supported"),
        ("hosts: [a]\ntopic: t\nenable_krb5_fast: true", "Kerberos is not supported"),
        ("hosts: [a]\ntopic: t\nusername: u", "needs `password`"),
        ("hosts: [a]\ntopic: t\nsasl.mechanism: PLAIN", "nobody logs in"),
        ("hosts: [a]\ntopic: t\nsasl.mechanism: OAUTHBEARER", "expected PLAIN, SCRAM"),
        ("hosts: [a]\ntopic: t\ncompression: brotli", "expected none"),
        ("hosts: [a]\ntopic: t\ncompression_level: 10", "0 to 9"),
        ("hosts: [a]\ntopic: t\ncompression: zstd\nversion: 2.0.0", "later `version`"),
        ("hosts: [a]\ntopic: t\nheaders: [{key: a}]\nversion: 0.10.2.1", "0.11"),
        (
            "hosts: [a]\ntopic: t\nheaders: [{key: a, when.has_fields: [b]}]",
            "each record has all headers",
        ),
        ("hosts: [a]\ntopic: t\nrequired_acks: 2", "required_acks"),
        ("hosts: [a]\ntopic: t\nenable_idempotence: true", "required_acks: -1"),
        ("hosts: [a]\ntopic: t\nversion: x", "no version"),
        ("hosts: [a]\ntopic: t\nworker: 2", "does nothing in Filebeat"),
        ("hosts: [a]\ntopic: t\nloadbalance: false", "does nothing in Filebeat"),
        ("hosts: [a]\ntopic: t\nmax_retries: 3", "max_retries"),
        ("hosts: [a]\ntopic: t\nkey: '%{[x'", "closing"),
        ("hosts: [a]\ntopic: t\nbulk_size: 1", "bulk_size"),
        ("hosts: [a]\ntopic: t\nmetadata.retries: 1", "retries"),
    ] {
        let (_, problems) = read_text(settings);
        assert!(problems.contains(part), "{settings}: {problems}");
    }
    assert!(read_text("hosts: [a]\ntopic: t\nkerberos.enabled: false").1.is_empty());
}
