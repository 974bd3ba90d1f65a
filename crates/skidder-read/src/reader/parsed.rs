//! From the bytes of a chunk to a batch where it is not enough to cut lines: through parsers, from
//! another encoding, or with another line terminator.
//!
//! Promises: as for cut lines. What belongs to an unfinished group of a parser is not consumed: the
//! cursor stays before its first line, and its bytes are read again (plain) or kept in `carry`.

use super::{InputContext, Reader, Scratch, TurnEnd, is_last};
use crate::catalog::MISSING_GRACE;
use crate::compare::codec_of;
use crate::fingerprint::read_up_to;
use crate::given_lines::{GivenLines, Span};
use crate::pool::CHUNK_BYTES;
use crate::settings::FilestreamSettings;
use skidder_decode::encoding::{BOM_BYTES, FileEncoding};
use skidder_decode::lines::Splitter;
use skidder_decode::{DecodeError, head as head_of};
use skidder_event::{Batch, FilePart, Parts, Provenance, Recycle};
use skidder_os::sabotage::{self, Sabotage};
use skidder_os::{Monotonic, Timestamp};
use skidder_parse::chain::{Accept, Ending, Finish, Run, State};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// State of a source between turns.
#[derive(Default)]
pub(super) struct Parsing {
    state: Option<Box<State>>,
    lines: Option<Lines>,
    /// Groups are complete at the next end of the file, if that is still here.
    flush: Option<u64>,
    /// When a group will have waited long enough.
    flush_at: Option<Monotonic>,
    unfinished: bool,
    /// Lines of this file that a parser could not read.
    failures: u64,
    /// When this turn began.
    pub(super) began: Monotonic,
}

/// How the lines of one file are found and read.
#[derive(Clone, Copy)]
struct Lines {
    splitter: Splitter,
    encoding: FileEncoding,
}

/// What came of the bytes that are there; or nothing is complete and more are needed, and here they are.
type Attempt = ControlFlow<(Option<Batch>, TurnEnd), Parts>;

impl Reader {
    /// Groups are given out at the next end of the file: the file may not be there much longer. What was written since
    /// the last turn goes on as usual: it has not waited yet.
    pub(crate) fn ask_flush(&mut self) {
        self.parsing.flush = Some(self.seen());
    }

    /// Whether a group waits for more lines.
    pub(super) fn has_unfinished_group(&self) -> bool {
        self.parsing.unfinished
    }

    /// Whether a group waits for more lines, and has no request to end.
    pub(crate) fn waits_for_lines(&self) -> bool {
        self.parsing.unfinished && self.parsing.flush.is_none()
    }

    /// Whether the file must not be forgotten between two turns: groups of lines wait, or failures were logged.
    pub(crate) fn remembers_groups(&self) -> bool {
        let Parsing { state, flush, flush_at, unfinished, failures, .. } = &self.parsing;
        state.is_some() || flush.is_some() || flush_at.is_some() || *unfinished || *failures > 0
    }

    /// When a group will have waited long enough, and the source wants a turn.
    pub(crate) fn flush_at(&self) -> Option<Monotonic> {
        self.parsing.flush_at
    }

    /// A turn begins `now`.
    pub(crate) fn begin_turn(&mut self, now: Monotonic) {
        self.parsing.began = now;
        self.seen_before = self.seen();
        // Said again by a turn that comes to its end; one that meets trouble must not come back at once.
        self.parsing.flush_at = None;
    }

    /// A turn ends `now`. What it read may have been written until then.
    pub(crate) fn end_turn(&mut self, now: Monotonic) {
        let Parsing { state, flush_at, began, .. } = &mut self.parsing;
        if let Some(at) = flush_at {
            *at = *at + now.since(*began);
            if let Some(state) = state {
                state.end_turn(began.0, now.0);
            }
        }
    }

    /// Takes the state of the worker if it has none of its own.
    fn borrow_state(&mut self, context: &InputContext, of_worker: &mut Option<Box<State>>) {
        if self.parsing.state.is_none() && context.settings.parsers.can_lend() {
            self.parsing.state = of_worker.take();
        }
    }

    /// Gives the state to the worker if nothing is remembered in it: it has a kilobyte, and there may be very many idle
    /// sources.
    fn return_state(&mut self, context: &InputContext, of_worker: &mut Option<Box<State>>) {
        let is_free = |state: &mut Box<State>| !state.is_needed();
        if context.settings.parsers.can_lend()
            && let Some(state) = self.parsing.state.take_if(is_free)
        {
            *of_worker = Some(state);
        }
    }

