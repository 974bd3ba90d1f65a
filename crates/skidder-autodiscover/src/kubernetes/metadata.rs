//! Fields of objects: names, labels and annotations, owners, and what is around them.

use super::{Around, owner};
use crate::json::{is_empty, merge, set, text, texts, tree};
use crate::settings::kubernetes as keys;
use regex::Regex;
use serde_json::{Value as Json, json};
use skidder_config::{Key, Section};
use std::collections::BTreeMap;

/// Kinds of owners that have fields.
const OWNERS: [&str; 6] =
    ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"];

/// What events carry of objects and of what is around them.
#[derive(Debug)]
pub(crate) struct Metadata {
    pub(crate) own: Selection,
    /// `None` if they are turned off.
    pub(crate) namespace: Option<Selection>,
    pub(crate) node: Option<Selection>,
    pub(crate) deployment: bool,
    pub(crate) cronjob: bool,
}

/// Which labels and annotations of a kind of object events carry.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Empty for all.
    include_labels: Vec<Names>,
    exclude_labels: Vec<Names>,
    include_annotations: Vec<Names>,
    labels_dedot: bool,
    annotations_dedot: bool,
}

/// A name, or a pattern for names.
#[derive(Debug)]
enum Names {
    One(String),
    Pattern(Regex),
}

impl Names {
    fn fits(&self, name: &str) -> bool {
        match self {
            Self::One(wanted) => wanted == name,
            Self::Pattern(pattern) => pattern.is_match(name),
        }
    }
}

impl Selection {
    /// Reads `include_labels` and so on. `dedot` is for labels and annotations.
    pub(crate) fn read(section: &Section<'_>, dedot: (bool, bool)) -> Self {
        let include = section.get(&keys::REGEX_INCLUDE).value();
        let exclude = section.get(&keys::REGEX_EXCLUDE).value();
        Self {
            include_labels: names(section, &keys::INCLUDE_LABELS, include),
            exclude_labels: names(section, &keys::EXCLUDE_LABELS, exclude),
            include_annotations: names(section, &keys::INCLUDE_ANNOTATIONS, include),
            labels_dedot: dedot.0,
            annotations_dedot: dedot.1,
        }
    }

    fn labels(&self, labels: &BTreeMap<&str, &str>) -> Json {
        let any = |list: &[Names], name: &str| list.iter().any(|names| names.fits(name));
        let is_shown = |name: &str| {
            (self.include_labels.is_empty() || any(&self.include_labels, name))
                && !any(&self.exclude_labels, name)
        };
        shown(labels, is_shown, self.labels_dedot)
    }

    fn annotations(&self, annotations: &BTreeMap<&str, &str>) -> Json {
        let is_shown = |name: &str| self.include_annotations.iter().any(|names| names.fits(name));
        shown(annotations, is_shown, self.annotations_dedot)
    }
}

fn names(section: &Section<'_>, key: &Key<Vec<String>>, are_patterns: bool) -> Vec<Names> {
    let mut all = Vec::new();
    for text in section.get(key).optional().unwrap_or_default() {
        if !are_patterns {
            all.push(Names::One(text));
            continue;
        }
        match Regex::new(&text) {
            Ok(pattern) => all.push(Names::Pattern(pattern)),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of(key.name()));
                section.problem(key.name(), message, "correct the regular expression");
            }
        }
    }
    all
}

fn shown(all: &BTreeMap<&str, &str>, is_shown: impl Fn(&str) -> bool, dedot: bool) -> Json {
    let shown =
        all.iter().filter(|(name, _)| is_shown(name)).map(|(name, text)| (*name, *text)).collect();
    if dedot { crate::json::dedotted(&shown) } else { tree(&shown) }
}

impl Metadata {
    /// The fields below `kubernetes` of an object, without what is around it but for its namespace.
    pub(crate) fn of(&self, kind: &str, object: &Json, namespace: Option<&Json>) -> Json {
        let mut fields = fields_of(&self.own, kind, object);
        if let Some(name) = text(&object["metadata"]["namespace"]) {
            set(&mut fields, "namespace", name);
            if let (Some(selection), Some(namespace)) = (&self.namespace, namespace) {
                merge(&mut fields, namespace_fields(selection, namespace));
            }
        }
        fields
    }

