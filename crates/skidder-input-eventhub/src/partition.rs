//! A partition that this process reads.

use crate::events::{Gathered, Place};
use crate::hub::{Hub, HubError};
use crate::run::Run;
use crate::store::Checkpoint;
use skidder_amqp::Receiver;
use skidder_event::{Map, Progress};
use skidder_input::{Settled, Source, Stopped};
use skidder_os::Timestamp;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// First pause after a failure; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// Pause between two questions for the end of the partition, for the status page.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause between two looks at whether a batch got no verdict.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How long what was read may take to find room in the queue after a stop.
const SEND_WAIT: Duration = Duration::from_millis(500);

/// The facts about a partition that the run looks at while its task reads it.
pub(crate) struct Shared {
    pub(crate) id: String,
    /// How far it is settled: the sequence number behind the last settled event.
    settled: Mutex<Arc<Settled>>,
    /// Places at which batches end, whose verdicts are to come.
    ends: Mutex<VecDeque<Place>>,
    /// The newest that is settled, and was not written yet.
    unwritten: Mutex<Option<Place>>,
    /// The number of the newest event of the partition, at the last look; -2 before it.
    last: AtomicI64,
    /// The number of the last event that is settled, or was when it began; -2 if that is not known.
    front: AtomicI64,
    /// All events that there were when it began are sent.
    pub(crate) is_at_end: AtomicBool,
    /// Nothing more is read.
    stop: watch::Sender<bool>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(id: String, run: &Run, checkpoint: Option<&Checkpoint>) -> Arc<Self> {
        let front = checkpoint.and_then(|checkpoint| checkpoint.sequence).unwrap_or(-2);
        let settled = Settled::new(i64::MIN, Arc::clone(&run.news));
        Arc::new(Self {
            id,
            settled: Mutex::new(settled),
            ends: Mutex::default(),
            unwritten: Mutex::default(),
            last: AtomicI64::new(-2),
            front: AtomicI64::new(front),
            is_at_end: AtomicBool::new(false),
            stop: watch::channel(false).0,
        })
    }

    fn settled(&self) -> Arc<Settled> {
        Arc::clone(&lock(&self.settled))
    }

    /// The newest place that is settled, and was not written.
    pub(crate) fn take_unwritten(&self) -> Option<Place> {
        self.advance();
        lock(&self.unwritten).take()
    }

    /// It could not be written.
    pub(crate) fn give_back(&self, place: Place) {
        lock(&self.unwritten).get_or_insert(place);
    }

    fn advance(&self) {
        let front = self.settled().front();
        let mut ends = lock(&self.ends);
        while let Some(end) = ends.pop_front_if(|end| end.sequence < front) {
            self.front.store(end.sequence, Ordering::Relaxed);
            *lock(&self.unwritten) = Some(end);
        }
    }

    /// Whether verdicts or a checkpoint are to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.settled().is_waiting()
    }

    /// Nothing more is to be read.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Resolves when nothing more is to be read.
    async fn stopped(&self) {
        // The sender is this one's.
        drop(self.stop.subscribe().wait_for(|stop| *stop).await);
    }

    /// Events that are not settled, at the last look.
    fn behind(&self) -> Option<u64> {
        self.advance();
        let (last, front) = (self.last.load(Ordering::Relaxed), self.front.load(Ordering::Relaxed));
        (last >= -1 && front >= -1).then(|| last.saturating_sub(front).max(0).unsigned_abs())
    }
}

/// Why a partition is not read on.
enum Ended {
    /// The run ends, or another process has the partition.
    Stopped,
    /// A batch got no verdict: it is read again from the last settled event.
    Rejected,
    Failed(HubError),
}

impl From<HubError> for Ended {
    fn from(error: HubError) -> Self {
        Self::Failed(error)
    }
}

impl From<Stopped> for Ended {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Reads a partition until it is stopped.
pub(crate) struct Reader {
    run: Arc<Run>,
    hub: Arc<Hub>,
    shared: Arc<Shared>,
    source: Source,
    /// Behind which event it is read on; `None` for the start of the settings.
    position: Option<Position>,
    /// The number of the event that ends what is read once.
    end: i64,
    failures: u32,
}

/// Where to read on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Position {
    Behind(Checkpoint),
    First,
}

impl Position {
    fn filter(&self) -> String {
        match self {
            Self::Behind(Checkpoint { offset, sequence }) => match sequence {
                Some(sequence) if offset.is_empty() => {
                    format!("amqp.annotation.x-opt-sequence-number > '{sequence}'")
                }
                // A quote would end the text.
                _ => format!("amqp.annotation.x-opt-offset > '{}'", offset.replace('\'', "")),
            },
            Self::First => "amqp.annotation.x-opt-offset > '-1'".to_owned(),
        }
    }
}

