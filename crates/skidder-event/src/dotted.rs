//! Fields whose keys have dots in them: `{"log.level": "info"}` is found at the path `log.level`.
//!
//! As in Filebeat (`mapFind` of its `mapstr`), a path is walked part by part, and at each object everything that is left
//! of it is looked for as one key before its next part is: `a.b.c` is `{"a.b.c": …}`, else `{"a": {"b.c": …}}`, else
//! `{"a": {"b": {"c": …}}}`, but never `{"a.b": {"c": …}}`. What is there is read, replaced and removed where it is; what is
//! not there becomes a field inside objects.
//!
//! A batch takes note of keys with dots ([`EventMut::note_key`]), and a base knows whether it has some; where there are
//! none nothing is looked for.

use crate::batch::{Row, Text};
use crate::edit::EventMut;
use crate::event::{EventRef, MapRef, ValueRef};
use crate::layout::Laid;
use crate::path::Path;

impl<'a> EventRef<'a> {
    /// Whether there may be keys with dots in them.
    #[inline]
    pub fn has_dots(&self) -> bool {
        self.batch.dotted || self.base.has_dots()
    }

    /// The value at a path where there may be keys with dots.
    #[cold]
    pub(crate) fn search_dotted(&self, path: &Path) -> Option<ValueRef<'a>> {
        if !path.is_metadata()
            && self.batch.slots.is_live(self.row)
            && let Some(found) = self.inside_slot(path)
        {
            return found;
        }
        let root = self.fields_of(path);
        if path.is_log_offset() && self.row().has(Row::OFFSET) {
            root.get(path.rest(0)).or_else(|| Some(ValueRef::UInt(self.row().offset)))
        } else {
            root.value_at(path, 0)
        }
    }

    /// How many parts of a path stand before the field that has all others as its key, dots included. `None` if there
    /// is no such field.
    #[inline]
    pub(crate) fn key_with_dots(&self, path: &Path) -> Option<usize> {
        if path.is_dotted() && self.has_dots() { self.find_key(path) } else { None }
    }

    /// The keys of the field that a path names, or would if it were there.
    pub fn keys_of<'p>(&self, path: &'p Path) -> Vec<&'p str> {
        let depth = self.key_with_dots(path).unwrap_or(path.segments().len() - 1);
        let around = path.segments()[..depth].iter().map(|key| &**key);
        around.chain(std::iter::once(path.rest(depth))).collect()
    }

    #[cold]
    fn find_key(&self, path: &Path) -> Option<usize> {
        let last = path.segments().len() - 1;
        let (_, depth) = self.fields_of(path).holder(path, 0)?;
        (depth < last).then_some(depth)
    }

    /// Whether a top-level field of the event's own has a key that begins with this one and a dot.
    #[cold]
    pub(crate) fn has_own_dotted(&self, key: &str, metadata: bool) -> bool {
        let row = self.row();
        let is_inside = |own: &[u8]| {
            own.strip_prefix(key.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'.'))
        };
        let (fields, first) = if metadata {
            (MapRef::of(self.batch, row.metadata, &[]), row.metadata)
        } else {
            (self.fields(), if row.layout == 0 { row.own } else { Laid::FIRST })
        };
        fields.find_own(first, is_inside).is_some()
    }

    fn fields_of(&self, path: &Path) -> MapRef<'a> {
        if path.is_metadata() {
            MapRef::of(self.batch, self.row().metadata, self.base.metadata())
        } else {
            self.fields()
        }
    }
}

impl<'a> MapRef<'a> {
    /// The object that has what the parts of a path from `depth` on name, and which of them is the first that is not
    /// the key of an object around it.
    fn holder(self, path: &Path, mut depth: usize) -> Option<(Self, usize)> {
        let mut around = self;
        while depth + 1 < path.segments().len() && around.get(path.rest(depth)).is_none() {
            let ValueRef::Map(inner) = around.get(&path.segments()[depth])? else { return None };
            around = inner;
            depth += 1;
        }
        Some((around, depth))
    }

