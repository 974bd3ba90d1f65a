//! A fact as it is kept while its object is there: as text, without what no rule can name.
//!
//! A tree of values takes ten times as much, as each of its levels is a map. With 5,000 pods that is 100 MB. The text is
//! read again when the rules are applied, which is once for each change.

use crate::fact::{Fact, Version};
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// Kinds of facts that can be saved.
const POD: &str = "pod";
const DOCKER: &str = "docker";
const NOMAD: &str = "nomad";

/// A fact in little memory.
#[derive(Clone, Debug)]
pub(crate) struct KeptFact {
    /// Makes the fact of its value.
    make: fn(Json) -> Fact,
    text: Arc<str>,
    /// Its kind, if it can be saved.
    saved_as: Option<&'static str>,
    /// See [`Fact::created`].
    pub(crate) created: Option<Version>,
}

impl KeptFact {
    /// Keeps of a fact what rules can name.
    pub(crate) fn of(fact: &Fact) -> Self {
        let (make, value): (fn(Json) -> Fact, Json) = match fact {
            Fact::Docker(container) => (Fact::Docker, reduced_container(container)),
            Fact::Pod(pod) => (Fact::Pod, reduced_pod(pod)),
            Fact::Node(node) => (Fact::Node, reduced_node(node)),
            Fact::Service(service) => (Fact::Service, reduced_service(service)),
            Fact::Nomad(allocation) => (Fact::Nomad, crate::nomad::reduced(allocation)),
            Fact::Namespace(object) => (Fact::Namespace, reduced_around(object)),
            Fact::ReplicaSet(object) => (Fact::ReplicaSet, reduced_around(object)),
            Fact::Job(object) => (Fact::Job, reduced_around(object)),
            // Few.
            Fact::Jolokia(agent) => (Fact::Jolokia, agent.clone()),
            Fact::Cluster(cluster) => (Fact::Cluster, cluster.clone()),
            Fact::Leader(id) => (leader, Json::from(id.as_str())),
        };
        let saved_as = match fact {
            Fact::Pod(_) => Some(POD),
            Fact::Docker(_) => Some(DOCKER),
            Fact::Nomad(_) => Some(NOMAD),
            _ => None,
        };
        Self { make, text: value.to_string().into(), saved_as, created: fact.created() }
    }

    /// One that was saved: of a pod, of a container of Docker, or of an allocation. `None` if it is not what such a fact is kept as.
    pub(crate) fn saved(kind: &str, text: &str) -> Option<Self> {
        let value: Json = serde_json::from_str(text).ok()?;
        let fact = match kind {
            POD => Fact::Pod(value),
            DOCKER => Fact::Docker(value),
            NOMAD => Fact::Nomad(value),
            _ => return None,
        };
        (!fact.id().is_empty()).then(|| Self::of(&fact))
    }

    /// Its kind and its text, to be saved; `None` if inputs for it read no files of containers.
    pub(crate) fn to_save(&self) -> Option<(&'static str, &Arc<str>)> {
        Some((self.saved_as?, &self.text))
    }

    /// Whether another fact says the same.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.text == other.text
    }

    /// The fact.
    pub(crate) fn fact(&self) -> Fact {
        (self.make)(serde_json::from_str(&self.text).expect("the text was made of a value"))
    }
}

/// A fact that was made small where it was found, on its way to [`Autodiscover::seen`](crate::Autodiscover::seen).
#[derive(Clone, Debug)]
pub struct ShortFact {
    pub(crate) id: String,
    pub(crate) version: Option<Version>,
    pub(crate) is_over: bool,
    pub(crate) kept: KeptFact,
}

impl ShortFact {
    /// See [`Fact::id`].
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Of which kind it is: a fact of nothing.
    pub(crate) fn kind(&self) -> Fact {
        (self.kept.make)(Json::Null)
    }
}

impl From<Fact> for ShortFact {
    fn from(fact: Fact) -> Self {
        let (id, version, is_over) = (fact.id(), fact.version(), fact.is_over());
        Self { id, version, is_over, kept: KeptFact::of(&fact) }
    }
}

