//! A cluster for tests: an API server that lists and watches, and a kubelet that writes, rotates, links and deletes the
//! logs of pods as the real one does.
#![allow(dead_code, reason = "each test program uses a part of it")]

#[path = "../../../skidder-lookups/tests/common/mod.rs"]
mod http_api;

use crate::common::lines::line;
use http_api::{Answer, Request, serve};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

/// The API, and the folder of the logs.
pub(crate) struct Cluster {
    state: Arc<Mutex<State>>,
    logs: PathBuf,
}

#[derive(Default)]
struct State {
    version: u64,
    pods: BTreeMap<String, Json>,
    secrets: BTreeMap<String, Json>,
    lease: Option<Json>,
    /// How often the lease was requested.
    lease_requests: usize,
    /// Every change with its version.
    changes: Vec<(u64, String)>,
    watches: Vec<Sender<String>>,
    /// Lists of pods that were requested.
    lists: usize,
    /// Watches of pods that were opened.
    opened: usize,
}

impl State {
    fn change(&mut self, kind: &str, pod: &Json) {
        let text = format!("{}\n", json!({ "type": kind, "object": pod }));
        self.changes.push((self.version, text.clone()));
        self.watches.retain(|watch| watch.send(text.clone()).is_ok());
    }

    fn lease(&mut self, request: &Request) -> Answer {
        self.lease_requests += 1;
        let Some(lease) = &self.lease else {
            if request.method == "GET" {
                return Answer::not_found();
            }
            return self.set_lease(request);
        };
        if request.method == "GET" {
            return Answer::ok(lease.to_string());
        }
        let new: Json = serde_json::from_str(&request.body).unwrap();
        let is_newest = new["metadata"]["resourceVersion"] == lease["metadata"]["resourceVersion"];
        if request.method == "POST" || !is_newest {
            return Answer::Now(409, "{}".to_owned());
        }
        self.set_lease(request)
    }

    fn set_lease(&mut self, request: &Request) -> Answer {
        self.version += 1;
        let mut lease: Json = serde_json::from_str(&request.body).unwrap();
        lease["metadata"]["resourceVersion"] = self.version.to_string().into();
        let text = lease.to_string();
        self.lease = Some(lease);
        Answer::ok(text)
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let target = &request.target;
        if target.contains("/leases") {
            return self.lease(request);
        }
        let is_pods = target.starts_with("/api/v1/pods");
        if target.contains("watch=1") {
            let (send, chunks) = channel();
            if is_pods {
                self.opened += 1;
                let since = target.split("resourceVersion=").nth(1).unwrap();
                let since: u64 = since.split('&').next().unwrap().parse().unwrap();
                for (_, text) in self.changes.iter().filter(|(version, _)| *version > since) {
                    send.send(text.clone()).unwrap();
                }
                self.watches.push(send);
            } else {
                // Stays open for as long as the test goes.
                std::mem::forget(send);
            }
            return Answer::Chunks(chunks);
        }
        if let Some(secret) = self.secrets.get(target) {
            return Answer::ok(secret.to_string());
        }
        let items: Vec<&Json> = if is_pods {
            self.lists += 1;
            self.pods.values().collect()
        } else if target.starts_with("/api/v1/n") {
            Vec::new()
        } else {
            return Answer::not_found();
        };
        let version = self.version.to_string();
        Answer::ok(json!({"metadata": {"resourceVersion": version}, "items": items}).to_string())
    }
}

impl Cluster {
    /// Without pods; `folder` gets `pods`, `containers` and `kubeconfig`.
    pub(crate) fn start(folder: &Path) -> Self {
        let state = Arc::new(Mutex::new(State { version: 1, ..State::default() }));
        let answering = Arc::clone(&state);
        let (address, _) = serve(move |request| answering.lock().unwrap().answer(request));
        for name in ["pods", "containers"] {
            std::fs::create_dir_all(folder.join(name)).unwrap();
        }
        let config = json!({
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "test", "user": {"token": "secret"}}],
        });
        std::fs::write(folder.join("kubeconfig"), config.to_string()).unwrap();
        Self { state, logs: folder.to_owned() }
    }

    /// How often pods were listed, and watches of them opened.
    pub(crate) fn requests(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap();
        (state.lists, state.opened)
    }

    /// How often the lease was requested.
    pub(crate) fn lease_requests(&self) -> usize {
        self.state.lock().unwrap().lease_requests
    }

    /// A secret of a namespace; `data` is in base64.
    pub(crate) fn secret(&self, namespace: &str, name: &str, data: &Json) {
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        self.state.lock().unwrap().secrets.insert(path, json!({ "data": data }));
    }

    /// Ends all watches; the next ones begin where they were.
    pub(crate) fn break_watches(&self) {
        self.state.lock().unwrap().watches.clear();
    }

    /// A pod is there, or is another than before.
    fn put(&self, kind: &str, uid: &str, mut pod: Json) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        pod["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.change(kind, &pod);
        if kind == "DELETED" {
            state.pods.remove(uid);
        } else {
            state.pods.insert(uid.to_owned(), pod);
        }
    }
}

