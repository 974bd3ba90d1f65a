//! `skidder migrate`: a Filebeat installation is looked at, and taken over.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::program::{Ended, Program, command};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// An installation of Filebeat with one log file, of which 100 of 300 lines were delivered.
struct Installation {
    directory: tempfile::TempDir,
}

impl Installation {
    fn new(more: &str) -> Self {
        let it = Self { directory: tempfile::tempdir().unwrap() };
        for folder in ["etc", "logs", "theirs/registry/filebeat"] {
            fs::create_dir_all(it.path(folder)).unwrap();
        }
        let log = it.path("logs/app.log");
        fs::write(&log, lines(0..300)).unwrap();
        let meta = fs::metadata(&log).unwrap();
        let key = format!("filestream::app::native::{}-{}", meta.ino(), meta.dev());
        let entry = json!({
            "ttl": -1, "updated": [281_474_505_000_000_u64, meta.mtime() + 3600],
            "cursor": {"offset": lines(0..100).len(), "eof": false},
            "meta": {"source": log.to_str().unwrap(), "identifier_name": "native"},
        });
        let store = it.path("theirs/registry/filebeat");
        fs::write(store.join("meta.json"), r#"{"version":"1"}"#).unwrap();
        let operation = json!({"op": "set", "id": 1});
        let text = format!("{operation}\n{}\n", json!({"k": key, "v": entry}));
        fs::write(store.join("log.json"), text).unwrap();
        it.configure(more);
        it
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn configure(&self, more: &str) {
        let text = format!(
            "path.data: {}\nfilebeat.inputs:\n- type: filestream\n  id: app\n  paths: ['{}/*.log']\n  \
             file_identity.native: ~\n\
             output.file: {{path: '{}', filename: events}}\n{more}",
            self.path("theirs").display(),
            self.path("logs").display(),
            self.path("out").display()
        );
        fs::write(self.path("etc/filebeat.yml"), text).unwrap();
    }

    fn migrate(&self, arguments: &[&str]) -> Ended {
        let (from, to, data) = (self.path("etc"), self.path("ours"), self.path("data"));
        let mut command = command(["migrate", "--from"]);
        command.arg(from).arg("--to").arg(to).arg("--path.data").arg(data).args(arguments);
        Program::run(command.current_dir(self.directory.path()))
    }

    /// Everything that is there, but for what Filebeat and its logs are.
    fn written(&self) -> Vec<&str> {
        ["ours", "data", "out"].into_iter().filter(|name| is_there(&self.path(name))).collect()
    }
}

fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok()
}

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers.map(|number| [format!("line {number:08}"), "\n".to_owned()].concat()).collect()
}

#[test]
fn modules_without_a_folder_are_in_the_way() {
    let it = Installation::new("");
    fs::create_dir_all(it.path("etc/modules.d")).unwrap();
    let module = "- module: nginx\n  access: {enabled: true}\n";
    fs::write(it.path("etc/modules.d/nginx.yml"), module).unwrap();
    let lists = "filebeat.modules:\n- {module: nginx, access: {enabled: true}}\n";
    for more in [lists, "filebeat.config.modules.path: ${path.config}/modules.d/*.yml\n"] {
        it.configure(more);
        for arguments in [&["--dry-run"][..], &[]] {
            let ended = it.migrate(arguments);
            assert_eq!(ended.code(), Some(1), "{more}: {}", ended.out);
            for part in [
                ", 1 in the way (!)",
                "modules are on, but none of `",
                "set `filebeat.modules_path` to the folder `module` of a Filebeat, or turn the modules off",
                "nothing was written: what is marked with ! stands in the way",
            ] {
                assert!(ended.out.contains(part), "{more}: {part} is not in {}", ended.out);
            }
            assert!(it.written().is_empty(), "{more}");
        }
    }
    it.migrate(&["--lenient"]).succeeded();
}

#[test]
fn a_dry_run_tells_everything_and_writes_nothing() {
    let it = Installation::new("queue.mem.events: 4096\n");
    let ended = it.migrate(&["--dry-run"]).succeeded();
    for wanted in [
        "1 entries in ",
        "1 go on, 0 finished",
        "inputs     1\n",
        "~ `filebeat.shutdown_timeout`: 5s here",
        "path.data`: `--path.data` on the command line",
        "nothing was written (`--dry-run`)",
        ", 0 in the way (!)",
    ] {
        assert!(ended.out.contains(wanted), "no {wanted} in:\n{}", ended.out);
    }
    assert_eq!(it.written(), Vec::<&str>::new());
    let report: Value =
        serde_json::from_str(&it.migrate(&["--dry-run", "--json"]).succeeded().out).unwrap();
    assert_eq!(report["registry"]["entries"][0]["action"], "continue");
    assert_eq!(report["in_the_way"], json!([]));
    assert_eq!(report["inputs"], 1);
}

