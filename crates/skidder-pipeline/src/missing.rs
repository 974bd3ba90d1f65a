//! What the far side of an output lacks although some events need it; for people.

use skidder_os::Timestamp;
use std::sync::{Mutex, PoisonError, Weak};

/// Why something is needed, for as long as it is.
#[derive(Clone, Debug)]
pub struct Need {
    /// What needs it, for people: `container web`.
    pub about: String,
    /// Has no owner any more when nothing needs it.
    pub alive: Weak<()>,
}

/// Something that the far side lacks. It refuses the events that need it; all others go on.
#[derive(Clone, Debug)]
pub struct Missing {
    /// What it is, for people.
    pub what: String,
    /// Why it is missing, with the remedy.
    pub error: String,
    /// When it was found missing.
    pub since: Timestamp,
    /// What needs it.
    pub needs: Vec<Need>,
}

/// All that is missing.
#[derive(Debug, Default)]
pub(crate) struct AllMissing(Mutex<Vec<Missing>>);

impl AllMissing {
    pub(crate) fn set(&self, all: Vec<Missing>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = all;
    }

    /// What is still needed.
    pub(crate) fn get(&self) -> Vec<Missing> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for one in &mut all {
            one.needs.retain(|need| need.alive.strong_count() > 0);
        }
        all.retain(|one| !one.needs.is_empty());
        all
    }
}
