//! A node: one event, if it is ready and has an address.

use super::metadata::{address_of, with_cluster};
use super::{Around, Metadata};
use crate::event::Event;
use crate::json::{set, texts, tree};
use crate::made::Fields;
use serde_json::{Value as Json, json};

/// The events of a node; the reason if there is none.
pub(crate) fn events(
    node: &Json,
    metadata: &Metadata,
    around: Around<'_>,
) -> Result<Vec<Event>, String> {
    let Some(host) =
        ["ExternalIP", "InternalIP", "Hostname"].iter().find_map(|kind| address_of(node, kind))
    else {
        return Err("the node has no address".to_owned());
    };
    let conditions = node["status"]["conditions"].as_array();
    let ready =
        conditions.and_then(|list| list.iter().find(|condition| condition["type"] == "Ready"));
    if !ready.is_some_and(|condition| condition["status"] == "True") {
        return Err("the node is not ready".to_owned());
    }
    let mut kubernetes = metadata.of_node(node);
    let fields = with_cluster(kubernetes.clone(), around.cluster);
    let annotations = tree(&texts(&node["metadata"]["annotations"]));
    set(&mut kubernetes, "annotations", annotations.clone());
    let id = &node["metadata"]["uid"];
    Ok(vec![Event {
        about: format!("node {}", super::name(node)),
        facts: json!({ "id": id, "host": host, "kubernetes": kubernetes }),
        hint_facts: json!({ "host": host, "kubernetes": kubernetes }),
        annotations,
        container: String::new(),
        container_id: String::new(),
        note: String::new(),
        is_around_containers: false,
        log_driver: String::new(),
        namespace: String::new(),
        fields: Fields::of(&fields),
    }])
}
