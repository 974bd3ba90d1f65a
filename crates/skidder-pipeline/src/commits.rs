//! Requests for commits of cursors, and when they are durable.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Requests commits. Cloning returns another handle to the same state.
#[derive(Clone, Debug, Default)]
pub struct Commits(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Number of commits requested before their time, and the last of these up to which all was saved.
    requested: u64,
    done: u64,
    /// So much has its verdict that cursors are to be saved before their time.
    due: bool,
    /// Everything is settled that will be.
    finished: bool,
}

impl State {
    /// Whether a commit after number `tried` was requested, or the pipeline ends.
    fn is_wanted(&self, tried: u64) -> bool {
        self.finished || self.requested > tried
    }
}

impl Commits {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, limit: Duration, wanted: impl Fn(&State) -> bool) -> bool {
        let waited = self.0.changed.wait_timeout_while(self.lock(), limit, |state| !wanted(state));
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        wanted(&state)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.0.changed.notify_all();
    }

    /// Requests a commit of all cursors now; returns its number.
    pub fn request(&self) -> u64 {
        let mut number = 0;
        self.set(|state| {
            state.requested += 1;
            number = state.requested;
        });
        number
    }

    /// Whether all cursors of the time of this request are durable.
    pub fn is_done(&self, number: u64) -> bool {
        self.lock().done >= number
    }

    /// The number of the last requested commit.
    pub fn requested(&self) -> u64 {
        self.lock().requested
    }

    /// All cursors of the time of this request are durable.
    pub fn done(&self, number: u64) {
        self.lock().done = number;
    }

    /// Cursors are to be saved before their time.
    pub(crate) fn set_due(&self) {
        self.set(|state| state.due = true);
    }

    /// Everything is settled that will be.
    pub(crate) fn finish(&self) {
        self.set(|state| state.finished = true);
    }

    /// Whether everything is settled that will be.
    pub(crate) fn is_finished(&self) -> bool {
        self.lock().finished
    }

    /// Sleeps until a commit is due before its time, or one after number `tried` was requested, or the pipeline ends,
    /// at most `limit`; returns whether it is one of the latter two.
    pub(crate) fn wait_due(&self, limit: Duration, tried: u64) -> bool {
        self.wait(limit, |state| state.due || state.is_wanted(tried));
        let mut state = self.lock();
        state.due = false;
        state.is_wanted(tried)
    }

    /// The same, whatever is due.
    pub(crate) fn wait_requested(&self, limit: Duration, tried: u64) {
        self.wait(limit, |state| state.is_wanted(tried));
    }
}
