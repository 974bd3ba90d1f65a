//! Allocations of Nomad as blocking queries report them.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "common/mod.rs"]
mod http_api;
mod nomad_agent;

use nomad_agent::{Agent, NODE};
use serde_json::json;
use skidder_config::Secret;
use skidder_lookups::nomad::allocations::{Allocations, Change, Following};
use skidder_lookups::nomad::api::NomadApi;
use skidder_net::HttpClient;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(30);

/// Changes of an agent, in a runtime of their own.
struct World {
    runtime: tokio::runtime::Runtime,
    allocations: Allocations,
}

impl World {
    fn new(agent: &Agent, change: impl FnOnce(&mut Following)) -> Self {
        let server = HttpClient::parse(&agent.address(), None, LIMIT).unwrap();
        let query = [("namespace", Some("shop".to_owned())), ("region", None)];
        let api = NomadApi::new(server, &query, Some(Secret::new("hunter2")));
        let mut following = Following {
            is_cluster: false,
            node: None,
            wait: Duration::from_secs(2),
            allows_stale: true,
            ended_since: 100,
        };
        change(&mut following);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, allocations: Allocations::new(api, following) }
    }

    fn next(&mut self) -> Result<Change, String> {
        let next = async { tokio::time::timeout(LIMIT, self.allocations.next()).await };
        self.runtime.block_on(next).expect("an answer").map_err(|error| error.to_string())
    }

    /// The next `count` changes, in short: `seen a`, `ended a 7`, `listed a b`.
    fn changes(&mut self, count: usize) -> Vec<String> {
        let (mut all, mut unchanged) = (Vec::new(), 0);
        while all.len() < count {
            assert!(unchanged < 10, "only {all:?}");
            match self.next().unwrap() {
                Change::Seen(one) => {
                    assert_eq!(one["ClientStatus"], "running");
                    assert_eq!(one["Job"]["Name"], "shop", "the whole description");
                    all.push(format!("seen {}", one["ID"].as_str().unwrap()));
                }
                Change::Ended(id, version) => all.push(format!("ended {id} {version}")),
                Change::Listed(ids) => all.push(format!("listed {}", ids.join(" "))),
                Change::Unchanged => unchanged += 1,
            }
        }
        all
    }
}

#[test]
fn allocations_come_change_and_end() {
    let agent = Agent::start();
    agent.put("a", "running", json!({}));
    agent.put("b", "pending", json!({}));
    let mut world = World::new(&agent, |_| ());
    assert_eq!(world.changes(2), ["seen a", "listed a b"]);
    agent.put("b", "running", json!({}));
    assert_eq!(world.changes(2), ["seen b", "listed a b"]);
    agent.put("b", "running", json!({"x": "1"}));
    assert_eq!(world.changes(2), ["seen b", "listed a b"]);
    agent.put("a", "complete", json!({}));
    assert_eq!(world.changes(2), ["listed b", "ended a 5"]);
    // One that was over before it was seen.
    agent.put("c", "failed", json!({}));
    assert_eq!(world.changes(3), ["seen c", "listed b", "ended c 6"]);
    agent.remove("b");
    assert_eq!(world.changes(1), ["listed "]);
    let requests = agent.requests();
    assert!(requests[0].starts_with("GET /v1/agent/self?namespace=shop"), "{requests:?}");
    let path = format!("GET /v1/node/{NODE}/allocations?namespace=shop&");
    assert!(requests[1..].iter().all(|one| one.starts_with(&path)), "{requests:?}");
    assert!(requests[1].ends_with("&index=0&wait=2000ms&stale=true"), "{requests:?}");
    assert!(requests[2].contains("&index=2&"), "{requests:?}");
    assert_eq!(agent.tokens(), ["hunter2"]);
}

#[test]
fn of_those_that_ended_before_the_start_the_recent_ones_are_reported() {
    let agent = Agent::start();
    agent.put_at("old", "complete", 99);
    agent.put_at("new", "complete", 100);
    let mut world = World::new(&agent, |_| ());
    assert_eq!(world.changes(3), ["seen new", "listed ", "ended new 2"]);
    agent.put("old", "complete", json!({"x": "1"}));
    assert_eq!(world.changes(1), ["listed "]);
}

#[test]
fn a_connection_that_breaks_repeats_nothing() {
    let agent = Agent::start();
    agent.put("a", "running", json!({}));
    let mut world = World::new(&agent, |_| ());
    assert_eq!(world.changes(2), ["seen a", "listed a"]);
    agent.refuse(true);
    let error = loop {
        match world.next() {
            Ok(Change::Unchanged) => {}
            Ok(change) => panic!("{change:?}"),
            Err(error) => break error,
        }
    };
    assert!(error.contains("answered 403"), "{error}");
    assert!(!error.contains("hunter2"), "the token is no part of a message: {error}");
    agent.put("b", "running", json!({}));
    agent.refuse(false);
    assert_eq!(world.changes(2), ["seen b", "listed a b"]);
}

#[test]
fn an_index_that_goes_back_is_the_next_one() {
    let agent = Agent::start();
    for round in 0..5 {
        agent.put("a", "running", json!({"x": format!("{round}")}));
    }
    let mut world = World::new(&agent, |_| ());
    assert_eq!(world.changes(2), ["seen a", "listed a"]);
    // The cluster was restored from an older state.
    agent.restore(1);
    agent.put("b", "running", json!({}));
    assert_eq!(world.changes(2), ["seen b", "listed a b"]);
}

#[test]
fn without_an_index_changes_are_found_nevertheless() {
    let agent = Agent::start();
    agent.hide_index();
    agent.put("a", "running", json!({}));
    let mut world = World::new(&agent, |_| ());
    assert_eq!(world.changes(2), ["seen a", "listed a"]);
    agent.put("a", "complete", json!({}));
    let changes = world.changes(6);
    assert!(changes.contains(&"ended a 2".to_owned()), "{changes:?}");
}

#[test]
fn in_a_cluster_only_what_is_new_is_described() {
    let agent = Agent::start();
    agent.put("a", "running", json!({}));
    agent.put("b", "running", json!({}));
    let mut world = World::new(&agent, |following| following.is_cluster = true);
    assert_eq!(world.changes(3), ["seen a", "seen b", "listed a b"]);
    agent.put("b", "running", json!({"x": "1"}));
    assert_eq!(world.changes(2), ["seen b", "listed a b"]);
    let requests = agent.requests();
    let described = |id: &str| {
        let path = format!("GET /v1/allocation/{id}?");
        requests.iter().filter(|one| one.starts_with(&path)).count()
    };
    assert_eq!((described("a"), described("b")), (1, 2), "{requests:?}");
}

#[test]
fn a_node_is_found_by_its_name_and_one_that_is_unknown_is_an_error() {
    let agent = Agent::start();
    agent.put("a", "running", json!({}));
    let mut world = World::new(&agent, |following| following.node = Some("node-1".to_owned()));
    assert_eq!(world.changes(2), ["seen a", "listed a"]);
    let mut world = World::new(&agent, |following| following.node = Some("node-7".to_owned()));
    let error = world.next().unwrap_err();
    assert!(error.contains("node `node-7` is not known to Nomad; set `node`"), "{error}");
}
