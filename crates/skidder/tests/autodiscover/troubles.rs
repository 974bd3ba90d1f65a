//! Providers whose API cannot be reached or refuses: `status` and `autodiscover explain` say so until it is over.

use super::cluster::Cluster;
use super::common::Place;
use super::common::server::BulkServer;
use super::kubelet::Pod;
use super::{kubernetes, place};
use serde_json::Value as Json;

/// The output of `status` with a problem, once it has all of `parts`.
fn await_problem(place: &Place, parts: &[&str]) -> String {
    let text = super::common::program::patiently("a problem", || {
        let ended = place.run(&["status", "--seconds", "0.1"]);
        let is_there = parts.iter().all(|part| ended.out.contains(part));
        is_there.then(|| (ended.code(), ended.out))
    });
    assert_eq!(text.0, Some(1), "{}", text.1);
    assert!(!text.1.contains("all is well"), "{}", text.1);
    text.1
}

fn await_well(place: &Place) {
    super::common::program::patiently("all is well", || {
        let ended = place.run(&["status", "--seconds", "0.1"]);
        (ended.code() == Some(0) && ended.out.contains("all is well")).then_some(())
    });
}

#[test]
fn an_engine_that_is_not_there_is_a_problem_of_its_provider_and_of_its_input() {
    let server = BulkServer::start();
    let place =
        place(&server, "- type: docker\n  host: unix:///no/docker.sock\n  hints.enabled: true\n");
    let text = place.configuration();
    let input = "filebeat.inputs:\n- {type: docker_logs, id: c, host: 'unix:///no/docker.sock', ids: [web]}\n";
    place.configure(&format!("{input}{text}"));
    let program = place.start(&[]);
    let log = program.await_log("Docker cannot be followed; trying again");
    assert!(!log.contains("HttpClient"), "{log}");
    await_problem(
        &place,
        &[
            "! autodiscover: the provider `docker` (",
            "filebeat.yml:4:3) does not see new containers; it tries again: \
             cannot connect to `/no/docker.sock`: No such file or directory",
            "→ start Docker, or set `host` of the provider to where it listens",
            "! input `c` cannot read `web`",
            ": cannot connect to `/no/docker.sock`: No such file or directory (os error 2); it is tried again",
        ],
    );
    let explained = place.run(&["autodiscover", "explain"]).succeeded();
    let expected = "  ! cannot connect to `/no/docker.sock`: No such file or directory (os error 2); it is tried again\n    \
                    → start Docker";
    assert!(explained.out.contains(expected), "{}", explained.out);
    program.terminate().succeeded();
}

#[test]
fn an_api_server_that_refuses_or_is_away_is_a_problem_until_it_answers() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    let place = place(&server, &kubernetes(folder.path()));
    cluster.refuse_lists(true);
    let program = place.start(&[]);
    await_problem(
        &place,
        &[
            "! autodiscover: the provider `kubernetes` (",
            "filebeat.yml:2:3) does not see new containers",
            "pods: answered 403 Forbidden: pods is forbidden: cannot list",
            "→ allow the service account of skidder to list and watch pods in a ClusterRole",
        ],
    );
    let explained = place.run(&["autodiscover", "explain", "--json"]).succeeded();
    let json: Json = serde_json::from_str(&explained.out).unwrap();
    let trouble = &json["providers"][0]["troubles"][0];
    assert_eq!(trouble["error"], "pods: answered 403 Forbidden: pods is forbidden: cannot list");
    cluster.refuse_lists(false);
    await_well(&place);
    let explained = place.run(&["autodiscover", "explain"]).succeeded();
    assert!(!explained.out.contains('!'), "{}", explained.out);
    program.terminate().succeeded();

    let kubeconfig = folder.path().join("kubeconfig");
    let text = std::fs::read_to_string(&kubeconfig).unwrap();
    let mut config: Json = serde_json::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = "http://127.0.0.1:1".into();
    std::fs::write(&kubeconfig, config.to_string()).unwrap();
    let program = place.start(&[]);
    await_problem(
        &place,
        &["cannot connect to 127.0.0.1:1", "→ check that the API server can be reached"],
    );
    program.terminate().succeeded();
}

#[test]
fn metadata_that_is_refused_is_a_warning_since_the_pods_are_read() {
    let server = BulkServer::start();
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start(folder.path());
    let place = place(&server, &kubernetes(folder.path()));
    cluster.refuse_nodes(true);
    let mut program = place.start(&[]);
    let mut pod = Pod::create(&cluster, "pod", 1, serde_json::json!({}));
    pod.write(3);
    pod.run(&cluster);
    program.await_that("the pod is read", || server.count() == 3);
    let ended = place.run(&["status", "--seconds", "0.1"]).succeeded();
    for part in [
        "- autodiscover: the provider `kubernetes` (",
        ") lacks metadata; it tries again: nodes: answered 403 Forbidden: nodes is forbidden: cannot list",
        "→ allow the service account of skidder to list and watch nodes in a ClusterRole",
    ] {
        assert!(ended.out.contains(part), "{part} is not in {}", ended.out);
    }
    let explained = place.run(&["autodiscover", "explain"]).succeeded();
    assert!(explained.out.contains("  - nodes: answered 403"), "{}", explained.out);
    program.terminate().succeeded();
}
