//! A partition that this process reads: from its records to batches of events.
//!
//! Each batch is acknowledged with its last verdict; [`Settled`] then knows how far the partition is settled. Records
//! of a group of lines that is not complete stay here, and are read again by the next owner of the partition.

use crate::api::Fetched;
use crate::expand;
use crate::facts::Facts;
use crate::lines::Lines;
use crate::records::{self, Place, Record, RecordBatch, RecordsError};
use crate::settings::Settings;
use skidder_event::{Batch, Map, Parts, Row, Text, Value};
use skidder_input::{Intake, PartsPool, Settled, Source};
use skidder_parse::chain::Ending;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::sync::Notify;

/// Events of a batch, at most; but those of one record are never in two.
const BATCH_EVENTS_MAX: usize = 2048;
/// Bytes of a batch that are enough.
const BATCH_BYTES: usize = 1 << 20;

/// The facts about a claim that the group looks at while another task reads the partition.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) progress: Arc<Settled>,
    /// All records that there were at the last look are sent.
    pub(crate) is_at_end: AtomicBool,
    /// The offset behind the last record that there was at the last look; below 0 before it.
    end: AtomicI64,
}

impl Shared {
    fn new(progress: Arc<Settled>) -> Arc<Self> {
        Arc::new(Self { progress, is_at_end: AtomicBool::new(false), end: AtomicI64::new(-1) })
    }

    /// Takes note of the offset behind the last record.
    pub(crate) fn set_end(&self, end: i64) {
        self.end.store(end, Ordering::Relaxed);
    }

    /// Records that are not settled: from the offset that is committed next to the end at the last look.
    fn behind(&self) -> Option<u64> {
        let (end, front) = (self.end.load(Ordering::Relaxed), self.progress.front());
        (end >= 0 && front >= 0).then(|| end.saturating_sub(front).max(0).unsigned_abs())
    }
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
    /// The records of the batch that is read, unpacked.
    room: Vec<u8>,
    pool: Arc<PartsPool>,
}

