//! A packet that an agent of sFlow has sampled: what its first bytes say, as fields.
//!
//! The agent cuts the packet after some bytes, usually 128. What is behind the cut is missing, which is no damage.

use crate::cursor::Cursor;
use crate::fields::Field;
use crate::value::{Kind, Numbers, Value};
use std::net::IpAddr;
use std::sync::LazyLock;

macro_rules! fields {
    ($($id:ident = $name:literal),* $(,)?) => {
        /// A field of sFlow.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Name {
            $($id),*
        }

        /// The name of each: that of the registry of IANA if it has the same, or one that is written like these.
        const NAMES: &[&str] = &[$($name),*];
    };
}

fields! {
    SampleSequence = "sampleSequence",
    DataSourceClass = "dataSourceClass",
    DataSourceIndex = "dataSourceIndex",
    SamplingInterval = "samplingInterval",
    SamplePool = "samplePool",
    SampleDrops = "sampleDrops",
    PacketDeltaCount = "packetDeltaCount",
    OctetDeltaCount = "octetDeltaCount",
    IngressInterface = "ingressInterface",
    EgressInterface = "egressInterface",
    EgressInterfaces = "egressInterfaces",
    DiscardReason = "discardReason",
    FlowDirection = "flowDirection",
    HeaderProtocol = "headerProtocol",
    DataLinkFrameSize = "dataLinkFrameSize",
    StrippedOctets = "strippedOctets",
    SourceMacAddress = "sourceMacAddress",
    DestinationMacAddress = "destinationMacAddress",
    EthernetType = "ethernetType",
    Dot1qVlanId = "dot1qVlanId",
    Dot1qPriority = "dot1qPriority",
    Dot1qCustomerVlanId = "dot1qCustomerVlanId",
    Dot1qCustomerPriority = "dot1qCustomerPriority",
    MplsTopLabel = "mplsTopLabel",
    IpVersion = "ipVersion",
    SourceIpv4Address = "sourceIPv4Address",
    DestinationIpv4Address = "destinationIPv4Address",
    SourceIpv6Address = "sourceIPv6Address",
    DestinationIpv6Address = "destinationIPv6Address",
    IpClassOfService = "ipClassOfService",
    IpTtl = "ipTTL",
    FlowLabelIpv6 = "flowLabelIPv6",
    FragmentIdentification = "fragmentIdentification",
    FragmentOffset = "fragmentOffset",
    ProtocolIdentifier = "protocolIdentifier",
    SourceTransportPort = "sourceTransportPort",
    DestinationTransportPort = "destinationTransportPort",
    TcpControlBits = "tcpControlBits",
    IcmpTypeIpv4 = "icmpTypeIPv4",
    IcmpCodeIpv4 = "icmpCodeIPv4",
    IcmpTypeIpv6 = "icmpTypeIPv6",
    IcmpCodeIpv6 = "icmpCodeIPv6",
    VlanId = "vlanId",
    VlanPriority = "vlanPriority",
    PostVlanId = "postVlanId",
    PostVlanPriority = "postVlanPriority",
    NextHopIpv4 = "ipNextHopIPv4Address",
    NextHopIpv6 = "ipNextHopIPv6Address",
    SourceIpv4PrefixLength = "sourceIPv4PrefixLength",
    DestinationIpv4PrefixLength = "destinationIPv4PrefixLength",
    SourceIpv6PrefixLength = "sourceIPv6PrefixLength",
    DestinationIpv6PrefixLength = "destinationIPv6PrefixLength",
    BgpNextHopIpv4 = "bgpNextHopIPv4Address",
    BgpNextHopIpv6 = "bgpNextHopIPv6Address",
    RouterAsNumber = "routerAsNumber",
    BgpSourceAsNumber = "bgpSourceAsNumber",
    BgpPrevAdjacentAsNumber = "bgpPrevAdjacentAsNumber",
    BgpNextAdjacentAsNumber = "bgpNextAdjacentAsNumber",
    BgpDestinationAsNumber = "bgpDestinationAsNumber",
    AsPath = "asPath",
    BgpCommunity = "bgpCommunity",
    LocalPreference = "localPreference",
    IfIndex = "ifIndex",
    IfType = "ifType",
    IfSpeed = "ifSpeed",
    IfDirection = "ifDirection",
    IfStatus = "ifStatus",
    IfInOctets = "ifInOctets",
    IfInUcastPkts = "ifInUcastPkts",
    IfInMulticastPkts = "ifInMulticastPkts",
    IfInBroadcastPkts = "ifInBroadcastPkts",
    IfInDiscards = "ifInDiscards",
    IfInErrors = "ifInErrors",
    IfInUnknownProtos = "ifInUnknownProtos",
    IfOutOctets = "ifOutOctets",
    IfOutUcastPkts = "ifOutUcastPkts",
    IfOutMulticastPkts = "ifOutMulticastPkts",
    IfOutBroadcastPkts = "ifOutBroadcastPkts",
    IfOutDiscards = "ifOutDiscards",
    IfOutErrors = "ifOutErrors",
    IfPromiscuousMode = "ifPromiscuousMode",
}

