//! Golden files of processors: their cases run as tests, and make the documentation.
//!
//! A file `golden/NAME.yml` of a crate is about one processor:
//!
//! ```yaml
//! processor: rename
//! summary: What it does, in a sentence or two.
//! fails: What it takes for a failure, and what is left on the event.
//! differs: Where it is not as in Filebeat.        # may be left out
//! none: {failure: why there is no such case}      # for kinds that cannot be
//! cases:
//!   - name: a field gets another name
//!     kind: normal          # normal, missing, wrong_type, failure, condition, other
//!     processors:           # as in a configuration
//!       - rename: {fields: [{from: a, to: b}]}
//!     in: {a: 1}            # the event; `message` is its line, `@timestamp` its time, `@metadata` what is said about it
//!     out: {b: 1}           # the same afterwards; `@timestamp` only if it changed
//! ```
//!
//! Instead of `out`: `dropped: true`, or `refused:` with a part of the problems of the
//! configuration. `out_json` and `in_json` are JSON texts, for keys with dots in them. `matches`
//! has fields of `out` that only a regular expression can give. `then` is a list of further events
//! (`in`, `out`, … and `after`, a duration to wait) for the same processors. `files` are the files
//! of the machine, from path to content.
//!
//! Each case runs twice: with everything as the event's own, and with everything but message and
//! time as fields of the source, so that folding is tested by every case. The options of the processor are declared in
//! its code; that it reads them all, and no others, is checked, too.

mod build;
mod case;
mod cost;
mod counting;
mod file;
mod guarantee;
mod page;
mod run;

pub use build::{TIME, batch, document, map, path, value_of};
pub use case::{Case, Expected, Kind, Step};
pub use counting::{Counting, write_costs};
pub use file::{GoldenFile, read_folder, read_folder_for_page};
pub use guarantee::guarantee;
pub use page::{Cost, page};
pub use run::{FixedMachine, World, run_folder};
