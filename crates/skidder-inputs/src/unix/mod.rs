//! `unix`: messages over a unix socket, with connections (`socket_type: stream`) or as datagrams (`datagram`).
//!
//! Settings and fields are Filebeat's (filebeat/input/unix, filebeat/inputsource/unix). A socket that another process
//! listens on is not taken away from it, as Filebeat would.

#[cfg(test)]
mod tests;

use crate::Context;
use crate::datagram::{DatagramAddress, DatagramServer, Settings};
use crate::stream::{StreamAddress, StreamServer, StreamSettings, serve};
use nix::unistd::Group;
use skidder_config::Section;
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{RealNetwork, SocketKey, UnixPlace};
use std::sync::Arc;

/// What the type is called.
const KIND: &str = "unix";

/// Default of `max_message_size` of a datagram.
const DATAGRAM_BYTES_MAX: u64 = 20 << 20;

/// A server of a unix socket.
pub enum Unix {
    /// With connections.
    Stream(Box<StreamServer>),
    /// Of datagrams.
    Datagram(DatagramServer),
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    let types = [("stream", false), ("datagram", true)];
    if section.one_of("socket_type", &types).or(false) {
        let server = read_datagrams(section, context)?;
        return Some(Box::new(Unix::Datagram(server)));
    }
    let server = read_server(section, context, StreamSettings::read(section)?)?;
    Some(Box::new(Unix::Stream(Box::new(server))))
}

/// Reads a server of datagrams.
fn read_datagrams(section: &Section<'_>, context: &Context) -> Option<DatagramServer> {
    let limit = section.size("max_message_size").range(1..=DATAGRAM_BYTES_MAX);
    let message_bytes_max = limit.or(DATAGRAM_BYTES_MAX) as usize;
    section.without_effect(
        &["framing", "line_delimiter", "max_connections", "timeout"],
        "each datagram is a message, and there are no connections",
    );
    let place = read_place(section)?;
    let key = SocketKey::UnixDatagram(place.path.clone());
    let settings = Settings {
        message_bytes_max,
        read_buffer: 0,
        // Nothing is received while it is used, so that it holds what one call has received.
        backlog_bytes_max: usize::MAX,
        device: place.path.display().to_string(),
    };
    let address = DatagramAddress::Unix(place);
    Some(DatagramServer { address, claim: context.sockets.claim(key), settings })
}

/// Reads `path`, `group` and `mode` of a server whose other settings are read.
pub fn read_server(
    section: &Section<'_>,
    context: &Context,
    settings: StreamSettings,
) -> Option<StreamServer> {
    let place = read_place(section)?;
    let key = SocketKey::UnixStream(place.path.clone());
    let device = place.path.display().to_string();
    Some(StreamServer {
        address: StreamAddress::Unix(place),
        claim: context.sockets.claim(key),
        settings,
        tls: None,
        tls_fields: false,
        network: Arc::new(RealNetwork),
        fs: Arc::clone(&context.fs),
        device,
        on_batch: None,
    })
}

/// Reads `path`, `group` and `mode`, which datagram sockets have as well.
pub fn read_place(section: &Section<'_>) -> Option<UnixPlace> {
    let mode = section.permissions("mode").optional();
    let group = section.string("group").optional();
    let path = section.path_buf("path").required();
    if path.as_os_str().is_empty() {
        // That is reported if it is missing.
        if section.has("path") {
            section.problem("path", format!("`{}` is empty", section.path_of("path")), "");
        }
        return None;
    }
    let group = match group {
        None => None,
        Some(name) => match Group::from_name(&name) {
            Ok(Some(group)) => Some(group.gid.as_raw()),
            Ok(None) => {
                let message =
                    format!("`{}` is `{name}`; there is no such group", section.path_of("group"));
                section.problem("group", message, "");
                return None;
            }
            Err(error) => {
                let path = section.path_of("group");
                section.problem("group", format!("cannot look up `{path}` `{name}`: {error}"), "");
                return None;
            }
        },
    };
    Some(UnixPlace { path, mode, group })
}

impl Input for Unix {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(match self {
            Self::Stream(server) => &server.device,
            Self::Datagram(server) => &server.settings.device,
        })
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        match *self {
            Self::Stream(server) => Box::pin(serve(*server, intake)),
            Self::Datagram(server) => Box::pin(server.run(intake)),
        }
    }
}
