//! The reader of one source: each turn takes one chunk of bytes from its file and makes a batch of its
//! whole lines.
//!
//! Promises: bytes are given out in order, each once, as long as the file only grows; a batch holds whole
//! lines; between turns only the decompressed text that no batch had room for is kept, at most one chunk and a line.

mod arriving;
mod batch;
mod carry;
mod cut;
mod fill;
mod parsed;
mod records;
mod rest;
mod resume;
mod scratch;
mod table;
mod tail;
mod target;

use crate::cursors::Cursors;
use crate::fingerprint::{Fingerprint, read_up_to};
use crate::metrics::ReadMetrics;
use crate::pool::{BufferPool, CHUNK_BYTES};
use crate::settings::FilestreamSettings;
use skidder_decode::{Checkpoint, Decoder, DecoderPool};
use skidder_event::{Batch, Map, Recycle, ResumePoint, SourceId, Tail};
use skidder_event::{Bind, Bound};
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{File, FileId, Fs, Timestamp, open_same};
use std::io;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use records::Framing;
pub(crate) use rest::Rest;
pub use scratch::Scratch;
pub(crate) use table::Tabling;
pub use target::{ShownPrint, Target};

/// Bytes before a cursor that are checked when a file is read on.
pub(crate) const TAIL_BYTES: usize = 256;

/// Such a value covers at most so many: one that ends in a short batch covers what the one before it did as well.
const TAIL_BYTES_MAX: usize = 2 * TAIL_BYTES - 1;

/// The least that is read at once while lines are short.
const READ_BYTES_MIN: usize = 32 << 10;

/// The same of a plain file of which a batch needs less: what no batch has room for is read again.
const PLAIN_BYTES_MIN: usize = 4 << 10;

/// Decompressed bytes that one turn skips at most on the way to a cursor, so that others get a turn.
const SKIP_BYTES_PER_TURN: u64 = 64 << 20;

/// Everything that the readers of one input share.
pub struct InputContext {
    /// The input's settings.
    pub settings: FilestreamSettings,
    /// The plan of the input.
    pub bind: Arc<dyn Bind>,
    /// Saved state.
    pub cursors: Arc<dyn Cursors>,
    /// The file system.
    pub fs: Arc<dyn Fs>,
    /// The counters.
    pub metrics: Arc<ReadMetrics>,
    /// Buffers.
    pub buffers: Arc<BufferPool>,
    /// Decoders.
    pub decoders: DecoderPool,
    /// Most lines of a batch, but for half as many more where a file ends.
    pub rows_max: usize,
}

/// How a turn ended.
#[derive(Debug)]
pub enum TurnEnd {
    /// There is more to read at once.
    More,
    /// The end of a plain file, or of a compressed one that is still being written.
    Waiting,
    /// A processor has to know something about the source first: again after this time.
    Held(Duration),
    /// The verified end of a compressed file.
    Finished,
    /// Another file is at the path now; the next scan finds it.
    Displaced,
    /// The file is shorter than what was read, or holds something else before the cursor.
    Rewritten,
    /// The rest of the file cannot be decoded.
    Damaged,
    /// The file could not be opened or read.
    Failed(io::Error),
}

/// One source being read.
pub struct Reader {
    /// The source.
    pub id: SourceId,
    /// Its key in the registry.
    pub key: Arc<str>,
    /// Its generation.
    pub generation: u32,
    /// Where its file is.
    pub target: Target,
    /// End of the last line that was given out.
    pub offset: u64,
    /// Check value of the bytes before `offset`.
    pub tail: Option<Tail>,
    /// Whether `offset` is the verified end of a compressed file.
    pub finished: bool,
    /// Whether what was decompressed failed an integrity check.
    pub unverified: bool,
    /// Bytes of the file, as stored, that were looked at: what is behind `offset` there is no whole line.
    pub stored_seen: u64,
    /// When its last turn was.
    pub(crate) turn_at: Timestamp,
    file: Option<Box<dyn File>>,
    decoder: Option<Decoder>,
    /// Bytes behind `offset` that were decompressed already.
    carry: carry::Carry,
    /// A checkpoint behind `offset`, for a later batch.
    checkpoint: Option<Arc<CodecPoint>>,
    /// Inside a line that is too long, of which everything is thrown away.
    skipping: bool,
    /// The damage that ends the file was reported.
    damage_reported: bool,
    bound: Option<(u64, Arc<dyn Bound>)>,
    /// What its events have besides, if it is an object.
    more_fields: Option<Arc<Map>>,
    line_bytes_mean: usize,
    /// End of the bytes that were looked at, part of a line and unfinished groups included.
    seen: u64,
    /// The same before this turn.
    seen_before: u64,
    parsing: parsed::Parsing,
}

