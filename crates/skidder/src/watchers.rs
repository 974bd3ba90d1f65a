//! The watchers of autodiscover: each provider has a thread that follows its API and reports what there is.

mod jolokia;
mod lease;
mod nomad;
mod trouble;

use crate::system::System;
use anyhow::{Context as _, Result, anyhow};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jolokia::{DISCOVERY, follow_jolokia};
use lease::{HeldLease, Holding, follow_lease};
use serde_json::{Value as Json, json};
use skidder_autodiscover::{
    DockerProvider, Fact, KubernetesProvider, LeaderLease, Provider, ProviderKind, Resource, Scope,
    SecretAnswer, ShortFact, Trouble, WantedSecret,
};
use skidder_lookups::background::Background;
use skidder_lookups::docker::containers::{Change as DockerChange, Containers, put_details};
use skidder_lookups::kubernetes::access::Access;
use skidder_lookups::kubernetes::first_lists::FirstLists;
use skidder_lookups::kubernetes::objects::{
    Api, Change, Objects, RequestLimit, group_path_of, path_of,
};
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};
use skidder_os::{Clock, Fs, Timestamp};
use skidder_tls::TlsClient;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// How long Docker may take for an answer.
const DOCKER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a secret that is not there, or cannot be read, is requested again.
const SECRET_PAUSE: Duration = Duration::from_secs(5);
/// Pause before Docker is tried again.
const DOCKER_PAUSE: Duration = Duration::from_secs(1);

/// What a watcher reports.
pub(crate) struct News {
    /// The number of the provider.
    pub(crate) provider: usize,
    pub(crate) what: What,
}

/// What happened to an object.
pub(crate) enum What {
    /// It is there, or is another than before.
    Seen(ShortFact),
    /// It has ended, or is gone; with the version of that, if there is one.
    Gone(String, Option<String>),
    /// These are all containers, or all objects of the provider's `resource`.
    Listed(Vec<String>),
    /// The answer about a secret that was requested.
    Secret(WantedSecret, SecretAnswer),
    /// A secret was missing or could not be read; it should be requested again if it is still named.
    SecretIsDue(WantedSecret),
    /// What the provider asks of this cannot be done now, or can be done again.
    Trouble(String, Option<Trouble>),
}

/// The watchers of all providers. They end when this is dropped.
pub(crate) struct Watchers {
    news: Receiver<News>,
    /// Where secrets are requested, by the number of the provider.
    secrets: BTreeMap<usize, UnboundedSender<WantedSecret>>,
    leases: Vec<HeldLease>,
    _threads: Vec<Background>,
}

impl Drop for Watchers {
    fn drop(&mut self) {
        // Followers of a lease release it when nothing is requested any more.
        self.secrets.clear();
        self.leases.iter().for_each(HeldLease::await_release);
    }
}

