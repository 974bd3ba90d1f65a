//! One packet after the other: headers, sets, and what they change.

use crate::agents::{Agents, Step};
use crate::counts::Counts;
use crate::cursor::Cursor;
use crate::fields::Fields;
use crate::fixed;
use crate::pending::Pending;
use crate::protocol::{Extra, Flow, Header, Protocol};
use crate::sessions::{SessionKey, Sessions};
use crate::sflow;
use crate::template::{FIRST_ID, ReadTemplates, Template, read_options, read_templates};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Values that one packet can have: as many as the longest one has bytes. Fields without bytes could make many more.
const VALUES_MAX: usize = 1 << 16;

/// How a decoder works.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The protocols that are decoded.
    pub protocols: Vec<Protocol>,
    /// The fields that are known.
    pub fields: Fields,
    /// How long a template stays without being used; zero for ever.
    pub expiration: Duration,
    /// Whether templates are forgotten when an exporter begins to count anew.
    pub detect_reset: bool,
    /// Whether exporters share their templates.
    pub share_templates: bool,
}

/// What is wrong with a packet. What comes before that in it was decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// It has no room for a version.
    #[error("a packet of {0} bytes is too short for a version of NetFlow")]
    NoVersion(usize),
    /// Its first two bytes are no version of a protocol that is known: something else sends to this port.
    #[error("it is no packet of NetFlow, IPFIX or sFlow: it begins with {0:#06x}")]
    Foreign(u16),
    /// It is of a protocol that is not among those of the settings.
    #[error("packets of `{0}` are not decoded: add `{0}` to `protocols`")]
    NotConfigured(Protocol),
    /// It is one of sFlow, of an older version.
    #[error("version {0} of sFlow, only 5 is decoded")]
    SflowVersion(u32),
    /// It is one of sFlow, and damaged. What comes behind the damage was decoded, if it could be found.
    #[error("a datagram of sFlow is damaged: {0}")]
    SflowDamaged(&'static str),
    /// It is damaged, or no NetFlow.
    #[error("a packet of NetFlow version {0} is damaged: {1}")]
    Damaged(u16, &'static str),
}

/// Decodes the packets of all exporters.
#[derive(Debug)]
pub struct Decoder {
    pub(crate) settings: Settings,
    pub(crate) sessions: Sessions,
    pending: Pending,
    agents: Agents,
    counts: Counts,
}

/// Sets are padded to a multiple of so many bytes.
const ALIGNMENT: usize = 4;

type Damage = Result<(), &'static str>;

impl Decoder {
    /// One that knows no template yet.
    pub fn new(settings: Settings) -> Self {
        let (sessions, pending) = (Sessions::default(), Pending::default());
        Self { settings, sessions, pending, agents: Agents::default(), counts: Counts::default() }
    }

    /// What was decoded so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How it works.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Sources of exporters whose templates are kept, and agents of sFlow.
    pub fn sources(&self) -> usize {
        self.sessions.len() + self.agents.len()
    }

    /// Templates that are kept.
    pub fn templates(&self) -> usize {
        self.sessions.templates()
    }

    /// Whether templates have changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        self.sessions.take_changed()
    }

    /// Other settings; templates stay, and are read with the new fields.
    pub fn set(&mut self, settings: Settings, now: Duration) {
        let saved = self.save();
        let is_same = self.settings.share_templates == settings.share_templates;
        let (counts, pending) = (self.counts, std::mem::take(&mut self.pending));
        let agents = std::mem::take(&mut self.agents);
        *self = Self { pending, agents, counts, ..Self::new(settings) };
        if is_same {
            self.restore(&saved, now).expect("it was written just now");
        }
    }

    /// Forgets templates that were not used, and data whose template did not come.
    pub fn expire(&mut self, now: Duration) {
        if self.settings.expiration > Duration::ZERO {
            let forgotten = self.sessions.expire(self.settings.expiration, now);
            self.counts.templates_forgotten += forgotten as u64;
        }
        self.counts.given_up += self.pending.expire(now);
        self.agents.expire(now);
    }

    /// Decodes a packet, received at `now` of a monotonic clock, and calls `each` for every record.
    ///
    /// # Errors
    /// The packet is damaged, or no NetFlow that is configured; it is counted.
    pub fn packet(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        now: Duration,
        each: &mut dyn FnMut(&Flow<'_>),
    ) -> Result<(), PacketError> {
        let decoded = self.decode(bytes, from, now, each);
        match decoded {
            Ok(()) => self.counts.packets += 1,
            Err(_) => self.counts.errors += 1,
        }
        decoded
    }

    fn decode(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        now: Duration,
        each: &mut dyn FnMut(&Flow<'_>),
    ) -> Result<(), PacketError> {
        let protocol = protocol_of(bytes)?;
        if !self.settings.protocols.contains(&protocol) {
            return Err(PacketError::NotConfigured(protocol));
        }
        if protocol == Protocol::Sflow {
            return self.sflow(bytes, from, now, each).map_err(PacketError::SflowDamaged);
        }
        let mut records = Records { each, from, flows: 0, values: 0 };
        let decoded = match protocol {
            Protocol::V9 | Protocol::Ipfix => self.sets(protocol, bytes, now, &mut records),
            _ => fixed::read(protocol, bytes).and_then(|read| {
                let count = if read.count == 0 { None } else { Some(read.count) };
                records.read(&read.header, read.template, read.bytes, count)
            }),
        };
        self.counts.flows += records.flows;
        decoded.map_err(|what| PacketError::Damaged(protocol as u16, what))
    }

    fn sflow(
        &mut self,
        bytes: &[u8],
        from: SocketAddr,
        now: Duration,
        each: &mut dyn FnMut(&Flow<'_>),
    ) -> Damage {
        let datagram = sflow::datagram(bytes)?;
        if let Extra::Agent { address, sub_agent } = datagram.header.extra {
            let key = (from.ip(), address, sub_agent);
            match self.agents.note(key, datagram.sequence, datagram.header.uptime, now) {
                Step::Ahead(missing) => self.counts.lost += u64::from(missing),
                Step::Late => {}
                Step::Anew => self.counts.resets += 1,
            }
        }
        let outcome = datagram.samples(from, each);
        self.counts.flows += outcome.flows;
        self.counts.skipped += outcome.skipped;
        outcome.problem.map_or(Ok(()), Err)
    }

    fn sets(
        &mut self,
        protocol: Protocol,
        bytes: &[u8],
        now: Duration,
        records: &mut Records<'_>,
    ) -> Damage {
        let Packet { header, source, sequence, mut sets } = packet(protocol, bytes)?;
        let from = (!self.settings.share_templates).then_some(records.from);
        let key = SessionKey { protocol, from, source };
        let checked = self.settings.detect_reset.then_some(sequence);
        if let Some(forgotten) = self.sessions.note(key, checked, now) {
            self.counts.resets += 1;
            self.counts.templates_forgotten += forgotten as u64;
        }
        // What is wrong within a set of data is no reason to leave out those behind it.
        let mut damage = Ok(());
        while !sets.is_padding() {
            let (Some(id), Some(len)) = (sets.u16(), sets.u16()) else {
                return Err("it ends within the header of a set");
            };
            let body = sets.take(usize::from(len).saturating_sub(4));
            let body = body.ok_or("a set is longer than its packet")?;
            if id >= FIRST_ID {
                damage = damage.and(self.data(key, id, &header, body, now, records));
            } else {
                self.template_set(key, id, body, checked, now, records)?;
            }
        }
        damage
    }

    fn data(
        &mut self,
        key: SessionKey,
        id: u16,
        header: &Header,
        body: &[u8],
        now: Duration,
        records: &mut Records<'_>,
    ) -> Damage {
        if let Some(template) = self.sessions.get(key, id, now) {
            return records.read(header, &template, body, None);
        }
        self.counts.without_template += 1;
        if !self.pending.put(key, id, (header, records.from), body, now) {
            self.counts.given_up += 1;
        }
        Ok(())
    }

    fn templates_of(&self, protocol: Protocol, id: u16, body: &[u8]) -> Option<ReadTemplates> {
        let fields = &self.settings.fields;
        let first = if protocol == Protocol::Ipfix { 2 } else { 0 };
        match id.checked_sub(first)? {
            0 => Some(read_templates(protocol, body, fields)),
            1 => Some(read_options(protocol, body, fields)),
            _ => None,
        }
    }

    fn put_templates(
        &mut self,
        key: SessionKey,
        templates: Vec<Template>,
        sequence: Option<u32>,
        now: Duration,
        records: &mut Records<'_>,
    ) {
        for template in templates {
            let template = Arc::new(template);
            if !self.sessions.put(key, Arc::clone(&template), sequence, now) {
                self.counts.templates_refused += 1;
                continue;
            }
            let from = records.from;
            for set in self.pending.take(key, template.id) {
                records.from = set.from;
                // It is not the packet that brings the template that is damaged.
                match records.read(&set.header, &template, &set.body, None) {
                    Ok(()) => self.counts.decoded_later += 1,
                    Err(_) => self.counts.given_up += 1,
                }
                // Each is of a packet of its own.
                records.values = 0;
            }
            records.from = from;
        }
    }

    fn template_set(
        &mut self,
        key: SessionKey,
        id: u16,
        body: &[u8],
        sequence: Option<u32>,
        now: Duration,
        records: &mut Records<'_>,
    ) -> Damage {
        let read = self.templates_of(key.protocol, id, body);
        let ReadTemplates { templates, problem } =
            read.ok_or("a set has a number that means nothing")?;
        self.put_templates(key, templates, sequence, now, records);
        problem.map_or(Ok(()), Err)
    }
}

/// The protocol of a packet, whether it is configured or not.
fn protocol_of(bytes: &[u8]) -> Result<Protocol, PacketError> {
    let number = Cursor(bytes).u16().ok_or(PacketError::NoVersion(bytes.len()))?;
    let protocol = Protocol::of(number).ok_or(PacketError::Foreign(number))?;
    if protocol != Protocol::Sflow {
        return Ok(protocol);
    }
    match sflow::version(bytes) {
        Some(sflow::VERSION) => Ok(protocol),
        Some(other) => Err(PacketError::SflowVersion(other)),
        None => Err(PacketError::Foreign(number)),
    }
}

/// A packet of sets.
struct Packet<'a> {
    header: Header,
    source: u32,
    sequence: u32,
    sets: Cursor<'a>,
}

/// Reads the header of a packet of version 9 or IPFIX.
fn packet(protocol: Protocol, bytes: &[u8]) -> Result<Packet<'_>, &'static str> {
    const SHORT: &str = "it is shorter than its header";
    let mut cursor = Cursor(bytes);
    let mut number = || cursor.u32().ok_or(SHORT);
    let count = (number()? & 0xffff) as usize;
    let uptime = if protocol == Protocol::V9 { number()? } else { 0 };
    let (seconds, sequence, source) = (number()?, number()?, number()?);
    let time = Some(i64::from(seconds) * 1_000_000_000);
    let header = Header { protocol, time, uptime, extra: Extra::Source(source) };
    if protocol == Protocol::V9 {
        // The number is that of the records, or of the sets, or of some of them, as the exporter likes.
        return Ok(Packet { header, source, sequence, sets: cursor });
    }
    // In IPFIX the number is that of all bytes.
    let len =
        count.checked_sub(bytes.len() - cursor.len()).ok_or("its length is that of no packet")?;
    let sets = cursor.take(len).ok_or("it is shorter than it says")?;
    Ok(Packet { header, source, sequence, sets: Cursor(sets) })
}

/// The records of a packet on their way out.
struct Records<'a> {
    each: &'a mut dyn FnMut(&Flow<'_>),
    from: SocketAddr,
    flows: u64,
    /// So far.
    values: usize,
}

