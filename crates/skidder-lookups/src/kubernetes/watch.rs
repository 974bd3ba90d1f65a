//! Following the API: lists of pods, namespaces and nodes, then their changes.
//!
//! A watch that ends is begun again where it was; one that the server no longer knows (410) begins with a
//! new list, and so does everything after an error, with a growing pause.

use super::access::Access;
use super::facts::{Pod, owner};
use super::settings::Settings;
use super::store::Store;
use serde_json::Value as Json;
use skidder_net::{AnswerStream, HttpError, percent_encoded};
use skidder_os::Clock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Objects of one answer of a list.
const PAGE: usize = 500;

/// The server ends a watch after this time.
const WATCH_SECONDS: u64 = 300;

/// Pause after the first error, and the longest one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// State shared between the processor and the watcher.
pub(super) struct Shared {
    pub(super) store: Mutex<Store>,
    /// Grows when the fields of a pod are others than before.
    pub(super) epoch: AtomicU64,
    pub(super) clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { store: Mutex::default(), epoch: AtomicU64::new(0), clock }
    }

    pub(super) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Store) -> bool) {
        if change(&mut self.store()) {
            self.epoch.fetch_add(1, Ordering::Release);
        }
    }
}

/// Kinds of objects that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pods,
    Namespaces,
    Nodes,
}

/// Follows until it is dropped.
pub(super) async fn follow(access: Access, settings: Settings, shared: Arc<Shared>) {
    let watcher = Arc::new(Watcher { limit: Limit::new(&settings), access, settings, shared });
    let node = watcher.node().await;
    watcher.cluster().await;
    let wanted = &watcher.settings.wanted;
    let mut kinds = vec![(Kind::Pods, watcher.pods_path(&node))];
    if wanted.namespace.is_wanted() {
        kinds.push((Kind::Namespaces, watcher.namespaces_path()));
    }
    if wanted.node.is_wanted() {
        kinds.push((Kind::Nodes, watcher.nodes_path(&node)));
    }
    // The small ones first, so that pods have everything when they come.
    kinds.reverse();
    let mut tasks = Vec::new();
    for (kind, path) in kinds {
        let watcher = Arc::clone(&watcher);
        tasks.push(tokio::spawn(async move { watcher.follow_kind(kind, &path).await }));
    }
    let cleaner = async {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let now = watcher.shared.clock.monotonic();
            watcher.shared.store().clean(&watcher.settings, now);
        }
    };
    cleaner.await;
    drop(tasks);
}

/// The next change. A server that is silent for longer than the watch may last is gone.
async fn next_line(stream: &mut AnswerStream) -> Result<Option<Vec<u8>>, HttpError> {
    let patience = Duration::from_secs(WATCH_SECONDS + 30);
    let line = tokio::time::timeout(patience, stream.line()).await;
    line.unwrap_or(Err(HttpError::Timeout(patience)))
}

struct Watcher {
    access: Access,
    settings: Settings,
    shared: Arc<Shared>,
    limit: Limit,
}

impl Watcher {
    async fn json(&self, path: &str) -> Result<Json, HttpError> {
        self.limit.wait().await;
        self.access.json(path).await
    }

