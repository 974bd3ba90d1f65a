//! `output.logstash` from its section of the configuration.

use crate::settings::{read_bulk_max_size, read_workers};
use skidder_config::Section;
use skidder_net::{Host, SocksProxy, read_hosts, read_tls};
use skidder_tls::TlsSettings;
use std::time::Duration;

/// Port of a host that names none.
const DEFAULT_PORT: u16 = 5044;

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

    /// Reads `output.logstash`; mistakes are told to the section's problems. `None` if no host is named.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        section.deprecated(
            &["max_retries"],
            "events are sent until they are accepted, as in Filebeat",
        );
        let mut config = Self::new(read_hosts(section, DEFAULT_PORT));
        config.workers = read_workers(section, "a number of connections", 1024);
        config.loadbalance = section.bool("loadbalance").or(false);
        config.bulk_max_size = read_bulk_max_size(section, Self::BULK_MAX_SIZE);
        config.slow_start = section.bool("slow_start").or(false);
        config.pipelining = section
            .usize("pipelining")
            .named("a number of windows")
            .range(0..=1024)
            .or(Self::PIPELINING);
        config.compression_level = section
            .u32("compression_level")
            .named("a level")
            .range(0..=9)
            .or(Self::COMPRESSION_LEVEL);
        config.escape_html = section.bool("escape_html").or(false);
        config.index = section.string("index").optional().filter(|index| !index.is_empty());
        let positive = Duration::from_millis(1)..;
        config.timeout = section.duration("timeout").range(positive.clone()).or(Self::TIMEOUT);
        config.ttl = section.duration("ttl").or(Duration::ZERO);
        config.backoff_init =
            section.duration("backoff.init").range(positive.clone()).or(Self::BACKOFF_INIT);
        config.backoff_max = section.duration("backoff.max").range(positive).or(Self::BACKOFF_MAX);
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
        let (config, told) = read("hosts: logs");
        let config = config.unwrap();
        assert_eq!(told, "");
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
        let (config, told) = read(text);
        let config = config.unwrap();
        assert_eq!(told, "");
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
            let (_, told) = read(text);
            assert!(told.contains(expected) && !told.contains("SECRET"), "{text}: {told}");
        }
    }
}
