//! One turn of a chain: lines in, events of a batch out, and where the next turn begins.

use super::group::{Bounds, Group};
use super::{CUT_GROUP_BYTES, Chain, GAP_BYTES, Parser, STREAMS, State, usual};
use regex::bytes::Regex;
use skidder_event::{Base, Batch, Cell, DropReason, Path, Row};
use std::sync::Arc;
use std::time::Duration;

/// Flags of an event, by their place in `log.flags`.
pub(super) const TRUNCATED: u8 = 1;
pub(super) const MULTILINE: u8 = 2;
pub(super) const PARTIAL: u8 = 4;
const FLAGS: [(u8, &[u8]); 3] =
    [(TRUNCATED, b"truncated"), (MULTILINE, b"multiline"), (PARTIAL, b"partial")];

/// The consumer of the events that leave the chain.
#[derive(Clone, Copy, Debug)]
pub struct Accept<'a> {
    /// `message_max_bytes`: longer messages are cut.
    pub message_max_bytes: usize,
    /// `include_lines`: if there are any, a message must match one.
    pub include: &'a [Regex],
    /// `exclude_lines`: no message may match one.
    pub exclude: &'a [Regex],
}

impl Accept<'_> {
    /// Whether the line filters refuse a message.
    #[inline]
    pub fn refuses(&self, message: &[u8]) -> bool {
        let any = |list: &[Regex]| list.iter().any(|regex| regex.is_match(message));
        (!self.include.is_empty() && !any(self.include)) || any(self.exclude)
    }
}

/// Why a turn ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// There is more to read: groups wait for it.
    More,
    /// There is no more for now. Groups that have waited for as long as their parser says are complete; this
    /// is the time, on a clock that never goes back.
    Waiting(Duration),
    /// Nothing will follow: all groups are complete.
    Last,
}

/// Where a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finish {
    /// End of what is complete, as an offset of the source. All lines behind it must be passed again.
    pub end: u64,
    /// Whether a group is unfinished.
    pub unfinished: bool,
    /// When a group will have waited long enough.
    pub flush_at: Option<Duration>,
    /// Events whose message was cut.
    pub truncated: u64,
    /// Lines discarded because the group they belong to was full.
    pub discarded: u64,
    /// Lines that a parser could not read.
    pub errors: u64,
}

/// An event on its way through the chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Item {
    pub(super) row: Row,
    pub(super) stream: usize,
    pub(super) flags: u8,
    /// Whether a parser gave it fields that are worth an event without a message.
    pub(super) has_fields: bool,
    /// Whether its text had a line feed at its end, which is left out.
    pub(super) has_line_feed: bool,
}

/// What happens to the next lines of a group that was finished before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Hold {
    /// There is no such group.
    #[default]
    No,
    /// Those that belong to it are discarded.
    Following,
    /// This many are discarded.
    Lines(u32),
}

/// Since when a group has been waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    slot: usize,
    /// End of its last line.
    end: u64,
    pub(super) since: Duration,
}

/// Lines that are in no event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropped {
    start: u64,
    end: u64,
    /// Nothing: they belong to a group that was full.
    reason: Option<DropReason>,
}

/// A turn. Give it lines, then end it.
pub struct Run<'a> {
    pub(super) chain: &'a Chain,
    pub(super) state: &'a mut State,
    pub(super) accept: Accept<'a>,
    pub(super) base: Arc<Base>,
    flags_path: Path,
    pub(super) error_path: Path,
    /// The time at which the line was read, in nanoseconds since 1970-01-01 UTC.
    pub(super) now: i64,
    /// Offset of the first line.
    start: u64,
    /// End of the last line.
    end: u64,
    rows_check: usize,
    /// No group is left behind by a line before this offset.
    gap_check: u64,
    /// Lines may be [`usual`].
    pub(super) try_usual: bool,
}

impl<'a> Run<'a> {
    /// A turn over `batch`, which has no rows yet. `start` is where its first line begins.
    pub fn new(
        chain: &'a Chain,
        state: &'a mut State,
        accept: Accept<'a>,
        batch: &Batch,
        start: u64,
    ) -> Self {
        state.begin(&chain.parsers);
        Self {
            chain,
            state,
            accept,
            base: Arc::clone(batch.base()),
            flags_path: Path::parse("log.flags").expect("the path is a constant"),
            error_path: Path::parse("error.message").expect("the path is a constant"),
            now: 0,
            start,
            end: start,
            rows_check: 0,
            gap_check: u64::MAX,
            try_usual: usual::is_possible(chain, &accept),
        }
    }

    /// Takes one line: a row with its text, not in the batch yet. Offsets of lines go up.
    #[inline]
    pub fn line(&mut self, batch: &mut Batch, row: Row) {
        self.end = row.offset + u64::from(row.line_bytes);
        self.now = row.time;
        if row.offset > self.gap_check {
            self.complete_left_behind(batch, row.offset);
        }
        if self.try_usual && self.usual_line(batch, &row) {
            return;
        }
        let item = Item { row, stream: 0, flags: 0, has_fields: false, has_line_feed: false };
        self.advance(batch, item, 0);
    }

