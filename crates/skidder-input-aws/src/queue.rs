//! A queue with notifications: receives messages, reads their objects, and deletes a message behind the verdict of the last
//! line of its last object.
//!
//! ```text
//! receive ─▶ read its objects (`number_of_workers` at once) ─▶ wait for verdicts ─▶ copy ─▶ delete
//!            └──────────── hidden from others, for longer when half of the time is over ───────┘
//! ```
//!
//! A message that fails is left hidden: the queue gives it out again when that is over. What was read of its objects stays read.

mod keep;

use crate::messages::Messages;
use crate::notifications::{Noted, Notification, ParseNotifications};
use crate::objects::{ObjectError, Objects, Sent, Wanted};
use crate::servers::{BucketName, check_bucket};
use crate::settings::{Place, QueueSettings};
use crate::store::ObjectPlace;
use keep::Keeper;
use skidder_amazon::{BATCH_MAX, Failure, Message, Queue, Receive};
use skidder_input::{InputError, Intake, QueueNumbers, Row};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Messages that were received and are not deleted: the receiver waits at this bound.
const HELD_MAX: usize = 4096;
/// Messages that wait for a worker.
const WAITING_MAX: usize = 10;
/// Room for so many of these is waited for before more are received: a request for each message takes longer than to read it.
const ROOM_MIN: u32 = WAITING_MAX as u32 / 2;
/// First pause after a failure to receive; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// How long to wait for messages when what is there is read once.
const WAIT_ONCE: Duration = Duration::from_secs(2);
/// How long a stop waits for verdicts at most.
const GRACE_MAX: Duration = Duration::from_secs(4);
/// Pause between two looks at what is left, at a stop.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What the tasks of a queue share.
pub(crate) struct QueueRun {
    pub(crate) objects: Arc<Objects>,
    pub(crate) messages: Arc<Messages>,
    /// Reads messages; nothing for the formats of Amazon.
    script: Option<Arc<dyn ParseNotifications>>,
    /// The queue in messages for people.
    pub(crate) name: String,
    /// Whether the queue has another one for messages that fail. Until the server has said so no message is deleted that has
    /// failed.
    pub(crate) has_dead_letters: AtomicBool,
    pub(crate) numbers: Arc<QueueNumbers>,
    /// The queue on the status page.
    row: Row,
    /// Workers that are free.
    working: Semaphore,
    /// Receipts of messages that were not read because of a stop.
    unread: Mutex<Vec<Arc<str>>>,
    /// An event that names no new object was seen.
    has_noted: AtomicBool,
}

/// Room for a message.
struct Slot {
    /// Until its objects were read.
    taken: OwnedSemaphorePermit,
    /// Until it is deleted.
    room: OwnedSemaphorePermit,
}

/// Why a message is not done.
enum MessageError {
    Stopped,
    /// It would never be.
    Foreign(String),
    Failed(String),
    /// It is not the fault of its objects.
    Passing(String),
}

/// Reads from a queue until the input ends.
pub(crate) async fn run(
    objects: Arc<Objects>,
    settings: &QueueSettings,
    script: Option<Arc<dyn ParseNotifications>>,
) -> Result<(), InputError> {
    let intake = objects.intake.clone();
    let (text, workers) = (settings.url.text.clone(), objects.cloud.settings.workers);
    let name = text.rsplit('/').next().unwrap_or(&text).to_owned();
    let numbers = intake.metrics().queue();
    let run = Arc::new(QueueRun {
        objects,
        messages: Arc::default(),
        script,
        row: row(&intake, &name, &numbers),
        numbers: Arc::clone(&numbers),
        name,
        has_dead_letters: AtomicBool::new(true),
        working: Semaphore::new(workers),
        unread: Mutex::default(),
        has_noted: AtomicBool::new(false),
    });
    let messages = Arc::clone(&run.messages);
    numbers.set_held(move || messages.count());
    let mut keeping = JoinSet::new();
    keeping.spawn(Keeper::new(Arc::clone(&run)).run().in_current_span());
    keeping.spawn(keep::tidy(Arc::clone(&run)).in_current_span());
    keeping.spawn(keep::measure(Arc::clone(&run)).in_current_span());
    let mut working = JoinSet::new();
    receive(&run, settings, &mut working).await;
    intake.set_finishing();
    while working.join_next().await.is_some() {}
    await_settled(&run, settings).await;
    keeping.shutdown().await;
    return_unread(&run).await;
    Ok(())
}

