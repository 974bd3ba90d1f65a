//! Following Docker's API: the list of containers, then its events.
//!
//! <https://docs.docker.com/reference/api/engine/>. The stream of events begins before the list, so that nothing is
//! missed between them; after a break everything is listed again.

use crate::labels;
use crate::store::Store;
use serde_json::Value as Json;
use skidder_event::Map;
use skidder_net::{HttpClient, HttpError, HttpRequest, percent_encoded};
use std::sync::Arc;
use std::time::Duration;

/// Silence after which the stream of events is opened anew, as in Filebeat.
const SILENCE_MAX: Duration = Duration::from_mins(10);
/// Wait after a stream that was open has ended.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A short id is so many characters of the id.
const SHORT_ID: usize = 12;

/// Keeps a store up to date with Docker.
pub(super) struct Watch {
    pub(super) server: HttpClient,
    pub(super) store: Arc<Store>,
    pub(super) dedot: bool,
    /// Whether containers are known by their short ids too.
    pub(super) short_ids: bool,
    /// Wait after Docker could not be reached.
    pub(super) retry: Duration,
    /// How long to try if it never could be.
    pub(super) limit: Duration,
    /// Files wait for the list.
    pub(super) wait: bool,
}

impl Watch {
    pub(super) async fn run(self) {
        tokio::select! {
            () = self.store.keep_clean() => {}
            () = self.watch() => {}
        }
    }

    async fn watch(&self) {
        let first = async {
            let mut is_reported = !self.wait;
            loop {
                let error = self.listen().await;
                if self.store.is_listed() {
                    return;
                }
                tracing::debug!(%error, host = ?self.server, "no Docker was found");
                if !std::mem::replace(&mut is_reported, true) {
                    tracing::warn!(%error, host = ?self.server,
                        "files wait until Docker is found (`wait_for_metadata` of add_docker_metadata)");
                }
                self.store.failed();
                tokio::time::sleep(self.retry).await;
            }
        };
        if tokio::time::timeout(self.limit, first).await.is_err() && !self.store.is_listed() {
            tracing::warn!(host = ?self.server, "no Docker was found within `wait_for_metadata_timeout`; \
                add_docker_metadata adds nothing");
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(AGAIN_AFTER).await;
            let error = self.listen().await;
            tracing::debug!(%error, "Docker's events ended; they are asked for again");
        }
    }

    /// Lists and listens until something fails.
    async fn listen(&self) -> String {
        match self.try_listen().await {
            Ok(()) => "the stream ended".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    async fn try_listen(&self) -> Result<(), HttpError> {
        let path = format!("/events?filters={}", percent_encoded(r#"{"type":["container"]}"#));
        let mut events = self.server.open(HttpRequest::get(&path)).await?;
        let list = self.server.json(HttpRequest::get("/containers/json")).await?;
        let containers = list.as_array().into_iter().flatten();
        self.store.replace(containers.flat_map(|container| self.entries(container)).collect());
        loop {
            let line = tokio::time::timeout(SILENCE_MAX, events.line()).await;
            let Some(line) = line.map_err(|_| HttpError::Timeout(SILENCE_MAX))?? else {
                return Ok(());
            };
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                self.event(&serde_json::from_slice(&line)?).await?;
            }
        }
    }

    async fn event(&self, event: &Json) -> Result<(), HttpError> {
        let Some(id) = event["Actor"]["ID"].as_str() else { return Ok(()) };
        match event["Action"].as_str().unwrap_or_default() {
            "start" | "update" => {
                let filter = serde_json::json!({ "id": [id] }).to_string();
                let path = format!("/containers/json?filters={}", percent_encoded(&filter));
                let list = self.server.json(HttpRequest::get(&path)).await?;
                for container in list.as_array().into_iter().flatten() {
                    for (key, fields) in self.entries(container) {
                        self.store.put(&key, fields);
                    }
                }
            }
            "die" => {
                self.store.forget(id);
                if let Some(short) = id.get(..SHORT_ID).filter(|_| self.short_ids) {
                    self.store.forget(short);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The fields of a container, by its id and perhaps its short id.
    fn entries(&self, container: &Json) -> Vec<(String, Map)> {
        let Some(id) = container["Id"].as_str() else { return Vec::new() };
        let name = container["Names"][0].as_str().unwrap_or_default();
        let mut fields = Map::new();
        fields.insert_path("container.id", id);
        fields.insert_path("container.name", name.strip_prefix('/').unwrap_or(name));
        fields.insert_path("container.image.name", container["Image"].as_str().unwrap_or_default());
        let mut all = Map::new();
        for (name, value) in container["Labels"].as_object().into_iter().flatten() {
            labels::put(&mut all, name, value.as_str().unwrap_or_default(), self.dedot);
        }
        if !all.is_empty() {
            fields.insert_path("container.labels", all);
        }
        let mut entries = vec![(id.to_owned(), fields)];
        if let Some(short) = id.get(..SHORT_ID).filter(|_| self.short_ids) {
            entries.push((short.to_owned(), entries[0].1.clone()));
        }
        entries
    }
}