    /// The name of the node whose pods are requested.
    async fn node(&self) -> String {
        if let Some(node) = &self.settings.node {
            return node.clone();
        }
        if let Ok(node) = std::env::var("NODE_NAME") {
            return node;
        }
        if let (Some(namespace), Ok(pod)) = (&self.access.own_namespace, std::env::var("HOSTNAME"))
        {
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}",
                percent_encoded(namespace),
                percent_encoded(&pod)
            );
            match self.json(&path).await {
                Ok(pod) => {
                    if let Some(node) = pod["spec"]["nodeName"].as_str() {
                        return node.to_owned();
                    }
                }
                Err(error) => {
                    tracing::warn!(pod, %error, "the node of this pod is not known; set `node` of add_kubernetes_metadata");
                }
            }
        }
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        tracing::info!(
            node = hostname,
            "add_kubernetes_metadata takes the name of the host for the node"
        );
        hostname
    }

    /// The name of the cluster, from `kubeadm`, or from the kubeconfig.
    async fn cluster(&self) {
        let mut name = self.access.cluster.clone();
        if self.settings.use_kubeadm {
            let path = "/api/v1/namespaces/kube-system/configmaps/kubeadm-config";
            match self.json(path).await {
                Ok(map) => {
                    let text = map["data"]["ClusterConfiguration"].as_str().unwrap_or_default();
                    let found = text.lines().find_map(|line| line.strip_prefix("clusterName:"));
                    name = found.map(|name| name.trim().trim_matches('"').to_owned()).or(name);
                }
                Err(error) => tracing::debug!(%error, "there is no kubeadm-config"),
            }
        }
        let mut store = self.shared.store();
        store.cluster.insert("url", self.access.url.as_str());
        if let Some(name) = name {
            store.cluster.insert("name", name);
        }
    }

    fn pods_path(&self, node: &str) -> String {
        let base = match &self.settings.namespace {
            Some(namespace) => format!("/api/v1/namespaces/{}/pods", percent_encoded(namespace)),
            None => "/api/v1/pods".to_owned(),
        };
        if self.settings.cluster {
            return format!("{base}?");
        }
        format!("{base}?fieldSelector={}&", percent_encoded(&format!("spec.nodeName={node}")))
    }

    fn namespaces_path(&self) -> String {
        match &self.settings.namespace {
            Some(name) => {
                let selector = percent_encoded(&format!("metadata.name={name}"));
                format!("/api/v1/namespaces?fieldSelector={selector}&")
            }
            None => "/api/v1/namespaces?".to_owned(),
        }
    }

    fn nodes_path(&self, node: &str) -> String {
        if self.settings.cluster {
            return "/api/v1/nodes?".to_owned();
        }
        format!(
            "/api/v1/nodes?fieldSelector={}&",
            percent_encoded(&format!("metadata.name={node}"))
        )
    }

    async fn follow_kind(&self, kind: Kind, path: &str) {
        let mut pause = PAUSE;
        loop {
            match self.list_and_watch(kind, path, &mut pause).await {
                // The list is to be made anew, by the server's wish.
                Ok(()) => {}
                Err(error) => {
                    tracing::warn!(?kind, %error, "Kubernetes cannot be followed; trying again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    async fn list_and_watch(
        &self,
        kind: Kind,
        path: &str,
        pause: &mut Duration,
    ) -> Result<(), HttpError> {
        let mut version = tokio::time::timeout(self.settings.sync_period, self.list(kind, path))
            .await
            .unwrap_or(Err(HttpError::Timeout(self.settings.sync_period)))?;
        loop {
            self.limit.wait().await;
            let watch = format!(
                "{path}watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
                 &resourceVersion={}",
                percent_encoded(&version)
            );
            let mut stream = match self.access.open(&watch).await {
                Err(HttpError::Status { status, .. }) if status.as_u16() == 410 => return Ok(()),
                other => other?,
            };
            while let Some(line) = next_line(&mut stream).await? {
                let change: Json = serde_json::from_slice(&line)?;
                let object = &change["object"];
                match change["type"].as_str() {
                    Some("ERROR") if object["code"] == 410 => return Ok(()),
                    Some("ERROR") => {
                        tracing::debug!(?kind, %object, "the watch reports an error");
                        tokio::time::sleep(*pause).await;
                        return Ok(());
                    }
                    Some("DELETED") => self.removed(kind, object),
                    Some("ADDED" | "MODIFIED") => self.seen(kind, object).await,
                    // A bookmark only has the version.
                    _ => {}
                }
                *pause = PAUSE;
                if let Some(newer) = object["metadata"]["resourceVersion"].as_str() {
                    newer.clone_into(&mut version);
                }
            }
        }
    }

    /// Reads all objects; gives the version at which they were read.
    async fn list(&self, kind: Kind, path: &str) -> Result<String, HttpError> {
        let mut next = String::new();
        let mut uids = Vec::new();
        loop {
            let page = format!("{path}limit={PAGE}&continue={}", percent_encoded(&next));
            let list = self.json(&page).await?;
            for object in list["items"].as_array().into_iter().flatten() {
                uids.extend(object["metadata"]["uid"].as_str().map(str::to_owned));
                self.seen(kind, object).await;
            }
            list["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
            if next.is_empty() {
                if kind == Kind::Pods {
                    let now = self.shared.clock.monotonic();
                    self.shared.store().keep_only(&uids, now);
                }
                let version = list["metadata"]["resourceVersion"].as_str();
                return Ok(version.unwrap_or_default().to_owned());
            }
        }
    }

    async fn seen(&self, kind: Kind, object: &Json) {
        let settings = &self.settings;
        match kind {
            Kind::Pods => {
                let Some(mut pod) = Pod::read(object) else { return };
                pod.above = self.above(&pod).await;
                self.shared.change(|store| store.add(pod, settings));
            }
            Kind::Namespaces => self.shared.change(|store| store.set_namespace(object, settings)),
            Kind::Nodes => self.shared.change(|store| store.set_node(object, settings)),
        }
    }

    fn removed(&self, kind: Kind, object: &Json) {
        if let (Kind::Pods, Some(uid)) = (kind, object["metadata"]["uid"].as_str()) {
            let now = self.shared.clock.monotonic();
            self.shared.store().remove(uid, now);
        }
    }

    /// The deployment above a replica set, or the cron job above a job, if requested.
    async fn above(&self, pod: &Pod) -> Option<(String, String)> {
        let (kind, name) = pod.owner.as_ref()?;
        let wanted = &self.settings.wanted;
        let group = match kind.as_str() {
            "ReplicaSet" if wanted.deployment => "apis/apps/v1",
            "Job" if wanted.cronjob => "apis/batch/v1",
            _ => return None,
        };
        let plural = if kind == "Job" { "jobs" } else { "replicasets" };
        let path = format!(
            "/{group}/namespaces/{}/{plural}/{}",
            percent_encoded(&pod.namespace),
            percent_encoded(name)
        );
        if let Some(Above(known)) = self.limit.known_above(&path) {
            return known;
        }
        match self.json(&path).await {
            Ok(object) => {
                let above = owner(&object);
                self.limit.remember_above(path, Above(above.clone()));
                above
            }
            Err(error) => {
                tracing::debug!(path, %error, "what is above a pod is not known");
                None
            }
        }
    }
}

/// Limits the number of requests, and remembers what need not be requested twice.
struct Limit {
    every: Duration,
    slots: Mutex<(f64, f64, tokio::time::Instant)>,
    above: Mutex<HashMap<String, Above>>,
}

/// Kind and name of what controls an object, if something does.
#[derive(Clone)]
struct Above(Option<(String, String)>);

/// Owners that are remembered.
const ABOVE_MAX: usize = 4096;

impl Limit {
    fn new(settings: &Settings) -> Self {
        let burst = f64::from(settings.burst);
        Self {
            every: Duration::from_secs_f64(1.0 / settings.qps),
            slots: Mutex::new((burst, burst, tokio::time::Instant::now())),
            above: Mutex::default(),
        }
    }

    /// Waits for the next request's turn (`kube_client_options`).
    async fn wait(&self) {
        let pause = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let (left, burst, at) = &mut *slots;
            let now = tokio::time::Instant::now();
            *left = (*left + now.duration_since(*at).as_secs_f64() / self.every.as_secs_f64())
                .min(*burst);
            *at = now;
            *left -= 1.0;
            if *left >= 0.0 { None } else { Some(self.every.mul_f64(-*left)) }
        };
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    }

    fn known_above(&self, path: &str) -> Option<Above> {
        self.above.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }

    fn remember_above(&self, path: String, above: Above) {
        let mut known = self.above.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= ABOVE_MAX {
            known.clear();
        }
        known.insert(path, above);
    }
}
