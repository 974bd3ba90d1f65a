//! The environment of this crate's golden files: the servers that they name.

use crate::{cloudfoundry_api, clouds, directory, docker_api, names, nomad_api};
use serde_json::json;
use skidder_golden::World;
use skidder_processors::Context;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn context(world: &World) -> Context {
    Context::new(Arc::new(world.fs.clone()), Arc::new(world.clock.clone()))
        .with(skidder_lookups::KINDS)
}

pub(crate) fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/golden"))
}

fn servers() -> Vec<(&'static str, String)> {
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

/// The servers that the files name, for as long as the folder is there.
pub(crate) fn variables() -> (Vec<(&'static str, String)>, tempfile::TempDir) {
    let (name, url, folder) = docker();
    let mut variables = servers();
    variables.push((name, url));
    (variables, folder)
}
