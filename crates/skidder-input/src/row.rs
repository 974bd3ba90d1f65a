//! Rows of the status page that send no events themselves: a bucket, an object that is being read, a queue.

use crate::facts::SourceFacts;
use crate::intake::{Intake, Shared};
use skidder_os::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// See the module's text. It is gone when this is dropped.
pub struct Row {
    shared: Arc<Shared>,
    /// Its number among the sources of the input.
    number: u64,
    facts: Arc<SourceFacts>,
}

impl fmt::Debug for Row {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Row").field(&self.facts).finish()
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        self.shared.metrics.open.sub(1);
        self.shared.metrics.sources.end(self.number);
    }
}

impl Intake {
    /// Shows a row of this name among the open sources. The input bounds their number.
    pub fn row(&self, name: &str) -> Row {
        let shared = Arc::clone(&self.shared);
        let number = shared.opened.fetch_add(1, Ordering::Relaxed);
        shared.metrics.opened.add(1);
        shared.metrics.open.add(1);
        let facts = shared.metrics.sources.begin(number, name.into(), &*shared.clock);
        Row { shared, number, facts }
    }
}

impl Row {
    /// Counts events, and bytes as they are stored.
    pub fn received(&self, events: u64, bytes: u64) {
        self.facts.received(events, bytes, self.shared.clock.wall());
    }

    /// Counts a request to the far side.
    pub fn requested(&self) {
        self.facts.requested();
    }

    /// An object of this time was seen: how old the newest one is is on the status page.
    pub fn read_until(&self, time: Timestamp) {
        self.facts.read_until(time);
    }

    /// Of an object: where its reader is, in bytes as they are stored.
    pub fn set_position(&self, bytes: u64) {
        self.facts.set_position(bytes);
    }

    /// Of an object: its bytes, as they are stored.
    pub fn set_size(&self, bytes: u64) {
        self.facts.set_size(bytes);
    }

    /// How the status page learns what the far side has besides, as messages of a queue; `None` while it is not known.
    pub fn set_behind(&self, behind: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        self.facts.set_behind(behind);
    }

    /// How it learns the time of the oldest thing that is not done: a message, an object; `None` if there is none.
    pub fn set_oldest(&self, oldest: impl Fn() -> Option<Timestamp> + Send + Sync + 'static) {
        self.facts.set_oldest(oldest);
    }

    /// Takes note of something that went wrong with it. The caller counts it.
    pub fn failed(&self, error: &str) {
        self.facts.failed(error, self.shared.clock.wall());
    }
}
