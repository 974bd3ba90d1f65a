//! The input with requests of its own, of the contract, and with Filebeat's answers.

use super::*;
use crate::Context;
use crate::testing::{Bench, Certificates, context, free_address, push_in_parts, read_with};
use serde_json::{Value, json};
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_net::Sockets;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

mod faces;
mod faces_fuzz;
mod grpc;
mod hostile;
mod http2;
mod log;
mod otlp;
mod senders;
mod sharing;

/// Reads settings; `servers` are those of the program.
fn read_text(text: &str, context: &Context) -> (Option<Box<dyn Input>>, String) {
    read_with(text, |section| read(section, context))
}

fn input_of(address: SocketAddr, more: &str, context: &Context) -> Box<dyn Input> {
    let (host, port) = (address.ip(), address.port());
    let text = format!("{{listen_address: '{host}', listen_port: {port}{more}}}");
    let (read, problems) = read_text(&text, context);
    assert_eq!(problems, "", "{text}");
    read.unwrap()
}

fn input(address: SocketAddr, more: &str, sockets: &Sockets) -> Box<dyn Input> {
    input_of(address, more, &context(sockets))
}

/// An answer of the input.
#[derive(Debug)]
struct Answered {
    status: u16,
    headers: BTreeMap<String, Vec<String>>,
    body: String,
}

impl Answered {
    /// The only value of a header or trailer; empty if it is not there.
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |values| &values[0])
    }
}