fn leader(id: Json) -> Fact {
    Fact::Leader(crate::json::text_or_empty(&id))
}

/// Some members of an object; those that are missing stay so.
pub(crate) fn some(object: &Json, names: &[&str]) -> Json {
    let member = |name: &&str| Some(((*name).to_owned(), object.get(*name)?.clone()));
    Json::Object(names.iter().filter_map(member).collect())
}

/// The same of all items of a list.
pub(crate) fn each(list: &Json, reduce: impl Fn(&Json) -> Json) -> Json {
    list.as_array().map_or(Json::Null, |items| items.iter().map(reduce).collect())
}

/// What all objects of Kubernetes have.
fn reduced_metadata(object: &Json) -> Json {
    let metadata = &object["metadata"];
    let names = ["name", "namespace", "uid", "labels", "annotations", "creationTimestamp"];
    let mut kept = some(metadata, &names);
    let owners =
        each(&metadata["ownerReferences"], |owner| some(owner, &["controller", "kind", "name"]));
    if !owners.is_null() {
        kept["ownerReferences"] = owners;
    }
    kept
}

/// Of what is around pods: only its metadata counts.
fn reduced_around(object: &Json) -> Json {
    json!({ "metadata": reduced_metadata(object) })
}

fn reduced_pod(pod: &Json) -> Json {
    let mut spec = some(&pod["spec"], &["nodeName"]);
    for key in ["containers", "initContainers", "ephemeralContainers"] {
        let reduce = |container: &Json| {
            let mut kept = some(container, &["name", "image"]);
            if !container["ports"].is_null() {
                kept["ports"] =
                    each(&container["ports"], |port| some(port, &["name", "containerPort"]));
            }
            kept
        };
        put(&mut spec, key, each(&pod["spec"][key], reduce));
    }
    let mut status = some(&pod["status"], &["podIP"]);
    for key in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let reduce = |of: &Json| {
            let mut kept = some(of, &["name", "containerID"]);
            if !of["state"]["running"].is_null() {
                kept["state"] = json!({ "running": {} });
            }
            kept
        };
        put(&mut status, key, each(&pod["status"][key], reduce));
    }
    json!({ "metadata": reduced_metadata(pod), "spec": spec, "status": status })
}

fn put(object: &mut Json, key: &str, value: Json) {
    if !value.is_null() {
        object[key] = value;
    }
}

fn reduced_node(node: &Json) -> Json {
    let conditions = each(&node["status"]["conditions"], |one| some(one, &["type", "status"]));
    json!({
        "metadata": reduced_metadata(node),
        "status": { "addresses": node["status"]["addresses"], "conditions": conditions },
        "spec": some(&node["spec"], &["nodeName"]),
    })
}

fn reduced_service(service: &Json) -> Json {
    let mut spec = some(&service["spec"], &["clusterIP", "selector", "nodeName"]);
    put(&mut spec, "ports", each(&service["spec"]["ports"], |port| some(port, &["port"])));
    json!({ "metadata": reduced_metadata(service), "spec": spec })
}

