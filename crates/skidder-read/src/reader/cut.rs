//! From the bytes of a chunk to a batch of whole lines: cutting, skipping, filtering.

use super::batch::flag;
use super::{InputContext, Reader, TurnEnd, is_last};
use crate::given_lines::UTF8_BOM;
use crate::pool::CHUNK_BYTES;
use skidder_decode::Decoder;
use skidder_decode::lines::Splitter;
use skidder_event::{Batch, DropReason, Parts, Recycle, Row, Text};
use skidder_os::Timestamp;
use skidder_os::sabotage::{self, Sabotage};
use skidder_parse::chain::{Accept, character_boundary};
use std::sync::Arc;

/// The lines of one chunk, on their way to a batch.
struct Cut {
    /// Bytes of whole lines.
    bytes: usize,
    rows: Vec<Row>,
    empty: u64,
    filtered: u64,
    /// Lines beyond the bound of a raw line that were found whole.
    too_long: u64,
    /// Rows whose message was cut.
    truncated: Vec<usize>,
}

impl Cut {
    /// UTF-8's byte order mark belongs to no line.
    fn strip_byte_order_mark(&mut self, bytes: &[u8]) {
        let Some(first) = self.rows.first_mut() else { return };
        let text = &mut first.message;
        let message = &bytes[text.start as usize..(text.start + text.len) as usize];
        if first.offset > 0 || !message.starts_with(UTF8_BOM) {
            return;
        }
        text.start += UTF8_BOM.len() as u32;
        text.len -= UTF8_BOM.len() as u32;
        if text.len == 0 {
            self.rows.remove(0);
            self.truncated.retain_mut(|row| {
                let is_later = *row > 0;
                *row = row.saturating_sub(1);
                is_later
            });
            self.empty += 1;
        }
    }
}

/// Most lines of this turn: half as many again where the file ends, whose short rest is not worth a turn of its own.
fn rows_max(context: &InputContext, end: &TurnEnd) -> u64 {
    let more = if matches!(end, TurnEnd::More) { 0 } else { context.rows_max / 2 };
    (context.rows_max + more) as u64
}

impl Reader {
    pub(super) fn finish_turn(
        &mut self,
        context: &InputContext,
        mut parts: Parts,
        filled: usize,
        has_line: bool,
        end: TurnEnd,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        if self.skipping {
            return self.skip(context, parts, filled, end, Splitter::default());
        }
        let seen = self.offset + filled as u64;
        let last = is_last(context, &end);
        if filled == 0 || (!has_line && !last) {
            self.has_seen(seen, &end);
            self.keep_rest(&parts.bytes[..filled], 0);
            context.buffers.recycle(parts);
            let eof = matches!(end, TurnEnd::Finished);
            let batch = (eof && !self.finished).then(|| self.empty_batch(context, eof));
            self.finished |= eof;
            return (batch, end);
        }
        let mut rows = std::mem::take(&mut parts.rows);
        rows.clear();
        let mut cut =
            Cut { bytes: 0, rows, empty: 0, filtered: 0, too_long: 0, truncated: Vec::new() };
        let rows_max = rows_max(context, &end);
        self.cut(context, &parts.bytes[..filled], (last, rows_max), now, &mut cut);
        if self.offset == 0 {
            cut.strip_byte_order_mark(&parts.bytes);
        }
        let consumed = cut.bytes;
        self.keep_rest(&parts.bytes[..filled], consumed);
        // Lines beyond the bound of a batch are left for the next turn.
        let left = filled > consumed
            && (last || memchr::memchr(b'\n', &parts.bytes[consumed..filled]).is_some());
        let end = if left { self.redo(end) } else { end };
        self.has_seen(seen, &end);
        let eof = matches!(end, TurnEnd::Finished);
        self.finished = eof;
        let lines = cut.rows.len() as u64 + cut.empty + cut.filtered + cut.too_long;
        self.line_bytes_mean = consumed / lines.max(1) as usize + 1;
        (Some(self.batch(context, parts, cut, eof)), end)
    }

    /// An end that was seen while lines are left: it will be seen again.
    pub(super) fn redo(&mut self, end: TurnEnd) -> TurnEnd {
        match end {
            // The decoder is at the end of the file; what is left is in `carry`.
            TurnEnd::Finished | TurnEnd::Waiting | TurnEnd::More | TurnEnd::Damaged => {
                TurnEnd::More
            }
            other => other,
        }
    }

    /// Remembers what follows the last whole line: a plain file is simply read again from there.
    pub(super) fn keep_rest(&mut self, bytes: &[u8], consumed: usize) {
        match &mut self.decoder {
            Some(Decoder::Plain { offset }) => *offset = self.offset + consumed as u64,
            _ if sabotage::is_on(Sabotage::CarryLost) => self.carry.clear(),
            _ => self.carry.consume(bytes, consumed),
        }
    }

