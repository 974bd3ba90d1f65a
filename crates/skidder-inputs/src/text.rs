//! From the bytes of a stream (the standard input, the log of a container) to batches of events: lines, their encoding,
//! and the parsers.
//!
//! Bytes that are no event yet (the beginning of a line, lines of an unfinished group) stay in a buffer and are given to the
//! parsers again with what follows, as those of a file are read again.

use regex::bytes::Regex;
use skidder_decode::encoding::{BOM_BYTES, BomError, Encoding, FileEncoding};
use skidder_decode::lines::{LineTerminator, Splitter};
use skidder_event::{Batch, Cell, DropReason, Path};
use skidder_input::Source;
use skidder_os::{Monotonic, Timestamp};
use skidder_parse::chain::{Accept, Chain, Ending, Finish, Run, State};
use skidder_read::{CHUNK_BYTES, GivenLines, Span};
use std::sync::{Arc, LazyLock};

/// Events of a batch, at most; parsers may need some more to complete a group.
const BATCH_EVENTS: usize = 2048;

static OFFSET: LazyLock<Path> =
    LazyLock::new(|| Path::parse("log.offset").expect("a constant that is a path"));

/// How bytes become events.
#[derive(Clone, Debug)]
pub struct TextSettings {
    /// `encoding`; UTF-8 counts as plain.
    pub encoding: Encoding,
    /// `line_terminator`, which exists in the encoding.
    pub line_terminator: LineTerminator,
    /// `parsers`, or `json` and `multiline`.
    pub parsers: Chain,
    /// `max_bytes` or `message_max_bytes`: longer messages are cut.
    pub message_max_bytes: usize,
    /// `include_lines`: if there are any, a message must match one.
    pub include_lines: Vec<Regex>,
    /// `exclude_lines`: no message may match one.
    pub exclude_lines: Vec<Regex>,
    /// `harvester_buffer_size`: the least that is read at once, in bytes.
    pub buffer_size: usize,
}

/// Where the bytes of a [`Text`] come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Nothing can be read twice. `log.offset` is 0, as in Filebeat: there is no place to return to.
    Stdin,
    /// What is no event yet is read again by the next run. Events have no `log.offset`.
    Container,
}

impl Origin {
    fn name(self) -> &'static str {
        match self {
            Self::Stdin => "standard input",
            Self::Container => "log of a container",
        }
    }
}

/// Bytes that are no event yet: the next input continues with them after a reload.
#[derive(Debug, Default)]
pub(crate) struct Left {
    pub(crate) bytes: Vec<u8>,
    /// Where they begin: bytes that were read before them.
    pub(crate) offset: u64,
    /// They belong to a line beyond all bounds, of which so many bytes are gone already.
    skipped: Option<u64>,
    /// The encoding, once detected from the beginning.
    encoding: Option<FileEncoding>,
    /// The next run reads them again.
    is_read_again: bool,
}

impl Left {
    /// Nothing yet, of a source that is read from this offset, and again from there by the next run.
    pub(crate) fn read_again(offset: u64) -> Self {
        let mut left = Self::default();
        (left.offset, left.is_read_again) = (offset, true);
        left
    }
}

impl Drop for Left {
    fn drop(&mut self) {
        if !self.bytes.is_empty() && !self.is_read_again {
            let bytes = self.bytes.len();
            tracing::error!(bytes, "the end of what was read of the standard input is lost");
        }
    }
}

/// Lines on their way to events.
pub(crate) struct Text {
    settings: TextSettings,
    origin: Origin,
    left: Left,
    splitter: Option<Splitter>,
    state: State,
    spans: Vec<Span>,
    /// So many bytes were there when they made no event.
    tried: usize,
    /// In so many bytes no line ends.
    searched: usize,
    /// When a group of lines will have waited long enough.
    flush_at: Option<Monotonic>,
    /// Lines that a parser could not read.
    failures: u64,
}

impl Text {
    pub(crate) fn new(settings: TextSettings, origin: Origin, mut left: Left) -> Self {
        // The settings may have another encoding now.
        left.encoding = settings.encoding.fixed().or(left.encoding);
        Self {
            settings,
            origin,
            left,
            splitter: None,
            state: State::default(),
            spans: Vec::new(),
            tried: 0,
            searched: 0,
            flush_at: None,
            failures: 0,
        }
    }

    /// Adds what was read.
    pub(crate) fn add(&mut self, mut bytes: Vec<u8>) {
        if bytes.len() < bytes.capacity() / 4 {
            // A few lines do not take a large buffer along.
            bytes.shrink_to_fit();
        }
        if self.left.bytes.is_empty() {
            self.left.bytes = bytes;
        } else {
            self.left.bytes.extend_from_slice(&bytes);
        }
    }

