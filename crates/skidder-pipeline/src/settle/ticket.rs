//! Tickets: how an output gives the rows of a delivery their verdict.

use super::{Settle, State};
use crate::disk::{Origin, Store};
use crate::ledger::Verdict;
use crate::queue::Permit;
use skidder_event::{Acknowledgement, DropReason, SourceId};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One batch on its way. Dropping it without settling all rows leaves them in flight: the cursor stays before them, or they
/// stay in the disk queue, and the next start reads them again; a far side that waits gets a rejection, and sends them again.
/// Events that cannot be sent again are counted as dropped at the end ([`Settle::give_up_unrepeatable`]).
pub struct Ticket {
    settle: Arc<Settle>,
    of: TicketOf,
    rows_left: AtomicU32,
    permit: Mutex<Option<Permit>>,
    settled: AtomicBool,
}

/// What follows when all rows of a batch have their verdict.
pub(crate) enum TicketOf {
    /// Its range in the line of its source is settled: of this number.
    Ordered(SourceId, u64),
    /// Nothing: verdicts are counted.
    Counted(SourceId),
    /// The far side of its source gets its acknowledgement.
    Owing(SourceId, Owed),
    /// A frame of the disk queue is done.
    Frame(Arc<Store>, u64, Option<Origin>),
}

/// An acknowledgement until it is given.
type Owed = Mutex<Option<Acknowledgement>>;

impl TicketOf {
    /// Of a source whose far side waits.
    pub(crate) fn owing(source: SourceId, owed: Acknowledgement) -> Self {
        Self::Owing(source, Mutex::new(Some(owed)))
    }

    /// The source; none of what comes from the disk queue.
    fn source(&self) -> Option<SourceId> {
        match self {
            Self::Ordered(source, _) | Self::Counted(source) | Self::Owing(source, _) => {
                Some(*source)
            }
            Self::Frame(..) => None,
        }
    }
}

impl std::fmt::Debug for TicketOf {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ordered(source, number) => {
                out.debug_tuple("Ordered").field(source).field(number).finish()
            }
            Self::Counted(source) => out.debug_tuple("Counted").field(source).finish(),
            Self::Owing(source, owed) => {
                out.debug_tuple("Owing").field(source).field(owed).finish()
            }
            Self::Frame(_, number, _) => {
                out.debug_tuple("Frame").field(number).finish_non_exhaustive()
            }
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ticket").field("rows_left", &self.rows_left).finish_non_exhaustive()
    }
}

impl Ticket {
    pub(crate) fn new(
        settle: &Arc<Settle>,
        of: TicketOf,
        rows: u32,
        permit: Option<Permit>,
    ) -> Arc<Self> {
        if let TicketOf::Frame(..) = of {
            settle.lock().begin_sending(rows);
        }
        Arc::new(Self {
            settle: Arc::clone(settle),
            of,
            rows_left: AtomicU32::new(rows),
            permit: Mutex::new(permit),
            settled: AtomicBool::new(false),
        })
    }

    /// `rows` events of this batch were accepted by the output.
    pub fn delivered(&self, rows: u32) {
        self.give(Verdict::Delivered, rows);
    }

    /// `rows` events of this batch are in the dead letters.
    pub fn dead_lettered(&self, rows: u32) {
        self.give(Verdict::DeadLettered, rows);
    }

    /// `rows` events of this batch were dropped.
    pub fn dropped(&self, reason: DropReason, rows: u32) {
        self.give(Verdict::Dropped(reason), rows);
    }

    /// `rows` events of this batch are durable in the disk queue.
    pub(crate) fn stored(&self, rows: u32) {
        self.give(Verdict::Stored, rows);
    }

    /// Where the events come from, for messages about them.
    pub fn origin(&self) -> Option<Origin> {
        match &self.of {
            TicketOf::Frame(_, _, origin) => origin.clone(),
            of => {
                let status = self.settle.status(of.source()?)?;
                Some(Origin { name: status.name(), key: status.key })
            }
        }
    }