/// A pod with one container, whose log has numbered lines.
pub(crate) struct Pod {
    pub(crate) label: String,
    pub(crate) next: usize,
    annotations: Json,
    app: String,
    uid: String,
    id: String,
    folder: PathBuf,
    link: PathBuf,
    file: File,
    /// How often the log was rotated.
    rotated: usize,
    /// Number of the first line of the current file.
    first: usize,
}

impl Pod {
    /// Whether a line of its current file is among these.
    pub(crate) fn is_open(&self, messages: &[String]) -> bool {
        (self.first..self.next).any(|number| messages.contains(&line(&self.label, number)))
    }
}

impl Pod {
    /// Creates the container: the log is there before the API knows its id.
    pub(crate) fn create(cluster: &Cluster, label: &str, number: u64, annotations: Json) -> Self {
        let (uid, id) = (format!("uid-{label}"), format!("{number:064x}"));
        let folder = cluster.logs.join("pods").join(format!("shop_{label}_{uid}")).join("app");
        std::fs::create_dir_all(&folder).unwrap();
        let file = open(&folder.join("0.log"));
        let link = cluster.logs.join("containers").join(format!("{label}_shop_app-{id}.log"));
        std::os::unix::fs::symlink(folder.join("0.log"), &link).unwrap();
        let label = label.to_owned();
        let pod = Self {
            label,
            next: 0,
            annotations,
            app: "web".to_owned(),
            uid,
            id,
            folder,
            link,
            file,
            rotated: 0,
            first: 0,
        };
        cluster.put("ADDED", &pod.uid, pod.object("Pending", &json!({"waiting": {}}), false));
        pod
    }

    fn object(&self, phase: &str, state: &Json, has_id: bool) -> Json {
        let id = if has_id { format!("containerd://{}", self.id) } else { String::new() };
        json!({
            "metadata": {
                "name": self.label, "uid": self.uid, "namespace": "shop",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": self.app}, "annotations": self.annotations,
            },
            "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "app:1"}]},
            "status": {
                "phase": phase, "podIP": "10.0.0.1",
                "containerStatuses": [{
                    "name": "app", "containerID": id, "restartCount": 0, "image": "app:1",
                    "state": state,
                }],
            },
        })
    }

    /// The container runs.
    pub(crate) fn run(&self, cluster: &Cluster) {
        let state = json!({"running": {"startedAt": "2026-01-01T00:00:01Z"}});
        cluster.put("MODIFIED", &self.uid, self.object("Running", &state, true));
    }

    /// Other annotations from now on.
    pub(crate) fn annotate(&mut self, cluster: &Cluster, annotations: Json) {
        self.annotations = annotations;
        self.run(cluster);
    }

    /// The label `app` is another from now on.
    pub(crate) fn relabel(&mut self, cluster: &Cluster, app: &str) {
        app.clone_into(&mut self.app);
        self.run(cluster);
    }

    /// Appends lines as containerd does.
    pub(crate) fn write(&mut self, count: usize) {
        let mut text = String::new();
        for number in self.next..self.next + count {
            text += "2026-01-01T00:00:01.123456789Z stdout F ";
            text += &line(&self.label, number);
            text.push('\n');
        }
        self.next += count;
        self.file.write_all(text.as_bytes()).unwrap();
    }

    /// Rotates as the kubelet does: by renaming, the writer goes on in a new file.
    pub(crate) fn rotate(&mut self) {
        self.rotated += 1;
        self.first = self.next;
        let path = self.folder.join("0.log");
        let name = format!("0.log.20260101-{:06}", self.rotated);
        std::fs::rename(&path, self.folder.join(name)).unwrap();
        self.file = open(&path);
    }

    /// The container ends, the pod is deleted at the API, and then its logs.
    pub(crate) fn delete(self, cluster: &Cluster, remove_logs: bool) -> (String, usize) {
        let ended = json!({"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:02Z"}});
        cluster.put("MODIFIED", &self.uid, self.object("Succeeded", &ended, true));
        cluster.put("DELETED", &self.uid, self.object("Succeeded", &ended, true));
        if remove_logs {
            self.remove_logs();
        }
        (self.label, self.next)
    }

    /// Deletes the logs.
    pub(crate) fn remove_logs(&self) {
        std::fs::remove_file(&self.link).unwrap();
        std::fs::remove_dir_all(self.folder.parent().unwrap()).unwrap();
    }
}

fn open(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}
