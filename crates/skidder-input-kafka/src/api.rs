//! Requests of group members and their answers (<https://kafka.apache.org/protocol#protocol_messages>).

use crate::assign::Assignment;
use skidder_kafka::codes::Code;
use skidder_kafka::connection::{AskError, Connection};
use skidder_kafka::wire::{Api, Nonsense, Reader, put_text};
use std::collections::BTreeMap;
use std::time::Duration;

/// The least version of brokers with all requests.
const OLDEST: &str = "0.11";
/// From these versions on, requests have a static id.
const JOIN_STATIC: i16 = 5;
const OTHERS_STATIC: i16 = 3;
const COMMIT_STATIC: i16 = 7;
/// The kind of protocol of consumers.
const CONSUMER: &str = "consumer";

/// A group, and a member's place in it.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    pub(crate) group: String,
    /// `group_instance_id`.
    pub(crate) instance: Option<String>,
    /// Given by the broker; empty before.
    pub(crate) member: String,
    pub(crate) generation: i32,
}

/// How to join.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Joining<'a> {
    pub(crate) session_timeout: Duration,
    pub(crate) rebalance_timeout: Duration,
    pub(crate) strategy: &'a str,
    pub(crate) subscription: &'a [u8],
}

/// The answer of a group to a new member.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) code: Code,
    pub(crate) generation: i32,
    pub(crate) member: String,
    /// The members with their subscriptions, if this one is to assign partitions.
    pub(crate) members: Option<Vec<(String, Vec<u8>)>>,
}

/// Numbers by topic and partition.
pub(crate) type Offsets = BTreeMap<(String, i32), i64>;

fn millis(span: Duration) -> i32 {
    i32::try_from(span.as_millis()).unwrap_or(i32::MAX)
}

fn put_i32(out: &mut Vec<u8>, number: i32) {
    out.extend_from_slice(&number.to_be_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}

fn put_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => put_text(out, text),
        None => out.extend_from_slice(&(-1_i16).to_be_bytes()),
    }
}

/// Items by topic, as nearly all requests have them.
fn put_topics<T>(
    out: &mut Vec<u8>,
    items: &BTreeMap<(String, i32), T>,
    mut put: impl FnMut(&mut Vec<u8>, i32, &T),
) {
    let mut topics: BTreeMap<&str, Vec<(i32, &T)>> = BTreeMap::new();
    for ((topic, partition), item) in items {
        topics.entry(topic).or_default().push((*partition, item));
    }
    put_i32(out, topics.len() as i32);
    for (topic, partitions) in topics {
        put_text(out, topic);
        put_i32(out, partitions.len() as i32);
        for (partition, item) in partitions {
            put(out, partition, item);
        }
    }
}

/// Reads items by topic.
pub(crate) fn read_topics<'a>(
    reader: &mut Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>, &str, i32) -> Result<(), Nonsense>,
) -> Result<(), Nonsense> {
    for _ in 0..reader.count()? {
        let topic = reader.text()?.unwrap_or_default();
        for _ in 0..reader.count()? {
            let partition = reader.i32()?;
            read(reader, &topic, partition)?;
        }
    }
    Ok(())
}

