//! Bytes of bodies that have no answer yet, and the limits on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Room between the high and the low water, unless that is less than a fifth.
const LOW_WATER_ROOM: u64 = 64 << 10;

/// The limits, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) max: u64,
    pub(super) high: u64,
    pub(super) low: u64,
}

impl Limits {
    /// Limits of the settings, where 0 is the default. `None`: there are none.
    pub(super) fn new(max: u64, high: u64, low: u64) -> Result<Option<Self>, String> {
        if max == 0 {
            return match (high, low) {
                (0, 0) => Ok(None),
                _ => Err("the high and the low water need `max_in_flight_bytes`".to_owned()),
            };
        }
        let high = if high == 0 { max / 2 } else { high };
        let low = match low {
            0 => (high * 4 / 5).min(high.saturating_sub(LOW_WATER_ROOM)),
            low => low,
        };
        if max < 2 {
            return Err("`max_in_flight_bytes` is 1; expected at least 2".to_owned());
        }
        if high >= max {
            return Err(format!("the high water is {high}; expected less than {max}"));
        }
        if low >= high {
            return Err(format!("the low water is {low}; expected less than {high}"));
        }
        Ok(Some(Self { max, high, low }))
    }
}

/// More bytes are in flight than the limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Over {
    pub(super) max: u64,
    /// Of all requests.
    pub(super) all: u64,
    /// One request has more by itself: it can never be taken.
    pub(super) is_alone: bool,
}

/// The count.
#[derive(Debug)]
pub(super) struct InFlight {
    bytes: AtomicU64,
    /// Memory of events that were made of requests without an answer yet.
    made: AtomicU64,
    /// New requests are refused until the low water is reached.
    is_refusing: AtomicBool,
    limits: Option<Limits>,
}

/// Bytes of one request, until it is dropped.
#[derive(Debug)]
pub(super) struct Counted {
    of: Arc<InFlight>,
    bytes: u64,
    made: u64,
}

impl InFlight {
    pub(super) fn new(limits: Option<Limits>) -> Self {
        Self {
            bytes: AtomicU64::new(0),
            made: AtomicU64::new(0),
            is_refusing: AtomicBool::new(false),
            limits,
        }
    }

    /// Whether a new request is taken; if not, the high water and the bytes.
    pub(super) fn admit(&self) -> Result<(), (u64, u64)> {
        let Some(limits) = self.limits else { return Ok(()) };
        let bytes = self.bytes.load(Ordering::Relaxed);
        let mut is_refusing = self.is_refusing.load(Ordering::Relaxed);
        if is_refusing && bytes <= limits.low {
            is_refusing = false;
        }
        if !is_refusing && bytes >= limits.high {
            is_refusing = true;
        }
        self.is_refusing.store(is_refusing, Ordering::Relaxed);
        if is_refusing { Err((limits.high, bytes)) } else { Ok(()) }
    }

    /// Begins to count a request.
    pub(super) fn begin(self: &Arc<Self>) -> Counted {
        Counted { of: Arc::clone(self), bytes: 0, made: 0 }
    }
}

impl Counted {
    /// Counts bytes that were read. Fails if there are too many now.
    pub(super) fn add(&mut self, bytes: usize) -> Result<(), Over> {
        let bytes = bytes as u64;
        self.bytes += bytes;
        let all = self.of.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        match self.of.limits {
            Some(Limits { max, .. }) if all > max => {
                Err(Over { max, all, is_alone: self.bytes > max })
            }
            _ => Ok(()),
        }
    }

    /// Bytes of memory of the events that were made of the request.
    pub(super) fn made(&self) -> u64 {
        self.made
    }

    /// Counts bytes of memory of events that were made of the request; returns those of all requests.
    pub(super) fn add_made(&mut self, bytes: usize) -> u64 {
        self.made += bytes as u64;
        self.of.made.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.of.made.fetch_sub(self.made, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_filebeat() {
        let of = |max, high, low| Limits::new(max, high, low);
        assert_eq!(of(0, 0, 0), Ok(None));
        assert_eq!(of(1000, 0, 0).unwrap().unwrap(), Limits { max: 1000, high: 500, low: 0 });
        let limits = of(2 << 20, 0, 0).unwrap().unwrap();
        assert_eq!(limits, Limits { max: 2 << 20, high: 1 << 20, low: (1 << 20) * 4 / 5 });
        for (max, high, low) in [(0, 1, 0), (0, 0, 1), (1, 0, 0), (10, 10, 0), (10, 5, 5)] {
            assert!(of(max, high, low).is_err(), "{max} {high} {low}");
        }
    }

    #[test]
    fn requests_are_refused_from_the_high_water_down_to_the_low_one() {
        let limits = Limits { max: 100, high: 50, low: 20 };
        let all = Arc::new(InFlight::new(Some(limits)));
        let (mut one, mut two) = (all.begin(), all.begin());
        assert_eq!(one.add(30), Ok(()));
        assert_eq!(all.admit(), Ok(()));
        assert_eq!(two.add(20), Ok(()));
        assert_eq!(all.admit(), Err((50, 50)));
        drop(two);
        assert_eq!(all.admit(), Err((50, 30)), "not low enough");
        drop(one);
        assert_eq!(all.admit(), Ok(()));
        let over = |all, is_alone| Err(Over { max: 100, all, is_alone });
        assert_eq!(all.begin().add(101), over(101, true));
        let (mut one, mut two) = (all.begin(), all.begin());
        assert_eq!(one.add(100), Ok(()));
        assert_eq!(two.add(1), over(101, false));
        drop((one, two));
        let mut three = all.begin();
        assert_eq!(three.add_made(7), 7);
        assert_eq!(all.begin().add_made(1), 8);
        assert_eq!(three.add_made(2), 9);
        drop(three);
        assert_eq!(all.made.load(Ordering::Relaxed), 0);
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }
}
