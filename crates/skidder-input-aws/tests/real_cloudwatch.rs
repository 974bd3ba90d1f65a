//! Groups of CloudWatch Logs on moto.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod gateway;

use gateway::{Gateway, REGION, Refusal, arn, now, some_scans};
use serde_json::{Value, json};
use skidder_contract::Bench;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The messages in order, each as often as it came.
fn sorted(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = events.iter().map(text).collect();
    all.sort_unstable();
    all
}

/// Events one millisecond apart, the last one some time ago.
fn texts(name: &str, count: usize, ago: i64) -> Vec<(i64, String)> {
    let end = now() - ago;
    let event = |at: usize| (end - (count - 1 - at) as i64, format!("{name} {at:06}"));
    (0..count).map(event).collect()
}

fn expected(all: &[&[(i64, String)]]) -> Vec<String> {
    let mut all: Vec<String> =
        all.iter().flat_map(|events| events.iter()).map(|(_, text)| text.clone()).collect();
    all.sort_unstable();
    all
}

/// Waits for so many events, and then for some scans: nothing more must come.
async fn exactly(bench: &mut Bench, count: usize) {
    bench.until("all came", |bench| bench.events.len() >= count).await;
    some_scans().await;
    bench.take();
    assert_eq!(bench.events.len(), count);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_group_is_read_by_its_name_and_goes_on_where_it_was() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app/a", &["one", "two"]);
    let old = texts("old", 200, 9 * 24 * 3_600_000);
    let new = texts("new", 200, 1_000);
    gateway.put("/app/a", "one", &old);
    gateway.put("/app/a", "two", &new);
    let settings = format!("log_group_name: /app/a, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 400).await;
    let event = bench.events.iter().find(|event| event["message"] == "old 000007").unwrap();
    let id = event["event"]["id"].as_str().unwrap();
    assert!(!id.is_empty() && event["event"]["ingested"].is_string());
    assert_eq!(event["log"]["file"]["path"], "/app/a/one");
    assert_eq!(event["aws"]["cloudwatch"]["log_group"], "/app/a");
    assert_eq!(event["aws"]["cloudwatch"]["log_stream"], "one");
    let received = event["aws"]["cloudwatch"]["ingestion_time"].as_str().unwrap();
    let time = event["@timestamp"].as_str().unwrap();
    assert!(received > time && received.ends_with('Z'), "{received} {time}");
    assert_eq!(skidder_aws::time_of(time).unwrap().0 / 1_000_000, old[7].0);
    assert_eq!(event["cloud"], json!({"provider": "aws", "region": REGION}));
    assert_eq!(event["input"]["type"], "aws-cloudwatch");
    // What comes between two scans, some of it late.
    let late = texts("late", 50, 100_000);
    gateway.put("/app/a", "one", &late);
    let last = texts("last", 50, 0);
    gateway.put("/app/a", "two", &last);
    exactly(&mut bench, 500).await;
    let status = bench.input.metrics().sources.all(skidder_os::Monotonic::default());
    let name = format!("{REGION}:/app/a");
    assert_eq!((status.len(), &*status[0].name, status[0].events), (1, &*name, 500));
    assert!(status[0].requests.is_some_and(|requests| requests > 3), "{status:?}");
    assert_eq!(status[0].newest.map(|time| time.0 / 1_000_000), Some(last[49].0));
    assert_eq!(sorted(&bench.stop().await), expected(&[&old, &new, &late, &last]));

    // While it was away, one came late.
    gateway.put_one("/app/a", "one", now() - 60_000, "away");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 1).await;
    assert_eq!(sorted(&bench.stop().await), ["away"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn groups_are_read_by_an_arn_and_by_a_prefix_and_new_ones_are_found() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    for group in ["/app/a", "/app/b", "/other"] {
        gateway.make(group, &["s"]);
        gateway.put(group, "s", &texts(group, 20, 1_000));
    }
    let settings = format!("log_group_arn: '{}:*'", arn("/app/b"));
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 20).await;
    let event = &bench.stop().await[0];
    assert_eq!(event["aws"]["cloudwatch"]["log_group"], arn("/app/b"));
    assert_eq!(event["log"]["file"]["path"], format!("{}/s", arn("/app/b")));
    assert_eq!(gateway.requests("FilterLogEvents")[0]["logGroupIdentifier"], arn("/app/b"));

    // With the cursor of the ARN.
    let settings = format!(
        "log_group_name_prefix: /app/, region_name: {REGION}, number_of_workers: 2, \
         include_linked_accounts_for_prefix_mode: true"
    );
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 20).await;
    assert_eq!(bench.events[0]["aws"]["cloudwatch"]["log_group"], arn("/app/a"));
    assert_eq!(gateway.requests("DescribeLogGroups")[0]["includeLinkedAccounts"], true);
    gateway.make("/app/c", &["s"]);
    gateway.put("/app/c", "s", &texts("c", 20, 1_000));
    gateway.delete("/app/a");
    exactly(&mut bench, 40).await;
    assert_eq!(bench.input.metrics().trouble(), None, "one is gone");
    gateway.make("/app/a", &["s"]);
    gateway.put_one("/app/a", "s", now(), "it is there again");
    exactly(&mut bench, 41).await;
    // More than a page of a listing has.
    for number in 0..60 {
        let group = format!("/app/many/{number:02}");
        gateway.make(&group, &["s"]);
        gateway.put_one(&group, "s", now(), &group);
    }
    bench.until("all came", |bench| bench.events.len() >= 101).await;
    assert_eq!(bench.stop().await.len(), 101);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn streams_are_chosen_by_name_or_by_prefix() {
    let gateway = Gateway::start().await;
    let streams = ["web-1", "web-2", "db"];
    gateway.make("/app", &streams);
    for stream in streams {
        gateway.put("/app", stream, &texts(stream, 10, 1_000));
    }
    for (more, count, last) in [
        ("log_streams: [db, web-2]", 20, "web-2 000009"),
        ("log_stream_prefix: web-", 20, "web-2 000009"),
        ("log_streams: [db]", 10, "db 000009"),
    ] {
        // Each is a source of its own, beside the others in one registry.
        let directory = tempfile::tempdir().unwrap();
        let settings = format!("log_group_name: /app, region_name: {REGION}, {more}");
        let mut bench = Bench::start(gateway.input(&settings), directory.path());
        exactly(&mut bench, count).await;
        let all = sorted(&bench.stop().await);
        assert_eq!((all.len(), all[count - 1].as_str()), (count, last));
        let mut bench = Bench::start(gateway.input(&settings), directory.path());
        exactly(&mut bench, 0).await;
        bench.stop().await;
    }
    let settings = format!("log_group_name: /app, region_name: {REGION}, log_streams: [none]");
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.trouble("see `log_streams`").await;
    gateway.call("CreateLogStream", &json!({ "logGroupName": "/app", "logStreamName": "none" }));
    gateway.put_one("/app", "none", now(), "it is there");
    exactly(&mut bench, 1).await;
    assert_eq!(bench.input.metrics().trouble(), None);
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_start_at_the_end_leaves_out_what_is_old_and_nothing_after_that() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["s"]);
    gateway.put("/app", "s", &texts("old", 10, 10_000));
    let settings = format!("log_group_name: /app, region_name: {REGION}, start_position: end");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 0).await;
    bench.stop().await;
    // There was no event yet, but there is a cursor.
    gateway.put("/app", "s", &texts("away", 10, 0));
    some_scans().await;
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 10).await;
    gateway.put("/app", "s", &texts("new", 10, 0));
    exactly(&mut bench, 20).await;
    bench.stop().await;
    let settings = format!("log_group_name: /app, region_name: {REGION}, start_position: lastSync");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 0).await;
    bench.stop().await;
    let directory = tempfile::tempdir().unwrap();
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 30).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn latency_holds_back_what_is_young() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["s"]);
    let settings = format!("log_group_name: /app, region_name: {REGION}, latency: 4s");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    let began = now();
    gateway.put_one("/app", "s", began, "young");
    gateway.put_one("/app", "s", began - 5_000, "old");
    bench.until("the old one came", |bench| bench.events.len() == 1).await;
    assert_eq!(bench.messages(), ["old"]);
    assert!(now() < began + 3_000);
    // Late, but not as late as `latency`.
    gateway.put_one("/app", "s", now() - 2_000, "late");
    bench.until("all came", |bench| bench.events.len() == 3).await;
    assert!(now() >= began + 4_000);
    bench.stop().await;
}

