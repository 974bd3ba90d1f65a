//! Following the API for the processor: pods, namespaces and nodes become the fields of the store.

use super::access::Access;
use super::facts::{Pod, owner};
use super::first_lists::{FirstList, FirstLists};
use super::objects::{Api, Change, Objects, RequestLimit, path_of};
use super::settings::Settings;
use super::store::Store;
use serde_json::Value as Json;
use skidder_net::percent_encoded;
use skidder_os::Clock;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

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

/// An object, as far as it is kept until its turn.
enum Seen {
    /// Of a pod nothing else is of use; `None` if it has no name or no uid.
    Pod(Option<Box<Pod>>),
    Namespace(Json),
    Node(Json),
}

impl Seen {
    fn of(kind: Kind, object: Json) -> Self {
        match kind {
            Kind::Pods => Self::Pod(Pod::read(&object).map(Box::new)),
            Kind::Namespaces => Self::Namespace(object),
            Kind::Nodes => Self::Node(object),
        }
    }
}

/// Follows until it is dropped.
pub(super) async fn follow(access: Access, settings: Settings, shared: Arc<Shared>) {
    let api = Api::new(access, RequestLimit::new(settings.qps, settings.burst));
    let node = match &settings.node {
        Some(node) => node.clone(),
        None => api.own_node("`node` of add_kubernetes_metadata").await,
    };
    if !settings.cluster {
        let setting = "`node` of add_kubernetes_metadata";
        tokio::spawn(api.clone().check_node(node.clone(), setting));
    }
    let watcher = Arc::new(Watcher { api, settings, shared, above: Mutex::default() });
    watcher.cluster().await;
    let wanted = &watcher.settings.wanted;
    let mut kinds = Vec::new();
    if wanted.namespace.is_wanted() {
        kinds.push((Kind::Namespaces, watcher.namespaces_path()));
    }
    if wanted.node.is_wanted() {
        kinds.push((Kind::Nodes, watcher.nodes_path(&node)));
    }
    let around = FirstLists::default();
    for (kind, path) in kinds {
        let (watcher, first) = (Arc::clone(&watcher), around.add());
        tokio::spawn(async move { watcher.follow_kind(kind, path, Some(first)).await });
    }
    let pods = (Arc::clone(&watcher), watcher.pods_path(&node));
    tokio::spawn(async move {
        let (watcher, path) = pods;
        around.wait("pods").await;
        watcher.follow_kind(Kind::Pods, path, None).await;
    });
    let cleaner = async {
        loop {
            tokio::time::sleep(Duration::from_secs(5)).await;
            let now = watcher.shared.clock.monotonic();
            watcher.shared.store().clean(&watcher.settings, now);
        }
    };
    cleaner.await;
}

struct Watcher {
    api: Api,
    settings: Settings,
    shared: Arc<Shared>,
    /// What controls the owners of pods, by their paths.
    above: Mutex<HashMap<String, Above>>,
}

impl Watcher {
    /// What is known of the cluster.
    async fn cluster(&self) {
        let name = self.api.cluster_name(self.settings.use_kubeadm).await;
        let mut store = self.shared.store();
        store.cluster.insert("url", self.api.access().url.as_str());
        if let Some(name) = name {
            store.cluster.insert("name", name);
        }
    }

    fn pods_path(&self, node: &str) -> String {
        let of_node = Some(("spec.nodeName", node)).filter(|_| !self.settings.cluster);
        path_of("pods", self.settings.namespace.as_deref(), of_node)
    }

    fn namespaces_path(&self) -> String {
        let name = self.settings.namespace.as_deref().map(|name| ("metadata.name", name));
        path_of("namespaces", None, name)
    }

    fn nodes_path(&self, node: &str) -> String {
        let name = Some(("metadata.name", node)).filter(|_| !self.settings.cluster);
        path_of("nodes", None, name)
    }

    /// Follows the objects at `path`. Others wait for `first`.
    async fn follow_kind(&self, kind: Kind, path: String, first: Option<FirstList>) {
        let (api, sync_period) = (self.api.clone(), self.settings.sync_period);
        let make = move |object| Seen::of(kind, object);
        let mut objects = Objects::new(api, path, sync_period, make);
        if let Some(first) = first {
            objects = objects.awaited(first);
        }
        loop {
            match objects.next().await {
                Change::Seen(seen) => self.seen(seen).await,
                Change::Gone(object) => self.removed(kind, &object),
                Change::Listed(uids) if kind == Kind::Pods => {
                    let now = self.shared.clock.monotonic();
                    self.shared.store().keep_only(&uids, now);
                }
                Change::Listed(_) => {}
            }
        }
    }

    async fn seen(&self, seen: Seen) {
        let settings = &self.settings;
        match seen {
            Seen::Pod(Some(mut pod)) => {
                pod.above = self.above(&pod).await;
                self.shared.change(|store| store.add(*pod, settings));
            }
            Seen::Pod(None) => {}
            Seen::Namespace(object) => {
                self.shared.change(|store| store.set_namespace(&object, settings));
            }
            Seen::Node(object) => self.shared.change(|store| store.set_node(&object, settings)),
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
        if let Some(Above(known)) = self.known_above(&path) {
            return known;
        }
        match self.api.json(&path).await {
            Ok(object) => {
                let above = owner(&object);
                self.remember_above(path, Above(above.clone()));
                above
            }
            Err(error) => {
                tracing::debug!(path, %error, "what is above a pod is not known");
                None
            }
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

/// Kind and name of what controls an object, if something does.
#[derive(Clone)]
struct Above(Option<(String, String)>);

/// Owners that are remembered.
const ABOVE_MAX: usize = 4096;
