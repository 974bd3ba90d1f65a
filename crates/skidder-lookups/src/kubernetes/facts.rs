//! The API's description of a pod, as far as events are to carry it, and the fields made of it.
//!
//! The shape of the fields is that of Elastic's `elastic-agent-autodiscover`, `kubernetes/metadata`.

use super::settings::Wanted;
use serde_json::Value as Json;
use skidder_event::Map;
use std::collections::BTreeMap;

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    /// Empty while it is not created.
    pub(super) id: String,
    pub(super) runtime: String,
    pub(super) restarts: u64,
    pub(super) ports: Vec<u64>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) node: String,
    pub(super) ip: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    /// Kind and name of what controls it.
    pub(super) owner: Option<(String, String)>,
    /// The controller of its owner, if requested.
    pub(super) above: Option<(String, String)>,
    pub(super) containers: Vec<Container>,
}

impl Pod {
    /// From an object of the API. Nothing if it has no name or no uid.
    pub(super) fn read(object: &Json) -> Option<Self> {
        let meta = &object["metadata"];
        Some(Self {
            uid: text(&meta["uid"])?,
            name: text(&meta["name"])?,
            namespace: text(&meta["namespace"]).unwrap_or_default(),
            node: text(&object["spec"]["nodeName"]).unwrap_or_default(),
            ip: text(&object["status"]["podIP"]).unwrap_or_default(),
            labels: texts(&meta["labels"]),
            annotations: texts(&meta["annotations"]),
            owner: owner(object),
            above: None,
            containers: containers(object),
        })
    }

    /// The part that is the same for all of its containers.
    pub(super) fn fields(
        &self,
        wanted: &Wanted,
        namespace: Option<&Map>,
        node: Option<&Map>,
    ) -> Map {
        let mut fields = Map::new();
        fields.insert_path("pod.name", self.name.as_str());
        fields.insert_path("pod.uid", self.uid.as_str());
        if !self.ip.is_empty() {
            fields.insert_path("pod.ip", self.ip.as_str());
        }
        fields.insert_path("namespace", self.namespace.as_str());
        if let Some(namespace) = namespace {
            fields.merge(namespace);
        }
        match node {
            Some(node) => fields.insert("node", node.clone()),
            None if !self.node.is_empty() => fields.insert_path("node.name", self.node.as_str()),
            None => {}
        }
        for (kind, name) in self.owner.iter().chain(&self.above) {
            fields.insert_path(&format!("{}.name", kind.to_lowercase()), name.as_str());
        }
        let labels = wanted.pod.labels(&self.labels);
        if !labels.is_empty() {
            fields.insert("labels", labels);
        }
        let annotations = wanted.pod.annotations(&self.annotations);
        if !annotations.is_empty() {
            fields.insert("annotations", annotations);
        }
        fields
    }
}

impl Container {
    /// Its own fields: those below `kubernetes`, and those of ECS.
    pub(super) fn fields(&self) -> (Map, Map) {
        let mut kubernetes = Map::new();
        kubernetes.insert_path("container.name", self.name.as_str());
        let mut container = Map::new();
        for (name, text) in
            [("id", &self.id), ("runtime", &self.runtime), ("image.name", &self.image)]
        {
            if !text.is_empty() {
                container.insert_path(name, text.as_str());
            }
        }
        (kubernetes, container)
    }
}

/// `namespace_uid`, `namespace_labels` and `namespace_annotations` of an object of the API.
pub(super) fn namespace_fields(object: &Json, wanted: &Wanted) -> Map {
    let meta = &object["metadata"];
    let mut fields = Map::new();
    if let Some(uid) = text(&meta["uid"]) {
        fields.insert("namespace_uid", uid);
    }
    let labels = wanted.namespace.labels(&texts(&meta["labels"]));
    if !labels.is_empty() {
        fields.insert("namespace_labels", labels);
    }
    let annotations = wanted.namespace.annotations(&texts(&meta["annotations"]));
    if !annotations.is_empty() {
        fields.insert("namespace_annotations", annotations);
    }
    fields
}

/// The fields below `kubernetes.node`.
pub(super) fn node_fields(object: &Json, wanted: &Wanted) -> Map {
    let meta = &object["metadata"];
    let mut fields = Map::new();
    for key in ["name", "uid"] {
        if let Some(text) = text(&meta[key]) {
            fields.insert(key, text);
        }
    }
    let addresses = object["status"]["addresses"].as_array().into_iter().flatten();
    let hostname = addresses
        .filter(|address| address["type"] == "Hostname")
        .find_map(|address| text(&address["address"]));
    if let Some(hostname) = hostname {
        fields.insert("hostname", hostname);
    }
    let labels = wanted.node.labels(&texts(&meta["labels"]));
    if !labels.is_empty() {
        fields.insert("labels", labels);
    }
    let annotations = wanted.node.annotations(&texts(&meta["annotations"]));
    if !annotations.is_empty() {
        fields.insert("annotations", annotations);
    }
    fields
}

/// Kind and name of what controls an object, of the kinds that have fields.
pub(super) fn owner(object: &Json) -> Option<(String, String)> {
    const KINDS: [&str; 6] =
        ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob"];
    let references = object["metadata"]["ownerReferences"].as_array()?;
    let mut controllers = references.iter().filter(|reference| reference["controller"] == true);
    let owner = controllers.find(|owner| KINDS.iter().any(|kind| owner["kind"] == **kind))?;
    Some((text(&owner["kind"])?, text(&owner["name"])?))
}

fn containers(object: &Json) -> Vec<Container> {
    let mut all = Vec::new();
    for (specs, states) in [
        ("containers", "containerStatuses"),
        ("initContainers", "initContainerStatuses"),
        ("ephemeralContainers", "ephemeralContainerStatuses"),
    ] {
        for spec in object["spec"][specs].as_array().into_iter().flatten() {
            let Some(name) = text(&spec["name"]) else { continue };
            let states = object["status"][states].as_array();
            let state = states.into_iter().flatten().find(|state| state["name"] == name.as_str());
            // `containerd://ID`
            let id = state.and_then(|state| text(&state["containerID"])).unwrap_or_default();
            let (runtime, id) = id.split_once("://").unwrap_or_default();
            let ports = spec["ports"].as_array().into_iter().flatten();
            all.push(Container {
                image: text(&spec["image"]).unwrap_or_default(),
                id: id.to_owned(),
                runtime: runtime.to_owned(),
                restarts: state.and_then(|state| state["restartCount"].as_u64()).unwrap_or(0),
                ports: ports.filter_map(|port| port["containerPort"].as_u64()).collect(),
                name,
            });
        }
    }
    all
}

fn text(value: &Json) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn texts(value: &Json) -> BTreeMap<String, String> {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
