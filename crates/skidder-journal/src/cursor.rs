//! Cursors as `journalctl --show-cursor` prints them.

use crate::{Entry, Id};
use std::fmt;

/// The place of an entry, in several ways: which one counts depends on what another entry shares with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// The sequence of `seqnum`.
    pub seqnum_id: Id,
    /// Number of the entry in its sequence.
    pub seqnum: u64,
    /// The boot of `monotonic`.
    pub boot_id: Id,
    /// Microseconds since the boot.
    pub monotonic: u64,
    /// Microseconds since 1970-01-01 UTC.
    pub realtime: u64,
    /// A hash of the fields: tells entries of one time apart.
    pub xor_hash: u64,
}

/// A text that is no cursor.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no cursor of a journal; expected `s=…;i=…;b=…;m=…;t=…;x=…`")]
pub struct BadCursor(pub String);

impl Cursor {
    /// The cursor of an entry of a file with this `seqnum_id`.
    pub fn of(entry: &Entry, seqnum_id: Id) -> Self {
        Self {
            seqnum_id,
            seqnum: entry.seqnum,
            boot_id: entry.boot_id,
            monotonic: entry.monotonic,
            realtime: entry.realtime,
            xor_hash: entry.xor_hash,
        }
    }

    /// Reads the text of a cursor, in which no part may be missing.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, BadCursor> {
        Self::read(text).ok_or_else(|| BadCursor(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        let (mut ids, mut numbers) = ([None; 2], [None; 4]);
        for part in text.split(';') {
            let (name, value) = part.split_once('=')?;
            let number = || u64::from_str_radix(value, 16).ok();
            match name {
                "s" => ids[0] = Id::parse(value),
                "b" => ids[1] = Id::parse(value),
                "i" => numbers[0] = number(),
                "m" => numbers[1] = number(),
                "t" => numbers[2] = number(),
                "x" => numbers[3] = number(),
                _ => {}
            }
        }
        Some(Self {
            seqnum_id: ids[0]?,
            seqnum: numbers[0]?,
            boot_id: ids[1]?,
            monotonic: numbers[1]?,
            realtime: numbers[2]?,
            xor_hash: numbers[3]?,
        })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seqnum_id, seqnum, boot_id, monotonic, realtime, xor_hash } = self;
        write!(
            out,
            "s={seqnum_id};i={seqnum:x};b={boot_id};m={monotonic:x};t={realtime:x};x={xor_hash:x}"
        )
    }
}
