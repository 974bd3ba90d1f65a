//! sFlow version 5: sampled packets, and counters of interfaces.
//!
//! The form is that of <https://sflow.org/sflow_version_5.txt>, in XDR (RFC 4506): numbers of four and eight bytes, and
//! before each sample and each record its format and its length. A format that is not decoded here is skipped and counted.
//!
//! No length and no number of a datagram is believed: all loops end with its bytes, and nothing is allocated by them.

use crate::cursor::Cursor;
use crate::protocol::{Extra, Flow, FlowKind, Header, Protocol};
use crate::sampled::{Name, TYPE_MIN, Values, as_path, network_record, numbers, sampled_packet};
use crate::value::Value;
use std::net::{IpAddr, SocketAddr};

/// The version that is decoded.
pub(crate) const VERSION: u32 = 5;

/// The address of an agent, by its type.
const UNKNOWN: u32 = 0;
const IPV4: u32 = 1;
const IPV6: u32 = 2;

/// The class of a data source that is an interface.
const IF_INDEX: u32 = 0;

/// The number in place of an interface if there is none: the device itself sends the packet, or takes it.
const NO_INTERFACE: u32 = 0x3fff_ffff;

/// Formats of samples; the upper 20 bits are the enterprise, 0 for sFlow's own.
const FLOW_SAMPLE: u32 = 1;
const COUNTERS_SAMPLE: u32 = 2;
const EXPANDED_FLOW_SAMPLE: u32 = 3;
const EXPANDED_COUNTERS_SAMPLE: u32 = 4;

/// Formats of records of a flow sample.
const SAMPLED_HEADER: u32 = 1;
const SAMPLED_ETHERNET: u32 = 2;
const SAMPLED_IPV4: u32 = 3;
const SAMPLED_IPV6: u32 = 4;
const EXTENDED_SWITCH: u32 = 1001;
const EXTENDED_ROUTER: u32 = 1002;
const EXTENDED_GATEWAY: u32 = 1003;

/// The format of a record with the counters that every interface has.
const GENERIC_INTERFACE: u32 = 1;

const CUT_SAMPLE: &str = "a sample is shorter than what it has";
const FEWER_SAMPLES: &str = "it has fewer samples than it says";
const MORE_SAMPLES: &str = "bytes follow its last sample";
const MORE_RECORDS: &str = "bytes follow the last record of a sample";

/// A datagram of an agent.
pub(crate) struct Datagram<'a> {
    pub(crate) header: Header,
    /// Its number, of a sub-agent.
    pub(crate) sequence: u32,
    samples: Cursor<'a>,
    count: u32,
}

/// What became of the samples of a datagram.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) flows: u64,
    /// Samples and records of a format that is not decoded, and packets without the header of IP that they should
    /// have.
    pub(crate) skipped: u64,
    /// What was wrong first; samples before and behind it were decoded.
    pub(crate) problem: Option<&'static str>,
}

/// The version of a packet, if it looks like a datagram of sFlow. Those before 5 are of RFC 3176 and older.
pub(crate) fn version(bytes: &[u8]) -> Option<u32> {
    Cursor(bytes).u32().filter(|version| (2..=VERSION).contains(version))
}

/// An address with its type before it; nothing if the agent does not know it.
struct Address(Option<IpAddr>);

fn address(cursor: &mut Cursor<'_>) -> Option<Address> {
    Some(Address(match cursor.u32()? {
        UNKNOWN => None,
        IPV4 => Some(IpAddr::from(cursor.array::<4>()?)),
        IPV6 => Some(IpAddr::from(cursor.array::<16>()?)),
        _ => return None,
    }))
}