    /// Takes note of a line that is not read because it is too long. Groups end at it.
    pub fn skipped_line(&mut self, batch: &mut Batch, start: u64, end: u64) {
        self.interrupt(batch);
        self.end = end;
        self.state.dropped.push(Dropped { start, end, reason: Some(DropReason::LineTooLong) });
    }

    /// All groups are complete, because of what follows.
    pub fn interrupt(&mut self, batch: &mut Batch) {
        for at in 0..self.chain.parsers.len() {
            for stream in 0..STREAMS {
                self.complete(batch, at, stream);
            }
        }
    }

    /// Whether the batch has `rows_max` complete events: no more lines are needed.
    pub fn is_full(&mut self, batch: &Batch, rows_max: usize) -> bool {
        let rows = batch.len() + self.state.dropped.len();
        if rows < rows_max.max(self.rows_check) {
            return false;
        }
        // Another stream may hold them all back.
        self.rows_check = rows * 2;
        self.complete_before(batch) > self.start
    }

    /// Ends the turn: takes incomplete groups out of the batch.
    pub fn finish(mut self, batch: &mut Batch, ending: Ending) -> Finish {
        let flush_at = match ending {
            Ending::More => {
                self.state.waits.clear();
                None
            }
            Ending::Waiting(now) => self.complete_expired(batch, now),
            Ending::Last => {
                self.interrupt(batch);
                self.state.waits.clear();
                None
            }
        };
        let end = self.complete_before(batch);
        let state = self.state;
        let mut finish = Finish { end, unfinished: end < self.end, flush_at, ..Finish::default() };
        if finish.unfinished {
            batch.withdraw(|row| row.offset < end);
        }
        for dropped in state.dropped.iter().filter(|dropped| dropped.start < end) {
            match dropped.reason {
                Some(reason) => batch.count_dropped(reason, 1),
                None => finish.discarded += 1,
            }
        }
        finish.truncated = state.cut.iter().filter(|offset| **offset < end).count() as u64;
        finish.errors = state.errors.iter().filter(|offset| **offset < end).count() as u64;
        for (offset, slot, hold) in state.changes.drain(..) {
            if offset < end {
                state.saved_holds[slot] = hold;
            }
        }
        state.waits.retain(|wait| wait.end > end);
        finish
    }

    /// An item at the parser `from`, and what is behind it.
    pub(super) fn advance(&mut self, batch: &mut Batch, mut item: Item, from: usize) {
        let chain = self.chain;
        for (at, parser) in chain.parsers.iter().enumerate().skip(from) {
            match parser {
                Parser::Multiline(multiline) => {
                    return self.multiline(batch, at, multiline, item);
                }
                Parser::IncludeMessage(patterns) => {
                    let message = item.row.text().map_or(&[][..], |text| batch.text(text));
                    if !patterns.iter().any(|pattern| pattern.is_match(message)) {
                        let reason =
                            if message.is_empty() { DropReason::Empty } else { DropReason::Parser };
                        return self.drop(&item, Some(reason));
                    }
                }
                Parser::Container(container) => {
                    if !self.container(batch, at, container, &mut item) {
                        return;
                    }
                }
                Parser::Ndjson { .. } | Parser::Syslog { .. } | Parser::Auditd { .. } => {
                    self.leaf(batch, at, &mut item);
                }
            }
        }
        self.emit(batch, item);
    }

    /// An item has left the last parser.
    fn emit(&mut self, batch: &mut Batch, mut item: Item) {
        let text = item.row.text().unwrap_or_default();
        if text.len == 0 && !item.has_fields {
            return self.drop(&item, Some(DropReason::Empty));
        }
        if text.len as usize > self.accept.message_max_bytes {
            let mut cut = text;
            cut.len = character_boundary(batch.text(text), self.accept.message_max_bytes) as u32;
            batch.set_text(&mut item.row, cut);
            item.flags |= TRUNCATED;
        }
        let message = item.row.text().map_or(&[][..], |text| batch.text(text));
        if self.accept.refuses(message) {
            return self.drop(&item, Some(DropReason::LineFilter));
        }
        batch.push(item.row);
        if item.flags != 0 {
            self.put_flags(batch, item.flags);
        }
        if item.flags & TRUNCATED != 0 {
            self.state.cut.push(item.row.offset);
        }
    }

    /// Adds to `log.flags` of the newest event.
    fn put_flags(&self, batch: &mut Batch, flags: u8) {
        let mut cells = [Cell::Null; FLAGS.len()];
        let mut count = 0;
        let row = batch.len() - 1;
        let mut event = batch.event_mut(row, &self.base);
        for (flag, name) in FLAGS {
            if flags & flag != 0 {
                cells[count] = Cell::Str(event.store_text(name));
                count += 1;
            }
        }
        let list = event.store_list(&cells[..count]);
        // A parser may have put something else where `log` should be: it stays.
        if let Err(error) = event.put_cell(&self.flags_path, list) {
            debug_assert!(matches!(error, skidder_event::EditError::NotAnObject(_)));
        }
    }

