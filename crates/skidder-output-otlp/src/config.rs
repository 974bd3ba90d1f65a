//! `output.otlp` from its section of the configuration.

use super::fields::Naming;
use super::resource;
use http::{HeaderName, HeaderValue};
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use skidder_net::{HTTPS, HostUrl, PROXY, ProxyChoice, read_headers, read_https};
use skidder_outputs::{
    BACKOFF, EVERY_OUTPUT, bulk_max_bytes, bulk_max_size, events, loadbalance, read_backoff,
    timeout, workers,
};
use skidder_tls::TlsSettings;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Port of a host with `https` that names none.
const HTTPS_PORT: u16 = 443;

settings! {
    /// Settings of `output.otlp`.
    pub static OTLP = Group::new(
        "output.otlp",
        "Logs to an OpenTelemetry Collector, or to any other receiver of OTLP.",
    )
    .include(&[&BACKOFF, &PROXY, &HTTPS, &EVERY_OUTPUT]);

    HOSTS: Vec<String> = Key::new("hosts").filled()
        .required()
        .noun("a list of hosts, as in `[\"localhost:4317\"]`")
        .about(
            "`[scheme://][user:password@]host[:port][/path]`. Without a scheme: `https` if there is a section `ssl`, \
             else `http`. Without a port: 4317 for gRPC, 4318 for HTTP; 443 behind `https://`. The path is for HTTP \
             only; `/v1/logs` is added to it if it does not end so",
        );
    PROTOCOL: OneOf<Protocol> =
        Key::one_of("protocol", &[("grpc", Protocol::Grpc), ("http/protobuf", Protocol::Http)])
            .default("grpc")
            .about("`grpc`; `http/protobuf`: HTTP/1.1");
    WORKERS: usize = workers("a number of requests", 1024).about(
        "requests under way at once to each host, each over a connection of its own, 1 to 1024",
    );
    LOADBALANCE: bool = loadbalance(true);
    BULK_MAX_SIZE: i64 = bulk_max_size(Config::BULK_MAX_SIZE);
    BULK_MAX_BYTES: Size = bulk_max_bytes(Config::BULK_MAX_BYTES).about(
        "bytes of a request before it is compressed, 1 KiB to 1 GiB: receivers of gRPC take 4 MiB by default. A \
         larger event is sent alone",
    );
    COMPRESSION: OneOf<Compression> = Key::one_of(
        "compression",
        &[("none", Compression::None), ("gzip", Compression::Gzip), ("zstd", Compression::Zstd)],
    )
    .default("gzip")
    .about("`none`, `gzip`, `zstd` (both at level 1)");
    HEADERS: BTreeMap<String, String> = Key::new("headers").secret().about(
        "of every request, as metadata over gRPC; for example `authorization`. Those that belong to the protocol are \
         an error",
    );
    RESOURCE_FIELDS: Vec<String> = Key::<Vec<String>>::new("resource_fields")
        .default(&resource::FIELDS)
        .noun("a list of fields")
        .about(
            "first parts of the names of fields that describe where an event comes from: they go to the `Resource`, \
             all others to the record",
        );
    RESOURCE_ATTRIBUTES: BTreeMap<String, String> = Key::new("resource_attributes").about(
        "more attributes of the `Resource`, with their values; they win over fields of the same name. For example \
         `service.name`, which OpenTelemetry wants and a log file does not have",
    );
    TIMEOUT: Duration = timeout(Config::TIMEOUT).about("of one request, and of connecting");
}

/// How requests travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC, over HTTP/2.
    #[default]
    Grpc,
    /// Protocol Buffers over HTTP/1.1.
    Http,
}

impl Protocol {
    /// Its name in `test output`.
    pub(crate) fn transport(self) -> &'static str {
        match self {
            Self::Grpc => "HTTP/2",
            Self::Http => "HTTP",
        }
    }

    /// Port of a host that names none: those that the protocol is registered for.
    fn port(self) -> u16 {
        match self {
            Self::Grpc => 4317,
            Self::Http => 4318,
        }
    }
}

/// How requests are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// Level 1.
    #[default]
    Gzip,
    /// Level 1.
    Zstd,
}

impl Compression {
    /// Its name in a header.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }
}

/// Settings of `output.otlp`. Names are those of the YAML.
#[derive(Clone, Debug)]
pub struct Config {
    /// `hosts`.
    pub hosts: Vec<HostUrl>,
    /// `protocol`.
    pub protocol: Protocol,
    /// `workers`: requests under way at once, to each host.
    pub workers: usize,
    /// `loadbalance`: all hosts at once, or one until it fails.
    pub loadbalance: bool,
    /// `bulk_max_size`: most events of a request; 0 = the queue decides.
    pub bulk_max_size: usize,
    /// `bulk_max_bytes`: most bytes of a request before it is compressed.
    pub bulk_max_bytes: usize,
    /// `compression`.
    pub compression: Compression,
    /// `headers` of every request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The names in `resource_fields` and `resource_attributes`.
    pub(crate) naming: Arc<Naming>,
    /// `timeout` of connecting, and of a request.
    pub timeout: Duration,
    /// `backoff.init`.
    pub backoff_init: Duration,
    /// `backoff.max`.
    pub backoff_max: Duration,
    /// `proxy_url`, `proxy_headers` and `proxy_disable`, or the environment.
    pub proxy: ProxyChoice,
    /// `ssl`, for hosts with `https`.
    pub tls: TlsSettings,
}

