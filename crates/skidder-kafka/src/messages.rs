//! Requests to brokers and their answers, but for records (<https://kafka.apache.org/protocol#protocol_messages>).

use crate::codes::Code;
use crate::wire::{self, Nonsense, Reader};
use std::collections::BTreeMap;

/// `ApiVersions` with our name and version.
pub const API_VERSIONS: i16 = 3;
/// Versions of `Metadata` that are spoken.
const METADATA: (i16, i16) = (1, 8);
/// From this version on `Metadata` has the user's rights.
pub const METADATA_WITH_RIGHTS: i16 = 8;
/// Versions of `Produce` that are spoken; before 3, records have another format.
const PRODUCE: (i16, i16) = (3, 8);
/// Versions of `InitProducerId` that are spoken.
const INIT_PRODUCER_ID: (i16, i16) = (0, 1);
/// Versions of `Fetch` that are spoken; before 4, there is no isolation level; from 12 on, topics have ids.
const FETCH: (i16, i16) = (4, 11);
/// Versions of `ListOffsets` that are spoken.
const LIST_OFFSETS: (i16, i16) = (1, 5);
/// Versions of `OffsetCommit` that are spoken.
const OFFSET_COMMIT: (i16, i16) = (2, 7);
/// Versions of `OffsetFetch` that are spoken.
const OFFSET_FETCH: (i16, i16) = (1, 5);
/// Versions of `FindCoordinator` that are spoken.
const FIND_COORDINATOR: (i16, i16) = (0, 2);
/// Versions of `JoinGroup` that are spoken.
const JOIN_GROUP: (i16, i16) = (1, 5);
/// Versions of `SyncGroup` that are spoken.
const SYNC_GROUP: (i16, i16) = (0, 3);
/// Versions of `Heartbeat` that are spoken.
const HEARTBEAT: (i16, i16) = (0, 3);
/// Versions of `LeaveGroup` that are spoken.
const LEAVE_GROUP: (i16, i16) = (0, 2);
/// The number of the operation Write among the rights.
const WRITE: u32 = 4;

/// Which versions of requests we and a broker both speak; `None`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// `Produce`.
    pub produce: Option<i16>,
    /// `Metadata`.
    pub metadata: Option<i16>,
    /// `InitProducerId`.
    pub init_producer_id: Option<i16>,
    /// `Fetch`.
    pub fetch: Option<i16>,
    /// `ListOffsets`.
    pub list_offsets: Option<i16>,
    /// `OffsetCommit`.
    pub offset_commit: Option<i16>,
    /// `OffsetFetch`.
    pub offset_fetch: Option<i16>,
    /// `FindCoordinator`.
    pub find_coordinator: Option<i16>,
    /// `JoinGroup`.
    pub join_group: Option<i16>,
    /// `SyncGroup`.
    pub sync_group: Option<i16>,
    /// `Heartbeat`.
    pub heartbeat: Option<i16>,
    /// `LeaveGroup`.
    pub leave_group: Option<i16>,
}

impl Versions {
    /// The body of the question for them; version 0 has none.
    pub fn question(version: i16) -> Vec<u8> {
        let mut body = Vec::new();
        if version >= API_VERSIONS {
            // The header of this version has tagged fields: none.
            body.push(0);
            wire::put_compact_text(&mut body, "skidder");
            wire::put_compact_text(&mut body, env!("CARGO_PKG_VERSION"));
            body.push(0);
        }
        body
    }

    /// The place of a request, and the versions that are spoken here.
    fn of(&mut self, api: i16) -> Option<(&mut Option<i16>, (i16, i16))> {
        use wire::Api;
        const fn is(api: i16, other: Api) -> bool {
            api == other as i16
        }
        Some(match api {
            _ if is(api, Api::Produce) => (&mut self.produce, PRODUCE),
            _ if is(api, Api::Metadata) => (&mut self.metadata, METADATA),
            _ if is(api, Api::InitProducerId) => (&mut self.init_producer_id, INIT_PRODUCER_ID),
            _ if is(api, Api::Fetch) => (&mut self.fetch, FETCH),
            _ if is(api, Api::ListOffsets) => (&mut self.list_offsets, LIST_OFFSETS),
            _ if is(api, Api::OffsetCommit) => (&mut self.offset_commit, OFFSET_COMMIT),
            _ if is(api, Api::OffsetFetch) => (&mut self.offset_fetch, OFFSET_FETCH),
            _ if is(api, Api::FindCoordinator) => (&mut self.find_coordinator, FIND_COORDINATOR),
            _ if is(api, Api::JoinGroup) => (&mut self.join_group, JOIN_GROUP),
            _ if is(api, Api::SyncGroup) => (&mut self.sync_group, SYNC_GROUP),
            _ if is(api, Api::Heartbeat) => (&mut self.heartbeat, HEARTBEAT),
            _ if is(api, Api::LeaveGroup) => (&mut self.leave_group, LEAVE_GROUP),
            _ => return None,
        })
    }

