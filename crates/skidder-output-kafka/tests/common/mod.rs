//! What tests of the output share: settings, and a reader of topics.
#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod rights;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use skidder_config::{Problems, Settings};
use skidder_contract::{Fixture, number};
use skidder_os::Timestamp;
use skidder_outputs::{Built, Context};
use std::collections::BTreeMap;
use std::time::Duration;

/// A test that waits longer than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// Lines of one case.
pub(crate) const LINES: usize = 1000;

/// What outputs are told in tests.
pub(crate) fn context() -> Context {
    Context::sample()
}

/// The output of these settings, which are those below `output.kafka`, and what was told about them.
pub(crate) fn try_build(settings: &str) -> (Option<Built>, String) {
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).expect("YAML");
    let section = settings.root(&problems);
    let built = skidder_output_kafka::build(&section, &context(), Timestamp(0));
    section.finish();
    (built, problems.to_string())
}

/// The output of settings without a mistake, with short waits.
pub(crate) fn output(settings: &str) -> Built {
    let waits = "backoff: {init: 5ms, max: 50ms}\nmetadata.retry.backoff: 5ms\n";
    let (built, told) = try_build(&format!("{waits}{settings}"));
    built.unwrap_or_else(|| panic!("{settings}: {told}"))
}

/// One record as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) partition: i32,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: String,
    pub(crate) timestamp: Option<i64>,
    pub(crate) headers: Vec<(String, String)>,
}

impl Taken {
    /// The number of the line that it is.
    pub(crate) fn number(&self) -> usize {
        let document: serde_json::Value = serde_json::from_str(&self.value).expect("JSON");
        number(document["message"].as_str().expect("a message"))
    }
}

fn consumer(brokers: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", brokers)
        .set("group.id", "judge")
        .set("enable.partition.eof", "false")
        .create()
        .expect("a consumer")
}

/// Makes a topic; `settings` are the broker's, as `max.message.bytes`.
pub(crate) async fn create(brokers: &str, topic: &str, partitions: i32, settings: &[(&str, &str)]) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create().expect("a client");
    let mut new = NewTopic::new(topic, partitions, TopicReplication::Fixed(1));
    for (name, value) in settings {
        new = new.set(name, value);
    }
    let made = admin.create_topics(&[new], &AdminOptions::new()).await.expect("an answer");
    made[0].as_ref().expect("the topic is made");
}

/// All that is in a topic, each partition in its order. Nothing if there is no such topic.
pub(crate) fn read(brokers: &str, topic: &str) -> Vec<Taken> {
    let consumer = consumer(brokers);
    let found = consumer.fetch_metadata(Some(topic), PATIENCE).expect("metadata");
    let mut assigned = TopicPartitionList::new();
    let mut expected = 0;
    for partition in found.topics()[0].partitions() {
        let (first, end) =
            consumer.fetch_watermarks(topic, partition.id(), PATIENCE).expect("watermarks");
        if end > first {
            expected += (end - first) as usize;
            let added = assigned.add_partition_offset(topic, partition.id(), Offset::Beginning);
            added.expect("an offset");
        }
    }
    consumer.assign(&assigned).expect("assigned");
    let mut taken = Vec::new();
    let mut silence = 0;
    while taken.len() < expected {
        let Some(message) = consumer.poll(Duration::from_millis(100)) else {
            silence += 1;
            assert!(silence < 600, "{} of {expected}", taken.len());
            continue;
        };
        let message = message.expect("a message");
        let headers = message.headers().map(|headers| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            headers
                .iter()
                .map(|header| (header.key.to_owned(), text(header.value.unwrap_or_default())))
                .collect()
        });
        taken.push(Taken {
            partition: message.partition(),
            key: message.key().map(<[u8]>::to_vec),
            value: String::from_utf8_lossy(message.payload().unwrap_or_default()).into_owned(),
            timestamp: message.timestamp().to_millis(),
            headers: headers.unwrap_or_default(),
        });
    }
    taken
}

/// How often each line is there.
pub(crate) fn counted(taken: &[Taken]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for record in taken {
        *counts.entry(record.number()).or_insert(0) += 1;
    }
    counts
}

/// Says whether the lines of each partition grow, but for repetitions.
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
