//! Servers of streams: what `tcp`, `unix` and `syslog` have in common.
//!
//! [`serve`] binds the socket of a [`StreamServer`], accepts connections, splits what they send into messages, and sends
//! each message as an event of the connection's source. [`OnBatch`] may change the events of a batch before the processors
//! see them, as `syslog` does to parse them.
//!
//! What is lost, and when: nothing that was read, unless the queue is full for longer than a stop may take (counted as
//! `stopped`). A stop sends what the kernel has received, and the rest of a message without delimiter as an event. A reload
//! hands the socket and its connections to the next input. What the far side has sent and the kernel has not received at
//! that moment, only the far side knows.

mod buffers;
mod connection;
mod framing;
mod receive_queue;
mod server;
mod settings;
mod tls_fields;

#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;

pub use framing::{Frame, FrameError, Framing, Rest};
pub use server::{StreamAddress, StreamServer, serve};
pub use settings::{CONNECTIONS, StreamSettings, WORKERS};
pub(crate) use settings::{MAX_MESSAGE_SIZE, read_workers};

use skidder_event::Batch;
use std::sync::Arc;

/// What is done to each batch before the processors run over it: each row is one message, its text as it was received.
#[derive(Clone)]
pub struct OnBatch(Arc<dyn Fn(&mut Batch) + Send + Sync>);

impl OnBatch {
    /// Calls a function for each batch.
    pub fn new(function: impl Fn(&mut Batch) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(crate) fn run(&self, batch: &mut Batch) {
        (self.0)(batch);
    }
}

impl std::fmt::Debug for OnBatch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("OnBatch")
    }
}
