//! `output.kafka`, on librdkafka.
//!
//! Events become records in one task (`work.rs`); librdkafka makes batches of them, sends them and reports each
//! (`native.rs`). Which partition a record goes to is decided here, as Filebeat does (`partition.rs`).

#[cfg(not(target_pointer_width = "64"))]
compile_error!("the number of a record is kept in a pointer of librdkafka's, and has 64 bits");

mod check;
mod codes;
mod config;
mod connect;
mod flights;
mod hash;
mod hold;
mod native;
mod partition;
mod properties;
mod read;
mod sasl;
mod selector;
mod setup;
#[cfg(test)]
mod testing;
mod topics;
mod version;
mod work;

pub use config::{Compression, Config, Credentials, Mechanism, MetadataConfig};
pub use partition::{Partitioning, Strategy};
pub use properties::SetupError;
pub use selector::Topics;
pub use setup::{Kafka, build};
pub use version::Version;
