//! The input with a broker of the tests.

use super::broker::{Broker, Command, Request, new, no_properties};
use super::decode::Version;
use super::*;
use crate::testing::{Bench, context, read_with};
use rumqttc::v5::mqttbytes::v5 as their5;
use serde_json::json;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input, line};
use skidder_net::Sockets;
use std::collections::BTreeSet;
use std::ops::Range;

/// An input of these settings for a broker.
fn input(broker: &Broker, more: &str) -> Box<dyn Input> {
    let version = match broker.version {
        Version::V311 => "3.1.1",
        Version::V5 => "5",
    };
    let (address, qos) = (broker.address, broker.qos);
    let text = format!(
        "{{hosts: ['tcp://{address}'], qos: {qos}, protocol_version: {version}, backoff: {{init: 5ms, max: 20ms}}{more}}}"
    );
    let (read, problems) = read_with(&text, |section| read(section, &context(&Sockets::default())));
    assert_eq!(problems, "");
    read.unwrap()
}

const KEPT: &str = ", clean_session: false";

struct Trial {
    broker: Broker,
    more: &'static str,
}

impl InputTrial for Trial {
    fn input(&self) -> Box<dyn Input> {
        input(&self.broker, self.more)
    }

    fn meaning(&self) -> Meaning {
        if self.more.contains(KEPT) { Meaning::Acknowledgement } else { Meaning::Nothing }
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        self.broker.hand_over(lines)
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(self.broker.send_garbage())
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        match self.meaning() {
            Meaning::Acknowledgement => self.broker.state().acknowledged.clone(),
            // The broker forgets them with the connection, whatever was acknowledged.
            _ => BTreeSet::new(),
        }
    }
}

fn start_now(version: Version, qos: u8, topic: &str, window: usize) -> Broker {
    tokio::task::block_in_place(|| {
        tokio::runtime::Handle::current().block_on(Broker::start(version, qos, topic, window))
    })
}

