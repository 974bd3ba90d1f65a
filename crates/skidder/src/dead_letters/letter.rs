//! One dead letter: read from its line, chosen, and made an event again.

use crate::cli::WhichLetters;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skidder_event::{Base, Batch, Map, Path as FieldPath, Provenance, Row, SourceId, Text};
use skidder_parse::json::Scanner;
use std::path::Path;
use std::sync::Arc;

/// What is said of an event that others have changed.
const NO_EVENT: &str = "its event is no JSON object";

/// Letters of a text that is shown in a table.
const SHOWN_MAX: usize = 160;

/// A letter as it stands in the file, see [`skidder_pipeline::DeadLetters`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Letter {
    /// When it was refused.
    #[serde(rename = "@timestamp")]
    pub(super) time: String,
    /// What the server answered, 0 if it was not asked.
    pub(super) status: u16,
    /// What the other side said: JSON, or any text.
    pub(super) reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    /// Key of the source in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<String>,
    pub(super) generation: u32,
    pub(super) offset: u64,
    /// `@metadata` of the event; letters of versions before it was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Box<RawValue>>,
    /// The `_id` under which it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The document.
    pub(super) event: Box<RawValue>,
}

/// What says where a letter comes from. Two copies of a line have the same.
pub(super) type Origin = (Option<String>, u32, u64);

/// What of a document is looked at.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "@timestamp")]
    time: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

impl Letter {
    /// Reads a line. Nothing if it is no letter.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    /// The line that it is.
    pub(super) fn line(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and JSON can be written as JSON")
    }

    pub(super) fn origin(&self) -> Origin {
        (self.identity.clone(), self.generation, self.offset)
    }

    /// Whether it is one of those that are meant.
    pub(super) fn is_in(&self, which: &WhichLetters) -> bool {
        let at = self.time.parse::<jiff::Timestamp>().ok();
        which.status.is_none_or(|status| status == self.status)
            && which.reason.as_ref().is_none_or(|text| self.reason.contains(text))
            && which.source.as_ref().is_none_or(|path| {
                self.source.as_ref().is_some_and(|source| Path::new(source).starts_with(path))
            })
            && which.since.is_none_or(|since| at.is_some_and(|at| at >= since))
            && which.until.is_none_or(|until| at.is_some_and(|at| at < until))
    }

    /// What kind of refusal it is: the type of the server's error, or the beginning of the reason.
    pub(super) fn kind(&self) -> String {
        match self.error() {
            Some(error) => error["type"].as_str().unwrap_or_default().to_owned(),
            None => cut(&self.reason),
        }
    }

    /// The reason for people, on one line.
    pub(super) fn why(&self) -> String {
        let Some(error) = self.error() else { return cut(&self.reason) };
        let mut parts = Vec::new();
        let mut next = Some(&error);
        while let Some(error) = next {
            parts.extend(error["reason"].as_str());
            next = error.get("caused_by").filter(|cause| cause.is_object());
        }
        cut(&parts.join(": "))
    }

    /// The reason, if it is an error of Elasticsearch.
    fn error(&self) -> Option<serde_json::Value> {
        let error: serde_json::Value = serde_json::from_str(&self.reason).ok()?;
        error["type"].is_string().then_some(error)
    }

    /// The event as it was, alone in a batch of this source, for the same `_id`.
    ///
    /// # Errors
    /// If the line was changed by others.
    pub(super) fn batch(&self, source: SourceId, scanner: &mut Scanner) -> Result<Batch> {
        let text = self.event.get();
        let head: Head<'_> = serde_json::from_str(text).context(NO_EVENT)?;
        let time = head.time.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let time = time.and_then(|time| i64::try_from(time.as_nanosecond()).ok());
        let time = time.context("the `@timestamp` of its event is no time")?;
        let base = Arc::new(Base::new(&Map::new(), &Map::new()));
        let mut provenance = Provenance::new(source, self.offset..self.offset);
        provenance.generation = self.generation;
        let mut batch = Batch::new(text.into(), true, Arc::clone(&base), provenance);
        batch.push(Row::new(self.offset, 0, Text::default(), time));
        let mut event = batch.event_mut(0, &base);
        // What every fresh event has of its own, this one has only if its document says so.
        if !head.message.is_some_and(|message| message.get().starts_with('"')) {
            event.clear_message();
        }
        event.delete(&path("log.offset"));
        let whole = Text { start: 0, len: text.len() as u32 };
        let fields = scanner.object(&mut event, whole).context(NO_EVENT)?;
        event.merge_list_over(fields, true);
        if let Some(metadata) = &self.metadata {
            let text = event.store_text(metadata.get().as_bytes());
            let fields = scanner.object(&mut event, text).context(NO_EVENT)?;
            event.merge_metadata_list(fields.first);
        }
        if let Some(id) = &self.id {
            event.put_text(&path("@metadata._id"), id.as_bytes()).context("its `_id`")?;
        }
        batch.finish();
        Ok(batch)
    }
}

fn path(text: &str) -> FieldPath {
    FieldPath::parse(text).expect("it is a path")
}

/// The first line of a text, not too long.
fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SHOWN_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
