//! The text of a cursor: how many bytes of messages were read, journalctl's cursor of the last entry, and how far each
//! open file was read, since numbers and times of entries of several files are not always in order.

use skidder_journal::{Cursor, Id};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The version of the text of a cursor.
pub(super) const VERSION: u32 = 1;

/// Files that are written into a cursor, at most; for others the entry's own cursor counts.
const FILES_MAX: usize = 256;

/// Behind the last entry that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes of messages so far.
    pub(super) offset: u64,
    /// The last entry.
    pub(super) cursor: Option<Cursor>,
    /// For each file the number of the last entry that was read; 0 if none was.
    pub(super) files: BTreeMap<Id, u64>,
}

impl Place {
    /// The text of a cursor.
    pub(super) fn text(&self) -> String {
        let mut text = self.offset.to_string();
        let mut add = |part: std::fmt::Arguments<'_>| {
            text.write_fmt(part).expect("a text has room");
        };
        match &self.cursor {
            Some(cursor) => add(format_args!(" {cursor}")),
            None => add(format_args!(" -")),
        }
        for (file, seqnum) in self.files.iter().take(FILES_MAX) {
            add(format_args!(" {file}:{seqnum:x}"));
        }
        text
    }

    /// Reads that text, or a cursor of journalctl; `None` if it is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(cursor) = Cursor::parse(text) {
            return Some(Self { cursor: Some(cursor), ..Self::default() });
        }
        let mut parts = text.split(' ');
        let offset = parts.next()?.parse().ok()?;
        let cursor = match parts.next()? {
            "-" => None,
            cursor => Some(Cursor::parse(cursor).ok()?),
        };
        let mut files = BTreeMap::new();
        for part in parts {
            let (file, seqnum) = part.split_once(':')?;
            files.insert(Id::parse(file)?, u64::from_str_radix(seqnum, 16).ok()?);
        }
        Some(Self { offset, cursor, files })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let cursor = Cursor {
            seqnum_id: Id([1; 16]),
            seqnum: 2,
            boot_id: Id([3; 16]),
            monotonic: 4,
            realtime: 5,
            xor_hash: 6,
        };
        let files = BTreeMap::from([(Id([7; 16]), 8), (Id([9; 16]), 0)]);
        for cursor in [None, Some(cursor)] {
            let place = Place { offset: 10, cursor, files: files.clone() };
            assert_eq!(Place::parse(&place.text()), Some(place));
        }
        let of_journalctl = Place::parse(&cursor.to_string()).unwrap();
        assert_eq!((of_journalctl.cursor, of_journalctl.offset), (Some(cursor), 0));
        for wrong in ["", "x", "1", "1 x", "1 - x", "1 - 07:1"] {
            assert_eq!(Place::parse(wrong), None, "{wrong}");
        }
    }
}
