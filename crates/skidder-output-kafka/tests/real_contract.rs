//! The Kafka output keeps the contract of all outputs, with a real broker.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::{counted, create, output, read};
use skidder_contract::{Manner, Place, Trial, keep};
use skidder_pipeline::Output;
use skidder_testkit::kafka::Kafka;
use skidder_testkit::servers::{free_port, unique_name};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// One broker for all cases; each has topics of its own.
struct KafkaTrial {
    kafka: Kafka,
    /// The port that the broker advertises to clients of its port `behind`.
    proxy: u16,
    topic: Mutex<String>,
}

/// A topic, and where its broker listens.
struct Topic {
    name: String,
    port: u16,
    /// Without encryption, for the judge.
    plain: String,
}

impl Place for Topic {
    fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn taken(&self) -> BTreeMap<usize, usize> {
        tokio::task::block_in_place(|| counted(&read(&self.plain, &self.name)))
    }
}

/// A topic that takes only records with a key, which ours do not have.
fn compacted(topic: &str) -> String {
    format!("{topic}-compacted")
}

impl Trial for KafkaTrial {
    fn kind(&self) -> &'static str {
        "kafka"
    }

    async fn place(&self, manner: Manner) -> Option<Box<dyn Place>> {
        let ports = self.kafka.ports;
        let (port, settings): (_, &[_]) = match manner {
            Manner::Good | Manner::RefusesSome => (ports.plain, &[]),
            // Lines have up to 50 bytes more than the shortest, as documents do.
            Manner::RefusesLarge => (ports.plain, &[("max.message.bytes", "260")]),
            Manner::WrongCredentials => (ports.sasl, &[]),
            Manner::CertificateExpired => (ports.expired, &[]),
            Manner::WrongName => (ports.wrong_host, &[]),
            // With rights, in `real_rights.rs`. It cannot be made to talk nonsense: `fake.rs`.
            Manner::RefusesWhole | Manner::Confused | Manner::ProvesNothing => return None,
        };
        let name = unique_name("contract");
        let plain = format!("127.0.0.1:{}", ports.plain);
        create(&plain, &name, 3, settings);
        if manner == Manner::RefusesSome {
            create(&plain, &compacted(&name), 3, &[("cleanup.policy", "compact")]);
        }
        self.topic.lock().unwrap().clone_from(&name);
        Some(Box::new(Topic { name, port, plain }))
    }

    fn front(&self, _: &dyn Place) -> (u16, String) {
        (self.proxy, format!("127.0.0.1:{}", self.kafka.ports.behind))
    }

    fn output(&self, address: &str, manner: Manner) -> Box<dyn Output> {
        let topic = self.topic.lock().unwrap().clone();
        let more = match manner {
            Manner::RefusesSome => {
                format!("topics: [{{topic: {}, when.contains.message: '9 '}}]", compacted(&topic))
            }
            Manner::RefusesLarge => "compression: none".to_owned(),
            Manner::WrongCredentials => "username: test\npassword: wrong".to_owned(),
            Manner::CertificateExpired | Manner::WrongName => format!(
                "ssl.certificate_authorities: [{}]",
                self.kafka.certificate("ca.crt").display()
            ),
            _ => String::new(),
        };
        let settings = format!(
            "hosts: [\"{address}\"]\ntopic: {topic}\nbulk_max_size: 100\ntimeout: 2s\n{more}"
        );
        output(&settings).output
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kafka"]
async fn kafka_keeps_the_contract_of_outputs() {
    let proxy = free_port().unwrap();
    let kafka = Kafka::behind(free_port().unwrap(), proxy).unwrap();
    keep(&KafkaTrial { kafka, proxy, topic: Mutex::default() }).await;
}
