//! Options of inputs as their events show them: the built program reads a file once and prints.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::gzip;
use common::program::{Ended, Program, command};
use common::server::BulkServer;
use serde_json::Value;
use std::os::unix::fs::MetadataExt as _;

/// A directory with a log of two lines and an input of this kind with these options.
fn place(kind: &str, options: &str, root: &str) -> Place {
    let place = Place::with_output("");
    place.write("a.log", b"one\ntwo\n");
    configure(&place, kind, options, root);
    place
}

fn configure(place: &Place, kind: &str, options: &str, root: &str) {
    let logs = place.logs().display().to_string();
    let options = options.replace("LOGS", &logs).replace('\n', "\n  ");
    place.configure(&format!(
        "filebeat.inputs:\n- type: {kind}\n  paths: ['{logs}/*.log']\n  {options}\n\
         output.console.enabled: true\nlogging.metrics.enabled: false\n{root}\n"
    ));
}

fn events(ended: &Ended) -> Vec<Value> {
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The events of a filestream input with these options.
fn of_filestream(options: &str) -> Vec<Value> {
    events(&place("filestream", &format!("id: test\n{options}"), "").once(&[]).succeeded())
}

fn messages(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["message"].as_str().unwrap()).collect()
}

#[test]
fn tags_and_fields_of_an_input_come_over_those_of_all() {
    let root = "tags: [all]\nfields: {env: test, who: all}\n";
    let options = "id: test\ntags: [mine]\nfields: {who: me, nothing: ~}";
    let all = events(&place("filestream", options, root).once(&[]).succeeded());
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["tags"], serde_json::json!(["all", "mine"]));
    assert_eq!(all[0]["fields"], serde_json::json!({"env": "test", "who": "me"}));
    let all = of_filestream("fields: {who: me}\nfields_under_root: true");
    assert_eq!((&all[0]["who"], &all[0]["fields"]), (&Value::from("me"), &Value::Null));
}

#[test]
fn compressed_files_that_are_read_as_text_are_told_with_what_to_do() {
    for (compression, is_reported) in [("", true), ("compression: auto", false)] {
        let place = Place::with_output("");
        place.write("a.gz", &gzip(b"one\ntwo\n"));
        place.write("b.gz", b"text for all its name\n");
        let logs = place.logs().display().to_string();
        place.configure(&format!(
            "filebeat.inputs: [{{type: filestream, id: test, paths: ['{logs}/*'], {compression}}}]\n\
             output.discard: {{}}\n"
        ));
        let log = place.once(&[]).succeeded().log;
        let about = |name: &str| {
            log.lines().any(|line| line.contains(name) && line.contains("`compression: auto`"))
        };
        assert_eq!((about("a.gz"), about("b.gz")), (is_reported, false), "{log}");
    }
}

#[test]
fn pipeline_and_index_go_to_the_metadata() {
    let all = of_filestream("pipeline: Mine\nindex: 'logs-%{[agent.version]}'");
    assert_eq!(all[0]["@metadata"]["pipeline"], "Mine");
    assert_eq!(all[0]["@metadata"]["raw_index"], "logs-9.5.3");
    let all = of_filestream("index: 'logs-%{+yyyy.MM.dd}'");
    for event in &all {
        let date = event["@timestamp"].as_str().unwrap()[..10].replace('-', ".");
        assert_eq!(event["@metadata"]["raw_index"], format!("logs-{date}"));
    }
    let place = place("filestream", "id: test\nindex: '%{[message]}'", "");
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("filebeat.yml:5:"), "{}", ended.log);
}

#[test]
fn the_host_can_be_left_out_and_a_service_named() {
    let all = of_filestream("");
    assert!(all[0]["host"]["name"].is_string());
    assert_eq!(all[0]["input"]["type"], "filestream");
    let all = of_filestream("publisher_pipeline.disable_host: true\nservice.type: nginx");
    assert_eq!(
        (&all[0]["host"], &all[0]["service"]["type"]),
        (&Value::Null, &Value::from("nginx"))
    );
}

