//! Google's server for tests with topics, subscriptions and messages, and the input.
#![allow(dead_code, reason = "not every test program needs all of it")]

use serde_json::Value;
use skidder_config::{Problems, Settings};
use skidder_contract::Bench;
use skidder_input::Input;
use skidder_input_pubsub::GCP_PUBSUB_INPUT;
use skidder_os::{Fs, RealFs};
use skidder_testkit::servers::Server;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A server of a test's own.
pub(crate) struct Cloud {
    server: Server,
}

impl Cloud {
    /// With these options of its own.
    pub(crate) fn start(settings: &str) -> Self {
        Self { server: Server::own_pubsub(settings).unwrap() }
    }

    /// Where it speaks gRPC.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.server.port() - 1)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Option<String> {
        let (status, answer) = self.server.text(method, path, &[], body).unwrap();
        (status == 200).then_some(answer)
    }

    /// Makes a topic or subscription.
    pub(crate) fn put(&self, path: &str) {
        self.ask("PUT", &format!("/{path}"), "").unwrap();
    }

    /// Deletes one.
    pub(crate) fn delete(&self, path: &str) {
        self.ask("DELETE", &format!("/{path}"), "").unwrap();
    }

    /// A subscription, if it is there.
    pub(crate) fn subscription(&self, name: &str) -> Option<Value> {
        let answer = self.ask("GET", &format!("/subscriptions/{name}"), "")?;
        Some(serde_json::from_str(&answer).unwrap())
    }

    /// Publishes numbered messages to a topic; attributes stand behind its name.
    pub(crate) fn publish(&self, topic: &str, range: Range<usize>) {
        let body = numbers(range).join("\n");
        self.ask("POST", &format!("/publish?topic={topic}"), &body).unwrap();
    }

    /// Lets the next calls of a method fail.
    pub(crate) fn fail(&self, method: &str, code: u16, times: usize, more: &str) {
        let path = format!("/fail?method={method}&code={code}&times={times}{more}");
        self.ask("POST", &path, "").unwrap();
    }

    /// A number of the server's.
    pub(crate) fn count(&self, name: &str) -> usize {
        let answer = self.ask("GET", "/messages", "").unwrap();
        let counts: Value = serde_json::from_str(&answer).unwrap();
        counts[name].as_u64().unwrap_or(0) as usize
    }

    /// Takes events until a condition holds, for longer than the deadline of messages that were on their way when a
    /// connection broke.
    pub(crate) async fn patiently(bench: &mut Bench, what: &str, holds: impl Fn(&Bench) -> bool) {
        for _ in 0..1200 {
            bench.take();
            if holds(bench) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{what}: {} events", bench.events.len());
    }

    /// Waits until a number of the server's is this one.
    pub(crate) async fn await_count(&self, bench: &mut Bench, name: &str, expected: usize) {
        for _ in 0..300 {
            bench.take();
            if self.count(name) == expected {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{name} is {}, expected {expected}", self.count(name));
    }

    /// The input with a subscription of the topic `logs`.
    pub(crate) fn input(&self, subscription: &str, settings: &str) -> Box<dyn Input> {
        self.input_at(&self.address(), subscription, settings)
    }

    /// The same by another address.
    pub(crate) fn input_at(
        &self,
        address: &str,
        subscription: &str,
        settings: &str,
    ) -> Box<dyn Input> {
        input_at(address, subscription, settings)
    }
}

/// The input with a subscription of the topic `logs`, at a server.
pub(crate) fn input_at(address: &str, subscription: &str, settings: &str) -> Box<dyn Input> {
    input_of(&format!(
        "subscription.name: {subscription}, alternative_host: '{address}', {settings}"
    ))
}

/// The input with these settings, for a subscription of the topic `logs`.
pub(crate) fn input_of(settings: &str) -> Box<dyn Input> {
    let text = format!("{{project_id: test, topic: logs, {settings}}}");
    let problems = Problems::new();
    let yaml = Settings::parse("x", &text).expect("YAML");
    let section = yaml.root(&problems);
    section.declared_by(&GCP_PUBSUB_INPUT);
    let fs: Arc<dyn Fs> = Arc::new(RealFs);
    let read = skidder_input_pubsub::read(&section, &fs, |_| None);
    section.finish();
    Box::new(read.unwrap_or_else(|| panic!("{problems}")))
}

/// Numbered texts, which sort as their numbers do.
pub(crate) fn numbers(range: Range<usize>) -> Vec<String> {
    range.map(|number| format!("message {number:06}")).collect()
}

/// The messages in order, each as often as it came.
pub(crate) fn sorted(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| event["message"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = events.iter().map(text).collect();
    all.sort_unstable();
    all
}

/// The same, each once.
pub(crate) fn distinct(events: &[Value]) -> Vec<String> {
    let mut all = sorted(events);
    all.dedup();
    all
}
