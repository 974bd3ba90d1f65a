//! What a command uses of the process and the machine it runs on.

use crate::config_context::ConfigContext;
use crate::service::Service;
use crate::signals::Caught;
use crate::startup::Startup;
use anyhow::{Context as _, Result};
use skidder_config::Pipes;
use skidder_modules::Overrides;
use skidder_net::Sockets;
use skidder_os::{Clock, Fs, RealFs, SystemClock};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// File system, clock and other resources of this process.
#[derive(Clone)]
pub(crate) struct System {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) pipes: Arc<Pipes>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) directory: PathBuf,
    /// A trial of some lines: nothing is stored.
    pub(crate) trial: bool,
    pub(crate) cores: usize,
    pub(crate) startup: Startup,
    pub(crate) caught: Caught,
    pub(crate) service: Arc<Service>,
    /// Set when the program ends: interrupts processors.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Sockets that outlive their input.
    pub(crate) sockets: Sockets,
    /// Servers of HTTP that inputs share.
    pub(crate) servers: skidder_inputs::http_endpoint::Servers,
    /// What the command line says of modules.
    pub(crate) modules: Arc<Overrides>,
}

impl System {
    pub(crate) fn real() -> Result<Self> {
        Ok(Self {
            fs: Arc::new(RealFs),
            pipes: Arc::default(),
            clock: Arc::new(SystemClock::new()),
            directory: std::env::current_dir().context("cannot tell the current directory")?,
            trial: false,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            startup: Startup::default(),
            caught: Caught::default(),
            service: Arc::new(Service::of_environment()),
            interrupt: Arc::default(),
            sockets: Sockets::default(),
            servers: skidder_inputs::http_endpoint::Servers::default(),
            modules: Arc::default(),
        })
    }

    /// The same for trying lines.
    pub(crate) fn for_trial(self) -> Self {
        Self { trial: true, ..self }
    }

    pub(crate) fn config_context(&self) -> ConfigContext<'_> {
        ConfigContext {
            fs: Arc::clone(&self.fs),
            clock: Arc::clone(&self.clock),
            directory: &self.directory,
            trial: self.trial,
            cores: self.cores,
            interrupt: Arc::clone(&self.interrupt),
            sockets: self.sockets.clone(),
            servers: self.servers.clone(),
            modules: &self.modules,
        }
    }
}