    /// Cuts at most `rows_max` lines; the `last` one may be without an end.
    fn cut(
        &self,
        context: &InputContext,
        bytes: &[u8],
        (last, rows_max): (bool, u64),
        now: Timestamp,
        cut: &mut Cut,
    ) {
        let mut lines = 0;
        let mut stopped = false;
        let whole = Splitter::default().split(bytes, |start, end, next| {
            if lines == rows_max {
                stopped = true;
            }
            if !stopped {
                lines += 1;
                cut.bytes = next;
                self.line(context, bytes, (start, end, next), now, cut);
            }
        });
        if last && !stopped && whole < bytes.len() && lines < rows_max {
            cut.bytes = bytes.len();
            self.line(context, bytes, (whole, bytes.len(), bytes.len()), now, cut);
        }
    }

    #[inline]
    fn line(
        &self,
        context: &InputContext,
        bytes: &[u8],
        (start, end, next): (usize, usize, usize),
        now: Timestamp,
        cut: &mut Cut,
    ) {
        let settings = &context.settings;
        let mut message = &bytes[start..end];
        if message.is_empty() {
            cut.empty += 1;
            return;
        }
        if message.len() > settings.line_bytes_max() {
            self.report_too_long(self.offset + start as u64, next - start);
            cut.too_long += 1;
            return;
        }
        if message.len() > settings.message_max_bytes {
            message = &message[..character_boundary(message, settings.message_max_bytes)];
            cut.truncated.push(cut.rows.len());
        }
        let accept = Accept {
            message_max_bytes: settings.message_max_bytes,
            include: &settings.include_lines,
            exclude: &settings.exclude_lines,
        };
        if accept.refuses(message) {
            if cut.truncated.last() == Some(&cut.rows.len()) {
                cut.truncated.pop();
            }
            cut.filtered += 1;
            return;
        }
        let text = Text { start: start as u32, len: message.len() as u32 };
        let offset = self.offset + start as u64;
        cut.rows.push(Row::new(offset, (next - start) as u32, text, now.0));
    }

    fn batch(&mut self, context: &InputContext, parts: Parts, cut: Cut, eof: bool) -> Batch {
        let consumed = cut.bytes;
        let lines = &parts.bytes[..consumed];
        let utf8 = if simdutf8::basic::from_utf8(lines).is_ok() { consumed } else { 0 };
        self.tail = Some(self.tail_behind(lines, self.offset));
        let provenance = self.provenance(consumed as u64, eof);
        let bound = self.bound(context);
        // A few lines do not take a large buffer along.
        let small = consumed < CHUNK_BYTES / 4;
        let bytes = if small { lines.to_vec() } else { Vec::new() };
        let (kept, spare) = if small {
            (Parts { bytes, rows: cut.rows, ..Parts::default() }, Some(parts.bytes))
        } else {
            (Parts { rows: cut.rows, ..parts }, None)
        };
        if let Some(bytes) = spare {
            context.buffers.recycle(Parts { bytes, ..Parts::default() });
        }
        let mut batch = Batch::with_lines(kept, utf8, Arc::clone(bound.base()), provenance);
        batch.count_dropped(DropReason::Empty, cut.empty);
        batch.count_dropped(DropReason::LineFilter, cut.filtered);
        batch.count_dropped(DropReason::LineTooLong, cut.too_long);
        if !small {
            let buffers: Arc<dyn Recycle> = context.buffers.clone();
            batch.set_recycle(buffers);
        }
        for row in cut.truncated {
            context.metrics.truncated.add(1);
            flag(&mut batch, row, "truncated");
        }
        context.metrics.bytes.add(consumed as u64);
        context.metrics.lines.add(batch.lines());
        bound.run(&mut batch);
        batch
    }

    /// Throws away what belongs to a line beyond all bounds, up to its end.
    pub(super) fn skip(
        &mut self,
        context: &InputContext,
        parts: Parts,
        filled: usize,
        end: TurnEnd,
        splitter: Splitter,
    ) -> (Option<Batch>, TurnEnd) {
        let position =
            self.decoder.as_ref().map_or(0, Decoder::offset) - self.carry.unlent() as u64;
        let bytes = &parts.bytes[..filled];
        let last = is_last(context, &end);
        let Some(after) = splitter.find(bytes, 0).or(last.then_some(filled)) else {
            let kept = filled - splitter.discardable(filled);
            match &mut self.decoder {
                Some(Decoder::Plain { offset }) => *offset -= kept as u64,
                _ => self.carry.consume(bytes, filled - kept),
            }
            context.buffers.recycle(parts);
            return (None, end);
        };
        let next = position - (filled - after) as u64;
        self.report_too_long(self.offset, (next - self.offset) as usize);
        self.skipping = false;
        let length = next - self.offset;
        // The bytes before the new offset, for its check value.
        self.tail = Some(self.tail_behind(&bytes[..after], next - after as u64));
        // What is left gets its turn at once.
        let end = if after == filled { end } else { self.redo(end) };
        let eof = matches!(end, TurnEnd::Finished);
        self.finished = eof;
        let provenance = self.provenance(length, eof);
        match &mut self.decoder {
            Some(Decoder::Plain { offset }) => *offset = self.offset,
            _ => self.carry.consume(bytes, after),
        }
        context.buffers.recycle(parts);
        let base = Arc::clone(self.bound(context).base());
        let mut batch = Batch::with_lines(Parts::default(), 0, base, provenance);
        batch.count_dropped(DropReason::LineTooLong, 1);
        context.metrics.bytes.add(length);
        context.metrics.lines.add(1);
        (Some(batch), end)
    }
}
