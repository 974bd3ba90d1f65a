//! Events through the public interface: layers, edits, undo and the documents that come out.

#![expect(clippy::unwrap_used, reason = "a failed test is the message")]

mod common;

use common::*;
use proptest::prelude::*;
use skidder_event::*;
use std::sync::Arc;

#[test]
fn an_untouched_event_is_the_base_with_its_own_line() {
    let mut out = Vec::new();
    Encoder::new(Precision::Millisecond).write(&mut out, &batch_of("say \"hi\"", base()), 0);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"@timestamp":"2026-11-21T20:52:57.123Z","agent":{"name":"web"},"host":{"name":"web"},"input":{"type":"filestream"},"log":{"file":{"path":"/var/log/a.log"},"offset":7,"zone":"z"},"message":"say \"hi\"","tags":["a","b"]}"#
    );
}

#[test]
fn metadata_is_written_for_outputs_that_serialise_it() {
    let fields = map(&[("pipeline", "p1".into())]);
    let batch = batch_of("x", Arc::new(Base::new(&Map::new(), &fields)));
    let mut out = Vec::new();
    Encoder::with_metadata(Precision::Millisecond, "filebeat", "9.5.3").write(&mut out, &batch, 0);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        r#"{"@timestamp":"2026-11-21T20:52:57.123Z","@metadata":{"beat":"filebeat","type":"_doc","version":"9.5.3","pipeline":"p1"},"log":{"offset":7},"message":"x"}"#
    );
}

#[test]
fn metadata_of_an_event_takes_the_place_of_that_of_the_output() {
    let written = |base: &[(&str, Value)], own: &[(&str, Value)]| {
        let base = Arc::new(Base::new(&Map::new(), &map(base)));
        let mut batch = batch_of("x", base.clone());
        batch.event_mut(0, &base).merge_metadata(&map(own));
        let mut out = Vec::new();
        let mut encoder = Encoder::with_metadata(Precision::Millisecond, "filebeat", "9.5.3");
        encoder.write(&mut out, &batch, 0);
        let text = String::from_utf8(out).unwrap();
        for key in ["beat", "type", "version"] {
            assert_eq!(text.matches(&format!("\"{key}\":")).count(), 1, "{text}");
        }
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["@metadata"].clone()
    };
    let version = ("version", "9.6.0".into());
    assert_eq!(
        written(&[], &[version.clone(), ("a", Value::Int(1))]),
        serde_json::json!({"beat": "filebeat", "type": "_doc", "version": "9.6.0", "a": 1})
    );
    assert_eq!(
        written(&[version], &[("version", "9".into())]),
        serde_json::json!({"beat": "filebeat", "type": "_doc", "version": "9"})
    );
    assert_eq!(
        written(&[("type", "t".into())], &[("version", 9.into()), ("beat", "b".into())]),
        serde_json::json!({"beat": "b", "type": "t", "version": 9})
    );
}

#[test]
fn writes_shadow_the_base_and_deletes_hide_it() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut event = batch.event_mut(0, &base);
    event.put(&path("agent.name"), &"other".into()).unwrap();
    event.put(&path("agent.new.deep"), &Value::Int(1)).unwrap();
    assert!(event.delete(&path("host")));
    assert!(event.delete(&path("log.file.path")));
    assert!(!event.delete(&path("nothing.here")));
    event.put(&path("log.level"), &"warn".into()).unwrap();
    let expected = serde_json::json!({
        "@timestamp": "2026-11-21T20:52:57.123Z",
        "agent": {"name": "other", "new": {"deep": 1}},
        "input": {"type": "filestream"},
        "log": {"file": {}, "level": "warn", "offset": 7, "zone": "z"},
        "message": "x",
        "tags": ["a", "b"],
    });
    assert_eq!(document(&batch), expected);
}

