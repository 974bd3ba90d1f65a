//! Messages of a subscription, on Google's own server for tests (pstest).
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{Cloud, numbers, sorted};
use serde_json::json;
use skidder_contract::{Bench, Proxy};
use std::collections::BTreeSet;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn numbered_messages_come_once_and_are_acknowledged() {
    const MESSAGES: usize = 10_000;
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    let mut bench =
        Bench::start(cloud.input("all", "subscription.num_goroutines: 16"), directory.path());
    cloud.publish("logs&a.b=c&k=v", 0..MESSAGES);
    bench.until("all came", |bench| bench.events.len() >= MESSAGES).await;
    cloud.await_count(&mut bench, "acknowledged", MESSAGES).await;
    let event = &bench.events[0];
    assert_eq!(event["labels"], json!({"a.b": "c", "k": "v"}));
    assert_eq!(event["input"]["type"], "gcp-pubsub");
    let id = event["event"]["id"].as_str().unwrap();
    // printf testlogs | sha256sum
    assert!(id.starts_with("c5a0ee74ba-") && id.len() > 11, "{id}");
    assert!(event["event"]["created"].as_str().unwrap() >= event["@timestamp"].as_str().unwrap());
    let subscribed = bench.input.metrics().subscribed();
    assert_eq!(subscribed.acknowledged.get(), MESSAGES as u64);
    assert_eq!((subscribed.returned.get(), subscribed.held().0), (0, 0));
    assert_eq!(sorted(&bench.stop().await), numbers(0..MESSAGES));
    assert_eq!(cloud.count("deliveries"), MESSAGES);
    assert_eq!(cloud.count("returned"), 0);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_stop_gives_messages_back_and_the_next_run_gets_them_at_once() {
    const MESSAGES: usize = 1500;
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    cloud.publish("logs", 0..MESSAGES);
    // The server sends some 100 messages a second over each stream.
    let settings = "subscription: {max_outstanding_messages: 300, num_goroutines: 8}";
    let mut bench = Bench::start(cloud.input("all", settings), directory.path());
    bench.until("some came", |bench| bench.events.len() >= 400).await;
    bench.is_stuck = true;
    let held = |bench: &Bench| bench.input.metrics().subscribed().held().0;
    bench.until("it is full", |bench| held(bench) >= 300).await;
    // The server does not count, and sends the rest: it is on its way. What it is about to send when a stream ends, it loses
    // until the deadline is over.
    cloud.await_count(&mut bench, "deliveries", MESSAGES).await;
    assert!(held(&bench) < 400, "{}", held(&bench));
    let metrics = std::sync::Arc::clone(bench.input.metrics());
    let began = tokio::time::Instant::now();
    // The output stays stuck: what it has gets no verdict, and is given back.
    let mut all = bench.stop().await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    let returned = metrics.subscribed().returned.get();
    assert!(returned > 0, "messages are given back");

    let mut bench =
        Bench::start(cloud.input("all", "subscription.num_goroutines: 8"), directory.path());
    let (first, restarted) = (all.len(), tokio::time::Instant::now());
    let before = sorted(&all);
    Cloud::patiently(&mut bench, "the rest came", |bench| {
        let mut came: BTreeSet<String> = before.iter().cloned().collect();
        came.extend(sorted(&bench.events));
        came.len() == MESSAGES
    })
    .await;
    let took = restarted.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}: at once, and not when the deadline is over");
    cloud.await_count(&mut bench, "acknowledged", MESSAGES).await;
    all.extend(bench.stop().await);
    let twice = all.len() - MESSAGES;
    assert!(
        twice <= 700,
        "{twice} came twice; {first} in the first run, {returned} were given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_connection_that_breaks_costs_nothing() {
    const MESSAGES: usize = 1500;
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    let proxy = Proxy::start(&cloud.address(), []).await;
    let input = cloud.input_at(
        proxy.address(),
        "all",
        "subscription: {max_outstanding_messages: 100, num_goroutines: 4}",
    );
    let mut bench = Bench::start(input, directory.path());
    for part in 0..5 {
        cloud.publish("logs", part * 300..(part + 1) * 300);
        let wanted = part * 300 + 100;
        bench.until("some came", |bench| bench.events.len() >= wanted).await;
        proxy.take_down();
        proxy.bring_up();
    }
    Cloud::patiently(&mut bench, "all came", |bench| {
        common::distinct(&bench.events).len() >= MESSAGES
    })
    .await;
    cloud.await_count(&mut bench, "acknowledged", MESSAGES).await;
    bench.no_trouble().await;
    assert!(proxy.connections() > 5);
    assert_eq!(common::distinct(&bench.stop().await), numbers(0..MESSAGES));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_stream_that_the_server_ends_is_opened_again() {
    const MESSAGES: usize = 200;
    let cloud = Cloud::start("-stream-timeout 700ms");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    let mut bench = Bench::start(cloud.input("all", ""), directory.path());
    for part in 0..4 {
        cloud.publish("logs", part * 50..(part + 1) * 50);
        tokio::time::sleep(Duration::from_millis(600)).await;
        bench.take();
    }
    bench.until("all came", |bench| common::distinct(&bench.events).len() == MESSAGES).await;
    cloud.await_count(&mut bench, "acknowledged", MESSAGES).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_message_that_is_not_acknowledged_in_time_comes_again() {
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    cloud.publish("logs", 0..50);
    // It ends as a program that is killed: nobody tells the server.
    let proxy = Proxy::start(&cloud.address(), []).await;
    let mut bench = Bench::start(cloud.input_at(proxy.address(), "all", ""), directory.path());
    bench.is_stuck = true;
    let held = |bench: &Bench| bench.input.metrics().subscribed().held().0;
    bench.until("it has all", |bench| held(bench) == 50).await;
    proxy.take_down();
    bench.is_stuck = false;
    let first = bench.stop().await;
    assert_eq!(sorted(&first), numbers(0..50));
    assert_eq!(cloud.count("acknowledged"), 0);

    let place = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(cloud.input("all", ""), place.path());
    let began = tokio::time::Instant::now();
    while bench.events.len() < 50 && began.elapsed() < Duration::from_secs(90) {
        bench.take();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() > Duration::from_secs(30), "{:?}", began.elapsed());
    cloud.await_count(&mut bench, "acknowledged", 50).await;
    assert_eq!(sorted(&bench.stop().await), numbers(0..50));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn deadlines_are_extended_while_an_output_is_stuck() {
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/all?topic=logs");
    cloud.publish("logs", 0..20);
    let mut bench = Bench::start(cloud.input("all", ""), directory.path());
    bench.is_stuck = true;
    // Longer than the deadline of the stream.
    tokio::time::sleep(Duration::from_secs(75)).await;
    assert_eq!(cloud.count("deliveries"), 20);
    assert!(cloud.count("extended") >= 60, "{}", cloud.count("extended"));
    bench.is_stuck = false;
    bench.until("all came", |bench| bench.events.len() == 20).await;
    cloud.await_count(&mut bench, "acknowledged", 20).await;
    assert_eq!(bench.stop().await.len(), 20);
    assert_eq!(cloud.count("deliveries"), 20);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_subscription_is_created_and_a_missing_topic_is_trouble_with_a_remedy() {
    // This server does not end the streams of a subscription that is deleted.
    let cloud = Cloud::start("-stream-timeout 6s");
    let directory = tempfile::tempdir().unwrap();
    let mut bench =
        Bench::start(cloud.input("new", "subscription.num_goroutines: 2"), directory.path());
    bench.trouble("there is no topic `logs` in the project `test` to subscribe to").await;
    cloud.put("topics/logs");
    bench.until("it is created", |_| cloud.subscription("new").is_some()).await;
    assert_eq!(cloud.subscription("new").unwrap()["topic"], "projects/test/topics/logs");
    bench.no_trouble().await;
    cloud.publish("logs", 0..10);
    bench.until("all came", |bench| bench.events.len() == 10).await;
    cloud.await_count(&mut bench, "acknowledged", 10).await;
    // And again when it is deleted.
    cloud.delete("subscriptions/new");
    bench.until("it is created again", |_| cloud.subscription("new").is_some()).await;
    cloud.publish("logs", 10..20);
    bench.until("all came", |bench| bench.events.len() == 20).await;
    cloud.await_count(&mut bench, "acknowledged", 20).await;
    assert_eq!(sorted(&bench.stop().await), numbers(0..20));

    let place = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(cloud.input("other", "subscription.create: false"), place.path());
    bench.trouble("no subscription `other` in the project `test`").await;
    assert!(cloud.subscription("other").is_none());
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_missing_right_is_trouble_with_a_remedy_until_it_is_there() {
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.fail("CreateSubscription", 7, 2, "");
    let mut bench = Bench::start(cloud.input("new", ""), directory.path());
    bench.trouble("`pubsub.subscriptions.create`").await;
    bench.no_trouble().await;
    cloud.fail("Acknowledge", 16, 2, "");
    cloud.publish("logs", 0..10);
    bench.until("all came", |bench| bench.events.len() == 10).await;
    bench.trouble("see `credentials_file`").await;
    cloud.await_count(&mut bench, "acknowledged", 10).await;
    bench.no_trouble().await;
    assert!(bench.input.metrics().errors.get() >= 3);
    assert_eq!(bench.stop().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn with_exactly_once_delivery_receipts_are_confirmed() {
    let cloud = Cloud::start("");
    let directory = tempfile::tempdir().unwrap();
    cloud.put("topics/logs");
    cloud.put("subscriptions/once?topic=logs&exactly_once=true");
    let mut bench = Bench::start(cloud.input("once", ""), directory.path());
    cloud.publish("logs", 0..100);
    bench.until("all came", |bench| bench.events.len() == 100).await;
    cloud.await_count(&mut bench, "acknowledged", 100).await;
    assert!(cloud.count("extended") >= 100, "each receipt is confirmed");
    // The server refuses the receipt of one message, which is then no event of this process.
    cloud.fail("ModifyAckDeadline", 9, 1, "&permanent=true");
    cloud.publish("logs", 100..101);
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.take();
    assert_eq!(bench.events.len(), 100);
    assert_eq!(bench.input.metrics().subscribed().held().0, 0);
    // An acknowledgement that comes too late is counted.
    cloud.fail("Acknowledge", 9, 1, "&permanent=true");
    cloud.publish("logs", 101..102);
    bench.until("it came", |bench| bench.events.len() == 101).await;
    bench
        .until("it is counted", |bench| bench.input.metrics().subscribed().failed.get() == 1)
        .await;
    bench.stop().await;
}
