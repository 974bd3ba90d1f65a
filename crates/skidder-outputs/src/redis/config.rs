//! `output.redis` from its section of the configuration.

use crate::codec::{CodecConfig, WITH_CODEC};
use crate::selector::{RULE, Selector};
use crate::settings::{self, BACKOFF, EVERY_OUTPUT, events, read_backoff};
use skidder_config::{Group, Key, OneOf, Parts, Secret, Section, settings};
use skidder_event::Format;
use skidder_net::{SOCKS, SocksProxy, TLS, WithoutTls, read_tls};
use skidder_redis::Server;
use skidder_tls::TlsSettings;
use std::time::Duration;

mod rule {
    use super::*;

    settings! {
        /// An item of `keys`.
        pub(super) static KEYS_ITEM = Group::new("output.redis.keys", "A rule that gives a key.").include(&[&RULE]);

        pub(super) KEY: String = Key::new("key").required().noun("a format string").about("the key: a format string");
    }
}

settings! {
    /// Settings of `output.redis`.
    pub static REDIS = Group::new("output.redis", "Lists or channels of Redis.")
        .include(&[&WITH_CODEC, &BACKOFF, &SOCKS, &TLS, &EVERY_OUTPUT]);

    HOSTS: Vec<String> = Key::new("hosts").filled().required().noun("a list of hosts, as in `[\"localhost\"]`").about(
        "`[redis[s]://][[user]:password@]host[:6379][/db]`; what the URL has wins; `rediss` is TLS",
    );
    INDEX: String = Key::new("index")
        .default_words("`filebeat`")
        .about("`@metadata.beat`, lower-cased, and `key` where that is not set");
    KEY: String = Key::new("key")
        .default_words("as `index`")
        .noun("a format string")
        .about("list or channel: a format string");
    KEYS: Parts = Key::parts("keys", &rule::KEYS_ITEM).about(
        "rules before `key`: items with `key`, and if wanted `when`, `mappings`, `default`; the first that gives a \
         name wins",
    );
    DATATYPE: OneOf<DataType> =
        Key::one_of("datatype", &[("list", DataType::List), ("channel", DataType::Channel)])
            .default("list")
            .about("`list`: `RPUSH`; `channel`: `PUBLISH`, which may have no subscriber");
    USERNAME: String =
        Key::new("username").default("").about("needs `password`; without it, a server without users");
    PASSWORD: Secret = Key::new("password").about("of the user, or of a server without users");
    DB: u32 = Key::new("db").default(0).hidden().noun("the number of a database").about(
        "number of the database",
    );
    WORKERS: usize = settings::workers("a number of connections", 1024)
        .about("connections for each host, 1 to 1024, with `loadbalance`");
    LOADBALANCE: bool = settings::loadbalance(true);
    BULK_MAX_SIZE: i64 = settings::bulk_max_size(Config::BULK_MAX_SIZE).about("events of a request; 0 or less: the queue decides");
    TIMEOUT: Duration = settings::timeout(Config::TIMEOUT).about("of connecting, and of each answer");
}

/// `datatype`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataType {
    /// `list`: events are appended to a list (`RPUSH`).
    #[default]
    List,
    /// `channel`: events are published (`PUBLISH`); clients that are not subscribed never see them.
    Channel,
}

impl DataType {
    /// The command that brings events.
    pub(crate) fn command(self) -> &'static str {
        match self {
            Self::List => "RPUSH",
            Self::Channel => "PUBLISH",
        }
    }
}

/// Settings of `output.redis`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `hosts`.
    pub servers: Vec<Server>,
    /// `index`, which becomes `@metadata.beat`, and `key` where that is not set; `None` for the name of the beat.
    pub index: Option<String>,
    /// `keys` and `key`: the list or channel of an event.
    pub key: Selector,
    /// `datatype`.
    pub datatype: DataType,
    /// `codec`.
    pub codec: CodecConfig,
    /// `username`; without one, `password` alone is shown.
    pub username: String,
    /// `password`.
    pub password: Option<Secret>,
    /// `db`.
    pub db: u32,
    /// `workers`: connections for each host.
    pub workers: usize,
    /// `loadbalance`: all hosts at once, or one until it fails.
    pub loadbalance: bool,
    /// `bulk_max_size`: most events of a request; 0 = the queue decides.
    pub bulk_max_size: usize,
    /// `timeout`: of connecting, and of each answer.
    pub timeout: Duration,
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
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

    /// The defaults, for these servers and this key.
    pub fn new(servers: Vec<Server>, key: Format) -> Self {
        Self {
            servers,
            index: None,
            key: Selector::of("key", key),
            datatype: DataType::List,
            codec: CodecConfig::default(),
            username: String::new(),
            password: None,
            db: 0,
            workers: 1,
            loadbalance: true,
            bulk_max_size: Self::BULK_MAX_SIZE,
            timeout: Self::TIMEOUT,
            backoff_init: Self::BACKOFF_INIT,
            backoff_max: Self::BACKOFF_MAX,
            proxy: None,
            tls: None,
        }
    }

    /// Reads `output.redis`; reports mistakes to the section's problems. `None` if one of them leaves nothing
    /// to do. `beat` is the default of `index`.
    pub fn read(section: &Section<'_>, beat: &str) -> Option<Self> {
        section.declared_by(&REDIS);
        let hosts = section.get(&HOSTS);
        let servers = hosts.try_each(Server::parse).at_least_one("host").required();
        let index = section.get(&INDEX).optional().filter(|index| !index.is_empty());
        let default = Format::parse(index.as_deref().unwrap_or(beat)).map_err(|e| e.to_string());
        let default = match default {
            Ok(format) => format,
            Err(error) => {
                section.problem("index", format!("`index` is no format string: {error}"), "");
                return None;
            }
        };
        let mut config = Self::new(servers, default.clone());
        config.key = Selector::read(section, &KEYS, &rule::KEY, &KEY).or(default);
        config.index = index;
        config.datatype = section.get(&DATATYPE).value();
        config.codec = CodecConfig::read(section, false);
        config.username = section.get(&USERNAME).value();
        config.password = section.get(&PASSWORD).optional();
        if config.password.is_none() && !config.username.is_empty() {
            section.problem("username", "`username` needs `password`", "");
        }
        config.db = section.get(&DB).value();
        config.workers = section.get(&WORKERS).value();
        config.loadbalance = section.get(&LOADBALANCE).value();
        config.bulk_max_size = events(section.get(&BULK_MAX_SIZE)).value();
        config.timeout = section.get(&TIMEOUT).value();
        (config.backoff_init, config.backoff_max) = read_backoff(section);
        config.proxy = SocksProxy::read(section);
        config.tls = read_tls(section);
        if config.tls.is_some() && Server::are_plain(&config.servers) {
            WithoutTls::Redis.warn_of_plain(section);
        }
        if config.servers.is_empty() { None } else { Some(config) }
    }

    /// Whether the connection to a server is encrypted.
    pub(crate) fn encrypts(&self, server: &Server) -> bool {
        server.tls.unwrap_or(self.tls.is_some())
    }
}

#[cfg(test)]
mod tests;