static FIELDS: LazyLock<Box<[Field]>> =
    LazyLock::new(|| NAMES.iter().map(|name| Field::new(name, Kind::Unsigned(8))).collect());

/// Values of one sample: each field once, in the order in which they came.
#[derive(Debug)]
pub(crate) struct Values<'a> {
    fields: &'static [Field],
    list: Vec<(&'a Field, Value<'a>)>,
    /// A bit for each field that is there.
    seen: u128,
}

impl Default for Values<'_> {
    fn default() -> Self {
        const { assert!(NAMES.len() <= u128::BITS as usize) };
        Self { fields: &FIELDS, list: Vec::new(), seen: 0 }
    }
}

impl<'a> Values<'a> {
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.seen = 0;
    }

    pub(crate) fn list(&self) -> &[(&'a Field, Value<'a>)] {
        &self.list
    }

    pub(crate) fn has(&self, id: Name) -> bool {
        self.seen & (1 << id as u32) != 0
    }

    /// Adds a value. The last one of a field counts.
    pub(crate) fn set(&mut self, id: Name, value: Value<'a>) {
        let field = &self.fields[id as usize];
        if self.has(id) {
            let before = self.list.iter_mut().find(|(known, _)| std::ptr::eq(*known, field));
            before.expect("it is among those that were seen").1 = value;
        } else {
            self.seen |= 1 << id as u32;
            self.list.push((field, value));
        }
    }

    pub(crate) fn number(&mut self, id: Name, number: impl Into<u64>) {
        self.set(id, Value::Unsigned(number.into()));
    }
}

/// Reads numbers of four bytes, with how many they are before them.
pub(crate) fn numbers<'a>(cursor: &mut Cursor<'a>) -> Option<Numbers<'a>> {
    let len = usize::try_from(cursor.u32()?).ok()?.checked_mul(4)?;
    cursor.take(len).map(Numbers::plain)
}

/// Reads the path through autonomous systems: segments with a type, and the numbers of each.
pub(crate) fn as_path<'a>(cursor: &mut Cursor<'a>) -> Option<Numbers<'a>> {
    let segments = cursor.u32()?;
    let whole = cursor.0;
    for _ in 0..segments {
        cursor.u32()?;
        numbers(cursor)?;
    }
    Some(Numbers::segments(&whole[..whole.len() - cursor.len()]))
}

/// Reads a record of a packet of IPv4 or IPv6 whose header the agent has decoded.
pub(crate) fn network_record<'a>(
    record: &mut Cursor<'a>,
    is_v6: bool,
    values: &mut Values<'a>,
) -> Option<()> {
    let (len, protocol) = (record.u32()?, record.u32()?);
    let mut address = || {
        Some(if is_v6 {
            IpAddr::from(record.array::<16>()?)
        } else {
            IpAddr::from(record.array::<4>()?)
        })
    };
    let (source, destination) = (address()?, address()?);
    let (source_port, destination_port) = (record.u32()?, record.u32()?);
    let (flags, service) = (record.u32()?, record.u32()?);
    values.number(Name::OctetDeltaCount, len);
    values.number(Name::IpVersion, if is_v6 { 6_u32 } else { 4 });
    addresses(source, destination, values);
    values.number(Name::IpClassOfService, service);
    let protocol = protocol as u8;
    values.number(Name::ProtocolIdentifier, protocol);
    if has_ports(protocol) {
        // A port has two bytes, whatever the agent says.
        values.number(Name::SourceTransportPort, source_port as u16);
        values.number(Name::DestinationTransportPort, destination_port as u16);
    }
    if protocol == TCP {
        values.number(Name::TcpControlBits, flags);
    }
    Some(())
}

fn addresses(source: IpAddr, destination: IpAddr, values: &mut Values<'_>) {
    let (from, to) = if source.is_ipv6() {
        (Name::SourceIpv6Address, Name::DestinationIpv6Address)
    } else {
        (Name::SourceIpv4Address, Name::DestinationIpv4Address)
    };
    values.set(from, Value::Address(source));
    values.set(to, Value::Address(destination));
}

/// How the bytes of a packet begin (`header_protocol` of the specification).
const ETHERNET: u32 = 1;
const HEADER_IPV4: u32 = 11;
const HEADER_IPV6: u32 = 12;
const HEADER_MPLS: u32 = 13;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const TYPE_MPLS: [u16; 2] = [0x8847, 0x8848];
/// Tags of a VLAN: IEEE 802.1Q, 802.1ad, and the number before that was a standard.
const TYPE_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The least type; below it are lengths (IEEE 802.3, 3.2.6).
pub(crate) const TYPE_MIN: u16 = 0x0600;
/// The headers of IEEE 802.2 and SNAP before the type of a packet of RFC 1042.
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];

