//! Inputs that are tasks, one folder each: see [`skidder_input::Input`].
//!
//! [`KINDS`] is the list of their types, from the name in `type` to the function that reads the settings.

pub mod benchmark;
mod bind;
mod common;
pub mod datagram;
pub mod docker_logs;
pub mod http_endpoint;
pub mod journald;
pub mod listen;
pub mod lumberjack;
pub mod mqtt;
pub mod netflow;
mod receive_queue;
pub mod stdin;
pub mod stream;
pub mod syslog;
pub mod tcp;
#[cfg(test)]
mod testing;
mod text;
pub mod udp;
pub mod unix;

pub use common::{EVERY_INPUT, Wanted, read_common};

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_net::{Claim, SocketKey, Sockets};
use skidder_os::{Clock, Fs};
use std::path::PathBuf;
use std::sync::Arc;

/// The part of the program that inputs can use.
#[derive(Clone)]
pub struct Context {
    /// Files, such as certificates.
    pub fs: Arc<dyn Fs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Sockets that outlive the input that has them: one keeper for the whole program.
    pub sockets: Sockets,
    /// The sockets of the inputs that were read so far; new for each configuration.
    pub wanted: Wanted,
    /// Servers of HTTP that several inputs share: those of the whole program.
    pub servers: http_endpoint::Servers,
    /// The folder of the state of the output that inputs run for, beside its registry; `None` if nothing is to be kept.
    pub data: Option<PathBuf>,
}

impl Context {
    /// Claims the socket of the input with this section, whose setting `name` has its address.
    fn claim(&self, section: &Section<'_>, name: &str, key: SocketKey) -> Claim {
        self.wanted.claim(&self.sockets, section, name, key)
    }
}

/// Reads what is special to a type of input; keys that all inputs share are left to the caller. Opens nothing: what it
/// returns may be dropped. `None`, and the problems are reported, if something is wrong.
pub type Read = fn(&Section<'_>, &Context) -> Option<Box<dyn Input>>;

/// The types that there are, but for [`stdin`], whose settings are read with those of the inputs of files.
pub const KINDS: &[(&str, Read)] = &[
    ("benchmark", benchmark::read),
    ("http_endpoint", http_endpoint::read),
    ("lumberjack", lumberjack::read),
    ("mqtt", mqtt::read),
    ("netflow", netflow::read),
    ("syslog", syslog::read),
    ("tcp", tcp::read),
    ("udp", udp::read),
    ("unix", unix::read),
];

/// The settings of each type.
pub static SETTINGS: &[(&str, &Group)] = &[
    ("benchmark", &benchmark::BENCHMARK),
    ("http_endpoint", &http_endpoint::HTTP_ENDPOINT),
    ("lumberjack", &lumberjack::LUMBERJACK),
    ("mqtt", &mqtt::MQTT),
    ("netflow", &netflow::NETFLOW),
    ("syslog", &syslog::SYSLOG),
    ("tcp", &tcp::TCP),
    ("udp", &udp::UDP),
    ("unix", &unix::UNIX),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_settings() {
        let kinds = KINDS.iter().map(|(name, _)| *name);
        assert!(kinds.eq(SETTINGS.iter().map(|(name, _)| *name)));
    }
}
