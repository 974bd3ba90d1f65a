//! Containers that come, go and come back while sources are bound.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod common;
mod docker_api;

use docker_api::{Docker, id};
use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings};
use skidder_event::Map;
use skidder_golden::{batch, document, map};
use skidder_processors::{Context, Plan, Shape, read_processors};
use skidder_testkit::{SimClock, SimFs, wait_until};
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

fn plan(settings: &str, clock: &SimClock) -> Plan {
    let context = Context::new(Arc::new(SimFs::new(clock)), Arc::new(clock.clone()))
        .with(skidder_lookups::KINDS);
    let yaml = format!("processors: [{{add_docker_metadata: {{{settings}}}}}]");
    let settings = Settings::parse("test.yml", &yaml).unwrap();
    let problems = Problems::new();
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    assert!(problems.is_empty(), "{problems}");
    Plan::compile(&list, &Map::new(), &[])
}

/// `container` of an event of a log, after binding anew; nothing is left to be done per event.
fn container(plan: &Plan, letter: char) -> Json {
    let path = format!("/var/lib/docker/containers/{0}/{0}-json.log", id(letter));
    let fields = map(&json!({"log.file.path": path}));
    let bound = plan.bind(&fields, &Map::new(), Shape::Lines);
    assert!(bound.is_constant());
    let mut events = batch(&["hello"], &Arc::clone(bound.input_base()));
    bound.run(&mut events);
    document(&events, 0)["container"].take()
}

#[test]
fn containers_are_known_when_they_start_and_for_a_while_after_they_died() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let docker = Docker::serve(&socket);
    docker.run('a', "first", json!({}));
    let clock = SimClock::new();
    let plan = plan(&format!("host: 'unix://{}', cleanup_timeout: 60s", socket.display()), &clock);
    assert_eq!(container(&plan, 'a')["name"], "first");
    assert_eq!(container(&plan, 'b'), json!({"id": id('b')}), "only what the path says");

    let epoch = plan.epoch();
    docker.run('b', "second", json!({"a.b": "c"}));
    docker.send_event("start", 'b');
    wait_until("the epoch grows", LIMIT, || plan.epoch() > epoch);
    let image = json!({"name": "image:1"});
    let labels = json!({"a_b": "c"});
    let expected = json!({"id": id('b'), "name": "second", "image": image, "labels": labels});
    assert_eq!(container(&plan, 'b'), expected);

    let epoch = plan.epoch();
    docker.send_event("die", 'a');
    docker.run('c', "third", json!({}));
    docker.send_event("start", 'c');
    wait_until("the container after it is known", LIMIT, || plan.epoch() > epoch);
    assert_eq!(container(&plan, 'a')["name"], "first", "its last lines are still read");
    let epoch = plan.epoch();
    clock.advance(Duration::from_mins(1));
    wait_until("its end is announced", LIMIT, || plan.epoch() > epoch);
    assert_eq!(container(&plan, 'a')["name"], "first", "somebody asked when it was announced");
}

#[test]
fn after_a_break_everything_is_listed_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let docker = Docker::serve(&socket);
    docker.run('a', "first", json!({}));
    let plan = plan(&format!("host: 'unix://{}'", socket.display()), &SimClock::new());
    assert_eq!(container(&plan, 'a')["name"], "first");
    let epoch = plan.epoch();
    docker.run('b', "second", json!({}));
    docker.hang_up();
    wait_until("the list is asked for again", LIMIT, || plan.epoch() > epoch);
    assert_eq!(container(&plan, 'b')["name"], "second");
}

#[test]
fn a_docker_that_comes_later_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let settings =
        format!("host: 'unix://{}', wait_for_metadata_retry_period: 10ms", socket.display());
    let plan = plan(&settings, &SimClock::new());
    assert_eq!(container(&plan, 'a'), Json::Null, "without Docker nothing is added");
    let docker = Docker::serve(&socket);
    docker.run('a', "first", json!({}));
    wait_until("Docker is found", LIMIT, || container(&plan, 'a')["id"] == id('a'));
}

#[test]
fn files_wait_for_the_list_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let settings = |more: &str| {
        let retry = "wait_for_metadata_retry_period: 10ms, wait_for_metadata: true";
        format!("host: 'unix://{}', {retry}{more}", socket.display())
    };
    let clock = SimClock::new();
    // Neither compiling nor binding waits for a Docker that is not there, with no end to the wait.
    let endless = plan(&settings(""), &clock);
    let limited = plan(&settings(", wait_for_metadata_timeout: 20s"), &clock);
    assert_eq!(container(&endless, 'a'), Json::Null);
    let hold = |plan: &Plan| plan.hold(&Map::new(), &Map::new());
    assert!(endless.can_hold() && hold(&endless).is_some() && hold(&limited).is_some());
    clock.advance(Duration::from_secs(20));
    assert_eq!((hold(&endless).is_some(), hold(&limited)), (true, None));
    let docker = Docker::serve(&socket);
    docker.run('a', "first", json!({}));
    wait_until("Docker is found", LIMIT, || hold(&endless).is_none());
    assert_eq!(container(&endless, 'a')["name"], "first");
}
