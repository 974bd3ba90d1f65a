//! A service: one event for each of its ports, if it has an address.

use super::metadata::with_cluster;
use super::{Around, Metadata};
use crate::event::{Event, note_of_ports};
use crate::json::{merge_missing, set, text, text_or_empty, texts, tree};
use crate::limits::PORTS_MAX;
use crate::made::Fields;
use serde_json::{Value as Json, json};

/// The events of a service; the reason if there is none.
pub(crate) fn events(
    service: &Json,
    metadata: &Metadata,
    around: Around<'_>,
) -> Result<Vec<Event>, String> {
    let Some(host) = text(&service["spec"]["clusterIP"]) else {
        return Err("the service has no address".to_owned());
    };
    let mut kubernetes = metadata.of_service(service, around.namespace);
    let fields = Fields::of(&with_cluster(kubernetes.clone(), around.cluster));
    let own = tree(&texts(&service["metadata"]["annotations"]));
    set(&mut kubernetes, "annotations", own.clone());
    let mut annotations = own;
    if let Some(namespace) = around.namespace {
        let of_namespace = tree(&texts(&namespace["metadata"]["annotations"]));
        set(&mut kubernetes, "namespace_annotations", of_namespace.clone());
        merge_missing(&mut annotations, &of_namespace);
    }
    let name = super::name(service);
    let note = note_of_ports(service["spec"]["ports"].as_array().map_or(0, Vec::len));
    let event = |port: u64| Event {
        about: format!("service {name}, port {port}"),
        facts: json!({ "id": service["metadata"]["uid"], "host": host, "port": port, "kubernetes": kubernetes }),
        hint_facts: json!({ "host": host, "port": port, "kubernetes": kubernetes }),
        annotations: annotations.clone(),
        container: String::new(),
        container_id: String::new(),
        note: note.clone(),
        is_around_containers: false,
        log_driver: String::new(),
        namespace: text_or_empty(&service["metadata"]["namespace"]),
        fields: fields.clone(),
    };
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    Ok(ports.filter_map(|port| port["port"].as_u64()).take(PORTS_MAX).map(event).collect())
}
