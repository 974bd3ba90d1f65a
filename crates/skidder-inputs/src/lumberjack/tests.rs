//! The input with clients of its own, of the contract, and of others.

use super::frames::tests::{compressed_frame, json_frame, pairs_frame, window_frame};
use super::*;
use crate::testing::{Bench, Certificates, context, free_address, push_in_parts, read_with};
use serde_json::json;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_net::Sockets;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Mutex;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;

fn read_text(text: &str, sockets: &Sockets) -> (Option<Box<dyn Input>>, String) {
    read_with(text, |section| read(section, &context(sockets)))
}

pub(super) fn input(address: SocketAddr, more: &str, sockets: &Sockets) -> Box<dyn Input> {
    let (read, problems) = read_text(&format!("{{listen_address: '{address}'{more}}}"), sockets);
    assert_eq!(problems, "");
    read.unwrap()
}

/// Events of a window of a client.
const WINDOW: usize = 50;

/// Windows without an answer, at most; the contract hands over 500 lines before the first verdict.
const IN_FLIGHT: usize = 20;

/// A client that connects and sends again until all was answered.
struct Client {
    sockets: Sockets,
    address: SocketAddr,
    is_compressed: bool,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    /// Windows without an answer, the first of which were sent over the connection that is open.
    windows: VecDeque<Vec<usize>>,
    sent: usize,
    acknowledged: BTreeSet<usize>,
}

