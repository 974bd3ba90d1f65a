//! Inputs for containers and pods that come and go while the program runs.
#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

#[path = "../cluster/mod.rs"]
mod cluster;
#[path = "../common/mod.rs"]
mod common;
mod engines;
#[path = "../kubelet/mod.rs"]
mod kubelet;
mod leases;
mod pipelines;
mod troubles;

use cluster::Cluster;
use common::lines::judge;
use common::server::BulkServer;
use common::{Place, accept, seeds};
use kubelet::Pod;
use rustix::process::Signal;
use serde_json::{Value as Json, json};
use skidder_testkit::Random;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// A place whose only inputs are made by a provider.
fn place(server: &BulkServer, provider: &str) -> Place {
    let place = Place::new(server);
    let text = place.configuration();
    let (_, rest) = text.split_once("filebeat.registry.flush").unwrap();
    place.configure(&format!(
        "filebeat.autodiscover.providers:\n{provider}filebeat.registry.flush{rest}"
    ));
    place.open_endpoint();
    place
}

/// A cluster, and a place that reads the logs of its pods.
struct World {
    server: BulkServer,
    /// The logs.
    folder: TempDir,
    cluster: Cluster,
    place: Place,
}

impl World {
    fn new(server: BulkServer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path());
        let place = place(&server, &kubernetes(folder.path()));
        Self { server, folder, cluster, place }
    }
}

/// A provider of Kubernetes with hints.
fn kubernetes(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "- type: kubernetes\n  node: node-1\n  kube_config: {folder}/kubeconfig\n  \
         cleanup_timeout: 300ms\n  hints.enabled: true\n  hints.default_config:\n    \
         type: filestream\n    id: container-${{data.kubernetes.container.id}}\n    \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n    \
         backoff: {{init: 10ms, max: 50ms}}\n    parsers: [{{container: ~}}]\n    \
         paths: ['{folder}/containers/*-${{data.kubernetes.container.id}}.log']\n"
    )
}

/// A provider with a template that names a secret.
fn with_secret(folder: &Path) -> String {
    let path = folder.display();
    format!(
        "- type: kubernetes\n  node: node-1\n  kube_config: {path}/kubeconfig\n  templates:\n  \
         - condition.equals.kubernetes.labels.app: web\n    config:\n    - type: filestream\n      \
         id: 'c-${{data.kubernetes.container.id}}'\n      \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n      \
         fields.secret: '${{kubernetes.shop.token.key}}'\n      parsers: [{{container: ~}}]\n      \
         paths: ['{path}/containers/*-${{data.kubernetes.container.id}}.log']\n"
    )
}

/// The events that came.
fn events(server: &BulkServer) -> Vec<Json> {
    server.sent().into_iter().map(|document| document.json).collect()
}

#[test]
fn pods_come_and_go_and_all_of_their_lines_arrive_with_their_metadata() {
    let World { server, cluster, place, folder: _folder } =
        World::new(BulkServer::paced(Duration::from_millis(1)));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut random = Random::new(seeds(1).start);
    let (mut alive, mut ended): (Vec<Pod>, Vec<(String, usize)>) = (Vec::new(), Vec::new());
    for number in 0..40 {
        let mut pod = Pod::create(&cluster, &format!("pod{number}"), number, json!({}));
        pod.write(3);
        pod.run(&cluster);
        alive.push(pod);
        for pod in &mut alive {
            pod.write(7);
            if random.below(2) == 0 {
                pod.rotate();
                pod.write(2);
            }
        }
        if number % 10 == 5 {
            cluster.break_watches();
        }
        let newest = format!("pod{number} ");
        program.await_that("the newest pod is read", || {
            server.documents().iter().any(|message| message.starts_with(&newest))
        });
        if alive.len() > 6 {
            let pod = alive.remove(0);
            // Its log stays for a moment, as with the kubelet.
            ended.push(pod.delete(&cluster, false));
        }
    }
    let expected = alive.iter().map(|pod| (pod.label.clone(), pod.next)).chain(ended.clone());
    let expected: Vec<(String, usize)> = expected.collect();
    let logs: Vec<(&str, usize)> = expected.iter().map(|(label, next)| (&**label, *next)).collect();
    let lines: usize = logs.iter().map(|(_, next)| next).sum();
    program.await_that("all lines", || server.count() >= lines);
    accept("pods that come and go", judge(&logs, &server.documents()), 0);
    for document in events(&server) {
        let pod = &document["kubernetes"]["pod"]["name"];
        assert!(document["message"].as_str().unwrap().starts_with(pod.as_str().unwrap()));
        assert_eq!(document["kubernetes"]["namespace"], "shop");
        assert_eq!(document["kubernetes"]["container"]["name"], "app");
        assert_eq!(document["container"]["image"]["name"], "app:1");
    }
    program.await_that("the inputs of pods that are gone end", || {
        place.get("/inputs/").matches("\"id\"").count() <= alive.len()
    });
    let (lists, _) = cluster.requests();
    assert_eq!(lists, 1, "a watch that breaks goes on where it was");
    let ended = program.terminate().succeeded();
    let ledger = ended.ledger();
    assert_eq!(ledger.read, ledger.delivered);
}

