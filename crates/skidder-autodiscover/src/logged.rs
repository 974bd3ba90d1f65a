//! Mistakes that are in the log: each text once, as many containers have the same one.

use crate::candidates::Built;
use std::collections::BTreeSet;

/// Texts that are logged.
const LOGGED_MAX: usize = 100;

/// Mistakes in hints, reasons for which nothing is read, and warnings of inputs that are in the log.
#[derive(Debug, Default)]
pub(crate) struct Logged(BTreeSet<String>);

impl Logged {
    /// Whether a text is to be logged: it was not before, and there are not too many.
    pub(crate) fn is_new(&mut self, text: &str) -> bool {
        self.0.len() < LOGGED_MAX && self.0.insert(text.to_owned())
    }

    /// Logs mistakes in the hints of an object, and why it has no input although there are rules for it. Waiting for a
    /// secret is not logged: it takes milliseconds, and the watcher logs why if it takes longer.
    pub(crate) fn report(&mut self, built: &Built) {
        for event in &built.events {
            for mistake in &event.warnings {
                if self.is_new(mistake) {
                    let first = &event.about;
                    tracing::warn!(first, mistake, "a hint of a container has a mistake");
                }
            }
            for reason in
                event.failures.iter().filter(|_| built.candidates.is_empty() && !event.waits)
            {
                if self.is_new(reason) {
                    let first = &event.about;
                    tracing::warn!(first, reason, "a container is not read by autodiscover");
                }
            }
        }
    }
}
