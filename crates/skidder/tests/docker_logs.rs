//! Logs of containers through the API of a real Docker engine, whose log driver writes no file.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::judge;
use common::server::BulkServer;
use common::{Place, QUEUE_EVENTS, accept};
use serde_json::Value as Json;
use skidder_testkit::servers::Server;
use std::process::Command;
use std::time::Duration;

/// A place whose only inputs are those of `inputs`.
fn place(server: &BulkServer, inputs: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!("{inputs}filebeat.registry.flush{rest}"));
    place.open_endpoint();
    place
}

/// Runs the client of an engine.
fn docker(engine: &Server, arguments: &[&str]) -> String {
    let output = Command::new(engine.file("docker")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Starts a container with this log driver that runs a script.
fn run(engine: &Server, driver: &str, name: &str, more: &[&str], script: &str) -> String {
    let usual = ["run", "-d", "--log-driver", driver, "--name", name, "--network", "none"];
    docker(engine, &[&usual, more, &["busybox:test", "sh", "-c", script]].concat())
}

fn events(server: &BulkServer) -> Vec<Json> {
    server.sent().into_iter().map(|document| document.json).collect()
}

/// Starts a container that writes so many numbered lines and ends.
fn run_numbered(engine: &Server, label: &str, count: usize) {
    std::fs::write(engine.file("numbered"), common::lines::lines(label, 0..count)).unwrap();
    let mounted = format!("{}:/numbered:ro", engine.file("numbered").display());
    run(engine, "local", label, &["-v", &mounted], "cat /numbered");
}

#[test]
#[ignore = "needs a Docker engine"]
fn autodiscover_reads_containers_whose_log_driver_writes_no_file() {
    let engine = Server::own_docker().unwrap();
    let server = BulkServer::start();
    let socket = engine.file("docker.sock");
    let provider = format!(
        "filebeat.autodiscover.providers:\n- type: docker\n  host: unix://{}\n  hints.enabled: true\n  \
         cleanup_timeout: 1s\n",
        socket.display()
    );
    let place = place(&server, &provider);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let group = [
        "--label",
        "co.elastic.logs/multiline.pattern=^ ",
        "--label",
        "co.elastic.logs/multiline.match=after",
    ];
    run(&engine, "local", "short", &group, "echo one; echo ' two'; echo three >&2");
    run(&engine, "none", "silent", &[], "echo nobody; sleep 60");
    run(&engine, "local", "terminal", &["-t"], "echo terminal");
    let long = "head -c 20000 /dev/zero | tr '\\0' a; echo end; head -c 40000 /dev/zero | tr '\\0' b; echo";
    run(&engine, "local", "long", &[], long);
    let id = run(&engine, "local", "steady", &[], "while true; do echo steady; sleep 0.1; done");
    let a_long = format!("{}end", "a".repeat(20_000));
    let b_long = "b".repeat(40_000);
    for expected in ["one\n two", "three", "terminal", "steady", &a_long, &b_long] {
        let shown = &expected[..expected.len().min(20)];
        program.await_that(shown, || server.documents().iter().any(|one| one == expected));
    }
    let steady = events(&server).into_iter().find(|one| one["message"] == "steady").unwrap();
    assert_eq!(steady["container"]["id"], *id);
    assert_eq!(steady["container"]["name"], "steady");
    assert_eq!(steady["container"]["image"]["name"], "busybox:test");
    assert_eq!(steady["input"]["type"], "docker_logs");
    assert_eq!(steady["stream"], "stdout");
    assert_eq!(steady["log"], Json::Null);
    let three = events(&server).into_iter().find(|one| one["message"] == "three").unwrap();
    assert_eq!(three["stream"], "stderr");
    let explained = place.get("/autodiscover");
    assert!(explained.contains("is `local`, which writes no file"), "{explained}");
    assert!(explained.contains("is `none`: there is no log"), "{explained}");
    docker(&engine, &["rm", "-f", "steady"]);
    program.await_that("the inputs end", || place.get("/inputs/").matches("\"id\"").count() == 0);
    let count = |message: &str| server.documents().iter().filter(|one| *one == message).count();
    assert_eq!((count("one\n two"), count("three"), count("terminal")), (1, 1, 1));
    program.terminate().succeeded();
}

#[test]
#[ignore = "needs a Docker engine"]
fn a_container_is_read_to_its_end_behind_an_output_that_hangs() {
    let engine = Server::own_docker().unwrap();
    let server = BulkServer::start();
    let provider = format!(
        "filebeat.autodiscover.providers:\n- type: docker\n  host: unix://{}\n  hints.enabled: true\n  \
         cleanup_timeout: 100ms\n",
        engine.file("docker.sock").display()
    );
    let place = place(&server, &provider);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    server.hold();
    run_numbered(&engine, "many", 5000);
    program.await_that("a request is held", || server.held() > 0);
    program.await_log("an input ends");
    server.release();
    program.await_that("all lines", || server.count() >= 5000);
    accept(
        "a container that ended behind an output that hangs",
        judge(&[("many", 5000)], &server.documents()),
        0,
    );
    program.await_that("the input ends", || place.get("/inputs/").matches("\"id\"").count() == 0);
    program.terminate().succeeded();
}

#[test]
#[ignore = "needs a Docker engine"]
fn killed_again_and_again_it_loses_no_line_and_repeats_what_was_in_flight() {
    let engine = Server::own_docker().unwrap();
    let server = BulkServer::paced(Duration::from_millis(2));
    let input = format!(
        "filebeat.inputs:\n- {{type: docker_logs, id: api, ids: [many], host: 'unix://{}'}}\n",
        engine.file("docker.sock").display()
    );
    let place = place(&server, &input);
    run_numbered(&engine, "many", 20_000);
    let mut kills = 0;
    while server.count() < 15_000 {
        let before = server.count();
        let mut program = place.start(&[]);
        program.await_that("it gets on", || server.count() > before + 1500);
        program.kill();
        kills += 1;
    }
    let mut program = place.start(&[]);
    let all = || common::lines::distinct(&server.documents()) == 20_000;
    program.await_that("all lines", all);
    // What is in the queue, and what was delivered since the last commit.
    let bound = kills * (QUEUE_EVENTS + 2500);
    accept("kill -9 over Docker's API", judge(&[("many", 20_000)], &server.documents()), bound);
    // Another run has nothing more to read.
    program.terminate().succeeded();
    let count = server.count();
    let ended = place.once(&[]).succeeded();
    assert_eq!((server.count(), ended.ledger().read), (count, 0));
}
