//! Against an API server of the test's: lists in pages, watches, what the kubelet's files become.

use super::*;
use crate::testing::{Answer, Request, serve};
use serde_json::{Value as Json, json};
use skidder_config::{Problems, Settings as Tree};
use skidder_event::{Map, Value};
use skidder_os::{Clock, Monotonic, RealFs, SystemClock, Timestamp};
use skidder_testkit::wait_until;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const ID: &str = "9a7b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f";
const PATH: &str = "/var/log/pods/shop_web-1_uid-1/nginx/0.log";

/// A clock that the test moves on.
#[derive(Clone)]
struct Moved(Arc<Mutex<Duration>>, Arc<SystemClock>);

impl Clock for Moved {
    fn wall(&self) -> Timestamp {
        self.1.wall()
    }

    fn monotonic(&self) -> Monotonic {
        self.1.monotonic() + *self.0.lock().unwrap()
    }
}

fn pod(uid: &str, name: &str, label: &str) -> Json {
    json!({
        "metadata": {
            "name": name, "uid": uid, "namespace": "shop", "resourceVersion": "7",
            "labels": {"app": label, "app.kubernetes.io/name": "web"},
            "annotations": {"team/owner": "me", "other": "x"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-rs", "controller": true}],
        },
        "spec": {
            "nodeName": "node-1",
            "containers": [{"name": "nginx", "image": "nginx:1", "ports": [{"containerPort": 80}]}],
        },
        "status": {
            "podIP": "10.1.1.1",
            "containerStatuses": [
                {"name": "nginx", "containerID": format!("containerd://{ID}"), "restartCount": 0},
            ],
        },
    })
}

/// The API. Watches on pods are fed by the test, one after the other.
struct Api {
    address: String,
    watches: Receiver<Sender<String>>,
    requests: Arc<Mutex<Vec<String>>>,
}

fn api() -> Api {
    api_with(|_| None)
}

/// `before` is called with the target of each request, and may hold up the answer or give another one.
fn api_with(before: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> Api {
    let (opened, watches) = channel();
    let opened = Mutex::new(opened);
    let (address, requests) = serve(move |request: &Request| {
        if request.header("authorization") != "Bearer secret" {
            return Answer::Now(401, "who are you".to_owned());
        }
        let target = request.target.as_str();
        if let Some(answer) = before(target) {
            return answer;
        }
        if target.contains("watch=1") {
            let (feed, chunks) = channel();
            if target.starts_with("/api/v1/pods") {
                opened.lock().unwrap().send(feed).unwrap();
            } else {
                // Stays open for as long as the test goes.
                std::mem::forget(feed);
            }
            return Answer::Chunks(chunks);
        }
        let list = |items: Json, next: &str| {
            json!({"metadata": {"resourceVersion": "5", "continue": next}, "items": items})
                .to_string()
        };
        let found = match target.split('?').next().unwrap_or_default() {
            "/api/v1/pods" if !target.contains("spec.nodeName%3Dnode-1") => {
                return Answer::not_found();
            }
            "/api/v1/pods" if target.contains("continue=&") || target.ends_with("continue=") => {
                list(json!([pod("uid-1", "web-1", "blue")]), "second page")
            }
            "/api/v1/pods" => list(json!([pod("uid-2", "web-2", "blue")]), ""),
            "/api/v1/namespaces" => list(
                json!([{"metadata": {"name": "shop", "uid": "ns-uid", "labels": {"tier": "gold"}}}]),
                "",
            ),
            "/api/v1/nodes" => list(
                json!([{
                    "metadata": {"name": "node-1", "uid": "node-uid", "labels": {"zone": "a"}},
                    "status": {"addresses": [{"type": "Hostname", "address": "node-1.local"}]},
                }]),
                "",
            ),
            "/apis/apps/v1/namespaces/shop/replicasets/web-rs" => json!({"metadata": {
                "ownerReferences": [{"kind": "Deployment", "name": "web", "controller": true}],
            }})
            .to_string(),
            "/api/v1/namespaces/kube-system/configmaps/kubeadm-config" => {
                json!({"data": {"ClusterConfiguration": "apiVersion: v1\nclusterName: blue\n"}})
                    .to_string()
            }
            _ => return Answer::not_found(),
        };
        Answer::ok(found)
    });
    Api { address, watches, requests }
}

/// The processor with a kubeconfig for this API.
fn processor(api: &Api, settings: &str, clock: &Moved) -> AddKubernetesMetadata {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config");
    let text = format!(
        "current-context: one\n\
         contexts: [{{name: one, context: {{cluster: c, user: u}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\n\
         users: [{{name: u, user: {{token: secret}}}}]\n",
        api.address
    );
    std::fs::write(&file, text).unwrap();
    let yaml = format!("k: {{kube_config: {}, node: node-1, {settings}}}", file.display());
    let tree = Tree::parse("f.yml", &yaml).unwrap();
    let problems = Problems::new();
    let root = tree.root(&problems);
    let context = Context::new(Arc::new(RealFs), Arc::new(clock.clone()));
    let processor = AddKubernetesMetadata::read(&root.section("k"), &context);
    drop(root);
    assert!(problems.is_empty(), "{problems}");
    processor.unwrap()
}

fn clock() -> Moved {
    Moved(Arc::default(), Arc::new(SystemClock::new()))
}

/// The fields for the source of a file.
fn of_file(processor: &AddKubernetesMetadata, path: &str) -> Map {
    let mut fields = Map::new();
    fields.insert_path("log.file.path", path);
    let mut constants = Constants::new(&fields, &Map::new());
    assert!(processor.bound().unwrap().fold(&mut constants));
    constants.fields().clone()
}

/// The label that an event gets that has its path itself; `null` if none.
fn label_of_event(processor: &AddKubernetesMetadata, path: &str) -> Json {
    let base = Arc::new(skidder_event::Base::new(&Map::new(), &Map::new()));
    let mut events = skidder_golden::batch(&["x"], &base);
    let mut event = events.event_mut(0, &base);
    event.put(&log_file_path(), &Value::from(path)).unwrap();
    assert_eq!(processor.run(&mut event).unwrap(), Outcome::Done);
    skidder_golden::document(&events, 0)["kubernetes"]["labels"]["app"].clone()
}

fn text(fields: &Map, path: &str) -> String {
    match fields.get_path(path) {
        Some(Value::Str(text)) => text.to_string(),
        other => format!("{other:?}"),
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn a_file_gets_what_the_api_knows_of_its_pod() {
    let api = api();
    let settings =
        "add_resource_metadata.deployment: true, include_annotations: [^team], labels.dedot: false";
    let processor = processor(&api, settings, &clock());
    // A watch begins behind the whole list.
    let _feed = api.watches.recv_timeout(PATIENCE).unwrap();
    wait_until("everything is known", PATIENCE, || {
        let fields = of_file(&processor, PATH);
        text(&fields, "kubernetes.namespace_uid") == "ns-uid"
            && text(&fields, "kubernetes.node.uid") == "node-uid"
    });
    let fields = of_file(&processor, PATH);
    for (path, wanted) in [
        ("kubernetes.namespace", "shop"),
        ("kubernetes.namespace_labels.tier", "gold"),
        ("kubernetes.pod.name", "web-1"),
        ("kubernetes.pod.ip", "10.1.1.1"),
        ("kubernetes.labels.app.value", "blue"),
        ("kubernetes.labels.app.kubernetes.io/name", "web"),
        ("kubernetes.annotations.team/owner", "me"),
        ("kubernetes.annotations.other", "None"),
        ("kubernetes.replicaset.name", "web-rs"),
        ("kubernetes.deployment.name", "web"),
        ("kubernetes.node.name", "node-1"),
        ("kubernetes.node.hostname", "node-1.local"),
        ("kubernetes.node.labels.zone", "a"),
        ("kubernetes.container.name", "nginx"),
        ("container.id", ID),
        ("container.runtime", "containerd"),
        ("container.image.name", "nginx:1"),
        ("orchestrator.cluster.name", "blue"),
        ("orchestrator.cluster.url", &format!("http://{}", api.address)),
    ] {
        assert_eq!(text(&fields, path), wanted, "{path}");
    }
    // From the second page of the list, with only the path to go by.
    let second = of_file(&processor, "/var/log/pods/shop_web-2_uid-2/nginx/4.log");
    assert_eq!(text(&second, "kubernetes.labels.app.value"), "blue");
    assert_eq!(
        text(&second, "container.id"),
        "None",
        "the container of another start has another id"
    );
}

#[test]
fn what_is_around_pods_is_known_before_them() {
    let (pods_requested, requests) = channel();
    let requests = Mutex::new(requests);
    let came_first = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&came_first);
    let api = api_with(move |target| {
        match target.split('?').next().unwrap_or_default() {
            "/api/v1/pods" => drop(pods_requested.send(())),
            "/api/v1/namespaces" if !target.contains("watch=1") => {
                // The answer takes long.
                let pods = requests.lock().unwrap().recv_timeout(Duration::from_millis(500));
                seen.lock().unwrap().push(pods.is_ok());
            }
            _ => {}
        }
        None
    });
    let processor = processor(&api, "labels.dedot: true", &clock());
    wait_until("the pod is known", PATIENCE, || {
        text(&of_file(&processor, PATH), "kubernetes.labels.app") == "blue"
    });
    let fields = of_file(&processor, PATH);
    assert_eq!(text(&fields, "kubernetes.namespace_labels.tier"), "gold");
    assert_eq!(*came_first.lock().unwrap(), [false], "pods were requested before");
}

#[test]
fn pods_do_not_wait_for_what_may_not_be_read() {
    let api = api_with(|target| {
        target.starts_with("/api/v1/namespaces?").then(|| Answer::Now(403, "no".to_owned()))
    });
    let processor = processor(&api, "labels.dedot: true", &clock());
    // Less than the patience with lists that do not come.
    wait_until("the pod is known", PATIENCE, || {
        text(&of_file(&processor, PATH), "kubernetes.labels.app") == "blue"
    });
}

#[test]
fn changes_are_followed_and_a_pod_outlives_its_end() {
    let (api, clock) = (api(), clock());
    let processor = processor(
        &api,
        "add_resource_metadata: {namespace.enabled: false, node.enabled: false}",
        &clock,
    );
    let feed = api.watches.recv_timeout(PATIENCE).unwrap();
    let label = |path: &str| text(&of_file(&processor, path), "kubernetes.labels.app");
    assert_eq!(label(PATH), "blue");
    let before = processor.epoch();

    let change =
        |kind: &str, object: Json| format!("{}\n", json!({"type": kind, "object": object}));
    let modified = change("MODIFIED", pod("uid-1", "web-1", "green"));
    // In two pieces: a line is what ends with a line feed.
    let (one, two) = modified.split_at(40);
    feed.send(one.to_owned()).unwrap();
    feed.send(two.to_owned()).unwrap();
    wait_until("the new label", PATIENCE, || label(PATH) == "green");
    assert!(processor.epoch() > before, "sources are bound again");
    let label_of_event = |path: &str| label_of_event(&processor, path);
    assert_eq!(label_of_event(PATH), "green");

    // The same once more changes nothing, so nothing is bound again.
    let epoch = processor.epoch();
    feed.send(modified.clone()).unwrap();
    feed.send(change("ADDED", pod("uid-3", "web-3", "new"))).unwrap();
    let third = "/var/log/pods/shop_web-3_uid-3/nginx/0.log";
    wait_until("a new pod", PATIENCE, || label(third) == "new");
    assert_eq!(processor.epoch(), epoch + 1);
    // The fields of the event before are not for another file, nor for ever.
    assert_eq!([label_of_event(third), label_of_event(PATH)], ["new", "green"]);
    assert_eq!(label_of_event("/var/log/other.log"), Json::Null);
    assert_eq!(label_of_event(PATH), "green");

    feed.send(change("DELETED", pod("uid-3", "web-3", "new"))).unwrap();
    feed.send(change("MODIFIED", pod("uid-1", "web-1", "after"))).unwrap();
    wait_until("the one after the deletion", PATIENCE, || label(PATH) == "after");
    assert_eq!(label(third), "new", "its last lines are still read");
    assert_eq!([label_of_event(PATH), label_of_event(third)], ["after", "new"]);
    let now = || processor.shared.clock.monotonic();
    processor.shared.store().clean(&processor.settings, now());
    assert_eq!(label(third), "new");
    *clock.0.lock().unwrap() = Duration::from_mins(2);
    processor.shared.store().clean(&processor.settings, now());
    assert_eq!(label(third), "None", "after `cleanup_timeout`");
    assert_eq!(label_of_event(third), Json::Null);
    assert_eq!(text(&of_file(&processor, third), "kubernetes.pod.name"), "web-3", "from the path");
    assert_eq!(label(PATH), "after");

    // The server forgot our position: everything is listed again, and a missing pod is gone.
    let gone = json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}});
    feed.send(format!("{gone}\n")).unwrap();
    let feed = api.watches.recv_timeout(PATIENCE).unwrap();
    wait_until("the list", PATIENCE, || label(PATH) == "blue");
    // A watch that ends is begun again at its last version, without a list.
    let lists = |api: &Api| {
        api.requests
            .lock()
            .unwrap()
            .iter()
            .filter(|request| request.contains("/pods?") && !request.contains("watch=1"))
            .count()
    };
    let listed = lists(&api);
    feed.send(change("BOOKMARK", json!({"metadata": {"resourceVersion": "99"}}))).unwrap();
    drop(feed);
    let feed = api.watches.recv_timeout(PATIENCE).unwrap();
    assert_eq!(lists(&api), listed);
    let last =
        api.requests.lock().unwrap().iter().rfind(|request| request.contains("/pods?")).cloned();
    assert!(
        last.as_deref().is_some_and(|request| request.contains("resourceVersion=99")),
        "{last:?}"
    );
    drop(feed);
}

