//! Asking Nomad's API for allocations, again and again.
//!
//! <https://developer.hashicorp.com/nomad/api-docs>

use super::matchers::Indexer;
use crate::store::Store;
use serde_json::Value as Json;
use skidder_event::{Map, Value};
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};
use std::sync::Arc;
use std::time::Duration;

/// Which allocations are requested.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    /// Those of one node: of this name, or of the agent that answers.
    Node(Option<String>),
    /// All of the cluster.
    Global,
}

/// Why the allocations are not known.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("node `{0}` is not known to Nomad; set `node` to the name of one")]
    Node(String),
}

/// Keeps a store up to date with Nomad.
pub(super) struct Watch {
    pub(super) server: HttpClient,
    pub(super) store: Arc<Store>,
    pub(super) scope: Scope,
    /// With its question mark, if it is not empty.
    pub(super) query: String,
    pub(super) token: Option<String>,
    pub(super) indexers: Vec<Indexer>,
    pub(super) period: Duration,
}

/// The query of these parameters.
pub(super) fn query(parameters: &[(&str, Option<String>)]) -> String {
    let set = parameters.iter().filter_map(|(name, value)| {
        let value = value.as_deref().filter(|value| !value.is_empty())?;
        Some(format!("{name}={}", percent_encoded(value)))
    });
    let query = set.collect::<Vec<_>>().join("&");
    if query.is_empty() { query } else { format!("?{query}") }
}

impl Watch {
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.store.keep_clean() => {}
            () = self.watch() => {}
        }
    }

    async fn watch(&self) {
        loop {
            match self.allocations().await {
                Ok(allocations) => {
                    let running = allocations
                        .iter()
                        .filter(|allocation| allocation["ClientStatus"] == "running");
                    let things = running.flat_map(|allocation| self.entries(allocation));
                    self.store.replace(things.collect());
                }
                Err(error) => {
                    tracing::warn!(%error, again_in = ?self.period, "Nomad cannot be asked");
                    self.store.failed();
                }
            }
            tokio::time::sleep(self.period).await;
        }
    }

    async fn get(&self, path: &str) -> Result<Json, HttpError> {
        let token = self.token.as_deref().unwrap_or_default();
        let header = [("X-Nomad-Token", token)];
        let headers = if token.is_empty() { &[][..] } else { &header };
        let path = format!("{path}{}", self.query);
        self.server.json(HttpRequest::get(&path).headers(headers)).await
    }

    async fn allocations(&self) -> Result<Vec<Json>, AskError> {
        let list = |json: Json| match json {
            Json::Array(items) => items,
            _ => Vec::new(),
        };
        let Scope::Node(node) = &self.scope else {
            let mut allocations = Vec::new();
            for stub in list(self.get("/v1/allocations").await?) {
                let id = stub["ID"].as_str().unwrap_or_default();
                allocations
                    .push(self.get(&format!("/v1/allocation/{}", percent_encoded(id))).await?);
            }
            return Ok(allocations);
        };
        let id = self.node_id(node.as_deref()).await?;
        Ok(list(self.get(&format!("/v1/node/{}/allocations", percent_encoded(&id))).await?))
    }

    /// The id of the node of this name, or of the agent's own.
    async fn node_id(&self, name: Option<&str>) -> Result<String, AskError> {
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
            _ => Err(AskError::Node(name.unwrap_or(own_name).to_owned())),
        }
    }

    /// The fields of an allocation, under each of its keys.
    fn entries(&self, allocation: &Json) -> Vec<(String, Map)> {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let (id, name) = (text(&allocation["ID"]), text(&allocation["Name"]));
        let namespace = text(&allocation["Namespace"]);
        let job = &allocation["Job"];
        let mut fields = Map::new();
        let datacenters = job["Datacenters"].as_array().into_iter().flatten();
        let datacenters = datacenters.map(|name| Value::from(text(name))).collect();
        fields.insert_path("nomad.datacenter", Value::List(datacenters));
        for (field, value) in [
            ("nomad.allocation.id", id.clone()),
            ("nomad.allocation.name", name.clone()),
            ("nomad.allocation.status", text(&allocation["ClientStatus"])),
            ("nomad.job.name", text(&job["Name"])),
            ("nomad.job.type", text(&job["Type"])),
            ("nomad.namespace", namespace.clone()),
            ("nomad.region", text(&job["Region"])),
        ] {
            fields.insert_path(field, value);
        }
        let key = |indexer: &Indexer| match indexer {
            Indexer::Name => format!("{namespace}/{name}"),
            Indexer::Uid => id.clone(),
        };
        self.indexers.iter().map(|indexer| (key(indexer), fields.clone())).collect()
    }
}
