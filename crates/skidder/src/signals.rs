//! SIGHUP, SIGINT and SIGTERM.
//!
//! SIGHUP is caught before anything else is done: by default it ends a program, and configuration management sends it
//! at any time, also right after the start. Signals that arrive before [`Caught::listen`] are kept until then.

use anyhow::{Context as _, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use skidder_os::{Clock, Monotonic};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Signals to stop within this time are one request: `timeout` and supervisors signal a process and then its group, and
/// Ctrl-C reaches a group whose leader passes it on.
const ONE_REQUEST: Duration = Duration::from_secs(1);

/// What a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// SIGHUP, where the configuration can be read again.
    Reload,
    /// To end in order.
    Stop,
    /// To end at once: a stop was requested before, at least [`ONE_REQUEST`] ago.
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

/// Caught signals, kept until [`Caught::listen`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Caught(Arc<Mutex<Option<Signals>>>);

impl Caught {
    /// From now on SIGHUP does not end the program.
    pub(crate) fn hangups() -> Self {
        // If that fails, `listen` fails as well, with the reason.
        Self(Arc::new(Mutex::new(Signals::new([SIGHUP]).ok())))
    }

    fn take(&self) -> Option<Signals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets SIGHUP end the program as it does by default, also if it came before: for commands that cannot reload.
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

    /// Calls `notify` for each signal, in a thread of its own, beginning with those kept. With `reloads` SIGHUP
    /// requests a reload, else a stop.
    pub(crate) fn listen(
        &self,
        reloads: bool,
        clock: Arc<dyn Clock>,
        mut notify: impl FnMut(Request) + Send + 'static,
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
                if signal == SIGHUP && reloads {
                    notify(Request::Reload);
                    continue;
                }
                let now = clock.monotonic();
                match stopped {
                    None => {
                        stopped = Some(now);
                        notify(Request::Stop);
                    }
                    Some(first) if now.since(first) < ONE_REQUEST => {}
                    Some(_) => notify(Request::Leave),
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(work);
        thread.map(drop).context("cannot start a thread")
    }
}
