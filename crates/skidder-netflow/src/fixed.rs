//! Versions whose records have the same form in every packet: 1, 5, 6, 7 and 8.
//!
//! The forms are those of Cisco's "NetFlow Export Datagram Format"
//! (<https://www.cisco.com/c/en/us/td/docs/net_mgmt/netflow_collection_engine/3-6/user/guide/format.html>), given as numbers
//! of the registry of IANA and lengths.

use crate::cursor::Cursor;
use crate::fields::Fields;
use crate::protocol::{Extra, Header, Protocol};
use crate::template::{Column, Template};
use std::sync::LazyLock;

/// Bytes that mean nothing.
const PAD: u16 = 0;

const SRC: (u16, u16) = (8, 4);
const DST: (u16, u16) = (12, 4);
const NEXT_HOP: (u16, u16) = (15, 4);
const IN_IF: (u16, u16) = (10, 2);
const OUT_IF: (u16, u16) = (14, 2);
const FLOWS: (u16, u16) = (3, 4);
const PACKETS: (u16, u16) = (2, 4);
const OCTETS: (u16, u16) = (1, 4);
const FIRST: (u16, u16) = (22, 4);
const LAST: (u16, u16) = (21, 4);
const SRC_PORT: (u16, u16) = (7, 2);
const DST_PORT: (u16, u16) = (11, 2);
const PROTO: (u16, u16) = (4, 1);
const TOS: (u16, u16) = (5, 1);
const FLAGS: (u16, u16) = (6, 1);
const SRC_AS: (u16, u16) = (16, 2);
const DST_AS: (u16, u16) = (17, 2);
const SRC_MASK: (u16, u16) = (9, 1);
const DST_MASK: (u16, u16) = (13, 1);
const SRC_PREFIX: (u16, u16) = (44, 4);
const DST_PREFIX: (u16, u16) = (45, 4);
/// Type of service of packets beyond the contract.
const MARKED_TOS: (u16, u16) = (55, 1);
/// Packets beyond the contract.
const EXTRA_PACKETS: (u16, u16) = (133, 4);
const ROUTER: (u16, u16) = (43, 4);
const FLAGS_AND_SAMPLER: (u16, u16) = (87, 2);

const V1: &[(u16, u16)] = &[
    SRC,
    DST,
    NEXT_HOP,
    IN_IF,
    OUT_IF,
    PACKETS,
    OCTETS,
    FIRST,
    LAST,
    SRC_PORT,
    DST_PORT,
    (PAD, 2),
    PROTO,
    TOS,
    FLAGS,
    (PAD, 7),
];

/// Versions 5, 6 and 7 until their last bytes.
const V5: [(u16, u16); 19] = [
    SRC,
    DST,
    NEXT_HOP,
    IN_IF,
    OUT_IF,
    PACKETS,
    OCTETS,
    FIRST,
    LAST,
    SRC_PORT,
    DST_PORT,
    (PAD, 1),
    FLAGS,
    PROTO,
    TOS,
    SRC_AS,
    DST_AS,
    SRC_MASK,
    DST_MASK,
];

/// The records of version 8 by how flows are aggregated, from 1.
const V8: [&[(u16, u16)]; 14] = [
    // By the autonomous system.
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, SRC_AS, DST_AS, IN_IF, OUT_IF],
    // By protocol and port.
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, PROTO, (PAD, 3), SRC_PORT, DST_PORT],
    // By the prefix of the source.
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, SRC_PREFIX, (PAD, 2), SRC_AS, IN_IF, (PAD, 2)],
    // By the prefix of the destination.
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, DST_PREFIX, (PAD, 2), DST_AS, OUT_IF, (PAD, 2)],
    // By both.
    &[
        FLOWS,
        PACKETS,
        OCTETS,
        FIRST,
        LAST,
        SRC_PREFIX,
        DST_PREFIX,
        (PAD, 4),
        SRC_AS,
        DST_AS,
        IN_IF,
        OUT_IF,
    ],
    // By the destination.
    &[DST, PACKETS, OCTETS, FIRST, LAST, OUT_IF, TOS, MARKED_TOS, EXTRA_PACKETS, ROUTER],
    // By source and destination.
    &[
        DST,
        SRC,
        PACKETS,
        OCTETS,
        FIRST,
        LAST,
        OUT_IF,
        IN_IF,
        TOS,
        MARKED_TOS,
        (PAD, 2),
        EXTRA_PACKETS,
        ROUTER,
    ],
    // Not at all.
    &[
        DST,
        SRC,
        DST_PORT,
        SRC_PORT,
        PACKETS,
        OCTETS,
        FIRST,
        LAST,
        OUT_IF,
        IN_IF,
        TOS,
        PROTO,
        MARKED_TOS,
        (PAD, 1),
        EXTRA_PACKETS,
        ROUTER,
    ],
    // The same as the first five, and by the type of service.
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, SRC_AS, DST_AS, IN_IF, OUT_IF, TOS, (PAD, 3)],
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, PROTO, TOS, (PAD, 2), SRC_PORT, DST_PORT, IN_IF, OUT_IF],
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, SRC_PREFIX, SRC_MASK, TOS, SRC_AS, IN_IF, (PAD, 2)],
    &[FLOWS, PACKETS, OCTETS, FIRST, LAST, DST_PREFIX, DST_MASK, TOS, DST_AS, OUT_IF, (PAD, 2)],
    &[
        FLOWS,
        PACKETS,
        OCTETS,
        FIRST,
        LAST,
        SRC_PREFIX,
        DST_PREFIX,
        DST_MASK,
        SRC_MASK,
        TOS,
        (PAD, 1),
        SRC_AS,
        DST_AS,
        IN_IF,
        OUT_IF,
    ],
    // By prefix, port and protocol.
    &[
        FLOWS, PACKETS, OCTETS, FIRST, LAST, SRC_PREFIX, DST_PREFIX, DST_MASK, SRC_MASK, TOS,
        PROTO, SRC_PORT, DST_PORT, IN_IF, OUT_IF,
    ],
];

