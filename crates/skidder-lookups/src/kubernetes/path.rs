//! The container in the path of a log file: the kubelet writes it into the names.
//!
//! `/var/log/pods/NAMESPACE_POD_UID/CONTAINER/RESTARTS.log…` and
//! `/var/log/containers/POD_NAMESPACE_CONTAINER-ID.log` (kubernetes/kubernetes, `pkg/kubelet/kuberuntime`).

use skidder_event::Map;

/// Length of a container's id, in hexadecimal digits.
pub(super) const CONTAINER_ID_LEN: usize = 64;

/// Where the kubelet keeps the logs of pods.
pub(super) const PODS: &str = "/var/log/pods/";
/// Where it keeps links to them, one for each container.
pub(super) const CONTAINERS: &str = "/var/log/containers/";
/// Where it keeps the volumes of pods.
pub(super) const VOLUMES: &str = "/var/lib/kubelet/pods/";

/// The parts of a path. All of it is text of the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Named<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) pod: Option<&'a str>,
    pub(super) uid: Option<&'a str>,
    pub(super) container: Option<&'a str>,
    pub(super) container_id: Option<&'a str>,
    /// How often the container was started before.
    pub(super) restarts: Option<&'a str>,
}

impl<'a> Named<'a> {
    /// Nothing if it is not a path of the kubelet's.
    pub(super) fn read(path: &'a str) -> Option<Self> {
        if let Some(rest) = path.strip_prefix(PODS) {
            return Self::of_pod(rest);
        }
        if let Some(rest) = path.strip_prefix(CONTAINERS) {
            return Self::of_link(rest);
        }
        let uid = path.strip_prefix(VOLUMES)?.split('/').next().filter(|uid| !uid.is_empty())?;
        Some(Self { uid: Some(uid), ..Self::default() })
    }

    fn of_pod(rest: &'a str) -> Option<Self> {
        let mut parts = rest.split('/');
        // Neither namespaces nor pods nor uids have an underscore.
        let mut names = parts.next()?.split('_');
        let (namespace, pod, uid) = (names.next()?, names.next()?, names.next()?);
        if [namespace, pod, uid].contains(&"") || names.next().is_some() {
            return None;
        }
        let container = parts.next().filter(|name| !name.is_empty());
        let file = parts.next().filter(|_| parts.next().is_none());
        let restarts = file.and_then(|name| name.split('.').next());
        let restarts = restarts.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        Some(Self {
            namespace: Some(namespace),
            pod: Some(pod),
            uid: Some(uid),
            container,
            container_id: None,
            restarts: restarts.filter(|text| !text.is_empty()),
        })
    }

    fn of_link(name: &'a str) -> Option<Self> {
        let stem = name.strip_suffix(".log")?;
        let mut names = stem.split('_');
        let (pod, namespace, last) = (names.next()?, names.next()?, names.next()?);
        if names.next().is_some() || pod.is_empty() || namespace.is_empty() {
            return None;
        }
        let (container, id) = last.rsplit_once('-')?;
        if container.is_empty() || !is_container_id(id) {
            return None;
        }
        Some(Self {
            namespace: Some(namespace),
            pod: Some(pod),
            container: Some(container),
            container_id: Some(id),
            ..Self::default()
        })
    }

    /// As fields of an event.
    pub(super) fn fields(&self) -> Map {
        let mut fields = Map::new();
        for (name, text) in [
            ("kubernetes.namespace", self.namespace),
            ("kubernetes.pod.name", self.pod),
            ("kubernetes.pod.uid", self.uid),
            ("kubernetes.container.name", self.container),
            ("container.id", self.container_id),
        ] {
            if let Some(text) = text {
                fields.insert_path(name, text);
            }
        }
        fields
    }
}

/// Whether a text can be the id of a container.
pub(super) fn is_container_id(text: &str) -> bool {
    text.len() == CONTAINER_ID_LEN && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "9a7b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f";

    #[test]
    fn names_of_the_kubelet_are_taken_apart() {
        let path = "/var/log/pods/shop_web-7d4b9c_c0ffee-12/nginx/3.log";
        let named = Named::read(path).unwrap();
        assert_eq!(
            (named.namespace, named.pod, named.uid, named.container, named.restarts),
            (Some("shop"), Some("web-7d4b9c"), Some("c0ffee-12"), Some("nginx"), Some("3"))
        );
        let rotated = "/var/log/pods/shop_web_u/nginx/0.log.20261121-101500.gz";
        assert_eq!(Named::read(rotated).unwrap().restarts, Some("0"));

        let path = format!("/var/log/containers/web-7d4b9c_shop_my-nginx-{ID}.log");
        let named = Named::read(&path).unwrap();
        assert_eq!(
            (named.namespace, named.pod, named.uid, named.container, named.container_id),
            (Some("shop"), Some("web-7d4b9c"), None, Some("my-nginx"), Some(ID))
        );
        let named = Named::read("/var/lib/kubelet/pods/uid-1/volumes/x/app.log").unwrap();
        assert_eq!((named.uid, named.pod), (Some("uid-1"), None));
    }

    #[test]
    fn other_paths_say_nothing() {
        for path in [
            "/var/log/messages",
            "/var/log/pods/",
            "/var/log/pods/a_b/c/0.log",
            "/var/log/pods/a_b_c_d/e/0.log",
            "/var/log/containers/a_b_c-123.log",
            "/var/log/containers/a.log",
            "/var/lib/kubelet/pods/",
        ] {
            assert_eq!(Named::read(path), None, "{path}");
        }
    }
}
