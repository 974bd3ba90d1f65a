//! What comes out of a packet.

use crate::fields::Field;
use crate::value::Value;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// A version of NetFlow, IPFIX, or sFlow. The number is that of the first two bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Protocol {
    /// Its version has four bytes, of which the first two are 0.
    Sflow = 0,
    V1 = 1,
    V5 = 5,
    V6 = 6,
    V7 = 7,
    V8 = 8,
    V9 = 9,
    Ipfix = 10,
}

impl Protocol {
    /// All of them, by their names in settings.
    pub const WORDS: [(&str, Self); 8] = [
        ("v1", Self::V1),
        ("v5", Self::V5),
        ("v6", Self::V6),
        ("v7", Self::V7),
        ("v8", Self::V8),
        ("v9", Self::V9),
        ("ipfix", Self::Ipfix),
        ("sflow", Self::Sflow),
    ];

    /// The version that its packets name.
    pub fn version(self) -> u64 {
        match self {
            Self::Sflow => 5,
            other => other as u64,
        }
    }

    /// The one with this number in its packets.
    pub(crate) fn of(version: u16) -> Option<Self> {
        Self::WORDS.iter().map(|(_, protocol)| *protocol).find(|it| *it as u16 == version)
    }
}

/// Its name in settings.
impl fmt::Display for Protocol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Self::WORDS.iter().find(|(_, protocol)| protocol == self);
        let (word, _) = known.expect("each of them has a name");
        out.write_str(word)
    }
}

/// What a packet says about the exporter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The protocol.
    pub protocol: Protocol,
    /// When it was sent, by the exporter's clock: nanoseconds since 1970-01-01 UTC. sFlow does not say it.
    pub time: Option<i64>,
    /// Milliseconds that the exporter had been running; 0 if the protocol has no such number.
    pub uptime: u32,
    /// What only this protocol has.
    pub extra: Extra,
}

/// The part of a header that protocols do not share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Extra {
    /// Versions 1 and 7.
    None,
    /// Versions 5 and 6.
    Engine {
        /// Type of the engine that switches flows.
        kind: u8,
        /// Its number.
        id: u8,
        /// Mode and interval of sampling.
        sampling: u16,
    },
    /// Version 8.
    Aggregation {
        /// Type of the engine that switches flows.
        kind: u8,
        /// Its number.
        id: u8,
        /// How flows are aggregated.
        aggregation: u8,
        /// The version of that.
        version: u8,
    },
    /// Version 9 and IPFIX: the source, which IPFIX calls observation domain.
    Source(u32),
    /// sFlow.
    Agent {
        /// The address that the agent is known by, if it has one.
        address: Option<IpAddr>,
        /// The part of the agent that sends.
        sub_agent: u32,
    },
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A flow.
    Flow,
    /// Options, or counters of sFlow: something about the exporter. The first so many of its values say what it is about.
    Options {
        /// How many.
        scope: usize,
    },
}

/// One flow, or one record of options.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// What its packet says about the exporter.
    pub header: &'a Header,
    /// The exporter.
    pub from: SocketAddr,
    /// Which of both it is.
    pub kind: FlowKind,
    /// Its fields; among those of the scope and among the others each name is there once.
    pub values: &'a [(&'a Field, Value<'a>)],
}
