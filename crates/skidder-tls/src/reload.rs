//! Certificates that change while the program runs.
//!
//! Files are looked at before each connection; when one has changed, all are read again. Files that cannot be used
//! leave what was there before in force.

use crate::error::TlsError;
use crate::server::TlsServerSettings;
use crate::settings::TlsSettings;
use rustls::{ClientConfig, ServerConfig};
use skidder_os::{Fs, Timestamp};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Identifies a version of a file: size, last change, inode; nothing if it is not there.
type Stamp = Option<(u64, Timestamp, u64)>;

/// TLS settings of a client, made again when its files change.
pub struct TlsClient {
    settings: TlsSettings,
    fs: Arc<dyn Fs>,
    state: Mutex<State<ClientConfig>>,
}

/// TLS settings of a server, made again when its files change.
pub struct TlsServer {
    settings: TlsServerSettings,
    /// Of ALPN, best first; none: it is not negotiated.
    protocols: &'static [&'static str],
    fs: Arc<dyn Fs>,
    state: Mutex<State<ServerConfig>>,
}

struct State<C> {
    config: Arc<C>,
    /// Of the files when they were read last, whether they could be used or not.
    stamps: Vec<Stamp>,
}

impl<C> State<C> {
    /// The configuration, read again if a file is another one.
    fn current(
        &mut self,
        settings: &TlsSettings,
        fs: &dyn Fs,
        read: impl FnOnce() -> Result<Arc<C>, TlsError>,
    ) -> Arc<C> {
        let stamps = stamps(settings, fs);
        if stamps != self.stamps {
            self.stamps = stamps;
            match read() {
                Ok(config) => {
                    tracing::info!("certificates have changed and are read again");
                    self.config = config;
                }
                Err(error) => {
                    tracing::error!(%error, "certificates have changed and cannot be used; the old ones stay");
                }
            }
        }
        Arc::clone(&self.config)
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsClient").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsServer").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl TlsClient {
    /// Reads the files. An error is a mistake of the configuration.
    pub fn new(settings: &TlsSettings, fs: Arc<dyn Fs>) -> Result<Arc<Self>, TlsError> {
        let stamps = stamps(settings, &*fs);
        let config = settings.client(&*fs)?;
        let state = Mutex::new(State { config, stamps });
        Ok(Arc::new(Self { settings: settings.clone(), fs, state }))
    }

    /// Settings for the next connection. Looks at the files, without reading those that are as they were.
    pub fn config(&self) -> Arc<ClientConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.current(&self.settings, &*self.fs, || self.settings.client(&*self.fs))
    }

    /// The settings to check.
    pub fn settings(&self) -> &TlsSettings {
        &self.settings
    }
}

impl TlsServer {
    /// Reads the files. An error is a mistake of the configuration.
    pub fn new(settings: &TlsServerSettings, fs: Arc<dyn Fs>) -> Result<Arc<Self>, TlsError> {
        Self::with_protocols(settings, fs, &[])
    }

    /// As [`Self::new`], for a server that negotiates its protocol with clients (ALPN): the best first.
    pub fn with_protocols(
        settings: &TlsServerSettings,
        fs: Arc<dyn Fs>,
        protocols: &'static [&'static str],
    ) -> Result<Arc<Self>, TlsError> {
        let stamps = stamps(&settings.common, &*fs);
        let config = settings.server(&*fs, protocols)?;
        let state = Mutex::new(State { config, stamps });
        Ok(Arc::new(Self { settings: settings.clone(), protocols, fs, state }))
    }

    /// Settings for the next handshake. Looks at the files, unless they are not to be read again.
    pub fn config(&self) -> Arc<ServerConfig> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.settings.reloads {
            return Arc::clone(&state.config);
        }
        state.current(&self.settings.common, &*self.fs, || {
            self.settings.server(&*self.fs, self.protocols)
        })
    }
}

fn stamps(settings: &TlsSettings, fs: &dyn Fs) -> Vec<Stamp> {
    let stamp = |(_, path): (&str, &Path)| {
        let metadata = fs.metadata(path).ok()?;
        Some((metadata.size, metadata.modified, metadata.inode))
    };
    settings.files().into_iter().map(stamp).collect()
}