/// Tags of a packet that are read over; more of them are no network's.
const TAGS_MAX: usize = 8;

/// Numbers of protocols over IP.
const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const DCCP: u8 = 33;
const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;
const UDP_LITE: u8 = 136;

fn has_ports(protocol: u8) -> bool {
    matches!(protocol, TCP | UDP | DCCP | SCTP | UDP_LITE)
}

/// Reads the first bytes of a packet whose frame had `frame_len` bytes. The agent has taken away `stripped` of them
/// before it cut the packet: the check sequence of the frame, and tags. Headers inside of a tunnel are not looked at.
///
/// Returns `false` if the bytes begin with a header that is not decoded here, or if there is no header of IP, or
/// only a part of it, where one should be.
pub(crate) fn sampled_packet<'a>(
    protocol: u32,
    header: &'a [u8],
    (frame_len, stripped): (u32, u32),
    values: &mut Values<'a>,
) -> bool {
    // Until an IP header has a better one.
    if !values.has(Name::OctetDeltaCount) {
        values.number(Name::OctetDeltaCount, frame_len);
    }
    let mut cursor = Cursor(header);
    // A `None` on the way is where the packet was cut, or what is not IP.
    let ip_version = match protocol {
        ETHERNET => ethernet(&mut cursor, values),
        HEADER_MPLS => mpls(&mut cursor, values),
        HEADER_IPV4 => Some(4),
        HEADER_IPV6 => Some(6),
        _ => return false,
    };
    // In case the packet does not have its own length: the network card cuts it into smaller ones later.
    let before = (header.len() - cursor.len()) as u64;
    let rest = u64::from(frame_len).saturating_sub(u64::from(stripped) + before);
    let behind = match ip_version {
        Some(4) => ipv4(cursor, rest, values),
        Some(6) => ipv6(cursor, rest, values),
        _ => return true,
    };
    let Some((behind_ip, number)) = behind else { return false };
    let _cut = transport(behind_ip, number, values);
    true
}

/// Reads to the header behind that of Ethernet; returns the version of IP if it is one.
fn ethernet<'a>(cursor: &mut Cursor<'a>, values: &mut Values<'a>) -> Option<u8> {
    let (destination, source) = (cursor.array()?, cursor.array()?);
    values.set(Name::SourceMacAddress, Value::Mac(source));
    values.set(Name::DestinationMacAddress, Value::Mac(destination));
    let mut ethernet_type = cursor.u16()?;
    for tag in 0..TAGS_MAX {
        if !TYPE_VLAN.contains(&ethernet_type) {
            break;
        }
        let control = cursor.u16()?;
        // Outer and inner one; there are no names for more.
        let ids = match tag {
            0 => Some((Name::Dot1qVlanId, Name::Dot1qPriority)),
            1 => Some((Name::Dot1qCustomerVlanId, Name::Dot1qCustomerPriority)),
            _ => None,
        };
        if let Some((vlan, priority)) = ids {
            values.number(vlan, control & 0x0fff);
            values.number(priority, control >> 13);
        }
        ethernet_type = cursor.u16()?;
    }
    if ethernet_type < TYPE_MIN {
        ethernet_type = behind_length(cursor)?;
    }
    values.number(Name::EthernetType, ethernet_type);
    match ethernet_type {
        TYPE_IPV4 => Some(4),
        TYPE_IPV6 => Some(6),
        _ if TYPE_MPLS.contains(&ethernet_type) => mpls(cursor, values),
        _ => None,
    }
}

/// The type of a frame of IEEE 802.3, which has its length in the place of a type: only those with the header of SNAP and
/// without an organization have one.
fn behind_length(cursor: &mut Cursor<'_>) -> Option<u16> {
    let has_type = cursor.array()? == SNAP;
    has_type.then(|| cursor.u16()).flatten()
}

/// Reads to what is behind the labels. The version of IP is not in them, but in the next bits, if these are of IP.
fn mpls<'a>(cursor: &mut Cursor<'a>, values: &mut Values<'a>) -> Option<u8> {
    for at in 0..TAGS_MAX {
        let label = cursor.u32()?;
        if at == 0 {
            values.number(Name::MplsTopLabel, label >> 12);
        }
        if label & 0x100 != 0 {
            return cursor.0.first().map(|byte| byte >> 4);
        }
    }
    None
}