/// Reads the header of a datagram of version 5. `Err` says what is wrong with it.
pub(crate) fn datagram(bytes: &[u8]) -> Result<Datagram<'_>, &'static str> {
    let mut cursor = Cursor(bytes);
    let mut header = || {
        // The version.
        cursor.u32()?;
        let Address(agent) = address(&mut cursor)?;
        let (sub_agent, sequence, uptime) = (cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let extra = Extra::Agent { address: agent, sub_agent };
        Some((Header { protocol: Protocol::Sflow, time: None, uptime, extra }, sequence))
    };
    let (header, sequence) = header().ok_or("it is shorter than its header")?;
    let count = cursor.u32().ok_or("it is shorter than its header")?;
    Ok(Datagram { header, sequence, samples: cursor, count })
}

/// What follows the format and the length; XDR fills up to four bytes.
fn opaque<'a>(cursor: &mut Cursor<'a>) -> Option<(u32, Cursor<'a>)> {
    let (format, len) = (cursor.u32()?, cursor.u32()?);
    let len = usize::try_from(len).ok()?;
    let body = cursor.take(len)?;
    // Some agents leave out the last zeros of a datagram.
    cursor.take(len.wrapping_neg() % 4);
    Some((format, Cursor(body)))
}

impl Datagram<'_> {
    /// Decodes the samples. A damaged one is left out; those behind it are decoded, as far as the lengths say where they begin.
    pub(crate) fn samples(self, from: SocketAddr, each: &mut dyn FnMut(&Flow<'_>)) -> Outcome {
        let Self { header, mut samples, count, .. } = self;
        let mut outcome = Outcome::default();
        let mut values = Values::default();
        for _ in 0..count {
            let Some((format, mut body)) = opaque(&mut samples) else {
                outcome.problem = outcome.problem.or(Some(FEWER_SAMPLES));
                return outcome;
            };
            let is_expanded = matches!(format, EXPANDED_FLOW_SAMPLE | EXPANDED_COUNTERS_SAMPLE);
            let read = match format {
                FLOW_SAMPLE | EXPANDED_FLOW_SAMPLE => {
                    values.clear();
                    let read =
                        flow_sample(&mut body, is_expanded, &mut values, &mut outcome.skipped);
                    read.map(|()| {
                        outcome.flows += 1;
                        let (kind, values) = (FlowKind::Flow, values.list());
                        each(&Flow { header: &header, from, kind, values });
                    })
                }
                COUNTERS_SAMPLE | EXPANDED_COUNTERS_SAMPLE => {
                    counters_sample(&mut body, is_expanded, &mut outcome, &mut |values, scope| {
                        let kind = FlowKind::Options { scope };
                        each(&Flow { header: &header, from, kind, values: values.list() });
                    })
                }
                _ => {
                    outcome.skipped += 1;
                    continue;
                }
            };
            let problem = match read {
                None => Some(CUT_SAMPLE),
                Some(()) => (!body.is_padding()).then_some(MORE_RECORDS),
            };
            outcome.problem = outcome.problem.or(problem);
        }
        // XDR fills up to four bytes, and an agent may fill its datagrams up to one size. Zeros hide no sample and no
        // record, which begin with their format, and none has the format 0.
        if !samples.is_padding() {
            outcome.problem = outcome.problem.or(Some(MORE_SAMPLES));
        }
        outcome
    }
}

/// The class and the number of a data source.
fn data_source(cursor: &mut Cursor<'_>, is_expanded: bool) -> Option<(u32, u32)> {
    let first = cursor.u32()?;
    if is_expanded {
        Some((first, cursor.u32()?))
    } else {
        Some((first >> 24, first & 0x00ff_ffff))
    }
}

/// The format and the value of an interface: 0 for its number, 1 for the reason why the packet went nowhere, 2 for how many
/// it went to.
fn interface(cursor: &mut Cursor<'_>, is_expanded: bool) -> Option<(u32, u32)> {
    let first = cursor.u32()?;
    if is_expanded {
        Some((first, cursor.u32()?))
    } else {
        Some((first >> 30, first & 0x3fff_ffff))
    }
}

/// The number of an interface. Nothing if it is 0 (or all ones), which an agent sends for one that it does not
/// know, and if there is none.
fn known_interface(interface: (u32, u32)) -> Option<u32> {
    match interface {
        (0, 0 | NO_INTERFACE | u32::MAX) => None,
        (0, number) => Some(number),
        _ => None,
    }
}

/// A number; nothing if it is all ones, which an agent sends for what it does not know
/// (<https://sflow.org/developers/errata.php>).
struct Known(Option<u32>);

fn known_u32(cursor: &mut Cursor<'_>) -> Option<Known> {
    cursor.u32().map(|number| Known(Some(number).filter(|number| *number != u32::MAX)))
}

