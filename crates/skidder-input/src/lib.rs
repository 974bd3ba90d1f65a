//! What an input is: it runs as a task until it must stop, opens *sources* through its [`Intake`], and sends their
//! events, or offers them.
//!
//! This is the mirror of an output (`skidder_pipeline::Output`). Files are read by threads and have a driver of their own;
//! everything else is an [`Input`] here: a listener, a subscription, an API that is polled. Per source it says what a
//! verdict means there (`skidder_event::Progress`): nothing, a cursor that moves in order, or an acknowledgement.
//!
//! An input that cannot be read twice feeds all its outputs at once: each output is a [`Lane`], with its own processors,
//! queue and ledger. See `docs/decisions/0028-one-intake-for-several-outputs.md`.

mod acknowledge;
mod backlog;
mod clouds;
mod driver;
mod facts;
mod hub;
mod intake;
mod metrics;
mod on_batch;
mod pool;
mod row;
mod sample;
mod settled;
mod source;
mod subscribed;
mod task;
#[cfg(test)]
mod tests;
mod troubles;
#[cfg(test)]
mod world_tests;

pub use clouds::{GroupNumbers, ObjectNumbers, QueueNumbers};
pub use driver::{LaneOf, TaskDriver, TaskInputs, TasksChange};
pub use facts::{OpenSources, SourceFacts, SourceStatus};
pub use hub::HubCounts;
pub use intake::{Intake, Lane, OpenError, Waiting};
pub use metrics::{Batches, Flows, InputMetrics, Listening, LostBefore};
pub use on_batch::OnBatch;
pub use pool::PartsPool;
pub use row::Row;
pub use settled::Settled;
pub use source::{Sending, Source, Stopped};
pub use subscribed::Subscribed;
pub use task::{InputState, InputTask, Setup};
pub use troubles::{LastError, Trouble};

use skidder_event::Map;
use std::fs::File;
use std::future::Future;
use std::pin::Pin;

/// The work of an input, until it must stop or has nothing more to read.
pub type InputFuture = Pin<Box<dyn Future<Output = Result<(), InputError>> + Send>>;

/// Why an input ended by itself; the text is for people, and says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InputError(pub String);

/// Where events come from.
///
/// Contract: what the far side sent is sent on, offered, or refused to the far side; nothing is acknowledged to it but
/// through the acknowledgement of the batch. When [`Intake::stopped`] resolves the input takes nothing more from its far
/// side, sends what it has, and ends; it ends as well when a source says [`Stopped`]. A failure that may pass is tried
/// again without end. Bad input is reported and counted, and costs nothing else.
pub trait Input: Send {
    /// Its type, as in `type: tcp`.
    fn kind(&self) -> &'static str;

    /// Where it listens, as configured: distinguishes inputs of a type without ids.
    fn address(&self) -> Option<&str> {
        None
    }

    /// Whether its events may have fields of their own besides `message`, `@timestamp`, `log.offset`, `log.flags` and
    /// `@metadata._id`. Whatever is the same for all events of a source is none of them.
    fn makes_fields(&self) -> bool {
        true
    }

    /// Whether its events are complete events of other programs: they get no `agent`, `ecs` and `host` of this one.
    fn relays(&self) -> bool {
        false
    }

    /// Whether it stops after all inputs for which this does not hold: nothing keeps or sends again what comes to it
    /// while the program waits for the others.
    fn stops_last(&self) -> bool {
        false
    }

    /// Whether its sources have cursors ([`Intake::open_at_cursor`]): each output that it feeds has a run of its own.
    fn has_cursors(&self) -> bool {
        false
    }

    /// Whether it is known to its far side by a name that no other input may have at the same time: after a reload, the one
    /// that takes its place begins when it has ended, and all it read has its verdict.
    fn has_a_name(&self) -> bool {
        false
    }

    /// Whether it can be asked to end when its far side has no more ([`Intake::ending`]), as an input of one container
    /// that has ended. Others stop at once.
    fn ends_when_read(&self) -> bool {
        false
    }

    /// The `@metadata` of each of its events.
    fn metadata(&self) -> Map {
        Map::new()
    }

    /// What it does to each batch of messages before the processors run over it, if that is all there is to its events.
    fn on_batch(&self) -> Option<OnBatch> {
        None
    }

    /// An input with the same events whose messages are the lines of a file, instead of what its far side sends: it opens
    /// nothing, and ends at the end of the file.
    fn over_sample(self: Box<Self>, sample: File) -> Box<dyn Input> {
        Box::new(sample::Sample::of(&*self, sample))
    }

    /// Takes events until it must stop, or has read everything there is.
    fn run(self: Box<Self>, intake: Intake) -> InputFuture;
}
