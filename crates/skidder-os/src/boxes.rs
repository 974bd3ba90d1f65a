//! Boxes for values that stay while much around them comes and goes.

use std::mem::MaybeUninit;

/// Memory that is allocated at once: about two pages.
const BYTES_AT_ONCE: usize = 8 << 10;

/// Boxes are allocated at once at most.
const AT_ONCE_MAX: usize = 64;

/// Allocates boxes of one type several at a time, so that they lie next to each other.
///
/// Memory goes back to the system by whole pages. A small value that stays keeps the page of all the short-lived ones
/// that were allocated around it: with a value for each of very many sources, that is a page for each.
#[derive(Debug)]
pub struct Boxes<T> {
    unused: Vec<Box<MaybeUninit<T>>>,
}

impl<T> Default for Boxes<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Boxes<T> {
    /// How many are allocated at once.
    const AT_ONCE: usize = {
        let bytes = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        match BYTES_AT_ONCE / bytes {
            0 => 1,
            count if count > AT_ONCE_MAX => AT_ONCE_MAX,
            count => count,
        }
    };

    /// Allocates nothing yet.
    pub const fn new() -> Self {
        Self { unused: Vec::new() }
    }

    /// Allocates for `count` values, if there is no room for them yet. With an allocator that gives each thread memory of
    /// its own, they lie between what this thread allocates, and not that which uses them.
    pub fn prepare(&mut self, count: usize) {
        while self.unused.len() < count {
            self.unused.extend((0..Self::AT_ONCE).map(|_| Box::new_uninit()));
        }
    }

    /// A box for one value.
    pub fn take(&mut self) -> Box<MaybeUninit<T>> {
        self.prepare(1);
        self.unused.pop().unwrap_or_else(Box::new_uninit)
    }

    /// A box with this value.
    pub fn put(&mut self, value: T) -> Box<T> {
        Box::write(self.take(), value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_allocated_several_at_a_time() {
        let mut boxes = Boxes::new();
        let first = boxes.put([1_u8; 512]);
        assert_eq!(*first, [1; 512]);
        assert_eq!(boxes.unused.len(), 15);
        let others: Vec<_> = (0..15).map(|value| boxes.put([value; 512])).collect();
        assert!(boxes.unused.is_empty());
        assert!(others.iter().zip(0..).all(|(other, value)| **other == [value; 512]));
        drop(boxes.take());
        assert_eq!(boxes.unused.len(), 15, "the next ones");
    }

    #[test]
    fn boxes_are_there_for_as_many_values_as_was_said() {
        let mut boxes = Boxes::new();
        boxes.prepare(17);
        assert_eq!(boxes.unused.len(), 32);
        drop(boxes.put([1_u8; 512]));
        boxes.prepare(31);
        assert_eq!(boxes.unused.len(), 31, "there was room for them");
    }

    #[test]
    fn a_large_value_is_allocated_alone_and_of_small_ones_not_too_many() {
        let mut large = Boxes::new();
        drop(large.put([0_u8; BYTES_AT_ONCE + 1]));
        assert!(large.unused.is_empty());
        let mut small = Boxes::new();
        drop(small.put(1_u8));
        assert_eq!(small.unused.len(), AT_ONCE_MAX - 1);
        let mut nothing = Boxes::new();
        drop(nothing.put(()));
        assert_eq!(nothing.unused.len(), AT_ONCE_MAX - 1);
    }
}