fn reduced_container(container: &Json) -> Json {
    let names = ["Id", "Name", "Names", "Image", "Labels", "Ports", "State", "Created", "Hostname"];
    let mut kept = some(container, &names);
    if container["Config"].is_object() {
        let names = ["Labels", "Image", "Hostname", "ExposedPorts"];
        kept["Config"] = some(&container["Config"], &names);
    }
    let driver = &container["HostConfig"]["LogConfig"]["Type"];
    if !driver.is_null() {
        kept["HostConfig"] = json!({ "LogConfig": { "Type": driver } });
    }
    let network = &container["NetworkSettings"];
    let networks: Map<String, Json> = network["Networks"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, network)| (name.clone(), some(network, &["IPAddress"])))
        .collect();
    kept["NetworkSettings"] = json!({ "Ports": network["Ports"], "Networks": networks });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_pod_is_kept_what_its_events_are_made_of() {
        let pod = json!({
            "metadata": {
                "name": "web-1", "namespace": "shop", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"},
                "annotations": {"a/b": "c"}, "managedFields": [{"manager": "kubelet"}],
                "ownerReferences": [{"controller": true, "kind": "Job", "name": "j", "uid": "x"}],
            },
            "spec": {
                "nodeName": "node-1", "volumes": [{"name": "v"}],
                "containers": [{
                    "name": "app", "image": "app:1", "env": [{"name": "A", "value": "secret"}],
                    "ports": [{"name": "http", "containerPort": 80, "protocol": "TCP"}],
                }],
            },
            "status": {
                "podIP": "10.0.0.1", "conditions": [{"type": "Ready"}],
                "containerStatuses": [{
                    "name": "app", "containerID": "containerd://c", "restartCount": 3,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}},
                }],
            },
        });
        let fact = Fact::Pod(pod.clone());
        let kept = KeptFact::of(&fact);
        assert_eq!(kept.created, fact.created());
        let Fact::Pod(short) = kept.fact() else { panic!("another fact") };
        assert_eq!(
            short,
            json!({
                "metadata": {
                    "name": "web-1", "namespace": "shop", "uid": "u",
                    "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"app": "web"},
                    "annotations": {"a/b": "c"},
                    "ownerReferences": [{"controller": true, "kind": "Job", "name": "j"}],
                },
                "spec": {
                    "nodeName": "node-1",
                    "containers": [{
                        "name": "app", "image": "app:1",
                        "ports": [{"name": "http", "containerPort": 80}],
                    }],
                },
                "status": {
                    "podIP": "10.0.0.1",
                    "containerStatuses": [{
                        "name": "app", "containerID": "containerd://c", "state": {"running": {}},
                    }],
                },
            })
        );
    }

    #[test]
    fn of_a_container_is_kept_what_its_events_are_made_of() {
        let container = json!({
            "Id": "c", "Name": "/web", "Created": "2026-01-01T00:00:00Z",
            "HostConfig": {"LogConfig": {"Type": "local", "Config": {}}, "a": 1},
            "State": {"Running": true, "StartedAt": "2026-01-01T00:00:01Z"},
            "Config": {
                "Labels": {"app": "web"}, "Image": "web:1", "Hostname": "c", "Env": ["A=secret"],
                "ExposedPorts": {"80/tcp": {}},
            },
            "NetworkSettings": {
                "Ports": {"80/tcp": [{"HostPort": "8080"}]},
                "Networks": {"bridge": {"IPAddress": "172.17.0.2", "MacAddress": "x"}},
            },
        });
        let kept = KeptFact::of(&Fact::Docker(container.clone()));
        let Fact::Docker(short) = kept.fact() else { panic!("another fact") };
        let of = |object: &Json| format!("{:?}", crate::docker::events(object, true));
        assert_eq!(of(&short), of(&container));
        assert!(!kept.text.contains("secret"), "{}", kept.text);
        assert!(kept.text.contains(r#"{"LogConfig":{"Type":"local"}}"#), "{}", kept.text);
    }

    #[test]
    fn the_holder_of_a_lease_stays_what_it_is() {
        let kept = KeptFact::of(&Fact::Leader("me".to_owned()));
        assert!(matches!(kept.fact(), Fact::Leader(id) if id == "me"));
    }

    #[test]
    fn what_was_saved_is_the_same_again_and_anything_else_is_refused() {
        let pod = json!({"metadata": {"uid": "u", "name": "web"}, "spec": {}, "status": {}});
        let kept = KeptFact::of(&Fact::Pod(pod));
        let (kind, text) = kept.to_save().unwrap();
        assert!(KeptFact::saved(kind, text).unwrap().is_same(&kept));
        assert!(KeptFact::saved("pod", "{}").is_none());
        assert!(KeptFact::saved("pod", "{").is_none());
        assert!(KeptFact::saved("lease", "{}").is_none());
        assert!(KeptFact::of(&Fact::Leader("me".to_owned())).to_save().is_none());
    }
}
