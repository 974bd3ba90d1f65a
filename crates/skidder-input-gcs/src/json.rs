//! `parse_json`: the object that a message is, as `gcs.storage.object.json_data`.

use skidder_event::{Base, Batch, Bind, Bound, Cell, Map, Path};
use skidder_parse::json::{JsonValue, Scanner};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

static JSON_DATA: LazyLock<Path> = LazyLock::new(|| {
    Path::parse("gcs.storage.object.json_data").expect("a constant that is a path")
});

/// What runs before the processors.
#[derive(Debug)]
pub(crate) struct WithJson {
    inner: Arc<dyn Bind>,
}

/// The same for one object.
#[derive(Debug)]
struct BoundWithJson {
    bound: Arc<dyn Bound>,
    scanner: Mutex<Scanner>,
}

impl WithJson {
    pub(crate) fn new(inner: Arc<dyn Bind>) -> Self {
        Self { inner }
    }
}

impl Bind for WithJson {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        Arc::new(BoundWithJson {
            bound: self.inner.bind(fields),
            scanner: Mutex::new(Scanner::new(false)),
        })
    }

    fn can_hold(&self) -> bool {
        self.inner.can_hold()
    }

    fn hold(&self, fields: &Map) -> Option<Duration> {
        self.inner.hold(fields)
    }

    fn epoch(&self) -> u64 {
        self.inner.epoch()
    }
}

impl Bound for BoundWithJson {
    fn base(&self) -> &Arc<Base> {
        self.bound.base()
    }

    fn run(&self, batch: &mut Batch) {
        self.parse(batch);
        self.bound.run(batch);
    }
}

impl BoundWithJson {
    /// Messages that are no objects keep the empty list.
    fn parse(&self, batch: &mut Batch) {
        let base = Arc::clone(batch.base());
        let mut scanner = self.scanner.lock().unwrap_or_else(PoisonError::into_inner);
        for row in 0..batch.len() {
            if batch.event(row).message().is_none() {
                continue;
            }
            let mut event = batch.event_mut(row, &base);
            let text = event.row().message;
            let Ok(JsonValue::Object(fields)) = scanner.value(&mut event, text) else { continue };
            let object = Cell::Map { first: fields.first, opaque: true };
            let list = event.store_list(&[object]);
            let is_put = event.put_cell(&JSON_DATA, list).is_ok();
            debug_assert!(is_put, "only parsers could be in the way, and they have no such field");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_event::{
        Encoder, Precision, Progress, Provenance, Row, SourceId, Text, Unprocessed, Value,
    };

    /// The events of these lines.
    fn events(lines: &[&str]) -> Vec<serde_json::Value> {
        let mut fields = Map::new();
        fields.insert_path("gcs.storage.object.name", "a.json");
        fields.insert_path("gcs.storage.object.json_data", Value::List(Vec::new()));
        let bound = WithJson::new(Arc::new(OverFields)).bind(&fields);
        let provenance = Provenance { source: SourceId(1), progress: Progress::Nothing(8) };
        let bytes = lines.concat().into_bytes();
        let mut batch = Batch::new(bytes, true, Arc::clone(bound.base()), provenance);
        let mut start = 0;
        for line in lines {
            let len = line.len() as u32;
            batch.push(Row::new(u64::from(start), len, Text { start, len }, 0));
            start += len;
        }
        bound.run(&mut batch);
        let mut encoder = Encoder::new(Precision::default());
        let event = |row| {
            let mut out = Vec::new();
            encoder.write(&mut out, &batch, row);
            serde_json::from_slice(&out).unwrap()
        };
        (0..lines.len()).map(event).collect()
    }

    /// No processors, over the fields of the source.
    #[derive(Debug)]
    struct OverFields;

    #[derive(Debug)]
    struct BoundOverFields(Arc<Base>);

    impl Bind for OverFields {
        fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
            Arc::new(BoundOverFields(Arc::new(Base::new(fields, &Map::new()))))
        }

        fn epoch(&self) -> u64 {
            Unprocessed::bind().epoch()
        }
    }

    impl Bound for BoundOverFields {
        fn base(&self) -> &Arc<Base> {
            &self.0
        }

        fn run(&self, _: &mut Batch) {}
    }

    #[test]
    fn a_message_that_is_an_object_is_parsed_and_anything_else_has_an_empty_list() {
        let lines =
            ["{\"a\": {\"b\": [1, null]}, \n\t\"c\": \"x\\n\"\n}", "[{\"a\": 1}]", "plain", "7"];
        let found = events(&lines);
        let data = |at: usize| &found[at]["gcs"]["storage"]["object"]["json_data"];
        assert_eq!(data(0)[0]["c"], "x\n");
        assert_eq!(data(0)[0]["a"]["b"][0], 1);
        for (at, line) in lines.iter().enumerate().skip(1) {
            assert_eq!(*data(at), serde_json::json!([]), "{line}");
        }
        assert!((0..4).all(|at| found[at]["gcs"]["storage"]["object"]["name"] == "a.json"));
        assert!((0..4).all(|at| found[at]["message"] == lines[at]));
    }
}
