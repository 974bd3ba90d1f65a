//! `unix`: messages over a unix socket, with connections (`socket_type: stream`) or as datagrams (`datagram`).
//!
//! Settings and fields are Filebeat's (filebeat/input/unix, filebeat/inputsource/unix). A socket that another process
//! listens on is not taken away from it, as Filebeat would.

#[cfg(test)]
mod tests;

use crate::Context;
use crate::common::{EVERY_INPUT, FORMAT_OF_SYSLOG, WORKERS, begin, read_workers};
use crate::datagram::{DatagramAddress, DatagramServer, Settings};
use crate::listen::{ListenPlace, StreamAddress};
use crate::stream::{CONNECTIONS, MAX_MESSAGE_SIZE, StreamServer, StreamSettings, serve};
use skidder_config::{Group, Key, OneOf, Permissions, Section, settings};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{RealNetwork, SocketKey, UnixPlace};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// The name of the type.
const KIND: &str = "unix";

/// Default of `max_message_size` of a datagram.
const DATAGRAM_BYTES_MAX: u64 = 20 << 20;

/// Bytes of the longest path that the address of a socket can hold: `sun_path` of unix(7) without its last byte.
const PATH_BYTES_MAX: usize = 107;

mod server {
    use super::*;

    settings! {
        /// Settings of a unix socket.
        pub static UNIX_SERVER = Group::new("input.unix.server", "A unix socket.")
            .include(&[&CONNECTIONS])
            .called_elsewhere(&[
                ("address", "path", ""),
                ("bind", "path", ""),
                ("host", "path", ""),
                ("listen", "path", ""),
                ("permissions", "mode", ""),
                ("socket", "path", ""),
                ("socket_group", "group", ""),
                ("socket_mode", "mode", ""),
                ("socket_path", "path", ""),
            ]);

        pub(super) PATH: PathBuf = Key::new("path")
            .required()
            .noun("the path of a socket, as in `/run/app/log.sock`")
            .about("where the socket is, at most 107 bytes; a socket nobody listens on is replaced");
        pub(super) GROUP: String =
            Key::new("group").default_words("that of the process").about("group of the socket");
        pub(super) MODE: Permissions = Key::new("mode")
            .default_words("umask")
            .about("permissions of the socket (octal)");
        pub(super) IS_DATAGRAM: OneOf<bool> =
            Key::one_of("socket_type", &[("stream", false), ("datagram", true)])
                .default("stream")
                .about(
                    "or `datagram`: each is a message, a longer one is cut (at most 20 MiB); the sender waits while the \
                     queue is full; options of connections have no effect",
                );
    }
}

pub use server::UNIX_SERVER;
use server::{GROUP, IS_DATAGRAM, MODE, PATH};

settings! {
    /// Settings of `unix`.
    pub static UNIX = Group::new("input.unix", "Messages over a unix socket.")
        .include(&[&UNIX_SERVER, &WORKERS, &EVERY_INPUT])
        .called_elsewhere(&[FORMAT_OF_SYSLOG]);
}

/// A server of a unix socket.
pub enum Unix {
    /// With connections.
    Stream(Box<StreamServer>),
    /// Of datagrams.
    Datagram(DatagramServer),
}

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &UNIX);
    read_workers(section);
    read_either(section, context).map(|server| Box::new(server) as _)
}

/// Reads the settings of [`UNIX_SERVER`].
pub(crate) fn read_either(section: &Section<'_>, context: &Context) -> Option<Unix> {
    if section.get(&IS_DATAGRAM).value() {
        return read_datagrams(section, context).map(Unix::Datagram);
    }
    let server = read_server(section, context, StreamSettings::read(section))?;
    Some(Unix::Stream(Box::new(server)))
}

