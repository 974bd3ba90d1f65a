//! Single requests and documents apart from the events: one host after the other, until one answers.

use super::Elasticsearch;
use super::client::Failure;
use super::manage::Asking;
use super::server::Target;
use super::setup::Ask as _;
use http::Method;
use serde_json::Value;
use skidder_net::{Connection, ConnectionError};

/// No host answered, or the answer was no.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct AskError(pub(crate) String);

impl Elasticsearch {
    /// The identifier of the cluster; nothing if the server has none.
    ///
    /// # Errors
    ///
    /// No host answers, or it refuses.
    pub async fn cluster_uuid(&self) -> Result<Option<String>, AskError> {
        let answer = self.ask_any(Method::GET, "/", None, &[200]).await?;
        let root: Value = serde_json::from_slice(&answer).unwrap_or_default();
        Ok(root["cluster_uuid"].as_str().map(str::to_owned))
    }

    /// Adds one document to `index`, under an `id` that is not there yet, so that a second try does no harm.
    ///
    /// # Errors
    ///
    /// No host answers, or the one that does refuses the document.
    pub async fn create(&self, index: &str, id: &str, document: &Value) -> Result<(), AskError> {
        let path = format!("/{index}/_create/{id}");
        self.ask_any(Method::PUT, &path, Some(document), &[200, 201, 409]).await.map(drop)
    }

    /// Asks one host after the other until one answers; returns the answer if its status is among `good`.
    pub(crate) async fn ask_any(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        good: &[u16],
    ) -> Result<Vec<u8>, AskError> {
        let mut failed = Vec::new();
        for target in &self.targets {
            let (status, answer) = match self.ask_one(target, &method, path, body).await {
                Ok(answered) => answered,
                Err(error) => {
                    failed.push(format!("{}: {error}", target.host));
                    continue;
                }
            };
            if good.contains(&status) {
                return Ok(answer);
            }
            let failure = Failure::status(status, &answer);
            return Err(AskError(format!("{}: {method} `{path}`: {failure}", target.host)));
        }
        Err(AskError(failed.join("; ")))
    }

    async fn ask_one(
        &self,
        target: &Target,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(u16, Vec<u8>), ConnectionError> {
        let timeout = self.config.timeout;
        let login = target.login.clone();
        let mut connection = Connection::open(&self.route(target), login, timeout).await?;
        let mut asking = Asking { connection: &mut connection, target, timeout };
        asking.ask(method.clone(), path, body).await
    }
}
