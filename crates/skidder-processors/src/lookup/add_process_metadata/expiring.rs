//! A cache of data about processes.

use skidder_os::Monotonic;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Most processes that are remembered. When one more is needed, those that have expired are
/// forgotten; if there are none, all are.
const PROCESSES_MAX: usize = 32 << 10;

/// Answers by the number of a process.
pub(super) struct Expiring<V> {
    /// Zero: nothing is remembered.
    expire_time: Duration,
    answers: Mutex<HashMap<i64, (Monotonic, V)>>,
}

impl<V: Clone> Expiring<V> {
    pub(super) fn new(expire_time: Duration) -> Self {
        Self { expire_time, answers: Mutex::default() }
    }

    /// The answer for a process, looked up if need be.
    pub(super) fn get(&self, pid: i64, now: Monotonic, look: impl FnOnce() -> V) -> V {
        if self.expire_time.is_zero() {
            return look();
        }
        // Held while files are read, so that threads that want to know the same do not all read them.
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, answer)) = answers.get(&pid)
            && now.since(*at) < self.expire_time
        {
            return answer.clone();
        }
        if answers.len() >= PROCESSES_MAX && !answers.contains_key(&pid) {
            answers.retain(|_, (at, _)| now.since(*at) < self.expire_time);
            if answers.len() >= PROCESSES_MAX {
                answers.clear();
            }
        }
        let answer = look();
        answers.insert(pid, (now, answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Monotonic {
        Monotonic(Duration::from_secs(seconds))
    }

    #[test]
    fn answers_are_believed_until_they_expire() {
        let cache = Expiring::new(Duration::from_secs(30));
        assert_eq!(cache.get(1, at(0), || "a"), "a");
        assert_eq!(cache.get(1, at(29), || "b"), "a");
        assert_eq!(cache.get(1, at(30), || "b"), "b");
        let none = Expiring::new(Duration::ZERO);
        assert_eq!(none.get(1, at(0), || "a"), "a");
        assert_eq!(none.get(1, at(0), || "b"), "b");
    }

    #[test]
    fn there_are_never_more_than_allowed() {
        let cache = Expiring::new(Duration::from_secs(30));
        for pid in 0..3 * PROCESSES_MAX as i64 {
            cache.get(pid, at(0), || ());
        }
        assert!(
            cache.answers.lock().unwrap_or_else(PoisonError::into_inner).len() <= PROCESSES_MAX
        );
    }
}
