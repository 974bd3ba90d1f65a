//! The messages that this process has received and the queue still has: each is hidden from others until it is deleted, or
//! until it fails.

use crate::objects::Sent;
use skidder_event::SourceId;
use skidder_os::{Monotonic, Timestamp};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit};

/// A message from its receipt until it is deleted or given back.
#[derive(Debug)]
struct Held {
    /// Of the message, for people.
    id: Arc<str>,
    /// Names the receipt.
    receipt: Arc<str>,
    /// When it was received.
    received: Monotonic,
    /// When it was sent; nothing if the server does not say it.
    sent: Option<Timestamp>,
    /// When it is hidden for longer; nothing if the server refuses that.
    extend_at: Option<Monotonic>,
    stage: Stage,
    /// There are so many at most.
    _room: OwnedSemaphorePermit,
}

#[derive(Debug)]
enum Stage {
    /// Its objects are read.
    Reading,
    /// They are not all settled.
    Settling(Vec<Sent>),
    /// All are settled, and copied if they shall be: a request to delete it may be under way.
    Done { asked: bool, not_before: Monotonic },
    /// Its objects are copied.
    Copying,
}

/// See the module's text. By numbers of their own, in the order of their receipt.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    state: Mutex<State>,
    /// Notified when there is something to do for a message.
    pub(crate) news: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<u64, Held>,
    next: u64,
}

/// A message about which the server is asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) number: u64,
    pub(crate) id: Arc<str>,
    pub(crate) receipt: Arc<str>,
}

