//! The files of systemd's journal: <https://systemd.io/JOURNAL_FILE_FORMAT>.
//!
//! A [`JournalFile`] reads one file by positional reads, while journald may still write to it, and as far as it is not
//! damaged. Which files there are, their order and when to look again is up to the caller.

mod blocks;
mod cursor;
mod file;
#[cfg(test)]
mod fuzz;
mod header;
mod payload;
#[cfg(test)]
mod tests;

pub use cursor::{BadCursor, Cursor};
pub use file::{Entry, JournalFile};
pub use header::{Header, State};
pub use payload::PAYLOAD_BYTES_MAX;

use std::fmt;

/// An id of 128 bits: of a file, a machine, a boot, or a sequence of numbers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub [u8; 16]);

impl Id {
    /// Reads 32 hexadecimal digits; dashes between them are allowed, as in `/etc/machine-id` of some systems.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.chars().filter(|digit| *digit != '-');
        let mut bytes = [0; 16];
        let mut count = 0;
        for digit in digits {
            let value = digit.to_digit(16)? as u8;
            *bytes.get_mut(count / 2)? |= if count % 2 == 0 { value << 4 } else { value };
            count += 1;
        }
        (count == 32).then_some(Self(bytes))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// Why something of a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Try again later.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Try again when the file has changed: journald may be about to write the header.
    #[error("it has no header of a journal file")]
    NoJournal,
    /// Leave the file alone.
    #[error(
        "it was written by a newer systemd, with features that are not known here (flags {0:#x})"
    )]
    Unsupported(u32),
    /// Go on behind it.
    #[error("damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the damaged object begins.
        offset: u64,
        /// The damage.
        what: &'static str,
    },
}
