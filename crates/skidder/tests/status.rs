//! `skidder status`, as scripts and people see it.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::{Ended, Program, command};
use common::server::BulkServer;
use serde_json::Value;
use std::ffi::OsStr;

fn run(place: &Place, arguments: &[&str]) -> Ended {
    let config = place.path().join("filebeat.yml");
    let mut command = command([OsStr::new("-c"), config.as_os_str()]);
    command.arg("--path.data").arg(place.data()).args(arguments).current_dir(place.path());
    Program::run(&mut command)
}

/// A place whose program has an endpoint on a socket.
fn with_endpoint(server: &BulkServer, more: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration().replace("timeout: 5s", "timeout: 10m");
    let socket = place.path().join("s");
    place.configure(&format!(
        "{text}http: {{enabled: true, host: 'unix://{}'{more}}}\n",
        socket.display()
    ));
    place
}

#[test]
fn a_program_that_does_not_run_is_three() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    let ended = run(&place, &["status"]);
    assert_eq!((ended.code(), &*ended.out), (Some(3), "not running\n"), "{}", ended.log);
    let ended = run(&place, &["status", "--json"]);
    let told: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code(), &told["running"]), (Some(3), &false.into()));
}

#[test]
fn a_program_without_an_endpoint_cannot_be_asked() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let program = place.start(&[]);
    program.await_log("skidder is running");
    let ended = run(&place, &["status"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("`http.enabled` is off"), "{}", ended.log);
    program.terminate().succeeded();
}

#[test]
fn a_stuck_output_is_one_and_all_is_well_when_it_goes_on() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, ", auth.token: 'a secret token'");
    server.hold();
    place.write("a", &lines("a", 0..5000));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    program.await_that("answers wait", || server.held() > 0);
    let status =
        |arguments: &[&str]| run(&place, &[&["status", "--seconds", "0.2"], arguments].concat());
    program.await_that("the output is blocked", || {
        let ended = status(&["--json"]);
        let told: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(ended.code() == Some(1), told["well"] == false, "{}", ended.out);
        told["outputs"][0]["state"] == "blocked"
    });
    let ended = status(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("! the output elasticsearch is blocked for "), "{}", ended.out);
    assert!(ended.out.contains("1 files, 1 of them behind: 488.3 KiB"), "{}", ended.out);
    // A line that waits for this long is behind.
    let ended = status(&["--behind", "0.1"]);
    assert!(ended.out.contains("logs/a is "), "{}", ended.out);
    server.release();
    program.await_that("every line is there", || server.count() >= 5000);
    // What is known of the files is up to a second old.
    program.await_that("nothing is behind", || status(&[]).out.contains("0 of them behind"));
    let ended = status(&[]).succeeded();
    for part in
        ["all is well\n", "read 5,000 lines", "= delivered 5,000 (", "1 files, 0 of them behind"]
    {
        assert!(ended.out.contains(part), "{part} is not in\n{}", ended.out);
    }
    assert!(!ended.out.contains("a secret token"));
    program.terminate().succeeded();
}