impl Reader {
    pub(crate) fn new(
        run: Arc<Run>,
        hub: Arc<Hub>,
        shared: Arc<Shared>,
        checkpoint: Option<Checkpoint>,
    ) -> Self {
        let names = &run.settings.names;
        let mut fields = Map::new();
        fields.insert_path("azure.partition_id", &*shared.id);
        fields.insert_path("azure.eventhub", &*names.hub);
        fields.insert_path("azure.consumer_group", &*names.group);
        let source = run.intake.open(&format!("{}/{}", names.hub, shared.id), fields);
        let of_source = Arc::clone(&shared);
        source.set_behind(move || of_source.behind());
        let usable = checkpoint.filter(|it| !it.offset.is_empty() || it.sequence.is_some());
        let position = usable.map(Position::Behind);
        Self { run, hub, shared, source, position, end: i64::MAX, failures: 0 }
    }

    /// Returns the source, which must stay open until its events have their verdicts.
    pub(crate) async fn read(mut self) -> Source {
        let mut is_known = false;
        loop {
            let ended = {
                let shared = Arc::clone(&self.shared);
                let reading = async {
                    if !is_known {
                        self.begin().await?;
                        is_known = true;
                    }
                    self.session().await
                };
                tokio::select! {
                    ended = reading => ended,
                    // What was read finds room, or is given up.
                    () = async {
                        shared.stopped().await;
                        tokio::time::sleep(SEND_WAIT).await;
                    } => Err(Ended::Stopped),
                }
            };
            let error = match ended {
                Ok(()) | Err(Ended::Stopped) => return self.source,
                Err(Ended::Rejected) => {
                    is_known = self.rewind();
                    continue;
                }
                Err(Ended::Failed(error)) => error,
            };
            if error.is_taken_away() {
                tracing::info!(partition = self.shared.id, "another process reads the partition");
                self.shared.stop();
                return self.source;
            }
            if error.is_about_place() {
                // Where it begins and ends tells why.
                is_known = false;
            }
            self.hub.note(&error).await;
            if !self.failed(&error).await {
                return self.source;
            }
        }
    }

    /// Looks where the partition begins and ends, and finds what is not in it any more.
    async fn begin(&mut self) -> Result<(), Ended> {
        let found = self.hub.properties(&self.shared.id).await?;
        self.shared.last.store(found.last, Ordering::Relaxed);
        self.end = if found.is_empty { -1 } else { found.last };
        let partition = &*self.shared.id;
        if let Some(Position::Behind(Checkpoint { sequence: Some(read), .. })) = self.position {
            if read > found.last {
                let error = "the partition ends before the checkpoint: the event hub was made anew";
                self.source.failed(error);
                let last = found.last;
                tracing::error!(
                    partition,
                    checkpoint = read,
                    last,
                    "{error}; it is read from its beginning"
                );
                self.position = Some(Position::First);
                self.shared.front.store(-1, Ordering::Relaxed);
            } else if !found.is_empty && read + 1 < found.first {
                let lost = (found.first - read - 1).unsigned_abs();
                let error =
                    "events that were not read yet are older than the retention of the event hub";
                self.run.intake.metrics().lost_before.add(lost);
                self.source.failed(error);
                tracing::error!(partition, checkpoint = read, first = found.first, lost, "{error}");
            }
        }
        if self.position.is_none() {
            if self.run.settings.from_latest {
                self.position = Some(Position::Behind(Checkpoint {
                    sequence: Some(found.last),
                    offset: String::new(),
                }));
                self.shared.front.store(found.last, Ordering::Relaxed);
            } else {
                self.position = Some(Position::First);
                let before = if found.is_empty { found.last } else { found.first - 1 };
                self.shared.front.store(before, Ordering::Relaxed);
            }
        }
        let read = self.shared.front.load(Ordering::Relaxed);
        self.shared.is_at_end.store(read >= self.end, Ordering::Relaxed);
        Ok(())
    }

    /// Reads on behind the last settled event. Returns whether that is known.
    fn rewind(&mut self) -> bool {
        self.shared.advance();
        let place = lock(&self.shared.unwritten).clone();
        lock(&self.shared.ends).clear();
        *lock(&self.shared.settled) = Settled::new(i64::MIN, Arc::clone(&self.run.news));
        let front = self.shared.front.load(Ordering::Relaxed);
        self.position = match place {
            Some(Place { sequence, offset, .. }) => {
                Some(Position::Behind(Checkpoint { sequence: Some(sequence), offset }))
            }
            None if front >= -1 => {
                Some(Position::Behind(Checkpoint { sequence: Some(front), offset: String::new() }))
            }
            None => return false,
        };
        true
    }

    /// Reads over one link.
    async fn session(&mut self) -> Result<(), Ended> {
        let filter = self.position.as_ref().unwrap_or(&Position::First).filter();
        let mut receiver = self.hub.receiver(&self.shared.id, &filter).await?;
        tracing::debug!(partition = self.shared.id, filter, "a partition is read");
        self.succeeded();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.reset();
        loop {
            if self.shared.is_stopped() {
                return Ok(());
            }
            if self.shared.settled().is_rejected() {
                return Err(Ended::Rejected);
            }
            let message = tokio::select! {
                message = receiver.next() => message.map_err(HubError::from)?,
                _ = look.tick() => {
                    let found = self.hub.properties(&self.shared.id).await?;
                    self.shared.last.store(found.last, Ordering::Relaxed);
                    continue;
                }
                () = self.shared.stopped() => return Ok(()),
                () = tokio::time::sleep(CHECK_EVERY) => continue,
            };
            self.take(message, &mut receiver).await?;
        }
    }

