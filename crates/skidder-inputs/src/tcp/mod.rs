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
use crate::bind::read_host;
use crate::stream::{StreamAddress, StreamServer, StreamSettings, serve};
use skidder_config::Section;
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, RealNetwork, SocketKey};
use skidder_tls::{TlsServer, TlsServerSettings};
use std::sync::Arc;

/// What the type is called.
const KIND: &str = "tcp";

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
        let settings = StreamSettings::read(section);
        let server = read_server(section, context, settings?)?;
        Some(Self { server })
    }
}

/// Reads `host`, `network`, `ssl` and `tls_fields` of a server whose other settings are read.
pub fn read_server(
    section: &Section<'_>,
    context: &Context,
    settings: StreamSettings,
) -> Option<StreamServer> {
    let networks = [("tcp", Family::Any), ("tcp4", Family::V4), ("tcp6", Family::V6)];
    let family = section.one_of("network", &networks).or(Family::Any);
    let tls_fields = section.bool("tls_fields").or(false);
    let host = section.string("host").required();
    let mut tls = None;
    if let Some(ssl) = section.optional_section("ssl") {
        let is_off = ssl.has("enabled") && !ssl.bool("enabled").or(true);
        if let Some(settings) = TlsServerSettings::read(&ssl) {
            match TlsServer::new(&settings, Arc::clone(&context.fs)) {
                Ok(server) => tls = Some((settings, server)),
                Err(error) => {
                    section.problem(error.setting(), error.to_string(), "");
                    return None;
                }
            }
        } else if !is_off {
            return None;
        }
    }
    if !section.has("host") {
        // That is reported.
        return None;
    }
    let device = host;
    let (host, port) = read_host(section, &device)?;
    let key = SocketKey::Tcp { host: host.clone(), port, family };
    Some(StreamServer {
        address: StreamAddress::Tcp { host, port, family },
        claim: context.sockets.claim(key),
        settings,
        tls,
        tls_fields,
        network: Arc::new(RealNetwork),
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
