//! What each processor costs on an event of its first example.

use crate::case::Kind;
use crate::file::read_folder;
use crate::page::Cost;
use crate::run::{Variant, World, compile, prepare_many, world_of};
use anyhow::Result;
use skidder_event::Map;
use skidder_os::{Clock, SystemClock};
use skidder_processors::{Context, Plan};
use std::collections::BTreeMap;
use std::path::Path;

/// Events of a batch, as many as a reader makes at once.
const EVENTS: usize = 800;

/// Batches that are measured; the result is their median.
const BATCHES: usize = 101;

/// Measures the processors of all golden files of a folder. `allocations` counts those of the process.
///
/// # Errors
/// A golden file that cannot be read.
pub(crate) fn costs(
    folder: &Path,
    variables: &[(&str, String)],
    make: &dyn Fn(&World) -> Context,
    allocations: &dyn Fn() -> u64,
) -> Result<BTreeMap<String, Cost>> {
    let mut all = BTreeMap::new();
    let clock = SystemClock::new();
    for file in read_folder(folder, variables)? {
        let first = file.cases.iter().position(|case| case.kind == Kind::Normal);
        let Some(place) = first else { continue };
        let case = &file.cases[place];
        let (list, _) = compile(&file, place, &make(&world_of(case)?))?;
        let plan = Plan::compile(&list, &Map::new(), &[]);
        let mut seen = Vec::new();
        for _ in 0..BATCHES {
            let (bound, mut events) =
                prepare_many(&plan, &case.steps[0].event, Variant::Own, EVENTS);
            let before = allocations();
            let started = clock.monotonic();
            bound.run(&mut events);
            let time = clock.monotonic().since(started);
            let made = allocations() - before;
            seen.push((time.as_nanos() as f64 / EVENTS as f64, made as f64 / EVENTS as f64));
        }
        let middle = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let nanoseconds = middle(seen.iter().map(|(time, _)| *time).collect());
        let allocations = middle(seen.iter().map(|(_, made)| *made).collect());
        all.insert(file.processor.clone(), Cost { nanoseconds, allocations });
    }
    Ok(all)
}