/// The row of the queue.
fn row(intake: &Intake, name: &str, numbers: &Arc<QueueNumbers>) -> Row {
    let row = intake.row(name);
    let (waiting, held) = (Arc::clone(numbers), Arc::clone(numbers));
    row.set_behind(move || waiting.waiting());
    row.set_oldest(move || held.held().1);
    row
}

/// Receives messages until the input ends, each for a task of its own.
async fn receive(run: &Arc<QueueRun>, settings: &QueueSettings, working: &mut JoinSet<()>) {
    let intake = &run.objects.intake;
    let taken = Arc::new(Semaphore::new(run.objects.cloud.settings.workers + WAITING_MAX));
    let room = Arc::new(Semaphore::new(HELD_MAX));
    let mut queue = run.client();
    let wait = if intake.is_once() { settings.wait.min(WAIT_ONCE) } else { settings.wait };
    let mut failures = 0;
    loop {
        while working.try_join_next().is_some() {}
        let slots = tokio::select! {
            biased;
            () = intake.stopped() => return,
            slots = slots(&taken, &room) => slots,
        };
        let wanted =
            Receive { messages_max: slots.len(), wait, visibility: Some(settings.visibility) };
        run.row.requested();
        let received = tokio::select! {
            biased;
            () = intake.stopped() => return,
            received = queue.receive(wanted) => received,
        };
        match received {
            Ok(messages) if messages.is_empty() && intake.is_once() => return,
            Ok(messages) => {
                run.succeeded(&mut failures);
                for (message, slot) in messages.into_iter().zip(slots) {
                    let Slot { taken, room } = slot;
                    let now = intake.clock().monotonic();
                    let names = (&*message.id, &*message.receipt);
                    let (sent, half) = (message.sent, settings.visibility / 2);
                    let number = run.messages.hold(names, sent, room, now, half);
                    run.received(&message);
                    let run = Arc::clone(run);
                    let work = async move { run.work(message, number, taken).await };
                    working.spawn(work.in_current_span());
                }
            }
            Err(failure) => {
                if !run.failed(&mut failures, &failure).await {
                    return;
                }
            }
        }
    }
}

/// Waits for room for some messages, and takes that for as many as one request gives.
async fn slots(taken: &Arc<Semaphore>, room: &Arc<Semaphore>) -> Vec<Slot> {
    const OPEN: &str = "it is never closed";
    let mut first = Arc::clone(taken).acquire_many_owned(ROOM_MIN).await.expect(OPEN);
    let mut its_room = Arc::clone(room).acquire_many_owned(ROOM_MIN).await.expect(OPEN);
    let mut slots = Vec::with_capacity(BATCH_MAX);
    while let (Some(taken), Some(room)) = (first.split(1), its_room.split(1)) {
        slots.push(Slot { taken, room });
    }
    while slots.len() < BATCH_MAX {
        let Ok(taken) = Arc::clone(taken).try_acquire_owned() else { break };
        let Ok(room) = Arc::clone(room).try_acquire_owned() else { break };
        slots.push(Slot { taken, room });
    }
    slots
}

