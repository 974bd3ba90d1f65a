//! Settings as users write them.

use super::*;
use skidder_config::{Problems, Settings};

fn read(text: &str) -> (Option<Config>, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let config = Config::read(&settings.root(&problems));
    (config, problems.to_string())
}

fn hosts(text: &str) -> Vec<String> {
    let (config, problems) = read(text);
    assert_eq!(problems, "", "{text}");
    config.unwrap().hosts.iter().map(HostUrl::to_string).collect()
}

#[test]
fn otlp_settings_have_their_defaults() {
    let (config, problems) = read("hosts: collector\nproxy_disable: true");
    let config = config.unwrap();
    assert_eq!(problems, "");
    assert_eq!(config.hosts[0].to_string(), "http://collector:4317");
    assert_eq!((config.protocol, config.compression), (Protocol::Grpc, Compression::Gzip));
    assert_eq!((config.workers, config.loadbalance), (1, true));
    assert_eq!((config.bulk_max_size, config.bulk_max_bytes), (2048, 3 << 20));
    assert_eq!(config.timeout, Duration::from_secs(30));
    assert_eq!(config.backoff_init, Duration::from_secs(1));
    assert_eq!(config.backoff_max, Duration::from_mins(1));
    assert!(config.headers.is_empty() && config.naming.resource_attributes.is_empty());
    assert_eq!(config.naming.resource_fields, resource::FIELDS);
    assert!(matches!(config.proxy, ProxyChoice::Direct));
}

#[test]
fn otlp_settings_are_read() {
    let text = "hosts: [a]\nprotocol: http/protobuf\nworkers: 3\nloadbalance: false\n\
                bulk_max_size: -1\nbulk_max_bytes: 1MiB\ncompression: zstd\ntimeout: 5s\n\
                backoff: {init: 2s, max: 3s}\nheaders: {X-Scope-OrgID: me}\n\
                resource_fields: [host, site]\nresource_attributes: {service.name: shop}\n\
                proxy_url: 'http://proxy'\nproxy_headers: {X-A: b}";
    let (config, problems) = read(text);
    let config = config.unwrap();
    assert_eq!(problems, "");
    assert_eq!((config.protocol, config.compression), (Protocol::Http, Compression::Zstd));
    assert_eq!((config.workers, config.loadbalance), (3, false));
    assert_eq!((config.bulk_max_size, config.bulk_max_bytes), (0, 1 << 20));
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.backoff_init, Duration::from_secs(2));
    assert_eq!(config.backoff_max, Duration::from_secs(3));
    assert_eq!(config.headers[0].0.as_str(), "x-scope-orgid");
    assert_eq!(config.naming.resource_fields, ["host", "site"]);
    let given = ("service.name".to_owned(), "shop".to_owned());
    assert_eq!(config.naming.resource_attributes, [given]);
    assert!(matches!(config.proxy, ProxyChoice::Always(_)));
    assert_eq!(read("hosts: a\nworkers: 2\nworker: 3").0.unwrap().workers, 2);
    assert_eq!(read("hosts: a\nworker: 3").0.unwrap().workers, 3);
    assert!(read("hosts: a\nmax_retries: 1").1.contains("until they are accepted"));
}

#[test]
fn hosts_are_urls_or_names_with_the_ports_of_the_protocol() {
    let table = [
        ("hosts: a", "http://a:4317"),
        ("hosts: 'a:1'", "http://a:1"),
        ("hosts: '[::1]'", "http://[::1]:4317"),
        ("hosts: 'https://a'", "https://a:443"),
        ("hosts: a\nssl.verification_mode: none", "https://a:4317"),
        ("hosts: a\nssl.enabled: false", "http://a:4317"),
        ("hosts: a\nprotocol: http/protobuf", "http://a:4318"),
        ("hosts: 'http://a/otlp/'\nprotocol: http/protobuf", "http://a:4318/otlp"),
        ("hosts: 'https://a:1/x/v1/logs'\nprotocol: http/protobuf", "https://a:1/x/v1/logs"),
    ];
    for (text, expected) in table {
        assert_eq!(hosts(text), [expected], "{text}");
    }
}

#[test]
fn mistakes_in_otlp_settings_are_told() {
    let table = [
        ("{}", "`hosts` is missing"),
        ("hosts: []", "at least one host"),
        ("hosts: 'ftp://a'", "neither `http` nor `https`"),
        ("hosts: 'a:x'", "its port is no number"),
        ("hosts: 'http://u:SECRET@a/path'", "expected no path: gRPC has no use for it"),
        ("hosts: 'http://u:SECRET@a?b=c'\nprotocol: http/protobuf", "expected no query"),
        ("hosts: a\nprotocol: http/json", "protocol"),
        ("hosts: a\ncompression: snappy", "compression"),
        ("hosts: a\nworker: 0", "worker"),
        ("hosts: a\nbulk_max_bytes: 1", "bulk_max_bytes"),
        ("hosts: a\nheaders: {grpc-timeout: 1S}", "`grpc-timeout` is no header to choose"),
        ("hosts: a\nheaders: {Content-Type: x}", "`content-type` is no header to choose"),
        ("hosts: a\nheaders: {'a b': x}", "cannot be sent"),
        ("hosts: a\nresource_fields: [host.name]", "no first part of a name"),
        ("hosts: 'http://a'\nssl.verification_mode: none", "no host is encrypted"),
        ("hosts: a\nproxy_url: 'ftp://p'", "its scheme is none of"),
        ("hosts: a\nlodbalance: true", "loadbalance"),
    ];
    for (text, expected) in table {
        let (_, problems) = read(text);
        assert!(problems.contains(expected), "{text}: {problems}");
        assert!(!problems.contains("SECRET"), "{text}: {problems}");
    }
}
