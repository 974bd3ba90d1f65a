//! Closed objects, between the task that gathers events and the workers.
//!
//! Bound: what they hold is in flight and counts against the queue. They are not encoded: a worker does that, one at a time.

use skidder_os::Timestamp;
use skidder_outputs::Refusal;
use skidder_pipeline::Delivery;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// An object to which no more events come.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) prefix: String,
    /// Its events, in the order in which they were read.
    pub(crate) parts: Vec<Delivery>,
    pub(crate) events: usize,
    /// When it was begun.
    pub(crate) time: Timestamp,
}

impl Closed {
    /// The same without some events, which are in its order.
    pub(crate) fn without(self, refusals: &[Refusal]) -> Self {
        let mut refusals = refusals.iter().peekable();
        let mut parts: Vec<Delivery> = Vec::new();
        for part in self.parts {
            let mut begin = part.rows.start;
            for row in part.rows.clone() {
                let is_it = |refusal: &&Refusal| {
                    refusal.row == row && Arc::ptr_eq(&refusal.delivery.ticket, &part.ticket)
                };
                if refusals.next_if(is_it).is_some() {
                    parts.push(Delivery { rows: begin..row, ..part.clone() });
                    begin = row + 1;
                }
            }
            parts.push(Delivery { rows: begin..part.rows.end, ..part.clone() });
        }
        parts.retain(|part| !part.is_empty());
        let events = parts.iter().map(Delivery::len).sum();
        Self { parts, events, ..self }
    }

    /// Two objects with the events of this one.
    pub(crate) fn halves(self) -> (Self, Self) {
        let mut left = self.events / 2;
        let (mut first, mut second) = (Vec::new(), Vec::new());
        for part in self.parts {
            let count = left.min(part.len());
            left -= count;
            let middle = part.rows.start + count as u32;
            first.push(Delivery { rows: part.rows.start..middle, ..part.clone() });
            second.push(Delivery { rows: middle..part.rows.end, ..part });
        }
        let half = |mut parts: Vec<Delivery>| {
            parts.retain(|part| !part.is_empty());
            let events = parts.iter().map(Delivery::len).sum();
            Self { prefix: self.prefix.clone(), parts, events, time: self.time }
        };
        (half(first), half(second))
    }
}

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    state: Mutex<State>,
    /// Workers wait here for objects, or for the end.
    changed: Notify,
    /// The gatherer waits here until an object is settled.
    done: Notify,
}

#[derive(Debug, Default)]
struct State {
    closed: VecDeque<Closed>,
    /// Objects that workers have.
    held: usize,
    ended: bool,
}

impl Ready {
    pub(crate) fn push(&self, closed: Closed) {
        self.lock().closed.push_back(closed);
        self.changed.notify_one();
    }

    /// Nothing more will be pushed.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// The next object; nothing when there will be no more. Each one must be followed by [`Ready::settled`].
    pub(crate) async fn pop(&self) -> Option<Closed> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.lock();
                if let Some(closed) = state.closed.pop_front() {
                    state.held += 1;
                    return Some(closed);
                }
                if state.ended {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Every event of an object has its verdict.
    pub(crate) fn settled(&self) {
        self.lock().held -= 1;
        self.done.notify_one();
    }

    /// Whether no object is on its way.
    pub(crate) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.held == 0 && state.closed.is_empty()
    }

    /// Waits until another object was settled. May be dropped while it waits.
    pub(crate) async fn was_done(&self) {
        self.done.notified().await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, deliveries};
    use skidder_event::Map;

    fn closed() -> Closed {
        let batch = |lines: &[&str]| batch_with(lines, &Map::new(), &Map::new());
        let parts = deliveries(vec![batch(&["a", "b", "c"]), batch(&["d"]), batch(&["e", "f"])]);
        Closed { prefix: "x/".to_owned(), parts, events: 6, time: Timestamp(0) }
    }

    fn text(closed: &Closed) -> String {
        let mut text = String::new();
        for part in &closed.parts {
            for row in part.rows.clone() {
                let message = part.batch.rows()[row as usize].message;
                text.push_str(std::str::from_utf8(part.batch.text(message)).unwrap());
            }
        }
        assert_eq!(text.len(), closed.events);
        text
    }

    #[test]
    fn halves_have_all_events_in_order() {
        let (first, second) = closed().halves();
        assert_eq!((text(&first), text(&second)), ("abc".to_owned(), "def".to_owned()));
        let (one, two) = first.halves();
        assert_eq!((text(&one), text(&two)), ("a".to_owned(), "bc".to_owned()));
    }

    #[test]
    fn refused_events_are_taken_out_wherever_they_are() {
        let all = closed();
        let refused = |at: &[(usize, u32)]| -> Vec<Refusal> {
            at.iter().map(|&(part, row)| Refusal::unsent(&all.parts[part], row, "x")).collect()
        };
        let table: [(&[(usize, u32)], _); 5] = [
            (&[], "abcdef"),
            (&[(0, 1)], "acdef"),
            (&[(0, 0), (0, 2), (1, 0)], "bef"),
            (&[(2, 1)], "abcde"),
            (&[(0, 0), (0, 1), (0, 2), (1, 0), (2, 0), (2, 1)], ""),
        ];
        for (at, expected) in table {
            assert_eq!(text(&all.clone().without(&refused(at))), expected, "{at:?}");
        }
    }
}