#[test]
fn a_pod_that_is_deleted_while_the_output_hangs_loses_nothing() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    server.hold();
    let mut pod = Pod::create(&cluster, "old", 1, json!({}));
    pod.write(2000);
    pod.run(&cluster);
    program.await_that("a request is held", || server.held() > 0);
    let (old, lines) = pod.delete(&cluster, true);
    // Far beyond its cleanup timeout. Another one begins meanwhile.
    let mut new = Pod::create(&cluster, "new", 2, json!({}));
    new.write(10);
    new.run(&cluster);
    program.await_that("the other one is read", || {
        place.get("/inputs/").contains(&format!("{:064x}", 2))
    });
    program.await_log("an input ends");
    server.release();
    program.await_that("all lines", || server.count() >= lines + 10);
    let logs = [(&*old, lines), ("new", 10)];
    accept("a pod that is deleted while the output hangs", judge(&logs, &server.documents()), 0);
    program.terminate().succeeded();
}

#[test]
fn a_log_that_is_gone_before_the_first_look_is_counted() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut short = Pod::create(&cluster, "short", 1, json!({}));
    short.write(3);
    short.remove_logs();
    short.run(&cluster);
    let mut read = Pod::create(&cluster, "read", 2, json!({}));
    read.write(3);
    read.run(&cluster);
    let silent = Pod::create(&cluster, "silent", 3, json!({}));
    silent.run(&cluster);
    program.await_that("lines of the other", || server.count() == 3);
    program.await_log_times(&["an input begins".to_owned()], 3);
    program.await_that("the empty log is seen", || place.run(&["files"]).out.contains("empty"));
    short.delete(&cluster, false);
    read.delete(&cluster, true);
    silent.delete(&cluster, true);
    program.await_that("the inputs end", || place.get("/inputs/").matches("\"id\"").count() == 0);
    let gone = "the log of a container was gone before it was read";
    program.await_log(gone);
    assert!(place.get("/metrics").contains("\nskidder_reader_logs_unseen_total 1\n"));
    let log = program.terminate().succeeded().log;
    assert_eq!(log.matches(gone).count(), 1, "{log}");
}

#[test]
fn the_last_group_of_lines_of_a_pod_that_has_ended_does_not_wait_for_more() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    let groups = json!({
        "co.elastic.logs/multiline.pattern": "^pod", "co.elastic.logs/multiline.negate": "true",
        "co.elastic.logs/multiline.match": "after", "co.elastic.logs/multiline.timeout": "1h",
    });
    let mut pod = Pod::create(&cluster, "pod", 1, groups);
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all groups but the last one", || server.count() == 4);
    let (label, lines) = pod.delete(&cluster, false);
    program.await_that("the last group", || server.count() == lines);
    accept("groups of a pod that ends", judge(&[(&label, lines)], &server.documents()), 0);
    program.terminate().succeeded();
}

#[test]
fn a_node_that_the_cluster_does_not_have_is_in_the_log() {
    let World { server, place, folder, cluster } = World::new(BulkServer::start());
    let wanted = "the cluster has no node of this name";
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(3);
    pod.run(&cluster);
    program.await_that("its lines", || server.count() == 3);
    assert!(!program.terminate().succeeded().log.contains(wanted));
    let text = place.configuration();
    let kubeconfig = folder.path().join("kubeconfig");
    let processor = format!(
        "processors:\n- add_kubernetes_metadata: {{node: another, kube_config: '{}'}}\n",
        kubeconfig.display()
    );
    // Apart: the log leaves out what repeats.
    for (text, setting) in [
        (text.replace("node: node-1", "node: another"), "`node` of the provider `kubernetes`"),
        (text + &processor, "`node` of add_kubernetes_metadata"),
    ] {
        place.configure(&text);
        let program = place.start(&[]);
        let line = program.await_log("\"node\":\"another\"");
        assert!(line.contains(wanted) && line.contains(setting), "{line}");
        program.terminate().succeeded();
    }
}

