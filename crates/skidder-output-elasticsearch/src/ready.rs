//! Requests between the encoders and the senders of one output.
//!
//! Every worker has an encoder that keeps one request ready while one is under way. What a sender
//! could not bring to its server goes back to the front, for whichever sender is free first: a dead
//! host holds nothing back.

use super::request::Request;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Ready {
    state: Mutex<State>,
    /// Senders wait here for requests.
    wake: Notify,
    /// Senders without a server wait here for the end.
    end: Notify,
    /// Encoders wait here for a place.
    room: Notify,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<Request>,
    /// Requests that were not tried yet, and places that encoders have for another.
    fresh: usize,
    /// Requests that senders hold.
    held: usize,
    /// Encoders that are still at work.
    encoders: usize,
}

impl State {
    fn ended(&self) -> bool {
        self.encoders == 0 && self.held == 0 && self.waiting.is_empty()
    }
}

impl Ready {
    pub(crate) fn new(encoders: usize) -> Self {
        let state = State { waiting: VecDeque::new(), fresh: 0, held: 0, encoders };
        Self {
            state: Mutex::new(state),
            wake: Notify::new(),
            end: Notify::new(),
            room: Notify::new(),
        }
    }

    /// Waits until another request may be made, of which there are to be at most `most` that were not tried yet. The
    /// place is given back when a sender takes the request, or the encoder ends.
    pub(crate) async fn place(&self, most: impl Fn() -> usize) {
        loop {
            let room = self.room.notified();
            {
                let mut state = self.lock();
                if state.fresh < most() {
                    state.fresh += 1;
                    return;
                }
            }
            room.await;
        }
    }

    /// A finished request, in the place that was waited for.
    pub(crate) fn push(&self, request: Request) {
        self.lock().waiting.push_back(request);
        self.wake.notify_one();
    }

    /// An encoder, which has a place, has nothing more to do.
    pub(crate) fn encoder_ended(&self) {
        let mut state = self.lock();
        state.encoders -= 1;
        state.fresh -= 1;
        self.room.notify_one();
        self.notify_if_ended(&state);
    }

    /// The next request; nothing when there will be no more. Each one must be followed by
    /// [`Ready::done`] or [`Ready::put_back`].
    pub(crate) async fn pop(&self) -> Option<Request> {
        loop {
            let woken = self.wake.notified();
            {
                let mut state = self.lock();
                if let Some(mut request) = state.waiting.pop_front() {
                    state.held += 1;
                    if !state.waiting.is_empty() {
                        self.wake.notify_one();
                    }
                    if std::mem::take(&mut request.fresh) {
                        state.fresh -= 1;
                        self.room.notify_one();
                    }
                    return Some(request);
                }
                if state.ended() {
                    return None;
                }
            }
            woken.await;
        }
    }

    /// A request is settled.
    pub(crate) fn done(&self) {
        let mut state = self.lock();
        state.held -= 1;
        self.notify_if_ended(&state);
    }

    /// A request could not be sent; another worker may try.
    pub(crate) fn put_back(&self, request: Request) {
        let mut state = self.lock();
        state.held -= 1;
        state.waiting.push_front(request);
        drop(state);
        self.wake.notify_one();
    }

    /// Another part of a request that is held.
    pub(crate) fn add_part(&self, request: Request) {
        self.lock().waiting.push_front(request);
        self.wake.notify_one();
    }

    /// Waits until there will be no more requests.
    pub(crate) async fn ended(&self) {
        loop {
            let woken = self.end.notified();
            if self.lock().ended() {
                return;
            }
            woken.await;
        }
    }

    fn notify_if_ended(&self, state: &State) {
        if state.ended() {
            self.wake.notify_waiters();
            self.end.notify_waiters();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
