//! Messages of QoS 1 and 2 that were received, until the broker may forget them.
//!
//! A packet id names a message from its first arrival until its acknowledgement; after a break of the connection the
//! broker sends it again under the same id. An acknowledgement goes out only for a message that has arrived over the
//! connection that is open, in the order of arrival, and behind its verdict: an id that is acknowledged without that could
//! be another message by now.
//!
//! A message that comes again while the first copy waits for its verdict, or of QoS 2 until it is released, is no second
//! event. It is the same message only if its bytes are the same too: a broker that lost its memory counts ids anew.

use super::decode::{BadPacket, Message};
use super::encode::put_acknowledgement;
use foldhash::HashMap;
use foldhash::quality::RandomState;
use skidder_event::{Acknowledge, Acknowledgement};
use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// See the module's text.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    hasher: RandomState,
    /// Notified with every verdict.
    pub(super) news: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By packet id; at most 65,535.
    known: HashMap<u16, Known>,
    /// Arrived over the connection that is open, and not acknowledged yet, in order.
    owed: VecDeque<Arrival>,
    /// The number of the next message.
    next: u64,
    /// Messages without a verdict that will come.
    waiting: usize,
    /// A message will get no verdict: the broker must send it again, over another connection.
    is_rejected: bool,
    /// The number of the connection.
    connection: u64,
}

/// A message.
#[derive(Clone, Copy, Debug)]
struct Known {
    number: u64,
    digest: u64,
    stage: Stage,
    qos: u8,
    /// Over which it has arrived last.
    connection: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// For its verdict.
    Waiting,
    /// It has its verdict and no acknowledgement.
    Settled,
    /// QoS 2: its acknowledgement was sent, and the broker has not released it.
    Recorded,
}

#[derive(Clone, Copy, Debug)]
struct Arrival {
    id: u16,
    qos: u8,
    number: u64,
}

/// The packet id of a message in a batch, and its number.
pub(super) type Place = (u16, u64);

/// Messages of a batch.
#[derive(Debug)]
struct Receipt {
    inbox: Arc<Inbox>,
    places: Vec<Place>,
}

impl Acknowledge for Receipt {
    fn accept(self: Box<Self>) {
        self.inbox.settle(&self.places);
    }

    fn reject(self: Box<Self>) {
        let mut state = self.inbox.lock();
        let mut lost = 0;
        for (id, number) in &self.places {
            if state.known.get(id).is_some_and(|known| known.number == *number) {
                // It comes again, and is an event then.
                state.known.remove(id);
                state.is_rejected = true;
            } else {
                lost += 1;
            }
        }
        state.waiting -= self.places.len();
        drop(state);
        if lost > 0 {
            tracing::error!(
                messages = lost,
                "messages get no verdict in this run, and the broker has forgotten the session: they may be lost"
            );
        }
        self.inbox.news.notify_one();
    }
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another connection begins. Without the session of the one before, packet ids mean other messages.
    pub(super) fn connected(&self, has_session: bool) {
        let mut state = self.lock();
        state.owed.clear();
        state.is_rejected = false;
        state.connection += 1;
        if !has_session {
            state.known.clear();
            return;
        }
        // Of QoS 1, what the connection before did not bring again the broker may have dropped for its age, and its id means
        // another message now.
        let before = state.connection - 1;
        state.known.retain(|_, known| known.qos == 2 || known.connection >= before);
    }