#[test]
fn hints_change_while_lines_are_written() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.run(&cluster);
    for round in 0..5 {
        pod.write(20);
        let processors = json!({
            "co.elastic.logs/processors.add_fields.fields.round": format!("{round}"),
        });
        pod.annotate(&cluster, processors);
        let wanted = format!("{round}");
        program.await_that("the new hints apply", || {
            pod.write(1);
            events(&server).iter().any(|event| event["fields"]["round"] == wanted)
        });
    }
    program.await_that("all lines", || server.count() >= pod.next);
    accept("hints that change", judge(&[("pod", pod.next)], &server.documents()), 0);
    // Nothing of it is read any more, whatever is written.
    pod.annotate(&cluster, json!({"co.elastic.logs/enabled": "false"}));
    program.await_that("the input ends", || place.get("/inputs/").matches("\"id\"").count() == 0);
    program.terminate().succeeded();
}

#[test]
fn events_have_the_current_labels_also_after_a_reload() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.run(&cluster);
    for (round, app) in ["one", "two", "three"].into_iter().enumerate() {
        pod.relabel(&cluster, app);
        program.await_that("events have the new label", || {
            pod.write(1);
            events(&server).iter().any(|event| event["kubernetes"]["labels"]["app"] == app)
        });
        program.signal(Signal::HUP);
        program.await_log_times(&["the configuration was read again".to_owned()], round + 1);
    }
    program.await_that("all lines", || server.count() >= pod.next);
    accept("labels that change", judge(&[("pod", pod.next)], &server.documents()), 0);
    assert_eq!(program.log().matches("an input begins").count(), 1, "one input reads all of it");
    program.terminate().succeeded();
}

#[test]
fn what_an_annotation_breaks_stops_only_its_own_input() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    let hostile = [
        json!({"co.elastic.logs/multiline.pattern": "(("}),
        json!({"co.elastic.logs/processors.1.no_such_processor.a": "b"}),
        json!({"co.elastic.logs/raw": "[{"}),
        json!({"co.elastic.logs/raw": "[{\"type\": \"nonsense\", \"id\": 7}]"}),
        json!({"co.elastic.logs/include_lines": "x".repeat(1 << 20)}),
        json!({"co.elastic.logs/json.max_depth": {"a": 1}}),
        json!({"co.elastic.logs/enable": "false"}),
    ];
    let mut pods = Vec::new();
    for (number, annotations) in hostile.into_iter().enumerate() {
        let mut pod = Pod::create(&cluster, &format!("bad{number}"), number as u64, annotations);
        pod.write(3);
        pod.run(&cluster);
        pods.push(pod);
    }
    let mut good = Pod::create(&cluster, "good", 100, json!({}));
    good.write(10);
    good.run(&cluster);
    program.await_that("the good one is read", || {
        server.documents().iter().filter(|message| message.starts_with("good")).count() == 10
    });
    let log = program.log();
    assert!(log.contains("bad0"), "what does not run is named: {log}");
    let ignored = "the hint `raw` is ignored: it is no JSON";
    assert!(log.contains(ignored), "a broken hint without effect is named: {log}");
    let mistaken = "the hint `co.elastic.logs/enable` has no effect on logs; did you mean `co.elastic.logs/enabled`?";
    assert!(log.contains(mistaken), "{log}");
    let explained = place.get("/autodiscover");
    for part in [
        "hint co.elastic.logs/multiline.pattern of container app of pod shop/bad0: ",
        "`co.elastic.logs/multiline.match` is missing; expected `after` or `before`",
        "hint co.elastic.logs/processors.1.no_such_processor of container",
    ] {
        assert!(log.contains(part) && explained.contains(part), "{part}: {log}\n{explained}");
    }
    for command in ["status", "files"] {
        let out = place.run(&[command]).out;
        assert!(out.contains("container app of pod shop/good"), "{command}: {out}");
    }
    for (input, files) in [("container app of pod shop/good", 1), ("none", 0)] {
        let out = place.run(&["files", "--input", input]).succeeded().out;
        assert!(out.contains(&format!("{files} files, ")), "{input}: {out}");
    }
    program.terminate().succeeded();
}

