//! `udp`: each datagram is an event.
//!
//! Settings, defaults and fields are Filebeat's (filebeat/input/net/udp), but for these: `read_buffer` is 8 MiB where
//! Filebeat leaves the system's default, and a datagram that was cut is marked on Linux too.

use crate::Context;
use crate::bind::{no_hosts, read_host};
use crate::common::{EVERY_INPUT, FORMAT_OF_SYSLOG, WORKERS, begin, read_workers};
use crate::datagram::{BACKLOG_BYTES_MAX, DatagramAddress, DatagramServer, Settings};
use skidder_config::{Group, Key, OneOf, Section, Size, settings};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, RealNetwork, SocketKey};
use std::sync::Arc;

/// Default of `host`.
const HOST: &str = "localhost:8080";

/// Default of `max_message_size`.
const MESSAGE_BYTES_MAX: u64 = 10 << 10;

/// Default of `read_buffer`.
const READ_BUFFER: u64 = 8 << 20;

/// Most that `max_message_size` may be.
const MESSAGE_BYTES_LIMIT: u64 = 20 << 20;

/// Most that `read_buffer` may be.
const READ_BUFFER_LIMIT: u64 = 1 << 30;

mod server {
    use super::*;

    settings! {
        /// Settings of a server of UDP, but for its address.
        pub static UDP_SERVER = Group::new("input.udp.server", "A server of UDP.")
            // Filebeat reads it and does nothing with it.
            .without_effect(&[("timeout", "datagrams have no connection that could be idle")])
            .called_elsewhere(&[
                ("address", "host", ""),
                ("bind", "host", ""),
                ("listen", "host", ""),
                ("listen_address", "host", ""),
                ("port", "host", "it stands in `host`, as in `localhost:514`"),
            ]);

        pub(super) NETWORK: OneOf<Family> = Key::one_of(
            "network",
            &[("udp", Family::Any), ("udp4", Family::V4), ("udp6", Family::V6)],
        )
        .default("udp")
        .about("`udp4` and `udp6`: only that version");
        pub(super) MAX_MESSAGE_SIZE: Size = Key::new("max_message_size")
            .default(MESSAGE_BYTES_MAX)
            .range(1, MESSAGE_BYTES_LIMIT)
            .about("1 byte to 20 MiB; a longer datagram is cut");
        pub(super) READ_BUFFER_SIZE: Size = Key::new("read_buffer")
            .default(READ_BUFFER)
            .range(0, READ_BUFFER_LIMIT)
            .differs("Filebeat: that of the system")
            .about(
                "receive buffer of the socket, at most 1 GiB; 0 is that of the system. More than \
                 `net.core.rmem_max` needs `CAP_NET_ADMIN`; a warning says when less was given",
            );
    }
}

pub use server::UDP_SERVER;

settings! {
    /// Settings of `udp`.
    pub static UDP = Group::new("input.udp", "Each datagram is an event.")
        .include(&[&WORKERS, &UDP_SERVER, &EVERY_INPUT])
        .called_elsewhere(&[FORMAT_OF_SYSLOG]);

    LISTEN: String = Key::new("host").default(HOST).about("as for `tcp`");
}

/// The input.
#[derive(Debug)]
pub struct Udp(DatagramServer);

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    begin(section, &UDP);
    read_workers(section);
    no_hosts(section, "host");
    let device = section.get(&LISTEN).hint("as in `host: \"0.0.0.0:514\"`").value();
    let server = read_server(section, context, Some(device))?;
    Some(Box::new(Udp(server)))
}

/// Reads the settings of a server. Its `host` is read; without one something is wrong there, which is reported.
pub(crate) fn read_server(
    section: &Section<'_>,
    context: &Context,
    device: Option<String>,
) -> Option<DatagramServer> {
    let family = section.get(&server::NETWORK).value();
    let message_bytes_max = section.get(&server::MAX_MESSAGE_SIZE).value() as usize;
    let read_buffer = section.get(&server::READ_BUFFER_SIZE).value() as usize;
    let device = device?;
    let (host, port) = read_host(section, &device)?;
    let backlog_bytes_max = BACKLOG_BYTES_MAX;
    let settings = Settings {
        message_bytes_max,
        read_buffer,
        backlog_bytes_max,
        device,
        on_batch: None,
        sink: None,
    };
    let key = SocketKey::Udp { host: host.clone(), port, family };
    let address = DatagramAddress::Udp { host, port, family };
    let claim = context.claim(section, LISTEN.name(), key);
    Some(DatagramServer { address, claim, settings, network: Arc::new(RealNetwork) })
}

impl Input for Udp {
    fn kind(&self) -> &'static str {
        "udp"
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, read_with};
    use skidder_net::Sockets;

    fn parse_host(text: &str) -> Option<(String, u16)> {
        read_with("{}", |section| read_host(section, text)).0
    }

    #[test]
    fn hosts_with_ports_are_read() {
        assert_eq!(parse_host(":514"), Some((String::new(), 514)));
        assert_eq!(parse_host("[::1]:514"), Some(("::1".to_owned(), 514)));
        assert_eq!(parse_host("a.b:0"), Some(("a.b".to_owned(), 0)));
        for wrong in ["", "514", "::1:514", "a b:1", "a:70000", "*:514", "udp://a:1"] {
            assert_eq!(parse_host(wrong), None, "{wrong}");
        }
        let (_, problems) = read_with("{host: '*:514'}", |section| read_host(section, "*:514"));
        let expected = "`host` is `*:514`; `*` is no address: write `0.0.0.0:514` or `:514`";
        assert!(problems.contains(expected), "{problems}");
    }

    #[test]
    fn the_version_of_ip_is_chosen_and_more_workers_are_of_no_use() {
        let read =
            |text: &str| read_with(text, |section| read(section, &context(&Sockets::default())));
        let (input, problems) = read("{host: 'localhost:0', network: udp4, number_of_workers: 2}");
        assert_eq!(input.unwrap().address(), Some("localhost:0"));
        assert!(problems.contains("one thread those of hundreds of datagrams"), "{problems}");
        let (_, problems) = read("{host: 'localhost:0', network: ip, number_of_workers: 0}");
        for expected in ["`udp4`", "a number of workers"] {
            assert!(problems.contains(expected), "{problems}");
        }
    }
}
