//! The objects of one kind at the API server: their list, then each change.
//!
//! A watch that ends, breaks or is refused is opened again where it was, with the version of the last change or bookmark,
//! and after errors with a growing pause. A version that the server no longer knows (410) begins with a new list, and so
//! do watches that fail again and again: a role may list and not watch, or a proxy between end every watch.

use super::access::Access;
use super::first_lists::FirstList;
use super::list;
pub use super::request_limit::RequestLimit;
use serde_json::{Map, Value as Json};
use skidder_net::{AnswerStream, HttpError, percent_encoded};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a node is looked up for the first time.
const NODE_DELAY: Duration = Duration::from_secs(1);
/// Pause before the API is asked for a node again.
const NODE_PAUSE: Duration = Duration::from_secs(10);

/// Objects of one answer of a list.
const PAGE: usize = 500;

/// The server ends a watch after this time. It sends a bookmark a minute.
const WATCH_SECONDS: u64 = 3600;

/// A server that is silent for longer is gone; the watch is opened again where it was.
const SILENCE_MAX: Duration = Duration::from_secs(330);

/// Pause after the first error, and the longest one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// From so many watches on that fail one after the other, the list is read again each time.
const FAILURES_MAX: u32 = 3;

/// A watch that ends earlier and has brought nothing, not even the bookmark of a minute, has failed.
const SHORT: Duration = Duration::from_mins(1);

/// One that ends as early as this is opened again after a pause.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The API server, with the limit on requests to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Api {
    access: Access,
    limit: Arc<RequestLimit>,
}

impl Api {
    /// The server of `access`.
    pub fn new(access: Access, limit: RequestLimit) -> Self {
        Self { access, limit: Arc::new(limit) }
    }

    /// The way to it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Requests an object or a list, when its turn comes.
    pub async fn json(&self, path: &str) -> Result<Json, HttpError> {
        self.limit.wait().await;
        self.access.json(path).await
    }

    /// See [`Access::create`], when its turn comes.
    pub async fn create(&self, path: &str, object: &Json) -> Result<Json, HttpError> {
        self.limit.wait().await;
        self.access.create(path, object).await
    }

    /// See [`Access::replace`], when its turn comes.
    pub async fn replace(&self, path: &str, object: &Json) -> Result<Json, HttpError> {
        self.limit.wait().await;
        self.access.replace(path, object).await
    }

    /// Requests a page of a list, and makes something of each of its items, when its turn comes.
    async fn page<T>(&self, path: &str, make: &list::Make<T>) -> Result<list::Page<T>, HttpError> {
        self.limit.wait().await;
        Ok(list::read(&self.access.bytes(path).await?, make)?)
    }

    async fn open(&self, path: &str) -> Result<AnswerStream, HttpError> {
        self.limit.wait().await;
        self.access.open(path).await
    }

    /// The name of the cluster: what kubeadm has written down, if that may be read, or that of the kubeconfig.
    pub async fn cluster_name(&self, use_kubeadm: bool) -> Option<String> {
        let name = self.access.cluster.clone();
        if !use_kubeadm {
            return name;
        }
        match self.json("/api/v1/namespaces/kube-system/configmaps/kubeadm-config").await {
            Ok(map) => {
                let text = map["data"]["ClusterConfiguration"].as_str().unwrap_or_default();
                let found = text.lines().find_map(|line| line.strip_prefix("clusterName:"));
                found.map(|name| name.trim().trim_matches('"').to_owned()).or(name)
            }
            Err(error) => {
                tracing::debug!(%error, "there is no kubeadm-config");
                name
            }
        }
    }

