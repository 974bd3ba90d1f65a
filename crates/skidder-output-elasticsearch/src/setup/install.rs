//! Requests that set a server up, and their order: the policy, then the template that names it.

use super::{Enabled, Lifecycle, Setup, Template};
use crate::server::{Flavour, ServerInfo};
use http::Method;
use serde_json::Value;
use skidder_net::encode_percent;
use skidder_outputs::Context;
use std::sync::Arc;
use tokio::sync::Mutex;

/// Bytes of an answer that a message shows.
const SHOWN_BYTES_MAX: usize = 512;

/// A request and what was answered: status and body.
pub(crate) trait Ask {
    /// Why there is no answer.
    type Error;

    /// Sends a request; `body` is JSON.
    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), Self::Error>;
}

/// One step of the setup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was put there.
    Loaded(String),
    /// It is there already.
    Kept(String),
    /// The server cannot have it, or is not to.
    Skipped(String),
}

/// Why a server is not set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError<E> {
    #[error(transparent)]
    Ask(E),
    #[error("cannot set up {what}: the server answered {status}: {answer}{advice}")]
    Refused { what: String, status: u16, answer: String, advice: &'static str },
    #[error("cannot set up ingest pipelines: {0}")]
    Pipelines(String),
    #[error("`{0}` is set, but the server has no lifecycles of this kind")]
    NoLifecycle(&'static str),
}

/// Sets up servers. Shared by all workers of an output; does it once in a run.
#[derive(Debug)]
pub(crate) struct Installer {
    setup: Arc<Setup>,
    context: Context,
    done: Mutex<bool>,
}

impl Installer {
    pub(crate) fn new(setup: Arc<Setup>, context: Context) -> Self {
        Self { setup, context, done: Mutex::new(false) }
    }

    /// Sets the server up, unless that was done in this run.
    pub(crate) async fn once<A: Ask>(
        &self,
        info: &ServerInfo,
        server: &mut A,
    ) -> Result<(), SetupError<A::Error>> {
        let mut done = self.done.lock().await;
        if *done || !self.setup.is_needed() {
            return Ok(());
        }
        for step in self.install(info, server, false).await? {
            match step {
                Step::Loaded(what) => tracing::info!("loaded {what}"),
                Step::Kept(what) => tracing::info!("{what} is there already, and stays as it is"),
                Step::Skipped(why) => tracing::warn!("not set up: {why}"),
            }
        }
        *done = true;
        Ok(())
    }

    /// Sets the server up; with `overwrite` the template is put there in any case.
    pub(crate) async fn install<A: Ask>(
        &self,
        info: &ServerInfo,
        server: &mut A,
        overwrite: bool,
    ) -> Result<Vec<Step>, SetupError<A::Error>> {
        let mut steps = Vec::new();
        let mut policy = None;
        let mut lifecycle = None;
        let mut is_new = false;
        match info.flavour {
            Flavour::OpenSearch => {
                if self.setup.ilm.enabled == Enabled::Yes {
                    return Err(SetupError::NoLifecycle("setup.ilm.enabled: true"));
                }
            }
            Flavour::Serverless => {
                if self.setup.ilm.enabled == Enabled::Yes {
                    return Err(SetupError::NoLifecycle("setup.ilm.enabled: true"));
                }
                lifecycle =
                    (self.setup.dsl.enabled != Enabled::No).then_some(&self.setup.dsl.policy);
            }
            Flavour::Elasticsearch if self.setup.ilm.enabled != Enabled::No => {
                let step = ensure_policy(&self.setup.ilm, server).await?;
                is_new = matches!(step, Step::Loaded(_));
                if !matches!(step, Step::Skipped(_)) || !self.setup.ilm.check_exists {
                    policy = Some(self.setup.ilm.name.as_str());
                }
                steps.push(step);
            }
            Flavour::Elasticsearch => {}
        }
        if let Some(template) = &self.setup.template {
            if info.has_data_streams() {
                let over_lifecycle = lifecycle.is_some() && self.setup.dsl.overwrite;
                let over = overwrite || is_new || template.overwrite || over_lifecycle;
                let body = template.render(&self.context, policy, lifecycle);
                steps.push(ensure_template(template, &body, over, server).await?);
            } else {
                steps.push(Step::Skipped(format!(
                    "the index template: version {} has no data streams",
                    info.version
                )));
            }
        }
        Ok(steps)
    }
}

async fn ensure_policy<A: Ask>(
    ilm: &Lifecycle,
    server: &mut A,
) -> Result<Step, SetupError<A::Error>> {
    let what = format!("the lifecycle policy `{}`", ilm.name);
    let path = path("/_ilm/policy/", &ilm.name);
    if !ilm.overwrite {
        if !ilm.check_exists {
            return Ok(Step::Skipped(format!("{what}: `setup.ilm.check_exists` is false")));
        }
        match ask(server, Method::GET, &path, None).await? {
            (200, _) => return Ok(Step::Kept(what)),
            (404, _) => {}
            (status, answer) if is_unknown(status, &answer) => return no_policies(ilm, &what),
            (status, answer) => return Err(refused(what, status, &answer, POLICY_ADVICE)),
        }
    }
    match ask(server, Method::PUT, &path, Some(&ilm.policy)).await? {
        (200..300, _) => Ok(Step::Loaded(what)),
        (status, answer) if is_unknown(status, &answer) => no_policies(ilm, &what),
        (status, answer) => Err(refused(what, status, &answer, POLICY_ADVICE)),
    }
}

/// The server does not know what a policy is.
fn no_policies<E>(ilm: &Lifecycle, what: &str) -> Result<Step, SetupError<E>> {
    if ilm.enabled == Enabled::Yes {
        return Err(SetupError::NoLifecycle("setup.ilm.enabled: true"));
    }
    Ok(Step::Skipped(format!("{what}: the server has no lifecycle policies")))
}

const POLICY_ADVICE: &str = "; the user needs `manage_ilm`, or set `setup.ilm.enabled: false`";
const TEMPLATE_ADVICE: &str =
    "; the user needs `manage_index_templates`, or set `setup.template.enabled: false`";

async fn ensure_template<A: Ask>(
    template: &Template,
    body: &Value,
    overwrite: bool,
    server: &mut A,
) -> Result<Step, SetupError<A::Error>> {
    let what = format!("the index template `{}`", template.name);
    let path = path("/_index_template/", &template.name);
    if !overwrite {
        match ask(server, Method::GET, &path, None).await? {
            (200, _) => return Ok(Step::Kept(what)),
            (404, _) => {}
            (status, answer) => return Err(refused(what, status, &answer, TEMPLATE_ADVICE)),
        }
    }
    match ask(server, Method::PUT, &path, Some(body)).await? {
        (200..300, _) => return Ok(Step::Loaded(what)),
        // An old server, or one without some of its modules.
        (400, answer) if lacks_a_type(&answer) => {}
        (status, answer) => return Err(refused(what, status, &answer, TEMPLATE_ADVICE)),
    }
    match ask(server, Method::PUT, &path, Some(&with_old_types(body))).await? {
        (200..300, _) => Ok(Step::Loaded(format!("{what}, with the types that the server has"))),
        (status, answer) => Err(refused(what, status, &answer, TEMPLATE_ADVICE)),
    }
}

/// The same template with types that every server has.
fn with_old_types(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let old = |(key, value): (&String, &Value)| {
                let value = match (key.as_str(), value.as_str()) {
                    ("type", Some("match_only_text")) => Value::from("text"),
                    ("type", Some("wildcard")) => Value::from("keyword"),
                    _ => with_old_types(value),
                };
                (key.clone(), value)
            };
            Value::Object(map.iter().map(old).collect())
        }
        Value::Array(list) => list.iter().map(with_old_types).collect(),
        other => other.clone(),
    }
}

