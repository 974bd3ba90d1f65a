//! What runs when allocations of Nomad come, change and go, and the settings of the provider.

mod common;

use common::{at, autodiscover, config, read};
use serde_json::{Value as Json, json};
use skidder_autodiscover::{Fact, Made, ProviderKind, Scope};
use std::sync::Arc;
use std::time::Duration;

const HINTS: &str = "
filebeat.autodiscover.providers:
- type: nomad
  cleanup_timeout: 15s
  hints.enabled: true
";

/// An allocation with the tasks `api` and `side`; `meta` is that of `api`.
fn allocation(id: &str, index: u64, status: &str, meta: Json) -> Json {
    json!({
        "ID": id, "Name": format!("shop.web[{id}]"), "Namespace": "default", "NodeName": "n1",
        "ClientStatus": status, "TaskGroup": "web", "ModifyIndex": index, "CreateTime": 1,
        "Job": {
            "Name": "shop", "Type": "service", "Region": "global", "Datacenters": ["dc1"],
            "TaskGroups": [{
                "Name": "web",
                "Tasks": [
                    { "Name": "api", "Meta": meta, "Services": [{ "Name": "api", "Tags": ["redis"] }] },
                    { "Name": "side" },
                ],
            }],
        },
    })
}

fn seen(id: &str, index: u64, status: &str) -> Fact {
    Fact::Nomad(allocation(id, index, status, json!({})))
}

