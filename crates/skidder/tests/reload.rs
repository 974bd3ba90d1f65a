//! Inputs that come, change and go while lines are written and read: none is lost, and none comes twice.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{Log, judge, lines};
use common::program::{Program, command, patiently};
use common::server::BulkServer;
use common::{Place, accept, print, seeds};
use rustix::process::Signal;
use serde_json::Value;
use skidder_testkit::Random;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

const LABELS: [&str; 3] = ["a", "b", "c"];
const TAKEN: &str = "all inputs are as configured";

/// A place whose inputs stand in files of `inputs.d`, which are looked at all the time.
struct Dynamic {
    place: Place,
}

impl Dynamic {
    /// With the main configuration of a [`Place`] but for its inputs, and `more` behind it.
    fn new(place: Place, more: &str) -> Self {
        let (path, socket) = (place.path().join("inputs.d"), place.path().join("s"));
        std::fs::create_dir(&path).unwrap();
        let text = place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        place.configure(&format!(
            "filebeat.config.inputs: {{path: '{}/*.yml', reload: {{enabled: true, period: 20ms}}}}\n\
             filebeat.registry.flush{rest}http: {{enabled: true, host: 'unix://{}'}}\n{more}",
            path.display(),
            socket.display()
        ));
        Self { place }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.place.path().join("inputs.d").join(format!("{name}.yml"))
    }

    /// The input of one log.
    fn text(&self, label: &str, more: &str) -> String {
        format!(
            "- type: filestream\n  id: {label}\n  paths: ['{}/{label}*']\n  \
             prospector.scanner.check_interval: 20ms\n  backoff: {{init: 10ms, max: 20ms}}\n{more}",
            self.place.logs().display()
        )
    }

    /// Writes a file of inputs as a careful program does.
    fn put(&self, name: &str, text: &str) {
        let draft = self.place.path().join("draft");
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(&draft, self.file(name)).unwrap();
    }

    fn take(&self, name: &str) {
        std::fs::remove_file(self.file(name)).unwrap();
    }

