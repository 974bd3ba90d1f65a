//! What the log says about requests that are not taken.

use super::*;
use std::fmt::Write as _;
use std::sync::Once;
use tokio::time::timeout;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Warnings and errors of all tests of this program, each with its fields as `name=value`.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Puts lines into [`LINES`].
struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::WARN
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::WARN)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        LINES.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

/// Collects from now on.
fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Collector).unwrap());
}

/// The lines about a client.
fn lines_about(client: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|line| line.contains(client)).cloned().collect()
}

/// Waits for a line about a client; there must be only one.
async fn line_about(client: &str) -> String {
    loop {
        let mut lines = lines_about(client);
        assert!(lines.len() < 2, "{lines:?}");
        if let Some(line) = lines.pop() {
            return line;
        }
        tokio::task::yield_now().await;
    }
}

/// What faces refuse: settings, a request, the status, and what the log says.
fn refusals() -> Vec<(&'static str, Vec<u8>, u16, &'static str)> {
    let token = ", accept: splunk_hec, splunk_hec.token: t";
    let hec = |token: &str, body: &str| {
        let head = format!("Authorization: Splunk {token}\r\n");
        bytes_of("POST", "/services/collector", &head, body.as_bytes())
    };
    let otlp = |path, kind: &str, body: &[u8]| {
        bytes_of("POST", path, &format!("Content-Type: {kind}\r\n"), body)
    };
    let bulk = "{\"delete\":{\"_id\":\"1\"}}\n{\"create\":{}}\nno object\n";
    let ndjson = "Content-Type: application/x-ndjson\r\n";
    vec![
        (token, hec("wrong", "{\"event\":1}"), 403, "a request is refused: Invalid token"),
        (
            token,
            hec("t", "{\"event\":\"a\"}{}"),
            400,
            "a request is refused: event 1: Event field is required",
        ),
        (
            token,
            bytes_of("POST", "/services/collector/ack", "Authorization: Splunk t\r\n", b"{}"),
            400,
            "a request is refused: ACK is disabled",
        ),
        (
            ", accept: otlp",
            otlp("/v1/logs", "text/plain", b""),
            415,
            "a request is refused: expected Content-Type",
        ),
        (
            ", accept: otlp",
            otlp("/v1/traces", "application/json", b"{}"),
            404,
            "a request is refused: no face has POST",
        ),
        (
            ", accept: otlp",
            bytes_of("GET", "/v1/logs", "", b""),
            405,
            "a request is refused: /v1/logs: only POST",
        ),
        (
            ", accept: loki",
            bytes_of("GET", "/loki/api/v1/push", "", b""),
            405,
            "a request is refused: /loki/api/v1/push: only POST requests",
        ),
        (
            ", accept: elasticsearch",
            bytes_of("POST", "/_bulk", ndjson, bulk.as_bytes()),
            200,
            "2 documents are refused, the first: delete: only create and index are taken",
        ),
        ("", b"nonsense\r\n\r\n".to_vec(), 400, "a request is refused: invalid HTTP"),
        (
            "",
            format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "a".repeat(70_000)).into_bytes(),
            431,
            "a request is refused: its head is longer than 65536 bytes",
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_face_or_the_protocol_refuses_is_counted_and_in_the_log() {
    collect();
    for (settings, request, status, words) in refusals() {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, settings, &sockets), 100);
        let (answered, line) = refused(address, &request).await;
        assert_eq!(answered, status, "{line}");
        for part in [words, "source="] {
            assert!(line.contains(part), "{part}: {line}");
        }
        if status != 200 {
            assert!(line.contains(&format!("status={status}")), "{line}");
        }
        let metrics = bench.input.metrics();
        assert_eq!(metrics.errors.get(), 1, "{line}");
        assert!(line.contains(&*metrics.last_error().unwrap().text), "{line}");
        bench.stop().await;
    }
}

/// Sends bytes that are no request to an input without TLS; returns the only line about their client, and what the client
/// has got when the input has closed the connection.
async fn closed(bytes: &[u8]) -> (String, Vec<u8>) {
    collect();
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let mut stream = TcpStream::connect(address).await.unwrap();
    let client = stream.local_addr().unwrap().to_string();
    stream.write_all(bytes).await.unwrap();
    let line = timeout(Duration::from_secs(10), line_about(&client)).await.unwrap();
    let mut rest = Vec::new();
    timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.unwrap().ok();
    assert_eq!(bench.input.metrics().errors.get(), 1);
    bench.stop().await;
    (line, rest)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_tls_at_a_plain_input_is_in_the_log_with_what_to_do() {
    let (line, answer) = closed(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await;
    assert_eq!(answer, b"", "closed");
    assert!(line.contains("`ssl.enabled: true`"), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_http2_that_break_its_rules_are_counted_and_in_the_log() {
    // SETTINGS must come first (RFC 9113, 3.4); this is DATA of stream 0.
    let wrong = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x01\x00\x00\x00\x00\x00\x00a";
    let (line, _) = closed(wrong).await;
    assert!(line.contains("a request is refused") && line.contains("status=400"), "{line}");
}

/// Sends a request over a connection of its own; returns the status of the answer, and the only line about it.
async fn refused(address: SocketAddr, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let client = stream.local_addr().unwrap().to_string();
    stream.write_all(request).await.unwrap();
    let answered = Answered::read(&mut stream, &mut Vec::new()).await.unwrap();
    // What the library answers is logged behind the answer.
    let line = timeout(Duration::from_secs(10), line_about(&client)).await;
    (answered.status, line.unwrap_or_else(|_| panic!("{answered:?}")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_request_is_in_the_log_with_its_client_status_and_reason() {
    collect();
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", url: /a", &sockets), 100);
    let plain = bytes_of("POST", "/a", "Content-Type: text/plain\r\n", b"{}");
    let (status, line) = refused(address, &plain).await;
    assert_eq!(status, 415);
    for part in ["message=a request is refused: wrong Content-Type header", "status=415", "source="]
    {
        assert!(line.contains(part), "{line}");
    }
    let (status, line) = refused(address, &post("/b", "{}")).await;
    assert_eq!(status, 404);
    let words = "message=a request is refused: no input has its path, \"/b\"";
    for part in [words, "status=404", "source="] {
        assert!(line.contains(part), "{line}");
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_a_face_refuses_is_in_the_log_with_its_reason() {
    collect();
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", accept: elasticsearch", &sockets), 100);
    let packed = "Content-Type: application/x-ndjson\r\nContent-Encoding: br\r\n";
    let (status, line) = refused(address, &bytes_of("POST", "/_bulk", packed, b"{}\n")).await;
    assert_eq!(status, 415);
    let words = "message=a request is refused: unsupported Content-Encoding type \"br\"";
    for part in [words, "status=415", "source="] {
        assert!(line.contains(part), "{line}");
    }
    bench.stop().await;
}
