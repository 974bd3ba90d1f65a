//! Settings of the Elasticsearch output, right and wrong.

use super::*;
use skidder_config::{Problems, Settings};
use skidder_tls::VerificationMode;
use std::time::Duration;

/// Reads `output.elasticsearch` out of its lines; returns the reported problems too.
fn read_lines(lines: &str) -> (Option<Config>, QueueSettings, String) {
    let text = lines.lines().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n");
    let settings = Settings::parse("filebeat.yml", &format!("elasticsearch:\n{text}")).unwrap();
    let problems = Problems::new();
    let (config, queue) = {
        let root = settings.root(&problems);
        let section = root.section("elasticsearch");
        let read = read(&section);
        section.finish();
        read
    };
    (config, queue, problems.to_string())
}

#[test]
fn hosts_alone_give_filebeats_defaults() {
    let (config, queue, problems) = read_lines("hosts: es:9201");
    let config = config.unwrap();
    assert_eq!(problems, "");
    assert_eq!(queue, QueueSettings::default());
    assert_eq!(config.hosts[0].to_string(), "http://es:9201");
    assert_eq!((config.workers, config.bulk_max_size, config.compression_level), (1, 1600, 1));
    assert_eq!(config.timeout, Duration::from_secs(90));
    assert_eq!(config.backoff_init, Duration::from_secs(1));
    assert_eq!(config.backoff_max, Duration::from_mins(1));
    assert_eq!(config.idle_connection_timeout, Duration::from_secs(3));
    assert!(config.loadbalance && config.allow_older_versions);
    assert_eq!(config.credentials, Credentials::None);
    assert!(config.indices.is_empty() && config.pipelines.is_empty() && !config.escape_html);
    assert_eq!(config.dead_letter_index, None);
    let drop = read_lines("hosts: es\nnon_indexable_policy.drop: ~");
    assert_eq!((drop.0.unwrap().dead_letter_index, drop.2), (None, String::new()));
}

#[test]
fn settings_are_read() {
    let (config, _, problems) = read_lines(
        "hosts: [one, 'https://two/x']
protocol: https
path: /base
worker: 2
workers: 3
loadbalance: false
bulk_max_size: -1
bulk_max_bytes: 1MiB
compression_level: 0
username: elastic
password: secret
parameters: {pretty: 'true'}
headers: {X-My: header}
timeout: 5
backoff: {init: 2s, max: 3s}
idle_connection_timeout: 7s
index: logs-%{+yyyy}
indices: [{index: a}]
pipeline: geo
pipelines: [{pipeline: b}, {pipeline: c}]
escape_html: true
exactly_once: on_retry
allow_older_versions: false
non_indexable_policy.dead_letter_index.index: Dead
ssl.verification_mode: none
ssl.supported_protocols: [TLSv1.3]
ssl.key_passphrase: secret
ssl.ca_sha256: ['MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=']
ssl.ca_trusted_fingerprint: 00000000000000000000000000000000000000000000000000000000000000FF
ssl.cipher_suites: [ECDHE-RSA-CHACHA20-POLY1205, TLS-AES-256-GCM-SHA384]
ssl.curve_types: [P-384]
ssl.renegotiation: never
proxy_url: http://proxy:3128
proxy_headers: {X-Who: me}",
    );
    assert_eq!(problems, "");
    let config = config.unwrap();
    let hosts: Vec<String> = config.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["https://one:9200/base", "https://two:9200/x"]);
    assert_eq!((config.workers, config.loadbalance, config.bulk_max_size), (3, false, 0));
    assert_eq!((config.bulk_max_bytes, config.compression_level), (1 << 20, 0));
    assert!(matches!(&config.credentials, Credentials::Basic(user, _) if user == "elastic"));
    assert_eq!(config.parameters, [("pretty".to_owned(), "true".to_owned())]);
    assert_eq!(config.headers[0].0, "x-my");
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.idle_connection_timeout, Duration::from_secs(7));
    assert!(!config.indices.is_empty() && !config.pipelines.is_empty());
    assert!(config.escape_html && config.exactly_once && !config.allow_older_versions);
    assert_eq!(config.dead_letter_index.as_deref(), Some("dead"));
    assert_eq!(config.tls.verification_mode, VerificationMode::None);
    assert_eq!((config.tls.tls12, config.tls.tls13), (false, true));
    assert_eq!(config.tls.key_passphrase, Some(skidder_config::Secret::new("secret")));
    assert_eq!(config.tls.ca_sha256, [*b"01234567890123456789012345678901"]);
    assert_eq!(config.tls.ca_trusted_fingerprint.unwrap()[31], 255);
    assert_eq!((config.tls.cipher_suites.len(), config.tls.curve_types.len()), (2, 1));
    assert!(
        matches!(&config.proxy, ProxyChoice::Always(via) if via.to_string() == "http://proxy:3128")
    );
}

