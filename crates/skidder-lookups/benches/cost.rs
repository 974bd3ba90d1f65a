//! The cost of processors with look-ups on an event of their example when the answer is cached, as JSON in
//! `benches/results/processors/lookups.json`, from which `docs/processors.md` has its figures.

#[path = "../tests/cloudfoundry_api/mod.rs"]
mod cloudfoundry_api;
#[path = "../tests/clouds/mod.rs"]
mod clouds;
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/directory/mod.rs"]
mod directory;
#[path = "../tests/docker_api/mod.rs"]
mod docker_api;
#[path = "../tests/names/mod.rs"]
mod names;
#[path = "../tests/nomad_api/mod.rs"]
mod nomad_api;
#[path = "../tests/world/mod.rs"]
mod world;

use skidder_golden::{Counting, write_costs};
use world::{context, folder, variables};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    let (variables, _folder) = variables();
    write_costs("lookups", folder(), &variables, &context);
}
