//! Objects of Kubernetes: from the API's description to events.
//!
//! The shape of the fields is that of Elastic's library for autodiscover.

mod metadata;
mod node;
mod pod;
mod service;

pub(crate) use metadata::{Metadata, Selection};

use crate::event::Event;
use crate::json::text;
use crate::made::Fields;
use serde_json::{Value as Json, json};

/// Objects around a pod, as far as they are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Around<'a> {
    pub(crate) node: Option<&'a Json>,
    pub(crate) namespace: Option<&'a Json>,
    pub(crate) replica_set: Option<&'a Json>,
    pub(crate) job: Option<&'a Json>,
    /// `name` and `url` of the cluster.
    pub(crate) cluster: Option<&'a Json>,
}

pub(crate) use node::events as node_events;
pub(crate) use pod::events as pod_events;
pub(crate) use service::events as service_events;

/// The event of the instance that holds the lease.
pub(crate) fn leader_events(id: &str) -> Vec<Event> {
    let facts = json!({ "id": id, "unique": "true" });
    vec![Event {
        about: "the holder of the lease".to_owned(),
        hint_facts: facts.clone(),
        facts,
        annotations: json!({}),
        container: String::new(),
        container_id: String::new(),
        note: String::new(),
        is_around_containers: false,
        log_driver: String::new(),
        namespace: String::new(),
        fields: Fields::of(&json!({})),
    }]
}

/// The namespace and the name of an object, for messages.
pub(crate) fn name(object: &Json) -> String {
    let meta = &object["metadata"];
    let name = text(&meta["name"]).unwrap_or("?");
    text(&meta["namespace"])
        .map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

/// The name of the object's controller, if it is of this kind.
pub(crate) fn owner<'a>(object: &'a Json, kind: &str) -> Option<&'a str> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true && owner["kind"] == kind)?;
    text(&owner["name"])
}