impl Client {
    fn new(is_compressed: bool) -> Self {
        let (address, sockets) = free_address();
        let shared = Arc::<Shared>::default();
        let client = Self { sockets, address, is_compressed, shared: Arc::clone(&shared) };
        tokio::spawn(async move {
            // Until the runtime ends.
            loop {
                if let Ok(stream) = TcpStream::connect(address).await {
                    shared.state.lock().unwrap().sent = 0;
                    drop(shared.serve(stream, is_compressed).await);
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        client
    }
}

impl Shared {
    /// Keeps a window to send, unless too many have no answer.
    fn push(&self, window: &[usize]) -> bool {
        let mut state = self.state.lock().unwrap();
        let has_room = state.windows.len() < IN_FLIGHT;
        if has_room {
            state.windows.push_back(window.to_vec());
        }
        has_room
    }

    /// Sends over a connection until that ends.
    async fn serve(&self, stream: TcpStream, is_compressed: bool) -> std::io::Result<()> {
        let (mut read, mut write) = stream.into_split();
        let sending = async {
            loop {
                let window = {
                    let mut state = self.state.lock().unwrap();
                    let next = state.windows.get(state.sent).cloned();
                    state.sent += usize::from(next.is_some());
                    next
                };
                match window {
                    Some(window) => write.write_all(&bytes_of(&window, is_compressed)).await?,
                    None => self.changed.notified().await,
                }
            }
        };
        let answers = async {
            loop {
                let mut frame = [0; 6];
                read.read_exact(&mut frame).await?;
                assert_eq!(frame[..2], *b"2A");
                let number = u32::from_be_bytes([frame[2], frame[3], frame[4], frame[5]]);
                if number == 0 {
                    continue;
                }
                let mut state = self.state.lock().unwrap();
                let window = state.windows.pop_front().expect("a window was sent");
                assert_eq!(number as usize, window.len(), "all of the oldest one");
                state.sent -= 1;
                state.acknowledged.extend(window);
                drop(state);
                self.changed.notify_waiters();
            }
        };
        tokio::select! {
            ended = sending => ended,
            ended = answers => ended,
        }
    }
}

fn bytes_of(window: &[usize], is_compressed: bool) -> Vec<u8> {
    let mut events = Vec::new();
    for (number, line_number) in (1..).zip(window) {
        let text = json!({ "message": line(*line_number) }).to_string();
        events.extend(json_frame(number, text.as_bytes()));
    }
    let events = if is_compressed { compressed_frame(b'2', &events) } else { events };
    [window_frame(b'2', window.len() as u32), events].concat()
}

impl InputTrial for Client {
    fn input(&self) -> Box<dyn Input> {
        input(self.address, ", target: '', keepalive: 50ms", &self.sockets)
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        let push = |part: &[usize]| self.shared.push(part);
        Box::pin(push_in_parts(lines, WINDOW, &self.shared.changed, push))
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async {
            let is_odd = self.is_compressed;
            let mut connection = TcpStream::connect(self.address).await.unwrap();
            let half = [window_frame(b'2', 2), json_frame(1, b"{\"message\":\"half\"}")].concat();
            let garbage = if is_odd {
                b"GET / HTTP/1.1\r\n\r\n".to_vec()
            } else {
                [&half[..], b"2X"].concat()
            };
            connection.write_all(&garbage).await.unwrap();
            // It is closed for it.
            let mut rest = Vec::new();
            drop(connection.read_to_end(&mut rest).await);
            assert!(rest.is_empty());
        }))
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        self.shared.state.lock().unwrap().acknowledged.clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_keep_the_contract_of_inputs() {
    keep_input(|| Client::new(false)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_windows_keep_the_contract_of_inputs() {
    keep_input(|| Client::new(true)).await;
}

/// Sends bytes and waits for so many bytes of the answer.
async fn exchange(address: SocketAddr, bytes: &[u8], answer: usize) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answered = vec![0; answer];
    stream.read_exact(&mut answered).await.unwrap();
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_filebeat() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let event = br#"{"@timestamp":"2026-01-02T03:04:05.678Z","@metadata":{"beat":"b"},"message":"m","a.b":[1,null,{"c":1.50}],"n":null}"#;
    let bytes = [window_frame(b'2', 1), json_frame(1, event)].concat();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let peer = stream.local_addr().unwrap().to_string();
    stream.write_all(&bytes).await.unwrap();
    bench.events(1).await;
    let sent: serde_json::Value = serde_json::from_slice(event).unwrap();
    let expected = json!({
        "lumberjack": sent,
        "source": {"address": peer},
        "input": {"type": "lumberjack"},
    });
    assert_eq!(bench.events[0], expected);
    let mut answer = [0; 6];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, *b"2A\0\0\0\x01");
    // Version 1, over another connection.
    let bytes =
        [window_frame(b'1', 1), pairs_frame(9, &[("line", "a \"b\""), ("file", "/x")])].concat();
    let reading = tokio::spawn(async move { exchange(address, &bytes, 6).await });
    bench.events(2).await;
    assert_eq!(bench.events[1]["lumberjack"], json!({"line": "a \"b\"", "file": "/x"}));
    assert_eq!(reading.await.unwrap(), *b"1A\0\0\0\x09");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outputs_do_not_wait_for_more_events_while_a_client_waits_for_its_answer() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start_patient(input(address, "", &sockets));
    for number in 0..3 {
        let bytes = [window_frame(b'2', 1), json_frame(1, b"{}")].concat();
        let ((), answer) = tokio::join!(bench.take_as_output(), exchange(address, &bytes, 6));
        assert_eq!(answer, *b"2A\0\0\0\x01", "{number}");
    }
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_empty_target_the_event_is_the_one_that_was_sent() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", target: ''", &sockets), 100);
    let event = br#"{"@timestamp":"2026-01-02T03:04:05.678Z","@metadata":{"beat":"b"},"message":"m","input":{"type":"filestream"},"log":{"offset":7}}"#;
    let bytes = [window_frame(b'2', 2), json_frame(1, event), json_frame(2, b"{\"a\":1}")].concat();
    let answer = exchange(address, &bytes, 6);
    let ((), answer) = tokio::join!(bench.events(2), answer);
    assert_eq!(answer, *b"2A\0\0\0\x02");
    let source = bench.events[0].as_object_mut().unwrap().remove("source").unwrap();
    assert!(source["address"].is_string());
    let expected = json!({"message": "m", "input": {"type": "filestream"}, "log": {"offset": 7}});
    assert_eq!(bench.events[0], expected);
    assert_eq!(bench.events[1]["a"], 1);
    assert!(bench.events[1].get("message").is_none(), "{}", bench.events[1]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_sent_as_it_is_and_the_rest_of_its_window_as_well() {
    for (target, place) in [("lumberjack", "/lumberjack/a"), ("''", "/a")] {
        let (address, sockets) = free_address();
        let more = format!(", target: {target}");
        let mut bench = Bench::start(input(address, &more, &sockets), 100);
        let texts: [&[u8]; 3] = [b"{\"a\":1}", b"{\"a\": tru", b"{\"a\":2}"];
        let mut bytes = window_frame(b'2', 3);
        for (number, text) in (1..).zip(texts) {
            bytes.extend(json_frame(number, text));
        }
        let ((), answer) = tokio::join!(bench.events(3), exchange(address, &bytes, 6));
        assert_eq!(answer, *b"2A\0\0\0\x03");
        assert_eq!(bench.events[0].pointer(place), Some(&json!(1)));
        assert_eq!(bench.events[1]["message"], "{\"a\": tru");
        assert_eq!(bench.events[1]["error"]["type"], "json");
        assert!(bench.events[1].pointer(place).is_none());
        assert_eq!(bench.events[2].pointer(place), Some(&json!(2)));
        assert_eq!(bench.input.metrics().errors.get(), 1);
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_waits_hears_that_its_answer_is_not_there_yet_and_gets_it() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", keepalive: 20ms", &sockets), 100);
    bench.is_stuck = true;
    let bytes = [window_frame(b'2', 1), json_frame(1, b"{}")].concat();
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&bytes).await.unwrap();
    let mut answer = [0; 6];
    for _ in 0..3 {
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(answer, *b"2A\0\0\0\0");
    }
    bench.is_stuck = false;
    bench.events(1).await;
    while answer == *b"2A\0\0\0\0" {
        stream.read_exact(&mut answer).await.unwrap();
    }
    assert_eq!(answer, *b"2A\0\0\0\x01");
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_window_finds_a_full_queue_gets_keep_alives_and_its_end_is_noticed() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, ", keepalive: 20ms", &sockets), 100);
    bench.is_stuck = true;
    let mut first = TcpStream::connect(address).await.unwrap();
    let events: Vec<u8> = (1..=100).flat_map(|number| json_frame(number, b"{}")).collect();
    first.write_all(&[window_frame(b'2', 100), events].concat()).await.unwrap();
    bench.until("the queue is full", |bench| bench.input.metrics().published.get() == 100).await;
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(&[window_frame(b'2', 1), json_frame(1, b"{}")].concat()).await.unwrap();
    let mut answer = [0; 6];
    let answered = tokio::time::timeout(Duration::from_secs(10), second.read_exact(&mut answer));
    answered.await.expect("not yet, which it says").unwrap();
    assert_eq!(answer, *b"2A\0\0\0\0");
    drop(second);
    bench.until("it is gone", |bench| bench.input.metrics().open.get() == 1).await;
    bench.is_stuck = false;
    bench.events(100).await;
    bench.stop().await;
    assert_eq!(bench.events.len(), 100, "what the client that left has sent it sends again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_stops_within_a_window_is_given_up_after_the_timeout() {
    let half = [window_frame(b'2', 2), json_frame(1, b"{}")].concat();
    // All events are there; the compressed frame that has them is not at its end.
    let mut compressed = compressed_frame(b'2', &json_frame(1, b"{}"));
    let length = compressed.len() as u32 - 6 + 100;
    compressed[2..6].copy_from_slice(&length.to_be_bytes());
    let unfinished = [window_frame(b'2', 1), compressed].concat();
    for bytes in [half, unfinished] {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, ", timeout: 50ms", &sockets), 100);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        let mut rest = Vec::new();
        let closed = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest));
        closed.await.expect("it is closed").unwrap();
        assert!(rest.is_empty());
        bench.until("it is counted", |bench| bench.input.metrics().errors.get() == 1).await;
        assert!(bench.events.is_empty(), "the client sends the whole window again");
        bench.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_are_counted_as_in_filebeat() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    let event = |number| json_frame(number, b"{}");
    let whole = [window_frame(b'2', 0), window_frame(b'2', 2), event(1), event(2)].concat();
    let ((), answer) = tokio::join!(bench.events(2), exchange(address, &whole, 6));
    assert_eq!(answer, *b"2A\0\0\0\x02");
    bench.is_stuck = true;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let half = [window_frame(b'2', 1), event(1), window_frame(b'2', 2), event(1)].concat();
    stream.write_all(&half).await.unwrap();
    let metrics = Arc::clone(bench.input.metrics());
    let batches = &metrics.listening().batches;
    bench.until("two windows are whole", |_| batches.received.get() == 2).await;
    assert_eq!(batches.messages.get(), 3, "the half window and the empty one do not count");
    assert_eq!(batches.acknowledged.get(), 1, "the second one has no verdict");
    assert_eq!(batches.processing_time.summary().count, 1);
    assert_eq!(batches.address.get(), Some(&format!("tcp://{address}")));
    bench.is_stuck = false;
    bench.until("it has its answer", |_| batches.acknowledged.get() == 2).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_answers_what_was_delivered() {
    let (address, sockets) = free_address();
    let mut bench = Bench::start(input(address, "", &sockets), 100);
    bench.is_stuck = true;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[window_frame(b'2', 1), json_frame(1, b"{}")].concat()).await.unwrap();
    bench.until("it is read", |bench| bench.input.metrics().events.get() == 1).await;
    bench.is_stuck = false;
    bench.stop().await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, *b"2A\0\0\0\x01");
}

