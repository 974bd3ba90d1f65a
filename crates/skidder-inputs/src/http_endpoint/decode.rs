//! The objects of a body become events: all of them, or none.

use super::crc::Crc;
use super::original;
use super::program::Program;
use super::syntax::{skip_space, value_end};
use super::validate::Refused;
use crate::common::known_utf8;
use crate::stream::buffers::Buffers;
use hyper::StatusCode;
use skidder_event::{Batch, EventMut, Map, Parts, Path, Row, Text, Value};
use skidder_input::Source;
use skidder_parse::json_fields::{Dates, JsonFields};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a batch from which on the rest of a body goes into the next one. A body that is not longer is the batch.
pub(super) const BATCH_BYTES: usize = 384 << 10;

/// Events of a request; more is refused with 413. An empty object takes two bytes, and its event some ninety.
pub(super) const EVENTS_MAX: usize = 1 << 21;

/// The answer to a request of more than [`EVENTS_MAX`].
pub(super) fn too_many() -> Refused {
    (StatusCode::PAYLOAD_TOO_LARGE, format!("more than {EVENTS_MAX} events in a request"))
}

fn wrong(message: String) -> Refused {
    (StatusCode::BAD_REQUEST, message)
}

/// The paths of what is added to events.
#[derive(Debug)]
pub(super) struct Decoder {
    /// `None`: the root.
    pub(super) target: Option<Path>,
    /// `event.original` is added.
    pub(super) preserve_original: bool,
    /// What makes other objects of the values.
    program: Option<Program>,
    original: Path,
    event: Path,
    headers: Path,
    /// For bodies and batches.
    pub(super) buffers: Arc<Buffers>,
}

/// What a body has.
#[derive(Debug)]
pub(super) struct Decoded {
    /// Its events, and how many bytes of the body they are.
    pub(super) batches: Vec<(Batch, u64)>,
    /// The answer to a challenge, which stands behind these events.
    pub(super) challenge: Option<String>,
    /// Elements of lists that are no objects and become no events.
    pub(super) skipped: u64,
    /// What could not be put into the root of an event: the first of them.
    pub(super) left_out: Option<String>,
}

/// Objects of a body.
struct Objects {
    spans: Vec<Range<usize>>,
    skipped: u64,
}

impl Decoder {
    pub(super) fn new(
        target: Option<Path>,
        preserve_original: bool,
        program: Option<Program>,
    ) -> Self {
        let path = |name| Path::parse(name).expect("it is a path");
        Self {
            target,
            preserve_original,
            program,
            original: path("event.original"),
            event: path("event"),
            headers: path("headers"),
            buffers: Arc::new(Buffers::new(BATCH_BYTES)),
        }
    }

    /// Makes batches of a body. `headers` go into each event.
    ///
    /// # Errors
    /// The answer for the client: nothing of the body is used.
    pub(super) fn decode(
        &self,
        mut body: Parts,
        source: &mut Source,
        json: &mut JsonFields,
        (time, headers): (i64, Option<&Value>),
        crc: Option<&Crc>,
    ) -> Result<Decoded, Refused> {
        if let Some(program) = &self.program {
            let values = values(&body.bytes)?;
            let values: Vec<&[u8]> = values.into_iter().map(|span| &body.bytes[span]).collect();
            body.bytes = program.run(&values).map_err(wrong)?;
        }
        let mut make = |body: &mut Parts, spans: &[Range<usize>]| {
            let mut decoded =
                Decoded { batches: Vec::new(), challenge: None, skipped: 0, left_out: None };
            self.batches(body, spans, (source, json), (time, headers), &mut decoded)?;
            Ok::<_, String>(decoded)
        };
        if crc.is_none()
            && let Some(spans) = lines(&body.bytes)?
            && let Ok(decoded) = make(&mut body, &spans)
        {
            self.buffers.put(body);
            return Ok(decoded);
        }
        let Objects { mut spans, skipped } = objects(&body.bytes)?;
        let challenge = match crc {
            Some(crc) => challenge(crc, &body.bytes, &mut spans).map_err(wrong)?,
            None => None,
        };
        let decoded = make(&mut body, &spans).map_err(wrong)?;
        self.buffers.put(body);
        Ok(Decoded { challenge, skipped, ..decoded })
    }

