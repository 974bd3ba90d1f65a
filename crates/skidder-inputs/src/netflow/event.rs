//! The event of a flow or of a record of options: `netflow.*`, and for flows the fields of the Elastic Common Schema.

use super::ends::{End, Ends, ends_of, flow_id, icmp_of};
use super::keys::{Key, Keys, Word};
use super::roles::Roles;
use skidder_event::{Arena, Cell, EventMut, FieldList, NodeId, Text};
use skidder_netflow::{Extra, Field, Flow, FlowKind, Header, Protocol, Role, Value};
use skidder_processors::{Network, community_id};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::LazyLock;

const MILLISECOND: i64 = 1_000_000;

/// The value of `biflowDirection` of a flow whose first packet came from its destination.
const REVERSE_INITIATOR: u64 = 2;

/// Addresses that need not be in one of the networks to be internal.
static LOCAL: LazyLock<Vec<Network>> = LazyLock::new(|| {
    let names = [
        "loopback",
        "unspecified",
        "link_local_unicast",
        "link_local_multicast",
        "interface_local_multicast",
        "255.255.255.255/32",
    ];
    names.iter().map(|name| Network::parse(name).expect("a network")).collect()
});

/// The networks that are internal.
#[derive(Clone, Debug)]
pub(super) struct Internal(pub(super) Vec<Network>);

impl Internal {
    fn word(&self, addresses: &[IpAddr]) -> Word {
        let is_internal = |address: &IpAddr| {
            let address = address.to_canonical();
            self.0.iter().chain(&*LOCAL).any(|network| network.contains(address))
        };
        if addresses.iter().all(is_internal) { Word::Internal } else { Word::External }
    }
}

/// An object that is being made.
#[derive(Clone, Copy)]
struct Object {
    first: NodeId,
    last: NodeId,
}

impl Object {
    const EMPTY: Self = Self { first: NodeId::NONE, last: NodeId::NONE };

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    fn add(&mut self, arena: &mut Arena<'_>, key: Text, cell: Cell, raw: u32) {
        self.last = arena.push(self.last, key, cell, raw);
        if self.first.is_none() {
            self.first = self.last;
        }
    }

    fn cell(&self) -> Cell {
        Cell::Map { first: self.first, opaque: false }
    }
}

/// Writes one event.
pub(super) struct Writer<'a, 'b> {
    event: &'a mut EventMut<'b>,
    keys: &'a mut Keys,
    internal: &'a Internal,
    scratch: &'a mut String,
}

/// A number that may be greater than the greatest signed one.
fn number(value: u64) -> Cell {
    i64::try_from(value).map_or(Cell::UInt(value), Cell::Int)
}

impl<'a, 'b> Writer<'a, 'b> {
    pub(super) fn new(
        event: &'a mut EventMut<'b>,
        keys: &'a mut Keys,
        internal: &'a Internal,
        scratch: &'a mut String,
    ) -> Self {
        Self { event, keys, internal, scratch }
    }

    fn put(&mut self, object: &mut Object, key: Key, cell: Cell) {
        let key = self.keys.key(key);
        object.add(&mut self.event.arena().1, key, cell, Arena::KEY);
    }

    fn put_object(&mut self, object: &mut Object, key: Key, inside: Object) {
        if !inside.is_empty() {
            self.put(object, key, inside.cell());
        }
    }

    fn word(&self, word: Word) -> Cell {
        Cell::Str(self.keys.word(word))
    }

    fn words<const N: usize>(&mut self, words: [Word; N]) -> Cell {
        let cells = words.map(|word| self.word(word));
        self.event.store_list(&cells)
    }

    fn store(&mut self, value: &dyn std::fmt::Display) -> Text {
        self.scratch.clear();
        write!(self.scratch, "{value}").expect("a `String` takes everything");
        self.event.store_text(self.scratch.as_bytes())
    }

    /// An address as text. Every flow has some of IPv4, for which the formatter of the library takes long.
    fn address(&mut self, address: IpAddr) -> Text {
        let IpAddr::V4(address) = address else { return self.store(&address) };
        let (mut text, mut len) = ([0; 15], 0);
        for (at, octet) in address.octets().into_iter().enumerate() {
            if at > 0 {
                text[len] = b'.';
                len += 1;
            }
            for (from, unit) in [(100, 100), (10, 10), (0, 1)] {
                if octet >= from {
                    text[len] = b'0' + octet / unit % 10;
                    len += 1;
                }
            }
        }
        self.event.store_text(&text[..len])
    }

