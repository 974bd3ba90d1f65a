//! Requests to Nomad's HTTP API.
//!
//! <https://developer.hashicorp.com/nomad/api-docs>

use serde_json::Value as Json;
use skidder_config::Secret;
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};
use std::time::Duration;

/// The header of an answer with the index that the next blocking query waits for.
const INDEX: &str = "x-nomad-index";

/// Why allocations are not known.
#[derive(Debug, thiserror::Error)]
pub enum NomadError {
    /// Try again later.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// Nomad has no such node.
    #[error("node `{0}` is not known to Nomad; set `node` to the name of one")]
    Node(String),
    /// The answer has another form than Nomad's.
    #[error("the answer to `{0}` is no list; `address` should be that of a Nomad agent")]
    NoList(String),
}

/// The API of an agent, with a namespace, a region and a token.
#[derive(Clone, Debug)]
pub struct NomadApi {
    server: HttpClient,
    /// Parameters of every request: `namespace=a&region=b`.
    query: String,
    token: Option<Secret>,
}

/// A query that waits for changes.
#[derive(Clone, Copy, Debug)]
pub struct Blocking {
    /// The answer waits until something is newer than this; 0 for an answer at once.
    pub index: u64,
    /// For at most this long; zero for as long as the agent likes, which is five minutes.
    pub wait: Duration,
    /// Any server may answer, not only the leader.
    pub allows_stale: bool,
}

impl NomadApi {
    /// Requests go to `server`, with the parameters that have a value, and with the token in a header.
    pub fn new(
        server: HttpClient,
        parameters: &[(&str, Option<String>)],
        token: Option<Secret>,
    ) -> Self {
        let set = parameters.iter().filter_map(|(name, value)| {
            let value = value.as_deref().filter(|value| !value.is_empty())?;
            Some(format!("{name}={}", percent_encoded(value)))
        });
        let query = set.collect::<Vec<_>>().join("&");
        let token = token.filter(|token| !token.reveal().is_empty());
        Self { server, query, token }
    }

    /// Where requests go, for messages.
    pub fn host(&self) -> &str {
        self.server.host()
    }

    /// The answer to a path without a query.
    ///
    /// # Errors
    ///
    /// There is no answer, or Nomad refuses.
    pub async fn get(&self, path: &str) -> Result<Json, HttpError> {
        Ok(self.ask(path, "").await?.0)
    }

    /// The list behind a path, and the index of the answer; `None` if a proxy left it out.
    ///
    /// # Errors
    ///
    /// There is no answer, Nomad refuses, or the answer is no list.
    pub async fn list(
        &self,
        path: &str,
        blocking: Blocking,
    ) -> Result<(Vec<Json>, Option<u64>), NomadError> {
        let mut query = format!("index={}", blocking.index);
        if !blocking.wait.is_zero() {
            query += &format!("&wait={}ms", blocking.wait.as_millis());
        }
        if blocking.allows_stale {
            query += "&stale=true";
        }
        let (answer, index) = self.ask(path, &query).await?;
        let Json::Array(items) = answer else { return Err(NomadError::NoList(path.to_owned())) };
        Ok((items, index.and_then(|index| index.parse().ok())))
    }

    async fn ask(&self, path: &str, more: &str) -> Result<(Json, Option<String>), HttpError> {
        let token = self.token.as_ref().map(Secret::reveal).unwrap_or_default();
        let header = [("X-Nomad-Token", token)];
        let headers = if token.is_empty() { &[][..] } else { &header };
        let query: Vec<&str> =
            [self.query.as_str(), more].into_iter().filter(|part| !part.is_empty()).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let path = format!("{path}{mark}{}", query.join("&"));
        self.server.json_with_header(HttpRequest::get(&path).headers(headers), INDEX).await
    }

    /// The id of the node of this name, or of the agent's own.
    ///
    /// # Errors
    ///
    /// There is no answer, Nomad refuses, or there is no such node.
    pub async fn node_id(&self, name: Option<&str>) -> Result<String, NomadError> {
        if let Some(name) = name {
            let nodes = self.get("/v1/nodes").await?;
            let mut nodes = nodes.as_array().into_iter().flatten();
            if let Some(node) = nodes.find(|node| node["Name"] == name)
                && let Some(id) = node["ID"].as_str()
            {
                return Ok(id.to_owned());
            }
        }
        let own = self.get("/v1/agent/self").await?;
        let own_name = own["member"]["Name"].as_str().unwrap_or_default();
        match own["stats"]["client"]["node_id"].as_str() {
            Some(id) if name.is_none_or(|name| name == own_name) => Ok(id.to_owned()),
            _ => Err(NomadError::Node(name.unwrap_or(own_name).to_owned())),
        }
    }
}