#[test]
fn a_preset_wins_and_says_over_what() {
    let (config, queue, problems) = read_lines(
        "hosts: es
preset: scale
worker: 7
backoff.max: 9s
timeout: 7s",
    );
    let config = config.unwrap();
    assert_eq!((config.workers, config.bulk_max_size), (1, 1600));
    assert_eq!(
        (config.backoff_init, config.backoff_max),
        (Duration::from_secs(5), Duration::from_mins(5))
    );
    assert_eq!(config.timeout, Duration::from_secs(7));
    assert_eq!(config.idle_connection_timeout, Duration::from_secs(1));
    assert_eq!((queue.events, queue.flush_timeout), (Some(3200), Some(Duration::from_secs(20))));
    assert!(
        problems.contains("warning") && problems.contains("overwrites `worker`, `backoff.max`"),
        "{problems}"
    );
    let (config, queue, _) = read_lines("hosts: es\npreset: latency\nbackoff.max: 9s");
    let config = config.unwrap();
    assert_eq!((config.bulk_max_size, config.backoff_max), (50, Duration::from_secs(9)));
    assert_eq!((queue.events, queue.flush_min_events), (Some(4100), Some(2050)));
}

#[test]
fn kerberos_is_a_feature_of_the_build() {
    let (config, _, problems) = read_lines(
        "hosts: es\nkerberos: {auth_type: password, password: p, config_path: /etc/krb5.conf, username: u, realm: R, \
         enable_krb5_fast: true}",
    );
    let kerberos = config.unwrap().kerberos.unwrap();
    assert_eq!(kerberos.principal(), "u@R");
    assert_eq!(kerberos.service_of("ES.example"), "HTTP/es.example@R");
    assert_eq!(
        problems.contains("built without Kerberos"),
        !cfg!(feature = "kerberos"),
        "{problems}"
    );
    assert!(problems.contains("enable_krb5_fast") && !problems.contains("unknown"), "{problems}");
    let (config, _, _) = read_lines(
        "hosts: es\nkerberos: {auth_type: keytab, keytab: /k, config_path: /c, username: u, realm: R, service_name: HTTP/lb}",
    );
    assert_eq!(config.unwrap().kerberos.unwrap().service_of("es"), "HTTP/lb@R");
    let (config, _, problems) =
        read_lines("hosts: es\nkerberos: {enabled: false, auth_type: keytab}");
    assert_eq!((config.unwrap().kerberos, problems.as_str()), (None, ""));
}

