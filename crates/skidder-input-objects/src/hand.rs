//! The objects that this process has in hand: no object is read twice at the same time, nor again before the registry knows
//! that it was read.

use skidder_event::SourceId;
use skidder_os::Monotonic;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long an object stays that was read and settled: the registry has it by then.
const KEPT: Duration = Duration::from_mins(1);

/// See the module's text. By their names in the registry.
#[derive(Debug, Default)]
pub(crate) struct InHand(Mutex<HashMap<String, Hand>>);

#[derive(Clone, Copy, Debug)]
enum Hand {
    Reading,
    /// All of it was sent on, as this source. It was not settled at this time.
    Read(SourceId, Monotonic),
}

/// What the caller may do with an object.
#[derive(Debug)]
pub(crate) enum Claim<'a> {
    /// Read it.
    Mine(Claimed<'a>),
    /// Ask again: another task reads it.
    Busy,
    /// Nothing: all of it was sent on.
    Read(SourceId),
}

/// An object that is being read. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Claimed<'a> {
    hand: &'a InHand,
    name: Option<String>,
}

impl InHand {
    /// Asks for an object.
    pub(crate) fn claim(&self, name: &str) -> Claim<'_> {
        let mut all = self.lock();
        match all.get(name) {
            Some(Hand::Reading) => Claim::Busy,
            Some(Hand::Read(id, _)) => Claim::Read(*id),
            None => {
                all.insert(name.to_owned(), Hand::Reading);
                Claim::Mine(Claimed { hand: self, name: Some(name.to_owned()) })
            }
        }
    }

    /// Whether an object need not be looked at.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }

    /// Forgets objects that have been settled for some time. `is_settled` returns whether a source is.
    pub(crate) fn forget(&self, now: Monotonic, is_settled: impl Fn(SourceId) -> bool) {
        self.lock().retain(|_, hand| {
            let Hand::Read(id, unsettled_at) = hand else { return true };
            if !is_settled(*id) {
                *unsettled_at = now;
            }
            now.since(*unsettled_at) < KEPT
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Hand>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimed<'_> {
    /// All of it was sent on.
    pub(crate) fn read(mut self, id: SourceId, now: Monotonic) {
        if let Some(name) = self.name.take() {
            self.hand.lock().insert(name, Hand::Read(id, now));
        }
    }
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.hand.lock().remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_read_by_one_task_and_not_again_until_the_registry_knows_it() {
        let hand = InHand::default();
        let at = |seconds| Monotonic(Duration::from_secs(seconds));
        let Claim::Mine(claimed) = hand.claim("a") else { panic!("it is free") };
        assert!(matches!(hand.claim("a"), Claim::Busy) && hand.has("a"));
        drop(claimed);
        let Claim::Mine(claimed) = hand.claim("a") else { panic!("it is free again") };
        claimed.read(SourceId(7), at(0));
        assert!(matches!(hand.claim("a"), Claim::Read(SourceId(7))));
        hand.forget(at(100), |_| false);
        hand.forget(at(159), |_| true);
        assert!(hand.has("a"), "it was not settled a minute ago");
        hand.forget(at(161), |_| true);
        assert!(matches!(hand.claim("a"), Claim::Mine(_)));
    }
}
