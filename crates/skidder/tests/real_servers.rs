//! An ordinary configuration against Elasticsearch and OpenSearch themselves.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::{Log, Verdict, gzip, judge, lines};
use common::program::{Program, command, patiently};
use common::{Place, accept};
use serde_json::{Value, json};
use skidder_testkit::servers::{Server, USER, unique_name};

/// `output.elasticsearch` with more settings, each on a line of its own.
fn output(server: &Server, index: &str, more: &[&str]) -> String {
    let mut text = format!(
        "output.elasticsearch:\n  hosts: ['{}']\n  index: {index}\n  backoff: {{init: 20ms, max: 200ms}}\n",
        server.url()
    );
    for line in more {
        text.push_str(&format!("  {line}\n"));
    }
    text
}

fn documents(server: &Server, index: &str) -> Vec<Value> {
    server.search(index, &json!({ "match_all": {} })).unwrap()
}

fn judged(server: &Server, index: &str, logs: &[(&str, usize)]) -> Verdict {
    let message = |document: Value| document["message"].as_str().unwrap().to_owned();
    judge(logs, &documents(server, index).into_iter().map(message).collect::<Vec<_>>())
}

const LOGS: [(&str, usize); 2] = [("a", 5000), ("b", 4000)];

fn write_logs(place: &Place) {
    place.write("a.log", &lines("a", 0..5000));
    place.write("b.log.1.gz", &gzip(&lines("b", 0..4000)));
}

fn delivers(server: &Server, name: &str) {
    for more in [&[][..], &["compression_level: 0", "workers: 3", "preset: throughput"]] {
        let index = unique_name("delivered");
        let place = Place::with_output(&output(server, &index, more));
        write_logs(&place);
        let ledger = place.once(&[]).succeeded().ledger();
        assert_eq!((ledger.read, ledger.delivered), (9000, 9000));
        assert_eq!(server.count(&index).unwrap(), 9000);
        accept(&format!("{name}, plain and gzip {more:?}"), judged(server, &index, &LOGS), 0);
        let document = documents(server, &index).swap_remove(0);
        assert_eq!(document["agent"]["type"], "filebeat");
        assert!(document["log"]["file"]["path"].is_string(), "{document}");
        assert!(document["log"]["offset"].is_u64(), "{document}");
        assert!(document["@timestamp"].is_string(), "{document}");
        assert!(document["@metadata"].is_null(), "{document}");
    }
}

/// Events that the mapping refuses are in the dead letters, all others in the index.
fn keeps_what_the_mapping_refuses(server: &Server) {
    let index = unique_name("mapped");
    let mapping = json!({ "mappings": { "properties": { "message": { "type": "long" } } } });
    server.put(&format!("/{index}"), &mapping).unwrap();
    let place = Place::with_output(&output(server, &index, &[]));
    let line = |number: usize| match number % 3 {
        0 => format!("no number {number}\n"),
        _ => format!("{number}\n"),
    };
    place.write("a.log", (0..300).map(line).collect::<String>().as_bytes());
    let ended = place.once(&[]).was_refused();
    let ledger = ended.ledger();
    assert_eq!((ledger.delivered, ledger.dead_lettered), (200, 100));
    assert_eq!(server.count(&index).unwrap(), 200);
    let letters = std::fs::read_to_string(place.data().join("dead_letters.ndjson")).unwrap();
    assert_eq!(letters.lines().count(), 100);
    for letter in letters.lines() {
        let letter: Value = serde_json::from_str(letter).unwrap();
        assert_eq!(letter["status"], 400);
        assert!(letter["event"]["message"].as_str().unwrap().starts_with("no number"), "{letter}");
        assert!(letter["reason"].to_string().contains("parsing"), "{letter}");
    }
    assert!(!ended.log.contains("no number"), "events are quoted in the log: {}", ended.log);
}

