//! The contract of inputs, kept with a real broker.

#[path = "../../skidder-output-kafka/tests/common/client.rs"]
#[allow(dead_code, reason = "the tests of the output use the other parts")]
mod client;

use client::Client;
use skidder_config::{Problems, Settings};
use skidder_contract::line;
use skidder_contract::{FarSideFuture, InputTrial, Meaning, keep_input};
use skidder_input::Input;
use skidder_os::{Fs, RealFs};
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::unique_name;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// The input of these settings.
fn input(settings: &str) -> Box<dyn Input> {
    let problems = Problems::new();
    let settings = Settings::parse("x", settings).expect("YAML");
    let section = settings.root(&problems);
    section.declared_by(&skidder_input_kafka::KAFKA_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let read = skidder_input_kafka::read(&section, &fs, (Default::default(), 10 << 20));
    section.finish();
    Box::new(read.unwrap_or_else(|| panic!("{problems}")))
}

struct Trial {
    broker: String,
    topic: String,
    /// What was sent, in the order of its offsets.
    sent: Mutex<Vec<usize>>,
    settings: &'static str,
}

impl InputTrial for Trial {
    fn input(&self) -> Box<dyn Input> {
        let Self { broker, topic, settings, .. } = self;
        input(&format!(
            "{{hosts: ['{broker}'], topics: [{topic}], group_id: {topic}, wait_close: 500ms, \
             heartbeat_interval: 50ms, rebalance.retry_backoff: 50ms, {settings}}}"
        ))
    }

    fn meaning(&self) -> Meaning {
        Meaning::Acknowledgement
    }

    fn send(&self, lines: Range<usize>) -> FarSideFuture<'_> {
        Box::pin(async move {
            let mut client = Client::new(&self.broker);
            let lines: Vec<usize> = lines.collect();
            for some in lines.chunks(500) {
                self.sent.lock().expect("no panic").extend_from_slice(some);
                client.produce(&self.topic, some.iter().map(|number| line(*number)));
            }
        })
    }

    fn acknowledged(&self) -> BTreeSet<usize> {
        let committed = Client::new(&self.broker).committed(&self.topic, &self.topic);
        self.sent.lock().expect("no panic").iter().take(committed).copied().collect()
    }

    /// One batch, which is larger than the queue.
    fn on_the_way_max(&self) -> usize {
        2048
    }
}

async fn keep(settings: &'static str) {
    let kafka = Kafka::given_or_started().expect("a broker");
    let broker = format!("127.0.0.1:{}", kafka.ports.plain);
    keep_input(|| {
        let topic = unique_name("contract");
        Client::new(&broker).create(&topic, 1, &[]);
        Trial { broker: broker.clone(), topic, sent: Mutex::default(), settings }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn the_contract_of_inputs_is_kept() {
    keep("rebalance.strategy: range").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn the_contract_is_kept_with_other_settings() {
    keep(
        "rebalance.strategy: roundrobin, isolation_level: read_committed, version: 2.3.0, fetch.default: 20KiB, \
         fetch.max: 10KiB, fetch.min: 100, max_wait_time: 20ms, consume_backoff: 50ms, connect_backoff: 50ms, \
         client_id: judge, keep_alive: 1s, timeout: 10s, session_timeout: 6s, rebalance.timeout: 10s, \
         rebalance.max_retries: 7",
    )
    .await;
}
