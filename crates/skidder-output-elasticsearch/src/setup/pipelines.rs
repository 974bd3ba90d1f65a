//! Ingest pipelines that the server must have before events that name them come.
//!
//! Where they come from, and what they are for a version of the server, is left to a [`PipelineSource`]. They are
//! loaded at the first connection of a run, and again when the source has others. One that is there stays as it is,
//! unless the source says otherwise. Events wait for those of the configuration; for `late` ones not for long.

use super::install::{Ask, SetupError, Step, ask, path, refused};
use super::late::{Late, RETRY_MAX, Then};
use crate::server::{Flavour, ServerInfo};
use http::Method;
use serde_json::Value;
use skidder_os::{Clock, Monotonic};
use skidder_pipeline::{Need, OutputMetrics};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use tokio::sync::Mutex;

/// The version that `OpenSearch` began with, whose pipelines it takes.
const OPENSEARCH_LIKE: &str = "7.10.2";

const ADVICE: &str = "; the user needs `manage_ingest_pipelines`, or set `setup.pipelines.enabled: false` and load \
                      them with `skidder setup --pipelines`";

/// An ingest pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    /// Its name.
    pub id: String,
    /// Its description, as the server takes it.
    pub body: Value,
}

/// Pipelines that belong together.
#[derive(Clone, Debug)]
pub struct PipelineGroup {
    /// What they are for, in messages: `nginx/access`.
    pub name: String,
    /// Types of processors that the server must have, and the plugins that bring them.
    pub requires: Vec<(String, String)>,
    /// The pipelines, in the order in which they are loaded; or why there are none, for the user.
    pub pipelines: Result<Vec<Pipeline>, String>,
    /// Events wait until the server has them: they are of the configuration.
    pub holds_events: bool,
    /// What needs them, if they came during the run.
    pub needs: Vec<Need>,
}

impl PipelineGroup {
    /// Whether another one is the same for the server.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.requires, &self.pipelines)
            == (&other.name, &other.requires, &other.pipelines)
    }
}

/// Where pipelines come from.
pub trait PipelineSource: std::fmt::Debug + Send + Sync {
    /// Another number when there are other pipelines; 0 if there are none.
    fn revision(&self) -> u64;

    /// The pipelines for a server of this version, each group once. The error is shown to the user.
    fn groups(&self, version: &str) -> Result<Vec<PipelineGroup>, String>;

    /// Whether pipelines replace those that are there.
    fn overwrites(&self) -> bool;
}

/// A source, or none.
#[derive(Clone, Debug, Default)]
pub struct Pipelines(pub Option<Arc<dyn PipelineSource>>);

impl PartialEq for Pipelines {
    /// The same source.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Loads the pipelines of a source. Shared by all workers of an output.
#[derive(Debug)]
pub(crate) struct PipelineLoader {
    source: Arc<dyn PipelineSource>,
    /// Pipelines are loaded during a run, not only by `skidder setup`.
    in_run: bool,
    /// The revision of the source that the server has, but for what is late.
    loaded: AtomicU64,
    /// When late ones are to be tried again.
    retry_at: std::sync::Mutex<Option<Monotonic>>,
    late: Mutex<Late>,
}

impl PipelineLoader {
    pub(crate) fn new(source: Arc<dyn PipelineSource>, in_run: bool) -> Self {
        let (loaded, retry_at) = (AtomicU64::new(0), std::sync::Mutex::default());
        Self { source, in_run, loaded, retry_at, late: Mutex::default() }
    }

    /// Whether the server lacks pipelines of the source that are to be loaded now. Cheap: it is checked before each
    /// request.
    pub(crate) fn is_due(&self, now: Monotonic) -> bool {
        let retry_at = || *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = || self.loaded.load(Ordering::Acquire) != self.source.revision();
        self.in_run && (is_other() || retry_at().is_some_and(|at| at <= now))
    }

