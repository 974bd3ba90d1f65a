//! `_bulk` of Elasticsearch: a line with an action, and a line with its document, which is the event.
//!
//! <https://www.elastic.co/docs/api/doc/elasticsearch/operation/operation-bulk>. Index, pipeline and id of the action go
//! to `@metadata`, where our output of Elasticsearch finds them. A document that cannot be taken is refused by itself.

use super::super::decode::{BATCH_BYTES, Decoder};
use super::deliver::Outcome;
use super::elasticsearch;
use crate::common::known_utf8;
use hyper::StatusCode;
use serde::{Deserialize, Deserializer};
use skidder_event::{Batch, Map, Row, Text, Value};
use skidder_input::Source;
use skidder_parse::json_fields::{Dates, JsonFields, JsonFieldsError};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Documents of a request; more is refused with 413.
const ITEMS_MAX: usize = 1 << 20;

/// The mark of UTF-8, which some clients write before the first action.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The line before a document.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Target {
    #[serde(rename = "_index", deserialize_with = "text")]
    index: Option<String>,
    #[serde(rename = "_id", deserialize_with = "text")]
    id: Option<String>,
    #[serde(deserialize_with = "text")]
    pipeline: Option<String>,
}

/// A text; numbers and booleans are theirs.
fn text<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    match serde_json::Value::deserialize(value)? {
        serde_json::Value::Null => Ok(None),
        serde_json::Value::String(text) => Ok(Some(text)),
        other @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => {
            Ok(Some(other.to_string()))
        }
        _ => Err(serde::de::Error::custom("a list or an object where a text is expected")),
    }
}

/// An action, which many documents may share.
#[derive(Debug)]
struct Action {
    verb: &'static str,
    target: Target,
    metadata: Map,
}

/// A document and what became of it.
#[derive(Debug)]
struct Item {
    /// Its place in [`Bulk::actions`].
    action: u32,
    document: Range<usize>,
    refused: Option<Box<str>>,
    /// The batch that it is in.
    batch: u32,
}

/// The documents of a request.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    actions: Vec<Action>,
    items: Vec<Item>,
    /// What could not be put into the root of an event: the first of them.
    pub(super) left_out: Option<String>,
}

/// Defaults of a request.
pub(super) struct Defaults {
    pub(super) index: Option<String>,
    pub(super) pipeline: Option<String>,
}

impl Bulk {
    /// Splits a body. Documents are not looked into.
    ///
    /// # Errors
    /// A line that should be an action is none; nothing of the body is used.
    pub(super) fn parse(body: &[u8], defaults: &Defaults) -> Result<Self, (StatusCode, String)> {
        let mut bulk = Self::default();
        let mark = if body.starts_with(BOM) { BOM.len() } else { 0 };
        let mut lines = Lines { body, at: mark, number: 0 };
        let mut last: &[u8] = b"";
        while let Some(line) = lines.next_filled() {
            let text = &body[line];
            if text != last || bulk.actions.is_empty() {
                let action = action(text, defaults).map_err(|why| {
                    let number = lines.number;
                    let message = format!("Malformed action/metadata line [{number}]: {why}");
                    (StatusCode::BAD_REQUEST, message)
                })?;
                bulk.actions.push(action);
                last = text;
            }
            let action = bulk.actions.len() as u32 - 1;
            let verb = bulk.actions[action as usize].verb;
            let mut item = Item { action, document: 0..0, refused: None, batch: 0 };
            if verb != "delete" {
                let Some(document) = lines.next() else {
                    let message = format!("no document behind the action [{}]", lines.number);
                    return Err((StatusCode::BAD_REQUEST, message));
                };
                item.document = document;
            }
            if !matches!(verb, "create" | "index") {
                item.refused = Some(format!("{verb}: only create and index are taken").into());
            }
            if bulk.items.len() == ITEMS_MAX {
                let message = format!("more than {ITEMS_MAX} documents in a request");
                return Err((StatusCode::PAYLOAD_TOO_LARGE, message));
            }
            bulk.items.push(item);
        }
        if bulk.items.is_empty() {
            let message = "request body is required".to_owned();
            return Err((StatusCode::BAD_REQUEST, message));
        }
        Ok(bulk)
    }

