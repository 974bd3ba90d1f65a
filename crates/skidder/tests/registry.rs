//! `skidder registry`, and what it does to a run.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::gzip;
use serde_json::{Value, json};
use skidder_registry::filebeat::fingerprint_key;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A place whose events go to files.
fn place() -> Place {
    let place = Place::with_output("");
    let config = place.path().join("filebeat.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    let out = place.path().join("out");
    place.configure(&format!(
        "{text}output.file: {{path: '{}', filename: events, rotate_every_kb: 1048576}}\n",
        out.display()
    ));
    place
}

/// The messages delivered so far, sorted; and none of them any more.
fn delivered(place: &Place) -> Vec<String> {
    let mut messages = Vec::new();
    let Ok(listed) = std::fs::read_dir(place.path().join("out")) else { return messages };
    for entry in listed {
        let path = entry.unwrap().path();
        for line in std::fs::read_to_string(&path).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            messages.push(event["message"].as_str().unwrap().to_owned());
        }
        std::fs::remove_file(path).unwrap();
    }
    messages.sort();
    messages
}

/// Lines of ten bytes: enough of them for a whole fingerprint.
fn lines(salt: char, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| [format!("{salt}{number:08}"), "\n".to_owned()].concat()).collect()
}

fn messages(salt: char, numbers: std::ops::Range<usize>) -> Vec<String> {
    lines(salt, numbers).lines().map(str::to_owned).collect()
}

