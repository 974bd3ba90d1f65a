//! A server of streams over a simulated network: connections break anywhere, the input is replaced and stopped at any
//! time, from seeds; a reference that sees all bytes at once says which events must come.

use super::simulated::SimNetwork;
use super::*;
use crate::listen::{ListenPlace, StreamAddress};
use crate::testing::{Bench, context, read_with};
use skidder_input::{Input, InputFuture, Intake};
use skidder_net::{Family, SocketKey, Sockets};
use skidder_testkit::Random;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::io::{AsyncWriteExt as _, DuplexStream};

/// Seeds of a usual run.
const SEEDS: u64 = 40;

struct Streams(StreamServer);

impl Input for Streams {
    fn kind(&self) -> &'static str {
        "tcp"
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(serve(self.0, intake))
    }
}

fn streams(settings: &str, network: &SimNetwork, sockets: &Sockets) -> Box<dyn Input> {
    Box::new(Streams(server(settings, network, sockets)))
}

fn server(settings: &str, network: &SimNetwork, sockets: &Sockets) -> StreamServer {
    let (settings, problems) = read_with(settings, StreamSettings::read);
    assert_eq!(problems, "");
    let context = context(sockets);
    let (host, port, family) = ("192.0.2.2".to_owned(), 9000, Family::Any);
    let key = SocketKey::Tcp { host: host.clone(), port, family };
    StreamServer {
        place: ListenPlace {
            address: StreamAddress::Tcp { host, port, family },
            claim: context.sockets.claim(key),
            network: Arc::new(network.clone()),
        },
        settings: settings.unwrap(),
        tls: None,
        tls_fields: false,
        fs: context.fs,
        device: "192.0.2.2:9000".to_owned(),
        on_batch: None,
    }
}

/// What a client of a seed has sent, and how much of it arrives.
struct Client {
    port: u16,
    connection: Option<DuplexStream>,
    sent: Vec<u8>,
    /// The rest of a message that is sent in pieces.
    unsent: Vec<u8>,
    breaks_after: Option<usize>,
}

impl Client {
    /// The messages that must come.
    fn expected(&self, framing: &Framing) -> Vec<String> {
        let most = self.breaks_after.unwrap_or(usize::MAX).min(self.sent.len());
        let bytes = &self.sent[..most];
        let (mut start, mut searched) = (0, 0);
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while let Frame::Message { text: at, end } = framing.next(bytes, start, &mut searched) {
            found.push(text(&bytes[at]));
            start = end;
        }
        if let Rest::Message(at) = framing.rest(&bytes[start..]) {
            found.push(text(&bytes[start..][at]));
        }
        found
    }
}

fn message(random: &mut Random, settings: &str, number: u64) -> Vec<u8> {
    let long = if random.one_in(20) { 9000 } else { 40 };
    let text = format!("{number} {}", "é".repeat(random.below(long) as usize / 2));
    match settings {
        RFC6587 if random.one_in(2) => format!("{} {text}", text.len()).into_bytes(),
        RFC6587 => format!("<{text}\n").into_bytes(),
        LINES => format!("{text}\r\n").into_bytes(),
        _ => format!("{text}|end|").into_bytes(),
    }
}

const LINES: &str = "max_message_size: 32KiB";
const RFC6587: &str = "framing: rfc6587";
const WORDS: &str = "line_delimiter: '|end|'";