#[test]
fn mistakes_are_told_with_their_place() {
    let table = [
        ("worker: 1", "`elasticsearch.hosts` is missing"),
        ("hosts: []", "hosts"),
        ("hosts: 'ftp://es'", "scheme `ftp`"),
        ("hosts: es\ncompression_level: 10", "compression_level"),
        ("hosts: es\napi_key: abc", "expected `id:api_key`"),
        ("hosts: es\napi_key: 'a:b'\nusername: x", "both set"),
        ("hosts: es\nindex: '%{x}'", "neither a field"),
        ("hosts: es\nindices: [{pipeline: a}]", "`elasticsearch.indices[0]` has no `index`"),
        ("hosts: es\npipelines: [{pipeline: a, wen: {}}]", "did you mean `when`"),
        ("hosts: es\nexactly_once: maybe", "exactly_once"),
        ("hosts: es\nproxy_url: ftp://p", "its scheme is none of"),
        (
            "hosts: es\nproxy_url: 'http://u:SECRET@'",
            "`elasticsearch.proxy_url` is `xxxxx`; it names no host",
        ),
        (
            "hosts: es\nproxy_url: 'http://u:SECRET'",
            "its port is no number from 1 to 65535\nhint: a proxy is",
        ),
        (
            "hosts: [es, 'http://u:SECRET@']",
            "`elasticsearch.hosts[1]` is `http://u:xxxxx@`; it names no host",
        ),
        (
            "hosts: 'http://u:SECRET'",
            "`elasticsearch.hosts` is `http://u:xxxxx`; its port is no number",
        ),
        ("hosts: es\nkerberos.enabled: true", "`elasticsearch.kerberos.auth_type` is missing"),
        ("hosts: es\nkerberos: {auth_type: keytab}", "`elasticsearch.kerberos.keytab` is missing"),
        ("hosts: es\nkerberos: {auth_type: password}", "kerberos.password` is missing"),
        ("hosts: es\nkerberos: {auth_type: ticket}", "kerberos.auth_type"),
        ("hosts: es\nkerberos: {auth_type: keytab, keytab: k}", "kerberos.config_path` is missing"),
        (
            "hosts: es\nusername: u\npassword: p\nkerberos: {auth_type: keytab, keytab: k, config_path: c, \
             username: u, realm: R}",
            "`kerberos` and other credentials are both set",
        ),
        (
            "hosts: es\nnon_indexable_policy.dead_letter_index.name: d",
            "dead_letter_index.index` is missing",
        ),
        ("hosts: es\nnon_indexable_policy: {drop: {}, dead_letter_index.index: d}", "are both set"),
        ("hosts: es\nnon_indexable_policy: keep", "non_indexable_policy"),
        ("hosts: es\nssl: {key_passphrase: x, key_passphrase_path: y}", "are both set"),
        ("hosts: es\nssl.ca_sha256: x", "no SHA-256 in base64"),
        ("hosts: es\nssl.ca_trusted_fingerprint: abc", "64 hexadecimal digits"),
        ("hosts: es\nssl.cipher_suites: [ECDHE-RSA-AES-128]", "is no cipher suite"),
        ("hosts: es\nssl.cipher_suites: [RSA-RC4-128-SHA]", "skidder has none of RSA-RC4-128-SHA"),
        (
            "hosts: es\nssl.cipher_suites: [RSA-RC4-128-SHA, ECDHE-RSA-AES-128-GCM-SHA256]",
            "skidder does not have RSA-RC4-128-SHA",
        ),
        ("hosts: es\nssl.curve_types: [P-521]", "skidder has none of P-521"),
        ("hosts: es\nssl.renegotiation: freely", "never negotiated anew"),
        ("hosts: es\nssl.certificate: x", "needs `ssl.key`"),
        ("hosts: es\nssl.supported_protocols: [TLSv1.1]", "TLS 1.0 and 1.1 are not supported"),
        ("hosts: es\nssl.verification_mode: some", "verification_mode"),
        ("hosts: es\nheaders: {'a b': c}", "header `a b` cannot be sent"),
        ("hosts: es\nbulk_max_sizes: 1", "did you mean `bulk_max_size`"),
        ("hosts: es\nmax_retries: 5", "max_retries"),
    ];
    for (lines, expected) in table {
        let problems = read_lines(lines).2;
        assert!(problems.contains(expected), "{lines}: {problems}");
    }
    let problems = read_lines("hosts: es\napi_key: 'secretwithoutcolon'").2;
    assert!(!problems.contains("secretwithout"), "{problems}");
}

#[test]
fn auto_begins_small_and_bounds_the_queue_in_bytes() {
    let all = Auto { workers: true, events: true, level: true };
    let (config, queue, problems) =
        read_lines("hosts: es\nworker: auto\nbulk_max_size: auto\ncompression_level: auto");
    let config = config.unwrap();
    assert_eq!(problems, "");
    assert_eq!(config.auto, all);
    assert_eq!((config.workers, config.bulk_max_size, config.compression_level), (1, 400, 1));
    assert!(queue.gives_way && queue.events.unwrap() > 100_000, "{queue:?}");
    let (config, queue, _) = read_lines("hosts: es\nworkers: 3\nbulk_max_size: auto");
    let config = config.unwrap();
    assert_eq!((config.auto, config.workers), (Auto { events: true, ..Auto::default() }, 3));
    assert!(queue.gives_way);
    let (config, queue, problems) = read_lines("hosts: es\npreset: balanced\nworker: auto");
    assert_eq!(config.unwrap().auto, Auto::default());
    assert!(problems.contains("overwrites `worker`") && !queue.gives_way, "{problems}");
    for wrong in ["worker: many", "workers: 0", "bulk_max_size: x", "compression_level: 10"] {
        let (_, _, problems) = read_lines(&format!("hosts: es\n{wrong}"));
        assert!(problems.contains("expected `auto`, or a"), "{wrong}: {problems}");
    }
}
