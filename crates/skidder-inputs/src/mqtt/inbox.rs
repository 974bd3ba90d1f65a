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
