//! Reading `output.redis`.

use super::*;
use skidder_config::{Problems, Settings};
use skidder_net::Host;

fn read(text: &str) -> (Option<Config>, String) {
    let settings = Settings::parse("x", text).unwrap();
    let problems = Problems::new();
    let config = Config::read(&settings.root(&problems), "filebeat");
    (config, problems.to_string())
}

#[test]
fn redis_settings_have_filebeats_defaults() {
    let (config, problems) = read("hosts: here");
    let config = config.unwrap();
    assert_eq!(problems, "");
    let host = Host { name: "here".to_owned(), port: 6379 };
    assert_eq!(config.servers, [Server { host, tls: None, credentials: None, db: None }]);
    assert_eq!(config.key.constant(), Some("filebeat"));
    assert_eq!((config.datatype, config.db), (DataType::List, 0));
    assert_eq!((config.workers, config.loadbalance, config.bulk_max_size), (1, true, 2048));
    assert_eq!(config.timeout, Duration::from_secs(5));
    assert_eq!(config.backoff_init, Duration::from_secs(1));
    assert_eq!(config.backoff_max, Duration::from_mins(1));
    assert_eq!(config.codec, CodecConfig::default());
    assert!(config.password.is_none() && config.proxy.is_none() && config.tls.is_none());
}

#[test]
fn redis_settings_are_read() {
    let text = "hosts: ['redis://u:p%40w@a:1/2', 'rediss://b', 'c:3']\nindex: mine\n\
                datatype: channel\nusername: me\npassword: secret\ndb: 7\nworker: 3\n\
                loadbalance: false\nbulk_max_size: 0\ntimeout: 9s\nbackoff: {init: 2s, max: 3s}\n\
                proxy_url: 'socks5://proxy'\nssl.verification_mode: none\n\
                codec.format.string: '%{[message]}'";
    let (config, problems) = read(text);
    let config = config.unwrap();
    assert_eq!(problems, "");
    let [a, b, c] = &config.servers[..] else { panic!("{:?}", config.servers) };
    assert_eq!((a.host.to_string().as_str(), a.tls, a.db), ("a:1", Some(false), Some(2)));
    assert_eq!(a.credentials, Some(("u".to_owned(), Secret::new("p@w"))));
    assert_eq!((b.host.to_string().as_str(), b.tls), ("b:6379", Some(true)));
    assert_eq!((c.host.to_string().as_str(), c.tls), ("c:3", None));
    assert!(!config.encrypts(a) && config.encrypts(b) && config.encrypts(c));
    assert_eq!((config.index.as_deref(), config.key.constant()), (Some("mine"), Some("mine")));
    assert_eq!((config.datatype, config.db), (DataType::Channel, 7));
    assert_eq!((config.username.as_str(), config.password), ("me", Some(Secret::new("secret"))));
    assert_eq!((config.workers, config.loadbalance, config.bulk_max_size), (3, false, 0));
    assert_eq!(config.timeout, Duration::from_secs(9));
    assert_eq!(config.backoff_init, Duration::from_secs(2));
    assert_eq!(config.backoff_max, Duration::from_secs(3));
    assert!(config.proxy.is_some() && matches!(config.codec, CodecConfig::Format(_)));
    let (_, problems) = read("{hosts: ['redis://a'], ssl.verification_mode: full}");
    assert!(problems.contains("`ssl` does nothing: no host begins with `rediss://`"), "{problems}");
    let (config, _) = read("{hosts: a, index: mine, key: theirs}");
    assert_eq!(config.unwrap().key.constant(), Some("theirs"));
    let (config, _) = read("{hosts: a, keys: [{key: x, when.has_fields: [y]}]}");
    assert_eq!(config.unwrap().key.constant(), None);
    assert_eq!(read("{hosts: a, workers: 2, worker: 3}").0.unwrap().workers, 2);
    assert!(read("{hosts: a, max_retries: 1}").1.contains("as in Filebeat"));
}

#[test]
fn a_first_pause_above_the_longest_one_is_a_warning() {
    let (config, problems) = read("hosts: a\nbackoff: {init: 9s, max: 3s}");
    assert!(config.is_some(), "{problems}");
    assert!(problems.contains("warning") && problems.contains("9s, is longer than"), "{problems}");
}

#[test]
fn mistakes_in_redis_settings_are_told() {
    let table = [
        ("{}", "`hosts` is missing"),
        ("hosts: []", "at least one host"),
        ("hosts: 'http://a'", "neither `redis` nor"),
        ("hosts: 'redis://a/x'", "no number of a database"),
        (
            "hosts: [a, 'redis://:SECRET@']",
            "x:1:12: `hosts[1]` is `redis://:xxxxx@`; it names no host",
        ),
        (
            "hosts: ['redis://u:x@a:1/0?password=SECRET']",
            "`hosts[0]` is `redis://u:xxxxx@a:1/0?password=xxxxx`; a host takes no query",
        ),
        ("hosts: ['redis://a/0#SECRET']", "`redis://a/0#xxxxx`; a host takes no query"),
        ("hosts: ['a?p=SECRET']", "`hosts[0]` is `a?p=xxxxx`; a host takes no query"),
        ("{hosts: a, db: SECRET}", "`db` is `xxxxx`; expected the number of a database"),
        ("hosts: 'redis://u:SECRET'", "its port is no number"),
        ("hosts: 'u:SECRET@a:x'", "`hosts` is `u:xxxxx@a:x`; its port is no number"),
        ("{hosts: a, proxy_url: 'socks5://u:SECRET@:1'}", "it names no host\nhint: a proxy is"),
        ("{hosts: a, datatype: set}", "datatype"),
        ("{hosts: a, username: u}", "needs `password`"),
        ("{hosts: a, key: '%{[x'}", "closing"),
        ("{hosts: a, keys: [{kee: x}]}", "key"),
        ("{hosts: a, db: -1}", "db"),
        ("{hosts: a, proxy_url: 'http://p'}", "socks5://"),
    ];
    for (text, expected) in table {
        let (_, problems) = read(text);
        assert!(problems.contains(expected) && !problems.contains("SECRET"), "{text}: {problems}");
    }
}