    /// Makes the batches of these spans of a body; of a short one the body itself becomes the batch. After an error the body
    /// is there again.
    fn batches(
        &self,
        body: &mut Parts,
        mut spans: &[Range<usize>],
        (source, json): (&mut Source, &mut JsonFields),
        (time, headers): (i64, Option<&Value>),
        decoded: &mut Decoded,
    ) -> Result<(), String> {
        let length = body.bytes.len();
        if length <= BATCH_BYTES && !spans.is_empty() {
            let mut parts = std::mem::take(body);
            parts.rows.clear();
            parts.rows.extend(spans.iter().map(|span| row(span, 0, time)));
            let (batch, done) = self.batch(parts, (source, json), headers, decoded);
            if done.is_err() {
                body.bytes = batch.text(Text { start: 0, len: length as u32 }).to_vec();
                return done;
            }
            decoded.batches.push((batch, length as u64));
            return Ok(());
        }
        while let Some(first) = spans.first() {
            let start = first.start;
            let fits = |span: &Range<usize>| span.end - start <= BATCH_BYTES;
            let count = spans.partition_point(fits).max(1);
            let (these, rest) = spans.split_at(count);
            spans = rest;
            let end = these[count - 1].end;
            let mut parts = self.buffers.take();
            parts.bytes.extend_from_slice(&body.bytes[start..end]);
            parts.rows.extend(these.iter().map(|span| row(span, start, time)));
            let (batch, done) = self.batch(parts, (source, json), headers, decoded);
            done?;
            decoded.batches.push((batch, (end - start) as u64));
        }
        Ok(())
    }

    /// Makes a batch whose rows are objects.
    fn batch(
        &self,
        parts: Parts,
        (source, json): (&mut Source, &mut JsonFields),
        headers: Option<&Value>,
        decoded: &mut Decoded,
    ) -> (Batch, Result<(), String>) {
        let bytes = parts.bytes.len();
        let (parts, is_lent) = self.buffers.filled(parts, bytes);
        let utf8 = known_utf8(&parts.bytes, &parts.rows);
        let mut batch = source.batch_of(parts, utf8);
        if is_lent {
            self.buffers.lend(&mut batch);
        }
        let base = Arc::clone(batch.base());
        for row in 0..batch.len() {
            let text = batch.rows()[row].message;
            let mut event = batch.event_mut(row, &base);
            event.clear_message();
            match json.decode_document(&mut event, text, self.target.as_ref(), Dates::Rfc3339) {
                Ok(None) => {}
                Ok(Some(left_out)) => {
                    decoded.left_out.get_or_insert_with(|| left_out.to_string());
                }
                Err(error) => return (batch, Err(format!("malformed JSON object: {error}"))),
            }
            self.add(&mut event, text);
            self.add_headers(&mut event, headers);
        }
        batch.forget_changes();
        (batch, Ok(()))
    }

    /// Adds the object as text, if that is wanted.
    fn add(&self, event: &mut EventMut<'_>, object: Text) {
        if self.preserve_original
            && let Some(text) = original::text(event.text(object))
            && event.put_text(&self.original, text.as_bytes()).is_err()
        {
            // `event` is no object: it is replaced, as in Filebeat.
            let mut inner = Map::default();
            inner.insert("original", text);
            let put = event.put(&self.event, &Value::Map(inner));
            debug_assert!(put.is_ok(), "a field of the root can be set");
        }
    }

    /// Adds headers of the request.
    pub(super) fn add_headers(&self, event: &mut EventMut<'_>, headers: Option<&Value>) {
        if let Some(headers) = headers {
            let put = event.put(&self.headers, headers);
            debug_assert!(put.is_ok(), "a field of the root can be set");
        }
    }
}

/// The row of an object of a body whose byte at `start` is the first one of the batch.
fn row(span: &Range<usize>, start: usize, time: i64) -> Row {
    let len = span.len() as u32;
    Row::numbered(0, len, Text { start: (span.start - start) as u32, len }, time)
}

/// Adds an event, unless there are too many.
fn push(spans: &mut Vec<Range<usize>>, span: Range<usize>) -> Result<(), Refused> {
    if spans.len() == EVENTS_MAX {
        return Err(too_many());
    }
    spans.push(span);
    Ok(())
}