async fn keep(version: Version, qos: u8, topic: &str, more: &'static str) {
    keep_input(|| Trial { broker: start_now(version, qos, topic, 700), more }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_with_quality_1_of_version_3() {
    keep(Version::V311, 1, "a/b", KEPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_with_quality_1_of_version_5() {
    keep(Version::V5, 1, "a/b", ", clean_session: false, receive_maximum: 600").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_with_quality_2_of_version_3() {
    keep(Version::V311, 2, "a/b", KEPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_with_quality_2_of_version_5() {
    keep(Version::V5, 2, "a/b", KEPT).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_without_a_session() {
    // Long topics: buffers of the system would take all short messages.
    keep(Version::V311, 0, &"t".repeat(4000), "").await;
    keep(Version::V5, 1, &"t".repeat(4000), "").await;
}

/// The numbers of the lines that came, in their order.
fn numbers(bench: &Bench) -> Vec<usize> {
    bench.messages().into_iter().map(skidder_contract::number).collect()
}

/// The problem that the status page shows.
fn trouble(bench: &Bench) -> String {
    bench.input.metrics().trouble().map(|text| text.to_string()).unwrap_or_default()
}

async fn until_received(bench: &mut Bench, events: u64) {
    bench.until("they are received", |bench| bench.input.metrics().events.get() >= events).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_the_fields_of_filebeat() {
    let broker = Broker::start(Version::V311, 1, "a/b", 10).await;
    let mut bench = Bench::start(input(&broker, ""), 100);
    broker.push(7..8);
    bench.events(1).await;
    let retained = [&b"\x31\x08\0\x03r/\xffx\xffy"[..]].concat();
    broker.command(Command::Raw(retained));
    bench.events(2).await;
    broker.command(Command::Raw(b"\x30\x03\0\x01t".to_vec()));
    bench.events(3).await;
    let fields =
        json!({"duplicate": false, "message_id": 1, "qos": 1, "retained": false, "topic": "a/b"});
    let expected = json!({"message": line(7), "input": {"type": "mqtt"}, "mqtt": fields});
    assert_eq!(bench.events[0], expected);
    let fields = json!({"duplicate": false, "message_id": 0, "qos": 0, "retained": true, "topic": "r/\u{fffd}"});
    assert_eq!(bench.events[1]["mqtt"], fields);
    assert_eq!(bench.events[1]["message"], "x\u{fffd}y");
    assert_eq!(
        (&bench.events[2]["message"], &bench.events[2]["mqtt"]["topic"]),
        (&json!(""), &json!("t"))
    );
    bench.stop().await;
    let first = broker.state().requests[0].clone();
    let id = "filebeat".to_owned();
    let expected =
        Request::Connect { id, is_clean: true, keep_alive: 30, expiry: None, window: None };
    assert_eq!(first, expected);
    assert_eq!(broker.state().requests[1], Request::Subscribe(1, vec![("#".to_owned(), 1)]));
    assert_eq!(broker.state().requests.last(), Some(&Request::Disconnect));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_version_5_begins_with_its_settings() {
    let broker = Broker::start(Version::V5, 2, "a", 10).await;
    let more = ", clean_session: false, session_expiry: 1h, receive_maximum: 9, keep_alive: 7s, client_id: me, \
                topics: [a, '$share/g/b/#'], username: u, password: p";
    let mut bench = Bench::start(input(&broker, more), 100);
    bench.until("it subscribes", |_| broker.state().requests.len() == 2).await;
    bench.stop().await;
    let requests = broker.state().requests.clone();
    let expected = Request::Connect {
        id: "me".to_owned(),
        is_clean: false,
        keep_alive: 7,
        expiry: Some(3600),
        window: Some(9),
    };
    assert_eq!(requests[0], expected);
    let topics = [("a", 2), ("$share/g/b/#", 2)].map(|(topic, qos)| (topic.to_owned(), qos));
    assert_eq!(requests[1], Request::Subscribe(1, topics.to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_again_before_its_verdict_is_no_second_event() {
    for (version, qos) in
        [(Version::V311, 1), (Version::V5, 1), (Version::V311, 2), (Version::V5, 2)]
    {
        let broker = Broker::start(version, qos, "a", 10).await;
        let mut bench = Bench::start(input(&broker, KEPT), 100);
        bench.is_stuck = true;
        broker.push(1..4);
        until_received(&mut bench, 3).await;
        broker.command(Command::Break);
        bench.until("it connects again", |_| broker.connections() == 2).await;
        broker.push(4..5);
        until_received(&mut bench, 4).await;
        assert!(broker.state().acknowledged.is_empty());
        bench.is_stuck = false;
        bench.until("all are acknowledged", |_| broker.state().acknowledged.len() == 4).await;
        bench.stop().await;
        assert_eq!(numbers(&bench), [1, 2, 3, 4], "{version:?} {qos}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_quality_2_a_message_is_one_event_until_it_is_released() {
    for version in [Version::V311, Version::V5] {
        let broker = Broker::start(version, 2, "a", 10).await;
        let mut bench = Bench::start(input(&broker, KEPT), 100);
        broker.state().is_deaf = true;
        broker.push(1..4);
        let recorded = |request: &Request| matches!(request, Request::Record(_));
        bench.until("they are acknowledged in vain", |_| broker.count(recorded) == 3).await;
        broker.state().is_deaf = false;
        broker.command(Command::Break);
        bench
            .until("they come to their end", |_| {
                broker.connections() == 2 && broker.in_flight() == 0
            })
            .await;
        broker.push(4..5);
        bench.events(4).await;
        bench.stop().await;
        assert_eq!(numbers(&bench), [1, 2, 3, 4], "{version:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_forgets_the_session_counts_ids_anew_and_no_message_is_taken_for_another_one()
{
    for qos in [1, 2] {
        let broker = Broker::start(Version::V311, qos, "a", 10).await;
        let mut bench = Bench::start(input(&broker, KEPT), 100);
        bench.is_stuck = true;
        broker.push(1..3);
        until_received(&mut bench, 2).await;
        broker.forget();
        broker.command(Command::Break);
        bench.until("it connects again", |_| broker.connections() == 2).await;
        broker.push(10..12);
        until_received(&mut bench, 4).await;
        bench.is_stuck = false;
        bench
            .until("the new ones are acknowledged", |_| broker.state().acknowledged.len() == 2)
            .await;
        bench.stop().await;
        assert_eq!(numbers(&bench), [1, 2, 10, 11]);
        assert_eq!(broker.state().acknowledged, BTreeSet::from([10, 11]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bytes_cost_a_connection_and_no_message() {
    let broker = Broker::start(Version::V311, 1, "a", 10).await;
    let mut bench = Bench::start(input(&broker, KEPT), 100);
    let cases: [(&[u8], &str); 12] = [
        (b"\x30\xff\xff\xff\xff\x01", "more than four bytes"),
        (b"\x90\xff\xff\xff\x7f", "longer than 65 KiB"),
        (b"\x36\x04\0\x01ax", "QoS 3"),
        (b"\x32\x05\0\x01a\0\0", "packet id is 0"),
        (b"\x32\x04\0\x01a\0", "shorter than its fields"),
        (b"\x30\x04\0\x09ab", "shorter than its fields"),
        (b"\x30\x02\0\0", "no topic"),
        (b"\0\0", "type that no broker sends"),
        (b"HTTP/1.1 400 Bad Request\r\n", "type that no broker sends"),
        (b"\x20\x02\0\0", "second `CONNACK`"),
        (b"\x90\x03\0\x09\0", "another subscription"),
        (b"\x90\x03\0\x01\0", "no subscription"),
    ];
    let mut next = 0;
    for (bytes, expected) in cases {
        broker.push(next..next + 3);
        bench.events(next + 3).await;
        // An acknowledgement that a break overtakes is lost, and its message comes twice then.
        bench
            .until("they are acknowledged", |_| broker.state().acknowledged.len() == next + 3)
            .await;
        let before = bench.input.metrics().errors.get();
        broker.command(Command::Garbage(bytes.to_vec()));
        bench.until(expected, |bench| bench.input.metrics().errors.get() > before).await;
        bench
            .until(expected, |bench| {
                let errors = bench
                    .input
                    .metrics()
                    .sources
                    .list(1, skidder_os::Monotonic(std::time::Duration::ZERO))
                    .0;
                errors[0].last_error.as_ref().is_some_and(|error| error.contains(expected))
            })
            .await;
        next += 3;
    }
    broker.push(next..next + 1);
    bench.events(next + 1).await;
    bench.stop().await;
    assert_eq!(numbers(&bench), (0..=next).collect::<Vec<_>>());
    assert_eq!(broker.connections(), 13);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_of_what_has_no_verdict_ends_the_connection() {
    let broker = Broker::start(Version::V5, 2, "a", 10).await;
    let mut bench = Bench::start(input(&broker, KEPT), 100);
    bench.is_stuck = true;
    broker.push(1..2);
    until_received(&mut bench, 1).await;
    broker.command(Command::Garbage(vec![0x62, 2, 0, 1]));
    bench.until("it connects again", |_| broker.connections() == 2).await;
    assert!(
        trouble(&bench).contains("releases a message that is not acknowledged")
            || trouble(&bench).is_empty()
    );
    bench.is_stuck = false;
    bench.until("it is acknowledged", |_| broker.state().acknowledged.len() == 1).await;
    bench.stop().await;
    assert_eq!(numbers(&bench), [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_beyond_the_bound_is_cut_and_the_next_one_is_whole() {
    for (version, properties) in [(Version::V311, &b""[..]), (Version::V5, b"\0")] {
        let broker = Broker::start(version, 0, "a", 10).await;
        let mut bench = Bench::start(input(&broker, ", max_message_size: 10"), 100);
        for length in [10, 11, 100_000, 300_000] {
            let body = [&b"\0\x01a"[..], properties, &vec![b'x'; length]].concat();
            let mut bytes = vec![0x30];
            let mut left = body.len();
            while left > 0 {
                bytes.push((left & 0x7f) as u8 | if left > 0x7f { 0x80 } else { 0 });
                left >>= 7;
            }
            bytes.extend(body);
            broker.command(Command::Raw(bytes));
        }
        broker.command(Command::Raw(
            [&b"\x30"[..], &[4 + properties.len() as u8], b"\0\x01a", properties, b"y"].concat(),
        ));
        bench.events(5).await;
        bench.stop().await;
        let long = "x".repeat(10);
        assert_eq!(bench.messages(), [&*long, &long, &long, &long, "y"]);
        for (place, event) in bench.events.iter().enumerate() {
            let flags =
                if (1..4).contains(&place) { json!({"flags": ["truncated"]}) } else { json!(null) };
            assert_eq!(event["log"], flags, "{place}");
        }
        assert_eq!(bench.input.metrics().errors.get(), 3);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_reported_with_its_remedy_and_the_broker_is_tried_again() {
    let broker = Broker::start(Version::V311, 0, "a", 10).await;
    broker.state().answers.extend([vec![0x20, 2, 0, 5], vec![0x20, 2, 0, 5]]);
    let mut bench = Bench::start(input(&broker, ""), 100);
    bench
        .until("it is refused", |bench| {
            trouble(bench).contains("no right to connect (code 5); see `username`")
        })
        .await;
    bench.until("it is in order again", |bench| trouble(bench).is_empty()).await;
    broker.push(1..2);
    bench.events(1).await;
    bench.stop().await;
    let broker = Broker::start(Version::V5, 0, "a", 10).await;
    let properties =
        their5::ConnAckProperties { reason_string: Some("go away".to_owned()), ..no_properties() };
    let refused = their5::Packet::ConnAck(their5::ConnAck {
        session_present: false,
        code: their5::ConnectReturnCode::BadUserNamePassword,
        properties: Some(properties),
    });
    broker.state().answers.extend([new(&refused), new(&refused)]);
    let mut bench = Bench::start(input(&broker, ""), 100);
    let expected =
        "wrong user or password (code 134, it says `go away`); see `username` and `password`";
    bench.until("it is refused", |bench| trouble(bench).contains(expected)).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_broker_is_reported() {
    for (answer, expected) in [
        (&b"\x15\x03\x01\0\x02\x02\x28"[..], "this port speaks TLS: use `ssl://`"),
        (b"HTTP/1.1 400 Bad Request\r\n", "is this the port of an MQTT broker?"),
        (b"\xd0\0", "not `CONNACK`"),
    ] {
        let broker = Broker::start(Version::V311, 0, "a", 10).await;
        broker.state().answers.extend(vec![answer.to_vec(); 1000]);
        let mut bench = Bench::start(input(&broker, ""), 100);
        bench.until(expected, |bench| trouble(bench).contains(expected)).await;
        bench.stop().await;
    }
    let broker = Broker::start(Version::V311, 0, "a", 10).await;
    broker.state().answers.extend(vec![Vec::new(); 1000]);
    let mut bench = Bench::start(input(&broker, ", timeout: 50ms"), 100);
    let expected = "no answer to `CONNECT` within `timeout` (0.05 s)";
    bench.until(expected, |bench| trouble(bench).contains(expected)).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_ends_the_connection_before_its_answer_may_want_tls() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ends_all = tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    let text =
        format!("{{hosts: ['tcp://{address}'], backoff: {{init: 5ms, max: 20ms}}, topics: [t]}}");
    let (read, _) = read_with(&text, |section| read(section, &context(&Sockets::default())));
    let mut bench = Bench::start(read.unwrap(), 100);
    let expected = "if this port speaks TLS, use `ssl://` in `hosts`";
    bench.until(expected, |bench| trouble(bench).contains(expected)).await;
    bench.stop().await;
    ends_all.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_topic_is_reported_and_the_others_are_read() {
    let broker = Broker::start(Version::V311, 0, "a", 10).await;
    broker.state().subacks.push_back(vec![0x90, 4, 0, 1, 0, 0x80]);
    let mut bench = Bench::start(input(&broker, ", topics: [a, b]"), 100);
    broker.push(1..2);
    bench.events(1).await;
    let expected =
        "a topic cannot be read: `b`: it refuses the subscription (code 128); see `username`";
    bench.until("it is refused", |bench| trouble(bench).contains(expected)).await;
    bench.stop().await;
    assert_eq!(broker.connections(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_client_of_the_same_name_is_reported() {
    let broker = Broker::start(Version::V5, 0, "a", 10).await;
    let mut bench = Bench::start(input(&broker, ""), 100);
    broker.push(1..2);
    bench.events(1).await;
    broker.command(Command::Garbage(vec![0xe0, 1, 0x8e]));
    let expected = "another client has connected with the same client id";
    bench.until(expected, |bench| trouble(bench).contains(expected)).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_without_signs_of_life_is_left() {
    let broker = Broker::start(Version::V311, 0, "a", 10).await;
    broker.state().is_silent = true;
    let mut bench = Bench::start(input(&broker, ", keep_alive: 1s, timeout: 100ms"), 100);
    let expected = "no answer to `PINGREQ` within `timeout` (0.1 s)";
    bench.until(expected, |bench| trouble(bench).contains(expected)).await;
    bench.until("it connects again", |_| broker.connections() >= 2).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signs_of_life_go_out_while_nothing_is_read_as_often_as_the_broker_wants() {
    let broker = Broker::start(Version::V5, 1, "a", 10).await;
    let properties = their5::ConnAckProperties { server_keep_alive: Some(1), ..no_properties() };
    let connected = their5::Packet::ConnAck(their5::ConnAck {
        session_present: false,
        code: their5::ConnectReturnCode::Success,
        properties: Some(properties),
    });
    broker.state().answers.push_back(new(&connected));
    let more = ", clean_session: false, receive_maximum: 1, timeout: 300ms";
    let mut bench = Bench::start(input(&broker, more), 100);
    bench.is_stuck = true;
    broker.push(1..3);
    bench.until("signs of life", |_| broker.count(|it| *it == Request::Ping) >= 2).await;
    assert_eq!(bench.input.metrics().events.get(), 1, "one has no acknowledgement");
    assert_eq!(broker.connections(), 1);
    bench.is_stuck = false;
    bench.events(2).await;
    bench.stop().await;
    assert_eq!(numbers(&bench), [1, 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_broker_that_takes_the_connection_is_read() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let broker = Broker::start(Version::V311, 0, "a", 10).await;
    let text = format!("{{hosts: ['{gone}', 'mqtt://{}'], backoff.init: 5ms}}", broker.address);
    let (read, problems) = read_with(&text, |section| read(section, &context(&Sockets::default())));
    assert_eq!(problems, "");
    let mut bench = Bench::start(read.unwrap(), 100);
    broker.push(1..2);
    bench.events(1).await;
    bench.stop().await;
    assert_eq!(bench.input.metrics().errors.get(), 0);
}

#[test]
fn two_inputs_with_the_same_name_at_a_broker_are_a_warning() {
    let of = |inputs: [&str; 2]| {
        let context = context(&Sockets::default());
        let [first, second] = inputs.map(|text| read_with(text, |section| read(section, &context)));
        assert!(first.0.is_some() && second.0.is_some());
        assert_eq!(first.1, "");
        second.1
    };
    let default = "{hosts: ['tcp://a', 'tcp://b:7']}";
    let same =
        of([default, "{hosts: ['ssl://c', 'mqtt://b:7'], topics: [x], client_id: filebeat}"]);
    assert!(same.contains("is `filebeat` at the broker b:7, too"), "{same}");
    assert!(same.contains("give each its own `client_id`"), "{same}");
    assert_eq!(of([default, "{hosts: ['tcp://a'], client_id: other}"]), "");
    assert_eq!(of([default, "{hosts: ['tcp://b:8']}"]), "");
}
