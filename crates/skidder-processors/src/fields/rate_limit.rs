//! `rate_limit`: passes a number of events per span of time, and drops the others.
//!
//! Each combination of values of `fields` has a bucket of tokens. An event takes one; a bucket
//! without a whole token drops the event. Tokens come back evenly, up to the depth of the bucket.

use super::pairs::optional_paths;
use crate::go_value::write_scalar;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, EventRef, Path, ValueRef};
use skidder_os::{Clock, Monotonic};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

settings! {
    /// Settings of `rate_limit`.
    pub(crate) static RATE_LIMIT = Group::new("processor.rate_limit", "Passes a number of events per span of time, and drops the others; \
                               they are counted as dropped by a processor.").deprecated(&[(
        "algorithm.token_bucket.gc.*",
        "full buckets are forgotten when there is need for room",
    )]);

    LIMIT: String = Key::new("limit")
        .required()
        .about("a number above 0 and a unit: `100/s`, `20/m`, `0.5/h`");
    FIELDS: Vec<String> = Key::new("fields")
        .default_words("none")
        .about("each combination of the values of these fields has its own limit; a field that is \
                missing counts as empty");
    BURST_MULTIPLIER: f64 = Key::new("algorithm.token_bucket.burst_multiplier")
        .default(1.0)
        .about("this many times `limit` may pass at once after a quiet time");
}

/// Most buckets that one processor keeps, about 3 MiB. When one more is needed, the full ones are forgotten,
/// which changes nothing, and if these are too few, an eighth of all: those with the most tokens, which
/// begin again with a full bucket, so that some more events pass than configured.
const BUCKETS_MAX: usize = 65_536;

/// A number of events in a number of seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    events: f64,
    seconds: f64,
}

/// Drops events above a rate.
pub(crate) struct RateLimit {
    limit: Limit,
    /// In byte order.
    fields: Vec<Path>,
    /// Tokens of a new bucket.
    depth: f64,
    clock: Arc<dyn Clock>,
    hash: RandomState,
    buckets: Mutex<HashMap<u64, Bucket>>,
}

/// Tokens, as they were at a time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Monotonic,
}

impl Limit {
    /// `5/s`, `0.5/m`, `100 / h`.
    fn parse(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected a number of events above 0, `/` and `s`, `m` or `h`, as in `100/m`".to_owned()
        };
        let (events, unit) = text.split_once('/').ok_or_else(expected)?;
        let events: f64 = events.trim().parse().map_err(|_| expected())?;
        if !(events > 0.0 && events.is_finite()) {
            return Err(expected());
        }
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return Err(expected()),
        };
        Ok(Self { events, seconds })
    }
}

impl RateLimit {
    /// `limit`, `fields`, `algorithm.token_bucket.burst_multiplier`.
    pub(crate) fn read(settings: &Section<'_>, clock: &Arc<dyn Clock>) -> Option<Self> {
        let limit = settings.get(&LIMIT).try_map(|text| Limit::parse(&text));
        if !limit.is_set() {
            let message = format!("`{}` is missing", settings.path_of(LIMIT.name()));
            settings.problem(LIMIT.name(), message, "give a rate as in `100/m`");
        }
        let mut fields = optional_paths(settings, &FIELDS);
        let burst = settings.get(&BURST_MULTIPLIER).check(|burst| {
            let right = *burst > 0.0 && burst.is_finite();
            right.then_some(()).ok_or_else(|| "expected a number above 0".to_owned())
        });
        let burst = burst.value();
        fields.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        Some(Self::new(limit.optional()?, fields, burst, Arc::clone(clock)))
    }

    fn new(limit: Limit, fields: Vec<Path>, burst: f64, clock: Arc<dyn Clock>) -> Self {
        let depth = limit.events * burst;
        let (hash, buckets) = (RandomState::new(), Mutex::default());
        Self { limit, fields, depth, clock, hash, buckets }
    }

    /// A number for the values that an event has at the fields. A field that is missing is as one
    /// that is empty.
    fn key(&self, event: EventRef<'_>) -> u64 {
        let mut hasher = self.hash.build_hasher();
        for field in &self.fields {
            if let Some(value) = event.get(field) {
                feed(value, &mut hasher);
            }
            hasher.write_u8(0xff);
        }
        hasher.finish()
    }

    /// Takes a token from the bucket of a key.
    fn is_allowed(&self, key: u64) -> bool {
        let now = self.clock.monotonic();
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(&key) {
            self.make_room(&mut buckets, now);
        }
        let bucket = buckets.entry(key).or_insert(Bucket { tokens: self.depth, at: now });
        bucket.tokens = self.tokens_at(*bucket, now);
        bucket.at = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        allowed
    }

    /// What a bucket has at a later time. A bucket that is not even one event deep fills up to one.
    fn tokens_at(&self, bucket: Bucket, now: Monotonic) -> f64 {
        let more = now.since(bucket.at).as_secs_f64() * self.limit.events / self.limit.seconds;
        (bucket.tokens + more).min(self.depth.max(1.0))
    }

