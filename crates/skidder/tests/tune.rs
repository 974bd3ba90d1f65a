//! `skidder tune` against a server of the test's own, which remembers its indices.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::lines::lines;
use common::program::{Ended, Program, command};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// What a server of indices has seen.
#[derive(Debug, Default)]
struct Seen {
    indices: BTreeSet<String>,
    made: usize,
    /// Bodies of the requests that made indices.
    settings: Vec<Value>,
    /// Names in actions, whether they had more than the name, and whether bodies were compressed.
    actions: BTreeSet<String>,
    compressed: BTreeSet<bool>,
    /// Most documents of a request.
    largest: usize,
    documents: usize,
}

/// A server of indices. It lives as long as the test.
struct Server {
    url: String,
    seen: Arc<Mutex<Seen>>,
}

/// How it behaves.
#[derive(Clone, Copy, Debug, Default)]
struct Manner {
    /// Status of every bulk request, if not 200.
    status: Option<u16>,
    /// Status of removals.
    keeps: Option<u16>,
    /// Each third document is answered 429.
    is_busy: bool,
}

impl Server {
    fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Seen::default()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, seen) = (stream.unwrap(), Arc::clone(&shared));
                // Connections end when the program wants.
                std::thread::spawn(move || drop(serve(&stream, &seen, manner)));
            }
        });
        Self { url, seen }
    }

    fn configuration(&self) -> String {
        format!(
            "filebeat.inputs:\n- {{type: filestream, id: web, paths: [/nowhere/*.log]}}\n\
             processors:\n- add_fields: {{target: '@metadata', fields: {{raw_index: elsewhere, _id: same, pipeline: mine}}}}\n\
             output.elasticsearch:\n  hosts: ['{}']\n  backoff: {{init: 10ms, max: 20ms}}\n  pipeline: ours\n",
            self.url
        )
    }
}

fn serve(stream: &TcpStream, seen: &Mutex<Seen>, manner: Manner) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            match line.trim_end() {
                "" => break,
                line => head.push(line.to_ascii_lowercase()),
            }
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
        reader.read_exact(&mut body)?;
        let gzip = head.iter().any(|line| line == "content-encoding: gzip");
        if gzip {
            let packed = std::mem::take(&mut body);
            flate2::read::GzDecoder::new(&*packed).read_to_end(&mut body)?;
        }
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let (status, text) = answer(method, path, &body, gzip, &mut seen.lock().unwrap(), manner);
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status} x\r\nx-elastic-product: Elasticsearch\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        let mut stream = stream;
        stream.write_all(format!("{head}{text}").as_bytes())?;
    }
}

fn answer(
    method: &str,
    path: &str,
    body: &[u8],
    gzip: bool,
    seen: &mut Seen,
    manner: Manner,
) -> (u16, String) {
    let index = path.trim_start_matches('/').to_owned();
    match method {
        "put" => {
            seen.indices.insert(index);
            seen.made += 1;
            seen.settings.push(serde_json::from_slice(body).unwrap());
            (200, "{\"acknowledged\":true}".to_owned())
        }
        "delete" if !seen.indices.contains(&index) => (404, "{}".to_owned()),
        "delete" => {
            if let Some(status) = manner.keeps {
                return (status, "{\"error\":\"no\"}".to_owned());
            }
            seen.indices.remove(&index);
            (200, "{\"acknowledged\":true}".to_owned())
        }
        "post" => bulk(body, gzip, seen, manner),
        _ => (200, "{\"version\":{\"number\":\"9.5.3\"}}".to_owned()),
    }
}

fn bulk(body: &[u8], gzip: bool, seen: &mut Seen, manner: Manner) -> (u16, String) {
    if let Some(status) = manner.status {
        return (status, "{\"error\":\"scripted\"}".to_owned());
    }
    let lines: Vec<&[u8]> =
        body.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    seen.actions.insert(String::from_utf8(lines[0].to_vec()).unwrap());
    seen.compressed.insert(gzip);
    let count = lines.len() / 2;
    seen.documents += count;
    seen.largest = seen.largest.max(count);
    let item = |number: usize| {
        // Not the first one: it would be refused for ever once it is alone.
        if manner.is_busy && number % 3 == 1 {
            "{\"create\":{\"status\":429,\"error\":{\"type\":\"x\",\"reason\":\"y\"}}}"
        } else {
            "{\"create\":{\"status\":201}}"
        }
    };
    let items: Vec<&str> = (0..count).map(item).collect();
    (200, format!("{{\"errors\":{},\"items\":[{}]}}", manner.is_busy, items.join(",")))
}

/// A folder with a configuration and a sample.
fn folder(server: &Server) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.yml"), server.configuration()).unwrap();
    std::fs::write(folder.path().join("a.log"), lines("a", 0..3000)).unwrap();
    folder
}

const QUICK: [&str; 11] = [
    "tune",
    "-c",
    "f.yml",
    "--sample",
    "a.log",
    "--seconds",
    "0.4",
    "--workers",
    "1,2",
    "--events",
    "50,500",
];

fn tuned(folder: &tempfile::TempDir, more: &[&str]) -> Ended {
    Program::run(command(QUICK.iter().chain(more)).current_dir(folder.path()))
}

