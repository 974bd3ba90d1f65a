//! The work of VictoriaMetrics' log-collectors-benchmark on one node: ten pods write small JSON objects, events get what
//! a real API server knows of their pod and the fields of the object, bodies are compressed at level 1.

use super::{Goal, row, rows_or_why, spread};
use crate::cluster::NODE;
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use skidder_workload::Kind;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const GOAL: Goal = (
    "y6",
    "CPU of a JSON log with pod metadata from a real API server, bodies at level 1",
    1.9,
    1.3,
    " µs",
);

/// Pods of the public benchmark.
const PODS: u64 = 10;

/// A label of the pods.
const APP: &str = "log-source";

/// The row y6.
pub fn kubernetes(stage: &Stage) -> Vec<Row> {
    rows_or_why(&[GOAL], measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let folder = stage.kube_apiserver.as_ref();
    let folder = folder.context("`--kube-apiserver` is not given")?;
    let api = Api::new(folder)?;
    let logs = tempfile::Builder::new().prefix("node-").tempdir_in(&stage.work)?;
    let files = stage.several_of_kind(Kind::Collectors, PODS, stage.lines)?;
    let namespace = api.pods(logs.path(), &files)?;
    let mut costs = Vec::new();
    for run in 0..stage.runs {
        costs.push(ship(stage, &api, logs.path())?);
        measure::note(&format!("y6 {}: {costs:?}", run + 1));
    }
    api.request("DELETE", &format!("/api/v1/namespaces/{namespace}"), "", &Value::Null)?;
    let summary = summarize(&costs).context("no run was made")?;
    let detail = format!("{PODS} pods, {} logs; {}", lines(stage), spread("µs:", summary));
    Ok(vec![row(&GOAL, summary.median, detail)])
}

fn lines(stage: &Stage) -> u64 {
    stage.lines / PODS * PODS
}

/// Microseconds of CPU of a log, of one run.
fn ship(stage: &Stage, api: &Api, logs: &Path) -> Result<f64> {
    let sink = Sink::start(Behaviour { keep_bodies: 1, ..Behaviour::default() })?;
    let kubeconfig = api.folder.join("kubeconfig");
    // Waiting makes every event have the metadata.
    let home = stage.home_of(&format!(
        "filebeat.inputs:\n- type: filestream\n  id: kubernetes-container-logs\n  \
         paths: [/var/log/containers/*.log]\n  parsers: [{{container: ~}}]\n  \
         prospector.scanner.symlinks: true\n  processors:\n  - add_kubernetes_metadata:\n      \
         node: {NODE}\n      kube_config: '{}'\n      wait_for_metadata: true\n      \
         wait_for_metadata_retry_period: 100ms\n  \
         - decode_json_fields: {{fields: [message], target: ''}}\n\
         output.elasticsearch: {{hosts: ['{}'], compression_level: 1}}\n",
        kubeconfig.display(),
        sink.url()
    ))?;
    let program = home.command(&stage.skidder);
    // The paths of the kubelet are known only in `/var/log`.
    let mut command = Command::new("unshare");
    command.args([
        "--mount",
        "sh",
        "-c",
        "mount --bind \"$1\" /var/log && shift && exec \"$@\"",
        "sh",
    ]);
    command.arg(logs).arg(program.get_program()).args(program.get_args()).arg("--once");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let cost = measure::run(&mut command, &home.log())?;
    let (came, lines) = (sink.count().documents, lines(stage));
    ensure!(came == lines, "{came} of {lines} logs came: the run counts for nothing");
    let bodies = sink.take_bodies();
    let text = String::from_utf8_lossy(&bodies.first().context("no body was kept")?.text);
    for part in [&format!("\"app\":\"{APP}\""), "\"sequence_id\":", "\"namespace_labels\":"] {
        ensure!(
            text.contains(part),
            "events have no `{part}`: {}",
            text.lines().nth(1).unwrap_or("")
        );
    }
    Ok(cost.cpu.as_secs_f64() * 1e6 / lines as f64)
}

/// A server of `tests/servers/kube-apiserver.sh`, reached through curl.
struct Api {
    folder: PathBuf,
    url: String,
}

impl Api {
    fn new(folder: &Path) -> Result<Self> {
        let url = fs::read_to_string(folder.join("url"));
        let url = url.with_context(|| format!("no server runs in `{}`", folder.display()))?;
        Ok(Self { folder: folder.to_owned(), url: url.trim().to_owned() })
    }

    fn request(&self, method: &str, path: &str, kind: &str, body: &Value) -> Result<Value> {
        let mut command = Command::new("curl");
        command.args(["-sS", "--fail-with-body", "-X", method]);
        command.arg("--cacert").arg(self.folder.join("certs/ca.crt"));
        command.args(["-H", "authorization: Bearer secret"]);
        if !body.is_null() {
            command.args(["-H", &format!("content-type: {kind}"), "-d", &body.to_string()]);
        }
        let output = command.arg(format!("{}{path}", self.url)).stdin(Stdio::null()).output();
        let output = output.context("cannot start `curl`")?;
        let answer = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{method} {path}: {answer}");
        Ok(serde_json::from_str(&answer)?)
    }

    /// Creates pods whose logs are these files; returns their namespace.
    fn pods(&self, logs: &Path, files: &[PathBuf]) -> Result<String> {
        let json = "application/json";
        let namespace = json!({"metadata": {"generateName": "bench-"}});
        let namespace = self.request("POST", "/api/v1/namespaces", json, &namespace)?;
        let namespace = namespace["metadata"]["name"].as_str().context("it has no name")?;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let containers = logs.join("containers");
        fs::create_dir_all(&containers)?;
        for (number, file) in files.iter().enumerate() {
            let name = format!("log-source-7c9d8b6f5d-{number:05}");
            let labels = json!({"app": APP, "pod-template-hash": "7c9d8b6f5d"});
            let pod = json!({
                "metadata": {"name": name, "labels": labels},
                "spec": {"nodeName": NODE, "containers": [{"name": "app", "image": "log-source:1"}]},
            });
            self.request("POST", &path, json, &pod)?;
            let id = format!("{number:064x}");
            let status = json!({"status": {
                "phase": "Running", "podIP": "10.0.0.1",
                "containerStatuses": [{
                    "name": "app", "containerID": format!("containerd://{id}"), "restartCount": 0,
                    "image": "log-source:1", "state": {"running": {}},
                }],
            }});
            let merge = "application/merge-patch+json";
            self.request("PATCH", &format!("{path}/{name}/status"), merge, &status)?;
            let link = containers.join(format!("{name}_{namespace}_app-{id}.log"));
            std::os::unix::fs::symlink(file, link)?;
        }
        Ok(namespace.to_owned())
    }
}