    fn get(&self, target: &str) -> String {
        let mut stream = UnixStream::connect(self.place.path().join("s")).unwrap();
        write!(stream, "GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    fn stats(&self) -> Value {
        serde_json::from_str(&self.get("/stats")).unwrap()
    }
}

/// How often inputs were changed and all of it was done.
fn changes(program: &Program) -> usize {
    program.log().matches(TAKEN).count()
}

/// Does something that changes inputs, and waits until that is done, with something done meanwhile.
fn changed(program: &mut Program, change: impl FnOnce(&Program), mut meanwhile: impl FnMut()) {
    let before = changes(program);
    change(program);
    let log = |program: &Program| changes(program) > before;
    patiently("the inputs are changed", || {
        meanwhile();
        log(program).then_some(())
    });
}

fn all_of(logs: &[Log]) -> Vec<(&str, usize)> {
    logs.iter().map(|log| (&*log.label, log.next)).collect()
}

fn write_some(logs: &mut [Log]) {
    for log in logs {
        log.append(7);
    }
}

#[test]
fn inputs_come_change_and_go_while_lines_are_written() {
    let server = BulkServer::paced(Duration::from_millis(2));
    let here = Dynamic::new(Place::new(&server), "");
    let mut logs = LABELS.map(|label| Log::create(&here.place.logs(), label));
    let mut program = here.place.start(&[]);
    program.await_log("skidder is running");
    for round in 0..6 {
        for label in LABELS {
            let text = here.text(label, &format!("  tags: [round{round}]\n"));
            changed(&mut program, |_| here.put(label, &text), || write_some(&mut logs));
        }
        let gone = LABELS[round % 3];
        changed(&mut program, |_| here.take(gone), || write_some(&mut logs));
    }
    for label in LABELS {
        let text = here.text(label, "  tags: [last]\n");
        changed(&mut program, |_| here.put(label, &text), || write_some(&mut logs));
    }
    let total = logs.iter().map(|log| log.next).sum::<usize>();
    program.await_that("everything has come", || server.count() >= total);
    let stats = patiently("all verdicts are counted", || {
        let stats = here.stats();
        (stats["skidder"]["ledger"]["in_flight"] == 0).then_some(stats)
    });
    assert_eq!(stats["skidder"]["ledger"]["delivered"], total);
    assert_eq!(stats["filebeat"]["harvester"]["open_files"], 3);
    assert_eq!(stats["skidder"]["config"]["last_reload"], "succeeded");
    let inputs: Value = serde_json::from_str(&here.get("/inputs/")).unwrap();
    assert_eq!(inputs.as_array().unwrap().len(), 3);
    let files: Value = serde_json::from_str(&here.get("/files?input=2")).unwrap();
    assert!(files["files"][0]["path"].as_str().unwrap().ends_with("/c"), "{files}");
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!((ledger.read, ledger.delivered, ledger.in_flight), (total, total, 0));
    let verdict = judge(&all_of(&logs), &server.documents());
    assert_eq!(verdict.reordered, 0);
    accept("inputs are changed while lines are written", verdict, 0);
}

#[test]
fn other_inputs_are_left_alone() {
    let server = BulkServer::start();
    let here = Dynamic::new(Place::new(&server), "");
    let mut logs = ["a", "b"].map(|label| Log::create(&here.place.logs(), label));
    write_some(&mut logs);
    for label in ["a", "b"] {
        here.put(label, &here.text(label, ""));
    }
    let mut program = here.place.start(&[]);
    program.await_that("both are read", || server.count() == 14);
    let changed_b = here.text("b", "  tags: [other]\n");
    changed(&mut program, |_| here.put("b", &changed_b), || {});
    // A comment changes nothing, nor does another order.
    here.put("a", &format!("# words\n{}", here.text("a", "")));
    write_some(&mut logs);
    program.await_that("both are read on", || server.count() == 28);
    let inputs: Value = serde_json::from_str(&here.get("/inputs/")).unwrap();
    let opened = |at: usize| (&inputs[at]["id"], &inputs[at]["messages_read_total"]);
    assert_eq!(opened(0), (&"a".into(), &14.into()), "it went on counting");
    assert_eq!(opened(1), (&"b".into(), &7.into()), "it began anew");
    assert_eq!(here.stats()["libbeat"]["config"]["starts"], 1);
    program.terminate().succeeded();
    accept("one of two inputs is changed", judge(&all_of(&logs), &server.documents()), 0);
}

#[test]
fn a_bad_file_is_refused_and_what_was_there_goes_on() {
    let server = BulkServer::start();
    let here = Dynamic::new(Place::new(&server), "");
    let mut log = Log::create(&here.place.logs(), "a");
    here.put("a", &here.text("a", ""));
    let mut program = here.place.start(&[]);
    program.await_log("skidder is running");
    let bad = [
        ("b", here.text("b", "  tgas: [x]\n"), "b.yml:6:3: unknown setting"),
        ("b", "- type: [\n".to_owned(), "b.yml:2:"),
        ("b", here.text("a", "  tags: [x]\n"), "two inputs have the id `a`"),
        ("b", "- type: snake\n  id: s\n".to_owned(), "b.yml:1:9: input type `snake`"),
        ("b", "filebeat.inputs: []\n".to_owned(), "the file is no list"),
        ("a", here.text("a", "  parsers: 3\n"), "a.yml:6:"),
    ];
    for (number, (name, text, complaint)) in bad.iter().enumerate() {
        here.put(name, text);
        let refused = ["is refused".to_owned(), (*complaint).to_owned()];
        program.await_log_times(&refused, 1);
        log.append(5);
        program.await_that("lines still come", || server.count() == log.next);
        // One that comes between two looks at the directory may be read twice.
        let counted = &here.stats()["skidder"]["config"]["reloads_refused"];
        assert!(counted.as_u64().unwrap() > number as u64, "{counted}");
    }
    let state: Value = serde_json::from_str(&here.get("/state")).unwrap();
    assert_eq!(state["skidder"]["reload"]["last"], "failed");
    let error = state["skidder"]["reload"]["error"].as_str().unwrap();
    assert!(error.contains("a.yml:6:"), "{error}");
    assert!(here.get("/metrics").contains("\nskidder_config_last_reload_successful 0\n"));
    here.take("b");
    here.put("a", &here.text("a", ""));
    let is_good = "\nskidder_config_last_reload_successful 1\n";
    program.await_that("what runs is taken, too", || here.get("/metrics").contains(is_good));
    changed(&mut program, |_| here.put("a", &here.text("a", "  tags: [good]\n")), || log.append(1));
    program.await_that("all lines come", || server.count() == log.next);
    assert!(here.get("/metrics").contains("\nskidder_config_last_reload_successful 1\n"));
    program.terminate().succeeded();
    accept("bad configurations in between", judge(&[("a", log.next)], &server.documents()), 0);
}

/// A place with one input in the main configuration, of files that are written now.
fn main_place(server: &BulkServer) -> (Place, Log) {
    let place = Place::new(server);
    let log = Log::create(&place.logs(), "a");
    (place, log)
}

fn with_tag(text: &str, tag: usize) -> String {
    text.replacen("  id: test\n", &format!("  id: test\n  tags: [tag{tag}]\n"), 1)
}

#[test]
fn a_hangup_changes_inputs_in_the_middle_of_writing() {
    let server = BulkServer::paced(Duration::from_millis(1));
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    for round in 0..10 {
        log.append(300);
        place.configure(&with_tag(&text, round));
        changed(&mut program, |program| program.signal(Signal::HUP), || log.append(3));
    }
    // What cannot be changed is named, and the rest is taken.
    place.configure(&with_tag(&text, 99).replace("bulk_max_size: 50", "bulk_max_size: 60"));
    changed(&mut program, |program| program.signal(Signal::HUP), || log.append(3));
    let warning = program.await_log("take effect with the next start");
    assert!(warning.contains("\"output.elasticsearch.bulk_max_size\""), "{warning}");
    // A mistake anywhere refuses all of it.
    place.configure(&with_tag(&text, 100).replace("queue.mem", "queue.mme"));
    program.signal(Signal::HUP);
    let refused = program.await_log("is refused");
    assert!(refused.contains("filebeat.yml:11:1: unknown setting `queue.mme`"), "{refused}");
    program.await_that("everything has come", || server.count() >= log.next);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!((ledger.delivered, ledger.in_flight), (log.next, 0));
    accept("SIGHUP while lines are written", judge(&[("a", log.next)], &server.documents()), 0);
}

/// Rotates, compresses and deletes at random moments while inputs change.
fn rotates_while_inputs_change(seed: u64) {
    print(&format!("inputs change while files are rotated: seed {seed}"));
    let mut random = Random::new(seed);
    let server = BulkServer::paced(Duration::from_millis(random.below(3)));
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    for tag in 0..12 {
        for _ in 0..=random.below(4) {
            log.append(1 + random.below(200) as usize);
            match random.below(4) {
                0 => log.rename(),
                1 => log.compress(1 + random.below(3) as usize),
                _ => {}
            }
        }
        place.configure(&with_tag(&text, tag));
        let mut work = |log: &mut Log| match random.below(6) {
            0 => log.rename(),
            1 => log.compress(1 + random.below(3) as usize),
            _ => log.append(1 + random.below(30) as usize),
        };
        if tag % 3 == 2 {
            program.signal(Signal::HUP);
            work(&mut log);
        } else {
            changed(&mut program, |program| program.signal(Signal::HUP), || work(&mut log));
        }
    }
    program.await_that("everything has come", || server.count() >= log.next);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!((ledger.delivered, ledger.in_flight), (log.next, 0));
    let verdict = judge(&[("a", log.next)], &server.documents());
    accept("SIGHUP while files are rotated and compressed", verdict, 0);
}

#[test]
fn rotated_files_are_followed_over_a_change() {
    for seed in seeds(1) {
        rotates_while_inputs_change(seed);
    }
}

#[test]
fn a_hangup_reads_the_keystore_again() {
    let server = BulkServer::start();
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    let excluding = "  id: test\n  exclude_lines: ['${WORD}']\n";
    place.configure(&text.replacen("  id: test\n", excluding, 1));
    let keep = |secret: &str| {
        let mut add = command(["keystore", "add", "WORD", "--stdin", "--force", "-c"]);
        add.arg(place.path().join("filebeat.yml")).arg("--path.data").arg(place.data());
        let mut child = add.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(secret.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success());
    };
    keep("^#one");
    let mut program = place.start(&[]);
    log.append_text(b"#one\n#two\n");
    log.append(1);
    program.await_that("the first lines come", || server.count() == 2);
    keep("^#two");
    changed(&mut program, |program| program.signal(Signal::HUP), || {});
    log.append_text(b"#one\n#two\n");
    log.append(1);
    program.await_that("the next lines come", || server.count() == 4);
    let ended = program.terminate().succeeded();
    assert_eq!(ended.ledger().dropped, 2);
    assert!(!ended.log.contains("^#two"), "{}", ended.log);
    let documents = server.documents();
    let words: Vec<&str> = documents.iter().map(|text| &text[..4]).collect();
    assert_eq!((words[0], words[2]), ("#two", "#one"));
}

#[test]
fn a_hangup_while_the_program_starts_reads_the_configuration_again() {
    let server = BulkServer::start();
    let (place, mut log) = main_place(&server);
    log.append(3);
    // A reader of the configuration waits until it is written. A pipe keeps its content.
    let text = place.configuration();
    let path = place.path().join("filebeat.yml");
    std::fs::remove_file(&path).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let mut program = place.start(&[]);
    let mut pipe = std::fs::File::options().write(true).open(&path).unwrap();
    program.signal(Signal::HUP);
    let (first, second) = text.split_at(text.len() / 2);
    pipe.write_all(first.as_bytes()).unwrap();
    pipe.write_all(second.as_bytes()).unwrap();
    drop(pipe);
    program.await_log("the configuration was read again");
    program.await_that("all lines come", || server.count() >= 3);
    program.terminate().succeeded();
}

#[test]
fn other_commands_end_with_a_hangup() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("filebeat.yml");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let program = Program::start(command(["test", "config", "-c"]).arg(&path));
    let opened = std::fs::File::options().write(true).open(&path).unwrap();
    program.signal(Signal::HUP);
    let ended = program.end();
    drop(opened);
    assert_eq!(ended.code(), None, "a signal ended it: {}", ended.log);
}

