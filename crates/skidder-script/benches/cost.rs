//! The cost of the processor `script` on an event of its example, as JSON in
//! `benches/results/processors/script.json`, from which `docs/processors.md` has its figures.

use skidder_golden::{Counting, World, write_costs};
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"));
    let context = |world: &World| {
        Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()))
            .with(skidder_script::KINDS)
    };
    write_costs("script", folder, &[], &context);
}