/// The list has the pod of `PATH` only from its second time on; each watch is answered with `watch`.
fn follows_in_spite_of(watch: &'static str) {
    let lists = AtomicU32::new(0);
    let api = api_with(move |target| {
        let is_pods = target.starts_with("/api/v1/pods");
        if is_pods && target.contains("watch=1") {
            return Some(Answer::ok(watch));
        }
        let is_first = is_pods && lists.fetch_add(1, Ordering::Relaxed) == 0;
        let empty = json!({"metadata": {"resourceVersion": "5"}, "items": []});
        is_first.then(|| Answer::ok(empty.to_string()))
    });
    let processor = processor(&api, "labels.dedot: true", &clock());
    wait_until("the pod of the second list", PATIENCE, || {
        text(&of_file(&processor, PATH), "kubernetes.labels.app") == "blue"
    });
}

#[test]
fn watches_that_end_at_once_again_and_again_begin_with_a_list() {
    follows_in_spite_of("");
}

#[test]
fn what_is_no_object_in_a_watch_does_not_end_following() {
    follows_in_spite_of("[1]\n");
}

#[test]
fn pods_are_found_by_names_and_addresses_in_events() {
    let api = api();
    let settings = "default_matchers.enabled: false, default_indexers.enabled: false, \
                    indexers: [{ip_port: }, {pod_name: }], \
                    matchers: [{fields: {lookup_fields: [a, b]}}, {field_format: {format: '%{[ip]}:%{[port]}'}}]";
    let processor = processor(&api, settings, &clock());
    drop(api.watches.recv_timeout(PATIENCE).unwrap());
    let find = |pairs: &[(&str, &str)]| {
        let look = |path: &Path| {
            let found = pairs.iter().find(|(name, _)| *name == path.as_str());
            found.map(|(_, value)| (*value).to_owned())
        };
        let mut found = Found::new(&processor.settings, &processor.reads, &look);
        found.fields(&processor.shared.store()).map(|fields| text(fields, "kubernetes.pod.name"))
    };
    assert_eq!(find(&[("b", "shop/web-2")]).as_deref(), Some("web-2"));
    assert!(find(&[("ip", "10.1.1.1"), ("port", "80")]).is_some());
    assert_eq!(find(&[("ip", "10.1.1.1"), ("port", "81")]), None);
    assert_eq!(find(&[("a", "shop/none")]), None);
}

