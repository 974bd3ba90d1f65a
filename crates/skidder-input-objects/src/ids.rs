//! Ids of events: what Elasticsearch knows an event by that comes again.
//!
//! As in Filebeat, an id has a beginning that is the object's, and the offset of the event in it.

use skidder_event::{Batch, Bind, Bound, Map, Path, Value};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The member of a source's fields that has the beginning of its ids, and is no field of its events.
const MEMBER: &str = "\0id";

/// What of `@metadata` has the id.
const NAME: &str = "_id";

static ID: LazyLock<Path> =
    LazyLock::new(|| Path::parse("@metadata._id").expect("a constant that is a path"));

/// Puts the beginning of the ids of an object's events into its fields.
pub fn begin_ids(fields: &mut Map, beginning: &str) {
    fields.insert_constant(MEMBER, beginning);
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
        let name = batch.metadata_name(NAME);
        let mut id = format!("{}-", self.prefix).into_bytes();
        let beginning = id.len();
        for row in 0..batch.len() {
            let Some(offset) = batch.event(row).offset() else { continue };
            id.truncate(beginning);
            push_offset(&mut id, offset);
            // A parser may have found one in the line.
            if !batch.begin_metadata(row, name, &id) && !batch.event(row).has(&ID) {
                let is_put = batch.event_mut(row, &base).put_text(&ID, &id).is_ok();
                debug_assert!(is_put, "`@metadata` is an object");
            }
        }
        self.bound.run(batch);
    }
}

/// Appends a number with twelve digits at least. Each event has one: `write!` took a sixth of the time of an object.
fn push_offset(id: &mut Vec<u8>, offset: u64) {
    let mut digits = [b'0'; 20];
    let (mut first, mut rest) = (digits.len(), offset);
    while rest > 0 {
        first -= 1;
        // One digit.
        digits[first] += (rest % 10) as u8;
        rest /= 10;
    }
    id.extend_from_slice(&digits[first.min(digits.len() - 12)..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_have_twelve_digits_or_more() {
        for offset in [0, 7, 120, 999_999_999_999, 1_000_000_000_000, u64::MAX] {
            let mut id = b"a-".to_vec();
            push_offset(&mut id, offset);
            assert_eq!(String::from_utf8(id).expect("digits"), format!("a-{offset:012}"));
        }
    }
    use skidder_event::{Progress, Provenance, Row, SourceId, Text, Unprocessed, ValueRef};

    #[test]
    fn an_id_has_the_object_and_the_offset_and_is_no_field() {
        let mut fields = Map::new();
        fields.insert_path("aws.s3.object.key", "a/b.log");
        begin_ids(&mut fields, "0123456789");
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
            assert_eq!(id, format!("0123456789-{offset}").as_bytes());
            assert!(!event.has(&Path::parse(MEMBER).unwrap()));
            assert!(event.has(&Path::parse("aws.s3.object.key").unwrap()));
        }
    }
}
