//! A log of what happens, for debugging, and a digest of it for the check that a seed replays.

use skidder_testkit::Operation;
use std::path::Path;

/// Prints an operation of the program on the disk: a difference between two runs of a seed shows what does not depend
/// on the seed.
#[expect(clippy::print_stderr, reason = "asked for")]
pub(crate) fn log_operation(operation: Operation, path: &Path) {
    eprintln!("    {operation:?} {}", path.display());
}

/// Logs what happens, if enabled.
#[derive(Debug)]
pub(crate) struct Story {
    loud: bool,
    digest: u64,
    step: u64,
}

impl Story {
    pub(crate) fn new(loud: bool) -> Self {
        Self { loud, digest: 0xcbf2_9ce4_8422_2325, step: 0 }
    }

    /// A new step begins.
    pub(crate) fn step(&mut self, number: u64) {
        self.step = number;
    }

    /// Logs a sentence, which is only made if needed.
    #[expect(clippy::print_stderr, reason = "asked for")]
    pub(crate) fn log(&self, sentence: impl FnOnce() -> String) {
        if self.loud {
            eprintln!("[{}] {}", self.step, sentence());
        }
    }

    /// Adds a number to the digest: two runs of a seed must add the same ones.
    pub(crate) fn mark(&mut self, number: u64) {
        self.digest = (self.digest ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }
}