/// A checkpoint as batches carry it.
#[derive(Debug)]
struct CodecPoint(Checkpoint);

impl ResumePoint for CodecPoint {
    fn offset(&self) -> u64 {
        self.0.decompressed_offset()
    }

    fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }
}

impl Reader {
    /// A reader that will open its file in its first turn.
    pub fn new(
        id: SourceId,
        key: Arc<str>,
        generation: u32,
        target: Target,
        offset: u64,
        tail: Option<Tail>,
    ) -> Self {
        Self {
            id,
            key,
            generation,
            target,
            offset,
            tail,
            finished: false,
            unverified: false,
            stored_seen: 0,
            turn_at: Timestamp::default(),
            file: None,
            decoder: None,
            carry: carry::Carry::default(),
            checkpoint: None,
            skipping: false,
            damage_reported: false,
            bound: None,
            more_fields: None,
            line_bytes_mean: 0,
            seen: offset,
            seen_before: offset,
            parsing: parsed::Parsing::default(),
        }
    }

    /// Whether the file is open.
    pub fn is_open(&self) -> bool {
        self.file.is_some()
    }

    /// End of the bytes that were looked at: behind `offset` is part of a line, or a group of lines that is
    /// not complete.
    pub(crate) fn seen(&self) -> u64 {
        self.seen.max(self.offset)
    }

    /// Whether the last turn has looked at more than the one before it, at the end for now: lines that wait for others came
    /// just now as well.
    pub(crate) fn has_seen_more(&self) -> bool {
        self.seen() > self.seen_before
    }

    /// A turn has looked at everything up to `seen`, if that is the end for now.
    fn has_seen(&mut self, seen: u64, end: &TurnEnd) {
        self.seen = if matches!(end, TurnEnd::Waiting) { seen } else { 0 };
    }

    /// The open file.
    pub fn file(&self) -> Option<&dyn File> {
        self.file.as_deref()
    }

    /// Reads on in this file, which is the one that its target names.
    pub(crate) fn take_file(&mut self, context: &InputContext, file: Box<dyn File>) {
        context.metrics.opened.add(1);
        context.metrics.open.add(1);
        if self.target.compressed {
            context.metrics.gzip_opened.add(1);
        }
        self.file = Some(file);
        self.damage_reported = false;
    }

    /// Closes the file and drops the decoder; `offset` stays.
    pub fn close(&mut self, context: &InputContext) {
        drop(self.close_later(context));
    }

    /// The same, but returns the file, so that the caller closes it where nothing waits for that.
    pub(crate) fn close_later(&mut self, context: &InputContext) -> Option<Box<dyn File>> {
        let file = self.file.take();
        if file.is_some() {
            context.metrics.closed.add(1);
            context.metrics.open.sub(1);
        }
        self.release_decoder();
        self.forget_groups(false);
        self.bound = None;
        file
    }

    /// Whether its decoder has megabytes: any but the one of gzip.
    pub fn has_large_decoder(&self) -> bool {
        matches!(self.decoder, Some(Decoder::Framed(_)))
    }

    /// Drops the decoder: the next turn resumes from the registry's checkpoint.
    pub fn release_decoder(&mut self) {
        self.decoder = None;
        self.carry.clear();
        self.checkpoint = None;
        self.skipping = false;
    }

