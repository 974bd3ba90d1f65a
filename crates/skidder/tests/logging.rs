//! Our own log, of the built program: where it goes, what is in it, and what happens if it cannot go there.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{judge, lines};
use common::program::{Ended, Program, command};
use common::server::{Act, BulkServer};
use common::{Place, print};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{File, read_dir, read_to_string};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DISCARD: &str = "output.discard.enabled: true\n";
const LINES: usize = 500;

/// Where the files of the log are.
fn folder(place: &Place) -> PathBuf {
    place.path().join("own")
}

/// The program, which logs to files if nothing else is said.
fn program(place: &Place, arguments: &[&str]) -> Command {
    let config = place.path().join("filebeat.yml");
    let mut command = command([OsStr::new("-c"), config.as_os_str()]);
    command.arg("--path.data").arg(place.data()).arg("--path.logs").arg(folder(place));
    command.args(arguments).current_dir(place.path());
    command
}

fn once(place: &Place, arguments: &[&str]) -> Ended {
    Program::run(program(place, arguments).arg("--once"))
}

/// The files of the log, and their texts.
fn files(place: &Place) -> Vec<(String, String)> {
    let Ok(listed) = read_dir(folder(place)) else { return Vec::new() };
    let named = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let paths = listed.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        paths.map(|path| (named(&path), read_to_string(&path).unwrap_or_default())).collect();
    files.sort();
    files
}

/// All lines of the log in files.
fn logged(place: &Place) -> Vec<Value> {
    let files = files(place);
    let lines = files.iter().flat_map(|(_, text)| text.lines());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn says(lines: &[Value], text: &str) -> bool {
    lines.iter().any(|line| line["message"].as_str().unwrap().contains(text))
}

#[test]
fn what_a_script_logs_is_in_the_log_in_its_own_words() {
    let place = Place::with_output(&format!(
        "{DISCARD}logging.to_files: true\nprocessors:\n- script:\n    lang: javascript\n    source: >\n      \
         var console = require('console');\n      \
         function process(event) {{ console.warn('no id in %s', event.Get('message')); }}\n"
    ));
    place.write("a", b"one\n");
    once(&place, &[]).succeeded();
    let lines = logged(&place);
    assert!(says(&lines, "no id in one"), "{lines:?}");
}

#[test]
fn without_a_flag_it_is_in_files_and_with_one_on_stderr() {
    let place = Place::with_output(DISCARD);
    place.write("a", &lines("a", 0..LINES));
    let ended = once(&place, &[]).succeeded();
    assert_eq!(ended.log, "");
    let [(name, _)] = &files(&place)[..] else { panic!("{:?}", files(&place)) };
    assert!(name.starts_with("skidder-2") && name.ends_with(".ndjson"), "{name}");
    let path = folder(&place).join(name);
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let log = logged(&place);
    assert!(says(&log, "skidder is running") && says(&log, "Total metrics"), "{log:?}");
    assert_eq!(
        (&log[0]["service.name"], &log[0]["ecs.version"]),
        (&"skidder".into(), &"1.6.0".into())
    );
    for arguments in [&["-e"][..], &["--environment", "systemd"], &["--environment=container"]] {
        let ended = once(&place, arguments).succeeded();
        assert!(ended.log.contains("skidder is running"), "{}", ended.log);
        assert_eq!(files(&place).len(), 1, "{arguments:?}");
    }
    // The configuration wins over the environment, as in Filebeat.
    let configuration = place.configuration();
    place.configure(&format!("{configuration}logging.to_files: true\n"));
    assert_eq!(once(&place, &["--environment", "systemd"]).succeeded().log, "");
    assert_eq!(files(&place).len(), 2, "each start begins a file");
    let ended = once(&place, &["--environment", "moon"]);
    assert!(ended.log.contains("expected `default`, `systemd` or `container`"), "{}", ended.log);
    // Nothing is wanted.
    place.configure(&format!("{configuration}logging.to_files: false\n"));
    assert_eq!(once(&place, &[]).succeeded().log, "");
    assert_eq!(files(&place).len(), 2);
}

#[test]
fn files_are_rotated_and_few_are_kept() {
    let place = Place::with_output(&format!(
        "{DISCARD}logging.files: {{name: mine, rotateeverybytes: 100, keepfiles: 2, permissions: 0644}}\n"
    ));
    place.write("a", &lines("a", 0..LINES));
    once(&place, &["-d", "*"]).succeeded();
    let files = files(&place);
    assert_eq!(files.len(), 3, "{files:?}");
    let is_one = |text: &str| text.lines().count() == 1;
    assert!(files.iter().all(|(name, text)| name.starts_with("mine-2") && is_one(text)));
    for line in logged(&place) {
        assert!(line["@timestamp"].is_string());
    }
    assert!(says(&logged(&place), "Total metrics"), "the newest lines are kept");
    let mode = folder(&place).join(&files[0].0).metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
}

#[test]
fn a_file_that_logrotate_moves_is_made_anew() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let text = place.configuration().replace("metrics.enabled: false", "metrics.period: 100ms");
    place.configure(&text);
    let mut running = Program::start(&mut program(&place, &[]));
    running.await_that("it logs", || files(&place).iter().any(|(_, text)| !text.is_empty()));
    let name = files(&place)[0].0.clone();
    let moved = folder(&place).join("moved.1");
    std::fs::rename(folder(&place).join(&name), &moved).unwrap();
    let is_anew = || {
        let files = files(&place);
        files.iter().any(|(found, text)| *found == name && !text.is_empty())
    };
    running.await_that("the file is there again", is_anew);
    running.terminate().succeeded();
    assert!(says(&logged(&place), "a signal asks to stop"));
}