    /// The value that the parts of a path from `depth` on name.
    pub(crate) fn value_at(self, path: &Path, depth: usize) -> Option<ValueRef<'a>> {
        let (around, depth) = self.holder(path, depth)?;
        around.get(path.rest(depth))
    }
}

impl EventMut<'_> {
    /// Takes note of a key that comes from outside.
    #[inline]
    pub fn note_key(&mut self, key: &[u8]) {
        self.batch.dotted |= key.contains(&b'.');
    }

    /// The same for a key that stands in the batch.
    #[inline]
    pub fn note_name(&mut self, key: Text) {
        self.batch.dotted |= self.batch.text(key).contains(&b'.');
    }

    /// Takes note that there may be keys with dots in them.
    #[inline]
    pub fn note_dots(&mut self) {
        self.batch.dotted = true;
    }

    /// Removes the field of which the path, or the end of it, is the key, dots included: for a processor that removes its
    /// field before it sets it, so that it stands inside objects then.
    #[inline]
    pub fn delete_with_dots(&mut self, path: &Path) -> bool {
        let is_there = self.as_ref().key_with_dots(path).is_some();
        is_there && self.delete(path)
    }
}

#[cfg(test)]
mod tests {
    use crate::base::Base;
    use crate::batch::{Batch, Row, Text};
    use crate::encode::{Encoder, Precision};
    use crate::path::Path;
    use crate::provenance::{Provenance, SourceId};
    use crate::value::{Map, Value};
    use std::sync::Arc;

    fn object(fields: &[(&str, Value)]) -> Map {
        let mut map = Map::new();
        for (key, value) in fields {
            map.insert(key, value.clone());
        }
        map
    }

    fn path(text: &str) -> Path {
        Path::parse(text).expect("a good path")
    }

    /// One event with these fields of its own over those of a source.
    struct Event {
        batch: Batch,
        base: Arc<Base>,
    }

    impl Event {
        fn new(own: &Map, shared: &Map) -> Self {
            let base = Arc::new(Base::new(shared, &Map::new()));
            let provenance = Provenance::new(SourceId(1), 0..0);
            let mut batch = Batch::new(b"m\n".to_vec(), true, Arc::clone(&base), provenance);
            batch.push(Row::new(7, 2, Text { start: 0, len: 1 }, 0));
            batch.event_mut(0, &base).merge(own);
            Self { batch, base }
        }

        fn get(&self, text: &str) -> Option<Value> {
            let found = self.batch.event(0).get(&path(text))?;
            Some(match found {
                crate::ValueRef::Int(number) => Value::Int(number),
                crate::ValueRef::UInt(number) => Value::Int(number as i64),
                crate::ValueRef::Map(_) => Value::from("an object"),
                _ => Value::Null,
            })
        }

        fn put(&mut self, text: &str, value: i64) -> bool {
            self.batch.event_mut(0, &self.base).put(&path(text), &Value::Int(value)).is_ok()
        }

        fn delete(&mut self, text: &str) -> bool {
            self.batch.event_mut(0, &self.base).delete(&path(text))
        }

        fn json(&self) -> serde_json::Value {
            let mut out = Vec::new();
            Encoder::new(Precision::Millisecond).write(&mut out, &self.batch, 0);
            let mut json: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
            let fields = json.as_object_mut().expect("it is an object");
            fields.remove("@timestamp");
            fields.remove("message");
            json
        }
    }

    /// `{"a.b.c": 1, "a": {"b.c": 2, "b": {"c": 3}}, "x.y": {"z": 4}}`
    fn fields() -> Map {
        let inner = object(&[("b.c", 2.into()), ("b", object(&[("c", 3.into())]).into())]);
        let odd = object(&[("z", 4.into())]);
        object(&[("a.b.c", 1.into()), ("a", inner.into()), ("x.y", odd.into())])
    }

