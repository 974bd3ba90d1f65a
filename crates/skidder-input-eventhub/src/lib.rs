//! The input `azure-eventhub`: events of a hub of Azure Event Hubs, over AMQP, with checkpoints in blobs.
//!
//! ```text
//! blobs (`store.rs`) ─▶ who reads which partition (`balance.rs`, `run.rs`)
//!                          │
//! hub (`hub.rs`) ─▶ partition (`partition.rs`) ─▶ decoded (`decode.rs`) ─▶ events (`events.rs`) ─▶ queue
//!                          ▲                                                                      │ verdicts
//! blobs ◀─ checkpoints (`run.rs`) ◀───────────────────────────────────────────────────────────────┘
//! ```
//!
//! A checkpoint is written behind the verdict of the last event that it covers. Blobs are those of Filebeat's processor v2, so
//! that one takes over from the other. See `docs/decisions/0042-own-amqp-client.md`.

mod balance;
mod connection_string;
mod decode;
mod events;
mod hub;
mod migrate;
mod partition;
mod run;
mod sanitize;
mod settings;
mod sign;
mod store;

pub use settings::{AZURE_EVENTHUB_INPUT, read};

use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "azure-eventhub";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct EventHub {
    settings: Arc<Settings>,
    /// The namespace, the hub, and the consumer group.
    address: String,
}

impl EventHub {
    fn new(settings: Settings) -> Self {
        let address = settings.names.prefix();
        Self { settings: Arc::new(settings), address }
    }
}

impl fmt::Debug for EventHub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("EventHub").field(&self.settings).finish()
    }
}

impl Input for EventHub {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    // What it has not checkpointed yet would be read twice.
    fn has_a_name(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(run::run(intake, self.settings))
    }
}
