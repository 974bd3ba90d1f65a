//! The messages that this process holds: received, and neither acknowledged nor given back. The server gives each to nobody
//! else until its deadline, which is extended as long as the message is here.

use skidder_event::{Acknowledge, Acknowledgement};
use skidder_os::Monotonic;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// A message from its receipt on.
#[derive(Debug)]
struct Lease {
    /// Names the receipt.
    ack_id: Arc<str>,
    /// Of the message, by which one that comes again is known.
    message_id: Arc<str>,
    bytes: u64,
    /// Nanoseconds since 1970-01-01 UTC.
    published: i64,
    /// When the deadline is extended; nothing if the server refuses that.
    extend_at: Option<Monotonic>,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Its event waits for a verdict.
    UnderWay,
    /// The server shall forget it.
    Settled,
    /// The server shall give it to somebody.
    Returned,
}

/// A message about which the server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) number: u64,
    pub(crate) ack_id: Arc<str>,
}

/// What is known of a message that was received.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) ack_id: String,
    pub(crate) message_id: String,
    pub(crate) bytes: u64,
    pub(crate) published: i64,
}

/// See the module's text. By numbers of their own, in the order of their receipt.
#[derive(Debug)]
pub(crate) struct Leases {
    /// Most messages that are held before no more are read; nothing for no limit.
    messages_max: Option<usize>,
    /// The same for bytes of their data.
    bytes_max: u64,
    state: Mutex<State>,
    /// Notified when there is something to say to the server.
    pub(crate) news: Notify,
    /// Notified when there is room.
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<u64, Lease>,
    by_message: HashMap<Arc<str>, u64>,
    next: u64,
    bytes: u64,
    /// Of settled messages.
    to_acknowledge: ToSay,
    /// Of returned ones.
    to_return: ToSay,
    under_way: usize,
}

/// Numbers of messages about which the server is to be asked.
#[derive(Debug, Default)]
struct ToSay {
    now: VecDeque<u64>,
    later: Vec<(Monotonic, u64)>,
}

impl ToSay {
    fn take(&mut self, most: usize, now: Monotonic) -> Vec<u64> {
        let due = self.later.extract_if(.., |(at, _)| *at <= now).map(|(_, number)| number);
        self.now.extend(due);
        let count = self.now.len().min(most);
        self.now.drain(..count).collect()
    }
}

/// The messages of a batch.
#[derive(Debug)]
struct Receipt {
    leases: Arc<Leases>,
    numbers: Vec<u64>,
}

impl Acknowledge for Receipt {
    fn accept(self: Box<Self>) {
        self.leases.decide(&self.numbers, Stage::Settled);
    }

    fn reject(self: Box<Self>) {
        self.leases.decide(&self.numbers, Stage::Returned);
    }
}

impl State {
    fn remove(&mut self, number: u64) -> Option<Lease> {
        let lease = self.held.remove(&number)?;
        self.bytes -= lease.bytes;
        if lease.stage == Stage::UnderWay {
            self.under_way -= 1;
        }
        if self.by_message.get(&lease.message_id) == Some(&number) {
            self.by_message.remove(&lease.message_id);
        }
        Some(lease)
    }

    fn named(&self, number: u64) -> Option<Named> {
        let lease = self.held.get(&number)?;
        Some(Named { number, ack_id: Arc::clone(&lease.ack_id) })
    }
}