    /// Whether all rows have their verdict.
    pub fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// Some events of each of many batches were accepted by the output.
    pub fn deliver_all<'a>(verdicts: impl IntoIterator<Item = (&'a Self, u32)>) {
        let mut verdicts = verdicts.into_iter().filter(|&(_, rows)| rows > 0).peekable();
        while let Some(settle) = verdicts.peek().map(|(ticket, _)| Arc::clone(&ticket.settle)) {
            let (mut permits, mut owed) = (Vec::new(), Vec::new());
            let mut state = settle.lock();
            let before = state.unsaved_rows;
            while let Some((ticket, rows)) =
                verdicts.next_if(|(ticket, _)| Arc::ptr_eq(&ticket.settle, &settle))
            {
                ticket.count(&mut state, Verdict::Delivered, rows);
                if ticket.count_down(rows) {
                    ticket.settle_place(&mut state);
                    ticket.settled.store(true, Ordering::Release);
                    permits.extend(ticket.take_permit());
                    owed.extend(ticket.take_owed());
                }
            }
            settle.release(state, before);
            owed.into_iter().for_each(Acknowledgement::accept);
            Permit::give_back(permits);
        }
    }

    fn give(&self, verdict: Verdict, rows: u32) {
        let mut state = self.settle.lock();
        let before = state.unsaved_rows;
        self.count(&mut state, verdict, rows);
        let (mut permit, mut owed) = (None, None);
        if self.count_down(rows) {
            // Under the same lock: when nothing is in flight any more, all cursors have moved.
            self.settle_place(&mut state);
            self.settled.store(true, Ordering::Release);
            permit = self.take_permit();
            owed = self.take_owed();
        }
        self.settle.release(state, before);
        // Outside of the lock: the far side may be slow.
        if let Some(owed) = owed {
            owed.accept();
        }
        // Gives the room in the queue back.
        drop(permit);
    }

    fn count(&self, state: &mut State, verdict: Verdict, rows: u32) {
        match &self.of {
            TicketOf::Counted(source) => state.count_unrepeatable(*source, verdict, rows),
            TicketOf::Ordered(source, _) | TicketOf::Owing(source, _) => {
                state.count(*source, verdict, rows);
            }
            TicketOf::Frame(..) => state.end_sending(Some(verdict), rows),
        }
    }

    /// Returns whether these were the last rows without a verdict.
    fn count_down(&self, rows: u32) -> bool {
        let before = self.rows_left.fetch_sub(rows, Ordering::AcqRel);
        assert!(before >= rows, "{rows} rows settled of {before}: an output gave two verdicts");
        before == rows && rows > 0
    }

    fn take_permit(&self) -> Option<Permit> {
        self.permit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The acknowledgement that is due now, if there is one.
    fn take_owed(&self) -> Option<Acknowledgement> {
        match &self.of {
            TicketOf::Owing(_, owed) => owed.lock().unwrap_or_else(PoisonError::into_inner).take(),
            TicketOf::Ordered(..) | TicketOf::Counted(_) | TicketOf::Frame(..) => None,
        }
    }

    fn settle_place(&self, state: &mut State) {
        match &self.of {
            TicketOf::Ordered(source, sequence) => state.settle(*source, *sequence),
            TicketOf::Frame(store, sequence, _) => store.end(*sequence),
            TicketOf::Counted(_) | TicketOf::Owing(..) => {}
        }
    }

    /// A batch without rows is settled as it comes.
    pub(super) fn finish(&self) {
        let mut state = self.settle.lock();
        self.settle_place(&mut state);
        let before = state.unsaved_rows;
        self.settled.store(true, Ordering::Release);
        self.settle.release(state, before);
        if let Some(owed) = self.take_owed() {
            owed.accept();
        }
        // Gives the room in the queue back.
        drop(self.take_permit());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let left = *self.rows_left.get_mut();
        if left > 0
            && let TicketOf::Frame(..) = self.of
        {
            let mut state = self.settle.lock();
            let before = state.unsaved_rows;
            state.end_sending(None, left);
            self.settle.release(state, before);
        }
    }
}