    /// When to ask again for events, though nothing was read.
    pub(crate) fn flush_at(&self) -> Option<Monotonic> {
        self.flush_at
    }

    /// How many bytes became events, and were before those of this text.
    pub(crate) fn offset(&self) -> u64 {
        self.left.offset
    }

    /// The bytes that are no event yet, for the next input.
    pub(crate) fn take_left(&mut self) -> Left {
        std::mem::take(&mut self.left)
    }

    /// Takes that back.
    pub(crate) fn put_left(&mut self, left: Left) {
        self.left = left;
    }

    /// The next events, and of how many bytes they are; `None` if more bytes are needed. Call it until it returns
    /// `None`.
    ///
    /// # Errors
    /// If the encoding needs a byte order mark and there is none: nothing can be read.
    pub(crate) fn next(
        &mut self,
        source: &mut Source,
        ending: Ending,
        now: Timestamp,
    ) -> Result<Option<(Batch, u64)>, BomError> {
        let is_last = ending == Ending::Last;
        let Some((splitter, encoding)) = self.lines(is_last)? else { return Ok(None) };
        if ending == Ending::More && self.left.bytes.len() < 2 * self.tried {
            // An unfinished group is looked at again when it has doubled, or at rest.
            return Ok(None);
        }
        if self.left.skipped.is_some() {
            return Ok(self.skip(splitter, source, is_last));
        }
        let whole = self.split(splitter, is_last);
        let rest = self.left.bytes.len() - whole;
        let too_long = rest > self.settings.line_bytes_max();
        if self.spans.is_empty() {
            self.searched = rest;
            self.left.skipped = too_long.then_some(0);
            return Ok(if too_long { self.skip(splitter, source, is_last) } else { None });
        }
        self.searched = 0;
        let is_full = self.left.bytes.len() >= self.settings.buffer_bytes_max();
        let rest = self.left.bytes.split_off(whole);
        let bytes = std::mem::take(&mut self.left.bytes);
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { whole } else { 0 };
        let mut batch = source.batch(bytes, utf8);
        let finish = self.parse((source, &mut batch), encoding, ending, (too_long, is_full), now);
        let consumed = (finish.end - self.left.offset) as usize;
        self.flush_at = finish.flush_at.map(Monotonic);
        if consumed == 0 {
            self.left.bytes = batch.into_parts().bytes;
            self.left.bytes.truncate(whole);
            self.left.bytes.extend_from_slice(&rest);
            self.tried = self.left.bytes.len();
            return Ok(None);
        }
        self.left.bytes = [&batch.bytes()[consumed..whole], &rest[..]].concat();
        self.tried = 0;
        self.left.offset = finish.end;
        self.report(&finish);
        let appended = whole..batch.bytes().len();
        let is_utf8 = simdutf8::basic::from_utf8(&batch.bytes()[appended.clone()]).is_ok();
        batch.set_utf8_appended(if is_utf8 { appended } else { whole..whole });
        self.put_offsets(&mut batch);
        Ok(Some((batch, consumed as u64)))
    }

    /// How lines are found and decoded; `None` if there is nothing to do, or too little to know it.
    fn lines(&mut self, is_last: bool) -> Result<Option<(Splitter, FileEncoding)>, BomError> {
        let Left { bytes, skipped, encoding, .. } = &mut self.left;
        if bytes.is_empty() && !(skipped.is_some() && is_last) {
            return Ok(None);
        }
        let found = match *encoding {
            Some(encoding) => encoding,
            None => match self.settings.encoding.of_file(&bytes[..bytes.len().min(BOM_BYTES)]) {
                Err(BomError::TooShort) if !is_last => return Ok(None),
                found => *encoding.insert(found?),
            },
        };
        let terminator = self.settings.line_terminator;
        // The settings were checked, but for UTF-16, in which every character exists.
        let splitter = *self.splitter.get_or_insert_with(|| {
            Splitter::new(terminator, found).expect("the encoding has the terminator")
        });
        Ok(Some((splitter, found)))
    }

    /// Finds the lines; returns where the last one ends. At the end the last one may be without a terminator.
    fn split(&mut self, splitter: Splitter, is_last: bool) -> usize {
        let Self { spans, left, .. } = self;
        spans.clear();
        let length = left.bytes.len();
        if !is_last && self.searched > 0 && splitter.find(&left.bytes, self.searched).is_none() {
            return 0;
        }
        let whole = splitter.split(&left.bytes, |start, end, next| {
            spans.push((start as u32, end as u32, next as u32));
        });
        if !is_last || whole == length {
            return whole;
        }
        spans.push((whole as u32, length as u32, length as u32));
        length
    }

