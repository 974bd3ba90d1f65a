//! Chains of two programs to Elasticsearch, with accounts of both: each process is killed at random places, no line is
//! missing, and every line that comes twice was delivered and not settled when something was killed.
//!
//! `SKIDDER_TEST_LINES` sets the number of lines, `SKIDDER_TEST_PROGRAM` a program to test instead of this build's.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

#[path = "../../skidder-output-kafka/tests/common/client.rs"]
#[allow(dead_code, reason = "the tests of the output use the other parts")]
mod client;

use client::Client;
use common::lines::{LINE_BYTES, Log, judge};
use common::program::{Ended, Program, patiently};
use common::server::BulkServer;
use common::{Place, accept, print, seeds};
use serde_json::json;
use skidder_os::{Clock, SystemClock};
use skidder_testkit::Random;
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::{Server, unique_name};
use std::net::TcpListener;
use std::time::Duration;

/// The most events that one program has delivered without a commit: those of a second, of a debug build.
const REPEATED_MAX: usize = 60_000;

/// Lines of a run.
const LINES: usize = 100_000;

/// Lines of a run that ends in Elasticsearch itself, which takes longer.
const LINES_OF_ELASTICSEARCH: usize = 30_000;

/// A number that has not changed for so long does not change any more.
const STILL: Duration = Duration::from_millis(500);

/// Between two looks that cost something.
const PAUSE: Duration = Duration::from_millis(50);

fn line_count(usual: usize) -> usize {
    std::env::var("SKIDDER_TEST_LINES").map_or(usual, |count| count.parse().unwrap())
}

/// What happens to a process while lines are on their way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    KillSender,
    KillReceiver,
    KillBroker,
    StopSender,
    StopReceiver,
}

use Event::{KillBroker, KillReceiver, KillSender, StopReceiver, StopSender};

/// The events in an order that comes from the seed.
fn shuffled(random: &mut Random, mut events: Vec<Event>) -> Vec<Event> {
    for place in (1..events.len()).rev() {
        events.swap(place, random.below(place as u64 + 1) as usize);
    }
    events
}

/// The way from one end to the next: what comes twice on it.
struct Hop {
    name: &'static str,
    twice: usize,
}

impl Hop {
    /// Takes stock while nothing is on this way: `settled` lines will not be sent again, `came` have come at the other
    /// end. What came and is not settled comes once more; returns how many those are.
    fn take_stock(&mut self, event: Event, settled: usize, came: usize) -> usize {
        let Self { name, twice: before } = *self;
        let twice = came.checked_sub(settled + before).unwrap_or_else(|| {
            panic!("{name}, {event:?}: {settled} lines are settled, {came} came, {before} of them twice")
        });
        print(&format!(
            "{name:<22} | {event:<12?} | settled {settled:>8} | came {came:>8} | again {twice:>6}"
        ));
        assert!(twice <= REPEATED_MAX, "{name}, {event:?}: {twice} lines come twice");
        self.twice += twice;
        twice
    }
}

/// Waits until a number does not change any more.
fn still(mut number: impl FnMut() -> usize) -> usize {
    let clock = SystemClock::new();
    let (mut last, mut since) = (number(), clock.monotonic());
    patiently("a number stays as it is", || {
        std::thread::park_timeout(PAUSE);
        let (now, at) = (number(), clock.monotonic());
        if now != last {
            (last, since) = (now, at);
        }
        (at.since(since) >= STILL).then_some(last)
    })
}

/// Kills or stops a program; what was killed has no ledger.
fn end(program: Program, is_kill: bool) -> Option<Ended> {
    if is_kill {
        assert!(program.kill().was_killed());
        return None;
    }
    Some(program.terminate().succeeded())
}

/// Files to somewhere, one life after the other.
struct Sender {
    place: Place,
    log: Log,
    program: Option<Program>,
    /// The lines that the lives before have settled.
    settled: usize,
}

impl Sender {
    fn new(output: &str) -> Self {
        let place = Place::with_output(output);
        place.roomy();
        place.open_endpoint();
        let log = Log::create(&place.logs(), "a");
        let program = Some(place.start(&[]));
        Self { place, log, program, settled: 0 }
    }

    /// Lines that this life has delivered.
    fn delivered(&self) -> usize {
        self.place.stat("/libbeat/output/events/acked").unwrap_or(0) as usize
    }

