//! The last day, in few numbers: so that a page that is opened in the morning shows the night.
//!
//! A point is made every [`EVERY`], also without viewers: that reads some counters. How far the files are behind is read once
//! a minute, of up to [`FILES_MAX`] files; of more it is known only with viewers. All of it is [`POINTS_MAX`] points
//! of 32 bytes, 270 KiB.

use super::query::Query;
use crate::lag::Lag;
use crate::snapshot::Sources;
use crate::states::OutputState;
use serde_json::{Value as Json, json};
use skidder_os::Timestamp;
use skidder_pipeline::Ledger;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two points.
const EVERY: Duration = Duration::from_secs(10);
/// Points that are kept: those of 24 hours.
const POINTS_MAX: usize = 8640;
/// Between two questions of how far the files are behind, in points.
const LAG_EVERY: u64 = 6;
/// Files that are requested for that alone.
const FILES_MAX: u64 = 5_000;
/// Points of one answer, at most: more are put together.
const SHOWN_MAX: usize = 720;

/// The points, the oldest first.
#[derive(Default)]
pub(crate) struct History(Mutex<VecDeque<Point>>);

/// The changes between this point and the one before. Of an unknown value there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Point {
    /// Seconds since 1970-01-01 UTC.
    time: u32,
    /// Lines a second.
    read: f32,
    delivered: f32,
    /// Bytes a second.
    read_bytes: f32,
    sent_bytes: f32,
    /// Events, at the end.
    in_flight: f32,
    /// Bytes; NaN if unknown.
    behind: f32,
    /// An output took nothing.
    stuck: bool,
}

/// Counters at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    read: u64,
    delivered: u64,
    read_bytes: u64,
    sent_bytes: u64,
    in_flight: u64,
    stuck: bool,
}

impl Counts {
    fn now(sources: &Sources) -> Self {
        let mut counts = Self::default();
        let mut total = Ledger::default();
        let now = sources.clock.monotonic();
        for output in &sources.outputs {
            let ledger = output.settle.total();
            let (state, _) = OutputState::of(output, &ledger, now);
            counts.stuck |= !matches!(state, OutputState::Delivering | OutputState::Idle);
            counts.sent_bytes += output.metrics.write_bytes.get();
            total.add(&ledger);
        }
        counts.read = total.read();
        counts.delivered = total.delivered();
        counts.read_bytes = total.read_bytes();
        counts.in_flight = total.in_flight() + total.stored();
        counts
    }
}

impl History {
    /// Makes points as long as it is not dropped.
    pub(crate) async fn keep(self: Arc<Self>, sources: Arc<Sources>) {
        let mut before = (sources.clock.monotonic(), Counts::now(&sources));
        for number in 0_u64.. {
            tokio::time::sleep(EVERY).await;
            let files: u64 = sources.outputs.iter().filter_map(crate::OutputSource::files).sum();
            let is_due = number.is_multiple_of(LAG_EVERY) && files <= FILES_MAX;
            let behind = if is_due { Lag::sums(&sources).await } else { Lag::known(&sources) };
            let behind = behind.map(|(sums, _)| sums.total.behind_bytes);
            let now = (sources.clock.monotonic(), Counts::now(&sources));
            let span = now.0.since(before.0);
            self.add(point(&before.1, &now.1, span, behind, sources.clock.wall()));
            before = now;
        }
    }

    fn add(&self, point: Point) {
        let mut points = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        points.push_back(point);
        let beyond = points.len().saturating_sub(POINTS_MAX);
        points.drain(..beyond);
    }

    /// Answers `?span_ms=N`: the points of so much time, the last 24 hours if it is not said.
    pub(crate) fn answer(&self, now: Timestamp, query: &Query) -> Result<Json, String> {
        let span = query.number::<u64>("span_ms")?.unwrap_or(24 * 3_600_000) / 1000;
        let from = seconds(now).saturating_sub(u32::try_from(span).unwrap_or(u32::MAX));
        let points = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let shown: Vec<Point> = points.iter().filter(|point| point.time >= from).copied().collect();
        drop(points);
        let together = shown.len().div_ceil(SHOWN_MAX).max(1);
        let points: Vec<Json> =
            shown.chunks(together).map(|part| point_json(&joined(part))).collect();
        Ok(json!({ "every_ms": EVERY.as_millis() as u64 * together as u64, "points": points }))
    }
}

