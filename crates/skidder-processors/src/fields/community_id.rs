//! `community_id`: the Community ID of a network flow, version 1.
//!
//! The format is that of <https://github.com/corelight/community-id-spec>: `1:` and the Base64 of a
//! SHA-1 over seed, addresses, protocol and ports, with the smaller end first, so that both
//! directions have the same.

use crate::condition::address;
use crate::fields::pairs::path_at;
use crate::go_number::unsigned;
use crate::go_value::utf8_of;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor, rehearse};
use sha1::block_api::compress;
use skidder_config::{Group, Key, Part, Section, settings};
use skidder_event::{EventMut, EventRef, Path, Value, ValueRef};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

settings! {
    /// Settings of `community_id`.
    pub(crate) static COMMUNITY_ID = Group::new("processor.community_id", "Adds the Community ID (version 1) of the network flow that an event \
                               is about.");

    FIELDS: Part = Key::part("fields", &FLOW)
        .about("the fields of the flow");
    TARGET: String = Key::new("target")
        .default("network.community_id")
        .about("where the ID goes; an event with a value there stays as it is");
    SEED: u16 = Key::new("seed")
        .default(0)
        .about("0 to 65535, for IDs that other installations cannot compare");
}

settings! {
    /// `fields` of `community_id`.
    static FLOW = Group::new("processor.flow", "The fields of a flow.").inline();

    SOURCE_IP: String = Key::new("source_ip")
        .default("source.ip")
        .about("address of one end");
    SOURCE_PORT: String = Key::new("source_port")
        .default("source.port")
        .about("its port; needed for TCP, UDP and SCTP");
    DESTINATION_IP: String = Key::new("destination_ip")
        .default("destination.ip")
        .about("address of the other end");
    DESTINATION_PORT: String = Key::new("destination_port")
        .default("destination.port")
        .about("its port");
    IANA_NUMBER: String = Key::new("iana_number")
        .default("network.iana_number")
        .about("the number of the protocol at IANA; wins if it is set");
    TRANSPORT: String = Key::new("transport")
        .default("network.transport")
        .about("the name of the protocol (`tcp`, `udp`, `sctp`, `icmp`, `icmpv6`, `ipv6-icmp`, \
                `igmp`, `gre`, `eigrp`, `ospf`, `pim`), or its number");
    ICMP_TYPE: String = Key::new("icmp_type")
        .default("icmp.type")
        .about("type of an ICMP message");
    ICMP_CODE: String = Key::new("icmp_code")
        .default("icmp.code")
        .about("its code; without both of them the ID is that of type 0 and code 0");
}

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;
const SCTP: u8 = 132;

/// Names of protocols, in lower case, with their numbers at IANA.
const TRANSPORTS: [(&str, u8); 11] = [
    ("icmp", ICMP),
    ("igmp", 2),
    ("tcp", TCP),
    ("udp", UDP),
    ("gre", 47),
    ("ipv6-icmp", ICMP_V6),
    ("icmpv6", ICMP_V6),
    ("eigrp", 88),
    ("ospf", 89),
    ("pim", 103),
    ("sctp", SCTP),
];

/// Types of ICMP that are question and answer, both ways but for 15.
const ICMP_PAIRS: &[(u8, u8)] =
    &[(8, 0), (0, 8), (13, 14), (14, 13), (15, 16), (10, 9), (9, 10), (17, 18), (18, 17)];
/// The same of ICMPv6.
const ICMP_V6_PAIRS: &[(u8, u8)] = &[
    (128, 129),
    (129, 128),
    (133, 134),
    (134, 133),
    (135, 136),
    (136, 135),
    (130, 131),
    (131, 130),
    (139, 140),
    (140, 139),
    (144, 145),
    (145, 144),
];

/// `1:` and the Base64 of 20 bytes.
const ID_BYTES: usize = 30;

/// Adds the Community ID of the flow that an event is about.
#[derive(Clone, Debug)]
pub(crate) struct CommunityId {
    source_ip: Field<IpAddr>,
    source_port: Field<u64>,
    destination_ip: Field<IpAddr>,
    destination_port: Field<u64>,
    iana_number: Field<Protocol>,
    transport: Field<Protocol>,
    icmp_type: Field<u64>,
    icmp_code: Field<u64>,
    target: Path,
    seed: u16,
}

/// The number of a protocol; `None` if the value names none.
type Protocol = Option<u8>;

