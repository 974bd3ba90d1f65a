//! What the log says about requests that are not taken.

use super::*;
use std::fmt::Write as _;
use std::sync::Once;
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

/// Sends a request over a connection of its own; returns the status of the answer, and the only line about it.
async fn refused(address: SocketAddr, request: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let client = stream.local_addr().unwrap().to_string();
    stream.write_all(request).await.unwrap();
    let answered = Answered::read(&mut stream, &mut Vec::new()).await.unwrap();
    let mut lines = lines_about(&client);
    assert_eq!(lines.len(), 1, "{lines:?}");
    (answered.status, lines.remove(0))
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
    for part in ["message=a request is refused: no input has its path", "path=\"/b\"", "peer="] {
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
