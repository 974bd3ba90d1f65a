//! Facts about the sources that an input has open: for the status page, not for decisions.

use skidder_event::Counter;
use skidder_os::{Clock, Monotonic, Timestamp};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// A rate is of at least so much time.
const RATE_OVER: Duration = Duration::from_secs(1);

/// The counters of one open source.
#[derive(Debug)]
pub struct SourceFacts {
    name: Arc<str>,
    bytes: Counter,
    events: Counter,
    /// Nanoseconds since 1970-01-01 UTC; 0 if nothing came.
    last_activity: AtomicI64,
    /// When, and what.
    last_error: Mutex<Option<(Timestamp, Box<str>)>>,
    opened: Timestamp,
    rate: Mutex<Rate>,
    behind: OnceLock<Behind>,
    oldest: OnceLock<Oldest>,
    /// Bytes of an object, and where its reader is; `u64::MAX` if it is none.
    size: AtomicU64,
    position: AtomicU64,
    /// Requests to the far side, of a source that is asked.
    requests: Counter,
    /// Nanoseconds since 1970-01-01 UTC; 0 if there is none.
    newest: AtomicI64,
}

/// Computes how far a source is behind.
struct Behind(Box<dyn Fn() -> Option<u64> + Send + Sync>);

impl fmt::Debug for Behind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Behind")
    }
}

/// Finds the time of the oldest thing that is not done.
struct Oldest(Box<dyn Fn() -> Option<Timestamp> + Send + Sync>);

impl fmt::Debug for Oldest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Oldest")
    }
}

/// How fast a source sends, from one look at its counters to the next: receiving costs nothing for it.
#[derive(Clone, Copy, Debug)]
struct Rate {
    /// The look that the rate counts from, and the counters then.
    at: Monotonic,
    events: u64,
    bytes: u64,
    /// Events and bytes a second until then.
    before: Option<(f64, f64)>,
}

/// One open source at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceStatus {
    /// Its number among the sources of the input, which no other one has or had.
    pub number: u64,
    /// Its name: a peer, a partition.
    pub name: Arc<str>,
    /// Bytes of its events.
    pub bytes: u64,
    /// Events received.
    pub events: u64,
    /// Events and bytes a second since the look before, which is at least a second ago, or since it was opened; nothing
    /// within the first second.
    pub rate: Option<(f64, f64)>,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it sent events last; `None` if it never has.
    pub last_activity: Option<Timestamp>,
    /// What went wrong last; `None` if nothing ever did.
    pub last_error: Option<String>,
    /// When that was.
    pub last_error_at: Option<Timestamp>,
    /// What the far side has beyond the last event with a verdict, in its own unit: records of a partition. `None` if it is
    /// not known.
    pub behind: Option<u64>,
    /// Requests to the far side; `None` of a source that is not asked, or was not yet.
    pub requests: Option<u64>,
    /// The time of the newest event that was read; `None` if there is none, or the source does not tell.
    pub newest: Option<Timestamp>,
    /// The time of the oldest thing that is not done: when a message of a queue was sent, when an object was put. `None` if
    /// there is none, or the source does not tell.
    pub oldest: Option<Timestamp>,
    /// Of an object that is being read: where its reader is, in bytes as they are stored.
    pub position: Option<u64>,
    /// Its bytes; `None` if they are not known.
    pub size: Option<u64>,
}

/// The sources that an input has open.
#[derive(Debug, Default)]
pub struct OpenSources(Mutex<BTreeMap<u64, Arc<SourceFacts>>>);

impl SourceFacts {
    fn new(name: Arc<str>, clock: &dyn Clock) -> Self {
        let rate = Rate { at: clock.monotonic(), events: 0, bytes: 0, before: None };
        Self {
            opened: clock.wall(),
            rate: Mutex::new(rate),
            name,
            bytes: Counter::default(),
            events: Counter::default(),
            last_activity: AtomicI64::new(0),
            last_error: Mutex::new(None),
            behind: OnceLock::new(),
            oldest: OnceLock::new(),
            size: AtomicU64::new(u64::MAX),
            position: AtomicU64::new(u64::MAX),
            requests: Counter::default(),
            newest: AtomicI64::new(0),
        }
    }

    /// Counts a request to the far side.
    pub(crate) fn requested(&self) {
        self.requests.add(1);
    }

    /// Takes note of the time of an event that was read.
    pub(crate) fn read_until(&self, time: Timestamp) {
        self.newest.fetch_max(time.0, Ordering::Relaxed);
    }