    #[test]
    fn the_key_that_is_the_whole_rest_of_a_path_is_found_before_the_one_inside_objects() {
        for (own, shared) in [(fields(), Map::new()), (Map::new(), fields())] {
            let mut event = Event::new(&own, &shared);
            for number in 1..=3 {
                assert_eq!(event.get("a.b.c"), Some(Value::Int(number)));
                assert!(event.delete("a.b.c"));
            }
            assert_eq!(event.get("a.b.c"), None);
            assert!(!event.delete("a.b.c"));
            assert_eq!(
                event.json(),
                serde_json::json!({"a": {"b": {}}, "x.y": {"z": 4}, "log": {"offset": 7}})
            );
        }
    }

    #[test]
    fn a_key_with_dots_is_no_way_into_its_object() {
        let event = Event::new(&fields(), &Map::new());
        assert_eq!(event.get("x.y"), Some(Value::from("an object")));
        assert_eq!(event.get("x.y.z"), None);
        assert_eq!(event.get("a.b"), Some(Value::from("an object")));
    }

    #[test]
    fn what_is_there_is_replaced_where_it_is_and_what_is_not_is_made_inside_objects() {
        for (own, shared) in [(fields(), Map::new()), (Map::new(), fields())] {
            let mut event = Event::new(&own, &shared);
            assert!(event.put("a.b.c", 5) && event.put("x.y", 6) && event.put("x.y.z", 7));
            assert_eq!(
                event.json(),
                serde_json::json!({
                    "a.b.c": 5, "a": {"b.c": 2, "b": {"c": 3}}, "x.y": 6, "x": {"y": {"z": 7}},
                    "log": {"offset": 7}
                })
            );
        }
    }

    #[test]
    fn the_offset_of_a_line_stays_beside_a_key_of_its_name() {
        let mut event = Event::new(&object(&[("log.offset", 1.into())]), &Map::new());
        assert_eq!(event.get("log.offset"), Some(Value::Int(1)));
        assert!(event.put("log.offset", 2));
        assert_eq!(event.json(), serde_json::json!({"log.offset": 2, "log": {"offset": 7}}));
        assert!(event.delete("log.offset"));
        assert_eq!(event.get("log.offset"), Some(Value::Int(7)));
    }

    #[test]
    fn a_path_of_keys_finds_only_these() {
        let mut event = Event::new(&fields(), &Map::new());
        let exact = Path::of_keys(&["a", "b.c"]).expect("it has keys");
        let mut edited = event.batch.event_mut(0, &event.base);
        assert_eq!(edited.as_ref().keys_of(&path("a.b.c")), ["a.b.c"]);
        assert_eq!(edited.as_ref().keys_of(&path("a.q")), ["a", "q"]);
        edited.put(&exact, &Value::Int(8)).expect("nothing is in the way");
        edited.delete(&Path::of_keys(&["a", "b", "c"]).expect("it has keys"));
        assert_eq!(
            event.json(),
            serde_json::json!({"a.b.c": 1, "a": {"b.c": 8, "b": {}}, "x.y": {"z": 4}, "log": {"offset": 7}})
        );
        assert!(event.delete("a.b.c"));
        assert_eq!(event.get("a.b.c"), Some(Value::Int(8)));
    }

    #[test]
    fn an_event_that_is_restored_still_knows_its_keys_with_dots() {
        let event = Event::new(&fields(), &Map::new());
        let mut stored = Vec::new();
        event.batch.store(0..1, &mut stored);
        let provenance = Provenance::new(SourceId(1), 0..0);
        let batch = Batch::restore(&stored, provenance, &mut crate::Bases::default());
        let batch = batch.expect("it was stored");
        assert!(matches!(batch.event(0).get(&path("a.b.c")), Some(crate::ValueRef::Int(1))));
    }
}
