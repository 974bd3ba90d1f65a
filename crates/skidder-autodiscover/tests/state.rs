//! What runs when containers and pods come, change and go.

mod common;

use common::{at, autodiscover, config, container, pod};
use serde_json::{Value as Json, json};
use skidder_autodiscover::{Autodiscover, Fact, Made, SecretAnswer, WantedSecret};
use std::collections::BTreeMap;
use std::sync::Arc;

const DOCKER_HINTS: &str = "
filebeat.autodiscover.providers:
- type: docker
  hints.enabled: true
  hints.default_config: {type: filestream, id: 'i-${data.container.id}', paths: ['/c/${data.container.id}.log']}
";

const KUBERNETES_HINTS: &str = "
filebeat.autodiscover.providers:
- type: kubernetes
  hints.enabled: true
";

fn ids(made: &[Arc<Made>]) -> Vec<String> {
    made.iter().map(|made| config(made)["id"].as_str().unwrap_or_default().to_owned()).collect()
}

fn notes(all: &Autodiscover) -> String {
    all.explain().to_string()
}

fn docker(id: &str, started: u64) -> Fact {
    Fact::Docker(container(id, started, json!({})))
}

#[test]
fn the_input_of_a_container_runs_on_until_cleanup_timeout_is_over() {
    let mut all = autodiscover(DOCKER_HINTS);
    all.seen(0, docker("a", 1), at(10));
    let first = all.decide(at(10));
    assert_eq!(ids(&first), ["i-a"]);
    assert_eq!(all.wakes_at(), None);
    all.gone(0, "a", at(20));
    assert_eq!(all.wakes_at(), Some(at(80)));
    let ending = all.decide(at(79));
    assert!(Arc::ptr_eq(&first[0], &ending[0]));
    assert!(notes(&all).contains("ended; its inputs run until"), "{}", notes(&all));
    assert!(all.decide(at(80)).is_empty());
    assert_eq!(all.wakes_at(), None);
}

#[test]
fn a_restart_within_cleanup_timeout_keeps_the_input() {
    let mut all = autodiscover(DOCKER_HINTS);
    all.seen(0, docker("a", 1), at(10));
    let first = all.decide(at(10));
    all.gone_at(0, "a", "2026-01-01T00:00:20Z", at(20));
    all.seen(0, docker("a", 25), at(25));
    assert_eq!(all.wakes_at(), None);
    assert!(Arc::ptr_eq(&first[0], &all.decide(at(500))[0]));
}

#[test]
fn a_late_fact_does_not_bring_a_container_back() {
    let mut all = autodiscover(DOCKER_HINTS);
    all.seen(0, docker("a", 1), at(10));
    all.gone_at(0, "a", "2026-01-01T00:00:20Z", at(20));
    all.seen(0, docker("a", 1), at(21));
    assert_eq!(all.wakes_at(), Some(at(80)));
    assert!(all.decide(at(80)).is_empty());
    all.seen(0, docker("a", 1), at(90));
    assert!(all.decide(at(90)).is_empty());
    all.seen(0, docker("a", 30), at(91));
    assert_eq!(ids(&all.decide(at(91))), ["i-a"]);
    // The end of the first run comes late, in nanoseconds since 1970, as events of Docker have it.
    all.gone_at(0, "a", "1767225620000000000", at(92));
    assert_eq!(all.wakes_at(), None);
    all.gone_at(0, "a", "1767225640000000000", at(93));
    assert_eq!(all.wakes_at(), Some(at(153)));
}

#[test]
fn an_end_that_comes_before_its_beginning_counts() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.gone_at(0, "u", "9", at(1));
    all.seen(0, Fact::Pod(pod("u", 8, json!({}))), at(2));
    assert!(all.decide(at(2)).is_empty());
}

#[test]
fn a_list_ends_what_is_not_in_it_and_knows_better_than_a_missed_end() {
    let mut all = autodiscover(DOCKER_HINTS);
    for (id, started) in [("a", 1), ("b", 2)] {
        all.seen(0, docker(id, started), at(10));
    }
    all.listed(0, &["b".to_owned()], at(10));
    assert_eq!(ids(&all.decide(at(10))), ["i-a", "i-b"]);
    assert_eq!(ids(&all.decide(at(70))), ["i-b"]);
    all.gone(0, "b", at(80));
    all.listed(0, &["b".to_owned()], at(81));
    assert_eq!(ids(&all.decide(at(1000))), ["i-b"]);
}