#[test]
fn a_grid_is_tried_in_an_index_of_its_own_which_is_removed() {
    let server = Server::start(Manner::default());
    let folder = folder(&server);
    let ended = tuned(&folder, &["--html", "plot.html"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let rows: Vec<&str> = ended.out.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(rows.len(), 1 + 2 * 2 * 2, "{}", ended.out);
    assert!(rows[0].starts_with("WORKER  BULK_MAX_SIZE  LEVEL  EVENTS/S"), "{}", ended.out);
    for row in &rows[1..] {
        let values: Vec<f64> = row.split_whitespace().map(|value| value.parse().unwrap()).collect();
        assert!(values[3] > 0.0 && values[6..] == [0.0; 3], "{row}");
    }
    assert!(
        ended.out.contains("\nworker: ") && ended.out.contains("\nbulk_max_size: "),
        "{}",
        ended.out
    );
    let seen = server.seen.lock().unwrap();
    assert!(seen.indices.is_empty(), "{:?}", seen.indices);
    // One more for the cell that warms the server up.
    assert_eq!(seen.made, 9);
    let none = serde_json::json!({"default_pipeline": "_none", "final_pipeline": "_none"});
    assert_eq!(seen.settings[0]["settings"]["index"], none);
    // Whatever the events say: no other index, no id, no pipeline.
    assert_eq!(seen.actions.len(), 1, "{:?}", seen.actions);
    let action = seen.actions.first().unwrap();
    assert!(
        action.starts_with("{\"create\":{\"_index\":\"skidder-tune-") && action.ends_with("\"}}"),
        "{action}"
    );
    assert_eq!(seen.compressed, BTreeSet::from([false, true]));
    assert_eq!(seen.largest, 500);
    let page = std::fs::read_to_string(folder.path().join("plot.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 2, "one for each level");
    assert_eq!(page.matches("<polyline").count(), 4);
    assert!(page.contains("prefers-color-scheme:dark") && page.contains("class=\"best\""));
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn pipelines_run_if_they_are_asked_for() {
    let server = Server::start(Manner::default());
    let ended = tuned(&folder(&server), &["--levels", "1", "--pipelines"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.settings[0]["settings"]["index"], serde_json::json!({}));
    let action = seen.actions.first().unwrap();
    assert!(action.contains("\"pipeline\":\"mine\"") && !action.contains("_id"), "{action}");
}

#[test]
fn what_the_server_does_not_take_is_counted() {
    let server = Server::start(Manner { is_busy: true, ..Manner::default() });
    let ended = tuned(&folder(&server), &["--levels", "0"]);
    assert_eq!(ended.code(), Some(0), "{ended:?}");
    let row = ended.out.lines().nth(1).unwrap();
    let too_many: u64 = row.split_whitespace().nth(6).unwrap().parse().unwrap();
    assert!(too_many > 0, "{}", ended.out);
    let server = Server::start(Manner { status: Some(500), ..Manner::default() });
    let ended = tuned(&folder(&server), &["--levels", "0"]);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let row = ended.out.lines().nth(1).unwrap();
    let values: Vec<&str> = row.split_whitespace().collect();
    assert!(values[3] == "0" && values[8] != "0", "{}", ended.out);
    assert!(ended.log.contains("no event was delivered"), "{}", ended.log);
    assert!(server.seen.lock().unwrap().indices.is_empty());
}

#[test]
fn a_signal_ends_it_and_the_index_is_removed() {
    let server = Server::start(Manner::default());
    let folder = folder(&server);
    let mut program = Program::start(
        command(["tune", "-c", "f.yml", "--sample", "a.log", "--seconds", "600"])
            .current_dir(folder.path()),
    );
    program.await_that("events come", || server.seen.lock().unwrap().documents > 0);
    assert_eq!(server.seen.lock().unwrap().indices.len(), 1);
    program.signal(Signal::INT);
    let ended = program.end();
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    assert!(ended.log.contains("interrupted"), "{}", ended.log);
    assert!(server.seen.lock().unwrap().indices.is_empty());
}

#[test]
fn an_index_that_stays_is_named() {
    let server = Server::start(Manner { keeps: Some(403), ..Manner::default() });
    let folder = folder(&server);
    let ended = tuned(&folder, &["--levels", "0"]);
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    let index = server.seen.lock().unwrap().indices.first().unwrap().clone();
    assert!(ended.log.contains(&format!("`{index}` could not be removed")), "{}", ended.log);
    assert!(ended.log.contains("403"), "{}", ended.log);
}

#[test]
fn outputs_without_a_place_for_trials_say_why() {
    let server = Server::start(Manner::default());
    let folder = folder(&server);
    for (output, why) in [
        ("logstash.hosts: ['127.0.0.1:1']", "--really-send"),
        ("redis: {hosts: ['127.0.0.1:1'], key: k}", "memory of the Redis server"),
        ("file.path: out", "no sizes to choose"),
        ("console.enabled: true", "no sizes to choose"),
    ] {
        let text = format!(
            "filebeat.inputs: [{{type: filestream, id: a, paths: [/nowhere]}}]\noutput.{output}\n"
        );
        std::fs::write(folder.path().join("f.yml"), text).unwrap();
        let ended = tuned(&folder, &[]);
        assert_eq!(ended.code(), Some(1), "{ended:?}");
        assert!(ended.log.contains(why), "{}", ended.log);
    }
}

#[test]
fn mistakes_on_the_command_line_are_told() {
    let server = Server::start(Manner::default());
    let folder = folder(&server);
    for wrong in [["--workers", "0"], ["--levels", "10"], ["--seconds", "0"], ["--events", "x"]] {
        let ended = Program::run(
            command(["tune", "-c", "f.yml", "--sample", "a.log"])
                .args(wrong)
                .current_dir(folder.path()),
        );
        assert_eq!(ended.code(), Some(2), "{ended:?}");
    }
    std::fs::write(folder.path().join("a.log"), "").unwrap();
    let ended = tuned(&folder, &[]);
    assert!(ended.code() == Some(1) && ended.log.contains("no event"), "{ended:?}");
    assert_eq!(server.seen.lock().unwrap().made, 0);
}
