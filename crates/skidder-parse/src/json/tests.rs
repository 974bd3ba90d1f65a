//! The scanner against another parser, on random documents and on broken ones.

use super::*;
use crate::testing::{Mutations, base, batch_of, document};
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use skidder_event::{EventRef, ListRef, MapRef, NodeId, ValueRef};

/// The fields of a text as the document has them, and as a processor sees them.
fn scan(scanner: &mut Scanner, text: &[u8]) -> Result<(Value, Value), JsonError> {
    let base = base();
    let mut batch = batch_of(text, &base);
    let mut event = batch.event_mut(0, &base);
    let span = event.own_message().expect("the text is the message");
    let nodes = event.arena().1.len();
    let fields = scanner.object(&mut event, span).inspect_err(|error| {
        assert!(error.offset <= text.len(), "{error} in {} bytes", text.len());
    });
    let Ok(fields) = fields else {
        assert_eq!(event.arena().1.len(), nodes, "nothing is left of what was not used");
        return Err(fields.unwrap_err());
    };
    let name = event.store_text(b"json");
    let cell = skidder_event::Cell::Map { first: fields.first, opaque: false };
    let root = event.arena().1.push(NodeId::NONE, name, cell, 0);
    event.merge_list_over(skidder_event::FieldList::one(root), true);
    event.clear_message();
    let written = document(&batch)["json"].take();
    Ok((written, seen(batch.event(0))))
}

fn seen(event: EventRef<'_>) -> Value {
    let path = skidder_event::Path::parse("json").expect("a path");
    event.get(&path).map_or(Value::Null, value)
}

fn value(seen: ValueRef<'_>) -> Value {
    match seen {
        ValueRef::Null => Value::Null,
        ValueRef::Bool(truth) => truth.into(),
        ValueRef::Int(number) => number.into(),
        ValueRef::UInt(number) => number.into(),
        ValueRef::Float(number) => number.into(),
        ValueRef::Str(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Time(time) => time.into(),
        ValueRef::List(list) => self::list(list),
        ValueRef::Map(map) => self::map(map),
    }
}

fn list(list: ListRef<'_>) -> Value {
    let mut items = Vec::new();
    list.for_each(|item| {
        items.push(value(item));
        true
    });
    items.into()
}

fn map(map: MapRef<'_>) -> Value {
    let mut members = Map::new();
    map.for_each(|key, item| {
        let there = members.insert(String::from_utf8_lossy(key).into_owned(), value(item));
        assert!(there.is_none(), "a key is there once");
    });
    members.into()
}

/// Without the members that are `null`, as Filebeat publishes an event.
fn without_null(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_null(value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(without_null).collect::<Vec<_>>().into(),
        leaf => leaf.clone(),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // The other parser rounds carelessly: numbers that a double holds exactly.
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 64.0)),
        "[a-c\"\\\\\n\u{1}é😀]{0,12}".prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            objects(inner),
        ]
    })
}

fn objects(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop_oneof!["[a-cz]{1,2}", "[a-z._]{1,20}", "\\PC{0,6}"];
    proptest::collection::vec((key, inner), 0..8)
        .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into())
}

/// The text of a value with white space in it, or escapes where none are needed.
fn written(value: &Value, style: u8) -> String {
    match style {
        0 => value.to_string(),
        1 => serde_json::to_string_pretty(value).expect("a value"),
        2 => value.to_string().replace("\":", "\" : ").replace(",\"", " , \""),
        _ => value.to_string().replace('z', "\\u007a").replace("😀", "\\ud83d\\ude00"),
    }
}

proptest! {
    #[test]
    fn random_documents_are_what_another_parser_sees(
        documents in proptest::collection::vec((objects(values()), 0_u8..4), 1..6), keep_null: bool
    ) {
        // One scanner for all: what it learns of one may not show in another.
        let mut scanner = Scanner::new(keep_null);
        for (document, style) in documents {
            let text = written(&document, style);
            let expected: Value = serde_json::from_str(&text).unwrap();
            let expected = if keep_null { expected } else { without_null(&expected) };
            let (written, seen) = scan(&mut scanner, text.as_bytes()).unwrap();
            prop_assert_eq!(&written, &expected);
            prop_assert_eq!(seen, expected);
        }
    }

    #[test]
    fn what_is_taken_back_was_never_there(document in objects(values()), style in 0_u8..4) {
        let base = base();
        let text = written(&document, style);
        let mut batch = batch_of(text.as_bytes(), &base);
        let before = crate::testing::document(&batch);
        let mut event = batch.event_mut(0, &base);
        let mark = event.mark();
        let settings = crate::ndjson::Settings { overwrite_keys: true, ..Default::default() };
        crate::ndjson::Ndjson::new(settings).apply(&mut event).ok();
        event.rollback(mark);
        prop_assert_eq!(crate::testing::document(&batch), before);
    }
}

