//! A whole run in a simulated world: other programs write, rotate, compress, truncate and delete files
//! while skidder reads, delivers to an output that fails, dies and starts again with another
//! configuration. All of it comes from one seed and replays exactly: no wall clock, no threads.
//!
//! Lines carry their names, so that an oracle knows where each one ended. See [`run`].
//!
//! **What runs is the product's own code**: scanner, catalog, readers, decoder, queue, disk queue, settle, registrar,
//! registry and dead letters, of one output or of several, on a simulated disk and clock. The threads of `Pipeline` are not used: the
//! simulation makes the calls that they make, one at a time, in an order that the seed chooses; so a race
//! *inside* one of these calls is not covered, nor are the outputs' sockets (a simulated output takes from
//! the real queue), processors, the reading of the configuration, and which of several outputs has
//! which directory.

mod found;
mod lines;
mod oracle;
mod others;
mod program;
mod records;
mod scenario;
mod stage;
mod story;
mod themes;
mod world;

pub use found::FOUND;
pub use themes::Theme;
pub use world::{Failure, Options, Outcome, run};