/// A field and what to make of its value.
#[derive(Clone, Debug)]
struct Field<T> {
    path: Path,
    read: fn(ValueRef<'_>) -> Option<T>,
    known: Known<T>,
}

/// The value of a field at binding, before there is an event.
#[derive(Clone, Copy, Debug)]
enum Known<T> {
    /// Each event may have its own value.
    Nothing,
    /// Every event has this, or has none.
    Value(Option<T>),
}

impl<T: Copy> Field<T> {
    fn new(path: Path, read: fn(ValueRef<'_>) -> Option<T>) -> Self {
        Self { path, read, known: Known::Nothing }
    }

    #[inline]
    fn of(&self, event: EventRef<'_>) -> Option<T> {
        match self.known {
            Known::Value(known) => known,
            Known::Nothing => (self.read)(event.get(&self.path)?),
        }
    }

    /// Looks it up, if no event has another value than `constants`; returns whether it did.
    fn know(&mut self, constants: &Constants, is_own: &dyn Fn(&Path) -> bool) -> bool {
        if is_own(&self.path) {
            return false;
        }
        let value = constants.get(&self.path).map(scalar_of);
        self.known = Known::Value(value.and_then(|value| (self.read)(value)));
        true
    }
}

/// The Community ID of a flow, with seed 0: addresses and ports of both ends, and the number of the protocol. A flow of ICMP
/// has no ports, but a type and a code.
pub fn community_id(
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    protocol: u8,
    (icmp_type, icmp_code): (u8, u8),
) -> [u8; ID_BYTES] {
    let without_ports = |(address, _): (IpAddr, u16)| (address.to_canonical(), 0);
    let flow = match protocol {
        TCP | UDP | SCTP => {
            let canonical = |(address, port): (IpAddr, u16)| (address.to_canonical(), port);
            let (source, destination) = (canonical(source), canonical(destination));
            Flow { source, destination, protocol }.sorted()
        }
        _ => {
            let (source, destination) = (without_ports(source), without_ports(destination));
            let flow = Flow { source, destination, protocol };
            match protocol {
                ICMP | ICMP_V6 => flow.with_icmp(icmp_type, icmp_code),
                _ => flow.sorted(),
            }
        }
    };
    flow.id(0)
}

/// Bytes that SHA-1 takes at once.
const BLOCK_BYTES: usize = 64;

/// What SHA-1 begins with (FIPS 180-4, 5.3.1).
const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// An ID of a digest: a library takes twice as long to find out that it is so short.
fn base64_of(digest: &[u32; 5]) -> [u8; ID_BYTES] {
    let mut bytes = [0; 24];
    for (place, word) in bytes.chunks_exact_mut(4).zip(digest) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    // Six bits to a byte: the last four bytes are not of the digest.
    let mut letters = [0; 32];
    for (place, [one, two, three]) in
        letters.as_chunks_mut::<4>().0.iter_mut().zip(bytes.as_chunks().0)
    {
        let all = u32::from_be_bytes([0, *one, *two, *three]);
        let spread = (all >> 18)
            | (((all >> 12) & 63) << 8)
            | (((all >> 6) & 63) << 16)
            | ((all & 63) << 24);
        *place = spread.to_le_bytes();
    }
    // The alphabet of RFC 4648, all letters at once: no table is used.
    for letter in &mut letters {
        let six = *letter;
        let mut text = six + b'A';
        text += if six > 25 { b'a' - b'A' - 26 } else { 0 };
        text -= if six > 51 { b'a' + 26 - b'0' } else { 0 };
        text -= if six > 61 { b'0' + 10 - b'+' } else { 0 };
        text += if six > 62 { b'/' - b'+' - 1 } else { 0 };
        *letter = text;
    }
    let mut id = *b"1:...........................=";
    id[2..ID_BYTES - 1].copy_from_slice(&letters[..27]);
    id
}

/// A constant. Null is a value that makes no flow.
fn scalar_of(value: &Value) -> ValueRef<'_> {
    match value {
        Value::Str(text) => ValueRef::Str(text.as_bytes()),
        Value::Int(number) => ValueRef::Int(*number),
        Value::UInt(number) => ValueRef::UInt(*number),
        _ => ValueRef::Null,
    }
}

/// One flow: where from, where to, how.
#[derive(Clone, Copy, Debug)]
struct Flow {
    source: (IpAddr, u16),
    destination: (IpAddr, u16),
    protocol: u8,
}

impl CommunityId {
    /// `fields.*`, `target`, `seed`.
    pub(crate) fn read(settings: &Section<'_>) -> Option<Self> {
        let fields = settings.part(&FIELDS);
        let paths = [
            path_at(&fields, &SOURCE_IP),
            path_at(&fields, &SOURCE_PORT),
            path_at(&fields, &DESTINATION_IP),
            path_at(&fields, &DESTINATION_PORT),
            path_at(&fields, &IANA_NUMBER),
            path_at(&fields, &TRANSPORT),
            path_at(&fields, &ICMP_TYPE),
            path_at(&fields, &ICMP_CODE),
        ];
        let target = path_at(settings, &TARGET);
        let seed = settings.get(&SEED).value();
        let mut paths = paths.into_iter();
        let mut next = || paths.next().flatten();
        let protocol = |value: ValueRef<'_>| Some(protocol_of(value));
        Some(Self {
            source_ip: Field::new(next()?, ip_of),
            source_port: Field::new(next()?, number_of),
            destination_ip: Field::new(next()?, ip_of),
            destination_port: Field::new(next()?, number_of),
            iana_number: Field::new(next()?, protocol),
            transport: Field::new(next()?, protocol),
            icmp_type: Field::new(next()?, number_of),
            icmp_code: Field::new(next()?, number_of),
            target: target?,
            seed,
        })
    }

