//! The contract of inputs: buckets that are listed and queues on moto, log groups on moto behind the gateway.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;
mod gateway;

use common::{Cloud, news};
use gateway::{Gateway, REGION, now};
use serde_json::json;
use skidder_contract::{
    Bench, FarSideFuture, InputTrial, Meaning, NO_GZIP, OBJECT_LINES, keep_input, line, objects,
};
use skidder_input::Input;
use skidder_input_aws::{NamedObject, ParseNotifications};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bucket that is listed, below a prefix of its own.
struct Listed {
    cloud: Arc<Cloud>,
    prefix: String,
}

impl InputTrial for Listed {
    fn input(&self) -> Box<dyn Input> {
        self.cloud.input(&format!(
            "non_aws_bucket_name: logs, bucket_list_prefix: {}, bucket_list_interval: 1s, number_of_workers: 3",
            self.prefix
        ))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for (name, text) in objects(lines) {
                self.cloud.put(&format!("{}{name}", self.prefix), text).await;
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        let key = format!("{}garbage", self.prefix);
        Some(Box::pin(async move { self.cloud.put(&key, NO_GZIP).await }))
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_that_is_listed_keeps_the_contract_of_inputs() {
    let (cloud, next) = (Arc::new(Cloud::versitygw()), AtomicUsize::new(0));
    keep_input(|| {
        let prefix = format!("case{}/", next.fetch_add(1, Ordering::Relaxed));
        Listed { cloud: Arc::clone(&cloud), prefix }
    })
    .await;
}

/// A queue of its own, with news of objects.
struct Queued {
    cloud: Arc<Cloud>,
    queue: String,
}

impl InputTrial for Queued {
    fn input(&self) -> Box<dyn Input> {
        // What a run leaves comes again before the contract loses its patience.
        self.cloud.input(&format!(
            "queue_url: '{}', sqs.wait_time: 1s, visibility_timeout: 4s, sqs.shutdown_grace_time: 1s",
            self.queue
        ))
    }

    /// Messages are deleted behind the verdicts, and objects have cursors besides.
    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for (name, text) in objects(lines) {
                self.cloud.put(&name, text).await;
                self.cloud.tell(&self.queue, &news(&name));
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        Some(Box::pin(async move { self.cloud.tell(&self.queue, &json!("no JSON")) }))
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_queue_keeps_the_contract_of_inputs() {
    let (cloud, next) = (Arc::new(Cloud::moto().await), AtomicUsize::new(0));
    keep_input(|| {
        let name = format!("case{}", next.fetch_add(1, Ordering::Relaxed));
        Queued { queue: cloud.queue(&name, json!({})), cloud: Arc::clone(&cloud) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_queue_is_counted_and_its_messages_stay_until_their_verdict() {
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let queue = cloud.queue("news", json!({}));
    let all = objects(1..5 * OBJECT_LINES + 1);
    for (name, text) in &all {
        cloud.put(name, text.clone()).await;
        cloud.tell(&queue, &news(name));
    }
    let settings = format!("queue_url: '{queue}', sqs.wait_time: 1s, visibility_timeout: 4s");
    let mut bench = Bench::start(cloud.input(&settings), directory.path());
    bench.is_stuck = true;
    let metrics = Arc::clone(bench.input.metrics());
    let (messages, read) = (metrics.queue(), metrics.objects());
    bench.until("all are held", |_| messages.held().0 == 5).await;
    bench.until("they are hidden for longer", |_| messages.extended.get() >= 5).await;
    let sources = metrics.sources.all(skidder_os::Monotonic::default());
    let row = sources.iter().find(|row| &*row.name == "news").unwrap();
    assert_eq!((row.events, messages.deleted.get(), read.acknowledged()), (5, 0, 0));
    assert!(row.oldest.is_some() && row.oldest == messages.held().1 && row.newest >= row.oldest);
    cloud.await_count(&queue, (0, 5)).await;
    bench.is_stuck = false;
    bench.until("all came", |bench| bench.events.len() == 5 * OBJECT_LINES).await;
    bench.until("all are deleted", |_| messages.deleted.get() == 5).await;
    cloud.await_count(&queue, (0, 0)).await;
    cloud.tell(&queue, &json!("no JSON"));
    bench.until("it is left", |_| messages.returned.get() + messages.deleted.get() == 6).await;
    assert_eq!((messages.received.get(), messages.held()), (6, (0, None)));
    assert_eq!(messages.processed.get(), 5);
    assert_eq!(messages.processing_time.summary().count, 6);
    assert_eq!(messages.lag.summary().count, 6);
    bench.until("the queue was looked at", |_| messages.waiting().is_some()).await;
    let bytes: usize = all.iter().map(|(_, text)| text.len()).sum();
    assert_eq!((read.selected.get(), read.sent.get(), read.acknowledged()), (5, 5, 5));
    assert_eq!((read.events.get(), read.bytes.get()), (5 * OBJECT_LINES as u64, bytes as u64));
    assert_eq!((read.in_flight.get(), read.failed.get(), read.listed.get()), (0, 0, 0));
    let sources = metrics.sources.all(skidder_os::Monotonic::default());
    let names: Vec<&str> = sources.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["news", "logs"], "the queue and the bucket");
    assert_eq!(sources[1].bytes, bytes as u64);
    bench.stop().await;
    assert_eq!(metrics.open.get(), 0);
}

/// In the place of a script: each word of a message is an object.
struct Words;

impl ParseNotifications for Words {
    fn parse(&self, message: &str) -> Result<Vec<NamedObject>, String> {
        if message.starts_with('!') {
            return Err("no words".to_owned());
        }
        let named = |key: &str| NamedObject {
            bucket: "logs".to_owned(),
            provider: "own".to_owned(),
            key: key.to_owned(),
            ..NamedObject::default()
        };
        Ok(message.split_whitespace().map(named).collect())
    }

    fn stop(&self) {}
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_script_reads_the_messages_of_a_queue() {
    let cloud = Cloud::moto().await;
    let directory = tempfile::tempdir().unwrap();
    let queue = cloud.queue("words", json!({}));
    for (name, text) in objects(1..3 * OBJECT_LINES + 1) {
        cloud.put(&format!("{name}%20"), text).await;
    }
    let names: Vec<String> = objects(1..3 * OBJECT_LINES + 1)
        .into_iter()
        .map(|(name, _)| format!("{name}%20"))
        .collect();
    cloud.tell(&queue, &json!(names[..2].join(" ")));
    cloud.tell(&queue, &json!(names[2]));
    cloud.tell(&queue, &json!(" "));
    cloud.tell(&queue, &json!("! garbage"));
    let settings = format!(
        "queue_url: '{queue}', sqs.wait_time: 1s, visibility_timeout: 1s, sqs.max_receive_count: 3"
    );
    let input = cloud.aws_s3(&settings).with_script(Arc::new(Words));
    let mut bench = Bench::start(Box::new(input), directory.path());
    bench.until("all came", |bench| bench.events.len() == 3 * OBJECT_LINES).await;
    assert_eq!(bench.events[0]["cloud"]["provider"], "own");
    let error = bench.input.metrics().last_error().unwrap();
    assert_eq!(&*error.text, "no words");
    cloud.await_count(&queue, (0, 0)).await;
    let numbers = bench.input.metrics().queue();
    bench.until("the last one is deleted", |_| numbers.deleted.get() == 4).await;
    assert!(numbers.returned.get() >= 1, "it came again before that");
    bench.stop().await;
}

/// A log group.
struct Group {
    gateway: Gateway,
    name: String,
}

impl InputTrial for Group {
    fn input(&self) -> Box<dyn Input> {
        self.gateway.input(&format!("log_group_name: {}, region_name: {REGION}", self.name))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        let (end, count) = (now() - 100, lines.len());
        // One millisecond apart: more events of one are not told apart.
        let time = |at: usize| end - i64::try_from(count - at).unwrap();
        let events: Vec<(i64, String)> =
            lines.enumerate().map(|(at, number)| (time(at), line(number))).collect();
        let (gateway, name) = (self.gateway.clone(), self.name.clone());
        Box::pin(async move {
            let put = move || gateway.put(&name, "s", &events);
            tokio::task::spawn_blocking(put).await.unwrap();
        })
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_log_group_keeps_the_contract_of_inputs() {
    let (gateway, next) = (Gateway::start().await, AtomicUsize::new(0));
    keep_input(|| {
        let name = format!("/case/{}", next.fetch_add(1, Ordering::Relaxed));
        gateway.make(&name, &["s"]);
        Group { gateway: gateway.clone(), name }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn log_groups_are_counted() {
    let gateway = Gateway::start().await;
    let directory = tempfile::tempdir().unwrap();
    for name in ["/a/1", "/a/2"] {
        gateway.make(name, &["s"]);
    }
    gateway.put_one("/a/1", "s", now() - 2_000, "one");
    gateway.put_one("/a/2", "s", now() - 2_000, "two");
    let settings = format!("log_group_name_prefix: /a/, region_name: {REGION}");
    let mut bench = Bench::start(gateway.input(&settings), directory.path());
    bench.until("both came", |bench| bench.events.len() == 2).await;
    let metrics = Arc::clone(bench.input.metrics());
    let numbers = metrics.groups();
    bench.until("they are seen again", |_| numbers.received.get() > 4).await;
    assert_eq!((numbers.groups.get(), numbers.created.get()), (2, 2));
    gateway.delete("/a/2");
    bench.until("one is gone", |_| numbers.groups.get() == 1).await;
    bench.stop().await;
    let asked: usize =
        ["FilterLogEvents", "DescribeLogGroups"].iter().map(|it| gateway.requests(it).len()).sum();
    // The last one may have been given up at the stop, before the gateway had it.
    let calls = numbers.calls.get() as usize;
    assert!(calls > 4 && (asked..=asked + 1).contains(&calls), "{calls} {asked}");
}
