//! `udp`: each datagram is an event.
//!
//! Settings, defaults and fields are Filebeat's (filebeat/input/net/udp), but for these: `read_buffer` is 8 MiB where
//! Filebeat leaves the system's default, and a datagram that was cut is marked on Linux too.

use crate::Context;
use crate::bind::read_host;
use crate::datagram::{BACKLOG_BYTES_MAX, DatagramAddress, DatagramServer, Settings};
use skidder_config::Section;
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, SocketKey};

/// Default of `host`.
const HOST: &str = "localhost:8080";

/// Default of `max_message_size`.
const MESSAGE_BYTES_MAX: u64 = 10 << 10;

/// Default of `read_buffer`.
const READ_BUFFER: u64 = 8 << 20;

/// Most that `max_message_size` may be.
const MESSAGE_BYTES_LIMIT: u64 = 20 << 20;

/// The input.
#[derive(Debug)]
pub struct Udp(DatagramServer);

/// Reads its settings.
pub fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    let workers = section.u64("number_of_workers").range(1..=1024).or(1);
    if workers > 1 {
        section.warning(
            "number_of_workers",
            "one thread receives the datagrams and runs the processors",
            "remove it; Filebeat needs it because it handles one datagram at a time",
        );
    }
    Udp::read(section, context).map(|input| Box::new(input) as _)
}

impl Udp {
    fn read(section: &Section<'_>, context: &Context) -> Option<Self> {
        let device = section.string("host").hint("as in `host: \"0.0.0.0:514\"`").or(HOST);
        let words = [("udp", Family::Any), ("udp4", Family::V4), ("udp6", Family::V6)];
        let family = section.one_of("network", &words).or(Family::Any);
        let limit = section.size("max_message_size").range(1..=MESSAGE_BYTES_LIMIT);
        let message_bytes_max = limit.or(MESSAGE_BYTES_MAX) as usize;
        let read_buffer = section.size("read_buffer").range(..=1 << 30).or(READ_BUFFER) as usize;
        // Filebeat reads it and does nothing with it.
        section.without_effect(&["timeout"], "datagrams have no connection that could be idle");
        let (host, port) = read_host(section, &device)?;
        let backlog_bytes_max = BACKLOG_BYTES_MAX;
        let settings = Settings { message_bytes_max, read_buffer, backlog_bytes_max, device };
        let key = SocketKey::Udp { host: host.clone(), port, family };
        let address = DatagramAddress::Udp { host, port, family };
        Some(Self(DatagramServer { address, claim: context.sockets.claim(key), settings }))
    }
}

impl Input for Udp {
    fn kind(&self) -> &'static str {
        "udp"
    }

    fn address(&self) -> Option<&str> {
        Some(&self.0.settings.device)
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(self.0.run(intake))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::read_with;

    fn parse_host(text: &str) -> Option<(String, u16)> {
        read_with("{}", |section| read_host(section, text)).0
    }

    #[test]
    fn hosts_with_ports_are_read() {
        assert_eq!(parse_host(":514"), Some((String::new(), 514)));
        assert_eq!(parse_host("[::1]:514"), Some(("::1".to_owned(), 514)));
        assert_eq!(parse_host("a.b:0"), Some(("a.b".to_owned(), 0)));
        for wrong in ["", "514", "::1:514", "a b:1", "a:70000"] {
            assert_eq!(parse_host(wrong), None, "{wrong}");
        }
    }
}
