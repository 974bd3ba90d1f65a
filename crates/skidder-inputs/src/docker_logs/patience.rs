//! How long an answer may bring nothing before the log is requested anew.
//!
//! The engine's own following can hang for good after its files were rotated (seen with the driver `local` and a small
//! `max-size`), and a quiet container looks the same from here. A request anew costs little, since the cursor skips what was
//! read. But the engine may also be busy: it looks through its files for the first message, or for one of the stream that
//! was asked for, and says nothing meanwhile. There it gets more and more time, so that it comes to an end.

use std::time::Duration;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// After something new came.
    pub(super) first: Duration,
    /// At most.
    pub(super) most: Duration,
    /// At most, where the engine may be looking for something.
    pub(super) most_busy: Duration,
}

impl Patience {
    /// With a real engine.
    pub(super) const USUAL: Self = Self {
        first: Duration::from_secs(15),
        most: Duration::from_mins(1),
        most_busy: Duration::from_mins(10),
    };

    /// The time after so many answers in a row that brought nothing new.
    pub(super) fn after(self, answers: u32, may_be_busy: bool) -> Duration {
        let most = if may_be_busy { self.most_busy } else { self.most };
        self.first.saturating_mul(2_u32.saturating_pow(answers)).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_as_long_as_nothing_new_comes() {
        let seconds = |may_be_busy| {
            [0, 1, 2, 3, 5, 6, 1000].map(|it| Patience::USUAL.after(it, may_be_busy).as_secs())
        };
        assert_eq!(seconds(false), [15, 30, 60, 60, 60, 60, 60]);
        assert_eq!(seconds(true), [15, 30, 60, 120, 480, 600, 600]);
    }
}
