//! One record of Docker's `json-file` driver:
//! `{"log":"text\n","stream":"stdout","attrs":{…},"time":"2026-11-21T20:52:57.123456789Z"}`.
//!
//! The format is that of moby's `daemon/logger/jsonfilelog`. A text that does not end with a
//! newline goes on in the next record of its stream. As Filebeat does, `stream` may be missing,
//! `time` may not, and `attrs` are handed on.

use crate::json::{JsonError, Scanner};
use crate::time::TimeReader;
use skidder_event::{Cell, EventMut, FieldList, NodeId, Text};

/// One record; its texts are spans of the batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// Nanoseconds since 1970-01-01 UTC.
    pub time: i64,
    /// `stdout` or `stderr`, not checked; may be empty.
    pub stream: Text,
    /// The text goes on in the next record of the same stream.
    pub partial: bool,
    /// The text without escapes and without the newline at its end.
    pub message: Text,
    /// The labels and variables that the driver is configured to add, as an object.
    pub attrs: Option<NodeId>,
}

/// Why a line is no record; it stays as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DockerError {
    /// It is not JSON.
    #[error("not a Docker record: {0}")]
    Json(#[from] JsonError),
    /// A field is missing or has another type than the driver writes.
    #[error("not a Docker record: `{0}` is missing or not a text")]
    Field(&'static str),
    /// `time` is no timestamp.
    #[error("not a Docker record: `time` is not an RFC 3339 timestamp")]
    Time,
}

/// Reads a line of a batch. The event itself stays as it is; texts with escapes are added to the
/// batch's bytes.
pub fn parse(
    scanner: &mut Scanner,
    times: &mut TimeReader,
    event: &mut EventMut<'_>,
    line: Text,
) -> Result<Record, DockerError> {
    let fields = scanner.object(event, line)?;
    let (bytes, arena) = event.arena();
    let text = |text: Text| &bytes[text.start as usize..(text.start + text.len) as usize];
    let nothing = Text { start: line.start, len: 0 };
    let (mut log, mut stream, mut time, mut attrs) = (nothing, nothing, None, None);
    let mut next = fields.first;
    while !next.is_none() {
        match (text(arena.key(next)), arena.cell(next)) {
            (b"log", Cell::Str(value)) => log = value,
            (b"stream", Cell::Str(value)) => stream = value,
            (b"time", Cell::Str(value)) => time = Some(value),
            (b"log", _) => return Err(DockerError::Field("log")),
            (b"stream", _) => return Err(DockerError::Field("stream")),
            (b"attrs", Cell::Map { first, .. }) if !first.is_none() => attrs = Some(next),
            _ => {}
        }
        next = arena.next(next);
    }
    let time = text(time.ok_or(DockerError::Field("time"))?);
    let time = times.rfc3339(time).ok_or(DockerError::Time)?;
    let whole = text(log).last() == Some(&b'\n');
    let message = Text { len: log.len - u32::from(whole), ..log };
    Ok(Record { time, stream, partial: !whole, message, attrs })
}

/// Puts the `attrs` of a record into its event, as `docker.attrs`.
pub fn put_attrs(event: &mut EventMut<'_>, attrs: NodeId) {
    let keys = [b"docker".as_slice(), b"attrs"].map(|key| event.store_text(key));
    let (_, mut arena) = event.arena();
    let cell = arena.cell(attrs);
    let first = arena.push(NodeId::NONE, keys[1], cell, 0);
    let docker = arena.push(NodeId::NONE, keys[0], Cell::Map { first, opaque: false }, 0);
    event.merge_list_over(FieldList::one(docker), true);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{base, batch_of};

    fn read(line: &str) -> Result<(i64, String, bool, String), DockerError> {
        let base = base();
        let mut batch = batch_of(line.as_bytes(), &base);
        let mut event = batch.event_mut(0, &base);
        let text = event.own_message().unwrap();
        let mut scanner = Scanner::new(false);
        let record = parse(&mut scanner, &mut TimeReader::default(), &mut event, text)?;
        let string = |text| String::from_utf8(event.text(text).to_vec()).unwrap();
        Ok((record.time, string(record.stream), record.partial, string(record.message)))
    }

    #[test]
    fn records_are_read() {
        let line =
            r#"{"log":"a \"b\"\n","stream":"stderr","time":"2017-11-09T13:27:36.277747246Z"}"#;
        let time = 1_510_234_056_277_747_246;
        assert_eq!(read(line).unwrap(), (time, "stderr".into(), false, "a \"b\"".into()));
        let line =
            r#"{"time":"2017-11-09T13:27:36.277747246Z","stream":"stdout","log":"half","x":[1]}"#;
        assert_eq!(read(line).unwrap(), (time, "stdout".into(), true, "half".into()));
        let line = r#"{"log":"","time":"2017-11-09T13:27:36.277747246Z"}"#;
        assert_eq!(read(line).unwrap(), (time, String::new(), true, String::new()));
        let line = r#"{"log":"\n","time":"2017-11-09T13:27:36.277747246Z"}"#;
        assert_eq!(read(line).unwrap(), (time, String::new(), false, String::new()));
    }

    #[test]
    fn other_lines_are_refused() {
        assert!(matches!(read("2017 stdout F x"), Err(DockerError::Json(_))));
        assert_eq!(read(r#"{"log":"x\n"}"#), Err(DockerError::Field("time")));
        assert_eq!(
            read(r#"{"log":1,"time":"2017-11-09T13:27:36Z"}"#),
            Err(DockerError::Field("log"))
        );
        assert_eq!(read(r#"{"log":"x\n","time":"today"}"#), Err(DockerError::Time));
    }

    #[test]
    fn attributes_become_fields() {
        let base = base();
        let line = r#"{"log":"x\n","attrs":{"env":"prod"},"time":"2017-11-09T13:27:36Z"}"#;
        let mut batch = batch_of(line.as_bytes(), &base);
        let mut event = batch.event_mut(0, &base);
        let text = event.own_message().unwrap();
        let mut scanner = Scanner::new(false);
        let record = parse(&mut scanner, &mut TimeReader::default(), &mut event, text).unwrap();
        put_attrs(&mut event, record.attrs.unwrap());
        let document = crate::testing::document(&batch);
        assert_eq!(document["docker"], serde_json::json!({"attrs": {"env": "prod"}}));
    }

    #[test]
    fn broken_records_leave_the_event_as_it_is() {
        let line = r#"{"log":"a \"b\"\n","stream":"stderr","attrs":{"a":"b"},"time":"2017-11-09T13:27:36.277747246Z"}"#;
        let (mut scanner, mut times) = (Scanner::new(false), TimeReader::default());
        crate::testing::survives(&[line], |event| {
            let text = event.own_message().unwrap();
            if let Ok(record) = parse(&mut scanner, &mut times, event, text) {
                assert!(event.text(record.message).len() <= text.len as usize);
            }
            false
        });
    }
}
