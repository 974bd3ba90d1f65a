//! A cluster with a real API server, and programs that use it with accounts of their own.

use crate::kubelet::{NAMESPACE, NODE, PodApi};
use serde_json::{Value as Json, json};
use skidder_testkit::servers::Server;
use std::io::copy;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the bearer token of the administrator is.
const ADMIN: &str = "secret";
/// Makes a folder `/var/log` and another one that of the account, and runs a command.
const IN_POD: &str = "mount --bind \"$1\" /var/log && mount -t tmpfs none /run \
                      && mkdir -p /run/secrets/kubernetes.io \
                      && ln -s \"$2\" /run/secrets/kubernetes.io/serviceaccount && shift 2 && exec \"$@\"";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// An API server with the namespace of the pods.
pub(crate) struct RealCluster {
    pub(crate) server: Server,
    folder: PathBuf,
    way: Way,
    accounts: AtomicUsize,
}

impl RealCluster {
    /// `folder` gets the logs and the kubeconfigs.
    pub(crate) fn start(folder: &Path, settings: &str) -> Self {
        let server = Server::own_kube_apiserver(settings).unwrap();
        let way = Way::to(server.port());
        let accounts = AtomicUsize::new(0);
        let cluster = Self { server, folder: folder.to_owned(), way, accounts };
        cluster.post("/api/v1/namespaces", &json!({"metadata": {"name": NAMESPACE}}));
        cluster
    }

    /// Answer of a request of the administrator, which must succeed.
    fn request(&self, method: &'static str, path: &str, kind: &str, body: &str) -> String {
        let token = format!("Bearer {ADMIN}");
        let headers = [("authorization", &*token), ("content-type", kind)];
        let (status, answer) = self.server.text(method, path, &headers, body).unwrap();
        assert!(status < 300, "{method} {path} {body}: {status} {answer}");
        answer
    }

    pub(crate) fn get(&self, path: &str) -> Json {
        serde_json::from_str(&self.request("GET", path, "", "")).unwrap()
    }

    pub(crate) fn post(&self, path: &str, object: &Json) -> Json {
        let answer = self.request("POST", path, "application/json", &object.to_string());
        serde_json::from_str(&answer).unwrap()
    }

    fn patch(&self, path: &str, object: &Json) {
        self.request("PATCH", path, "application/merge-patch+json", &object.to_string());
    }

    fn remove(&self, path: &str) {
        self.request("DELETE", path, "application/json", "");
    }

    /// Creates everything of `packaging/kubernetes/skidder.yaml`; returns the kubeconfig of its account.
    pub(crate) fn manifest(&self) -> PathBuf {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kubernetes/skidder.yaml");
        let text = std::fs::read_to_string(root).unwrap();
        for document in text.split("\n---\n") {
            let kind = document.lines().find_map(|line| line.strip_prefix("kind: ")).unwrap();
            let path = match kind {
                "Namespace" => "/api/v1/namespaces".to_owned(),
                "ServiceAccount" => "/api/v1/namespaces/skidder/serviceaccounts".to_owned(),
                "ConfigMap" => "/api/v1/namespaces/skidder/configmaps".to_owned(),
                "ClusterRole" => format!("{RBAC}/clusterroles"),
                "ClusterRoleBinding" => format!("{RBAC}/clusterrolebindings"),
                "DaemonSet" => "/apis/apps/v1/namespaces/skidder/daemonsets".to_owned(),
                _ => panic!("no path of `{kind}`"),
            };
            self.request("POST", &path, "application/yaml", document);
        }
        self.kubeconfig("skidder", "skidder")
    }

    /// An account without rights; returns its name and its kubeconfig.
    pub(crate) fn account(&self) -> (String, PathBuf) {
        let name = format!("account-{}", self.accounts.fetch_add(1, Ordering::Relaxed));
        let path = "/api/v1/namespaces/default/serviceaccounts";
        self.post(path, &json!({"metadata": {"name": name}}));
        let config = self.kubeconfig("default", &name);
        (name, config)
    }

