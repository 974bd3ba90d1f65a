//! Ingest pipelines that the server must have before events that name them come.
//!
//! Where they come from, and what they are for a version of the server, is left to a [`PipelineSource`]. They are
//! loaded at the first connection of a run, and again when the source has others. One that is there stays as it is,
//! unless the source says otherwise.

use super::install::{Ask, SetupError, Step, ask, path, refused};
use crate::server::{Flavour, ServerInfo};
use http::Method;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PipelineGroup {
    /// What they are for, in messages: `nginx/access`.
    pub name: String,
    /// Types of processors that the server must have, and the plugins that bring them.
    pub requires: Vec<(String, String)>,
    /// The pipelines, in the order in which they are loaded.
    pub pipelines: Vec<Pipeline>,
}

/// Where pipelines come from.
pub trait PipelineSource: std::fmt::Debug + Send + Sync {
    /// Another number when there are other pipelines; 0 if there are none.
    fn revision(&self) -> u64;

    /// The pipelines for a server of this version. The error is shown to the user.
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
    /// The revision of the source that the server has.
    loaded: AtomicU64,
    loading: Mutex<()>,
}

impl PipelineLoader {
    pub(crate) fn new(source: Arc<dyn PipelineSource>, in_run: bool) -> Self {
        Self { source, in_run, loaded: AtomicU64::new(0), loading: Mutex::new(()) }
    }

    /// Whether the server lacks pipelines of the source. Cheap: it is checked before each request.
    pub(crate) fn is_due(&self) -> bool {
        self.in_run && self.loaded.load(Ordering::Acquire) != self.source.revision()
    }

    /// Loads what the server lacks.
    pub(crate) async fn load_due<A: Ask>(
        &self,
        info: &ServerInfo,
        server: &mut A,
    ) -> Result<(), SetupError<A::Error>> {
        let _loading = self.loading.lock().await;
        if !self.is_due() {
            return Ok(());
        }
        // Read first: pipelines that change meanwhile are loaded next time.
        let revision = self.source.revision();
        for step in self.load(info, server, self.source.overwrites()).await? {
            match step {
                Step::Loaded(what) => tracing::info!("loaded {what}"),
                Step::Kept(what) => tracing::debug!("{what} is there already, and stays as it is"),
                Step::Skipped(why) => tracing::warn!("not set up: {why}"),
            }
        }
        self.loaded.store(revision, Ordering::Release);
        Ok(())
    }

    /// Loads all pipelines, with `overwrite` also those that are there.
    pub(crate) async fn load<A: Ask>(
        &self,
        info: &ServerInfo,
        server: &mut A,
        overwrite: bool,
    ) -> Result<Vec<Step>, SetupError<A::Error>> {
        let version = match info.flavour {
            Flavour::OpenSearch => OPENSEARCH_LIKE,
            Flavour::Elasticsearch | Flavour::Serverless => &info.version,
        };
        let groups = self.source.groups(version).map_err(SetupError::Pipelines)?;
        let mut steps = Vec::new();
        let mut known = None;
        for group in groups {
            // Serverless does not say what it has.
            if !group.requires.is_empty() && info.flavour != Flavour::Serverless {
                if known.is_none() {
                    known = Some(processors(server).await?);
                }
                refuse_missing(&group, known.as_deref().unwrap_or_default())?;
            }
            load_group(&group, overwrite, server, &mut steps).await?;
        }
        Ok(steps)
    }
}

