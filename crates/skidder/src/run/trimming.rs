//! Giving memory back to the system after a burst.
//!
//! A start with very many files, and a look through a large registry, take memory for each of them that is free
//! afterwards and lies between memory in use: the allocator does not give that back by itself.

use skidder_observe::Process;
use skidder_os::{Fs, Monotonic};
use std::sync::Arc;
use std::time::Duration;

/// How often to check whether memory should be given back.
const EVERY: Duration = Duration::from_secs(5);

/// Memory is given back so many times more after a burst: sources and outputs free what they do not use any more some
/// seconds later.
const AGAIN: u8 = 2;

/// Resident memory must have grown by so many bytes, since memory was given back last, for it to be worthwhile.
const WORTH_BYTES: u64 = 4 << 20;

/// Gives memory back to the system when nothing is in flight and there is more of it than there was.
pub(super) struct Trimming {
    fs: Arc<dyn Fs>,
    due: Monotonic,
    /// Resident memory in bytes, just after some was given back.
    kept: u64,
    /// How many times more to give memory back, however little it has grown.
    again: u8,
}

impl Trimming {
    pub(super) fn new(fs: Arc<dyn Fs>, now: Monotonic) -> Self {
        Self { fs, due: now + EVERY, kept: 0, again: 0 }
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Monotonic {
        self.due
    }

    /// Looks, if it is time to. One output that is stuck does not keep what the others have left behind: it is enough
    /// that one of them has nothing in flight.
    /// `free` frees what is only kept to be used again.
    pub(super) fn step(
        &mut self,
        now: Monotonic,
        is_at_rest: impl FnOnce() -> bool,
        free: impl FnOnce(),
    ) {
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        let is_worth_while = self.is_worth_while();
        if (is_worth_while || self.again > 0) && is_at_rest() {
            self.again = if is_worth_while { AGAIN } else { self.again - 1 };
            free();
            crate::allocator::give_back();
            crate::program_pages::give_back();
            self.kept = self.resident().unwrap_or(0);
        }
    }

    fn is_worth_while(&self) -> bool {
        self.resident().is_some_and(|bytes| bytes >= self.kept + WORTH_BYTES)
    }

    fn resident(&self) -> Option<u64> {
        Process::resident(&*self.fs)
    }
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    /// Blocks between others that stay, which only `give_back` gives back.
    fn leave_holes() -> Vec<Box<[u8; 4096]>> {
        let blocks: Vec<_> = (0..20_000).map(|_| Box::new([1; 4096])).collect();
        blocks
            .into_iter()
            .enumerate()
            .filter(|(at, _)| at % 16 == 0)
            .map(|(_, block)| block)
            .collect()
    }

    #[test]
    fn memory_is_given_back_again_whenever_there_is_more_of_it() {
        let start = Monotonic::default();
        let mut trimming = Trimming::new(Arc::new(RealFs), start);
        let mut kept = Vec::new();
        for round in 1..=3 {
            kept.push(leave_holes());
            let before = trimming.resident().unwrap();
            trimming.step(start + EVERY * round, || false, || panic!("lines are in flight"));
            assert!(
                trimming.resident().unwrap() + WORTH_BYTES > before,
                "not while lines are in flight"
            );
            trimming.due = start;
            let mut is_freed = false;
            trimming.step(start + EVERY * round, || true, || is_freed = true);
            assert!(is_freed);
            assert!(trimming.kept + (50 << 20) < before, "{} of {before}", trimming.kept);
        }
        assert_eq!(kept.len(), 3);
    }

    #[test]
    fn what_is_freed_just_after_a_burst_is_given_back_too() {
        let start = Monotonic::default();
        let mut trimming = Trimming::new(Arc::new(RealFs), start);
        let mut count = 0;
        for round in 1..=5 {
            trimming.step(start + EVERY * round, || true, || count += 1);
            // However much the other tests take meanwhile.
            trimming.kept = u64::MAX / 2;
        }
        assert_eq!(count, 1 + u32::from(AGAIN));
    }

    #[test]
    fn nothing_is_done_before_it_is_due() {
        let start = Monotonic::default();
        let mut trimming = Trimming::new(Arc::new(RealFs), start);
        trimming.step(start, || panic!("nobody asks yet"), || panic!("it is not due"));
        assert_eq!(trimming.kept, 0);
    }
}
