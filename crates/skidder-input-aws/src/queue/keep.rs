//! Keeps messages hidden from others while their objects are read and settled, and deletes them behind that.

use super::QueueRun;
use crate::messages::Asked;
use skidder_amazon::{BATCH_MAX, EntryError, EntryResults, Failure, Queue};
use skidder_input_objects::Cloud as _;
use skidder_os::{Monotonic, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Pause between two looks at the messages.
const TICK: Duration = Duration::from_millis(20);
/// The longest time until outputs are asked again to send what they have; see [`Keeper::hurry`].
const HURRY_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Requests to delete messages under way at once.
const DELETERS: usize = 4;
/// Messages whose objects are copied at once.
const COPIERS: usize = 16;
/// Pause after a request that failed.
const PAUSE: Duration = Duration::from_secs(2);
/// Pause between two questions about the queue.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// How long a span is of which it is counted how busy the workers are, as in Filebeat.
const SPAN: Duration = Duration::from_secs(5);
/// Pause between two looks at what the registry has of objects.
const TIDY_EVERY: Duration = Duration::from_mins(10);
/// How long the registry knows an object that was read, at least: messages come again meanwhile.
const KEPT_MIN: Duration = Duration::from_hours(1);
/// How long the registry knows a part of an object: messages stay in a queue for so long at most.
const KEPT_PART: Duration = Duration::from_hours(14 * 24);

/// See the module's text.
pub(super) struct Keeper {
    run: Arc<QueueRun>,
    /// For hiding.
    queue: Queue,
    /// For deleting; those that no request uses.
    deleters: Vec<Queue>,
    deleting: JoinSet<Deleted>,
    copying: JoinSet<()>,
    /// Messages whose objects wait for being copied.
    to_copy: VecDeque<(Asked, Vec<crate::objects::Sent>)>,
    hurry: Hurry,
}

/// When outputs are asked to send what they have.
#[derive(Clone, Copy, Debug, Default)]
struct Hurry {
    /// Nothing while something is read.
    next: Option<Monotonic>,
    pause: Duration,
}

/// A request that has ended.
struct Deleted {
    queue: Queue,
    asked: Vec<Asked>,
    result: Result<EntryResults, Failure>,
}

impl Keeper {
    pub(super) fn new(run: Arc<QueueRun>) -> Self {
        let queue = run.client();
        let deleters = (0..DELETERS).map(|_| run.client()).collect();
        let (deleting, copying) = (JoinSet::new(), JoinSet::new());
        let (to_copy, hurry) = (VecDeque::new(), Hurry::default());
        Self { run, queue, deleters, deleting, copying, to_copy, hurry }
    }

    /// Works until it is dropped.
    pub(super) async fn run(mut self) {
        loop {
            if self.run.messages.is_empty() && self.deleting.is_empty() {
                self.run.messages.news.notified().await;
            }
            tokio::select! {
                Some(deleted) = self.deleting.join_next() => {
                    if let Ok(deleted) = deleted {
                        self.deleted(deleted);
                    }
                }
                () = tokio::time::sleep(TICK) => {}
            }
            while self.copying.try_join_next().is_some() {}
            self.settle();
            self.copy();
            self.delete();
            self.hurry();
            self.extend().await;
        }
    }

    /// When all was read that messages have named, outputs do not wait for more: the rest of a request would hold its messages
    /// back for `queue.mem.flush.timeout`.
    fn hurry(&mut self) {
        let (messages, intake) = (&self.run.messages, self.run.intake());
        if !messages.wait_for_verdicts() {
            self.hurry = Hurry::default();
            return;
        }
        let now = intake.clock().monotonic();
        let Hurry { next, pause } = self.hurry;
        if next.is_none_or(|next| next <= now) {
            // What has come meanwhile goes out together; an output that is stuck is not asked for ever.
            if next.is_some() {
                intake.flush();
            }
            let pause = (2 * pause).clamp(TICK, HURRY_PAUSE_MAX);
            self.hurry = Hurry { next: Some(now + pause), pause };
        }
    }

    /// Finds messages whose objects are settled.
    fn settle(&mut self) {
        let run = &self.run;
        let settle = &run.objects.settle;
        let settled = run.messages.take_settled(|source| settle.is_settled(source));
        let has_backup = run.objects.cloud.has_backup();
        for (asked, objects) in settled {
            if has_backup && !objects.is_empty() {
                self.to_copy.push_back((asked, objects));
            } else {
                run.messages.done(asked.number);
            }
        }
    }

    /// Begins to copy the objects of messages.
    fn copy(&mut self) {
        while self.copying.len() < COPIERS
            && let Some((asked, sent)) = self.to_copy.pop_front()
        {
            let run = Arc::clone(&self.run);
            let work = async move {
                for one in &sent {
                    if let Err(text) = run.objects.cloud.back_up(one).await {
                        run.intake().metrics().failed(&one.wanted.place.key, &text);
                        tracing::error!(
                            queue = run.name,
                            id = &*asked.id,
                            error = text,
                            "all of an object was sent, but it stays where it is until its message comes again"
                        );
                        run.give_back(asked.number);
                        return;
                    }
                }
                run.messages.done(asked.number);
            };
            self.copying.spawn(work.in_current_span());
        }
    }

    /// Begins to delete messages.
    fn delete(&mut self) {
        let now = self.run.intake().clock().monotonic();
        while let Some(mut queue) = self.deleters.pop() {
            let asked = self.run.messages.take_done(BATCH_MAX, now);
            if asked.is_empty() {
                self.deleters.push(queue);
                return;
            }
            let work = async move {
                let receipts: Vec<&str> = asked.iter().map(|one| &*one.receipt).collect();
                let result = queue.delete_batch(&receipts).await;
                drop(receipts);
                Deleted { queue, asked, result }
            };
            self.deleting.spawn(work.in_current_span());
        }
    }

    fn deleted(&mut self, deleted: Deleted) {
        let Deleted { queue, asked, result } = deleted;
        self.deleters.push(queue);
        let run = &self.run;
        let again = run.intake().clock().monotonic() + PAUSE;
        let results = match result {
            Ok(results) => results,
            Err(failure) => {
                let error = failure.to_string();
                run.intake().metrics().failed(&run.name, &error);
                tracing::error!(queue = run.name, error, "cannot delete messages; trying again");
                for one in asked {
                    run.messages.delete_again(one.number, again);
                }
                return;
            }
        };
        for (one, result) in asked.iter().zip(results) {
            match result {
                Ok(()) => {
                    run.forget(one.number);
                    run.numbers.deleted.add(1);
                }
                Err(error) if error.is_ours => {
                    // It comes again, and its objects are known then.
                    run.give_back(one.number);
                    tracing::warn!(queue = run.name, id = &*one.id, %error,
                        "a message cannot be deleted: it was hidden for too short; it comes again");
                }
                Err(error) => {
                    tracing::warn!(queue = run.name, id = &*one.id, %error,
                        "a message was not deleted; trying again");
                    run.messages.delete_again(one.number, again);
                }
            }
        }
    }

    /// Hides messages for longer.
    async fn extend(&mut self) {
        let (run, queue) = (&self.run, &mut self.queue);
        let visibility = run.settings().visibility;
        let clock = run.intake().clock();
        loop {
            let due = run.messages.take_due(BATCH_MAX, clock.monotonic(), visibility / 2);
            if due.is_empty() {
                return;
            }
            let messages: Vec<_> = due.iter().map(|one| (&*one.receipt, visibility)).collect();
            let extended = queue.change_visibility_batch(&messages).await;
            let again = clock.monotonic() + PAUSE.min(visibility / 8);
            match extended {
                Ok(results) => {
                    for (one, result) in due.iter().zip(results) {
                        match result {
                            Ok(()) => run.numbers.extended.add(1),
                            Err(error) => not_extended(run, one, &error, again),
                        }
                    }
                }
                Err(error) => {
                    tracing::warn!(queue = run.name, %error, "cannot hide messages for longer; trying again");
                    for one in &due {
                        run.messages.extend_again(one.number, Some(again));
                    }
                    return;
                }
            }
        }
    }
}

fn not_extended(run: &QueueRun, one: &Asked, error: &EntryError, again: Monotonic) {
    let at = (!error.is_ours).then_some(again);
    tracing::warn!(queue = run.name, id = &*one.id, %error, will_try_again = at.is_some(),
        "a message is not hidden for longer: another process may receive it");
    run.messages.extend_again(one.number, at);
}

/// Counts how busy the workers are.
pub(super) async fn measure(run: Arc<QueueRun>) {
    let workers = run.objects.cloud.settings.workers;
    loop {
        run.numbers.end_span(workers, run.intake().clock().monotonic());
        tokio::time::sleep(SPAN).await;
    }
}

/// Asks for the state of the queue from time to time, and forgets objects whose messages do not come again.
pub(super) async fn tidy(run: Arc<QueueRun>) {
    let mut queue = run.client();
    let mut ticks = 0_u32;
    loop {
        look(&run, &mut queue).await;
        let clock = run.intake().clock();
        run.objects.forget_settled(clock.monotonic());
        if ticks.is_multiple_of((TIDY_EVERY.as_secs() / LOOK_EVERY.as_secs()) as u32) {
            forget_old(&run).await;
        }
        ticks = ticks.wrapping_add(1);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn look(run: &QueueRun, queue: &mut Queue) {
    match queue.attributes().await {
        Ok(attributes) => {
            run.has_dead_letters.store(attributes.receives_max.is_some(), Ordering::Relaxed);
            run.numbers.set_waiting(Some(attributes.messages));
        }
        Err(error) => {
            tracing::debug!(queue = run.name, %error, "cannot ask for the state of the queue");
            run.numbers.set_waiting(None);
            // The right to ask is missing, and is not needed otherwise.
            if matches!(&error, Failure::Refused(refused) if refused.status == 403) {
                run.has_dead_letters.store(false, Ordering::Relaxed);
            }
        }
    }
}

/// Forgets objects in the registry that were settled long ago.
async fn forget_old(run: &Arc<QueueRun>) {
    let objects = Arc::clone(&run.objects);
    let kept = KEPT_MIN.max(run.settings().visibility * 2);
    let now = run.intake().clock().wall();
    let (finished, part) = (now.earlier_by(kept), now.earlier_by(KEPT_PART));
    let work = move || {
        let mut old = Vec::new();
        let mut each = |key: &str, entry: &skidder_registry::FileEntry| {
            let limit: Timestamp = if entry.cursor.eof { finished } else { part };
            if key.starts_with(&*objects.prefix) && entry.updated < limit {
                old.push(key.to_owned());
            }
        };
        let read = objects.cursors.for_each_saved(&mut each);
        match read {
            Ok(()) if old.is_empty() => {}
            Ok(()) => objects.cursors.forget_saved(old),
            Err(error) => tracing::warn!(%error, "cannot look for objects to forget"),
        }
    };
    // Nothing is lost if it is cancelled.
    drop(tokio::task::spawn_blocking(work).await);
}