    fn retry(&self, at: Option<Monotonic>) {
        *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// Loads what the server lacks. An error means that events wait.
    pub(crate) async fn load_due<A: Ask<Error: Display>>(
        &self,
        info: &ServerInfo,
        server: &mut A,
        clock: &dyn Clock,
        metrics: &OutputMetrics,
    ) -> Result<(), SetupError<A::Error>> {
        let mut late = self.late.lock().await;
        let now = clock.monotonic();
        if !self.is_due(now) {
            return Ok(());
        }
        // Other workers do not wait for what is only tried again.
        self.retry(Some(now + RETRY_MAX));
        // Read first: pipelines that change meanwhile are loaded next time.
        let revision = self.source.revision();
        let loaded = self.load_into(info, server, clock, &mut late).await;
        metrics.set_missing(late.missing());
        self.retry(late.retry_at());
        loaded?;
        self.loaded.store(revision, Ordering::Release);
        Ok(())
    }

    async fn load_into<A: Ask<Error: Display>>(
        &self,
        info: &ServerInfo,
        server: &mut A,
        clock: &dyn Clock,
        late: &mut Late,
    ) -> Result<(), SetupError<A::Error>> {
        let groups = self.groups(info)?;
        late.retain(&groups);
        let mut loading = Loading::new(info, self.source.overwrites());
        for group in &groups {
            if !group.holds_events && late.rests(group, clock.monotonic()) {
                continue;
            }
            let mut steps = Vec::new();
            let result = loading.load(group, server, &mut steps).await;
            for step in steps {
                log(step);
            }
            match result {
                Ok(()) => late.loaded(group),
                Err(error) if group.holds_events => return Err(error),
                Err(error) => {
                    let then = late.failed(group, error.to_string(), may_pass(&error), clock);
                    // Without a connection nothing else can be loaded over it.
                    if then == Then::Wait || matches!(error, SetupError::Ask(_)) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Loads all pipelines, with `overwrite` also those that are there.
    pub(crate) async fn load<A: Ask>(
        &self,
        info: &ServerInfo,
        server: &mut A,
        overwrite: bool,
    ) -> Result<Vec<Step>, SetupError<A::Error>> {
        let mut steps = Vec::new();
        let mut loading = Loading::new(info, overwrite);
        for group in &self.groups(info)? {
            loading.load(group, server, &mut steps).await?;
        }
        Ok(steps)
    }

    fn groups<E>(&self, info: &ServerInfo) -> Result<Vec<PipelineGroup>, SetupError<E>> {
        let version = match info.flavour {
            Flavour::OpenSearch => OPENSEARCH_LIKE,
            Flavour::Elasticsearch | Flavour::Serverless => &info.version,
        };
        self.source.groups(version).map_err(SetupError::Pipelines)
    }
}

fn log(step: Step) {
    match step {
        Step::Loaded(what) => tracing::info!("loaded {what}"),
        Step::Kept(what) => tracing::debug!("{what} is there already, and stays as it is"),
        Step::Skipped(why) => tracing::warn!("not set up: {why}"),
    }
}

/// Whether a failure may be over in a moment: no answer, or that of a server that is busy.
fn may_pass<E>(error: &SetupError<E>) -> bool {
    match error {
        SetupError::Ask(_) => true,
        SetupError::Refused { status, .. } => matches!(status, 408 | 429 | 500..=599),
        _ => false,
    }
}

/// Groups that are loaded one after the other.
struct Loading {
    /// Serverless does not say what it has.
    asks_for_processors: bool,
    overwrite: bool,
    /// What the nodes have, once it was asked for.
    processors: Option<Vec<BTreeSet<String>>>,
}

impl Loading {
    fn new(info: &ServerInfo, overwrite: bool) -> Self {
        let asks_for_processors = info.flavour != Flavour::Serverless;
        Self { asks_for_processors, overwrite, processors: None }
    }

    async fn load<A: Ask>(
        &mut self,
        group: &PipelineGroup,
        server: &mut A,
        steps: &mut Vec<Step>,
    ) -> Result<(), SetupError<A::Error>> {
        let pipelines = group.pipelines.as_ref();
        let pipelines = pipelines.map_err(|error| SetupError::Pipelines(error.clone()))?;
        if !group.requires.is_empty() && self.asks_for_processors {
            if self.processors.is_none() {
                self.processors = Some(processors(server).await?);
            }
            refuse_missing(group, self.processors.as_deref().unwrap_or_default())?;
        }
        load_group(pipelines, self.overwrite, server, steps).await
    }
}

/// Loads the pipelines of a group. If the server refuses one, those that were loaded before it are removed:
/// without it they would be used half. Those that were there stay, and those that were replaced, as others may
/// use them.
async fn load_group<A: Ask>(
    pipelines: &[Pipeline],
    overwrite: bool,
    server: &mut A,
    steps: &mut Vec<Step>,
) -> Result<(), SetupError<A::Error>> {
    let mut new = Vec::new();
    for pipeline in pipelines {
        match put(pipeline, overwrite, server).await {
            Ok(step) => {
                if !overwrite && matches!(step, Step::Loaded(_)) {
                    new.push(&pipeline.id);
                }
                steps.push(step);
            }
            Err(error) => {
                // Without an answer there is no server to remove them from.
                if matches!(error, SetupError::Refused { .. }) {
                    for id in new {
                        remove(id, server).await;
                    }
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Removes a pipeline that was just loaded; one that stays is only reported.
async fn remove<A: Ask>(id: &str, server: &mut A) {
    let answer = ask(server, Method::DELETE, &path("/_ingest/pipeline/", id), None).await;
    match answer {
        Ok((200..300 | 404, _)) => {
            tracing::info!(
                "removed the ingest pipeline `{id}` again: another one of its fileset was refused"
            );
        }
        Ok((status, _)) => {
            tracing::warn!(
                "the ingest pipeline `{id}` stays: the server answered {status} to its removal"
            );
        }
        Err(_) => tracing::warn!("the ingest pipeline `{id}` stays: the server did not answer"),
    }
}

async fn put<A: Ask>(
    pipeline: &Pipeline,
    overwrite: bool,
    server: &mut A,
) -> Result<Step, SetupError<A::Error>> {
    let what = format!("the ingest pipeline `{}`", pipeline.id);
    let path = path("/_ingest/pipeline/", &pipeline.id);
    if !overwrite {
        match ask(server, Method::GET, &path, None).await? {
            (200, _) => return Ok(Step::Kept(what)),
            (404, _) => {}
            (status, answer) => return Err(refused(what, status, &answer, ADVICE)),
        }
    }
    match ask(server, Method::PUT, &path, Some(&pipeline.body)).await? {
        (200..300, _) => Ok(Step::Loaded(what)),
        (status, answer) => Err(refused(what, status, &answer, ADVICE)),
    }
}

/// The types of processors that each node has.
async fn processors<A: Ask>(server: &mut A) -> Result<Vec<BTreeSet<String>>, SetupError<A::Error>> {
    let what = "the ingest pipelines of modules".to_owned();
    let (status, answer) = ask(server, Method::GET, "/_nodes/ingest", None).await?;
    if status != 200 {
        return Err(refused(what, status, &answer, ADVICE));
    }
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    let nodes = answer["nodes"].as_object().into_iter().flat_map(|nodes| nodes.values());
    let of_node = |node: &Value| {
        let list = node["ingest"]["processors"].as_array().into_iter().flatten();
        list.filter_map(|one| one["type"].as_str()).map(str::to_owned).collect()
    };
    Ok(nodes.map(of_node).collect())
}

/// An error if a node lacks a processor of the group.
fn refuse_missing<E>(
    group: &PipelineGroup,
    nodes: &[BTreeSet<String>],
) -> Result<(), SetupError<E>> {
    let lacks = |kind: &str| nodes.iter().any(|node| !node.contains(kind));
    let missing: Vec<&str> = group
        .requires
        .iter()
        .filter(|(kind, _)| lacks(kind))
        .map(|(_, plugin)| &**plugin)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(SetupError::Pipelines(format!(
        "`{}` needs the plugins `{}` on all nodes of Elasticsearch: run `bin/elasticsearch-plugin install {}` there",
        group.name,
        missing.join("`, `"),
        missing.join(" ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::fake::Server;
    use serde_json::json;
    use skidder_testkit::SimClock;
    use std::time::Duration;

    #[derive(Debug)]
    struct Fixed {
        revision: AtomicU64,
        /// The input of another group with the pipeline `late`, which came during the run.
        late: std::sync::Mutex<Option<Arc<()>>>,
        requires: Vec<(String, String)>,
        overwrites: bool,
    }

    impl PipelineSource for Fixed {
        fn revision(&self) -> u64 {
            self.revision.load(Ordering::Relaxed)
        }

        fn groups(&self, version: &str) -> Result<Vec<PipelineGroup>, String> {
            let pipeline = |id: &str| Pipeline {
                id: id.to_owned(),
                body: json!({ "description": version, "processors": [] }),
            };
            let mut groups = vec![PipelineGroup {
                name: "web/access".to_owned(),
                requires: self.requires.clone(),
                pipelines: Ok(vec![pipeline("one"), pipeline("two")]),
                holds_events: true,
                needs: Vec::new(),
            }];
            if let Some(input) = &*self.late.lock().unwrap() {
                let alive = Arc::downgrade(input);
                groups.push(PipelineGroup {
                    name: "web/late".to_owned(),
                    requires: Vec::new(),
                    pipelines: Ok(vec![pipeline("late")]),
                    holds_events: false,
                    needs: vec![Need { about: "container a".to_owned(), alive }],
                });
            }
            Ok(groups)
        }

        fn overwrites(&self) -> bool {
            self.overwrites
        }
    }

    fn loader(requires: &[&str], overwrites: bool) -> (Arc<Fixed>, PipelineLoader) {
        let requires = requires.iter().map(|kind| ((*kind).to_owned(), format!("ingest-{kind}")));
        let source = Arc::new(Fixed {
            revision: AtomicU64::new(1),
            late: std::sync::Mutex::default(),
            requires: requires.collect(),
            overwrites,
        });
        (Arc::clone(&source), PipelineLoader::new(source, true))
    }

    fn info(flavour: Flavour) -> ServerInfo {
        ServerInfo { version: "9.5.0".to_owned(), flavour }
    }

    /// At the begin of time, if nothing else is said.
    async fn load_due(
        loader: &PipelineLoader,
        info: &ServerInfo,
        server: &mut Server,
    ) -> Result<(), SetupError<std::convert::Infallible>> {
        loader.load_due(info, server, &SimClock::new(), &OutputMetrics::default()).await
    }

    const LATE: &str = "/_ingest/pipeline/late";
    const ONE: &str = "/_ingest/pipeline/one";
    const TWO: &str = "/_ingest/pipeline/two";

    #[tokio::test]
    async fn pipelines_are_loaded_once_and_again_when_there_are_others() {
        let (source, loader) = loader(&["geoip"], false);
        let es = info(Flavour::Elasticsearch);
        let mut server = Server::default();
        server.has.insert(ONE.to_owned(), json!("own"));
        load_due(&loader, &es, &mut server).await.unwrap();
        let expected = [
            "GET /_nodes/ingest",
            "GET /_ingest/pipeline/one",
            "GET /_ingest/pipeline/two",
            "PUT /_ingest/pipeline/two",
        ];
        assert_eq!(server.requests, expected);
        assert_eq!(server.has[ONE], json!("own"));
        assert!(!loader.is_due(Monotonic::default()));
        load_due(&loader, &es, &mut server).await.unwrap();
        assert_eq!(server.requests.len(), 4);
        source.revision.store(2, Ordering::Relaxed);
        assert!(loader.is_due(Monotonic::default()));
        load_due(&loader, &es, &mut server).await.unwrap();
        assert_eq!(server.requests.len(), 7);
    }

    #[tokio::test]
    async fn overwriting_asks_for_nothing_and_opensearch_gets_what_it_knows() {
        let (_, loader) = loader(&[], true);
        let mut server = Server::default();
        server.has.insert(ONE.to_owned(), json!("own"));
        load_due(&loader, &info(Flavour::OpenSearch), &mut server).await.unwrap();
        assert_eq!(server.requests, ["PUT /_ingest/pipeline/one", "PUT /_ingest/pipeline/two"]);
        assert_eq!(server.has[ONE]["description"], "7.10.2");
    }

    #[tokio::test]
    async fn a_refused_pipeline_and_a_missing_plugin_are_errors_and_stay_due() {
        let es = info(Flavour::Elasticsearch);
        let (_, loader) = loader(&["geoip", "attachment"], false);
        let error = load_due(&loader, &es, &mut Server::default()).await.unwrap_err();
        assert!(error.to_string().contains("install ingest-attachment`"), "{error}");
        assert!(loader.is_due(Monotonic::default()));
        let (_, loader) = self::loader(&[], false);
        let mut server = Server { refuses: Some(ONE), ..Server::default() };
        let error = load_due(&loader, &es, &mut server).await.unwrap_err();
        assert!(error.to_string().contains("`one`: the server answered 400: no such"), "{error}");
        assert!(loader.is_due(Monotonic::default()));
    }

    #[tokio::test]
    async fn what_was_loaded_before_a_refused_pipeline_is_removed_but_not_what_was_there() {
        let es = info(Flavour::Elasticsearch);
        let (_, loader) = loader(&[], false);
        let mut server = Server { refuses: Some(TWO), ..Server::default() };
        load_due(&loader, &es, &mut server).await.unwrap_err();
        assert!(server.has.is_empty(), "{:?}", server.has);
        assert_eq!(server.requests.last().unwrap(), "DELETE /_ingest/pipeline/one");
        // With the other one accepted, all is as if nothing had happened.
        server.refuses = None;
        load_due(&loader, &es, &mut server).await.unwrap();
        assert_eq!(server.has.len(), 2);

        let (_, loader) = self::loader(&[], false);
        let mut server = Server { refuses: Some(TWO), ..Server::default() };
        server.has.insert(ONE.to_owned(), json!("own"));
        load_due(&loader, &es, &mut server).await.unwrap_err();
        assert_eq!(server.has[ONE], json!("own"));

        let (_, loader) = self::loader(&[], true);
        load_due(&loader, &es, &mut server).await.unwrap_err();
        assert_eq!(server.has[ONE]["description"], "9.5.0");
    }

    #[tokio::test]
    async fn a_late_pipeline_that_is_refused_holds_nothing_up_and_is_tried_again() {
        let es = info(Flavour::Elasticsearch);
        let (source, loader) = loader(&[], false);
        *source.late.lock().unwrap() = Some(Arc::default());
        let (clock, metrics) = (SimClock::new(), OutputMetrics::default());
        let mut server = Server { refuses: Some(LATE), ..Server::default() };
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert!(server.has.contains_key(ONE) && !server.has.contains_key(LATE));
        let missing = metrics.missing();
        assert_eq!((missing.len(), &*missing[0].needs[0].about), (1, "container a"));
        assert!(missing[0].what.contains("`web/late`") && missing[0].error.contains("`late`"));
        // The pauses double.
        for pause in [1, 2, 4] {
            clock.advance(Duration::from_millis(pause * 1000 - 1));
            assert!(!loader.is_due(clock.monotonic()), "{pause}");
            clock.advance(Duration::from_millis(1));
            assert!(loader.is_due(clock.monotonic()), "{pause}");
            loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        }
        // Another change does not make it earlier.
        source.revision.store(2, Ordering::Relaxed);
        let puts = |server: &Server| {
            server.requests.iter().filter(|it| **it == format!("PUT {LATE}")).count()
        };
        let before = puts(&server);
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert_eq!(puts(&server), before);
        // What has no input any more is neither missing nor tried.
        let input = source.late.lock().unwrap().take();
        drop(input);
        assert!(metrics.missing().is_empty());
        clock.advance(Duration::from_mins(10));
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert_eq!(puts(&server), before);
        assert!(!loader.is_due(clock.monotonic() + Duration::from_hours(1)));
        // It is there again, and the server takes it.
        *source.late.lock().unwrap() = Some(Arc::default());
        source.revision.store(3, Ordering::Relaxed);
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert_eq!(metrics.missing().len(), 1);
        server.refuses = None;
        clock.advance(Duration::from_secs(1));
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert!(server.has.contains_key(LATE) && metrics.missing().is_empty());
    }

    #[tokio::test]
    async fn a_busy_server_holds_events_for_a_late_pipeline_half_a_minute() {
        let es = info(Flavour::Elasticsearch);
        let (source, loader) = loader(&[], false);
        *source.late.lock().unwrap() = Some(Arc::default());
        let (clock, metrics) = (SimClock::new(), OutputMetrics::default());
        let mut server = Server { busy: LATE, ..Server::default() };
        for _ in 0..30 {
            loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap_err();
            assert!(loader.is_due(clock.monotonic()) && metrics.missing().is_empty());
            clock.advance(Duration::from_secs(1));
        }
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
        assert!(!loader.is_due(clock.monotonic()) && metrics.missing().len() == 1);
        // From then on they do not wait.
        clock.advance(Duration::from_secs(1));
        loader.load_due(&es, &mut server, &clock, &metrics).await.unwrap();
    }
}