    /// The same of a pod, with its node and the owners of its owners.
    pub(crate) fn of_pod(&self, pod: &Json, around: Around<'_>) -> Json {
        let mut fields = self.of("pod", pod, around.namespace);
        for (is_wanted, object, kind, path) in [
            (self.deployment, around.replica_set, "Deployment", "deployment.name"),
            (self.cronjob, around.job, "CronJob", "cronjob.name"),
        ] {
            let above = object.filter(|_| is_wanted).and_then(|object| owner(object, kind));
            if let Some(name) = above {
                set(&mut fields, path, name);
            }
        }
        match (&self.node, around.node) {
            (Some(selection), Some(node)) => set(&mut fields, "node", node_fields(selection, node)),
            _ => {
                let name = text(&pod["spec"]["nodeName"]).unwrap_or_default();
                set(&mut fields, "node.name", name);
            }
        }
        if let Some(address) = text(&pod["status"]["podIP"]) {
            set(&mut fields, "pod.ip", address);
        }
        fields
    }

    /// The same of a node.
    pub(crate) fn of_node(&self, node: &Json) -> Json {
        let mut fields = fields_of(&self.own, "node", node);
        if let Some(hostname) = hostname(node) {
            set(&mut fields, "node.hostname", hostname);
        }
        fields
    }

    /// The same of a service.
    pub(crate) fn of_service(&self, service: &Json, namespace: Option<&Json>) -> Json {
        let mut fields = self.of("service", service, namespace);
        let selectors = texts(&service["spec"]["selector"]);
        if !selectors.is_empty() {
            set(&mut fields, "selectors", shown(&selectors, |_| true, self.own.labels_dedot));
        }
        fields
    }
}

/// Fields for events: those below `kubernetes`, and those of the cluster.
pub(crate) fn with_cluster(kubernetes: Json, cluster: Option<&Json>) -> Json {
    let mut fields = json!({ "kubernetes": kubernetes });
    for (key, path) in [("url", "orchestrator.cluster.url"), ("name", "orchestrator.cluster.name")]
    {
        if let Some(value) = cluster.and_then(|cluster| text(&cluster[key])) {
            set(&mut fields, path, value);
        }
    }
    fields
}

fn fields_of(selection: &Selection, kind: &str, object: &Json) -> Json {
    let meta = &object["metadata"];
    let mut fields = json!({ kind: {
        "name": text(&meta["name"]).unwrap_or_default(), "uid": text(&meta["uid"]).unwrap_or_default(),
    } });
    for kind in OWNERS {
        if let Some(name) = owner(object, kind) {
            set(&mut fields, &format!("{}.name", kind.to_lowercase()), name);
        }
    }
    let labels = selection.labels(&texts(&meta["labels"]));
    if !is_empty(&labels) {
        set(&mut fields, "labels", labels);
    }
    let annotations = selection.annotations(&texts(&meta["annotations"]));
    if !is_empty(&annotations) {
        set(&mut fields, "annotations", annotations);
    }
    fields
}

fn namespace_fields(selection: &Selection, namespace: &Json) -> Json {
    let mut all = fields_of(selection, "namespace", namespace);
    let mut fields =
        json!({ "namespace": all["namespace"]["name"], "namespace_uid": all["namespace"]["uid"] });
    for key in ["labels", "annotations"] {
        let values = all[key].take();
        if !is_empty(&values) {
            set(&mut fields, &format!("namespace_{key}"), values);
        }
    }
    fields
}

/// The fields below `kubernetes.node` of a pod's node.
fn node_fields(selection: &Selection, node: &Json) -> Json {
    let mut all = fields_of(selection, "node", node);
    let mut fields = all["node"].take();
    if let Some(hostname) = hostname(node) {
        set(&mut fields, "hostname", hostname);
    }
    for key in ["labels", "annotations"] {
        let values = all[key].take();
        if !is_empty(&values) {
            set(&mut fields, key, values);
        }
    }
    fields
}

fn hostname(node: &Json) -> Option<&str> {
    address_of(node, "Hostname")
}

/// The first address of this type.
pub(super) fn address_of<'a>(node: &'a Json, kind: &str) -> Option<&'a str> {
    let addresses = node["status"]["addresses"].as_array()?;
    addresses
        .iter()
        .filter(|address| address["type"] == kind)
        .find_map(|address| text(&address["address"]))
}
