//! A partition that this process reads: from its records to batches of events.
//!
//! Each batch is acknowledged with its last verdict; [`Settled`] then knows how far the partition is settled. Records
//! of a group of lines that is not complete stay here, and are read again by the next owner of the partition.

use crate::api::Fetched;
use crate::expand;
use crate::lines::Lines;
use crate::records::{self, Record, RecordBatch, RecordsError};
use crate::settings::Settings;
use skidder_event::{Batch, Cell, Map, Parts, Path, Row, Text, Value};
use skidder_input::{Intake, Settled, Source};
use skidder_parse::chain::Ending;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use tokio::sync::Notify;

/// Events of a batch, at most; but those of one record are never in two.
const BATCH_EVENTS_MAX: usize = 2048;
/// Bytes of a batch that are enough.
const BATCH_BYTES: usize = 1 << 20;

const NANOSECONDS: i64 = 1_000_000;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

static OFFSET: LazyLock<Path> = LazyLock::new(|| path("kafka.offset"));
static KEY: LazyLock<Path> = LazyLock::new(|| path("kafka.key"));
static HEADERS: LazyLock<Path> = LazyLock::new(|| path("kafka.headers"));
static BLOCK_TIME: LazyLock<Path> = LazyLock::new(|| path("kafka.block_timestamp"));

/// The facts about a claim that the group looks at while another task reads the partition.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) progress: Arc<Settled>,
    /// All records that there were at the last look are sent.
    pub(crate) is_at_end: AtomicBool,
}

/// See the module's text.
pub(crate) struct Claim {
    pub(crate) topic: String,
    pub(crate) partition: i32,
    pub(crate) source: Source,
    /// The offset that is read next; `None` until it was looked up.
    pub(crate) position: Option<i64>,
    /// The offset that is not in the partition (any more), until it is known where to read on.
    pub(crate) lost: Option<i64>,
    pub(crate) shared: Arc<Shared>,
    settings: Arc<Settings>,
    intake: Intake,
    gathered: Gathered,
    lines: Option<Lines>,
    room: Vec<u8>,
}

/// Records on their way into a batch.
#[derive(Default)]
struct Gathered {
    bytes: Vec<u8>,
    /// Where each event's text stands, and which record it is of.
    texts: Vec<(Text, u32)>,
    facts: Facts,
    /// Bytes of the values.
    taken: u64,
}

/// Facts about records besides their values.
#[derive(Default)]
pub(crate) struct Facts {
    records: Vec<Fact>,
    /// Keys and headers.
    bytes: Vec<u8>,
    headers: Vec<Range<u32>>,
}

struct Fact {
    offset: i64,
    /// Nanoseconds since 1970.
    time: i64,
    block_time: Option<i64>,
    key: Range<u32>,
    headers: Range<u32>,
}

impl Facts {
    fn push(
        &mut self,
        record: &Record<'_>,
        now: i64,
        settings: &Settings,
    ) -> Result<u32, RecordsError> {
        let has_time = settings.timestamps && record.time >= 0;
        let start = self.bytes.len() as u32;
        self.bytes.extend_from_slice(record.key);
        let key = start..self.bytes.len() as u32;
        let first = self.headers.len() as u32;
        if settings.headers && !record.headers.is_empty() {
            let Self { bytes, headers, .. } = self;
            record.headers.each(|key, value| {
                let start = bytes.len() as u32;
                // As in Filebeat: a colon ends the key.
                bytes.extend(key.iter().map(|byte| if *byte == b':' { b'_' } else { *byte }));
                bytes.extend_from_slice(b": ");
                bytes.extend_from_slice(value);
                headers.push(start..bytes.len() as u32);
            })?;
        }
        self.records.push(Fact {
            offset: record.offset,
            time: if has_time { record.time.saturating_mul(NANOSECONDS) } else { now },
            block_time: record.block_time.filter(|time| has_time && *time >= 0),
            key,
            headers: first..self.headers.len() as u32,
        });
        Ok(self.records.len() as u32 - 1)
    }

    pub(crate) fn offset(&self, record: u32) -> i64 {
        self.records[record as usize].offset
    }

    pub(crate) fn time(&self, record: u32) -> i64 {
        self.records[record as usize].time
    }

