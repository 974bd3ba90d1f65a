//! One item of `providers`: what its watcher needs, and its rules.

use crate::appenders::Appender;
use crate::hints_settings::HintSettings;
use crate::jolokia::JolokiaProvider;
use crate::kubernetes::Metadata;
use crate::templates::Template;
use serde::Serialize;
use skidder_config::{Position, Secret};
use skidder_tls::TlsSettings;
use std::path::PathBuf;
use std::time::Duration;

/// Where containers are found, and the rules that make inputs of them.
#[derive(Debug)]
pub struct Provider {
    /// What its watcher needs.
    pub kind: ProviderKind,
    /// `cleanup_timeout`: how long inputs run on after the end of their container.
    pub cleanup_timeout: Duration,
    /// Where it stands in the configuration.
    pub position: Position,
    pub(crate) templates: Vec<Template>,
    pub(crate) hints: Option<HintSettings>,
    pub(crate) appenders: Vec<Appender>,
}

/// What the watcher of a provider needs.
#[derive(Debug)]
pub enum ProviderKind {
    /// `type: docker`.
    Docker(Box<DockerProvider>),
    /// `type: kubernetes`.
    Kubernetes(Box<KubernetesProvider>),
    /// `type: nomad`.
    Nomad(Box<NomadProvider>),
    /// `type: jolokia`.
    Jolokia(JolokiaProvider),
}

impl ProviderKind {
    /// Its name in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Docker(_) => "docker",
            Self::Kubernetes(_) => "kubernetes",
            Self::Nomad(_) => "nomad",
            Self::Jolokia(_) => "jolokia",
        }
    }
}

/// A provider `docker`.
#[derive(Debug)]
pub struct DockerProvider {
    /// `host`: where Docker listens.
    pub host: String,
    /// `ssl`; `None` if it is not there or turned off.
    pub tls: Option<TlsSettings>,
    pub(crate) dedot: bool,
}

/// A provider `kubernetes`.
#[derive(Debug)]
pub struct KubernetesProvider {
    /// `kube_config`; `None` for the service account of the pod.
    pub kube_config: Option<PathBuf>,
    /// `kube_client_options.qps`: requests a second.
    pub qps: f64,
    /// `kube_client_options.burst`: requests at once.
    pub burst: u32,
    /// `node`; `None` if the watcher has to find it.
    pub node: Option<String>,
    /// `scope`: one node or the cluster.
    pub scope: Scope,
    /// `namespace`; `None` for all.
    pub namespace: Option<String>,
    /// `resource`: which objects are followed.
    pub resource: Resource,
    /// `sync_period`: how long a list may take.
    pub sync_period: Duration,
    /// `use_kubeadm`: the name of the cluster is wanted, see [`Fact::Cluster`](crate::Fact::Cluster).
    pub use_kubeadm: bool,
    /// Nodes are to be followed, too: [`Fact::Node`](crate::Fact::Node).
    pub wants_nodes: bool,
    /// Namespaces are to be followed, too: [`Fact::Namespace`](crate::Fact::Namespace).
    pub wants_namespaces: bool,
    /// Replica sets are to be followed, too: [`Fact::ReplicaSet`](crate::Fact::ReplicaSet).
    pub wants_replica_sets: bool,
    /// Jobs are to be followed, too: [`Fact::Job`](crate::Fact::Job).
    pub wants_jobs: bool,
    /// `unique`: no objects are followed, but a lease; its holder reports [`Fact::Leader`](crate::Fact::Leader).
    pub unique: Option<LeaderLease>,
    pub(crate) metadata: Metadata,
}

/// A provider `nomad`.
#[derive(Debug)]
pub struct NomadProvider {
    /// `address`: the API of an agent.
    pub address: String,
    /// `ssl`; `None` if it is not there or turned off.
    pub tls: Option<TlsSettings>,
    /// `region`; `None` for that of the agent.
    pub region: Option<String>,
    /// `namespace`; `None` for the default one.
    pub namespace: Option<String>,
    /// `secret_id`: the token.
    pub token: Option<Secret>,
    /// `node`; `None` for that of the agent.
    pub node: Option<String>,
    /// `scope`: one node or the cluster.
    pub scope: Scope,
    /// `wait_time`: how long a query waits for a change; zero for the agent's own limit.
    pub wait: Duration,
    /// `allow_stale`: any server may answer, not only the leader.
    pub allows_stale: bool,
    /// `include_labels`: of the metadata of a task; empty for all.
    pub(crate) include: Vec<String>,
    /// `exclude_labels`.
    pub(crate) exclude: Vec<String>,
}

/// The lease of a provider with `unique`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderLease {
    /// `leader_lease`.
    pub name: String,
    /// `leader_leaseduration`.
    pub duration: Duration,
    /// `leader_renewdeadline`.
    pub renew_deadline: Duration,
    /// `leader_retryperiod`.
    pub retry_period: Duration,
}

/// Objects that a provider `kubernetes` follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Resource {
    /// Pods, and their containers.
    Pod,
    /// Nodes.
    Node,
    /// Services.
    Service,
}

/// How much of a cluster a provider follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// What is on one node.
    Node,
    /// All of it.
    Cluster,
}
