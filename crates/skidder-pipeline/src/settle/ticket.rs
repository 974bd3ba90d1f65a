//! Counts the rows of one admitted batch down.

use super::{Settle, SourceStatus};
use crate::ledger::Verdict;
use crate::queue::Permit;
use skidder_event::{DropReason, SourceId};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One admitted batch on its way. Dropping it without settling all rows leaves them in flight: the
/// cursor stays before them and the next start reads them again.
#[derive(Debug)]
pub struct Ticket {
    pub(super) settle: Arc<Settle>,
    pub(super) source: SourceId,
    pub(super) sequence: u64,
    pub(super) rows_left: AtomicU32,
    pub(super) permit: Mutex<Option<Permit>>,
    pub(super) settled: AtomicBool,
}

impl Ticket {
    /// `rows` events of this batch were accepted by the output.
    pub fn delivered(&self, rows: u32) {
        self.settle.lock().count(self.source, Verdict::Delivered, rows);
        self.settle_rows(rows);
    }

    /// `rows` events of this batch are in the dead letters.
    pub fn dead_lettered(&self, rows: u32) {
        self.settle.lock().count(self.source, Verdict::DeadLettered, rows);
        self.settle_rows(rows);
    }

    /// `rows` events of this batch were dropped.
    pub fn dropped(&self, reason: DropReason, rows: u32) {
        self.settle.lock().count(self.source, Verdict::Dropped(reason), rows);
        self.settle_rows(rows);
    }

    /// The source of the batch.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// Where the source was seen last, for messages about its events.
    pub fn source_status(&self) -> Option<SourceStatus> {
        self.settle.status(self.source)
    }

    /// Whether all rows have their verdict.
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Some events of each of many batches were accepted by the output.
    pub fn deliver_all<'a>(verdicts: impl IntoIterator<Item = (&'a Self, u32)>) {
        let mut verdicts = verdicts.into_iter().filter(|&(_, rows)| rows > 0).peekable();
        while let Some(settle) = verdicts.peek().map(|(ticket, _)| Arc::clone(&ticket.settle)) {
            let mut permits = Vec::new();
            let mut state = settle.lock();
            while let Some((ticket, rows)) =
                verdicts.next_if(|(ticket, _)| Arc::ptr_eq(&ticket.settle, &settle))
            {
                state.count(ticket.source, Verdict::Delivered, rows);
                if ticket.count_down(rows) {
                    state.settle(ticket.source, ticket.sequence);
                    ticket.settled.store(true, Ordering::Release);
                    permits.extend(ticket.take_permit());
                }
            }
            let is_empty = state.total.in_flight() == 0;
            drop(state);
            if is_empty {
                settle.empty.notify_all();
            }
            Permit::give_back(permits);
        }
    }

    fn settle_rows(&self, rows: u32) {
        if self.count_down(rows) {
            self.finish();
        }
    }

    /// Says whether these were the last rows without a verdict.
    fn count_down(&self, rows: u32) -> bool {
        let before = self.rows_left.fetch_sub(rows, Ordering::AcqRel);
        assert!(before >= rows, "{rows} rows settled of {before}: an output gave two verdicts");
        before == rows && rows > 0
    }

    fn take_permit(&self) -> Option<Permit> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(super) fn finish(&self) {
        let mut state = self.settle.lock();
        state.settle(self.source, self.sequence);
        let is_empty = state.total.in_flight() == 0;
        drop(state);
        self.settled.store(true, Ordering::Release);
        if is_empty {
            self.settle.empty.notify_all();
        }
        // Gives the room in the queue back.
        drop(self.take_permit());
    }
}