#[test]
fn what_is_refused_is_told_without_its_content_but_in_the_files_for_it() {
    let server = BulkServer::start();
    server.follow(|_| Act::Items(|line| if line.contains("7 ") { 400 } else { 201 }));
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..LINES));
    let configuration = place.configuration();
    let secret = |text: &str| text.contains("a 000007 ") || text.contains("a     7 ");
    let shown = String::from_utf8(lines("a", 7..8)).unwrap();
    let ended = once(&place, &["-d", "*"]).was_refused();
    assert!(ended.ledger().dead_lettered > 0);
    let all: String = files(&place).into_iter().map(|(_, text)| text).collect();
    assert!(all.contains("events can never be delivered"), "{all}");
    assert!(!all.contains(shown.trim_end()) && !secret(&all), "it quotes an event");
    std::fs::remove_dir_all(folder(&place)).unwrap();
    std::fs::remove_dir_all(place.data()).unwrap();
    place.configure(&format!("{configuration}logging.event_data:\n"));
    let refused = once(&place, &["-d", "*"]).was_refused().ledger().dead_lettered;
    let of_events = |(name, _): &(String, String)| name.contains("events-data");
    let (events, log): (Vec<_>, Vec<_>) = files(&place).into_iter().partition(of_events);
    assert!(log.iter().all(|(_, text)| !text.contains(shown.trim_end())));
    let events: Vec<Value> = events
        .iter()
        .flat_map(|(_, text)| text.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events.len(), refused);
    for event in &events {
        assert_eq!((&event["log.type"], &event["status"]), (&"event".into(), &400.into()));
    }
    let originals = events.iter().map(|event| event["event.original"].as_str().unwrap());
    let originals: Vec<Value> = originals.map(|text| serde_json::from_str(text).unwrap()).collect();
    assert!(originals.iter().any(|event| event["message"] == shown.trim_end()), "{originals:?}");
}

#[test]
fn a_full_disk_of_the_log_holds_nothing_up_and_is_told() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    std::fs::create_dir(folder(&place)).unwrap();
    let mounted = mount("none", folder(&place), "tmpfs", MountFlags::empty(), Some(c"size=64k"));
    if let Err(error) = mounted {
        print(&format!("skipped: a file system cannot be mounted here ({error}); root may"));
        return;
    }
    let filling = folder(&place).join("filling");
    let mut file = File::create(&filling).unwrap();
    while file.write_all(&[7; 4096]).is_ok() {}
    drop(file);
    place.write("a", &lines("a", 0..LINES));
    let mut running = Program::start(&mut program(&place, &["-d", "*"]));
    let line = running.await_log("the log cannot be written; its lines go to stderr until it can");
    assert!(line.contains("No space left"), "{line}");
    running.await_log("skidder is running");
    running.await_that("all is delivered", || server.count() == LINES);
    std::fs::remove_file(&filling).unwrap();
    let mut count = LINES;
    let is_back = || {
        // A log without news is not tried.
        place.write(&format!("b{count}"), &lines("b", count..count + 1));
        count += 1;
        says(&logged(&place), "the log can be written again")
    };
    running.await_that("the log is written again", is_back);
    let ended = running.terminate().succeeded();
    unmount(folder(&place), UnmountFlags::DETACH).unwrap();
    assert_eq!(judge(&[("a", LINES)], &server.documents()).missing, 0);
    let times = ended.log.matches("the log cannot be written").count();
    assert_eq!(times, 1, "{}", ended.log);
}