#[test]
fn what_is_lenient_in_the_configuration_is_lenient_in_templates_too() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let configuration = place.configuration();
    let lenient = configuration
        .replace("    backoff: {init: 10ms,", "    no_such_setting: 1\n    backoff: {init: 10ms,");
    assert_ne!(lenient, configuration);
    place.configure(&format!("compat: lenient\n{lenient}"));
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "one", 1, json!({}));
    pod.write(3);
    pod.run(&cluster);
    program.await_that("its lines", || server.count() == 3);
    program.terminate().succeeded();
}

#[test]
fn an_unknown_option_of_a_hint_is_a_warning_and_the_container_is_read() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut program = place.start(&[]);
    let hint = json!({"co.elastic.logs/json.keys_under_rot": "true"});
    let mut pod = Pod::create(&cluster, "one", 1, hint);
    pod.write(3);
    pod.run(&cluster);
    program.await_that("its lines", || server.count() == 3);
    let warning = "hint co.elastic.logs/json.keys_under_rot of container app of pod shop/one: unknown setting \
                   `co.elastic.logs/json.keys_under_rot`";
    assert_eq!(program.log().matches(warning).count(), 1, "{}", program.log());
    let explained = place.run(&["autodiscover", "explain"]).out;
    assert!(explained.contains(&format!("warning: {warning}")), "{explained}");
    program.terminate().succeeded();
}

#[test]
fn the_multiline_of_a_module_that_hints_do_not_apply_is_a_warning() {
    let World { server: _server, cluster, place, folder: _folder } =
        World::new(BulkServer::start());
    let module = place.path().join("module/shop/orders");
    std::fs::create_dir_all(&module).unwrap();
    let manifest =
        "module_version: '1.0'\nvar: []\ningest_pipeline: entry.json\ninput: config.yml\n";
    std::fs::write(module.join("manifest.yml"), manifest).unwrap();
    std::fs::write(module.join("entry.json"), "{\"processors\": []}").unwrap();
    let config = "type: log\npaths: [/none]\nmultiline: {pattern: '^a', match: after}\n";
    std::fs::write(module.join("config.yml"), config).unwrap();
    let configuration = place.configuration();
    place.configure(&format!(
        "filebeat.modules_path: '{}'\n{configuration}",
        place.path().join("module").display()
    ));
    let mut program = place.start(&[]);
    let hint = json!({"co.elastic.logs/module": "shop"});
    let both = json!({"co.elastic.logs/module": "shop", "co.elastic.logs/multiline.pattern": "^a",
        "co.elastic.logs/multiline.match": "after"});
    let mut mistyped = both.clone();
    mistyped["co.elastic.logs/fileset"] = "order".into();
    for (number, annotations) in [hint, both, mistyped].into_iter().enumerate() {
        let pod = Pod::create(&cluster, &format!("pod{number}"), number as u64, annotations);
        pod.run(&cluster);
    }
    program.await_log_times(&["an input begins".to_owned()], 3);
    let mistake =
        "the module `shop` has no fileset `order`, only `orders`; all its filesets read the log";
    assert_eq!(program.log().matches(mistake).count(), 1, "{}", program.log());
    let warning = "`multiline` of the fileset `shop/orders` is not applied";
    assert_eq!(program.log().matches(warning).count(), 1, "{}", program.log());
    let explained = place.run(&["autodiscover", "explain"]).out;
    assert_eq!(explained.matches("warning: `multiline` of the").count(), 1, "{explained}");
    program.terminate().succeeded();
}