/// Documents with an id that is there already count as delivered.
fn takes_known_ids_as_delivered(server: &Server) {
    let index = unique_name("known");
    let processors = "processors: [{add_fields: {target: '@metadata', fields: {_id: same}}}]\n";
    let place = Place::with_output(&format!("{}{processors}", output(server, &index, &[])));
    place.write("a.log", &lines("a", 0..50));
    let ended = place.once(&[]).succeeded();
    assert_eq!((ended.ledger().delivered, server.count(&index).unwrap()), (50, 1));
    assert!(ended.log.contains("\"duplicates\":49"), "{}", ended.log);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn elasticsearch_gets_everything() {
    let server = Server::elasticsearch().unwrap();
    delivers(&server, "Elasticsearch");
    keeps_what_the_mapping_refuses(&server);
    takes_known_ids_as_delivered(&server);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn opensearch_gets_everything() {
    let server = Server::opensearch().unwrap();
    delivers(&server, "OpenSearch");
    keeps_what_the_mapping_refuses(&server);
    takes_known_ids_as_delivered(&server);
}

/// `monitoring` without hosts of its own: the numbers go where the events go.
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn elasticsearch_gets_the_numbers_of_a_run() {
    let server = Server::elasticsearch().unwrap();
    let (index, name) = (unique_name("monitored"), unique_name("shipper"));
    let place = Place::with_output(&format!(
        "{}name: {name}\nmonitoring: {{enabled: true, elasticsearch: {{metrics.period: 100ms, state.period: 100ms}}}}\n",
        output(&server, &index, &[])
    ));
    write_logs(&place);
    let program = place.start(&[]);
    let of_type = |kind: &str| {
        let query = json!({ "match_phrase": { (format!("{kind}.beat.name")): name } });
        server.refresh(".monitoring-beats-7-*").ok()?;
        server.search(".monitoring-beats-7-*", &query).ok()?.pop()
    };
    let numbers = patiently("the numbers in Elasticsearch", || of_type("beats_stats"));
    let state = patiently("the state in Elasticsearch", || of_type("beats_state"));
    program.terminate().succeeded();
    let uuid = server.get("/").unwrap()["cluster_uuid"].clone();
    assert_eq!((&numbers["cluster_uuid"], &state["cluster_uuid"]), (&uuid, &uuid));
    assert!(numbers["beats_stats"]["metrics"]["libbeat"].is_object(), "{numbers}");
    assert_eq!(state["beats_state"]["state"]["output"]["name"], "elasticsearch");
}

/// `skidder setup`, and then a run that finds what it made.
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn elasticsearch_is_set_up_by_the_command() {
    let server = Server::elasticsearch().unwrap();
    let name = unique_name("command");
    let setup = format!(
        "setup: {{template: {{name: {name}, pattern: {name}}}, ilm: {{policy_name: {name}}}}}\n"
    );
    let place = Place::with_output(&format!("{}{setup}", output(&server, &name, &[])));
    let config = place.path().join("filebeat.yml");
    let said =
        Program::run(&mut command(["setup", "-c", config.to_str().unwrap()])).succeeded().out;
    assert!(said.contains(&format!("the lifecycle policy `{name}`: loaded")), "{said}");
    assert!(said.contains(&format!("the index template `{name}`")), "{said}");
    write_logs(&place);
    place.once(&[]).succeeded();
    accept("setup", judged(&server, &name, &LOGS), 0);
    let explained = server.get(&format!("/{name}/_ilm/explain")).unwrap();
    let indices: Vec<_> = explained["indices"].as_object().unwrap().values().collect();
    let found = indices.iter().map(|index| (&index["managed"], &index["policy"]));
    assert_eq!(found.collect::<Vec<_>>(), [(&json!(true), &json!(name))]);
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn files_are_shipped_without_a_configuration() {
    for server in [Server::elasticsearch().unwrap(), Server::opensearch().unwrap()] {
        let index = unique_name("shipped");
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.log"), lines("a", 0..5000)).unwrap();
        std::fs::write(directory.path().join("b.gz"), gzip(&lines("b", 0..4000))).unwrap();
        let arguments = ["ship", "a.log", "b.gz", "--to", server.url(), "--index", &index];
        Program::run(command(arguments).current_dir(directory.path())).succeeded();
        accept("ship", judged(&server, &index, &LOGS), 0);
    }
}

/// Sizes are tried in an index that is gone afterwards; nothing goes to the configured one.
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn sizes_are_tried_and_nothing_is_left_behind() {
    for server in [Server::elasticsearch().unwrap(), Server::opensearch().unwrap()] {
        let index = unique_name("tuned");
        let place = Place::with_output(&output(&server, &index, &["pipeline: not-there"]));
        place.write("sample.log", &lines("s", 0..2000));
        let sample = place.logs().join("sample.log");
        let mut tune =
            command(["tune", "-c", "filebeat.yml", "--seconds", "2", "--workers", "1,2"]);
        tune.args(["--events", "200,1000", "--levels", "1", "--html", "plot.html", "--sample"]);
        let ended = Program::run(tune.arg(sample).current_dir(place.path()));
        assert_eq!(ended.code(), Some(0), "{ended:?}");
        let rows = ended.out.lines().skip(1).take_while(|line| !line.is_empty());
        let rates: Vec<f64> =
            rows.map(|row| row.split_whitespace().nth(3).unwrap().parse().unwrap()).collect();
        assert!(rates.len() == 4 && rates.iter().all(|rate| *rate > 0.0), "{ended:?}");
        assert!(ended.out.contains("\nworker: "), "{ended:?}");
        let left = server.get("/_cat/indices/skidder-tune-*?format=json").unwrap();
        assert_eq!(left, json!([]));
        let missing = server.request("GET", &format!("/{index}"), None).unwrap();
        assert_eq!(missing.status, 404);
    }
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn the_secure_server_gets_everything_with_an_api_key_and_with_a_password() {
    let server = Server::elasticsearch_secure().unwrap();
    let authority = server.certificate("ca.crt").unwrap();
    let authority = format!("ssl.certificate_authorities: ['{}']", authority.display());
    let key = server.post("/_security/api_key", &json!({ "name": unique_name("key") })).unwrap();
    let key = format!("{}:{}", key["id"].as_str().unwrap(), key["api_key"].as_str().unwrap());
    let password = format!("password: {}", USER.1);
    let (key, user) = (format!("api_key: '{key}'"), format!("username: {}", USER.0));
    for credentials in [&[&*key][..], &[&user, &password]] {
        let index = unique_name("secure");
        let more = [&[&*authority][..], credentials].concat();
        let place = Place::with_output(&output(&server, &index, &more));
        write_logs(&place);
        let ended = place.once(&[]).succeeded();
        assert!(!ended.log.contains(USER.1), "a secret is in the log");
        accept("Elasticsearch with security", judged(&server, &index, &LOGS), 0);
    }
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_wrong_password_is_told_and_nothing_is_lost() {
    let server = Server::elasticsearch_secure().unwrap();
    let authority = server.certificate("ca.crt").unwrap();
    let authority = format!("ssl.certificate_authorities: ['{}']", authority.display());
    let index = unique_name("refused");
    let user = format!("username: {}", USER.0);
    let more = [&*authority, &user, "password: wrong-one"];
    let place = Place::with_output(&output(&server, &index, &more));
    write_logs(&place);
    let program = place.start(&["-E", "filebeat.shutdown_timeout=100ms"]);
    let line = program.await_log("\"log.level\":\"error\"");
    assert!(line.contains("401") && line.contains("localhost"), "{line}");
    let ended = program.terminate().succeeded();
    assert_eq!(ended.ledger().delivered, 0);
    assert!(!ended.log.contains("wrong-one"), "a secret is in the log");
    let right = format!("output.elasticsearch.password={}", USER.1);
    place.once(&["-E", &right]).succeeded();
    accept("wrong password, then the right one", judged(&server, &index, &LOGS), 0);
    // A server with an untrusted certificate gets no request.
    let place = Place::with_output(&output(&server, &index, &[&user, "password: secret"]));
    write_logs(&place);
    let program = place.start(&["-E", "filebeat.shutdown_timeout=100ms"]);
    let line = program.await_log("\"log.level\":\"error\"");
    assert!(line.contains("certificate"), "{line}");
    program.terminate();
}

#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn a_server_that_takes_only_small_requests_and_goes_away_gets_everything() {
    let server = Server::own_elasticsearch("http.max_content_length=64kb").unwrap();
    let index = unique_name("small");
    let place = Place::with_output(&output(&server, &index, &["compression_level: 0"]));
    // The queue of the place is small; make requests that are too large for the server.
    let queue = ["-E", "queue.mem.events=3200", "-E", "queue.mem.flush.min_events=1600"];
    write_logs(&place);
    let ended = place.once(&queue).succeeded();
    assert!(!ended.log.contains("\"batches\":{\"split\":0}"), "nothing was cut: {}", ended.log);
    accept("http.max_content_length: 64kb", judged(&server, &index, &LOGS), 0);

    let index = unique_name("away");
    let place = Place::with_output(&output(&server, &index, &[]));
    write_logs(&place);
    let mut program = place.start(&[]);
    program.await_that("some lines are there", || {
        server.request("GET", &format!("/{index}/_count"), None).unwrap().status == 200
    });
    let mut log = Log::create(&place.logs(), "c");
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.stop());
        while !stopping.is_finished() && log.next < 400 {
            log.append(5);
            // It may be gone already; the question only takes a moment of its time.
            drop(server.request("GET", "/", None));
        }
        stopping.join().unwrap().unwrap();
    });
    log.append(500 - log.next);
    program.await_log("cannot send events");
    server.start_again().unwrap();
    // With all that may come twice, no more than one search finds.
    let logs = [LOGS[0], LOGS[1], ("c", 500)];
    program.await_that("every line is there", || judged(&server, &index, &logs).missing == 0);
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("are delivered again"), "{}", ended.log);
    // A request that was under way when the server stopped may have been taken.
    accept("server stopped and started", judged(&server, &index, &logs), common::QUEUE_EVENTS);
}

