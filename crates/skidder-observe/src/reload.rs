//! The results of reading the configuration again.

use crate::snapshot::Snapshot;
use serde_json::{Value as Json, json};
use skidder_event::{Precision, TimeText};
use skidder_os::Timestamp;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Counts of reading the configuration again while the program runs.
#[derive(Debug, Default)]
pub struct Reloads(Mutex<ReloadNumbers>);

/// The counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReloadNumbers {
    /// Times that the files were looked at.
    pub scans: u64,
    /// Times that a configuration was read again and taken.
    pub taken: u64,
    /// Times that one was refused; the one before went on.
    pub refused: u64,
    /// Inputs that began.
    pub starts: u64,
    /// Inputs that ended.
    pub stops: u64,
    /// When a configuration was read last, and what was wrong with it if it was refused.
    pub last: Option<(Timestamp, Option<String>)>,
}

impl Reloads {
    /// The files were looked at.
    pub fn scanned(&self) {
        self.lock().scans += 1;
    }

    /// A configuration was taken, so that inputs begin and end.
    pub fn taken(&self, at: Timestamp, starts: u64, stops: u64) {
        let mut numbers = self.lock();
        numbers.taken += 1;
        numbers.starts += starts;
        numbers.stops += stops;
        numbers.last = Some((at, None));
    }

    /// A configuration was refused, and why.
    pub fn refused(&self, at: Timestamp, error: String) {
        let mut numbers = self.lock();
        numbers.refused += 1;
        numbers.last = Some((at, Some(error)));
    }

    /// Whether the last configuration that was read was refused.
    pub fn was_refused(&self) -> bool {
        matches!(self.lock().last, Some((_, Some(_))))
    }

    /// The counts.
    pub fn numbers(&self) -> ReloadNumbers {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, ReloadNumbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReloadNumbers {
    /// The part of `/state`; nothing if none was read.
    pub(crate) fn state(&self) -> Option<Json> {
        let (at, error) = self.last.as_ref()?;
        let mut time = TimeText::new(Precision::Millisecond);
        let at = String::from_utf8_lossy(time.format(at.0)).into_owned();
        let result = if error.is_some() { "failed" } else { "succeeded" };
        Some(json!({"at": at, "last": result, "error": error}))
    }
}

/// Whether the last configuration that was read was taken, if one was.
pub(crate) fn is_good(snapshot: &Snapshot) -> Option<u64> {
    snapshot.reloads.last.as_ref().map(|(_, error)| u64::from(error.is_none()))
}