    /// Forgets groups that are not needed, or `all` of them, of another content.
    pub(super) fn forget_groups(&mut self, all: bool) {
        self.parsing.lines = None;
        if all || self.parsing.state.as_ref().is_some_and(|state| !state.is_needed()) {
            self.parsing.state = None;
        }
        if all {
            self.parsing.flush_at = None;
            self.parsing.unfinished = false;
            self.parsing.failures = 0;
        }
    }

    /// Reads until at least one event is complete, or there is no more.
    pub(super) fn read_parsed(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        self.borrow_state(context, &mut scratch.parsing);
        let read = self.read_events(context, scratch, now);
        self.return_state(context, &mut scratch.parsing);
        read
    }

    /// The same with the state that it has.
    fn read_events(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        let lines = match self.lines(context, scratch) {
            Ok(Some(lines)) => lines,
            Ok(None) => return (None, TurnEnd::Waiting),
            Err(error) => return (None, TurnEnd::Failed(error)),
        };
        let bytes_max = context.settings.buffer_bytes_max();
        let mut parts = context.buffers.take();
        let mut filled = 0;
        let mut wanted = self.begin_turn_bytes(context).min(bytes_max);
        loop {
            if parts.bytes.len() < wanted {
                parts.bytes.resize(wanted, 0);
            }
            let end = self.fill(context, scratch, &mut parts.bytes[..wanted], &mut filled);
            let here = self.offset + filled as u64;
            self.parsing.flush = self.parsing.flush.filter(|end| here <= *end);
            if !sabotage::is_on(Sabotage::ParsedUnchecked)
                && let Some(wrong) = self.find_wrong(context, scratch, &parts.bytes[..filled], &end)
            {
                context.buffers.recycle(parts);
                return (None, wrong);
            }
            if self.skipping {
                return self.skip(context, parts, filled, end, lines.splitter);
            }
            match self.attempt(context, &mut scratch.lines, lines, (parts, filled), end, now) {
                ControlFlow::Break(done) => return done,
                ControlFlow::Continue(back) => parts = back,
            }
            wanted = (wanted * 2).min(bytes_max);
        }
    }

    /// How lines of this file are found; `None` if it is too short to detect that.
    fn lines(
        &mut self,
        context: &InputContext,
        scratch: &mut Scratch,
    ) -> io::Result<Option<Lines>> {
        if let Some(lines) = self.parsing.lines {
            return Ok(Some(lines));
        }
        let settings = &context.settings;
        let mut head = [0; BOM_BYTES];
        let head = match (settings.encoding.fixed(), &self.file) {
            (Some(_), _) | (_, None) => &[][..],
            (None, Some(file)) => {
                let count = if self.target.compressed {
                    let (codec, scratch) = (codec_of(&**file), &mut scratch.compressed);
                    match head_of(&**file, codec, scratch, &mut head, &context.decoders) {
                        Ok((count, _)) => count,
                        Err(DecodeError::Read { source, .. }) => return Err(source),
                        // The next read meets the same error, and reports it.
                        Err(DecodeError::Memory | DecodeError::Damaged(_)) => 0,
                    }
                } else {
                    read_up_to(&**file, &mut head, 0)?
                };
                &head[..count]
            }
        };
        let encoding = match settings.encoding.of_file(head) {
            Ok(encoding) => encoding,
            Err(skidder_decode::encoding::BomError::TooShort) => return Ok(None),
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        };
        let Some(splitter) = Splitter::new(settings.line_terminator, encoding) else {
            let message = "the encoding of the file does not have the configured line terminator";
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        };
        let lines = Lines { splitter, encoding };
        self.parsing.lines = Some(lines);
        Ok(Some(lines))
    }

