//! SIGHUP, SIGINT and SIGTERM.
//!
//! SIGHUP is caught before anything else is done: by default it ends a program, and who replaces a configuration sends it
//! at any time, also to a program that has just been started. What came before somebody listens is kept until then.

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use skidder_os::{Clock, Monotonic};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Signals to stop within this time are one request: `timeout` and supervisors signal a process and then its group, and
/// Ctrl-C reaches a group whose leader passes it on.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGHUP, where the configuration can be read again.
    Reload,
    /// To end in order.
    Stop,
    /// To end at once: it was asked to stop before, at least [`ONE_REQUEST`] ago.
    Leave,
}

/// A file that would grow beyond `ulimit -f` is an error of its write (`EFBIG`), like that of a full disk: by default the
/// signal ends the program.
pub(crate) fn outlive_file_limit() {
    let signal = rustix::process::Signal::XFSZ.as_raw();
    if let Err(error) = signal_hook::flag::register(signal, Arc::default()) {
        tracing::debug!(%error, "SIGXFSZ ends the program");
    }
}

/// Signals that are caught, and kept until somebody listens.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caught(Arc<Mutex<Option<Signals>>>);

impl Caught {
    /// From now on SIGHUP does not end the program.
    pub(crate) fn hangups() -> Self {
        // If that fails, listening fails as well, and says why.
        Self(Arc::new(Mutex::new(Signals::new([SIGHUP]).ok())))
    }

    fn take(&self) -> Option<Signals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets SIGHUP end the program as it does by default, also if it came before: for what nobody reloads.
    pub(crate) fn release(&self) {
        let Some(mut signals) = self.take() else { return };
        let always = Arc::new(true.into());
        let cannot = "SIGHUP does not end the program any more";
        if let Err(error) = signal_hook::flag::register_conditional_default(SIGHUP, always) {
            tracing::debug!(%error, cannot);
        }
        if signals.pending().next().is_some()
            && let Err(error) = signal_hook::low_level::emulate_default_handler(SIGHUP)
        {
            tracing::debug!(%error, cannot);
        }
    }

    /// Calls `tell` for each signal, in a thread of its own, those that came before first. With `reloads` SIGHUP asks to
    /// read the configuration again, else to stop.
    pub(crate) fn listen(
        &self,
        reloads: bool,
        clock: Arc<dyn Clock>,
        mut tell: impl FnMut(Asked) + Send + 'static,
    ) -> Result<()> {
        let cannot = "cannot listen to signals";
        let mut signals = match self.take() {
            Some(signals) => signals,
            None => Signals::new([SIGHUP]).context(cannot)?,
        };
        for signal in [SIGINT, SIGTERM] {
            signals.add_signal(signal).context(cannot)?;
        }
        let work = move || {
            let mut stopped: Option<Monotonic> = None;
            for signal in signals.forever() {
                let now = clock.monotonic();
                tell(match stopped {
                    _ if signal == SIGHUP && reloads => Asked::Reload,
                    None => Asked::Stop,
                    Some(first) if now.since(first) < ONE_REQUEST => continue,
                    Some(_) => Asked::Leave,
                });
                if signal != SIGHUP || !reloads {
                    stopped.get_or_insert(now);
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(work);
        thread.map(drop).context("cannot start a thread")
    }
}