/// The forms of the records.
struct Forms {
    v1: Template,
    v5: Template,
    v6: Template,
    v7: Template,
    v8: Vec<Template>,
}

static FORMS: LazyLock<Forms> = LazyLock::new(|| {
    let fields = Fields::known();
    let template = |columns: &[(u16, u16)]| {
        let column = |(id, length): &(u16, u16)| Column { enterprise: 0, id: *id, length: *length };
        Template::new(0, None, columns.iter().map(column).collect(), &fields)
    };
    Forms {
        v1: template(V1),
        v5: template(&[&V5[..], &[(PAD, 2)]].concat()),
        v6: template(&[&V5[..], &[(PAD, 6)]].concat()),
        v7: template(&[&V5[..], &[FLAGS_AND_SAMPLER, ROUTER]].concat()),
        v8: V8.iter().map(|columns| template(columns)).collect(),
    }
});

/// The records of a packet.
pub(crate) struct Records<'a> {
    pub(crate) header: Header,
    pub(crate) template: &'static Template,
    pub(crate) bytes: &'a [u8],
    /// How many the header says there are; 0 for as many as there is room for.
    pub(crate) count: usize,
}

/// Reads the header of a packet of one of these versions. `Err` says what is wrong with it.
pub(crate) fn read(protocol: Protocol, bytes: &[u8]) -> Result<Records<'_>, &'static str> {
    const SHORT: &str = "it is shorter than its header";
    let mut cursor = Cursor(bytes);
    let mut number = || cursor.u32();
    let mut header = || {
        let version_and_count = number()?;
        let uptime = number()?;
        let (seconds, nanoseconds) = (number()?, number()?);
        let time = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
        Some((version_and_count & 0xffff, uptime, time))
    };
    let (count, uptime, time) = header().ok_or(SHORT)?;
    let rest = |cursor: &mut Cursor<'_>| cursor.u32().and_then(|_| cursor.u32());
    let forms = &*FORMS;
    let (template, extra) = match protocol {
        Protocol::V1 => (&forms.v1, Extra::None),
        Protocol::V5 | Protocol::V6 => {
            let [kind, id, high, low] = rest(&mut cursor).ok_or(SHORT)?.to_be_bytes();
            let sampling = u16::from_be_bytes([high, low]);
            let template = if protocol == Protocol::V5 { &forms.v5 } else { &forms.v6 };
            (template, Extra::Engine { kind, id, sampling })
        }
        Protocol::V7 => {
            rest(&mut cursor).ok_or(SHORT)?;
            (&forms.v7, Extra::None)
        }
        _ => {
            let [kind, id, aggregation, version] = rest(&mut cursor).ok_or(SHORT)?.to_be_bytes();
            cursor.u32().ok_or(SHORT)?;
            let form = usize::from(aggregation).checked_sub(1).and_then(|at| forms.v8.get(at));
            let form = form.ok_or("its flows are aggregated in a way that is not known")?;
            (form, Extra::Aggregation { kind, id, aggregation, version })
        }
    };
    let header = Header { protocol, time: Some(time), uptime, extra };
    Ok(Records { header, template, bytes: cursor.0, count: count as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_as_long_as_cisco_says() {
        let forms = &*FORMS;
        let lengths = [&forms.v1, &forms.v5, &forms.v6, &forms.v7].map(|form| form.length);
        assert_eq!(lengths, [48, 48, 52, 52]);
        let lengths: Vec<usize> = forms.v8.iter().map(|form| form.length).collect();
        assert_eq!(lengths, [28, 28, 32, 32, 40, 32, 40, 44, 32, 32, 32, 32, 40, 40]);
        for form in forms.v8.iter().chain([&forms.v1, &forms.v5, &forms.v6, &forms.v7]) {
            let unknown =
                form.columns().filter(|(column, field)| column.id != PAD && field.is_none());
            assert_eq!(unknown.count(), 0);
        }
    }
}