    /// Gives an account verbs on resources, as in `/leases` or `apps/replicasets`; in all namespaces.
    pub(crate) fn allow(&self, account: &str, rule: &str, verbs: &[&str]) {
        let name = format!("rule-{}", self.accounts.fetch_add(1, Ordering::Relaxed));
        let (group, resource) = rule.split_once('/').unwrap();
        let rules = json!([{"apiGroups": [group], "resources": [resource], "verbs": verbs}]);
        let role = json!({"metadata": {"name": name}, "rules": rules});
        self.post(&format!("{RBAC}/clusterroles"), &role);
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
        });
        self.post(&format!("{RBAC}/clusterrolebindings"), &binding);
    }

    /// A token that the API server issues for an account, as a file in a folder like that of a pod.
    fn token(&self, namespace: &str, account: &str) -> PathBuf {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let issued = self.post(&path, &json!({"spec": {"expirationSeconds": 3600}}));
        let folder = self.folder.join("accounts").join(account);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("token"), issued["status"]["token"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join("namespace"), namespace).unwrap();
        std::fs::copy(self.server.certificate("ca.crt").unwrap(), folder.join("ca.crt")).unwrap();
        folder
    }

    /// A kubeconfig for an account. Its way to the API server is [`Way`].
    fn kubeconfig(&self, namespace: &str, account: &str) -> PathBuf {
        let folder = self.token(namespace, account);
        let url = format!("https://localhost:{}", self.way.port);
        let authority = folder.join("ca.crt");
        let config = json!({
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "clusters": [{"name": "test", "cluster": {"server": url, "certificate-authority": authority}}],
            "users": [{"name": "test", "user": {"tokenFile": folder.join("token")}}],
        });
        let path = folder.join("kubeconfig");
        std::fs::write(&path, config.to_string()).unwrap();
        path
    }

    /// The command in a pod of the manifest: with its account, and the logs in `/var/log`.
    pub(crate) fn in_pod(&self, command: &Command) -> Command {
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "sh", "-c", IN_POD, "sh"]);
        inside.arg(&self.folder).arg(self.folder.join("accounts/skidder"));
        inside.arg(command.get_program()).args(command.get_args());
        inside.current_dir(command.get_current_dir().unwrap());
        inside.env("NODE_NAME", NODE).env("KUBERNETES_SERVICE_HOST", "localhost");
        inside.env("KUBERNETES_SERVICE_PORT", self.way.port.to_string());
        inside
    }

    /// Breaks the connections of all programs.
    pub(crate) fn break_connections(&self) {
        self.way.cut();
    }

    /// How many lists of pods were requested since the API server started.
    pub(crate) fn pod_lists(&self) -> usize {
        let metrics = self.request("GET", "/metrics", "", "");
        let lines = metrics.lines().filter(|line| {
            line.starts_with("apiserver_request_total{")
                && line.contains("resource=\"pods\"")
                && line.contains("verb=\"LIST\"")
                && line.contains("code=\"200\"")
        });
        lines.map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum()
    }

    /// Removes all history from etcd.
    pub(crate) fn compact(&self) {
        let version = self.get("/api/v1/namespaces")["metadata"]["resourceVersion"].clone();
        let body = json!({"revision": version, "physical": true}).to_string();
        let url = format!("http://127.0.0.1:{}", self.server.port() + 1);
        let etcd = Server::at_url(&url).unwrap();
        let (status, answer) = etcd.text("POST", "/v3/kv/compaction", &[], &body).unwrap();
        assert_eq!(status, 200, "{answer}");
    }

    /// A secret of a namespace; `data` is in base64.
    pub(crate) fn secret(&self, namespace: &str, name: &str, data: &Json) {
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        self.post(&path, &json!({"metadata": {"name": name}, "data": data}));
    }
}

fn manifest_text() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(root.join("../../packaging/kubernetes/skidder.yaml")).unwrap()
}

/// The configuration in the manifest.
pub(crate) fn manifest_configuration() -> String {
    let text = manifest_text();
    let (_, rest) = text.split_once("  filebeat.yml: |\n").unwrap();
    let (text, _) = rest.split_once("\n---\n").unwrap();
    let lines: Vec<&str> =
        text.lines().map(|line| line.strip_prefix("    ").unwrap_or(line)).collect();
    lines.join("\n") + "\n"
}

fn path_of(pod: &Json) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{}", pod["metadata"]["name"].as_str().unwrap())
}

impl PodApi for RealCluster {
    fn logs(&self) -> &Path {
        &self.folder
    }

    fn create(&self, mut pod: Json) -> String {
        let status = pod["status"].take();
        for unset in ["uid", "creationTimestamp"] {
            pod["metadata"].as_object_mut().unwrap().remove(unset);
        }
        let created = self.post(&format!("/api/v1/namespaces/{NAMESPACE}/pods"), &pod);
        self.patch(&format!("{}/status", path_of(&pod)), &json!({ "status": status }));
        assert_eq!(created["spec"]["nodeName"], NODE);
        created["metadata"]["uid"].as_str().unwrap().to_owned()
    }

    fn change(&self, pod: &Json) {
        let (path, meta) = (path_of(pod), &pod["metadata"]);
        let meta = json!({"labels": meta["labels"], "annotations": meta["annotations"]});
        self.patch(&path, &json!({ "metadata": meta }));
        self.patch(&format!("{path}/status"), &json!({ "status": pod["status"] }));
    }

    fn delete(&self, pod: &Json) {
        self.remove(&format!("{}?gracePeriodSeconds=0", path_of(pod)));
    }
}

/// The way from programs to the API server, which can break.
struct Way {
    port: u16,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Way {
    fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let open = Arc::new(Mutex::new(Vec::new()));
        let way = Self { port, open: Arc::clone(&open) };
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is stopped refuses.
                let Ok(server) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        drop(copy(&mut from, &mut to));
                        drop((to.shutdown(Shutdown::Both), from.shutdown(Shutdown::Both)));
                    });
                }
                open.lock().unwrap().extend([client, server]);
            }
        });
        way
    }

    fn cut(&self) {
        for stream in self.open.lock().unwrap().drain(..) {
            // It may have ended.
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}