#[test]
fn processors_of_an_input_run_on_its_events() {
    let all = of_filestream("processors: [{drop_event: {when.equals.message: one}}]");
    assert_eq!(messages(&all), ["two"]);
}

#[test]
fn a_disabled_input_is_not_read_whatever_it_holds() {
    let options = "id: test\nenabled: false\nnonsense: 1";
    let place = place("filestream", options, "");
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("no input is enabled"), "{}", ended.log);
}

#[test]
fn the_file_is_on_its_events_as_it_is_asked_for() {
    let place = place(
        "filestream",
        "id: test\ninclude_file_owner_name: true\ninclude_file_owner_group_name: true",
        "",
    );
    let meta = std::fs::metadata(place.logs().join("a.log")).unwrap();
    let all = events(&place.once(&[]).succeeded());
    let file = &all[0]["log"]["file"];
    assert_eq!(file["inode"], meta.ino().to_string());
    let user = skidder_os::user_name(meta.uid()).unwrap();
    let group = skidder_os::group_name(meta.gid()).unwrap();
    assert_eq!(file["owner"].as_str(), user.as_deref());
    assert_eq!(file["group"].as_str(), group.as_deref());
    assert!(file["fingerprint"].is_null(), "the file is too short for a whole one");
    let long = vec![b'x'; 2000];
    let with = |options: &str| {
        place.write("a.log", &[&long[..], b"\n"].concat());
        configure(&place, "filestream", options, "");
        let all = events(&place.once(&[]).succeeded());
        all[0]["log"]["file"]["fingerprint"].clone()
    };
    assert_eq!(with("id: b").as_str().map(str::len), Some(64));
    assert!(with("id: c\ninclude_file_fingerprint: false").is_null());
    assert!(with("id: d\nfile_identity.native: ~").is_null());
    let both = "id: e\nfile_identity.native: ~\nprospector.scanner.fingerprint.enabled: true";
    assert!(with(both).is_string());
}

#[test]
fn an_input_that_takes_over_goes_on_and_says_so() {
    let place = place("filestream", "id: old", "");
    assert_eq!(messages(&events(&place.once(&[]).succeeded())), ["one", "two"]);
    place.write("a.log", b"one\ntwo\nthree\n");
    configure(&place, "filestream", "id: new\ntake_over: {enabled: true, from_ids: [old]}", "");
    let all = events(&place.once(&[]).succeeded());
    assert_eq!(messages(&all), ["three"]);
    assert_eq!(all[0]["tags"], serde_json::json!(["take_over"]));
}

