//! The fault matrix: what is written must arrive, whatever breaks on the way.
//!
//! Every test prints rows of a table; see them all with
//! `cargo test -p skidder --test faults -- --nocapture`. Nothing may ever be missing. Duplicates are
//! bounded by what had been sent and was not yet durable in the registry when the program was killed, or
//! by what the server took without saying so.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[path = "../common/mod.rs"]
mod common;

mod answers;
mod codecs;
mod disk;
mod disk_queue;
mod files;
mod gzip;
mod kill;
mod links;
mod process;
mod registry;
