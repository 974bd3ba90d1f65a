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
    events: Option<AnswerStream>,
}

impl Containers {
    /// Those of the engine behind `server`. With `short_lived`, those that end before they could be looked at have a start
    /// too.
    pub fn new(server: HttpClient, short_lived: bool) -> Self {
        Self { server, short_lived, events: None }
    }

    /// Waits for the next change; `None` if the stream has ended, or all of it was silent for ten minutes. After that and
    /// after an error the next call lists everything again.
    pub async fn next(&mut self) -> Result<Option<Change>, HttpError> {
        let Some(mut events) = self.events.take() else {
            let path = format!("/events?filters={}", percent_encoded(r#"{"type":["container"]}"#));
            let events = self.server.open(HttpRequest::get(&path)).await?;
            let list = self.server.json(HttpRequest::get("/containers/json")).await?;
            self.events = Some(events);
            return Ok(Some(Change::Listed(items(list))));
        };
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

fn items(list: Json) -> Vec<Json> {
    match list {
        Json::Array(items) => items,
        _ => Vec::new(),
    }
}
