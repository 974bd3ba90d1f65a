//! The input `kafka`, with a consumer of its own.
//!
//! Its settings and events are Filebeat's. Offsets are committed behind verdicts: what the group has committed was
//! delivered, dropped for a reason, or kept as a dead letter; a process that is killed, a rebalance and a connection
//! that breaks repeat what was in flight, and lose nothing.
//!
//! `group.rs` is the member of the group, `fetch.rs` reads the partitions of one broker (`ends.rs`: where they end),
//! `claim.rs` makes events of the records of a partition (`records.rs`, `unpack.rs`, `lines.rs`, `expand.rs`), and
//! `skidder_input::Settled` knows how far they are settled.

mod api;
mod assign;
mod claim;
mod ends;
mod expand;
mod facts;
mod fetch;
#[cfg(test)]
mod fuzz;
mod group;
mod lines;
mod records;
mod settings;
mod unpack;

pub use settings::{KAFKA_INPUT, read};

use group::Member;
use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use skidder_kafka::connect::Dialer;
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "kafka";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct Kafka {
    settings: Arc<Settings>,
    dialer: Arc<Dialer>,
    /// The brokers and the group.
    address: String,
}

impl fmt::Debug for Kafka {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Kafka").field(&self.settings).finish()
    }
}

impl Input for Kafka {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn has_a_name(&self) -> bool {
        self.settings.group_instance_id.is_some()
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        let Self { settings, dialer, .. } = *self;
        Box::pin(async move {
            Member::new(settings, intake, dialer).run().await;
            Ok(())
        })
    }
}
