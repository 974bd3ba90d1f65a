//! What was read of a log group, and the cursor that says so.
//!
//! CloudWatch gives the events between two times, by their own time
//! (<https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_FilterLogEvents.html>). It gives no order of
//! arrival: an event may appear among others that were read. So each scan begins some time before the end of the scan
//! before, and leaves out what it knows, by the ids of the events. Nor is the documented order by time always kept
//! (<https://github.com/aws/aws-sdk-js/issues/3994>): a scan is cut into slices of time, and only one whose last page was
//! read moves the cursor beyond ids.
//!
//! ```text
//!              low                          front
//!  ─────────────┼─────────────────────────────┼───────────────▶ time of the event
//!  not looked   │ was read; what is not known │ not read, but for
//!  at again     │ came late, and is new       │ what is known
//! ```
//!
//! The text of a cursor is `low front before until new ids`: the first four are milliseconds since 1970-01-01 UTC, `ids` are
//! base64 of eight bytes each. `before` and `until` stand for ids that did not fit: events before the time `before` that
//! the service received until `until` are known. The last `new` ids were sent by the slice under way: others that the
//! service received before these may be still to come.

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
    /// It was sent by the slice under way.
    is_new: bool,
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

    /// How many events a slice may send whose ids are all in the cursor.
    pub(crate) fn room(&self) -> usize {
        let old = self.known.values().filter(|known| !known.is_new).count();
        KEPT_MAX.saturating_sub(old).max(KEPT_MAX / 2)
    }

    /// Whether an event was sent. Call it for every event that the service shows.
    pub(crate) fn knows(&mut self, event: &LogEvent) -> bool {
        let (time, received) = (milliseconds(event.time), received(event));
        if let Some(known) = self.known.get_mut(&id_of(event)) {
            // A cursor has no times.
            (known.time, known.received) = (time, received);
            return true;
        }
        self.received.is_some_and(|all| time < all.before && received <= all.until)
    }

    /// An event is sent.
    pub(crate) fn add(&mut self, event: &LogEvent) {
        // There are so many only if they are all of one time. A restart in the middle of them repeats some anyway.
        if self.known.len() < 4 * KNOWN_MAX {
            let (time, received) = (milliseconds(event.time), received(event));
            self.known.insert(id_of(event), Known { time, received, is_new: true });
        }
    }

    /// A slice until the time `until`, and not before [`Window::front`], of a scan until `end`, has ended: everything that
    /// the service shows until then was sent.
    pub(crate) fn complete(&mut self, until: Milliseconds, end: Milliseconds) {
        for known in self.known.values_mut() {
            known.is_new = false;
        }
        let next = until.saturating_add(1);
        self.front = self.front.max(next);
        let look_back = LOOK_BACK.as_millis() as Milliseconds;
        self.raise(next.min(end.saturating_add(1).saturating_sub(look_back)));
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
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for (id, known) in &self.known {
            let list = if known.is_new { &mut new } else { &mut old };
            list.push((*id, known.received));
        }
        // A restart repeats the others.
        let room = KEPT_MAX.saturating_sub(old.len()).max(KEPT_MAX / 2);
        new.truncate(room);
        let room = KEPT_MAX - new.len();
        let mut received = self.received;
        if old.len() > room {
            old.select_nth_unstable_by_key(room, |(_, received)| std::cmp::Reverse(*received));
            let left_out = old.drain(room..).map(|(_, received)| received);
            let until = left_out.filter(|received| *received != UNKNOWN).max();
            let until = until.max(received.map(|all| all.until));
            received = until.map(|until| Received { before: self.front, until });
        }
        let mut ids = Vec::with_capacity((old.len() + new.len()) * ID_BYTES);
        for (id, _) in old.iter().chain(&new) {
            ids.extend_from_slice(&id.to_le_bytes());
        }
        let Received { before, until } =
            received.unwrap_or(Received { before: Milliseconds::MIN, until: Milliseconds::MIN });
        let (ids, new) = (STANDARD_NO_PAD.encode(ids), new.len());
        format!("{} {} {before} {until} {new} {ids}", self.low, self.front)
    }

    /// Reads the text of a cursor. Nothing if it is none of this version.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(' ');
        let mut number = || parts.next()?.parse::<Milliseconds>().ok();
        let (low, front, before, until) = (number()?, number()?, number()?, number()?);
        let new = usize::try_from(number()?).ok()?;
        let ids = STANDARD_NO_PAD.decode(parts.next()?).ok()?;
        let count = ids.len() / ID_BYTES;
        if parts.next().is_some() || !ids.len().is_multiple_of(ID_BYTES) || new > count {
            return None;
        }
        // They get their times with the next scan, which shows them again.
        let known = |place| Known { time: front, received: UNKNOWN, is_new: place >= count - new };
        let ids = ids.chunks_exact(ID_BYTES).enumerate();
        let ids = ids.filter_map(|(place, bytes)| {
            Some((u64::from_le_bytes(bytes.try_into().ok()?), known(place)))
        });
        let received = (before > low).then_some(Received { before, until });
        Some(Self { low, front, received, known: ids.collect() })
    }
}

#[cfg(test)]
mod tests;
