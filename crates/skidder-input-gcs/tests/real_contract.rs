//! The contract of inputs: buckets on fake-gcs-server.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[allow(dead_code, reason = "not every test program needs all of it")]
mod common;

use common::Cloud;
use skidder_contract::{Bench, FarSideFuture, InputTrial, Meaning, NO_GZIP, keep_input, objects};
use skidder_input::Input;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bucket of its own.
struct Listed {
    cloud: Arc<Cloud>,
    bucket: String,
}

impl InputTrial for Listed {
    fn input(&self) -> Box<dyn Input> {
        self.cloud.input("poll_interval: 1s, max_workers: 3", &[&self.bucket])
    }

    fn meaning(&self) -> Meaning {
        Meaning::Cursor
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            for (name, text) in objects(lines) {
                self.cloud.put_as((&self.bucket, &name), ("text/plain", ""), text).await;
            }
        })
    }

    fn send_garbage(&self) -> Option<FarSideFuture<'_>> {
        let place = (&*self.bucket, "garbage");
        let put = self.cloud.put_as(place, ("text/plain", ""), NO_GZIP);
        Some(Box::pin(put))
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn a_bucket_keeps_the_contract_of_inputs() {
    let cloud = Arc::new(Cloud::new().await);
    let buckets: Vec<String> = (0..7).map(|number| format!("case{number}")).collect();
    for bucket in &buckets {
        cloud.make(bucket).await;
    }
    let next = AtomicUsize::new(0);
    keep_input(|| {
        let bucket = buckets[next.fetch_add(1, Ordering::Relaxed)].clone();
        Listed { cloud: Arc::clone(&cloud), bucket }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs real servers: cargo xtask test"]
async fn buckets_are_counted_and_each_has_a_row() {
    let cloud = Cloud::new().await;
    let directory = tempfile::tempdir().unwrap();
    let text = "line\n".repeat(500);
    cloud.put("a", text.clone()).await;
    cloud.put_as(("other", "b"), ("text/plain", ""), text.clone()).await;
    cloud.put("wrong.gz", NO_GZIP).await;
    let input = cloud.input("poll_interval: 1s", &["logs", "other"]);
    let mut bench = Bench::start(input, directory.path());
    bench.until("both came", |bench| bench.events.len() == 1000).await;
    let metrics = Arc::clone(bench.input.metrics());
    let numbers = metrics.objects();
    bench.until("one is damaged", |_| numbers.damaged.get() >= 1).await;
    bench.until("both are settled", |_| numbers.acknowledged() == 2).await;
    bench.until("both are listed again", |_| numbers.listed.get() >= 6).await;
    assert_eq!(numbers.url.get().map(String::as_str), Some("gs://logs,other"));
    assert_eq!((numbers.sent.get(), numbers.events.get()), (2, 1000));
    assert_eq!(numbers.size.summary().max, text.len() as u64);
    assert!(numbers.failed.get() >= 1 && metrics.errors.get() >= 1 && numbers.tracked.get() >= 2);
    assert!(numbers.bytes.get() >= 2 * text.len() as u64);
    let sources = metrics.sources.all(skidder_os::Monotonic::default());
    let row = |name: &str| sources.iter().find(|row| &*row.name == name).unwrap();
    assert_eq!((row("logs").events, row("other").events), (500, 500));
    assert!(row("logs").newest.is_some() && row("other").bytes == text.len() as u64);
    assert!(row("logs").last_error.as_ref().is_some_and(|error| error.starts_with("wrong.gz: ")));
    bench.stop().await;
    assert_eq!(metrics.open.get(), 0);
}