fn flow_sample<'a>(
    body: &mut Cursor<'a>,
    is_expanded: bool,
    values: &mut Values<'a>,
    skipped: &mut u64,
) -> Option<()> {
    let sequence = body.u32()?;
    let (class, index) = data_source(body, is_expanded)?;
    let (rate, pool, drops) = (body.u32()?, body.u32()?, body.u32()?);
    let input = interface(body, is_expanded)?;
    let output = interface(body, is_expanded)?;
    for (id, number) in [
        (Name::SampleSequence, sequence),
        (Name::DataSourceClass, class),
        (Name::DataSourceIndex, index),
        (Name::SamplingInterval, rate),
        (Name::SamplePool, pool),
        (Name::SampleDrops, drops),
    ] {
        values.number(id, number);
    }
    // The sample is one packet.
    values.number(Name::PacketDeltaCount, 1_u32);
    let (ingress, egress) = (known_interface(input), known_interface(output));
    if let Some(number) = ingress {
        values.number(Name::IngressInterface, number);
    }
    if let Some(number) = egress {
        values.number(Name::EgressInterface, number);
    }
    match output {
        (1, reason) => values.number(Name::DiscardReason, reason),
        // 0 is an unknown number greater than 1.
        (2, count) if count != 0 => values.number(Name::EgressInterfaces, count),
        _ => {}
    }
    if class == IF_INDEX {
        if ingress == Some(index) {
            values.number(Name::FlowDirection, 0_u32);
        } else if egress == Some(index) {
            values.number(Name::FlowDirection, 1_u32);
        }
    }
    let count = body.u32()?;
    for _ in 0..count {
        let (format, record) = opaque(body)?;
        flow_record(format, record, values, skipped)?;
    }
    Some(())
}

fn flow_record<'a>(
    format: u32,
    mut record: Cursor<'a>,
    values: &mut Values<'a>,
    skipped: &mut u64,
) -> Option<()> {
    match format {
        SAMPLED_HEADER => {
            let (protocol, frame_len) = (record.u32()?, record.u32()?);
            let (stripped, len) = (record.u32()?, record.u32()?);
            let header = record.take(usize::try_from(len).ok()?)?;
            // A sample is one packet: fields of another one would be mixed with its own.
            if values.has(Name::HeaderProtocol) {
                *skipped += 1;
                return Some(());
            }
            values.number(Name::HeaderProtocol, protocol);
            values.number(Name::DataLinkFrameSize, frame_len);
            values.number(Name::StrippedOctets, stripped);
            if !sampled_packet(protocol, header, (frame_len, stripped), values) {
                *skipped += 1;
            }
        }
        SAMPLED_ETHERNET => sampled_ethernet(&mut record, values)?,
        SAMPLED_IPV4 | SAMPLED_IPV6 => {
            network_record(&mut record, format == SAMPLED_IPV6, values)?;
        }
        EXTENDED_SWITCH => {
            for id in [Name::VlanId, Name::VlanPriority, Name::PostVlanId, Name::PostVlanPriority] {
                if let Known(Some(number)) = known_u32(&mut record)? {
                    values.number(id, number);
                }
            }
        }
        EXTENDED_ROUTER => {
            let Address(next_hop) = address(&mut record)?;
            let is_v6 = next_hop.is_some_and(|address| address.is_ipv6());
            let ids = if is_v6 {
                [Name::NextHopIpv6, Name::SourceIpv6PrefixLength, Name::DestinationIpv6PrefixLength]
            } else {
                [Name::NextHopIpv4, Name::SourceIpv4PrefixLength, Name::DestinationIpv4PrefixLength]
            };
            if let Some(address) = next_hop {
                values.set(ids[0], Value::Address(address));
            }
            values.number(ids[1], record.u32()?);
            values.number(ids[2], record.u32()?);
        }
        EXTENDED_GATEWAY => extended_gateway(&mut record, values)?,
        _ => *skipped += 1,
    }
    Some(())
}