    /// Begins again at zero.
    pub fn restart(&mut self, generation: u32) {
        self.generation = generation;
        self.offset = 0;
        self.tail = None;
        self.finished = false;
        self.unverified = false;
        self.stored_seen = 0;
        self.damage_reported = false;
        self.seen = 0;
        self.forget_groups(true);
        self.release_decoder();
    }

    /// The fields of the source have changed.
    pub fn rebind(&mut self) {
        self.bound = None;
    }

    /// Takes one turn: at most one chunk of bytes, at most one batch.
    pub fn turn(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        self.seen = 0;
        self.turn_at = now;
        match self.prepare(context, scratch) {
            Ok(None) => {}
            Ok(Some(end)) => return (None, end),
            Err(error) => return (None, TurnEnd::Failed(error)),
        }
        if self.bound.is_none()
            && context.bind.can_hold()
            && let Some(span) = context.bind.hold(&self.fields(context))
        {
            return (None, TurnEnd::Held(span));
        }
        if context.settings.is_direct() {
            self.read(context, scratch, now)
        } else {
            self.read_parsed(context, scratch, now)
        }
    }

    /// Opens and verifies the file and brings the decoder to `offset`.
    fn prepare(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
    ) -> io::Result<Option<TurnEnd>> {
        if self.file.is_none()
            && let Some(end) = self.open(context)?
        {
            return Ok(Some(end));
        }
        if self.decoder.is_none() {
            self.decoder = Some(self.start_decoder(context)?);
        }
        self.reach_offset(context, scratch)
    }

    fn open(&mut self, context: &InputContext) -> io::Result<Option<TurnEnd>> {
        let Some(file) = open_target(&*context.fs, &self.target)? else {
            return Ok(Some(TurnEnd::Displaced));
        };
        self.take_file(context, file);
        Ok(None)
    }

    /// Whether a plain file still holds what was read: it is long enough, and the bytes before the
    /// cursor are the same.
    fn is_as_read(&self, context: &InputContext, scratch: &mut Scratch) -> io::Result<bool> {
        let Some(file) = self.file.as_ref().filter(|_| !self.target.compressed) else {
            return Ok(true);
        };
        if sabotage::is_on(Sabotage::TailUnchecked) {
            return Ok(file.metadata()?.size >= self.offset);
        }
        let tail = self.tail.filter(|tail| tail.len > 0);
        let print = &self.target.print;
        let print_start = if print.whole { 0 } else { context.settings.fingerprint.offset };
        let print_end = print_start + u64::from(print.len);
        // The whole beginning identifies the file better than the part that was read, which may be empty.
        if (tail.is_none() || self.offset < print_end)
            && let Some(head) = scratch.compressed.get_mut(..print.len as usize)
        {
            let count = read_up_to(&**file, head, print_start)?;
            let found = Fingerprint { whole: print.whole, ..Fingerprint::of(&head[..count]) };
            if found != *print {
                return Ok(false);
            }
        }
        let Some(tail) = tail else {
            return Ok(self.offset == 0 || file.metadata()?.size >= self.offset);
        };
        let mut bytes = [0; TAIL_BYTES_MAX];
        let Some(bytes) = bytes.get_mut(..tail.len as usize) else { return Ok(true) };
        let count = read_up_to(&**file, bytes, self.offset.saturating_sub(u64::from(tail.len)))?;
        Ok(count == bytes.len() && crc32fast::hash(bytes) == tail.crc)
    }