#[test]
fn a_service_manager_is_told_how_it_goes() {
    let server = BulkServer::start();
    let (place, _log) = main_place(&server);
    let path = place.path().join("notify");
    let manager = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(common::program::PATIENCE)).unwrap();
    let notification = || {
        let mut buffer = [0; 256];
        let length = manager.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        text.lines().next().unwrap().to_owned()
    };
    let program = Program::start(place.command(&[]).env("NOTIFY_SOCKET", &path));
    assert_eq!(notification(), "READY=1");
    program.signal(Signal::HUP);
    assert_eq!([notification(), notification()], ["RELOADING=1", "READY=1"]);
    // What is refused is over, too.
    place.configure("filebeat.inputs: 5");
    program.signal(Signal::HUP);
    assert_eq!([notification(), notification()], ["RELOADING=1", "READY=1"]);
    program.ask_to_stop();
    assert_eq!(notification(), "STOPPING=1");
    program.end().succeeded();
}

#[test]
fn a_deleted_file_is_read_to_its_end_by_the_input_that_ends() {
    let server = BulkServer::paced(Duration::from_millis(5));
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    log.append(6000);
    let mut program = place.start(&[]);
    program.await_that("it is being read", || server.count() > 100);
    std::fs::remove_file(&log.path).unwrap();
    assert!(server.count() < 5000, "it must still be at it");
    place.configure(&with_tag(&text, 1));
    changed(&mut program, |program| program.signal(Signal::HUP), || {});
    program.await_that("everything has come", || server.count() >= log.next);
    program.terminate().succeeded();
    accept("SIGHUP behind a deletion", judge(&[("a", log.next)], &server.documents()), 0);
}

