//! The kubelet and the runtime of one node: logs with numbered lines, links to them, and what the API server reports.

use super::{Cluster, NODE};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use skidder_os::{Clock, Monotonic, SystemClock};
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long logs stay after the end of their pod.
const LOGS_STAY: Duration = Duration::from_secs(10);

/// Text of a line before its number: about as long as an access log.
const TEXT: &str =
    "10.1.2.3 - - \"GET /api/v1/orders/4711?expand=items HTTP/1.1\" 200 5316 \"-\" \"curl/8.5.0\"";

/// Starts and ends pods. Lines of all pods have one sequence of numbers.
#[derive(Debug)]
pub struct Kubelet {
    cluster: Cluster,
    folder: PathBuf,
    clock: SystemClock,
    next_pod: u64,
    next_line: u64,
    /// Logs that are to be deleted.
    ended: VecDeque<(Monotonic, PathBuf, PathBuf)>,
}

/// A pod with one container, whose log is written.
#[derive(Debug)]
pub struct Writer {
    number: u64,
    file: File,
    folder: PathBuf,
    link: PathBuf,
}

impl Kubelet {
    /// With `pods` and `containers` in `folder`, as in `/var/log`.
    pub fn new(cluster: Cluster, folder: &Path) -> Result<Self> {
        for name in ["pods", "containers"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let (folder, clock) = (folder.to_owned(), SystemClock::new());
        Ok(Self { cluster, folder, clock, next_pod: 0, next_line: 0, ended: VecDeque::new() })
    }

    /// How many lines were written so far.
    pub fn lines(&self) -> u64 {
        self.next_line
    }

    /// A pod of another node, of which nothing is here.
    pub fn elsewhere(&mut self) {
        let number = self.next_pod;
        self.next_pod += 1;
        self.cluster
            .change("ADDED", object(number, &format!("node-{}", 2 + number % 9), "Running"));
    }

    /// A pod of this node that runs and writes nothing, not even a file.
    pub fn silent(&mut self) {
        let number = self.next_pod;
        self.next_pod += 1;
        self.cluster.change("ADDED", object(number, NODE, "Running"));
    }

    /// Starts a pod with some lines: its log is there before the API server knows its container.
    pub fn start(&mut self, lines: u64) -> Result<Writer> {
        let number = self.next_pod;
        self.next_pod += 1;
        self.cluster.change("ADDED", object(number, NODE, "Pending"));
        let pod = self.folder.join("pods").join(format!("shop_{}_{}", name(number), uid(number)));
        let folder = pod.join("app");
        std::fs::create_dir_all(&folder)?;
        let log = folder.join("0.log");
        let file = OpenOptions::new().create(true).append(true).open(&log)?;
        let link = format!("{}_shop_app-{}.log", name(number), id(number));
        let link = self.folder.join("containers").join(link);
        std::os::unix::fs::symlink(&log, &link).context("cannot link a log")?;
        let mut writer = Writer { number, file, folder: pod, link };
        self.write(&mut writer, lines)?;
        self.cluster.change("MODIFIED", object(number, NODE, "Running"));
        Ok(writer)
    }

    /// Appends numbered lines as containerd does.
    pub fn write(&mut self, writer: &mut Writer, lines: u64) -> Result<()> {
        let mut text = String::new();
        for number in self.next_line..self.next_line + lines {
            text += &format!("2026-01-01T00:00:01.123456789Z stdout F {TEXT} seq={number:010}\n");
        }
        self.next_line += lines;
        writer.file.write_all(text.as_bytes()).context("cannot write a log")
    }

    /// Ends a pod with some last lines. It is deleted at the API server; its logs stay for a while.
    pub fn end(&mut self, mut writer: Writer, lines: u64) -> Result<()> {
        self.write(&mut writer, lines)?;
        let ended = object(writer.number, NODE, "Succeeded");
        self.cluster.change("MODIFIED", ended.clone());
        self.cluster.change("DELETED", ended);
        let due = self.clock.monotonic() + LOGS_STAY;
        self.ended.push_back((due, writer.link, writer.folder));
        Ok(())
    }

    /// Deletes the logs whose time has come.
    pub fn clean(&mut self) -> Result<()> {
        let now = self.clock.monotonic();
        while let Some((_, link, folder)) = self.ended.pop_front_if(|(due, _, _)| *due <= now) {
            std::fs::remove_file(link)?;
            std::fs::remove_dir_all(folder)?;
        }
        Ok(())
    }
}

fn name(number: u64) -> String {
    format!("orders-7c9d8b6f5d-{number:05}")
}

fn uid(number: u64) -> String {
    format!("6f1d2c3b-0000-4000-8000-{number:012x}")
}

fn id(number: u64) -> String {
    // Like a hash: the beginnings differ, too.
    format!("{:016x}{number:048x}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A pod about as large as those of real clusters.
fn object(number: u64, node: &str, phase: &str) -> Value {
    let state = match phase {
        "Pending" => json!({"waiting": {"reason": "ContainerCreating"}}),
        "Running" => json!({"running": {"startedAt": "2026-01-01T00:00:01Z"}}),
        _ => json!({"terminated": {
            "exitCode": 0, "reason": "Completed",
            "startedAt": "2026-01-01T00:00:01Z", "finishedAt": "2026-01-01T00:00:02Z",
        }}),
    };
    let id =
        if phase == "Pending" { String::new() } else { format!("containerd://{}", id(number)) };
    let environment: Vec<Value> = (0..12)
        .map(|one| json!({"name": format!("SETTING_{one}"), "value": format!("value of {one}")}))
        .collect();
    let conditions: Vec<Value> = ["Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .iter()
        .map(|kind| {
            json!({"type": kind, "status": "True", "lastProbeTime": null,
                   "lastTransitionTime": "2026-01-01T00:00:01Z"})
        })
        .collect();
    json!({
        "metadata": {
            "name": name(number), "generateName": "orders-7c9d8b6f5d-", "uid": uid(number),
            "namespace": "shop", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "app.kubernetes.io/name": "orders", "app.kubernetes.io/instance": "orders-eu",
                "app.kubernetes.io/version": "1.14.2", "pod-template-hash": "7c9d8b6f5d",
            },
            "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9102"},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "orders-7c9d8b6f5d",
                "uid": "0b8f7a52-1111-4222-8333-444455556666", "controller": true,
                "blockOwnerDeletion": true,
            }],
            "managedFields": managed_fields(),
        },
        "spec": {
            "nodeName": node, "serviceAccountName": "orders", "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
            "containers": [{
                "name": "app", "image": "registry.example.com/shop/orders:1.14.2",
                "imagePullPolicy": "IfNotPresent", "env": environment,
                "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                "resources": {"limits": {"memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"},
                                   "periodSeconds": 10, "failureThreshold": 3},
                "volumeMounts": [{"name": "token", "readOnly": true,
                                  "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            }],
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
            "volumes": [{"name": "token", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            ]}}],
        },
        "status": {
            "phase": phase, "podIP": "10.0.0.1", "hostIP": "192.0.2.10", "qosClass": "Burstable",
            "startTime": "2026-01-01T00:00:00Z", "conditions": conditions,
            "containerStatuses": [{
                "name": "app", "containerID": id, "restartCount": 0, "ready": true, "started": true,
                "image": "registry.example.com/shop/orders:1.14.2",
                "imageID": "registry.example.com/shop/orders@sha256:0000000000000000",
                "state": state, "lastState": {},
            }],
        },
    })
}

/// Which client set which field: a third of a real pod, and useless to a log shipper.
fn managed_fields() -> Value {
    let fields: serde_json::Map<String, Value> = (0..20)
        .map(|one| (format!("f:setting{one}"), json!({".": {}, "f:name": {}, "f:value": {}})))
        .collect();
    json!([
        {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1",
         "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:metadata": {"f:labels": {".": {}}}, "f:spec": {"f:containers": fields}}},
        {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "subresource": "status",
         "time": "2026-01-01T00:00:01Z", "fieldsType": "FieldsV1",
         "fieldsV1": {"f:status": {"f:conditions": {}, "f:containerStatuses": {}, "f:phase": {}}}},
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_found_through_their_links_and_stay_after_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path()).unwrap();
        let mut kubelet = Kubelet::new(cluster, folder.path()).unwrap();
        let writer = kubelet.start(2).unwrap();
        let link = writer.link.clone();
        kubelet.end(writer, 1).unwrap();
        kubelet.clean().unwrap();
        let text = std::fs::read_to_string(&link).unwrap();
        assert_eq!(text.lines().count(), 3);
        assert!(text.contains("stdout F ") && text.contains("seq=0000000002"), "{text}");
        assert_eq!(kubelet.lines(), 3);
        kubelet.ended[0].0 = Monotonic::default();
        kubelet.clean().unwrap();
        assert!(
            std::fs::symlink_metadata(&link).is_err()
                && std::fs::read_dir(folder.path().join("pods")).unwrap().next().is_none()
        );
    }
}
