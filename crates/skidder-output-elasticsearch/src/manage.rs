//! Requests other than events: setup, and the check of our rights.

use super::Elasticsearch;
use super::client::Failure;
use super::server::{Flavour, ServerInfo, Target};
use super::setup::{Ask, Installer, PipelineLoader, Step};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use skidder_net::{Connection, ConnectionError, Pieces, Steps};
use skidder_pipeline::SetUp;
use std::sync::Arc;
use std::time::Duration;

/// Privileges that a user needs on the index: to write, and to make the data stream.
const PRIVILEGES: [&str; 2] = ["create_doc", "auto_configure"];

/// Requests over an open connection.
pub(crate) struct Asking<'a> {
    pub(crate) connection: &'a mut Connection,
    pub(crate) target: &'a Target,
    pub(crate) timeout: Duration,
}

impl Ask for Asking<'_> {
    type Error = ConnectionError;

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), ConnectionError> {
        let mut answer = Vec::new();
        let uri = self.target.uri(path);
        let headers = self.target.json_headers();
        let body = body.map(|body| Bytes::from(body.to_string()));
        let pieces = Pieces::new(body.as_slice());
        let (status, _) =
            self.connection.send(method, uri, headers, pieces, &mut answer, self.timeout).await?;
        Ok((status, answer))
    }
}

impl Elasticsearch {
    /// Loads policy and template, and ingest pipelines, the latter two also over those that are there. Sends every
    /// line for the user to `report`. Returns whether it worked.
    pub async fn set_up(&self, what: SetUp, report: &mut (dyn FnMut(&str) + Send)) -> bool {
        let installer = self.installer.as_ref().filter(|_| what.index_management);
        let pipelines = self.pipelines.as_ref().filter(|_| what.pipelines);
        if what.index_management && installer.is_none() {
            report(
                "elasticsearch: nothing to set up: `setup.template` is off, or not named for `index`",
            );
        }
        if installer.is_none() && pipelines.is_none() {
            return true;
        }
        for target in &self.targets {
            match self.set_up_at(target, installer, pipelines).await {
                Ok(steps) => {
                    for step in steps {
                        report(&match step {
                            Step::Loaded(what) => format!("{what}: loaded"),
                            Step::Kept(what) => format!("{what}: it is there already"),
                            Step::Skipped(what) => format!("not set up: {what}"),
                        });
                    }
                    return true;
                }
                Err(error) => report(&format!("{}: {error}", target.host)),
            }
        }
        false
    }

    async fn set_up_at(
        &self,
        target: &Target,
        installer: Option<&Arc<Installer>>,
        pipelines: Option<&Arc<PipelineLoader>>,
    ) -> Result<Vec<Step>, Failure> {
        let timeout = self.config.timeout;
        let login = target.login.clone();
        let mut connection = Connection::open(&self.route(target), login, timeout).await?;
        let mut answer = Vec::new();
        let (root, headers) = (target.root.clone(), target.get_headers());
        let none = Pieces::new(&[]);
        let (status, _) =
            connection.send(Method::GET, root, headers, none, &mut answer, timeout).await?;
        if !(200..300).contains(&status) {
            return Err(Failure::status(status, &answer));
        }
        let info = ServerInfo::read(&answer).map_err(Failure::NotElasticsearch)?;
        let mut asking = Asking { connection: &mut connection, target, timeout };
        let mut steps = Vec::new();
        if let Some(installer) = installer {
            steps.extend(installer.install(&info, &mut asking, true).await?);
        }
        if let Some(pipelines) = pipelines {
            steps.extend(pipelines.load(&info, &mut asking, true).await?);
        }
        Ok(steps)
    }

    /// Our user on the server, and whether we may write to the index. `None` if not.
    pub(crate) async fn check_rights(
        &self,
        asking: &mut Asking<'_>,
        info: &ServerInfo,
        steps: &mut Steps<'_>,
    ) -> Option<()> {
        if info.flavour == Flavour::OpenSearch {
            steps.line(1, "credentials: OpenSearch cannot be asked for them");
            return Some(());
        }
        let response = asking.ask(Method::GET, "/_security/_authenticate", None).await;
        let (status, answer) = steps.step(1, "ask for the credentials", response)?;
        let user: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let Some(user) = user["username"].as_str().filter(|_| status == 200) else {
            steps.line(1, "credentials: the server has no security, or does not tell");
            return Some(());
        };
        steps.line(1, &format!("credentials: {user}"));
        let mut index = self.config.index.clone();
        self.context.bind(&mut index);
        let Some(index) = index.constant().filter(|_| self.config.indices.is_empty()) else {
            steps.line(1, "index: it depends on the events");
            return Some(());
        };
        let index = index.to_lowercase();
        let question = json!({ "index": [{ "names": [index], "privileges": PRIVILEGES }] });
        let path = "/_security/user/_has_privileges";
        let response = asking.ask(Method::POST, path, Some(&question)).await;
        let (status, answer) = steps.step(1, "ask for the rights", response)?;
        let may: Value = serde_json::from_slice(&answer).unwrap_or_default();
        if status != 200 || !may["index"][&index].is_object() {
            steps.line(1, &format!("rights: it answered {status}, and does not tell"));
            return Some(());
        }
        let lacks = |privilege: &&str| may["index"][&index][*privilege] != true;
        let lacking: Vec<String> =
            PRIVILEGES.iter().filter(|it| lacks(it)).map(|it| format!("`{it}`")).collect();
        let result = if lacking.is_empty() {
            Ok(())
        } else {
            Err(format!("give the role of the user, or the API key, {}", lacking.join(" and ")))
        };
        steps.step(1, &format!("may write to `{index}`"), result)
    }
}
