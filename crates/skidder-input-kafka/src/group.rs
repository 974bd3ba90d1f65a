//! A member of a consumer group: it joins, reads the partitions that it is given, commits offsets behind verdicts, and
//! gives partitions up when the group is distributed anew.
//!
//! Before it joins again it *drains*: nothing more is read, and what is in flight gets its verdicts, for up to half of
//! `rebalance.timeout`; then it commits. What has no verdict until then is read again by the next owner. A commit that
//! is refused loses nothing: another process has the partition then, and reads from what was committed before. A
//! partition that comes back to this process is read on where it was, unless another one has committed meanwhile.

use crate::api::{Membership, Offsets};
use crate::assign::Assignment;
use crate::claim::{Claim, Shared};
use crate::ends::Ends;
use crate::fetch::{FetchError, Phase, Reader};
use crate::settings::Settings;
use pause::Pauses;
use skidder_input::{Intake, PartsPool};
use skidder_kafka::codes::Code;
use skidder_kafka::connect::Dialer;
use skidder_kafka::connection::{AskError, Connection};
use skidder_kafka::wire::Nonsense;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

/// How often offsets are committed.
const COMMIT_EVERY: Duration = Duration::from_secs(1);
/// How often the member that assigns partitions looks whether there are others.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// The same while a topic is not there.
const LOOK_SOON: Duration = Duration::from_secs(5);
/// How long until a partition is looked for that has moved to another broker.
const MOVED_PAUSE: Duration = Duration::from_millis(250);

mod give_up;
mod join;
mod pause;