    /// Tries to make a batch of the first `filled` bytes of `parts`.
    fn attempt(
        &mut self,
        context: &InputContext,
        spans: &mut Vec<Span>,
        lines: Lines,
        (parts, filled): (Parts, usize),
        end: TurnEnd,
        now: Timestamp,
    ) -> Attempt {
        let settings = &context.settings;
        spans.clear();
        let bytes = &parts.bytes[..filled];
        let whole = lines.splitter.split(bytes, |start, end, next| {
            spans.push((start as u32, end as u32, next as u32));
        });
        let rest = filled - whole;
        if is_last(context, &end) && rest > 0 {
            spans.push((whole as u32, filled as u32, filled as u32));
        }
        let goes_on = matches!(end, TurnEnd::More);
        let too_long = goes_on && rest > settings.line_bytes_max();
        if spans.is_empty() && too_long {
            self.skipping = true;
            return ControlFlow::Break(self.skip(context, parts, filled, end, lines.splitter));
        }
        if spans.is_empty() {
            return self.nothing(context, parts, filled, end);
        }
        let is_utf8 = simdutf8::basic::from_utf8(&bytes[..whole]).is_ok();
        let utf8 = if is_utf8 { whole } else { 0 };
        let buffer = Buffer::new(parts, filled);
        let base = Arc::clone(self.bound(context).base());
        let provenance = self.place();
        let mut batch = Batch::with_lines(buffer.parts, utf8, base, provenance);
        let appended = batch.bytes().len();
        let is_full = goes_on && filled >= settings.buffer_bytes_max();
        let (finish, stopped) = self.run_parsers(
            context,
            &mut batch,
            lines.encoding,
            spans,
            &end,
            (too_long, is_full),
            now,
        );
        let consumed = (finish.end - self.offset) as usize;
        if consumed == 0 {
            let mut parts = batch.into_parts();
            parts.bytes.truncate(appended);
            let parts = buffer.spare.map_or(parts, |bytes| Parts { bytes, ..Parts::default() });
            self.keep_waiting(&finish);
            return self.nothing(context, parts, filled, end);
        }
        if let Some(bytes) = buffer.spare {
            context.buffers.recycle(Parts { bytes, ..Parts::default() });
        } else {
            let buffers: Arc<dyn Recycle> = context.buffers.clone();
            batch.set_recycle(buffers);
        }
        self.keep_waiting(&finish);
        let end = if stopped { self.redo(end) } else { end };
        self.has_seen(self.offset + filled as u64, &end);
        self.keep_rest(&batch.bytes()[..filled], consumed);
        let consumed_lines = spans.partition_point(|(_, _, next)| *next as usize <= consumed);
        context.metrics.raw_lines.add(consumed_lines as u64);
        self.count(context, &finish);
        self.complete(context, &mut batch, consumed, appended, &end);
        ControlFlow::Break((Some(batch), end))
    }

    /// Passes the lines to the parsers. `too_long`: what follows is no line of any group; `is_full`: the
    /// buffer cannot grow any further.
    fn run_parsers(
        &mut self,
        context: &InputContext,
        batch: &mut Batch,
        encoding: FileEncoding,
        spans: &[Span],
        end: &TurnEnd,
        (too_long, is_full): (bool, bool),
        now: Timestamp,
    ) -> (Finish, bool) {
        let settings = &context.settings;
        let mut state = self.parsing.state.take().unwrap_or_default();
        let accept = Accept {
            message_max_bytes: settings.message_max_bytes,
            include: &settings.include_lines,
            exclude: &settings.exclude_lines,
        };
        let mut run = Run::new(&settings.parsers, &mut state, accept, batch, self.offset);
        let stopped = self.give_lines(context, &mut run, batch, encoding, spans, now);
        if too_long || (is_full && run.complete_before(batch) == self.offset) {
            run.interrupt(batch);
        }
        let resting = if stopped { None } else { self.must_rest(end, now) };
        let ending =
            if stopped || resting.is_some() { Ending::More } else { self.ending(settings, end) };
        let mut finish = run.finish(batch, ending);
        if let Some(left) = resting.filter(|_| finish.unfinished) {
            finish.flush_at = Some(self.parsing.began.0 + left);
        }
        self.parsing.state = Some(state);
        (finish, stopped)
    }

    /// Passes lines to the parsers; returns whether it stopped because the batch is full.
    fn give_lines(
        &self,
        context: &InputContext,
        run: &mut Run<'_>,
        batch: &mut Batch,
        encoding: FileEncoding,
        spans: &[Span],
        now: Timestamp,
    ) -> bool {
        let lines = GivenLines {
            spans,
            encoding,
            offset: self.offset,
            line_bytes_max: context.settings.line_bytes_max(),
            rows_max: context.rows_max,
            now,
            has_offset: true,
        };
        lines.give(run, batch, |offset, bytes| self.report_too_long(offset, bytes))
    }

    /// How long a compressed file that ends inside of its data must still rest until no more of that is expected: it is being
    /// written, and its groups do not wait for the writer of the lines.
    fn must_rest(&self, end: &TurnEnd, now: Timestamp) -> Option<Duration> {
        let is_asked = self.parsing.flush.is_some();
        let is_cut = self.target.compressed && matches!(end, TurnEnd::Waiting) && !is_asked;
        let file = self.file.as_deref().filter(|_| is_cut)?;
        let rested = now.since(file.metadata().ok()?.modified);
        MISSING_GRACE.checked_sub(rested).filter(|left| !left.is_zero())
    }

