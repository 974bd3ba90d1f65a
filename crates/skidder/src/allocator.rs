//! The global allocator: that of the system, or with the feature `count-allocations` one that counts.
//!
//! A steady state allocates a handful of times a batch, so a faster allocator gains nothing; mimalloc
//! was tried and kept 40 MB resident where glibc keeps 14.

/// Prints the number of heap allocations, if they were counted.
#[cfg(not(feature = "count-allocations"))]
pub(crate) fn report() {}

#[cfg(feature = "count-allocations")]
pub(crate) use counting::report;

#[cfg(feature = "count-allocations")]
#[expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

    struct Counting;

    // SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { System.alloc(layout) }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            // SAFETY: the caller's promises are passed on.
            unsafe { System.dealloc(at, layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { System.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { System.realloc(at, layout, size) }
        }
    }

    /// Prints the number of heap allocations of the whole run.
    #[expect(clippy::print_stderr, reason = "read by the benchmark")]
    pub(crate) fn report() {
        eprintln!("allocations: {}", ALLOCATIONS.load(Ordering::Relaxed));
    }
}