fn sampled_ethernet<'a>(record: &mut Cursor<'a>, values: &mut Values<'a>) -> Option<()> {
    // XDR fills an address up to eight bytes; some agents do not.
    let fill = if record.len() >= 24 { 2 } else { 0 };
    let len = record.u32()?;
    let source = record.array::<6>()?;
    record.take(fill)?;
    let destination = record.array::<6>()?;
    record.take(fill)?;
    let ethernet_type = record.u32()?;
    values.number(Name::DataLinkFrameSize, len);
    // The length of an IP packet is a better one.
    if !values.has(Name::OctetDeltaCount) {
        values.number(Name::OctetDeltaCount, len);
    }
    values.set(Name::SourceMacAddress, Value::Mac(source));
    values.set(Name::DestinationMacAddress, Value::Mac(destination));
    if ethernet_type >= TYPE_MIN.into() {
        values.number(Name::EthernetType, ethernet_type);
    }
    Some(())
}

fn extended_gateway<'a>(record: &mut Cursor<'a>, values: &mut Values<'a>) -> Option<()> {
    match address(record)?.0 {
        Some(address @ IpAddr::V4(_)) => values.set(Name::BgpNextHopIpv4, Value::Address(address)),
        Some(address @ IpAddr::V6(_)) => values.set(Name::BgpNextHopIpv6, Value::Address(address)),
        None => {}
    }
    for id in [Name::RouterAsNumber, Name::BgpSourceAsNumber, Name::BgpPrevAdjacentAsNumber] {
        values.number(id, record.u32()?);
    }
    let path = as_path(record)?;
    if let Some(first) = path.iter().next() {
        values.number(Name::BgpNextAdjacentAsNumber, first);
    }
    if let Some(last) = path.iter().last() {
        values.number(Name::BgpDestinationAsNumber, last);
        values.set(Name::AsPath, Value::Numbers(path));
    }
    let communities = numbers(record)?;
    if communities.iter().next().is_some() {
        values.set(Name::BgpCommunity, Value::Numbers(communities));
    }
    values.number(Name::LocalPreference, record.u32()?);
    Some(())
}

/// The counters of an interface behind its number, with the bytes of each.
const COUNTERS: [(Name, u8); 18] = [
    (Name::IfType, 4),
    (Name::IfSpeed, 8),
    (Name::IfDirection, 4),
    (Name::IfStatus, 4),
    (Name::IfInOctets, 8),
    (Name::IfInUcastPkts, 4),
    (Name::IfInMulticastPkts, 4),
    (Name::IfInBroadcastPkts, 4),
    (Name::IfInDiscards, 4),
    (Name::IfInErrors, 4),
    (Name::IfInUnknownProtos, 4),
    (Name::IfOutOctets, 8),
    (Name::IfOutUcastPkts, 4),
    (Name::IfOutMulticastPkts, 4),
    (Name::IfOutBroadcastPkts, 4),
    (Name::IfOutDiscards, 4),
    (Name::IfOutErrors, 4),
    (Name::IfPromiscuousMode, 4),
];

/// Values that say what the counters are about: the data source and the interface.
const COUNTERS_SCOPE: usize = 3;

fn counters_sample<'a>(
    body: &mut Cursor<'a>,
    is_expanded: bool,
    outcome: &mut Outcome,
    each: &mut dyn FnMut(&Values<'a>, usize),
) -> Option<()> {
    let sequence = body.u32()?;
    let (class, index) = data_source(body, is_expanded)?;
    let count = body.u32()?;
    let mut values = Values::default();
    for _ in 0..count {
        let (format, mut record) = opaque(body)?;
        if format != GENERIC_INTERFACE {
            outcome.skipped += 1;
            continue;
        }
        values.clear();
        values.number(Name::DataSourceClass, class);
        values.number(Name::DataSourceIndex, index);
        values.number(Name::IfIndex, record.u32()?);
        for (id, len) in COUNTERS {
            let number = match len {
                8 => Some(record.u64()?).filter(|number| *number != u64::MAX),
                _ => known_u32(&mut record)?.0.map(u64::from),
            };
            if let Some(number) = number {
                values.number(id, number);
            }
        }
        values.number(Name::SampleSequence, sequence);
        outcome.flows += 1;
        each(&values, COUNTERS_SCOPE);
    }
    Some(())
}
