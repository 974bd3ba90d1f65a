//! The processor passes its golden file, and leaves an event unchanged when it fails.

use skidder_golden::{World, guarantee, run_folder};
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

fn context(world: &World) -> Context {
    Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()))
        .with(skidder_script::KINDS)
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

#[test]
fn the_processor_does_what_its_golden_file_says() {
    run_folder(folder(), &[], &context).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_script_that_fails_leaves_the_event_as_it_came() {
    guarantee(folder(), &[], &context, 1, 20).unwrap_or_else(|error| panic!("{error:#}"));
}