    /// A message of QoS 1 or 2 has arrived. Returns where it stands if it is to become an event; `None`: it is one already.
    pub(super) fn arrived(&self, message: &Message<'_>) -> Option<Place> {
        let (id, qos) = (message.id, message.qos);
        let digest = self.hasher.hash_one((&*message.topic, message.payload, qos));
        let mut state = self.lock();
        let connection = state.connection;
        let known = state.known.get_mut(&id).filter(|known| {
            let is_repeated = message.is_duplicate || qos == 2;
            is_repeated && known.digest == digest
        });
        if let Some(known) = known {
            known.connection = connection;
            let number = known.number;
            state.owed.push_back(Arrival { id, qos, number });
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.waiting += 1;
        state.known.insert(id, Known { number, digest, stage: Stage::Waiting, qos, connection });
        state.owed.push_back(Arrival { id, qos, number });
        Some((id, number))
    }

    /// The acknowledgement of a batch with these messages.
    pub(super) fn batch(self: &Arc<Self>, places: Vec<Place>) -> Acknowledgement {
        Acknowledgement::new(Receipt { inbox: Arc::clone(self), places })
    }

    /// These messages have their verdicts.
    pub(super) fn settle(&self, places: &[Place]) {
        let mut state = self.lock();
        for (id, number) in places {
            if let Some(known) = state.known.get_mut(id).filter(|known| known.number == *number) {
                known.stage = Stage::Settled;
            }
        }
        state.waiting -= places.len();
        drop(state);
        self.news.notify_one();
    }

    /// The broker releases a message of QoS 2; one that is not known is of an earlier run.
    pub(super) fn released(&self, id: u16) -> Result<(), BadPacket> {
        let mut state = self.lock();
        match state.known.get(&id).map(|known| known.stage) {
            Some(Stage::Waiting | Stage::Settled) => {
                Err(BadPacket("the broker releases a message that is not acknowledged"))
            }
            Some(Stage::Recorded) | None => {
                state.known.remove(&id);
                Ok(())
            }
        }
    }

    /// Appends the acknowledgements that are due.
    pub(super) fn take_due(&self, out: &mut Vec<u8>) {
        let mut state = self.lock();
        if state.is_rejected {
            return;
        }
        while let Some(Arrival { id, qos, number }) = state.owed.front().copied() {
            let known = state.known.get_mut(&id).filter(|known| known.number == number);
            match known {
                Some(known) if known.stage == Stage::Waiting => break,
                Some(known) => {
                    put_acknowledgement(out, qos, id);
                    known.stage = Stage::Recorded;
                    if qos == 1 {
                        state.known.remove(&id);
                    }
                }
                // The broker has used the id for another message.
                None => {}
            }
            state.owed.pop_front();
        }
    }

    /// Messages of this connection without an acknowledgement.
    pub(super) fn owed(&self) -> usize {
        self.lock().owed.len()
    }

    /// Whether messages wait for verdicts that will come.
    pub(super) fn is_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    /// Whether a message will get no verdict: the broker must send it again, over another connection.
    pub(super) fn is_rejected(&self) -> bool {
        self.lock().is_rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u16, qos: u8, is_duplicate: bool, text: &'static str) -> Message<'static> {
        Message {
            topic: "t".into(),
            payload: text.as_bytes(),
            id,
            qos,
            is_duplicate,
            is_retained: false,
            is_cut: false,
        }
    }

    fn due(inbox: &Inbox) -> Vec<(u8, u8)> {
        let mut out = Vec::new();
        inbox.take_due(&mut out);
        out.chunks(4).map(|packet| (packet[0], packet[3])).collect()
    }

    #[test]
    fn acknowledgements_are_in_the_order_of_arrival_whatever_the_order_of_verdicts() {
        let inbox = Arc::<Inbox>::default();
        inbox.connected(false);
        let places = [(1, 1), (2, 2), (3, 1)]
            .map(|(id, qos)| inbox.arrived(&message(id, qos, false, "a")).expect("new"));
        let [one, two, three] = places.map(|place| inbox.batch(vec![place]));
        three.accept();
        two.accept();
        assert_eq!(due(&inbox), []);
        one.accept();
        assert_eq!(due(&inbox), [(0x40, 1), (0x50, 2), (0x40, 3)]);
        assert_eq!((inbox.owed(), inbox.is_waiting()), (0, false));
        assert_eq!(inbox.released(2), Ok(()));
        assert_eq!(inbox.released(2), Ok(()), "one of an earlier run is released too");
    }

    #[test]
    fn nothing_is_acknowledged_over_a_connection_that_did_not_bring_it() {
        let inbox = Arc::<Inbox>::default();
        inbox.connected(false);
        let place = inbox.arrived(&message(1, 1, false, "a")).expect("new");
        let owed = inbox.batch(vec![place]);
        inbox.connected(true);
        owed.accept();
        assert_eq!(due(&inbox), []);
        assert_eq!(inbox.arrived(&message(1, 1, true, "a")), None);
        assert_eq!(due(&inbox), [(0x40, 1)]);
        // Acknowledged: what comes under the id now is another message, even if it is the same text.
        assert!(inbox.arrived(&message(1, 1, true, "a")).is_some());
    }

    #[test]
    fn an_id_with_another_text_is_another_message() {
        for qos in [1, 2] {
            let inbox = Arc::<Inbox>::default();
            inbox.connected(false);
            let first = inbox.arrived(&message(1, qos, false, "a")).expect("new");
            let first = inbox.batch(vec![first]);
            inbox.connected(true);
            let second = inbox.arrived(&message(1, qos, true, "b")).expect("another message");
            first.accept();
            assert_eq!(due(&inbox), [], "the verdict is of the other one");
            inbox.settle(&[second]);
            assert_eq!(due(&inbox).len(), 1);
        }
    }

    #[test]
    fn what_a_whole_connection_did_not_bring_again_may_be_another_message() {
        let inbox = Arc::<Inbox>::default();
        inbox.connected(false);
        let place = inbox.arrived(&message(1, 1, false, "a")).expect("new");
        let recorded = inbox.arrived(&message(2, 2, false, "a")).expect("new");
        inbox.settle(&[place, recorded]);
        inbox.connected(true);
        inbox.connected(true);
        assert!(inbox.arrived(&message(1, 1, true, "a")).is_some());
        assert!(inbox.arrived(&message(2, 2, true, "a")).is_none(), "quality 2 knows when it ends");
    }

    #[test]
    fn a_batch_without_verdicts_is_an_event_again_and_nothing_behind_it_is_acknowledged() {
        let inbox = Arc::<Inbox>::default();
        inbox.connected(false);
        let places = [1, 2].map(|id| inbox.arrived(&message(id, 1, false, "a")).expect("new"));
        let [one, two] = places.map(|place| inbox.batch(vec![place]));
        drop(one);
        two.accept();
        assert!(inbox.is_rejected() && !inbox.is_waiting());
        assert_eq!(due(&inbox), []);
        inbox.connected(true);
        assert!(!inbox.is_rejected());
        assert!(inbox.arrived(&message(1, 1, true, "a")).is_some());
        assert!(inbox.arrived(&message(2, 1, true, "a")).is_none());
        assert_eq!(due(&inbox), [], "the first one has no verdict yet");
    }
}
