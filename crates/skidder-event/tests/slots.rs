//! Fields in slots: whatever is done to an event, it has the fields and gives the document that it has and gives with nodes.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::*;
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use skidder_event::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Fields of a form, and (the last two) one that is inside of one and one that has nothing to do with it.
const FIELDS: [&str; 12] = [
    "agent.name",
    "host.x",
    "log.zone",
    "log.flags",
    "tags",
    "x.y.z",
    "x.y.w",
    "x.q",
    "top",
    "new.a.b",
    "top.inside",
    "other",
];

#[derive(Clone, Debug)]
enum Edit {
    Put(usize, i64),
    Object(usize),
    Delete(usize),
    Move(usize, usize),
    Message,
    MoveMessage(usize),
    Mark,
    Rollback,
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    // The last field is rare: from there on all are nodes.
    let field = prop_oneof![40 => 0..FIELDS.len() - 1, 1 => Just(FIELDS.len() - 1)];
    let edit = prop_oneof![
        6 => (field.clone(), any::<i64>()).prop_map(|(at, number)| Edit::Put(at, number)),
        1 => field.clone().prop_map(Edit::Object),
        3 => field.clone().prop_map(Edit::Delete),
        3 => (field.clone(), field.clone()).prop_map(|(from, to)| Edit::Move(from, to)),
        1 => Just(Edit::Message),
        1 => field.prop_map(Edit::MoveMessage),
        2 => Just(Edit::Mark),
        2 => Just(Edit::Rollback),
    ];
    proptest::collection::vec(edit, 0..24)
}

fn edit(event: &mut EventMut<'_>, edits: &[Edit]) -> Vec<bool> {
    let paths = FIELDS.map(path);
    let (mut marks, mut seen) = (Vec::new(), Vec::new());
    for edit in edits {
        let mark = event.mark();
        let done = match edit {
            Edit::Put(at, number) => event.put_cell(&paths[*at], Cell::Int(*number)),
            Edit::Object(at) => event.put(&paths[*at], &Value::Map(map(&[("inside", 1.into())]))),
            Edit::Delete(at) => {
                seen.push(event.delete(&paths[*at]));
                Ok(())
            }
            Edit::Move(from, to) => match event.take(&paths[*from]) {
                Some(cell) => event.put_cell(&paths[*to], cell),
                None => Ok(()),
            },
            Edit::Message => event.put_text(&path("message"), b"another"),
            Edit::MoveMessage(to) => match event.take(&path("message")) {
                Some(cell) => event.put_cell(&paths[*to], cell),
                None => Ok(()),
            },
            Edit::Mark => {
                marks.push(mark);
                Ok(())
            }
            Edit::Rollback => {
                marks.pop().into_iter().for_each(|mark| event.rollback(mark));
                Ok(())
            }
        };
        seen.push(done.is_ok());
        if done.is_err() {
            event.rollback(mark);
        }
        seen.extend(paths.iter().map(|path| event.as_ref().has(path)));
    }
    seen
}

/// The fields as read by their paths, and all of them at once.
fn fields(batch: &Batch) -> Vec<Json> {
    const AROUND: [&str; 8] = ["agent", "host", "log", "x", "x.y", "new", "new.a", "message"];
    let event = batch.event(0);
    let seen = |name: &&str| {
        let path = path(name);
        let value = event.get(&path).map(shown);
        assert_eq!(event.has(&path), value.is_some(), "{name}");
        json!([name, value])
    };
    let mut all: Vec<Json> = FIELDS.iter().chain(&AROUND).map(seen).collect();
    all.push(shown(ValueRef::Map(event.root())));
    layers(batch);
    all
}

/// What the event says itself hides the base, and nothing else is there but what the base has.
fn layers(batch: &Batch) {
    let root = batch.event(0).root();
    let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
    let mut own = BTreeMap::new();
    root.for_each_own(|key, value| {
        let before = own.insert(text(key), value.map(shown));
        assert!(before.is_none(), "{key:?} comes twice");
    });
    let base = batch.base().nodes();
    for (key, value) in &own {
        assert_eq!(*value, root.get(key).map(shown), "{key}");
    }
    let mut merged: BTreeMap<String, Json> = BTreeMap::new();
    for node in base {
        let alone = batch_of("x", Arc::clone(batch.base()));
        merged.insert(node.key.to_string(), shown(alone.event(0).root().get(&node.key).unwrap()));
    }
    for (key, value) in own {
        match value {
            Some(value) => merged.insert(key, value),
            None => merged.remove(&key),
        };
    }
    assert_eq!(json!(merged), shown(ValueRef::Map(root)));
}

fn shown(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Map(map) => {
            let mut object = serde_json::Map::new();
            map.for_each(|key, value| {
                let key = String::from_utf8_lossy(key).into_owned();
                let again = map.get(&key).map(shown);
                assert_eq!(again, Some(shown(value)), "{key}");
                object.insert(key, shown(value));
            });
            Json::Object(object)
        }
        ValueRef::List(list) => {
            let mut items = Vec::new();
            list.for_each(|item| {
                items.push(shown(item));
                true
            });
            Json::Array(items)
        }
        ValueRef::Str(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Int(number) => number.into(),
        ValueRef::UInt(number) => number.into(),
        other => format!("{other:?}").into(),
    }
}

proptest! {
    #[test]
    fn fields_in_slots_are_what_they_are_in_nodes(edits in edits()) {
        let base = base();
        let mut nodes = batch_of("line", Arc::clone(&base));
        let seen = edit(&mut nodes.event_mut(0, &base), &edits);
        let mut builder = FormBuilder::default();
        prop_assert!(builder.add(&FIELDS[..10].iter().map(|name| path(name)).collect::<Vec<_>>()));
        let form = Arc::new(builder.build().unwrap());
        base.know(&form);
        let mut slots = batch_of("line", Arc::clone(&base));
        slots.set_form(&form);
        let mut event = slots.event_mut(0, &base);
        event.begin_slots();
        let in_slots = edit(&mut event, &edits);
        event.end_slots();
        prop_assert_eq!(in_slots, seen);
        prop_assert_eq!(document(&slots), document(&nodes));
        prop_assert_eq!(fields(&slots), fields(&nodes));
        let mut stored = Vec::new();
        slots.store(0..1, &mut stored);
        let provenance = Provenance::new(SourceId(1), 0..5);
        let restored = Batch::restore(&stored, provenance, &mut Bases::default()).unwrap();
        prop_assert_eq!(document(&restored), document(&nodes));
        prop_assert_eq!(fields(&restored), fields(&nodes));
        for batch in [&mut slots, &mut nodes] {
            batch.event_mut(0, &base).put(&path("x.y.later"), &1.into()).unwrap_or_default();
        }
        prop_assert_eq!(document(&slots), document(&nodes));
        prop_assert_eq!(fields(&slots), fields(&nodes));
    }
}

#[test]
fn a_form_has_no_field_inside_another() {
    let mut builder = FormBuilder::default();
    assert!(builder.add(&[path("a.b"), path("a.c"), path("message"), path("@metadata.a")]));
    assert_eq!(builder.paths().len(), 2);
    for name in ["a", "a.b.c", "log", "message.x", "@timestamp.x", "log.offset.x"] {
        assert!(!builder.add(&[path("new"), path(name)]), "{name}");
    }
    assert_eq!(builder.paths().len(), 2);
}