impl Leases {
    /// With room for so many messages, and bytes of their data.
    pub(crate) fn new(messages_max: Option<usize>, bytes_max: u64) -> Arc<Self> {
        let (state, news, room) = (Mutex::default(), Notify::new(), Notify::new());
        Arc::new(Self { messages_max, bytes_max, state, news, room })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was received; its deadline is to be extended at `extend_at`. Returns its number; nothing if it has an event
    /// already that is under way, or that has its verdict: then only the new receipt counts.
    pub(crate) fn hold(&self, received: Received, extend_at: Monotonic) -> Option<u64> {
        let Received { ack_id, message_id, bytes, published } = received;
        let mut state = self.lock();
        let known = state.by_message.get(&*message_id).copied();
        if let Some(lease) = known.and_then(|number| state.held.get_mut(&number)) {
            lease.ack_id = ack_id.into();
            lease.extend_at = Some(extend_at);
            return None;
        }
        let number = state.next;
        state.next += 1;
        let message_id: Arc<str> = message_id.into();
        state.by_message.insert(Arc::clone(&message_id), number);
        let stage = Stage::UnderWay;
        let ack_id = ack_id.into();
        let extend_at = Some(extend_at);
        state.held.insert(number, Lease { ack_id, message_id, bytes, published, extend_at, stage });
        state.bytes += bytes;
        state.under_way += 1;
        Some(number)
    }

    /// The acknowledgement of a batch with these messages.
    pub(crate) fn batch(self: &Arc<Self>, numbers: Vec<u64>) -> Acknowledgement {
        Acknowledgement::new(Receipt { leases: Arc::clone(self), numbers })
    }

    fn decide(&self, numbers: &[u64], stage: Stage) {
        let mut state = self.lock();
        let State { held, by_message, to_acknowledge, to_return, under_way, .. } = &mut *state;
        for number in numbers {
            let Some(lease) = held.get_mut(number) else { continue };
            if lease.stage != Stage::UnderWay {
                continue;
            }
            *under_way -= 1;
            lease.stage = stage;
            if stage == Stage::Settled {
                to_acknowledge.now.push_back(*number);
            } else {
                // It becomes an event when it comes again.
                by_message.remove(&lease.message_id);
                to_return.now.push_back(*number);
            }
        }
        drop(state);
        self.news.notify_one();
    }

    /// Gives back all messages that are under way: verdicts that come later count no more.
    pub(crate) fn return_all(&self) -> usize {
        let under_way: Vec<u64> = {
            let state = self.lock();
            let is_under_way = |lease: &Lease| lease.stage == Stage::UnderWay;
            let under_way = state.held.iter().filter(|(_, lease)| is_under_way(lease));
            under_way.map(|(number, _)| *number).collect()
        };
        self.decide(&under_way, Stage::Returned);
        under_way.len()
    }

    /// Takes up to `most` messages that are to be acknowledged.
    pub(crate) fn take_settled(&self, most: usize, now: Monotonic) -> Vec<Named> {
        let mut state = self.lock();
        let numbers = state.to_acknowledge.take(most, now);
        numbers.into_iter().filter_map(|number| state.named(number)).collect()
    }

    /// Takes up to `most` messages that are to be given back.
    pub(crate) fn take_returned(&self, most: usize, now: Monotonic) -> Vec<Named> {
        let mut state = self.lock();
        let numbers = state.to_return.take(most, now);
        numbers.into_iter().filter_map(|number| state.named(number)).collect()
    }

    /// Takes up to `most` messages whose deadline is to be extended, and notes that it is, until `again`.
    pub(crate) fn take_due(&self, most: usize, now: Monotonic, again: Duration) -> Vec<Named> {
        let mut state = self.lock();
        let is_due = |lease: &Lease| {
            lease.stage != Stage::Returned && lease.extend_at.is_some_and(|at| at <= now)
        };
        let due = state.held.iter_mut().filter(|(_, lease)| is_due(lease)).take(most);
        let named = due.map(|(number, lease)| {
            lease.extend_at = Some(now + again);
            Named { number: *number, ack_id: Arc::clone(&lease.ack_id) }
        });
        named.collect()
    }

    /// A deadline was not extended: again at this time, or never.
    pub(crate) fn extend_again(&self, named: &Named, at: Option<Monotonic>) {
        if let Some(lease) = self.lock().held.get_mut(&named.number)
            && lease.ack_id == named.ack_id
        {
            lease.extend_at = at;
        }
    }

    /// The server has taken note of an acknowledgement, or has given the message to somebody: it is held no more, unless it
    /// has come again meanwhile. Returns whether so, and when it was published.
    pub(crate) fn done(&self, named: &Named) -> Option<(i64, u64)> {
        let mut state = self.lock();
        let lease = state.held.get(&named.number)?;
        if lease.ack_id != named.ack_id && lease.stage == Stage::Settled {
            state.to_acknowledge.now.push_back(named.number);
            drop(state);
            self.news.notify_one();
            return None;
        }
        let lease = state.remove(named.number)?;
        drop(state);
        self.room.notify_waiters();
        Some((lease.published, lease.bytes))
    }

    /// The server was not reached: again at this time.
    pub(crate) fn say_again(&self, named: &Named, at: Monotonic) {
        let mut state = self.lock();
        let number = named.number;
        match state.held.get(&number).map(|lease| lease.stage) {
            Some(Stage::Settled) => state.to_acknowledge.later.push((at, number)),
            Some(Stage::Returned) => state.to_return.later.push((at, number)),
            Some(Stage::UnderWay) | None => {}
        }
    }

    /// Resolves when there is room for more.
    pub(crate) async fn await_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    /// Whether there is room for more.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.lock();
        let has_place = self.messages_max.is_none_or(|most| state.held.len() < most);
        has_place && state.bytes < self.bytes_max
    }

    /// How many messages are held.
    pub(crate) fn len(&self) -> usize {
        self.lock().held.len()
    }

    /// Whether events wait for verdicts.
    pub(crate) fn is_waiting(&self) -> bool {
        self.lock().under_way > 0
    }

