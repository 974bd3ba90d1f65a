//! The command line: exit codes, messages, and what `ship` does.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::{gzip, judge, lines};
use common::program::{Ended, Program, command};
use common::server::{Act, BulkServer};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

fn run(directory: &Path, arguments: &[&str]) -> Ended {
    Program::run(command(arguments).current_dir(directory))
}

fn configured(text: &str, arguments: &[&str]) -> Ended {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    run(directory.path(), &[&["-c", "filebeat.yml"], arguments].concat())
}

const GOOD: &str = "filebeat.inputs:\n- {type: filestream, id: a, paths: [/none/*.log]}\n\
                    output.console.enabled: true\n";

/// The messages of the events of `output.file`, in the order of the file names.
fn written(folder: &Path) -> Vec<String> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        found.extend(messages(&std::fs::read_to_string(path).unwrap()));
    }
    found
}

fn messages(text: &str) -> Vec<String> {
    let message = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["message"].as_str().unwrap().to_owned()
    };
    text.lines().map(message).collect()
}

#[test]
fn all_problems_of_a_configuration_are_told_at_once_with_their_places() {
    let text = "filebeat.inputs:\n- type: filestream\n  id: a\n  pathz: [/x]\n  \
                close.on_state_change.inactive: soon\noutput.elasticsearch:\n  hosts: [a]\n  \
                bulk_max_size: lots\n";
    for arguments in [&["test", "config"][..], &[], &["test", "output"]] {
        let ended = configured(text, arguments);
        assert_eq!(ended.code(), Some(1));
        for wanted in [
            "error: filebeat.yml:4:3: unknown setting `filebeat.inputs[0].pathz`",
            "hint: did you mean `paths`?",
            "filebeat.yml:5:35: ",
            "`soon`",
            "filebeat.yml:8:18: ",
            "`lots`",
        ] {
            assert!(ended.log.contains(wanted), "no {wanted} in:\n{}", ended.log);
        }
        assert_eq!(ended.out, "");
    }
}

#[test]
fn a_good_configuration_is_ok() {
    let found = GOOD.replace("/none/*.log", "/etc/passwd");
    let ended = configured(&found, &["test", "config"]).succeeded();
    assert_eq!((&*ended.out, &*ended.log), ("Config OK\n", ""));
}

#[test]
fn a_configuration_may_come_out_of_a_pipe() {
    for text in [GOOD.replace("/none/*.log", "/etc/passwd"), "filebeat.inputs: 5".to_owned()] {
        let directory = tempfile::tempdir().unwrap();
        let mut process = command(["test", "config", "-c", "/dev/stdin"])
            .args(["--path.data", "data"])
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        process.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let ended = process.wait_with_output().unwrap();
        let log = String::from_utf8(ended.stderr).unwrap();
        if ended.status.success() {
            assert_eq!((&*ended.stdout, &*log), (&b"Config OK\n"[..], ""));
            assert!(!text.ends_with('5'));
        } else {
            assert!(log.contains("error: /dev/stdin:1:18: "), "{log}");
            assert!(text.ends_with('5'));
        }
    }
}

