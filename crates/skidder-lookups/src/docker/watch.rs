//! Following Docker for the processor: containers become the fields of the store.

use super::containers::{Change, Containers};
use crate::labels;
use crate::store::Store;
use serde_json::Value as Json;
use skidder_event::Map;
use skidder_net::HttpClient;
use std::sync::Arc;
use std::time::Duration;

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

    /// Lists and listens until something fails; returns why.
    async fn listen(&self) -> String {
        let mut containers = Containers::new(self.server.clone(), false);
        loop {
            match containers.next().await {
                Ok(Some(change)) => self.take(change),
                Ok(None) => return "the stream ended".to_owned(),
                Err(error) => return error.to_string(),
            }
        }
    }

    fn take(&self, change: Change) {
        match change {
            Change::Listed(containers) => {
                let entries = containers.iter().flat_map(|container| self.entries(container));
                self.store.replace(entries.collect());
            }
            Change::Started(container) => {
                for (key, fields) in self.entries(&container) {
                    self.store.put(&key, fields);
                }
            }
            Change::Ended(id) => {
                self.store.forget(&id);
                if let Some(short) = id.get(..SHORT_ID).filter(|_| self.short_ids) {
                    self.store.forget(short);
                }
            }
        }
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