    /// When the oldest message was published that is held: nanoseconds since 1970-01-01 UTC.
    pub(crate) fn oldest(&self) -> Option<i64> {
        self.lock().held.values().map(|lease| lease.published).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(20);

    fn at(seconds: u64) -> Monotonic {
        Monotonic(Duration::from_secs(seconds))
    }

    fn received(ack_id: &str, message_id: &str) -> Received {
        let (ack_id, message_id) = (ack_id.to_owned(), message_id.to_owned());
        Received { ack_id, message_id, bytes: 10, published: 7 }
    }

    fn held(leases: &Arc<Leases>, ack_id: &str, message_id: &str) -> Option<u64> {
        leases.hold(received(ack_id, message_id), at(20))
    }

    fn ids(named: &[Named]) -> Vec<&str> {
        named.iter().map(|named| &*named.ack_id).collect()
    }

    #[test]
    fn a_message_is_acknowledged_behind_its_verdict_and_given_back_without_one() {
        let leases = Leases::new(None, 100);
        let numbers: Vec<u64> =
            ["a", "b", "c"].into_iter().filter_map(|id| held(&leases, id, id)).collect();
        let (one, rest) =
            (leases.batch(numbers[..1].to_vec()), leases.batch(numbers[1..].to_vec()));
        assert!(leases.take_settled(9, at(0)).is_empty() && leases.is_waiting());
        one.accept();
        drop(rest);
        assert!(!leases.is_waiting());
        let settled = leases.take_settled(9, at(0));
        assert_eq!(ids(&settled), ["a"]);
        assert_eq!(ids(&leases.take_returned(1, at(0))), ["b"]);
        assert_eq!(ids(&leases.take_returned(9, at(0))), ["c"]);
        assert!(leases.take_settled(9, at(0)).is_empty(), "each is taken once");
        leases.say_again(&settled[0], at(5));
        assert!(leases.take_settled(9, at(4)).is_empty());
        assert_eq!(leases.take_settled(9, at(5)), settled);
        assert_eq!(leases.len(), 3);
        assert_eq!(leases.done(&settled[0]), Some((7, 10)));
        assert_eq!(leases.done(&settled[0]), None);
        assert_eq!((leases.len(), leases.lock().bytes), (2, 20));
    }

    #[test]
    fn a_message_that_comes_again_is_one_event_and_its_last_receipt_counts() {
        let leases = Leases::new(None, 100);
        let number = held(&leases, "a:1", "a").unwrap();
        assert_eq!(held(&leases, "a:2", "a"), None);
        assert_eq!(leases.len(), 1);
        leases.batch(vec![number]).accept();
        let first = leases.take_settled(9, at(0));
        assert_eq!(ids(&first), ["a:2"]);
        // It comes again while the server is being asked.
        assert_eq!(held(&leases, "a:3", "a"), None);
        assert_eq!(leases.done(&first[0]), None);
        let second = leases.take_settled(9, at(0));
        assert_eq!(ids(&second), ["a:3"]);
        assert!(leases.done(&second[0]).is_some() && leases.len() == 0);
        assert!(leases.lock().by_message.is_empty());
        // What was given back is another event.
        let number = held(&leases, "a:4", "a").unwrap();
        drop(leases.batch(vec![number]));
        let again = held(&leases, "a:5", "a").unwrap();
        let returned = leases.take_returned(9, at(0));
        assert_eq!(ids(&returned), ["a:4"]);
        assert!(leases.done(&returned[0]).is_some());
        assert_eq!(held(&leases, "a:6", "a"), None, "it is known by its second number: {again}");
    }

    #[test]
    fn deadlines_are_extended_until_the_server_has_answered() {
        let leases = Leases::new(None, 100);
        let number = held(&leases, "a", "a").unwrap();
        held(&leases, "b", "b");
        assert!(leases.take_due(9, at(19), SPAN).is_empty());
        assert_eq!(ids(&leases.take_due(1, at(20), SPAN)), ["a"]);
        let second = leases.take_due(9, at(20), SPAN);
        assert_eq!(ids(&second), ["b"]);
        leases.extend_again(&second[0], Some(at(25)));
        assert_eq!(ids(&leases.take_due(9, at(25), SPAN)), ["b"]);
        leases.extend_again(&second[0], None);
        leases.batch(vec![number]).accept();
        assert_eq!(ids(&leases.take_due(9, at(99), SPAN)), ["a"], "it is not acknowledged yet");
    }

    #[tokio::test]
    async fn nothing_more_is_read_without_room() {
        for leases in [Leases::new(Some(2), 1000), Leases::new(None, 20)] {
            leases.await_room().await;
            let numbers: Vec<u64> =
                ["a", "b"].into_iter().filter_map(|id| held(&leases, id, id)).collect();
            let waiting = tokio::spawn({
                let leases = Arc::clone(&leases);
                async move { leases.await_room().await }
            });
            tokio::task::yield_now().await;
            leases.batch(numbers).accept();
            tokio::task::yield_now().await;
            assert!(!waiting.is_finished(), "the server has them still");
            let named = leases.take_settled(1, at(0));
            leases.done(&named[0]);
            waiting.await.unwrap();
        }
    }

    #[test]
    fn a_stop_gives_back_what_is_under_way() {
        let leases = Leases::new(None, 100);
        let (a, b) = (held(&leases, "a", "a").unwrap(), held(&leases, "b", "b").unwrap());
        leases.batch(vec![a]).accept();
        let late = leases.batch(vec![b]);
        assert_eq!(leases.return_all(), 1);
        late.accept();
        assert_eq!(ids(&leases.take_returned(9, at(0))), ["b"]);
        assert_eq!(ids(&leases.take_settled(9, at(0))), ["a"], "a late verdict changes nothing");
        assert_eq!(leases.oldest(), Some(7));
    }
}
