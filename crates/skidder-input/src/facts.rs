//! What is known of the sources that an input has open: for the status page, not for decisions.

use skidder_event::Counter;
use skidder_os::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is counted of one open source.
#[derive(Debug)]
pub struct SourceFacts {
    name: Arc<str>,
    bytes: Counter,
    events: Counter,
    /// Nanoseconds since 1970-01-01 UTC; 0 if nothing came.
    last_activity: AtomicI64,
    last_error: Mutex<Option<Box<str>>>,
}

/// One open source at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// What it is called: a peer, a partition.
    pub name: Arc<str>,
    /// Bytes of its events.
    pub bytes: u64,
    /// Events received.
    pub events: u64,
    /// When it sent events last; nothing if it never has.
    pub last_activity: Option<Timestamp>,
    /// What went wrong last; nothing if nothing ever did.
    pub last_error: Option<String>,
}

/// The sources that an input has open.
#[derive(Debug, Default)]
pub struct OpenSources(Mutex<BTreeMap<u64, Arc<SourceFacts>>>);

impl SourceFacts {
    fn new(name: Arc<str>) -> Self {
        Self {
            name,
            bytes: Counter::default(),
            events: Counter::default(),
            last_activity: AtomicI64::new(0),
            last_error: Mutex::new(None),
        }
    }

    /// Counts events.
    pub(crate) fn received(&self, events: u64, bytes: u64, now: Timestamp) {
        self.events.add(events);
        self.bytes.add(bytes);
        self.last_activity.store(now.0, Ordering::Relaxed);
    }

    /// Takes note of what went wrong.
    pub(crate) fn failed(&self, error: &str) {
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.into());
    }

    fn status(&self) -> SourceStatus {
        let at = self.last_activity.load(Ordering::Relaxed);
        let last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        SourceStatus {
            name: Arc::clone(&self.name),
            bytes: self.bytes.get(),
            events: self.events.get(),
            last_activity: (at != 0).then_some(Timestamp(at)),
            last_error: last_error.as_deref().map(str::to_owned),
        }
    }
}

impl OpenSources {
    /// Up to `most` of them, the most recently active first, and how many there are.
    pub fn list(&self, most: usize) -> (Vec<SourceStatus>, usize) {
        let all: Vec<Arc<SourceFacts>> = self.lock().values().cloned().collect();
        let count = all.len();
        let mut all: Vec<(i64, Arc<SourceFacts>)> = all
            .into_iter()
            .map(|facts| (facts.last_activity.load(Ordering::Relaxed), facts))
            .collect();
        all.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
        (all.iter().take(most).map(|(_, facts)| facts.status()).collect(), count)
    }

    pub(crate) fn begin(&self, number: u64, name: Arc<str>) -> Arc<SourceFacts> {
        let facts = Arc::new(SourceFacts::new(name));
        self.lock().insert(number, Arc::clone(&facts));
        facts
    }

    pub(crate) fn end(&self, number: u64) {
        self.lock().remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<SourceFacts>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_recently_active_sources_come_first() {
        let sources = OpenSources::default();
        let facts: Vec<_> = (0..3).map(|at| sources.begin(at, format!("s{at}").into())).collect();
        facts[1].received(2, 20, Timestamp(7));
        facts[2].received(1, 10, Timestamp(9));
        facts[2].failed("reset");
        let (listed, count) = sources.list(2);
        assert_eq!(count, 3);
        let names: Vec<_> = listed.iter().map(|status| &*status.name).collect();
        assert_eq!(names, ["s2", "s1"]);
        assert_eq!(
            (listed[1].events, listed[1].bytes, listed[1].last_error.clone()),
            (2, 20, None)
        );
        assert_eq!(listed[0].last_error.as_deref(), Some("reset"));
        sources.end(2);
        assert_eq!(sources.list(9).1, 2);
    }
}
