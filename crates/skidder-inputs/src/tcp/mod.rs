//! `tcp`: messages over TCP, plain or with TLS.
//!
//! Settings and fields are Filebeat's (filebeat/input/net/tcp, filebeat/inputsource/tcp).

#[cfg(test)]
mod clients;
#[cfg(test)]
mod cost;
#[cfg(test)]
mod tests;

use crate::Context;
use crate::bind::{no_hosts, read_host};
use crate::common::{EVERY_INPUT, FORMAT_OF_SYSLOG, WORKERS, begin, read_workers};
use crate::listen::{ListenPlace, StreamAddress, read_tls};
use crate::stream::{CONNECTIONS, StreamServer, StreamSettings, serve};
use skidder_config::{Group, Key, OneOf, Part, Section, settings};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, RealNetwork, SocketKey};
use skidder_tls::SSL_SERVER;
use std::sync::Arc;

/// The name of the type.
const KIND: &str = "tcp";

mod server {
    use super::*;

    settings! {
        /// Settings of a server of TCP.
        pub static TCP_SERVER = Group::new("input.tcp.server", "A server of TCP.")
            .include(&[&CONNECTIONS])
            .called_elsewhere(&[
                ("address", "host", ""),
                ("bind", "host", ""),
                ("listen", "host", ""),
                ("listen_address", "host", ""),
                ("port", "host", "it stands in `host`, as in `localhost:9000`"),
                ("tls", "ssl", ""),
            ]);

        pub(super) HOST: String = Key::new("host")
            .required()
            .noun("an address to listen on, as in `localhost:9000`")
            .about("`host:port`, `[v6]:port`; `:port` is every address of both IP versions");
        pub(super) NETWORK: OneOf<Family> = Key::one_of(
            "network",
            &[("tcp", Family::Any), ("tcp4", Family::V4), ("tcp6", Family::V6)],
        )
        .default("tcp")
        .about("`tcp4` and `tcp6`: only that version");
        pub(super) SSL: Part = Key::part("ssl", &SSL_SERVER).about(
            "[TLS](outputs.md#ssl) with `certificate` and `key`; `client_authentication`: `none`, `optional`, \
             `required` (default if there are `certificate_authorities`)",
        );
        pub(super) TLS_FIELDS: bool = Key::new("tls_fields").ours().default(false).about(
            "adds `tls.*` of ECS: version, cipher, name and certificate of the client",
        );
    }
}

pub use server::TCP_SERVER;
use server::{HOST, NETWORK, SSL, TLS_FIELDS};

settings! {
    /// Settings of `tcp`.
    pub static TCP = Group::new("input.tcp", "Messages over TCP.")
        .include(&[&TCP_SERVER, &WORKERS, &EVERY_INPUT])
        .called_elsewhere(&[FORMAT_OF_SYSLOG]);
}

/// A server of TCP.
pub struct Tcp {
    server: StreamServer,
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    Tcp::read(section, context).map(|input| Box::new(input) as _)
}

impl Tcp {
    fn read(section: &Section<'_>, context: &Context) -> Option<Self> {
        begin(section, &TCP);
        read_workers(section);
        let settings = StreamSettings::read(section);
        let server = read_server(section, context, settings)?;
        Some(Self { server })
    }
}

/// Reads `host`, `network`, `ssl` and `tls_fields` of a server. Its other settings are read; without them something is
/// wrong there, which is reported.
pub fn read_server(
    section: &Section<'_>,
    context: &Context,
    settings: Option<StreamSettings>,
) -> Option<StreamServer> {
    let family = section.get(&NETWORK).value();
    let tls_fields = section.get(&TLS_FIELDS).value();
    let host = section.get(&HOST);
    let is_there = host.is_set() && !host.is_wrong();
    let device = host.required();
    no_hosts(section, "host");
    let tls = read_tls(section, &SSL, context, &[]);
    if tls_fields && matches!(tls, Ok(None)) {
        let name = section.path_of(TLS_FIELDS.name());
        let message = format!("`{name}` has no effect: connections have no TLS");
        section.warning(TLS_FIELDS.name(), message, "set `ssl`, or remove it");
    }
    // What is missing or no text is reported.
    let host = if is_there { read_host(section, &device) } else { None };
    let (settings, tls, (host, port)) = (settings?, tls.ok()?, host?);
    let key = SocketKey::Tcp { host: host.clone(), port, family };
    Some(StreamServer {
        place: ListenPlace {
            address: StreamAddress::Tcp { host, port, family },
            claim: context.claim(section, HOST.name(), key),
            network: Arc::new(RealNetwork),
        },
        settings,
        tls,
        tls_fields,
        fs: Arc::clone(&context.fs),
        device,
        on_batch: None,
    })
}

impl Input for Tcp {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.server.device)
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(serve(self.server, intake))
    }
}
