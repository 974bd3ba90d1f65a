//! Every processor does what its golden file says, and leaves an event as it came when it fails.

mod cloudfoundry_api;
mod clouds;
mod common;
mod directory;
mod docker_api;
mod names;
mod nomad_api;

use serde_json::json;
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
    variables.push(("CLOUDFOUNDRY", cloudfoundry_api::serve_api()));
    variables.push(("NOMAD", nomad_api::serve_nomad()));
    variables.push(("ALLOCATION", nomad_api::ALLOCATION.to_owned()));
    variables.push(("DNS", names::serve().0));
    variables.push(("LDAP", directory::serve().0));
    variables.push(("DNS_SILENT", names::silent().0));
    for (name, letter) in [("ID_A", 'a'), ("ID_B", 'b'), ("ID_C", 'c')] {
        variables.push((name, docker_api::id(letter)));
    }
    variables
}

/// A Docker with two containers, for as long as the folder is there.
fn docker() -> (&'static str, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder for a socket");
    let socket = folder.path().join("docker.sock");
    let docker = docker_api::Docker::serve(&socket);
    docker.run('a', "web", json!({"app": "x", "app.kubernetes.io/name": "y"}));
    docker.run('b', "db", json!({}));
    ("DOCKER", format!("unix://{}", socket.display()), folder)
}

#[test]
fn processors_do_what_their_golden_files_say() {
    let (name, url, _folder) = docker();
    let variables = [variables(), vec![(name, url)]].concat();
    run_folder(folder(), &variables, &context).unwrap_or_else(|error| panic!("{error:#}"));
}

#[test]
fn a_processor_that_fails_leaves_the_event_as_it_came() {
    let (name, url, _folder) = docker();
    let variables = [variables(), vec![(name, url)]].concat();
    guarantee(folder(), &variables, &context, 1, 20).unwrap_or_else(|error| panic!("{error:#}"));
}