#[test]
fn a_filter_of_keys_knows_what_stands_before_the_dots_of_a_key() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut fields = Map::new();
    fields.insert("log.file.level", "warn");
    fields.insert("seq", 1);
    batch.event_mut(0, &base).merge(&fields);
    let event = batch.event(0);
    let may_have = |key: &str| {
        let mut keys = KeyFilter::NONE;
        keys.add(KeyBit::of(key.as_bytes()));
        event.may_have_own(&keys, false)
    };
    for key in ["log", "log.file", "log.file.level", "seq"] {
        assert!(event.has_own_at(key, false) && may_have(key), "{key}");
    }
    for key in ["lo", "agent", "host", "input", "level", "file"] {
        assert!(!event.has_own_at(key, false) && !may_have(key), "{key}");
    }
}

#[test]
fn a_field_set_below_a_deleted_object_does_not_bring_it_back() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut event = batch.event_mut(0, &base);
    event.delete(&path("agent"));
    event.put(&path("agent.id"), &"i".into()).unwrap();
    assert_eq!(document(&batch)["agent"], serde_json::json!({"id": "i"}));
}

#[test]
fn message_timestamp_and_offset_are_fields_like_others() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut event = batch.event_mut(0, &base);
    event.put(&path("message"), &"new".into()).unwrap();
    event.put(&path("@timestamp"), &Value::Time(0)).unwrap();
    assert_eq!(event.put(&path("@timestamp"), &"text".into()), Err(EditError::NotATime));
    event.delete(&path("log.offset"));
    let seen = document(&batch);
    assert_eq!(seen["message"], "new");
    assert_eq!(seen["@timestamp"], "1970-01-01T00:00:00.000Z");
    assert_eq!(seen["log"], serde_json::json!({"file": {"path": "/var/log/a.log"}, "zone": "z"}));
    let mut event = batch.event_mut(0, &base);
    event.put(&path("message"), &Value::Int(5)).unwrap();
    assert_eq!(document(&batch)["message"], 5);
}

#[test]
fn a_value_in_the_way_is_an_error_that_names_the_path() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut event = batch.event_mut(0, &base);
    for name in ["agent.name.x", "message.x", "log.offset.x", "tags.0.x", "@timestamp.x"] {
        let refused = event.put(&path(name), &Value::Null);
        assert_eq!(refused, Err(EditError::NotAnObject(name.into())));
    }
}

#[test]
fn taking_an_object_brings_both_layers() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let mut event = batch.event_mut(0, &base);
    event.put(&path("log.level"), &"warn".into()).unwrap();
    let log = event.take(&path("log")).unwrap();
    event.put_cell(&path("moved"), log).unwrap();
    let seen = document(&batch);
    assert!(seen.get("log").is_none());
    let expected = serde_json::json!(
        {"file": {"path": "/var/log/a.log"}, "level": "warn", "offset": 7, "zone": "z"});
    assert_eq!(seen["moved"], expected);
}

#[test]
fn a_duplicate_shares_nothing_with_the_original() {
    let base = base();
    let mut batch = batch_of("x", Arc::clone(&base));
    let mut event = batch.event_mut(0, &base);
    event.put(&path("host.os.name"), &"linux".into()).unwrap();
    event.put(&path("host.os.version"), &"6".into()).unwrap();
    let copy = event.duplicate(&path("host")).unwrap();
    event.put_cell(&path("other"), copy).unwrap();
    event.put(&path("other.os.name"), &"changed".into()).unwrap();
    event.delete(&path("host.os.version"));
    let document = document(&batch);
    assert_eq!(document["host"], serde_json::json!({"name": "web", "os": {"name": "linux"}}));
    let os = serde_json::json!({"name": "changed", "version": "6"});
    assert_eq!(document["other"], serde_json::json!({"name": "web", "os": os}));
}

#[test]
fn an_event_can_be_emptied_and_filled_again() {
    let base = base();
    let mut batch = batch_of("x", Arc::clone(&base));
    let before = document(&batch);
    let mut event = batch.event_mut(0, &base);
    event.put(&path("host.os"), &"linux".into()).unwrap();
    event.delete(&path("log.zone"));
    let all = event.copy_all();
    event.clear(false);
    assert!(["message", "log", "host", "tags"].iter().all(|name| !event.as_ref().has(&path(name))));
    let fields = event.object_cells(all);
    assert_eq!(fields.len(), 6);
    let again = event.store_object(&fields);
    event.put_cell(&path("all"), again).unwrap();
    event.put_key(b"a.b", Cell::Int(1));
    let mut expected = before.clone();
    expected["host"]["os"] = "linux".into();
    expected["log"].as_object_mut().unwrap().remove("zone");
    let time = expected.as_object_mut().unwrap().remove("@timestamp").unwrap();
    let expected = serde_json::json!({"@timestamp": time, "all": expected, "a.b": 1});
    assert_eq!(document(&batch), expected);

    let mut batch = batch_of("x", Arc::clone(&base));
    batch.event_mut(0, &base).clear(true);
    assert_eq!(document(&batch), serde_json::json!({"@timestamp": time, "message": "x"}));
}