impl Config {
    /// Default of `bulk_max_size`.
    pub const BULK_MAX_SIZE: usize = 2048;
    /// Default of `bulk_max_bytes`: gRPC servers take 4 MiB by default.
    pub const BULK_MAX_BYTES: usize = 3 << 20;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(30);
    /// Default of `backoff.init`.
    pub const BACKOFF_INIT: Duration = Duration::from_secs(1);
    /// Default of `backoff.max`.
    pub const BACKOFF_MAX: Duration = Duration::from_mins(1);

    /// The defaults, for these servers.
    pub fn new(hosts: Vec<HostUrl>) -> Self {
        Self {
            hosts,
            protocol: Protocol::default(),
            workers: 1,
            loadbalance: true,
            bulk_max_size: Self::BULK_MAX_SIZE,
            bulk_max_bytes: Self::BULK_MAX_BYTES,
            compression: Compression::default(),
            headers: Vec::new(),
            naming: Arc::new(Naming {
                resource_fields: resource::FIELDS.map(str::to_owned).to_vec(),
                resource_attributes: Vec::new(),
            }),
            timeout: Self::TIMEOUT,
            backoff_init: Self::BACKOFF_INIT,
            backoff_max: Self::BACKOFF_MAX,
            proxy: ProxyChoice::Direct,
            tls: TlsSettings::default(),
        }
    }

    /// Reads `output.otlp`; reports mistakes to the section's problems. `None` if no host is named.
    pub fn read(section: &Section<'_>) -> Option<Self> {
        section.declared_by(&OTLP);
        let protocol = section.get(&PROTOCOL).value();
        let tls = read_https(section);
        let is_encrypted = section.has("ssl") && tls.enabled;
        let mut config = Self::new(read_hosts(section, protocol, is_encrypted));
        config.protocol = protocol;
        config.tls = tls;
        config.workers = section.get(&WORKERS).value();
        config.loadbalance = section.get(&LOADBALANCE).value();
        config.bulk_max_size = events(section.get(&BULK_MAX_SIZE)).value();
        config.bulk_max_bytes = section.get(&BULK_MAX_BYTES).value() as usize;
        config.compression = section.get(&COMPRESSION).value();
        config.headers = read_headers(section, &HEADERS);
        for (name, _) in config.headers.iter().filter(|(name, _)| is_ours(name)) {
            let message = format!("`{name}` is no header to choose: it belongs to the protocol");
            section.problem("headers", message, "");
        }
        config.naming = Arc::new(read_naming(section));
        config.timeout = section.get(&TIMEOUT).value();
        (config.backoff_init, config.backoff_max) = read_backoff(section);
        config.proxy = ProxyChoice::read(section, |name| std::env::var(name).ok());
        if config.hosts.is_empty() {
            return None;
        }
        if is_encrypted && !config.hosts.iter().any(|host| host.https) {
            let message = "no host is encrypted: all of them say `http://`";
            section.warning("ssl", message, "write `https://`, or no scheme, in `hosts`");
        }
        Some(config)
    }
}

fn read_hosts(section: &Section<'_>, protocol: Protocol, is_encrypted: bool) -> Vec<HostUrl> {
    let scheme = if is_encrypted { "https" } else { "http" };
    let parse = |text: &String| {
        if text.contains(['?', '#']) {
            return Err("expected no query, which OTLP has no use for".to_owned());
        }
        let is_url = text.contains("://");
        let port = |https| if https && is_url { HTTPS_PORT } else { protocol.port() };
        let host = HostUrl::parse(text, scheme, "", port)?;
        if protocol == Protocol::Grpc && !host.path.is_empty() {
            let message = "expected no path: gRPC has no use for it, `protocol: http/protobuf` has";
            return Err(message.to_owned());
        }
        Ok(host)
    };
    let parse_all = |texts: Vec<String>| {
        if texts.is_empty() {
            return Err("expected at least one host".to_owned());
        }
        texts.iter().map(parse).collect()
    };
    section.get(&HOSTS).try_map(parse_all).required()
}

/// Whether a header is one that the protocol itself has.
fn is_ours(name: &HeaderName) -> bool {
    const NAMES: [&str; 11] = [
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.contains(&name.as_str()) || name.as_str().starts_with("grpc-")
}

fn read_naming(section: &Section<'_>) -> Naming {
    let is_key = |fields: Vec<String>| {
        let wrong = fields.iter().find(|field| field.is_empty() || field.contains('.'));
        match wrong {
            Some(field) => {
                Err(format!("`{field}` is no first part of a name, as `host` is of `host.name`"))
            }
            None => Ok(fields),
        }
    };
    let attributes = section.get(&RESOURCE_ATTRIBUTES).optional().unwrap_or_default();
    Naming {
        resource_fields: section.get(&RESOURCE_FIELDS).try_map(is_key).value(),
        resource_attributes: attributes.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests;
