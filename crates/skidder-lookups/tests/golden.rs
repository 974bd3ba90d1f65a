//! Every processor passes its golden file, and leaves an event unchanged when it fails.

mod cloudfoundry_api;
mod clouds;
mod common;
mod directory;
mod docker_api;
mod names;
mod nomad_api;
mod world;

use skidder_golden::{guarantee, run_folder};
use world::{context, folder, variables};

#[test]
fn processors_do_what_their_golden_files_say() {
    let (variables, _folder) = variables();
    run_folder(folder(), &variables, &context).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_processor_that_fails_leaves_the_event_as_it_came() {
    let (variables, _folder) = variables();
    guarantee(folder(), &variables, &context, 1, 20).unwrap_or_else(|error| panic!("{error:#}"));
}