/// The lines of a body that looks like one object a line; they are not checked.
fn lines(body: &[u8]) -> Result<Option<Vec<Range<usize>>>, Refused> {
    let mut spans = Vec::new();
    let mut start = 0;
    let mut ends = memchr::memchr_iter(b'\n', body);
    loop {
        let end = ends.next();
        let line = &body[start..end.unwrap_or(body.len())];
        let trimmed = line.trim_ascii();
        if !trimmed.is_empty() {
            if trimmed[0] != b'{' || trimmed[trimmed.len() - 1] != b'}' {
                return Ok(None);
            }
            let before = line.len() - line.trim_ascii_start().len();
            push(&mut spans, start + before..start + before + trimmed.len())?;
        }
        match end {
            Some(end) => start = end + 1,
            None => return Ok(Some(spans)),
        }
    }
}

/// The values of a body, one after the other.
fn values(body: &[u8]) -> Result<Vec<Range<usize>>, Refused> {
    let mut spans = Vec::new();
    let mut at = 0;
    loop {
        at = skip_space(body, at);
        if at == body.len() {
            return Ok(spans);
        }
        let end = value_end(body, at).map_err(|why| {
            wrong(format!("malformed JSON object at stream position {at}: {why}"))
        })?;
        push(&mut spans, at..end)?;
        at = end;
    }
}

/// The objects of a body: those that are its values, and those in lists that are.
fn objects(body: &[u8]) -> Result<Objects, Refused> {
    let mut objects = Objects { spans: Vec::new(), skipped: 0 };
    for span in values(body)? {
        let kind = match body[span.start] {
            b'{' => {
                push(&mut objects.spans, span)?;
                continue;
            }
            b'[' => {
                elements(body, span.start + 1, &mut objects)?;
                continue;
            }
            b'"' => "string",
            b't' | b'f' => "bool",
            b'n' => "<nil>",
            _ => "json.Number",
        };
        return Err(wrong(format!("only JSON objects are accepted: {kind}")));
    }
    Ok(objects)
}

/// The objects in a list that was checked; `at` is behind its `[`.
fn elements(body: &[u8], mut at: usize, objects: &mut Objects) -> Result<(), Refused> {
    loop {
        at = skip_space(body, at);
        match body.get(at) {
            None | Some(b']') => return Ok(()),
            Some(b',') => at += 1,
            Some(byte) => {
                let Ok(end) = value_end(body, at) else { return Ok(()) };
                if *byte == b'{' {
                    push(&mut objects.spans, at..end)?;
                } else {
                    objects.skipped += 1;
                }
                at = end;
            }
        }
    }
}

/// The answer to the first challenge; it and what follows it are no events.
fn challenge(
    crc: &Crc,
    body: &[u8],
    spans: &mut Vec<Range<usize>>,
) -> Result<Option<String>, String> {
    for at in 0..spans.len() {
        let Ok(object) = serde_json::from_slice(&body[spans[at].clone()]) else { continue };
        if let Some(answer) = crc.answer(&object) {
            spans.truncate(at);
            return Ok(Some(answer?));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_wherever_they_stand() {
        let texts = |body: &str| {
            let found = objects(body.as_bytes()).map_err(|(_, message)| message)?;
            let texts = found.spans.into_iter().map(|span| body[span].to_owned());
            Ok::<_, String>((texts.collect::<Vec<_>>(), found.skipped))
        };
        let all = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            texts("{\"a\":\n1}{} \n[{},3,[{}],{\"b\":[]}]").unwrap(),
            (all(&["{\"a\":\n1}", "{}", "{}", "{\"b\":[]}"]), 2)
        );
        assert_eq!(texts(" \n").unwrap(), (vec![], 0));
        assert_eq!(texts("{} 1"), Err("only JSON objects are accepted: json.Number".to_owned()));
        let message = texts("{}]").unwrap_err();
        assert_eq!(
            message,
            "malformed JSON object at stream position 2: invalid character ']' looking for beginning of value"
        );
    }

    #[test]
    fn lines_are_taken_only_if_each_looks_like_an_object() {
        assert_eq!(lines(b"{}\r\n\n {1}"), Ok(Some(vec![0..2, 6..9])));
        assert_eq!(lines(b""), Ok(Some(vec![])));
        for body in [&b"{\n}"[..], b"[{}]", b"{} {}\n1"] {
            assert_eq!(lines(body), Ok(None), "{body:?}");
        }
    }
}