    /// From the answer. An error is one of the broker; older ones refuse a version and answer as in version 0.
    pub fn read(answer: &[u8], version: i16) -> Result<Result<Self, Code>, Nonsense> {
        let mut reader = Reader(answer);
        let code = Code(reader.i16()?);
        if !code.is_ok() {
            return Ok(Err(code));
        }
        let is_compact = version >= API_VERSIONS;
        let count = if is_compact {
            (reader.uvarint()? as usize).saturating_sub(1)
        } else {
            reader.count()?
        };
        let mut versions = Self::default();
        for _ in 0..count {
            let (api, min, max) = (reader.i16()?, reader.i16()?, reader.i16()?);
            if is_compact {
                reader.skip_tags()?;
            }
            let both = |(our_min, our_max): (i16, i16)| {
                let best = max.min(our_max);
                (best >= min.max(our_min)).then_some(best)
            };
            if let Some((version, ours)) = versions.of(api) {
                *version = both(ours);
            }
        }
        Ok(Ok(versions))
    }
}

/// A partition in the brokers' metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionState {
    /// Its number.
    pub id: i32,
    /// The broker that takes its records; below zero if there is none.
    pub leader: i32,
}

/// A topic in the brokers' metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicState {
    /// Why there is no more; no error usually.
    pub code: Code,
    /// In the order of their numbers.
    pub partitions: Vec<PartitionState>,
    /// Whether the user may write to it, if requested and answered.
    pub may_write: Option<bool>,
}

/// One broker's metadata of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `host:port` by number.
    pub brokers: BTreeMap<i32, String>,
    /// By name.
    pub topics: BTreeMap<String, TopicState>,
}

impl Metadata {
    /// The body of a question about these topics, which a broker may create for that, or about all (`None`).
    pub fn question(version: i16, topics: Option<&[String]>, rights: bool) -> Vec<u8> {
        let mut body = Vec::new();
        let count = topics.map_or(-1, |topics| topics.len() as i32);
        body.extend_from_slice(&count.to_be_bytes());
        for topic in topics.unwrap_or_default() {
            wire::put_text(&mut body, topic);
        }
        if version >= 4 {
            body.push(1);
        }
        if version >= METADATA_WITH_RIGHTS {
            body.extend_from_slice(&[0, u8::from(rights)]);
        }
        body
    }

    /// From the answer.
    pub fn read(answer: &[u8], version: i16) -> Result<Self, Nonsense> {
        let mut reader = Reader(answer);
        let mut found = Self::default();
        if version >= 3 {
            reader.i32()?;
        }
        for _ in 0..reader.count()? {
            let id = reader.i32()?;
            let host = reader.text()?.ok_or(Nonsense("a broker has no name"))?;
            let port = reader.i32()?;
            reader.text()?;
            let address = if host.contains(':') {
                format!("[{host}]:{port}")
            } else {
                format!("{host}:{port}")
            };
            found.brokers.insert(id, address);
        }
        if version >= 2 {
            reader.text()?;
        }
        reader.i32()?;
        for _ in 0..reader.count()? {
            let (name, state) = read_topic(&mut reader, version)?;
            found.topics.insert(name, state);
        }
        Ok(found)
    }
}

fn read_topic(reader: &mut Reader<'_>, version: i16) -> Result<(String, TopicState), Nonsense> {
    let code = Code(reader.i16()?);
    let name = reader.text()?.ok_or(Nonsense("a topic has no name"))?;
    reader.bool()?;
    let mut partitions = Vec::new();
    for _ in 0..reader.count()? {
        reader.i16()?;
        let (id, leader) = (reader.i32()?, reader.i32()?);
        if version >= 7 {
            reader.i32()?;
        }
        // Replicas, those in sync, those that are away.
        for _ in 0..if version >= 5 { 3 } else { 2 } {
            reader.skip_numbers()?;
        }
        if id < 0 {
            return Err(Nonsense("a partition has a number below zero"));
        }
        partitions.push(PartitionState { id, leader });
    }
    partitions.sort_by_key(|partition| partition.id);
    partitions.dedup_by_key(|partition| partition.id);
    let mut may_write = None;
    if version >= METADATA_WITH_RIGHTS {
        let rights = reader.i32()?;
        // The lowest number means that rights were not requested, or are not supported.
        may_write = (rights != i32::MIN).then_some(rights as u32 >> WRITE & 1 == 1);
    }
    Ok((name, TopicState { code, partitions, may_write }))
}

/// A producer's identity, by which brokers discard duplicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The number.
    pub id: i64,
    /// How often it was given out.
    pub epoch: i16,
}

impl Identity {
    /// The body of the question for one.
    pub fn question() -> Vec<u8> {
        // No transaction, and the longest time for one.
        let mut body = vec![0xff, 0xff];
        body.extend_from_slice(&i32::MAX.to_be_bytes());
        body
    }

    /// From the answer. An error is one of the broker.
    pub fn read(answer: &[u8]) -> Result<Result<Self, Code>, Nonsense> {
        let mut reader = Reader(answer);
        reader.i32()?;
        let code = Code(reader.i16()?);
        let (id, epoch) = (reader.i64()?, reader.i16()?);
        Ok(if code.is_ok() { Ok(Self { id, epoch }) } else { Err(code) })
    }
}

#[cfg(test)]
mod tests;