/// Whether the other parser refuses a text for something that is no error here.
fn is_taken_here_only(error: &serde_json::Error) -> bool {
    let text = error.to_string();
    ["surrogate", "hex escape", "out of range", "recursion limit", "invalid unicode", "code point"]
        .iter()
        .any(|reason| text.contains(reason))
}

#[test]
fn broken_documents_are_refused_where_another_parser_refuses_them() {
    let texts = [
        r#"{"a":1,"b":{"c":"x\ny","d":[true,null,{"e":1.50}],"a":"z"},"n":null,"k":-0.5e+3}"#,
        r#"{"time": "2026-11-21T20:52:57Z", "msg": "a \"b\" \u00e9\ud83d\ude00", "list": [], "o": {}}"#,
        "{\"a\": \"\u{e9}\u{20ac}\u{1f600}\", \"a\": 12345678901234567890123, \"b\":1e5}",
    ];
    let mut scanner = Scanner::new(true);
    let mut refused = 0;
    for text in texts {
        for broken in Mutations::new(text.as_bytes()).take(1500) {
            let lossy = String::from_utf8_lossy(&broken);
            let expected: Result<Map<String, Value>, _> = serde_json::from_str(&lossy);
            match (scan(&mut scanner, &broken), expected) {
                (Ok((written, _)), Ok(expected)) => {
                    let same = written == Value::from(expected) || lossy.contains("0123");
                    assert!(same, "{lossy}: {written}");
                }
                (Ok(_), Err(error)) => assert!(is_taken_here_only(&error), "{lossy}: {error}"),
                (Err(error), Ok(_)) => panic!("{lossy}: {error}"),
                (Err(_), Err(_)) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "most of the texts are broken: {refused}");
}

fn refused(text: &str) -> JsonError {
    scan(&mut Scanner::new(false), text.as_bytes()).expect_err(text)
}

#[test]
fn errors_name_the_byte() {
    let cases = [
        ("", 0, Problem::Unfinished),
        ("  ", 2, Problem::Unfinished),
        ("null", 0, Problem::Null),
        (" [1]", 1, Problem::NotAnObject),
        ("\"x\"", 0, Problem::NotAnObject),
        ("text", 0, Problem::NotAnObject),
        ("x", 0, Problem::Value),
        ("{", 1, Problem::Unfinished),
        ("{a:1}", 1, Problem::Key),
        ("{\"a\":1,}", 7, Problem::Key),
        ("{\"a\" 1}", 5, Problem::Colon),
        ("{\"a\":}", 5, Problem::Value),
        ("{\"a\":tru}", 5, Problem::Value),
        ("{\"a\":tru", 8, Problem::Unfinished),
        ("{\"a\":1 \"b\":2}", 7, Problem::Comma),
        ("{\"a\":[1 2]}", 8, Problem::Comma),
        ("{\"a\":[1,]}", 8, Problem::Value),
        ("{\"a\":01}", 7, Problem::Number),
        ("{\"a\":-}", 6, Problem::Number),
        ("{\"a\":1.}", 7, Problem::Number),
        ("{\"a\":1e}", 7, Problem::Number),
        ("{\"a\":\"x\u{1}\"}", 7, Problem::Control),
        ("{\"a\":\"x\\y\"}", 7, Problem::Escape),
        ("{\"a\":1} x", 8, Problem::Trailing),
        ("{\"a\":1}{\"b\":2}", 7, Problem::Trailing),
        ("{\"a\":1}\0", 7, Problem::Trailing),
        ("{\"a\":\"x", 7, Problem::Unfinished),
        ("{\"abc", 5, Problem::Unfinished),
    ];
    for (text, offset, problem) in cases {
        assert_eq!(refused(text), JsonError { offset, problem }, "{text}");
    }
}

#[test]
fn the_byte_is_that_of_the_text_even_behind_bytes_that_are_no_utf8() {
    let text = b"{\"a\":\"\xff\xfe\xe2\x82\",\"b\" 1}";
    let error = scan(&mut Scanner::new(false), text).unwrap_err();
    assert_eq!(error, JsonError { offset: 16, problem: Problem::Colon });
    let error = scan(&mut Scanner::new(false), b"{\"a\":\xff}").unwrap_err();
    assert_eq!(error, JsonError { offset: 5, problem: Problem::Value });
}

#[test]
fn bytes_that_are_no_utf8_and_halves_of_characters_are_replaced() {
    let (written, seen) = scan(
        &mut Scanner::new(false),
        b"{\"a\xff\":\"x\xffy\",\"b\":\"\\ud83d!\",\"c\":{\"d\":\"\\ude00\"}}",
    )
    .unwrap();
    let expected = json!({"a\u{fffd}": "x\u{fffd}y", "b": "\u{fffd}!", "c": {"d": "\u{fffd}"}});
    assert_eq!((&written, &seen), (&expected, &expected));
}

#[test]
fn of_equal_keys_the_last_counts() {
    let text = br#"{"a":1,"b":{"a":2,"x":{"a":3},"a":{"y":4}},"a":"last","b":{"c":[{"a":1,"a":2}]},"\u0061":5}"#;
    let (written, seen) = scan(&mut Scanner::new(false), text).unwrap();
    let expected = json!({"a": 5, "b": {"c": [{"a": 2}]}});
    assert_eq!((&written, &seen), (&expected, &expected));
    let (written, _) =
        scan(&mut Scanner::new(false), br#"{"a":null,"a":1,"b":1,"b":null}"#).unwrap();
    assert_eq!(written, json!({"a": 1, "b": null}));
}

#[test]
fn numbers_stay_as_they_are_written_while_a_double_can_hold_them() {
    let text = br#"{"a":-0,"b":1.50,"c":9223372036854775807,"d":18446744073709551615,"e":1e3,"f":123456789012345678901234567890,"g":1e999,"h":-1e999,"i":[1e999],"j":12345678901234567890.5,"k":9999999999999999999,"l":-9223372036854775808,"m":-9999999999999999999}"#;
    let base = base();
    let mut batch = batch_of(text, &base);
    crate::ndjson::Ndjson::new(crate::ndjson::Settings::default())
        .apply(&mut batch.event_mut(0, &base))
        .unwrap();
    let mut out = Vec::new();
    skidder_event::Encoder::new(skidder_event::Precision::Millisecond).write(&mut out, &batch, 0);
    let out = String::from_utf8(out).unwrap();
    for member in [
        "\"a\":-0,",
        "\"b\":1.50,",
        "\"c\":9223372036854775807,",
        "\"d\":18446744073709551615,",
        "\"e\":1e3,",
        "\"f\":1.2345678901234568e29,",
        "\"g\":\"1e999\",",
        "\"h\":\"-1e999\",",
        "\"i\":[\"1e999\"],",
        "\"j\":12345678901234567890.5,",
        "\"k\":9999999999999999999,",
        "\"l\":-9223372036854775808,",
        "\"m\":-1e19",
    ] {
        assert!(out.contains(member), "{member} in {out}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(scan_only(&nested(DEPTH_MAX - 1)).is_ok());
    let error = refused(&nested(DEPTH_MAX));
    assert_eq!(error, JsonError { offset: 5 + DEPTH_MAX - 1, problem: Problem::Depth });
    assert_eq!(refused(&"{\"a\":".repeat(100_000)).problem, Problem::Depth);
}

#[test]
fn line_breaks_between_values_do_not_reach_the_document() {
    let base = base();
    let text = "{\n \"a\": {\r\n\"b\": 1},\n\"c\": [1,\n2]\n}\n";
    let mut batch = batch_of(text.as_bytes(), &base);
    crate::ndjson::Ndjson::new(crate::ndjson::Settings::default())
        .apply(&mut batch.event_mut(0, &base))
        .unwrap();
    let mut out = Vec::new();
    skidder_event::Encoder::new(skidder_event::Precision::Millisecond).write(&mut out, &batch, 0);
    assert!(!out.contains(&b'\n') && !out.contains(&b'\r'));
}

#[test]
fn many_keys_cost_no_more_than_few_for_each() {
    // Quadratic work on these would take minutes.
    let members: Vec<String> =
        (0..100_000).map(|n| format!("\"k{n}\":{{\"k{n}\":1,\"a\":2}}")).collect();
    let text = format!("{{{},{}}}", members.join(","), members.join(","));
    let base = base();
    let mut batch = batch_of(text.as_bytes(), &base);
    let mut event = batch.event_mut(0, &base);
    let span = event.own_message().unwrap();
    Scanner::new(false).object(&mut event, span).unwrap();
}

/// Scans a text that is too deep for the other parser.
fn scan_only(text: &str) -> Result<(), JsonError> {
    let base = base();
    let mut batch = batch_of(text.as_bytes(), &base);
    let mut event = batch.event_mut(0, &base);
    let span = event.own_message().expect("the text is the message");
    Scanner::new(false).object(&mut event, span).map(|_| ())
}
