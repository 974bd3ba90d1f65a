//! The global allocator: mimalloc, or with the feature `count-allocations` one that counts.

#[cfg(not(feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Prints the number of heap allocations, if they were counted.
#[cfg(not(feature = "count-allocations"))]
pub(crate) fn report() {}

#[cfg(feature = "count-allocations")]
pub(crate) use counting::report;

#[cfg(feature = "count-allocations")]
#[expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]
mod counting {
    use std::alloc::{GlobalAlloc, Layout};
    use std::sync::atomic::{AtomicU64, Ordering};

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

    struct Counting;

    // SAFETY: every call is passed on unchanged to mimalloc, which keeps the contract.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { mimalloc::MiMalloc.alloc(layout) }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            // SAFETY: the caller's promises are passed on.
            unsafe { mimalloc::MiMalloc.dealloc(at, layout) }
        }

        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { mimalloc::MiMalloc.alloc_zeroed(layout) }
        }

        unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
            // SAFETY: the caller's promises are passed on.
            unsafe { mimalloc::MiMalloc.realloc(at, layout, size) }
        }
    }

    /// Prints the number of heap allocations of the whole run.
    #[expect(clippy::print_stderr, reason = "read by the benchmark")]
    pub(crate) fn report() {
        eprintln!("allocations: {}", ALLOCATIONS.load(Ordering::Relaxed));
    }
}
