//! `netflow`: flows that routers, switches and probes report in datagrams, as NetFlow 1, 5 to 9, IPFIX or sFlow 5.
//!
//! Settings, fields and their types are Filebeat's (x-pack/filebeat/input/netflow). What is ours: sFlow; data that
//! comes before its template waits for it, and templates survive a restart.

mod definitions;
mod ends;
mod event;
mod exporters;
mod keep;
mod keys;
mod reports;
mod roles;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::bind::{no_hosts, read_host};
use crate::common::{EVERY_INPUT, begin};
use crate::datagram::{
    BACKLOG_BYTES_MAX, DatagramAddress, DatagramServer, Kept, MakeSink, Settings, Sink,
};
use event::Internal;
use exporters::Exporters;
use keep::Place;
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, RealNetwork, SocketKey};
use skidder_netflow::{CustomField, Fields, Protocol, Settings as DecoderSettings};
use skidder_os::read_to_end;
use skidder_processors::Network;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use twox_hash::XxHash64;

/// The name of the type.
const KIND: &str = "netflow";

/// Default of `host`.
const HOST: &str = ":2055";

/// Default of `max_message_size`.
const MESSAGE_BYTES_MAX: u64 = 10 << 10;

/// No datagram of UDP is longer.
const MESSAGE_BYTES_LIMIT: u64 = 64 << 10;

/// Default of `read_buffer`.
const READ_BUFFER: u64 = 8 << 20;

/// Most that `read_buffer` may be.
const READ_BUFFER_LIMIT: u64 = 1 << 30;

/// Default of `expiration_timeout`.
const EXPIRATION: Duration = Duration::from_mins(30);

/// Bytes of a file of `custom_definitions`.
const DEFINITIONS_BYTES_MAX: usize = 4 << 20;

settings! {
    /// Settings of `netflow`.
    pub static NETFLOW = Group::new("input.netflow", "Flows in datagrams: NetFlow 1, 5 to 9, IPFIX, sFlow.")
        .include(&[&EVERY_INPUT])
        .without_effect(&[
            // Filebeat reads it and does nothing with it.
            ("timeout", "datagrams have no connection that could be idle"),
            ("queue_size", "packets are decoded as they come; what waits is bounded by `read_buffer`"),
            ("workers", "one thread receives and decodes the packets of a socket"),
        ])
        .called_elsewhere(&[
            ("address", "host", ""),
            ("bind", "host", ""),
            ("listen", "host", ""),
            ("listen_address", "host", ""),
            ("port", "host", "it stands in `host`, as in `0.0.0.0:2055`"),
            ("versions", "protocols", "did you mean `protocols`? As in `protocols: [v9, ipfix]`"),
        ]);

    LISTEN: String = Key::new("host").default(HOST).about("where packets arrive: `HOST:PORT`");
    NETWORK: OneOf<Family> = Key::one_of(
        "network",
        &[("udp", Family::Any), ("udp4", Family::V4), ("udp6", Family::V6)],
    )
    .default("udp")
    .about("`udp4` and `udp6`: only that version");
    MAX_MESSAGE_SIZE: Size = Key::new("max_message_size")
        .default(MESSAGE_BYTES_MAX)
        .range(1, MESSAGE_BYTES_LIMIT)
        .about("1 byte to 64 KiB; of a longer packet the beginning is decoded, and an error is counted");
    READ_BUFFER_SIZE: Size = Key::new("read_buffer")
        .default(READ_BUFFER)
        .range(0, READ_BUFFER_LIMIT)
        .differs("Filebeat: that of the system")
        .about(
            "receive buffer of the socket, at most 1 GiB; 0 is that of the system. More than \
             `net.core.rmem_max` needs `CAP_NET_ADMIN`; a warning says when less was given",
        );
    PROTOCOLS: Vec<String> = Key::<Vec<String>>::new("protocols")
        .default(&["v5", "v9", "ipfix"])
        .about("of `v1`, `v5`, `v6`, `v7`, `v8`, `v9`, `ipfix`, and ours: `sflow`; packets of others are errors");
    EXPIRATION_TIMEOUT: Duration = Key::new("expiration_timeout")
        .default(EXPIRATION)
        .at_least(Duration::ZERO)
        .about("a template that was not used for so long is forgotten; `0`: none");
    DETECT_SEQUENCE_RESET: bool = Key::new("detect_sequence_reset")
        .default(true)
        .about("templates of an exporter are forgotten when its sequence numbers go back by 1000 or more");
    SHARE_TEMPLATES: bool = Key::new("share_templates")
        .default(false)
        .about("templates are those of all exporters with the same source ID, whatever their address");
    CUSTOM_DEFINITIONS: Vec<String> = Key::<Vec<String>>::new("custom_definitions")
        .default(&[])
        .about("files with fields of your own, in the format of Logstash's codec `netflow`");
    INTERNAL_NETWORKS: Vec<String> = Key::<Vec<String>>::new("internal_networks")
        .default(&["private"])
        .about("networks whose addresses are `internal`: CIDR, or a name as in the condition `network`");
}