/// A data path of Filebeat with these entries in the log of its registry.
fn filebeat(data: &Path, entries: &[(String, Value)]) -> PathBuf {
    let store = data.join("registry/filebeat");
    std::fs::create_dir_all(&store).unwrap();
    std::fs::write(
        data.join("meta.json"),
        r#"{"uuid":"11111111-2222-4333-8444-555555555555","first_start":"2025-01-01T00:00:00Z"}"#,
    )
    .unwrap();
    std::fs::write(store.join("meta.json"), r#"{"version":"1"}"#).unwrap();
    let mut log = String::new();
    for (at, (key, value)) in entries.iter().enumerate() {
        log.push_str(&format!("{}\n", json!({"op": "set", "id": at + 1})));
        log.push_str(&format!("{}\n", json!({"k": key, "v": value})));
    }
    std::fs::write(store.join("log.json"), log).unwrap();
    store
}

/// An entry of a filestream input, as Filebeat 8 and 9 write it.
fn filestream(identity: &str, value: &str, path: &Path, offset: u64, eof: bool) -> (String, Value) {
    let value = format!("filestream::test::{identity}::{value}");
    let updated = std::fs::metadata(path).unwrap().mtime() + 3600;
    let entry = json!({
        "ttl": 1_800_000_000_000_i64, "updated": [281_474_505_000_000_u64, updated],
        "cursor": {"offset": offset, "eof": eof},
        "meta": {"source": path.to_str().unwrap(), "identifier_name": identity},
    });
    (value, entry)
}

/// What a file is known by: inode and device.
fn native(path: &Path) -> String {
    let meta = std::fs::metadata(path).unwrap();
    format!("{}-{}", meta.ino(), meta.dev())
}

fn sha256(bytes: &[u8]) -> String {
    skidder_read::Fingerprint::of(bytes).hex()
}

#[test]
fn every_file_goes_on_exactly_behind_the_line_that_filebeat_delivered_last() {
    let place = place();
    let by_inode = place.write("inode.log", lines('n', 0..300).as_bytes());
    let by_path = place.write("path.log", lines('p', 0..300).as_bytes());
    let print = lines('f', 0..300);
    let by_print = place.write("print.log", print.as_bytes());
    let short = place.write("short.log", b"line one\nline two\n");
    let packed = lines('z', 0..300);
    let half = place.write("half.log.1.gz", &gzip(packed.as_bytes()));
    let done_text = lines('d', 0..300);
    let done = place.write("done.log.1.gz", &gzip(done_text.as_bytes()));
    let legacy = place.write("legacy.log", lines('l', 0..300).as_bytes());
    let truncated = place.write("truncated.log", lines('t', 0..200).as_bytes());
    place.write("new.log", lines('w', 0..200).as_bytes());
    let (growing_key, mut growing) =
        filestream("fingerprint", &fingerprint_key(b"line one\n"), &short, 9, false);
    growing["meta"]["fingerprint_len"] = 9.into();
    let meta = std::fs::metadata(&legacy).unwrap();
    let id = format!("native::{}", native(&legacy));
    let log_entry = json!({
        "id": id, "prev_id": "", "source": legacy.to_str().unwrap(), "offset": 1000,
        "timestamp": [2_062_097_738_578_u64, 1_697_780_886], "ttl": -1, "type": "log",
        "FileStateOS": {"inode": meta.ino(), "device": meta.dev()}, "identifier_name": "native",
    });
    let theirs = place.path().join("filebeat-data");
    let store = filebeat(
        &theirs,
        &[
            filestream("native", &native(&by_inode), &by_inode, 1000, false),
            filestream("path", by_path.to_str().unwrap(), &by_path, 2000, false),
            filestream("fingerprint", &sha256(&print.as_bytes()[..1024]), &by_print, 500, false),
            (growing_key, growing),
            filestream("fingerprint", &sha256(&packed.as_bytes()[..1024]), &half, 1500, false),
            filestream("fingerprint", &sha256(&done_text.as_bytes()[..1024]), &done, 3000, true),
            (format!("filebeat::logs::{id}"), log_entry),
            filestream("native", &native(&truncated), &truncated, 100_000, false),
        ],
    );
    // A power failure cut the last operation off.
    let log = store.join("log.json");
    let mut text = std::fs::read_to_string(&log).unwrap();
    text.push_str("{\"op\":\"set\",\"id\":9}\n{\"k\":\"filestream::te");
    std::fs::write(&log, text).unwrap();
    let before = std::fs::read(&log).unwrap();

    let from = theirs.to_str().unwrap();
    let dry = place.run(&["registry", "import", "--from", from, "--dry-run"]).succeeded();
    assert!(dry.out.contains("nothing was written"), "{}", dry.out);
    assert!(!place.data().join("registry").is_dir());
    let ended = place.run(&["registry", "import", "--from", from]).succeeded();
    assert!(ended.log.contains("log.json line 18 is cut off"), "{}", ended.log);
    let same: String = dry.out.lines().filter(|line| !line.contains("nothing was")).collect();
    assert_eq!(same, ended.out.lines().collect::<String>());
    for wanted in [
        "8 entries in",
        "6 go on, 1 finished, 1 from the start, 0 known already, 0 left out",
        "from the start: it is shorter than what was read of it",
        "continue at byte 1500",
        "finished: read to its end",
    ] {
        assert!(ended.out.contains(wanted), "no {wanted} in:\n{}", ended.out);
    }
    assert_eq!(std::fs::read(&log).unwrap(), before);
    let id = std::fs::read_to_string(place.data().join("meta.json")).unwrap();
    assert!(id.contains("11111111-2222"), "{id}");

    place.once(&[]).succeeded();
    let mut expected = [
        messages('n', 100..300),
        messages('p', 200..300),
        messages('f', 50..300),
        vec!["line two".to_owned()],
        messages('z', 150..300),
        messages('l', 100..300),
        messages('t', 0..200),
        messages('w', 0..200),
    ]
    .concat();
    expected.sort();
    assert_eq!(delivered(&place), expected);
    // A second import changes nothing of what has gone on since.
    let again = place.run(&["registry", "import", "--from", from]).succeeded();
    assert!(again.out.contains("0 go on"), "{}", again.out);
    assert!(again.out.contains("8 known already"), "{}", again.out);
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), Vec::<String>::new());
}

#[test]
fn a_start_on_the_data_of_filebeat_says_what_to_do_instead_of_reading_everything_again() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    filebeat(&place.data(), &[filestream("native", &native(&log), &log, 1000, false)]);
    let refused = place.once(&[]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.log.contains("was not taken over"), "{}", refused.log);
    assert!(refused.log.contains("skidder registry import"), "{}", refused.log);
    assert_eq!(delivered(&place), Vec::<String>::new());
    // The default of `--from` is the data path.
    place.run(&["registry", "import"]).succeeded();
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), messages('a', 100..300));
}

