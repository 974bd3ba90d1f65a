//! A kubelet for tests: it reports pods to an API server, and writes, rotates, links and deletes their logs as the real
//! one does.
#![allow(dead_code, reason = "not every test program uses all of it")]

use crate::common::lines::{gzip, line};
use serde_json::{Value as Json, json};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// The namespace of all pods.
pub(crate) const NAMESPACE: &str = "shop";
/// The node of all pods.
pub(crate) const NODE: &str = "node-1";

/// The part of an API server that a kubelet uses.
pub(crate) trait PodApi {
    /// The folder of `pods` and `containers`.
    fn logs(&self) -> &Path;
    /// Creates a pod; returns its uid.
    fn create(&self, pod: Json) -> String;
    /// Labels, annotations and status of a pod are others than before.
    fn change(&self, pod: &Json);
    /// Deletes a pod.
    fn delete(&self, pod: &Json);
}

/// A pod with one container, whose log has numbered lines.
pub(crate) struct Pod {
    pub(crate) label: String,
    pub(crate) next: usize,
    annotations: Json,
    app: String,
    /// Of the replica set that it belongs to, if there is one: name and uid.
    owner: Option<(String, String)>,
    uid: String,
    id: String,
    folder: PathBuf,
    link: PathBuf,
    file: File,
    /// How often the log was rotated.
    rotated: usize,
    /// Number of the first line of the current file.
    first: usize,
}

impl Pod {
    /// Creates the container: the log is there before the API knows its id.
    pub(crate) fn create(api: &impl PodApi, label: &str, number: u64, annotations: Json) -> Self {
        Self::owned(api, label, number, annotations, None)
    }

    /// The same for a pod of a replica set.
    pub(crate) fn owned(
        api: &impl PodApi,
        label: &str,
        number: u64,
        annotations: Json,
        owner: Option<(String, String)>,
    ) -> Self {
        let id = format!("{number:064x}");
        let object = object(
            label,
            "",
            "web",
            &annotations,
            owner.as_ref(),
            &status("Pending", &json!({"waiting": {}}), ""),
        );
        let uid = api.create(object);
        for name in ["pods", "containers"] {
            std::fs::create_dir_all(api.logs().join(name)).unwrap();
        }
        let folder = api.logs().join("pods").join(format!("{NAMESPACE}_{label}_{uid}")).join("app");
        std::fs::create_dir_all(&folder).unwrap();
        let file = open(&folder.join("0.log"));
        let link = api.logs().join("containers").join(format!("{label}_{NAMESPACE}_app-{id}.log"));
        std::os::unix::fs::symlink(folder.join("0.log"), &link).unwrap();
        Self {
            label: label.to_owned(),
            next: 0,
            annotations,
            app: "web".to_owned(),
            owner,
            uid,
            id,
            folder,
            link,
            file,
            rotated: 0,
            first: 0,
        }
    }

    /// Whether a line of its current file is among these.
    pub(crate) fn is_open(&self, messages: &[String]) -> bool {
        (self.first..self.next).any(|number| messages.contains(&line(&self.label, number)))
    }

    /// The id of the container.
    pub(crate) fn container(&self) -> &str {
        &self.id
    }

    fn object(&self, phase: &str, state: &Json) -> Json {
        let id = format!("containerd://{}", self.id);
        let status = status(phase, state, &id);
        object(&self.label, &self.uid, &self.app, &self.annotations, self.owner.as_ref(), &status)
    }

    /// The container runs.
    pub(crate) fn run(&self, api: &impl PodApi) {
        api.change(
            &self.object("Running", &json!({"running": {"startedAt": "2026-01-01T00:00:01Z"}})),
        );
    }

    /// Other annotations from now on.
    pub(crate) fn annotate(&mut self, api: &impl PodApi, annotations: Json) {
        self.annotations = annotations;
        self.run(api);
    }

    /// The label `app` is another from now on.
    pub(crate) fn relabel(&mut self, api: &impl PodApi, app: &str) {
        app.clone_into(&mut self.app);
        self.run(api);
    }

    /// Appends lines as containerd does; every seventh one in parts.
    pub(crate) fn write(&mut self, count: usize) {
        let mut text = String::new();
        for number in self.next..self.next + count {
            let head = "2026-01-01T00:00:01.123456789Z stdout";
            let line = line(&self.label, number);
            if number % 7 == 3 {
                let (begin, end) = line.split_at(line.len() / 2);
                text += &format!("{head} P {begin}\n{head} F {end}\n");
            } else {
                text += &format!("{head} F {line}\n");
            }
        }
        self.next += count;
        self.file.write_all(text.as_bytes()).unwrap();
    }

    /// Rotates as the kubelet does: by renaming, the writer goes on in a new file. What was rotated before is compressed.
    pub(crate) fn rotate(&mut self) {
        self.rotated += 1;
        self.first = self.next;
        let path = self.folder.join("0.log");
        std::fs::rename(&path, self.rotated_file(self.rotated)).unwrap();
        self.file = open(&path);
        if self.rotated > 1 {
            let before = self.rotated_file(self.rotated - 1);
            let name = format!("{}.gz", before.display());
            let temporary = format!("{}.tmp", before.display());
            std::fs::write(&temporary, gzip(&std::fs::read(&before).unwrap())).unwrap();
            std::fs::rename(temporary, name).unwrap();
            std::fs::remove_file(before).unwrap();
        }
    }

    fn rotated_file(&self, number: usize) -> PathBuf {
        self.folder.join(format!("0.log.20260101-{number:06}"))
    }

    /// The container ends, the pod is deleted at the API, and then its logs.
    pub(crate) fn delete(self, api: &impl PodApi, remove_logs: bool) -> (String, usize) {
        let ended = json!({"terminated": {"exitCode": 0, "finishedAt": "2026-01-01T00:00:02Z"}});
        let object = self.object("Succeeded", &ended);
        api.change(&object);
        api.delete(&object);
        if remove_logs {
            self.remove_logs();
        }
        (self.label, self.next)
    }

    /// Deletes the logs.
    pub(crate) fn remove_logs(&self) {
        std::fs::remove_file(&self.link).unwrap();
        std::fs::remove_dir_all(self.folder.parent().unwrap()).unwrap();
    }
}

fn status(phase: &str, state: &Json, id: &str) -> Json {
    json!({
        "phase": phase, "podIP": "10.0.0.1",
        "containerStatuses": [{
            "name": "app", "containerID": id, "restartCount": 0, "image": "app:1", "state": state,
        }],
    })
}

fn object(
    label: &str,
    uid: &str,
    app: &str,
    annotations: &Json,
    owner: Option<&(String, String)>,
    status: &Json,
) -> Json {
    let owners: Vec<Json> = owner
        .iter()
        .map(|(name, uid)| {
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": uid, "controller": true})
        })
        .collect();
    json!({
        "metadata": {
            "name": label, "uid": uid, "namespace": NAMESPACE,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": app}, "annotations": annotations, "ownerReferences": owners,
        },
        "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "app:1"}]},
        "status": status,
    })
}

fn open(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}