impl Messages {
    /// A message that was sent then was received, and is hidden until about the double of `span` from now.
    pub(crate) fn hold(
        &self,
        (id, receipt): (&str, &str),
        sent: Option<Timestamp>,
        room: OwnedSemaphorePermit,
        now: Monotonic,
        span: Duration,
    ) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let held = Held {
            id: id.into(),
            receipt: receipt.into(),
            received: now,
            sent,
            extend_at: Some(now + span),
            stage: Stage::Reading,
            _room: room,
        };
        state.held.insert(number, held);
        drop(state);
        self.news.notify_one();
        number
    }

    /// All objects of a message were sent on.
    pub(crate) fn sent(&self, number: u64, objects: Vec<Sent>) {
        self.set_stage(number, Stage::Settling(objects));
    }

    /// A message can be deleted.
    pub(crate) fn done(&self, number: u64) {
        self.set_stage(number, Stage::Done { asked: false, not_before: Monotonic::default() });
    }

    fn set_stage(&self, number: u64, stage: Stage) {
        if let Some(held) = self.lock().held.get_mut(&number) {
            held.stage = stage;
        }
        self.news.notify_one();
    }

    /// A message is deleted, or is left to the queue. Returns its receipt, and when that was.
    pub(crate) fn forget(&self, number: u64) -> Option<(Arc<str>, Monotonic)> {
        let held = self.lock().held.remove(&number);
        held.map(|held| (held.receipt, held.received))
    }

    /// How many there are, and when the oldest of them was sent.
    pub(crate) fn count(&self) -> (u64, Option<Timestamp>) {
        let state = self.lock();
        (state.held.len() as u64, state.held.values().filter_map(|held| held.sent).min())
    }

    /// Takes the messages all of whose objects are settled, with those: they are to be copied, or deleted.
    pub(crate) fn take_settled(
        &self,
        is_settled: impl Fn(SourceId) -> bool,
    ) -> Vec<(Asked, Vec<Sent>)> {
        let mut state = self.lock();
        let mut settled = Vec::new();
        for (&number, held) in &mut state.held {
            let Stage::Settling(objects) = &mut held.stage else { continue };
            if objects.iter().filter_map(|object| object.source).all(&is_settled) {
                let objects = std::mem::take(objects);
                held.stage = Stage::Copying;
                settled.push((asked(number, held), objects));
            }
        }
        settled
    }

    /// Whether verdicts are all that messages wait for: some wait for them, and of none the objects are read.
    pub(crate) fn wait_for_verdicts(&self) -> bool {
        let state = self.lock();
        // The newest first: those are the ones that are read.
        let stages = || state.held.values().rev().map(|held| &held.stage);
        !stages().any(|stage| matches!(stage, Stage::Reading))
            && stages().any(|stage| matches!(stage, Stage::Settling(_)))
    }

    /// Takes up to `most` messages that can be deleted now.
    pub(crate) fn take_done(&self, most: usize, now: Monotonic) -> Vec<Asked> {
        let mut state = self.lock();
        let mut done = Vec::new();
        for (&number, held) in &mut state.held {
            if done.len() == most {
                break;
            }
            if let Stage::Done { asked: is_asked, not_before } = &mut held.stage
                && !*is_asked
                && *not_before <= now
            {
                *is_asked = true;
                done.push(asked(number, held));
            }
        }
        done
    }

    /// A message was not deleted: again at this time.
    pub(crate) fn delete_again(&self, number: u64, not_before: Monotonic) {
        self.set_stage(number, Stage::Done { asked: false, not_before });
    }

    /// Takes up to `most` messages that must be hidden for longer, and notes that they are: for the double of `span`.
    pub(crate) fn take_due(&self, most: usize, now: Monotonic, span: Duration) -> Vec<Asked> {
        let mut state = self.lock();
        let mut due = Vec::new();
        for (&number, held) in &mut state.held {
            if due.len() == most {
                break;
            }
            if held.extend_at.is_some_and(|at| at <= now) {
                held.extend_at = Some(now + span);
                due.push(asked(number, held));
            }
        }
        due
    }

    /// Whether a message was not hidden for longer: again at this time, or never.
    pub(crate) fn extend_again(&self, number: u64, at: Option<Monotonic>) {
        if let Some(held) = self.lock().held.get_mut(&number) {
            held.extend_at = at;
        }
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().held.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn asked(number: u64, held: &Held) -> Asked {
    Asked { number, id: Arc::clone(&held.id), receipt: Arc::clone(&held.receipt) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::Wanted;
    use crate::servers::BucketName;
    use crate::store::ObjectPlace;
    use tokio::sync::Semaphore;

    const SPAN: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Monotonic {
        Monotonic(Duration::from_secs(seconds))
    }

    fn sent(source: Option<u64>) -> Sent {
        let place = ObjectPlace {
            bucket: BucketName::Bucket("logs".to_owned()),
            region: "eu-west-1".to_owned(),
            key: "a".to_owned(),
            version: None,
        };
        let wanted = Wanted { place, arn: String::new(), provider: String::new(), listed: None };
        Sent { source: source.map(SourceId), wanted, version: String::new() }
    }

    fn held(messages: &Messages, room: &Arc<Semaphore>, id: &str) -> u64 {
        let permit = Arc::clone(room).try_acquire_owned().unwrap();
        messages.hold((id, id), Some(Timestamp(7)), permit, at(0), SPAN)
    }

    fn numbers(asked: &[Asked]) -> Vec<u64> {
        asked.iter().map(|one| one.number).collect()
    }

    #[test]
    fn a_message_is_deleted_behind_the_last_of_its_objects() {
        let (messages, room) = (Messages::default(), Arc::new(Semaphore::new(2)));
        let (a, b) = (held(&messages, &room, "a"), held(&messages, &room, "b"));
        assert!(messages.take_settled(|_| true).is_empty(), "their objects are being read");
        messages.sent(a, vec![sent(Some(1)), sent(None), sent(Some(2))]);
        assert!(!messages.wait_for_verdicts(), "those of the other one are read");
        messages.sent(b, vec![sent(None)]);
        assert!(messages.wait_for_verdicts());
        let settled = messages.take_settled(|source| source == SourceId(1));
        assert_eq!((settled.len(), settled[0].0.number), (1, b));
        let settled = messages.take_settled(|_| true);
        assert_eq!((settled.len(), settled[0].1.len()), (1, 3));
        assert!(messages.take_settled(|_| true).is_empty(), "each is taken once");
        assert!(!messages.wait_for_verdicts(), "all have them");
        messages.done(a);
        messages.done(b);
        assert_eq!(numbers(&messages.take_done(1, at(1))), [a]);
        assert_eq!(numbers(&messages.take_done(9, at(1))), [b]);
        messages.delete_again(a, at(5));
        assert!(messages.take_done(9, at(4)).is_empty());
        assert_eq!(numbers(&messages.take_done(9, at(5))), [a]);
        assert_eq!(room.available_permits(), 0);
        assert_eq!(messages.count(), (2, Some(Timestamp(7))));
        assert_eq!(messages.forget(a), Some(("a".into(), at(0))));
        messages.forget(b);
        assert!(messages.is_empty() && room.available_permits() == 2);
        assert_eq!(messages.forget(a), None);
    }

    #[test]
    fn messages_are_hidden_for_longer_at_half_of_the_time() {
        let (messages, room) = (Messages::default(), Arc::new(Semaphore::new(2)));
        let (a, b) = (held(&messages, &room, "a"), held(&messages, &room, "b"));
        assert!(messages.take_due(9, at(9), SPAN).is_empty());
        assert_eq!(numbers(&messages.take_due(1, at(10), SPAN)), [a]);
        assert_eq!(numbers(&messages.take_due(9, at(10), SPAN)), [b]);
        messages.extend_again(a, None);
        messages.extend_again(b, Some(at(11)));
        assert_eq!(numbers(&messages.take_due(9, at(30), SPAN)), [b]);
    }
}