impl Watchers {
    /// Starts the watchers of all providers; containers that have ended since a time are of interest, too. `wake` is called when there is something to [`take`](Self::take).
    pub(crate) fn start(
        providers: &[Provider],
        system: &System,
        ended_since: Timestamp,
        wake: impl Fn() + Clone + Send + Sync + 'static,
    ) -> Result<Self> {
        let (send, news) = channel();
        let mut threads = Vec::new();
        let (mut secrets, mut leases) = (BTreeMap::new(), Vec::new());
        let since = jiff::Timestamp::from_nanosecond(i128::from(ended_since.0)).ok();
        let since = since.map(|at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        for (number, provider) in providers.iter().enumerate() {
            let report =
                Report { provider: number, send: send.clone(), wake: Arc::new(wake.clone()) };
            let name = provider.kind.name();
            let started = match &provider.kind {
                ProviderKind::Docker(docker) => {
                    let server = docker_server(docker, &system.fs)?;
                    let work = follow_docker(docker.host.clone(), server, since.clone(), report);
                    Background::start(name, work)
                }
                ProviderKind::Nomad(provider) => {
                    let allocations = nomad::allocations(provider, ended_since, &system.fs)?;
                    Background::start(name, nomad::follow(allocations, report))
                }
                ProviderKind::Kubernetes(kubernetes) => {
                    let path = kubernetes.kube_config.as_deref().map(|path| path.to_string_lossy());
                    let access = Access::find(path.as_deref(), &system.fs).map_err(|error| {
                        anyhow!(
                            "the provider `kubernetes` of autodiscover ({}): {error}",
                            provider.position
                        )
                    })?;
                    let wanted = Wanted::of(kubernetes);
                    let clock = Arc::clone(&system.clock);
                    let (ask, asked) = unbounded_channel();
                    secrets.insert(number, ask);
                    let (lease, holding) = HeldLease::new();
                    leases.push(lease);
                    let work = follow_kubernetes(access, wanted, clock, report, asked, holding);
                    Background::start(name, work)
                }
                ProviderKind::Jolokia(jolokia) => {
                    let (interfaces, clock) =
                        (jolokia.interfaces.clone(), Arc::clone(&system.clock));
                    Background::start(name, follow_jolokia(interfaces, DISCOVERY, clock, report))
                }
            };
            threads.push(started.context("no thread for a provider of autodiscover")?);
        }
        Ok(Self { news, secrets, leases, _threads: threads })
    }

    /// Requests the values of a secret, which are reported later.
    pub(crate) fn request(&self, secret: WantedSecret) {
        if let Some(provider) = self.secrets.get(&secret.provider) {
            // The program may be ending.
            drop(provider.send(secret));
        }
    }

    /// What was reported since the last call.
    pub(crate) fn take(&self) -> impl Iterator<Item = News> + use<'_> {
        self.news.try_iter()
    }
}

/// Where a watcher reports.
#[derive(Clone)]
struct Report {
    provider: usize,
    send: Sender<News>,
    wake: Arc<dyn Fn() + Send + Sync>,
}

impl Report {
    fn report(&self, what: What) {
        // The program may be ending.
        drop(self.send.send(News { provider: self.provider, what }));
        (self.wake)();
    }

    /// Sets or ends the trouble with `about`.
    fn trouble(&self, about: &str, trouble: Option<Trouble>) {
        self.report(What::Trouble(about.to_owned(), trouble));
    }
}

fn docker_server(docker: &DockerProvider, fs: &Arc<dyn Fs>) -> Result<HttpClient> {
    let tls = docker.tls.as_ref().map(|tls| TlsClient::new(tls, Arc::clone(fs))).transpose()?;
    HttpClient::parse(&docker.host, tls, DOCKER_TIMEOUT)
        .map_err(|error| anyhow!("`host` of the provider `docker` is `{}`; {error}", docker.host))
}

/// Follows the containers of an engine.
async fn follow_docker(host: String, server: HttpClient, since: Option<String>, report: Report) {
    let mut containers = Containers::new(server.clone(), true).with_ended_since(since);
    let mut is_broken = false;
    loop {
        match containers.next().await {
            Ok(Some(change)) => {
                if std::mem::replace(&mut is_broken, false) {
                    tracing::info!(host, "Docker is followed again");
                    report.trouble(&host, None);
                }
                report_docker(change, &server, &report).await;
                continue;
            }
            Ok(None) => {}
            Err(error) => {
                report.trouble(&host, Some(trouble::of_docker(&host, &error)));
                if std::mem::replace(&mut is_broken, true) {
                    tracing::debug!(%error, "Docker cannot be followed still");
                } else {
                    tracing::warn!(host, %error, "Docker cannot be followed; trying again");
                }
            }
        }
        tokio::time::sleep(DOCKER_PAUSE).await;
    }
}

async fn report_docker(change: DockerChange, server: &HttpClient, report: &Report) {
    match change {
        DockerChange::Listed(containers) => {
            let ids = containers.iter().filter_map(|one| one["Id"].as_str().map(str::to_owned));
            let ids: Vec<String> = ids.collect();
            for mut container in containers {
                add_details(&mut container, server).await;
                // One that has ended while skidder did not run is reported as such next.
                container["State"] = "running".into();
                report.report(What::Seen(Fact::Docker(container).into()));
            }
            report.report(What::Listed(ids));
        }
        DockerChange::Started(mut container) => {
            add_details(&mut container, server).await;
            // One that has ended by now is reported as such next.
            container["State"] = "running".into();
            report.report(What::Seen(Fact::Docker(container).into()));
        }
        DockerChange::Ended(id) => report.report(What::Gone(id, None)),
    }
}