    /// Puts what is known of a record into its event.
    pub(crate) fn put(&self, record: u32, batch: &mut Batch, row: usize) {
        let fact = &self.records[record as usize];
        let base = Arc::clone(batch.base());
        let mut event = batch.event_mut(row, &base);
        let mut is_put = event.put_cell(&OFFSET, Cell::Int(fact.offset)).is_ok();
        let text = |range: &Range<u32>| &self.bytes[range.start as usize..range.end as usize];
        if !fact.key.is_empty() {
            is_put &= event.put_text(&KEY, text(&fact.key)).is_ok();
        }
        if !fact.headers.is_empty() {
            let headers = &self.headers[fact.headers.start as usize..fact.headers.end as usize];
            let cells: Vec<Cell> =
                headers.iter().map(|header| Cell::Str(event.store_text(text(header)))).collect();
            let list = event.store_list(&cells);
            is_put &= event.put_cell(&HEADERS, list).is_ok();
        }
        if let Some(time) = fact.block_time {
            let time = Cell::Time(time.saturating_mul(NANOSECONDS));
            is_put &= event.put_cell(&BLOCK_TIME, time).is_ok();
        }
        debug_assert!(is_put, "`kafka` is an object");
    }

    /// Adds the facts about the records that follow.
    pub(crate) fn append(&mut self, more: Self) {
        let (bytes, headers) = (self.bytes.len() as u32, self.headers.len() as u32);
        let moved = |range: Range<u32>, by: u32| range.start + by..range.end + by;
        self.bytes.extend_from_slice(&more.bytes);
        self.headers.extend(more.headers.into_iter().map(|header| moved(header, bytes)));
        self.records.extend(more.records.into_iter().map(|fact| Fact {
            key: moved(fact.key, bytes),
            headers: moved(fact.headers, headers),
            ..fact
        }));
    }

    /// The number of records.
    pub(crate) fn len(&self) -> u32 {
        self.records.len() as u32
    }

    /// Takes the first records away.
    pub(crate) fn forget(&mut self, records: u32) {
        let kept = self.records.split_off(records as usize);
        let old = std::mem::replace(self, Self { records: Vec::new(), ..Self::default() });
        for fact in kept {
            let copy = |range: &Range<u32>, into: &mut Vec<u8>| {
                let start = into.len() as u32;
                into.extend_from_slice(&old.bytes[range.start as usize..range.end as usize]);
                start..into.len() as u32
            };
            let key = copy(&fact.key, &mut self.bytes);
            let first = self.headers.len() as u32;
            for header in &old.headers[fact.headers.start as usize..fact.headers.end as usize] {
                let header = copy(header, &mut self.bytes);
                self.headers.push(header);
            }
            let headers = first..self.headers.len() as u32;
            self.records.push(Fact { key, headers, ..fact });
        }
    }
}

/// Events to send, and where the partition is settled when they have their verdicts.
pub(crate) struct Ready {
    pub(crate) batch: Batch,
    pub(crate) end: i64,
    pub(crate) bytes: u64,
}

/// Why a partition cannot be read on.
#[derive(Debug, thiserror::Error)]
#[error("topic `{topic}`, partition {partition}, offset {offset}: {source}")]
pub(crate) struct ReadError {
    topic: String,
    partition: i32,
    offset: i64,
    source: RecordsError,
}

impl Claim {
    pub(crate) fn new(
        intake: &Intake,
        settings: &Arc<Settings>,
        (topic, partition): (&str, i32),
        position: Option<i64>,
        news: &Arc<Notify>,
    ) -> Self {
        let mut fields = Map::new();
        fields.insert_path("kafka.topic", topic);
        fields.insert_path("kafka.partition", i64::from(partition));
        fields.insert_path("kafka.key", "");
        if settings.headers {
            fields.insert_path("kafka.headers", Value::List(Vec::new()));
        }
        let progress = Settled::new(position.unwrap_or(-1), Arc::clone(news));
        Self {
            topic: topic.to_owned(),
            partition,
            source: intake.open(&format!("{topic}/{partition}"), fields),
            position,
            lost: None,
            shared: Arc::new(Shared { progress, is_at_end: AtomicBool::new(false) }),
            settings: Arc::clone(settings),
            intake: intake.clone(),
            gathered: Gathered::default(),
            lines: (!settings.parsers.is_empty()).then(|| Lines::new(settings)),
            room: Vec::new(),
        }
    }

