//! The address of every input that listens: parses it, and binds it as soon as it is free.

use skidder_config::{Section, mask_address};
use skidder_input::{InputError, Intake};
use skidder_net::{Claim, ListenAddress, ListenError, UnixPlace};
use std::any::Any;
use std::io::ErrorKind;
use std::time::Duration;

/// First pause after an address could not be bound; it doubles up to [`BIND_PAUSE_MAX`].
const BIND_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause between two attempts to bind an address.
const BIND_PAUSE_MAX: Duration = Duration::from_secs(5);

/// Splits a `host` into host and port. `None`, and the problem is reported, if it is no address.
pub(crate) fn read_host(section: &Section<'_>, text: &str) -> Option<(String, u16)> {
    parse_host(section, "host", text)
}

/// The same of a setting with another name.
pub(crate) fn parse_host(section: &Section<'_>, name: &str, text: &str) -> Option<(String, u16)> {
    match ListenAddress::parse_tcp(text) {
        Ok(ListenAddress::Tcp { host, port }) => Some((host, port)),
        Ok(ListenAddress::Unix { .. }) => None,
        Err(expected) => {
            let (path, shown) = (section.path_of(name), mask_address(text));
            let message = format!("`{path}` is `{shown}`; {expected}");
            section.problem(name, message, "");
            None
        }
    }
}

/// Reports `hosts`, as outputs have it, where an input has `name`.
pub(crate) fn no_hosts(section: &Section<'_>, name: &str) {
    let hint = format!("did you mean `{name}`? An input listens on one address");
    section.unknown("hosts", name, &hint);
}

/// What the input before has left, when it was its turn; `None` if there is none, or if the input must stop before.
pub(crate) async fn take_over<T: Any + Send>(claim: &Claim, intake: &Intake) -> Option<T> {
    tokio::select! {
        biased;
        left = claim.take_in_turn() => left,
        // No other input takes what was left to it, and nothing is left later.
        () = intake.stopped() => claim.take(),
    }
}

/// Gives a socket that was taken over the owner and the mode of the settings.
pub(crate) fn apply(place: &UnixPlace, intake: &Intake) {
    if let Err(error) = place.apply() {
        intake.metrics().failed("", &error.to_string());
        tracing::error!(%error, "the socket keeps its group and mode");
    }
}

/// Attempts to bind an address, until it is free.
pub(crate) struct Attempts<'a> {
    intake: &'a Intake,
    pause: Duration,
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(intake: &'a Intake) -> Self {
        Self { intake, pause: BIND_PAUSE }
    }

    /// One was made. Returns what it has bound; or `None` if it must be made again, which is after a pause while the
    /// address is in use or not there, unless the input must stop meanwhile.
    ///
    /// # Errors
    /// The address is wrong.
    pub(crate) async fn made<T>(
        &mut self,
        bound: Result<T, ListenError>,
    ) -> Result<Option<T>, InputError> {
        let metrics = self.intake.metrics();
        let error = match bound {
            Ok(bound) => {
                metrics.set_trouble(None);
                return Ok(Some(bound));
            }
            Err(error) => error,
        };
        let may_pass = match &error {
            ListenError::InUse { .. } | ListenError::Resolve { .. } => true,
            // An address that another machine has now, a directory that another program makes.
            ListenError::Bind { source, .. } => {
                matches!(source.kind(), ErrorKind::AddrNotAvailable | ErrorKind::NotFound)
            }
            ListenError::NotASocket { .. } => false,
        };
        if !may_pass {
            return Err(InputError(error.to_string()));
        }
        let text = error.to_string();
        metrics.failed("", &text);
        metrics.set_trouble(Some(&text));
        tracing::error!(%error, "cannot listen; trying again");
        tokio::select! {
            () = self.intake.stopped() => {}
            () = tokio::time::sleep(self.pause) => {}
        }
        self.pause = (self.pause * 2).min(BIND_PAUSE_MAX);
        Ok(None)
    }
}
