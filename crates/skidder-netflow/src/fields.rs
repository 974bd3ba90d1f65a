//! The fields that are known: of the registry of IANA, and of vendors.
//!
//! `fields/iana.txt` has a line `ID NAME TYPE` for each Information Element of
//! <https://www.iana.org/assignments/ipfix/ipfix.xhtml>, state of October 2024. `fields/vendors.txt` has a line
//! `ENTERPRISE ID NAME TYPE` for each of the fields of vendors that Filebeat 9.6 knows; enterprise 0 is for numbers of
//! Cisco's that are in no registry. A name with an underscore is as it is in events.

use crate::name::snake_case;
use crate::value::Kind;
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// The enterprise of reverse fields (RFC 5103): the same numbers, for the other direction of a flow.
const REVERSE: u32 = 29_305;

/// What a field is to the fields of the Elastic Common Schema that are made of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "these are the names of the registry")]
pub enum Role {
    SystemInitTimeMilliseconds,
    FlowStartSysUpTime,
    FlowEndSysUpTime,
    FlowDurationMilliseconds,
    FlowDirection,
    BiflowDirection,
    StaIpv4Address,
    StaMacAddress,
    WtpMacAddress,
    WlanSsid,
    SourceIpv4Address,
    SourceIpv6Address,
    SourceTransportPort,
    SourceMacAddress,
    DestinationIpv4Address,
    DestinationIpv6Address,
    DestinationTransportPort,
    DestinationMacAddress,
    ProtocolIdentifier,
    OctetDeltaCount,
    OctetTotalCount,
    InitiatorOctets,
    PacketDeltaCount,
    PacketTotalCount,
    InitiatorPackets,
    ReverseOctetDeltaCount,
    ReverseOctetTotalCount,
    ResponderOctets,
    ReversePacketDeltaCount,
    ReversePacketTotalCount,
    ResponderPackets,
    IcmpTypeIpv4,
    IcmpCodeIpv4,
    IcmpTypeIpv6,
    IcmpCodeIpv6,
}

impl Role {
    /// How many there are.
    pub const COUNT: usize = ROLES.len();
}

/// The fields with a role, by name. Their order is that of the roles.
const ROLES: [(&str, Role); 35] = [
    ("systemInitTimeMilliseconds", Role::SystemInitTimeMilliseconds),
    ("flowStartSysUpTime", Role::FlowStartSysUpTime),
    ("flowEndSysUpTime", Role::FlowEndSysUpTime),
    ("flowDurationMilliseconds", Role::FlowDurationMilliseconds),
    ("flowDirection", Role::FlowDirection),
    ("biflowDirection", Role::BiflowDirection),
    ("staIPv4Address", Role::StaIpv4Address),
    ("staMacAddress", Role::StaMacAddress),
    ("wtpMacAddress", Role::WtpMacAddress),
    ("wlanSSID", Role::WlanSsid),
    ("sourceIPv4Address", Role::SourceIpv4Address),
    ("sourceIPv6Address", Role::SourceIpv6Address),
    ("sourceTransportPort", Role::SourceTransportPort),
    ("sourceMacAddress", Role::SourceMacAddress),
    ("destinationIPv4Address", Role::DestinationIpv4Address),
    ("destinationIPv6Address", Role::DestinationIpv6Address),
    ("destinationTransportPort", Role::DestinationTransportPort),
    ("destinationMacAddress", Role::DestinationMacAddress),
    ("protocolIdentifier", Role::ProtocolIdentifier),
    ("octetDeltaCount", Role::OctetDeltaCount),
    ("octetTotalCount", Role::OctetTotalCount),
    ("initiatorOctets", Role::InitiatorOctets),
    ("packetDeltaCount", Role::PacketDeltaCount),
    ("packetTotalCount", Role::PacketTotalCount),
    ("initiatorPackets", Role::InitiatorPackets),
    ("reverseOctetDeltaCount", Role::ReverseOctetDeltaCount),
    ("reverseOctetTotalCount", Role::ReverseOctetTotalCount),
    ("responderOctets", Role::ResponderOctets),
    ("reversePacketDeltaCount", Role::ReversePacketDeltaCount),
    ("reversePacketTotalCount", Role::ReversePacketTotalCount),
    ("responderPackets", Role::ResponderPackets),
    ("icmpTypeIPv4", Role::IcmpTypeIpv4),
    ("icmpCodeIPv4", Role::IcmpCodeIpv4),
    ("icmpTypeIPv6", Role::IcmpTypeIpv6),
    ("icmpCodeIPv6", Role::IcmpCodeIpv6),
];

/// A field that is known.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in events.
    pub name: Box<str>,
    /// How its bytes are read.
    pub kind: Kind,
    /// What it is to the Elastic Common Schema, if anything.
    pub role: Option<Role>,
}

impl Field {
    /// A field with a name as in the registry.
    pub(crate) fn new(name: &str, kind: Kind) -> Self {
        let role = ROLES.iter().find(|(known, _)| *known == name).map(|(_, role)| *role);
        Self { name: snake_case(name).into(), kind, role }
    }
}

/// A field of the user's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomField {
    /// The number of the enterprise; 0 for none, as in NetFlow 9.
    pub enterprise: u32,
    /// The number of the field.
    pub id: u16,
    /// Its name, as in the registry: `sourceIPv4Address`.
    pub name: String,
    /// How its bytes are read.
    pub kind: Kind,
}

