//! Autodiscover and `add_kubernetes_metadata` with a real API server, and accounts that RBAC limits. The kubelet is a
//! simulated one. Run by `make test-all`.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;
mod kubelet;
mod real_cluster;

use common::lines::judge;
use common::program::Program;
use common::server::BulkServer;
use common::{Place, accept};
use kubelet::{NAMESPACE, NODE, Pod};
use real_cluster::{RealCluster, manifest_configuration};
use rustix::process::Signal;
use serde_json::{Value as Json, json};
use std::path::Path;

/// The file where the program looks for the containers of a pod.
const LOGS: &str = "containers/*-${data.kubernetes.container.id}.log";

/// A place with these inputs, `modules` or providers in the place of its own input.
fn place(server: &BulkServer, inputs: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!("{inputs}filebeat.registry.flush{rest}"));
    place.open_endpoint();
    place
}

/// An input for each container of the node, as in `docs/kubernetes.md`, with short intervals.
fn hints(folder: &Path, config: &Path) -> String {
    format!(
        "filebeat.autodiscover.providers:\n- type: kubernetes\n  node: {NODE}\n  kube_config: {}\n  \
         cleanup_timeout: 300ms\n  hints.enabled: true\n  hints.default_config:\n    type: filestream\n    \
         id: container-${{data.kubernetes.container.id}}\n    \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n    \
         backoff: {{init: 10ms, max: 50ms}}\n    parsers: [{{container: ~}}]\n    paths: ['{}/{LOGS}']\n",
        config.display(),
        folder.display()
    )
}

/// One input for all containers, with the processor, for a program in a pod.
fn processor(settings: &str) -> String {
    format!(
        "filebeat.inputs:\n- type: filestream\n  id: containers\n  paths: [/var/log/containers/*.log]\n  \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n  \
         backoff: {{init: 10ms, max: 50ms}}\n  parsers: [{{container: ~}}]\n  processors:\n  \
         - add_kubernetes_metadata: {{{settings}}}\n"
    )
}

/// A provider with a template; `more` are its further settings, `input` those of its input.
fn template(config: &Path, more: &str, input: &str) -> String {
    format!(
        "filebeat.autodiscover.providers:\n- type: kubernetes\n  kube_config: {}\n{more}  templates:\n  \
         - config:\n    - type: filestream\n      prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n{input}",
        config.display()
    )
}

/// The events that came.
fn events(server: &BulkServer) -> Vec<Json> {
    server.sent().into_iter().map(|document| document.json).collect()
}

/// Waits for all lines, and judges them.
fn all_arrive(what: &str, program: &mut Program, server: &BulkServer, logs: &[(String, usize)]) {
    let lines: usize = logs.iter().map(|(_, next)| next).sum();
    program.await_that("all lines", || server.count() >= lines);
    let logs: Vec<(&str, usize)> = logs.iter().map(|(label, next)| (&**label, *next)).collect();
    accept(what, judge(&logs, &server.documents()), 0);
}

fn write_each(pods: &mut [Pod], count: usize) {
    for pod in pods {
        pod.write(count);
    }
}

fn numbers_of(pods: &[Pod]) -> Vec<(String, usize)> {
    pods.iter().map(|pod| (pod.label.clone(), pod.next)).collect()
}