    /// The name of the node that a pod of its own name runs on: `NODE_NAME`, or that of the pod that this program is in,
    /// or the name of the host. `setting` names the setting to use instead, for the log.
    pub async fn own_node(&self, setting: &str) -> String {
        if let Ok(node) = std::env::var("NODE_NAME") {
            return node;
        }
        if let (Some(namespace), Ok(pod)) = (&self.access.own_namespace, std::env::var("HOSTNAME"))
        {
            let path = format!(
                "/api/v1/namespaces/{}/pods/{}",
                percent_encoded(namespace),
                percent_encoded(&pod)
            );
            match self.json(&path).await {
                Ok(pod) => {
                    if let Some(node) = pod["spec"]["nodeName"].as_str() {
                        return node.to_owned();
                    }
                }
                Err(error) => {
                    tracing::warn!(pod, %error, "the node of this pod is not known; set {setting}");
                }
            }
        }
        let hostname = rustix::system::uname().nodename().to_string_lossy().into_owned();
        tracing::info!(node = hostname, "the name of the host is taken for the node: {setting}");
        hostname
    }

    /// Warns if the cluster has no node of this name, whose pods would never be found. `setting` names the setting
    /// with the name. Returns when the API has answered.
    pub async fn check_node(self, node: String, setting: &str) {
        let path = format!("/api/v1/nodes/{}", percent_encoded(&node));
        // Processors begin before the log is open.
        tokio::time::sleep(NODE_DELAY).await;
        loop {
            match self.json(&path).await {
                Ok(_) => return,
                Err(HttpError::Status { status, .. }) if status.as_u16() == 404 => {
                    tracing::warn!(
                        node,
                        "the cluster has no node of this name, so that no pod of it is found; set {setting}, or the \
                         variable NODE_NAME, to a name that `kubectl get nodes` shows"
                    );
                    return;
                }
                Err(error @ HttpError::Status { .. }) => {
                    tracing::debug!(node, %error, "whether there is a node of this name is not known");
                    return;
                }
                Err(error) => {
                    tracing::debug!(node, %error, "the node cannot be looked up; trying again");
                }
            }
            tokio::time::sleep(NODE_PAUSE).await;
        }
    }
}

/// The path of a list, which ends with `?` or `&`.
///
/// `plural` is as in `pods`; `namespace` and `name` select, and so does the node of pods.
pub fn path_of(plural: &str, namespace: Option<&str>, field: Option<(&str, &str)>) -> String {
    let base = match namespace {
        Some(namespace) => format!("/api/v1/namespaces/{}/{plural}", percent_encoded(namespace)),
        None => format!("/api/v1/{plural}"),
    };
    match field {
        Some((field, value)) => {
            format!("{base}?fieldSelector={}&", percent_encoded(&format!("{field}={value}")))
        }
        None => format!("{base}?"),
    }
}

/// The same for a kind of a group of the API, version 1.
pub fn group_path_of(group: &str, plural: &str, namespace: Option<&str>) -> String {
    match namespace {
        Some(namespace) => {
            format!("/apis/{group}/v1/namespaces/{}/{plural}?", percent_encoded(namespace))
        }
        None => format!("/apis/{group}/v1/{plural}?"),
    }
}

/// What happened to the objects of a kind, of which something is made.
#[derive(Debug)]
pub enum Change<T> {
    /// An object is there, or is another than before.
    Seen(T),
    /// An object is gone.
    Gone(Json),
    /// The list is complete: there are the objects with these uids, all of them seen, and no others.
    Listed(Vec<String>),
}

/// Follows the objects of a list. To be polled in a runtime of tokio.
pub struct Objects<T> {
    api: Api,
    /// Makes of an object what is kept of it.
    make: Box<list::Make<T>>,
    /// Of the list, up to `?` or `&`.
    path: String,
    /// How long reading the whole list may take.
    list_limit: Duration,
    state: State<T>,
    version: String,
    pause: Duration,
    /// Watches that failed since one has brought something.
    failures: u32,
    /// When the watch was opened, and whether it has brought something.
    opened_at: tokio::time::Instant,
    has_brought: bool,
    /// An error was logged, and nothing has worked since.
    is_broken: bool,
    /// Others wait until the list has been read once.
    first: Option<FirstList>,
    report: Option<ReportError>,
}

/// Is called with each error, and with `None` when it is over.
pub type ReportError = Box<dyn FnMut(Option<&HttpError>) + Send + Sync>;

