//! How large a request may be: as configured, or less as long as a server takes less.

/// Requests that are taken before a larger one is tried again.
const TAKEN_BEFORE_MORE: u32 = 64;

/// See the module's text. All in bytes before they are compressed.
#[derive(Debug)]
pub(crate) struct Size {
    /// `bulk_max_bytes`.
    max: usize,
    now: usize,
    taken: u32,
}

impl Size {
    pub(crate) fn new(max: usize) -> Self {
        Self { max, now: max, taken: 0 }
    }

    /// Most bytes of the next request.
    pub(crate) fn bytes(&self) -> usize {
        self.now
    }

    /// A request of this length, of more than one event, was too large.
    pub(crate) fn was_too_large(&mut self, bytes: usize) {
        self.now = (bytes.min(self.now) / 2).max(1);
        self.taken = 0;
    }

    /// A request was taken. Only a large one shows that larger ones might be, too.
    pub(crate) fn took(&mut self, bytes: usize) {
        if self.now == self.max || bytes < self.now / 2 {
            return;
        }
        self.taken += 1;
        if self.taken == TAKEN_BEFORE_MORE {
            self.taken = 0;
            self.now = self.now.saturating_mul(2).min(self.max);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_shrink_at_once_and_grow_slowly() {
        let mut size = Size::new(1000);
        size.took(1000);
        assert_eq!(size.bytes(), 1000);
        size.was_too_large(900);
        assert_eq!(size.bytes(), 450);
        for _ in 0..TAKEN_BEFORE_MORE {
            assert_eq!(size.bytes(), 450);
            // Small ones prove nothing.
            size.took(10);
            size.took(400);
        }
        assert_eq!(size.bytes(), 900);
        for _ in 0..TAKEN_BEFORE_MORE {
            size.took(900);
        }
        assert_eq!(size.bytes(), 1000);
        // A single event that is larger than the bound goes alone, and does not count for others.
        for _ in 0..20 {
            size.was_too_large(5000);
        }
        assert_eq!(size.bytes(), 1);
    }
}