/// Waits until what was read is settled and deleted, as long as a stop may take. An input that was not stopped waits for all.
async fn await_settled(run: &QueueRun, settings: &QueueSettings) {
    let intake = &run.objects.intake;
    let settled = async {
        while !run.messages.is_empty() {
            intake.flush();
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    };
    let late = async {
        intake.stopped().await;
        tokio::time::sleep(settings.grace.min(GRACE_MAX)).await;
    };
    tokio::select! {
        () = settled => {}
        () = late => {}
    }
}

/// Shows messages to other processes at once that were not read because of a stop.
async fn return_unread(run: &QueueRun) {
    let unread = run.unread.lock().unwrap_or_else(PoisonError::into_inner).split_off(0);
    let mut queue = run.client();
    for receipts in unread.chunks(BATCH_MAX) {
        let messages: Vec<_> =
            receipts.iter().map(|receipt| (&**receipt, Duration::ZERO)).collect();
        if let Err(failure) = queue.change_visibility_batch(&messages).await {
            tracing::debug!(queue = run.name, error = %failure, "messages come again later");
            return;
        }
    }
}

impl QueueRun {
    /// A client without a connection yet.
    pub(crate) fn client(&self) -> Queue {
        let url = &self.settings().url;
        let service = self.objects.cloud.settings.servers.queue(url);
        let clock = Arc::clone(self.intake().clock());
        Queue::new(service.client(Arc::new(()), clock), url)
    }

    /// The settings of the queue.
    pub(crate) fn settings(&self) -> &QueueSettings {
        match &self.objects.cloud.settings.place {
            Place::Queue(settings) => settings,
            Place::Bucket(_) => unreachable!("the input reads a queue"),
        }
    }

    pub(crate) fn intake(&self) -> &Intake {
        &self.objects.intake
    }

    /// The server answers again.
    fn succeeded(&self, failures: &mut u32) {
        if std::mem::take(failures) > 0 {
            tracing::info!(queue = self.name, "messages are received again");
            self.intake().metrics().set_trouble_of(&self.name, None);
        }
    }

    /// Counts a message that was received.
    fn received(&self, message: &Message) {
        self.numbers.received.add(1);
        if let Some(sent) = message.sent {
            // Not of one that comes again, as in Filebeat.
            if message.receive_count <= 1 {
                let lag = self.intake().clock().wall().since(sent).as_nanos();
                self.numbers.lag.add(u64::try_from(lag).unwrap_or(u64::MAX), 1);
            }
            self.row.read_until(sent);
        }
        self.row.received(1, message.body.len() as u64);
    }

    /// Forgets a message that was deleted, or is left to the queue. Returns its receipt.
    pub(crate) fn forget(&self, number: u64) -> Option<Arc<str>> {
        let (receipt, received) = self.messages.forget(number)?;
        let span = self.intake().clock().monotonic().since(received).as_nanos();
        self.numbers.processing_time.add(u64::try_from(span).unwrap_or(u64::MAX), 1);
        Some(receipt)
    }

    /// Leaves a message to the queue. Returns its receipt.
    pub(crate) fn give_back(&self, number: u64) -> Option<Arc<str>> {
        let receipt = self.forget(number)?;
        self.numbers.returned.add(1);
        Some(receipt)
    }

    /// Reports a failure to receive, and waits. Returns whether to try again; `false`: the input ends.
    async fn failed(&self, failures: &mut u32, failure: &Failure) -> bool {
        let error = failure.to_string();
        *failures = failures.saturating_add(1);
        let metrics = self.intake().metrics();
        metrics.failed(&self.name, &error);
        metrics.set_trouble_of(&self.name, Some(&error));
        self.row.failed(&error);
        if failures.is_power_of_two() {
            tracing::error!(
                queue = self.name,
                error,
                failures = *failures,
                "cannot receive messages; trying again"
            );
        }
        let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow((*failures - 1).min(10)));
        tokio::select! {
            () = tokio::time::sleep(pause.min(PAUSE_MAX)) => true,
            () = self.intake().stopped() => false,
        }
    }

    /// Reads the objects of a message; `_taken` is its place among the messages that are read.
    async fn work(&self, message: Message, number: u64, _taken: OwnedSemaphorePermit) {
        let read = tokio::select! {
            biased;
            () = self.intake().stopped() => Err(MessageError::Stopped),
            worker = self.working.acquire() => {
                let clock = self.intake().clock();
                self.numbers.worker_begins(clock.monotonic());
                let read = self.read(&message).await;
                self.numbers.worker_ends(clock.monotonic());
                drop(worker);
                read
            }
        };
        match read {
            Ok(objects) => {
                self.numbers.processed.add(1);
                self.messages.sent(number, objects);
            }
            Err(error) => self.leave(number, &message, error),
        }
    }

    /// Reads the objects of a message, one after the other, also behind one that fails.
    async fn read(&self, message: &Message) -> Result<Vec<Sent>, MessageError> {
        let notification = self.parse(&message.body).await?;
        self.note_others(&notification.others);
        let (mut sent, mut failed, mut is_excused) = (Vec::new(), None, false);
        for noted in notification.objects {
            let (bucket, key) = (noted.bucket.clone(), noted.key.clone());
            match self.read_noted(noted).await {
                Ok(one) => sent.extend(one),
                Err(ObjectError::Stopped) => return Err(MessageError::Stopped),
                Err(error) => {
                    is_excused |=
                        matches!(error, ObjectError::Passing(_) | ObjectError::Refused(_));
                    let error = error.to_string();
                    self.objects.failed((&bucket, &key), &error);
                    tracing::error!(bucket, key, error, "cannot read an object");
                    failed.get_or_insert(format!("`{bucket}/{key}`: {error}"));
                }
            }
        }
        match failed {
            None => Ok(sent),
            Some(error) if is_excused => Err(MessageError::Passing(error)),
            Some(error) => Err(MessageError::Failed(error)),
        }
    }

    /// What a message says.
    async fn parse(&self, body: &str) -> Result<Notification, MessageError> {
        let Some(script) = &self.script else {
            let parsed = Notification::parse(body);
            return parsed
                .map_err(|error| MessageError::Foreign(format!("the message is {error}")));
        };
        let (runs, body) = (Arc::clone(script), body.to_owned());
        let parsing = tokio::task::spawn_blocking(move || runs.parse(&body));
        let parsed = tokio::select! {
            biased;
            () = self.intake().stopped() => {
                script.stop();
                return Err(MessageError::Stopped);
            }
            parsed = parsing => parsed,
        };
        // The mistake may be the script's: the message may be read with a better one.
        let failed = |error: String| {
            self.intake().metrics().failed(&self.name, &error);
            MessageError::Failed(format!("`sqs.notification_parsing_script`: {error}"))
        };
        let named = parsed.map_err(|error| failed(error.to_string()))?.map_err(failed)?;
        Notification::of_script(named).map_err(|error| failed(error.to_string()))
    }

    /// Reads an object that a message names.
    async fn read_noted(&self, noted: Noted) -> Result<Option<Sent>, ObjectError> {
        if let Err(error) = check_bucket(&noted.bucket) {
            return Err(ObjectError::Failed(error));
        }
        let region = self.objects.cloud.settings.servers.region_of(&noted.region);
        let Noted { bucket, arn, key, other_key, version, provider, .. } = noted;
        let place = ObjectPlace { bucket: BucketName::Bucket(bucket), region, key, version };
        let mut wanted = Wanted { place, arn, provider, listed: None };
        match (self.objects.read(&wanted).await, other_key) {
            (Err(ObjectError::Gone), Some(other)) => {
                wanted.place.key = other;
                self.objects.read(&wanted).await
            }
            (read, _) => read,
        }
    }

    /// Says once that the queue has events that name no new object.
    fn note_others(&self, others: &[String]) {
        let Some(event) = others.iter().find(|event| *event != "s3:TestEvent") else { return };
        if !self.has_noted.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                queue = self.name,
                event,
                "a message names an event that is none of a new object; let the bucket send `s3:ObjectCreated:*` only"
            );
        }
    }

    /// A message is not done. It comes again when it is visible again, unless it has failed too often.
    fn leave(&self, number: u64, message: &Message, error: MessageError) {
        let receipts = message.receive_count;
        let is_last = self.settings().receives_max.is_some_and(|most| receipts >= most);
        let (text, is_hopeless) = match error {
            MessageError::Stopped => {
                let receipt = self.give_back(number);
                let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
                unread.extend(receipt);
                return;
            }
            MessageError::Foreign(text) => {
                self.intake().metrics().failed(&self.name, &text);
                self.row.failed(&text);
                (text, true)
            }
            MessageError::Failed(text) => (text, is_last),
            MessageError::Passing(text) => (text, false),
        };
        let id = &message.id;
        let has_dead_letters = self.has_dead_letters.load(Ordering::Relaxed);
        if !has_dead_letters && is_hopeless {
            tracing::error!(
                queue = self.name,
                id,
                receipts,
                error = text,
                "a message is given up and deleted: what of its objects was not read is not read any more"
            );
            self.messages.done(number);
            return;
        }
        self.give_back(number);
        tracing::warn!(
            queue = self.name,
            id,
            receipts,
            error = text,
            has_dead_letters,
            "a message is left to the queue: it comes again when `visibility_timeout` is over, or goes to the dead letters"
        );
    }
}
