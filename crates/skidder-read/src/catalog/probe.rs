//! Reads from files what the catalog needs to know about their bytes: beginnings, fingerprints of any length, and
//! whether a file still has the bytes that were read from it.
//!
//! A probe changes nothing and remembers nothing. It knows files, not sources.

use super::{Candidate, FirstDifference, Source};
use crate::compare::{Comparison, Longer, PartCrc, Side, Verdict, crc_of, fingerprint_of};
use crate::fingerprint::{Fingerprint, Head, HeadError, read_head, read_up_to};
use crate::reader::{InputContext, TAIL_BYTES};
use crate::readers::{ReaderLook, Readers};
use crate::scan::Found;
use crate::settings::Compression;
use skidder_event::{Recycle as _, Tail};
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{FileId, Metadata, is_out_of_descriptors, open_same};
use skidder_registry::Cursor;
use std::cell::OnceCell;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Bytes read at once for beginnings, comparisons and long fingerprints: a part of a buffer of the pool.
const SCRATCH_BYTES: usize = 64 << 10;

/// Bytes read at once for an unusual fingerprint.
const PRINT_SCRATCH_BYTES: usize = 16 << 10;

/// How far a compressed file that begins as another one is decoded to see whether it is the one of an entry: some tenths of
/// a second. Beyond that its lines come again.
const READ_BYTES_DECODED_MAX: u64 = 32 << 20;

/// How far a compressed file is decoded to check the bytes before a cursor.
const PROOF_DECODED_BYTES_MAX: u64 = 1 << 20;

/// Compressed bytes read at once for this check.
const PROOF_SCRATCH_BYTES: usize = 16 << 10;

/// Bytes at the end of a duplicate that are compared each time its original grows.
const END_BYTES: u64 = 512;

/// Reads files of one input.
pub(super) struct Probe {
    input: Arc<InputContext>,
    /// Readers close files when the process runs out of descriptors.
    readers: Arc<Readers>,
}

impl Probe {
    pub(super) fn new(input: Arc<InputContext>, readers: Arc<Readers>) -> Self {
        Self { input, readers }
    }

