//! The input with Azurite for its checkpoints, and with a hub that is a stand-in of ours, which Microsoft's own client reads too.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use bytes::Bytes;
use common::{Cloud, Trial};
use serde_json::{Value, json};
use skidder_azure::Put;
use skidder_contract::{Bench, keep_input};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

fn texts(range: Range<usize>) -> Vec<String> {
    range.map(|number| format!("{{\"n\": {number}}}")).collect()
}

/// The numbers of the events in order, each as often as it came.
fn numbers(events: &[Value]) -> Vec<usize> {
    let number = |event: &Value| {
        let message: Value = serde_json::from_str(event["message"].as_str().unwrap()).unwrap();
        usize::try_from(message["n"].as_u64().unwrap()).unwrap()
    };
    let mut all: Vec<usize> = events.iter().map(number).collect();
    all.sort_unstable();
    all
}

fn of(range: Range<usize>) -> Vec<usize> {
    range.collect()
}

async fn until_checkpoint(cloud: &Cloud, hub: &str, partition: usize, expected: i64) {
    for _ in 0..300 {
        if cloud.checkpoint(hub, partition).await == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the checkpoint is {}, expected {expected}", cloud.checkpoint(hub, partition).await);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_hub_keeps_the_contract_of_inputs() {
    let cloud = Cloud::start();
    keep_input(|| Trial::new(&cloud)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn events_and_blobs_are_those_of_filebeat() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    cloud.ask(
        "/publish?hub=logs&partition=1&key=host-7",
        r#"{"records": [{"a": 1.0}, {"b": "x"}]}"#,
    );
    cloud.publish("logs", 1, &["{'c': 3}".to_owned(), r#"{"records": []}"#.to_owned()]);
    bench.until("three came", |bench| bench.events.len() == 3).await;
    let first = &bench.events[0];
    assert_eq!(first["message"], r#"{"a": 1.0}"#);
    let azure = &first["azure"];
    let time = azure["enqueued_time"].as_str().unwrap().to_owned();
    let expected = json!({
        "eventhub": "logs", "consumer_group": "$Default", "partition_id": "1", "sequence_number": 0, "offset": 0,
        "enqueued_time": time, "partition_key": "host-7",
    });
    assert_eq!(azure, &expected);
    assert_eq!(
        (&bench.events[1]["message"], &bench.events[1]["azure"]["sequence_number"]),
        (&json!(r#"{"b": "x"}"#), &json!(0))
    );
    assert_eq!(
        (&bench.events[2]["message"], &bench.events[2]["azure"]["offset"]),
        (&json!("{'c': 3}"), &json!(64))
    );
    // The one without events is covered as well.
    until_checkpoint(&cloud, "logs", 1, 2).await;
    let prefix = "localhost/logs/$Default";
    let blobs = cloud.metadata("filebeat-logs").await;
    let owner = blobs[&format!("{prefix}/ownership/1")]["ownerid"].clone();
    assert_eq!(owner.len(), 32);
    let checkpoint = BTreeMap::from(
        [("offset", "128"), ("sequencenumber", "2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    assert_eq!(blobs[&format!("{prefix}/checkpoint/1")], checkpoint);
    assert_eq!(blobs.len(), 3, "{blobs:?}");
    let counts = bench.input.metrics().hub();
    assert_eq!(
        (
            counts.messages.get(),
            counts.sent.get(),
            counts.invalid.get(),
            counts.decode_errors.get()
        ),
        (3, 3, 1, 1)
    );
    bench.stop().await;
    let blobs = cloud.metadata("filebeat-logs").await;
    for partition in [0, 1] {
        let given_back = blobs[&format!("{prefix}/ownership/{partition}")].get("ownerid").cloned();
        assert_eq!(given_back.unwrap_or_default(), "");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_breaks_is_opened_again_and_nothing_comes_twice() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    for (part, trouble) in ["/break", "/expire", "/break"].into_iter().enumerate() {
        for partition in [0, 1] {
            let from = part * 2000 + partition * 1000;
            cloud.publish("logs", partition, &texts(from..from + 1000));
        }
        bench.until("some came", |bench| bench.events.len() > part * 2000 + 500).await;
        cloud.ask(trouble, "");
    }
    bench.until("all came", |bench| bench.events.len() >= 6000).await;
    until_checkpoint(&cloud, "logs", 0, 2999).await;
    bench.no_trouble().await;
    assert_eq!(numbers(&bench.stop().await), of(0..6000));
    let mut state = cloud.ask("/state", "");
    for _ in 0..100 {
        if state["readers"] == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        state = cloud.ask("/state", "");
    }
    assert_eq!((&state["refused"], &state["readers"]), (&json!(0), &json!(0)), "{state}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn processes_share_the_partitions_and_take_over_from_each_other() {
    let cloud = Cloud::start();
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let hub = "many-4-logs";
    let mut first = Bench::start(cloud.input(hub, ""), one.path());
    let publish = |part: usize| {
        for partition in 0..4 {
            let from = part * 400 + partition * 100;
            cloud.publish(hub, partition, &texts(from..from + 100));
        }
    };
    publish(0);
    first.until("all came", |bench| bench.events.len() == 400).await;
    for partition in 0..4 {
        until_checkpoint(&cloud, hub, partition, 99).await;
    }
    let mut second = Bench::start(cloud.input(hub, ""), two.path());
    let open = |bench: &Bench| bench.input.metrics().open.get();
    second.until("it has two", |bench| open(bench) == 2).await;
    first.until("it has two", |bench| open(bench) == 2).await;
    publish(1);
    first.until("its half came", |bench| bench.events.len() == 600).await;
    second.until("its half came", |bench| bench.events.len() == 200).await;
    for partition in 0..4 {
        until_checkpoint(&cloud, hub, partition, 199).await;
    }
    let mut all = first.stop().await;
    second.until("it has all", |bench| open(bench) == 4).await;
    publish(2);
    second.until("all came", |bench| bench.events.len() == 600).await;
    all.extend(second.stop().await);
    assert_eq!(numbers(&all), of(0..1200));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn checkpoints_of_microsofts_client_and_ours_are_the_same_over_tls() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    let access =
        format!("Endpoint=sb://{};SharedAccessKeyName=test;SharedAccessKey=secret", cloud.secure());
    // Microsoft's client for JavaScript makes small letters of all names; that for Go, which Filebeat has, does not.
    let settings =
        format!("consumer_group: group, ssl.certificate_authorities: ['{}']", cloud.authority());
    let input = || cloud.input_by(&access, "logs", &settings);
    cloud.publish("logs", 0, &texts(0..10));
    let mut bench = Bench::start(input(), directory.path());
    bench.until("all came", |bench| bench.events.len() == 10).await;
    until_checkpoint(&cloud, "logs", 0, 9).await;
    bench.stop().await;
    cloud.publish("logs", 0, &texts(10..20));
    let read = cloud.read_with_microsofts_client("logs", "group", 8);
    assert_eq!(read, (10..20).map(|number| (0, number)).collect::<Vec<_>>());
    assert_eq!(cloud.checkpoint("logs", 0).await, 19);
    cloud.publish("logs", 0, &texts(20..30));
    let mut bench = Bench::start(input(), directory.path());
    bench.until("the rest came", |bench| bench.events.len() == 10).await;
    assert_eq!(numbers(&bench.stop().await), of(20..30));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_websocket_is_as_good_as_a_connection() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    let port = cloud.hub.port() + 2;
    let access =
        format!("Endpoint=sb://localhost:{port};SharedAccessKeyName=test;SharedAccessKey=secret");
    let settings =
        format!("transport: websocket, ssl.certificate_authorities: ['{}']", cloud.authority());
    let mut bench = Bench::start(cloud.input_by(&access, "logs", &settings), directory.path());
    // Of some KiB, so that frames are of all lengths.
    let long: Vec<String> = (0..200)
        .map(|number| format!("{{\"n\": {number}, \"x\": \"{}\"}}", "x".repeat(number * 100)))
        .collect();
    cloud.publish("logs", 0, &long);
    bench.until("all came", |bench| bench.events.len() == 200).await;
    cloud.ask("/break", "");
    cloud.publish("logs", 0, &texts(200..300));
    bench.until("the rest came", |bench| bench.events.len() == 300).await;
    until_checkpoint(&cloud, "logs", 0, 299).await;
    assert_eq!(numbers(&bench.stop().await), of(0..300));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn checkpoints_of_processor_v1_are_taken_over() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    cloud.publish("logs", 0, &texts(0..20));
    let mut container = cloud.container("filebeat-logs");
    container.create().await.unwrap();
    let lease = json!({
        "partitionID": "0", "epoch": 3, "owner": "o", "state": "leased", "token": "t",
        "checkpoint": {"offset": "576", "sequenceNumber": 9, "enqueueTime": "2026-11-28T10:00:00Z"},
    });
    let body = [Bytes::from(lease.to_string())];
    container.put("0", Put { body: &body, ..Put::default() }).await.unwrap();
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    bench.until("the rest came", |bench| bench.events.len() == 10).await;
    until_checkpoint(&cloud, "logs", 0, 19).await;
    assert_eq!(numbers(&bench.stop().await), of(10..20));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn what_the_hub_has_lost_is_counted_and_one_that_was_made_anew_is_read_from_its_beginning() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    cloud.publish("logs", 0, &texts(0..10));
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    bench.until("all came", |bench| bench.events.len() == 10).await;
    until_checkpoint(&cloud, "logs", 0, 9).await;
    bench.stop().await;
    cloud.publish("logs", 0, &texts(10..30));
    cloud.ask("/trim?hub=logs&partition=0&before=15", "");
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    bench.until("the rest came", |bench| bench.events.len() == 15).await;
    assert_eq!(bench.input.metrics().lost_before.get(), 5);
    until_checkpoint(&cloud, "logs", 0, 29).await;
    assert_eq!(numbers(&bench.stop().await), of(15..30));
    cloud.ask("/recreate?hub=logs", "");
    cloud.publish("logs", 0, &texts(100..105));
    let mut bench = Bench::start(cloud.input("logs", ""), directory.path());
    bench.until("all of the new one came", |bench| bench.events.len() == 5).await;
    let error = bench.input.metrics().last_error().unwrap();
    assert!(error.text.contains("made anew"), "{}", error.text);
    until_checkpoint(&cloud, "logs", 0, 4).await;
    assert_eq!(numbers(&bench.stop().await), of(100..105));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn refusals_say_what_to_do() {
    let cloud = Cloud::start();
    let directory = tempfile::tempdir().unwrap();
    let access = format!(
        "Endpoint=sb://{};SharedAccessKeyName=test;SharedAccessKey=wrong;UseDevelopmentEmulator=true",
        cloud.namespace()
    );
    let mut bench = Bench::start(cloud.input_by(&access, "logs", ""), directory.path());
    bench.trouble("answered 401 to `put-token`: InvalidSignature: the signature is wrong; see the credentials").await;
    bench.stop().await;
    // The port of TLS without it, and a port where nobody listens.
    let port = |port: u16| {
        format!(
            "Endpoint=sb://localhost:{port};SharedAccessKeyName=test;SharedAccessKey=secret;UseDevelopmentEmulator=true"
        )
    };
    let mut bench =
        Bench::start(cloud.input_by(&port(cloud.hub.port() + 1), "logs", ""), directory.path());
    bench.until("a trouble", |bench| bench.input.metrics().trouble().is_some()).await;
    bench.stop().await;
    let mut bench = Bench::start(cloud.input_by(&port(1), "logs", ""), directory.path());
    bench.trouble("is the server running").await;
    bench.stop().await;
}
