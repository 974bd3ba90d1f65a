//! How large a window may be: `slow_start`, as libbeat's `outputs/logstash/window.go` has it.

/// Events of the first window.
const START: usize = 10;

/// Grows by half for each window that was acknowledged, up to what went well before at once; is halved by a
/// failure.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowStart {
    size: usize,
    /// Largest window that was acknowledged.
    good: usize,
    max: usize,
}

impl SlowStart {
    /// `max` 0 is no bound.
    pub(crate) fn new(max: usize) -> Self {
        let max = if max == 0 { usize::MAX } else { max };
        Self { size: START.min(max), good: 0, max }
    }

    /// Most events of the next window.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A window of a share of `events` was acknowledged.
    pub(crate) fn grow(&mut self, events: usize) {
        if self.size > events {
            return;
        }
        let larger = self.size + self.size.div_ceil(2);
        if self.good < self.size {
            self.good = self.size;
            // Not beyond the events at hand: larger windows were never tried.
            self.size = if events < larger { events } else { larger }.min(self.max);
        } else if self.size < self.good {
            self.size = larger.min(self.good);
        }
    }

    /// A window failed.
    pub(crate) fn shrink(&mut self) {
        self.size = (self.size / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_grow_by_half_and_shrink_to_half() {
        let mut window = SlowStart::new(50);
        let mut sizes = Vec::new();
        for _ in 0..6 {
            sizes.push(window.size());
            window.grow(2048);
        }
        assert_eq!(sizes, [10, 15, 23, 35, 50, 50]);
        window.shrink();
        window.shrink();
        assert_eq!(window.size(), 12);
        window.grow(2048);
        assert_eq!(window.size(), 18, "up to 50 it is known to be good");
        for _ in 0..10 {
            window.shrink();
        }
        assert_eq!(window.size(), 1);
        window.grow(2048);
        assert_eq!(window.size(), 2);
    }

    #[test]
    fn windows_do_not_grow_beyond_what_there_is_to_send() {
        let mut window = SlowStart::new(0);
        window.grow(12);
        assert_eq!(window.size(), 12);
        window.grow(5);
        assert_eq!(window.size(), 12);
        assert_eq!(SlowStart::new(3).size(), 3);
    }
}