#[test]
fn what_changes_the_registry_is_refused_beside_a_running_instance_and_looking_is_not() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    let theirs = place.path().join("filebeat-data");
    filebeat(&theirs, &[filestream("native", &native(&log), &log, 1000, false)]);
    let from = theirs.to_str().unwrap();
    let mut running = place.start(&[]);
    let path = log.to_str().unwrap();
    running.await_that("the cursor is saved", || {
        let listed = place.run(&["registry", "list", "--json"]).succeeded();
        let listed: Value = serde_json::from_str(&listed.out).unwrap();
        listed["entries"].as_array().unwrap().iter().any(|entry| entry["offset"] == 3000)
    });
    let shown = place.run(&["registry", "show", path]).succeeded();
    assert!(shown.out.contains("3000"), "{}", shown.out);
    for arguments in [
        &["registry", "import", "--from", from][..],
        &["registry", "forget", path],
        &["registry", "export", "--to", "exported"],
    ] {
        let refused = place.run(arguments);
        assert_eq!(refused.code(), Some(1), "{arguments:?}");
        assert!(refused.log.contains("another skidder uses"), "{}", refused.log);
    }
    place.run(&["registry", "import", "--from", from, "--dry-run"]).succeeded();
    running.terminate().succeeded();
}

#[test]
fn an_import_is_refused_while_filebeat_runs() {
    let place = place();
    let theirs = place.path().join("filebeat-data");
    filebeat(&theirs, &[]);
    let lock = std::fs::File::create(theirs.join("filebeat.lock")).unwrap();
    lock.try_lock().unwrap();
    let from = theirs.to_str().unwrap();
    let refused = place.run(&["registry", "import", "--from", from]);
    assert_eq!(refused.code(), Some(1));
    assert!(refused.log.contains("Filebeat is running"), "{}", refused.log);
    let dry = place.run(&["registry", "import", "--from", from, "--dry-run"]).succeeded();
    assert!(dry.log.contains("warning: Filebeat is running"), "{}", dry.log);
    drop(lock);
    place.run(&["registry", "import", "--from", from]).succeeded();
    let nothing = place.run(&["registry", "import", "--from", "nowhere"]);
    assert!(nothing.log.contains("there is no registry of Filebeat in"), "{}", nothing.log);
}

#[test]
fn a_forgotten_file_is_read_again_and_the_others_are_not() {
    let place = place();
    let one = place.write("one.log", lines('o', 0..200).as_bytes());
    place.write("two.log", lines('t', 0..200).as_bytes());
    place.once(&[]).succeeded();
    delivered(&place);
    let listed = place.run(&["registry", "list"]).succeeded();
    assert!(listed.out.contains("2 entries in"), "{}", listed.out);
    let path = one.to_str().unwrap();
    let unknown = place.run(&["registry", "forget", path, "/none"]);
    assert_eq!(unknown.code(), Some(1));
    assert!(unknown.log.contains("no entry `/none`"), "{}", unknown.log);
    assert!(unknown.log.contains("nothing was forgotten"), "{}", unknown.log);
    let dry = place.run(&["registry", "forget", path, "--dry-run"]).succeeded();
    assert!(dry.out.starts_with("would forget filestream::test::fingerprint::"), "{}", dry.out);
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), Vec::<String>::new());
    let forgot = place.run(&["registry", "forget", "logs/one.log"]).succeeded();
    assert!(forgot.out.starts_with("forgot filestream::test::fingerprint::"), "{}", forgot.out);
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), messages('o', 0..200));
}

/// The keys and values of a store as they stand in its checkpoint.
fn checkpoint(store: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(store.join("1.json")).unwrap();
    let mut entries: Vec<Value> = serde_json::from_str(&text).unwrap();
    entries.sort_by_key(|entry| entry["_key"].as_str().unwrap().to_owned());
    entries
}