    /// Reads on from an offset that was looked up.
    pub(crate) fn seek(&mut self, offset: i64) {
        self.position = Some(offset);
        self.shared.progress.skip(offset);
    }

    /// The broker has no record at the position: where to read on must be looked up.
    pub(crate) fn lose_place(&mut self) {
        self.lost = self.position.take();
    }

    /// Reads on after the offset `lost` was not in the partition, which reaches from `start` to `end`.
    pub(crate) fn seek_lost(&mut self, lost: i64, start: i64, end: i64, from_newest: bool) {
        self.lost = None;
        if (start..=end).contains(&lost) {
            return self.seek(lost);
        }
        let (to, error) = if lost < start {
            self.intake.metrics().lost_before.add((start - lost) as u64);
            (start, "the broker has deleted records that were not read yet")
        } else {
            let to = if from_newest { end } else { start };
            (
                to,
                "the partition ends before the place where it was read: it was truncated, or made anew",
            )
        };
        self.source.failed(error);
        let (topic, partition) = (&*self.topic, self.partition);
        tracing::error!(topic, partition, offset = lost, start, end, reading_from = to, "{error}");
        self.seek(to);
    }

    /// Whether lines wait for the rest of their group.
    pub(crate) fn holds_lines(&self) -> bool {
        self.lines.as_ref().is_some_and(Lines::holds)
    }

    /// Reads the records of an answer from `bytes` on until there is a batch to send; `None`: all were read.
    pub(crate) fn next(
        &mut self,
        fetched: &Fetched<'_>,
        reading: &mut Reading,
    ) -> Result<Option<Ready>, ReadError> {
        let mut rest = &fetched.records[reading.read..];
        let result = self.read(fetched, &mut rest, reading);
        result.map_err(|source| ReadError {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: records::first_offset(rest),
            source,
        })
    }

    fn read(
        &mut self,
        fetched: &Fetched<'_>,
        rest: &mut &[u8],
        reading: &mut Reading,
    ) -> Result<Option<Ready>, RecordsError> {
        loop {
            if self.gathered.is_full()
                && let Some(ready) = self.flush(Ending::More)
            {
                return Ok(Some(ready));
            }
            let before = *rest;
            let Some(batch) = records::next_batch(rest)? else { break };
            let is_whole = self.take(&batch, fetched, reading).inspect_err(|_| *rest = before)?;
            if is_whole {
                self.position = self.position.max(Some(batch.last + 1));
                reading.read = fetched.records.len() - rest.len();
            } else {
                *rest = before;
            }
        }
        let known = if self.settings.read_committed { fetched.stable } else { fetched.end };
        let is_at_end = self.position >= Some(known);
        let ending = match (is_at_end && self.intake.is_once(), is_at_end) {
            (true, _) => Ending::Last,
            (_, true) => Ending::Waiting(self.intake.clock().monotonic().0),
            (_, false) => Ending::More,
        };
        let ready = self.flush(ending);
        if ready.is_none() {
            let end = self.position.unwrap_or(-1);
            let lag = known.saturating_sub(end).max(0);
            reading.lag = u64::try_from(lag).unwrap_or(0);
            self.shared.is_at_end.store(is_at_end && !self.holds_lines(), Ordering::Release);
        }
        Ok(ready)
    }

    /// Gathers the records of a batch; returns whether all of them are, or there is no room for more.
    fn take(
        &mut self,
        batch: &RecordBatch<'_>,
        fetched: &Fetched<'_>,
        reading: &mut Reading,
    ) -> Result<bool, RecordsError> {
        let position = self.position.unwrap_or(0);
        if batch.last < position {
            return Ok(true);
        }
        if self.settings.read_committed {
            reading.begin_aborted(batch.last, &fetched.aborted);
            if batch.is_control() && batch.is_abort()? {
                reading.aborting.remove(&batch.producer);
            }
            if batch.is_transactional() && reading.aborting.contains(&batch.producer) {
                return Ok(true);
            }
        }
        if batch.is_control() {
            return Ok(true);
        }
        let now = self.intake.clock().wall().0;
        let Self { gathered, settings, source, room, .. } = self;
        let mut next = None;
        batch.each(room, |record| {
            if record.offset < position || next.is_some() {
                return Ok(());
            }
            if gathered.is_full() {
                next = Some(record.offset);
                return Ok(());
            }
            gathered.push(&record, now, settings, source)
        })?;
        self.position = self.position.max(next);
        Ok(next.is_none())
    }