/// The address of the broker that coordinates a group.
pub(crate) async fn find_coordinator(
    connection: &mut Connection,
    group: &str,
) -> Result<String, AskError> {
    let version = connection.versions.find_coordinator.ok_or(AskError::TooOld(OLDEST))?;
    let mut body = Vec::new();
    put_text(&mut body, group);
    if version >= 1 {
        // A group, not a transaction.
        body.push(0);
    }
    let answer = connection.ask(Api::FindCoordinator, version, &body).await?;
    let mut reader = Reader(&answer);
    if version >= 1 {
        reader.i32()?;
    }
    let code = Code(reader.i16()?);
    if version >= 1 {
        reader.text()?;
    }
    reader.i32()?;
    let host = reader.text()?.unwrap_or_default();
    let port = reader.i32()?;
    if !code.is_ok() {
        return Err(AskError::Code(code));
    }
    Ok(if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

impl Membership {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, &self.group);
        put_i32(out, self.generation);
        put_text(out, &self.member);
    }

    /// Joins, or joins again. The broker answers when all members have, or it waits for them no more.
    pub(crate) async fn join(
        &self,
        connection: &mut Connection,
        how: Joining<'_>,
    ) -> Result<Joined, AskError> {
        let version = connection.versions.join_group.ok_or(AskError::TooOld(OLDEST))?;
        if self.instance.is_some() && version < JOIN_STATIC {
            return Err(AskError::TooOld("2.3, which `group_instance_id` needs"));
        }
        let body = self.join_question(version, how);
        let wait = how.rebalance_timeout + how.session_timeout;
        let answer = connection.ask_slowly(Api::JoinGroup, version, &body, wait).await?;
        Ok(read_joined(&answer, version)?)
    }

    fn join_question(&self, version: i16, how: Joining<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        put_text(&mut body, &self.group);
        put_i32(&mut body, millis(how.session_timeout));
        if version >= 1 {
            put_i32(&mut body, millis(how.rebalance_timeout));
        }
        put_text(&mut body, &self.member);
        if version >= JOIN_STATIC {
            put_optional(&mut body, self.instance.as_deref());
        }
        put_text(&mut body, CONSUMER);
        put_i32(&mut body, 1);
        put_text(&mut body, how.strategy);
        put_bytes(&mut body, how.subscription);
        body
    }

    /// Returns what the member that assigns partitions has assigned to this one; `plan` is not empty if this is the one.
    pub(crate) async fn sync(
        &self,
        connection: &mut Connection,
        plan: &BTreeMap<String, Assignment>,
        wait: Duration,
    ) -> Result<Result<Assignment, Code>, AskError> {
        let version = connection.versions.sync_group.ok_or(AskError::TooOld(OLDEST))?;
        let mut body = Vec::new();
        self.put(&mut body);
        if version >= OTHERS_STATIC {
            put_optional(&mut body, self.instance.as_deref());
        }
        put_i32(&mut body, plan.len() as i32);
        for (member, assignment) in plan {
            put_text(&mut body, member);
            put_bytes(&mut body, &crate::assign::write_assignment(assignment));
        }
        let answer = connection.ask_slowly(Api::SyncGroup, version, &body, wait).await?;
        let mut reader = Reader(&answer);
        if version >= 1 {
            reader.i32()?;
        }
        let code = Code(reader.i16()?);
        if !code.is_ok() {
            return Ok(Err(code));
        }
        Ok(Ok(crate::assign::read_assignment(reader.bytes()?)?))
    }

    /// Shows that this member is alive.
    pub(crate) async fn heartbeat(&self, connection: &mut Connection) -> Result<Code, AskError> {
        let version = connection.versions.heartbeat.ok_or(AskError::TooOld(OLDEST))?;
        let mut body = Vec::new();
        self.put(&mut body);
        if version >= OTHERS_STATIC {
            put_optional(&mut body, self.instance.as_deref());
        }
        let answer = connection.ask(Api::Heartbeat, version, &body).await?;
        let mut reader = Reader(&answer);
        if version >= 1 {
            reader.i32()?;
        }
        Ok(Code(reader.i16()?))
    }

    /// Leaves, so that others get the partitions at once.
    pub(crate) async fn leave(&self, connection: &mut Connection) -> Result<(), AskError> {
        let version = connection.versions.leave_group.ok_or(AskError::TooOld(OLDEST))?;
        let mut body = Vec::new();
        put_text(&mut body, &self.group);
        put_text(&mut body, &self.member);
        connection.ask(Api::LeaveGroup, version, &body).await.map(drop)
    }

    /// Where the group reads on; nothing of partitions of which nothing was committed.
    pub(crate) async fn committed(
        &self,
        connection: &mut Connection,
        of: &Assignment,
    ) -> Result<Offsets, AskError> {
        let version = connection.versions.offset_fetch.ok_or(AskError::TooOld(OLDEST))?;
        let mut body = Vec::new();
        put_text(&mut body, &self.group);
        put_i32(&mut body, of.len() as i32);
        for (topic, partitions) in of {
            put_text(&mut body, topic);
            put_i32(&mut body, partitions.len() as i32);
            for partition in partitions {
                put_i32(&mut body, *partition);
            }
        }
        let answer = connection.ask(Api::OffsetFetch, version, &body).await?;
        let mut reader = Reader(&answer);
        if version >= 3 {
            reader.i32()?;
        }
        let mut found = Offsets::new();
        let mut failed = None;
        read_topics(&mut reader, |reader, topic, partition| {
            let offset = reader.i64()?;
            if version >= 5 {
                reader.i32()?;
            }
            reader.text()?;
            let code = Code(reader.i16()?);
            if !code.is_ok() {
                failed = Some(code);
            } else if offset >= 0 {
                found.insert((topic.to_owned(), partition), offset);
            }
            Ok(())
        })?;
        if version >= 2 {
            let code = Code(reader.i16()?);
            failed = failed.or((!code.is_ok()).then_some(code));
        }
        failed.map_or(Ok(found), |code| Err(AskError::Code(code)))
    }

    /// Commits offsets; returns those that were taken, and why others were not.
    pub(crate) async fn commit(
        &self,
        connection: &mut Connection,
        offsets: &Offsets,
    ) -> Result<(Offsets, Option<Code>), AskError> {
        let version = connection.versions.offset_commit.ok_or(AskError::TooOld(OLDEST))?;
        let body = self.commit_question(version, offsets);
        let answer = connection.ask(Api::OffsetCommit, version, &body).await?;
        let mut reader = Reader(&answer);
        if version >= 3 {
            reader.i32()?;
        }
        let mut taken = Offsets::new();
        let mut refused = None;
        read_topics(&mut reader, |reader, topic, partition| {
            let code = Code(reader.i16()?);
            let key = (topic.to_owned(), partition);
            match offsets.get(&key).filter(|_| code.is_ok()) {
                Some(offset) => drop(taken.insert(key, *offset)),
                None => refused = Some(code),
            }
            Ok(())
        })?;
        Ok((taken, refused))
    }

    fn commit_question(&self, version: i16, offsets: &Offsets) -> Vec<u8> {
        let mut body = Vec::new();
        self.put(&mut body);
        if version >= COMMIT_STATIC {
            put_optional(&mut body, self.instance.as_deref());
        }
        if version <= 4 {
            // How long they are kept: as the broker says.
            body.extend_from_slice(&(-1_i64).to_be_bytes());
        }
        put_topics(&mut body, offsets, |body, partition, offset| {
            put_i32(body, partition);
            body.extend_from_slice(&offset.to_be_bytes());
            if version >= 6 {
                put_i32(body, -1);
            }
            put_text(body, "");
        });
        body
    }
}