/// Adds to an item of a list what only an inspection has, unless it is there.
async fn add_details(container: &mut Json, server: &HttpClient) {
    let Some(id) = container["Id"].as_str() else { return };
    if !container["HostConfig"]["LogConfig"].is_null() {
        return;
    }
    let path = format!("/containers/{}/json", percent_encoded(id));
    match server.json(HttpRequest::get(&path)).await {
        Ok(inspection) => put_details(container, inspection),
        // One that was removed meanwhile has no log either.
        Err(error) => {
            tracing::debug!(id, %error, "the log driver and the name of the host of a container are not known");
        }
    }
}

/// Makes a fact of an object of the API.
type MakeFact = fn(Json) -> Fact;

/// What a provider of Kubernetes follows.
struct Wanted {
    qps: f64,
    burst: u32,
    node: Option<String>,
    is_cluster: bool,
    namespace: Option<String>,
    resource: Resource,
    sync_period: Duration,
    nodes: bool,
    namespaces: bool,
    replica_sets: bool,
    jobs: bool,
    use_kubeadm: bool,
    /// Instead of everything else.
    lease: Option<LeaderLease>,
}

impl Wanted {
    fn of(provider: &KubernetesProvider) -> Self {
        Self {
            qps: provider.qps,
            burst: provider.burst,
            node: provider.node.clone(),
            is_cluster: provider.scope == Scope::Cluster,
            namespace: provider.namespace.clone(),
            resource: provider.resource,
            sync_period: provider.sync_period,
            nodes: provider.wants_nodes,
            namespaces: provider.wants_namespaces,
            replica_sets: provider.wants_replica_sets,
            jobs: provider.wants_jobs,
            use_kubeadm: provider.use_kubeadm,
            lease: provider.unique.clone(),
        }
    }
}

impl Wanted {
    /// The lists to follow, each with what its objects are. `node` is that of the pods.
    fn lists(&self, node: Option<&str>) -> Vec<(String, MakeFact)> {
        let of_node = node.filter(|_| !self.is_cluster);
        let namespace = self.namespace.as_deref();
        let named = of_node.map(|node| ("metadata.name", node));
        let mut followed: Vec<(String, MakeFact)> = Vec::new();
        if self.nodes || self.resource == Resource::Node {
            followed.push((path_of("nodes", None, named), Fact::Node));
        }
        if self.namespaces {
            let name = namespace.map(|name| ("metadata.name", name));
            followed.push((path_of("namespaces", None, name), Fact::Namespace));
        }
        if self.replica_sets {
            followed.push((group_path_of("apps", "replicasets", namespace), Fact::ReplicaSet));
        }
        if self.jobs {
            followed.push((group_path_of("batch", "jobs", namespace), Fact::Job));
        }
        match self.resource {
            Resource::Pod => {
                let node = of_node.map(|node| ("spec.nodeName", node));
                followed.push((path_of("pods", namespace, node), Fact::Pod));
            }
            Resource::Service => {
                followed.push((path_of("services", namespace, None), Fact::Service));
            }
            Resource::Node => {}
        }
        followed
    }
}