#[test]
fn broken_yaml_and_a_missing_file_are_named() {
    let ended = configured("filebeat.inputs: [\n", &["test", "config"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.starts_with("error: filebeat.yml:"), "{}", ended.log);
    let directory = tempfile::tempdir().unwrap();
    let ended = run(directory.path(), &["-c", "nowhere.yml"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("nowhere.yml"), "{}", ended.log);
}

#[test]
fn what_filebeat_has_and_we_have_not_is_told_unless_leniency_is_asked_for() {
    let text = format!("{GOOD}instrumentation.enabled: true\n");
    let ended = configured(&text, &["test", "config"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("filebeat.yml:4:1: "), "{}", ended.log);
    let ended = configured(&text, &["test", "config", "-E", "compat=lenient"]).succeeded();
    assert!(ended.log.starts_with("warning: filebeat.yml:4:1: "), "{}", ended.log);
    let with = |on: bool| format!("{GOOD}management.enabled: {on}\nfeatures.fqdn.enabled: {on}\n");
    let ended = configured(&with(true), &["test", "config"]);
    for expected in ["`management.enabled` is known", "`features.fqdn.enabled` is known"] {
        assert!(ended.log.contains(expected), "{}", ended.log);
    }
    configured(&with(false), &["test", "config"]).succeeded();
}

#[test]
fn overrides_win_over_files_and_later_files_over_earlier_ones() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("one.yml", GOOD);
    write("two.yml", "name: second\ntags: [two]\n");
    let ended = run(
        directory.path(),
        &["-c", "one.yml", "-c", "two.yml", "-E", "name=third", "export", "config"],
    )
    .succeeded();
    assert!(ended.out.contains("name: third"), "{}", ended.out);
    assert!(ended.out.contains("two"), "{}", ended.out);
    assert!(!ended.out.contains("second"), "{}", ended.out);
    let arguments = ["-c", "one.yml", "-E", "nmae=x", "test", "config"];
    let ended = run(directory.path(), &arguments);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("`nmae`") && ended.log.contains("`name`"), "{}", ended.log);
}

#[test]
fn an_exported_configuration_shows_no_secret() {
    let text = "filebeat.inputs: [{type: filestream, id: a, paths: [/x]}]\n\
                output.elasticsearch: {hosts: [a], username: u, password: tell-nobody}\n";
    let ended = configured(text, &["export", "config"]).succeeded();
    assert!(!ended.out.contains("tell-nobody"), "{}", ended.out);
    // `hmac.key` does not sound like a secret, and the input is disabled; `ssl.key` may hold the PEM itself.
    let signed = "filebeat.inputs: [{type: http_endpoint, enabled: false, hmac.key: tell-nobody}]\n\
                  output.elasticsearch: {hosts: [a], username: u, ssl.key: tell-nobody}\n";
    let exported = configured(signed, &["export", "config"]).succeeded().out;
    assert!(!exported.contains("tell-nobody") && exported.contains("key: xxxxx"), "{exported}");
    assert!(ended.out.contains("username: u"), "{}", ended.out);
}

#[test]
fn a_secret_in_the_wrong_place_is_not_shown() {
    let outputs = [
        "redis: {hosts: ['redis://u:x@127.0.0.1:1/0?password=GEHEIM'], db: GEHEIM}",
        "logstash.hosts: ['127.0.0.1:1?k=GEHEIM', 'h:1#GEHEIM']",
        "elasticsearch: {hosts: ['http://a:x@h:9200#GEHEIM'], parameters: {tok: GEHEIM}}",
        "elasticsearch: {hosts: [h], foo: {bar: GEHEIM}, headers: [GEHEIM]}",
        "elasticsearch: {hosts: [h], username: [GEHEIM], parameters: [GEHEIM]}",
        "elasticsearch: {hosts: [h], username: {a: GEHEIM}}",
        "kafka: {hosts: [h], topic: t, headers: [{key: k, value: GEHEIM}]}",
        "nosuch: {tok: GEHEIM}",
        "console.enabled: true\nnosuch: {tok: GEHEIM}",
    ];
    let input = "filebeat.inputs: [{type: filestream, id: a, paths: [/none/x]}]\noutput.";
    for output in outputs {
        for arguments in
            [&["test", "config"][..], &["test", "output"], &["export", "config"], &["--once"]]
        {
            let text = format!("{input}{output}\n");
            if output.starts_with("kafka") && !arguments.contains(&"export") {
                continue;
            }
            let ended = configured(&text, arguments);
            let shown = format!("{}{}", ended.out, ended.log);
            assert!(!shown.contains("GEHEIM"), "{output}, {arguments:?}: {shown}");
            assert!(!shown.is_empty(), "{output}, {arguments:?}");
        }
    }
}

#[test]
fn an_input_is_called_as_it_is_written() {
    let text = "filebeat.inputs:\n- {type: docker, containers.ids: ['none-at-all']}\n\
                - {type: log, paths: [/none/x.log]}\noutput.console.enabled: true\n";
    let log = configured(text, &["test", "config"]).succeeded().log;
    assert!(log.contains("inputs of type `docker` run as") && !log.contains("``"), "{log}");
    assert!(log.contains("input `log`: no file matches `/none/x.log`"), "{log}");
    let place = tempfile::tempdir().unwrap();
    let log = run(place.path(), &["ship", "nosuch", "--to", "-"]).log;
    assert!(log.contains("no file matches") && !log.contains("every scan"), "{log}");
}

#[test]
fn the_version_is_told_in_both_ways() {
    for arguments in [&["version"][..], &["--version"]] {
        let ended = run(Path::new("/"), arguments).succeeded();
        assert!(ended.out.contains(env!("CARGO_PKG_VERSION")), "{}", ended.out);
        assert!(ended.out.contains("filebeat 9."), "{}", ended.out);
    }
}

#[test]
fn setup_loads_the_template_and_says_where_dashboards_are_missing() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let run = |more: &[&str]| {
        let config = place.path().join("filebeat.yml");
        run(place.path(), &[&["setup", "-c", config.to_str().unwrap()], more].concat())
    };
    // The server answers every question with 200, so that the policy is there already.
    let ended = run(&["--index-management"]).succeeded();
    assert!(
        ended.out.contains("the lifecycle policy `filebeat`: it is there already"),
        "{}",
        ended.out
    );
    assert!(ended.out.contains("the index template `filebeat-9.5.3`: loaded"), "{}", ended.out);
    let ended = run(&["--dashboards"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("copy the folder `kibana` of a Filebeat"), "{}", ended.out);
    let ended =
        run(&["-E", "output.elasticsearch.enabled=false", "-E", "output.console.enabled=true"]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("nothing to set up"), "{}", ended.log);
}

#[test]
fn once_delivers_what_is_there_and_the_ledger_adds_up() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("a.log", &lines("a", 0..2000));
    place.write("b.log.gz", &gzip(&lines("b", 0..1500)));
    let ended = place.once(&[]).succeeded();
    let ledger = ended.ledger();
    assert_eq!((ledger.read, ledger.delivered), (3500, 3500));
    let verdict = judge(&[("a", 2000), ("b", 1500)], &server.documents());
    assert_eq!(
        (verdict.missing, verdict.duplicates, verdict.reordered, verdict.altered),
        (0, 0, 0, 0)
    );
    // A second run finds nothing new.
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
    assert_eq!(server.count(), 3500);
}

