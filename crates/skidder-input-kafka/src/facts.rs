//! Facts about records besides their values: what their events get.

use crate::records::{Record, RecordsError};
use crate::settings::Settings;
use skidder_event::{Batch, Cell, Path};
use std::ops::Range;
use std::sync::{Arc, LazyLock};

const NANOSECONDS: i64 = 1_000_000;

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

static OFFSET: LazyLock<Path> = LazyLock::new(|| path("kafka.offset"));
static KEY: LazyLock<Path> = LazyLock::new(|| path("kafka.key"));
static HEADERS: LazyLock<Path> = LazyLock::new(|| path("kafka.headers"));
static BLOCK_TIME: LazyLock<Path> = LazyLock::new(|| path("kafka.block_timestamp"));

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
    pub(crate) fn push(
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

    /// Forgets all records; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.bytes.clear();
        self.headers.clear();
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