    /// Passes the lines to the parsers. `too_long`: what follows is no line of any group; `is_full`: there is no room
    /// for a longer group.
    fn parse(
        &mut self,
        (source, batch): (&Source, &mut Batch),
        encoding: FileEncoding,
        ending: Ending,
        (too_long, is_full): (bool, bool),
        now: Timestamp,
    ) -> Finish {
        let settings = &self.settings;
        let accept = Accept {
            message_max_bytes: settings.message_max_bytes,
            include: &settings.include_lines,
            exclude: &settings.exclude_lines,
        };
        let (offset, origin) = (self.left.offset, self.origin);
        let mut run = Run::new(&settings.parsers, &mut self.state, accept, batch, offset);
        let lines = GivenLines {
            spans: &self.spans,
            encoding,
            offset,
            line_bytes_max: settings.line_bytes_max(),
            rows_max: BATCH_EVENTS,
            now,
            has_offset: origin == Origin::Stdin,
        };
        let stopped =
            lines.give(&mut run, batch, |offset, bytes| origin.too_long(source, offset, bytes));
        if too_long || (is_full && run.complete_before(batch) == offset) {
            run.interrupt(batch);
        }
        run.finish(batch, if stopped { Ending::More } else { ending })
    }

    /// Throws away what belongs to a line beyond all bounds, up to its end.
    fn skip(
        &mut self,
        splitter: Splitter,
        source: &mut Source,
        is_last: bool,
    ) -> Option<(Batch, u64)> {
        let left = &mut self.left;
        let length = left.bytes.len();
        let skipped = left.skipped?;
        self.searched = 0;
        let end = splitter.find(&left.bytes, 0).or(is_last.then_some(length));
        let gone = end.unwrap_or_else(|| splitter.discardable(length));
        left.bytes.drain(..gone);
        left.offset += gone as u64;
        let line = skipped + gone as u64;
        left.skipped = Some(line);
        end?;
        left.skipped = None;
        self.origin.too_long(source, left.offset - line, line as usize);
        let mut batch = source.batch(Vec::new(), 0);
        batch.count_dropped(DropReason::LineTooLong, 1);
        Some((batch, line))
    }

    /// Nothing of this is known to be a line: counts it as dropped.
    pub(crate) fn give_up(&mut self, source: &mut Source) -> (Batch, u64) {
        let bytes = std::mem::take(&mut self.left.bytes).len() as u64;
        self.left.offset += bytes;
        let mut batch = source.batch(Vec::new(), 0);
        batch.count_dropped(DropReason::Parser, u64::from(bytes > 0));
        (batch, bytes)
    }

    /// Reports lines that a parser could not read: the first, the tenth, the hundredth and so on.
    fn report(&mut self, finish: &Finish) {
        let Some(failure) = self.state.take_failure() else { return };
        let before = self.failures;
        self.failures += finish.errors;
        if before > 0 && before.ilog10() == self.failures.max(before).ilog10() {
            return;
        }
        tracing::warn!(
            parser = failure.parser,
            offset = failure.offset,
            error = failure.error,
            lines = self.failures,
            "lines of the {} cannot be parsed and go on as they are",
            self.origin.name()
        );
    }

    /// `log.offset` is 0, unless a parser has put another.
    fn put_offsets(&self, batch: &mut Batch) {
        if self.origin != Origin::Stdin {
            return;
        }
        let base = Arc::clone(batch.base());
        for row in 0..batch.len() {
            if batch.event(row).offset().is_some() {
                let put = batch.event_mut(row, &base).put_cell(&OFFSET, Cell::Int(0));
                debug_assert!(put.is_ok(), "`log` is an object: it has an offset");
            }
        }
    }
}

impl TextSettings {
    /// Raw bytes of a line beyond which it is skipped whole and counted.
    fn line_bytes_max(&self) -> usize {
        self.message_max_bytes * 4
    }

    /// Bytes that are kept at most, and a chunk: a group, and the line that ends it.
    fn buffer_bytes_max(&self) -> usize {
        let group = usize::try_from(self.parsers.group_bytes_max()).unwrap_or(usize::MAX);
        group.saturating_add(2 * self.line_bytes_max()).saturating_add(1).max(CHUNK_BYTES)
    }
}

impl Origin {
    fn too_long(self, source: &Source, offset: u64, bytes: usize) {
        let error = "a line is longer than four times `max_bytes`, and skipped";
        source.failed(error);
        tracing::error!(offset, bytes, "{}: {error}", self.name());
    }
}
