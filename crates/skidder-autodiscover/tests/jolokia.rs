//! Inputs for agents of Jolokia: their settings, and what runs as agents come and go.

mod common;

use common::{at, autodiscover, config, read};
use serde_json::{Value as Json, json};
use skidder_autodiscover::{Fact, JolokiaAgents, JolokiaInterface, ProviderKind};
use std::time::Duration;

const GOLDEN: &str = include_str!("golden/jolokia-9.6.json");

const TEMPLATE: &str = "
filebeat.autodiscover.providers:
- type: jolokia
  templates:
  - condition.equals.jolokia.server.product: tomcat
    config: {type: filestream, id: 'i-${data.jolokia.agent.id}', paths: ['/${data.jolokia.server.version}.log']}
  appenders:
  - type: config
    condition.equals.jolokia.secured: true
    config.tags: [secured]
";

const GRACE: Duration = Duration::from_secs(30);

fn agent(id: &str, product: &str, secured: bool) -> Fact {
    let answer = json!({
        "agent_id": id, "server_product": product, "server_version": "9", "secured": secured, "url": "http://h/",
    });
    let mut agents = JolokiaAgents::default();
    let answered = agents.answered(answer.to_string().as_bytes(), GRACE, at(0));
    answered.expect("a valid answer").expect("a new agent")
}

#[test]
fn agents_and_their_inputs_are_those_of_filebeat() {
    let golden: Json = serde_json::from_str(GOLDEN).unwrap();
    let mut agents = JolokiaAgents::default();
    let mut ours = autodiscover(
        "
filebeat.autodiscover.providers:
- type: jolokia
  templates.config:
    type: filestream
    id: '${data.jolokia.agent.id}'
    paths: ['/log/${data.jolokia.server.product:none}.log']
",
    );
    for answer in golden["answers"].as_array().unwrap() {
        let answer = answer.as_str().unwrap().as_bytes();
        if let Ok(Some(fact)) = agents.answered(answer, GRACE, at(0)) {
            ours.seen(0, fact, at(0));
        }
    }
    let made = ours.decide(at(0));
    let mut found: Vec<Json> = made
        .iter()
        .map(|made| json!({ "jolokia": made.fields.value()["jolokia"], "configs": [config(made)] }))
        .collect();
    let mut expected = golden["agents"].as_array().unwrap().clone();
    for list in [&mut found, &mut expected] {
        list.sort_by_key(|agent| agent["jolokia"]["agent"]["id"].to_string());
    }
    assert_eq!(found, expected);
}

#[test]
fn inputs_begin_with_an_agent_and_end_when_it_is_gone() {
    let mut all = autodiscover(TEMPLATE);
    all.seen(0, agent("a", "tomcat", false), at(1));
    all.seen(0, agent("b", "jetty", false), at(1));
    all.seen(0, agent("c", "tomcat", true), at(1));
    let made = all.decide(at(1));
    let configs: Vec<Json> = made.iter().map(|made| config(made)).collect();
    let first = json!({"type": "filestream", "id": "i-a", "paths": ["/9.log"]});
    let second =
        json!({"type": "filestream", "id": "i-c", "paths": ["/9.log"], "tags": ["secured"]});
    assert_eq!(configs, [first, second]);
    assert!(made[0].about.starts_with("Jolokia agent a, by "), "{}", made[0].about);
    assert!(made[0].key.starts_with("jolokia/a/"), "{}", made[0].key);
    // Its files need not be remembered: what it reads is no log of a container.
    assert!(all.to_remember().is_empty());
    let notes = all.explain().to_string();
    assert!(notes.contains("Jolokia agent b"), "{notes}");
    assert!(notes.contains("does not match"), "{notes}");
    all.gone(0, "a", at(40));
    assert_eq!(all.decide(at(40)).len(), 1);
    // It is back.
    all.seen(0, agent("a", "tomcat", false), at(50));
    assert_eq!(all.decide(at(50)).len(), 2);
}

