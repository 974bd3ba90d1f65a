//! Ids of events: what Elasticsearch knows an event by that comes again.
//!
//! As in Filebeat, an id is a part of a hash of the object's time, bucket and name, and the offset of the event in it.

use skidder_aws::{digest, time_text};
use skidder_event::{Batch, Bind, Bound, Map, Path, Value};
use skidder_os::Timestamp;
use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The member of a source's fields that has the beginning of its ids, and is no field of its events.
const MEMBER: &str = "\0id";
/// Digits of the hash.
const HASH_DIGITS: usize = 10;

static ID: LazyLock<Path> =
    LazyLock::new(|| Path::parse("@metadata._id").expect("a constant that is a path"));

/// Puts the beginning of the ids of an object's events into its fields. `modified` is when the object was put.
pub(crate) fn begin(fields: &mut Map, modified: Option<Timestamp>, arn: &str, key: &str) {
    let time = go_time(modified);
    let hash = digest([time.as_bytes(), arn.as_bytes(), key.as_bytes()]);
    fields.insert_constant(MEMBER, &hash[..HASH_DIGITS]);
}

/// As Filebeat's language writes a time of whole seconds.
fn go_time(time: Option<Timestamp>) -> String {
    let Some(time) = time else { return "0001-01-01 00:00:00 +0000 UTC".to_owned() };
    // As `20150830T123600Z`.
    let text = time_text(time);
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let (year, month, day) = (part(0, 4), part(4, 6), part(6, 8));
    let (hour, minute, second) = (part(9, 11), part(11, 13), part(13, 15));
    format!("{year}-{month}-{day} {hour}:{minute}:{second} +0000 UTC")
}

/// Adds ids before the processors run.
#[derive(Debug)]
pub(crate) struct WithIds(pub(crate) Arc<dyn Bind>);

/// The same for one object.
#[derive(Debug)]
struct BoundWithIds {
    bound: Arc<dyn Bound>,
    /// What its ids begin with.
    prefix: String,
}

/// The fields without the member, and what it has.
fn split(fields: &Map) -> (Map, String) {
    let mut fields = fields.clone();
    let prefix = match fields.get(MEMBER) {
        Some(Value::Str(prefix)) => prefix.to_string(),
        _ => String::new(),
    };
    fields.remove_path(MEMBER);
    (fields, prefix)
}

impl Bind for WithIds {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        let (fields, prefix) = split(fields);
        Arc::new(BoundWithIds { bound: self.0.bind(&fields), prefix })
    }

    fn can_hold(&self) -> bool {
        self.0.can_hold()
    }

    fn hold(&self, fields: &Map) -> Option<Duration> {
        self.0.hold(&split(fields).0)
    }

    fn epoch(&self) -> u64 {
        self.0.epoch()
    }
}

impl Bound for BoundWithIds {
    fn base(&self) -> &Arc<skidder_event::Base> {
        self.bound.base()
    }

    fn run(&self, batch: &mut Batch) {
        let base = Arc::clone(batch.base());
        let mut id = String::with_capacity(HASH_DIGITS + 16);
        for row in 0..batch.len() {
            let event = batch.event(row);
            let Some(offset) = event.offset() else { continue };
            // A parser has found one in the line.
            if event.has_own_metadata() && event.has(&ID) {
                continue;
            }
            id.clear();
            write!(id, "{}-{offset:012}", self.prefix).expect("a text takes everything");
            let is_put = batch.event_mut(row, &base).put_text(&ID, id.as_bytes()).is_ok();
            debug_assert!(is_put, "`@metadata` is an object");
        }
        self.bound.run(batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_event::{Progress, Provenance, Row, SourceId, Text, Unprocessed, ValueRef};

    #[test]
    fn an_id_has_the_object_and_the_offset_and_is_no_field() {
        let mut fields = Map::new();
        fields.insert_path("aws.s3.object.key", "a/b.log");
        begin(
            &mut fields,
            Some(Timestamp(1_440_938_160_000_000_000)),
            "arn:aws:s3:::logs",
            "a/b.log",
        );
        let hash = digest([
            &b"2015-08-30 12:36:00 +0000 UTC"[..],
            &b"arn:aws:s3:::logs"[..],
            &b"a/b.log"[..],
        ]);
        let bound = WithIds(Unprocessed::bind()).bind(&fields);
        let provenance = Provenance { source: SourceId(1), progress: Progress::Nothing(8) };
        let mut batch =
            Batch::new(b"one\ntwo\n".to_vec(), true, Arc::clone(bound.base()), provenance);
        batch.push(Row::new(0, 4, Text { start: 0, len: 3 }, 0));
        batch.push(Row::new(1_234, 4, Text { start: 4, len: 3 }, 0));
        bound.run(&mut batch);
        for (row, offset) in [(0, "000000000000"), (1, "000000001234")] {
            let event = batch.event(row);
            let Some(ValueRef::Str(id)) = event.get(&ID) else { panic!("no id") };
            assert_eq!(id, format!("{}-{offset}", &hash[..10]).as_bytes());
            assert!(!event.has(&Path::parse(MEMBER).unwrap()));
            assert!(event.has(&Path::parse("aws.s3.object.key").unwrap()));
        }
    }

    #[test]
    fn an_object_without_a_time_has_that_of_the_beginning() {
        assert_eq!(go_time(None), "0001-01-01 00:00:00 +0000 UTC");
        assert_eq!(go_time(Some(Timestamp(0))), "1970-01-01 00:00:00 +0000 UTC");
    }
}
