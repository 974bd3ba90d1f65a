//! What reading the settings depends on.

use skidder_modules::Overrides;
use skidder_net::Sockets;
use skidder_os::{Clock, Fs};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The file system, clock and limits that reading the settings depends on.
pub(crate) struct ConfigContext<'a> {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The directory that relative paths of inputs are taken from.
    pub(crate) directory: &'a Path,
    /// A trial of some lines: nothing is stored.
    pub(crate) trial: bool,
    /// Number of processors.
    pub(crate) cores: usize,
    /// Set when the program ends: interrupts processors.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Sockets that outlive their input.
    pub(crate) sockets: Sockets,
    /// Servers of HTTP that inputs share.
    pub(crate) servers: skidder_inputs::http_endpoint::Servers,
    /// What the command line says of modules.
    pub(crate) modules: &'a Overrides,
}