#[test]
fn pods_come_and_go_with_the_account_of_the_manifest() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let config = cluster.manifest();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let (mut alive, mut ended): (Vec<Pod>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
    for number in 0..24 {
        let mut pod = Pod::create(&cluster, &format!("pod{number}"), number, json!({}));
        pod.write(3);
        pod.run(&cluster);
        alive.push(pod);
        let messages = server.documents();
        for pod in &mut alive {
            pod.write(7);
            if pod.is_open(&messages) && number % 3 == 0 {
                pod.rotate();
                pod.write(2);
            }
        }
        match number {
            5 => cluster.break_connections(),
            10 => {
                cluster.server.stop().unwrap();
                write_each(&mut alive, 5);
                cluster.server.start_again().unwrap();
            }
            15 => {
                // Pods that are there go on while skidder does not run.
                let ended = program.terminate().succeeded();
                let ledger = ended.ledger();
                assert_eq!(ledger.read, ledger.delivered);
                write_each(&mut alive, 5);
                program = place.start(&[]);
                program.await_log("skidder is running");
            }
            _ => {}
        }
        let newest = format!("pod{number} ");
        program.await_that("the newest pod is read", || {
            server.documents().iter().any(|message| message.starts_with(&newest))
        });
        if alive.len() > 6 {
            ended.push(alive.remove(0).delete(&cluster, false));
        }
    }
    let mut logs = numbers_of(&alive);
    logs.extend(ended);
    all_arrive("pods of a real API server", &mut program, &server, &logs);
    for document in events(&server) {
        let pod = document["kubernetes"]["pod"]["name"].as_str().unwrap();
        assert!(document["message"].as_str().unwrap().starts_with(pod), "{document}");
        assert_eq!(document["kubernetes"]["namespace"], NAMESPACE);
        assert_eq!(document["kubernetes"]["node"]["name"], NODE);
        assert_eq!(document["kubernetes"]["container"]["name"], "app");
    }
    program.await_that("the inputs of pods that are gone end", || {
        place.get("/inputs/").matches("\"id\"").count() <= alive.len()
    });
    let ledger = program.terminate().succeeded().ledger();
    assert_eq!(ledger.read, ledger.delivered);
}

#[test]
fn the_manifest_as_it_is_ships_the_logs_of_a_pod_with_its_labels() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    cluster.manifest();
    let place = Place::new(&server);
    place.configure(&manifest_configuration());
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.run(&cluster);
    let mut command = cluster.in_pod(&place.command(&["-E", "http.enabled=false"]));
    let mut program = Program::start(command.env("ELASTICSEARCH_HOSTS", &server.url));
    program.await_that("events have labels", || {
        pod.write(1);
        events(&server).iter().any(|event| event["kubernetes"]["labels"]["app"] == "web")
    });
    all_arrive("the manifest", &mut program, &server, &numbers_of(&[pod]));
    assert!(!program.log().contains("forbidden"), "{}", program.log());
    program.terminate().succeeded();
}

#[test]
fn a_broken_watch_goes_on_without_a_new_list() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let config = cluster.manifest();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut pods = Vec::new();
    // Its own lists of all pods, when it started.
    let mut before = None;
    for number in 0..4 {
        let mut pod = Pod::create(&cluster, &format!("pod{number}"), number, json!({}));
        pod.write(5);
        pod.run(&cluster);
        let newest = format!("pod{number} ");
        pods.push(pod);
        program.await_that("the newest pod is read", || {
            server.documents().iter().any(|message| message.starts_with(&newest))
        });
        let before = *before.get_or_insert_with(|| cluster.pod_lists());
        assert_eq!(cluster.pod_lists(), before, "break {number}");
        cluster.break_connections();
    }
    all_arrive("watches that break", &mut program, &server, &numbers_of(&pods));
    program.terminate().succeeded();
}

#[test]
fn a_version_that_was_compacted_away_costs_one_list() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    // A watch then reads from etcd itself.
    let cluster = RealCluster::start(folder.path(), "--watch-cache=false");
    let config = cluster.manifest();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut pods: Vec<Pod> = (0..3)
        .map(|number| Pod::create(&cluster, &format!("pod{number}"), number, json!({})))
        .collect();
    for pod in &mut pods {
        pod.write(5);
        pod.run(&cluster);
    }
    program.await_that("the pods are read", || server.count() >= 15);
    let before = cluster.pod_lists();
    program.signal(Signal::STOP);
    cluster.break_connections();
    let mut logs = vec![pods.remove(0).delete(&cluster, false)];
    let mut new = Pod::create(&cluster, "new", 9, json!({}));
    new.write(5);
    new.run(&cluster);
    pods.push(new);
    cluster.compact();
    program.signal(Signal::CONT);
    logs.extend(numbers_of(&pods));
    all_arrive("a compacted history", &mut program, &server, &logs);
    program.await_that("the input of the pod that is gone ends", || {
        place.get("/inputs/").matches("\"id\"").count() == pods.len()
    });
    assert_eq!(cluster.pod_lists(), before + 1);
    program.terminate().succeeded();
}