    fn await_that(&mut self, what: &str, mut condition: impl FnMut(&Place) -> bool) {
        let place = &self.place;
        self.program.as_mut().unwrap().await_that(what, || condition(place));
    }

    fn await_delivered(&mut self, count: usize) {
        self.await_that(&format!("{count} lines are delivered"), |place| {
            std::thread::park_timeout(Duration::from_millis(5));
            place.stat("/libbeat/output/events/acked").is_some_and(|acked| acked >= count as u64)
        });
    }

    /// Ends a life; an orderly end has settled all that this life has read. Returns what is settled, and what this life
    /// has delivered if that is known.
    fn end(&mut self, is_kill: bool) -> (usize, Option<usize>) {
        let ended = end(self.program.take().unwrap(), is_kill);
        let settled = self.place.durable_bytes() as usize / LINE_BYTES;
        let of_life = settled - self.settled;
        self.settled = settled;
        let ledger = ended.map(|ended| ended.ledger());
        if let Some(ledger) = ledger {
            assert_eq!((ledger.read, ledger.delivered), (of_life, of_life), "{ledger:?}");
        }
        (settled, ledger.map(|ledger| ledger.delivered))
    }
}

/// Where documents end.
enum Store {
    Scripted(BulkServer),
    Elasticsearch { server: Server, index: String },
}

impl Store {
    fn elasticsearch() -> Self {
        Self::Elasticsearch {
            server: Server::elasticsearch().unwrap(),
            index: unique_name("chain"),
        }
    }

    /// The settings of the output that are about the store.
    fn settings(&self) -> String {
        match self {
            Self::Scripted(server) => format!("hosts: ['{}']", server.url),
            Self::Elasticsearch { server, index } => {
                format!("hosts: ['{}'], index: {index}", server.url())
            }
        }
    }

    fn count(&self) -> usize {
        match self {
            Self::Scripted(server) => server.count(),
            // There is no index before the first document.
            Self::Elasticsearch { server, index } => server.count(index).unwrap_or(0) as usize,
        }
    }

    /// Waits until everything that a dead program had sent is read; returns how many documents there are.
    fn settle(&self) -> usize {
        if let Self::Scripted(server) = self {
            server.await_silence();
            return server.count();
        }
        still(|| self.count())
    }

    fn documents(&self) -> Vec<String> {
        match self {
            Self::Scripted(server) => server.documents(),
            Self::Elasticsearch { server, index } => messages(server, index),
        }
    }
}

/// The messages of all documents of an index.
fn messages(server: &Server, index: &str) -> Vec<String> {
    let first = json!({ "size": 10_000, "_source": ["message"], "sort": ["_doc"] });
    let mut page = server.post(&format!("/{index}/_search?scroll=1m"), &first).unwrap();
    let mut all = Vec::new();
    loop {
        let hits = page["hits"]["hits"].as_array().unwrap();
        if hits.is_empty() {
            return all;
        }
        all.extend(hits.iter().map(|hit| hit["_source"]["message"].as_str().unwrap().to_owned()));
        let next = json!({ "scroll": "1m", "scroll_id": page["_scroll_id"] });
        page = server.post("/_search/scroll", &next).unwrap();
    }
}

/// Somewhere to Elasticsearch, one life after the other.
struct Receiver {
    place: Place,
    server: Store,
    program: Option<Program>,
    /// Documents that came in the lives before.
    came: usize,
}

impl Receiver {
    fn new(input: &str, server: Store) -> Self {
        let place = Place::with_output(&format!(
            "output.elasticsearch: {{{}, bulk_max_size: 800, compression_level: 0, \
             backoff: {{init: 5ms, max: 20ms}}}}\n",
            server.settings()
        ));
        let text = place.configuration();
        let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
        place.configure(&format!("filebeat.inputs:\n- {input}\nfilebeat.registry.flush{rest}"));
        place.roomy();
        let program = Some(place.start(&[]));
        Self { place, server, program, came: 0 }
    }

    fn await_count(&mut self, count: usize) {
        let Self { server, program, .. } = self;
        program.as_mut().unwrap().await_that(&format!("{count} documents"), || {
            std::thread::park_timeout(Duration::from_millis(5));
            server.count() >= count
        });
    }

    /// Ends a life. Returns the documents of all lives; an orderly one has delivered all that it has read.
    fn end(&mut self, is_kill: bool) -> usize {
        let ended = end(self.program.take().unwrap(), is_kill);
        let came = self.server.settle();
        if let Some(ended) = ended {
            let (ledger, of_life) = (ended.ledger(), came - self.came);
            assert_eq!((ledger.read, ledger.delivered), (of_life, of_life), "{ledger:?}");
        }
        self.came = came;
        came
    }