#[test]
fn a_registry_of_which_nothing_can_be_read_is_an_error_and_replaces_nothing() {
    let place = place();
    place.write("a.log", lines('a', 0..300).as_bytes());
    place.once(&[]).succeeded();
    let whole = std::fs::read(place.registry().join("registry.snapshot")).unwrap();
    let theirs = filebeat(&place.path().join("theirs"), &[]);
    let before = std::fs::read(theirs.join("log.json")).unwrap();
    std::fs::write(place.registry().join("registry.redb"), [0x5a; 9000]).unwrap();
    for noise in [&[0x5a; 3000][..], b"", &whole[..whole.len() / 2]] {
        std::fs::write(place.registry().join("registry.snapshot"), noise).unwrap();
        for command in [
            &["registry", "list"][..],
            &["registry", "list", "--json"],
            &["registry", "export", "--to", "theirs", "--force"],
            &["registry", "export", "--to", "new"],
        ] {
            let ended = place.run(command);
            assert_eq!(ended.code(), Some(1), "{command:?}: {ended:?}");
            assert!(ended.log.contains("damaged"), "{command:?}: {ended:?}");
        }
        assert_eq!(std::fs::read(theirs.join("log.json")).unwrap(), before, "nothing is replaced");
        for path in [theirs.join("1.json"), place.path().join("new")] {
            assert!(!path.try_exists().unwrap(), "{}", path.display());
        }
    }
}

#[test]
fn what_was_exported_is_what_filebeat_would_have_written_and_goes_on_when_imported_again() {
    let place = place();
    let text = lines('a', 0..300);
    let long = place.write("long.log", text.as_bytes());
    let short = place.write("short.log", b"line one\n");
    let done = lines('d', 0..300);
    place.write("done.log.1.gz", &gzip(done.as_bytes()));
    place.once(&[]).succeeded();
    delivered(&place);
    let ended = place.run(&["registry", "export", "--to", "exported"]).succeeded();
    assert!(ended.out.starts_with("3 entries written to"), "{}", ended.out);
    let store = place.path().join("exported/registry/filebeat");
    let entries = checkpoint(&store);
    let keys: Vec<&str> = entries.iter().map(|entry| entry["_key"].as_str().unwrap()).collect();
    let mut expected = [
        sha256(&text.as_bytes()[..1024]),
        sha256(&done.as_bytes()[..1024]),
        // As Filebeat 9.5 has it for a file of these bytes.
        "ff3364a0ccaf15d5d5a9b0471ce71dc937e4bf71d8cc5cecb9f2adaf2d8bf97b".to_owned(),
    ]
    .map(|value| format!("filestream::test::fingerprint::{value}"));
    expected.sort();
    assert_eq!(keys, expected);
    let of = |path: &Path| {
        let is = |entry: &&Value| entry["meta"]["source"] == path.to_str().unwrap();
        entries.iter().find(is).unwrap().clone()
    };
    assert_eq!(of(&long)["cursor"], json!({"offset": 3000}));
    assert_eq!(of(&short)["meta"]["fingerprint_len"], 9);
    assert_eq!(
        of(&place.logs().join("done.log.1.gz"))["cursor"],
        json!({"offset": 3000, "eof": true})
    );
    assert_eq!(of(&long)["ttl"], -1);
    let meta = std::fs::read_to_string(store.join("meta.json")).unwrap();
    assert_eq!(meta, r#"{"version":"1"}"#);
    let active = std::fs::read_to_string(store.join("active.dat")).unwrap();
    assert_eq!(active, store.join("1.json").to_str().unwrap());
    let twice = place.run(&["registry", "export", "--to", "exported"]);
    assert_eq!(twice.code(), Some(1));
    assert!(twice.log.contains("`--force` replaces it"), "{}", twice.log);
    place.run(&["registry", "export", "--to", "exported", "--force"]).succeeded();

    // Back again into an empty registry: what was read stays read, and what is new comes.
    std::fs::remove_dir_all(place.data()).unwrap();
    place.run(&["registry", "import", "--from", "exported"]).succeeded();
    std::fs::write(&long, lines('a', 0..350)).unwrap();
    std::fs::write(&short, b"line one\nline two\n").unwrap();
    place.once(&[]).succeeded();
    let mut expected = messages('a', 300..350);
    expected.push("line two".to_owned());
    assert_eq!(delivered(&place), expected);
}

#[test]
fn an_export_for_an_older_filebeat_knows_files_by_their_inodes() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    place.once(&[]).succeeded();
    delivered(&place);
    place.run(&["registry", "export", "--to", "exported", "--identity", "native"]).succeeded();
    let entries = checkpoint(&place.path().join("exported/registry/filebeat"));
    assert_eq!(entries[0]["_key"], format!("filestream::test::native::{}", native(&log)));
    assert_eq!(entries[0]["meta"]["identifier_name"], "native");
    std::fs::remove_dir_all(place.data()).unwrap();
    let back = place.run(&["registry", "import", "--from", "exported", "--json"]).succeeded();
    let back: Value = serde_json::from_str(&back.out).unwrap();
    assert_eq!(back["entries"][0]["action"], "continue");
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), Vec::<String>::new());
}

