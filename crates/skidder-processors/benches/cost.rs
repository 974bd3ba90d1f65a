//! What each processor costs on an event of its example, as JSON. It goes to
//! `benches/results/processors/processors.json`, from which `docs/processors.md` has its figures.

#![expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]
#![expect(clippy::print_stdout, reason = "this is what it is for")]

use serde_json::json;
use skidder_golden::{World, costs};
use skidder_processors::Context;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
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
}

fn main() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"));
    let context =
        |world: &World| Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()));
    let allocations = || ALLOCATIONS.load(Ordering::Relaxed);
    match costs(folder, &[], &context, &allocations) {
        Ok(costs) => {
            let all: serde_json::Map<_, _> = costs
                .into_iter()
                .map(|(name, cost)| {
                    let nanoseconds = (cost.nanoseconds * 10.0).round() / 10.0;
                    let allocations = (cost.allocations * 100.0).round() / 100.0;
                    (name, json!({"nanoseconds": nanoseconds, "allocations": allocations}))
                })
                .collect();
            println!("{:#}", serde_json::Value::Object(all));
        }
        Err(error) => panic!("{error:#}"),
    }
}
