//! One dead letter: read from its line, chosen, and made an event again.

use crate::cli::WhichLetters;
use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use skidder_event::{
    Base, Batch, FilePart, Map, Path as FieldPath, Progress, Provenance, Row, SourceId, Text,
};
use skidder_parse::json::Scanner;
use skidder_pipeline::DeadLetters;
use std::path::Path;
use std::sync::Arc;

/// The error of an event that another program has changed.
const NO_EVENT: &str = "its event is no JSON object";

/// Letters of a text that is shown in a table.
const SHOWN_MAX: usize = 160;

/// A letter as in the file, see [`skidder_pipeline::DeadLetters`].
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Letter {
    /// When it was refused.
    #[serde(rename = "@timestamp")]
    pub(super) time: String,
    /// Version of the letter; the first one had no number.
    #[serde(default = "first_version")]
    pub(super) version: u32,
    /// The status of the server, 0 if there was no request.
    pub(super) status: u16,
    /// The answer of the server: JSON, or any text.
    pub(super) reason: String,
    /// Path of the file, or name of another source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Option<String>,
    /// Type of the input of a source that is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) input: Option<String>,
    /// Key of the source in the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<String>,
    /// Of a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<u32>,
    /// Of a line in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) offset: Option<u64>,
    /// How many events of another source came before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    /// `@metadata` of the event; letters of versions before it was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Box<RawValue>>,
    /// The `_id` under which it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
    /// The document.
    pub(super) event: Box<RawValue>,
}

/// Where a letter comes from. Two copies of a line have the same.
pub(super) type Origin = (Option<String>, u32, u64);

/// The fields of a document that are read.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(rename = "@timestamp")]
    time: Option<String>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
}

fn first_version() -> u32 {
    1
}

/// What of a letter of a later version is still there.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

/// Why a line is no letter that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum LetterError {
    /// It is left alone.
    #[error("this line is no letter")]
    NoLetter,
    /// It is left alone; that skidder can send it again.
    #[error(
        "this letter is of version {0}, of a newer skidder; this one knows versions up to {newest}",
        newest = DeadLetters::VERSION
    )]
    Newer(u32),
}

impl Letter {
    /// Reads a line.
    pub(super) fn read(line: &[u8]) -> Result<Self, LetterError> {
        if let Ok(Versioned { version }) = serde_json::from_slice(line)
            && version > DeadLetters::VERSION
        {
            return Err(LetterError::Newer(version));
        }
        let letter: Self = serde_json::from_slice(line).map_err(|_| LetterError::NoLetter)?;
        let has_place = letter.number.is_some() || letter.offset.is_some();
        if has_place { Ok(letter) } else { Err(LetterError::NoLetter) }
    }

    /// Its place in its source: the offset in a file, the number of an event of another source.
    pub(super) fn place(&self) -> u64 {
        self.offset.or(self.number).unwrap_or_default()
    }

    /// The line that it is.
    pub(super) fn line(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and JSON can be written as JSON")
    }

    /// Whether it is a line of a file.
    pub(super) fn is_of_file(&self) -> bool {
        self.input.is_none()
    }

    pub(super) fn origin(&self) -> Origin {
        (self.identity.clone(), self.generation.unwrap_or_default(), self.place())
    }

    /// Whether it is one of the selected ones.
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
        let place = self.place();
        let (provenance, row) = if self.is_of_file() {
            let generation = self.generation.unwrap_or_default();
            let part = FilePart { generation, ..FilePart::new(place..place) };
            (Provenance::of_file(source, part), Row::new(place, 0, Text::default(), time))
        } else {
            let progress = Progress::Nothing(0);
            let row = Row::numbered(place, 0, Text::default(), time);
            (Provenance { source, progress }, row)
        };
        let mut batch = Batch::new(text.into(), true, Arc::clone(&base), provenance);
        batch.push(row);
        let mut event = batch.event_mut(0, &base);
        // Fields that every new event has: this one has them only if its document does.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// As the first version wrote it.
    const V1: &str = r#"{"@timestamp":"2026-11-25T01:57:55.523Z","status":400,"reason":"{\"type\": \"mapper_parsing_exception\", \"reason\": \"no\"}","source":"/logs/app.log","identity":"filestream::app::fingerprint::17ef","generation":2,"offset":450,"event":{"@timestamp":"2026-11-25T01:57:55.371Z","message":"a line"}}"#;

    #[test]
    fn a_letter_of_the_first_version_is_of_a_file() {
        let letter = Letter::read(V1.as_bytes()).expect("it is a letter");
        assert_eq!((letter.version, letter.generation, letter.place()), (1, Some(2), 450));
        let batch = letter.batch(SourceId(1), &mut Scanner::new(true)).expect("it is an event");
        assert_eq!(batch.provenance().generation(), 2);
        assert_eq!(batch.rows()[0].offset, 450);
        let line = String::from_utf8(letter.line()).expect("it is JSON");
        assert_eq!(Letter::read(line.as_bytes()).expect("it is one again").place(), 450);
    }

    #[test]
    fn a_letter_of_another_source_is_an_event_of_its_number() {
        let text = r#"{"@timestamp":"2026-11-25T01:57:55Z","version":2,"status":400,"reason":"no","source":"10.0.0.7:4711","input":"tcp","identity":"tcp::a::1","number":41,"event":{"@timestamp":"2026-11-25T01:57:55Z","message":"m"}}"#;
        let letter = Letter::read(text.as_bytes()).expect("it is a letter");
        assert!(!letter.is_of_file());
        let batch = letter.batch(SourceId(1), &mut Scanner::new(true)).expect("it is an event");
        assert!(batch.provenance().file().is_none());
        assert_eq!(batch.rows()[0].offset, 41);
        assert_eq!(letter.line(), text.as_bytes());
    }

    #[test]
    fn a_letter_of_a_newer_version_is_refused_by_its_number() {
        let newer = br#"{"version":3,"whatever":true}"#;
        assert_eq!(Letter::read(newer).err(), Some(LetterError::Newer(3)));
        let text = LetterError::Newer(3).to_string();
        assert!(text.contains("version 3") && text.contains("up to 2"), "{text}");
        assert_eq!(Letter::read(b"{\"a\":1}").err(), Some(LetterError::NoLetter));
    }
}