fn read_joined(answer: &[u8], version: i16) -> Result<Joined, Nonsense> {
    let mut reader = Reader(answer);
    if version >= 2 {
        reader.i32()?;
    }
    let code = Code(reader.i16()?);
    let generation = reader.i32()?;
    reader.text()?;
    let leader = reader.text()?.unwrap_or_default();
    let member = reader.text()?.unwrap_or_default();
    let mut members = Vec::new();
    for _ in 0..reader.count()? {
        let id = reader.text()?.unwrap_or_default();
        if version >= JOIN_STATIC {
            reader.text()?;
        }
        members.push((id, reader.bytes()?.to_vec()));
    }
    let members = (code.is_ok() && leader == member).then_some(members);
    Ok(Joined { code, generation, member, members })
}

/// The first offset of these partitions, or the one behind the last record, at their leader.
pub(crate) async fn list_offsets(
    connection: &mut Connection,
    of: &BTreeMap<(String, i32), i64>,
    read_committed: bool,
) -> Result<BTreeMap<(String, i32), Result<i64, Code>>, AskError> {
    let version = connection.versions.list_offsets.ok_or(AskError::TooOld(OLDEST))?;
    let mut body = Vec::new();
    put_i32(&mut body, -1);
    if version >= 2 {
        body.push(u8::from(read_committed));
    }
    put_topics(&mut body, of, |body, partition, time| {
        put_i32(body, partition);
        if version >= 4 {
            put_i32(body, -1);
        }
        body.extend_from_slice(&time.to_be_bytes());
    });
    let answer = connection.ask(Api::ListOffsets, version, &body).await?;
    let mut reader = Reader(&answer);
    if version >= 2 {
        reader.i32()?;
    }
    let mut found = BTreeMap::new();
    read_topics(&mut reader, |reader, topic, partition| {
        let code = Code(reader.i16()?);
        reader.i64()?;
        let offset = reader.i64()?;
        if version >= 4 {
            reader.i32()?;
        }
        let result = if code.is_ok() { Ok(offset) } else { Err(code) };
        found.insert((topic.to_owned(), partition), result);
        Ok(())
    })?;
    Ok(found)
}

