//! What users see of an object while it is read, and of its bucket: rows of the status page, and numbers of the input.

use crate::objects::Objects;
use skidder_input::{Intake, ObjectNumbers, Row};
use skidder_os::{Monotonic, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Buckets of an input with a row on the status page: a queue may name any number of them.
const BUCKETS_MAX: usize = 100;

/// The rows of buckets.
#[derive(Debug, Default)]
pub(crate) struct Buckets(Mutex<HashMap<String, Arc<Row>>>);

impl Buckets {
    /// The row of a bucket; nothing if there are too many.
    pub(crate) fn of(&self, intake: &Intake, name: &str) -> Option<Arc<Row>> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = rows.get(name) {
            return Some(Arc::clone(row));
        }
        if rows.len() >= BUCKETS_MAX {
            return None;
        }
        let row = Arc::new(intake.row(name));
        rows.insert(name.to_owned(), Arc::clone(&row));
        Some(row)
    }
}

/// An object that is being read.
#[derive(Debug)]
pub(crate) struct Seen {
    numbers: Arc<ObjectNumbers>,
    bucket: Option<Arc<Row>>,
    row: Row,
    /// When it was asked for.
    since: Monotonic,
    size: Option<u64>,
    events: AtomicU64,
}

impl Seen {
    /// Of an object that was asked for then.
    pub(crate) fn new<C>(
        objects: &Objects<C>,
        (bucket, key): (&str, &str),
        since: Monotonic,
        size: Option<u64>,
    ) -> Self {
        let intake = &objects.intake;
        let row = intake.row(&format!("{bucket}/{key}"));
        row.set_position(0);
        if let Some(size) = size {
            row.set_size(size);
        }
        let bucket = objects.buckets.of(intake, bucket);
        let numbers = Arc::clone(&objects.numbers);
        Self { numbers, bucket, row, since, size, events: AtomicU64::new(0) }
    }

    /// The reader begins at this byte.
    pub(crate) fn begins_at(&self, position: u64) {
        self.row.set_position(position);
    }

    /// Bytes have come; the reader is behind them at this place.
    pub(crate) fn arrived(&self, bytes: usize, position: u64) {
        let bytes = bytes as u64;
        self.numbers.bytes.add(bytes);
        self.row.set_position(position);
        self.count(0, bytes);
    }

    /// Events were made of them.
    pub(crate) fn made(&self, events: u64) {
        self.numbers.events.add(events);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.count(events, 0);
    }

    fn count(&self, events: u64, bytes: u64) {
        self.row.received(events, bytes);
        if let Some(bucket) = &self.bucket {
            bucket.received(events, bytes);
        }
    }

    /// All of it was sent on.
    pub(crate) fn sent(&self, now: Monotonic) {
        let numbers = &self.numbers;
        numbers.processing_time.add(nanoseconds(now.since(self.since)), 1);
        numbers.events_per_object.add(self.events.load(Ordering::Relaxed), 1);
        if let Some(size) = self.size {
            numbers.size.add(size, 1);
        }
    }
}

pub(crate) fn nanoseconds(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts an object as one that is being read, until it is dropped.
pub(crate) struct InFlight(Arc<ObjectNumbers>);

impl InFlight {
    pub(crate) fn new(numbers: &Arc<ObjectNumbers>) -> Self {
        numbers.in_flight.add(1);
        Self(Arc::clone(numbers))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.sub(1);
    }
}

/// The times of the objects of a bucket that are being read.
#[derive(Debug, Default)]
pub(crate) struct Times(Mutex<BTreeMap<Timestamp, u32>>);

impl Times {
    /// An object of this time is being read, until what is returned is dropped.
    pub(crate) fn begin(self: &Arc<Self>, time: Timestamp) -> BegunAt {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(time).or_default() += 1;
        BegunAt { times: Arc::clone(self), time }
    }

    /// That of the oldest.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.first_key_value().map(|(time, _)| *time)
    }
}

/// See [`Times::begin`].
#[derive(Debug)]
pub(crate) struct BegunAt {
    times: Arc<Times>,
    time: Timestamp,
}

impl Drop for BegunAt {
    fn drop(&mut self) {
        let mut all = self.times.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&self.time) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.time);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_object_is_the_oldest_that_is_still_read() {
        let times = Arc::new(Times::default());
        let (old, new) = (times.begin(Timestamp(1)), times.begin(Timestamp(2)));
        let same = times.begin(Timestamp(1));
        assert_eq!(times.oldest(), Some(Timestamp(1)));
        drop(old);
        assert_eq!(times.oldest(), Some(Timestamp(1)));
        drop(same);
        assert_eq!(times.oldest(), Some(Timestamp(2)));
        drop(new);
        assert_eq!(times.oldest(), None);
    }
}