#[test]
fn a_folder_that_cannot_be_made_leaves_the_log_on_stderr() {
    let place = Place::with_output(DISCARD);
    File::create(folder(&place)).unwrap();
    let ended = once(&place, &[]).found_nothing();
    assert!(ended.log.contains("the log cannot be written"), "{}", ended.log);
    assert!(ended.log.contains("skidder is running"), "{}", ended.log);
}

#[test]
fn the_log_is_not_among_the_files_of_an_input() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let all = format!("paths: ['{}/**']", place.path().display());
    let text = place
        .configuration()
        .replace("id: test", "id: test\n  prospector.scanner.exclude_files: ['/data/', 'yml$']");
    let start = text.find("paths: [").unwrap();
    let end = start + text[start..].find(']').unwrap() + 1;
    place.configure(&format!("{}{all}{}", &text[..start], &text[end..]));
    place.write("a", &lines("a", 0..LINES));
    // Stderr is a file among them too.
    let stderr = place.path().join("stderr.log");
    let mut command = program(&place, &["-d", "*", "--once"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&stderr).unwrap());
    for _ in 0..3 {
        assert!(command.status().unwrap().success(), "{}", read_to_string(&stderr).unwrap());
    }
    assert!(!files(&place).is_empty());
    let log = read_to_string(&stderr).unwrap();
    assert!(log.contains("finds the log of skidder itself"), "{log}");
    assert_eq!(server.count(), LINES, "{:?}", server.documents().last());
}

