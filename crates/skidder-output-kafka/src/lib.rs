//! `output.kafka`, with a producer of its own.
//!
//! One task takes events and writes each as a record into the batch of its partition (`work.rs`, `record.rs`), in the
//! memory that the batch is sent from; a link for each broker sends them and reads the answers (`link.rs`). Which
//! partition a record goes to is decided as Filebeat does (`partition.rs`).

mod ask;
mod buffers;
mod check;
mod compress;
mod config;
mod fill;
mod flights;
mod hash;
mod hold;
mod lane;
mod link;
mod partition;
mod produce;
mod read;
mod record;
mod selector;
mod send;
mod setup;
#[cfg(test)]
mod testing;
mod topics;
mod work;

use skidder_kafka::{codes, connect, connection, messages, wire};

pub use config::{Compression, Config, MetadataConfig};
pub use partition::{Partitioning, Strategy};
pub use read::KAFKA;
pub use selector::Topics;
pub use setup::{Kafka, SetupError, build};
pub use skidder_kafka::login::{Credentials, Mechanism};
pub use skidder_kafka::version::Version;
