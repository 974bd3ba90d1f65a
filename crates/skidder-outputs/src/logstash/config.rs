//! `output.logstash` from its section of the configuration.

use crate::settings::{self, BACKOFF, EVERY_OUTPUT, events, read_backoff};
use skidder_config::{Group, Key, Section, settings};
use skidder_net::{Host, SOCKS, SocksProxy, TLS, read_hosts, read_tls};
use skidder_tls::TlsSettings;
use std::time::Duration;

/// Port of a host that names none.
const DEFAULT_PORT: u16 = 5044;

/// The hint instead of a password.
const NO_USERS: &str =
    "the protocol knows no users; Logstash may ask for a certificate (`ssl.certificate`)";

settings! {
    /// Settings of `output.logstash`.
    pub static LOGSTASH = Group::new(
        "output.logstash",
        "Lumberjack v2, which Logstash's input `beats`, Elastic Agent and others speak.",
    )
    .include(&[&BACKOFF, &SOCKS, &TLS, &EVERY_OUTPUT])
    .without_effect(&[
        ("username", NO_USERS),
        ("password", NO_USERS),
        ("protocol", "`ssl.enabled` says whether TLS is spoken"),
    ]);

    HOSTS: Vec<String> = Key::new("hosts").filled().required().noun("a list of hosts, as in `[\"localhost\"]`").about("`host[:5044]`");
    WORKERS: usize = settings::workers("a number of connections", 1024)
        .about("connections for each host, 1 to 1024, with `loadbalance`");
    LOADBALANCE: bool = settings::loadbalance(false);
    BULK_MAX_SIZE: i64 = settings::bulk_max_size(Config::BULK_MAX_SIZE).about("events of a window; 0 or less: the queue decides");
    SLOW_START: bool = Key::new("slow_start").default(false).about(
        "windows begin with 10 events, grow by half with each that is acknowledged, and are halved by a failure",
    );
    PIPELINING: usize = Key::new("pipelining")
        .default(Config::PIPELINING)
        .range(0, 1024)
        .noun("a number of windows")
        .about("windows under way on a connection; 0: one");
    COMPRESSION_LEVEL: u32 = Key::new("compression_level")
        .default(Config::COMPRESSION_LEVEL)
        .range(0, 9)
        .noun("a level")
        .about("zlib: 0 off, 1 fast, 9 small");
    ESCAPE_HTML: bool = Key::new("escape_html")
        .default(false)
        .about("`<`, `>` and `&` as `\\u003c`, `\\u003e`, `\\u0026`");
    INDEX: String =
        Key::new("index").default_words("`filebeat`").about("`@metadata.beat` of each event");
    TIMEOUT: Duration = settings::timeout(Config::TIMEOUT).about("of connecting, and for any sign of life while an acknowledgement is due");
    TTL: Duration = Key::new("ttl").default(Duration::ZERO).about(
        "a connection that is older is replaced when nothing is under way on it; 0: never",
    );
}

/// Settings of `output.logstash`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `hosts`.
    pub hosts: Vec<Host>,
    /// `workers`: connections for each host.
    pub workers: usize,
    /// `loadbalance`: all hosts at once, or one until it fails.
    pub loadbalance: bool,
    /// `bulk_max_size`: most events of a window; 0 = the queue decides.
    pub bulk_max_size: usize,
    /// `slow_start`: windows begin small and grow while they are acknowledged.
    pub slow_start: bool,
    /// `pipelining`: windows under way on one connection; 0 = one.
    pub pipelining: usize,
    /// `compression_level`: 0 off, 1 fast to 9 small.
    pub compression_level: u32,
    /// `escape_html`.
    pub escape_html: bool,
    /// `index`, which becomes `@metadata.beat`; `None` for the name of the beat.
    pub index: Option<String>,
    /// `timeout`: of connecting, and for any sign of life while an acknowledgement is due.
    pub timeout: Duration,
    /// `ttl` of a connection; zero for ever.
    pub ttl: Duration,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
    /// `proxy_url`.
    pub proxy: Option<SocksProxy>,
    /// `ssl`, if it is there and not turned off.
    pub tls: Option<TlsSettings>,
}

impl Config {
    /// Default of `bulk_max_size`.
    pub const BULK_MAX_SIZE: usize = 2048;
    /// Default of `pipelining`.
    pub const PIPELINING: usize = 2;
    /// Default of `compression_level`.
    pub const COMPRESSION_LEVEL: u32 = 3;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

    /// The defaults, for these servers.
    pub fn new(hosts: Vec<Host>) -> Self {
        Self {
            hosts,
            workers: 1,
            loadbalance: false,
            bulk_max_size: Self::BULK_MAX_SIZE,
            slow_start: false,
            pipelining: Self::PIPELINING,
            compression_level: Self::COMPRESSION_LEVEL,
            escape_html: false,
            index: None,
            timeout: Self::TIMEOUT,
            ttl: Duration::ZERO,
            backoff_init: Self::BACKOFF_INIT,
            backoff_max: Self::BACKOFF_MAX,
            proxy: None,
            tls: None,
        }
    }

