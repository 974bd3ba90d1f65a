//! The state that all actors of the world share.

use crate::oracle::Truth;
use crate::story::Story;
use skidder_os::Clock;
use skidder_read::Now;
use skidder_testkit::{SimClock, SimFs};

/// The disk, the time, what the oracle knows, and the story.
pub(crate) struct Stage {
    pub(crate) fs: SimFs,
    pub(crate) clock: SimClock,
    pub(crate) truth: Truth,
    pub(crate) story: Story,
}

impl Stage {
    pub(crate) fn new(loud: bool) -> Self {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        Self { fs, clock, truth: Truth::default(), story: Story::new(loud) }
    }

    pub(crate) fn now(&self) -> Now {
        Now { wall: self.clock.wall(), monotonic: self.clock.monotonic() }
    }
}
