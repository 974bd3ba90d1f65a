//! `monitoring.otlp`: the numbers of a run come to a collector of OpenTelemetry, which reads them with a library of its own.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::Place;
use common::lines::lines;
use common::program::{Program, command, patiently};
use common::server::BulkServer;
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use prost::Message as _;
use skidder_os::{Clock as _, Monotonic, SystemClock};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request that came.
#[derive(Clone)]
struct Taken {
    line: String,
    headers: BTreeMap<String, String>,
    message: ExportMetricsServiceRequest,
    at: Monotonic,
}

impl Taken {
    /// The sum of the points of a metric.
    fn number(&self, name: &str) -> Option<i64> {
        let metrics = &self.message.resource_metrics[0].scope_metrics[0].metrics;
        let metric = metrics.iter().find(|metric| metric.name == name)?;
        let points = match metric.data.as_ref()? {
            metric::Data::Gauge(gauge) => &gauge.data_points,
            metric::Data::Sum(sum) => &sum.data_points,
            other => panic!("{other:?}"),
        };
        let whole = points.iter().map(|point| match point.value {
            Some(number_data_point::Value::AsInt(whole)) => whole,
            ref other => panic!("{name}: {other:?}"),
        });
        Some(whole.sum())
    }
}

/// A collector that gives these answers, and the last of them for ever.
struct Collector {
    url: String,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Collector {
    fn start(answers: Vec<(&'static str, Vec<u8>)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
        let (shared, mut answers) = (Arc::clone(&taken), VecDeque::from(answers));
        std::thread::spawn(move || {
            let clock = SystemClock::new();
            for stream in listener.incoming() {
                let last = answers.len() == 1;
                let (head, body) =
                    if last { answers[0].clone() } else { answers.pop_front().unwrap() };
                serve(&stream.unwrap(), head, &body, &clock, &shared);
            }
        });
        Self { url, taken }
    }

    fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

fn serve(
    stream: &TcpStream,
    head: &str,
    answer: &[u8],
    clock: &SystemClock,
    taken: &Mutex<Vec<Taken>>,
) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let mut headers = BTreeMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        let mut plain = Vec::new();
        GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
        body = plain;
    }
    let message = ExportMetricsServiceRequest::decode(&*body).unwrap();
    taken.lock().unwrap().push(Taken { line, headers, message, at: clock.monotonic() });
    let head = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", answer.len());
    // A client that disconnects early needs no answer.
    drop((&*stream).write_all(&[head.as_bytes(), answer].concat()));
}

fn exporting(place: &Place, url: &str, more: &str) {
    let text = place.configuration();
    place.configure(&format!(
        "{text}monitoring.otlp: {{enabled: true, endpoint: '{url}', period: 200ms{more}}}\n"
    ));
}

#[test]
fn numbers_come_with_their_resource_and_the_last_ones_at_the_end() {
    let (server, collector) = (BulkServer::start(), Collector::start(vec![("200 OK", Vec::new())]));
    let place = Place::new(&server);
    let more = ", headers: {X-Scope-OrgID: forest}, resource_attributes: {deployment.environment.name: test}";
    exporting(&place, &collector.url, more);
    place.write("a.log", &lines("a", 0..500));
    let program = place.start(&[]);
    let export = patiently("numbers with all events", || {
        let delivered = |taken: &Taken| taken.number("skidder.ledger.lines") == Some(500);
        collector.taken().into_iter().find(delivered)
    });
    assert_eq!(export.line.trim(), "POST /v1/metrics HTTP/1.1");
    assert_eq!(export.headers["content-type"], "application/x-protobuf");
    assert_eq!(
        (&*export.headers["x-scope-orgid"], &*export.headers["content-encoding"]),
        ("forest", "gzip")
    );
    let resource = export.message.resource_metrics[0].resource.clone().unwrap();
    let texts: BTreeMap<String, String> = resource
        .attributes
        .into_iter()
        .map(|attribute| match attribute.value.unwrap().value.unwrap() {
            any_value::Value::StringValue(text) => (attribute.key, text),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        (&*texts["service.name"], &*texts["deployment.environment.name"]),
        ("skidder", "test")
    );
    assert_eq!(texts["service.instance.id"].len(), 36);
    assert_eq!(export.number("skidder.lag.behind_bytes"), Some(0), "known while it is exported");
    assert_eq!(export.number("skidder.input.read_lines"), Some(500));
    place.write("b.log", &lines("b", 0..250));
    patiently("all events", || (server.count() == 750).then_some(()));
    program.terminate().succeeded();
    let last = collector.taken().pop().unwrap();
    assert_eq!(last.number("skidder.ledger.lines"), Some(750), "what ends tells its last numbers");
}

#[test]
fn an_answer_that_may_pass_is_tried_again_as_it_says_and_a_refusal_is_told_once() {
    let busy = || ("503 Service Unavailable\r\nRetry-After: 1", Vec::new());
    let partial = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too old".to_owned(),
        }),
    };
    let answers = vec![
        busy(),
        ("200 OK", partial.encode_to_vec()),
        ("400 Bad Request", b"no such tenant".to_vec()),
    ];
    let (server, collector) = (BulkServer::start(), Collector::start(answers));
    let place = Place::new(&server);
    exporting(&place, &format!("{}/v1/metrics", collector.url), ", compression: none");
    let text = place.configuration();
    place.configure(&text.replace("period: 200ms", "period: 5s"));
    place.write("a.log", &lines("a", 0..100));
    let program = place.start(&[]);
    program.await_log("a collector did not take all of our numbers");
    program.await_log("our own numbers cannot be exported");
    let taken = collector.taken();
    let again = taken[1].at.since(taken[0].at);
    assert!(again >= Duration::from_secs(1), "asked to wait for a second, not {again:?}");
    assert_eq!(taken[0].message, taken[1].message, "the same numbers");
    assert_eq!(taken[1].line.trim(), "POST /v1/metrics HTTP/1.1");
    assert!(!taken[0].headers.contains_key("content-encoding"));
    let ended = program.terminate().succeeded();
    assert!(ended.log.contains("no such tenant") && ended.log.contains("400"), "{}", ended.log);
    assert!(ended.log.contains("too old"), "{}", ended.log);
    assert_eq!(ended.ledger().delivered, 100);
}