/// The pipelines of a module are there when its events come: a server refuses events whose pipeline it does not have.
#[test]
#[ignore = "needs real servers: cargo xtask test"]
fn elasticsearch_gets_the_pipelines_of_modules_before_their_events() {
    let server = Server::elasticsearch().unwrap();
    let (module, index) = (unique_name("module"), unique_name("piped"));
    let place = Place::with_output(&output(&server, &index, &[]));
    let folder = place.path().join("module").join(&module).join("log");
    for (file, text) in [
        ("manifest.yml", "{input: log.yml, ingest_pipeline: [first.yml, second.json]}"),
        ("log.yml", "{type: filestream, id: a, paths: ['${path.home}/logs/*.log']}"),
        // This server has no processors.
        ("first.yml", "{description: '{< IngestPipeline \"second\" >}', processors: []}"),
        ("second.json", "{\"processors\": []}"),
    ] {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }
    let modules = format!("filebeat.modules: [{{module: {module}, log: {{}}}}]\n");
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    let home = place.path().display();
    place.configure(&format!("path.home: '{home}'\n{modules}filebeat.registry.flush{rest}"));
    place.write("a.log", &lines("a", 0..5000));
    let ledger = place.once(&[]).succeeded().ledger();
    assert_eq!((ledger.read, ledger.delivered), (5000, 5000));
    accept("a module", judged(&server, &index, &[("a", 5000)]), 0);
    let document = documents(&server, &index).swap_remove(0);
    assert_eq!(document["event"]["dataset"], format!("{module}.log"));
    let pipelines = server.get(&format!("/_ingest/pipeline/filebeat-*-{module}-log-*")).unwrap();
    assert_eq!(pipelines.as_object().unwrap().len(), 2, "{pipelines}");
    let ended = place.run(&["setup", "--pipelines"]).succeeded();
    assert_eq!(ended.out.lines().filter(|line| line.ends_with(": loaded")).count(), 2, "{ended:?}");
}