/// Reads a server of datagrams.
fn read_datagrams(section: &Section<'_>, context: &Context) -> Option<DatagramServer> {
    let limit = section.get(&MAX_MESSAGE_SIZE).range(1..=DATAGRAM_BYTES_MAX);
    let message_bytes_max = limit.optional().unwrap_or(DATAGRAM_BYTES_MAX) as usize;
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
        on_batch: None,
        sink: None,
    };
    let address = DatagramAddress::Unix(place);
    let claim = context.claim(section, PATH.name(), key);
    Some(DatagramServer { address, claim, settings, network: Arc::new(RealNetwork) })
}

/// Reads `path`, `group` and `mode` of a server. Its other settings are read; without them something is wrong there,
/// which is reported.
pub fn read_server(
    section: &Section<'_>,
    context: &Context,
    settings: Option<StreamSettings>,
) -> Option<StreamServer> {
    let place = read_place(section);
    let (settings, place) = (settings?, place?);
    let key = SocketKey::UnixStream(place.path.clone());
    let device = place.path.display().to_string();
    Some(StreamServer {
        place: ListenPlace {
            address: StreamAddress::Unix(place),
            claim: context.claim(section, PATH.name(), key),
            network: Arc::new(RealNetwork),
        },
        settings,
        tls: None,
        tls_fields: false,
        fs: Arc::clone(&context.fs),
        device,
        on_batch: None,
    })
}

/// Reads `path`, `group` and `mode`, which datagram sockets have as well.
pub fn read_place(section: &Section<'_>) -> Option<UnixPlace> {
    let mode = section.get(&MODE).optional();
    let group = read_group(section);
    let path = section.get(&PATH).required();
    if path.as_os_str().is_empty() {
        // That is reported if it is missing.
        if section.has_key(&PATH) {
            section.problem("path", format!("`{}` is empty", section.path_of("path")), "");
        }
        return None;
    }
    if let Some((reason, hint)) = no_path(&path.to_string_lossy()) {
        let message =
            format!("`{}` is `{}`; {reason}", section.path_of(PATH.name()), path.display());
        section.problem(PATH.name(), message, hint);
        return None;
    }
    let bytes = path.as_os_str().as_bytes().len();
    if bytes > PATH_BYTES_MAX {
        let name = section.path_of(PATH.name());
        let message = format!("`{name}` has {bytes} bytes; a socket can have {PATH_BYTES_MAX}");
        section.problem(PATH.name(), message, "choose a shorter path");
        return None;
    }
    Some(UnixPlace { path, mode, group: group.ok()? })
}

/// Why a text is not the path of a socket, whatever is there, and a hint.
fn no_path(text: &str) -> Option<(&'static str, String)> {
    if let Some((_, path)) = text.split_once("://") {
        let hint = format!("write the path alone: `path: /{}`", path.trim_start_matches('/'));
        return Some(("expected a path, and no URL", hint));
    }
    let bare = text.strip_suffix('/')?;
    Some(("it is that of a directory", format!("name the socket in it, as in `{bare}/log.sock`")))
}

/// The number of `group`, if it is set. An error is reported already.
fn read_group(section: &Section<'_>) -> Result<Option<u32>, ()> {
    let Some(name) = section.get(&GROUP).optional() else { return Ok(None) };
    let path = section.path_of("group");
    let message = match nix::unistd::Group::from_name(&name) {
        Ok(Some(group)) => return Ok(Some(group.gid.as_raw())),
        Ok(None) => format!("`{path}` is `{name}`; there is no such group"),
        Err(error) => format!("cannot look up `{path}` `{name}`: {error}"),
    };
    section.problem("group", message, "");
    Err(())
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

    // The sender of a datagram waits for room in a unix socket, and gets an error when the socket is gone.
    fn stops_last(&self) -> bool {
        matches!(self, Self::Datagram(_))
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        match *self {
            Self::Stream(server) => Box::pin(serve(*server, intake)),
            Self::Datagram(server) => Box::pin(server.run(intake)),
        }
    }
}