/// Where a folder with the logs of an input was when Filebeat 9.6 wrote these registries.
const GOLDEN_LOGS: &str = "/golden-logs";

/// What Filebeat wrote, with the paths and inodes of these logs in place of those that it saw.
fn golden(kind: &str, logs: &Path) -> String {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../skidder-registry/testdata/filebeat");
    let text = std::fs::read_to_string(data.join(format!("real-9.6-{kind}/log.json"))).unwrap();
    let text = text.replace(GOLDEN_LOGS, logs.to_str().unwrap());
    // The last line of an entry says where its file is; one whose path went to a file that came later has `.1` behind it.
    let mut seen: Vec<(String, PathBuf)> = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let Some((_, name)) = line["k"].as_str().and_then(|key| key.split_once("native::")) else {
            continue;
        };
        let source = line["v"]["source"].as_str().or(line["v"]["meta"]["source"].as_str());
        let source = PathBuf::from(source.unwrap());
        match seen.iter_mut().find(|(known, _)| known == name) {
            Some((_, path)) => *path = source,
            None => seen.push((name.to_owned(), source)),
        }
    }
    for at in 0..seen.len() {
        if seen[at + 1..].iter().any(|(_, later)| *later == seen[at].1) {
            seen[at].1.as_mut_os_string().push(".1");
        }
    }
    let mut swapped = text;
    // The inodes of here may be among those of there: first all of those go.
    for (at, (name, _)) in seen.iter().enumerate() {
        let (inode, device) = name.split_once('-').unwrap();
        swapped = swapped.replace(&format!("native::{name}"), &format!("native::@{at}@"));
        swapped = swapped.replace(&format!("\"inode\":{inode}"), &format!("\"inode\":@{at}@"));
        swapped = swapped.replace(&format!("\"device\":{device}"), "\"device\":@device@");
    }
    for (at, (_, path)) in seen.iter().enumerate() {
        let metadata = std::fs::metadata(path).unwrap();
        swapped = swapped.replace(&format!("native::@{at}@"), &format!("native::{}", native(path)));
        let inode = metadata.ino();
        swapped = swapped.replace(&format!("\"inode\":@{at}@"), &format!("\"inode\":{inode}"));
        let device = metadata.dev();
        swapped = swapped.replace("\"device\":@device@", &format!("\"device\":{device}"));
    }
    swapped
}

fn numbered(name: &str, numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| [format!("{name} {number:04}"), "\n".to_owned()].concat()).collect()
}

