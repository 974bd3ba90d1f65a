//! The endpoint over real sockets.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Run;
use serde_json::Value as Json;
use skidder_net::BoundAddress;
use skidder_observe::{Endpoint, HttpAuth, HttpConfig, ServeError, Serving, serve};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::oneshot;

/// No test waits longer for anything that must happen.
const PATIENCE: Duration = Duration::from_secs(20);

struct Server {
    serving: Serving,
    stop: oneshot::Sender<()>,
}

fn on_loopback() -> HttpConfig {
    let endpoint = Endpoint::Tcp { host: "localhost".to_owned(), port: 0 };
    HttpConfig {
        enabled: true,
        endpoint,
        timeout: Duration::from_secs(10),
        auth: HttpAuth::default(),
        tls: None,
        pprof: None,
    }
}

fn on_socket(path: &Path) -> HttpConfig {
    HttpConfig { endpoint: Endpoint::Unix(path.to_owned()), ..on_loopback() }
}

async fn start(config: &HttpConfig) -> Result<Server, ServeError> {
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        // A sender that is gone is a stop as well.
        drop(stopped.await);
    };
    Ok(Server { serving: serve(config, Run::busy().sources, shutdown).await?, stop })
}

impl Server {
    async fn connect(&self) -> TcpStream {
        let BoundAddress::Tcp(address) = &self.serving.address else { panic!("not TCP") };
        TcpStream::connect(address).await.unwrap()
    }

    /// One request on a connection of its own.
    async fn ask(&self, method: &str, path: &str) -> Answer {
        let mut stream = self.connect().await;
        send(&mut stream, method, path).await;
        read_answer(&mut stream, method).await
    }

    async fn end(self) {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.serving.task).await.unwrap().unwrap();
    }
}