/// Puts events until it must stop: some of the same millisecond, some late, in two streams.
async fn write(gateway: Gateway, stop: Arc<AtomicBool>) -> Vec<String> {
    let mut all = Vec::new();
    let mut number = 0_usize;
    while !stop.load(Ordering::Relaxed) {
        for (stream, late) in [("one", 0), ("two", 150), ("one", 4_000), ("two", 60_000)] {
            let time = now() - late;
            let events: Vec<(i64, String)> = (0..7)
                .map(|at| (time + at / 4, format!("{stream} {:08}", number + at as usize)))
                .collect();
            number += events.len();
            let gateway = gateway.clone();
            all.extend(events.iter().map(|(_, text)| text.clone()));
            let put = move || gateway.put("/app", stream, &events);
            tokio::task::spawn_blocking(put).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    all.sort_unstable();
    all
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn restarts_neither_lose_nor_repeat_what_is_added_meanwhile() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["one", "two"]);
    gateway.small_pages(37);
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn(write(gateway.clone(), Arc::clone(&stop)));
    let settings = format!("log_group_name: /app, region_name: {REGION}");
    let mut all = Vec::new();
    for run in 1..=6 {
        let mut bench = Bench::start(gateway.input(&settings), directory.path());
        bench.until("some came", |bench| bench.events.len() > 100 * run).await;
        all.extend(bench.stop().await);
    }
    stop.store(true, Ordering::Relaxed);
    let expected = writing.await.unwrap();
    gateway.small_pages(1_000);
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    let before = all.len();
    bench.until("all came", |bench| before + bench.events.len() >= expected.len()).await;
    some_scans().await;
    all.extend(bench.stop().await);
    assert!(before > 2_000, "{before}");
    assert_eq!(sorted(&all), expected);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn many_events_of_one_millisecond_come_once() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["s"]);
    let settings = format!("log_group_name: /app, region_name: {REGION}");
    let time = now() - 10_000;
    let of = |name: &str, count: usize| -> Vec<(i64, String)> {
        (0..count).map(|at| (time, format!("{name} {at:06}"))).collect()
    };
    gateway.put("/app", "s", &of("a", 4_000));
    gateway.small_pages(300);
    // It stops in the middle of them, again and again.
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut bench = Bench::start(gateway.input(&settings), directory.path());
        bench.until("some came", |bench| bench.events.len() > 600).await;
        all.extend(bench.stop().await);
    }
    gateway.small_pages(1_000);
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    let before = all.len();
    bench.until("all came", |bench| before + bench.events.len() >= 4_000).await;
    some_scans().await;
    all.extend(bench.stop().await);
    assert_eq!(all.len(), 4_000);

    // More than are known by their ids, over several pages of Amazon's size, in one run.
    gateway.small_pages(10_000);
    gateway.make("/more", &["s"]);
    gateway.put("/more", "s", &of("b", 25_000));
    let settings = format!("log_group_name: /more, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 25_000).await;
    bench.stop().await;
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 0).await;
    bench.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn an_output_that_is_stuck_holds_the_cursor() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["s"]);
    let events = texts("a", 500, 1_000);
    gateway.put("/app", "s", &events);
    let settings = format!("log_group_name: /app, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.is_stuck = true;
    let metrics = Arc::clone(bench.input.metrics());
    bench.until("all are on their way", |_| metrics.published.get() == 500).await;
    some_scans().await;
    // It ends without verdicts.
    assert_eq!(bench.stop().await.len(), 0);
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    exactly(&mut bench, 500).await;
    assert_eq!(sorted(&bench.stop().await), expected(&[&events]));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_service_that_wants_fewer_requests_gets_fewer() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    gateway.make("/app", &["s"]);
    let events = texts("a", 100, 1_000);
    gateway.put("/app", "s", &events);
    gateway.small_pages(30);
    let (operation, code) = ("FilterLogEvents", "ThrottlingException");
    gateway.refuse(Refusal { operation, about: String::new(), code, times: Some(2) });
    let settings = format!("log_group_name: /app, region_name: {REGION}");
    let began = now();
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.trouble("raise `api_sleep`").await;
    assert!(gateway.requests(operation).len() <= 2);
    exactly(&mut bench, 100).await;
    assert!(now() - began >= 3_000, "pauses of one and two seconds");
    assert_eq!(bench.input.metrics().trouble(), None);
    assert_eq!(sorted(&bench.stop().await), expected(&[&events]));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_group_that_is_refused_or_missing_holds_up_no_other() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    for group in ["/app/a", "/app/b", "/app/c"] {
        gateway.make(group, &["s"]);
        gateway.put(group, "s", &texts(group, 10, 1_000));
    }
    let (operation, code) = ("FilterLogEvents", "AccessDeniedException");
    gateway.refuse(Refusal { operation, about: "/app/b".to_owned(), code, times: None });
    let settings = format!("log_group_name_prefix: /app/, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.trouble("`logs:FilterLogEvents` on `arn:").await;
    exactly(&mut bench, 20).await;
    gateway.allow_all();
    exactly(&mut bench, 30).await;
    bench.no_trouble().await;
    let operation = "DescribeLogGroups";
    gateway.refuse(Refusal { operation, about: String::new(), code, times: None });
    bench.trouble("the right `logs:DescribeLogGroups`").await;
    gateway.put_one("/app/c", "s", now(), "still read");
    exactly(&mut bench, 31).await;
    bench.stop().await;

    gateway.allow_all();
    let settings = format!("log_group_name: /later, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.trouble("see `log_group_name` and `region_name`").await;
    gateway.make("/later", &["s"]);
    gateway.put_one("/later", "s", now(), "it is there");
    exactly(&mut bench, 1).await;
    bench.no_trouble().await;
    bench.stop().await;

    let settings = format!("log_group_name_prefix: /none, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.trouble("see `log_group_name_prefix`").await;
    let code = "UnrecognizedClientException";
    let operation = "DescribeLogGroups";
    gateway.refuse(Refusal { operation, about: String::new(), code, times: None });
    bench.trouble("see `access_key_id` and `secret_access_key`").await;
    bench.stop().await;
}