#[test]
fn events_on_the_standard_output_are_alone_there() {
    let place = Place::with_output("output.console.enabled: true\n");
    place.write("a.log", &lines("a", 0..10));
    let ended = place.once(&[]).succeeded();
    assert_eq!(judge(&[("a", 10)], &messages(&ended.out)).missing, 0);
    assert_eq!(ended.ledger().delivered, 10);
}

#[test]
fn the_data_directory_serves_one_process_at_a_time() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let first = place.start(&[]);
    first.await_log("skidder is running");
    let second = place.start(&[]).end();
    assert_eq!(second.code(), Some(1));
    assert!(second.log.contains("another skidder uses the data directory"), "{}", second.log);
    assert!(second.log.contains(&*place.data().to_string_lossy()), "{}", second.log);
    first.terminate().succeeded();
    place.once(&[]).found_nothing();
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_the_others_are_delivered() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("a.log", &lines("a", 0..10));
    std::os::unix::fs::symlink("loop", place.logs().join("loop")).unwrap();
    std::fs::create_dir(place.logs().join("directory")).unwrap();
    let unreadable = place.write("gone.gz", b"\x1f\x8b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    let ended = place.once(&[]);
    assert_eq!(judge(&[("a", 10)], &server.documents()).missing, 0);
    assert!(ended.log.contains(&*unreadable.to_string_lossy()), "{}", ended.log);
}

#[test]
fn ship_delivers_plain_and_compressed_files_to_each_destination() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| {
        std::fs::write(directory.path().join(name), bytes).unwrap();
    };
    write("a.log", &lines("a", 0..500));
    write("a.log.1.gz", &gzip(&lines("b", 0..500)));
    // A file that is complete ends with its last line, also without line feed.
    let mut open = lines("c", 0..3);
    open.pop();
    write("c.log", &open);
    let logs: [(&str, usize); 3] = [("a", 500), ("b", 500), ("c", 3)];
    let perfect = |messages: &[String]| {
        let verdict = judge(&logs, messages);
        let faults = (verdict.missing, verdict.duplicates, verdict.reordered, verdict.altered);
        assert_eq!(faults, (0, 0, 0, 0));
    };

    let ship = |to: &str| run(directory.path(), &["ship", "*.log*", "--to", to]).succeeded();
    let ended = ship("-");
    perfect(&messages(&ended.out));
    assert_eq!(ended.ledger().delivered, 1003);

    let ended = ship("file:out");
    assert_eq!(ended.ledger().delivered, 1003);
    perfect(&written(&directory.path().join("out")));

    let server = BulkServer::start();
    assert_eq!(ship(&server.url).ledger().delivered, 1003);
    perfect(&server.documents());
    // No state stays behind: shipping again ships all of it again.
    ship(&server.url);
    assert_eq!(server.count(), 2 * 1003);
}

#[test]
fn ship_of_a_compressed_file_that_is_cut_off_delivers_what_is_there_and_fails() {
    let directory = tempfile::tempdir().unwrap();
    let whole = gzip(&lines("a", 0..500));
    std::fs::write(directory.path().join("a.log.gz"), &whole[..whole.len() / 2]).unwrap();
    let ended = run(directory.path(), &["ship", "*.gz", "--to", "file:out"]);
    assert_eq!(ended.code(), Some(4));
    let ledger = ended.ledger();
    assert!(ledger.delivered > 0 && ledger.delivered < 500, "{ledger:?}");
    assert!(ended.log.contains("a compressed file is cut off"), "{}", ended.log);
    assert!(ended.log.contains("! not read to its end: "), "{}", ended.log);
    let arguments = ["ship", "*.gz", "--to", "file:out", "--fail-on", "refused,nothing"];
    run(directory.path(), &arguments).succeeded();
}

