//! Things that are not over: requests, and sessions of connections. An input ends behind them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct Count {
    number: AtomicUsize,
    over: Notify,
}

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct Busy(Arc<Count>);

impl Count {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.number.fetch_add(1, Ordering::AcqRel);
        Busy(Arc::clone(self))
    }

    /// Waits until there is none.
    pub(super) async fn idle(&self) {
        loop {
            let over = self.over.notified();
            tokio::pin!(over);
            over.as_mut().enable();
            if self.number.load(Ordering::Acquire) == 0 {
                return;
            }
            over.await;
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.number.fetch_sub(1, Ordering::AcqRel);
        self.0.over.notify_waiters();
    }
}
