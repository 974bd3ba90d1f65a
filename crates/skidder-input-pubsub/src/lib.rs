//! The input `gcp-pubsub`: messages of a subscription of Google Cloud Pub/Sub.
//!
//! ```text
//! StreamingPull ─▶ messages (`receive.rs`) ─▶ events (`events.rs`) ─▶ queue
//!                     │ held (`leases.rs`)                              │ verdicts
//!                     └──▶ deadlines extended, acknowledged, given back (`keep.rs`) ◀┘
//! ```
//!
//! A message is acknowledged behind the verdict of its event. Until then its deadline is extended; at a stop it is given
//! back, so that another process gets it at once. See `docs/decisions/0041-pubsub-without-its-client.md`.

mod answers;
mod client;
mod events;
mod keep;
mod leases;
mod messages;
mod receive;
mod remedy;
mod run;
mod settings;
mod token;

pub use settings::{GCP_PUBSUB_INPUT, read};

use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "gcp-pubsub";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct PubSub {
    settings: Arc<Settings>,
    /// The subscription, with its project.
    address: String,
}

impl PubSub {
    fn new(settings: Settings) -> Self {
        let address = settings.names.subscription.clone();
        Self { settings: Arc::new(settings), address }
    }
}

impl fmt::Debug for PubSub {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("PubSub").field(&self.settings).finish()
    }
}

impl Input for PubSub {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(run::run(intake, self.settings))
    }
}
