//! `skidder keystore` and `${KEY}`, from outside.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::program::command;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;

/// Made by Filebeat's own package with `ES_PWD`, `TOKEN` and `EMPTY`.
const OF_FILEBEAT: &[u8] = include_bytes!("data/filebeat.keystore");

const CONFIGURATION: &str = "filebeat.inputs: [{type: filestream, id: a, paths: [/x]}]\n\
    output.elasticsearch: {hosts: [localhost], username: u, password: '${ES_PWD}'}\n";

struct Here(tempfile::TempDir);

impl Here {
    fn new() -> Self {
        let here = Self(tempfile::tempdir().unwrap());
        std::fs::write(here.0.path().join("filebeat.yml"), CONFIGURATION).unwrap();
        here
    }

    fn keystore(&self) -> PathBuf {
        self.0.path().join("data/filebeat.keystore")
    }

    /// Puts a keystore there.
    fn drop_in(&self, bytes: &[u8], mode: u32) {
        std::fs::create_dir_all(self.0.path().join("data")).unwrap();
        std::fs::write(self.keystore(), bytes).unwrap();
        std::fs::set_permissions(self.keystore(), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs the program with something at its standard input.
    fn run_with(&self, input: &[u8], arguments: &[&str]) -> Run {
        let mut command = command(arguments);
        command.args(["--path.data", "data", "-c", "filebeat.yml"]);
        command.current_dir(self.0.path()).env_remove("ES_PWD");
        self.finish(command, input)
    }

    fn finish(&self, mut command: std::process::Command, input: &[u8]) -> Run {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A program that ends before it reads all is no failure of the test.
        let _written = child.stdin.take().unwrap().write_all(input);
        let output = child.wait_with_output().unwrap();
        Run {
            good: output.status.success(),
            out: String::from_utf8(output.stdout).unwrap(),
            log: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn run(&self, arguments: &[&str]) -> Run {
        self.run_with(b"", arguments)
    }
}

#[derive(Debug)]
struct Run {
    good: bool,
    out: String,
    log: String,
}

impl Run {
    #[track_caller]
    fn says(&self, good: bool, part: &str) {
        assert!(
            self.good == good && (self.out.contains(part) || self.log.contains(part)),
            "{self:?}"
        );
    }
}

#[test]
fn a_keystore_is_made_filled_listed_and_emptied() {
    let here = Here::new();
    here.run(&["keystore", "create"]).says(true, "Created skidder keystore");
    assert_eq!(std::fs::metadata(here.keystore()).unwrap().permissions().mode() & 0o777, 0o600);
    here.run_with(b"n\n", &["keystore", "create"]).says(true, "Exiting without creating");
    here.run_with(b"open sesame\n", &["keystore", "add", "ES_PWD", "--stdin"])
        .says(true, "Successfully updated");
    here.run_with(b"other", &["keystore", "add", "ES_PWD", "--stdin"])
        .says(false, "is in the keystore already");
    here.run_with(b"other", &["keystore", "add", "B", "--stdin"]).says(true, "Successfully");
    assert_eq!(here.run(&["keystore", "list"]).out, "B\nES_PWD\n");
    here.run(&["test", "config"]).says(true, "Config OK");
    let exported = here.run(&["export", "config"]);
    exported.says(true, "password: xxxxx");
    assert!(!exported.out.contains("sesame"), "{exported:?}");
    here.run(&["keystore", "remove", "B", "C"]).says(false, "could not find key `C`");
    assert_eq!(here.run(&["keystore", "list"]).out, "B\nES_PWD\n", "all or none");
    here.run(&["keystore", "remove", "B", "ES_PWD"]).says(true, "successfully removed key: ES_PWD");
    assert_eq!(here.run(&["keystore", "list"]).out, "");
    here.run(&["test", "config"]).says(false, "add it to the keystore");
}

#[test]
fn without_a_terminal_nothing_is_asked_for() {
    let here = Here::new();
    here.run(&["keystore", "list"]).says(true, "");
    here.run(&["keystore", "remove", "A"]).says(false, "there is no keystore");
    here.run_with(b"pw", &["keystore", "add", "A", "--stdin"]).says(false, "or use `--force`");
    here.run(&["keystore", "add", "A"]).says(false, "exiting without creating keystore");
    here.run_with(b"pw", &["keystore", "add", "A", "--stdin", "--force"]).says(true, "Success");
    here.run_with(b"y\n", &["keystore", "add", "A"]).says(false, "no terminal; use `--stdin`");
    here.run_with(b"\n", &["keystore", "add", "B", "--stdin"]).says(false, "the secret is empty");
}

#[test]
fn a_keystore_of_filebeat_is_used_as_it_is_and_can_be_added_to() {
    let here = Here::new();
    here.run(&["test", "config"]).says(false, "`${ES_PWD}`, which is not set");
    here.drop_in(OF_FILEBEAT, 0o600);
    assert_eq!(here.run(&["keystore", "list"]).out, "EMPTY\nES_PWD\nTOKEN\n");
    here.run(&["test", "config"]).says(true, "Config OK");
    here.run_with(b"x", &["keystore", "add", "MORE", "--stdin"]).says(true, "Success");
    assert_eq!(here.run(&["keystore", "list"]).out, "EMPTY\nES_PWD\nMORE\nTOKEN\n");
    // The message about a secret in the wrong place names the place only.
    here.run(&["test", "config", "-E", "max_procs=${ES_PWD}"]).says(false, "max_procs");
    let wrong = here.run(&["test", "config", "-E", "max_procs=${ES_PWD}"]);
    assert!(!wrong.log.contains("changeme"), "{wrong:?}");
}

#[test]
fn a_keystore_that_cannot_be_trusted_is_refused() {
    let here = Here::new();
    here.drop_in(OF_FILEBEAT, 0o644);
    here.run(&["test", "config"]).says(false, "chmod 600");
    here.run(&["keystore", "list"]).says(false, "chmod 600");
    here.run(&["test", "config", "--strict.perms=false"]).says(true, "Config OK");
    here.drop_in(b"v3whatever", 0o600);
    here.run(&["test", "config"]).says(false, "does not begin with `v1`");
    here.drop_in(&OF_FILEBEAT[..200], 0o600);
    here.run(&["keystore", "list"]).says(false, "it is damaged");
    // What cannot be opened can still be replaced.
    here.run(&["keystore", "create", "--force"]).says(true, "Created skidder keystore");
    assert_eq!(here.run(&["keystore", "list"]).out, "");
}

#[test]
fn the_keystore_may_be_elsewhere() {
    let here = Here::new();
    let elsewhere = ["-E", "keystore.path=secrets/store"];
    let run = |input: &[u8], what: &[&str]| here.run_with(input, &[what, &elsewhere].concat());
    run(b"pw", &["keystore", "add", "ES_PWD", "--stdin", "--force"]).says(true, "Success");
    std::fs::metadata(here.0.path().join("secrets/store")).unwrap();
    std::fs::metadata(here.keystore()).unwrap_err();
    run(b"", &["test", "config"]).says(true, "Config OK");
}

/// Settings with a secret that is wrong there, and what is said about them.
const WRONG: &[(&str, &str)] = &[
    ("encoding: '${NAME}'", "`filebeat.inputs[0].encoding` is `xxxxx`, which is no encoding"),
    ("encoding: 'x-${NAME}'", "`filebeat.inputs[0].encoding` is `xxxxx`, which is no encoding"),
    ("encoding: '${SHORT}'", "`filebeat.inputs[0].encoding` is `xxxxx`, which is no encoding"),
    (
        "exclude_lines: [x, '${PATTERN}']",
        "exclude_lines`: `xxxxx` is not a regular expression: `[` without",
    ),
    (
        "include_lines: ['^${PATTERN}']",
        "include_lines`: `xxxxx` is not a regular expression: `[` without",
    ),
    (
        "parsers: [{multiline: {type: pattern, match: after, pattern: '${PATTERN}'}}]",
        "`xxxxx` is not a regular expression: `[` without `]`",
    ),
    ("paths: ['${PLACE}']", "the `[` in `xxxxx` is not closed"),
    ("type: '${NAME}'", "input type `xxxxx` is not supported"),
    (
        "processors: [drop_event.when.regexp.message: '${PATTERN}']",
        "`xxxxx` is not a regular expression",
    ),
    ("processors: [drop_event.when.network.ip: '${NAME}']", "`xxxxx` is no network"),
    ("processors: [timestamp: {field: a, layouts: ['${NAME}']}]", "nothing is read by `xxxxx`"),
    ("processors: [script: {lang: javascript, file: '${NAME}'}]", "xxxxx"),
    (
        "processors: [replace: {fields: [{field: a, pattern: '${PATTERN}', replacement: b}]}]",
        "`xxxxx` is not a",
    ),
    ("file_identity.inode_marker.path: '/${NAME}/a'", ""),
    ("message_max_bytes: '${NAME}'", "message_max_bytes` is `xxxxx`"),
];

#[test]
fn no_message_shows_a_secret() {
    let here = Here::new();
    for (name, secret) in
        [("NAME", "KSname"), ("PATTERN", "[KSpattern"), ("PLACE", "/srv/[KSplace"), ("SHORT", "a")]
    {
        here.run_with(secret.as_bytes(), &["keystore", "add", name, "--stdin", "--force"])
            .says(true, "Success");
    }
    let directory = here.0.path().to_string_lossy();
    for (setting, expected) in WRONG {
        let mut input = vec!["type: filestream", "id: a", "paths: [/x]"];
        let key = setting.split(':').next().unwrap();
        input.retain(|other| !other.starts_with(&format!("{key}:")));
        input.push(setting);
        let input = input.join("\n  ");
        let text = format!("filebeat.inputs:\n- {input}\noutput.console: {{}}\n");
        std::fs::write(here.0.path().join("filebeat.yml"), text).unwrap();
        for command in
            [&["test", "config"][..], &["export", "config"], &["run", "--once"], &["explain"]]
        {
            let run = here.run(command);
            // The random name of the directory may contain it by chance.
            let shown = [&*run.out, &*run.log].concat().replace(&*directory, "");
            assert!(!shown.contains("KS"), "{setting}: {run:?}");
            if command[0] == "test" {
                assert!(
                    run.out.contains(expected) || run.log.contains(expected),
                    "{setting}: {run:?}"
                );
            }
        }
    }
}
