//! What templates and hints see of a container: one event for each of its ports.

use crate::limits::PORTS_MAX;
use crate::made::Fields;
use serde_json::Value as Json;

/// One combination of container and port, or a pod, a node, a service with a port.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// What it is, for messages: `container web, port 80`.
    pub(crate) about: String,
    /// The facts for conditions and templates; `${data.…}` names them.
    pub(crate) facts: Json,
    /// The facts for inputs that hints make, which are the same for all providers.
    pub(crate) hint_facts: Json,
    /// Labels or annotations, as a tree. They may hold hints.
    pub(crate) annotations: Json,
    /// It is a pod whose containers have events of their own: what names a container is not for it.
    pub(crate) is_around_containers: bool,
    /// The name of the container, for hints of one container of a pod; empty for none.
    pub(crate) container: String,
    /// The id of the container; empty for none.
    pub(crate) container_id: String,
    /// The namespace, whose secrets may be used; empty for none.
    pub(crate) namespace: String,
    /// What there is to say about the event itself; empty for nothing.
    pub(crate) note: String,
    /// The log driver of a container of Docker; empty if it is not known.
    pub(crate) log_driver: String,
    /// Fields of the input's events.
    pub(crate) fields: Fields,
}

/// What to say about ports that are too many; empty for nothing.
pub(crate) fn note_of_ports(found: usize) -> String {
    if found > PORTS_MAX {
        format!("only the first {PORTS_MAX} of {found} ports are looked at")
    } else {
        String::new()
    }
}