#[test]
fn settings_are_those_of_filebeat() {
    let sockets = Sockets::default();
    for (text, expected) in [
        ("{}", ""),
        (
            "{listen_address: ':5044', versions: [V2], keepalive: 1s, timeout: 5s, max_connections: 7}",
            "",
        ),
        (
            "{versions: [], keepalive: 0, timeout: 0, ssl.enabled: false, max_message_size: 1MiB}",
            "",
        ),
        ("versions: [v3]", "expected `v1` or `v2`"),
        ("listen_address: '5044'", "`listen_address` is `5044`; expected `host:port`"),
        ("keepalive: -1s", "`keepalive`"),
        ("max_connections: -1", "`max_connections`"),
        ("max_message_size: 0", "`max_message_size`"),
        ("target: 'a..b'", "`target`"),
        ("hosts: [':5044']", "unknown setting `hosts`"),
        ("hosts: [':5044']", "did you mean `listen_address`?"),
        ("{ssl: {certificate: /nowhere, key: /nowhere}}", "/nowhere"),
    ] {
        let (read, problems) = read_text(text, &sockets);
        assert!(problems.contains(expected), "{text}: {problems}");
        assert_eq!(problems.is_empty(), expected.is_empty(), "{text}: {problems}");
        assert!(read.is_some() || !expected.is_empty(), "{text}");
    }
}

