//! What was read of a log group, and the cursor that says so.
//!
//! CloudWatch gives the events between two times, sorted by their time, then by when it received them
//! (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>). It gives no order of
//! arrival: an event may appear behind others that are younger. So each scan begins some time before the end of the scan
//! before, and leaves out what it knows, by the ids of the events.
//!
//! ```text
//!              low                          front
//!  ─────────────┼─────────────────────────────┼───────────────▶ time of the event
//!  not looked   │ was read; what is not known │ not read, but for
//!  at again     │ came late, and is new       │ what is known
//! ```
//!
//! The text of a cursor is `low front until received ids`: the first four are milliseconds since 1970-01-01 UTC, `ids` are
//! base64 of eight bytes each. `until` and `received` stand for ids that did not fit: events before the time `until` that
//! the service received until `received` are known.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use skidder_amazon::LogEvent;
use std::collections::HashMap;
use std::time::Duration;

/// How long before the end of a scan the next one begins: events that appear later than that behind their time are missed.
pub(crate) const LOOK_BACK: Duration = Duration::from_mins(5);
/// Events that are known by id; in a group with more in [`LOOK_BACK`], the next scan begins before the newest of these.
const KNOWN_MAX: usize = 20_000;
/// Ids in the text of a cursor: 53 KiB of the 64 that it may have.
const KEPT_MAX: usize = 5_000;
/// Bytes of an id in a cursor.
const ID_BYTES: usize = 8;
/// The version of the text of a cursor.
pub(crate) const VERSION: u32 = 1;

/// When the service received an event that is known from a cursor.
const UNKNOWN: Milliseconds = Milliseconds::MAX;

/// Milliseconds since 1970-01-01 UTC, as the service counts.
pub(crate) type Milliseconds = i64;

/// See the module's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// The next scan begins at this time.
    low: Milliseconds,
    /// Everything before this time was there when it was asked for.
    front: Milliseconds,
    /// Events that are known without their ids, after a restart.
    received: Option<Received>,
    /// Events from `low` on that were sent.
    known: HashMap<u64, Known>,
}

/// Events before a time, as far as the service had received them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Received {
    /// The events have a time before this one.
    before: Milliseconds,
    /// The service received them not later than this.
    until: Milliseconds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    time: Milliseconds,
    received: Milliseconds,
}

/// A time in milliseconds.
pub(crate) fn milliseconds(time: skidder_os::Timestamp) -> Milliseconds {
    time.0.div_euclid(1_000_000)
}

/// Half of the hash of what identifies an event in its group.
fn id_of(event: &LogEvent) -> u64 {
    let hash = skidder_aws::digest([event.id.as_bytes(), b"\0", event.stream.as_bytes()]);
    u64::from_str_radix(hash.get(..2 * ID_BYTES).unwrap_or_default(), 16).unwrap_or_default()
}

/// When the service received an event.
fn received(event: &LogEvent) -> Milliseconds {
    milliseconds(event.ingested.unwrap_or(event.time))
}

impl Window {
    /// Nothing was read; the first scan begins at this time.
    pub(crate) fn starting_at(low: Milliseconds) -> Self {
        Self { low, front: low, ..Self::default() }
    }

    /// The first time of the next scan.
    pub(crate) fn low(&self) -> Milliseconds {
        self.low
    }

    /// Everything before this time was there when it was asked for.
    pub(crate) fn front(&self) -> Milliseconds {
        self.front
    }

    /// Whether an event was sent. Call it for every event of a scan.
    pub(crate) fn knows(&mut self, event: &LogEvent) -> bool {
        let seen = Known { time: milliseconds(event.time), received: received(event) };
        if let Some(known) = self.known.get_mut(&id_of(event)) {
            // A cursor has no times.
            *known = seen;
            return true;
        }
        let is_in = |all: Received| seen.time < all.before && seen.received <= all.until;
        self.received.is_some_and(is_in)
    }