    /// The flow, if the event has enough of its fields.
    fn flow(&self, event: EventRef<'_>) -> Option<Flow> {
        let source = self.source_ip.of(event)?;
        let destination = self.destination_ip.of(event)?;
        let protocol = self.iana_number.of(event).or_else(|| self.transport.of(event))??;
        let mut flow = Flow { source: (source, 0), destination: (destination, 0), protocol };
        match protocol {
            TCP | UDP | SCTP => {
                flow.source.1 = u16::try_from(self.source_port.of(event)?).ok()?;
                flow.destination.1 = u16::try_from(self.destination_port.of(event)?).ok()?;
                Some(flow.sorted())
            }
            ICMP | ICMP_V6 => {
                // Without both type and code there still is an ID.
                let small = |field: &Field<u64>| field.of(event).map(u8::try_from);
                let (kind, code) = match (small(&self.icmp_type), small(&self.icmp_code)) {
                    (Some(Ok(kind)), Some(Ok(code))) => (kind, code),
                    _ => (0, 0),
                };
                Some(flow.with_icmp(kind, code))
            }
            _ => Some(flow.sorted()),
        }
    }
}

impl Flow {
    /// The smaller end first.
    fn sorted(self) -> Self {
        let number = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
            IpAddr::V6(address) => address.to_bits(),
        };
        let (source, destination) = (number(self.source.0), number(self.destination.0));
        if (source, self.source.1) < (destination, self.destination.1) {
            return self;
        }
        Self { source: self.destination, destination: self.source, ..self }
    }

    /// Type and answer, or type and code, take the place of the ports.
    fn with_icmp(mut self, kind: u8, code: u8) -> Self {
        let pairs = if self.protocol == ICMP { ICMP_PAIRS } else { ICMP_V6_PAIRS };
        self.source.1 = u16::from(kind);
        if let Some((_, answer)) = pairs.iter().find(|(question, _)| *question == kind) {
            self.destination.1 = u16::from(*answer);
            return self.sorted();
        }
        self.destination.1 = u16::from(code);
        self
    }

    fn id(&self, seed: u16) -> [u8; ID_BYTES] {
        let bytes = match (self.source.0, self.destination.0) {
            (IpAddr::V4(source), IpAddr::V4(destination)) if self.has_ports() => {
                self.usual_block(seed, source, destination)
            }
            _ => self.block(seed),
        };
        let mut state = START;
        compress(&mut state, &[bytes]);
        base64_of(&state)
    }

    fn has_ports(&self) -> bool {
        matches!(self.protocol, TCP | UDP | SCTP | ICMP | ICMP_V6)
    }

    /// The hashed bytes, of IPv4 and with ports: sixteen bytes, made in registers.
    fn usual_block(&self, seed: u16, source: Ipv4Addr, destination: Ipv4Addr) -> [u8; BLOCK_BYTES] {
        let addresses = (u128::from(source.to_bits()) << 32) | u128::from(destination.to_bits());
        let ports = (u128::from(self.source.1) << 16) | u128::from(self.destination.1);
        let protocol = u128::from(self.protocol);
        let all = (u128::from(seed) << 112) | (addresses << 48) | (protocol << 40) | ports;
        let mut block = [0; BLOCK_BYTES];
        block[..16].copy_from_slice(&all.to_be_bytes());
        block[16..32].copy_from_slice(&(0x80_u128 << 120).to_be_bytes());
        block[48..].copy_from_slice(&128_u128.to_be_bytes());
        block
    }

