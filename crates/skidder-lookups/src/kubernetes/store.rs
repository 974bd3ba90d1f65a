//! The pods that are known, by the keys of the indexers. A pod that is gone stays for a while, since its
//! last lines are read after it.

use super::facts::{Container, Pod, namespace_fields, node_fields};
use super::settings::{Indexer, Settings};
use serde_json::Value as Json;
use skidder_event::Map;
use skidder_os::Monotonic;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// Pods that are kept; further ones are not known, which is logged.
pub(super) const PODS_MAX: usize = 20_000;

/// Keys that files wait for, or waited for in vain; beyond them no file waits.
const WAITED_MAX: usize = 4096;

/// The known objects of a cluster.
#[derive(Debug, Default)]
pub(super) struct Store {
    pods: HashMap<String, Known>,
    by_key: HashMap<String, Arc<Map>>,
    namespaces: BTreeMap<String, Map>,
    nodes: BTreeMap<String, Map>,
    /// `orchestrator.cluster.*`.
    pub(super) cluster: Map,
    is_full: bool,
    /// Keys that files waited for, since when.
    waited: HashMap<String, Monotonic>,
}

#[derive(Debug)]
struct Known {
    pod: Pod,
    /// The fields under each of its keys.
    fields: BTreeMap<String, Arc<Map>>,
    gone_at: Option<Monotonic>,
}

impl Store {
    /// The fields under the first key that is known.
    pub(super) fn find(&self, keys: &[String]) -> Option<Arc<Map>> {
        keys.iter().find_map(|key| self.by_key.get(key).cloned())
    }

    /// Whether to go on waiting for one of these keys: none is known, and less than `limit`
    /// has passed since the first request for them.
    pub(super) fn waits(&mut self, keys: &[String], limit: Duration, now: Monotonic) -> bool {
        let Some(first) = keys.first() else { return false };
        if keys.iter().any(|key| self.by_key.contains_key(key)) {
            self.waited.remove(first);
            return false;
        }
        if self.waited.len() >= WAITED_MAX && !self.waited.contains_key(first) {
            return false;
        }
        let since = *self.waited.entry(first.clone()).or_insert(now);
        now.since(since) < limit
    }

    /// Adds or replaces a pod. `true` if that changes what events get.
    pub(super) fn add(&mut self, pod: Pod, settings: &Settings) -> bool {
        let uid = pod.uid.clone();
        if self.pods.len() >= PODS_MAX && !self.pods.contains_key(&uid) {
            if !std::mem::replace(&mut self.is_full, true) {
                tracing::warn!(
                    bound = PODS_MAX,
                    "too many pods: the events of further ones get no metadata"
                );
            }
            return false;
        }
        let fields = self.fields_of(&pod, settings);
        self.put(uid, Known { pod, fields, gone_at: None })
    }

    /// The pod is gone; its fields stay until [`Store::clean`].
    pub(super) fn remove(&mut self, uid: &str, now: Monotonic) {
        if let Some(known) = self.pods.get_mut(uid) {
            known.gone_at.get_or_insert(now);
        }
    }

    /// Pods that a complete list does not have are gone.
    pub(super) fn keep_only(&mut self, listed: &[String], now: Monotonic) {
        for (uid, known) in &mut self.pods {
            if !listed.contains(uid) {
                known.gone_at.get_or_insert(now);
            }
        }
    }

    /// Forgets pods that have been gone for `cleanup_timeout`.
    pub(super) fn clean(&mut self, settings: &Settings, now: Monotonic) {
        let over = |known: &Known| {
            known.gone_at.is_some_and(|at| now.since(at) >= settings.cleanup_timeout)
        };
        let old: Vec<String> =
            self.pods.iter().filter(|(_, known)| over(known)).map(|(uid, _)| uid.clone()).collect();
        for uid in old {
            if let Some(known) = self.pods.remove(&uid) {
                self.forget(&known.fields);
            }
            self.is_full = false;
        }
    }

    /// A namespace is there or has changed.
    pub(super) fn set_namespace(&mut self, object: &Json, settings: &Settings) -> bool {
        let Some(name) = object["metadata"]["name"].as_str() else { return false };
        let fields = namespace_fields(object, &settings.wanted);
        if self.namespaces.insert(name.to_owned(), fields.clone()) == Some(fields) {
            return false;
        }
        self.renew(settings, |pod| pod.namespace == name)
    }