#[test]
fn a_restart_goes_on_with_the_pods_that_are_there() {
    let World { server, cluster, place, folder: _folder } = World::new(BulkServer::start());
    let mut pods: Vec<Pod> = (0..5)
        .map(|number| Pod::create(&cluster, &format!("pod{number}"), number, json!({})))
        .collect();
    let mut written = 0;
    for _ in 0..3 {
        let mut program = place.start(&[]);
        for pod in &mut pods {
            pod.write(50);
            pod.run(&cluster);
            written += 50;
        }
        program.await_that("all lines", || server.count() >= written);
        program.terminate().succeeded();
        // What is written while nobody reads.
        for pod in &mut pods {
            pod.write(10);
            written += 10;
        }
    }
    let mut program = place.start(&[]);
    program.await_that("all lines", || server.count() >= written);
    program.signal(Signal::HUP);
    program.await_log("the configuration was read again");
    program.terminate().succeeded();
    let logs: Vec<(&str, usize)> = pods.iter().map(|pod| (&*pod.label, pod.next)).collect();
    accept("restarts while pods stay", judge(&logs, &server.documents()), 0);
}

#[test]
fn a_pod_that_is_deleted_after_a_crash_is_read_to_its_end() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    let place = place(&server, &kubernetes(folder.path()));
    let mut program = place.start(&[]);
    let mut pods: Vec<Pod> = (0..3)
        .map(|number| Pod::create(&cluster, &format!("pod{number}"), number, json!({})))
        .collect();
    for pod in &mut pods {
        pod.write(20);
        pod.run(&cluster);
    }
    program.await_that("the first lines", || server.count() >= 60);
    program.kill();
    let mut logs: Vec<(String, usize)> = Vec::new();
    for mut pod in pods.drain(1..) {
        pod.write(30);
        logs.push(pod.delete(&cluster, false));
    }
    let mut stays = pods.remove(0);
    stays.write(5);
    let mut program = place.start(&[]);
    let is_here = |label: &str| {
        let last = format!("{label} ");
        server.documents().iter().filter(|message| message.starts_with(&last)).count() >= 50
    };
    program.await_that("the lines of pods that are gone", || is_here("pod1") && is_here("pod2"));
    let file = place.data().join("autodiscover.jsonl");
    program.await_that("the inputs of pods that are gone end, and are forgotten", || {
        std::fs::read_to_string(&file).unwrap().matches("\"gone\":true").count() == 2
    });
    assert_eq!(place.get("/inputs/").matches("\"id\"").count(), 1);
    logs.push((stays.label.clone(), stays.next));
    let lines: usize = logs.iter().map(|(_, next)| next).sum();
    program.await_that("all lines", || server.count() >= lines);
    let gone: Vec<Json> = events(&server)
        .into_iter()
        .filter(|event| event["kubernetes"]["pod"]["name"] == "pod1")
        .collect();
    assert!(gone.iter().all(|event| event["kubernetes"]["labels"]["app"] == "web"));
    let logs: Vec<(&str, usize)> = logs.iter().map(|(label, next)| (&**label, *next)).collect();
    // A crash repeats what was not committed.
    accept("pods that are gone after a crash", judge(&logs, &server.documents()), 60);
    program.terminate().succeeded();
    // They are forgotten.
    let mut program = place.start(&[]);
    program.await_log("an input begins");
    stays.write(1);
    let before = server.count();
    program.await_that("the new line", || server.count() > before);
    assert!(!program.log().contains("a container is gone since the last run"), "{}", program.log());
    program.terminate().succeeded();
}

#[test]
fn a_template_with_a_secret_of_its_namespace_waits_for_it() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    cluster.secret("shop", "token", &json!({"key": "aGVsbG8="}));
    let place = place(&server, &with_secret(folder.path()));
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all lines", || server.count() >= 5);
    assert!(events(&server).iter().all(|document| document["fields"]["secret"] == "hello"));
    program.terminate().succeeded();
}

#[test]
fn a_watch_that_is_refused_makes_no_further_lists() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    cluster.refuse_watches(true);
    let place = place(&server, &kubernetes(folder.path()));
    let mut program = place.start(&[]);
    program.await_log("cannot watch");
    program.await_that("it tries again", || cluster.requests().1 >= 2);
    cluster.refuse_watches(false);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all lines", || server.count() >= 5);
    assert_eq!(cluster.requests().0, 1, "the watch begins where the list ended");
    program.terminate().succeeded();
}

#[test]
fn pods_are_found_without_the_permission_to_watch() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    cluster.refuse_watches(true);
    let place = place(&server, &kubernetes(folder.path()));
    let mut program = place.start(&[]);
    program.await_log("cannot watch");
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all lines", || server.count() >= 5);
    let log = program.log();
    let is_of_pods =
        |line: &&str| line.contains("cannot be followed; trying") && line.contains("/v1/pods?");
    assert_eq!(log.lines().filter(is_of_pods).count(), 1, "{log}");
    program.terminate().succeeded();
}

