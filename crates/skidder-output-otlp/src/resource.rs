//! Which fields describe where an event comes from, and their names in OpenTelemetry.
//!
//! ECS and the semantic conventions of OpenTelemetry have the same names for most of what describes a host, a cloud, a
//! container or a service; this is what they call differently. <https://opentelemetry.io/docs/specs/semconv/resource/>,
//! and the other way round `mapping: ecs` of the Elasticsearch exporter of the Collector.

/// Default of `resource_fields`.
pub(crate) const FIELDS: [&str; 7] =
    ["agent", "cloud", "container", "host", "kubernetes", "orchestrator", "service"];

/// Names of attributes of a resource that are not those of the event.
const NAMES: [(&str, &str); 21] = [
    ("host.architecture", "host.arch"),
    ("host.os.full", "os.description"),
    ("host.os.name", "os.name"),
    ("host.os.type", "os.type"),
    ("host.os.version", "os.version"),
    ("kubernetes.container.name", "k8s.container.name"),
    ("kubernetes.cronjob.name", "k8s.cronjob.name"),
    ("kubernetes.daemonset.name", "k8s.daemonset.name"),
    ("kubernetes.deployment.name", "k8s.deployment.name"),
    ("kubernetes.job.name", "k8s.job.name"),
    ("kubernetes.namespace", "k8s.namespace.name"),
    ("kubernetes.node.name", "k8s.node.name"),
    ("kubernetes.node.uid", "k8s.node.uid"),
    ("kubernetes.pod.ip", "k8s.pod.ip"),
    ("kubernetes.pod.name", "k8s.pod.name"),
    ("kubernetes.pod.uid", "k8s.pod.uid"),
    ("kubernetes.replicaset.name", "k8s.replicaset.name"),
    ("kubernetes.replicationcontroller.name", "k8s.replicationcontroller.name"),
    ("kubernetes.statefulset.name", "k8s.statefulset.name"),
    ("service.environment", "deployment.environment.name"),
    ("service.node.name", "service.instance.id"),
];

/// The prefix of a label's name.
const PREFIXES: [(&str, &str); 4] = [
    ("kubernetes.annotations.", "k8s.pod.annotation."),
    ("kubernetes.labels.", "k8s.pod.label."),
    ("kubernetes.namespace_annotations.", "k8s.namespace.annotation."),
    ("kubernetes.namespace_labels.", "k8s.namespace.label."),
];

/// Puts OpenTelemetry's name in the place of ECS's, if it has another one.
pub(crate) fn rename(name: &mut Vec<u8>) {
    if let Ok(at) = NAMES.binary_search_by(|(ecs, _)| ecs.as_bytes().cmp(name)) {
        name.clear();
        name.extend_from_slice(NAMES[at].1.as_bytes());
        return;
    }
    for (ecs, semantic) in PREFIXES {
        if name.starts_with(ecs.as_bytes()) {
            name.splice(..ecs.len(), semantic.bytes());
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ecs_become_those_of_opentelemetry() {
        assert!(NAMES.is_sorted_by(|(one, _), (other, _)| one < other));
        let table = [
            ("host.name", "host.name"),
            ("host.architecture", "host.arch"),
            ("host.os.version", "os.version"),
            ("host.os.kernel", "host.os.kernel"),
            ("kubernetes.pod.name", "k8s.pod.name"),
            ("kubernetes.namespace", "k8s.namespace.name"),
            ("kubernetes.namespace_labels.team", "k8s.namespace.label.team"),
            ("kubernetes.labels.app", "k8s.pod.label.app"),
            ("service.node.name", "service.instance.id"),
            ("cloud.account.id", "cloud.account.id"),
        ];
        for (ecs, expected) in table {
            let mut name = ecs.as_bytes().to_vec();
            rename(&mut name);
            assert_eq!(String::from_utf8(name).unwrap(), expected);
        }
    }
}