#[test]
fn reading_sees_both_layers() {
    let base = base();
    let mut batch = batch_of("hello", base.clone());
    let mut event = batch.event_mut(0, &base);
    event.put(&path("agent.id"), &"i".into()).unwrap();
    let event = batch.event(0);
    let text = |name: &str| match event.get(&path(name)) {
        Some(ValueRef::Str(text)) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    };
    assert_eq!(text("agent.id"), "i");
    assert_eq!(text("agent.name"), "web");
    assert_eq!(text("message"), "hello");
    assert!(matches!(event.get(&path("log.offset")), Some(ValueRef::UInt(7))));
    let Some(ValueRef::Map(log)) = event.get(&path("log")) else { panic!("log is an object") };
    let mut keys = Vec::new();
    log.for_each(|key, _| keys.push(String::from_utf8_lossy(key).into_owned()));
    assert_eq!(keys, ["offset", "file", "zone"]);
    assert!(event.has(&path("tags")) && !event.has(&path("agent.name.x")));
}

#[test]
fn dropped_events_are_counted_with_their_reason() {
    let base = base();
    let mut batch = batch_of("x", base.clone());
    batch.count_dropped(DropReason::Empty, 2);
    batch.event_mut(0, &base).set_dropped();
    batch.remove_dropped(DropReason::Processor);
    assert_eq!((batch.lines(), batch.len()), (3, 0));
    assert_eq!(batch.drops().get(DropReason::Processor), 1);
    assert_eq!(batch.lines(), batch.len() as u64 + batch.drops().total());
}

#[test]
fn format_strings_render_fields_defaults_and_dates() {
    let batch = batch_of("hello", base());
    let render = |text: &str| {
        let mut out = Vec::new();
        Format::parse(text)
            .unwrap()
            .write(&mut out, batch.event(0))
            .map(|()| String::from_utf8(out).unwrap())
    };
    assert_eq!(render("plain").unwrap(), "plain");
    assert_eq!(render("%{[agent.name]}-%{+yyyy.MM.dd}").unwrap(), "web-2026.11.21");
    assert_eq!(render("%{[no.such]:none}").unwrap(), "none");
    assert_eq!(render("%{[log.offset]} %{[message]}").unwrap(), "7 hello");
    assert_eq!(
        render("%{+yy D HH:mm:ss.SSS 'T' EEE MMM}").unwrap(),
        "26 325 20:52:57.123 T Sat Nov"
    );
    assert_eq!(render("%{[no.such]}"), Err(FormatError::Missing("no.such".into())));
    assert_eq!(Format::parse("%{[a]"), Err(FormatParseError::Unclosed(0)));
    // A bracket for each part is the same as dots.
    assert_eq!(Format::parse("%{[a][b.c]:d}"), Format::parse("%{[a.b.c]:d}"));
    Format::parse("%{[a][]}").unwrap_err();
    Format::parse("%{[a]b}").unwrap_err();
    assert!(matches!(Format::parse("%{+Q}"), Err(FormatParseError::Date('Q', _))));
    assert!(matches!(Format::parse("%{a}"), Err(FormatParseError::Unknown(_))));
    let mut bound = Format::parse("filebeat-%{[agent.version]}").unwrap();
    bound.bind(|name| (name == "agent.version").then(|| "9.5.3".to_owned()));
    assert_eq!(bound.constant(), Some("filebeat-9.5.3"));
}

