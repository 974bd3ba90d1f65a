//! Helpers of the output's tests: settings, and a reader of topics.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod client;
pub(crate) mod fake;

pub(crate) use client::{Client, Taken};
use skidder_config::{Problems, Settings};
use skidder_contract::{Fixture, number};
use skidder_outputs::{Built, Context};
use std::collections::BTreeMap;
use std::time::Duration;

/// A test that waits longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Lines of one case.
pub(crate) const LINES: usize = 1000;

/// The context of outputs in tests.
pub(crate) fn context() -> Context {
    Context::sample()
}

/// The output of these settings, which are those below `output.kafka`, and the reported problems.
pub(crate) fn try_build(settings: &str) -> (Option<Built>, String) {
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).expect("YAML");
    let section = settings.root(&problems);
    let built = skidder_output_kafka::build(&section, &context());
    section.finish();
    (built, problems.to_string())
}

/// The output of settings without a mistake, with short waits.
pub(crate) fn output(settings: &str) -> Built {
    let waits = "backoff: {init: 5ms, max: 50ms}\nmetadata.retry.backoff: 5ms\n";
    let (built, problems) = try_build(&format!("{waits}{settings}"));
    built.unwrap_or_else(|| panic!("{settings}: {problems}"))
}

impl Taken {
    /// The number of the line that it is.
    pub(crate) fn number(&self) -> usize {
        let document: serde_json::Value = serde_json::from_str(&self.value).expect("JSON");
        number(document["message"].as_str().expect("a message"))
    }
}

/// Makes a topic; `settings` are the broker's, as `max.message.bytes`.
pub(crate) fn create(broker: &str, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    Client::new(broker).create(topic, partitions, settings);
}

/// All that is in a topic, each partition in its order. Nothing if there is no such topic.
pub(crate) fn read(broker: &str, topic: &str) -> Vec<Taken> {
    Client::new(broker).read(topic)
}

/// Values of records with their partitions, as if they had been read.
pub(crate) fn taken_of(values: &[(i32, String)]) -> Vec<Taken> {
    let taken = |(partition, value): &(i32, String)| Taken {
        partition: *partition,
        key: None,
        value: value.clone(),
        timestamp: 0,
        headers: Vec::new(),
    };
    values.iter().map(taken).collect()
}

/// How often each line is there.
pub(crate) fn counted(taken: &[Taken]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for record in taken {
        *counts.entry(record.number()).or_insert(0) += 1;
    }
    counts
}

/// Checks that the lines of each partition grow, but for repetitions.
pub(crate) fn assert_order(name: &str, taken: &[Taken]) {
    let mut last: BTreeMap<i32, usize> = BTreeMap::new();
    let mut seen = std::collections::BTreeSet::new();
    for record in taken {
        let number = record.number();
        if !seen.insert(number) {
            continue;
        }
        let before = last.insert(record.partition, number);
        assert!(before.is_none_or(|before| before < number), "{name}: {before:?} before {number}");
    }
}

/// Waits until something is so.
pub(crate) async fn until(fixture: &Fixture, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            assert!(fixture.settle.total().adds_up());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let in_time = tokio::time::timeout(PATIENCE, wait).await.is_ok();
    assert!(in_time, "{}: {:?}", fixture.name, fixture.settle.total());
}