    /// The hashed bytes, with the padding: seed, addresses, protocol, zero and ports have room in one block.
    fn block(&self, seed: u16) -> [u8; BLOCK_BYTES] {
        let (mut bytes, mut len) = ([0; BLOCK_BYTES], 0);
        let mut add = |part: &[u8]| {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        add(&seed.to_be_bytes());
        for (address, _) in [self.source, self.destination] {
            match address {
                IpAddr::V4(address) => add(&address.octets()),
                IpAddr::V6(address) => add(&address.octets()),
            }
        }
        add(&[self.protocol, 0]);
        if self.has_ports() {
            add(&self.source.1.to_be_bytes());
            add(&self.destination.1.to_be_bytes());
        }
        add(&[0x80]);
        bytes[BLOCK_BYTES - 1] = ((len - 1) * 8 % 256) as u8;
        bytes[BLOCK_BYTES - 2] = ((len - 1) * 8 / 256) as u8;
        bytes
    }
}

fn ip_of(value: ValueRef<'_>) -> Option<IpAddr> {
    match value {
        ValueRef::Str(text) => address(text),
        _ => None,
    }
}

fn number_of(value: ValueRef<'_>) -> Option<u64> {
    match value {
        ValueRef::Int(number) => u64::try_from(number).ok(),
        ValueRef::UInt(number) => Some(number),
        ValueRef::Str(_) => unsigned(utf8_of(value)?),
        _ => None,
    }
}

/// The number of a protocol, out of its name or the number itself.
fn protocol_of(value: ValueRef<'_>) -> Option<u8> {
    if let ValueRef::Str(text) = value {
        let is_name = |name: &str| text.eq_ignore_ascii_case(name.as_bytes());
        let named = TRANSPORTS.iter().find(|(name, _)| is_name(name));
        if let Some((_, number)) = named {
            return Some(*number);
        }
    }
    u8::try_from(number_of(value)?).ok()
}

impl Processor for CommunityId {
    fn name(&self) -> &'static str {
        "community_id"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if event.as_ref().has(&self.target) {
            return Ok(Outcome::Done);
        }
        if let Some(flow) = self.flow(event.as_ref()) {
            let id = flow.id(self.seed);
            event
                .put_text(&self.target, &id)
                .map_err(|error| Failure::unnoted(error.to_string()))?;
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = [
            &self.source_ip.path,
            &self.source_port.path,
            &self.destination_ip.path,
            &self.destination_port.path,
            &self.iana_number.path,
            &self.transport.path,
            &self.icmp_type.path,
            &self.icmp_code.path,
            &self.target,
        ];
        let reads = reads.into_iter().cloned().collect();
        Footprint { reads, writes: vec![self.target.clone()], ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        rehearse(self, constants, &[&self.target])
    }

    fn knowing(
        &self,
        constants: &Constants,
        is_own: &dyn Fn(&Path) -> bool,
    ) -> Option<Arc<dyn Processor>> {
        let mut knowing = self.clone();
        let known = [
            knowing.source_ip.know(constants, is_own),
            knowing.source_port.know(constants, is_own),
            knowing.destination_ip.know(constants, is_own),
            knowing.destination_port.know(constants, is_own),
            knowing.iana_number.know(constants, is_own),
            knowing.transport.know(constants, is_own),
            knowing.icmp_type.know(constants, is_own),
            knowing.icmp_code.know(constants, is_own),
        ];
        known.contains(&true).then(|| Arc::new(knowing) as Arc<dyn Processor>)
    }

    fn describe(&self) -> String {
        format!("community_id to {}", self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn usual_flows_are_hashed_as_others(
            (source, destination) in any::<((u32, u16), (u32, u16))>(), protocol in any::<u8>(), seed in any::<u16>()
        ) {
            let end = |(address, port)| (IpAddr::V4(Ipv4Addr::from_bits(address)), port);
            let flow = Flow { source: end(source), destination: end(destination), protocol };
            let usual = flow.usual_block(seed, Ipv4Addr::from_bits(source.0), Ipv4Addr::from_bits(destination.0));
            prop_assert_eq!(usual == flow.block(seed), flow.has_ports());
        }

        #[test]
        fn ids_are_base64(digest in any::<[u32; 5]>()) {
            let bytes: Vec<u8> = digest.iter().flat_map(|word| word.to_be_bytes()).collect();
            let expected = format!("1:{}", STANDARD.encode(bytes));
            let id = base64_of(&digest);
            prop_assert_eq!(std::str::from_utf8(&id).unwrap(), expected);
        }
    }
}