pub(super) fn path(before: &str, name: &str) -> String {
    let mut path = before.to_owned();
    encode_percent(&mut path, name);
    path
}

pub(super) async fn ask<A: Ask>(
    server: &mut A,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<(u16, Vec<u8>), SetupError<A::Error>> {
    server.ask(method, path, body).await.map_err(SetupError::Ask)
}

pub(super) fn refused<E>(
    what: String,
    status: u16,
    answer: &[u8],
    advice: &'static str,
) -> SetupError<E> {
    let shown = &answer[..answer.len().min(SHOWN_BYTES_MAX)];
    let answer = String::from_utf8_lossy(shown).trim().to_owned();
    let advice = if matches!(status, 401 | 403) { advice } else { "" };
    SetupError::Refused { what, status, answer, advice }
}

/// Whether the server does not know the request.
fn is_unknown(status: u16, answer: &[u8]) -> bool {
    matches!(status, 400 | 405 | 501)
        && (contains(answer, b"no handler found") || contains(answer, b"Incorrect HTTP method"))
}

/// Whether it does not know a type of a field, in the words of any version.
fn lacks_a_type(answer: &[u8]) -> bool {
    contains(answer, b"No handler for type") || contains(answer, b"The mapper type [")
}

fn contains(answer: &[u8], text: &[u8]) -> bool {
    answer.windows(text.len()).any(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::fake::Server;
    use crate::testing::context;
    use serde_json::json;
    use skidder_config::{Problems, Settings};
    use std::path::Path;

    fn installer(text: &str) -> Installer {
        let problems = Problems::new();
        let settings = Settings::parse("x", text).unwrap();
        let root = settings.root(&problems);
        let setup = Setup::read(&root.section("setup"), &context(), Path::new("/"));
        assert_eq!(problems.to_string(), "");
        Installer::new(Arc::new(setup), context())
    }

    fn info(version: &str, flavour: Flavour) -> ServerInfo {
        ServerInfo { version: version.to_owned(), flavour }
    }

    const POLICY: &str = "/_ilm/policy/filebeat";
    const TEMPLATE: &str = "/_index_template/filebeat-9.5.0";

    #[tokio::test]
    async fn what_is_missing_is_loaded_and_what_is_there_stays() {
        let es = info("9.5.0", Flavour::Elasticsearch);
        let mut server = Server::default();
        let first = installer("{}");
        first.once(&es, &mut server).await.unwrap();
        // A new policy needs the template that names it, whatever is there.
        let expected =
            [format!("GET {POLICY}"), format!("PUT {POLICY}"), format!("PUT {TEMPLATE}")];
        assert_eq!(server.requests, expected);
        let lifecycle = &server.has[TEMPLATE]["template"]["settings"]["index"]["lifecycle"];
        assert_eq!(*lifecycle, json!({ "name": "filebeat" }));
        server.requests.clear();
        first.once(&es, &mut server).await.unwrap();
        assert!(server.requests.is_empty(), "once in a run");
        let steps = installer("{}").install(&es, &mut server, false).await.unwrap();
        assert!(steps.iter().all(|step| matches!(step, Step::Kept(_))), "{steps:?}");
        let over = installer("setup: {template.overwrite: true, ilm.overwrite: true}");
        let steps = over.install(&es, &mut server, false).await.unwrap();
        assert!(steps.iter().all(|step| matches!(step, Step::Loaded(_))), "{steps:?}");
        server.requests.clear();
        let off = installer("setup: {template.enabled: false, ilm.enabled: false}");
        off.once(&es, &mut server).await.unwrap();
        assert!(server.requests.is_empty());
    }

    #[tokio::test]
    async fn each_kind_of_server_gets_what_it_can_have() {
        let mut server = Server::default();
        let open = info("3.1.0", Flavour::OpenSearch);
        installer("{}").install(&open, &mut server, false).await.unwrap();
        assert_eq!(server.has.keys().collect::<Vec<_>>(), [TEMPLATE]);
        assert!(server.has[TEMPLATE]["template"]["settings"]["index"]["lifecycle"].is_null());
        let serverless = info("9.5.0", Flavour::Serverless);
        let mut server = Server::default();
        installer("{}").install(&serverless, &mut server, false).await.unwrap();
        assert_eq!(server.has.keys().collect::<Vec<_>>(), [TEMPLATE]);
        assert_eq!(
            server.has[TEMPLATE]["template"]["lifecycle"],
            json!({ "data_retention": "7d" })
        );
        // A distribution without policies.
        let es = info("9.5.0", Flavour::Elasticsearch);
        let mut server = Server { unknown: "/_ilm", ..Server::default() };
        let steps = installer("{}").install(&es, &mut server, false).await.unwrap();
        assert!(matches!(&steps[..], [Step::Skipped(_), Step::Loaded(_)]), "{steps:?}");
        assert!(server.has[TEMPLATE]["template"]["settings"]["index"]["lifecycle"].is_null());
        let must = installer("setup.ilm.enabled: true");
        for info in [&es, &open, &serverless] {
            let error = must.install(info, &mut server, false).await.unwrap_err();
            assert!(error.to_string().contains("setup.ilm.enabled"), "{error}");
        }
        // One that does not know the newer types.
        let mut server = Server { is_old: true, ..Server::default() };
        installer("{}").install(&open, &mut server, false).await.unwrap();
        let properties = &server.has[TEMPLATE]["template"]["mappings"]["properties"];
        assert_eq!(properties["message"]["type"], "text");
        assert_eq!(properties["url"]["properties"]["path"]["type"], "keyword");
        // An old one has no data streams.
        let mut server = Server::default();
        let old = info("7.8.1", Flavour::Elasticsearch);
        let steps = installer("{}").install(&old, &mut server, false).await.unwrap();
        assert!(matches!(&steps[..], [Step::Loaded(_), Step::Skipped(_)]), "{steps:?}");
        assert_eq!(server.has.keys().collect::<Vec<_>>(), [POLICY]);
    }

    #[tokio::test]
    async fn a_server_that_refuses_says_what_is_needed() {
        let es = info("9.5.0", Flavour::Elasticsearch);
        for (forbidden, needs) in [("/_ilm", "manage_ilm"), ("/_index", "manage_index_templates")] {
            let mut server = Server { forbidden, ..Server::default() };
            let error = installer("{}").install(&es, &mut server, false).await.unwrap_err();
            assert!(error.to_string().contains(needs), "{error}");
        }
        // Without looking there is no policy, but the template may still name one.
        let mut server = Server { forbidden: "/_ilm", ..Server::default() };
        let unseen = installer("setup.ilm.check_exists: false");
        unseen.install(&es, &mut server, false).await.unwrap();
        assert_eq!(
            server.has[TEMPLATE]["template"]["settings"]["index"]["lifecycle"]["name"],
            "filebeat"
        );
    }
}