fn seconds(at: Timestamp) -> u32 {
    u32::try_from(at.0 / 1_000_000_000).unwrap_or(0)
}

fn point(
    before: &Counts,
    now: &Counts,
    span: Duration,
    behind: Option<u64>,
    at: Timestamp,
) -> Point {
    let rate = |now: u64, before: u64| {
        (now.saturating_sub(before) as f64 / span.as_secs_f64().max(0.001)) as f32
    };
    Point {
        time: seconds(at),
        read: rate(now.read, before.read),
        delivered: rate(now.delivered, before.delivered),
        read_bytes: rate(now.read_bytes, before.read_bytes),
        sent_bytes: rate(now.sent_bytes, before.sent_bytes),
        in_flight: now.in_flight as f32,
        behind: behind.map_or(f32::NAN, |bytes| bytes as f32),
        stuck: now.stuck,
    }
}

/// Points that stand together as one: the mean of rates, and the most of what waits, which a mean would hide.
fn joined(part: &[Point]) -> Point {
    let mean = |of: fn(&Point) -> f32| {
        (part.iter().map(|point| f64::from(of(point))).sum::<f64>() / part.len().max(1) as f64)
            as f32
    };
    // `max` leaves out NaN.
    let most = |of: fn(&Point) -> f32| part.iter().map(of).fold(f32::NAN, f32::max);
    Point {
        time: part.last().map_or(0, |point| point.time),
        read: mean(|point| point.read),
        delivered: mean(|point| point.delivered),
        read_bytes: mean(|point| point.read_bytes),
        sent_bytes: mean(|point| point.sent_bytes),
        in_flight: most(|point| point.in_flight),
        behind: most(|point| point.behind),
        stuck: part.iter().any(|point| point.stuck),
    }
}

fn point_json(point: &Point) -> Json {
    // NaN is null.
    json!({
        "time_ms": u64::from(point.time) * 1000,
        "read": point.read,
        "delivered": point.delivered,
        "read_bytes": point.read_bytes,
        "sent_bytes": point.sent_bytes,
        "in_flight": point.in_flight,
        "behind_bytes": point.behind,
        "stuck": point.stuck,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u32) -> Timestamp {
        Timestamp(i64::from(seconds) * 1_000_000_000)
    }

    #[test]
    fn a_day_is_kept_in_a_few_hundred_kilobytes_and_its_worst_moments_are_shown() {
        let history = History::default();
        let begin = 1_767_225_600;
        for number in 0..10_000_u32 {
            let in_flight = if number == 5_000 { 777.0 } else { 1.0 };
            let behind = if number % 6 == 0 { 5.0 } else { f32::NAN };
            let time = begin + number * 10;
            let stuck = number == 5_001;
            history.add(Point { time, read: 2.0, in_flight, behind, stuck, ..Point::default() });
        }
        let kept = history.0.lock().expect("nobody panics").len();
        assert_eq!((kept, kept * size_of::<Point>() <= 300 << 10), (POINTS_MAX, true));
        let now = at(begin + 100_000);
        let all = history.answer(now, &Query::default()).expect("points");
        let points = all["points"].as_array().expect("a list");
        assert!(points.len() <= SHOWN_MAX && points.len() > SHOWN_MAX / 2, "{}", points.len());
        let most =
            |name: &str| points.iter().filter_map(|point| point[name].as_f64()).fold(0.0, f64::max);
        assert_eq!((most("in_flight"), most("read"), most("behind_bytes")), (777.0, 2.0, 5.0));
        assert!(points.iter().any(|point| point["stuck"] == true));
        let minutes = history.answer(now, &Query::parse("span_ms=600000")).expect("points");
        let minutes = minutes["points"].as_array().expect("a list");
        assert_eq!((minutes.len(), minutes[1]["behind_bytes"].is_null()), (60, true));
        assert!(history.answer(now, &Query::parse("span_ms=x")).is_err());
    }

    #[test]
    fn rates_are_of_the_time_that_really_passed() {
        let before = Counts { read: 100, sent_bytes: 1_000, ..Counts::default() };
        let now = Counts { read: 500, sent_bytes: 1_000, in_flight: 3, ..before };
        let point = point(&before, &now, Duration::from_secs(20), Some(7), at(9));
        assert_eq!((point.time, point.read, point.sent_bytes), (9, 20.0, 0.0));
        assert_eq!((point.in_flight, point.behind), (3.0, 7.0));
    }
}
