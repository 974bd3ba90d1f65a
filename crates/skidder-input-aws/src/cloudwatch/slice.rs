//! The part of a scan that is read at once: as long as its events are about as many as a cursor has ids for.

use super::window::Milliseconds;

/// A slice with fewer events is not cut: a page may have few, or none, although there are more.
const EVENTS_MIN: usize = 1_000;
/// Nor one with fewer bytes of messages; a page has at most 1 MB.
const BYTES_MIN: usize = 256 << 10;
/// A slice is at most so many times as long as the one before.
const GROWTH_MAX: i64 = 16;

/// Events from one time until another one, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) start: Milliseconds,
    pub(crate) end: Milliseconds,
}

impl Slice {
    /// Of a scan until `end`: as long as `span`, but until `front`. Nothing: the whole scan.
    pub(crate) fn new(
        start: Milliseconds,
        front: Milliseconds,
        end: Milliseconds,
        span: Option<Milliseconds>,
    ) -> Self {
        let until = span.map_or(end, |span| start.saturating_add(span.max(1) - 1));
        Self { start, end: until.max(front).min(end) }
    }

    /// How long the next one is to have so many events as `wanted`, if this one had `count`.
    pub(crate) fn next_span(self, count: usize, wanted: usize) -> Milliseconds {
        let span = self.end.saturating_sub(self.start).saturating_add(1);
        let count = i64::try_from(count.max(1)).unwrap_or(i64::MAX);
        let next = span.saturating_mul(wanted as i64) / count;
        next.min(span.saturating_mul(GROWTH_MAX)).max(1)
    }
}

/// What the service showed of a slice so far.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    count: usize,
    bytes: usize,
    /// Of the events, as long as the slice may be cut.
    times: Vec<Milliseconds>,
    /// The slice cannot be cut.
    is_whole: bool,
}

impl Shown {
    /// An event of this time, with so many bytes.
    pub(crate) fn add(&mut self, time: Milliseconds, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        if !self.is_whole {
            self.times.push(time);
        }
    }

    /// Events.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// The beginning of the slice with so many events as `wanted`, if it has many and there are more. It ends not before
    /// `front`.
    pub(crate) fn shorter(
        &mut self,
        slice: Slice,
        front: Milliseconds,
        wanted: usize,
    ) -> Option<Slice> {
        if self.is_whole || self.count < EVENTS_MIN && self.bytes < BYTES_MIN {
            return None;
        }
        let mut times = std::mem::take(&mut self.times);
        self.is_whole = true;
        let place = wanted.min(times.len() * 3 / 4);
        if place >= times.len() {
            return None;
        }
        let (_, time, _) = times.select_nth_unstable(place);
        let end = (*time).max(front).max(slice.start);
        (end < slice.end).then_some(Slice { end, ..slice })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_reaches_the_front_and_ends_with_the_scan() {
        assert_eq!(Slice::new(0, 0, 100, None), Slice { start: 0, end: 100 });
        assert_eq!(Slice::new(10, 10, 100, Some(5)), Slice { start: 10, end: 14 });
        assert_eq!(Slice::new(10, 50, 100, Some(5)), Slice { start: 10, end: 50 });
        assert_eq!(Slice::new(10, 10, 100, Some(i64::MAX)), Slice { start: 10, end: 100 });
    }

    #[test]
    fn a_slice_with_too_many_events_gets_shorter_until_it_is_a_millisecond() {
        let shorter = |slice, times: &[Milliseconds], bytes, front| {
            let mut shown = Shown::default();
            for time in times {
                shown.add(*time, bytes);
            }
            assert_eq!(shown.count(), times.len());
            let shorter = shown.shorter(slice, front, 4_000);
            assert_eq!(shown.shorter(slice, front, 4_000), None, "once");
            shorter
        };
        let slice = Slice { start: 0, end: 1_000_000 };
        let until = |end| Some(Slice { start: 0, end });
        let many: Vec<Milliseconds> = (0..10_000).rev().collect();
        let few: Vec<Milliseconds> = (0..100).collect();
        assert_eq!(shorter(slice, &many, 10, 0), until(4_000));
        assert_eq!(shorter(slice, &few, 10_000, 0), until(75));
        assert_eq!(shorter(slice, &few, 10_000, 90), until(90));
        assert_eq!(shorter(slice, &few, 10, 0), None, "a page may have few");
        assert_eq!(shorter(slice, &[], 0, 0), None);
        let same = [7; 10_000];
        let one = shorter(Slice { start: 7, end: 9 }, &same, 10, 0);
        assert_eq!(one, Some(Slice { start: 7, end: 7 }));
        assert_eq!(one.and_then(|one| shorter(one, &same, 10, 0)), None);
    }

    #[test]
    fn the_next_slice_has_about_as_many_events_as_wanted() {
        let slice = Slice { start: 0, end: 999 };
        assert_eq!(slice.next_span(4_000, 4_000), 1_000);
        assert_eq!(slice.next_span(8_000, 4_000), 500);
        assert_eq!(slice.next_span(2_000, 4_000), 2_000);
        assert_eq!(slice.next_span(0, 4_000), 16_000);
        assert_eq!(Slice { start: 0, end: 0 }.next_span(1_000_000, 4_000), 1);
        assert_eq!(Slice { start: 0, end: i64::MAX }.next_span(0, 4_000), i64::MAX);
    }
}
