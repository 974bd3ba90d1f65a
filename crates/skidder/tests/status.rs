//! `skidder status` and `skidder top`, as scripts and people see them.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::{Log, lines};
use common::program::{Program, command};
use common::server::{Act, BulkServer};
use rustix::fs::OFlags;
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use skidder_testkit::wait_for;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

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
    let ended = place.run(&["status"]);
    let data =
        format!("not running: no skidder uses the data directory `{}`", place.data().display());
    assert!(ended.code() == Some(3) && ended.out.starts_with(&data), "{} {}", ended.out, ended.log);
    let ended = place.run(&["status", "--json"]);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code(), &json["running"]), (Some(3), &false.into()));
}

#[test]
fn a_program_without_an_endpoint_cannot_be_asked() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let program = place.start(&[]);
    program.await_log("skidder is running");
    let ended = place.run(&["status"]);
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
        |arguments: &[&str]| place.run(&[&["status", "--seconds", "0.2"], arguments].concat());
    program.await_that("the output is blocked", || {
        let ended = status(&["--json"]);
        let json: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!(ended.code() == Some(1), json["well"] == false, "{}", ended.out);
        json["outputs"][0]["state"] == "blocked"
    });
    let ended = status(&["--json"]);
    let json: Value = serde_json::from_str(&ended.out).unwrap();
    let input = &json["inputs"][0];
    assert_eq!(
        (&input["state"], &input["blocked_on"]),
        (&"blocked".into(), &"elasticsearch".into())
    );
    assert_eq!(
        (&input["lag"]["behind_bytes"], &input["ledger"]["adds_up"]),
        (&500_000.into(), &true.into())
    );
    let ended = status(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("! the output elasticsearch is blocked since "), "{}", ended.out);
    assert!(ended.out.contains("): no answer yet to "), "{}", ended.out);
    assert!(ended.out.contains("  → `skidder test output` tries"), "{}", ended.out);
    assert!(ended.out.contains("blocked on elasticsearch "), "{}", ended.out);
    assert!(ended.out.contains("1 files, 1 of them behind: 488.3 KiB"), "{}", ended.out);
    server.release();
    program.await_that("every line is there", || server.count() >= 5000);
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

#[test]
fn an_input_that_holds_no_events_is_not_blocked_on_a_stuck_output() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    let missing = place.path().join("missing").join("in");
    let input = format!("- {{type: unix, id: x, path: '{}'}}\n", missing.display());
    let rest = "filebeat.registry.flush";
    place.configure(&place.configuration().replace(rest, &format!("{input}{rest}")));
    server.hold();
    place.write("a", &lines("a", 0..5000));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let status = || -> Value {
        serde_json::from_str(&place.run(&["status", "--seconds", "0.2", "--json"]).out).unwrap()
    };
    let input = |json: &Value, id: &str| {
        let all = json["inputs"].as_array().unwrap();
        all.iter().find(|input| input["id"] == id).unwrap().clone()
    };
    let mut json = Value::Null;
    program.await_that("the files wait for the output", || {
        json = status();
        input(&json, "test")["state"] == "blocked"
    });
    let other = input(&json, "x");
    assert_eq!((&other["state"], &other["blocked_on"]), (&"waiting".into(), &Value::Null));
    let problems = json["problems"].as_array().unwrap();
    let trouble = problems.iter().find(|one| one["kind"] == "input_trouble").unwrap();
    assert_eq!(trouble["what"], "input `x` cannot receive");
    let cause = trouble["cause"].as_str().unwrap();
    assert!(cause.contains("missing/in") && cause.ends_with("; it is tried again"), "{cause}");
    assert!(trouble["since"].is_string() && trouble["since_ms"].is_u64(), "{trouble}");
    server.release();
    program.await_that("every line is there", || server.count() >= 5000);
    program.terminate().succeeded();
}

#[test]
fn an_output_that_takes_nothing_has_no_time_until_it_has_caught_up() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.open_endpoint();
    let mut log = Log::create(&place.logs(), "a");
    log.append(5000);
    let mut program = place.start(&[]);
    program.await_that("all is there", || server.count() == 5000);
    let status = || {
        let ended = place.run(&["status", "--seconds", "0.2", "--json"]);
        serde_json::from_str::<Value>(&ended.out).unwrap()
    };
    // A rate needs an earlier sample.
    status();
    server.follow(|_| Act::Status(429));
    program.await_that("the output is failing", || {
        log.append(10);
        let json = status();
        let lag = &json["lag"];
        if !lag["never"].is_string() {
            return false;
        }
        assert!(lag["catch_up_ms"].is_null(), "{lag}");
        let all: Value = serde_json::from_str(&place.get("/lag")).unwrap();
        assert!(all["totals"]["catch_up_ms"].is_null(), "{all}");
        assert!(all["files"][0]["catch_up_ms"].is_null(), "{all}");
        let inputs: Value = serde_json::from_str(&place.get("/inputs/")).unwrap();
        assert!(inputs[0]["lag"]["catch_up_ms"].is_null(), "{inputs}");
        let metrics = place.get("/metrics");
        assert!(!metrics.contains("catch_up_seconds "), "{metrics}");
        assert!(!metrics.contains("catch_up_seconds{"), "{metrics}");
        true
    });
    program.terminate();
}

