//! From entries to batches of events.

use super::Settings;
use super::entries::{Entries, Read};
use super::fields::{Item, fields, put_message};
use super::place::{Place, VERSION};
use skidder_event::{Batch, Map, Row, SharedFields, SourcePart, Text, Value};
use skidder_input::{PartsPool, Source};
use skidder_os::Timestamp;
use skidder_parse::chain::{Accept, Ending, Run, State};
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

/// Entries that are looked at for one batch, at most.
const ENTRIES_MAX: usize = 2048;

/// Bytes of messages and fields of a batch, but for one entry.
const BYTES_MAX: usize = 1 << 20;

/// Entries that were not wanted, and that are worth a cursor of their own.
const UNWANTED_MAX: u64 = 10_000;

/// An entry on its way to an event.
struct Pending {
    read: Read,
    /// Where its message begins, among all bytes of messages of the source.
    offset: u64,
    /// Bytes of the message, and one: two entries differ in their offset.
    bytes: u32,
    items: Vec<Arc<Item>>,
}

/// A journal on its way to events.
pub(super) struct Reading {
    settings: Arc<Settings>,
    pub(super) source: Source,
    entries: Entries,
    /// Entries that are in no event yet, and their messages.
    pending: VecDeque<Pending>,
    messages: Vec<u8>,
    state: State,
    /// When a group of messages will have waited long enough.
    pub(super) flush_at: Option<std::time::Duration>,
    /// Behind the last entry that is in an event.
    place: Place,
    /// Entries behind the last cursor that was sent.
    unsent: u64,
    /// There are no more entries for now.
    is_tail: bool,
    pool: Arc<PartsPool>,
}

impl Reading {
    pub(super) fn new(
        settings: Arc<Settings>,
        source: Source,
        entries: Entries,
        place: Place,
    ) -> Self {
        Self {
            settings,
            source,
            entries,
            pending: VecDeque::new(),
            messages: Vec::new(),
            state: State::default(),
            flush_at: None,
            place,
            unsent: 0,
            is_tail: false,
            pool: Arc::default(),
        }
    }

    /// Looks for new files.
    pub(super) fn scan(&mut self) -> &[std::path::PathBuf] {
        let source = &self.source;
        let positions = self.entries.scan(&mut |path, error| report(source, path, error));
        // Of a file that was open before, entries may be on their way: its place is that of the last event.
        let known = std::mem::take(&mut self.place.files);
        for (file, seqnum) in positions {
            let seqnum = known.get(&file).copied().unwrap_or(seqnum);
            self.place.files.insert(file, seqnum);
        }
        &self.entries.directories
    }