/// Why a session of the member ended.
#[derive(Debug, thiserror::Error)]
enum SessionError {
    /// No broker can be reached.
    #[error("no broker can be reached, at last `{host}`: {error}{advice}", advice = advice(.error))]
    Connect {
        /// The broker that was tried last.
        host: String,
        /// Its error.
        error: AskError,
    },
    /// The coordinator fails, or refuses.
    #[error("{0}{advice}", advice = advice(.0))]
    Ask(#[from] AskError),
    /// The group has other members with other protocols, or nonsense.
    #[error("the group's members make no sense: {0}")]
    Nonsense(#[from] Nonsense),
    /// It never becomes stable.
    #[error("the group does not come to rest")]
    Restless,
}

fn advice(error: &AskError) -> String {
    let advice = error.advice();
    if advice.is_empty() { String::new() } else { format!("; {advice}") }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The input must stop, or has read everything.
    Stopped,
    /// Partitions are distributed anew.
    Rebalance,
    /// The group goes on without this member.
    Expelled,
    /// Events will get no verdict.
    Rejected,
}

/// See the module's text.
pub(crate) struct Member {
    settings: Arc<Settings>,
    intake: Intake,
    dialer: Arc<Dialer>,
    me: Membership,
    /// The connection to the coordinator.
    coordinator: Option<Connection>,
    /// Claims that no task reads now.
    idle: Vec<Claim>,
    /// All claims of this session.
    assigned: BTreeMap<(String, i32), Arc<Shared>>,
    /// What was committed, or read as committed.
    committed: Offsets,
    /// Partitions as they were when this member assigned them.
    planned: Option<Assignment>,
    /// Notified with each verdict.
    news: Arc<Notify>,
    pool: Arc<PartsPool>,
    /// The same failure is logged once.
    reported: String,
}

/// Tasks that read, and how they stop.
struct Readers {
    tasks: JoinSet<(Vec<Claim>, FetchError)>,
    phase: watch::Sender<Phase>,
    /// When idle claims are read again.
    restart: Option<Instant>,
}

impl Member {
    pub(crate) fn new(settings: Arc<Settings>, intake: Intake, dialer: Arc<Dialer>) -> Self {
        let me = Membership {
            group: settings.group_id.clone(),
            instance: settings.group_instance_id.clone(),
            member: String::new(),
            generation: -1,
        };
        Self {
            settings,
            intake,
            dialer,
            me,
            coordinator: None,
            idle: Vec::new(),
            assigned: BTreeMap::new(),
            committed: Offsets::new(),
            planned: None,
            news: Arc::default(),
            pool: Arc::default(),
            reported: String::new(),
        }
    }

    /// Reads until the input must stop.
    pub(crate) async fn run(mut self) {
        let mut failures = 0_u32;
        loop {
            let intake = self.intake.clone();
            let joined = tokio::select! {
                biased;
                () = intake.stopped() => break,
                joined = self.join() => joined,
            };
            let result = match joined {
                Ok((assignment, committed)) => {
                    failures = 0;
                    self.recovered();
                    self.claim(&assignment, committed);
                    self.attend().await
                }
                Err(error) => Err(error),
            };
            let pause = match result {
                Ok(End::Stopped) => break,
                Ok(End::Rebalance | End::Expelled) => continue,
                Ok(End::Rejected) => self.settings.consume_backoff,
                Err(error) => {
                    self.coordinator = None;
                    failures = failures.saturating_add(1);
                    self.report(&error.to_string());
                    Pauses::of(&self.settings).after(&error, failures)
                }
            };
            tokio::select! {
                biased;
                () = intake.stopped() => break,
                () = sleep(pause) => {}
            }
        }
        self.leave().await;
    }

    /// Notes a failure: for the status page, and in the log when it is a new one.
    fn report(&mut self, error: &str) {
        self.intake.metrics().failed("", error);
        self.intake.metrics().set_trouble(Some(error));
        let group = &*self.me.group;
        if self.reported == error {
            tracing::debug!(group, error, "the consumer group still cannot be read");
        } else {
            tracing::warn!(group, error, "the consumer group cannot be read; trying again");
            error.clone_into(&mut self.reported);
        }
    }

    fn recovered(&mut self) {
        if !std::mem::take(&mut self.reported).is_empty() {
            self.intake.metrics().set_trouble(None);
        }
    }

    /// Takes the partitions of a new session. One that was read before is read on, if nothing was committed since but by this
    /// process.
    fn claim(&mut self, assignment: &Assignment, committed: Offsets) {
        let mut before: BTreeMap<(String, i32), Claim> = BTreeMap::new();
        for claim in self.idle.drain(..) {
            before.insert((claim.topic.clone(), claim.partition), claim);
        }
        let ours = std::mem::replace(&mut self.committed, committed);
        self.assigned.clear();
        for (topic, partitions) in assignment {
            for partition in partitions {
                let key = (topic.clone(), *partition);
                let offset = self.committed.get(&key).copied();
                let goes_on = |claim: &Claim| {
                    !claim.shared.progress.is_rejected()
                        && offset.is_some()
                        && offset == ours.get(&key).copied()
                };
                let claim = match before.remove(&key).filter(goes_on) {
                    Some(claim) => claim,
                    None => {
                        let place = (&**topic, *partition);
                        let own = (&self.news, &self.pool);
                        Claim::new(&self.intake, &self.settings, place, offset, own)
                    }
                };
                self.assigned.insert(key, Arc::clone(&claim.shared));
                self.idle.push(claim);
            }
        }
        let partitions = self.assigned.len();
        tracing::info!(
            group = &*self.me.group,
            generation = self.me.generation,
            partitions,
            "joined the consumer group"
        );
    }

    /// Reads until the session ends, then gives the partitions up.
    async fn attend(&mut self) -> Result<End, SessionError> {
        let mut readers = Readers {
            tasks: JoinSet::new(),
            phase: watch::channel(Phase::Read).0,
            restart: Some(Instant::now()),
        };
        let end = self.read(&mut readers).await;
        let limit = match &end {
            Ok(End::Stopped) => self.settings.wait_close,
            Ok(End::Rebalance) => self.settings.rebalance_timeout / 2,
            // Others may have the partitions already.
            Ok(End::Expelled | End::Rejected) | Err(_) => Duration::ZERO,
        };
        if matches!(end, Ok(End::Stopped)) {
            self.intake.set_finishing();
        }
        self.drain(readers, limit).await;
        if end.is_ok()
            && let Err(error) = self.commit().await
        {
            tracing::warn!(%error, "the last offsets of a session are not committed; their records are read again");
            self.coordinator = None;
        }
        if matches!(end, Ok(End::Expelled)) {
            self.me.member.clear();
        }
        end
    }

    async fn read(&mut self, readers: &mut Readers) -> Result<End, SessionError> {
        let intake = self.intake.clone();
        let news = Arc::clone(&self.news);
        let mut heartbeat = ticks(self.settings.heartbeat_interval);
        let mut commit = ticks(COMMIT_EVERY);
        let is_missing =
            |topic: &String| self.planned.as_ref().is_some_and(|there| !there.contains_key(topic));
        let look_every =
            if self.settings.topics.iter().any(is_missing) { LOOK_SOON } else { LOOK_EVERY };
        let mut look = ticks(look_every);
        loop {
            let restart = readers.restart.unwrap_or_else(Instant::now);
            tokio::select! {
                biased;
                () = intake.stopped() => return Ok(End::Stopped),
                _ = heartbeat.tick() => {
                    let connection = self.coordinator.as_mut().ok_or(AskError::Ended)?;
                    if let Some(end) = end_of(self.me.heartbeat(connection).await?)? {
                        return Ok(end);
                    }
                }
                _ = commit.tick() => {
                    if let Some(end) = self.commit().await? {
                        return Ok(end);
                    }
                }
                _ = look.tick(), if self.planned.is_some() => {
                    if self.has_changed().await? {
                        return Ok(End::Rebalance);
                    }
                }
                ended = readers.tasks.join_next(), if !readers.tasks.is_empty() => {
                    if let Some((claims, error)) = outcome(ended) {
                        self.ended(readers, claims, &error);
                    }
                }
                () = sleep_until(restart), if readers.restart.is_some() => self.start(readers).await?,
                () = news.notified() => {
                    if self.assigned.values().any(|shared| shared.progress.is_rejected()) {
                        tracing::warn!("events get no verdict in this run; their records are read again");
                        return Ok(End::Rejected);
                    }
                }
            }
            if intake.is_once() && self.is_all_sent() {
                if !self.assigned.values().any(|shared| shared.progress.is_waiting()) {
                    return Ok(End::Stopped);
                }
                intake.flush();
            }
        }
    }

    /// Whether everything that there is was read and sent.
    fn is_all_sent(&self) -> bool {
        self.assigned.values().all(|shared| shared.is_at_end.load(Ordering::Acquire))
    }

    /// Begins to read the claims that no task reads.
    async fn start(&mut self, readers: &mut Readers) -> Result<(), SessionError> {
        readers.restart = None;
        if self.idle.is_empty() {
            return Ok(());
        }
        let connection = self.coordinator.as_mut().ok_or(AskError::Ended)?;
        let metadata = connection.metadata(Some(&self.settings.topics), false).await?;
        let mut by_node: BTreeMap<String, Vec<Claim>> = BTreeMap::new();
        for claim in std::mem::take(&mut self.idle) {
            let topic = metadata.topics.get(&claim.topic);
            let state = topic.and_then(|topic| {
                topic.partitions.iter().find(|state| state.id == claim.partition)
            });
            let node = state.and_then(|state| metadata.brokers.get(&state.leader));
            match node {
                Some(node) => by_node.entry(node.clone()).or_default().push(claim),
                None => self.idle.push(claim),
            }
        }
        for (node, claims) in by_node {
            let read_committed = self.settings.read_committed;
            let ends = Ends::new(&self.dialer, &node, &claims, read_committed);
            let reader = Reader {
                settings: Arc::clone(&self.settings),
                intake: self.intake.clone(),
                dialer: Arc::clone(&self.dialer),
                pool: Arc::clone(&self.pool),
                node,
                claims,
                ends,
                phase: readers.phase.subscribe(),
            };
            readers.tasks.spawn(reader.run());
        }
        if !self.idle.is_empty() {
            readers.restart = Some(Instant::now() + self.settings.consume_backoff);
        }
        Ok(())
    }

    /// Takes claims back that a task reads no more.
    fn ended(&mut self, readers: &mut Readers, claims: Vec<Claim>, error: &FetchError) {
        let pause = match error {
            FetchError::Stopped => Duration::ZERO,
            FetchError::Moved { .. } => {
                tracing::info!(%error, "looking for the broker that leads a partition");
                MOVED_PAUSE
            }
            FetchError::Ask(_) | FetchError::Read(_) => {
                for claim in &claims {
                    claim.source.failed(&error.to_string());
                }
                tracing::warn!(%error, "partitions cannot be read; trying again");
                self.settings.consume_backoff
            }
        };
        let at = Instant::now() + pause;
        readers.restart = Some(readers.restart.map_or(at, |other| other.max(at)));
        self.idle.extend(claims);
    }

    /// Leaves the group, so that others get the partitions at once; a static member comes back.
    async fn leave(&mut self) {
        self.idle.clear();
        if self.me.member.is_empty() || self.me.instance.is_some() {
            return;
        }
        let leaving = async {
            let mut connection = match self.coordinator.take() {
                Some(connection) => connection,
                None => Self::connect(&self.settings, &self.dialer).await?,
            };
            self.me.leave(&mut connection).await?;
            Ok::<(), SessionError>(())
        };
        let left = tokio::time::timeout(COMMIT_EVERY, leaving).await;
        if !matches!(left, Ok(Ok(()))) {
            tracing::info!(
                "could not leave the consumer group; it notices after `session_timeout`"
            );
        }
    }
}

/// The outcome of a task that has ended. A panic goes on here: without the task's claims, partitions would not be read.
fn outcome(
    ended: Option<Result<(Vec<Claim>, FetchError), JoinError>>,
) -> Option<(Vec<Claim>, FetchError)> {
    match ended? {
        Ok(outcome) => Some(outcome),
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// A timer whose first tick is after one interval.
fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks.reset();
    ticks
}

/// How a session ends after this answer of the coordinator; `None`: it goes on.
fn end_of(code: Code) -> Result<Option<End>, SessionError> {
    match code {
        Code::NONE => Ok(None),
        Code::REBALANCE_IN_PROGRESS => Ok(Some(End::Rebalance)),
        Code::ILLEGAL_GENERATION | Code::UNKNOWN_MEMBER_ID => Ok(Some(End::Expelled)),
        code => Err(AskError::Code(code).into()),
    }
}

/// The partitions of those topics that are there.
async fn partitions(
    connection: &mut Connection,
    topics: &[String],
) -> Result<Assignment, SessionError> {
    let metadata = connection.metadata(Some(topics), false).await?;
    let mut there = Assignment::new();
    for (topic, state) in metadata.topics {
        if matches!(state.code, Code::TOPIC_AUTHORIZATION_FAILED | Code::INVALID_TOPIC) {
            tracing::warn!(topic, code = %state.code, "a topic cannot be read");
        }
        if !state.partitions.is_empty() {
            there.insert(topic, state.partitions.iter().map(|partition| partition.id).collect());
        }
    }
    Ok(there)
}
