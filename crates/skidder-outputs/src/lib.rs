//! Elasticsearch, Logstash, OpenTelemetry, Redis, S3, file, console and discard outputs.
//!
//! An output takes deliveries from a queue, writes each event once, and gives each its verdict: see
//! [`skidder_pipeline::Output`].

mod backoff;
mod codec;
mod console;
mod context;
mod crew;
mod discard;
pub mod elasticsearch;
mod file;
mod kinds;
mod lines;
pub mod logstash;
pub mod otlp;
pub mod redis;
mod refusal;
pub mod s3;
mod selector;
mod settings;
mod supply;
#[cfg(test)]
mod testing;
mod trial;
mod tuner;

pub use backoff::{Backoff, Failures};
pub use codec::{Codec, CodecConfig};
pub use console::{Console, ConsoleConfig};
pub use context::Context;
pub use discard::Discard;
pub use elasticsearch::Elasticsearch;
pub use file::{FileConfig, FileOutput};
pub use kinds::{BuildOther, Built, Other, build};
pub use logstash::Logstash;
pub use otlp::Otlp;
pub use redis::Redis;
pub use refusal::{Refusal, Refuser};
pub use s3::S3;
pub use selector::{NoName, Rules, Selector};
pub use trial::{Trial, TrialError, TrialFuture, TrialSizes, Tunable, Tuning};