/// The input.
#[derive(Debug)]
struct Netflow(DatagramServer);

/// What makes events of packets.
#[derive(Debug)]
struct Make {
    decoder: DecoderSettings,
    internal: Internal,
    place: Option<Arc<Place>>,
}

impl MakeSink for Make {
    fn make(&self, intake: Intake, shown: &str, kept: Option<Kept>) -> Box<dyn Sink> {
        let parts = (self.decoder.clone(), self.internal.clone(), self.place.clone());
        Box::new(Exporters::new(intake, shown, kept, parts))
    }
}

/// Reads the settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &NETFLOW);
    no_hosts(section, "host");
    let device = section.get(&LISTEN).hint("as in `host: \"0.0.0.0:2055\"`").value();
    let family = section.get(&NETWORK).value();
    let message_bytes_max = section.get(&MAX_MESSAGE_SIZE).value() as usize;
    let read_buffer = section.get(&READ_BUFFER_SIZE).value() as usize;
    let protocols = read_protocols(section);
    let internal = read_networks(section);
    let custom = read_definitions(section, context);
    let expiration = section.get(&EXPIRATION_TIMEOUT).value();
    let detect_reset = section.get(&DETECT_SEQUENCE_RESET).value();
    let share_templates = section.get(&SHARE_TEMPLATES).value();
    let (host, port) = read_host(section, &device)?;
    let fields = Fields::known().with(custom?);
    let decoder = DecoderSettings {
        protocols: protocols?,
        fields,
        expiration,
        detect_reset,
        share_templates,
    };
    let place = context.data.as_deref().map(|data| place(data, &device, context));
    let make = Make { decoder, internal: internal?, place };
    let key = SocketKey::Udp { host: host.clone(), port, family };
    let settings = Settings {
        message_bytes_max,
        read_buffer,
        backlog_bytes_max: BACKLOG_BYTES_MAX,
        device,
        on_batch: None,
        sink: Some(Arc::new(make)),
    };
    let claim = context.claim(section, LISTEN.name(), key);
    let address = DatagramAddress::Udp { host, port, family };
    let network = Arc::new(RealNetwork);
    Some(Box::new(Netflow(DatagramServer { address, claim, settings, network })))
}

/// The file of the templates that come to an address.
fn place(data: &Path, device: &str, context: &Context) -> Arc<Place> {
    let name = format!("netflow-{:016x}.templates", XxHash64::oneshot(0, device.as_bytes()));
    let (fs, clock) = (Arc::clone(&context.fs), Arc::clone(&context.clock));
    Arc::new(Place { fs, clock, path: data.join(name) })
}

fn read_protocols(section: &Section<'_>) -> Option<Vec<Protocol>> {
    let name = PROTOCOLS.name();
    let words = section.get(&PROTOCOLS).value();
    let path = section.path_of(name);
    let hint = "use `v1`, `v5`, `v6`, `v7`, `v8`, `v9`, `ipfix` or `sflow`";
    if words.is_empty() {
        section.problem(name, format!("`{path}` is empty"), hint);
        return None;
    }
    let mut protocols = Vec::new();
    let mut is_right = true;
    for word in &words {
        let known = Protocol::WORDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        match known {
            Some((_, protocol)) => protocols.push(*protocol),
            None => {
                section.problem(name, format!("`{path}`: there is no protocol `{word}`"), hint);
                is_right = false;
            }
        }
    }
    is_right.then_some(protocols)
}

fn read_networks(section: &Section<'_>) -> Option<Internal> {
    let name = INTERNAL_NETWORKS.name();
    let path = section.path_of(name);
    let (mut networks, mut is_right) = (Vec::new(), true);
    for text in section.get(&INTERNAL_NETWORKS).value() {
        match Network::parse(&text) {
            Ok(network) => networks.push(network),
            Err(error) => {
                section.problem(name, format!("`{path}`: {error}"), "");
                is_right = false;
            }
        }
    }
    is_right.then_some(Internal(networks))
}

fn read_definitions(section: &Section<'_>, context: &Context) -> Option<Vec<CustomField>> {
    let name = CUSTOM_DEFINITIONS.name();
    let path = section.path_of(name);
    let (mut all, mut is_right) = (Vec::new(), true);
    for file in section.get(&CUSTOM_DEFINITIONS).value() {
        let bytes = context.fs.open(&PathBuf::from(&file));
        let bytes = bytes.and_then(|file| read_to_end(&*file, DEFINITIONS_BYTES_MAX));
        let fields = bytes.map_err(|error| error.to_string()).and_then(|bytes| {
            let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
            definitions::read(&file, &text)
        });
        match fields {
            Ok(fields) => all.extend(fields),
            Err(error) => {
                section.problem(name, format!("`{path}`: `{file}`: {error}"), "");
                is_right = false;
            }
        }
    }
    is_right.then_some(all)
}

impl Input for Netflow {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.0.settings.device)
    }

    fn stops_last(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(self.0.run(intake))
    }
}
