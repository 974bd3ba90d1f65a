//! Every processor agrees with its golden file, and leaves an event unchanged when it fails.

#[path = "common/lookup_files.rs"]
mod lookup_files;

use lookup_files::write_lookup_files;
use skidder_golden::{FixedMachine, World, guarantee, run_folder};
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

fn context(world: &World) -> Context {
    write_lookup_files(&world.fs);
    let context = Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()));
    let machine = Arc::new(FixedMachine);
    Context { machine, ..context }.with_data("/data")
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

#[test]
fn processors_do_what_their_golden_files_say() {
    run_folder(folder(), &[], &context).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_processor_that_fails_leaves_the_event_as_it_came() {
    guarantee(folder(), &[], &context, 1, 60).unwrap_or_else(|error| panic!("{error:#}"));
}