type Table = HashMap<(u32, u16), Arc<Field>, RandomState>;

/// All fields that are known.
#[derive(Clone, Debug)]
pub struct Fields(Arc<Table>);

static KNOWN: LazyLock<Fields> = LazyLock::new(|| Fields(Arc::new(table())));

impl Fields {
    /// The fields of IANA and of vendors.
    pub fn known() -> Self {
        KNOWN.clone()
    }

    /// The same with other fields, which win.
    pub fn with(self, custom: impl IntoIterator<Item = CustomField>) -> Self {
        let mut custom = custom.into_iter().peekable();
        if custom.peek().is_none() {
            return self;
        }
        let mut table = (*self.0).clone();
        for CustomField { enterprise, id, name, kind } in custom {
            table.insert((enterprise, id), Arc::new(Field::new(&name, kind)));
        }
        Self(Arc::new(table))
    }

    /// The field with this number.
    pub fn get(&self, enterprise: u32, id: u16) -> Option<&Arc<Field>> {
        self.0.get(&(enterprise, id))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn table() -> Table {
    let mut table = Table::default();
    for line in include_str!("fields/iana.txt").lines() {
        let (id, name, kind) = parse(line).expect("a line of our own table");
        table.insert((0, id), Arc::new(Field::new(name, kind)));
        let mut letters = name.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        let reverse: String = "reverse".chars().chain(first).chain(letters).collect();
        table.insert((REVERSE, id), Arc::new(Field::new(&reverse, kind)));
    }
    for line in include_str!("fields/vendors.txt").lines() {
        let (enterprise, rest) = line.split_once(' ').expect("a line of our own table");
        let enterprise = enterprise.parse().expect("a number in our own table");
        let (id, name, kind) = parse(rest).expect("a line of our own table");
        table.insert((enterprise, id), Arc::new(Field::new(name, kind)));
    }
    table
}

/// Reads `ID NAME TYPE`.
fn parse(line: &str) -> Option<(u16, &str, Kind)> {
    let mut words = line.split(' ');
    let field = (words.next()?.parse().ok()?, words.next()?, kind(words.next()?)?);
    words.next().is_none().then_some(field)
}

/// The kind of a type of the registry.
fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "unsigned8" => Kind::Unsigned(1),
        "unsigned16" => Kind::Unsigned(2),
        "unsigned32" => Kind::Unsigned(4),
        "unsigned64" => Kind::Unsigned(8),
        "signed8" => Kind::Signed(1),
        "signed16" => Kind::Signed(2),
        "signed32" => Kind::Signed(4),
        "signed64" => Kind::Signed(8),
        "float32" => Kind::Float(4),
        "float64" => Kind::Float(8),
        "boolean" => Kind::Bool,
        "macAddress" => Kind::Mac,
        "octetArray" | "unsigned256" => Kind::Bytes,
        "string" => Kind::Text,
        "dateTimeSeconds" => Kind::Seconds,
        "dateTimeMilliseconds" => Kind::Milliseconds,
        "dateTimeMicroseconds" | "dateTimeNanoseconds" => Kind::Ntp,
        "ipv4Address" => Kind::V4,
        "ipv6Address" => Kind::V6,
        "aclId" => Kind::AclId,
        "basicList" | "subTemplateList" | "subTemplateMultiList" => Kind::Unsupported,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read_and_roles_are_in_their_order() {
        let known = Fields::known();
        assert_eq!(known.len(), 2 * 498 + 516);
        for (at, (name, role)) in ROLES.iter().enumerate() {
            assert_eq!(*role as usize, at, "{name}");
            assert_eq!(Field::new(name, Kind::Text).role, Some(*role));
        }
        let roles = known.0.values().filter_map(|field| field.role);
        let mut roles: Vec<usize> = roles.map(|role| role as usize).collect();
        roles.sort_unstable();
        roles.dedup();
        assert_eq!(roles.len(), Role::COUNT, "each of them is in the tables");
    }

    #[test]
    fn fields_are_found_by_enterprise_and_number_and_those_of_the_user_win() {
        let known = Fields::known();
        let name = |fields: &Fields, enterprise, id| {
            fields.get(enterprise, id).map(|field| field.name.to_string())
        };
        for (enterprise, id, expected) in [
            (0, 8, Some("source_ipv4_address")),
            (0, 33_000, Some("ingress_acl_id")),
            (REVERSE, 1, Some("reverse_octet_delta_count")),
            (9, 12_235, Some("application_http_user-agent")),
            (9, 8, None),
        ] {
            assert_eq!(name(&known, enterprise, id).as_deref(), expected);
        }
        let (name_of, kind) = ("sourceIPv4Address".to_owned(), Kind::V4);
        let custom = CustomField { enterprise: 9, id: 8, name: name_of, kind };
        let with = Fields::known().with([custom]);
        assert_eq!(name(&with, 9, 8).as_deref(), Some("source_ipv4_address"));
        assert_eq!(name(&with, 0, 8), name(&known, 0, 8));
        assert_eq!(with.get(9, 8).unwrap().role, Some(Role::SourceIpv4Address));
    }
}