#[test]
fn a_move_goes_on_at_the_line_that_filebeat_delivered_last() {
    let it = Installation::new("");
    let ended = it.migrate(&[]).succeeded();
    assert!(ended.out.contains("start skidder"), "{}", ended.out);
    let source = fs::read(it.path("etc/filebeat.yml")).unwrap();
    let target = it.path("ours/filebeat.yml");
    assert_eq!(fs::read(&target).unwrap(), source, "the configuration is unchanged");
    let mut run = command(["--once", "-e", "-c"]);
    run.arg(&target).arg("--path.data").arg(it.path("data"));
    Program::run(run.current_dir(it.directory.path())).succeeded();
    let mut messages = Vec::new();
    for entry in fs::read_dir(it.path("out")).unwrap() {
        for line in fs::read_to_string(entry.unwrap().path()).unwrap().lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            messages.push(event["message"].as_str().unwrap().to_owned());
        }
    }
    let expected: Vec<String> = lines(100..300).lines().map(str::to_owned).collect();
    assert_eq!(messages, expected);
    // Again: nothing is repeated, and nothing stands in the way.
    let again = it.migrate(&[]).succeeded();
    assert!(again.out.contains("1 known already"), "{}", again.out);
}

#[test]
fn what_is_not_supported_stands_in_the_way_unless_leniency_is_asked_for() {
    let it = Installation::new("instrumentation.enabled: true\nqueue.mem.evnts: 1\n");
    let ended = it.migrate(&[]);
    assert_eq!(ended.code(), Some(1));
    for wanted in [
        ", 2 in the way (!)",
        "etc/filebeat.yml:8:1: `instrumentation.enabled` is known to Filebeat",
        "etc/filebeat.yml:9:1: unknown setting `queue.mem.evnts`",
        "did you mean `events`?",
        "nothing was written: what is marked with ! stands in the way",
    ] {
        assert!(ended.out.contains(wanted), "no {wanted} in:\n{}", ended.out);
    }
    assert_eq!(it.written(), Vec::<&str>::new());
    let ended = it.migrate(&["--lenient"]).succeeded();
    assert!(ended.out.contains(" 2 without effect (-), 0 in the way"), "{}", ended.out);
    let mut test = command(["test", "config", "-c"]);
    Program::run(test.arg(it.path("ours/filebeat.yml"))).succeeded();
}

#[test]
fn a_mistake_is_told_even_when_leniency_is_asked_for_and_the_registry_waits() {
    let it = Installation::new("queue.mem.events: many\n");
    let ended = it.migrate(&["--lenient"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("`queue.mem.events` is `many`"), "{}", ended.out);
    assert!(ended.out.contains("registry   can be told when"), "{}", ended.out);
    assert_eq!(it.written(), Vec::<&str>::new());
}

#[test]
fn another_configuration_is_not_replaced_unless_it_is_asked_for_and_then_kept() {
    let it = Installation::new("");
    fs::create_dir(it.path("ours")).unwrap();
    fs::write(it.path("ours/filebeat.yml"), "name: mine\n").unwrap();
    let ended = it.migrate(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("says something else; replace it with `--force`"), "{}", ended.log);
    assert!(!is_there(&it.path("data")), "nothing was taken over");
    it.migrate(&["--force"]).succeeded();
    assert_eq!(fs::read(it.path("ours/filebeat.yml.before")).unwrap(), b"name: mine\n");
}

#[test]
fn folders_of_the_configuration_and_its_mode_come_along() {
    let it = Installation::new("filebeat.config.inputs: {enabled: true, path: inputs.d/*.yml}\n");
    fs::create_dir(it.path("etc/inputs.d")).unwrap();
    fs::write(it.path("etc/inputs.d/one.yml"), "[]\n").unwrap();
    fs::write(it.path("etc/inputs.d/two.yml.disabled"), "[]\n").unwrap();
    fs::set_permissions(it.path("etc/filebeat.yml"), fs::Permissions::from_mode(0o600)).unwrap();
    it.migrate(&["--lenient"]).succeeded();
    assert!(is_there(&it.path("ours/inputs.d/one.yml")));
    assert!(!is_there(&it.path("ours/inputs.d/two.yml.disabled")));
    let mode = fs::metadata(it.path("ours/filebeat.yml")).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn the_keystore_is_used_and_comes_along() {
    let it = Installation::new("name: ${SECRET_NAME}\n");
    let ended = it.migrate(&["--dry-run"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("SECRET_NAME"), "{}", ended.out);
    let keystore = |arguments: &[&str]| {
        let mut command = command(["keystore"]);
        command.args(arguments).arg("--path.data").arg(it.path("theirs")).arg("-c");
        command.arg(it.path("etc/filebeat.yml"));
        command.stdin(fs::File::open(it.path("secret")).unwrap()).output().unwrap()
    };
    fs::write(it.path("secret"), "told-nobody").unwrap();
    for arguments in [&["create"][..], &["add", "SECRET_NAME", "--stdin"]] {
        let output = keystore(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let file = it.path("theirs/filebeat.keystore");
    let ended = it.migrate(&[]).succeeded();
    assert!(ended.out.contains("keystore   "), "{}", ended.out);
    assert!(!ended.out.contains("told-nobody"), "{}", ended.out);
    assert_eq!(fs::read(it.path("data/filebeat.keystore")).unwrap(), fs::read(file).unwrap());
    let mut test = command(["test", "config", "-c"]);
    test.arg(it.path("ours/filebeat.yml")).arg("--path.data").arg(it.path("data"));
    Program::run(&mut test).succeeded();
}

#[test]
fn a_running_filebeat_and_a_place_without_one_are_told() {
    let it = Installation::new("");
    let lock = fs::File::create(it.path("theirs/filebeat.lock")).unwrap();
    lock.lock().unwrap();
    let ended = it.migrate(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("Filebeat is running"), "{}", ended.log);
    assert!(!is_there(&it.path("ours")), "nothing was written");
    let ended = it.migrate(&["--dry-run"]).succeeded();
    assert!(ended.log.contains("its cursors still move"), "{}", ended.log);
    let ended = Program::run(&mut command(["migrate", "--from", "/nowhere/at/all"]));
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("there is no Filebeat at `/nowhere/at/all`"), "{}", ended.log);
}

/// Configurations as people write them, of Filebeat 1 to 9: the name, what its first line expects, and the text.
fn configurations() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/configurations");
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let expected = text.lines().next().unwrap().strip_prefix("# expect: ").unwrap().to_owned();
        all.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), expected, text));
    }
    all.sort();
    all
}