/// Loads the pipelines of a group. If the server refuses one, those that were loaded before it are removed:
/// without it they would be used half. Those that were there stay, and those that were replaced, as others may
/// use them.
async fn load_group<A: Ask>(
    group: &PipelineGroup,
    overwrite: bool,
    server: &mut A,
    steps: &mut Vec<Step>,
) -> Result<(), SetupError<A::Error>> {
    let mut new = Vec::new();
    for pipeline in &group.pipelines {
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

    #[derive(Debug)]
    struct Fixed {
        revision: AtomicU64,
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
            Ok(vec![PipelineGroup {
                name: "web/access".to_owned(),
                requires: self.requires.clone(),
                pipelines: vec![pipeline("one"), pipeline("two")],
            }])
        }

        fn overwrites(&self) -> bool {
            self.overwrites
        }
    }

    fn loader(requires: &[&str], overwrites: bool) -> (Arc<Fixed>, PipelineLoader) {
        let requires = requires.iter().map(|kind| ((*kind).to_owned(), format!("ingest-{kind}")));
        let source = Arc::new(Fixed {
            revision: AtomicU64::new(1),
            requires: requires.collect(),
            overwrites,
        });
        (Arc::clone(&source), PipelineLoader::new(source, true))
    }

    fn info(flavour: Flavour) -> ServerInfo {
        ServerInfo { version: "9.5.0".to_owned(), flavour }
    }

    const ONE: &str = "/_ingest/pipeline/one";
    const TWO: &str = "/_ingest/pipeline/two";

    #[tokio::test]
    async fn pipelines_are_loaded_once_and_again_when_there_are_others() {
        let (source, loader) = loader(&["geoip"], false);
        let es = info(Flavour::Elasticsearch);
        let mut server = Server::default();
        server.has.insert(ONE.to_owned(), json!("own"));
        loader.load_due(&es, &mut server).await.unwrap();
        let expected = [
            "GET /_nodes/ingest",
            "GET /_ingest/pipeline/one",
            "GET /_ingest/pipeline/two",
            "PUT /_ingest/pipeline/two",
        ];
        assert_eq!(server.requests, expected);
        assert_eq!(server.has[ONE], json!("own"));
        assert!(!loader.is_due());
        loader.load_due(&es, &mut server).await.unwrap();
        assert_eq!(server.requests.len(), 4);
        source.revision.store(2, Ordering::Relaxed);
        assert!(loader.is_due());
        loader.load_due(&es, &mut server).await.unwrap();
        assert_eq!(server.requests.len(), 7);
    }

    #[tokio::test]
    async fn overwriting_asks_for_nothing_and_opensearch_gets_what_it_knows() {
        let (_, loader) = loader(&[], true);
        let mut server = Server::default();
        server.has.insert(ONE.to_owned(), json!("own"));
        loader.load_due(&info(Flavour::OpenSearch), &mut server).await.unwrap();
        assert_eq!(server.requests, ["PUT /_ingest/pipeline/one", "PUT /_ingest/pipeline/two"]);
        assert_eq!(server.has[ONE]["description"], "7.10.2");
    }

    #[tokio::test]
    async fn a_refused_pipeline_and_a_missing_plugin_are_errors_and_stay_due() {
        let es = info(Flavour::Elasticsearch);
        let (_, loader) = loader(&["geoip", "attachment"], false);
        let error = loader.load_due(&es, &mut Server::default()).await.unwrap_err();
        assert!(error.to_string().contains("install ingest-attachment`"), "{error}");
        assert!(loader.is_due());
        let (_, loader) = self::loader(&[], false);
        let mut server = Server { refuses: Some(ONE), ..Server::default() };
        let error = loader.load_due(&es, &mut server).await.unwrap_err();
        assert!(error.to_string().contains("`one`: the server answered 400: no such"), "{error}");
        assert!(loader.is_due());
    }

    #[tokio::test]
    async fn what_was_loaded_before_a_refused_pipeline_is_removed_but_not_what_was_there() {
        let es = info(Flavour::Elasticsearch);
        let (_, loader) = loader(&[], false);
        let mut server = Server { refuses: Some(TWO), ..Server::default() };
        loader.load_due(&es, &mut server).await.unwrap_err();
        assert!(server.has.is_empty(), "{:?}", server.has);
        assert_eq!(server.requests.last().unwrap(), "DELETE /_ingest/pipeline/one");
        // With the other one accepted, all is as if nothing had happened.
        server.refuses = None;
        loader.load_due(&es, &mut server).await.unwrap();
        assert_eq!(server.has.len(), 2);

        let (_, loader) = self::loader(&[], false);
        let mut server = Server { refuses: Some(TWO), ..Server::default() };
        server.has.insert(ONE.to_owned(), json!("own"));
        loader.load_due(&es, &mut server).await.unwrap_err();
        assert_eq!(server.has[ONE], json!("own"));

        let (_, loader) = self::loader(&[], true);
        loader.load_due(&es, &mut server).await.unwrap_err();
        assert_eq!(server.has[ONE]["description"], "9.5.0");
    }
}