    /// How [`SourceStatus::behind`] is computed. The first one stays.
    pub(crate) fn set_behind(&self, behind: impl Fn() -> Option<u64> + Send + Sync + 'static) {
        self.behind.get_or_init(|| Behind(Box::new(behind)));
    }

    /// How [`SourceStatus::oldest`] is found out. The first one stays.
    pub(crate) fn set_oldest(
        &self,
        oldest: impl Fn() -> Option<Timestamp> + Send + Sync + 'static,
    ) {
        self.oldest.get_or_init(|| Oldest(Box::new(oldest)));
    }

    /// Where the reader of an object is.
    pub(crate) fn set_position(&self, bytes: u64) {
        self.position.store(bytes, Ordering::Relaxed);
    }

    /// The bytes of an object.
    pub(crate) fn set_size(&self, bytes: u64) {
        self.size.store(bytes, Ordering::Relaxed);
    }

    fn behind(&self) -> Option<u64> {
        self.behind.get().and_then(|behind| behind.0())
    }

    /// Counts events.
    pub(crate) fn received(&self, events: u64, bytes: u64, now: Timestamp) {
        self.events.add(events);
        self.bytes.add(bytes);
        // A batch without events moves a cursor.
        if events > 0 {
            self.last_activity.store(now.0, Ordering::Relaxed);
        }
    }

    /// Takes note of what went wrong.
    pub(crate) fn failed(&self, error: &str, now: Timestamp) {
        let mut last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        *last_error = Some((now, error.into()));
    }

    fn status(&self, number: u64, now: Monotonic) -> SourceStatus {
        let at = self.last_activity.load(Ordering::Relaxed);
        let (requests, newest) = (self.requests.get(), self.newest.load(Ordering::Relaxed));
        let last_error = self.last_error.lock().unwrap_or_else(PoisonError::into_inner);
        let (events, bytes) = (self.events.get(), self.bytes.get());
        let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
        SourceStatus {
            number,
            name: Arc::clone(&self.name),
            bytes,
            events,
            rate: rate.look(events, bytes, now),
            opened: self.opened,
            last_activity: (at != 0).then_some(Timestamp(at)),
            last_error: last_error.as_ref().map(|(_, error)| error.to_string()),
            last_error_at: last_error.as_ref().map(|(at, _)| *at),
            behind: self.behind(),
            requests: (requests > 0).then_some(requests),
            newest: (newest != 0).then_some(Timestamp(newest)),
            oldest: self.oldest.get().and_then(|oldest| (oldest.0)()),
            position: known(&self.position),
            size: known(&self.size),
        }
    }
}

fn known(number: &AtomicU64) -> Option<u64> {
    Some(number.load(Ordering::Relaxed)).filter(|number| *number != u64::MAX)
}

impl Rate {
    /// The rate at a look with these counters.
    fn look(&mut self, events: u64, bytes: u64, now: Monotonic) -> Option<(f64, f64)> {
        let span = now.since(self.at);
        if span >= RATE_OVER {
            // Two looks at the same time may come here in the other order than they read the counters.
            let per_second =
                |now: u64, then: u64| now.saturating_sub(then) as f64 / span.as_secs_f64();
            let before = Some((per_second(events, self.events), per_second(bytes, self.bytes)));
            *self = Self { at: now, events, bytes, before };
        }
        self.before
    }
}

impl OpenSources {
    /// Up to `most` of them, the most recently active first, and how many there are.
    pub fn list(&self, most: usize, now: Monotonic) -> (Vec<SourceStatus>, usize) {
        let all = self.numbered();
        let count = all.len();
        let mut all: Vec<(i64, u64, Arc<SourceFacts>)> = all
            .into_iter()
            .map(|(number, facts)| (facts.last_activity.load(Ordering::Relaxed), number, facts))
            .collect();
        all.sort_by_key(|(at, _, _)| std::cmp::Reverse(*at));
        let of = |(_, number, facts): &(i64, u64, Arc<SourceFacts>)| facts.status(*number, now);
        (all.iter().take(most).map(of).collect(), count)
    }

    /// All of them, in the order in which they were opened.
    pub fn all(&self, now: Monotonic) -> Vec<SourceStatus> {
        let all = self.numbered();
        all.into_iter().map(|(number, facts)| facts.status(number, now)).collect()
    }

    /// The name of each source of which it is known how far it is behind, and how far.
    pub fn behind(&self) -> Vec<(Arc<str>, u64)> {
        let all = self.lock();
        let known = all.values().filter_map(|of| Some((Arc::clone(&of.name), of.behind()?)));
        known.collect()
    }