async fn follow_kubernetes(
    access: Access,
    wanted: Wanted,
    clock: Arc<dyn Clock>,
    report: Report,
    mut secrets: UnboundedReceiver<WantedSecret>,
    holding: Holding,
) {
    let api = Api::new(access, RequestLimit::new(wanted.qps, wanted.burst));
    let name = api.cluster_name(wanted.use_kubeadm).await;
    let cluster = json!({ "name": name, "url": api.access().url });
    report.report(What::Seen(Fact::Cluster(cluster).into()));
    if let Some(lease) = wanted.lease {
        return follow_lease(api, lease, clock, &report, secrets, &holding).await;
    }
    let node = match (&wanted.node, wanted.is_cluster) {
        (Some(node), _) => Some(node.clone()),
        (None, false) => Some(api.own_node("`node` of the provider `kubernetes`").await),
        (None, true) => None,
    };
    let mut tasks = JoinSet::new();
    if let Some(node) = node.clone().filter(|_| !wanted.is_cluster) {
        tasks.spawn(api.clone().check_node(node, "`node` of the provider `kubernetes`"));
    }
    follow_lists(&api, &wanted, node.as_deref(), &report, &mut tasks);
    let mut refused = BTreeSet::new();
    while let Some(secret) = secrets.recv().await {
        let path = secret_path(&secret);
        match api.json(&path).await {
            Ok(object) => {
                refused.remove(&secret);
                report.report(What::Secret(secret, SecretAnswer::Values(values_of(&object))));
                continue;
            }
            Err(HttpError::Status { status, .. }) if status.as_u16() == 404 => {
                report.report(What::Secret(secret.clone(), SecretAnswer::Missing));
            }
            // Without an answer, what names it goes on to wait for it.
            Err(error) => {
                if is_forbidden(&error) {
                    report.report(What::Secret(secret.clone(), SecretAnswer::Refused));
                }
                if refused.insert(secret.clone()) {
                    tracing::warn!(path, %error, "a secret that a template names cannot be read; trying again");
                } else {
                    tracing::debug!(path, %error, "a secret that a template names cannot be read still");
                }
            }
        }
        let report = report.clone();
        tasks.spawn(async move {
            tokio::time::sleep(SECRET_PAUSE).await;
            report.report(What::SecretIsDue(secret));
        });
        while tasks.try_join_next().is_some() {}
    }
    // The program ends.
}

/// Follows the lists of a provider. What is around its objects comes first.
fn follow_lists(
    api: &Api,
    wanted: &Wanted,
    node: Option<&str>,
    report: &Report,
    tasks: &mut JoinSet<()>,
) {
    let (around, mut main) = (FirstLists::default(), None);
    for (path, fact) in wanted.lists(node) {
        let make = move |object| fact(object).into();
        let is_main = matches!(
            (fact(Json::Null), wanted.resource),
            (Fact::Pod(_), Resource::Pod)
                | (Fact::Service(_), Resource::Service)
                | (Fact::Node(_), Resource::Node)
        );
        let what = trouble::kind_of(&path);
        let right = format!("list and watch {what}");
        let trouble = trouble::of_kubernetes(what, &right, is_main, report.clone());
        let objects = Objects::new(api.clone(), path, wanted.sync_period, make).reporting(trouble);
        if is_main {
            main = Some(objects);
        } else {
            tasks.spawn(follow_objects(objects.awaited(around.add()), false, report.clone()));
        }
    }
    if let Some(objects) = main {
        let report = report.clone();
        tasks.spawn(async move {
            around.wait("the objects of autodiscover").await;
            follow_objects(objects, true, report).await;
        });
    }
}

/// RBAC refuses a request.
fn is_forbidden(error: &HttpError) -> bool {
    matches!(error, HttpError::Status { status, .. } if status.as_u16() == 403)
}

fn secret_path(secret: &WantedSecret) -> String {
    let (namespace, name) = (percent_encoded(&secret.namespace), percent_encoded(&secret.name));
    format!("/api/v1/namespaces/{namespace}/secrets/{name}")
}

/// The values of a secret, which are in base64.
fn values_of(object: &Json) -> BTreeMap<String, String> {
    let data = object["data"].as_object().into_iter().flatten();
    let values = data.filter_map(|(key, value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        Some((key.clone(), String::from_utf8(bytes).ok()?))
    });
    values.collect()
}

async fn follow_objects(mut objects: Objects<ShortFact>, is_main: bool, report: Report) {
    loop {
        match objects.next().await {
            Change::Seen(fact) => report.report(What::Seen(fact)),
            Change::Gone(object) => {
                let text = |value: &Json| value.as_str().map(str::to_owned);
                let meta = &object["metadata"];
                if let Some(uid) = text(&meta["uid"]) {
                    report.report(What::Gone(uid, text(&meta["resourceVersion"])));
                }
            }
            Change::Listed(uids) if is_main => report.report(What::Listed(uids)),
            Change::Listed(_) => {}
        }
    }
}