    fn start(&mut self) {
        self.program = Some(self.place.start(&[]));
    }
}
/// Files to Kafka to Elasticsearch.
struct ThroughKafka {
    kafka: Kafka,
    broker: String,
    topic: String,
    sender: Sender,
    receiver: Receiver,
    into: Hop,
    out: Hop,
    /// Records that the lives of the sender before have added.
    records: usize,
    /// The broker was killed in this life of the receiver.
    has_lost_broker: bool,
}

impl ThroughKafka {
    fn start(store: Store) -> Self {
        let kafka = Kafka::own().unwrap();
        let (broker, topic) = (format!("127.0.0.1:{}", kafka.ports.plain), unique_name("chain"));
        // Without idempotence a broker that is killed may have what it has not answered.
        let sender = Sender::new(&format!(
            "output.kafka: {{hosts: ['{broker}'], topic: {topic}, compression: lz4, required_acks: -1, \
             enable_idempotence: true, partition.random.group_events: 50, \
             backoff: {{init: 20ms, max: 200ms}}, codec.format.string: '%{{[message]}}'}}\n"
        ));
        let receiver = Receiver::new(
            &format!(
                "{{type: kafka, id: in, hosts: ['{broker}'], topics: [{topic}], group_id: {topic}, \
             heartbeat_interval: 100ms, session_timeout: 6s, fetch.default: 50KiB, \
             rebalance.retry_backoff: 100ms, connect_backoff: 200ms}}"
            ),
            store,
        );
        Self {
            kafka,
            broker,
            topic,
            sender,
            receiver,
            into: Hop { name: "files to Kafka", twice: 0 },
            out: Hop { name: "Kafka to Elasticsearch", twice: 0 },
            records: 0,
            has_lost_broker: false,
        }
    }

    fn records(&self) -> usize {
        Client::new(&self.broker).records(&self.topic).unwrap_or(0)
    }

    fn committed(&self) -> usize {
        Client::new(&self.broker).committed(&self.topic, &self.topic)
    }

    fn end_sender(&mut self, event: Event) {
        let (settled, delivered) = self.sender.end(event == KillSender);
        let records = still(|| self.records());
        let twice = self.into.take_stock(event, settled, records);
        if let Some(delivered) = delivered {
            assert_eq!(records - self.records, delivered, "the broker has what was delivered");
            assert_eq!(twice, 0, "{event:?}");
        }
        self.records = records;
    }

    fn end_receiver(&mut self, event: Event) {
        let came = self.receiver.end(event == KillReceiver);
        let committed = still(|| self.committed());
        let twice = self.out.take_stock(event, committed, came);
        assert!(event == KillReceiver || self.has_lost_broker || twice == 0, "{twice}");
        self.has_lost_broker = false;
    }

    /// Adds a piece of lines, and performs an event when so many of them have gone their way.
    fn perform(&mut self, event: Event, piece: usize, after: usize) {
        // Before there are more: part of them may have gone it at the first look.
        let (delivered, came) = (self.sender.delivered(), self.receiver.server.count());
        self.sender.log.append(piece);
        match event {
            KillSender | StopSender => {
                self.sender.await_delivered(delivered + after);
                self.end_sender(event);
                self.sender.program = Some(self.sender.place.start(&[]));
            }
            KillReceiver | StopReceiver => {
                self.receiver.await_count(came + after);
                self.end_receiver(event);
                self.receiver.start();
            }
            KillBroker => {
                self.receiver.await_count(came + after);
                self.kafka.kill().unwrap();
                self.kafka.start_again().unwrap();
                self.has_lost_broker = true;
            }
        }
    }
}

/// All lines through Kafka into a store, with kills of every process.
fn through_kafka(name: &str, seed: u64, count: usize, store: Store) {
    let mut random = Random::new(seed);
    let mut chain = ThroughKafka::start(store);
    let mut events = [KillSender, KillReceiver].repeat(3);
    events.extend([KillBroker, StopSender, StopReceiver]);
    let piece = count / events.len();
    for event in shuffled(&mut random, events) {
        chain.perform(event, piece, random.below(piece as u64) as usize);
    }
    chain.sender.log.append(count - chain.sender.log.next);
    let left = count - chain.sender.settled;
    chain.sender.await_delivered(left);
    chain.end_sender(StopSender);
    assert_eq!(chain.sender.settled, count);
    patiently("all records are committed", || {
        std::thread::park_timeout(PAUSE);
        (chain.committed() == chain.records).then_some(())
    });
    chain.end_receiver(StopReceiver);
    let verdict = judge(&[("a", count)], &chain.receiver.server.documents());
    assert_eq!(verdict.duplicates, chain.into.twice + chain.out.twice, "all are explained");
    accept(name, verdict, 7 * REPEATED_MAX);
}