#[test]
fn a_missing_right_is_named_and_its_events_come_once_it_is_given() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let (account, config) = cluster.account();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_log("cannot list resource \\\"pods\\\"");
    cluster.allow(&account, "/pods", &["list"]);
    program.await_log("cannot watch resource \\\"pods\\\"");
    cluster.allow(&account, "/pods", &["watch"]);
    // Nodes and namespaces are refused still; they are not needed for the lines.
    let mut later = Pod::create(&cluster, "later", 2, json!({}));
    later.write(5);
    later.run(&cluster);
    all_arrive("rights that come later", &mut program, &server, &numbers_of(&[pod, later]));
    let log = program.log();
    for refused in ["nodes", "namespaces"] {
        assert!(log.contains(&format!("cannot list resource \\\"{refused}\\\"")), "{log}");
    }
    program.terminate().succeeded();
}

#[test]
fn labels_owners_namespace_and_node_come_from_the_api() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    cluster.manifest();
    let node = json!({"metadata": {"name": NODE, "labels": {"zone": "north"}}});
    cluster.post("/api/v1/nodes", &node);
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "app", "image": "app:1"}]},
    });
    let selector = json!({"matchLabels": {"app": "web"}});
    let sets = format!("/apis/apps/v1/namespaces/{NAMESPACE}");
    let deployment = cluster.post(
        &format!("{sets}/deployments"),
        &json!({"metadata": {"name": "web"}, "spec": {"selector": selector, "template": template}}),
    );
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "controller": true,
        "uid": deployment["metadata"]["uid"],
    }]);
    let set = cluster.post(
        &format!("{sets}/replicasets"),
        &json!({
            "metadata": {"name": "web-1", "ownerReferences": owner},
            "spec": {"selector": selector, "template": template},
        }),
    );
    let owner = ("web-1".to_owned(), set["metadata"]["uid"].as_str().unwrap().to_owned());
    let settings = "add_resource_metadata: {deployment: true}, wait_for_metadata: true";
    let place = place(&server, &processor(settings));
    let mut program = Program::start(&mut cluster.in_pod(&place.command(&[])));
    program.await_log("skidder is running");
    let mut pod = Pod::owned(&cluster, "pod", 1, json!({}), Some(owner));
    pod.write(5);
    pod.run(&cluster);
    all_arrive("metadata of a real API server", &mut program, &server, &numbers_of(&[pod]));
    for document in events(&server) {
        let kubernetes = &document["kubernetes"];
        assert_eq!(kubernetes["labels"]["app"], "web", "{document}");
        assert_eq!(kubernetes["replicaset"]["name"], "web-1", "{document}");
        assert_eq!(kubernetes["deployment"]["name"], "web", "{document}");
        assert_eq!(kubernetes["node"]["labels"]["zone"], "north", "{document}");
        let labels = &kubernetes["namespace_labels"];
        assert_eq!(labels["kubernetes_io/metadata_name"], NAMESPACE, "{document}");
    }
    program.terminate().succeeded();
}

#[test]
fn lines_come_while_the_api_server_cannot_be_reached_and_have_labels_later() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    cluster.manifest();
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    cluster.server.stop().unwrap();
    let place = place(&server, &processor(""));
    let mut program = Program::start(&mut cluster.in_pod(&place.command(&[])));
    program.await_log("skidder is running");
    program.await_that("the lines", || server.count() >= 5);
    for document in events(&server) {
        assert_eq!(document["kubernetes"]["pod"]["name"], "pod", "known from the path: {document}");
        assert_eq!(document["kubernetes"]["labels"], Json::Null);
    }
    cluster.server.start_again().unwrap();
    program.await_that("events have labels", || {
        pod.write(1);
        events(&server).iter().any(|event| event["kubernetes"]["labels"]["app"] == "web")
    });
    all_arrive("an API server that is late", &mut program, &server, &numbers_of(&[pod]));
    program.terminate().succeeded();
}