    /// Sends the events of a message, and of those that are here already.
    async fn take(
        &mut self,
        first: skidder_amqp::Message,
        receiver: &mut Receiver,
    ) -> Result<(), Ended> {
        let mut gathered = Gathered::default();
        self.gather(&first, &mut gathered)?;
        let mut broken = None;
        while !gathered.is_full(self.run.settings.messages_max) {
            match receiver.next_here() {
                Ok(Some(message)) => self.gather(&message, &mut gathered)?,
                Ok(None) => break,
                // What came before it is sent.
                Err(error) => {
                    broken = Some(error);
                    break;
                }
            }
        }
        self.send(&mut gathered).await?;
        broken.map_or(Ok(()), |error| Err(HubError::from(error).into()))
    }

    fn gather(
        &mut self,
        message: &skidder_amqp::Message,
        gathered: &mut Gathered,
    ) -> Result<(), Ended> {
        let malformed = |error: skidder_amqp::Malformed| {
            Ended::Failed(HubError::from(skidder_amqp::AmqpError::from(error)))
        };
        let place = Place::of(message).map_err(malformed)?;
        self.source.read_until(Timestamp(place.enqueued.unwrap_or(0)));
        let (sequence, offset) = (place.sequence, place.offset.clone());
        let decoded = gathered.push(message, place, &self.run.settings.sanitizers);
        self.position = Some(Position::Behind(Checkpoint { sequence: Some(sequence), offset }));
        let counts = &self.run.counts;
        counts.messages.add(1);
        counts.invalid.add(u64::from(decoded.is_invalid));
        counts.sanitized.add(u64::from(decoded.is_sanitized));
        if decoded.is_invalid && decoded.is_whole {
            counts.decode_errors.add(1);
            let error = "a message is no JSON, and is sent as it is";
            self.source.failed(&format!("{error}: number {sequence}"));
            tracing::debug!(partition = self.shared.id, sequence, "{error}");
        }
        Ok(())
    }

    async fn send(&mut self, gathered: &mut Gathered) -> Result<(), Ended> {
        debug_assert!(gathered.messages() > 0, "the first one is there");
        let clock = Arc::clone(self.run.intake.clock());
        let started = clock.monotonic();
        let Some(ready) = gathered.take(&mut self.source, clock.wall().0) else { return Ok(()) };
        let counts = Arc::clone(&self.run.counts);
        let events = ready.batch.len() as u64;
        counts.bytes.add(ready.bytes);
        if !ready.batch.is_empty() {
            counts.events.add(events);
        }
        let settled = self.shared.settled();
        let behind = ready.last.sequence + 1;
        lock(&self.shared.ends).push_back(ready.last.clone());
        if ready.batch.is_empty() {
            settled.skip(behind);
            self.run.news.notify_one();
        } else {
            let progress = Progress::Acknowledge(settled.batch(behind), ready.bytes);
            self.source.send(ready.batch, progress).await?;
            counts.sent.add(events);
        }
        counts.processed.add(ready.messages);
        counts.processing_time.add(clock.monotonic().since(started).as_nanos() as u64, 1);
        self.shared.last.fetch_max(ready.last.sequence, Ordering::Relaxed);
        if ready.last.sequence >= self.end {
            self.shared.is_at_end.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    fn succeeded(&mut self) {
        if self.failures == 0 {
            return;
        }
        let (partition, failures) = (&*self.shared.id, self.failures);
        tracing::info!(partition, failures, "the partition can be read");
        self.failures = 0;
        self.run.intake.metrics().set_trouble_of(&self.source.about().name, None);
    }

    /// Reports a failure, and waits until it is time to try again. Returns whether that is so.
    async fn failed(&mut self, error: &HubError) -> bool {
        let factor = 2_u32.saturating_pow(self.failures.min(30));
        let pause = PAUSE_FIRST.saturating_mul(factor).min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        let text = error.to_string();
        self.source.failed(&text);
        self.run.intake.metrics().set_trouble_of(&self.source.about().name, Some(&text));
        if self.failures.is_power_of_two() {
            let (partition, failures) = (&*self.shared.id, self.failures);
            tracing::warn!(
                partition,
                error = text,
                failures,
                "cannot read a partition; trying again"
            );
        }
        tokio::select! {
            biased;
            () = self.shared.stopped() => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_filter() {
        let behind = |sequence, offset: &str| {
            Position::Behind(Checkpoint { sequence, offset: offset.to_owned() }).filter()
        };
        assert_eq!(behind(Some(7), "4096"), "amqp.annotation.x-opt-offset > '4096'");
        assert_eq!(behind(None, "1:2'3"), "amqp.annotation.x-opt-offset > '1:23'");
        assert_eq!(behind(Some(7), ""), "amqp.annotation.x-opt-sequence-number > '7'");
        assert_eq!(Position::First.filter(), "amqp.annotation.x-opt-offset > '-1'");
    }
}