#[test]
fn a_container_that_does_not_run_gets_no_input() {
    let mut all = autodiscover(DOCKER_HINTS);
    let mut exited = container("a", 1, json!({}));
    exited["State"]["Running"] = false.into();
    all.seen(0, Fact::Docker(exited.clone()), at(1));
    assert!(all.decide(at(1)).is_empty());
    all.seen(0, docker("a", 5), at(5));
    exited["State"]["StartedAt"] = "2026-01-01T00:00:05.5Z".into();
    all.seen(0, Fact::Docker(exited), at(9));
    assert_eq!(all.wakes_at(), Some(at(69)));
}

#[test]
fn changed_fields_keep_the_input() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    let before = all.decide(at(1));
    assert_eq!(before[0].fields.value()["kubernetes"]["labels"], json!({ "app": "web" }));
    assert_eq!(before[0].fields.value()["kubernetes"]["container"], json!({ "name": "web" }));
    assert_eq!(before[0].fields.value()["container"]["id"], "id-of-u-web");
    let mut changed = pod("u", 2, json!({}));
    changed["metadata"]["labels"]["app"] = "api".into();
    all.seen(0, Fact::Pod(changed), at(2));
    let after = all.decide(at(2));
    assert_eq!(before[0].key, after[0].key);
    assert_eq!(after[0].fields.value()["kubernetes"]["labels"], json!({ "app": "api" }));
    // An older fact changes nothing.
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(3));
    assert!(Arc::ptr_eq(&after[0], &all.decide(at(3))[0]));
}

#[test]
fn a_changed_hint_makes_another_input() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    let before = all.decide(at(1));
    all.seen(0, Fact::Pod(pod("u", 2, json!({ "co.elastic.logs/pipeline": "p" }))), at(2));
    let after = all.decide(at(2));
    assert_eq!(after.len(), 1);
    assert_ne!(before[0].key, after[0].key);
    assert_eq!(config(&after[0])["pipeline"], "p");
}

#[test]
fn the_older_of_two_containers_keeps_an_id() {
    let text = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config:
    - {type: filestream, id: same, paths: ['/c/${data.docker.container.id}.log']}
";
    let mut all = autodiscover(text);
    all.seen(0, docker("b", 1), at(1));
    all.seen(0, docker("a", 2), at(2));
    let made = all.decide(at(2));
    assert_eq!(made.len(), 1);
    assert_eq!(config(&made[0])["paths"], json!(["/c/b.log"]));
    let expected = "the id `same` is that of container name-b, by filebeat.yml:5:5, which has another configuration";
    assert!(notes(&all).contains(expected), "{}", notes(&all));
    all.gone(0, "b", at(3));
    assert_eq!(config(&all.decide(at(100))[0])["paths"], json!(["/c/a.log"]));
}

