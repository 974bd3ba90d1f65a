//! The global allocator: that of the system, with an optional count of allocations.
//!
//! A steady state allocates a handful of times a batch, so a faster allocator gains nothing; mimalloc
//! was tried and kept 40 MB resident where glibc keeps 14. `skidder explain` counts while it measures; the
//! feature `count-allocations` counts a whole run, for the benchmark. With `http.pprof.enabled` some are sampled.

#![expect(
    unsafe_code,
    reason = "a global allocator is unsafe to implement, this one only counts; and so are the calls that set it up and trim it"
)]

use skidder_profile::heap;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static IS_COUNTING: AtomicBool = AtomicBool::new(cfg!(feature = "count-allocations"));

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

/// Counts one allocation if counting is on.
#[inline]
fn count() {
    if IS_COUNTING.load(Ordering::Relaxed) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        let at = unsafe { System.alloc(layout) };
        if heap::is_on() {
            heap::allocated(at, layout.size());
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if heap::is_on() {
            drop(heap::freeing(at));
        }
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        let at = unsafe { System.alloc_zeroed(layout) };
        if heap::is_on() {
            heap::allocated(at, layout.size());
        }
        at
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // Before the address may be another's.
        let known = if heap::is_on() { heap::freeing(at) } else { None };
        // SAFETY: the caller's promises are passed on.
        let moved = unsafe { System.realloc(at, layout, size) };
        if heap::is_on() {
            if moved.is_null() {
                heap::not_freed(at, known);
            } else {
                heap::allocated(moved, size);
            }
        }
        moved
    }
}

/// What is larger, such as buffers for chunks and for bodies of requests, is taken from the system, and goes back to it
/// alone. They are pooled, so that it is seldom.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: i32 = 256 << 10;

/// A thread keeps at most so much free memory behind all that is in use. [`give_back`] does not reach it.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const KEPT_BYTES: i32 = 512 << 10;

/// Fixes both bounds: by itself, glibc raises them to the size of what was freed, 32 and 64 MiB at most.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn fix_bounds() {
    // SAFETY: mallopt(3) changes two numbers, under a lock.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT_BYTES);
    }
}

/// Only the allocator of glibc has them.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn fix_bounds() {}

/// Gives free memory between used memory back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back() {
    // SAFETY: it may be called at any time by any thread (malloc_trim(3)), and changes nothing that is in use.
    unsafe { libc::malloc_trim(0) };
}

/// Only the allocator of glibc keeps so much.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back() {}

/// From now on allocations of all threads are counted.
pub(crate) fn start_counting() {
    IS_COUNTING.store(true, Ordering::Relaxed);
}

/// Allocations of all threads while they were counted.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

/// Prints the number of heap allocations of the whole run, for the benchmark.
#[cfg(feature = "count-allocations")]
#[expect(clippy::print_stderr, reason = "read by the benchmark")]
pub(crate) fn report() {
    eprintln!("allocations: {}", allocations());
}

/// Does nothing: the build has no `count-allocations`.
#[cfg(not(feature = "count-allocations"))]
pub(crate) fn report() {}