#[test]
fn each_registry_that_filebeat_9_6_wrote_goes_on_exactly_where_it_stopped() {
    let kinds = [
        ("growing", "type: filestream, compression: auto"),
        (
            "static",
            "type: filestream, compression: auto, file_identity.fingerprint.growing: false, \
             prospector.scanner.fingerprint.length: 64",
        ),
        ("native", "type: filestream, file_identity.native: ~"),
        ("path", "type: filestream, file_identity.path: ~"),
        ("log", "type: log"),
    ];
    for (kind, input) in kinds {
        let place = place();
        let (logs, out) = (place.logs(), place.path().join("out"));
        place.configure(&format!(
            "filebeat.inputs:\n- {{id: golden, {input}, paths: ['{}/*.log*']}}\n\
             output.file: {{path: '{}', filename: events, rotate_every_kb: 1048576}}\n",
            logs.display(),
            out.display()
        ));
        // As they were, with lines that came since.
        place.write("long.log", numbered("long", 0..250).as_bytes());
        place.write("short.log", numbered("short", 0..9).as_bytes());
        place.write("open.log", b"open 0000\n");
        let mut expected = numbered("long", 200..250) + "short 0008\nopen 0000\n";
        if kind == "path" {
            place.write("moved.log", numbered("moved", 0..121).as_bytes());
            expected.push_str("moved 0120\n");
        } else {
            place.write("moved.log.1", numbered("moved", 0..120).as_bytes());
            place.write("moved.log", numbered("anew", 0..10).as_bytes());
            expected.push_str("anew 0009\n");
        }
        if kind == "growing" || kind == "static" {
            place.write("packed.log.gz", &gzip(numbered("packed", 0..150).as_bytes()));
        }
        let store = filebeat(&place.data(), &[]);
        std::fs::write(store.join("log.json"), golden(kind, &logs)).unwrap();
        if kind == "static" {
            // Shorter than its fingerprint, and known by nothing: no entry.
            std::fs::remove_file(logs.join("open.log")).unwrap();
            expected = expected.replace("open 0000\n", "");
        }

        let ended = place.run(&["registry", "import"]);
        assert_eq!(ended.code(), Some(0), "{kind}: {}{}", ended.out, ended.log);
        assert!(ended.out.contains(" 0 left out"), "{kind}: {}", ended.out);
        place.once(&[]).succeeded();
        let mut expected: Vec<&str> = expected.lines().collect();
        expected.sort_unstable();
        assert_eq!(delivered(&place), expected, "{kind}");

        // What goes back is known to Filebeat by the same keys.
        place.run(&["registry", "export", "--to", "back"]).succeeded();
        let back = checkpoint(&place.path().join("back/registry/filebeat"));
        let long = logs.join("long.log");
        let long = back.iter().find(|entry| {
            let source = entry["source"].as_str().or(entry["meta"]["source"].as_str());
            source == long.to_str()
        });
        let key = long.unwrap()["_key"].as_str().unwrap();
        assert!(golden(kind, &logs).contains(&format!("\"{key}\"")), "{kind}: {key}");
    }
}

#[test]
fn what_filebeat_sent_after_an_export_is_not_sent_again_after_another_import() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    place.once(&[]).succeeded();
    delivered(&place);
    place.run(&["registry", "export", "--to", "filebeat-data"]).succeeded();
    // Filebeat sends a hundred more.
    std::fs::write(&log, lines('a', 0..450)).unwrap();
    let theirs = place.path().join("filebeat-data");
    let print = sha256(&lines('a', 0..300).as_bytes()[..1024]);
    std::fs::remove_dir_all(&theirs).unwrap();
    filebeat(&theirs, &[filestream("fingerprint", &print, &log, 4000, false)]);
    let ended = place.run(&["registry", "import", "--from", "filebeat-data"]).succeeded();
    assert!(ended.out.contains("continue at byte 4000"), "{}", ended.out);
    place.once(&[]).succeeded();
    assert_eq!(delivered(&place), messages('a', 400..450));
}

#[test]
fn a_damaged_registry_of_filebeat_is_an_error_and_what_can_be_read_is_taken() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    let theirs = place.path().join("filebeat-data");
    let store = filebeat(&theirs, &[]);
    let print = sha256(&lines('a', 0..300).as_bytes()[..1024]);
    let (key, mut good) = filestream("fingerprint", &print, &log, 2000, false);
    good["_key"] = key.into();
    let without_path = json!({"_key": "k", "cursor": {"offset": "x"}, "meta": null});
    let import = |entries: Value| {
        std::fs::write(store.join("1.json"), entries.to_string()).unwrap();
        place.run(&["registry", "import", "--from", "filebeat-data", "--dry-run"])
    };
    let ended = import(json!([good, []]));
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert!(ended.out.contains("1 go on"), "{ended:?}");
    assert!(ended.log.contains("1.json: element 2 is no entry"), "{ended:?}");
    assert!(ended.log.contains("entries may be missing"), "{ended:?}");
    // It is none of a file.
    let ended = import(json!([good, without_path]));
    assert!(ended.out.contains("1 go on"), "{ended:?}");
    assert!(!ended.log.contains("although their files are there"), "{ended:?}");
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let json = place.run(&["registry", "import", "--from", "filebeat-data", "--dry-run", "--json"]);
    assert!(json.out.contains("\"damaged\": false"), "{}", json.out);
}