enum State<T> {
    /// The next page of the list.
    List {
        next: String,
        uids: Vec<String>,
        until: Option<tokio::time::Instant>,
    },
    /// Objects of a page that are not given out yet.
    Page {
        items: VecDeque<T>,
        next: String,
        uids: Vec<String>,
        until: Option<tokio::time::Instant>,
    },
    /// The watch is to be opened.
    Open,
    Watch(AnswerStream),
}

impl<T> State<T> {
    fn list() -> Self {
        Self::List { next: String::new(), uids: Vec::new(), until: None }
    }
}

impl<T> std::fmt::Debug for Objects<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Objects").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<T: 'static> Objects<T> {
    /// Those of the list at `path`, see [`path_of`]. Reading all of it may take `list_limit`. `make` is called with each
    /// object as soon as it is read: whole objects take much memory.
    pub fn new(
        api: Api,
        path: String,
        list_limit: Duration,
        make: impl Fn(Json) -> T + Send + Sync + 'static,
    ) -> Self {
        let (state, version) = (State::list(), String::new());
        let make = Box::new(make);
        Self {
            api,
            make,
            path,
            list_limit,
            state,
            version,
            pause: PAUSE,
            failures: 0,
            opened_at: tokio::time::Instant::now(),
            has_brought: false,
            is_broken: false,
            first: None,
            report: None,
        }
    }

    /// Calls `report` with each error, and with `None` when the server answers again.
    pub fn reporting(self, report: ReportError) -> Self {
        Self { report: Some(report), ..self }
    }

    /// Others wait for `first`: it is dropped when everything in the list has been given out, or the server refused it.
    pub fn awaited(self, first: FirstList) -> Self {
        Self { first: Some(first), ..self }
    }

    /// Waits for the next change. An error is logged, and what failed is tried again after a pause.
    pub async fn next(&mut self) -> Change<T> {
        loop {
            match self.step().await {
                Ok(Some(change)) => return change,
                Ok(None) => {}
                Err(error) => {
                    if is_refusal(&error) {
                        self.first = None;
                    }
                    self.report(Some(&error));
                    if std::mem::replace(&mut self.is_broken, true) {
                        tracing::debug!(path = self.path, %error, "Kubernetes cannot be followed still");
                    } else {
                        tracing::warn!(path = self.path, %error, "Kubernetes cannot be followed; trying again");
                    }
                    self.wait().await;
                }
            }
        }
    }

    /// The pause after an error; the next one is longer.
    async fn wait(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }

    async fn step(&mut self) -> Result<Option<Change<T>>, HttpError> {
        // If this is dropped while it waits, a new list comes next.
        match std::mem::replace(&mut self.state, State::list()) {
            State::List { next, mut uids, until } => {
                let until = until.unwrap_or_else(|| tokio::time::Instant::now() + self.list_limit);
                let page = format!("{}limit={PAGE}&continue={}", self.path, percent_encoded(&next));
                let page = self.api.page(&page, &self.make);
                let page = tokio::time::timeout_at(until, page).await;
                let page = page.unwrap_or(Err(HttpError::Timeout(self.list_limit)))?;
                self.version = page.version;
                uids.extend(page.uids);
                let (items, next) = (page.items.into(), page.next);
                self.state = State::Page { items, next, uids, until: Some(until) };
                Ok(None)
            }
            State::Page { mut items, next, uids, until } => {
                let item = items.pop_front();
                if let Some(item) = item {
                    self.state = State::Page { items, next, uids, until };
                    return Ok(Some(Change::Seen(item)));
                }
                if !next.is_empty() {
                    self.state = State::List { next, uids, until };
                    return Ok(None);
                }
                // The pause stays as it is until a watch brings something.
                if self.failures == 0 {
                    self.is_followed_again();
                }
                self.state = State::Open;
                self.first = None;
                Ok(Some(Change::Listed(uids)))
            }
            State::Open => {
                let watch = format!(
                    "{}watch=1&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
                     &resourceVersion={}",
                    self.path,
                    percent_encoded(&self.version)
                );
                self.state = State::Open;
                match self.api.open(&watch).await {
                    Ok(stream) => {
                        (self.opened_at, self.has_brought) = (tokio::time::Instant::now(), false);
                        self.report(None);
                        self.state = State::Watch(stream);
                    }
                    Err(HttpError::Status { status, .. }) if status.as_u16() == 410 => {
                        self.list_again().await;
                    }
                    Err(error) => {
                        self.watch_failed();
                        return Err(error);
                    }
                }
                Ok(None)
            }
            State::Watch(stream) => self.step_watch(stream).await,
        }
    }

    async fn step_watch(
        &mut self,
        mut stream: AnswerStream,
    ) -> Result<Option<Change<T>>, HttpError> {
        self.state = State::Open;
        let Some(line) = next_line(&mut stream).await? else {
            return self.ended(self.opened_at.elapsed());
        };
        let mut change: Map<String, Json> = match serde_json::from_slice(&line) {
            Ok(change) => change,
            Err(error) => {
                self.watch_failed();
                return Err(error.into());
            }
        };
        let object = change.remove("object").unwrap_or_default();
        let kind = change.get("type").and_then(Json::as_str);
        if kind == Some("ERROR") {
            // An overloaded server reports 429, 500 and more, which leave the version as it is.
            let is_load = object["code"].as_u64().is_some_and(|code| code == 429 || code >= 500);
            if object["code"] != 410 {
                tracing::debug!(path = self.path, %object, "the watch reports an error");
                self.watch_failed();
                if !is_load {
                    self.state = State::list();
                }
                self.wait().await;
            } else {
                self.list_again().await;
            }
            return Ok(None);
        }
        self.has_brought = true;
        self.failures = 0;
        self.is_followed_again();
        self.pause = PAUSE;
        if let Some(newer) = object["metadata"]["resourceVersion"].as_str() {
            newer.clone_into(&mut self.version);
        }
        self.state = State::Watch(stream);
        Ok(match kind {
            Some("DELETED") => Some(Change::Gone(object)),
            Some("ADDED" | "MODIFIED") => Some(Change::Seen((self.make)(object))),
            // A bookmark only has the version.
            _ => None,
        })
    }

    /// A watch could not be opened, or brought nothing that can be read.
    fn watch_failed(&mut self) {
        self.failures += 1;
        if self.failures >= FAILURES_MAX {
            self.state = State::list();
        }
    }

    /// The server does not know the version any more. A list comes at once, unless it was in vain before.
    async fn list_again(&mut self) {
        self.failures += 1;
        self.state = State::list();
        if self.failures > 1 {
            self.wait().await;
        }
    }

    /// The server has ended a watch after this time.
    fn ended(&mut self, after: Duration) -> Result<Option<Change<T>>, HttpError> {
        if self.has_brought || after >= SHORT {
            return Ok(None);
        }
        self.watch_failed();
        if after < AT_ONCE { Err(HttpError::Ended) } else { Ok(None) }
    }

    fn report(&mut self, error: Option<&HttpError>) {
        if let Some(report) = &mut self.report {
            report(error);
        }
    }

    /// The server answers.
    fn is_followed_again(&mut self) {
        if std::mem::replace(&mut self.is_broken, false) {
            tracing::info!(path = self.path, "Kubernetes is followed again");
        }
    }
}

/// The same request would be refused again: there is no permission, or no such kind of object.
pub fn is_refusal(error: &HttpError) -> bool {
    matches!(error, HttpError::Status { status, .. } if matches!(status.as_u16(), 403 | 404))
}

/// The next change.
async fn next_line(stream: &mut AnswerStream) -> Result<Option<Vec<u8>>, HttpError> {
    let line = tokio::time::timeout(SILENCE_MAX, stream.line()).await;
    line.unwrap_or(Err(HttpError::Timeout(SILENCE_MAX)))
}
