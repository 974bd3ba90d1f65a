//! The header of a file.

use crate::{Id, JournalError};

/// Bytes of the first version's header; later versions only add to it.
pub(crate) const HEADER_BYTES_MIN: usize = 208;

/// Bytes of an entry without fields.
const ENTRY_BYTES_MIN: u64 = 64;

const SIGNATURE: &[u8] = b"LPKSHHRH";

/// Flags of files that cannot be read without knowing what they mean.
const COMPRESSED_XZ: u32 = 1;
const COMPRESSED_LZ4: u32 = 2;
const KEYED_HASH: u32 = 4;
const COMPRESSED_ZSTD: u32 = 8;
const COMPACT: u32 = 16;
const KNOWN: u32 = COMPRESSED_XZ | COMPRESSED_LZ4 | KEYED_HASH | COMPRESSED_ZSTD | COMPACT;

/// Whether the writer has closed a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Closed; it may be opened for writing again.
    Offline,
    /// Open, or its writer crashed.
    Online,
    /// Closed for good.
    Archived,
    /// A number that has no meaning yet.
    Other(u8),
}

/// A header as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whether the writer has closed it.
    pub state: State,
    /// Numbers of objects have 4 bytes instead of 8, and data objects a longer head.
    pub(crate) is_compact: bool,
    /// Which file it is.
    pub file_id: Id,
    /// Of the machine that it is of.
    pub machine_id: Id,
    /// Which sequence the numbers of its entries belong to: files of one journald share it.
    pub seqnum_id: Id,
    /// Where the objects begin.
    pub(crate) size: u64,
    /// Where the objects end.
    pub(crate) end: u64,
    /// Entries that can be read.
    pub entries: u64,
    /// The number of the last entry; 0 if there is none.
    pub tail_seqnum: u64,
    /// The number of the first entry; 0 if there is none.
    pub head_seqnum: u64,
    /// The first array of entries; 0 if there is none.
    pub(crate) array: u64,
    /// When the last entry was written, in microseconds since 1970-01-01 UTC.
    pub tail_realtime: u64,
}

impl Header {
    /// Reads the header of a file of so many bytes, which bound what is believed.
    pub(crate) fn parse(bytes: &[u8; HEADER_BYTES_MIN], len: u64) -> Result<Self, JournalError> {
        if !bytes.starts_with(SIGNATURE) {
            return Err(JournalError::NoJournal);
        }
        let flags = u32_at(bytes, 12);
        if flags & !KNOWN != 0 {
            return Err(JournalError::Unsupported(flags));
        }
        let (size, arena) = (u64_at(bytes, 88), u64_at(bytes, 96));
        if size < HEADER_BYTES_MIN as u64 || !size.is_multiple_of(8) {
            return Err(JournalError::Damaged { offset: 0, what: "the header has a wrong size" });
        }
        let end = size.saturating_add(arena).min(len);
        let state = match bytes[16] {
            0 => State::Offline,
            1 => State::Online,
            2 => State::Archived,
            other => State::Other(other),
        };
        Ok(Self {
            state,
            is_compact: flags & COMPACT != 0,
            file_id: id_at(bytes, 24),
            machine_id: id_at(bytes, 40),
            seqnum_id: id_at(bytes, 72),
            size,
            end,
            entries: u64_at(bytes, 152).min(end.saturating_sub(size) / ENTRY_BYTES_MIN),
            tail_seqnum: u64_at(bytes, 160),
            head_seqnum: u64_at(bytes, 168),
            array: u64_at(bytes, 176),
            tail_realtime: u64_at(bytes, 192),
        })
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let bytes = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes)
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let bytes = bytes[at..at + 8].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

pub(crate) fn id_at(bytes: &[u8], at: usize) -> Id {
    Id(bytes[at..at + 16].try_into().expect("sixteen bytes"))
}
