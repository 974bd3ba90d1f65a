//! How far the events of a source have their verdicts, if its far side must learn of them in order: offsets of a
//! partition are committed up to there and no further.

use skidder_event::{Acknowledge, Acknowledgement};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// The places of one source up to which events were sent on, in order. A place is the far side's own: the offset behind a
/// record, a number of elements.
#[derive(Debug)]
pub struct Settled {
    state: Mutex<State>,
    /// Notified with every verdict.
    news: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    /// Everything before this place has its verdict.
    front: i64,
    /// What was sent, from the front on: where each batch ends, and whether it has its verdicts.
    sent: VecDeque<(i64, bool)>,
    /// The number of the first of these.
    first: u64,
    /// A batch will get no verdict: the source must be read again from the front.
    is_rejected: bool,
}

/// A batch that was sent.
#[derive(Debug)]
struct Part {
    settled: Arc<Settled>,
    number: u64,
}

impl Acknowledge for Part {
    fn accept(self: Box<Self>) {
        let mut state = self.settled.lock();
        let place = (self.number - state.first) as usize;
        if let Some(sent) = state.sent.get_mut(place) {
            sent.1 = true;
        }
        state.settle();
        drop(state);
        self.settled.news.notify_one();
    }

    fn reject(self: Box<Self>) {
        self.settled.lock().is_rejected = true;
        self.settled.news.notify_one();
    }
}

impl State {
    fn settle(&mut self) {
        while let Some((end, _)) = self.sent.pop_front_if(|(_, is_settled)| *is_settled) {
            self.front = end;
            self.first += 1;
        }
    }
}

impl Settled {
    /// Of a source that is read from this place. `news` is notified with every verdict.
    pub fn new(front: i64, news: Arc<Notify>) -> Arc<Self> {
        let state = State { front, sent: VecDeque::new(), first: 0, is_rejected: false };
        Arc::new(Self { state: Mutex::new(state), news })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The acknowledgement of a batch whose verdicts settle everything before `end`, with all batches before it.
    pub fn batch(self: &Arc<Self>, end: i64) -> Acknowledgement {
        let mut state = self.lock();
        let number = state.first + state.sent.len() as u64;
        state.sent.push_back((end, false));
        Acknowledgement::new(Part { settled: Arc::clone(self), number })
    }

    /// There is no event before `end` but those that were sent.
    pub fn skip(&self, end: i64) {
        let mut state = self.lock();
        state.sent.push_back((end, true));
        state.settle();
    }

    /// Everything before this place has its verdict.
    pub fn front(&self) -> i64 {
        self.lock().front
    }

    /// Whether events wait for verdicts that will come.
    pub fn is_waiting(&self) -> bool {
        let state = self.lock();
        !state.sent.is_empty() && !state.is_rejected
    }

    /// Whether a batch will get no verdict: the source must be read again from [`Settled::front`].
    pub fn is_rejected(&self) -> bool {
        self.lock().is_rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_passes_nothing_without_a_verdict_in_whatever_order_they_come() {
        let settled = Settled::new(5, Arc::default());
        let [one, two, three] = [10, 20, 30].map(|end| settled.batch(end));
        settled.skip(35);
        three.accept();
        assert_eq!(settled.front(), 5);
        one.accept();
        assert_eq!(settled.front(), 10);
        assert!(settled.is_waiting());
        two.accept();
        assert_eq!(settled.front(), 35);
        assert!(!settled.is_waiting() && !settled.is_rejected());
    }

    #[test]
    fn the_front_stays_before_a_batch_that_gets_no_verdict() {
        let settled = Settled::new(0, Arc::default());
        let [one, two, three] = [10, 20, 30].map(|end| settled.batch(end));
        drop(two);
        three.accept();
        one.accept();
        assert_eq!(settled.front(), 10);
        assert!(settled.is_rejected() && !settled.is_waiting());
    }
}