#[test]
fn inputs_run_on_for_a_cleanup_timeout_that_is_set() {
    let mut all = autodiscover(&format!("{TEMPLATE}  cleanup_timeout: 5s\n"));
    all.seen(0, agent("a", "tomcat", false), at(1));
    all.decide(at(1));
    all.gone(0, "a", at(40));
    assert_eq!(all.wakes_at(), Some(at(45)));
    assert_eq!(all.decide(at(44)).len(), 1);
    assert!(all.decide(at(45)).is_empty());
}

#[test]
fn facts_of_other_providers_are_ignored() {
    let mut all = autodiscover(&format!(
        "{TEMPLATE}- type: docker\n  templates.config: {{type: tcp, host: h}}\n"
    ));
    all.seen(0, Fact::Docker(common::container("a", 1, json!({}))), at(1));
    all.seen(1, agent("a", "tomcat", false), at(1));
    assert!(all.decide(at(1)).is_empty());
}

#[test]
fn a_value_of_an_agent_is_no_variable() {
    let mut all = autodiscover(&TEMPLATE.replace("server.version", "url"));
    let answer = json!({"agent_id": "a", "server_product": "tomcat", "url": "${REGION}"});
    let mut agents = JolokiaAgents::default();
    let fact = agents.answered(answer.to_string().as_bytes(), GRACE, at(0)).unwrap().unwrap();
    all.seen(0, fact, at(0));
    assert_eq!(config(&all.decide(at(0))[0])["paths"], json!(["/${REGION}.log"]));
}

fn interfaces(settings: &str) -> (Vec<JolokiaInterface>, String) {
    let text = format!(
        "filebeat.autodiscover.providers:\n- {{type: jolokia, templates.config: {{type: tcp}}{settings}}}\n"
    );
    let (made, problems) = read(&text);
    let Some(made) = made else { return (Vec::new(), problems) };
    let ProviderKind::Jolokia(own) = &made.providers()[0].kind else { panic!("jolokia") };
    (own.interfaces.clone(), problems)
}

#[test]
fn interfaces_have_defaults_each() {
    let seconds = Duration::from_secs;
    let interface = |name: &str, interval, probe_timeout, grace_period| JolokiaInterface {
        name: name.to_owned(),
        interval,
        probe_timeout,
        grace_period,
    };
    let any = interface("any", seconds(10), seconds(1), seconds(30));
    assert_eq!(interfaces(""), (vec![any], String::new()));
    let text = ", interfaces: [{name: br*, interval: 5s, probe_timeout: 500ms, grace_period: 1m}, {name: lo}]";
    let expected = vec![
        interface("br*", seconds(5), Duration::from_millis(500), seconds(60)),
        interface("lo", seconds(10), seconds(1), seconds(30)),
    ];
    assert_eq!(interfaces(text), (expected, String::new()));
}

#[test]
fn mistakes_and_settings_without_effect_are_reported() {
    let table = [
        (", interfaces: []", "error", "interfaces` is empty"),
        (", interfaces: [{interval: 5s}]", "error", "interfaces[0].name` is missing"),
        (", interfaces: [{name: lo, interval: 0s}]", "error", "interfaces[0].interval"),
        (", interfaces: [{name: lo, probe_timeout: -1s}]", "error", "probe_timeout"),
        (", interfaces: [{name: lo, grace_period: 10s}]", "warning", "gone between two queries"),
        (", interfaces: [{name: lo, grace: 10s}]", "error", "interfaces[0].grace`"),
        (", hints.enabled: true", "warning", "agents of Jolokia have no labels"),
        (", prefix: org", "warning", "agents of Jolokia have no labels"),
        (", builders: [{type: hints}]", "error", "builders` is known to Filebeat"),
    ];
    for (settings, severity, expected) in table {
        let (_, problems) = interfaces(settings);
        assert!(problems.starts_with(severity), "{settings}\n{problems}");
        assert!(problems.contains("filebeat.yml:2:"), "{settings}\n{problems}");
        assert!(problems.contains(expected), "{settings}\n{problems}");
    }
    let (made, problems) = read("filebeat.autodiscover.providers: [{type: jolokia}]");
    assert!(made.is_none());
    assert!(
        problems.contains("providers[0]` has no `templates`\nhint: write `templates`"),
        "{problems}"
    );
}
