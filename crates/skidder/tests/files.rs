//! `skidder files`: with and without a running program.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::gzip;
use common::server::BulkServer;
use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// The files as JSON, by name.
fn files(place: &Place, arguments: &[&str]) -> (Value, Vec<Value>) {
    let ended = place.run(&[&["files", "--json"], arguments].concat()).succeeded();
    let mut answer: Value = serde_json::from_str(&ended.out).unwrap();
    let files = answer["files"].take().as_array().unwrap().clone();
    (answer, files)
}

fn name(file: &Value) -> String {
    let path = Path::new(file["path"].as_str().unwrap());
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Name, bytes behind, state and reason of each file.
fn lines_of(files: &[Value]) -> Vec<String> {
    let line = |file: &Value| {
        let behind = file["behind"].as_u64().map_or("?".to_owned(), |behind| behind.to_string());
        let (state, reason) = (&file["state"], &file["reason"]);
        format!(
            "{} {behind} {}: {}",
            name(file),
            state.as_str().unwrap(),
            reason.as_str().unwrap_or("-")
        )
    };
    files.iter().map(line).collect()
}

/// Lines of ten bytes.
fn lines(salt: char, count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("{salt}{number:08}\n").into_bytes()).collect()
}

/// A place whose program has an endpoint on a socket.
fn with_endpoint(server: &BulkServer, more: &str) -> Place {
    let place = Place::new(server);
    let config = place.path().join("filebeat.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    let socket = place.path().join("s");
    place.configure(&format!(
        "{text}http: {{enabled: true, host: 'unix://{}'}}\n{more}",
        socket.display()
    ));
    place
}

#[test]
fn without_a_running_program_the_registry_and_a_scan_tell_how_far_each_file_is() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("done.log", &lines('d', 300));
    let packed = place.write("packed.log.1.gz", &gzip(&lines('p', 300)));
    // What was changed a moment ago is looked at once more.
    let long_ago = std::time::UNIX_EPOCH + Duration::from_hours(400_000);
    let packed = std::fs::File::options().write(true).open(packed).unwrap();
    packed.set_modified(long_ago).unwrap();
    place.write("fresh.log.1.gz", &gzip(&lines('f', 300)));
    let changed = place.write("changed.log.1.gz", &gzip(&lines('c', 300)));
    place.write("grown.log", &lines('g', 200));
    place.once(&[]).succeeded();
    place.write("grown.log", &lines('g', 300));
    place.write("new.log", &lines('n', 150));
    place.write("copy.log", &lines('d', 300));
    let more = gzip(&lines('C', 10));
    std::fs::File::options().append(true).open(changed).unwrap().write_all(&more).unwrap();
    place.write("empty.log", b"");
    let before = std::fs::read(place.registry().join("registry.redb")).unwrap();
    let (about, all) = files(&place, &[]);
    assert_eq!(about["from"], "registry");
    assert_eq!(about["running"], false);
    assert_eq!(
        lines_of(&all),
        [
            "new.log 1500 stopped: skidder is not running",
            "grown.log 1000 stopped: skidder is not running",
            "changed.log.1.gz ? stopped: skidder is not running",
            "copy.log ? held: identity equals DONE",
            "done.log 0 stopped: at its end",
            "empty.log 0 empty: empty",
            "fresh.log.1.gz 0 finished: finished",
            "packed.log.1.gz 0 finished: finished",
        ]
        .map(|row| row.replace("DONE", place.logs().join("done.log").to_str().unwrap()))
    );
    assert_eq!(std::fs::read(place.registry().join("registry.redb")).unwrap(), before);
    let (_, some) = files(&place, &["--sort", "path", "logs/grown.log", "logs/new.log"]);
    assert_eq!(some.iter().map(name).collect::<Vec<_>>(), ["grown.log", "new.log"]);
    assert_eq!((&some[0]["cursor"], &some[0]["size"]), (&2000.into(), &3000.into()));
    let table = place.run(&["files"]).succeeded();
    assert!(table.out.starts_with("BEHIND   SIZE"), "{}", table.out);
    assert!(
        table.out.contains("8 files, 2.4 KiB behind, and what 1 file has that cannot be told"),
        "{}",
        table.out
    );
    assert!(table.out.contains("skidder is not running"), "{}", table.out);
}

#[test]
fn a_file_that_no_input_takes_is_explained() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let config = place.path().join("filebeat.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    let paths = text.find("  compression").unwrap();
    let excluded = "  prospector.scanner.exclude_files: ['tmp$']\n";
    place.configure(&format!("{}{excluded}{}", &text[..paths], &text[paths..]));
    place.write("a.tmp", b"x\n");
    std::os::unix::fs::symlink("a.tmp", place.logs().join("link.log")).unwrap();
    let (_, explained) =
        files(&place, &["--sort", "path", "logs/a.tmp", "logs/link.log", "logs/none.log", "/else"]);
    assert_eq!(
        lines_of(&explained),
        [
            "else ? unmatched: no input has a path that matches",
            "a.tmp ? unmatched: excluded by exclude_files: tmp$",
            "link.log ? unmatched: excluded: a symbolic link, and prospector.scanner.symlinks is off",
            "none.log ? unmatched: No such file or directory (os error 2)",
        ]
    );
}

