//! The simulated world, real-server helpers and builders, for tests only.
//!
//! [`SimFs`] and [`SimClock`] stand in for the machine's file system and clock. Everything that looks
//! random comes from a seed, so that a failing test fails again.

mod clock;
pub mod journal;
pub mod kafka;
mod mmdb;
mod random;
pub mod servers;
mod sim_fs;
mod wait;

pub use clock::SimClock;
pub use mmdb::MmdbWriter;
pub use random::{Random, rounds};
pub use sim_fs::{Fault, Operation, OtherHandle, SimFs};
pub use wait::{try_wait_for, wait_for, wait_until};
