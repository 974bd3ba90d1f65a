//! The bytes that this process takes from its heap, for the rows about parts of the program that run inside of it.
#![expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    // Nothing to drop: it can be reached until the thread is gone.
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.set(BYTES.get() + layout.size() as u64);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Bytes that this thread has taken so far, given back or not. What grows counts with its new size.
pub(crate) fn bytes() -> u64 {
    BYTES.get()
}
