//! Reads the partitions that one broker leads, until it must stop or the broker leads one of them no more.

use crate::api::{self, Fetched, Fetching};
use crate::claim::{Claim, ReadError, Reading, known_end};
use crate::ends::Ends;
use crate::settings::Settings;
use skidder_event::Progress as Meaning;
use skidder_input::{Intake, PartsPool, Stopped};
use skidder_kafka::codes::Code;
use skidder_kafka::connect::Dialer;
use skidder_kafka::connection::{AskError, Connection};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Most bytes of an answer; one batch that is larger comes nevertheless.
const ANSWER_BYTES: i32 = 8 << 20;

/// The first offset of a partition, and the one behind its last record, as the protocol asks for them.
const OLDEST: i64 = -2;
pub(crate) const NEWEST: i64 = -1;

/// What the readers of a group do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// They read.
    Read,
    /// They take nothing more, and send what waits for room.
    Drain,
    /// They give up what waits.
    GiveUp,
}

/// Why nothing more is read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The group is distributed anew, or the input must stop.
    #[error("it must stop")]
    Stopped,
    /// Another broker may have the partitions now.
    #[error("topic `{topic}`, partition {partition}: {code}")]
    Moved { topic: String, partition: i32, code: Code },
    /// Try again.
    #[error(transparent)]
    Ask(#[from] AskError),
    /// Try again: the bytes may have been damaged on the way.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl From<Stopped> for FetchError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Reads partitions of one broker.
pub(crate) struct Reader {
    pub(crate) settings: Arc<Settings>,
    pub(crate) intake: Intake,
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) pool: Arc<PartsPool>,
    pub(crate) node: String,
    pub(crate) claims: Vec<Claim>,
    pub(crate) ends: Ends,
    pub(crate) phase: watch::Receiver<Phase>,
}

impl Reader {
    /// Reads; returns the claims, and why it ended.
    pub(crate) async fn run(mut self) -> (Vec<Claim>, FetchError) {
        let Err(error) = self.read().await;
        (self.claims, error)
    }

    async fn read(&mut self) -> Result<std::convert::Infallible, FetchError> {
        let mut phase = self.phase.clone();
        let mut connection = {
            let opening = Connection::open(&self.dialer, &self.node);
            tokio::select! {
                biased;
                _ = phase.wait_for(|phase| *phase != Phase::Read) => return Err(FetchError::Stopped),
                connection = opening => connection?,
            }
        };
        let settings = Arc::clone(&self.settings);
        let how = Fetching {
            max_wait: settings.max_wait,
            min_bytes: settings.fetch_min,
            max_bytes: ANSWER_BYTES.max(settings.fetch_bytes),
            partition_max_bytes: settings.fetch_bytes,
            read_committed: settings.read_committed,
        };
        loop {
            let answer = {
                let asking = async {
                    look_up(&mut self.claims, &settings, &mut connection).await?;
                    let offsets: Vec<(&str, i32, i64)> = self.claims.iter().map(place).collect();
                    Ok::<_, FetchError>(how.ask(&mut connection, &offsets).await?)
                };
                tokio::select! {
                    biased;
                    _ = phase.wait_for(|phase| *phase != Phase::Read) => return Err(FetchError::Stopped),
                    answer = asking => answer?,
                }
            };
            let (bytes, version) = answer;
            self.intake.metrics().bytes.add(bytes.len() as u64);
            let mut has_records = false;
            let all = api::read_fetched(&bytes, version)?;
            // The ends of all of them, before one waits for room.
            self.set_ends(&all);
            for (topic, partition, fetched) in all {
                has_records |= !fetched.records.is_empty();
                self.take(&topic, partition, &fetched).await?;
            }
            if has_records {
                connection.reuse(bytes);
            } else {
                self.pool.release();
                self.claims.iter_mut().for_each(Claim::release);
            }
            // Brokers fill an answer from the front: each partition is in front in turn.
            self.claims.rotate_left(1);
        }
    }

