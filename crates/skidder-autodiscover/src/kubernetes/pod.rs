//! A pod: events for the ports of its containers, and one for itself.

use super::metadata::with_cluster;
use super::{Around, Metadata};
use crate::event::{Event, note_of_ports};
use crate::json::{is_empty, merge_missing, set, text, text_or_empty, texts, tree};
use crate::limits::PORTS_MAX;
use crate::made::Fields;
use serde_json::{Map as Object, Value as Json, json};

/// A container of a pod with its state.
struct Container<'a> {
    spec: &'a Json,
    name: &'a str,
    /// Empty while it is not created.
    id: &'a str,
    runtime: &'a str,
    is_running: bool,
}

/// All containers: those of the pod, those that initialize it, and those that debug it.
fn containers(pod: &Json) -> Vec<Container<'_>> {
    const STATES: [&str; 3] =
        ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let list = |of: &'static str, key: &'static str| pod[of][key].as_array().into_iter().flatten();
    let mut all = Vec::new();
    for kind in ["containers", "initContainers", "ephemeralContainers"] {
        for spec in list("spec", kind) {
            let Some(name) = text(&spec["name"]) else { continue };
            let state = STATES
                .iter()
                .flat_map(|key| list("status", key))
                .find(|state| state["name"] == name);
            // `containerd://ID`
            let id = state.and_then(|state| text(&state["containerID"]));
            let (runtime, id) = id.and_then(|id| id.split_once("://")).unwrap_or_default();
            let is_running = state.is_some_and(|state| !state["state"]["running"].is_null());
            all.push(Container { spec, name, id, runtime, is_running });
        }
    }
    all
}

/// What all events of a pod have.
struct Shared<'a> {
    pod: &'a Json,
    /// The fields below `kubernetes`.
    kubernetes: Json,
    cluster: Option<&'a Json>,
    labels: Json,
    annotations: Json,
    namespace_annotations: Json,
    /// The annotations of pod and namespace together, for hints.
    hints: Json,
}

impl Shared<'_> {
    /// The facts below `kubernetes`: the fields, with all labels and annotations as levels.
    fn facts(&self, container: Option<&Json>) -> Json {
        let mut facts = self.kubernetes.clone();
        set(&mut facts, "annotations", self.annotations.clone());
        set(&mut facts, "labels", self.labels.clone());
        if let Some(container) = container {
            set(&mut facts, "container", container.clone());
        }
        if !is_empty(&self.namespace_annotations) {
            set(&mut facts, "namespace_annotations", self.namespace_annotations.clone());
        }
        facts
    }

    fn event(&self, about: String, id: &Json, container: Option<&Json>) -> Event {
        let kubernetes = self.facts(container);
        let mut hint_facts = json!({ "kubernetes": kubernetes });
        if let Some(container) = container {
            set(&mut hint_facts, "container", container.clone());
        }
        Event {
            about,
            facts: json!({ "id": id, "kubernetes": kubernetes }),
            hint_facts,
            annotations: self.hints.clone(),
            container: container.map(|it| text_or_empty(&it["name"])).unwrap_or_default(),
            container_id: container.map(|it| text_or_empty(&it["id"])).unwrap_or_default(),
            note: String::new(),
            is_around_containers: false,
            log_driver: String::new(),
            namespace: text_or_empty(&self.pod["metadata"]["namespace"]),
            fields: Fields::of(&with_cluster(self.kubernetes.clone(), self.cluster)),
        }
    }

    /// One event for each port of a container, or one with port 0 if it has none. Address and port are there only
    /// while the container runs, so that templates that connect to it wait until then.
    fn of_container(
        &self,
        container: &Container<'_>,
        ports: &mut Object<String, Json>,
    ) -> Vec<Event> {
        let uid = &self.pod["metadata"]["uid"];
        let id = Json::from(format!("{}.{}", text_or_empty(uid), container.name));
        let image = &container.spec["image"];
        let facts = json!({
            "id": container.id, "name": container.name, "image": image, "runtime": container.runtime,
        });
        let ecs =
            json!({ "id": container.id, "runtime": container.runtime, "image": { "name": image } });
        let mut fields = with_cluster(self.kubernetes.clone(), self.cluster);
        set(&mut fields, "kubernetes.container.name", container.name);
        set(&mut fields, "container", ecs);
        let fields = Fields::of(&fields);
        let specs = container.spec["ports"].as_array();
        let mut numbers: Vec<u64> = Vec::new();
        for port in specs.into_iter().flatten() {
            let Some(number) = port["containerPort"].as_u64() else { continue };
            numbers.push(number);
            if let Some(name) = text(&port["name"]).filter(|_| container.is_running && number != 0)
            {
                ports.insert(name.to_owned(), number.into());
            }
        }
        if numbers.is_empty() {
            numbers.push(0);
        }
        let note = note_of_ports(numbers.len());
        numbers.truncate(PORTS_MAX);
        let event = |number: u64| {
            let pod = super::name(self.pod);
            let mut about = format!("container {} of pod {pod}", container.name);
            if number != 0 {
                about = format!("{about}, port {number}");
            }
            let event = self.event(about, &id, Some(&facts));
            let mut event = Event { fields: fields.clone(), note: note.clone(), ..event };
            if container.is_running {
                for facts in [&mut event.facts, &mut event.hint_facts] {
                    set(facts, "host", text_or_empty(&self.pod["status"]["podIP"]));
                    set(facts, "port", number);
                }
            }
            event
        };
        numbers.into_iter().map(event).collect()
    }
}

/// The events of a pod, those of its containers first; the reason if there is none.
pub(crate) fn events(
    pod: &Json,
    metadata: &Metadata,
    around: Around<'_>,
) -> Result<Vec<Event>, String> {
    let annotations = tree(&texts(&pod["metadata"]["annotations"]));
    let of_namespace =
        around.namespace.map(|namespace| tree(&texts(&namespace["metadata"]["annotations"])));
    let mut hints = annotations.clone();
    if let Some(of_namespace) = &of_namespace {
        merge_missing(&mut hints, of_namespace);
    }
    let shared = Shared {
        pod,
        kubernetes: metadata.of_pod(pod, around),
        cluster: around.cluster,
        labels: tree(&texts(&pod["metadata"]["labels"])),
        annotations,
        namespace_annotations: of_namespace.unwrap_or(Json::Null),
        hints,
    };
    let mut events = Vec::new();
    let mut ports = Object::new();
    let mut any_runs = false;
    for container in containers(pod).into_iter().filter(|container| !container.id.is_empty()) {
        any_runs |= container.is_running;
        events.extend(shared.of_container(&container, &mut ports));
    }
    if events.is_empty() {
        return Err("no container of the pod has been created yet".to_owned());
    }
    let uid = &pod["metadata"]["uid"];
    let own = shared.event(format!("pod {}", super::name(pod)), uid, None);
    let mut own = Event { is_around_containers: true, ..own };
    if let Some(address) = text(&pod["status"]["podIP"]).filter(|_| any_runs) {
        for facts in [&mut own.facts, &mut own.hint_facts] {
            set(facts, "host", address);
            if !ports.is_empty() {
                set(facts, "ports", Json::Object(ports.clone()));
            }
        }
    }
    events.push(own);
    Ok(events)
}