async fn run(seed: u64) {
    let mut random = Random::new(seed);
    let settings = [LINES, RFC6587, WORDS][random.below(3) as usize];
    let framing = read_with(settings, StreamSettings::read).0.unwrap().framing;
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let room = if random.one_in(2) { 300 } else { 5 };
    let mut bench = Bench::start(streams(settings, &network, &sockets), room);
    let mut clients: Vec<Client> = Vec::new();
    for number in 0..200 {
        match random.below(30) {
            0..4 => {
                let breaks_after = random.one_in(3).then(|| random.below(6000) as usize + 1);
                let port = 1000 + clients.len() as u16;
                let connection = Some(network.connect(port, breaks_after));
                clients.push(Client {
                    port,
                    connection,
                    sent: Vec::new(),
                    unsent: Vec::new(),
                    breaks_after,
                });
            }
            4 => {
                bench.is_stuck = random.one_in(2);
                for _ in 0..=random.below(2) {
                    bench.replace(streams(settings, &network, &sockets)).await;
                }
                bench.is_stuck = false;
            }
            5 if !clients.is_empty() => {
                let at = random.below(clients.len() as u64) as usize;
                clients[at].connection = None;
            }
            6..12 => bench.take(),
            _ if clients.is_empty() => {}
            _ => {
                let at = random.below(clients.len() as u64) as usize;
                let Client { connection: Some(connection), sent, unsent, .. } = &mut clients[at]
                else {
                    continue;
                };
                if unsent.is_empty() {
                    *unsent = message(&mut random, settings, number);
                }
                let most = if random.one_in(2) { unsent.len() } else { unsent.len().min(20) };
                let piece: Vec<u8> = unsent.drain(..most).collect();
                if connection.write_all(&piece).await.is_ok() {
                    sent.extend_from_slice(&piece);
                }
            }
        }
    }
    bench.stop().await;
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in &bench.events {
        let peer = event["log"]["source"]["address"].as_str().unwrap().to_owned();
        found.entry(peer).or_default().push(event["message"].as_str().unwrap().to_owned());
    }
    for client in &clients {
        let peer = format!("192.0.2.1:{}", client.port);
        let found = found.remove(&peer).unwrap_or_default();
        assert_eq!(found, client.expected(&framing), "seed {seed}: {settings}: {peer}");
    }
    assert!(found.is_empty(), "seed {seed}: {found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_the_bytes_that_arrived_whatever_happens() {
    for seed in 0..SEEDS {
        run(seed).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_in_use_is_tried_again_and_reported() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    *network.failures.lock().unwrap() = 2;
    let mut bench = Bench::start(streams("{}", &network, &sockets), 100);
    bench.until("trouble", |bench| bench.input.metrics().trouble().is_some()).await;
    let trouble = bench.input.metrics().trouble().unwrap();
    assert_eq!(
        &*trouble,
        "cannot listen on 192.0.2.2:9000: another input or another process does already"
    );
    let mut client = network.connect(1, None);
    client.write_all(b"a\n").await.unwrap();
    bench.events(1).await;
    assert_eq!(bench.input.metrics().errors.get(), 2);
    assert_eq!(bench.input.metrics().trouble(), None);
    let listening = bench.input.metrics().listening();
    assert_eq!(listening.device.get().map(String::as_str), Some("192.0.2.2:9000"));
    assert_eq!(listening.message_bytes.get(), 1);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_silent_for_the_timeout_is_closed_and_its_rest_delivered() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let mut bench = Bench::start(streams("timeout: 50ms", &network, &sockets), 100);
    let mut client = network.connect(1, None);
    client.write_all(b"full\npart").await.unwrap();
    bench
        .until("it is closed", |bench| {
            bench.input.metrics().open.get() == 0 && bench.events.len() == 2
        })
        .await;
    assert_eq!(bench.messages(), ["full", "part"]);
    assert_eq!(bench.input.metrics().errors.get(), 0);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_connection_is_counted_and_its_rest_delivered() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let mut bench = Bench::start(streams("{}", &network, &sockets), 100);
    let mut client = network.connect(1, Some(7));
    client.write_all(b"full\npart").await.unwrap();
    bench.until("it is closed", |bench| bench.input.metrics().errors.get() == 1).await;
    bench.events(2).await;
    assert_eq!(bench.messages(), ["full", "pa"]);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_counted_and_costs_only_its_connection() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let settings = "{framing: rfc6587, max_message_size: 20}";
    let mut bench = Bench::start(streams(settings, &network, &sockets), 100);
    let inputs: [&[u8]; 4] =
        [b"3 abc12x 3 def", b"1 a25 long", b"short\nthis line is too long", b"1 b9 cut"];
    for (port, bytes) in (1..).zip(inputs) {
        network.connect(port, None).write_all(bytes).await.unwrap();
    }
    bench
        .until("all are closed", |bench| {
            bench.input.metrics().errors.get() == 4 && bench.input.metrics().open.get() == 0
        })
        .await;
    bench.stop().await;
    let mut messages = bench.messages();
    messages.sort_unstable();
    assert_eq!(messages, ["a", "abc", "b", "short"]);
    let dropped = *bench.settle.total().dropped();
    assert_eq!(dropped.get(skidder_event::DropReason::LineTooLong), 2);
    assert_eq!(dropped.get(skidder_event::DropReason::Parser), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_and_very_many_short_messages_arrive() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let mut bench = Bench::start(streams("{}", &network, &sockets), 100_000);
    let mut client = network.connect(1, None);
    let long = "x".repeat(3 << 20);
    let mut text = "a\n".repeat(50_000);
    text += &long;
    text += "\nb";
    let writing = tokio::spawn(async move {
        client.write_all(text.as_bytes()).await.unwrap();
    });
    bench.events(50_002).await;
    writing.await.unwrap();
    bench.stop().await;
    let messages = bench.messages();
    assert!(messages[..50_000].iter().all(|message| *message == "a"));
    assert!(messages[50_000] == long && messages[50_001..] == ["b"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_may_change_each_batch() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let on_batch = skidder_input::OnBatch::new(|batch| {
        let path = skidder_event::Path::parse("length").unwrap();
        for row in 0..batch.len() {
            let length = i64::from(batch.rows()[row].message.len);
            let base = Arc::clone(batch.base());
            let mut event = batch.event_mut(row, &base);
            event.put_cell(&path, skidder_event::Cell::Int(length)).unwrap();
        }
    });
    let mut server = server("{}", &network, &sockets);
    server.on_batch = Some(on_batch);
    let mut bench = Bench::start(Box::new(Streams(server)), 100);
    network.connect(1, None).write_all(b"a\nbcd\n").await.unwrap();
    bench.events(2).await;
    assert_eq!((&bench.events[0]["length"], &bench.events[1]["length"]), (&1.into(), &3.into()));
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_while_the_queue_is_full_counts_each_message_that_was_read() {
    let (network, sockets) = (SimNetwork::new(), Sockets::default());
    let mut bench = Bench::start(streams("{}", &network, &sockets), 10);
    let mut client = network.connect(1, None);
    // At once: nothing is read behind the batch that waits for room.
    let bytes = "a\n".repeat(10_000) + "rest";
    client.write_all(bytes.as_bytes()).await.unwrap();
    let received = async {
        while bench.input.metrics().bytes.get() < 20_004 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::testing::PATIENCE, received).await.unwrap();
    bench.stop_without_taking().await;
    let total = bench.settle.total();
    let dropped = total.dropped().get(skidder_event::DropReason::Stopped);
    assert_eq!((total.read(), total.in_flight() + dropped), (10_001, 10_001), "{total:?}");
}
