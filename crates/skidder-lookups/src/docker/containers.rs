//! The containers of a Docker engine: their list, then each start and end.
//!
//! <https://docs.docker.com/reference/api/engine/>. The stream of events begins before the list, so that nothing is
//! missed between them; after a break everything is listed again.

use serde_json::Value as Json;
use skidder_net::{AnswerStream, HttpClient, HttpError, HttpRequest, percent_encoded};
use std::time::Duration;

/// Silence after which the stream of events is opened anew, as in Filebeat.
const SILENCE_MAX: Duration = Duration::from_mins(10);

/// What happened to containers.
#[derive(Debug)]
pub enum Change {
    /// These run; no others do.
    Listed(Vec<Json>),
    /// A container has started, or is another than before: as an item of `/containers/json`.
    Started(Json),
    /// The container with this id has ended.
    Ended(String),
}

/// Follows the containers of an engine. To be polled in a runtime of tokio.
#[derive(Debug)]
pub struct Containers {
    server: HttpClient,
    /// Whether a container that has ended before it was looked at counts as started.
    short_lived: bool,
    /// Those that have ended since then are of interest, too, once; as `2026-01-02T03:04:05Z`.
    ended_since: Option<String>,
    /// Of the list, those that have ended.
    ended: Vec<String>,
    events: Option<AnswerStream>,
}

/// Containers that have ended, of which the newest are looked at.
const ENDED_MAX: usize = 100;

impl Containers {
    /// Those of the engine behind `server`. With `short_lived`, those that end before they could be looked at have a start
    /// too.
    pub fn new(server: HttpClient, short_lived: bool) -> Self {
        Self { server, short_lived, ended_since: None, ended: Vec::new(), events: None }
    }

    /// The same, where the first list has those that have ended since a time, too: they are in [`Change::Listed`], and the
    /// next change of each is its end.
    #[must_use]
    pub fn with_ended_since(self, time: Option<String>) -> Self {
        Self { ended_since: time, ..self }
    }

    /// Containers that have ended since `time`: an item of the list for each, with the details that had to be requested.
    async fn ended_since(&self, time: &str) -> Result<Vec<Json>, HttpError> {
        let filter = percent_encoded(r#"{"status":["exited","dead"]}"#);
        let path = format!("/containers/json?all=true&limit={ENDED_MAX}&filters={filter}");
        let mut ended = items(self.server.json(HttpRequest::get(&path)).await?);
        let mut kept = Vec::new();
        for mut container in ended.drain(..) {
            let Some(id) = container["Id"].as_str() else { continue };
            let path = format!("/containers/{}/json", percent_encoded(id));
            // One that was removed meanwhile is gone with its log.
            let Ok(details) = self.server.json(HttpRequest::get(&path)).await else { continue };
            if details["State"]["FinishedAt"].as_str().is_some_and(|at| at >= time) {
                put_details(&mut container, details);
                kept.push(container);
            }
        }
        Ok(kept)
    }

    /// Waits for the next change; `None` if the stream has ended, or all of it was silent for ten minutes. After that and
    /// after an error the next call lists everything again.
    pub async fn next(&mut self) -> Result<Option<Change>, HttpError> {
        let Some(mut events) = self.events.take() else {
            let path = format!("/events?filters={}", percent_encoded(r#"{"type":["container"]}"#));
            let events = self.server.open(HttpRequest::get(&path)).await?;
            let list = self.server.json(HttpRequest::get("/containers/json")).await?;
            let mut list = items(list);
            if let Some(time) = self.ended_since.take() {
                let ended = self.ended_since(&time).await?;
                self.ended =
                    ended.iter().filter_map(|one| Some(one["Id"].as_str()?.to_owned())).collect();
                list.extend(ended);
            }
            self.events = Some(events);
            return Ok(Some(Change::Listed(list)));
        };
        if let Some(id) = self.ended.pop() {
            self.events = Some(events);
            return Ok(Some(Change::Ended(id)));
        }
        loop {
            let line = tokio::time::timeout(SILENCE_MAX, events.line()).await;
            let Some(line) = line.map_err(|_| HttpError::Timeout(SILENCE_MAX))?? else {
                return Ok(None);
            };
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            if let Some(change) = self.event(&serde_json::from_slice(&line)?).await? {
                self.events = Some(events);
                return Ok(Some(change));
            }
        }
    }

    async fn event(&self, event: &Json) -> Result<Option<Change>, HttpError> {
        let Some(id) = event["Actor"]["ID"].as_str() else { return Ok(None) };
        match event["Action"].as_str().unwrap_or_default() {
            "start" | "update" => {
                let filter = serde_json::json!({ "id": [id] }).to_string();
                let all = if self.short_lived { "all=true&" } else { "" };
                let path = format!("/containers/json?{all}filters={}", percent_encoded(&filter));
                let list = self.server.json(HttpRequest::get(&path)).await?;
                Ok(items(list).pop().map(Change::Started))
            }
            "die" => Ok(Some(Change::Ended(id.to_owned()))),
            _ => Ok(None),
        }
    }
}

/// Adds to an item of a list what only an inspection has: the log driver, and the name of the host.
pub fn put_details(container: &mut Json, mut inspection: Json) {
    container["HostConfig"]["LogConfig"] = inspection["HostConfig"]["LogConfig"].take();
    container["Hostname"] = inspection["Config"]["Hostname"].take();
}

fn items(list: Json) -> Vec<Json> {
    match list {
        Json::Array(items) => items,
        _ => Vec::new(),
    }
}