    /// What was gathered, as a batch.
    fn flush(&mut self, ending: Ending) -> Option<Ready> {
        let end = self.position?;
        let gathered = &mut self.gathered;
        if let Some(lines) = &mut self.lines {
            lines.add(
                &mut gathered.bytes,
                &mut gathered.texts,
                std::mem::take(&mut gathered.facts),
            );
            lines.count(std::mem::take(&mut gathered.taken));
            if lines.holds() {
                return lines.next(&mut self.source, ending, end);
            }
            if self.shared.progress.front() < end {
                self.shared.progress.skip(end);
            }
            return None;
        }
        if gathered.texts.is_empty() {
            if self.shared.progress.front() < end {
                self.shared.progress.skip(end);
            }
            return None;
        }
        let bytes = std::mem::take(&mut gathered.bytes);
        let utf8 = if simdutf8::basic::from_utf8(&bytes).is_ok() { bytes.len() } else { 0 };
        let facts = &gathered.facts;
        let row =
            |(text, record): &(Text, u32)| Row::numbered(0, text.len, *text, facts.time(*record));
        let rows = gathered.texts.iter().map(row).collect();
        let mut batch = self.source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
        for (row, (_, record)) in gathered.texts.iter().enumerate() {
            facts.put(*record, &mut batch, row);
        }
        batch.forget_changes();
        gathered.texts.clear();
        gathered.facts = Facts::default();
        Some(Ready { batch, end, bytes: std::mem::take(&mut gathered.taken) })
    }
}

/// How far the records of an answer are read.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Bytes.
    read: usize,
    /// Transactions of the answer that were aborted and have begun.
    begun: usize,
    /// Their producers, as long as they have not ended.
    aborting: BTreeSet<i64>,
    /// Records behind those that were read, when there are no more in the answer.
    pub(crate) lag: u64,
}

impl Reading {
    /// Takes note of the aborted transactions that begin up to an offset; brokers list them in that order.
    fn begin_aborted(&mut self, last: i64, aborted: &[(i64, i64)]) {
        while let Some((producer, _)) = aborted.get(self.begun).filter(|(_, first)| *first <= last)
        {
            self.aborting.insert(*producer);
            self.begun += 1;
        }
    }
}

impl Gathered {
    fn is_full(&self) -> bool {
        self.texts.len() >= BATCH_EVENTS_MAX || self.bytes.len() >= BATCH_BYTES
    }

    fn push(
        &mut self,
        record: &Record<'_>,
        now: i64,
        settings: &Settings,
        source: &Source,
    ) -> Result<(), RecordsError> {
        let number = self.facts.push(record, now, settings)?;
        self.taken += record.value.len() as u64;
        let Some(field) = &settings.expand_field else {
            self.add(record.value, number);
            return Ok(());
        };
        match expand::items(record.value, field) {
            Ok(items) => {
                for item in items {
                    self.add(item.get().as_bytes(), number);
                }
            }
            Err(error) => {
                let offset = record.offset;
                source.failed(&format!("offset {offset}: {error}"));
                let partition = &*source.about().name;
                tracing::warn!(partition, offset, %error, "a record cannot be expanded and is sent as it is");
                self.add(record.value, number);
            }
        }
        Ok(())
    }

    fn add(&mut self, text: &[u8], record: u32) {
        let (start, len) = (self.bytes.len() as u32, text.len() as u32);
        self.bytes.extend_from_slice(text);
        // Between two of them, so that all of them are UTF-8 if the whole is; and lines of a group are joined by it.
        self.bytes.push(b'\n');
        self.texts.push((Text { start, len }, record));
    }
}