    /// The value of a field in the batch.
    fn cell(&mut self, value: &Value<'_>) -> Cell {
        match value {
            Value::Unsigned(value) => number(*value),
            Value::Signed(value) => Cell::Int(*value),
            Value::Float(value) => Cell::Float(*value),
            Value::Bool(value) => Cell::Bool(*value),
            Value::Time(time) => Cell::Time(*time),
            Value::Text(text) => Cell::Str(self.event.store_text(text)),
            Value::Address(address) => Cell::Str(self.address(address.to_canonical())),
            Value::Bytes(bytes) => {
                let cells: Vec<Cell> =
                    bytes.iter().map(|byte| Cell::Int(i64::from(*byte))).collect();
                self.event.store_list(&cells)
            }
            Value::Mac(octets) => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                let mut text = [b'-'; 17];
                for (pair, octet) in text.chunks_mut(3).zip(octets) {
                    pair[0] = DIGITS[usize::from(octet >> 4)];
                    pair[1] = DIGITS[usize::from(octet & 15)];
                }
                Cell::Str(self.event.store_text(&text))
            }
            Value::Numbers(numbers) => {
                let cells: Vec<Cell> =
                    numbers.iter().map(|number| Cell::Int(i64::from(number))).collect();
                self.event.store_list(&cells)
            }
            Value::AclId(bytes) => {
                let part = |at: usize| {
                    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
                };
                let text = format!("{:08x}-{:08x}-{:08x}", part(0), part(4), part(8));
                Cell::Str(self.event.store_text(text.as_bytes()))
            }
        }
    }

    /// Adds fields of a record to an object. `first` is the place of the first of them in the record.
    fn fields(
        &mut self,
        object: &mut Object,
        values: &[(&Field, Value<'_>)],
        first: usize,
        roles: &mut Roles,
    ) {
        for (at, (field, value)) in values.iter().enumerate() {
            let cell = self.cell(value);
            let (key, raw) = self.keys.field(self.event, first + at, field);
            object.add(&mut self.event.arena().1, key, cell, raw);
            if let Some(role) = field.role {
                roles.set(role, value, cell);
            }
        }
    }

    /// Puts everything into the event. `created` is when its packet came; `exporter` its address, and `observer` that without
    /// the port.
    pub(super) fn write(mut self, flow: &Flow<'_>, created: i64, exporter: Text, observer: Text) {
        let mut roles = Roles::default();
        let (mut root, mut netflow, mut event) = (Object::EMPTY, Object::EMPTY, Object::EMPTY);
        let is_sflow = flow.header.protocol == Protocol::Sflow;
        let (word, scope) = match flow.kind {
            FlowKind::Flow if is_sflow => (Word::SflowFlow, None),
            FlowKind::Flow => (Word::NetflowFlow, None),
            FlowKind::Options { scope } if is_sflow => (Word::SflowCounters, Some(scope)),
            FlowKind::Options { scope } => (Word::NetflowOptions, Some(scope)),
        };
        if let Some(scope) = scope {
            let (of_scope, others) = flow.values.split_at(scope.min(flow.values.len()));
            // They are no fields of a flow, whatever they are called.
            let mut none = Roles::default();
            for (key, values, first) in [(Key::Scope, of_scope, 0), (Key::Options, others, scope)] {
                let mut object = Object::EMPTY;
                self.fields(&mut object, values, first, &mut none);
                self.put(&mut netflow, key, object.cell());
            }
        } else {
            self.fields(&mut netflow, flow.values, 0, &mut roles);
        }
        let about = self.exporter(flow.header, exporter);
        self.put_object(&mut netflow, Key::Exporter, about);
        let kind = self.word(word);
        self.put(&mut netflow, Key::Type, kind);
        self.put(&mut event, Key::Action, kind);
        self.put(&mut event, Key::Created, Cell::Time(created));
        let word = self.word(Word::Event);
        self.put(&mut event, Key::Kind, word);
        let mut is_session = false;
        if scope.is_none() {
            let connection = self.words([Word::Connection]);
            self.put(&mut event, Key::Type, connection);
            self.times(&mut event, flow.header, &roles);
            is_session = self.flow(&mut root, flow.header, &roles);
        }
        let category = if is_session {
            self.words([Word::Network, Word::Session])
        } else {
            self.words([Word::Network])
        };
        self.put(&mut event, Key::Category, category);
        let mut device = Object::EMPTY;
        self.put(&mut device, Key::Ip, Cell::Str(observer));
        self.put_object(&mut root, Key::Netflow, netflow);
        self.put_object(&mut root, Key::Event, event);
        self.put_object(&mut root, Key::Observer, device);
        let (first, last) = (root.first, root.last);
        let fields = FieldList { first, last, keys: self.keys.filter(), timestamp: false };
        self.event.clear_message();
        self.event.merge_list_over(fields, true);
    }

    /// `netflow.exporter`.
    fn exporter(&mut self, header: &Header, address: Text) -> Object {
        let mut object = Object::EMPTY;
        let mut put = |key, value: u64| self.put(&mut object, key, number(value));
        put(Key::Version, header.protocol.version());
        put(Key::UptimeMillis, header.uptime.into());
        match header.extra {
            Extra::None => {}
            Extra::Engine { kind, id, sampling } => {
                put(Key::EngineType, kind.into());
                put(Key::EngineId, id.into());
                put(Key::SamplingInterval, sampling.into());
            }
            Extra::Aggregation { kind, id, aggregation, version } => {
                put(Key::EngineType, kind.into());
                put(Key::EngineId, id.into());
                put(Key::Aggregation, aggregation.into());
                put(Key::AggregationVersion, version.into());
            }
            Extra::Source(source) => put(Key::SourceId, source.into()),
            Extra::Agent { sub_agent, .. } => put(Key::SourceId, sub_agent.into()),
        }
        if let Some(time) = header.time {
            self.put(&mut object, Key::Timestamp, Cell::Time(time));
        }
        self.put(&mut object, Key::Address, Cell::Str(address));
        object
    }

    /// `event.start`, `event.end` and `event.duration`.
    fn times(&mut self, event: &mut Object, header: &Header, roles: &Roles) {
        let uptime = match header.uptime {
            0 => roles.number(Role::SystemInitTimeMilliseconds),
            uptime => Some(u64::from(uptime)),
        };
        let at = |role| {
            let (then, now) = (roles.number(role)?, uptime?);
            let before = i64::try_from(now.checked_sub(then)?).ok()?;
            header.time?.checked_sub(before.checked_mul(MILLISECOND)?)
        };
        let (mut start, mut end) = (at(Role::FlowStartSysUpTime), at(Role::FlowEndSysUpTime));
        let mut duration = start.zip(end).map(|(start, end)| end - start);
        if duration.is_none()
            && let Some(span) = roles.number(Role::FlowDurationMilliseconds)
            && let Some(span) = i64::try_from(span).ok().and_then(|it| it.checked_mul(MILLISECOND))
        {
            duration = Some(span);
            match (start, end) {
                (Some(from), _) => end = from.checked_add(span),
                (None, Some(to)) => start = to.checked_sub(span),
                (None, None) => {}
            }
        }
        for (key, time) in [(Key::Start, start), (Key::End, end)] {
            if let Some(time) = time {
                self.put(event, key, Cell::Time(time));
            }
        }
        if let Some(duration) = duration {
            self.put(event, Key::Duration, Cell::Int(duration));
        }
    }

    /// `source`, `destination`, `network`, `flow` and `related`; returns whether it is a flow in both directions.
    fn flow(&mut self, root: &mut Object, header: &Header, roles: &Roles) -> bool {
        let mut ends = ends_of(roles);
        let (port, other_port) =
            (ends.source.port.unwrap_or(0), ends.destination.port.unwrap_or(0));
        let source = (ends.source.ip(), port as u16);
        let destination = (ends.destination.ip(), other_port as u16);
        let transport = roles.number(Role::ProtocolIdentifier);
        let protocol = transport.unwrap_or(0) as u8;
        let is_sampled = header.protocol == Protocol::Sflow;
        // What is sampled may be no packet of IP. Of flows of NetFlow, Filebeat says this of zeros as well.
        let has_ends = !is_sampled || ends.source.address.or(ends.destination.address).is_some();
        if has_ends {
            let mut of_flow = Object::EMPTY;
            let id = Cell::Str(self.event.store_text(&flow_id(source, destination, protocol)));
            self.put(&mut of_flow, Key::Id, id);
            let locality = self.word(self.internal.word(&[source.0, destination.0]));
            self.put(&mut of_flow, Key::Locality, locality);
            self.put_object(root, Key::Flow, of_flow);
        }
        let mut network = self.network(&mut ends, roles, transport);
        if has_ends {
            let icmp = if is_sampled { icmp_of(roles) } else { (0, 0) };
            let id = community_id(source, destination, protocol, icmp);
            let id = Cell::Str(self.event.store_text(&id));
            self.put(&mut network, Key::CommunityId, id);
        }
        self.put_object(root, Key::Network, network);
        let biflow = roles.number(Role::BiflowDirection);
        let is_biflow = biflow.is_some() && !ends.source.is_empty() && !ends.destination.is_empty();
        if is_biflow && biflow == Some(REVERSE_INITIATOR) {
            std::mem::swap(&mut ends.source, &mut ends.destination);
        }
        for (key, end) in [(Key::Source, &ends.source), (Key::Destination, &ends.destination)] {
            let end = self.end(end);
            self.put_object(root, key, end);
        }
        if is_biflow {
            for (key, end) in [(Key::Client, &ends.source), (Key::Server, &ends.destination)] {
                let end = self.end(end);
                self.put_object(root, key, end);
            }
        }
        self.related(root, ends.related);
        is_biflow
    }

    fn end(&mut self, end: &End) -> Object {
        let mut object = Object::EMPTY;
        if let Some((address, text)) = end.address {
            self.put(&mut object, Key::Ip, Cell::Str(text));
            let locality = self.word(self.internal.word(&[address]));
            self.put(&mut object, Key::Locality, locality);
        }
        if let Some(mac) = end.mac {
            self.put(&mut object, Key::Mac, Cell::Str(mac));
        }
        for (key, value) in
            [(Key::Port, end.port), (Key::Bytes, end.bytes), (Key::Packets, end.packets)]
        {
            if let Some(value) = value {
                self.put(&mut object, key, number(value));
            }
        }
        object
    }

    /// `related.ip`: each address once, in their order.
    fn related(&mut self, root: &mut Object, mut addresses: Vec<(IpAddr, Text)>) {
        if addresses.is_empty() {
            return;
        }
        // IPv4 before IPv6 that begins with the same bytes, as of lists of bytes.
        addresses.sort_by(|(one, _), (other, _)| match (one, other) {
            (IpAddr::V4(one), IpAddr::V4(other)) => one.cmp(other),
            (IpAddr::V6(one), IpAddr::V6(other)) => one.cmp(other),
            (IpAddr::V4(one), IpAddr::V6(other)) => one.octets()[..].cmp(&other.octets()[..]),
            (IpAddr::V6(one), IpAddr::V4(other)) => one.octets()[..].cmp(&other.octets()[..]),
        });
        addresses.dedup_by_key(|(address, _)| address.to_canonical());
        let cells: Vec<Cell> = addresses.iter().map(|(_, text)| Cell::Str(*text)).collect();
        let list = self.event.store_list(&cells);
        let mut related = Object::EMPTY;
        self.put(&mut related, Key::Ip, list);
        self.put_object(root, Key::Related, related);
    }

    /// `network`, and the counts of both ends.
    fn network(&mut self, ends: &mut Ends, roles: &Roles, transport: Option<u64>) -> Object {
        use Role::{
            FlowDirection, InitiatorOctets, InitiatorPackets, OctetDeltaCount, OctetTotalCount,
            PacketDeltaCount, PacketTotalCount, ResponderOctets, ResponderPackets,
            ReverseOctetDeltaCount, ReverseOctetTotalCount, ReversePacketDeltaCount,
            ReversePacketTotalCount, WlanSsid,
        };
        let mut network = Object::EMPTY;
        if let Some(transport) = transport {
            let name = self.transport(transport as u8);
            self.put(&mut network, Key::Transport, name);
            self.put(&mut network, Key::IanaNumber, number(transport));
        }
        let counts = [
            (
                Key::Bytes,
                roles.first([OctetDeltaCount, OctetTotalCount, InitiatorOctets]),
                roles.first([ReverseOctetDeltaCount, ReverseOctetTotalCount, ResponderOctets]),
            ),
            (
                Key::Packets,
                roles.first([PacketDeltaCount, PacketTotalCount, InitiatorPackets]),
                roles.first([ReversePacketDeltaCount, ReversePacketTotalCount, ResponderPackets]),
            ),
        ];
        let [(_, bytes, back_bytes), (_, packets, back_packets)] = counts;
        (ends.source.bytes, ends.source.packets) = (bytes, packets);
        (ends.destination.bytes, ends.destination.packets) = (back_bytes, back_packets);
        for (key, count, back) in counts {
            if let Some(count) = count {
                let both = count.wrapping_add(back.unwrap_or(0));
                self.put(&mut network, key, number(both));
            }
        }
        let direction = match roles.number(FlowDirection).map(|it| it as u8) {
            None => self.word(Word::Unknown),
            Some(0) => self.word(Word::Inbound),
            Some(1) => self.word(Word::Outbound),
            Some(other) => Cell::Str(self.store(&format_args!("unknown ({other})"))),
        };
        self.put(&mut network, Key::Direction, direction);
        if let Some(name) = roles.text(WlanSsid) {
            self.put(&mut network, Key::Name, Cell::Str(name));
        }
        network
    }

    fn transport(&mut self, protocol: u8) -> Cell {
        match protocol {
            1 => self.word(Word::Icmp),
            6 => self.word(Word::Tcp),
            17 => self.word(Word::Udp),
            58 => self.word(Word::Ipv6Icmp),
            other => Cell::Str(self.store(&format_args!("unknown ({other})"))),
        }
    }
}