#[test]
fn a_secret_of_the_own_namespace_is_used_and_of_another_refused() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let (account, config) = cluster.account();
    cluster.allow(&account, "/pods", &["get", "list", "watch"]);
    cluster.secret(NAMESPACE, "token", &json!({"key": "aGVsbG8="}));
    cluster.secret("default", "other", &json!({"key": "aGVsbG8="}));
    let path = folder.path().display();
    let input = |id: &str, secret: &str| {
        format!(
            "      id: '{id}-${{data.kubernetes.container.id}}'\n      fields.secret: '${{{secret}}}'\n      \
             parsers: [{{container: ~}}]\n      paths: ['{path}/{LOGS}']\n"
        )
    };
    let own =
        template(&config, &format!("  node: {NODE}\n"), &input("own", "kubernetes.shop.token.key"));
    let place = place(&server, &own);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_log("cannot get resource \\\"secrets\\\"");
    assert_eq!(server.count(), 0);
    cluster.allow(&account, "/secrets", &["get"]);
    program.await_that("all lines", || server.count() >= 5);
    assert!(events(&server).iter().all(|document| document["fields"]["secret"] == "hello"));
    program.terminate().succeeded();
    let other = template(
        &config,
        &format!("  node: {NODE}\n"),
        &input("other", "kubernetes.default.other.key"),
    );
    let place = self::place(&server, &other);
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    program.await_that("the reason is shown", || {
        place.get("/autodiscover").contains("a pod can use only those of its own")
    });
    assert_eq!(server.count(), 5, "nothing of it runs");
    program.terminate().succeeded();
}

#[test]
fn of_two_programs_one_holds_the_lease_and_the_other_one_takes_over() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let (account, config) = cluster.account();
    std::fs::write(folder.path().join("once.log"), "one line of some length\n").unwrap();
    let lease = "  scope: cluster\n  unique: true\n  leader_leaseduration: 2s\n  leader_renewdeadline: 1s\n  \
                 leader_retryperiod: 100ms\n";
    let input = format!("      id: once\n      paths: ['{}/once.log']\n", folder.path().display());
    let provider = template(&config, lease, &input);
    let places = [place(&server, &provider), place(&server, &provider)];
    let runs = |place: &Place| place.get("/inputs/").contains("\"once\"");
    let mut first = places[0].start(&[]);
    first.await_log("skidder is running");
    first.await_log("cannot get resource \\\"leases\\\"");
    // The verbs of docs/kubernetes.md.
    cluster.allow(&account, "coordination.k8s.io/leases", &["get", "create", "update"]);
    first.await_that("the first one holds the lease", || runs(&places[0]));
    let mut second = places[1].start(&[]);
    second.await_log("skidder is running");
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/filebeat-cluster-leader";
    let lease = || cluster.get(path)["spec"].clone();
    let holder = lease()["holderIdentity"].clone();
    let renewed = lease()["renewTime"].clone();
    first.await_that("it is renewed", || lease()["renewTime"] != renewed);
    assert!(runs(&places[0]) && !runs(&places[1]), "the first one keeps it");
    first.kill();
    second.await_that("the second one takes over", || runs(&places[1]));
    let after = lease();
    assert_ne!(after["holderIdentity"], holder);
    assert_eq!(after["leaseTransitions"], 1, "{after}");
    // A server that is away for longer than the deadline ends it.
    cluster.server.stop().unwrap();
    second.await_that("it gives up", || !runs(&places[1]));
    cluster.server.start_again().unwrap();
    second.await_that("it holds it again", || runs(&places[1]));
    second.terminate().succeeded();
}

