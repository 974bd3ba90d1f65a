//! The numbers and states of a run while it lives, and its summary at the end.
//!
//! The stages keep counters; [`Sources`] knows where they are and takes them as one [`Snapshot`]. One
//! table ([`names`]) gives each number its name in Filebeat's `/stats` and its Prometheus name; the
//! renderings ([`stats()`], [`prometheus()`], [`SummaryLine`]) only walk over it, so that they cannot
//! disagree. [`serve`] answers over HTTP; [`ledger_line`] and [`ledger_table`] are for people.
//!
//! Nothing here changes what it observes, and a snapshot costs microseconds: one short lock each for
//! ledger and queue, relaxed loads, one small file and one `stat` under `/proc/self`.

mod clouds;
mod files;
mod http;
mod inputs;
mod lag;
pub mod names;
mod numbers;
mod otlp;
mod page;
mod problems;
mod process;
mod profiles;
mod prometheus;
mod reload;
mod snapshot;
mod sources;
mod states;
mod stats;
mod summary;

pub use files::{encoded, file_json};
pub use http::{Endpoint, HTTP, HttpAuth, HttpConfig, ServeError, Serving, serve};
pub use inputs::{Counts, InputError, InputList};
pub use lag::{Lag, LagNumbers};
pub use numbers::{
    DiskNumbers, InputNumbers, OutputNumbers, QueueNumbers, ReadNumbers, RegistrarNumbers,
    SourceNumbers,
};
pub use otlp::{Refused, otlp, otlp_refused};
pub use problems::{Loss, Problem, Problems, Severity, Survey, is_well, lost_before, queue_full};
pub use process::{Process, System};
pub use profiles::Profiling;
pub use prometheus::{CONTENT_TYPE as PROMETHEUS_CONTENT_TYPE, prometheus};
pub use reload::{ReloadNumbers, Reloads};
pub use snapshot::{
    Describe, Explain, InputSource, OutputSource, Program, ProviderTrouble, Snapshot, Sources,
    Start, Step, StepCost,
};
pub use states::{InputState, OutputState};
pub use stats::{info, inputs, state, stats};
pub use summary::{
    Summary, SummaryLine, bytes_text, grouped, ledger_line, ledger_table, span_text,
};