#[test]
fn a_run_that_could_not_deliver_ends_with_the_reason() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let text = place.configuration().replace(&server.url, "http://127.0.0.1:1");
    place.configure(&text);
    place.write("a", &lines("a", 0..3));
    let program = place.start(&["--once", "-E", "filebeat.shutdown_timeout=100ms"]);
    program.await_log("cannot send events");
    program.await_log("skidder is running");
    let ended = program.terminate();
    assert_eq!(ended.code(), Some(1));
    let reason = "at the end: the output elasticsearch delivers nothing since ";
    let line = ended.log.lines().find(|line| line.contains(reason)).unwrap();
    assert!(line.contains("127.0.0.1:1: Connection refused"), "{line}");
}

/// A terminal of our own: what a person sees, and what makes ends for a program.
fn terminal() -> (OwnedFd, impl Fn() -> File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let size = Winsize { ws_row: 30, ws_col: 160, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let path = Path::new(OsStr::from_bytes(name.as_bytes())).to_owned();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let theirs =
        move || File::from(rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap());
    (ours, theirs)
}

/// Collects what is drawn, until the terminal is closed.
fn drawn_in(ours: &File) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    let drawn = Arc::new(Mutex::new(String::new()));
    let (mut reader, into) = (ours.try_clone().unwrap(), Arc::clone(&drawn));
    let reading = std::thread::spawn(move || {
        let mut piece = [0; 4096];
        // Reading a closed terminal fails.
        while let Ok(count @ 1..) = reader.read(&mut piece) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    });
    (drawn, reading)
}

#[test]
fn ship_says_once_on_a_terminal_who_refuses_and_what_ctrl_c_waits_for() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.log"), lines("a", 0..10)).unwrap();
    let (ours, theirs) = terminal();
    let mut command = command(["ship", "a.log", "--to", "http://127.0.0.1:1"]);
    command.current_dir(directory.path()).env("TERM", "xterm").env("NO_COLOR", "1");
    command.stdin(theirs()).stdout(theirs()).stderr(theirs());
    let mut child = command.spawn().unwrap();
    drop(command);
    let ours = File::from(ours);
    let (drawn, reading) = drawn_in(&ours);
    let refused =
        "ERROR cannot send events; trying again: cannot connect to 127.0.0.1:1: Connection refused";
    let sees = |text: &str| {
        wait_for(text, Duration::from_mins(1), || {
            drawn.lock().unwrap().contains(text).then_some(())
        });
    };
    sees(refused);
    sees("10 lines");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    sees("waiting up to 5 s for answers to 10 events; Ctrl-C again to leave");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    reading.join().unwrap();
    let drawn = drawn.lock().unwrap();
    assert_eq!(drawn.matches(refused).count(), 1, "{drawn}");
    assert!(!drawn.contains("{\"log.level\""), "{drawn}");
}

#[test]
fn top_draws_in_a_terminal_until_a_key_ends_it() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    place.write("a", &lines("a", 0..5000));
    let mut program = place.start(&[]);
    program.await_that("every line is there", || server.count() >= 5000);
    let (ours, theirs) = terminal();
    let config = place.path().join("filebeat.yml");
    let mut command = command([OsStr::new("-c"), config.as_os_str()]);
    command.arg("--path.data").arg(place.data()).args(["top", "--every", "0.1"]);
    command.stdin(theirs()).stdout(theirs()).stderr(theirs()).env("TERM", "xterm");
    let mut child = command.spawn().unwrap();
    // What was handed over must not keep the terminal open.
    drop(command);
    let mut ours = File::from(ours);
    let (drawn, reading) = drawn_in(&ours);
    program.await_that("the screen is drawn", || {
        let drawn = drawn.lock().unwrap();
        drawn.contains("read 5,000 = delivered 5,000") && drawn.contains("elasticsearch")
    });
    ours.write_all(b"p").unwrap();
    program.await_that("it stands still", || drawn.lock().unwrap().contains("PAUSED"));
    ours.write_all(b"q").unwrap();
    program.await_that("it ends", || child.try_wait().unwrap().is_some());
    assert!(child.wait().unwrap().success());
    reading.join().unwrap();
    // The terminal is as it was: the other screen is left, and the cursor is shown.
    let drawn = drawn.lock().unwrap();
    assert!(
        drawn.contains("\u{1b}[?1049h") && drawn.ends_with("\u{1b}[?1049l\u{1b}[?25h"),
        "{drawn:?}"
    );
    program.terminate().succeeded();
    let ended = place.run(&["top"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("`top` needs a terminal"), "{}", ended.log);
}

#[test]
fn a_variable_that_only_the_program_has_is_not_blamed_on_the_configuration() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    let text = place.configuration();
    place.configure(&format!("{text}name: '${{OF_THE_SERVICE}}'\n"));
    let program = Program::start(place.command(&[]).env("OF_THE_SERVICE", "x"));
    program.await_log("skidder is running");
    let ended = place.run(&["status", "--seconds", "0.1"]).succeeded();
    for part in [
        "not set in this shell: `OF_THE_SERVICE`; the program that runs",
        "OF_THE_SERVICE=… skidder status",
    ] {
        assert!(ended.log.contains(part), "{part} is not in {}", ended.log);
    }
    assert!(!ended.log.contains("earlier one"), "{}", ended.log);
    program.terminate().succeeded();
    let ended = place.run(&["status"]);
    assert!(
        ended.code() == Some(1) && ended.log.contains("not set in this shell"),
        "{}",
        ended.log
    );
}