#[test]
fn a_directory_that_cannot_be_listed_is_unread_beside_files_that_are_read() {
    let place = Place::with_output("");
    place.write("a.log", &lines("a", 0..7));
    let around = place.logs().join("around");
    std::os::unix::fs::symlink("around", &around).unwrap();
    place.configure(&format!(
        "filebeat.inputs: [{{type: filestream, id: a, paths: ['{0}/*.log', '{0}/around/*.log']}}]\noutput.console: ~\n",
        place.logs().display()
    ));
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(4), "{}", ended.log);
    assert_eq!(ended.out.lines().count(), 7);
    let said =
        format!("! not read to its end: {}: the directory cannot be listed: ", around.display());
    assert!(ended.log.contains(&said), "{}", ended.log);
}

#[test]
fn a_reader_of_the_events_who_leaves_ends_the_program_at_once() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.log"), lines("a", 0..50_000)).unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_skidder"))
        .current_dir(directory.path())
        .args(["ship", "a.log", "--to", "-"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(program.stdout.take());
    let ended = program.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let log = String::from_utf8_lossy(&ended.stderr);
    assert!(log.contains("! the output console has ended by itself"), "{log}");
    assert!(log.contains("the standard output: Broken pipe"), "{log}");
}

#[test]
fn ship_says_what_it_cannot_do() {
    let directory = tempfile::tempdir().unwrap();
    let table: [(&[&str], &str); 4] = [
        (&["ship", "*.log", "--to", "-"], "no file matches `*.log`"),
        (&["ship", "*.log", "--to", "ftp://x"], "`--to ftp://x` is no destination"),
        (&["ship", "*.log", "--to", "-", "--index", "x"], "`--index` is for Elasticsearch"),
        (&["ship", "*.log"], "--to"),
    ];
    for (arguments, wanted) in table {
        let ended = run(directory.path(), arguments);
        assert!(!ended.status.success(), "{arguments:?}");
        assert!(ended.log.contains(wanted), "no {wanted} in:\n{}", ended.log);
        assert_eq!(ended.out, "");
    }
}

#[test]
fn refused_events_are_in_the_dead_letters_and_ship_fails() {
    let server = BulkServer::scripted(|_| {
        Act::Items(|message| if message.contains("0000003") { 400 } else { 201 })
    });
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.log"), lines("a", 0..10)).unwrap();
    let ended = run(directory.path(), &["ship", "a.log", "--to", &server.url]);
    assert_eq!(ended.code(), Some(5));
    let ledger = ended.ledger();
    assert_eq!((ledger.delivered, ledger.dead_lettered), (9, 1));
    let place = ended.log.lines().find_map(|line| line.strip_prefix("refused events are in "));
    let letters = std::fs::read_to_string(place.unwrap()).unwrap();
    let letter: serde_json::Value = serde_json::from_str(letters.trim_end()).unwrap();
    assert_eq!((letter["status"].as_u64(), letter["offset"].as_u64()), (Some(400), Some(300)));
    assert_eq!(letter["event"]["message"], common::lines::line("a", 3));
    assert_eq!(letter["reason"]["type"].as_str().unwrap_or("scripted"), "scripted");
}

#[test]
fn refused_events_of_a_run_are_in_the_dead_letters_and_are_not_sent_again() {
    let server = BulkServer::scripted(|_| Act::Items(|_| 400));
    let place = Place::new(&server);
    place.write("a.log", &lines("a", 0..100));
    let ledger = place.once(&[]).was_refused().ledger();
    assert_eq!((ledger.dead_lettered, ledger.delivered), (100, 0));
    let letters = std::fs::read_to_string(place.data().join("dead_letters.ndjson")).unwrap();
    assert_eq!(letters.lines().count(), 100);
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0);
}

#[test]
fn refused_credentials_are_told_with_the_host() {
    let server = BulkServer::scripted(|_| Act::Status(401));
    let place = Place::new(&server);
    place.write("a.log", &lines("a", 0..10));
    let program = place.start(&[]);
    let log = program.await_log("cannot send events");
    assert!(log.contains("401") && log.contains(&server.url), "{log}");
    // The events wait until the server takes them.
    server.follow(|_| Act::Take);
    let mut program = program;
    program.await_that("all lines are there", || server.count() == 10);
    program.terminate().succeeded();
}

#[test]
fn the_output_is_tested_without_sending_an_event() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let tested = |place: &Place| {
        let config = place.path().join("filebeat.yml");
        run(place.path(), &["-c", config.to_str().unwrap(), "test", "output"])
    };
    let ended = tested(&place).succeeded();
    assert!(ended.out.contains("9.5.3"), "{}", ended.out);
    assert_eq!(server.requests(), 0);
    let place = Place::with_output("output.elasticsearch.hosts: ['http://127.0.0.1:1']\n");
    let ended = tested(&place);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.out.contains("127.0.0.1:1"), "{}", ended.out);
}