fn header_of(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl Answered {
    /// Reads one answer of a connection; nothing if it ends before.
    async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Self> {
        loop {
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
                let mut lines = head.split("\r\n");
                let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
                let mut headers = BTreeMap::<_, Vec<_>>::new();
                for line in lines {
                    let (name, value) = line.split_once(": ").unwrap();
                    headers.entry(header_of(name)).or_default().push(value.to_owned());
                }
                let length = headers.remove("content-length").map(|length| length[0].parse());
                let length = length.map_or(0, Result::unwrap);
                while buffer.len() < end + 4 + length {
                    assert!(stream.read_buf(buffer).await.unwrap() > 0, "the answer breaks off");
                }
                let body = buffer[end + 4..end + 4 + length].to_vec();
                buffer.drain(..end + 4 + length);
                headers.remove("date");
                headers.remove("connection");
                let body = String::from_utf8(body).unwrap();
                return Some(Self { status, headers, body });
            }
            match stream.read_buf(buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

/// The bytes of a request.
fn bytes_of(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: h\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

const JSON: &str = "Content-Type: application/json\r\n";

fn post(path: &str, body: &str) -> Vec<u8> {
    bytes_of("POST", path, JSON, body.as_bytes())
}

/// Sends bytes over a connection of their own; waits for the answer.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    Answered::read(&mut stream, &mut Vec::new()).await.expect("there is an answer")
}

fn settings_of(config: &Value) -> String {
    let fields = config.as_object().into_iter().flatten();
    let fields: Vec<String> = fields.map(|(name, value)| format!(", {name}: {value}")).collect();
    fields.concat()
}

fn request_of(request: &Value) -> Vec<u8> {
    use base64::Engine as _;
    let mut headers = String::new();
    for (name, values) in request["headers"].as_object().into_iter().flatten() {
        for value in values.as_array().unwrap() {
            headers.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap()));
        }
    }
    let packed = request["base64"].as_str();
    let packed = packed.map(|text| base64::engine::general_purpose::STANDARD.decode(text).unwrap());
    let body = packed.unwrap_or_else(|| request["body"].as_str().unwrap_or("").into());
    let (method, path) = (request["method"].as_str().unwrap(), request["path"].as_str().unwrap());
    bytes_of(method, path, &headers, &body)
}

/// The fields that the input adds to what Filebeat's handler makes.
fn without_type(event: &Value) -> Value {
    let mut event = event.clone();
    let fields = event.as_object_mut().unwrap();
    assert_eq!(fields.remove("input"), Some(json!({"type": "http_endpoint"})));
    event
}

/// Answers and events were recorded from Filebeat 9.6, but for those with `differs`, which says what Filebeat does.
#[tokio::test(flavor = "multi_thread")]
async fn answers_and_events_are_those_of_filebeat() {
    let mut cases: Vec<Value> = serde_json::from_str(include_str!("golden.json")).unwrap();
    let programs: Vec<Value> = serde_json::from_str(include_str!("golden_program.json")).unwrap();
    assert!(cases.len() > 100 && programs.len() > 20);
    cases.extend(programs);
    let mut wrong = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        let (address, sockets) = free_address();
        let more = settings_of(&case["config"]);
        let mut bench = Bench::start(input(address, &more, &sockets), 100);
        let answered = exchange(address, &request_of(&case["request"])).await;
        let expected = &case["answer"];
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in expected["headers"].as_object().unwrap() {
            headers.insert(header_of(name), serde_json::from_value(values.clone()).unwrap());
        }
        let events = expected["events"].as_array().unwrap();
        bench.events(events.len()).await;
        let came: Vec<Value> = bench.events.iter().map(without_type).collect();
        let is_body = expected["body"].is_null() || expected["body"] == answered.body;
        let is_right = answered.status == expected["status"]
            && is_body
            && answered.headers == headers
            && came == *events;
        if !is_right {
            wrong.push(format!("{name}: expected {expected}\n  got {answered:?} {}", json!(came)));
        }
        bench.stop().await;
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Lines of a request of the client of the contract.
const LINES: usize = 500;

/// Requests that it keeps; the contract hands over 500 lines before the first verdict.
const IN_FLIGHT: usize = 4;

/// What a client speaks.
#[derive(Clone, Copy)]
struct Dialect {
    /// Settings of the input.
    settings: &'static str,
    /// Over gRPC: requests are bodies.
    is_grpc: bool,
    /// A request with these lines.
    request: fn(&[usize]) -> Vec<u8>,
    /// Whether an answer means that they were taken.
    is_taken: fn(&Answered) -> bool,
    /// Requests of which nothing may be taken.
    garbage: fn() -> Vec<Vec<u8>>,
}

/// JSON, waiting for verdicts.
const PLAIN: Dialect = Dialect {
    settings: "",
    is_grpc: false,
    request: |lines| {
        let body = lines.iter().map(|&number| json!({"message": line(number)}).to_string());
        let body = body.collect::<Vec<_>>().join("\n");
        post("/?wait_for_completion_timeout=1m", &body)
    },
    is_taken: |answered| answered.status == 200,
    garbage: || {
        let half = "{\"message\":\"line 0 half\"}\n{\"message\":";
        [half, "[{\"message\":\"line 0\"},", "line 0"].map(|body| post("/", body)).to_vec()
    },
};

/// A client that sends requests one after the other, and again until they are answered.
struct Client {
    context: Context,
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    dialect: Dialect,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Vec<usize>>,
    acknowledged: BTreeSet<usize>,
}

impl Client {
    fn new(dialect: Dialect) -> Self {
        let (address, sockets) = free_address();
        let shared = Shared { dialect, state: Mutex::default(), changed: Notify::new() };
        let shared = Arc::new(shared);
        let client = Self { context: context(&sockets), address, shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            // Until the runtime ends.
            loop {
                shared.serve(address).await;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        client
    }
}

impl Shared {
    /// Keeps a request to send, unless too many are kept.
    fn push(&self, lines: &[usize]) -> bool {
        let mut state = self.state.lock().unwrap();
        let has_room = state.requests.len() < IN_FLIGHT;
        if has_room {
            state.requests.push_back(lines.to_vec());
        }
        has_room
    }

    /// Sends over a connection until a request is not taken.
    async fn serve(&self, address: SocketAddr) {
        let connected = Connection::open(address, self.dialect.is_grpc).await;
        let Some(mut connection) = connected else { return };
        loop {
            let changed = self.changed.notified();
            let next = self.state.lock().unwrap().requests.front().cloned();
            let Some(lines) = next else {
                changed.await;
                continue;
            };
            let bytes = (self.dialect.request)(&lines);
            match connection.exchange(&bytes).await {
                Some(answered) if (self.dialect.is_taken)(&answered) => {
                    let mut state = self.state.lock().unwrap();
                    state.requests.pop_front();
                    state.acknowledged.extend(lines);
                }
                _ => return,
            }
            self.changed.notify_waiters();
        }
    }
}

/// A connection of any dialect.
enum Connection {
    Http1(TcpStream, Vec<u8>),
    Grpc(http2::Client),
}

impl Connection {
    async fn open(address: SocketAddr, is_grpc: bool) -> Option<Self> {
        let stream = TcpStream::connect(address).await.ok()?;
        Some(if is_grpc {
            Self::Grpc(http2::Client::over(stream).await?)
        } else {
            Self::Http1(stream, Vec::new())
        })
    }

    /// Sends a request and waits for its answer.
    async fn exchange(&mut self, bytes: &[u8]) -> Option<Answered> {
        match self {
            Self::Http1(stream, buffer) => {
                stream.write_all(bytes).await.ok()?;
                Answered::read(stream, buffer).await
            }
            Self::Grpc(client) => client.send(grpc::request(&[], bytes)).await,
        }
    }
}

/// Sends a request of a dialect over a connection of its own; waits for the answer.
async fn exchange_as(dialect: Dialect, address: SocketAddr, bytes: &[u8]) -> Answered {
    let mut connection = Connection::open(address, dialect.is_grpc).await.unwrap();
    connection.exchange(bytes).await.expect("there is an answer")
}

impl InputTrial for Client {
    fn input(&self) -> Box<dyn Input> {
        // As a program that reads its configuration anew.
        let context = Context { wanted: crate::Wanted::default(), ..self.context.clone() };
        input_of(self.address, self.shared.dialect.settings, &context)
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        let push = |part: &[usize]| self.shared.push(part);
        Box::pin(push_in_parts(lines, LINES, &self.shared.changed, push))
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let dialect = self.shared.dialect;
            for bytes in (dialect.garbage)() {
                let answered = exchange_as(dialect, self.address, &bytes).await;
                let is_refused = if dialect.is_grpc {
                    ["3", "13"].contains(&answered.header("grpc-status"))
                } else {
                    (400..500).contains(&answered.status)
                };
                assert!(is_refused, "{answered:?}");
            }
        }))
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        self.shared.state.lock().unwrap().acknowledged.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_wait_for_verdicts_keep_the_contract_of_inputs() {
    keep_input(|| Client::new(PLAIN)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_waits_for_the_verdict_only_if_it_is_asked_for() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    bench.is_stuck = true;
    assert_eq!(exchange(address, &post("/", "{\"a\":1}")).await.status, 200);
    let late = exchange(address, &post("/?wait_for_completion_timeout=50ms", "{\"a\":2}")).await;
    assert_eq!(late.status, 504);
    assert_eq!(late.body, "{\"message\":\"could not publish event within timeout\"}\n");
    let bytes = post("/?wait_for_completion_timeout=30s", "{\"a\":3}");
    let waiting = tokio::spawn(async move { exchange(address, &bytes).await });
    bench.until("all are read", |bench| bench.input.metrics().published.get() == 3).await;
    assert!(!waiting.is_finished(), "it has no verdict");
    bench.is_stuck = false;
    bench.events(3).await;
    assert_eq!(waiting.await.unwrap().status, 200);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_do_not_wait_for_more_events_while_a_client_waits_for_its_answer() {
    for (settings, path, body) in [
        ("", "/?wait_for_completion_timeout=1h", "{\"a\":1}\n"),
        (
            ", accept: elasticsearch, completion_timeout: 1h",
            "/_bulk",
            "{\"create\":{}}\n{\"a\":1}\n",
        ),
    ] {
        let (address, sockets) = free_address();
        let mut bench = Bench::start_patient(input(address, settings, &sockets));
        for number in 0..3 {
            let bytes = post(path, body);
            let ((), answered) = tokio::join!(bench.take_as_output(), exchange(address, &bytes));
            assert_eq!(answered.status, 200, "{number}: {answered:?}");
        }
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_requests_that_wait() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    bench.is_stuck = true;
    let bytes = post("/?wait_for_completion_timeout=1h", "{\"a\":1}");
    let waiting = tokio::spawn(async move { exchange(address, &bytes).await });
    bench.until("it is read", |bench| bench.input.metrics().published.get() == 1).await;
    bench.stop_without_taking().await;
    let answered = waiting.await.unwrap();
    assert!([503, 504].contains(&answered.status), "{answered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_wait_for_room_go_in_also_if_the_client_leaves() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 1);
    bench.is_stuck = true;
    assert_eq!(exchange(address, &post("/", "{\"a\":1}")).await.status, 200);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&post("/", "{\"a\":2}")).await.unwrap();
    bench.until("it is read", |bench| bench.input.metrics().events.get() == 2).await;
    drop(stream);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(bench.settle.total().dropped().total(), 0);
    bench.is_stuck = false;
    bench.events(2).await;
    assert_eq!(bench.events[1]["json"], json!({"a": 2}));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_keep_their_order_over_several_batches_of_either_shape() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100_000);
    let objects: Vec<String> = (0..20_000)
        .map(|number| format!("{{\"n\":{number},\"t\":\"é\\n{}\"}}", "x".repeat(number % 90)))
        .collect();
    for body in [objects.join("\n"), format!("[{}]", objects.join(",")), objects.join(" ")] {
        assert!(body.len() > 1_000_000);
        let bytes = post("/?wait_for_completion_timeout=30s", &body);
        let asking = tokio::spawn(async move { exchange(address, &bytes).await });
        bench.events(objects.len()).await;
        assert_eq!(asking.await.unwrap().status, 200);
        let numbers = bench.events.drain(..).map(|event| event["json"]["n"].as_u64().unwrap());
        assert!(numbers.eq(0..objects.len() as u64));
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_refused_while_too_much_has_no_answer() {
    let (address, sockets) = free_address();
    let limits = ", max_in_flight_bytes: 100, high_water_in_flight_bytes: 7, low_water_in_flight_bytes: 2, retry_after: 3";
    let mut bench = Bench::start(input(address, limits, &sockets), 100);
    bench.is_stuck = true;
    let bytes = post("/?wait_for_completion_timeout=30s", "{\"a\":1}");
    let waiting = tokio::spawn(async move { exchange(address, &bytes).await });
    bench.until("it is read", |bench| bench.input.metrics().published.get() == 1).await;
    let busy = exchange(address, &post("/", "{\"a\":2}")).await;
    assert_eq!((busy.status, &busy.headers["retry-after"][0][..]), (503, "3"));
    assert_eq!(
        busy.body,
        r#"{"warn":"in flight bytes above high water mark","high_water":7,"in_flight":7}"#
    );
    bench.is_stuck = false;
    bench.events(1).await;
    assert_eq!(waiting.await.unwrap().status, 200);
    assert_eq!(exchange(address, &post("/", "{\"a\":3}")).await.status, 200);
    bench.events(2).await;
    bench.stop().await;
}

#[test]
fn settings_are_those_of_filebeat() {
    for (text, expected) in [
        ("{}", ""),
        (
            "{listen_address: '', listen_port: '9', url: '/x/', method: PATCH, prefix: '.', content_type: '', \
             response_code: 201, response_body: '[]', options_headers: {a: b, c: [d, e]}, \
             options_response_code: 204, basic_auth: true, username: u, password: p, secret.header: S, \
             secret.value: v, hmac: {header: H, key: k, type: sha1, prefix: p}, crc: {provider: Zoom, secret: s}, \
             include_headers: [a], preserve_original_event: true, max_body_bytes: 1MiB, \
             max_in_flight_bytes: 100, high_water_in_flight_bytes: 50, low_water_in_flight_bytes: 10, \
             retry_after: 1, ssl.enabled: false}",
            "",
        ),
        ("{url: hook}", "begins with `/`"),
        ("{url: '/a?c=d'}", "write `/a`"),
        ("{url: /a b}", ""),
        (
            "{listen_address: '0.0.0.0:46001'}",
            "x:1:18: `listen_address` is `0.0.0.0:46001`; the port is a setting of its own: write \
             `listen_address: 0.0.0.0` and `listen_port: 46001`",
        ),
        ("{listen_address: 'http://0.0.0.0'}", "no URL: write `listen_address: 0.0.0.0`"),
        ("{method: GET}", "`method`"),
        ("{prefix: 'a..b'}", "`prefix`"),
        ("{response_body: '{'}", "expected JSON"),
        ("{response_code: 99}", "`response_code`"),
        ("{options_response_code: 600}", "`options_response_code`"),
        ("{options_headers: {'a b': c}}", "`options_headers.a b` cannot be sent"),
        ("{basic_auth: true, username: u}", "set `username` and `password`"),
        ("{username: u, password: p}", "`username` has no effect without `basic_auth`"),
        ("{password: p}", "`password` has no effect without `basic_auth`: anybody can send"),
        ("{secret: {header: '', value: ''}}", "`secret.value` is empty, and is not asked for"),
        ("{accept: splunk_hec, splunk_hec.token: ''}", "is empty: anybody could send"),
        ("{accept: otlp, url: /v1/logs}", "use `url: /`, which is the default: clients add"),
        ("{accept: otlp, url: /v1/logs/}", "the paths of the protocol are below that"),
        ("{accept: loki, url: /x}", "add a `/`"),
        ("{secret.header: S}", "`secret.header` needs `secret.value`"),
        ("{secret.value: S}", "`secret.value` needs `secret.header`"),
        ("{secret: {header: 'a b', value: v}}", "expected a header"),
        ("{hmac.key: k}", "`hmac.key` needs `hmac.header`"),
        ("{hmac: {key: k, header: H}}", "`hmac.type` is missing; expected `sha256` or `sha1`"),
        ("{hmac: {key: k, header: H}}", "Filebeat checks no signature"),
        (
            "{hmac: {key: k, header: H, type: md5}}",
            "`hmac.type` is `md5`; expected `sha256` or `sha1`",
        ),
        ("{hmac.type: md5}", "`hmac.type`"),
        ("{crc.provider: other, crc.secret: s}", "expected `zoom`"),
        ("{crc.secret: s}", "`crc.secret` needs `crc.provider`"),
        ("{include_headers: ['a b']}", "the name of a header"),
        ("{max_body_bytes: 1GiB}", "`max_body_bytes`"),
        ("{high_water_in_flight_bytes: 1}", "need `max_in_flight_bytes`"),
        ("{max_in_flight_bytes: 10, low_water_in_flight_bytes: 9}", "expected less than 5"),
        ("{retry_after: -1}", "`retry_after`"),
        ("{listen_port: 70000}", "`listen_port`"),
        ("{program: 'obj.map(x, {\"y\": x})'}", ""),
        ("{accept: [elasticsearch, loki, otlp], completion_timeout: 5s}", ""),
        ("{accept: splunk_hec, prefix: '.', splunk_hec: {token: t, use_ack: true}}", ""),
        ("{accept: [ndjson]}", ""),
        ("{accept: [ndjson, loki]}", "has `ndjson` beside others"),
        ("{accept: syslog}", "expected `ndjson`, or some of"),
        ("{accept: splunk}", "`; did you mean `splunk_hec`?"),
        ("{accept: [elastic]}", "`; did you mean `elasticsearch`?"),
        ("{accept: lokki}", "`; did you mean `loki`?"),
        ("{accept: loki, url: /x}", "does not end with `/`"),
        ("{accept: loki, method: PUT}", "only `ndjson` in `accept` has it"),
        ("{accept: loki, prefix: x}", "only `ndjson` in `accept` has it"),
        ("{accept: loki, splunk_hec.token: t}", "`splunk_hec.token` needs `splunk_hec`"),
        ("{completion_timeout: 0s}", "`completion_timeout`"),
        ("{program: 'obj +'}", "`program`"),
        ("{program: 'obj.lowerAscii()'}", "undeclared reference to `lowerAscii`"),
        ("{ssl: {certificate: /nowhere, key: /nowhere}}", "/nowhere"),
    ] {
        let (read, problems) = read_text(text, &context(&Sockets::default()));
        assert!(problems.contains(expected), "{text}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{text}: {problems}");
        assert!(read.is_some() || !expected.is_empty(), "{text}");
    }
}
