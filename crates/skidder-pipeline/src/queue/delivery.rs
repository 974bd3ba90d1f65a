//! The events that a worker takes at once.

use crate::settle::Ticket;
use skidder_event::Batch;
use std::ops::Range;
use std::sync::Arc;

/// Some rows of an admitted batch, for one worker to send. Each row must get its verdict through
/// the ticket.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The batch; shared when it was cut.
    pub batch: Arc<Batch>,
    /// The rows.
    pub rows: Range<u32>,
    /// Where verdicts go.
    pub ticket: Arc<Ticket>,
}

impl Delivery {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