#[test]
fn a_change_waits_for_a_stuck_output_and_repeats_nothing() {
    let server = BulkServer::start();
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    let mut program = place.start(&[]);
    log.append(10);
    program.await_that("the first lines come", || server.count() == 10);
    server.hold();
    log.append(2000);
    program.await_that("an answer is held", || server.held() > 0);
    place.configure(&with_tag(&text, 1));
    program.signal(Signal::HUP);
    program.await_log("the configuration was read again");
    // Another one is read when this one is done.
    place.configure(&with_tag(&text, 2));
    program.signal(Signal::HUP);
    log.append(10);
    assert_eq!(changes(&program), 0);
    server.release();
    program.await_log_times(&[TAKEN.to_owned()], 2);
    program.await_that("everything has come", || server.count() >= log.next);
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!((ledger.delivered, ledger.in_flight), (log.next, 0));
    accept("a change while the output is stuck", judge(&[("a", log.next)], &server.documents()), 0);
}

#[test]
fn killed_after_a_change_nothing_is_lost() {
    let server = BulkServer::paced(Duration::from_millis(2));
    let (place, mut log) = main_place(&server);
    let text = place.configuration();
    let mut bound = 0;
    for round in 0..4 {
        let mut program = place.start(&[]);
        program.await_log("skidder is running");
        log.append(500);
        place.configure(&with_tag(&text, round));
        if round % 2 == 0 {
            changed(&mut program, |program| program.signal(Signal::HUP), || log.append(3));
        } else {
            program.signal(Signal::HUP);
            program.await_log("the configuration was read again");
        }
        let before = server.count();
        program.await_that("more has come", || server.count() > before);
        assert!(program.kill().was_killed());
        server.await_silence();
        bound += common::QUEUE_EVENTS + server.count_in_last(Duration::from_secs(2));
    }
    place.once(&[]).succeeded();
    accept("kill -9 after a change", judge(&[("a", log.next)], &server.documents()), bound);
}

