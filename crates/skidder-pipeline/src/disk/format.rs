//! Bytes of the disk queue: headers of segments and frames. `FORMAT.md` beside `Cargo.toml` describes them.

use std::num::NonZeroU32;

/// First bytes of a segment.
const SEGMENT_MAGIC: [u8; 8] = *b"SKIDDERQ";

/// First bytes of a frame: a valley between two damaged places is found by them.
pub(crate) const FRAME_MAGIC: [u8; 4] = *b"\xf1sKq";

/// Versions of segments that are written: their frames have payloads of form 2, which name sources that are no files. One of
/// its own for encrypted segments, so that a program that cannot read them does not take their frames for damaged.
///
/// Versions 1 and 2 are the same two with payloads of form 1, and are read.
const VERSION: u32 = 3;
const VERSION_ENCRYPTED: u32 = 4;

/// The newest version that is read.
pub(crate) const VERSION_MAX: u32 = VERSION_ENCRYPTED;

/// Version of the state.
pub(crate) const STATE_VERSION: u32 = 1;

/// Bytes of a segment's header.
pub(crate) const SEGMENT_HEADER: usize = 64;

/// Bytes of a frame's header.
pub(crate) const FRAME_HEADER: usize = 40;

/// Names the key that payloads are encrypted with; 0 on the disk is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyId(pub(crate) NonZeroU32);

impl KeyId {
    fn to_bytes(of: Option<Self>) -> [u8; 4] {
        of.map_or(0, |id| id.0.get()).to_le_bytes()
    }

    fn at(bytes: &[u8], at: usize) -> Option<Self> {
        NonZeroU32::new(u32_at(bytes, at)).map(Self)
    }
}

/// Names a queue for its whole life, so that bytes of another one are never taken for its own.
pub(crate) type QueueId = [u8; 16];

/// A place between two frames: how many frames and events were written before it since the queue was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Number of the frame behind it.
    pub(crate) sequence: u64,
    /// Number of that frame's first event.
    pub(crate) event: u64,
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) queue: QueueId,
    /// Its number, which is its name as well.
    pub(crate) number: u64,
    /// Where its first frame stands in the queue.
    pub(crate) first: Place,
    /// The key of its frames.
    pub(crate) key: Option<KeyId>,
}

/// Why there is no header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderError {
    Damaged,
    /// The version of a later program.
    Newer(u32),
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> [u8; SEGMENT_HEADER] {
        let mut out = [0; SEGMENT_HEADER];
        out[..8].copy_from_slice(&SEGMENT_MAGIC);
        let version = if self.key.is_some() { VERSION_ENCRYPTED } else { VERSION };
        out[8..12].copy_from_slice(&version.to_le_bytes());
        out[12..16].copy_from_slice(&(SEGMENT_HEADER as u32).to_le_bytes());
        out[16..32].copy_from_slice(&self.queue);
        out[32..40].copy_from_slice(&self.number.to_le_bytes());
        out[40..48].copy_from_slice(&self.first.sequence.to_le_bytes());
        out[48..56].copy_from_slice(&self.first.event.to_le_bytes());
        out[56..60].copy_from_slice(&KeyId::to_bytes(self.key));
        let crc = crc32fast::hash(&out[..60]);
        out[60..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    pub(crate) fn decode(bytes: &[u8; SEGMENT_HEADER]) -> Result<Self, HeaderError> {
        if bytes[..8] != SEGMENT_MAGIC || crc32fast::hash(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeaderError::Damaged);
        }
        let version = u32_at(bytes, 8);
        if version == 0 || version > VERSION_MAX {
            return Err(HeaderError::Newer(version));
        }
        let mut queue = QueueId::default();
        queue.copy_from_slice(&bytes[16..32]);
        let first = Place { sequence: u64_at(bytes, 40), event: u64_at(bytes, 48) };
        Ok(Self { queue, number: u64_at(bytes, 32), first, key: KeyId::at(bytes, 56) })
    }
}

/// Where a frame stands: part of what its header is checked with, so that a frame that was copied is none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameKey {
    pub(crate) queue: QueueId,
    /// Number of the segment.
    pub(crate) segment: u64,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) place: Place,
    /// Events in it.
    pub(crate) rows: u32,
    /// Bytes of the payload.
    pub(crate) len: u32,
    /// CRC-32 of the payload, as it stands on the disk.
    pub(crate) crc: u32,
    /// The key of the payload.
    pub(crate) key: Option<KeyId>,
}

impl FrameHeader {
    /// Header and payload.
    pub(crate) fn total(&self) -> u64 {
        FRAME_HEADER as u64 + u64::from(self.len)
    }

    /// The place behind it.
    pub(crate) fn end(&self) -> Place {
        Place { sequence: self.place.sequence + 1, event: self.place.event + u64::from(self.rows) }
    }

    pub(crate) fn encode(&self, key: &FrameKey, offset: u64) -> [u8; FRAME_HEADER] {
        let mut out = [0; FRAME_HEADER];
        out[..4].copy_from_slice(&FRAME_MAGIC);
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.place.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.place.event.to_le_bytes());
        out[24..28].copy_from_slice(&self.rows.to_le_bytes());
        out[28..32].copy_from_slice(&self.crc.to_le_bytes());
        out[32..36].copy_from_slice(&KeyId::to_bytes(self.key));
        let crc = header_crc(key, offset, &out);
        out[36..].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// The header at this offset of the segment, if one stands there.
    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER], key: &FrameKey, offset: u64) -> Option<Self> {
        if bytes[..4] != FRAME_MAGIC || header_crc(key, offset, bytes) != u32_at(bytes, 36) {
            return None;
        }
        Some(Self {
            place: Place { sequence: u64_at(bytes, 8), event: u64_at(bytes, 16) },
            rows: u32_at(bytes, 24),
            len: u32_at(bytes, 4),
            crc: u32_at(bytes, 28),
            key: KeyId::at(bytes, 32),
        })
    }
}

fn header_crc(key: &FrameKey, offset: u64, header: &[u8; FRAME_HEADER]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&key.queue);
    crc.update(&key.segment.to_le_bytes());
    crc.update(&offset.to_le_bytes());
    crc.update(&header[..36]);
    crc.finalize()
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}