#[test]
fn the_journal_is_told_the_level_of_each_line() {
    let place = Place::with_output(DISCARD);
    place.write("a", &lines("a", 0..1));
    let path = place.path().join("journal");
    let file = File::create(&path).unwrap();
    let metadata = file.metadata().unwrap();
    let mut command = program(&place, &["--environment", "systemd", "--once"]);
    command.env("JOURNAL_STREAM", format!("{}:{}", metadata.dev(), metadata.ino()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    assert!(command.status().unwrap().success());
    let text = read_to_string(path).unwrap();
    assert!(!text.is_empty() && text.lines().all(|line| line.starts_with("<6>{")), "{text}");
}

#[test]
fn what_else_is_said_on_stderr_goes_to_the_file_if_wanted() {
    let place = Place::with_output(&format!("{DISCARD}logging.files.redirect_stderr: true\n"));
    let ended = once(&place, &["--trace-startup"]).found_nothing();
    assert!(!ended.log.contains("registry"), "{}", ended.log);
    let all: String = files(&place).into_iter().map(|(_, text)| text).collect();
    assert!(all.contains("outputs and readers started"), "{all}");
}

#[test]
fn fields_selectors_and_numbers_are_as_configured() {
    let place = Place::with_output(&format!(
        "{DISCARD}logging: {{level: debug, selectors: [registrar], with_fields: {{site: here}}, \
         metrics.namespaces: []}}\n"
    ));
    let text = place.configuration().replace("logging.metrics.enabled: false\n", "");
    place.configure(&text);
    place.write("a", &lines("a", 0..LINES));
    once(&place, &[]).succeeded();
    let log = logged(&place);
    assert!(log.iter().all(|line| line["site"] == "here"));
    assert!(!says(&log, "Total metrics"));
    let debug = |line: &&Value| line["log.level"] == "debug";
    let others = |line: &&Value| !line["log.logger"].as_str().unwrap().contains("regist");
    assert!(!log.iter().filter(debug).any(|line| others(&line)), "{log:?}");
    let all = once(&place, &["-d", "*"]).succeeded();
    assert_eq!(all.log, "");
    assert!(logged(&place).iter().filter(debug).any(|line| others(&line)));
}

/// A secret in every place that may have one, towards servers that are not there.
const SECRETS: &str = "\
outputs:
- id: one
  elasticsearch: {hosts: ['http://user:SECRETurl@127.0.0.1:1'], backoff: {init: 5ms, max: 20ms},
    headers: {X-Api-Key: SECREThead}, parameters: {token: SECRETparam}}
- id: two
  elasticsearch: {hosts: ['https://127.0.0.1:1'], username: u, password: SECRETpass, backoff: {init: 5ms, max: 20ms},
    proxy_url: 'http://pu:SECRETproxy@127.0.0.1:1', headers: {Authorization: SECREThead}}
- id: three
  elasticsearch: {hosts: ['127.0.0.1:1'], api_key: 'id:SECRETapi', backoff: {init: 5ms, max: 20ms}}
- id: four
  redis: {hosts: ['redis://u:SECRETredis@127.0.0.1:1'], password: SECRETredis2, backoff: {init: 5ms, max: 20ms}}
- id: five
  logstash: {hosts: ['127.0.0.1:1'], proxy_url: 'socks5://u:SECRETsocks@127.0.0.1:1', backoff: {init: 5ms, max: 20ms}}
- id: six
  kafka: {hosts: ['127.0.0.1:1'], topic: t, username: u, password: SECRETkafka, backoff: {init: 5ms, max: 20ms}}
monitoring: {enabled: true, elasticsearch: {hosts: ['http://m:SECRETmon@127.0.0.1:1'], metrics.period: 100ms}}
http: {enabled: true, port: 0, auth: {token: SECRETtoken-long-enough}}
logging.with_fields: {site: here}
";

/// What is in the lines about each of these that fails.
const FAIL: [&str; 6] = [
    "\"host\":\"http://127.0.0.1:1\"",
    "\"host\":\"https://127.0.0.1:1\"",
    "\"output\":\"redis\"",
    "\"output\":\"logstash\"",
    "trouble with Kafka",
    "monitoring data cannot be sent",
];

#[test]
fn no_secret_is_in_the_log_whatever_goes_wrong() {
    let place = Place::with_output(SECRETS);
    place.write("a", &lines("a", 0..LINES));
    let text = place.configuration().replace("shutdown_timeout: 20s", "shutdown_timeout: 1s");
    place.configure(&text);
    let mut running = Program::start(&mut program(&place, &["-e", "-d", "*"]));
    for of in FAIL {
        running.await_log_times(&[of.to_owned(), "error.message".to_owned()], 1);
    }
    // A change of what cannot be changed, and one that is refused, both with secrets in them.
    place.configure(&text.replace("SECRETpass", "SECRETnew"));
    running.signal(rustix::process::Signal::HUP);
    running.await_log("take effect with the next start");
    place.configure(&text.replace("headers: {X-Api-Key", "headerz: {X-Api-Key"));
    running.signal(rustix::process::Signal::HUP);
    running.await_log("is refused");
    let ended = running.terminate();
    let mut texts = vec![ended.log, ended.out];
    place.configure(&text);
    for arguments in [&["test", "output"][..], &["test", "config"], &["export", "config"]] {
        let ended = Program::run(&mut program(&place, arguments));
        texts.extend([ended.log, ended.out]);
    }
    // Mistakes quote what is wrong.
    for (good, bad) in [
        ("http://user:SECRETurl@127.0.0.1:1", "http://user:SECRETurl@127.0.0.1:port"),
        ("socks5://u:SECRETsocks@127.0.0.1:1", "socks9://u:SECRETsocks@127.0.0.1:1"),
        ("http://pu:SECRETproxy@127.0.0.1:1", "ftp://pu:SECRETproxy@127.0.0.1:1"),
        ("http://pu:SECRETproxy@127.0.0.1:1", "http://pu:SECRETproxy"),
        ("http://pu:SECRETproxy@127.0.0.1:1", "http://pu:SECRETproxy@"),
        ("http://user:SECRETurl@127.0.0.1:1", "http://user:SECRETurl"),
        ("http://user:SECRETurl@127.0.0.1:1", "http://user:SECRET/url@127.0.0.1:1"),
        ("socks5://u:SECRETsocks@127.0.0.1:1", "socks5://u:SECRETsocks@:1"),
        ("id:SECRETapi", "SECRETapi"),
        ("token: SECRETtoken-long-enough", "token: SECRET"),
        ("password: SECRETkafka", "password: [SECRETkafka]"),
    ] {
        assert!(text.contains(good), "{good}");
        place.configure(&text.replace(good, bad));
        let ended = Program::run(&mut program(&place, &["test", "config"]));
        assert!(!ended.status.success(), "{bad}: {}", ended.log);
        texts.extend([ended.log, ended.out]);
    }
    for text in texts {
        let shown = text.lines().find(|line| line.contains("SECRET"));
        assert_eq!(shown, None, "a secret is shown");
    }
}