/// Hands lines to a client of Elastic's library, and waits until all are acknowledged.
async fn forward(client: &skidder_testkit::servers::Server, events: &[String]) {
    let stream = TcpStream::connect(("127.0.0.1", client.port())).await.unwrap();
    let (read, mut write) = stream.into_split();
    let text = events.join("\n") + "\n";
    let writing = async { write.write_all(text.as_bytes()).await.unwrap() };
    let reading = async {
        let mut answers = tokio::io::BufReader::new(read).lines();
        for _ in events {
            assert_eq!(answers.next_line().await.unwrap().unwrap(), "acknowledged");
        }
    };
    tokio::join!(writing, reading);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn clients_of_elastics_own_library_deliver_every_event_plain_compressed_and_over_tls() {
    let certificates = Certificates::new();
    let ssl = format!(", ssl: {{{}}}", certificates.server());
    let path = |name: &str| certificates.path(name);
    let with_certificate =
        format!("-tls -cert {} -key {}", path("shipper.pem"), path("shipper.key"));
    for (options, ssl) in [("-compression 0", ""), ("-batch 3000", ""), (&with_certificate, &*ssl)]
    {
        let (address, sockets) = free_address();
        let mut bench = Bench::start(input(address, ssl, &sockets), 1000);
        let target = address.to_string();
        let options_of_client = options.to_owned();
        let starting = tokio::task::spawn_blocking(move || {
            skidder_testkit::servers::Server::own_lumberjack_client(&target, &options_of_client)
        });
        let client = starting.await.unwrap().unwrap();
        let events: Vec<String> =
            (0..5000).map(|number| json!({"message": line(number)}).to_string()).collect();
        tokio::join!(forward(&client, &events), bench.events(events.len()));
        let came: BTreeSet<String> =
            bench.events.iter().map(|event| event["lumberjack"].to_string()).collect();
        assert_eq!((came.len(), bench.events.len()), (5000, 5000), "{options}");
        let subject = bench.events[0].pointer("/tls/client/subject");
        // The name that the authority of the tests gives to all.
        let expected = (!ssl.is_empty()).then(|| json!("rcgen self signed cert"));
        assert_eq!(subject, expected.as_ref());
        bench.stop().await;
    }
}