#[test]
fn inputs_with_one_id_read_a_file_once() {
    let place = Place::with_output("");
    place.write("a.log", b"one\ntwo\n");
    place.write("b.log", b"three\n");
    let logs = place.logs().display().to_string();
    let input = |pattern: &str, more: &str| {
        format!("- type: filestream\n  id: same\n  paths: ['{logs}/{pattern}']\n  {more}\n")
    };
    let text = |more: &str| {
        let inputs = [input("*.log", ""), input("a.*", more)].concat();
        format!("filebeat.inputs:\n{inputs}output.console.enabled: true\n")
    };
    place.configure(&text(""));
    let ended = place.once(&[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("two inputs have the id `same`"), "{}", ended.log);
    place.configure(&text("allow_deprecated_id_duplication: true"));
    let all = events(&place.once(&[]).succeeded());
    let mut all = messages(&all);
    all.sort_unstable();
    assert_eq!(all, ["one", "three", "two"]);
}

#[test]
fn a_log_input_reads_on_after_a_restart_and_can_be_taken_over() {
    let options = "allow_deprecated_use: true\nclose_eof: true";
    let place = place("log", options, "");
    let all = events(&place.once(&[]).succeeded());
    assert_eq!(messages(&all), ["one", "two"]);
    assert_eq!(all[0]["input"]["type"], "log");
    let append = |text: &str| {
        use std::io::Write as _;
        let path = place.logs().join("a.log");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    append("three\n");
    assert_eq!(messages(&events(&place.once(&[]).succeeded())), ["three"]);
    append("four\n");
    configure(&place, "filestream", "id: new\ntake_over: true", "");
    assert_eq!(messages(&events(&place.once(&[]).succeeded())), ["four"]);
}

#[test]
fn files_are_deleted_by_a_running_program_and_nothing_of_them_is_lost() {
    let place = Place::with_output("");
    let options = "id: test\ndelete: {enabled: true, grace_period: 50ms}\nclose.reader.on_eof: true\n\
                   prospector.scanner.check_interval: 20ms";
    configure(&place, "filestream", options, "");
    let text: String =
        (0..500).fold(String::new(), |text, number| text + &format!("line {number}\n"));
    let path = place.write("a.log", text.as_bytes());
    let mut program = place.start(&[]);
    program.await_that("the file is deleted", || {
        std::fs::metadata(&path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
    });
    let ended = program.terminate().succeeded();
    assert_eq!(events(&ended).len(), 500);
}

#[test]
fn what_is_open_is_read_to_its_end_at_a_stop() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    let logs = place.logs().display().to_string();
    // The stop comes at once behind what is written, and long before the next look at the file.
    place.configure(&format!(
        "filebeat.inputs:\n- type: filestream\n  id: test\n  paths: ['{logs}/*.log']\n  \
         prospector.scanner.check_interval: 1h\n  backoff: {{init: 1h, max: 1h}}\n  \
         read_until_eof.enabled: true\nfilebeat.shutdown_timeout: 20s\n\
         queue.mem: {{flush.timeout: 10ms}}\nlogging.metrics.enabled: false\n\
         output.elasticsearch.hosts: ['{}']\n",
        server.url
    ));
    let path = place.write("a.log", b"one\n");
    let mut program = place.start(&[]);
    program.await_that("the first line has arrived", || server.documents() == ["one"]);
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(b"two\n").unwrap();
    program.terminate().succeeded();
    assert_eq!(server.documents(), ["one", "two"]);
}

/// Runs `test config` on a configuration: whether it may start, and the messages.
fn judged(text: &str) -> (bool, String) {
    let place = Place::with_output("");
    place.configure(text);
    let ended = place.run(&["test", "config"]);
    (ended.code() == Some(0), ended.log)
}

const OUTPUT: &str = "output.elasticsearch.hosts: [localhost:9200]\n";

#[test]
fn a_configuration_whose_inputs_may_come_is_fine_without_one() {
    for files in [
        "filebeat.config.inputs: {path: '${path.config}/none/*.yml'}",
        "filebeat.config.inputs: {path: '${path.config}/none/*.yml', reload.enabled: true}",
        "filebeat.config.modules.path: '${path.config}/modules.d/*.yml'",
        "filebeat.config.modules.path: a/*.yml\n\
         filebeat.inputs: [{type: filestream, id: a, enabled: false, paths: [/var/log/*.log]}]",
        "compat: lenient\nfilebeat.modules: [{module: nginx, access.enabled: true}]",
    ] {
        let (is_good, log) = judged(&format!("{files}\n{OUTPUT}"));
        assert!(is_good && log.contains("nothing is read for now"), "{files}: {log}");
    }
    for files in ["filebeat.config.inputs: {enabled: false, path: a/*.yml}", "filebeat.inputs: []"]
    {
        let (is_good, log) = judged(&format!("{files}\n{OUTPUT}"));
        assert!(!is_good, "{files}: {log}");
    }
    let discovered = "filebeat.autodiscover.providers: [{type: docker, hints.enabled: true}]";
    let (is_good, log) = judged(&format!("{discovered}\n{OUTPUT}"));
    assert!(is_good && log.is_empty(), "there is nothing to warn of: {log}");
    // It runs until it is stopped.
    let place = Place::with_output("");
    place.configure(
        "filebeat.config.inputs: {path: 'none/*.yml'}\noutput.console.enabled: true\n\
         logging.metrics.period: 100ms\n",
    );
    let running = place.start(&[]);
    running.await_log("Non-zero metrics");
    running.terminate().succeeded();
    let ended = place.once(&[]);
    assert!(ended.code() == Some(1) && ended.log.contains("nothing to wait for"), "{}", ended.log);
}

#[test]
fn mistakes_in_templates_are_found_before_a_container_comes() {
    let provider = "filebeat.autodiscover.providers:\n- type: docker\n";
    let template = |config: &str| format!("{provider}  templates:\n  - config:\n    - {config}\n");
    let log = "/var/log/${data.container.id}.log";
    let hints = format!(
        "{provider}  hints.enabled: true\n  hints.default_config:\n    type: filestream\n    id: x\n    paths: ['{log}']\n"
    );
    let at = "filebeat.autodiscover.providers[0].";
    for (text, expected) in [
        (
            template("{type: filestraem, paths: [/x]}"),
            vec![
                "filebeat.yml:5:14: ",
                "input type `filestraem` is not supported",
                "did you mean `filestream`?",
            ],
        ),
        (
            template(&format!(
                "{{type: filestream, id: 'a-${{data.container.id}}', paths: ['{log}'], exclude_line: [a]}}"
            )),
            vec![
                "filebeat.yml:5:",
                "unknown setting `filebeat.autodiscover.providers[0].templates[0].config[0].exclude_line`",
                "did you mean `exclude_lines`?",
            ],
        ),
        (
            template(
                "{type: filestream, id: a, paths: [/x], close.on_state_change.inactive: soon}",
            ),
            vec!["config[0].close.on_state_change.inactive` is `soon`"],
        ),
        (
            template("{type: filestream, id: a, paths: [/x], processors: [{drop_evnt: ~}]}"),
            vec!["filebeat.yml:5:", "drop_evnt"],
        ),
        (
            template(
                "{type: filestream, id: a, paths: [/x], fields.region: '${NO_SUCH_VARIABLE}'}",
            ),
            vec!["NO_SUCH_VARIABLE"],
        ),
        (
            format!(
                "{provider}  templates:\n  - condition.equal.docker.container.name: a\n    config: [{{type: filestream, id: a, paths: [/x]}}]\n"
            ),
            vec!["filebeat.yml:4:", "equal"],
        ),
        (
            format!("{hints}    exclude_line: [a]\n"),
            vec!["filebeat.yml:8:", "hints.default_config.exclude_line"],
        ),
        (
            format!(
                "{hints}  appenders:\n  - {{type: config, config: {{fields_under_rot: true}}}}\n"
            ),
            vec!["filebeat.yml:9:", "appenders[0].config.fields_under_rot`", "`fields_under_root`"],
        ),
    ] {
        let (is_good, log) = judged(&format!("{text}{OUTPUT}"));
        assert!(!is_good, "{text}: {log}");
        for part in expected {
            assert!(log.contains(part), "{part} is not in {log}");
        }
        assert!(!text.contains("hints") || log.contains(at), "{log}");
    }
    // What only a container knows may be right.
    let unknown = "{type: filestream, id: '${data.container.id}', paths: ['${data.x}'], enabled: '${data.a}', \
        close.reader.after_interval: '${data.b}', parsers: [{multiline: {type: '${data.t}'}}], \
        processors: '${data.kubernetes.annotations.processors}', fields.s: '${kubernetes.ns.secret.key}'}";
    for text in [
        template(unknown),
        template("{type: '${data.type}', no_such_setting: 1}"),
        template(
            "{type: filestream, id: same, paths: [/x]}\n    - {type: filestream, id: same, paths: [/y]}",
        ),
        format!("{hints}  appenders:\n  - {{type: config, config: {{tags: ['${{data.x}}']}}}}\n"),
    ] {
        let (is_good, log) = judged(&format!("{text}{OUTPUT}"));
        assert!(is_good && log.is_empty(), "{text}: {log}");
    }
    // A typo next to what is not known is found all the same.
    let (is_good, log) = judged(&format!(
        "{}{OUTPUT}",
        template(
            "{type: filestream, id: a, paths: ['${data.x}'], enabled: '${data.a}', exclude_line: [a]}"
        )
    ));
    assert!(!is_good && log.contains("exclude_line"), "{log}");
    let lenient = template("{type: filestream, id: a, paths: [/x], exclude_line: [a]}");
    let (is_good, log) = judged(&format!("compat: lenient\n{lenient}{OUTPUT}"));
    assert!(is_good && log.contains("exclude_line"), "{log}");
}

#[test]
fn a_lenient_configuration_runs_its_inputs_and_says_which_modules_are_missing() {
    let place = place("filestream", "id: test", "compat: lenient");
    let config = place.path().join("filebeat.yml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::create_dir(place.path().join("modules.d")).unwrap();
    std::fs::write(
        place.path().join("modules.d/nginx.yml"),
        "- module: nginx\n  access: {enabled: true}\n",
    )
    .unwrap();
    place.configure(&format!(
        "{text}filebeat.config.modules.path: '{}/modules.d/*.yml'\n\
         filebeat.autodiscover.providers: [{{type: aws_ec2}}, {{type: docker, hints.enabled: true}}]\n",
        place.path().display()
    ));
    let ended = place.once(&[]).succeeded();
    assert_eq!(messages(&events(&ended)), ["one", "two"]);
    for missing in
        ["modules are on, but none of", "the autodiscover provider `aws_ec2` is known to Filebeat"]
    {
        assert!(ended.log.contains(missing), "no {missing}: {}", ended.log);
    }
}

#[test]
fn deprecated_inputs_run_and_one_notice_names_the_modern_form() {
    let inputs = "filebeat.inputs:\n\
        - {type: log, paths: [/var/log/a.log]}\n\
        - {type: log, paths: [/var/log/b.log]}\n\
        - {type: log, paths: [/var/log/b.log], allow_deprecated_use: true}\n";
    let (is_good, log) = judged(&format!("{inputs}{OUTPUT}"));
    assert!(is_good, "{log}");
    assert_eq!(log.matches("run as `filestream` does").count(), 1, "{log}");
    assert!(log.contains("`skidder migrate` writes the modern form"), "{log}");
    let docker =
        "filebeat.inputs: [{type: docker, containers.ids: ['*'], combine_partial: true}]\n";
    let (is_good, log) = judged(&format!("{docker}{OUTPUT}"));
    assert!(is_good && log.contains("records that were cut are joined"), "{log}");
}

#[test]
fn a_docker_input_reads_the_records_of_the_containers_with_its_ids() {
    let place = Place::with_output("");
    for (id, stream) in [("one", "stdout"), ("one", "stderr"), ("two", "stdout")] {
        let folder = place.path().join("containers").join(id);
        std::fs::create_dir_all(&folder).unwrap();
        let line = format!(
            "{{\"log\":\"{id} {stream}\\n\",\"stream\":\"{stream}\",\"time\":\"2024-01-01T00:00:00Z\"}}\n"
        );
        let path = folder.join("json.log");
        let before = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::write(&path, before + &line).unwrap();
    }
    place.configure(&format!(
        "filebeat.inputs: [{{type: docker, containers: {{ids: [one], path: '{}', stream: stdout}}}}]\n\
         output.console.enabled: true\n",
        place.path().join("containers").display()
    ));
    let all = events(&place.once(&[]).succeeded());
    assert_eq!(messages(&all), ["one stdout"]);
    // As with Filebeat, only a `filestream` input says which inode it read.
    let names: Vec<&String> = all[0]["log"]["file"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["path"]);
}

#[test]
fn empty_texts_of_unset_variables_are_not_set() {
    let es = "username password api_key protocol proxy_url path preset ssl.certificate ssl.key \
              ssl.verification_mode ssl.ca_trusted_fingerprint ssl.ca_sha256 index pipeline";
    let root = "cloud.id cloud.auth name http.host timestamp.precision setup.ilm.enabled \
                logging.level filebeat.config.inputs.path filebeat.config.modules.path";
    let input = "filebeat.inputs: [{type: filestream, id: a, paths: [/var/log/a.log]}]\n";
    let mut text = format!("{input}{OUTPUT}");
    for key in es.split_whitespace() {
        text.push_str(&format!("output.elasticsearch.{key}: ${{SKIDDER_TEST_UNSET:}}\n"));
    }
    for key in root.split_whitespace() {
        text.push_str(&format!("{key}: ${{SKIDDER_TEST_UNSET:}}\n"));
    }
    let (is_good, log) = judged(&text);
    assert!(is_good, "{log}");
    // What must be there is missing.
    let (is_good, log) = judged(&format!("{input}output.file.path: ''\n"));
    assert!(!is_good && log.contains("`output.file.path` is missing"), "{log}");
    let (is_good, log) = judged(&format!("{input}{OUTPUT}output.elasticsearch.timeout: ''\n"));
    assert!(!is_good && log.contains("expected"), "{log}");
}

#[test]
fn what_people_have_and_does_nothing_is_a_notice_and_a_typo_is_an_error() {
    let input = "filebeat.inputs: [{type: filestream, id: a, paths: [/var/log/a.log], json.keys_under_root: true}]\n\
                 processors: [{add_kubernetes_metadata: {host: node1}}]\n\
                 setup: {kibana.host: localhost, dashboards.beat: filebeat}\nxpack.monitoring.enabled: true\n";
    let (is_good, log) = judged(&format!("{input}{OUTPUT}"));
    assert!(is_good, "{log}");
    for expected in [
        "`filebeat.inputs[0].json` has no effect here",
        "`parsers: [{ndjson: {…}}]`",
        "`processors[0].add_kubernetes_metadata.host` has no effect",
        "`setup.dashboards.beat` has no effect here",
        "`xpack` has no effect here",
    ] {
        assert!(log.contains(expected), "no {expected}: {log}");
    }
    let (is_good, log) = judged(&format!("{input}{OUTPUT}output.elasticsearch.user: a\n"));
    assert!(!is_good && log.starts_with("error: "), "{log}");
    assert!(!log.starts_with("error: warning"), "{log}");
}

#[test]
fn a_missing_certificate_authority_is_found_by_test_config_with_http_hosts_too() {
    let input = "filebeat.inputs: [{type: filestream, id: a, paths: [/var/log/a.log]}]\n";
    let text = format!("{input}output.elasticsearch: {{hosts: ['http://localhost:9200'], ");
    let (is_good, log) = judged(&format!("{text}ssl.certificate_authorities: [/none/ca.crt]}}\n"));
    assert!(!is_good && log.contains("/none/ca.crt"), "{log}");
    let off = "ssl: {enabled: false, certificate_authorities: [/none/ca.crt]}}";
    assert!(judged(&format!("{text}{off}\n")).0);
}

#[test]
fn a_relative_configuration_is_looked_for_where_the_command_line_says_and_nowhere_else() {
    let place = place("filestream", "id: test", "");
    std::fs::create_dir(place.path().join("home")).unwrap();
    let ended = Program::run(
        command(["test", "config", "-c", "filebeat.yml", "--path.home", "home"])
            .current_dir(place.path()),
    );
    assert_eq!(ended.code(), Some(1));
    assert!(ended.log.contains("there is no such file in `home`"), "{}", ended.log);
    std::fs::copy(place.path().join("filebeat.yml"), place.path().join("home/filebeat.yml"))
        .unwrap();
    Program::run(
        command(["test", "config", "-c", "filebeat.yml", "--path.home", "home"])
            .current_dir(place.path()),
    )
    .succeeded();
}
