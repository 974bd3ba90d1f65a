//! What keeps an input, or a part of it, from its work at the moment. The input tries again by itself.

use skidder_os::{Clock, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A current problem of an input, or of a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The part that has it: a container, a journal, a key of Redis. Empty for the whole input.
    pub part: Arc<str>,
    /// What is wrong.
    pub text: Arc<str>,
    /// Since when the part is in trouble; the text may have changed since then. `None` if the input
    /// has no clock, as in tests.
    pub since: Option<Timestamp>,
}

/// The last error that an input counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastError {
    /// When.
    pub at: Timestamp,
    /// The source that had it: a client, a partition. Empty if it was none.
    pub source: Arc<str>,
    /// What, at most 512 bytes.
    pub text: Box<str>,
}

/// Bytes of the text of an error that are kept.
const TEXT_BYTES_MAX: usize = 512;

/// The current problems of an input, each by the part that has it, and its last error, which may be over.
#[derive(Default)]
pub(crate) struct Troubles {
    clock: OnceLock<Arc<dyn Clock>>,
    all: Mutex<BTreeMap<Arc<str>, Trouble>>,
    last_error: Mutex<Option<LastError>>,
}

impl Troubles {
    /// Where the time comes from. The first one stays.
    pub(crate) fn set_clock(&self, clock: Arc<dyn Clock>) {
        self.clock.get_or_init(|| clock);
    }

    /// Begins, changes or ends the problem of a part.
    pub(crate) fn set(&self, part: &str, text: Option<&str>) {
        let mut all = self.lock();
        let Some(text) = text else {
            all.remove(part);
            return;
        };
        if let Some(trouble) = all.get_mut(part) {
            trouble.text = text.into();
            return;
        }
        let since = self.clock.get().map(|clock| clock.wall());
        let part: Arc<str> = part.into();
        let trouble = Trouble { part: Arc::clone(&part), text: text.into(), since };
        all.insert(part, trouble);
    }

    /// Takes note of an error.
    pub(crate) fn failed(&self, source: &str, text: &str) {
        let Some(clock) = self.clock.get() else { return };
        let text = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].into();
        let error = LastError { at: clock.wall(), source: source.into(), text };
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }

    /// The last error.
    pub(crate) fn last_error(&self) -> Option<LastError> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All of them; the one of the whole input comes first.
    pub(crate) fn all(&self) -> Vec<Trouble> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Trouble>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Troubles {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.all()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_testkit::SimClock;
    use std::time::Duration;

    #[test]
    fn a_trouble_lasts_from_its_beginning_although_its_text_changes() {
        let clock = SimClock::new();
        let troubles = Troubles::default();
        troubles.set("a", Some("without a clock"));
        assert_eq!(troubles.all()[0].since, None);
        troubles.set("a", None);
        troubles.set_clock(Arc::new(clock.clone()));
        let began = clock.wall();
        troubles.set("a", Some("refused"));
        clock.advance(Duration::from_secs(9));
        troubles.set("a", Some("away"));
        troubles.set("", Some("all of it"));
        let all = troubles.all();
        let shown: Vec<_> = all.iter().map(|one| (&*one.part, &*one.text, one.since)).collect();
        let expected = [("", "all of it", Some(clock.wall())), ("a", "away", Some(began))];
        assert_eq!(shown, expected);
        troubles.set("a", None);
        troubles.set("a", Some("again"));
        assert_eq!(troubles.all()[1].since, Some(clock.wall()), "another trouble");
    }
}
