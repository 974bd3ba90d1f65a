//! Shared by tests: an `Autodiscover` from a text, and facts.
#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::{Value as Json, json};
use skidder_autodiscover::{Autodiscover, Context, Made};
use skidder_config::{Problems, Settings};
use skidder_os::Monotonic;
use std::sync::Arc;
use std::time::Duration;

/// Seconds since the start.
pub(crate) fn at(seconds: u64) -> Monotonic {
    Monotonic(Duration::from_secs(seconds))
}

/// The section of a configuration, and the problems in it.
pub(crate) fn read(text: &str) -> (Option<Autodiscover>, String) {
    let settings = Arc::new(Settings::parse("filebeat.yml", text).expect("valid YAML"));
    let context = Context {
        settings: Arc::clone(&settings),
        environment: Arc::new(|name| (name == "REGION").then(|| "eu".to_owned())),
        filesets: Arc::new(|module| {
            let filesets = ["access", "error", "ingress_controller"].map(str::to_owned).to_vec();
            (module == "nginx").then_some(filesets)
        }),
        inputs: &skidder_config::PLACES,
    };
    let problems = Problems::new();
    let root = settings.root(&problems);
    let section = root.section("filebeat.autodiscover");
    let made = Autodiscover::read(&section, context);
    drop(section);
    root.skip();
    (made, problems.to_string())
}

/// The same of a configuration without problems.
pub(crate) fn autodiscover(text: &str) -> Autodiscover {
    let (made, problems) = read(text);
    assert_eq!(problems, "");
    made.expect("a provider")
}

/// The only configuration of an input.
pub(crate) fn config(made: &Made) -> Json {
    made.settings.settings().node().to_json()[0].clone()
}

/// A container as Docker inspects it; `started` is the second of its start.
pub(crate) fn container(id: &str, started: u64, labels: Json) -> Json {
    json!({
        "Id": id,
        "Name": format!("/name-{id}"),
        "Created": format!("2026-01-01T00:{:02}:{:02}Z", started / 60, started % 60),
        "Config": { "Image": "shop:1", "Hostname": "host-1", "Labels": labels },
        "State": {
            "Running": true,
            "StartedAt": format!("2026-01-01T00:{:02}:{:02}.5Z", started / 60, started % 60),
        },
        "NetworkSettings": { "Networks": { "bridge": { "IPAddress": "172.17.0.2" } } },
    })
}

/// A pod with one running container called `web`.
pub(crate) fn pod(uid: &str, version: u64, annotations: Json) -> Json {
    json!({
        "metadata": {
            "uid": uid, "name": format!("pod-{uid}"), "namespace": "shop", "resourceVersion": version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": annotations, "labels": { "app": "web" },
        },
        "spec": { "nodeName": "n1", "containers": [{ "name": "web", "image": "shop:1" }] },
        "status": {
            "phase": "Running", "podIP": "10.0.0.9",
            "containerStatuses": [{
                "name": "web", "containerID": format!("containerd://id-of-{uid}-web"), "state": { "running": {} },
            }],
        },
    })
}
