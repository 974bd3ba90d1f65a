//! The input with a broker of the tests.

use super::broker::{Broker, Command, Request, new, old};
use super::decode::Version;
use super::*;
use crate::testing::{Bench, context, read_with};
use rumqttc::mqttbytes::v4::Packet as Old;
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
        self.broker.state().acknowledged.clone()
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
