//! Changes of an input to batches of messages.

use skidder_event::Batch;
use std::sync::Arc;

/// Applied to each batch before the processors run over it: each row is one message, its text as it was received.
#[derive(Clone)]
pub struct OnBatch(Arc<dyn Fn(&mut Batch) + Send + Sync>);

impl OnBatch {
    /// Calls a function for each batch.
    pub fn new(function: impl Fn(&mut Batch) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Changes the events of a batch.
    pub fn run(&self, batch: &mut Batch) {
        (self.0)(batch);
    }
}

impl std::fmt::Debug for OnBatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("OnBatch")
    }
}
