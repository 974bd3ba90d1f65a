//! The registrar: makes cursors durable, a little after they moved, all of them as one commit.

use crate::disk::DiskQueue;
use crate::metrics::RegistrarMetrics;
use crate::repeats::{Repeats, kind_of};
use crate::settle::{CHANGES_MAX, Settle};
use skidder_os::Clock;
use skidder_os::sabotage::{self, Sabotage};
use skidder_registry::{Change, CommitError, Registry};
use std::sync::Arc;

/// Writes the changes of the settle to the registry.
#[derive(Debug)]
pub struct Registrar {
    settle: Arc<Settle>,
    registry: Arc<Registry>,
    /// The queue that the cursors have passed.
    disk: Option<Arc<DiskQueue>>,
    /// Changes of a commit that failed, older than what the settle has now.
    pending: Vec<Change>,
    repeats: Repeats,
    metrics: Arc<RegistrarMetrics>,
}

impl Registrar {
    /// A registrar with nothing to do yet.
    pub fn new(settle: Arc<Settle>, registry: Arc<Registry>) -> Self {
        Self {
            settle,
            registry,
            disk: None,
            pending: Vec::new(),
            repeats: Repeats::default(),
            metrics: Arc::default(),
        }
    }

    /// The same for cursors that pass when a frame is in this queue. Before they are saved the queue's state says that
    /// the frames before them are durable: whatever is cut off behind that, no cursor has passed.
    pub fn with_disk(self, disk: Option<Arc<DiskQueue>>) -> Self {
        Self { disk, ..self }
    }

    /// Its counters.
    pub fn metrics(&self) -> Arc<RegistrarMetrics> {
        Arc::clone(&self.metrics)
    }

    /// Notes how far the ledger is, from which rates are computed.
    pub(crate) fn note_pace(&self, clock: &dyn Clock) {
        self.settle.note_pace(clock.monotonic());
    }

    /// Commits all changes since the last call. After a failure they are kept and tried again with
    /// the next call; deliveries go on, and a crash would repeat them.
    ///
    /// Returns whether everything is durable.
    pub fn flush(&mut self, clock: &dyn Clock) -> bool {
        loop {
            let changes = self.settle.take_changes(clock.wall());
            if changes.is_empty() && self.pending.is_empty() {
                self.worked(clock);
                return true;
            }
            // Only a full commit has left something: what moves meanwhile waits for the next flush.
            let more = changes.len() >= CHANGES_MAX;
            self.pending = merge(std::mem::take(&mut self.pending), changes);
            let saved = self.commit(clock);
            if !saved || !more {
                return saved;
            }
        }
    }

    /// The last flush: new sources without a delivered event are saved, too.
    pub fn flush_last(&mut self, clock: &dyn Clock) -> bool {
        self.settle.save_newcomers();
        self.flush(clock)
    }

    /// Commits what is pending; returns whether it is durable.
    fn commit(&mut self, clock: &dyn Clock) -> bool {
        if self.disk.as_ref().is_some_and(|disk| !disk.save()) {
            // It says why.
            self.metrics.failed.add(1);
            return false;
        }
        match self.registry.commit(&self.pending) {
            Ok(()) => {
                self.pending.clear();
                self.metrics.succeeded.add(1);
                self.metrics.failure.worked();
                self.worked(clock);
                true
            }
            Err(error) => {
                self.metrics.failed.add(1);
                if sabotage::is_on(Sabotage::FailedCommitForgotten) {
                    self.pending.clear();
                }
                self.note_failure(clock, &error);
                let error: &(dyn std::error::Error + 'static) = &error;
                if let Some(failures) = self.repeats.failed(clock.monotonic(), kind_of(error)) {
                    tracing::error!(
                        error,
                        failures,
                        sources = self.pending.len(),
                        "cannot save cursors; events are delivered, but a restart would repeat them"
                    );
                }
                false
            }
        }
    }

    fn note_failure(&self, clock: &dyn Clock, error: &CommitError) {
        let (failure, now) = (&self.metrics.failure, clock.wall());
        match error {
            CommitError::Retry { directory, source } => {
                failure.failed_on_disk(now, directory, source);
            }
            CommitError::Refused { .. } | CommitError::LongCursor { .. } => {
                failure.failed(now, &"the registry", error, None, true);
            }
        }
    }

    fn worked(&mut self, clock: &dyn Clock) {
        if self.repeats.worked(clock.monotonic(), false) {
            tracing::info!("the registry takes cursors again");
        }
    }
}

/// Puts newer changes over older ones of the same key; an unsaved checkpoint is not forgotten.
fn merge(older: Vec<Change>, newer: Vec<Change>) -> Vec<Change> {
    use skidder_registry::Checkpoint;
    use std::collections::HashMap;
    if older.is_empty() {
        return newer;
    }
    let mut merged = older;
    let mut at: HashMap<String, usize> =
        merged.iter().enumerate().map(|(at, change)| (change.key().to_owned(), at)).collect();
    for mut change in newer {
        match at.get(change.key()) {
            None => {
                at.insert(change.key().to_owned(), merged.len());
                merged.push(change);
            }
            Some(&at) => {
                if let Change::Put { checkpoint: new @ Checkpoint::Keep, .. } = &mut change {
                    match &mut merged[at] {
                        Change::Put { checkpoint: old, .. } => std::mem::swap(new, old),
                        // The state of a removed key would be the checkpoint of another source.
                        Change::Remove { .. } => *new = Checkpoint::Clear,
                    }
                }
                merged[at] = change;
            }
        }
    }
    merged
}

#[cfg(test)]
mod tests;