/// Reads the header of IPv4. Returns what is behind it and the number of its protocol; `None` if it is cut, or none
/// of IPv4.
fn ipv4<'a>(
    mut cursor: Cursor<'a>,
    rest: u64,
    values: &mut Values<'a>,
) -> Option<(Cursor<'a>, u8)> {
    let whole = cursor.0;
    let (version, service, len) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
    let (identification, fragment) = (cursor.u16()?, cursor.u16()?);
    let (ttl, protocol, _checksum) = (cursor.u8()?, cursor.u8()?, cursor.u16()?);
    let (source, destination) = (cursor.array::<4>()?, cursor.array::<4>()?);
    let header_len = usize::from(version & 0xf) * 4;
    if version >> 4 != 4 || header_len < 20 {
        return None;
    }
    values.number(Name::IpVersion, 4_u32);
    values.number(Name::OctetDeltaCount, if len == 0 { rest } else { len.into() });
    addresses(source.into(), destination.into(), values);
    values.number(Name::IpClassOfService, service);
    values.number(Name::IpTtl, ttl);
    let offset = fragment & 0x1fff;
    if fragment & 0x3fff != 0 {
        values.number(Name::FragmentIdentification, identification);
        values.number(Name::FragmentOffset, offset);
    }
    values.number(Name::ProtocolIdentifier, protocol);
    // The ports are in the first fragment.
    let behind = whole.get(header_len..).filter(|_| offset == 0).unwrap_or_default();
    Some((Cursor(behind), protocol))
}

/// Headers of IPv6 before that of the transport.
const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const NO_NEXT: u8 = 59;

/// Reads the headers of IPv6, as [`ipv4`] does.
fn ipv6<'a>(
    mut cursor: Cursor<'a>,
    rest: u64,
    values: &mut Values<'a>,
) -> Option<(Cursor<'a>, u8)> {
    let (first, len) = (cursor.u32()?, cursor.u16()?);
    let (mut protocol, ttl) = (cursor.u8()?, cursor.u8()?);
    let (source, destination) = (cursor.array::<16>()?, cursor.array::<16>()?);
    if first >> 28 != 6 {
        return None;
    }
    let has_len = len != 0 || protocol == NO_NEXT;
    values.number(Name::IpVersion, 6_u32);
    values.number(Name::OctetDeltaCount, if has_len { u64::from(len) + 40 } else { rest });
    addresses(source.into(), destination.into(), values);
    values.number(Name::IpClassOfService, (first >> 20) & 0xff);
    values.number(Name::IpTtl, ttl);
    values.number(Name::FlowLabelIpv6, first & 0x000f_ffff);
    // Each of them has bytes.
    let mut is_cut = false;
    let mut offset = 0;
    while let HOP_BY_HOP | ROUTING | FRAGMENT | AUTHENTICATION | DESTINATION_OPTIONS = protocol {
        let mut next = || {
            let (next, len) = (cursor.u8()?, usize::from(cursor.u8()?));
            let rest = match protocol {
                FRAGMENT => 6,
                AUTHENTICATION => (len + 2) * 4 - 2,
                _ => (len + 1) * 8 - 2,
            };
            Some((next, cursor.take(rest)?))
        };
        let Some((after, body)) = next() else {
            is_cut = true;
            break;
        };
        if protocol == FRAGMENT {
            offset = u16::from_be_bytes([body[0], body[1]]) >> 3;
            let identification = u32::from_be_bytes([body[2], body[3], body[4], body[5]]);
            values.number(Name::FragmentIdentification, identification);
            values.number(Name::FragmentOffset, offset);
        }
        protocol = after;
        if offset != 0 {
            break;
        }
    }
    // Behind a cut the number is that of the header that was cut.
    values.number(Name::ProtocolIdentifier, protocol);
    let behind = if is_cut || offset != 0 { Cursor(&[]) } else { cursor };
    Some((behind, protocol))
}

fn transport<'a>(mut cursor: Cursor<'a>, protocol: u8, values: &mut Values<'a>) -> Option<()> {
    let icmp = match protocol {
        ICMP => Some((Name::IcmpTypeIpv4, Name::IcmpCodeIpv4)),
        ICMP_V6 => Some((Name::IcmpTypeIpv6, Name::IcmpCodeIpv6)),
        _ => None,
    };
    if let Some((kind, code)) = icmp {
        let (of_kind, of_code) = (cursor.u8()?, cursor.u8()?);
        values.number(kind, of_kind);
        values.number(code, of_code);
    }
    if has_ports(protocol) {
        let (source, destination) = (cursor.u16()?, cursor.u16()?);
        values.number(Name::SourceTransportPort, source);
        values.number(Name::DestinationTransportPort, destination);
    }
    if protocol == TCP {
        // Sequence number, acknowledgement, length of the header.
        cursor.take(9)?;
        values.number(Name::TcpControlBits, cursor.u8()?);
    }
    Some(())
}
