//! The API server of a cluster for tests: it lists and watches.
#![allow(dead_code, reason = "each test program uses a part of it")]

#[path = "../../../skidder-lookups/tests/common/mod.rs"]
mod http_api;

use crate::kubelet::PodApi;
use http_api::{Answer, Request, serve};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
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
    /// Watches of pods that were requested.
    opened: usize,
    /// Watches are refused with 403.
    refuses_watches: bool,
    /// Lists of pods are refused with 403.
    refuses_lists: bool,
    /// Lists of nodes are refused with 403.
    refuses_nodes: bool,
    /// Secrets are refused with 403.
    refuses_secrets: bool,
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
            self.opened += usize::from(is_pods);
            if self.refuses_watches {
                return Answer::Now(403, "pods is forbidden: cannot watch".to_owned());
            }
            if is_pods {
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
        if self.refuses_lists && is_pods {
            return Answer::Now(403, "pods is forbidden: cannot list".to_owned());
        }
        if self.refuses_nodes && target.starts_with("/api/v1/nodes?") {
            return Answer::Now(403, "nodes is forbidden: cannot list".to_owned());
        }
        if self.refuses_secrets && target.contains("/secrets/") {
            return Answer::Now(403, "{}".to_owned());
        }
        if let Some(secret) = self.secrets.get(target) {
            return Answer::ok(secret.to_string());
        }
        if target.strip_prefix("/api/v1/nodes/").is_some_and(|node| node != super::kubelet::NODE) {
            return Answer::not_found();
        }
        let items: Vec<&Json> = if is_pods {
            self.lists += 1;
            self.pods.values().collect()
        } else if target.starts_with("/api/v1/n") && !target.contains("/secrets/") {
            Vec::new()
        } else {
            return Answer::not_found();
        };
        let version = self.version.to_string();
        Answer::ok(json!({"metadata": {"resourceVersion": version}, "items": items}).to_string())
    }
}

impl Cluster {
    /// Without pods; `folder` gets the logs and `kubeconfig`.
    pub(crate) fn start(folder: &Path) -> Self {
        let state = Arc::new(Mutex::new(State { version: 1, ..State::default() }));
        let answering = Arc::clone(&state);
        let (address, _) = serve(move |request| answering.lock().unwrap().answer(request));
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

    /// Whether watches are refused.
    pub(crate) fn refuse_watches(&self, refuse: bool) {
        self.state.lock().unwrap().refuses_watches = refuse;
    }

    /// Whether lists of pods are refused.
    pub(crate) fn refuse_lists(&self, refuse: bool) {
        self.state.lock().unwrap().refuses_lists = refuse;
    }

    /// Whether lists of nodes are refused.
    pub(crate) fn refuse_nodes(&self, refuse: bool) {
        self.state.lock().unwrap().refuses_nodes = refuse;
    }

    /// Whether secrets are refused.
    pub(crate) fn refuse_secrets(&self, refuse: bool) {
        self.state.lock().unwrap().refuses_secrets = refuse;
    }

    /// Ends all watches; the next ones begin where they were.
    pub(crate) fn break_watches(&self) {
        self.state.lock().unwrap().watches.clear();
    }

    /// A pod is there, is another than before, or is gone.
    fn put(&self, kind: &str, pod: &Json) {
        let mut pod = pod.clone();
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        pod["metadata"]["resourceVersion"] = state.version.to_string().into();
        state.change(kind, &pod);
        if kind == "DELETED" {
            state.pods.remove(&uid);
        } else {
            state.pods.insert(uid, pod);
        }
    }
}

impl PodApi for Cluster {
    fn logs(&self) -> &Path {
        &self.logs
    }

    fn create(&self, mut pod: Json) -> String {
        let uid = format!("uid-{}", pod["metadata"]["name"].as_str().unwrap());
        pod["metadata"]["uid"] = uid.clone().into();
        self.put("ADDED", &pod);
        uid
    }

    fn change(&self, pod: &Json) {
        self.put("MODIFIED", pod);
    }

    fn delete(&self, pod: &Json) {
        self.put("DELETED", pod);
    }
}