    fn make_room(&self, buckets: &mut HashMap<u64, Bucket>, now: Monotonic) {
        buckets.retain(|_, bucket| self.tokens_at(*bucket, now) < self.depth);
        let wanted = BUCKETS_MAX - BUCKETS_MAX / 8;
        if buckets.len() <= wanted {
            return;
        }
        let mut tokens: Vec<(f64, u64)> =
            buckets.iter().map(|(key, bucket)| (self.tokens_at(*bucket, now), *key)).collect();
        let (_, _, fullest) = tokens.select_nth_unstable_by(wanted - 1, |one, other| {
            one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
        });
        for (_, key) in fullest {
            buckets.remove(key);
        }
    }
}

/// Gives a value to a hash, so that different ones differ.
fn feed(value: ValueRef<'_>, hasher: &mut impl Hasher) {
    if write_scalar(value, &mut |piece| hasher.write(piece)) {
        return;
    }
    match value {
        ValueRef::List(list) => {
            hasher.write_u8(b'[');
            list.for_each(|item| {
                feed(item, hasher);
                hasher.write_u8(0xff);
                true
            });
        }
        ValueRef::Map(map) => {
            // The order of the keys is not that of the map: their sum has none.
            let mut sum = 0_u64;
            map.for_each(|key, value| {
                let mut inner = std::hash::DefaultHasher::new();
                inner.write(key);
                inner.write_u8(0xff);
                feed(value, &mut inner);
                sum = sum.wrapping_add(inner.finish());
            });
            hasher.write_u8(b'{');
            hasher.write_u64(sum);
        }
        _ => {}
    }
}

impl fmt::Debug for RateLimit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("RateLimit")
            .field("limit", &self.limit)
            .field("fields", &self.fields)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

impl Processor for RateLimit {
    fn name(&self) -> &'static str {
        "rate_limit"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let key = self.key(event.as_ref());
        Ok(if self.is_allowed(key) { Outcome::Done } else { Outcome::Dropped })
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { reads: self.fields.clone(), ..Footprint::default() }
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn describe(&self) -> String {
        let Limit { events, seconds } = self.limit;
        format!("rate_limit to {events} events in {seconds} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::Timestamp;
    use skidder_testkit::SimClock;
    use std::time::Duration;

    fn limit(text: &str, burst: f64) -> (RateLimit, SimClock) {
        let clock = SimClock::starting_at(Timestamp(0));
        let limit = Limit::parse(text).unwrap_or(Limit { events: 0.0, seconds: 0.0 });
        (RateLimit::new(limit, Vec::new(), burst, Arc::new(clock.clone())), clock)
    }

    #[test]
    fn rates_have_a_number_and_a_unit() {
        assert_eq!(Limit::parse("5/s"), Ok(Limit { events: 5.0, seconds: 1.0 }));
        assert_eq!(Limit::parse(" 0.5 / h "), Ok(Limit { events: 0.5, seconds: 3600.0 }));
        for text in ["", "5", "5/d", "x/s", "-1/s", "0/s", "NaN/s", "inf/s", "5/s/s"] {
            assert!(Limit::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn tokens_come_back_evenly_and_not_above_the_depth() {
        let (limit, clock) = limit("2/s", 2.0);
        let through = |count: usize| (0..count).filter(|_| limit.is_allowed(7)).count();
        assert_eq!(through(10), 4);
        clock.advance(Duration::from_millis(500));
        assert_eq!(through(10), 1);
        clock.advance(Duration::from_hours(1));
        assert_eq!(through(10), 4);
    }

    #[test]
    fn a_rate_below_one_lets_an_event_through_now_and_then() {
        let (limit, clock) = limit("0.5/s", 1.0);
        assert!(!limit.is_allowed(1));
        clock.advance(Duration::from_secs(1));
        assert!(limit.is_allowed(1));
        assert!(!limit.is_allowed(1));
    }

    #[test]
    fn there_are_never_more_buckets_than_allowed_and_the_emptiest_stay() {
        let (limit, clock) = limit("2/h", 1.0);
        assert!(limit.is_allowed(0) && limit.is_allowed(0) && !limit.is_allowed(0));
        for key in 1..(BUCKETS_MAX * 2) as u64 {
            assert!(limit.is_allowed(key));
        }
        let len = || limit.buckets.lock().unwrap_or_else(PoisonError::into_inner).len();
        assert!(len() <= BUCKETS_MAX && len() > BUCKETS_MAX / 2, "{}", len());
        assert!(!limit.is_allowed(0), "an empty bucket was forgotten for fuller ones");
        clock.advance(Duration::from_hours(2));
        for key in 0..BUCKETS_MAX as u64 {
            assert!(limit.is_allowed(key + (1 << 40)));
        }
        assert!(len() <= BUCKETS_MAX);
    }
}