    /// A node is there or has changed.
    pub(super) fn set_node(&mut self, object: &Json, settings: &Settings) -> bool {
        let Some(name) = object["metadata"]["name"].as_str() else { return false };
        let fields = node_fields(object, &settings.wanted);
        if self.nodes.insert(name.to_owned(), fields.clone()) == Some(fields) {
            return false;
        }
        self.renew(settings, |pod| pod.node == name)
    }

    fn renew(&mut self, settings: &Settings, concerned: impl Fn(&Pod) -> bool) -> bool {
        let pods: Vec<Pod> = self
            .pods
            .values()
            .map(|known| &known.pod)
            .filter(|pod| concerned(pod))
            .cloned()
            .collect();
        let mut changed = false;
        for pod in pods {
            let fields = self.fields_of(&pod, settings);
            let uid = pod.uid.clone();
            let gone_at = self.pods.get(&uid).and_then(|known| known.gone_at);
            changed |= self.put(uid, Known { pod, fields, gone_at });
        }
        changed
    }

    fn put(&mut self, uid: String, known: Known) -> bool {
        let before = self.pods.remove(&uid);
        let same = before.as_ref().is_some_and(|before| before.fields == known.fields);
        if !same {
            if let Some(before) = before {
                self.forget(&before.fields);
            }
            for (key, fields) in &known.fields {
                self.by_key.insert(key.clone(), Arc::clone(fields));
            }
        }
        self.pods.insert(uid, known);
        !same
    }

    /// Removes the keys that still lead to these fields: an address may be another pod's by now.
    fn forget(&mut self, fields: &BTreeMap<String, Arc<Map>>) {
        for (key, old) in fields {
            if self.by_key.get(key).is_some_and(|there| Arc::ptr_eq(there, old)) {
                self.by_key.remove(key);
            }
        }
    }

    /// The fields under each key of a pod.
    fn fields_of(&self, pod: &Pod, settings: &Settings) -> BTreeMap<String, Arc<Map>> {
        let (namespace, node) = (self.namespaces.get(&pod.namespace), self.nodes.get(&pod.node));
        let kubernetes = pod.fields(&settings.wanted, namespace, node);
        let whole = |container: Option<&Container>| {
            let mut all = Map::new();
            all.insert("kubernetes", kubernetes.clone());
            if let Some(container) = container {
                let (own, ecs) = container.fields();
                all.insert_path("container", ecs);
                let mut merged = Map::new();
                merged.insert("kubernetes", own);
                all.merge(&merged);
            }
            if !self.cluster.is_empty() {
                all.insert_path("orchestrator.cluster", self.cluster.clone());
            }
            Arc::new(all)
        };
        let mut fields = BTreeMap::new();
        for indexer in &settings.indexers {
            match indexer {
                Indexer::PodUid => {
                    fields.insert(pod.uid.clone(), whole(None));
                }
                Indexer::PodName => {
                    fields.insert(format!("{}/{}", pod.namespace, pod.name), whole(None));
                }
                Indexer::Container => {
                    for container in &pod.containers {
                        let all = whole(Some(container));
                        let Container { name, id, restarts, .. } = container;
                        if !id.is_empty() {
                            fields.insert(id.clone(), Arc::clone(&all));
                            fields.insert(format!("{}/{name}/{restarts}", pod.uid), all);
                        }
                        fields.insert(format!("{}/{name}", pod.uid), without_id(container, &whole));
                    }
                }
                Indexer::IpPort if !pod.ip.is_empty() => {
                    fields.insert(pod.ip.clone(), whole(None));
                    for container in &pod.containers {
                        for port in &container.ports {
                            fields.insert(format!("{}:{port}", pod.ip), whole(Some(container)));
                        }
                    }
                }
                Indexer::IpPort => {}
            }
        }
        fields
    }
}

/// The fields of a container of which only the name is known: its id may be that of an earlier start.
fn without_id(container: &Container, whole: &dyn Fn(Option<&Container>) -> Arc<Map>) -> Arc<Map> {
    let nameless = Container { id: String::new(), ..container.clone() };
    whole(Some(&nameless))
}