#[test]
fn shells_learn_all_commands_that_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    for (shell, command) in [("bash", "bash"), ("zsh", "zsh"), ("fish", "fish")] {
        let script = run(directory.path(), &["completion", shell]).succeeded().out;
        for word in ["deadletters", "redrive", "path.data", "registry", "completion", "modules"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
        assert!(!script.contains("validate"), "{shell} shows what is hidden");
        let file = directory.path().join(shell);
        std::fs::write(&file, &script).unwrap();
        // The shell itself reads it, where there is one.
        match std::process::Command::new(command).arg("-n").arg(&file).status() {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
        }
    }
    let fooled = run(directory.path(), &["completion", "tcsh"]);
    assert!(fooled.code() == Some(2) && fooled.log.contains("bash, zsh, fish"), "{}", fooled.log);
}

#[test]
fn every_command_that_is_shown_has_a_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man");
    std::fs::write(directory.path().join("file"), "").unwrap();
    let wrong = run(directory.path(), &["man", "file"]);
    assert!(wrong.code() == Some(1) && wrong.log.contains("cannot write pages"), "{}", wrong.log);
    run(directory.path(), &["man", "man"]).succeeded();
    let page = |name: &str| std::fs::read_to_string(pages.join(name)).unwrap();
    let first = page("skidder.1");
    assert!(first.starts_with(".ie") && first.contains(".TH skidder 1"), "{first}");
    assert!(first.contains("path.data") && first.contains("deadletters"), "{first}");
    assert!(page("skidder-deadletters-redrive.1").contains("dry\\-run"));
    let hidden = |name: &str| pages.join(name).is_file();
    assert!(!hidden("skidder-validate.1"));
    let printed = run(directory.path(), &["man"]).succeeded();
    assert_eq!(printed.out, first, "the page of the program");
}

#[test]
fn what_the_start_took_is_told_step_by_step() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.log"), lines("a", 0..10)).unwrap();
    let text =
        "filebeat.inputs:\n- {type: filestream, id: mine, paths: ['a.log']}\noutput.discard: {}\n";
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    let arguments = ["-c", "filebeat.yml", "--path.data", "data", "--once", "--trace-startup"];
    let ended = run(directory.path(), &arguments).succeeded();
    let table: Vec<&str> =
        ended.log.lines().skip_while(|line| !line.starts_with("AT MS")).take(7).collect();
    let what = [
        "WHAT",
        "configuration read",
        "data directory locked, settings checked",
        "data/registry/filebeat opened",
        "outputs and readers started",
        "endpoint opened",
        "first scan of the input `mine`: ",
    ];
    assert_eq!(table.len(), what.len(), "{}", ended.log);
    let mut before = 0.0;
    for (line, what) in table.iter().zip(what) {
        assert!(line.contains(what), "{line}");
        if let Ok(at) = line.split_whitespace().next().unwrap().parse::<f64>() {
            assert!(at >= before, "{}", ended.log);
            before = at;
        }
    }
    let quiet = run(directory.path(), &arguments[..5]).succeeded();
    assert!(!quiet.log.contains("AT MS"), "{}", quiet.log);
}