#[test]
fn the_advice_for_an_id_that_is_taken_is_one_that_helps() {
    let sets =
        json!({"co.elastic.logs/1.include_lines": "a", "co.elastic.logs/2.include_lines": "b"});
    let mut all = autodiscover(DOCKER_HINTS);
    all.seen(0, Fact::Docker(container("a", 1, sets)), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    let text = notes(&all);
    assert!(text.contains("as a list in the hint `raw`"), "{text}");
    assert!(!text.contains("make it unique"), "{text}");
    // What the advice says runs.
    let raw = json!([
        {"type": "filestream", "id": "one-${data.container.id}", "paths": ["/c/${data.container.id}.log"]},
        {"type": "filestream", "id": "two-${data.container.id}", "paths": ["/c/${data.container.id}.log"]},
    ]);
    let mut all = autodiscover(DOCKER_HINTS);
    let labels = json!({"co.elastic.logs/raw": raw.to_string()});
    all.seen(0, Fact::Docker(container("a", 1, labels)), at(1));
    assert_eq!(ids(&all.decide(at(1))), ["one-a", "two-a"]);

    let text = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config:
    - {type: filestream, id: 'i-${data.container.id}', paths: ['/a/${data.container.id}.log']}
    - {type: filestream, id: 'i-${data.container.id}', paths: ['/b/${data.container.id}.log']}
";
    let mut all = autodiscover(text);
    all.seen(0, docker("a", 1), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    assert!(
        notes(&all).contains("give each input of the container its own `id`"),
        "{}",
        notes(&all)
    );
}

#[test]
fn equal_configurations_run_once() {
    let text = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config: {type: filestream, id: all, paths: [/shared/*.log]}
";
    let mut all = autodiscover(text);
    all.seen(0, docker("a", 1), at(1));
    all.seen(0, docker("b", 2), at(2));
    assert_eq!(all.decide(at(2)).len(), 1);
    assert!(
        notes(&all).contains("the same configuration runs for container name-a"),
        "{}",
        notes(&all)
    );
}

fn two_readers(first: &str, second: &str) -> Autodiscover {
    let text = format!(
        "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config: {{type: container, {first}, paths: ['/var/lib/docker/containers/${{data.docker.container.id}}/*.log']}}
  - config: {{type: container, {second}, paths: ['/var/log/containers/*${{data.docker.container.id}}.log']}}
"
    );
    let mut all = autodiscover(&text);
    all.seen(0, docker("a1b2c3", 1), at(1));
    all
}

#[test]
fn the_log_of_a_container_is_read_by_one_rule() {
    let mut all = two_readers("pipeline: one", "pipeline: two");
    let made = all.decide(at(1));
    assert_eq!(made.len(), 1);
    assert_eq!(config(&made[0])["pipeline"], "one");
    let expected = "the log of the container is read by container name-a1b2c3, by filebeat.yml:5:5";
    assert!(notes(&all).contains(expected), "{}", notes(&all));
    assert_eq!(two_readers("stream: stdout", "stream: stderr").decide(at(1)).len(), 2);
    assert_eq!(two_readers("stream: stdout", "stream: all").decide(at(1)).len(), 1);
    let twice = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config:
    - {type: TYPE, id: a, pipeline: one, paths: ['/c/${data.docker.container.id}/*.log']}
    - {type: TYPE, id: b, pipeline: two, paths: ['/c/${data.docker.container.id}/*.log']}
";
    for (kind, inputs) in [("filestream", 2), ("container", 1), ("log", 1)] {
        let mut all = autodiscover(&twice.replace("TYPE", kind));
        all.seen(0, docker("a1b2c3", 1), at(1));
        assert_eq!(all.decide(at(1)).len(), inputs, "{kind}");
        assert_eq!(all.failures().len(), 2 - inputs, "{kind}");
        if inputs == 1 {
            let notes = notes(&all);
            assert!(notes.contains("use the type `filestream` with an `id` for each"), "{notes}");
        }
    }
}

#[test]
fn two_providers_do_not_read_the_same_log() {
    let text = "
filebeat.autodiscover.providers:
- {type: kubernetes, hints.enabled: true}
- type: docker
  templates:
  - config: {type: container, paths: ['/var/lib/docker/containers/${data.docker.container.id}/*.log']}
";
    let mut all = autodiscover(text);
    all.seen(1, docker("id-of-u-web", 1), at(1));
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    let made = all.decide(at(1));
    assert_eq!(ids(&made), ["container-logs-id-of-u-web"]);
}

#[test]
fn a_refused_input_is_not_tried_until_its_configuration_changes() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(
        0,
        Fact::Pod(pod("u", 1, json!({ "co.elastic.logs/multiline.match": "never" }))),
        at(1),
    );
    let made = all.decide(at(1));
    all.refuse(&made[0].key, "`match` is `never`".to_owned());
    assert!(notes(&all).contains("`match` is `never`"), "at once: {}", notes(&all));
    assert!(all.decide(at(1)).is_empty());
    assert!(notes(&all).contains("`match` is `never`"), "{}", notes(&all));
    all.seen(
        0,
        Fact::Pod(pod("u", 2, json!({ "co.elastic.logs/multiline.match": "after" }))),
        at(2),
    );
    assert_eq!(all.decide(at(2)).len(), 1);
}

#[test]
fn templates_name_the_environment_and_hints_do_not() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  hints.enabled: true
  hints.default_config: {type: log, paths: ['/${REGION}/${data.kubernetes.container.name}']}
";
    let mut all = autodiscover(text);
    all.seen(0, Fact::Pod(pod("a", 1, json!({}))), at(1));
    all.seen(0, Fact::Pod(pod("b", 1, json!({ "co.elastic.logs/pipeline": "${REGION}" }))), at(1));
    let made = all.decide(at(1));
    assert_eq!(made.len(), 1);
    assert_eq!(config(&made[0])["paths"], json!(["/eu/web"]));
    let expected =
        "`co.elastic.logs/pipeline` uses `${REGION}`, which is not set; a hint can use `${data.…}`";
    assert!(notes(&all).contains(expected), "{}", notes(&all));
}

#[test]
fn secrets_of_the_own_namespace_are_waited_for() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  templates:
  - config:
    - {type: log, paths: [/a], fields.token: '${kubernetes.shop.login.token}'}
    - {type: log, paths: [/b], fields.token: '${kubernetes.kube-system.admin.token}'}
";
    let mut all = autodiscover(text);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    assert!(all.decide(at(1)).is_empty());
    let explained = notes(&all);
    assert!(
        explained.contains("`fields.token` waits for the secret `login` of the namespace `shop`"),
        "{explained}"
    );
    assert!(explained.contains("only those of its own, `shop`"), "{explained}");
    let secret =
        WantedSecret { provider: 0, namespace: "shop".to_owned(), name: "login".to_owned() };
    assert_eq!(all.wanted_secrets(), std::slice::from_ref(&secret));
    let values = BTreeMap::from([("token".to_owned(), "hush".to_owned())]);
    all.secret(secret.clone(), SecretAnswer::Values(values));
    let made = all.decide(at(2));
    assert_eq!(config(&made[0])["fields"]["token"], "hush");
    assert!(all.wanted_secrets().is_empty());
    assert!(!notes(&all).contains("hush"), "{}", notes(&all));
    all.secret(secret, SecretAnswer::Missing);
    assert!(all.decide(at(3)).is_empty());
    assert!(notes(&all).contains("there is no secret `login`"), "{}", notes(&all));
}

#[test]
fn appenders_add_to_the_inputs_of_containers_that_meet_a_condition() {
    let text = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - config: {type: log, paths: ['/${data.docker.container.id}'], fields: {a: 1}}
  appenders:
  - type: config
    condition.equals.docker.container.id: a
    config: {fields: {b: '${data.docker.container.name}'}, index: logs-a}
";
    let mut all = autodiscover(text);
    all.seen(0, docker("a", 1), at(1));
    all.seen(0, docker("b", 2), at(1));
    let made = all.decide(at(1));
    assert_eq!(config(&made[0])["fields"], json!({ "a": 1, "b": "name-a" }));
    assert_eq!(config(&made[0])["index"], "logs-a");
    assert_eq!(config(&made[1])["fields"], json!({ "a": 1 }));
}

#[test]
fn hints_for_another_container_with_the_same_beginning_do_not_count() {
    // Filebeat compares only the beginning: `web-proxy/enabled: "false"` would turn `web` off.
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(
        0,
        Fact::Pod(pod("u", 1, json!({ "co.elastic.logs.web-proxy/enabled": "false" }))),
        at(1),
    );
    assert_eq!(all.decide(at(1)).len(), 1);
}

#[test]
fn hints_of_a_module_make_a_configuration_of_a_module() {
    let mut all = autodiscover(DOCKER_HINTS);
    all.seen(
        0,
        Fact::Docker(container("a", 1, json!({ "co.elastic.logs/module": "nginx" }))),
        at(1),
    );
    let made = all.decide(at(1));
    assert!(made[0].is_module);
    assert_eq!(config(&made[0])["module"], "nginx");
}

#[test]
fn the_pods_of_a_node_and_a_namespace_have_their_fields() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    let before = all.decide(at(1));
    assert_eq!(before[0].fields.value()["kubernetes"]["node"], json!({ "name": "n1" }));
    let node = json!({
        "metadata": { "uid": "n-1", "name": "n1", "resourceVersion": "3", "labels": { "zone.x": "a" } },
        "status": { "addresses": [{ "type": "Hostname", "address": "n1.local" }] },
    });
    all.seen(0, Fact::Node(node), at(2));
    let namespace = json!({ "metadata": {
        "uid": "ns-1", "name": "shop", "resourceVersion": "4", "labels": { "team": "t" },
        "annotations": { "co.elastic.logs/pipeline": "shop" },
    } });
    all.seen(0, Fact::Namespace(namespace), at(2));
    let after = all.decide(at(2));
    let node =
        json!({ "name": "n1", "uid": "n-1", "hostname": "n1.local", "labels": { "zone_x": "a" } });
    assert_eq!(after[0].fields.value()["kubernetes"]["node"], node);
    assert_eq!(after[0].fields.value()["kubernetes"]["namespace_labels"], json!({ "team": "t" }));
    assert_eq!(after[0].fields.value()["kubernetes"]["namespace_uid"], "ns-1");
    assert_eq!(config(&after[0])["pipeline"], "shop");
    all.gone_at(0, "ns-1", "9", at(3));
    assert_eq!(config(&all.decide(at(3))[0]).get("pipeline"), None);
}

#[test]
fn deployments_and_cron_jobs_are_found_above_their_owners() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  hints.enabled: true
  add_resource_metadata: {deployment: true, cronjob: true}
";
    let owner =
        |kind: &str, name: &str| json!([{ "kind": kind, "name": name, "controller": true }]);
    let mut all = autodiscover(text);
    for (uid, kind, name) in [("u", "ReplicaSet", "web-7"), ("v", "Job", "backup-9")] {
        let mut of = pod(uid, 1, json!({}));
        of["metadata"]["ownerReferences"] = owner(kind, name);
        all.seen(0, Fact::Pod(of), at(1));
    }
    all.decide(at(1));
    let above = |uid: &str, name: &str, owners: Json| json!({ "metadata": { "uid": uid, "name": name, "namespace": "shop", "ownerReferences": owners } });
    all.seen(0, Fact::ReplicaSet(above("r", "web-7", owner("Deployment", "web"))), at(2));
    all.seen(0, Fact::Job(above("j", "backup-9", owner("CronJob", "backup"))), at(2));
    let made = all.decide(at(2));
    assert_eq!(made[0].fields.value()["kubernetes"]["replicaset"]["name"], "web-7");
    assert_eq!(made[0].fields.value()["kubernetes"]["deployment"]["name"], "web");
    assert_eq!(made[1].fields.value()["kubernetes"]["cronjob"]["name"], "backup");
}

#[test]
fn services_and_nodes_have_inputs_too() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  resource: service
  templates:
  - condition.equals.kubernetes.service.name: db
    config: {type: tcp, host: '${data.host}:${data.port}', fields.sel: '${data.kubernetes.selectors.app}'}
- type: kubernetes
  resource: node
  templates:
  - config: {type: udp, host: '${data.host}:1', fields.os: '${data.kubernetes.node.labels.os:none}'}
";
    let mut all = autodiscover(text);
    let service = json!({
        "metadata": { "uid": "s", "name": "db", "namespace": "shop" },
        "spec": { "clusterIP": "10.9.9.9", "ports": [{ "port": 5432 }, { "port": 9187 }], "selector": { "app": "db" } },
    });
    let mut node = json!({
        "metadata": { "uid": "n", "name": "n1", "resourceVersion": "1" },
        "status": {
            "addresses": [{ "type": "Hostname", "address": "n1" }, { "type": "InternalIP", "address": "10.0.0.1" }],
            "conditions": [{ "type": "Ready", "status": "False" }],
        },
    });
    all.seen(0, Fact::Service(service), at(1));
    all.seen(1, Fact::Node(node.clone()), at(1));
    let made = all.decide(at(1));
    let hosts: Vec<Json> = made.iter().map(|made| config(made)["host"].clone()).collect();
    assert_eq!(hosts, ["10.9.9.9:5432", "10.9.9.9:9187"]);
    assert_eq!(config(&made[0])["fields"]["sel"], "db");
    assert!(notes(&all).contains("the node is not ready"), "{}", notes(&all));
    node["status"]["conditions"][0]["status"] = "True".into();
    node["metadata"]["resourceVersion"] = "2".into();
    all.seen(1, Fact::Node(node), at(2));
    assert_eq!(config(&all.decide(at(2))[2])["host"], "10.0.0.1:1");
}

#[test]
fn with_unique_only_the_holder_of_the_lease_runs_templates() {
    let text = "
filebeat.autodiscover.providers:
- type: kubernetes
  scope: cluster
  unique: true
  templates:
  - {condition.equals.unique: 'true', config: {type: tcp, host: ':9'}}
";
    let mut all = autodiscover(text);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    assert!(all.decide(at(1)).is_empty());
    all.seen(0, Fact::Leader("term-1".to_owned()), at(2));
    assert_eq!(all.decide(at(2)).len(), 1);
    all.gone(0, "term-1", at(3));
    assert!(all.decide(at(100)).is_empty());
}

#[test]
fn templates_win_over_hints_and_hints_fill_in() {
    let text = "
filebeat.autodiscover.providers:
- type: docker
  hints.enabled: true
  templates:
  - condition.equals.docker.container.id: a
    config: {type: log, paths: [/a]}
  - condition.equals.docker.container.id: b
    config: {type: log, paths: ['/${data.nope}']}
";
    let mut all = autodiscover(text);
    for (id, started) in [("a", 1), ("b", 2)] {
        all.seen(0, docker(id, started), at(1));
    }
    let made = all.decide(at(1));
    assert_eq!(config(&made[0])["paths"], json!(["/a"]));
    assert_eq!(config(&made[1])["type"], "filestream");
    let expected = "the input at filebeat.yml:9:13 does not run: `paths[0]` uses `${data.nope}`, which is not set";
    assert!(notes(&all).contains(expected), "{}", notes(&all));
}

#[test]
fn a_container_that_waits_is_explained() {
    let mut waiting = pod("u", 1, json!({}));
    waiting["status"]["containerStatuses"][0]["containerID"] = Json::Null;
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(0, Fact::Pod(waiting), at(1));
    assert!(all.decide(at(1)).is_empty());
    assert!(
        notes(&all).contains("no container of the pod has been created yet"),
        "{}",
        notes(&all)
    );
}

#[test]
fn the_log_of_a_replaced_container_of_a_pod_is_read_to_its_end() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    let mut restarted = pod("u", 1, json!({}));
    all.seen(0, Fact::Pod(restarted.clone()), at(1));
    let before = all.decide(at(1));
    restarted["metadata"]["resourceVersion"] = "2".into();
    restarted["status"]["containerStatuses"][0]["containerID"] = "containerd://second".into();
    all.seen(0, Fact::Pod(restarted), at(10));
    let both = all.decide(at(10));
    assert_eq!(ids(&both), ["container-logs-second", "container-logs-id-of-u-web"]);
    assert!(Arc::ptr_eq(&before[0], &both[1]));
    assert_eq!(all.wakes_at(), Some(at(70)));
    assert_eq!(ids(&all.decide(at(70))), ["container-logs-second"]);
    assert_eq!(all.wakes_at(), None);
}

#[test]
fn an_input_that_is_turned_off_ends_at_once() {
    let mut all = autodiscover(KUBERNETES_HINTS);
    all.seen(0, Fact::Pod(pod("u", 1, json!({}))), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    all.seen(0, Fact::Pod(pod("u", 2, json!({ "co.elastic.logs/enabled": "false" }))), at(2));
    assert!(all.decide(at(2)).is_empty());
}

#[test]
fn two_providers_with_the_same_input_run_it_once() {
    let one = "- type: docker\n  templates: {config: {type: log, paths: ['/${data.docker.container.id}']}}\n";
    let mut all = autodiscover(&format!("filebeat.autodiscover.providers:\n{one}{one}"));
    all.seen(0, docker("a", 1), at(1));
    all.seen(1, docker("a", 1), at(1));
    assert_eq!(all.decide(at(1)).len(), 1);
    let runs: Vec<bool> =
        all.explain().providers.iter().map(|it| it.objects[0].inputs[0].runs).collect();
    assert_eq!(runs, [true, false]);
}

#[test]
fn a_pod_is_not_read_itself_and_that_is_no_failure() {
    let template = "
filebeat.autodiscover.providers:
- type: kubernetes
  templates:
  - config: {type: log, paths: ['/x/${data.kubernetes.container.id}.log', '${data.kubernetes.labels.file}']}
";
    let defaults = "filebeat.autodiscover.providers: [{type: kubernetes, hints.enabled: true}]";
    for (text, labels) in [(defaults, json!({})), (template, json!({ "file": "/y" }))] {
        let mut all = autodiscover(text);
        let mut one = pod("a", 1, json!({}));
        one["metadata"]["labels"] = labels;
        all.seen(0, Fact::Pod(one), at(1));
        assert_eq!(all.decide(at(1)).len(), 1);
        assert!(!notes(&all).contains("which is not set"), "{}", notes(&all));
        let events = &all.explain().providers[0].objects[0].events;
        assert!(events.iter().all(|event| !event.notes.is_empty()), "{events:?}");
        assert!(all.failures().is_empty(), "{:?}", all.failures());
    }
    let mut all = autodiscover(template);
    all.seen(0, Fact::Pod(pod("b", 1, json!({}))), at(1));
    assert!(all.decide(at(1)).is_empty());
    let expected = "`paths[1]` uses `${data.kubernetes.labels.file}`, which is not set";
    assert_eq!(notes(&all).matches(expected).count(), 1, "{}", notes(&all));
}

#[test]
fn it_can_move_to_another_thread() {
    fn check<T: Send>() {}
    check::<Autodiscover>();
}

#[test]
fn the_explanation_is_a_text_and_json() {
    let text = "
filebeat.autodiscover.providers:
- type: docker
  templates:
  - condition.equals.docker.container.name: other
    config: {type: log, paths: [/x]}
  - config: {type: http_endpoint, password: hush, id: '${data.docker.container.id}'}
";
    let mut all = autodiscover(text);
    all.seen(0, docker("a", 1), at(1));
    all.decide(at(1));
    let expected = "provider docker (filebeat.yml:3:3)

  container name-a (a), there
    container name-a
      the template at filebeat.yml:5:5 does not match: its condition does not hold
      the template at filebeat.yml:7:5 matches
    input of filebeat.yml:7:5: runs
      | type: http_endpoint
      | password: xxxxx
      | id: a
";
    let explanation = all.explain();
    assert_eq!(explanation.to_string(), expected);
    let json = serde_json::to_value(&explanation).unwrap();
    assert_eq!(json["providers"][0]["objects"][0]["inputs"][0]["runs"], true);
    assert_eq!(
        json["providers"][0]["objects"][0]["inputs"][0]["key"],
        explanation.providers[0].objects[0].inputs[0].key
    );
}

#[test]
fn a_container_whose_log_driver_writes_no_file_is_read_through_the_api_unless_the_operator_says_otherwise()
 {
    let with = |driver: &str| {
        let mut container = container("c1", 1, json!({"co.elastic.logs/multiline.pattern": "^ "}));
        container["HostConfig"] = json!({ "LogConfig": { "Type": driver } });
        container
    };
    let explained = |machine: &Autodiscover| machine.explain().to_string();
    let of = |provider: &str, driver: &str| {
        let mut machine = autodiscover(provider);
        machine.seen(0, Fact::Docker(with(driver)), at(1));
        let made = machine.decide(at(1));
        (made.first().map(|made| config(made)), explained(&machine))
    };
    let usual = "filebeat.autodiscover.providers: [{type: docker, host: 'tcp://d:1', hints.enabled: true, \
                 ssl.verification_mode: none}]";
    for driver in ["local", "journald", "awslogs"] {
        let (made, explained) = of(usual, driver);
        let expected = json!({
            "type": "docker_logs", "id": "container-logs-c1", "ids": ["c1"], "host": "tcp://d:1",
            "ssl": { "verification_mode": "none" },
            "parsers": [{ "multiline": { "pattern": "^ " } }],
        });
        assert_eq!(made, Some(expected));
        assert!(
            explained
                .contains(&format!("is `{driver}`, which writes no file: its log is read through"))
        );
    }
    let (made, _) = of(usual, "json-file");
    assert_eq!(made.unwrap()["type"], "filestream");
    let (made, explained) = of(usual, "none");
    assert_eq!(made, None);
    assert!(explained.contains("there is no log"), "{explained}");
    let own = "filebeat.autodiscover.providers: [{type: docker, hints: {default_config: {type: container, id: x, \
               paths: [/var/lib/docker/containers/*.log]}}}]";
    let (made, explained) = of(own, "local");
    assert_eq!(made.unwrap()["type"], "container");
    assert!(explained.contains("leave `hints.default_config` out"), "{explained}");
}