/// Records on their way into a batch.
#[derive(Default)]
struct Gathered {
    /// Their values, and the room for their rows and fields.
    parts: Parts,
    /// Where each event's text stands, and which record it is of.
    texts: Vec<(Text, u32)>,
    facts: Facts,
    /// Bytes of the values.
    taken: u64,
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
        (news, pool): (&Arc<Notify>, &Arc<PartsPool>),
    ) -> Self {
        let mut fields = Map::new();
        fields.insert_path("kafka.topic", topic);
        fields.insert_path("kafka.partition", i64::from(partition));
        fields.insert_path("kafka.key", "");
        if settings.headers {
            fields.insert_path("kafka.headers", Value::List(Vec::new()));
        }
        let shared = Shared::new(Settled::new(position.unwrap_or(-1), Arc::clone(news)));
        let source = intake.open(&format!("{topic}/{partition}"), fields);
        let of_source = Arc::clone(&shared);
        source.set_behind(move || of_source.behind());
        Self {
            topic: topic.to_owned(),
            partition,
            source,
            position,
            lost: None,
            shared,
            settings: Arc::clone(settings),
            intake: intake.clone(),
            gathered: Gathered::default(),
            lines: (!settings.parsers.is_empty()).then(|| Lines::new(settings)),
            room: Vec::new(),
            pool: Arc::clone(pool),
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

    /// Frees memory until there is something to read.
    pub(crate) fn release(&mut self) {
        self.room = Vec::new();
        if self.gathered.texts.is_empty() {
            self.gathered = Gathered::default();
        }
    }

    /// Reads on in the records of an answer until there is a batch to send; `None`: all were read.
    pub(crate) fn next<'a>(
        &mut self,
        fetched: &Fetched<'a>,
        reading: &mut Reading<'a>,
    ) -> Result<Option<Ready>, ReadError> {
        let result = self.read(fetched, reading);
        result.map_err(|source| ReadError {
            topic: self.topic.clone(),
            partition: self.partition,
            offset: match &reading.batch {
                Some(batch) => batch.first(),
                None => records::first_offset(&fetched.records[reading.read..]),
            },
            source,
        })
    }

    fn read<'a>(
        &mut self,
        fetched: &Fetched<'a>,
        reading: &mut Reading<'a>,
    ) -> Result<Option<Ready>, RecordsError> {
        let known = known_end(fetched, self.settings.read_committed);
        loop {
            if self.gathered.is_full()
                && let Some(ready) = self.flush(Ending::More)
            {
                return Ok(Some(ready));
            }
            let Some(batch) = reading.batch(fetched.records)? else { break };
            if self.take(&batch, fetched, reading)? {
                self.position = self.position.max(Some(batch.last + 1));
                reading.batch = None;
            }
        }
        let is_at_end = self.position >= Some(known);
        let ending = match (is_at_end && self.intake.is_once(), is_at_end) {
            (true, _) => Ending::Last,
            (_, true) => Ending::Waiting(self.intake.clock().monotonic().0),
            (_, false) => Ending::More,
        };
        let ready = self.flush(ending);
        if ready.is_none() {
            self.shared.is_at_end.store(is_at_end && !self.holds_lines(), Ordering::Release);
        }
        Ok(ready)
    }

    /// Gathers the records of a batch; returns whether all of them are, or there is no room for more.
    fn take(
        &mut self,
        batch: &RecordBatch<'_>,
        fetched: &Fetched<'_>,
        reading: &mut Reading<'_>,
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
        let Self { gathered, settings, source, room, pool, .. } = self;
        if gathered.parts.bytes.capacity() == 0 {
            gathered.parts = pool.take();
        }
        let mut next = None;
        let is_whole = batch.each(room, &mut reading.place, |record| {
            if record.offset < position {
                return Ok(true);
            }
            if gathered.is_full() {
                next = Some(record.offset);
                return Ok(false);
            }
            gathered.push(&record, now, settings, source)?;
            Ok(true)
        })?;
        self.position = self.position.max(next);
        Ok(is_whole)
    }

    /// What was gathered, as a batch.
    fn flush(&mut self, ending: Ending) -> Option<Ready> {
        let end = self.position?;
        let gathered = &mut self.gathered;
        if let Some(lines) = &mut self.lines {
            lines.add(
                &mut gathered.parts.bytes,
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
        let mut parts = std::mem::take(&mut gathered.parts);
        let bytes = &parts.bytes;
        let utf8 = if simdutf8::basic::from_utf8(bytes).is_ok() { bytes.len() } else { 0 };
        let facts = &gathered.facts;
        let row =
            |(text, record): &(Text, u32)| Row::numbered(0, text.len, *text, facts.time(*record));
        parts.rows.extend(gathered.texts.iter().map(row));
        let mut batch = self.source.batch_of(parts, utf8);
        self.pool.lend(&mut batch);
        for (row, (_, record)) in gathered.texts.iter().enumerate() {
            facts.put(*record, &mut batch, row);
        }
        batch.forget_changes();
        gathered.texts.clear();
        gathered.facts.clear();
        Some(Ready { batch, end, bytes: std::mem::take(&mut gathered.taken) })
    }
}

/// The offset behind the last record of a partition that can be read.
pub(crate) fn known_end(fetched: &Fetched<'_>, read_committed: bool) -> i64 {
    if read_committed { fetched.stable } else { fetched.end }
}

/// How far the records of an answer are read.
#[derive(Debug, Default)]
pub(crate) struct Reading<'a> {
    /// Bytes, with those of `batch`.
    read: usize,
    /// The batch that is read now.
    batch: Option<RecordBatch<'a>>,
    /// How far it is read.
    place: Place,
    /// Transactions of the answer that were aborted and have begun.
    begun: usize,
    /// Their producers, as long as they have not ended.
    aborting: BTreeSet<i64>,
}

impl<'a> Reading<'a> {
    /// The batch to read: the one that is not read to its end, or the next one of the answer.
    fn batch(&mut self, records: &'a [u8]) -> Result<Option<RecordBatch<'a>>, RecordsError> {
        if self.batch.is_none() {
            let mut rest = &records[self.read..];
            self.batch = records::next_batch(&mut rest)?;
            self.read = records.len() - rest.len();
            self.place = Place::default();
        }
        Ok(self.batch)
    }

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
        self.texts.len() >= BATCH_EVENTS_MAX || self.parts.bytes.len() >= BATCH_BYTES
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
        let bytes = &mut self.parts.bytes;
        let (start, len) = (bytes.len() as u32, text.len() as u32);
        bytes.extend_from_slice(text);
        // Between two of them, so that all of them are UTF-8 if the whole is; and lines of a group are joined by it.
        bytes.push(b'\n');
        self.texts.push((Text { start, len }, record));
    }
}
