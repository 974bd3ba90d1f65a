//! The encoder: one event as one JSON document, written once, straight into the caller's buffer.

use crate::batch::Batch;
use crate::escape::{escape_html, write_string};
use crate::merge::{lone_member, write_touched, write_uint};
use crate::time::TimeText;

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

/// Writes events as JSON documents. Holds no event; cheap to make, one for each worker.
#[derive(Debug)]
pub struct Encoder {
    time: TimeText,
    /// Other times than `@timestamp`.
    other: TimeText,
    /// `,"@metadata":{…}` for outputs that serialise it; empty for Elasticsearch.
    metadata: Vec<u8>,
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
        Self { time: TimeText::new(precision), other, metadata, escape_html: false }
    }

    /// An encoder that puts `@metadata: {beat, type, version}` into every document, as Filebeat's
    /// file, console, Logstash, Kafka and Redis outputs do.
    pub fn with_metadata(precision: Precision, beat: &str, version: &str) -> Self {
        let mut metadata = b",\"@metadata\":{\"beat\":".to_vec();
        write_string(&mut metadata, beat.as_bytes(), true);
        metadata.extend_from_slice(b",\"type\":\"_doc\",\"version\":");
        write_string(&mut metadata, version.as_bytes(), true);
        metadata.push(b'}');
        Self::of(precision, metadata)
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

    /// The output's own metadata with that of the base and the event behind it.
    fn write_metadata(&self, out: &mut Vec<u8>, batch: &Batch, own: crate::batch::NodeId) {
        let base = batch.base();
        if own.is_none() && base.metadata().is_empty() {
            out.extend_from_slice(&self.metadata);
            return;
        }
        out.extend_from_slice(&self.metadata[..self.metadata.len() - 1]);
        crate::merge::write_metadata_members(out, batch, base, own, false);
        out.push(b'}');
    }
}
