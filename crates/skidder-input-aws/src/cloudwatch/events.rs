//! From events of CloudWatch to events of ours, with Filebeat's fields (`x-pack/filebeat/input/awscloudwatch/processor.go`).

use skidder_amazon::LogEvent;
use skidder_event::{Batch, Cell, Map, Parts, Path, Row, Text};
use skidder_input::Source;
use skidder_os::Timestamp;
use std::sync::{Arc, LazyLock};

static DOCUMENT: LazyLock<Path> = LazyLock::new(|| path("@metadata._id"));
static ID: LazyLock<Path> = LazyLock::new(|| path("event.id"));
static INGESTED: LazyLock<Path> = LazyLock::new(|| path("event.ingested"));
static FILE: LazyLock<Path> = LazyLock::new(|| path("log.file.path"));
static STREAM: LazyLock<Path> = LazyLock::new(|| path("aws.cloudwatch.log_stream"));
static RECEIVED: LazyLock<Path> = LazyLock::new(|| path("aws.cloudwatch.ingestion_time"));

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant that is a path")
}

/// What all events of a group have.
pub(crate) fn fields(group: &str, region: &str) -> Map {
    let mut fields = Map::new();
    fields.insert_path("aws.cloudwatch.log_group", group);
    fields.insert_path("cloud.provider", "aws");
    fields.insert_path("cloud.region", region);
    fields
}

/// A batch of a group's events; returns the bytes of their messages, too.
pub(crate) fn batch_of(
    source: &mut Source,
    events: &[LogEvent],
    (group, now): (&str, Timestamp),
) -> (Batch, u64) {
    let size = events.iter().map(|event| event.message.len() + 1).sum();
    let (mut bytes, mut rows) = (Vec::with_capacity(size), Vec::with_capacity(events.len()));
    for event in events {
        let text = Text { start: bytes.len() as u32, len: event.message.len() as u32 };
        bytes.extend_from_slice(event.message.as_bytes());
        bytes.push(b'\n');
        rows.push(Row::numbered(0, text.len, text, event.time.0));
    }
    let taken = (bytes.len() - events.len()) as u64;
    let utf8 = bytes.len();
    let mut batch = source.batch_of(Parts { bytes, rows, ..Parts::default() }, utf8);
    let base = Arc::clone(batch.base());
    let mut file = format!("{group}/");
    for (row, event) in events.iter().enumerate() {
        file.truncate(group.len() + 1);
        file.push_str(&event.stream);
        let mut put = batch.event_mut(row, &base);
        let mut is_put = true;
        for (path, text) in
            [(&DOCUMENT, &event.id), (&ID, &event.id), (&FILE, &file), (&STREAM, &event.stream)]
        {
            is_put &= put.put_text(path, text.as_bytes()).is_ok();
        }
        let received = event.ingested.unwrap_or(event.time);
        for (path, time) in [(&INGESTED, now), (&RECEIVED, received)] {
            is_put &= put.put_cell(path, Cell::Time(time.0)).is_ok();
        }
        debug_assert!(is_put, "the fields of a group leave room for those of its events");
    }
    batch.forget_changes();
    (batch, taken)
}