#[test]
#[ignore = "needs Kafka"]
fn accounts_of_a_chain_through_kafka_agree_whichever_process_is_killed() {
    for seed in seeds(31) {
        let store = Store::Scripted(BulkServer::start());
        through_kafka(
            "files to Kafka to a server of bulks, all killed",
            seed,
            line_count(LINES),
            store,
        );
    }
}

#[test]
#[ignore = "needs Kafka and Elasticsearch"]
fn accounts_of_a_chain_into_elasticsearch_itself_agree_whichever_process_is_killed() {
    for seed in seeds(33) {
        through_kafka(
            "files to Kafka to Elasticsearch, all killed",
            seed,
            line_count(LINES_OF_ELASTICSEARCH),
            Store::elasticsearch(),
        );
    }
}

/// Files over Lumberjack to Elasticsearch.
struct OverLumberjack {
    sender: Sender,
    receiver: Receiver,
    way: Hop,
}

impl OverLumberjack {
    fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let receiver = Receiver::new(
            &format!(
                "{{type: lumberjack, id: in, listen_address: '127.0.0.1:{port}', target: ''}}"
            ),
            Store::Scripted(BulkServer::start()),
        );
        let sender = Sender::new(&format!(
            "output.logstash: {{hosts: ['127.0.0.1:{port}'], backoff: {{init: 10ms, max: 50ms}}}}\n"
        ));
        Self { sender, receiver, way: Hop { name: "files over Lumberjack", twice: 0 } }
    }

    fn end_sender(&mut self, event: Event) {
        let (settled, delivered) = self.sender.end(event == KillSender);
        let came = still(|| self.receiver.server.count());
        let twice = self.way.take_stock(event, settled, came);
        assert!(delivered.is_none() || twice == 0, "{event:?}: {twice}");
    }

    fn end_receiver(&mut self, event: Event) {
        let came = self.receiver.end(event == KillReceiver);
        // The sender goes on and cannot deliver: what it has no answer for it sends to the next life.
        let settled = match self.sender.program {
            Some(_) => self.sender.settled + still(|| self.sender.delivered()),
            None => self.sender.settled,
        };
        let twice = self.way.take_stock(event, settled, came);
        assert!(event == KillReceiver || twice == 0, "{event:?}: {twice}");
    }

    /// As that of [`ThroughKafka`].
    fn perform(&mut self, event: Event, piece: usize, after: usize) {
        let came = self.receiver.server.count();
        self.sender.log.append(piece);
        self.receiver.await_count(came + after);
        if matches!(event, KillSender | StopSender) {
            self.end_sender(event);
            self.sender.program = Some(self.sender.place.start(&[]));
        } else {
            self.end_receiver(event);
            self.receiver.start();
        }
    }
}

#[test]
#[ignore = "takes half a minute"]
fn accounts_of_a_chain_over_lumberjack_agree_whichever_process_is_killed() {
    for seed in seeds(32) {
        let (mut random, count) = (Random::new(seed), line_count(LINES));
        let mut chain = OverLumberjack::start();
        let mut events = [KillSender, KillReceiver].repeat(4);
        events.extend([StopSender, StopReceiver]);
        let piece = count / events.len();
        for event in shuffled(&mut random, events) {
            chain.perform(event, piece, random.below(piece as u64) as usize);
        }
        chain.sender.log.append(count - chain.sender.log.next);
        let left = count - chain.sender.settled;
        chain.sender.await_delivered(left);
        chain.end_sender(StopSender);
        assert_eq!(chain.sender.settled, count);
        chain.end_receiver(StopReceiver);
        let verdict = judge(&[("a", count)], &chain.receiver.server.documents());
        assert_eq!(verdict.duplicates, chain.way.twice, "all are explained");
        accept("files over Lumberjack to Elasticsearch, both killed", verdict, 8 * REPEATED_MAX);
    }
}
