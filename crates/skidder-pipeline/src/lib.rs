//! Queue, settle, ledger and dead letters: what lies between the readers and the outputs.
//!
//! A reader's batch is *admitted* ([`Settle::admit`]): its lines are on the ledger as in flight and
//! its byte range is pending. The [`Queue`] hands it to the workers of an output as [`Delivery`]s.
//! Each row ends in exactly one of three ways, reported through its [`Ticket`]: delivered, dropped with
//! a reason, or dead-lettered. When all rows of the oldest pending range are settled, the source's
//! cursor moves, and the registrar makes it durable. Nothing else moves a cursor.

mod commits;
mod dead_letter;
mod disk;
mod driver;
mod last_failure;
mod ledger;
mod metrics;
mod missing;
mod output;
mod pace;
mod queue;
mod registrar;
mod repeats;
mod run;
mod saving;
mod settle;
#[cfg(test)]
mod testing;

pub use commits::Commits;
pub use dead_letter::{
    DeadLetter, DeadLetterError, DeadLetters, DeadLettersLimits, KeptLetters, LetterFate,
};
pub use disk::{
    DiskMetrics, DiskQueue, DiskQueueError, DiskQueueFilled, DiskQueueKey, DiskQueueOpened,
    DiskQueueRepaired, DiskQueueReport, DiskQueueSettings, DiskStep, Origin, SegmentReport,
    inspect_disk_queue, repair_disk_queue, waiting_in_disk_queue,
};
pub use driver::{Driver, Patience, ReadOnce, Stage};
pub use last_failure::{Failing, LastFailure, disk_remedy};
pub use ledger::{Ledger, LedgerSnapshot};
pub use metrics::{
    Active, Counter, Gauge, OutputMetrics, QueueMetrics, Refusals, RegistrarMetrics,
};
pub use missing::{Missing, Need};
pub use output::{Feed, Output, OutputFuture, SetUp};
pub use pace::Rates;
pub use queue::{Delivery, Queue, QueueLimits, TakeLimits, Tap};
pub use registrar::Registrar;
pub use run::{Pipeline, Queues, join};
pub use settle::{Settle, SourceName, SourcePlace, SourceStatus, Ticket};
