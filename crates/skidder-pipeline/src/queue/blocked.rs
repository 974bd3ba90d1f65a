//! A thread whose batch stands in line, because the queue is full.

use super::Queue;
use skidder_event::Batch;
use std::thread;
use std::time::Duration;

impl Queue {
    /// Waits until the batch with this number is in; does `again` each time that `every` has passed.
    #[expect(clippy::result_large_err, reason = "one move a batch, and only at the end")]
    pub(super) fn wait_in_line(
        &self,
        number: u64,
        every: Duration,
        mut again: impl FnMut(),
    ) -> Result<(), Batch> {
        loop {
            let mut state = self.shared.lock();
            let Some(at) = state.blocked.iter().position(|blocked| blocked.number == number) else {
                return Ok(());
            };
            if state.closed
                && let Some(blocked) = state.blocked.remove(at)
            {
                return Err(blocked.batch);
            }
            drop(state);
            thread::park_timeout(every);
            again();
        }
    }
}