async fn send(stream: &mut (impl AsyncWriteExt + Unpin), method: &str, path: &str) {
    let request = format!("{method} {path} HTTP/1.1\r\nhost: forest\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn json(&self) -> Json {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Reads one answer and not a byte more.
async fn read_answer(stream: &mut (impl AsyncReadExt + Unpin), method: &str) -> Answer {
    let read = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut answer = Answer { status, head, body: String::new() };
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        if method != "HEAD" {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.unwrap();
            answer.body = String::from_utf8(body).unwrap();
        }
        answer
    };
    tokio::time::timeout(PATIENCE, read).await.unwrap()
}

/// Whether the server closes the connection without another byte.
async fn is_closed(stream: &mut TcpStream) -> bool {
    let mut rest = Vec::new();
    match tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.unwrap() {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[tokio::test]
async fn every_route_answers_with_its_own_type() {
    let server = start(&on_loopback()).await.unwrap();
    for path in ["/", "/stats", "/state", "/inputs/", "/inputs"] {
        let answer = server.ask("GET", path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert_eq!(answer.body.lines().count(), 1, "{path} is one line unless pretty");
        answer.json();
    }
    let answer = server.ask("GET", "/metrics").await;
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    assert!(answer.body.contains("\nskidder_ledger_read_lines_total 20\n"));
    assert_eq!(server.ask("GET", "/").await.json()["beat"], "filebeat");
    server.end().await;
}

#[tokio::test]
async fn stats_over_http_show_a_ledger_that_adds_up() {
    let server = start(&on_loopback()).await.unwrap();
    let ledger = server.ask("GET", "/stats").await.json()["skidder"]["ledger"].take();
    let dropped: u64 =
        ledger["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
    let others = ["delivered", "dead_lettered", "in_flight"];
    let others: u64 = others.iter().map(|name| ledger[name].as_u64().unwrap()).sum();
    assert_eq!(ledger["read"], dropped + others);
    server.end().await;
}

#[tokio::test]
async fn pretty_indents_and_says_the_same() {
    let server = start(&on_loopback()).await.unwrap();
    let plain = server.ask("GET", "/state").await;
    for query in ["pretty", "pretty=true", "x=1&pretty"] {
        let pretty = server.ask("GET", &format!("/state?{query}")).await;
        assert!(pretty.body.starts_with("{\n  \"beat\": {\n    \"name\""), "{}", pretty.body);
        assert_eq!(pretty.json(), plain.json());
    }
    server.end().await;
}

#[tokio::test]
async fn inputs_can_be_asked_for_by_type() {
    let server = start(&on_loopback()).await.unwrap();
    for (path, ids) in [
        ("/inputs/", &["nginx", "pipe"][..]),
        ("/inputs/?type=stdin", &["pipe"]),
        ("/inputs/?pretty&type=filestream", &["nginx"]),
        ("/inputs/?type=tcp", &[]),
    ] {
        let document = server.ask("GET", path).await.json();
        let found: Vec<_> = document
            .as_array()
            .unwrap()
            .iter()
            .map(|input| input["id"].as_str().unwrap())
            .collect();
        assert_eq!(found, ids, "{path}");
    }
    server.end().await;
}

#[tokio::test]
async fn an_unknown_path_is_a_404_that_lists_the_routes() {
    let server = start(&on_loopback()).await.unwrap();
    for path in ["/nothing", "/stats/", "/debug/pprof/", "/%00"] {
        let answer = server.ask("GET", path).await;
        assert_eq!(answer.status, 404, "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
        let document = answer.json();
        assert_eq!(document["status"], 404);
        assert_eq!(document["error"], format!("there is nothing at `{path}`"));
        assert!(document["routes"].as_array().unwrap().contains(&Json::from("/metrics")));
    }
    server.end().await;
}

#[tokio::test]
async fn only_get_and_head_are_allowed() {
    let server = start(&on_loopback()).await.unwrap();
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        let answer = server.ask(method, "/stats").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some("get, head")), "{method}");
        assert_eq!(answer.json()["status"], 405);
    }
    let head = server.ask("HEAD", "/state").await;
    let get = server.ask("GET", "/state").await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-length"), get.header("content-length"));
    assert_eq!(head.header("content-type"), get.header("content-type"));
    server.end().await;
}

#[tokio::test]
async fn several_requests_use_one_connection_also_all_at_once() {
    let server = start(&on_loopback()).await.unwrap();
    let mut stream = server.connect().await;
    for path in ["/", "/stats", "/metrics"] {
        send(&mut stream, "GET", path).await;
        assert_eq!(read_answer(&mut stream, "GET").await.status, 200);
    }
    for path in ["/state", "/nothing", "/inputs/"] {
        send(&mut stream, "GET", path).await;
    }
    for status in [200, 404, 200] {
        assert_eq!(read_answer(&mut stream, "GET").await.status, status);
    }
    server.end().await;
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_others_are_served() {
    let server = start(&on_loopback()).await.unwrap();
    let path = format!("/{}", "a".repeat(100_000));
    let header = format!("/ HTTP/1.1\r\nx: {}\r\ny: ", "b".repeat(100_000));
    let headers = format!("/ HTTP/1.1\r\n{}x: ", "c: d\r\n".repeat(1000));
    for target in [path, header, headers] {
        let mut stream = server.connect().await;
        let request = format!("GET {target} HTTP/1.1\r\nhost: forest\r\n\r\n");
        // The server answers and closes before it has read everything, so that both ends of this may
        // fail after the answer is there.
        drop(stream.write_all(request.as_bytes()).await);
        let mut answer = Vec::new();
        drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap());
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
        assert_eq!(server.ask("GET", "/").await.status, 200);
    }
    server.end().await;
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let server = start(&on_loopback()).await.unwrap();
    let mut stream = server.connect().await;
    stream.write_all(b"\x16\x03\x01\x02\x00 hello?\r\n\r\n").await.unwrap();
    assert_eq!(read_answer(&mut stream, "GET").await.status, 400);
    assert!(is_closed(&mut stream).await);
    server.end().await;
}

#[tokio::test]
async fn a_client_that_sends_nothing_or_half_a_request_is_let_go() {
    let config = HttpConfig { timeout: Duration::from_millis(500), ..on_loopback() };
    let server = start(&config).await.unwrap();
    let mut silent = server.connect().await;
    let mut slow = server.connect().await;
    slow.write_all(b"GET /stats HTTP/1.1\r\nhost: fo").await.unwrap();
    let mut idle = server.connect().await;
    send(&mut idle, "GET", "/").await;
    assert_eq!(read_answer(&mut idle, "GET").await.status, 200);
    assert!(is_closed(&mut silent).await);
    assert!(is_closed(&mut idle).await);
    let mut rest = Vec::new();
    // Closed, with or without a word about it.
    drop(tokio::time::timeout(PATIENCE, slow.read_to_end(&mut rest)).await.unwrap());
    assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 408 "));
    server.end().await;
}

#[tokio::test]
async fn clients_that_send_nothing_or_read_nothing_lock_nobody_out() {
    // No time limit helps: places are given up only because others need them.
    let config = HttpConfig { timeout: Duration::from_hours(1), ..on_loopback() };
    let server = start(&config).await.unwrap();
    let mut slow = Vec::new();
    for number in 0..200 {
        let mut stream = server.connect().await;
        match number % 3 {
            0 => {}
            1 => stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: fo").await.unwrap(),
            _ => {
                // More answers than the kernel keeps, and none is read.
                let requests = "GET /metrics HTTP/1.1\r\nhost: forest\r\n\r\n".repeat(2000);
                let sending = stream.write_all(requests.as_bytes());
                drop(tokio::time::timeout(Duration::from_millis(20), sending).await);
            }
        }
        slow.push(stream);
        if number % 10 == 0 {
            assert_eq!(server.ask("GET", "/metrics").await.status, 200, "beside {number}");
        }
    }
    server.end().await;
    drop(slow);
}

#[tokio::test]
async fn the_end_closes_idle_connections_and_the_port() {
    let server = start(&on_loopback()).await.unwrap();
    let BoundAddress::Tcp(address) = server.serving.address.clone() else { panic!("not TCP") };
    assert!(address.is_ipv4() && address.ip().is_loopback(), "{address}");
    let mut idle = server.connect().await;
    send(&mut idle, "GET", "/").await;
    read_answer(&mut idle, "GET").await;
    server.end().await;
    assert!(is_closed(&mut idle).await);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn the_end_does_not_wait_for_a_client_that_does_not_finish() {
    // Far beyond the patience of this test.
    let config = HttpConfig { timeout: PATIENCE * 10, ..on_loopback() };
    let server = start(&config).await.unwrap();
    let mut slow = server.connect().await;
    slow.write_all(b"GET /stats HTTP/1.1\r\nhost: fo").await.unwrap();
    let silent = server.connect().await;
    // Answered after both were accepted.
    assert_eq!(server.ask("GET", "/").await.status, 200);
    server.end().await;
    drop((slow, silent));
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_the_setting() {
    let server = start(&on_loopback()).await.unwrap();
    let BoundAddress::Tcp(address) = server.serving.address.clone() else { panic!("not TCP") };
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: address.port() };
    let error = start(&HttpConfig { endpoint, ..on_loopback() }).await.err().unwrap();
    let expected = format!(
        "the HTTP endpoint cannot listen on http://{address}: another process does already; \
         set `http.port` to another one or stop that process"
    );
    assert_eq!(error.to_string(), expected);
    server.end().await;
}

#[tokio::test]
async fn a_host_that_is_not_ours_is_an_error_that_names_the_setting() {
    // TEST-NET-1, RFC 5737: no host has this address.
    let endpoint = Endpoint::Tcp { host: "192.0.2.1".to_owned(), port: 0 };
    let error = start(&HttpConfig { endpoint, ..on_loopback() }).await.err().unwrap();
    assert!(matches!(error, ServeError::Bind { setting: "http.host", .. }), "{error}");
    let endpoint = Endpoint::Tcp { host: "no-such-host.invalid".to_owned(), port: 0 };
    let error = start(&HttpConfig { endpoint, ..on_loopback() }).await.err().unwrap();
    assert!(matches!(error, ServeError::Resolve { .. }), "{error}");
    assert!(error.to_string().starts_with("`http.host` is `no-such-host.invalid`"), "{error}");
}

#[tokio::test]
async fn a_unix_socket_answers_has_its_mode_and_goes_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("skidder.sock");
    let server = start(&on_socket(&path)).await.unwrap();
    let metadata = std::fs::symlink_metadata(&path).unwrap();
    assert!(metadata.file_type().is_socket());
    assert_eq!(metadata.permissions().mode() & 0o777, 0o740);
    let mut stream = UnixStream::connect(&path).await.unwrap();
    send(&mut stream, "GET", "/stats").await;
    assert_eq!(read_answer(&mut stream, "GET").await.status, 200);

    let error = start(&on_socket(&path)).await.err().unwrap();
    assert!(matches!(error, ServeError::InUse { setting: "http.host", .. }), "{error}");
    send(&mut stream, "GET", "/").await;
    assert_eq!(read_answer(&mut stream, "GET").await.status, 200, "the first one lives on");
    drop(stream);
    server.end().await;
    assert!(std::fs::symlink_metadata(&path).is_err(), "the name is gone");
}

#[tokio::test]
async fn the_socket_of_a_dead_process_is_replaced_and_a_file_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("skidder.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = start(&on_socket(&path)).await.unwrap();
    server.end().await;

    std::fs::write(&path, "precious").unwrap();
    let error = start(&on_socket(&path)).await.err().unwrap();
    assert!(matches!(error, ServeError::NotASocket { .. }), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
}

#[tokio::test]
async fn a_socket_path_that_is_too_long_or_has_no_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["x".repeat(200), "missing/skidder.sock".to_owned()] {
        let error = start(&on_socket(&directory.path().join(name))).await.err().unwrap();
        assert!(matches!(error, ServeError::Bind { setting: "http.host", .. }), "{error}");
    }
}