/// The settings of the file that Filebeat 9 installs, with its input turned on.
const INSTALLED: &str = "
filebeat.inputs:
- type: filestream
  id: my-filestream-id
  enabled: true
  paths: [/var/log/*.log]
filebeat.config.modules:
  path: ${path.config}/modules.d/*.yml
  reload.enabled: false
setup.template.settings:
  index.number_of_shards: 1
setup.kibana:
output.elasticsearch:
  hosts: ['localhost:9200']
processors:
  - add_host_metadata: {when.not.contains.tags: forwarded}
  - add_cloud_metadata: ~
  - add_docker_metadata: ~
  - add_kubernetes_metadata: ~
";

#[test]
fn the_configuration_that_filebeat_installs_is_taken_as_it_is() {
    let ended = configured(INSTALLED, &["test", "config"]).succeeded();
    assert_eq!((&*ended.out, &*ended.log), ("Config OK\n", ""));
}

#[test]
fn process_ends_quietly_when_its_reader_has_seen_enough() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.log"), lines("a", 0..50_000)).unwrap();
    let text = "filebeat.inputs: [{type: filestream, id: a, paths: [x]}]\noutput.console: {}\n";
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_skidder"))
        .current_dir(directory.path())
        .args(["process", "-c", "filebeat.yml", "a.log"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(program.stdout.take());
    let ended = program.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), &*String::from_utf8_lossy(&ended.stderr)), (Some(0), ""));
}

#[test]
fn what_an_input_does_not_find_is_a_warning_of_test_config_and_of_once() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::write(at("a.log.gz"), [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
    let paths = format!("['{}', '{}', '{}']", at("dir"), at("none*.log"), at("*.gz"));
    let text = format!(
        "filebeat.inputs: [{{type: filestream, id: a, paths: {paths}}}]\noutput.discard: {{}}\n"
    );
    std::fs::write(at("filebeat.yml"), text).unwrap();
    let data = at("data");
    let wanted = [
        format!("input `a`: `{}` is a directory, and a path must match files", at("dir")),
        format!("input `a`: no file matches `{}`", at("none*.log")),
        format!("input `a`: `{}` is compressed and would be read as text", at("a.log.gz")),
    ];
    let common = ["-c", "filebeat.yml", "--path.data", &data];
    let ended = run(directory.path(), &[&common[..], &["test", "config"]].concat());
    assert_eq!((ended.code(), &*ended.out), (Some(0), "Config OK\n"));
    for text in &wanted {
        assert!(ended.log.contains(&format!("warning: {text}")), "{text}: {}", ended.log);
    }
    assert!(
        ended.log.contains("did you mean `") && ended.log.contains("/dir/*.log`?"),
        "{}",
        ended.log
    );
    let ended = run(directory.path(), &[&common[..], &["--once"]].concat());
    for text in &wanted {
        assert!(ended.log.contains(&format!("- {text}\n  → ")), "{text}: {}", ended.log);
    }
    let ended = run(directory.path(), &[&common[..], &["--once", "-e"]].concat());
    for text in &wanted {
        assert!(ended.log.contains(&format!("\"message\":\"{text}")), "{text}: {}", ended.log);
    }
}

#[test]
fn settings_of_the_log_input_are_told_with_their_place_and_nothing_that_deletes_is_proposed() {
    let directory = tempfile::tempdir().unwrap();
    let text = "filebeat.inputs:\n- {type: filestream, id: a, paths: [/etc/passwd], close_inactive: 5m, json.keys_under_root: true, clse_x: 1}\n- {type: filstream}\n- {type: winlog, id: n}\n";
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    // What others call it.
    let ended = run(directory.path(), &["validate", "-c", "filebeat.yml"]);
    assert_eq!(ended.code(), Some(1));
    for wanted in [
        "`filebeat.inputs[0].close_inactive` has no effect here\nhint: of a `log` input; a `filestream` input has `close.on_state_change.inactive`",
        "`filebeat.inputs[0].json` has no effect here\nhint: of a `log` input; a `filestream` input has `parsers: [{ndjson: {…}}]`",
        "input type `filstream` is not supported by skidder yet\nhint: did you mean `filestream`?",
        "input type `winlog` is not supported by skidder yet\nhint: there is `filestream`, `log`, `container`, `docker`, `benchmark`, `http_endpoint`, `lumberjack`, `mqtt`, `netflow`, `syslog`, `tcp`, `udp`, `unix`, `stdin`, `docker_logs`, `journald`, `redis`, `aws-cloudwatch`, `aws-s3`, `azure-blob-storage`, `azure-eventhub`, `gcp-pubsub`, `gcs`, `kafka`; leave such inputs to Filebeat",
        "error: no output is enabled",
    ] {
        assert!(ended.log.contains(wanted), "{wanted}: {}", ended.log);
    }
    assert!(!ended.log.contains("clean_inactive"), "{}", ended.log);
}

#[test]
fn an_input_with_one_mistake_is_read_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let text = "filebeat.inputs:
- {type: redis, host: ['a:1']}
- {type: kafka, topics: [a], group_id: g, initial_ofset: oldest, tags: [x], fields.a.b: 1}
- {type: lumberjack, certificate: x}
- {type: sflow, host: 'a:1', nonsense: 1}
- {type: mqtt, processors: [{drop_event: {when.equals.a: b}}], topcs: [a], ssl.certificat: a, index: x}
- {type: mqtt, hosts: ['tcp://a'], topics: [a], clean_sesion: false}
- {type: kafka, hosts: [a], topics: [a], group_id: g, fetch_min: 1}
output.discard: {}
";
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    let ended = run(directory.path(), &["-c", "filebeat.yml", "test", "config"]);
    assert_eq!(ended.code(), Some(1));
    let at = |line: u32, column: u32| format!("error: filebeat.yml:{line}:{column}: ");
    let wanted = [
        at(2, 17) + "unknown setting `filebeat.inputs[0].host`\nhint: did you mean `hosts`?\n",
        at(3, 3)
            + "`filebeat.inputs[1].hosts` is missing; expected a list of brokers, as in `[\"localhost:9092\"]`\n",
        at(3, 43)
            + "unknown setting `filebeat.inputs[1].initial_ofset`\nhint: did you mean `initial_offset`?\n",
        at(4, 22)
            + "unknown setting `filebeat.inputs[2].certificate`\nhint: did you mean `ssl.certificate`?\n",
        at(5, 10)
            + "input type `sflow` is not supported by skidder yet\nhint: set `type: netflow` and `protocols: [sflow]`\n",
        at(6, 3)
            + "`filebeat.inputs[4].hosts` is missing; expected a list of brokers, as in `[\"tcp://localhost:1883\"]`\n",
        at(6, 64) + "unknown setting `filebeat.inputs[4].topcs`\nhint: did you mean `topics`?\n",
        at(6, 76)
            + "unknown setting `filebeat.inputs[4].ssl.certificat`\nhint: did you mean `certificate`?\n",
        at(7, 49)
            + "unknown setting `filebeat.inputs[5].clean_sesion`\nhint: did you mean `clean_session`?\n",
        at(8, 55)
            + "unknown setting `filebeat.inputs[6].fetch_min`\nhint: did you mean `fetch.min`?\n",
    ];
    assert_eq!(ended.log, wanted.concat());
}

#[test]
fn all_wrong_values_of_an_input_are_found_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let text = "filebeat.inputs:
- {type: tcp, line_delimiter: '', host: nowhere, ssl: {certificate: /a, key: /b}, network: x, tags: {a: b}}
- {type: syslog, protocol.tcp: {timeout: x, host: nowhere}, host: a, fields_under_root: x}
- {type: syslog, protocol.udp: {host: '', read_buffer: x}, processors: [{renam: {}}]}
- {type: unix, group: no such group, path: '', mode: x, framing: x, index: {a: b}}
- {type: lumberjack, ssl: {certificate: /a, key: /b}, listen_address: nowhere, pipeline: {a: b}}
- {type: http_endpoint, ssl: {certificate: /a, key: /b}, listen_port: x, basic_auth: true, secret.header: S, hmac.key: k, hmac.type: x, options_headers: {'a b': c}, crc: {provider: x, secret: {a: b}}, splunk_hec: {token: '', use_ack: x}, tags: {a: b}}
output.discard: {}
";
    std::fs::write(directory.path().join("filebeat.yml"), text).unwrap();
    let ended = run(directory.path(), &["-c", "filebeat.yml", "test", "config"]);
    assert_eq!(ended.code(), Some(1));
    let of_input: [&[&str]; 6] = [
        &[
            "`.line_delimiter` is empty",
            "`.host` is `nowhere`",
            "/a",
            "`.network` is",
            "`.tags` is",
        ],
        &[
            "`.protocol.tcp.timeout` is",
            "`.protocol.tcp.host` is `nowhere`",
            "unknown setting `.host`",
            "`.fields_under_root` is",
        ],
        &["`.protocol.udp.host` is empty", "`.protocol.udp.read_buffer` is", "renam"],
        &["no such group", "`.path` is empty", "`.mode` is", "`.framing` is", "`.index` is"],
        &["/a", "`.listen_address` is `nowhere`", "`.pipeline` is"],
        &[
            "/a",
            "`.listen_port` is",
            "`.basic_auth` needs a user",
            "`.secret.header` needs `.secret.value`",
            "`.hmac.key` needs `.hmac.header`",
            "`.hmac.type` is",
            "`.options_headers.a b` cannot be sent",
            "`.crc.provider` is",
            "`.crc.secret` is",
            "`.splunk_hec.token` is empty",
            "`.splunk_hec.use_ack` is",
            "`.tags` is",
        ],
    ];
    for (number, wanted) in of_input.iter().enumerate() {
        let place = format!("error: filebeat.yml:{}:", number + 2);
        let own = format!("filebeat.inputs[{number}]");
        let lines: Vec<&str> = ended.log.lines().filter(|line| line.starts_with(&place)).collect();
        for wanted in *wanted {
            let wanted = wanted.replace("`.", &format!("`{own}."));
            let found = lines.iter().any(|line| line.contains(&wanted));
            assert!(found, "{wanted}: {}", ended.log);
        }
    }
}

#[test]
fn names_that_settings_have_in_other_programs_are_known() {
    let directory = tempfile::tempdir().unwrap();
    for (settings, unknown, hint) in [
        ("kafka, topics: [t], group_id: g, brokers: [a]", "brokers", "did you mean `hosts`?"),
        (
            "kafka, topics: [t], group_id: g, bootstrap.servers: a",
            "bootstrap",
            "did you mean `hosts`?",
        ),
        ("kafka, topics: [t], hosts: [a], group: g", "group", "did you mean `group_id`?"),
        ("redis, hosts: [a], key: k", "key", "did you mean `lists` or `streams`?"),
        ("redis, path: /run/redis.sock", "path", "with `network: unix`"),
        ("mqtt, broker: a", "broker", "did you mean `hosts`?"),
        ("mqtt, hosts: [a], port: 1", "port", "it stands in `hosts`, as in"),
        ("mqtt, hosts: [a], topic: t", "topic", "did you mean `topics`?"),
        ("journald, unit: a", "unit", "did you mean `units`?"),
        ("http_endpoint, path: /a", "path", "did you mean `url`?"),
        ("http_endpoint, port: 1", "port", "did you mean `listen_port`?"),
        ("lumberjack, port: 1", "port", "it stands in `listen_address`, as in"),
        ("netflow, port: 1", "port", "it stands in `host`, as in"),
        ("tcp, port: 1", "port", "it stands in `host`, as in"),
        ("udp, port: 1", "port", "it stands in `host`, as in"),
        ("unix, socket: /a", "socket", "did you mean `path`?"),
        ("syslog, port: 1", "port", "it belongs to the protocol, as in `protocol.udp.host"),
        ("syslog, socket_mode: 1", "socket_mode", "`protocol.unix.mode`"),
        ("unix, path: /a, socket_mode: 1", "socket_mode", "did you mean `mode`?"),
        ("unix, listen: /a", "listen", "did you mean `path`?"),
        ("tcp, bind: 'a:1'", "bind", "did you mean `host`?"),
        ("udp, listen: 'a:1'", "listen", "did you mean `host`?"),
        ("lumberjack, bind: 'a:1'", "bind", "did you mean `listen_address`?"),
        ("http_endpoint, bind: a", "bind", "did you mean `listen_address`?"),
        ("netflow, versions: [v9]", "versions", "did you mean `protocols`?"),
        ("tcp, host: 'a:1', tls: true", "tls", "did you mean `ssl.enabled: true`?"),
        ("tcp, host: 'a:1', ssl_enabled: true", "ssl_enabled", "did you mean `ssl.enabled`?"),
        ("tcp, host: 'a:1', format: rfc5424", "format", "the processor `syslog` has it"),
        ("redis, hosts: [a], stream: s", "stream", "did you mean `streams`?"),
        ("mqtt, hosts: [a], max_bytes: 1", "max_bytes", "did you mean `max_message_size`?"),
        ("mqtt, hosts: [a], max_backoff: 1s", "max_backoff", "did you mean `backoff.max`?"),
        (
            "kafka, topics: [t], hosts: [a], group_id: g, password: p, sasl.user: u",
            "sasl.user",
            "did you mean `username`?",
        ),
        ("mqtt, hosts: ['ssl://a'], ssl.ca_file: /a", "ssl.ca_file", "`certificate_authorities`?"),
    ] {
        let text = format!("filebeat.inputs:\n- {{type: {settings}}}\noutput.discard: {{}}\n");
        std::fs::write(directory.path().join("filebeat.yml"), &text).unwrap();
        let ended = run(directory.path(), &["-c", "filebeat.yml", "test", "config"]);
        // What is meant is not missing, too.
        assert_eq!(ended.log.matches("error: ").count(), 1, "{text}{}", ended.log);
        let message = format!("unknown setting `filebeat.inputs[0].{unknown}`\nhint: ");
        let (_, found) = ended.log.split_once(&message).unwrap_or_else(|| panic!("{}", ended.log));
        assert!(found.lines().next().unwrap().contains(hint), "{text}{}", ended.log);
    }
}

#[test]
fn a_data_directory_that_is_a_file_says_so() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("filebeat.yml"), GOOD).unwrap();
    let ended = run(directory.path(), &["-c", "filebeat.yml", "--path.data", "filebeat.yml"]);
    assert_eq!(ended.code(), Some(1));
    assert!(
        ended.log.contains("filebeat.yml` is a file; give `--path.data` a directory"),
        "{}",
        ended.log
    );
}

#[test]
fn the_help_of_a_command_has_examples_and_the_options_of_all_commands_in_one_line() {
    let ended = run(Path::new("/"), &["help", "ship"]).succeeded();
    let other = run(Path::new("/"), &["ship", "--help"]).succeeded();
    assert_eq!(ended.out, other.out);
    assert!(ended.out.contains("Examples:\n  skidder ship "), "{}", ended.out);
    assert!(!ended.out.contains("--strict.perms"), "{}", ended.out);
    assert!(ended.out.contains("Options of every command"), "{}", ended.out);
    let ended = run(Path::new("/"), &["help", "nothing"]);
    assert!(ended.log.contains("there is no command `nothing`"), "{}", ended.log);
}