    /// Reads `output.logstash`; reports mistakes to the section's problems. `None` if no host is named.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        section.declared_by(&LOGSTASH);
        let mut config = Self::new(read_hosts(section, &HOSTS, DEFAULT_PORT));
        config.workers = section.get(&WORKERS).value();
        config.loadbalance = section.get(&LOADBALANCE).value();
        config.bulk_max_size = events(section.get(&BULK_MAX_SIZE)).value();
        config.slow_start = section.get(&SLOW_START).value();
        config.pipelining = section.get(&PIPELINING).value();
        config.compression_level = section.get(&COMPRESSION_LEVEL).value();
        config.escape_html = section.get(&ESCAPE_HTML).value();
        config.index = section.get(&INDEX).optional().filter(|index| !index.is_empty());
        config.timeout = section.get(&TIMEOUT).value();
        config.ttl = section.get(&TTL).value();
        (config.backoff_init, config.backoff_max) = read_backoff(section);
        config.proxy = SocksProxy::read(section);
        config.tls = read_tls(section);
        if config.hosts.is_empty() { None } else { Some(config) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_config::{Problems, Settings};

    fn read(text: &str) -> (Option<Config>, String) {
        let settings = Settings::parse("x", text).unwrap();
        let problems = Problems::new();
        let config = Config::read(&settings.root(&problems));
        (config, problems.to_string())
    }

    #[test]
    fn logstash_settings_have_filebeats_defaults() {
        let (config, problems) = read("hosts: logs");
        let config = config.unwrap();
        assert_eq!(problems, "");
        let host = Host { name: "logs".to_owned(), port: 5044 };
        assert_eq!(config.hosts, [host]);
        assert_eq!((config.workers, config.loadbalance, config.bulk_max_size), (1, false, 2048));
        assert_eq!((config.pipelining, config.slow_start), (2, false));
        assert_eq!((config.compression_level, config.escape_html), (3, false));
        assert_eq!((config.timeout, config.ttl), (Duration::from_secs(30), Duration::ZERO));
        assert_eq!(config.backoff_init, Duration::from_secs(1));
        assert_eq!(config.backoff_max, Duration::from_mins(1));
        assert!(config.index.is_none() && config.proxy.is_none() && config.tls.is_none());
    }

    #[test]
    fn logstash_settings_are_read() {
        let text = "hosts: ['a:1', '[::1]', b]\nworker: 3\nloadbalance: true\nbulk_max_size: -1\n\
                    slow_start: true\npipelining: 0\ncompression_level: 0\nescape_html: true\n\
                    index: mine\ntimeout: 5\nttl: 1m\nbackoff: {init: 2s, max: 3s}\n\
                    proxy_url: 'socks5://u:p@proxy'\nproxy_use_local_resolver: true\n\
                    ssl.verification_mode: none";
        let (config, problems) = read(text);
        let config = config.unwrap();
        assert_eq!(problems, "");
        let hosts: Vec<String> = config.hosts.iter().map(Host::to_string).collect();
        assert_eq!(hosts, ["a:1", "[::1]:5044", "b:5044"]);
        assert_eq!((config.workers, config.loadbalance, config.bulk_max_size), (3, true, 0));
        assert_eq!((config.pipelining, config.slow_start), (0, true));
        assert_eq!((config.compression_level, config.escape_html), (0, true));
        assert_eq!(config.index.as_deref(), Some("mine"));
        assert_eq!((config.timeout, config.ttl), (Duration::from_secs(5), Duration::from_mins(1)));
        assert_eq!(config.backoff_init, Duration::from_secs(2));
        assert_eq!(config.backoff_max, Duration::from_secs(3));
        let proxy = config.proxy.unwrap();
        assert!(proxy.local_resolver && proxy.credentials.is_some());
        assert!(config.tls.is_some());
        assert!(read("hosts: a\nssl: {enabled: false}").0.unwrap().tls.is_none());
        assert_eq!(read("hosts: a\nworkers: 2\nworker: 3").0.unwrap().workers, 2);
        assert!(read("hosts: a\nmax_retries: 1").1.contains("as in Filebeat"));
    }

    #[test]
    fn mistakes_in_logstash_settings_are_told() {
        let table = [
            ("{}", "`hosts` is missing"),
            ("hosts: []", "at least one host"),
            ("hosts: 'http://a'", "a URL; expected `host`"),
            ("hosts: 'u:SECRET@a'", "`hosts` is `u:xxxxx@a`; a URL; expected `host`"),
            ("hosts: ['a:1?k=SECRET']", "`hosts[0]` is `a:1?k=xxxxx`; its port is no number"),
            ("hosts: ['a:1#SECRET']", "`hosts[0]` is `a:1#xxxxx`; its port is no number"),
            ("hosts: ['a:x']", "`hosts[0]` is `a:x`; its port is no number"),
            ("hosts: ['']", "`hosts[0]` is ``; it names no host"),
            ("hosts: a\npipelining: -1", "pipelining"),
            ("hosts: a\ncompression_level: 10", "compression_level"),
            ("hosts: a\nworker: 0", "worker"),
            ("hosts: a\nproxy_url: 'http://p'", "socks5://"),
            ("hosts: a\nproxy_url: 'socks5://u:SECRET@'", "it names no host\nhint: a proxy is"),
            ("hosts: a\nproxy_url: 'socks5://u:SECRET'", "its port is no number"),
            ("hosts: a\nproxy_use_local_resolver: true", "no meaning"),
            ("hosts: a\nlodbalance: true", "loadbalance"),
        ];
        for (text, expected) in table {
            let (_, problems) = read(text);
            assert!(
                problems.contains(expected) && !problems.contains("SECRET"),
                "{text}: {problems}"
            );
        }
    }
}
