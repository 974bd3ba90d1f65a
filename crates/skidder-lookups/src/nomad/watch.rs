//! Asking Nomad's API for allocations, again and again.
//!
//! <https://developer.hashicorp.com/nomad/api-docs>

use super::api::{NomadApi, NomadError};
use super::matchers::Indexer;
use crate::store::Store;
use serde_json::Value as Json;
use skidder_event::{Map, Value};
use skidder_net::percent_encoded;
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

/// Keeps a store up to date with Nomad.
pub(super) struct Watch {
    pub(super) api: NomadApi,
    pub(super) store: Arc<Store>,
    pub(super) scope: Scope,
    pub(super) indexers: Vec<Indexer>,
    pub(super) period: Duration,
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

    async fn allocations(&self) -> Result<Vec<Json>, NomadError> {
        let list = |json: Json| match json {
            Json::Array(items) => items,
            _ => Vec::new(),
        };
        let Scope::Node(node) = &self.scope else {
            let mut allocations = Vec::new();
            for stub in list(self.api.get("/v1/allocations").await?) {
                let id = stub["ID"].as_str().unwrap_or_default();
                allocations
                    .push(self.api.get(&format!("/v1/allocation/{}", percent_encoded(id))).await?);
            }
            return Ok(allocations);
        };
        let id = self.api.node_id(node.as_deref()).await?;
        Ok(list(self.api.get(&format!("/v1/node/{}/allocations", percent_encoded(&id))).await?))
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
