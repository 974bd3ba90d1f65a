//! The encoder: one event as one JSON document, written once, straight into the caller's buffer.

use crate::base::find;
use crate::batch::{Batch, Cell, NodeId};
use crate::escape::{escape_html, write_string};
use crate::merge::{lone_member, write_touched, write_uint};
use crate::time::TimeText;
use std::ops::Range;

/// Decimals of `@timestamp` (`timestamp.precision`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// Three decimals, the default.
    #[default]
    Millisecond,
    /// Six decimals.
    Microsecond,
    /// Nine decimals.
    Nanosecond,
}

impl Precision {
    /// Length of a formatted timestamp.
    pub(crate) fn text_len(self) -> usize {
        match self {
            Self::Millisecond => 24,
            Self::Microsecond => 27,
            Self::Nanosecond => 30,
        }
    }
}

/// Begins the metadata of outputs that serialise it.
const METADATA: &[u8] = b",\"@metadata\":{";

/// Writes events as JSON documents. Holds no event; cheap to make, one for each worker.
#[derive(Debug)]
pub struct Encoder {
    time: TimeText,
    /// Other times than `@timestamp`.
    other: TimeText,
    /// `,"@metadata":{…}` for outputs that serialise it; empty for Elasticsearch.
    metadata: Vec<u8>,
    /// Its members, each with its key.
    members: Vec<(&'static str, Range<usize>)>,
    /// Whether `<`, `>` and `&` are escaped.
    escape_html: bool,
}

impl Encoder {
    /// An encoder of documents without `@metadata`.
    pub fn new(precision: Precision) -> Self {
        Self::of(precision, Vec::new())
    }

    fn of(precision: Precision, metadata: Vec<u8>) -> Self {
        let other = TimeText::new(Precision::Millisecond);
        let members = Vec::new();
        Self { time: TimeText::new(precision), other, metadata, members, escape_html: false }
    }

    /// An encoder that puts `@metadata: {beat, type, version}` into every document, as Filebeat's
    /// file, console, Logstash, Kafka and Redis outputs do.
    pub fn with_metadata(precision: Precision, beat: &str, version: &str) -> Self {
        let mut metadata = METADATA.to_vec();
        let mut members = Vec::new();
        for (key, value) in [("beat", beat), ("type", "_doc"), ("version", version)] {
            if !members.is_empty() {
                metadata.push(b',');
            }
            let start = metadata.len();
            write_string(&mut metadata, key.as_bytes(), true);
            metadata.push(b':');
            write_string(&mut metadata, value.as_bytes(), true);
            members.push((key, start..metadata.len()));
        }
        metadata.push(b'}');
        Self { members, ..Self::of(precision, metadata) }
    }

    /// The same, writing `<`, `>` and `&` as `\u003c`, `\u003e` and `\u0026` if `escape_html`.
    pub fn escaping_html(self, escape_html: bool) -> Self {
        Self { escape_html, ..self }
    }

    /// Appends the document of one event, without a newline.
    #[inline]
    pub fn write(&mut self, out: &mut Vec<u8>, batch: &Batch, row: usize) {
        let start = out.len();
        self.write_document(out, batch, row);
        if self.escape_html {
            escape_html(out, start);
        }
    }

    #[inline]
    fn write_document(&mut self, out: &mut Vec<u8>, batch: &Batch, row: usize) {
        let row = &batch.rows[row];
        out.extend_from_slice(b"{\"@timestamp\":\"");
        out.extend_from_slice(self.time.format(row.time));
        out.push(b'"');
        if !self.metadata.is_empty() {
            self.write_metadata(out, batch, row.metadata);
        }
        if batch.write_laid(out, row, &mut self.other) {
            return;
        }
        let base = batch.base();
        let Some(member) = lone_member(batch, row, base) else {
            write_touched(out, batch, row, base);
            return;
        };
        let pieces = base.pieces();
        out.extend_from_slice(pieces.before_offset());
        write_uint(out, row.offset);
        out.extend_from_slice(pieces.before_message());
        write_string(out, batch.text(row.message), batch.known_utf8(row.message));
        if !member.is_empty() {
            out.push(b',');
            out.extend_from_slice(member);
        }
        out.extend_from_slice(pieces.after_message());
    }

    /// Appends `@metadata` of one event as an object, or nothing if it has none; returns whether it has.
    pub fn write_own_metadata(&self, out: &mut Vec<u8>, batch: &Batch, row: usize) -> bool {
        let own = batch.rows[row].metadata;
        let base = batch.base();
        if own.is_none() && base.metadata().is_empty() {
            return false;
        }
        out.push(b'{');
        crate::merge::write_metadata_members(out, batch, base, own, true);
        out.push(b'}');
        true
    }

    /// The output's own metadata with that of the base and the event behind it, which win.
    fn write_metadata(&self, out: &mut Vec<u8>, batch: &Batch, own: NodeId) {
        let base = batch.base();
        if own.is_none() && base.metadata().is_empty() {
            out.extend_from_slice(&self.metadata);
            return;
        }
        out.extend_from_slice(METADATA);
        let start = out.len();
        for (key, member) in &self.members {
            if has_metadata(batch, own, key) {
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(&self.metadata[member.clone()]);
        }
        let first = out.len() == start;
        crate::merge::write_metadata_members(out, batch, base, own, first);
        out.push(b'}');
    }
}

/// Whether the event has a field of `@metadata` with this key, of its own or of the base.
fn has_metadata(batch: &Batch, own: NodeId, key: &str) -> bool {
    let found = if own.is_none() { None } else { batch.find(own, key.as_bytes()) };
    match found {
        Some(id) => batch.node(id).cell != Cell::Gone,
        None => find(batch.base().metadata(), key).is_some(),
    }
}