    /// Runs `work` with memory of the pool that all inputs share: an input whose files are idle holds none.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut parts = self.input.buffers.take();
        let done = work(&mut parts.bytes[..SCRATCH_BYTES]);
        self.input.buffers.recycle(parts);
        done
    }

    /// The beginning of a file, or `None` while it is too short to distinguish it from other files.
    pub(super) fn head(
        &self,
        found: &Found,
        compression: Compression,
    ) -> Result<Option<Head>, HeadError> {
        if found.metadata.size == 0 {
            return Ok(None);
        }
        let head = self.any_head(found, compression)?;
        let settings = &self.input.settings;
        let enough = match settings.fingerprint.growing {
            _ if !settings.identity.is_content() => 0,
            true => 1,
            false => settings.fingerprint.length as usize,
        };
        Ok((head.bytes.len() >= enough).then_some(head))
    }

    /// The beginning of a file, however short.
    pub(super) fn any_head(
        &self,
        found: &Found,
        compression: Compression,
    ) -> Result<Head, HeadError> {
        let settings = &self.input.settings;
        let by_content = settings.identity.is_content();
        if !by_content && !settings.fingerprint.enabled {
            let head = Head {
                bytes: Vec::new(),
                compressed: false,
                growing: false,
                print: OnceCell::new(),
            };
            return Ok(head);
        }
        let (fs, id) = (&*self.input.fs, found.metadata.id());
        let file = match open_same(fs, &found.path, id) {
            Err(error) if is_out_of_descriptors(&error) && self.readers.give_way() => {
                open_same(fs, &found.path, id)?
            }
            opened => opened?,
        };
        let length = settings.fingerprint.length as usize;
        let (print, decoders) = (&settings.fingerprint, &self.input.decoders);
        self.with_scratch(|scratch| {
            read_head(&*file, compression, print, length, decoders, scratch)
        })
    }

    /// Opens a found file to compare it.
    fn side_of(&self, candidate: &Candidate) -> io::Result<Side> {
        let file = open_same(&*self.input.fs, &candidate.path, candidate.found.metadata.id())?;
        Ok(Side::new(file, candidate.head.compressed, &self.input.decoders))
    }

    /// Whether a compressed file is seen to have the bytes before a cursor. It begins as another file does, so that its
    /// beginning does not show that it is the file of the cursor.
    pub(super) fn has_read_bytes(&self, candidate: &Candidate, cursor: &Cursor) -> bool {
        let Some(tail) = cursor.tail.filter(|tail| tail.len > 0) else { return false };
        let Some(start) = cursor.offset.checked_sub(tail.len.into()) else { return false };
        if !candidate.head.compressed || cursor.offset > READ_BYTES_DECODED_MAX {
            return false;
        }
        let side = self.side_of(candidate);
        let crc =
            side.and_then(|side| crc_of(side, start, tail.len, &mut vec![0; PRINT_SCRATCH_BYTES]));
        matches!(crc, Ok(PartCrc::Is(crc)) if crc == tail.crc)
    }

    /// The fingerprint of the first `len` bytes that fingerprints cover, or `None` if the file is shorter.
    pub(super) fn print_of(
        &self,
        candidate: &Candidate,
        len: u32,
    ) -> io::Result<Option<Fingerprint>> {
        let side = self.side_of(candidate)?;
        let offset = self.input.settings.fingerprint.offset;
        self.with_scratch(|scratch| fingerprint_of(side, offset, len, scratch))
    }

    /// The fingerprint of a file over the bytes that the fingerprint `like` covers.
    pub(super) fn print_like(
        &self,
        candidate: &Candidate,
        like: &Fingerprint,
    ) -> io::Result<Option<Fingerprint>> {
        let side = self.side_of(candidate)?;
        let offset = if like.whole { 0 } else { self.input.settings.fingerprint.offset };
        let mut scratch = vec![0; PRINT_SCRATCH_BYTES];
        let print = fingerprint_of(side, offset, like.len, &mut scratch)?;
        Ok(print.map(|print| Fingerprint { whole: like.whole, ..print }))
    }

    /// The same, from the bytes in memory if they are enough; `None` if the file is too short or cannot be read.
    pub(super) fn print_as(
        &self,
        candidate: &Candidate,
        like: &Fingerprint,
    ) -> Option<Fingerprint> {
        let head = &candidate.head;
        if !head.compressed && candidate.found.metadata.size < u64::from(like.len) {
            return None;
        }
        match head.print_of_first(like.len) {
            Some(print) if !like.whole => Some(print),
            _ => self.print_like(candidate, like).ok().flatten(),
        }
    }

    /// The fingerprint that events of a file carry if files are identified by name; empty if they carry none.
    pub(super) fn print_shown(&self, candidate: &Candidate) -> Fingerprint {
        let settings = &self.input.settings.fingerprint;
        let complete = settings.enabled && candidate.head.bytes.len() >= settings.length as usize;
        Fingerprint::of(if complete { &candidate.head.bytes } else { &[] })
    }

    /// The fingerprint of a new source: the usual one, or as long as it takes to differ from another source.
    pub(super) fn new_print(
        &self,
        candidate: &Candidate,
        differs_at: FirstDifference,
    ) -> io::Result<Fingerprint> {
        let settings = &self.input.settings.fingerprint;
        let have = candidate.head.bytes.len() as u64;
        if let Some((at, _)) = differs_at
            && at < settings.offset
        {
            let len = u32::try_from(settings.offset + have).unwrap_or(u32::MAX);
            let wanted = Fingerprint { hash: [0; 32], len, whole: true };
            let print = self.print_like(candidate, &wanted)?;
            return print.ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        }
        let mut needed = differs_at.map_or(0, |(at, _)| (at + 1).saturating_sub(settings.offset));
        if let Some((_, Some(Longer::One))) = differs_at
            && !candidate.head.compressed
        {
            // The other file may still grow to have the same bytes: cover as many as possible.
            let size = candidate.found.metadata.size.saturating_sub(settings.offset);
            needed = size.min(needed + u64::from(settings.length)).max(needed);
        }
        if needed <= have {
            return Ok(candidate.head.print());
        }
        let len = u32::try_from(needed).unwrap_or(u32::MAX);
        let print = self.print_of(candidate, len)?;
        print.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Whether a compressed file has the bytes that were read before `offset`, or `None` if this was not checked. The reader
    /// checks all of them later; but if the fingerprint is `doubtful`, other files begin with the same bytes.
    pub(super) fn compressed_fits(
        &self,
        candidate: &Candidate,
        doubtful: bool,
        offset: u64,
        tail: Option<Tail>,
    ) -> Option<bool> {
        let settings = &self.input.settings.fingerprint;
        let tail = tail.filter(|tail| tail.len > 0 && u64::from(tail.len) <= offset)?;
        let start = offset - u64::from(tail.len);
        let head = start.checked_sub(settings.offset).and_then(|from| {
            let from = usize::try_from(from).ok()?;
            candidate.head.bytes.get(from..from + tail.len as usize)
        });
        if let Some(bytes) = head {
            return Some(crc32fast::hash(bytes) == tail.crc);
        }
        if !candidate.head.growing && candidate.head.bytes.len() < settings.length as usize {
            // All of it is in the head, and is shorter than that.
            return Some(false);
        }
        if !doubtful || offset > PROOF_DECODED_BYTES_MAX {
            return None;
        }
        let fits = self
            .side_of(candidate)
            .and_then(|side| crc_of(side, start, tail.len, &mut vec![0; PROOF_SCRATCH_BYTES]));
        match fits {
            Ok(PartCrc::Is(crc)) => Some(crc == tail.crc),
            Ok(PartCrc::Shorter) => Some(false),
            // Bytes that are not written yet, or cannot be read now, disprove nothing.
            Ok(PartCrc::NotYet) | Err(_) => None,
        }
    }

    /// Whether a plain file is long enough for its reader, and has the right bytes before the reader's offset.
    pub(super) fn look_fits(&self, candidate: &Candidate, look: &ReaderLook) -> bool {
        self.tail_fits(&candidate.path, &candidate.found.metadata, look.offset, look.tail)
    }

    /// The same for an offset. A file that cannot be read passes if it is long enough: its reader will fail with the error.
    pub(super) fn tail_fits(
        &self,
        path: &Path,
        metadata: &Metadata,
        offset: u64,
        tail: Option<Tail>,
    ) -> bool {
        self.is_as_read(path, metadata, offset, tail).unwrap_or(metadata.size >= offset)
    }

    /// The same, or the error that prevented the check.
    pub(super) fn is_as_read(
        &self,
        path: &Path,
        metadata: &Metadata,
        offset: u64,
        tail: Option<Tail>,
    ) -> io::Result<bool> {
        // It may have grown, and been read, since it was listed.
        let listed = metadata.size >= offset;
        if sabotage::is_on(Sabotage::TailUnchecked) {
            return Ok(listed);
        }
        let Some(tail) = tail.or((!listed).then_some(Tail { len: 0, crc: 0 })) else {
            return Ok(true);
        };
        let mut bytes = vec![0; tail.len as usize];
        let start = offset.saturating_sub(u64::from(tail.len));
        let file = open_same(&*self.input.fs, path, metadata.id())?;
        let now = file.metadata()?;
        let count = read_up_to(&*file, &mut bytes, start)?;
        let same = count == bytes.len() && crc32fast::hash(&bytes) == tail.crc;
        Ok(now.size >= offset && same)
    }

    /// The checksum of the last bytes of a plain file whose content is skipped: it shows later that the file is still the
    /// same.
    pub(super) fn tail_at(&self, path: &Path, meta: &Metadata) -> Option<skidder_registry::Tail> {
        let mut bytes = [0; TAIL_BYTES];
        let len = (meta.size as usize).min(TAIL_BYTES);
        let file = open_same(&*self.input.fs, path, meta.id()).ok()?;
        let count = read_up_to(&*file, &mut bytes[..len], meta.size - len as u64).ok()?;
        (count == len).then(|| skidder_registry::Tail {
            len: len as u32,
            crc: crc32fast::hash(&bytes[..len]),
        })
    }

    /// Whether two plain files have the same bytes before `size`.
    pub(super) fn ends_alike(
        &self,
        one: (&Path, FileId),
        other: (&Path, FileId),
        size: u64,
    ) -> bool {
        let start = size.saturating_sub(END_BYTES);
        let end = |(path, id): (&Path, FileId)| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; (size - start) as usize];
            let file = open_same(&*self.input.fs, path, id)?;
            let count = read_up_to(&*file, &mut bytes, start)?;
            bytes.truncate(count);
            Ok(bytes)
        };
        match (end(one), end(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        }
    }

    /// Opens a found file and the file of a source to compare them.
    pub(super) fn compare(&self, candidate: &Candidate, source: &Source) -> io::Result<Comparison> {
        let other = FileId { device: source.device, inode: source.inode };
        let other = open_same(&*self.input.fs, &source.path, other)?;
        let other = Side::new(other, source.compressed, &self.input.decoders);
        Ok(Comparison::new(self.side_of(candidate)?, other))
    }

    /// Compares up to `budget` more bytes of two files.
    pub(super) fn step(
        &self,
        comparison: &mut Comparison,
        budget: &mut u64,
    ) -> io::Result<Verdict> {
        self.with_scratch(|scratch| comparison.step(scratch, budget))
    }
}
