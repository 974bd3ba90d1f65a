//! What comes out of a packet.

use crate::fields::Field;
use crate::value::Value;
use std::net::SocketAddr;

/// A version of NetFlow, or IPFIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Protocol {
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
    pub const WORDS: [(&str, Self); 7] = [
        ("v1", Self::V1),
        ("v5", Self::V5),
        ("v6", Self::V6),
        ("v7", Self::V7),
        ("v8", Self::V8),
        ("v9", Self::V9),
        ("ipfix", Self::Ipfix),
    ];

    /// The one with this number in its packets.
    pub(crate) fn of(version: u16) -> Option<Self> {
        Self::WORDS.iter().map(|(_, protocol)| *protocol).find(|it| *it as u16 == version)
    }
}

/// What a packet says about the exporter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// The protocol.
    pub protocol: Protocol,
    /// When it was sent, by the exporter's clock: nanoseconds since 1970-01-01 UTC.
    pub time: i64,
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
}

/// What a record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// A flow.
    Flow,
    /// Options: something about the exporter. The first so many of its values say what it is about.
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
