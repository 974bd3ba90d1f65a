//! Settings of `output.elasticsearch`, checked.

use crate::setup::Setup;
use http::{HeaderName, HeaderValue};
use skidder_config::Secret;
use skidder_event::Format;
use skidder_net::{HostUrl, ProxyChoice};
use skidder_outputs::Rules;
use skidder_tls::TlsSettings;
use std::sync::Arc;
use std::time::Duration;

/// How a request is authenticated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Not at all.
    #[default]
    None,
    /// `username` and `password`.
    Basic(String, Secret),
    /// `api_key`, as `id:key`.
    ApiKey(Secret),
}

/// How `@metadata` of events steers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Steering {
    /// Index, pipeline, `_id` and operation.
    #[default]
    All,
    /// The pipeline: in trials all events go to one index.
    Pipeline,
    /// Nothing.
    Nothing,
}

/// Which sizes are `auto`: found while events are sent, from where the setting stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Auto {
    /// `worker: auto`.
    pub workers: bool,
    /// `bulk_max_size: auto`.
    pub events: bool,
    /// `compression_level: auto`.
    pub level: bool,
}

impl Auto {
    /// Whether any of them is.
    pub fn any(self) -> bool {
        self.workers || self.events || self.level
    }
}

/// Settings of `output.elasticsearch`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `hosts`, with `protocol` and `path` worked in.
    pub hosts: Vec<HostUrl>,
    /// `workers`: connections for each host.
    pub workers: usize,
    /// `loadbalance`: all hosts at once, or one until it fails.
    pub loadbalance: bool,
    /// `bulk_max_size`: most events of a request; 0 = the queue decides.
    pub bulk_max_size: usize,
    /// `bulk_max_bytes`, our own: most uncompressed bytes of a request. More makes fewer requests and
    /// needs more memory: up to two of them for each worker.
    pub bulk_max_bytes: usize,
    /// `compression_level`: 0 off, 1 fast to 9 small.
    pub compression_level: u32,
    /// Which of `workers`, `bulk_max_size` and `compression_level` are where the search begins.
    pub auto: Auto,
    /// `username` and `password`, or `api_key`. Those of a URL win.
    pub credentials: Credentials,
    /// `kerberos`, instead of these.
    pub kerberos: Option<skidder_kerberos::Settings>,
    /// `parameters` of the bulk request's query.
    pub parameters: Vec<(String, String)>,
    /// `headers` of every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `timeout` of one request, and of connecting.
    pub timeout: Duration,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
    /// `idle_connection_timeout`.
    pub idle_connection_timeout: Duration,
    /// `indices`: rules before `index`.
    pub indices: Rules,
    /// `index`.
    pub index: Format,
    /// `pipelines`: rules before `pipeline`.
    pub pipelines: Rules,
    /// `pipeline`.
    pub pipeline: Option<Format>,
    /// `non_indexable_policy.dead_letter_index.index`: where events go that the server refuses; those that it
    /// refuses there too, or without one, go to the dead letters.
    pub dead_letter_index: Option<String>,
    /// How `@metadata` of events steers them.
    pub steering: Steering,
    /// The setup of servers before events come; none if `index` is another one than that of the template.
    pub setup: Option<Arc<Setup>>,
    /// `exactly_once`, our own: each event has an `_id` made from the place where it was read.
    pub exactly_once: bool,
    /// `escape_html`: `<`, `>` and `&` of documents are escaped.
    pub escape_html: bool,
    /// `proxy_url`, `proxy_headers` and `proxy_disable`, or the environment.
    pub proxy: ProxyChoice,
    /// `allow_older_versions`: also servers older than `agent.version`.
    pub allow_older_versions: bool,
    /// `ssl`, for hosts with `https`.
    pub tls: TlsSettings,
}

impl Config {
    /// Default of `bulk_max_size`.
    pub const BULK_MAX_SIZE: usize = 1600;
    /// Default of `bulk_max_bytes`: large enough that 1600 usual events go in one request, and far
    /// below the 100 MB that Elasticsearch takes.
    pub const BULK_MAX_BYTES: usize = 8 << 20;
    /// Default of `compression_level`.
    pub const COMPRESSION_LEVEL: u32 = 1;
    /// Most requests under way at once to a host with `worker: auto`.
    pub const WORKERS_MAX: usize = 16;
    /// Fewest and most events of a request with `bulk_max_size: auto`.
    pub const AUTO_EVENTS: (usize, usize) = (50, 25_600);
    /// Events of the first request with `bulk_max_size: auto`.
    pub const AUTO_EVENTS_FIRST: usize = 400;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(90);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);
    /// Default of `idle_connection_timeout`.
    pub const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(3);
    /// Default of `index`.
    pub const INDEX: &str = "filebeat-%{[agent.version]}";

    /// The defaults, for these servers.
    pub fn new(hosts: Vec<HostUrl>) -> Self {
        Self {
            hosts,
            workers: 1,
            loadbalance: true,
            bulk_max_size: Self::BULK_MAX_SIZE,
            bulk_max_bytes: Self::BULK_MAX_BYTES,
            compression_level: Self::COMPRESSION_LEVEL,
            auto: Auto::default(),
            credentials: Credentials::None,
            parameters: Vec::new(),
            kerberos: None,
            headers: Vec::new(),
            timeout: Self::TIMEOUT,
            backoff_init: Self::BACKOFF_INIT,
            backoff_max: Self::BACKOFF_MAX,
            idle_connection_timeout: Self::IDLE_CONNECTION_TIMEOUT,
            indices: Rules::default(),
            index: Format::parse(Self::INDEX).expect("the default is a format string"),
            pipelines: Rules::default(),
            pipeline: None,
            dead_letter_index: None,
            steering: Steering::All,
            setup: None,
            exactly_once: false,
            escape_html: false,
            proxy: ProxyChoice::Direct,
            allow_older_versions: true,
            tls: TlsSettings::default(),
        }
    }
}