    /// Makes batches of the documents. One that is no object is refused.
    pub(super) fn batches(
        &mut self,
        body: &[u8],
        decoder: &Decoder,
        (source, json): (&mut Source, &mut JsonFields),
        (time, headers): (i64, Option<&Value>),
    ) -> Vec<(Batch, u64)> {
        let mut batches = Vec::new();
        let mut from = 0;
        while from < self.items.len() {
            let mut bytes = 0;
            let fits = self.items[from..].iter().take_while(|item| {
                bytes += item.document.len();
                bytes <= BATCH_BYTES || bytes == item.document.len()
            });
            let to = from + fits.count().max(1);
            // Documents that are refused are known when all were read: then the batch is made without them.
            let (batch, is_whole) =
                self.batch(body, from..to, decoder, source, json, (time, headers));
            let batch = if is_whole {
                batch
            } else {
                drop(batch);
                self.batch(body, from..to, decoder, source, json, (time, headers)).0
            };
            if !batch.is_empty() {
                for item in &mut self.items[from..to] {
                    item.batch = batches.len() as u32;
                }
                let bytes = batch.rows().iter().map(|row| u64::from(row.message.len));
                let bytes = bytes.sum();
                batches.push((batch, bytes));
            }
            from = to;
        }
        batches
    }

    fn batch(
        &mut self,
        body: &[u8],
        items: Range<usize>,
        decoder: &Decoder,
        source: &mut Source,
        json: &mut JsonFields,
        (time, headers): (i64, Option<&Value>),
    ) -> (Batch, bool) {
        let mut parts = decoder.buffers.take();
        for item in self.items[items.clone()].iter().filter(|item| item.refused.is_none()) {
            let (start, len) = (parts.bytes.len() as u32, item.document.len() as u32);
            parts.bytes.extend_from_slice(&body[item.document.clone()]);
            parts.rows.push(Row::numbered(0, len, Text { start, len }, time));
        }
        let bytes = parts.bytes.len();
        let (parts, is_lent) = decoder.buffers.filled(parts, bytes);
        let utf8 = known_utf8(&parts.bytes, &parts.rows);
        let mut batch = source.batch_of(parts, utf8);
        if is_lent {
            decoder.buffers.lend(&mut batch);
        }
        let base = Arc::clone(batch.base());
        let mut is_whole = true;
        let wanted = self.items[items].iter_mut().filter(|item| item.refused.is_none());
        for (row, item) in wanted.enumerate() {
            let text = batch.rows()[row].message;
            let mut event = batch.event_mut(row, &base);
            event.clear_message();
            match json.decode_document(&mut event, text, None, Dates::Elasticsearch) {
                Ok(None) => {}
                Ok(Some(left_out)) => {
                    self.left_out.get_or_insert_with(|| left_out.to_string());
                }
                Err(error) => {
                    item.refused = Some(refusal(&error));
                    is_whole = false;
                    continue;
                }
            }
            let metadata = &self.actions[item.action as usize].metadata;
            if !metadata.is_empty() {
                event.merge_metadata(metadata);
            }
            decoder.add_headers(&mut event, headers);
        }
        batch.forget_changes();
        (batch, is_whole)
    }

    /// The number of documents that are in a batch.
    pub(super) fn sent(&self) -> usize {
        self.items.iter().filter(|item| item.refused.is_none()).count()
    }

    /// How many documents are refused, and why the first one is; nothing if all are taken.
    pub(super) fn refused(&self) -> Option<String> {
        let mut refused = self.items.iter().filter_map(|item| item.refused.as_deref());
        let first = refused.next()?;
        Some(match refused.count() {
            0 => format!("a document is refused: {first}"),
            more => format!("{} documents are refused, the first: {first}", more + 1),
        })
    }