#[test]
fn a_running_program_is_asked_and_says_what_it_waits_for() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    place.write("done.log", &lines('d', 300));
    place.write("half.log", &[&lines('h', 300)[..], b"no end"].concat());
    let mut running = place.start(&[]);
    let wanted =
        ["half.log 6 idle: the last line or event has no end yet", "done.log 0 idle: at its end"];
    running.await_that("both are read and delivered", || {
        let ended = place.run(&["files", "--json"]);
        // The endpoint opens a moment after the start.
        let answer = serde_json::from_str::<Value>(&ended.out).unwrap_or_default();
        let files = answer["files"].as_array().cloned().unwrap_or_default();
        answer["from"] == "endpoint" && lines_of(&files) == wanted
    });
    let table = place.run(&["files", "logs/done.log"]).succeeded();
    assert!(table.out.contains("1 files, 0 B behind; from the running skidder"), "{}", table.out);
    // A page at a time, by hand.
    let page = get(&place, "/files?limit=1");
    assert_eq!(page["files"].as_array().unwrap().len(), 1);
    let next = page["next"].as_str().unwrap().to_owned();
    let page = get(&place, &format!("/files?{next}"));
    assert_eq!(name(&page["files"][0]), "half.log");
    assert_eq!(page["next"], Value::Null);
    assert_eq!(get(&place, "/files?input=7")["status"], 400);
    assert_eq!(get(&place, "/files?color=red")["status"], 400);
    running.terminate().succeeded();
    let (about, _) = files(&place, &[]);
    assert_eq!(about["from"], "registry");
}

#[test]
fn beside_a_running_program_without_an_endpoint_the_registry_answers_and_says_so() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("done.log", &lines('d', 300));
    let mut running = place.start(&[]);
    running.await_that("the cursor is saved", || {
        let (about, files) = files(&place, &[]);
        about["running"] == true && lines_of(&files) == ["done.log 0 unknown: at its end"]
    });
    let ended = place.run(&["files"]).succeeded();
    assert!(ended.log.contains("`http.enabled` is off"), "{}", ended.log);
    running.terminate().succeeded();
}

/// What the endpoint answers.
fn get(place: &Place, target: &str) -> Value {
    serde_json::from_str(&place.get(target)).unwrap()
}

/// A name that would clear the screen, begin a line of its own and change colours.
const EVIL: &str = "evil\u{1b}[2J\nok 0 \u{9b}31m\r\u{7}.log";

#[test]
fn control_characters_in_names_reach_no_terminal() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    place.write(EVIL, &lines('a', 300));
    let gone = EVIL.replace(".log", "2.log");
    place.write(&gone, &lines('b', 300));
    let torn = gzip(&lines('c', 3000));
    place.write(&EVIL.replace(".log", ".gz.log"), &torn[..torn.len() / 2]);
    let is_clean = |what: &str, text: &str| {
        let is_control = |char: char| char.is_control() && char != '\n' && char != '\t';
        assert!(!text.contains(is_control), "{what}: {text:?}");
        assert!(!text.contains("\nok 0"), "{what}: {text:?}");
        assert!(text.contains("evil\\u001b[2J\\nok 0"), "{what}: {text:?}");
    };
    let ended = place.run(&["--once"]).left_unread();
    is_clean("--once", &ended.log);
    std::fs::remove_file(place.logs().join(gone)).unwrap();
    let theirs = place.path().join("theirs");
    let commands = [
        &["files"][..],
        &["files", "--json"],
        &["registry", "list"],
        &["registry", "list", "--json"],
        &["registry", "show", &place.logs().join(EVIL).display().to_string()],
        &["registry", "forget", "--dry-run", &place.logs().join(EVIL).display().to_string()],
        &["registry", "export", "--to", &theirs.display().to_string()],
        &["registry", "import", "--from", &theirs.display().to_string(), "--dry-run"],
        &["registry", "show", EVIL],
    ];
    for command in commands {
        let ended = place.run(command);
        is_clean(&format!("{command:?}"), &format!("{}{}", ended.out, ended.log));
    }
}

#[test]
fn paths_hold_behind_an_input_that_reads_no_files_too() {
    let server = BulkServer::start();
    let place = with_endpoint(&server, "");
    let text = place.configuration();
    let socket = place.path().join("syslog.sock");
    let first = format!(
        "filebeat.inputs:\n- {{type: unix, id: socket, path: '{}', socket_type: datagram}}\n",
        socket.display()
    );
    place.configure(&text.replace("filebeat.inputs:\n", &first));
    let one = place.write("one.log", &lines('a', 10));
    place.write("other.log", &lines('b', 10));
    let mut program = place.start(&[]);
    program.await_that("all lines", || server.count() == 20);
    let (_, found) = files(&place, &[one.to_str().unwrap()]);
    let names: Vec<String> = found.iter().map(name).collect();
    assert_eq!(names, ["one.log"]);
    program.terminate().succeeded();
}
