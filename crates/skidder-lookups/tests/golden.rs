//! Every processor does what its golden file says, and leaves an event as it came when it fails.

mod clouds;
mod common;
mod names;

use skidder_golden::{World, guarantee, run_folder};
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

fn context(world: &World) -> Context {
    Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()))
        .with(skidder_lookups::KINDS)
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

/// The servers that the files name.
fn variables() -> Vec<(&'static str, String)> {
    let mut variables = clouds::variables();
    variables.push(("DNS", names::serve().0));
    variables.push(("DNS_SILENT", names::silent().0));
    variables
}

#[test]
fn processors_do_what_their_golden_files_say() {
    run_folder(folder(), &variables(), &context).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_processor_that_fails_leaves_the_event_as_it_came() {
    guarantee(folder(), &variables(), &context, 1, 20).unwrap_or_else(|error| panic!("{error:#}"));
}
