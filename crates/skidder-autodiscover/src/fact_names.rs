//! Names of the facts that conditions can look at: one that no container has is likely misspelt, and its condition
//! never holds.

use skidder_config::{Section, nearest};
use skidder_processors::Condition;

/// Facts of Docker; all names below one that ends with `.*`.
const DOCKER: &[&str] = &[
    "id",
    "host",
    "port",
    "ports.*",
    "docker.container.id",
    "docker.container.name",
    "docker.container.image",
    "docker.container.labels.*",
    "container.id",
    "container.name",
    "container.image.name",
    "container.labels.*",
];

/// Facts of Kubernetes, of all kinds of objects.
const KUBERNETES: &[&str] = &[
    "id",
    "host",
    "port",
    "ports.*",
    "kubernetes.namespace",
    "kubernetes.namespace_uid",
    "kubernetes.namespace_labels.*",
    "kubernetes.namespace_annotations.*",
    "kubernetes.labels.*",
    "kubernetes.annotations.*",
    "kubernetes.selectors.*",
    "kubernetes.pod.name",
    "kubernetes.pod.uid",
    "kubernetes.pod.ip",
    "kubernetes.service.name",
    "kubernetes.service.uid",
    "kubernetes.node.name",
    "kubernetes.node.uid",
    "kubernetes.node.hostname",
    "kubernetes.node.labels.*",
    "kubernetes.node.annotations.*",
    "kubernetes.container.id",
    "kubernetes.container.name",
    "kubernetes.container.image",
    "kubernetes.container.runtime",
    "kubernetes.deployment.name",
    "kubernetes.replicaset.name",
    "kubernetes.statefulset.name",
    "kubernetes.daemonset.name",
    "kubernetes.job.name",
    "kubernetes.cronjob.name",
    // Of the lease.
    "unique",
];

/// Warns of facts in a condition that no object of a provider of this type has. Those of Nomad and Jolokia are as their
/// jobs and agents say.
pub(crate) fn check(kind: &str, section: &Section<'_>, key: &str, condition: &Condition) {
    let known = match kind {
        "docker" => DOCKER,
        "kubernetes" => KUBERNETES,
        _ => return,
    };
    condition.for_each_path(&mut |path| {
        let path = path.as_str();
        if is_known(known, path) {
            return;
        }
        let message = format!(
            "`{}` looks at `{path}`, which no object of the provider `{kind}` has: it never holds, or always",
            section.path_of(key)
        );
        section.warning(key, message, hint(known, path));
    });
}

/// Whether it is a fact, or a level above facts.
fn is_known(known: &[&str], path: &str) -> bool {
    known.iter().any(|name| {
        let (name, is_open) = name.strip_suffix(".*").map_or((*name, false), |name| (name, true));
        let is_below = |above: &str, below: &str| {
            below.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
        };
        name == path || is_below(path, name) || (is_open && is_below(name, path))
    })
}

/// The nearest fact, whatever follows in an open level.
fn hint(known: &[&str], path: &str) -> String {
    let levels = path.split('.').count();
    let candidates = known.iter().map(|name| name.trim_end_matches(".*"));
    let mut best: Option<String> = None;
    for length in (1..=levels).rev() {
        let head: Vec<&str> = path.split('.').take(length).collect();
        let head = head.join(".");
        let same = candidates.clone().filter(|name| name.split('.').count() == length);
        if let Some(name) = nearest(&head, same) {
            best = Some(format!("{name}{}", &path[head.len()..]));
            break;
        }
    }
    match best {
        Some(name) => format!("did you mean `{name}`?"),
        None => "docs/hints.md lists the facts".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_and_levels_above_them_are_known_and_others_have_a_hint() {
        for (known, path) in [
            (DOCKER, "docker.container.name"),
            (DOCKER, "docker.container.labels.app.kubernetes.io/name"),
            (DOCKER, "docker.container"),
            (DOCKER, "ports.80"),
            (KUBERNETES, "kubernetes.labels"),
            (KUBERNETES, "kubernetes.node.labels.a"),
        ] {
            assert!(is_known(known, path), "{path}");
        }
        for (known, path, meant) in [
            (DOCKER, "docker.container.nmae", "did you mean `docker.container.name`?"),
            (DOCKER, "docker.container.label.app", "did you mean `docker.container.labels.app`?"),
            (KUBERNETES, "kubernetes.lables.app", "did you mean `kubernetes.labels.app`?"),
            (KUBERNETES, "kubernetes.pod.nam", "did you mean `kubernetes.pod.name`?"),
            (DOCKER, "message", "docs/hints.md lists the facts"),
        ] {
            assert!(!is_known(known, path), "{path}");
            assert_eq!(hint(known, path), meant, "{path}");
        }
    }
}