    /// An event is sent.
    pub(crate) fn add(&mut self, event: &LogEvent) {
        // There are so many only if they are all of one time. A restart in the middle of them repeats some anyway.
        if self.known.len() < 4 * KNOWN_MAX {
            let known = Known { time: milliseconds(event.time), received: received(event) };
            self.known.insert(id_of(event), known);
        }
    }

    /// A scan until the time `end` has come to this time: everything that it shows before that was sent.
    pub(crate) fn advance(&mut self, place: Milliseconds, end: Milliseconds) {
        self.front = self.front.max(place);
        let look_back = LOOK_BACK.as_millis() as Milliseconds;
        let mut low = end.saturating_add(1).saturating_sub(look_back);
        if self.known.len() > 2 * KNOWN_MAX {
            low = low.max(self.busy_low());
        }
        self.raise(low.min(place));
    }

    /// A scan until the time `end` has ended: everything until then was sent.
    pub(crate) fn complete(&mut self, end: Milliseconds) {
        self.advance(end.saturating_add(1), end);
        if self.known.len() > KNOWN_MAX {
            self.raise(self.busy_low());
        }
    }

    /// The time from which on [`KNOWN_MAX`] events are known, at most.
    fn busy_low(&self) -> Milliseconds {
        let mut times: Vec<Milliseconds> = self.known.values().map(|known| known.time).collect();
        if times.len() <= KNOWN_MAX {
            return self.low;
        }
        let place = times.len() - 1 - KNOWN_MAX;
        let (_, oldest, _) = times.select_nth_unstable(place);
        *oldest + 1
    }

    fn raise(&mut self, low: Milliseconds) {
        if low <= self.low {
            return;
        }
        self.low = low;
        self.known.retain(|_, known| known.time >= low);
        self.received = self.received.filter(|all| all.before > low);
    }

    /// The text of the cursor.
    pub(crate) fn cursor(&self) -> String {
        let mut received = self.received;
        let mut kept: Vec<(u64, Known)> =
            self.known.iter().map(|(id, known)| (*id, *known)).collect();
        if kept.len() > KEPT_MAX {
            // Those of the time that is being read are known by nothing else. A restart repeats those that do not fit.
            let rank =
                |known: &Known| std::cmp::Reverse((known.time >= self.front, known.received));
            kept.select_nth_unstable_by_key(KEPT_MAX, |(_, known)| rank(known));
            let is_before = |known: &Known| known.time < self.front && known.received != UNKNOWN;
            let left_out = kept.drain(KEPT_MAX..).filter(|(_, known)| is_before(known));
            let until = left_out.map(|(_, known)| known.received).max();
            let until = until.max(received.map(|all| all.until));
            received = until.map(|until| Received { before: self.front, until });
        }
        let mut ids = Vec::with_capacity(kept.len() * ID_BYTES);
        for (id, _) in kept {
            ids.extend_from_slice(&id.to_le_bytes());
        }
        let Received { before, until } =
            received.unwrap_or(Received { before: Milliseconds::MIN, until: Milliseconds::MIN });
        let ids = STANDARD_NO_PAD.encode(ids);
        format!("{} {} {before} {until} {ids}", self.low, self.front)
    }

    /// Reads the text of a cursor. Nothing if it is none of this version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut time = || parts.next()?.parse::<Milliseconds>().ok();
        let (low, front, before, until) = (time()?, time()?, time()?, time()?);
        let ids = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        if parts.next().is_some() || !ids.len().is_multiple_of(ID_BYTES) {
            return None;
        }
        // They get their times with the next scan, which shows them again.
        let known = Known { time: front, received: UNKNOWN };
        let ids = ids.chunks_exact(ID_BYTES).filter_map(|bytes| bytes.try_into().ok());
        let known = ids.map(|bytes| (u64::from_le_bytes(bytes), known)).collect();
        let received = (before > low).then_some(Received { before, until });
        Some(Self { low, front, received, known })
    }
}

#[cfg(test)]
mod tests;