/// `test config` of a text, with further arguments.
fn test_config(text: &str, more: &[&str]) -> Ended {
    let place = Place::with_output("");
    place.configure(text);
    place.run(&[&["test", "config"], more].concat())
}

#[test]
fn configurations_that_people_have_start_or_say_what_is_missing() {
    let all = configurations();
    assert!(all.len() >= 40, "{}", all.len());
    for (name, expected, text) in all {
        let ended = test_config(&text, &[]);
        let says = match expected.as_str() {
            "starts" | "kibana" => {
                assert_eq!(ended.code(), Some(0), "{name}: {}", ended.log);
                continue;
            }
            "old" => "skidder migrate --print",
            // There is no folder of modules.
            "modules" => {
                let lenient = test_config(&text, &["-E", "compat=lenient"]);
                assert_eq!(lenient.code(), Some(0), "{name}: {}", lenient.log);
                "modules are on, but none of"
            }
            "certificates" => "ssl.certificate_authorities` from `",
            "typo" => "did you mean `ignore_older`?",
            other => panic!("{name}: {other}"),
        };
        assert_eq!(ended.code(), Some(1), "{name}: {}", ended.log);
        assert!(ended.log.contains(says), "{name}: {}", ended.log);
    }
}

#[test]
fn what_is_no_configuration_is_not_printed_anew() {
    let place = Place::with_output("");
    let file = place.path().join("odd.yml");
    let mut deep = String::new();
    for level in 0..3000 {
        deep.push_str(&" ".repeat(level));
        deep.push_str("a:\n");
    }
    let texts = [
        ("root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/:/bin/sh\n", "expected"),
        ("a: [1\n", "odd.yml:"),
        ("- a\n- b\n", "expected"),
        ("just words\n", "expected"),
        (&deep, "nested more than"),
    ];
    let print = |from: &str| {
        let ended = place.run(&["migrate", "--print", "--from", from]);
        assert_eq!(ended.code(), Some(1), "{from}: {ended:?}");
        assert!(!ended.log.contains("nothing to rewrite") && ended.out.is_empty(), "{ended:?}");
        ended.log
    };
    for (text, expected) in texts {
        std::fs::write(&file, text).unwrap();
        let log = print(file.to_str().unwrap());
        assert!(log.contains(expected), "{log}");
    }
    assert!(print("/dev/null").contains("pipe or device"));
    std::fs::File::create(&file).unwrap().set_len(1 << 30).unwrap();
    assert!(print(file.to_str().unwrap()).contains("too large"));
}

#[test]
fn what_is_printed_anew_starts_keeps_the_comments_and_need_not_change_again() {
    let mut changed = 0;
    for (name, expected, text) in configurations() {
        let place = Place::with_output("");
        place.configure(&text);
        let file = place.path().join("filebeat.yml");
        let file = file.to_str().unwrap();
        let printed = place.run(&["migrate", "--print", "--from", file]).succeeded();
        changed += usize::from(printed.out != text);
        for comment in text.lines().filter_map(|line| line.split_once("# ").map(|(_, end)| end)) {
            assert!(printed.out.contains(comment), "{name}: no {comment} in\n{}", printed.out);
        }
        if ["starts", "kibana", "old"].contains(&expected.as_str()) {
            let ended = test_config(&printed.out, &[]);
            assert_eq!(ended.code(), Some(0), "{name}: {}\n{}", ended.log, printed.out);
        }
        place.configure(&printed.out);
        let again = place.run(&["migrate", "--print", "--from", file]).succeeded();
        assert_eq!(again.out, printed.out, "{name}");
    }
    assert!(changed >= 20, "{changed}");
}
