//! Logstash, Redis, file, console and discard outputs, and what outputs in other crates share with them.
//!
//! An output takes deliveries from a queue, writes each event once, and gives each its verdict: see
//! [`skidder_pipeline::Output`].

mod backoff;
mod buffers;
mod codec;
mod console;
mod context;
mod crew;
mod discard;
mod file;
mod gzip;
mod kinds;
mod lines;
pub mod logstash;
pub mod queue;
pub mod redis;
mod refusal;
mod selector;
mod settings;
mod supply;
#[cfg(test)]
mod testing;
mod trial;

pub use backoff::{Backoff, Failures};
pub use buffers::{Buffers, CHUNK_BYTES};
pub use codec::{CODEC, Codec, CodecConfig, WITH_CODEC};
pub use console::{CONSOLE, Console, ConsoleConfig};
pub use context::{Context, moment};
pub use crew::{run_all, share_out};
pub use discard::{DISCARD, Discard};
pub use file::{FILE, FileConfig, FileOutput};
pub use gzip::Gzip;
pub use kinds::{BuildOther, Built, OUTPUTS, Other, build};
pub use logstash::Logstash;
pub use queue::{QUEUE, QueueSettings};
pub use redis::Redis;
pub use refusal::{Refusal, Refuser};
pub use selector::{NoName, RULE, Rules, Selector};
pub use settings::{
    BACKOFF, EVERY_OUTPUT, OWN_QUEUE, bulk_max_bytes, bulk_max_size, events, loadbalance,
    read_backoff, timeout, workers,
};
pub use supply::{Share, Supply};
pub use trial::{Trial, TrialError, TrialFuture, TrialSizes, Tunable, Tuning, sized};
