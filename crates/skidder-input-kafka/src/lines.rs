//! `parsers`: the values of records are lines, and the parsers make events of them, across records.
//!
//! What belongs to an unfinished group stays here and is given to the parsers again with what follows. An event has the
//! offset, key and headers of the first record of its group.

use crate::claim::Ready;
use crate::facts::Facts;
use crate::settings::Settings;
use skidder_event::{Batch, Row, Text};
use skidder_input::Source;
use skidder_parse::chain::{Accept, Ending, Finish, Run, State};
use std::sync::Arc;

/// Events of a batch, at most; parsers may need some more to complete a group.
const BATCH_EVENTS_MAX: usize = 2048;

/// See the module's text.
pub(crate) struct Lines {
    settings: Arc<Settings>,
    state: State,
    /// Lines, each with a line feed behind it.
    bytes: Vec<u8>,
    /// Where they stand, and the record of each.
    texts: Vec<(Text, u32)>,
    facts: Facts,
    /// Bytes of all lines before these.
    offset: u64,
    /// Bytes of values that are in no batch yet.
    taken: u64,
    /// So many bytes made no event.
    tried: usize,
    /// Lines that a parser could not read.
    failures: u64,
}

impl Lines {
    pub(crate) fn new(settings: &Arc<Settings>) -> Self {
        Self {
            settings: Arc::clone(settings),
            state: State::default(),
            bytes: Vec::new(),
            texts: Vec::new(),
            facts: Facts::default(),
            offset: 0,
            taken: 0,
            tried: 0,
            failures: 0,
        }
    }

    /// Whether there are lines that are no event yet.
    pub(crate) fn holds(&self) -> bool {
        !self.texts.is_empty()
    }

    /// Adds lines; the given memory is left empty.
    pub(crate) fn add(&mut self, bytes: &mut Vec<u8>, texts: &mut Vec<(Text, u32)>, facts: Facts) {
        let (start, first) = (self.bytes.len() as u32, self.facts.len());
        self.bytes.extend_from_slice(bytes);
        bytes.clear();
        let moved = |(text, record): (Text, u32)| {
            (Text { start: text.start + start, ..text }, record + first)
        };
        self.texts.extend(texts.drain(..).map(moved));
        self.facts.append(facts);
    }

    /// Counts bytes of values.
    pub(crate) fn count(&mut self, taken: u64) {
        self.taken += taken;
    }

    /// The next events; `end` is the offset behind the last record. `None` if more lines are needed.
    pub(crate) fn next(&mut self, source: &mut Source, ending: Ending, end: i64) -> Option<Ready> {
        if ending == Ending::More && self.bytes.len() < 2 * self.tried {
            return None;
        }
        let bytes = std::mem::take(&mut self.bytes);
        let whole = bytes.len();
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { whole } else { 0 };
        let mut batch = source.batch(bytes, utf8);
        let finish = self.parse(&mut batch, ending);
        let consumed = (finish.end - self.offset) as usize;
        if consumed == 0 {
            self.bytes = batch.into_parts().bytes;
            self.bytes.truncate(whole);
            self.tried = whole;
            return None;
        }
        self.report(source, &finish);
        let appended = whole..batch.bytes().len();
        let is_utf8 = simdutf8::basic::from_utf8(&batch.bytes()[appended.clone()]).is_ok();
        batch.set_utf8_appended(if is_utf8 { appended } else { whole..whole });
        self.put_facts(&mut batch);
        self.bytes = batch.bytes()[consumed..whole].to_vec();
        let end = self.forget(consumed).unwrap_or(end);
        (self.tried, self.offset) = (0, finish.end);
        Some(Ready { batch, end, bytes: std::mem::take(&mut self.taken) })
    }

    fn parse(&mut self, batch: &mut Batch, ending: Ending) -> Finish {
        let Self { settings, state, texts, facts, offset, .. } = self;
        let message_max_bytes = settings.message_max_bytes;
        let accept = Accept { message_max_bytes, include: &[], exclude: &[] };
        let is_full = batch.bytes().len() >= settings.group_bytes_max();
        let mut run = Run::new(&settings.parsers, state, accept, batch, *offset);
        let mut is_stopped = false;
        for (text, record) in texts {
            if run.is_full(batch, BATCH_EVENTS_MAX) {
                is_stopped = true;
                break;
            }
            let start = *offset + u64::from(text.start);
            let time = facts.time(*record);
            run.line(batch, Row::numbered(start, text.len + 1, *text, time));
        }
        if is_full && run.complete_before(batch) == *offset {
            run.interrupt(batch);
        }
        run.finish(batch, if is_stopped { Ending::More } else { ending })
    }

    /// Each event gets the facts of its first record.
    fn put_facts(&self, batch: &mut Batch) {
        for row in 0..batch.len() {
            let start = (batch.rows()[row].offset - self.offset) as u32;
            let place = self.texts.partition_point(|(text, _)| text.start <= start);
            if let Some((_, record)) = place.checked_sub(1).and_then(|place| self.texts.get(place))
            {
                self.facts.put(*record, batch, row);
            }
        }
    }

    /// Forgets the lines in so many bytes; returns the offset of the record of the first line that is left.
    fn forget(&mut self, consumed: usize) -> Option<i64> {
        let gone = self.texts.partition_point(|(text, _)| (text.start as usize) < consumed);
        self.texts.drain(..gone);
        let Some((_, first)) = self.texts.first().copied() else {
            self.facts = Facts::default();
            return None;
        };
        let offset = self.facts.offset(first);
        self.facts.forget(first);
        for (text, record) in &mut self.texts {
            text.start -= consumed as u32;
            *record -= first;
        }
        Some(offset)
    }

    /// Reports lines that a parser could not read: the first, the tenth, the hundredth and so on.
    fn report(&mut self, source: &Source, finish: &Finish) {
        let Some(failure) = self.state.take_failure() else { return };
        let before = self.failures;
        self.failures += finish.errors;
        if before > 0 && before.ilog10() == self.failures.max(before).ilog10() {
            return;
        }
        tracing::warn!(
            parser = failure.parser,
            partition = &*source.about().name,
            error = failure.error,
            lines = self.failures,
            "records cannot be parsed and go on as they are"
        );
    }
}