#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let server = BulkServer::start();
    let place = Place::new(&server);
    // No server listens there any more; and one that takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (number, address) in [gone, silent.local_addr().unwrap()].into_iter().enumerate() {
        let place = if number == 0 { &place } else { &Place::new(&server) };
        exporting(place, &format!("http://{address}"), "");
        place.write("a.log", &lines("a", 0..500));
        let before = server.count();
        let program = place.start(&[]);
        program.await_log("our own numbers cannot be exported");
        patiently("all events", || (server.count() == before + 500).then_some(()));
        let clock = SystemClock::new();
        let began = clock.monotonic();
        let ended = program.terminate().succeeded();
        let took = clock.monotonic().since(began);
        assert!(took < Duration::from_secs(4), "the end waits for it: {took:?}");
        assert_eq!(
            ended.log.matches("our own numbers cannot be exported").count(),
            1,
            "{}",
            ended.log
        );
        assert_eq!(ended.ledger().delivered, 500);
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let good = "filebeat.inputs: [{type: filestream, id: a, paths: [/x]}]\noutput.console: {}\n";
    for (otlp, expected) in [
        ("enabled: true", ""),
        ("enabled: true, protocol: http/protobuf, endpoint: 'https://otlp.example.com/otlp'", ""),
        ("enabled: false, endpoint: 7", ""),
        ("enabled: true, protocol: grpc", "only `http/protobuf` is there"),
        (
            "enabled: true, endpoint: 'localhost:4318'",
            "expected a URL, as in `http://localhost:4318`",
        ),
        (
            "enabled: true, endpoint: 'http://'",
            "f.yml:3:44: `monitoring.otlp.endpoint` is `http://`; it names no host",
        ),
        (
            "enabled: true, endpoint: 'http://u:p@:4318'",
            "`monitoring.otlp.endpoint` is `http://u:xxxxx@:4318`; it names no host",
        ),
        (
            "enabled: true, proxy_url: 'http://u:p@'",
            "f.yml:3:45: `monitoring.otlp.proxy_url` is `xxxxx`; it names no host\nhint: a proxy is",
        ),
        ("enabled: true, timeout: 0s", "`monitoring.otlp.timeout` is `0s`; expected a duration"),
        ("enabled: true, perid: 1s", "f.yml:3:34: unknown setting `monitoring.otlp.perid`"),
        ("enabled: true, period: 1ms", "`monitoring.otlp.period` is `1ms`"),
        ("enabled: true, compression: zip", "`monitoring.otlp.compression` is `zip`"),
        (
            "enabled: true, endpoint: 'https://x', ssl.enabled: false",
            "needs TLS, but `ssl.enabled` is false",
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let text = format!("{good}monitoring.otlp: {{{otlp}}}\n");
        fs::write(directory.path().join("f.yml"), text).unwrap();
        let mut test = command(["test", "config", "-c", "f.yml"]);
        let ended = Program::run(test.current_dir(directory.path()));
        assert!(ended.log.contains(expected), "{otlp}: {}", ended.log);
        assert_eq!(ended.code(), Some(i32::from(!expected.is_empty())), "{otlp}: {}", ended.log);
    }
}
