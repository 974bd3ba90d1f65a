//! What the answer to a bulk request costs in memory.
#![expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{batch, context};
use skidder_event::{Base, Map};
use skidder_outputs::elasticsearch::{AnswerBench, Config, HostUrl, WaitingRequest};
use skidder_pipeline::{Delivery, Queue, QueueLimits, Settle, TakeLimits};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

static BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What giving back the batch's room in the queue may take.
const BYTES_MAX: u64 = 128;

/// Items of the answer.
const ITEMS: usize = 1600;

fn delivery() -> Delivery {
    let limits = QueueLimits { flush_min_events: 0, ..QueueLimits::default() };
    let queue = Queue::new(limits, Settle::new());
    let base = Arc::new(Base::new(&Map::new(), &Map::new()));
    assert!(queue.push(batch(0, ITEMS, base)).is_ok());
    let mut taken = Vec::new();
    assert!(queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken));
    taken.remove(0)
}

#[test]
fn an_answer_that_took_everything_allocates_next_to_nothing() {
    let config = Config::new(vec![HostUrl::parse("es", "", "").unwrap()]);
    let item = "{\"create\":{\"status\":201}}";
    let body = format!("{{\"errors\":false,\"items\":[{}]}}", vec![item; ITEMS].join(","));
    let mut bench = AnswerBench::default();
    let deliveries = [delivery(), delivery()];
    let requests = deliveries.each_ref().map(|it| WaitingRequest::new(&config, &context(), it));
    // The first one makes room for what is kept.
    assert_eq!(bench.handle(&requests[0], body.as_bytes()), ITEMS as u64);
    let before = BYTES.load(Ordering::Relaxed);
    let taken = bench.handle(&requests[1], body.as_bytes());
    let bytes = BYTES.load(Ordering::Relaxed) - before;
    assert_eq!(taken, ITEMS as u64);
    assert!(bytes <= BYTES_MAX, "{bytes}");
}
