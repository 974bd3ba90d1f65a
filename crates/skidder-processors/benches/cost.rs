//! What each processor costs on an event of its example, as JSON in
//! `benches/results/processors/processors.json`, from which `docs/processors.md` has its figures.

#[path = "../tests/common/lookup_files.rs"]
mod lookup_files;

use lookup_files::write_lookup_files;
use skidder_golden::{Counting, World, write_costs};
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"));
    let context = |world: &World| {
        write_lookup_files(&world.fs);
        Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()))
    };
    write_costs("processors", folder, &[], &context);
}
