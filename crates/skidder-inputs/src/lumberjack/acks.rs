//! Answers that are owed to a client: one for each window, in their order, when all of its events have their verdicts.

use skidder_event::{Acknowledge, Acknowledgement};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The windows of a connection that have no answer yet.
#[derive(Debug, Default)]
pub(super) struct Acks {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    windows: VecDeque<Window>,
    /// The number of the first of them.
    first: u64,
    /// No window begins any more.
    is_closed: bool,
    knows_keepalive: bool,
}

#[derive(Debug, Default)]
struct Window {
    /// Batches of it without verdicts.
    batches: usize,
    /// Events of it will get no verdict: neither it nor a later window can be answered.
    is_rejected: bool,
    /// Its end, as soon as that was read.
    end: Option<WindowEnd>,
}

/// The end of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowEnd {
    /// The number of its last event.
    pub(super) number: u32,
    /// When it was read, on the monotonic clock.
    pub(super) read_at: Duration,
}

/// What is to be answered now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Windows with all their verdicts.
    Ends(Vec<WindowEnd>),
    /// Nothing yet, and some later.
    Later,
    /// Nothing is owed.
    Nothing,
    /// Nothing is owed, and nothing comes.
    Over,
    /// Nothing more: the client must send again what has no answer.
    Broken,
}

/// A batch of a window.
#[derive(Debug)]
struct OfWindow {
    acks: Arc<Acks>,
    window: u64,
}

impl Acks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A window begins. Of a client of version 2, which knows keep-alives?
    pub(super) fn begin(&self, knows_keepalive: bool) {
        let mut state = self.lock();
        state.knows_keepalive = knows_keepalive;
        state.windows.push_back(Window::default());
        drop(state);
        // A window that a full queue keeps from being read to its end needs keep-alives, too.
        self.changed.notify_one();
    }

    /// Whether the client speaks version 2, which has keep-alives.
    pub(super) fn knows_keepalive(&self) -> bool {
        self.lock().knows_keepalive
    }

    /// A batch of the newest window.
    pub(super) fn batch(self: &Arc<Self>) -> Acknowledgement {
        let mut state = self.lock();
        let window = state.first + state.windows.len() as u64 - 1;
        if let Some(newest) = state.windows.back_mut() {
            newest.batches += 1;
        }
        drop(state);
        Acknowledgement::new(OfWindow { acks: Arc::clone(self), window })
    }

    /// The newest window was read to its end. Its batches were made before.
    pub(super) fn end(&self, end: WindowEnd) {
        if let Some(newest) = self.lock().windows.back_mut() {
            newest.end = Some(end);
        }
        self.changed.notify_one();
    }

    /// Nothing more is read: a window that was not read to its end gets no answer.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        if state.windows.back().is_some_and(|newest| newest.end.is_none()) {
            state.windows.pop_back();
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Takes what is to be answered now.
    pub(super) fn take(&self) -> Due {
        let mut state = self.lock();
        let mut ends = Vec::new();
        let end_of = |window: &Window| window.end.filter(|_| window.has_verdicts());
        while let Some(end) = state.windows.front().and_then(end_of) {
            ends.push(end);
            state.windows.pop_front();
            state.first += 1;
        }
        match state.windows.front() {
            _ if !ends.is_empty() => Due::Ends(ends),
            Some(window) if window.is_rejected => Due::Broken,
            Some(_) => Due::Later,
            None if state.is_closed => Due::Over,
            None => Due::Nothing,
        }
    }

    /// Resolves when [`Acks::take`] may have something new.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Acknowledge for OfWindow {
    fn accept(self: Box<Self>) {
        self.settle(false);
    }

    fn reject(self: Box<Self>) {
        self.settle(true);
    }
}

impl OfWindow {
    fn settle(&self, is_rejected: bool) {
        let mut state = self.acks.lock();
        // Windows go in their order, so that this one is still there, unless it was not read to its end.
        let place = (self.window - state.first) as usize;
        if let Some(window) = state.windows.get_mut(place) {
            window.batches -= 1;
            window.is_rejected |= is_rejected;
        }
        drop(state);
        self.acks.changed.notify_one();
    }
}

impl Window {
    fn has_verdicts(&self) -> bool {
        self.batches == 0 && !self.is_rejected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(number: u32) -> WindowEnd {
        WindowEnd { number, read_at: Duration::from_secs(u64::from(number)) }
    }

    #[test]
    fn windows_are_answered_in_their_order_when_they_were_read_and_have_their_verdicts() {
        let acks = Arc::new(Acks::default());
        assert_eq!(acks.take(), Due::Nothing);
        acks.begin(true);
        let (one, two) = (acks.batch(), acks.batch());
        acks.end(end(9));
        acks.begin(true);
        let three = acks.batch();
        three.accept();
        assert_eq!(acks.take(), Due::Later, "the first one has no verdict");
        one.accept();
        two.accept();
        assert_eq!(acks.take(), Due::Ends(vec![end(9)]), "the second one was not read to its end");
        let four = acks.batch();
        acks.end(end(7));
        assert_eq!(acks.take(), Due::Later);
        acks.begin(true);
        acks.end(end(1));
        four.accept();
        assert_eq!(acks.take(), Due::Ends(vec![end(7), end(1)]));
        assert_eq!(acks.take(), Due::Nothing);
    }

    #[test]
    fn a_window_that_was_not_read_to_its_end_is_not_waited_for() {
        let acks = Arc::new(Acks::default());
        acks.begin(true);
        let one = acks.batch();
        acks.end(end(1));
        acks.begin(true);
        let two = acks.batch();
        acks.close();
        two.accept();
        assert_eq!(acks.take(), Due::Later);
        one.accept();
        assert_eq!(acks.take(), Due::Ends(vec![end(1)]));
        assert_eq!(acks.take(), Due::Over);
    }

    #[test]
    fn what_comes_before_a_rejection_is_answered_and_nothing_behind_it() {
        let acks = Arc::new(Acks::default());
        let [one, two, three] = [1, 2, 3].map(|number| {
            acks.begin(true);
            let batch = acks.batch();
            acks.end(end(number));
            batch
        });
        drop(two);
        three.accept();
        assert_eq!(acks.take(), Due::Later);
        one.accept();
        assert_eq!(acks.take(), Due::Ends(vec![end(1)]));
        assert_eq!(acks.take(), Due::Broken);
    }
}
