//! `lumberjack`: events of Beats, Elastic Agent, Logstash and Camel, which are answered when they have their verdicts.
//!
//! Settings and fields are Filebeat's (x-pack/filebeat/input/lumberjack, which its documentation does not list): the event
//! that was sent is the object `lumberjack`. With an empty `target` of ours it is the event itself.
//!
//! Nothing is lost: a window of events gets its answer when the last of them has its verdict, and a client sends again what
//! has none. A stop, a reload, and a connection that breaks therefore repeat what was in flight.

mod acks;
mod connection;
mod decode;
#[cfg(test)]
mod filebeat_tests;
mod frames;
mod server;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::bind::{no_hosts, parse_host};
use crate::common::{EVERY_INPUT, begin};
use crate::listen::{ListenPlace, StreamAddress, read_tls};
use crate::stream::{MESSAGE_BYTES_LIMIT, MESSAGE_BYTES_MAX};
use frames::Version;
use server::Lumberjack;
use skidder_config::{Group, Key, Part, Section, Size, settings};
use skidder_event::Path;
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, RealNetwork, SocketKey};
use skidder_tls::SSL_SERVER;
use std::sync::Arc;
use std::time::Duration;

/// The name of the type.
const KIND: &str = "lumberjack";

/// `keepalive` and `timeout` of go-lumber, which are in force in Filebeat with 0, too.
const KEEPALIVE_DEFAULT: Duration = Duration::from_secs(3);
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

settings! {
    /// Settings of `lumberjack`.
    pub static LUMBERJACK =
        Group::new("input.lumberjack", "Events over the protocol of Beats and Logstash.")
            .include(&[&EVERY_INPUT])
            .called_elsewhere(&[
                ("address", "listen_address", ""),
                ("bind", "listen_address", ""),
                ("host", "listen_address", ""),
                ("listen", "listen_address", ""),
                ("port", "listen_address", "it stands in `listen_address`, as in `localhost:5044`"),
                ("tls", "ssl", ""),
            ]);

    LISTEN_ADDRESS: String = Key::new("listen_address")
        .default("localhost:5044")
        .about("`host:port`, `[v6]:port`; `:port` is every address of both IP versions");
    VERSIONS: Vec<String> = Key::<Vec<String>>::new("versions")
        .default(&["v1", "v2"])
        .about("of the protocol; a connection that speaks another one is closed");
    KEEPALIVE: Duration = Key::new("keepalive").default(Duration::ZERO).default_words("3 s").about(
        "how often a client of version 2 that waits for its answer gets a 0, which means not yet; 0: the default",
    );
    TIMEOUT: Duration = Key::new("timeout").default(Duration::ZERO).default_words("30 s").about(
        "a connection is closed when nothing of a window that has begun comes for so long, or an answer cannot be \
         written; 0: the default",
    );
    MAX_CONNECTIONS: u64 = Key::new("max_connections")
        .default(0)
        .noun("a number of connections")
        .about("0 is no limit; further clients wait");
    SSL: Part = Key::part("ssl", &SSL_SERVER).about(
        "[TLS](outputs.md#ssl) with `certificate` and `key`; `client_authentication`: `none`, `optional`, `required` \
         (default if there are `certificate_authorities`)",
    );
    MAX_MESSAGE_SIZE: Size = Key::new("max_message_size").ours()
        .default(MESSAGE_BYTES_MAX)
        .range(1, MESSAGE_BYTES_LIMIT)
        .about("1 byte to 512 MiB; a connection with a longer event, decompressed, is closed");
    TARGET: String = Key::new("target").ours().default("lumberjack").about(
        "where the event that was sent goes; an empty text: it is the event, with its `@timestamp` and `@metadata`",
    );
}

/// The settings that the connections share.
#[derive(Clone, Debug)]
struct Settings {
    versions: Vec<Version>,
    keepalive: Duration,
    timeout: Duration,
    event_bytes_max: usize,
    /// Nothing: the event is the one that was sent.
    target: Option<Path>,
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &LUMBERJACK);
    let versions = section.get(&VERSIONS).try_each(|name| {
        let known = Version::WORDS.iter().find(|(word, _)| word.eq_ignore_ascii_case(name));
        known.map(|(_, version)| *version).ok_or("expected `v1` or `v2`".to_owned())
    });
    let mut versions = versions.value();
    let or = |span: Duration, default| if span.is_zero() { default } else { span };
    let keepalive = or(section.get(&KEEPALIVE).value(), KEEPALIVE_DEFAULT);
    let timeout = or(section.get(&TIMEOUT).value(), TIMEOUT_DEFAULT);
    let connections_max = section.get(&MAX_CONNECTIONS).value();
    let most = section.get(&MAX_MESSAGE_SIZE).value();
    let target = section.get(&TARGET).try_map(|text| match &*text {
        "" => Ok(None),
        path => Path::parse(path).map(Some).map_err(|error| error.to_string()),
    });
    let target = target.value();
    no_hosts(section, LISTEN_ADDRESS.name());
    let tls = read_tls(section, &SSL, context, &[]);
    let device = section.get(&LISTEN_ADDRESS).value();
    let (host, port) = parse_host(section, LISTEN_ADDRESS.name(), &device)?;
    let tls = tls.ok()?;
    if versions.is_empty() {
        // As in Filebeat, whose library has both then.
        versions = vec![Version::One, Version::Two];
    }
    let settings = Settings {
        versions,
        keepalive,
        timeout,
        event_bytes_max: usize::try_from(most).ok()?,
        target,
    };
    let key = SocketKey::Tcp { host: host.clone(), port, family: Family::Any };
    let place = ListenPlace {
        address: StreamAddress::Tcp { host, port, family: Family::Any },
        claim: context.claim(section, LISTEN_ADDRESS.name(), key),
        network: Arc::new(RealNetwork),
    };
    let connections_max = usize::try_from(connections_max).unwrap_or(usize::MAX);
    let fs = Arc::clone(&context.fs);
    Some(Box::new(Lumberjack { place, settings, tls, connections_max, fs, device }))
}

impl Input for Lumberjack {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn relays(&self) -> bool {
        self.settings.target.is_none()
    }

    fn address(&self) -> Option<&str> {
        Some(&self.device)
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(self.serve(intake))
    }
}