/// Where to read, and how much.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetching {
    pub(crate) max_wait: Duration,
    pub(crate) min_bytes: i32,
    pub(crate) max_bytes: i32,
    pub(crate) partition_max_bytes: i32,
    pub(crate) read_committed: bool,
}

/// The records of one partition in an answer.
#[derive(Debug)]
pub(crate) struct Fetched<'a> {
    pub(crate) code: Code,
    /// The offset behind the last record.
    pub(crate) end: i64,
    /// The offset behind the last record of which it is known whether its transaction was aborted.
    pub(crate) stable: i64,
    /// Transactions that were aborted: their producer, and where they begin.
    pub(crate) aborted: Vec<(i64, i64)>,
    pub(crate) records: &'a [u8],
}

impl Fetching {
    /// Asks for records behind these offsets; returns the answer for [`read_fetched`], and its version.
    pub(crate) async fn ask(
        &self,
        connection: &mut Connection,
        offsets: &[(&str, i32, i64)],
    ) -> Result<(Vec<u8>, i16), AskError> {
        let version = connection.versions.fetch.ok_or(AskError::TooOld(OLDEST))?;
        let body = self.question(version, offsets);
        Ok((connection.ask_slowly(Api::Fetch, version, &body, self.max_wait).await?, version))
    }

    fn question(&self, version: i16, offsets: &[(&str, i32, i64)]) -> Vec<u8> {
        let mut body = Vec::new();
        put_i32(&mut body, -1);
        put_i32(&mut body, millis(self.max_wait));
        put_i32(&mut body, self.min_bytes);
        put_i32(&mut body, self.max_bytes);
        body.push(u8::from(self.read_committed));
        if version >= 7 {
            // No session.
            put_i32(&mut body, 0);
            put_i32(&mut body, -1);
        }
        // In this order, which the caller turns: brokers fill an answer from the front.
        put_i32(&mut body, offsets.len() as i32);
        for (topic, partition, offset) in offsets {
            put_text(&mut body, topic);
            put_i32(&mut body, 1);
            put_i32(&mut body, *partition);
            if version >= 9 {
                put_i32(&mut body, -1);
            }
            body.extend_from_slice(&offset.to_be_bytes());
            if version >= 5 {
                body.extend_from_slice(&(-1_i64).to_be_bytes());
            }
            put_i32(&mut body, self.partition_max_bytes);
        }
        if version >= 7 {
            put_i32(&mut body, 0);
        }
        if version >= 11 {
            put_text(&mut body, "");
        }
        body
    }
}

/// Reads the answer to [`Fetching::ask`]: the outcome of each partition, by topic and number.
pub(crate) fn read_fetched(
    answer: &[u8],
    version: i16,
) -> Result<Vec<(String, i32, Fetched<'_>)>, AskError> {
    let mut reader = Reader(answer);
    reader.i32()?;
    if version >= 7 {
        let code = Code(reader.i16()?);
        reader.i32()?;
        if !code.is_ok() {
            return Err(AskError::Code(code));
        }
    }
    let mut all = Vec::new();
    read_topics(&mut reader, |reader, topic, partition| {
        let code = Code(reader.i16()?);
        let (end, stable) = (reader.i64()?, reader.i64()?);
        if version >= 5 {
            reader.i64()?;
        }
        let mut aborted = Vec::new();
        for _ in 0..reader.count()? {
            aborted.push((reader.i64()?, reader.i64()?));
        }
        if version >= 11 {
            reader.i32()?;
        }
        let records = reader.bytes()?;
        all.push((topic.to_owned(), partition, Fetched { code, end, stable, aborted, records }));
        Ok(())
    })?;
    Ok(all)
}