    /// The name of each source that is asked, and how often it was.
    pub fn requests(&self) -> Vec<(Arc<str>, u64)> {
        let all = self.lock();
        let all = all.values().map(|of| (Arc::clone(&of.name), of.requests.get()));
        all.filter(|(_, requests)| *requests > 0).collect()
    }

    /// The name of each source that tells the time of its newest event, and that time.
    pub fn newest(&self) -> Vec<(Arc<str>, Timestamp)> {
        let all = self.lock();
        let newest = |of: &Arc<SourceFacts>| of.newest.load(Ordering::Relaxed);
        let all = all.values().map(|of| (Arc::clone(&of.name), Timestamp(newest(of))));
        all.filter(|(_, newest)| newest.0 != 0).collect()
    }

    fn numbered(&self) -> Vec<(u64, Arc<SourceFacts>)> {
        self.lock().iter().map(|(number, facts)| (*number, Arc::clone(facts))).collect()
    }

    pub(crate) fn begin(&self, number: u64, name: Arc<str>, clock: &dyn Clock) -> Arc<SourceFacts> {
        let facts = Arc::new(SourceFacts::new(name, clock));
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
    use skidder_testkit::SimClock;

    #[test]
    fn the_most_recently_active_sources_come_first() {
        let (sources, clock) = (OpenSources::default(), SimClock::new());
        let begin = |at: u64| sources.begin(at, format!("s{at}").into(), &clock);
        let facts: Vec<_> = (0..3).map(begin).collect();
        let now = clock.monotonic();
        facts[1].received(2, 20, Timestamp(7));
        facts[2].received(1, 10, Timestamp(9));
        facts[2].failed("reset", Timestamp(10));
        let (listed, count) = sources.list(2, now);
        assert_eq!(count, 3);
        let names: Vec<_> = listed.iter().map(|status| &*status.name).collect();
        assert_eq!(names, ["s2", "s1"]);
        assert_eq!(
            (listed[1].events, listed[1].bytes, listed[1].last_error.clone()),
            (2, 20, None)
        );
        assert_eq!(listed[0].last_error.as_deref(), Some("reset"));
        assert_eq!(listed[0].last_error_at, Some(Timestamp(10)));
        assert_eq!(listed[1].last_error_at, None);
        assert_eq!(sources.behind(), []);
        facts[0].set_behind(|| Some(5));
        facts[1].set_behind(|| None);
        assert_eq!(sources.behind(), [(Arc::from("s0"), 5)]);
        assert_eq!(sources.all(now)[0].behind, Some(5));
        assert_eq!((sources.requests().len(), sources.newest().len()), (0, 0));
        facts[1].requested();
        for time in [7, 9, 8] {
            facts[1].read_until(Timestamp(time));
        }
        let status = &sources.all(now)[1];
        assert_eq!((status.requests, status.newest), (Some(1), Some(Timestamp(9))));
        assert_eq!(sources.requests(), [(Arc::from("s1"), 1)]);
        assert_eq!(sources.newest(), [(Arc::from("s1"), Timestamp(9))]);
        assert_eq!((status.oldest, status.position, status.size), (None, None, None));
        facts[1].set_oldest(|| Some(Timestamp(3)));
        facts[1].set_position(0);
        facts[1].set_size(10);
        let status = &sources.all(now)[1];
        let expected = (Some(Timestamp(3)), Some(0), Some(10));
        assert_eq!((status.oldest, status.position, status.size), expected);
        sources.end(2);
        assert_eq!(sources.list(9, now).1, 2);
        let all = sources.all(now);
        assert_eq!(all.iter().map(|status| status.number).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn a_rate_is_of_the_time_between_two_looks_that_are_a_second_apart() {
        let (sources, clock) = (OpenSources::default(), SimClock::new());
        let facts = sources.begin(7, "peer".into(), &clock);
        let rate = || sources.all(clock.monotonic())[0].rate;
        facts.received(30, 3000, clock.wall());
        assert_eq!(rate(), None, "nobody knows yet");
        clock.advance(Duration::from_secs(2));
        assert_eq!(rate(), Some((15.0, 1500.0)), "since it was opened");
        facts.received(10, 100, clock.wall());
        clock.advance(Duration::from_millis(500));
        assert_eq!(rate(), Some((15.0, 1500.0)), "the look before is too young");
        clock.advance(Duration::from_millis(1500));
        assert_eq!(rate(), Some((5.0, 50.0)));
        clock.advance(Duration::from_secs(10));
        assert_eq!(rate(), Some((0.0, 0.0)), "it is silent");
    }
}