#[test]
fn mistakes_in_a_kubeconfig_name_it() {
    let find = |text: &str| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let fs: Arc<dyn skidder_os::Fs> = Arc::new(RealFs);
        Access::find(file.path().to_str(), &fs).unwrap_err()
    };
    assert!(find("current-context: x\n").contains("has no context `x`"));
    let context = "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n";
    assert!(find(context).contains("has no cluster `c`"));
    let cluster = format!("{context}clusters: [{{name: c, cluster: {{server: 'ftp://a'}}}}]\n");
    assert!(find(&cluster).contains("`ftp` is none of"));
    let exec = format!("{cluster}users: [{{name: u, user: {{exec: {{command: x}}}}}}]\n");
    assert!(find(&exec).contains("not supported"));
    assert!(find("a: [\n").contains("error"));
}

#[test]
fn a_new_file_waits_for_its_pod_and_no_longer_than_it_may() {
    let (api, clock) = (api(), clock());
    let processor =
        processor(&api, "wait_for_metadata: true, wait_for_metadata_timeout: 20s", &clock);
    let hold = |path: &str| {
        let mut fields = Map::new();
        fields.insert_path("log.file.path", path);
        processor.hold(&Constants::new(&fields, &Map::new()))
    };
    let later = "/var/log/pods/shop_web-9_uid-9/nginx/0.log";
    let never = "/var/log/pods/shop_web-8_uid-8/nginx/0.log";
    assert_eq!(hold("/var/log/messages"), None, "the file of no pod");
    assert_eq!(hold(later), Some(Duration::from_secs(3)));
    assert_eq!(hold(never), Some(Duration::from_secs(3)));
    let feed = api.watches.recv_timeout(PATIENCE).unwrap();
    let added = json!({"type": "ADDED", "object": pod("uid-9", "web-9", "late")});
    feed.send(format!("{added}\n")).unwrap();
    wait_until("the pod", PATIENCE, || hold(later).is_none());
    assert!(hold(never).is_some());
    *clock.0.lock().unwrap() = Duration::from_secs(20);
    assert_eq!(hold(never), None);
}