    fn set_ends(&mut self, all: &[(String, i32, Fetched<'_>)]) {
        for (topic, partition, fetched) in all.iter().filter(|(.., fetched)| fetched.code.is_ok()) {
            let is_it = |claim: &&Claim| claim.partition == *partition && claim.topic == *topic;
            if let Some(claim) = self.claims.iter().find(is_it) {
                claim.shared.set_end(known_end(fetched, self.settings.read_committed));
            }
        }
        self.ends.rest();
    }

    /// Sends the records of one partition.
    async fn take(
        &mut self,
        topic: &str,
        partition: i32,
        fetched: &Fetched<'_>,
    ) -> Result<(), FetchError> {
        let is_it = |claim: &&mut Claim| claim.partition == partition && claim.topic == topic;
        let Some(claim) = self.claims.iter_mut().find(is_it) else { return Ok(()) };
        match fetched.code {
            Code::NONE => {}
            Code::OFFSET_OUT_OF_RANGE => {
                claim.lose_place();
                return Ok(());
            }
            code if moves(code) => {
                return Err(FetchError::Moved { topic: topic.to_owned(), partition, code });
            }
            code => return Err(AskError::Code(code).into()),
        }
        let mut reading = Reading::default();
        let ends = &mut self.ends;
        while let Some(ready) = claim.next(fetched, &mut reading)? {
            let acknowledgement = claim.shared.progress.batch(ready.end);
            let sending =
                claim.source.send(ready.batch, Meaning::Acknowledge(acknowledgement, ready.bytes));
            tokio::select! {
                biased;
                sent = sending => sent?,
                never = ends.follow() => match never {},
                _ = self.phase.wait_for(|phase| *phase == Phase::GiveUp) => return Err(FetchError::Stopped),
            }
            if *self.phase.borrow() != Phase::Read {
                return Err(FetchError::Stopped);
            }
        }
        Ok(())
    }
}

fn place(claim: &Claim) -> (&str, i32, i64) {
    (&claim.topic, claim.partition, claim.position.unwrap_or(0))
}

/// Whether another broker may lead the partition.
fn moves(code: Code) -> bool {
    // No such partition, no leader, another leader, no replica, offline storage, epochs of leaders.
    matches!(code.0, 3 | 5 | 6 | 8 | 9 | 56 | 74 | 75)
}

/// Finds out where to begin in partitions of which nothing was committed, or whose place is gone.
async fn look_up(
    claims: &mut [Claim],
    settings: &Settings,
    connection: &mut Connection,
) -> Result<(), FetchError> {
    let unknown = |claim: &&mut Claim| claim.position.is_none();
    if claims.iter().all(|claim| claim.position.is_some()) {
        return Ok(());
    }
    let wanted = |time: &dyn Fn(&Claim) -> i64, claims: &[Claim]| -> BTreeMap<(String, i32), i64> {
        let without = claims.iter().filter(|claim| claim.position.is_none());
        without.map(|claim| ((claim.topic.clone(), claim.partition), time(claim))).collect()
    };
    let first = |claim: &Claim| match claim.lost {
        None if settings.from_newest => NEWEST,
        _ => OLDEST,
    };
    let found =
        api::list_offsets(connection, &wanted(&first, claims), settings.read_committed).await?;
    let ends = if claims.iter().any(|claim| claim.position.is_none() && claim.lost.is_some()) {
        api::list_offsets(connection, &wanted(&|_| NEWEST, claims), settings.read_committed).await?
    } else {
        BTreeMap::new()
    };
    for claim in claims.iter_mut().filter(unknown) {
        let key = (claim.topic.clone(), claim.partition);
        let offset = |of: &BTreeMap<(String, i32), Result<i64, Code>>| match of.get(&key) {
            Some(Ok(offset)) => Ok(*offset),
            Some(Err(code)) if moves(*code) => {
                let (topic, partition) = key.clone();
                Err(FetchError::Moved { topic, partition, code: *code })
            }
            Some(Err(code)) => Err(AskError::Code(*code).into()),
            None => Err(AskError::Code(Code::UNKNOWN_TOPIC).into()),
        };
        let start = offset(&found)?;
        match claim.lost {
            None => claim.seek(start),
            Some(lost) => claim.seek_lost(lost, start, offset(&ends)?, settings.from_newest),
        }
    }
    Ok(())
}