    fn ending(&self, settings: &FilestreamSettings, end: &TurnEnd) -> Ending {
        match end {
            TurnEnd::Finished | TurnEnd::Damaged => Ending::Last,
            TurnEnd::Waiting
                if self.parsing.flush.is_some()
                    || sabotage::is_on(Sabotage::GroupsTorn)
                    || settings.final_line
                    || settings.read_once
                    || settings.close.on_eof =>
            {
                Ending::Last
            }
            TurnEnd::Waiting => Ending::Waiting(self.parsing.began.0),
            _ => Ending::More,
        }
    }

    fn keep_waiting(&mut self, finish: &Finish) {
        self.parsing.flush_at = finish.flush_at.map(Monotonic);
        self.parsing.unfinished = finish.unfinished;
        self.parsing.flush = self.parsing.flush.filter(|_| finish.unfinished);
    }

    /// Counts the outcomes of the lines, and logs those that a parser could not read: the first, the tenth,
    /// the hundredth and so on.
    fn count(&mut self, context: &InputContext, finish: &Finish) {
        context.metrics.truncated.add(finish.truncated);
        context.metrics.lines_discarded.add(finish.discarded);
        context.metrics.parse_errors.add(finish.errors);
        let Some(state) = &mut self.parsing.state else { return };
        let Some(failure) = state.take_failure() else { return };
        let before = self.parsing.failures;
        self.parsing.failures += finish.errors;
        if before > 0 && before.ilog10() == self.parsing.failures.max(before).ilog10() {
            return;
        }
        tracing::warn!(path = %self.target.path.display(), parser = failure.parser,
            offset = failure.offset, error = failure.error, lines = self.parsing.failures,
            "lines cannot be parsed and go on as they are");
    }

    /// Nothing is complete: more bytes are needed, or the turn is over.
    fn nothing(
        &mut self,
        context: &InputContext,
        parts: Parts,
        filled: usize,
        end: TurnEnd,
    ) -> Attempt {
        if matches!(end, TurnEnd::More) {
            return ControlFlow::Continue(parts);
        }
        self.has_seen(self.offset + filled as u64, &end);
        self.keep_rest(&parts.bytes[..filled], 0);
        context.buffers.recycle(parts);
        let eof = matches!(end, TurnEnd::Finished);
        let batch = (eof && !self.finished).then(|| self.empty_batch(context, eof));
        self.finished |= eof;
        ControlFlow::Break((batch, end))
    }

    /// Everything that a batch needs besides its events; moves the offset.
    fn complete(
        &mut self,
        context: &InputContext,
        batch: &mut Batch,
        consumed: usize,
        appended: usize,
        end: &TurnEnd,
    ) {
        let bytes = batch.bytes();
        let is_utf8 = simdutf8::basic::from_utf8(&bytes[appended..]).is_ok();
        let end_of_appended = if is_utf8 { bytes.len() } else { appended };
        self.tail = Some(self.tail_behind(&bytes[..consumed], self.offset));
        let eof = matches!(end, TurnEnd::Finished);
        self.finished = eof;
        batch.set_utf8_appended(appended..end_of_appended);
        batch.set_provenance(self.provenance(consumed as u64, eof));
        self.line_bytes_mean = consumed / batch.lines().max(1) as usize + 1;
        context.metrics.bytes.add(consumed as u64);
        context.metrics.lines.add(batch.lines());
        self.bound(context).run(batch);
    }

    /// Where a batch stands of which it is not known yet how much it holds.
    fn place(&self) -> Provenance {
        let part = FilePart::new(self.offset..self.offset);
        Provenance::of_file(self.id, FilePart { generation: self.generation, ..part })
    }
}

impl FilestreamSettings {
    /// Bytes that are read at most for one turn: a group, and the line that ends it.
    fn buffer_bytes_max(&self) -> usize {
        let group = usize::try_from(self.parsers.group_bytes_max()).unwrap_or(usize::MAX);
        group.saturating_add(2 * self.line_bytes_max()).saturating_add(1).max(CHUNK_BYTES)
    }
}

/// The bytes of a batch, in a buffer of the pool, or in one of their size if they are few.
struct Buffer {
    parts: Parts,
    spare: Option<Vec<u8>>,
}

impl Buffer {
    fn new(mut parts: Parts, filled: usize) -> Self {
        parts.rows.clear();
        if filled >= CHUNK_BYTES / 4 {
            return Self { parts, spare: None };
        }
        let few = parts.bytes[..filled].to_vec();
        let bytes = std::mem::replace(&mut parts.bytes, few);
        Self { parts, spare: Some(bytes) }
    }
}
