//! Inputs that are tasks, one folder each: see [`skidder_input::Input`].
//!
//! [`KINDS`] is the list of their types, from the name in `type` to the function that reads the settings.

pub mod benchmark;
mod bind;
pub mod datagram;
pub mod stdin;
pub mod stream;
pub mod tcp;
#[cfg(test)]
mod testing;
pub mod udp;
pub mod unix;

use skidder_config::Section;
use skidder_input::Input;
use skidder_net::Sockets;
use skidder_os::{Clock, Fs};
use std::sync::Arc;

/// What inputs know of the program.
#[derive(Clone)]
pub struct Context {
    /// Files, such as certificates.
    pub fs: Arc<dyn Fs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Sockets that outlive the input that has them: one keeper for the whole program.
    pub sockets: Sockets,
}

/// Reads what is special to a type of input; keys that all inputs share are left to the caller. Opens nothing: what it
/// returns may be dropped. `None`, and the problems are reported, if something is wrong.
pub type Read = fn(&Section<'_>, &Context) -> Option<Box<dyn Input>>;

/// The types that there are, but for [`stdin`], whose settings are read with those of the inputs of files.
pub const KINDS: &[(&str, Read)] =
    &[("benchmark", benchmark::read), ("tcp", tcp::read), ("udp", udp::read), ("unix", unix::read)];