    /// The body of the answer: each document and what became of it.
    pub(super) fn answer(&self, outcomes: &[Outcome]) -> String {
        let status = |item: &Item| match (&item.refused, outcomes.get(item.batch as usize)) {
            (Some(_), _) => StatusCode::BAD_REQUEST,
            (None, Some(Outcome::Taken)) => StatusCode::CREATED,
            _ => StatusCode::TOO_MANY_REQUESTS,
        };
        let has_errors = self.items.iter().any(|item| status(item) != StatusCode::CREATED);
        let mut out = String::with_capacity(64 + self.items.len() * 96);
        out.push_str(&format!("{{\"took\":1,\"errors\":{has_errors},\"items\":["));
        for (at, item) in self.items.iter().enumerate() {
            let action = &self.actions[item.action as usize];
            let status = status(item);
            out.push_str(if at > 0 { ",{\"" } else { "{\"" });
            out.push_str(action.verb);
            out.push_str("\":{");
            for (name, value) in [("_index", &action.target.index), ("_id", &action.target.id)] {
                if let Some(value) = value {
                    let value = serde_json::Value::from(value.as_str());
                    out.push_str(&format!("\"{name}\":{value},"));
                }
            }
            out.push_str(&format!("\"status\":{}", status.as_u16()));
            if status != StatusCode::CREATED {
                let outcome = outcomes.get(item.batch as usize).copied();
                let outcome = outcome.unwrap_or(Outcome::Full).message();
                let reason = item.refused.as_deref().unwrap_or(outcome);
                let is_document = matches!(action.verb, "create" | "index");
                let error = if item.refused.is_some() && is_document {
                    elasticsearch::unparsed(reason)
                } else {
                    elasticsearch::error_of(status, reason)
                };
                out.push_str(&format!(",\"error\":{error}"));
            }
            out.push_str("}}");
        }
        out.push_str("]}");
        out
    }
}

/// Why a document is refused.
fn refusal(error: &JsonFieldsError) -> Box<str> {
    match error {
        JsonFieldsError::Date(_) => error.to_string().into(),
        error => format!("failed to parse the document: {error}").into(),
    }
}

/// Lines of a body, without their ends.
struct Lines<'a> {
    body: &'a [u8],
    at: usize,
    /// Of the last line, from 1.
    number: usize,
}

impl Lines<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        if self.at == self.body.len() {
            return None;
        }
        let rest = &self.body[self.at..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        let line = self.at..self.at + end;
        self.at = (self.at + end + 1).min(self.body.len());
        self.number += 1;
        Some(line)
    }

    fn next_filled(&mut self) -> Option<Range<usize>> {
        loop {
            let line = self.next()?;
            if !self.body[line.clone()].trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }
}