/// Puts `"stream":"stdout"` into the event, to be copied as it stands.
fn put_stream(batch: &mut Batch, base: &Base) {
    let member = batch.append(b"\"stream\":\"stdout\"");
    let key = Text { start: member.start + 1, len: 6 };
    let value = Text { start: member.start + 10, len: 6 };
    let mut event = batch.event_mut(0, base);
    let node = event.arena().1.push(NodeId::NONE, key, Cell::Str(value), member.len);
    event.merge_list_over(FieldList::one(node), true);
}

#[test]
fn a_field_that_is_copied_stands_beside_those_of_the_base_or_hides_them() {
    let bases = [map(&[("stream", "base".into())]), map(&[("a.b", 1.into())]), Map::new()];
    for fields in bases {
        let base = Arc::new(Base::new(&fields, &Map::new()));
        let mut batch = batch_of("x", base.clone());
        let mut expected = document(&batch);
        put_stream(&mut batch, &base);
        expected["stream"] = "stdout".into();
        assert_eq!(document(&batch), expected);
        let mut out = Vec::new();
        Encoder::new(Precision::Millisecond).write(&mut out, &batch, 0);
        assert_eq!(String::from_utf8(out).unwrap().matches("\"stream\":").count(), 1);
    }
}

#[test]
fn a_row_that_gets_a_text_has_one_message() {
    // What a parser found as `message` was still copied beside the text that lines were joined to.
    let base = base();
    let mut batch = batch_of("x", base.clone());
    let member = batch.append(b"\"message\":\"found\"");
    let key = Text { start: member.start + 1, len: 7 };
    let value = Text { start: member.start + 11, len: 5 };
    let mut event = batch.event_mut(0, &base);
    event.clear_message();
    let node = event.arena().1.push(NodeId::NONE, key, Cell::Str(value), member.len);
    event.merge_list_over(FieldList::one(node), true);
    assert_eq!(document(&batch)["message"], "found");
    let mut row = batch.pop().unwrap();
    batch.set_text(&mut row, Text { start: 0, len: 1 });
    batch.push(row);
    let mut out = Vec::new();
    Encoder::new(Precision::Millisecond).write(&mut out, &batch, 0);
    let out = String::from_utf8(out).unwrap();
    assert!(out.contains("\"message\":\"x\"") && !out.contains("found"), "{out}");
}

/// One random edit, applied to the event and to a plain JSON tree that knows the truth.
#[derive(Clone, Debug)]
enum Edit {
    Put(String, i64),
    Delete(String),
    Move(String, String),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let name = prop::sample::select(vec![
        "agent",
        "agent.name",
        "agent.x",
        "log",
        "log.file",
        "log.offset",
        "log.file.path",
        "message",
        "new",
        "new.a",
        "new.a.b",
        "new.c",
        "tags",
        "host.name",
        "stream",
        "stream.x",
        "x",
    ])
    .prop_map(str::to_owned);
    let edit = prop_oneof![
        (name.clone(), any::<i64>()).prop_map(|(path, number)| Edit::Put(path, number)),
        name.clone().prop_map(Edit::Delete),
        (name.clone(), name).prop_map(|(from, to)| Edit::Move(from, to)),
    ];
    prop::collection::vec(edit, 0..12)
}

fn get<'a>(tree: &'a serde_json::Value, name: &str) -> Option<&'a serde_json::Value> {
    name.split('.').try_fold(tree, |at, key| at.as_object()?.get(key))
}

/// Sets a path; `false` when something that is no object is in the way.
fn set(tree: &mut serde_json::Value, name: &str, value: serde_json::Value) -> bool {
    let (parents, last) =
        name.rsplit_once('.').map_or(("", name), |(parents, last)| (parents, last));
    let mut at = tree;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        let Some(object) = at.as_object_mut() else { return false };
        at = object.entry(key).or_insert_with(|| serde_json::json!({}));
    }
    at.as_object_mut().is_some_and(|object| {
        object.insert(last.to_owned(), value);
        true
    })
}

fn delete(tree: &mut serde_json::Value, name: &str) {
    let (parents, last) =
        name.rsplit_once('.').map_or(("", name), |(parents, last)| (parents, last));
    let mut at = tree;
    for key in parents.split('.').filter(|key| !key.is_empty()) {
        match at.as_object_mut().and_then(|object| object.get_mut(key)) {
            Some(inner) => at = inner,
            None => return,
        }
    }
    if let Some(object) = at.as_object_mut() {
        object.remove(last);
    }
}