    /// Reads one chunk and cuts it into lines.
    fn read(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        let mut parts = context.buffers.take();
        let mut filled = 0;
        let mut wanted = self.begin_turn_bytes(context);
        let mut has_line = false;
        let end = loop {
            if parts.bytes.len() < wanted {
                parts.bytes.resize(wanted, 0);
            }
            let before = filled;
            let end = self.fill(context, scratch, &mut parts.bytes[..wanted], &mut filled);
            has_line |= memchr::memrchr(b'\n', &parts.bytes[before..filled]).is_some();
            if has_line || self.skipping || !matches!(end, TurnEnd::More) {
                break end;
            }
            // A carriage return before the line feed is no part of the line.
            let bytes_max = context.settings.line_bytes_max() + 1;
            if filled > bytes_max {
                self.skipping = true;
                break end;
            }
            wanted = (wanted * 2).min(bytes_max + 1);
        };
        if let Some(wrong) = self.find_wrong(context, scratch, &parts.bytes[..filled], &end) {
            context.buffers.recycle(parts);
            return (None, wrong);
        }
        self.finish_turn(context, parts, filled, has_line, end, now)
    }

    /// Each time, and after reading: what was truncated and written anew, even a moment ago, must not be
    /// taken for what follows. Returns the end of the turn if `text`, which was read, is not what was expected.
    fn find_wrong(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        text: &[u8],
        end: &TurnEnd,
    ) -> Option<TurnEnd> {
        let expected = self.begins_as_expected(context, text, end);
        match self.is_as_read(context, scratch) {
            Ok(true) if expected => None,
            wrong => {
                self.release_decoder();
                Some(wrong.map_or_else(TurnEnd::Failed, |_| TurnEnd::Rewritten))
            }
        }
    }

    /// Whether the first bytes of a compressed file are those that the scan found: the device and inode with
    /// which it was opened may be those of another one by now. Later ones are proved by what is before the
    /// cursor.
    fn begins_as_expected(&self, context: &InputContext, text: &[u8], end: &TurnEnd) -> bool {
        if !self.target.compressed || self.offset > 0 || self.skipping {
            return true;
        }
        let print = &self.target.print;
        let start = if print.whole { 0 } else { context.settings.fingerprint.offset as usize };
        match text.get(start..start + print.len as usize) {
            Some(head) => *print == Fingerprint { whole: print.whole, ..Fingerprint::of(head) },
            None => !matches!(end, TurnEnd::Finished),
        }
    }

    /// Begins to fill a buffer; returns how far. A batch of lines that were decompressed already needs no more of them.
    fn begin_turn_bytes(&mut self, context: &InputContext) -> usize {
        self.carry.begin_turn();
        let batch = self.line_bytes_mean * context.rows_max;
        // Half as many lines more are taken where the file ends: the decoder must come to it for that.
        // The rest of a line beyond all bounds is skipped as fast as it comes.
        if !self.skipping && batch > 0 && self.carry.len() > batch + batch / 2 {
            return batch.min(CHUNK_BYTES);
        }
        self.read_bytes(context)
    }

    /// Bytes to read at once: about as many as fill a batch with lines of the usual length.
    fn read_bytes(&self, context: &InputContext) -> usize {
        let batch = match self.line_bytes_mean {
            0 => return CHUNK_BYTES,
            mean => mean * context.rows_max,
        };
        let least = context.settings.buffer_size.max(READ_BYTES_MIN);
        let least = match self.decoder {
            // Half as many lines more are taken where the file ends.
            Some(Decoder::Plain { .. }) if !self.skipping => {
                least.min((batch + batch / 2).max(PLAIN_BYTES_MIN))
            }
            _ => least,
        };
        batch.clamp(least, CHUNK_BYTES.max(least))
    }
}

/// Opens the file that a target names; returns `None` if its path leads to another file, or to none.
pub(crate) fn open_target(fs: &dyn Fs, target: &Target) -> io::Result<Option<Box<dyn File>>> {
    let id = FileId { device: target.device, inode: target.inode };
    match open_same(fs, &target.path, id) {
        Ok(file) => Ok(Some(file)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::Interrupted) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Whether what follows the last line feed is a line: nothing can follow it any more.
fn is_last(context: &InputContext, end: &TurnEnd) -> bool {
    matches!(end, TurnEnd::Finished | TurnEnd::Damaged)
        || (context.settings.final_line && matches!(end, TurnEnd::Waiting))
}

#[cfg(test)]
mod parsed_tests;
#[cfg(test)]
mod tests;