#[test]
fn a_file_that_waits_looks_as_often_as_the_settings_say() {
    let (api, clock) = (api(), clock());
    let settings = "wait_for_metadata: true, wait_for_metadata_retry_period: 7s";
    let mut fields = Map::new();
    fields.insert_path("log.file.path", "/var/log/pods/shop_web-8_uid-8/nginx/0.log");
    let hold = processor(&api, settings, &clock).hold(&Constants::new(&fields, &Map::new()));
    assert_eq!(hold, Some(Duration::from_secs(7)));
}

#[test]
fn a_host_that_is_the_node_is_right_and_another_one_a_warning() {
    for (settings, is_warned) in [
        ("{host: n1, node: n1}", false),
        ("{host: n2, node: n1}", true),
        ("{host: of-no-machine}", true),
    ] {
        let tree = skidder_config::Settings::parse("a.yml", &format!("p: {settings}")).unwrap();
        let problems = Problems::new();
        let root = tree.root(&problems);
        let section = root.section("p");
        assert!(super::settings::Settings::read(&section).is_some());
        section.skip();
        let expected = "warning: a.yml:1:11: `p.host` has no effect\nhint: `node` names the node";
        assert_eq!(problems.to_string().contains(expected), is_warned, "{settings}: {problems}");
    }
}