fn ids(made: &[Arc<Made>]) -> Vec<String> {
    made.iter().map(|made| config(made)["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_inputs_of_an_allocation_run_on_until_cleanup_timeout_is_over() {
    let mut all = autodiscover(HINTS);
    all.seen(0, seen("a", 5, "running"), at(10));
    let first = all.decide(at(10));
    assert_eq!(ids(&first), ["nomad-logs-a-api", "nomad-logs-a-side"]);
    let paths = [
        "/opt/nomad/data/alloc/a/alloc/logs/api.stdout.[0-9]*",
        "/opt/nomad/data/alloc/a/alloc/logs/api.stderr.[0-9]*",
        "/var/lib/nomad/alloc/a/alloc/logs/api.stdout.[0-9]*",
        "/var/lib/nomad/alloc/a/alloc/logs/api.stderr.[0-9]*",
    ];
    assert_eq!(config(&first[0])["paths"], json!(paths));
    assert_eq!(first[1].fields.value()["nomad"]["task"], json!({ "name": "side" }));
    all.gone_at(0, "a", "9", at(20));
    assert_eq!(all.wakes_at(), Some(at(35)));
    // What comes late does not bring it back.
    all.seen(0, seen("a", 8, "running"), at(21));
    assert!(Arc::ptr_eq(&first[0], &all.decide(at(34))[0]));
    assert!(all.decide(at(35)).is_empty());
    // It was lost for a while.
    all.seen(0, seen("a", 12, "running"), at(36));
    assert_eq!(all.decide(at(36)).len(), 2);
}

#[test]
fn only_allocations_that_run_or_ran_have_inputs() {
    let mut all = autodiscover(HINTS);
    for (number, status) in ["pending", "complete", "failed", "lost"].into_iter().enumerate() {
        all.seen(0, seen(&number.to_string(), 1, status), at(1));
    }
    all.seen(0, Fact::Docker(json!({ "Id": "d" })), at(1));
    assert!(all.decide(at(1)).is_empty());
    all.seen(0, seen("0", 2, "running"), at(2));
    all.seen(0, seen("x", 2, "unknown"), at(2));
    assert_eq!(all.decide(at(2)).len(), 4);
    all.seen(0, seen("0", 3, "complete"), at(3));
    all.listed(0, &["0".to_owned()], at(3));
    assert_eq!(all.wakes_at(), Some(at(18)), "x is not in the list");
}

#[test]
fn an_input_stays_the_same_when_only_the_index_changes() {
    let mut all = autodiscover(HINTS);
    all.seen(0, seen("a", 5, "running"), at(1));
    let first = all.decide(at(1));
    all.seen(0, seen("a", 6, "running"), at(2));
    assert!(Arc::ptr_eq(&first[0], &all.decide(at(2))[0]));
}

#[test]
fn hints_are_the_metadata_of_a_task() {
    let mut all = autodiscover(HINTS);
    let meta = json!({
        "co.elastic.logs/multiline.pattern": "^x", "co.elastic.logs/pipeline": "p-${data.nomad.job.name}",
    });
    all.seen(0, Fact::Nomad(allocation("a", 1, "running", meta)), at(1));
    let made = all.decide(at(1));
    let api = config(&made[0]);
    assert_eq!(api["parsers"], json!([{ "multiline": { "pattern": "^x" } }]));
    assert_eq!(api["pipeline"], "p-shop");
    assert_eq!(config(&made[1]).get("parsers"), None);
    let off = json!({ "co.elastic.logs/enabled": "false" });
    all.seen(0, Fact::Nomad(allocation("a", 2, "running", off)), at(2));
    all.decide(at(2));
    let made = all.decide(at(100));
    assert_eq!(ids(&made), ["nomad-logs-a-side"]);
}

#[test]
fn templates_name_tasks_as_in_filebeats_documentation() {
    let mut all = autodiscover(
        "
filebeat.autodiscover.providers:
- type: nomad
  templates:
  - condition.contains.nomad.task.service.tags: redis
    config:
    - type: filestream
      id: '${data.nomad.task.name}-${data.nomad.allocation.id}'
      paths: ['/n/${data.nomad.allocation.id}/alloc/logs/${data.meta.nomad.task.name}.stdout.0']
  appenders:
  - type: config
    condition.equals.nomad.namespace: default
    config.fields.host: '${data.host}'
",
    );
    all.seen(0, seen("a", 1, "running"), at(1));
    let made = all.decide(at(1));
    assert_eq!(ids(&made), ["api-a"]);
    assert_eq!(config(&made[0])["paths"], json!(["/n/a/alloc/logs/api.stdout.0"]));
    assert_eq!(config(&made[0])["fields"], json!({ "host": "n1" }));
}

#[test]
fn of_two_allocations_with_one_id_the_second_names_a_unique_id() {
    let mut all = autodiscover(
        "
filebeat.autodiscover.providers:
- type: nomad
  templates:
  - condition.equals.nomad.task.name: api
    config: {type: filestream, id: one, paths: ['/n/${data.nomad.allocation.id}']}
",
    );
    all.seen(0, seen("a", 1, "running"), at(1));
    all.seen(0, seen("b", 1, "running"), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    let text = all.explain().to_string();
    assert!(text.contains("id: …-${data.nomad.allocation.id}-${data.nomad.task.name}"), "{text}");
}

#[test]
fn an_allocation_of_the_last_run_that_is_gone_is_read_to_its_end() {
    let mut before = autodiscover(HINTS);
    before.seen(0, seen("a", 5, "running"), at(10));
    before.decide(at(10));
    let saved = before.to_remember();
    assert_eq!((saved.len(), &*saved[0].kind, &*saved[0].id), (1, "nomad", "a"));
    let mut all = autodiscover(HINTS);
    assert!(all.remember(&saved[0]));
    all.listed(0, &[], at(1));
    assert_eq!(all.decide(at(1)).len(), 2);
    assert!(all.decide(at(16)).is_empty());
}

#[test]
fn the_watcher_gets_its_settings() {
    let (made, problems) = read(
        "
filebeat.autodiscover.providers:
- type: nomad
  address: https://nomad:4646
  ssl: {certificate_authorities: [/ca.pem]}
  region: eu
  namespace: '*'
  secret_id: hunter2
  node: n1
  scope: node
  wait_time: 1m
  allow_stale: false
  include_labels: [a]
  exclude_labels: [b]
  prefix: my.org
  hints.enabled: true
- type: nomad
  scope: cluster
  node: n1
  hints.enabled: true
",
    );
    assert_eq!(problems, "");
    let made = made.unwrap();
    let kinds: Vec<_> = made.providers().iter().map(|one| &one.kind).collect();
    let [ProviderKind::Nomad(all), ProviderKind::Nomad(plain)] = kinds[..] else {
        panic!("two providers")
    };
    assert_eq!(all.address, "https://nomad:4646");
    assert_eq!(all.tls.as_ref().unwrap().certificate_authorities.len(), 1);
    assert_eq!((all.region.as_deref(), all.namespace.as_deref()), (Some("eu"), Some("*")));
    assert_eq!(all.token.as_ref().unwrap().reveal(), "hunter2");
    assert!(!format!("{all:?}").contains("hunter2"));
    assert_eq!((all.node.as_deref(), all.scope), (Some("n1"), Scope::Node));
    assert_eq!((all.wait, all.allows_stale), (Duration::from_mins(1), false));
    assert_eq!((plain.node.as_deref(), plain.scope), (None, Scope::Cluster));
    assert_eq!((plain.wait, plain.allows_stale), (Duration::from_secs(15), true));
    assert_eq!(plain.address, "http://127.0.0.1:4646");
    assert!(plain.token.is_none() && plain.tls.is_none());
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let table = [
        ("{type: nomad}", "has neither `templates` nor `hints`"),
        ("{type: nomad, hints.enabled: true, scope: local}", "providers[0].scope"),
        ("{type: nomad, hints.enabled: true, wait_time: 1h}", "providers[0].wait_time"),
        ("{type: nomad, hints.enabled: true, adress: x}", "did you mean `address`"),
        ("{type: nomad, hints.enabled: true, labels.dedot: false}", "labels.dedot"),
    ];
    for (provider, expected) in table {
        let (_, problems) = read(&format!("filebeat.autodiscover.providers:\n- {provider}\n"));
        assert!(problems.contains(expected), "{provider}: {problems}");
    }
}

#[test]
fn fields_of_tasks_are_those_of_filebeat() {
    let cases: Vec<Json> = serde_json::from_str(include_str!("golden/nomad-9.6.json")).unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let mut provider = json!({
            "type": "nomad",
            "templates": [{ "config": { "type": "tcp", "host": "${data.nomad.task.name}" } }],
        });
        for (key, value) in case["settings"].as_object().unwrap() {
            provider[key] = value.clone();
        }
        let settings = json!({ "filebeat.autodiscover.providers": [provider] });
        let mut all = autodiscover(&settings.to_string());
        all.seen(0, Fact::Nomad(case["allocation"].clone()), at(0));
        let fields: Vec<Json> = all.decide(at(0)).iter().map(|one| one.fields.value()).collect();
        assert_eq!(Json::Array(fields), case["fields"], "{}", case["name"]);
    }
}