    /// Why there is nothing to read, as of the last scan.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.entries.trouble.as_deref()
    }

    /// Looks for new entries.
    pub(super) fn refresh(&mut self) {
        let source = &self.source;
        self.entries.refresh(&mut |path, error| report(source, path, error));
    }

    /// Frees buffers until something is read again.
    pub(super) fn release(&mut self) {
        self.entries.release();
        self.pool.release();
        if self.messages.is_empty() {
            self.messages = Vec::new();
        }
        self.pending.shrink_to_fit();
    }

    /// Reads on; returns the events that are complete. With nothing, there is no more for now.
    pub(super) fn next(&mut self, ending: Ending, now: Timestamp) -> Option<(Batch, SourcePart)> {
        loop {
            self.gather();
            self.pass_unwanted();
            if self.pending.is_empty() {
                if self.is_tail {
                    return self.cursor_only();
                }
                continue;
            }
            let bytes_max = self.settings.parsers.group_bytes_max() as usize + BYTES_MAX;
            let is_long = self.messages.len() > bytes_max;
            let waiting = if self.is_tail { ending } else { Ending::More };
            let ending = if is_long { Ending::Last } else { waiting };
            let made = self.make(ending, now);
            if made.is_some() || self.is_tail {
                return made;
            }
        }
    }

    /// Reads entries.
    fn gather(&mut self) {
        let source = &self.source;
        let bytes_max = self.messages.len() + BYTES_MAX;
        let mut looked = 0;
        let mut offset = self
            .pending
            .back()
            .map_or(self.place.offset, |last| last.offset + u64::from(last.bytes));
        while looked < ENTRIES_MAX && self.messages.len() < bytes_max {
            let mut items = Vec::new();
            let read =
                self.entries.next(&mut items, &mut |path, error| report(source, path, error));
            let Some(read) = read else { break };
            looked += 1;
            let start = self.messages.len();
            let mut bytes = 0;
            if read.is_wanted {
                put_message(&items, &mut self.messages);
                self.messages.push(b'\n');
                bytes = (self.messages.len() - start) as u32;
                items.retain(|item| item.is_field());
            }
            self.pending.push_back(Pending { read, offset, bytes, items });
            offset += u64::from(bytes);
        }
        self.is_tail = looked < ENTRIES_MAX && self.messages.len() < bytes_max;
    }

    /// Passes over entries at the front that are not wanted.
    fn pass_unwanted(&mut self) {
        while let Some(pending) = self.pending.pop_front_if(|pending| !pending.read.is_wanted) {
            self.pass(&pending);
        }
    }

    fn pass(&mut self, pending: &Pending) {
        self.unsent += 1;
        self.place.offset = pending.offset + u64::from(pending.bytes);
        self.place.cursor = Some(pending.read.cursor);
        if let Some(seqnum) = self.place.files.get_mut(&pending.read.file_id) {
            *seqnum = pending.read.cursor.seqnum;
        }
    }

    /// A batch without events, if there is much to pass over after a restart.
    fn cursor_only(&mut self) -> Option<(Batch, SourcePart)> {
        if self.unsent < UNWANTED_MAX {
            return None;
        }
        let batch = self.source.batch(Vec::new(), 0);
        Some((batch, self.part(0)))
    }

    fn part(&mut self, bytes: u64) -> SourcePart {
        self.unsent = 0;
        SourcePart { version: VERSION, cursor: self.place.text().into(), bytes }
    }

    /// Makes events of the entries that are pending.
    fn make(&mut self, ending: Ending, now: Timestamp) -> Option<(Batch, SourcePart)> {
        let is_utf8 = simdutf8::basic::from_utf8(&self.messages).is_ok();
        let utf8 = if is_utf8 { self.messages.len() } else { 0 };
        let mut parts = self.pool.take();
        parts.bytes.extend_from_slice(&self.messages);
        let mut batch = self.source.batch_of(parts, utf8);
        self.pool.lend(&mut batch);
        let start = self.pending.front()?.offset;
        let end = self.put_rows(&mut batch, start, ending);
        if end == start {
            return None;
        }
        let count = self.pending.partition_point(|pending| pending.offset < end);
        self.put_fields(&mut batch, count, now);
        let taken: Vec<Pending> = self.pending.drain(..count).collect();
        for pending in &taken {
            self.pass(pending);
        }
        self.messages.drain(..(end - start) as usize);
        self.pass_unwanted();
        let part = self.part(end - start);
        Some((batch, part))
    }

    /// Passes the messages to the parsers; returns where those end that are in events.
    fn put_rows(&mut self, batch: &mut Batch, start: u64, ending: Ending) -> u64 {
        let settings = &self.settings;
        let accept =
            Accept { message_max_bytes: settings.message_max_bytes, include: &[], exclude: &[] };
        let wanted = self.pending.iter().filter(|pending| pending.read.is_wanted);
        let rows = wanted.map(|pending| {
            let (offset, bytes) = (pending.offset, pending.bytes);
            let message = Text { start: (offset - start) as u32, len: bytes - 1 };
            let time = i64::try_from(pending.read.cursor.realtime).unwrap_or(i64::MAX);
            Row::numbered(offset, bytes, message, time.saturating_mul(1000))
        });
        if settings.parsers.is_empty() {
            let mut end = start;
            for row in rows {
                end = row.offset + u64::from(row.line_bytes);
                batch.push(row);
            }
            return end;
        }
        let mut run = Run::new(&settings.parsers, &mut self.state, accept, batch, start);
        for row in rows {
            run.line(batch, row);
        }
        let finish = run.finish(batch, ending);
        self.flush_at = finish.flush_at;
        if let Some(failure) = self.state.take_failure() {
            let (parser, error) = (failure.parser, failure.error);
            tracing::warn!(
                parser,
                error,
                "a message of the journal cannot be parsed and goes on as it is"
            );
        }
        finish.end
    }

    /// Gives the events the fields of their entries.
    fn put_fields(&self, batch: &mut Batch, count: usize, now: Timestamp) {
        let base = Arc::clone(batch.base());
        let makes_fields = self.settings.parsers.makes_fields();
        let mut shared: HashMap<Vec<*const Item>, Fields, foldhash::fast::FixedState> =
            HashMap::default();
        let mut at = 0;
        for row in 0..batch.len() {
            let Row { offset, line_bytes, message, .. } = batch.rows()[row];
            let end = offset + u64::from(line_bytes);
            while self.pending[at].offset < offset {
                at += 1;
            }
            if message.len == 0 && self.settings.parsers.is_empty() {
                batch.event_mut(row, &base).clear_message();
            }
            let group = (at..count).take_while(|other| {
                *other == at || (line_bytes > 0 && self.pending[*other].offset < end)
            });
            let mut group = group.filter(|other| self.pending[*other].read.is_wanted);
            let first = group.next().unwrap_or(at);
            let key: Vec<*const Item> = self.pending[first].items.iter().map(Arc::as_ptr).collect();
            let rest: Vec<usize> = group.collect();
            let is_alone = rest.is_empty() && !makes_fields;
            if is_alone && let Some(known) = shared.get_mut(&key) {
                let fields = *known.shared.get_or_insert_with(|| batch.share(known.row));
                if batch.put_shared(row, fields) {
                    continue;
                }
            }
            let mut map = self.map(first, now);
            for other in rest {
                // As Filebeat joins messages: the objects of the last one replace those of the first.
                for (name, value) in self.map(other, now).iter() {
                    map.insert(name, value.clone());
                }
            }
            let mut event = batch.event_mut(row, &base);
            if makes_fields {
                put_missing(&mut event, &map);
            } else {
                event.merge(&map);
            }
            if is_alone {
                shared.insert(key, Fields { row, shared: None });
            }
        }
    }

    fn map(&self, at: usize, now: Timestamp) -> Map {
        let mut map = fields(&self.pending[at].items, self.settings.save_remote_hostname);
        map.insert_path("event.created", Value::Time(now.0));
        map
    }
}

/// The fields of an event, which others may have, too.
struct Fields {
    row: usize,
    shared: Option<SharedFields>,
}

/// Puts fields below those that a parser has put.
fn put_missing(event: &mut skidder_event::EventMut<'_>, map: &Map) {
    for (name, value) in map.iter() {
        let cell = event.store(value);
        let key = event.store_text(name.as_bytes());
        event.note_name(key);
        let (_, mut arena) = event.arena();
        let field = arena.push(skidder_event::NodeId::NONE, key, cell, 0);
        event.merge_list_over(skidder_event::FieldList::one(field), false);
    }
}

fn report(source: &Source, path: &Path, error: &str) {
    source.failed(&format!("{}: {error}", path.display()));
    tracing::warn!(path = %path.display(), error, "the journal cannot be read as a whole");
}
