//! `multiline`: lines that belong together become one event.
//!
//! Semantics of Filebeat's `libbeat/reader/multiline`. Two differences: a group that is complete whatever
//! comes next is finished at once, and `count_lines` counts lines beyond `max_bytes` too.

use super::group::Bounds;
use super::run::{Hold, Item, MULTILINE, Run, TRUNCATED};
use super::{Matcher, STREAMS};
use skidder_event::Batch;
use std::time::Duration;

/// `multiline`.
#[derive(Clone, Debug)]
pub struct Multiline {
    /// `type` and what belongs to it.
    pub rule: Rule,
    /// `max_lines`: lines of a message; 0 = no bound. Lines beyond are discarded.
    pub max_lines: u32,
    /// `max_bytes` of the input: bytes of a message. What is beyond is discarded.
    pub max_bytes: usize,
    /// `timeout`: a group that has waited this long for its next line is complete; `None`: never.
    pub timeout: Option<Duration>,
    /// `skip_newline`: lines are joined without a line feed.
    pub skip_newline: bool,
}

/// Which lines belong together.
#[derive(Clone, Debug)]
pub enum Rule {
    /// `pattern`.
    Pattern {
        /// `pattern`.
        pattern: Matcher,
        /// `negate`: it is the lines that do not match that count.
        negate: bool,
        /// `match`.
        side: Match,
        /// `flush_pattern`: the last line of a group, whatever the pattern says.
        flush: Option<Matcher>,
    },
    /// `count`: this many lines.
    Count(u32),
    /// `while_pattern`: lines that match in a row.
    While {
        /// `pattern`.
        pattern: Matcher,
        /// `negate`: lines that do not match in a row.
        negate: bool,
    },
}

/// `match`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Match {
    /// A line that matches belongs to the one before.
    #[default]
    After,
    /// A line that matches belongs to the one that follows.
    Before,
}

impl Multiline {
    /// Default of `max_lines`.
    pub const MAX_LINES: u32 = 500;
    /// Default of `timeout`.
    pub const TIMEOUT: Duration = Duration::from_secs(5);

    /// A line feed that a text had at its end stands between the lines even if no other shall.
    fn bounds(&self, item: &Item) -> Bounds {
        let skip = self.skip_newline && !item.has_line_feed;
        let separator: &[u8] = if skip { b"" } else { b"\n" };
        Bounds { bytes: self.max_bytes, lines: self.max_lines, separator }
    }
}

impl Run<'_> {
    /// One line, or event of a parser before, at the parser `at`.
    pub(super) fn multiline(
        &mut self,
        batch: &mut Batch,
        at: usize,
        multiline: &Multiline,
        item: Item,
    ) {
        match &multiline.rule {
            Rule::Pattern { pattern, negate, side, flush } => {
                let message = item.row.text().map_or(&[][..], |text| batch.text(text));
                let matched = pattern.is_match(message) != *negate;
                let ends = flush.as_ref().is_some_and(|flush| flush.is_match(message));
                self.by_pattern(
                    batch,
                    at,
                    multiline,
                    item,
                    (*side, matched, ends, flush.is_some()),
                );
            }
            Rule::Count(count) => self.by_count(batch, at, multiline, item, *count),
            Rule::While { pattern, negate } => {
                let message = item.row.text().map_or(&[][..], |text| batch.text(text));
                let matched = pattern.is_match(message) != *negate;
                self.by_while(batch, at, multiline, item, matched);
            }
        }
    }

    fn by_pattern(
        &mut self,
        batch: &mut Batch,
        at: usize,
        multiline: &Multiline,
        item: Item,
        (side, matched, ends, can_flush): (Match, bool, bool, bool),
    ) {
        let slot = at * STREAMS + item.stream;
        // The line that follows has no say, but for `flush_pattern`.
        let closes = side == Match::Before && !matched && !can_flush;
        if self.hold(slot) != Hold::No {
            let goes_on = ends || side == Match::Before || matched;
            if goes_on {
                self.discard(&item);
                if ends || (side == Match::Before && !matched) {
                    self.set_hold(slot, item.row.offset, Hold::No);
                }
                return;
            }
            self.set_hold(slot, item.row.offset, Hold::No);
        }
        let group = self.group(slot);
        let goes_on = match side {
            _ if group.is_empty() || ends => true,
            Match::After => matched,
            Match::Before => group.is_open(),
        };
        // The first line of a group does not end it.
        let ends = ends && !group.is_empty();
        if !goes_on {
            self.complete(batch, at, item.stream);
        }
        self.add(batch, slot, &item, multiline.bounds(&item));
        self.group(slot).set_open(matched);
        if ends || closes {
            self.complete(batch, at, item.stream);
        } else {
            self.bound_group(batch, at, item.stream, item.row.offset, Hold::Following);
        }
    }

    fn by_count(
        &mut self,
        batch: &mut Batch,
        at: usize,
        multiline: &Multiline,
        item: Item,
        count: u32,
    ) {
        let slot = at * STREAMS + item.stream;
        if let Hold::Lines(left) = self.hold(slot) {
            self.discard(&item);
            let hold = if left > 1 { Hold::Lines(left - 1) } else { Hold::No };
            self.set_hold(slot, item.row.offset, hold);
            return;
        }
        self.add(batch, slot, &item, multiline.bounds(&item));
        let seen = self.group(slot).seen();
        if seen >= count {
            self.complete(batch, at, item.stream);
        } else {
            self.bound_group(batch, at, item.stream, item.row.offset, Hold::Lines(count - seen));
        }
    }

    fn by_while(
        &mut self,
        batch: &mut Batch,
        at: usize,
        multiline: &Multiline,
        item: Item,
        matched: bool,
    ) {
        let slot = at * STREAMS + item.stream;
        if self.hold(slot) != Hold::No {
            if matched {
                self.discard(&item);
                return;
            }
            self.set_hold(slot, item.row.offset, Hold::No);
        }
        if matched {
            self.add(batch, slot, &item, multiline.bounds(&item));
            self.bound_group(batch, at, item.stream, item.row.offset, Hold::Following);
        } else {
            self.complete(batch, at, item.stream);
            self.advance(batch, item, at + 1);
        }
    }

    /// Passes the event of a group to the next parsers.
    pub(super) fn complete_multiline(
        &mut self,
        batch: &mut Batch,
        at: usize,
        stream: usize,
        multiline: &Multiline,
    ) {
        let group = self.group(at * STREAMS + stream);
        let Some(bounds) = group.first().map(|first| multiline.bounds(first)) else { return };
        if let Some(mut done) = group.take(batch, bounds.separator) {
            let truncated = if done.truncated { TRUNCATED } else { 0 };
            let multiline = if done.lines > 1 { MULTILINE } else { 0 };
            done.item.flags |= truncated | multiline;
            self.advance(batch, done.item, at + 1);
        }
    }
}