#[test]
fn nodes_and_services_have_inputs_too() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let (account, config) = cluster.account();
    for resource in ["/nodes", "/services", "/namespaces"] {
        cluster.allow(&account, resource, &["get", "list", "watch"]);
    }
    let path = folder.path().display();
    for name in ["node-1", "cart"] {
        std::fs::write(
            folder.path().join(format!("{name}.log")),
            format!("a line of {name} that is long\n"),
        )
        .unwrap();
    }
    let input = |kind: &str| {
        format!(
            "      id: '{kind}-${{data.kubernetes.{kind}.name}}'\n      \
             paths: ['{path}/${{data.kubernetes.{kind}.name}}.log']\n"
        )
    };
    let settings = |kind: &str| format!("  resource: {kind}\n  scope: cluster\n");
    let address = json!([{"type": "InternalIP", "address": "192.0.2.7"}]);
    for (kind, name) in [("node", NODE), ("service", "cart")] {
        let place = place(&server, &template(&config, &settings(kind), &input(kind)));
        let mut program = place.start(&[]);
        program.await_log("skidder is running");
        let before = server.count();
        if kind == "node" {
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let status = json!({"addresses": address, "conditions": ready});
            cluster.post("/api/v1/nodes", &json!({"metadata": {"name": NODE}, "status": status}));
        } else {
            let spec = json!({"ports": [{"port": 80}], "selector": {"app": "web"}});
            let path = format!("/api/v1/namespaces/{NAMESPACE}/services");
            cluster.post(&path, &json!({"metadata": {"name": name}, "spec": spec}));
        }
        program.await_that("its line", || server.count() > before);
        let last = events(&server).pop().unwrap();
        assert_eq!(last["kubernetes"][kind]["name"], name, "{last}");
        program.terminate().succeeded();
    }
}

#[test]
fn hints_of_a_real_pod_apply_and_their_changes_too() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let config = cluster.manifest();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let field = |round: usize| json!({"co.elastic.logs/processors.add_fields.fields.round": round.to_string()});
    let mut pod = Pod::create(&cluster, "pod", 1, field(0));
    pod.run(&cluster);
    for round in 0..3 {
        let wanted = round.to_string();
        program.await_that("the hints apply", || {
            pod.write(1);
            events(&server).iter().any(|event| event["fields"]["round"] == wanted)
        });
        pod.annotate(&cluster, field(round + 1));
    }
    let mut silent =
        Pod::create(&cluster, "silent", 2, json!({"co.elastic.logs/enabled": "false"}));
    silent.write(5);
    silent.run(&cluster);
    let mut last = Pod::create(&cluster, "last", 3, json!({}));
    last.write(5);
    last.run(&cluster);
    all_arrive("hints of a real pod", &mut program, &server, &numbers_of(&[pod, last]));
    program.terminate().succeeded();
}

#[test]
fn hundreds_of_pods_on_a_node_are_read() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = RealCluster::start(folder.path(), "");
    let config = cluster.manifest();
    let mut pods: Vec<Pod> = (0..300)
        .map(|number| Pod::create(&cluster, &format!("pod{number}"), number, json!({})))
        .collect();
    for pod in &mut pods {
        pod.write(3);
        pod.run(&cluster);
    }
    // A link whose target is gone, as between the deletion of the logs and of the link.
    std::os::unix::fs::symlink(
        folder.path().join("gone"),
        folder.path().join(format!("containers/gone_shop_app-{:064x}.log", 999)),
    )
    .unwrap();
    let place = place(&server, &hints(folder.path(), &config));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    program.await_that("the first lines", || server.count() >= 900);
    cluster.break_connections();
    write_each(&mut pods, 4);
    let mut logs: Vec<(String, usize)> =
        pods.drain(..100).map(|pod| pod.delete(&cluster, false)).collect();
    logs.extend(numbers_of(&pods));
    all_arrive("300 pods", &mut program, &server, &logs);
    program.await_that("100 inputs end", || place.get("/inputs/").matches("\"id\"").count() == 200);
    program.terminate().succeeded();
}
