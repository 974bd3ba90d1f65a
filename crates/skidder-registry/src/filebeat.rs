//! Filebeat's own registry: read, so that every file goes on where Filebeat stopped, and written, so that
//! a person can go back.
//!
//! The format is that of Filebeat 7.9 to 9.5, `libbeat/statestore/backend/memlog` in
//! <https://github.com/elastic/beats>: a checkpoint with all entries and a log of what changed since.
//! Reading never writes. What cannot be read is named and left out, and the rest is taken.

mod entry;
mod memlog;
mod write;

pub use entry::{FilebeatEntry, Identity, Owner, fingerprint_key};
pub use memlog::{FilebeatRegistry, FindError, LoadError, find, holds_registry, load};
pub use write::{WriteError, write};

/// Version of the layout, in `meta.json`.
const VERSION: &str = "1";
/// Holds the version.
const META: &str = "meta.json";
/// What changed since the checkpoint.
const LOG: &str = "log.json";
/// Names the newest checkpoint; only for people.
const ACTIVE: &str = "active.dat";
/// Where the key of an entry stands in a checkpoint.
const KEY: &str = "_key";
/// The log input's keys.
const LOG_PREFIX: &str = "filebeat::logs::";
/// Between the parts of a key.
const SEPARATOR: &str = "::";
/// Stands for the id of an input that has none.
const NO_ID: &str = ".global";
