//! From the bytes of a chunk to a batch of records that are no lines.
//!
//! What is before a record decides what it is: content is looked at from its first byte, and records before the cursor are
//! passed over.

use super::{InputContext, Reader, Scratch, TurnEnd};
use crate::pool::CHUNK_BYTES;
use skidder_decode::{Codec, Decoder};
use skidder_event::{Batch, DropReason, Parts, Row, Text};
use skidder_os::Timestamp;
use skidder_parse::records::{Finder, Found, Layout, RecordError};
use std::sync::Arc;

/// How the records of one source are found.
pub(crate) struct Framing {
    finder: Finder,
    /// Decompressed bytes; those before `taken` were looked at. Lent, and empty when all were.
    chunk: Vec<u8>,
    taken: usize,
    /// Records that end before this place were settled in an earlier run.
    settled: u64,
    /// The finder knows that the content has ended.
    is_over: bool,
    /// Why nothing can be read behind a place.
    pub(crate) wrong: Option<RecordError>,
}

impl Framing {
    /// For a source that goes on at this place; nothing if it consists of lines.
    pub(crate) fn new(layout: &Layout, bytes_max: usize, settled: u64) -> Option<Self> {
        let finder = Finder::new(layout, bytes_max)?;
        Some(Self { finder, chunk: Vec::new(), taken: 0, settled, is_over: false, wrong: None })
    }
}

impl Reader {
    /// Takes one turn over content that is no lines: at most one chunk of bytes, at most one batch. `is_whole`: what is there
    /// is all. The end of plain content is [`TurnEnd::Waiting`] as that of a file.
    pub(crate) fn turn_records(
        &mut self,
        context: &InputContext,
        framing: &mut Framing,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        if let Some(end) = self.begin_records(context, now) {
            return (None, end);
        }
        let mut end = TurnEnd::More;
        if framing.taken == framing.chunk.len() {
            framing.chunk = std::mem::take(&mut scratch.chunk);
            framing.chunk.resize(CHUNK_BYTES, 0);
            let mut filled = 0;
            end = self.fill(context, scratch, &mut framing.chunk, &mut filled);
            framing.chunk.truncate(filled);
            framing.taken = 0;
        }
        let mut found = Found::default();
        let rest = &framing.chunk[framing.taken..];
        let pushed = framing.finder.push(rest, &mut found, context.rows_max);
        let pushed = pushed.and_then(|count| {
            framing.taken += count;
            let is_last = matches!(end, TurnEnd::Finished)
                || (matches!(end, TurnEnd::Waiting)
                    && context.settings.final_line
                    && !self.target.compressed);
            if framing.taken == framing.chunk.len() && is_last && !framing.is_over {
                framing.is_over = true;
                framing.finder.end(&mut found)?;
            }
            Ok(())
        });
        if let Err(error) = pushed {
            self.report_record(context, &error);
            framing.wrong = Some(error);
            end = TurnEnd::Damaged;
        }
        if framing.taken == framing.chunk.len() {
            // Another source may have its memory.
            scratch.chunk = std::mem::take(&mut framing.chunk);
            framing.taken = 0;
        }
        // What was not looked at yet has its turn at once; the end is met again behind it.
        if framing.taken < framing.chunk.len() && !matches!(end, TurnEnd::Damaged) {
            end = TurnEnd::More;
        }
        let batch = self.batch_of_records(context, framing.settled, found, &end, now);
        (batch, end)
    }

    /// Begins a turn: there is a decoder, which begins with the first byte. The end of the turn if a processor has to know
    /// something first.
    pub(super) fn begin_records(
        &mut self,
        context: &InputContext,
        now: Timestamp,
    ) -> Option<TurnEnd> {
        self.turn_at = now;
        if self.decoder.is_none() {
            let codec = self.file.as_ref().filter(|_| self.target.compressed);
            let codec = codec.and_then(|file| Codec::detect(&**file).ok().flatten());
            let decoder = Decoder::start(codec, &context.decoders);
            self.decoder = Some(decoder.without_checkpoints());
        }
        if self.bound.is_none() && context.bind.can_hold() {
            return context.bind.hold(&self.fields(context)).map(TurnEnd::Held);
        }
        None
    }

    pub(super) fn batch_of_records(
        &mut self,
        context: &InputContext,
        settled: u64,
        found: Found,
        end: &TurnEnd,
        now: Timestamp,
    ) -> Option<Batch> {
        let Found { text, records, too_long } = found;
        let too_long = too_long.into_iter().filter(|(offset, _)| *offset >= settled);
        let too_long = too_long.inspect(|(offset, bytes)| {
            tracing::error!(path = %self.target.path.display(), offset, bytes,
                "a value is longer than four times `max_bytes` and is left out");
        });
        let too_long = too_long.count() as u64;
        let eof = matches!(end, TurnEnd::Finished) && !self.finished;
        self.finished |= eof;
        let new = records.iter().filter(|record| record.end > settled);
        let rows: Vec<Row> = new
            .map(|record| {
                let text = Text { start: record.start, len: record.len };
                Row::new(record.offset, record.len, text, now.0)
            })
            .collect();
        if rows.is_empty() && too_long == 0 && !eof {
            return None;
        }
        let last = records.last().map_or(self.offset, |record| record.end.max(self.offset));
        let provenance = self.provenance(last - self.offset, eof);
        let bound = self.bound(context);
        let utf8 = if simdutf8::basic::from_utf8(&text).is_ok() { text.len() } else { 0 };
        let count = rows.len() as u64;
        let parts = Parts { bytes: text, rows, ..Parts::default() };
        let mut batch = Batch::with_lines(parts, utf8, Arc::clone(bound.base()), provenance);
        batch.count_dropped(DropReason::LineTooLong, too_long);
        context.metrics.raw_lines.add(count + too_long);
        context.metrics.lines.add(batch.lines());
        bound.run(&mut batch);
        Some(batch)
    }

    /// Says once why nothing can be read behind a place.
    pub(super) fn report_record(&mut self, context: &InputContext, error: &RecordError) {
        if std::mem::replace(&mut self.damage_reported, true) {
            return;
        }
        let RecordError { unit, offset, message } = error;
        tracing::error!(path = %self.target.path.display(), unit, offset, error = message,
            "an object cannot be read to its end; everything before this place was read");
        self.note_error(context, error.to_string());
    }
}