    pub(super) fn drop(&mut self, item: &Item, reason: Option<DropReason>) {
        let start = item.row.offset;
        let end = start + u64::from(item.row.line_bytes);
        self.state.dropped.push(Dropped { start, end, reason });
    }

    /// A line belongs to a group that is finished already.
    pub(super) fn discard(&mut self, item: &Item) {
        self.drop(item, None);
    }

    pub(super) fn group(&mut self, slot: usize) -> &mut Group {
        &mut self.state.groups[slot]
    }

    pub(super) fn add(&mut self, batch: &mut Batch, slot: usize, item: &Item, bounds: Bounds) {
        let group = &mut self.state.groups[slot];
        group.add(batch, item, bounds);
        self.gap_check = self.gap_check.min(group.end() + GAP_BYTES);
    }

    pub(super) fn hold(&self, slot: usize) -> Hold {
        self.state.holds[slot]
    }

    /// What happens to the lines of a group behind the one at `offset`.
    pub(super) fn set_hold(&mut self, slot: usize, offset: u64, hold: Hold) {
        self.state.holds[slot] = hold;
        self.state.changes.push((offset, slot, hold));
    }

    /// Gives out a group that takes too much of the source; what follows of it is discarded.
    pub(super) fn bound_group(
        &mut self,
        batch: &mut Batch,
        at: usize,
        stream: usize,
        offset: u64,
        hold: Hold,
    ) {
        let slot = at * STREAMS + stream;
        let group = &mut self.state.groups[slot];
        let extent = group.extent();
        let full = group.is_truncated() && extent > CUT_GROUP_BYTES;
        if full || extent > self.chain.group_bytes_max {
            group.set_truncated();
            self.complete(batch, at, stream);
            self.set_hold(slot, offset, hold);
        }
    }

    /// The group of a parser and stream is complete.
    pub(super) fn complete(&mut self, batch: &mut Batch, at: usize, stream: usize) {
        if self.state.groups[at * STREAMS + stream].is_empty() {
            return;
        }
        match &self.chain.parsers[at] {
            Parser::Multiline(multiline) => self.complete_multiline(batch, at, stream, multiline),
            Parser::Container(_) => self.complete_container(batch, at, stream),
            Parser::IncludeMessage(_)
            | Parser::Ndjson { .. }
            | Parser::Syslog { .. }
            | Parser::Auditd { .. } => {}
        }
    }

    /// Groups of which there was no line for long are complete.
    fn complete_left_behind(&mut self, batch: &mut Batch, offset: u64) {
        // Completing one may add to another.
        self.gap_check = u64::MAX;
        for slot in 0..self.state.groups.len() {
            let group = &self.state.groups[slot];
            if group.is_empty() {
                continue;
            }
            let check = group.end() + GAP_BYTES;
            if check < offset {
                self.complete(batch, slot / STREAMS, slot % STREAMS);
            } else {
                self.gap_check = self.gap_check.min(check);
            }
        }
    }

    /// Completes groups that have waited long enough; returns when the next of the others will have.
    fn complete_expired(&mut self, batch: &mut Batch, now: Duration) -> Option<Duration> {
        let mut flush_at: Option<Duration> = None;
        let before = std::mem::take(&mut self.state.waits);
        for slot in 0..self.state.groups.len() {
            let group = &self.state.groups[slot];
            if group.is_empty() {
                continue;
            }
            let Some(timeout) = self.chain.parsers[slot / STREAMS].timeout() else { continue };
            let end = group.end();
            let since = before
                .iter()
                .find(|wait| wait.slot == slot && wait.end == end)
                .map_or(now, |wait| wait.since);
            self.state.waits.push(Wait { slot, end, since });
            let due = since + timeout;
            if due <= now {
                self.complete(batch, slot / STREAMS, slot % STREAMS);
            } else {
                flush_at = Some(flush_at.map_or(due, |at| at.min(due)));
            }
        }
        flush_at
    }

    /// The offset up to which every line belongs to something complete.
    pub fn complete_before(&self, batch: &Batch) -> u64 {
        let mut end = self.end;
        for group in &self.state.groups {
            end = group.start().map_or(end, |start| end.min(start));
        }
        if end == self.end {
            return end;
        }
        // An event of one stream may have lines on both sides of one of another.
        loop {
            let rows = batch.rows().iter();
            let rows = rows.map(|row| (row.offset, row.offset + u64::from(row.line_bytes)));
            let dropped = self.state.dropped.iter().map(|dropped| (dropped.start, dropped.end));
            let crossing = rows.chain(dropped).filter(|(from, to)| *from < end && *to > end);
            match crossing.map(|(from, _)| from).min() {
                Some(earlier) => end = earlier,
                None => return end,
            }
        }
    }
}

/// The largest length up to `max` that does not split a UTF-8 character.
pub fn character_boundary(text: &[u8], max: usize) -> usize {
    let mut end = max;
    while end > 0 && max - end < 4 && text.get(end).is_some_and(|byte| byte & 0xc0 == 0x80) {
        end -= 1;
    }
    if max - end == 4 { max } else { end }
}