#[test]
fn an_entry_that_is_left_out_although_its_file_is_there_is_an_error_and_the_rest_is_taken() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..300).as_bytes());
    let other = place.write("b.log", lines('b', 0..300).as_bytes());
    let theirs = place.path().join("filebeat-data");
    let print = |salt| sha256(&lines(salt, 0..300).as_bytes()[..1024]);
    let gone = filestream("fingerprint", &print('g'), &log, 10, false);
    let (gone_key, mut gone_value) = gone;
    gone_value["meta"]["source"] = json!(place.logs().join("gone.log"));
    let entries = [
        filestream("fingerprint", &print('a'), &log, 1000, false),
        filestream("fingerprint", &print('x'), &other, 1000, false),
        (gone_key, gone_value),
    ];
    filebeat(&theirs, &entries);
    let ended = place.run(&["registry", "import", "--from", "filebeat-data"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("error: 1 entries are left out although"), "{}", ended.log);
    place.once(&[]).succeeded();
    let expected = [messages('a', 100..300), messages('b', 0..300)].concat();
    assert_eq!(delivered(&place), expected);
}

#[test]
fn a_place_in_a_journal_is_left_out_with_what_to_set() {
    let place = place();
    let theirs = place.path().join("filebeat-data");
    let key = "journald::journal::LOCAL_SYSTEM_JOURNAL".to_owned();
    let cursor = json!({"version": 1, "position": {"cursor": "s=1;i=2", "realtimeTimestamp": 3}});
    filebeat(&theirs, &[(key, json!({"cursor": cursor, "ttl": 0, "updated": [1, 2]}))]);
    let ended = place.run(&["registry", "import", "--from", "filebeat-data"]).succeeded();
    assert!(ended.out.contains("unless `seek: tail`"), "{}", ended.out);
}

#[test]
fn objects_that_filebeat_has_read_are_left_out_with_what_to_set() {
    let place = place();
    let theirs = place.path().join("filebeat-data");
    let state = json!({"bucket": "logs", "key": "a", "etag": "e", "stored": true});
    let keys = ["filebeat::aws-s3::state::logsa", "gcs::in::logs", "azure-blob-storage::in::logs"];
    filebeat(&theirs, &keys.map(|key| (key.to_owned(), state.clone())));
    let ended = place.run(&["registry", "import", "--from", "filebeat-data", "--dry-run"]);
    assert!(!ended.status.success(), "{}", ended.out);
    assert_eq!(
        ended.out.matches("unless `start_timestamp` or `ignore_older`").count(),
        3,
        "{}",
        ended.out
    );
    assert!(ended.log.contains("error: 3 entries are left out"), "{}", ended.log);
}

#[test]
fn an_export_finds_files_that_were_renamed_while_nobody_looked() {
    let place = place();
    let log = place.write("a.log", lines('a', 0..20).as_bytes());
    place.once(&[]).succeeded();
    std::fs::rename(&log, place.logs().join("a.log.1")).unwrap();
    let log = place.write("a.log", lines('b', 0..20).as_bytes());
    place.write("gone.log", lines('g', 0..200).as_bytes());
    place.once(&[]).succeeded();
    std::fs::remove_file(place.logs().join("gone.log")).unwrap();
    std::fs::rename(&log, place.logs().join("a.log.2")).unwrap();
    let ended = place.run(&["registry", "export", "--to", "back"]).succeeded();
    assert!(ended.out.contains("0 left out, 1 of files that are gone"), "{}", ended.out);
    let back = checkpoint(&place.path().join("back/registry/filebeat"));
    let mut sources: Vec<&str> =
        back.iter().map(|entry| entry["meta"]["source"].as_str().unwrap()).collect();
    sources.sort_unstable();
    let expected = ["a.log.1", "a.log.2"].map(|name| place.logs().join(name));
    assert_eq!(sources, expected.each_ref().map(|path| path.to_str().unwrap()));
}