impl Records<'_> {
    /// Reads `count` records, or as many as there is room for.
    fn read(
        &mut self,
        header: &Header,
        template: &Template,
        body: &[u8],
        count: Option<usize>,
    ) -> Damage {
        if template.length == 0 {
            return Err("records of its template have no bytes");
        }
        let mut values = Vec::new();
        let mut cursor = Cursor(body);
        let mut left = count.or_else(|| template.count(body.len()));
        // What is behind the last whole record is padding, unless there should be another one.
        while left.is_none_or(|left| left > 0)
            && (left.is_some() || cursor.len() >= template.length)
        {
            left = left.map(|left| left - 1);
            let Some(scope) = template.read(&mut cursor, &mut values) else {
                return match left {
                    Some(_) => Err("it has fewer records than it says"),
                    None => Err("a record is longer than its set"),
                };
            };
            self.values += values.len();
            if self.values > VALUES_MAX {
                return Err("it has more fields than bytes");
            }
            self.flows += 1;
            let kind = template.kind(scope);
            (self.each)(&Flow { header, from: self.from, kind, values: &values });
        }
        // Of version 9, nprobe sends packets of which a set is longer than its records, with anything in between.
        if header.protocol == Protocol::Ipfix && cursor.len() >= ALIGNMENT && !cursor.is_padding() {
            return Err("what is behind the last record of a set is no padding: the exporter may \
                        use another template than it sent");
        }
        Ok(())
    }
}