#[test]
fn a_secret_that_is_wrong_where_a_hint_puts_it_is_shown_nowhere() {
    let World { server: _server, cluster, place, folder: _folder } =
        World::new(BulkServer::start());
    // `K8SECRETzz`
    cluster.secret("shop", "token", &json!({"key": "SzhTRUNSRVR6eg=="}));
    let mut program = place.start(&["-E", "logging.level=debug"]);
    program.await_log("the endpoint is open");
    let path = place.path().join("none.log");
    let raw = json!([{"type": "filestream", "id": "r", "paths": [path],
        "encoding": "${kubernetes.shop.token.key}"}]);
    let hints = [
        json!({"co.elastic.logs/include_lines": "(${kubernetes.shop.token.key}"}),
        json!({"co.elastic.logs/raw": raw.to_string()}),
        json!({"co.elastic.logs/multiline.pattern": "[${kubernetes.shop.token.key}",
            "co.elastic.logs/multiline.match": "after"}),
    ];
    for (number, hints) in hints.into_iter().enumerate() {
        let pod = Pod::create(&cluster, &format!("pod{number}"), number as u64, hints);
        pod.run(&cluster);
    }
    let said = [
        "`xxxxx` is not a regular expression: unclosed group",
        "is `xxxxx`, which is no encoding",
        "`xxxxx` is not a regular expression: `[` without `]`",
    ];
    program.await_that("each input is refused", || {
        let shown = place.get("/autodiscover");
        said.iter().all(|text| shown.contains(text))
    });
    let log = program.await_log(said[0]);
    let explained = place.run(&["autodiscover", "explain"]).out;
    let shown = [log, explained, place.run(&["status"]).out, place.get("/autodiscover")];
    for (number, text) in shown.iter().enumerate() {
        assert!(!text.contains("K8SECRET"), "{number}: {text}");
    }
    program.terminate();
}

#[test]
fn a_secret_that_comes_later_than_its_pod_is_used_then() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    let place = place(&server, &with_secret(folder.path()));
    let mut program = place.start(&[]);
    program.await_log("skidder is running");
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("the reason is shown", || {
        place.get("/autodiscover").contains("there is no secret `token`")
    });
    cluster.secret("shop", "token", &json!({"key": "aGVsbG8="}));
    program.await_that("all lines", || server.count() >= 5);
    assert!(events(&server).iter().all(|document| document["fields"]["secret"] == "hello"));
    program.terminate().succeeded();
}

/// The template with a secret, beside hints with another id.
fn with_secret_and_hints(folder: &Path) -> String {
    let path = folder.display();
    let hints = format!(
        "  hints.enabled: true\n  hints.default_config:\n    type: filestream\n    \
         id: 'h-${{data.kubernetes.container.id}}'\n    parsers: [{{container: ~}}]\n    \
         prospector.scanner: {{symlinks: true, check_interval: 50ms}}\n    \
         paths: ['{path}/containers/*-${{data.kubernetes.container.id}}.log']\n"
    );
    with_secret(folder) + &hints
}

#[test]
fn hints_do_not_read_what_a_template_reads_when_its_secret_is_there() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    cluster.secret("shop", "token", &json!({"key": "aGVsbG8="}));
    let place = place(&server, &with_secret_and_hints(folder.path()));
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all lines", || server.count() >= 5);
    let log = program.log();
    assert_eq!(log.matches("an input begins").count(), 1, "{log}");
    assert!(events(&server).iter().all(|document| document["fields"]["secret"] == "hello"));
    program.terminate().succeeded();
    assert_eq!(server.count(), 5);
}

#[test]
fn hints_read_the_log_if_the_secret_of_a_template_is_refused() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    cluster.refuse_secrets(true);
    let place = place(&server, &with_secret_and_hints(folder.path()));
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, json!({}));
    pod.write(5);
    pod.run(&cluster);
    program.await_that("all lines", || server.count() >= 5);
    let page = place.get("/autodiscover");
    assert!(page.contains("no right to read the secret `token`"), "{page}");
    assert!(program.log().contains("a secret that a template names cannot be read"));
    program.terminate().succeeded();
}