/// Reads the line of an action.
fn action(line: &[u8], defaults: &Defaults) -> Result<Action, String> {
    let read: HashMap<String, Target> =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut read = read.into_iter();
    let (Some((verb, mut target)), None) = (read.next(), read.next()) else {
        return Err("expected one action".to_owned());
    };
    let known = ["create", "index", "update", "delete"];
    let Some(verb) = known.into_iter().find(|known| *known == verb) else {
        return Err(format!("Unknown action [{verb}]"));
    };
    target.index = target.index.take().or_else(|| defaults.index.clone());
    target.pipeline = target.pipeline.take().or_else(|| defaults.pipeline.clone());
    let mut metadata = Map::new();
    let texts = [("raw_index", &target.index), ("_id", &target.id), ("pipeline", &target.pipeline)];
    for (name, text) in texts {
        if let Some(text) = text.as_deref().filter(|text| !text.is_empty()) {
            metadata.insert(name, text);
        }
    }
    // An output creates unless it is said to replace, which needs an id.
    if verb == "index" && target.id.as_deref().is_some_and(|id| !id.is_empty()) {
        metadata.insert("op_type", "index");
    }
    Ok(Action { verb, target, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Bulk, (StatusCode, String)> {
        Bulk::parse(body.as_bytes(), &Defaults { index: Some("d".to_owned()), pipeline: None })
    }

    #[test]
    fn actions_and_documents_alternate() {
        let body = "{\"create\":{}}\n{\"a\":1}\n\n{\"index\":{\"_index\":\"i\",\"_id\":\"7\",\"pipeline\":\"p\"}}\n{}\n\
                    {\"delete\":{\"_id\":\"1\"}}\n{\"update\":{\"_id\":\"1\"}}\r\n{}\n{\"create\":{}}\n{\"a\":2}";
        let bulk = parse(body).unwrap();
        let seen = bulk.items.iter().map(|item| {
            let action = &bulk.actions[item.action as usize];
            (action.verb, &body[item.document.clone()], item.refused.is_some())
        });
        let seen: Vec<_> = seen.collect();
        let expected = [
            ("create", "{\"a\":1}", false),
            ("index", "{}", false),
            ("delete", "", true),
            ("update", "{}", true),
            ("create", "{\"a\":2}", false),
        ];
        assert_eq!(seen, expected);
        let index = &bulk.actions[1];
        let texts =
            ["raw_index", "_id", "pipeline", "op_type"].map(|name| index.metadata.get(name));
        assert_eq!(
            texts.map(|text| text.cloned()),
            ["i", "7", "p", "index"].map(|text| Some(text.into()))
        );
        assert_eq!(bulk.actions[0].metadata.get("raw_index"), Some(&"d".into()));
        assert_eq!(bulk.actions[0].metadata.get("op_type"), None);
    }

    #[test]
    fn equal_actions_are_read_once() {
        let bulk = parse(&"{\"create\":{}}\n{}\n".repeat(100)).unwrap();
        assert_eq!((bulk.actions.len(), bulk.items.len()), (1, 100));
    }

    #[test]
    fn a_line_that_is_no_action_refuses_the_request_and_names_the_line() {
        for (body, expected) in [
            ("", "request body is required"),
            ("\n\n", "request body is required"),
            ("{}\n{}\n", "line [1]: expected one action"),
            ("{\"create\":{}}\n{}\n[]\n{}\n", "line [3]"),
            ("{\"create\":{},\"index\":{}}\n{}\n", "line [1]: expected one action"),
            ("{\"upsert\":{}}\n{}\n", "line [1]: Unknown action [upsert]"),
            ("{\"create\":{\"_id\":[7]}}\n{}\n", "line [1]"),
            ("{\"create\":{}}\n{}\n{\"create\":{}}\n", "no document behind the action [3]"),
        ] {
            let (status, message) = parse(body).unwrap_err();
            assert_eq!(status, StatusCode::BAD_REQUEST);
            assert!(message.contains(expected), "{body:?}: {message}");
        }
    }

    #[test]
    fn the_answer_has_an_item_for_each_document() {
        let mut bulk =
            parse("{\"create\":{\"_id\":\"a\\\"\"}}\n{}\n{\"create\":{}}\n{}\n{\"delete\":{}}\n")
                .unwrap();
        bulk.items[1].batch = 1;
        let answer: serde_json::Value =
            serde_json::from_str(&bulk.answer(&[Outcome::Taken, Outcome::Full])).unwrap();
        let expected = serde_json::json!({"took": 1, "errors": true, "items": [
            {"create": {"_index": "d", "_id": "a\"", "status": 201}},
            {"create": {"_index": "d", "status": 429, "error":
                {"type": "es_rejected_execution_exception", "reason": "the queue is full"}}},
            {"delete": {"_index": "d", "status": 400, "error":
                {"type": "illegal_argument_exception", "reason": "delete: only create and index are taken"}}},
        ]});
        assert_eq!(answer, expected);
        bulk.items.truncate(1);
        assert!(bulk.answer(&[Outcome::Taken]).contains("\"errors\":false"));
    }
}