fn apply(event: &mut EventMut<'_>, truth: &mut serde_json::Value, edit: &Edit) {
    match edit {
        Edit::Put(name, number) => {
            let done = event.put(&path(name), &Value::Int(*number)).is_ok();
            let mut after = truth.clone();
            let expected = set(&mut after, name, (*number).into());
            assert_eq!(done, expected, "{edit:?} on {truth}");
            if done {
                *truth = after;
            }
        }
        Edit::Delete(name) => {
            let done = event.delete(&path(name));
            assert_eq!(done, get(truth, name).is_some(), "{edit:?} on {truth}");
            delete(truth, name);
        }
        Edit::Move(from, to) => {
            let mark = event.mark();
            let value = event.take(&path(from));
            assert_eq!(value.is_some(), get(truth, from).is_some(), "{edit:?} on {truth}");
            let Some(cell) = value else { return };
            let mut after = truth.clone();
            let moved = get(&after, from).expect("both have it").clone();
            delete(&mut after, from);
            let possible = set(&mut after, to, moved);
            let done = event.put_cell(&path(to), cell).is_ok();
            assert_eq!(done, possible, "{edit:?} on {truth}");
            if done {
                *truth = after;
            } else {
                event.rollback(mark);
            }
        }
    }
}

proptest! {
    #[test]
    fn random_edits_give_what_a_plain_tree_gives(edits in edits()) {
        let base = base();
        let mut batch = batch_of("x", base.clone());
        let mut truth = document(&batch);
        for edit in &edits {
            apply(&mut batch.event_mut(0, &base), &mut truth, edit);
            prop_assert_eq!(&document(&batch), &truth);
        }
    }

    #[test]
    fn rollback_gives_back_the_event_exactly(before in edits(), after in edits()) {
        let base = base();
        let mut batch = batch_of("x", base.clone());
        let mut truth = document(&batch);
        for edit in &before {
            apply(&mut batch.event_mut(0, &base), &mut truth, edit);
        }
        let mark = batch.event_mut(0, &base).mark();
        let mut scratch = truth.clone();
        for edit in &after {
            apply(&mut batch.event_mut(0, &base), &mut scratch, edit);
        }
        batch.event_mut(0, &base).rollback(mark);
        prop_assert_eq!(document(&batch), truth);
    }

    #[test]
    fn a_field_that_was_given_to_a_row_is_as_one_that_was_set(edits in edits()) {
        let base = base();
        prop_assert!(!base.has("stream") && base.has("agent"));
        let mut one = batch_of("x", base.clone());
        one.event_mut(0, &base).put(&path("stream"), &"stdout".into()).unwrap();
        let mut other = batch_of("x", base.clone());
        let mut row = other.pop().unwrap();
        prop_assert!(!row.has_own());
        let member = other.append(b"\"stream\":\"stdout\"");
        let key = Text { start: member.start + 1, len: 6 };
        let value = Text { start: member.start + 10, len: 6 };
        other.set_first(&mut row, key, Cell::Str(value), member.len);
        prop_assert!(row.has_own());
        other.push(row);
        let mut truths = [document(&one), document(&one)];
        prop_assert_eq!(&document(&other), &truths[0]);
        for edit in &edits {
            apply(&mut one.event_mut(0, &base), &mut truths[0], edit);
            apply(&mut other.event_mut(0, &base), &mut truths[1], edit);
            prop_assert_eq!(document(&other), document(&one));
            let (one, other) = (one.event(0), other.event(0));
            for key in ["stream", "agent", "new"] {
                prop_assert_eq!(one.has_own(key, false), other.has_own(key, false));
                let mut keys = KeyFilter::NONE;
                keys.add(KeyBit::of(key.as_bytes()));
                prop_assert!(other.may_have_own(&keys, false) || !other.has_own(key, false));
            }
            prop_assert!(!other.may_have_own(&KeyFilter::ANY, true));
        }
    }
}