#[test]
fn every_output_goes_on_where_it_was() {
    let (one, two) = (BulkServer::start(), BulkServer::paced(Duration::from_millis(3)));
    let place = Place::with_outputs(&[("one", &one), ("two", &two)]);
    let here = Dynamic::new(place, "");
    let mut logs = ["a", "b"].map(|label| Log::create(&here.place.logs(), label));
    let mut program = here.place.start(&[]);
    program.await_log("skidder is running");
    for round in 0..4 {
        for label in ["a", "b"] {
            let text = here.text(label, &format!("  tags: [round{round}]\n"));
            changed(&mut program, |_| here.put(label, &text), || write_some(&mut logs));
        }
    }
    let total = logs.iter().map(|log| log.next).sum::<usize>();
    program.await_that("both have all", || one.count() >= total && two.count() >= total);
    program.terminate().succeeded();
    for (name, server) in [("one", &one), ("two", &two)] {
        let verdict = judge(&all_of(&logs), &server.documents());
        accept(&format!("two outputs, inputs changed: {name}"), verdict, 0);
    }
}

#[test]
fn files_of_modules_are_read_and_need_a_folder_of_modules_if_one_is_on() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let folder = place.path().join("modules.d");
    std::fs::create_dir(&folder).unwrap();
    let text = place.configuration();
    let path = folder.display();
    place.configure(&format!("{text}filebeat.config.modules.path: '{path}/*.yml'\n"));
    place.write("a", &lines("a", 0..3));
    place.once(&[]).succeeded();
    let module = |on: bool| format!("- module: nginx\n  access:\n    enabled: {on}\n");
    std::fs::write(folder.join("nginx.yml"), module(false)).unwrap();
    place.once(&[]).succeeded();
    std::fs::write(folder.join("nginx.yml"), module(true)).unwrap();
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("nginx.yml:1:3: modules are on, but"), "{}", ended.log);
}

#[test]
fn without_reload_files_are_read_once_and_there_must_be_an_input() {
    let server = BulkServer::start();
    let here = Dynamic::new(Place::new(&server), "");
    let text =
        here.place.configuration().replace("enabled: true, period", "enabled: false, period");
    here.place.configure(&text);
    let ended = here.place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("there is no input"), "{}", ended.log);
    here.place.write("a", &lines("a", 0..30));
    here.put("a", &here.text("a", ""));
    here.put("off", &here.text("b", "  enabled: false\n"));
    here.place.once(&[]).succeeded();
    accept("inputs of a file, once", judge(&[("a", 30)], &server.documents()), 0);
    here.place.configure(&text.replace("path: '", "paths: '"));
    let ended = here.place.once(&[]);
    assert!(ended.log.contains("unknown setting `filebeat.config.inputs.paths`"), "{}", ended.log);
}
