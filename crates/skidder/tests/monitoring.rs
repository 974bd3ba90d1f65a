//! `monitoring`: the numbers of a run come to the monitoring cluster as Filebeat sends them.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::lines;
use common::program::{Program, command, patiently};
use common::server::BulkServer;
use common::{Place, accept};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A cluster that takes documents and reports its identity.
struct Cluster {
    url: String,
    /// Path, `Authorization`, and document of each that came.
    taken: Arc<Mutex<Vec<(String, String, Value)>>>,
}

impl Cluster {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = Arc::default();
        let shared = Arc::clone(&taken);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, taken) = (stream.unwrap(), Arc::clone(&shared));
                // A client that disconnects early needs no answer.
                std::thread::spawn(move || drop(serve(&stream, status, &taken)));
            }
        });
        Self { url, taken }
    }

    fn of_type(&self, wanted: &str) -> Vec<(String, String, Value)> {
        let taken = self.taken.lock().unwrap();
        taken.iter().filter(|(_, _, document)| document["type"] == wanted).cloned().collect()
    }
}

fn serve(
    stream: &TcpStream,
    status: &str,
    taken: &Mutex<Vec<(String, String, Value)>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut length, mut login) = (0, String::new());
        loop {
            let mut header = String::new();
            reader.read_line(&mut header)?;
            let Some((name, value)) = header.trim().split_once(": ") else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => value.clone_into(&mut login),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (status, answer) = if path == "/" {
            ("200 OK", r#"{"cluster_uuid":"the-cluster"}"#)
        } else {
            if status.starts_with('2') {
                let document = serde_json::from_slice(&body).unwrap();
                taken.lock().unwrap().push((path, login, document));
            }
            (status, "{}")
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", answer.len());
        (&*stream).write_all([head.as_bytes(), answer.as_bytes()].concat().as_slice())?;
    }
}

fn monitored(place: &Place, cluster: &Cluster, more: &str) {
    let text = place.configuration();
    place.configure(&format!(
        "{text}monitoring:\n  enabled: true\n{more}  elasticsearch:\n    hosts: ['{}']\n    username: beats_system\n    \
         password: told-nobody\n    metrics.period: 100ms\n    state.period: 150ms\n    tags: [forest]\n",
        cluster.url
    ));
}

#[test]
fn numbers_and_state_come_in_filebeats_documents() {
    let (server, cluster) = (BulkServer::start(), Cluster::start("201 Created"));
    let place = Place::new(&server);
    monitored(&place, &cluster, "  cluster_uuid: of-the-events\n");
    place.write("a.log", &lines("a", 0..500));
    let program = place.start(&[]);
    let of = |kind: &str| cluster.of_type(kind);
    let stats = patiently("numbers with all events", || {
        let acked = |document: &Value| {
            document["beats_stats"]["metrics"]["libbeat"]["output"]["events"]["acked"] == 500
        };
        of("beats_stats").into_iter().find(|(_, _, document)| acked(document))
    });
    let state = patiently("the state", || of("beats_state").pop());
    program.terminate().succeeded();
    for (kind, (path, login, document)) in [("beats_stats", stats), ("beats_state", state)] {
        assert!(path.starts_with("/.monitoring-beats-7-20"), "{path}");
        assert!(path.contains("/_create/"), "{path}");
        assert!(login.starts_with("Basic "), "{login}");
        assert_eq!(document["cluster_uuid"], "of-the-events");
        assert_eq!(document[kind]["tags"], serde_json::json!(["forest"]));
        assert_eq!(document[kind]["beat"]["type"], "filebeat");
        assert_eq!(document[kind]["beat"]["version"], "9.5.3");
        assert_eq!(document[kind]["timestamp"], document["timestamp"]);
        assert!(document["timestamp"].as_str().unwrap().ends_with('Z'), "{document}");
    }
    assert_eq!(of("beats_stats")[0].2["interval_ms"], 100);
    assert_eq!(of("beats_state")[0].2["beats_state"]["state"]["output"]["name"], "elasticsearch");
    let ids: Vec<String> = of("beats_stats").into_iter().map(|(path, _, _)| path).collect();
    let mut different = ids.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), ids.len(), "an id twice");
    accept(
        "events beside the numbers",
        common::lines::judge(&[("a", 500)], &server.documents()),
        0,
    );
}

#[test]
fn without_hosts_it_is_the_server_of_the_events_and_its_cluster() {
    let cluster = Cluster::start("201 Created");
    let place = Place::with_output(&format!(
        "output.elasticsearch: {{hosts: ['{}'], worker: 2}}\nmonitoring: {{enabled: true, elasticsearch: {{metrics.period: \
         100ms}}}}\n",
        cluster.url
    ));
    let program = place.start(&[]);
    let (_, login, document) =
        patiently("numbers", || cluster.of_type("beats_stats").into_iter().next());
    assert_eq!(document["cluster_uuid"], "the-cluster");
    assert_eq!(login, "");
    program.terminate();
}

#[test]
fn a_cluster_that_refuses_is_told_once_and_holds_nothing_up() {
    let (server, cluster) = (BulkServer::start(), Cluster::start("403 Forbidden"));
    let place = Place::new(&server);
    monitored(&place, &cluster, "");
    place.write("a.log", &lines("a", 0..500));
    let program = place.start(&[]);
    program.await_log("monitoring data cannot be sent");
    patiently("all events", || (server.count() == 500).then_some(()));
    let ended = program.terminate().succeeded();
    assert_eq!(ended.log.matches("monitoring data cannot be sent").count(), 1, "{}", ended.log);
    assert!(ended.log.contains("403"), "{}", ended.log);
    assert!(!ended.log.contains("told-nobody"), "{}", ended.log);
    assert_eq!(ended.ledger().delivered, 500);
}

#[test]
fn mistakes_are_told_with_their_place() {
    let good = "filebeat.inputs: [{type: filestream, id: a, paths: [/x]}]\noutput.console: {}\n";
    for (text, expected) in [
        (
            "monitoring: {enabled: true}\n",
            "f.yml:3:23: `monitoring.elasticsearch.hosts` is missing, and so is `output.elasticsearch.hosts`",
        ),
        (
            "monitoring: {enabled: true, elasticsearch: {hosts: [a], metrics.perid: 1s}}\n",
            "f.yml:3:57: unknown setting `monitoring.elasticsearch.metrics.perid`",
        ),
        (
            "monitoring: {enabled: true, elasticsearch: {hosts: [a], state.period: 1ms}}\n",
            "`monitoring.elasticsearch.state.period` is `1ms`",
        ),
        ("monitoring: {enabled: true, cloud.id: x}\n", "`monitoring.cloud` is known to Filebeat"),
        ("monitoring: {enabled: false, elasticsearch: {hosts: [a]}}\n", ""),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("f.yml"), format!("{good}{text}")).unwrap();
        let mut test = command(["test", "config", "-c", "f.yml"]);
        let ended = Program::run(test.current_dir(directory.path()));
        assert!(ended.log.contains(expected), "{text}: {}", ended.log);
        assert_eq!(ended.code(), Some(i32::from(!expected.is_empty())), "{text}: {}", ended.log);
    }
}
