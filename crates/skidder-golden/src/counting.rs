//! A counting allocator, and the program that measures the processors of a crate.

#![expect(unsafe_code, reason = "a global allocator is unsafe to implement; this one only counts")]

use crate::cost::costs;
use crate::run::World;
use serde_json::json;
use skidder_processors::Context;
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counting. To be the `#[global_allocator]` of a benchmark.
#[derive(Debug)]
pub struct Counting;

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

/// Measures the processors of all golden files of a folder, and writes their costs as JSON to
/// `benches/results/processors/NAME.json`.
///
/// # Panics
/// If a golden file cannot be read, or the result not written.
#[expect(clippy::print_stdout, reason = "prints the path of the result")]
pub fn write_costs(
    name: &str,
    folder: &Path,
    variables: &[(&str, String)],
    make: &dyn Fn(&World) -> Context,
) {
    let allocations = || ALLOCATIONS.load(Ordering::Relaxed);
    let costs = costs(folder, variables, make, &allocations)
        .unwrap_or_else(|error| panic!("{error:#}"))
        .into_iter()
        .map(|(name, cost)| {
            let nanoseconds = (cost.nanoseconds * 10.0).round() / 10.0;
            let allocations = (cost.allocations * 100.0).round() / 100.0;
            (name, json!({"nanoseconds": nanoseconds, "allocations": allocations}))
        });
    let text = format!("{:#}\n", serde_json::Value::Object(costs.collect()));
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/results/processors");
    let path = results.join(name).with_extension("json");
    std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    println!("{}", path.display());
}
