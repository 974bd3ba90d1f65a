//! What Filebeat does with a line, setting by setting, and where this parser loses less.

use super::*;
use crate::testing::{base, batch_of, document};
use serde_json::{Value, json};

/// The event of a line, without the fields of the reader, and the result.
fn decode(settings: Settings, line: &str) -> (Value, Result<(), NdjsonError>) {
    let base = base();
    let mut batch = batch_of(line.as_bytes(), &base);
    let done = Ndjson::new(settings).apply(&mut batch.event_mut(0, &base));
    (document(&batch), done)
}

fn overwriting() -> Settings {
    Settings { overwrite_keys: true, add_error_key: true, ..Settings::default() }
}

/// What every event has.
fn with(fields: Value) -> Value {
    let mut document = json!({
        "@timestamp": "2026-11-21T20:52:57.123000000Z",
        "log": {"offset": 7, "file": {"path": "/var/log/a.log"}},
    });
    if let Value::Object(fields) = fields {
        for (key, value) in fields {
            document[key] = value;
        }
    }
    document
}

#[test]
fn fields_go_to_the_root_or_to_the_target() {
    let line = r#"{"a":1,"b":{"c":"x\ny","d":[true,null,{"e":1.50}]},"n":null}"#;
    let fields = json!({"a": 1, "b": {"c": "x\ny", "d": [true, null, {"e": 1.5}]}});
    let (seen, done) = decode(Settings::default(), line);
    assert_eq!((seen, done), (with(fields.clone()), Ok(())));
    let target = Some(Path::parse("json.inner").unwrap());
    let (seen, done) = decode(Settings { target, ..Settings::default() }, line);
    assert_eq!((seen, done), (with(json!({"json": {"inner": fields}})), Ok(())));
}

#[test]
fn nulls_stay_if_asked_for() {
    let settings = Settings { keep_null: true, ..Settings::default() };
    let (seen, _) = decode(settings, r#"{"a":null,"b":{"c":null}}"#);
    assert_eq!(seen, with(json!({"a": null, "b": {"c": null}})));
}

#[test]
fn what_the_event_has_stays_unless_keys_overwrite_it() {
    let line = r#"{"log":{"level":"info","offset":1,"file":{"path":"p","x":1}},"@timestamp":"2020-01-01T00:00:00Z","@metadata":{"pipeline":"p"},"type":"t"}"#;
    let (seen, done) = decode(Settings::default(), line);
    let log = json!({"offset": 7, "level": "info", "file": {"path": "/var/log/a.log", "x": 1}});
    assert_eq!((seen, done), (with(json!({"log": log, "type": "t"})), Ok(())));
    let (seen, done) = decode(overwriting(), line);
    let log = json!({"offset": 1, "level": "info", "file": {"path": "p", "x": 1}});
    let expected = json!({"log": log, "type": "t", "@timestamp": "2020-01-01T00:00:00.000000000Z"});
    assert_eq!((seen, done), (with(expected), Ok(())));
}

#[test]
fn a_log_that_is_no_object_stays_out_unless_keys_overwrite_it() {
    let (seen, _) = decode(Settings::default(), r#"{"log":"x"}"#);
    assert_eq!(seen, with(json!({})));
    let (seen, _) = decode(overwriting(), r#"{"log":"x"}"#);
    assert_eq!(seen, with(json!({"log": "x"})));
}

#[test]
fn lines_that_are_no_object_stay_as_they_are() {
    for line in ["", "plain text", "[1]", "\"x\"", "null", "{\"a\":", "{\"a\" 1}"] {
        let (seen, done) = decode(Settings::default(), line);
        assert_eq!(seen, with(json!({"message": line})));
        let Err(NdjsonError::Undecoded(error)) = done else { panic!("{line} was decoded") };
        let (seen, _) = decode(overwriting(), line);
        let message = format!("Error decoding JSON: {error}");
        let expected = json!({"message": line, "error": {"message": message, "type": "json"}});
        assert_eq!(seen, with(expected), "{line}");
    }
}

#[test]
fn of_a_line_with_more_than_an_object_the_object_is_taken_and_the_rest_is_told() {
    for (line, offset) in [(r#"{"a":1} {"b":2}"#, 8), (r#"{"a":1}}"#, 7), (r#"{"a":1}, "#, 7)] {
        let (seen, done) = decode(overwriting(), line);
        assert_eq!(seen, with(json!({"a": 1})), "{line}");
        let Err(NdjsonError::Behind(error)) = done else { panic!("nothing is reported of {line}") };
        assert_eq!(error.offset, offset, "{line}");
    }
}

#[test]
fn the_type_of_the_input_stays() {
    let (seen, _) = decode(overwriting(), r#"{"input":{"type":"mine","x":1}}"#);
    assert_eq!(seen["input"], json!({"x": 1}));
    let (seen, _) = decode(overwriting(), r#"{"input":1,"a":2}"#);
    assert_eq!(seen, with(json!({"a": 2})));
}

#[test]
fn an_error_alone_leaves_an_empty_message() {
    let (seen, _) = decode(Settings::default(), r#"{"error":"x"}"#);
    assert_eq!(seen, with(json!({"error": "x", "message": ""})));
    let (seen, _) = decode(Settings::default(), r#"{"error":"x","a":1}"#);
    assert_eq!(seen, with(json!({"error": "x", "a": 1})));
}

#[test]
fn an_empty_object_leaves_nothing() {
    assert_eq!(decode(Settings::default(), " {} "), (with(json!({})), Ok(())));
}

#[test]
fn the_message_key_becomes_the_message() {
    let settings = || Settings {
        message_key: Some("log".into()),
        target: Some(Path::parse("json").unwrap()),
        add_error_key: true,
        ..Settings::default()
    };
    let (seen, done) = decode(settings(), r#"{"log":"a\tb","x":1}"#);
    let expected = json!({"message": "a\tb", "json": {"log": "a\tb", "x": 1}});
    assert_eq!((seen, done), (with(expected), Ok(())));
    let (seen, done) = decode(settings(), r#"{"x":1}"#);
    let error = json!({"message": "Key 'log' not found", "type": "json"});
    assert_eq!(seen, with(json!({"json": {"x": 1, "error": error}})));
    assert_eq!(done, Err(NdjsonError::NoMessage("log".into())));
    let (seen, done) = decode(settings(), r#"{"log":1}"#);
    let error = json!({"message": "Value of key 'log' is not a string", "type": "json"});
    assert_eq!(seen, with(json!({"json": {"log": 1, "error": error}})));
    assert_eq!(done, Err(NdjsonError::MessageNotText("log".into())));
    let root = Settings { message_key: Some("msg".into()), ..Settings::default() };
    let (seen, _) = decode(root, r#"{"message":"lost","msg":"kept"}"#);
    assert_eq!(seen, with(json!({"message": "kept", "msg": "kept"})));
}

#[test]
fn the_document_id_is_moved() {
    let base = base();
    for (key, line, rest) in [
        ("id", r#"{"id":"7","a":1}"#, json!({"a": 1})),
        ("a.id", r#"{"a":{"id":"7","b":1}}"#, json!({"a": {"b": 1}})),
        ("a.id", r#"{"a.id":"7","b":1}"#, json!({"b": 1})),
    ] {
        let mut batch = batch_of(line.as_bytes(), &base);
        let settings = Settings { document_id: Some(key.into()), ..Settings::default() };
        Ndjson::new(settings).apply(&mut batch.event_mut(0, &base)).unwrap();
        assert_eq!(document(&batch), with(rest));
        let id = batch.event(0).get(&Path::parse("@metadata._id").unwrap());
        assert!(matches!(id, Some(skidder_event::ValueRef::Str(b"7"))), "{id:?}");
    }
    let settings = Settings { document_id: Some("id".into()), ..Settings::default() };
    assert_eq!(decode(settings, r#"{"id":7}"#).0, with(json!({"id": 7})));
}

#[test]
fn what_may_not_be_overwritten_is_noted() {
    let cases = [
        (r#"{"@timestamp":1}"#, NdjsonError::TimestampNotText),
        (r#"{"@timestamp":"today"}"#, NdjsonError::Timestamp("today".into())),
        (r#"{"type":1}"#, NdjsonError::TypeNotText),
        (r#"{"type":""}"#, NdjsonError::Type(String::new())),
        (r#"{"type":"_doc"}"#, NdjsonError::Type("_doc".into())),
        (r#"{"@metadata":1}"#, NdjsonError::Metadata),
    ];
    for (line, error) in cases {
        let (seen, done) = decode(overwriting(), line);
        let note = json!({"error": {"message": error.to_string(), "type": "json"}});
        assert_eq!((seen, done), (with(note), Err(error)), "{line}");
    }
}

#[test]
fn metadata_is_merged_with_that_of_the_event() {
    let base = base();
    let mut batch = batch_of(br#"{"@metadata":{"pipeline":"p","raw_index":"r"}}"#, &base);
    Ndjson::new(overwriting()).apply(&mut batch.event_mut(0, &base)).unwrap();
    let event = batch.event(0);
    for (name, expected) in [("pipeline", b"p"), ("raw_index", b"r")] {
        let value = event.get(&Path::parse(&format!("@metadata.{name}")).unwrap());
        assert!(matches!(value, Some(skidder_event::ValueRef::Str(text)) if text == expected));
    }
}

#[test]
fn keys_with_dots_become_objects() {
    let settings = || Settings { expand_keys: true, ..Settings::default() };
    let cases = [
        (r#"{"a.b.c":1,"a.b.d":2,"x":3}"#, json!({"a": {"b": {"c": 1, "d": 2}}, "x": 3})),
        (
            r#"{"a":{"b.c":{"d.e":1}},"a.b":{"c":{"x":1}}}"#,
            json!({"a": {"b": {"c": {"d": {"e": 1}, "x": 1}}}}),
        ),
        (r#"{"a.b":{"c":1},"a":{"b":{"d":2}}}"#, json!({"a": {"b": {"c": 1, "d": 2}}})),
        (r#"{"a":[{"b.c":1}]}"#, json!({"a": [{"b.c": 1}]})),
        (
            r#"{"log.level":"info"}"#,
            json!({"log": {"level": "info", "offset": 7, "file": {"path": "/var/log/a.log"}}}),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(decode(settings(), line), (with(expected), Ok(())), "{line}");
    }
    for line in [r#"{"a":1,"a.b":2}"#, r#"{"a.b":1,"a":{"b":2}}"#, r#"{"a.b":{"c":1},"a":{"b":2}}"#]
    {
        let (seen, done) = decode(settings(), line);
        assert_eq!(seen, with(json!({"message": line})), "{line}");
        assert!(matches!(done, Err(NdjsonError::Expand(_))), "{done:?}");
    }
    let many: Vec<String> = (0..500).map(|n| format!("\"o.k{n}\":{n},\"r{n}.x\":1")).collect();
    let (seen, done) = decode(settings(), &format!("{{{}}}", many.join(",")));
    assert_eq!((done, &seen["o"]["k499"], &seen["r499"]["x"]), (Ok(()), &json!(499), &json!(1)));
    assert_eq!(seen["o"].as_object().map(serde_json::Map::len), Some(500));
    let line = format!("{{{},\"o.k499\":1,\"o.k499.x\":2}}", many.join(","));
    assert!(matches!(decode(settings(), &line).1, Err(NdjsonError::Expand(_))));
    let deep = format!("{{\"{}\":1}}", "a.".repeat(100_000));
    assert!(matches!(decode(settings(), &deep).1, Err(NdjsonError::Expand(_))));
}

#[test]
fn the_error_of_the_program_stays_under_the_note() {
    let settings =
        Settings { message_key: Some("msg".into()), add_error_key: true, ..Settings::default() };
    let (seen, _) = decode(settings, r#"{"error":{"message":"boom","code":5}}"#);
    let error = json!({"message": "boom", "code": 5, "type": "json"});
    assert_eq!(seen, with(json!({"error": error, "message": ""})));
}

#[test]
fn a_line_that_is_no_json_has_the_field_of_the_message_beside_the_note() {
    let settings = |target: Option<&str>, overwrite_keys| Settings {
        message_key: Some("log".into()),
        add_error_key: true,
        overwrite_keys,
        target: target.map(|target| Path::parse(target).unwrap()),
        ..Settings::default()
    };
    // As Filebeat 9.6 has it: the key replaces what the event has only with `overwrite_keys`.
    let (seen, _) = decode(settings(None, true), "plain text");
    assert_eq!((&seen["log"], &seen["message"]), (&json!("plain text"), &json!("plain text")));
    assert_eq!(seen["error"]["type"], "json");
    let (seen, _) = decode(settings(None, false), "plain text");
    assert_eq!((&seen["log"]["offset"], &seen["message"]), (&json!(7), &json!("plain text")));
    let (seen, _) = decode(settings(Some("json"), false), "plain text");
    assert_eq!(
        (&seen["json"]["log"], &seen["json"]["error"]["type"], &seen["message"]),
        (&json!("plain text"), &json!("json"), &json!("plain text"))
    );
    let quiet = Settings { add_error_key: false, ..settings(None, true) };
    let (seen, _) = decode(quiet, "plain text");
    assert_eq!(seen, with(json!({"message": "plain text"})));
}

#[test]
fn broken_lines_leave_documents_and_what_is_not_decoded_stays() {
    let lines = [
        r#"{"@timestamp":"2026-11-21T20:52:57.123Z","a.id":"x","a":{"b":1},"msg":"a \"b\"","type":"t"}"#,
        r#"{"log":{"offset":1,"file.path":"x","level":"info"},"message":"m","@metadata":{"pipeline":"p"},"error":{"message":"e"}}"#,
    ];
    // With both, what is not decoded has the field of the message, too.
    for (add_error_key, message_key) in [(true, None), (false, Some("msg".into()))] {
        let mut parser = Ndjson::new(Settings {
            add_error_key,
            expand_keys: true,
            message_key,
            document_id: Some("a.id".into()),
            ..overwriting()
        });
        crate::testing::survives(&lines, |event| {
            let done = parser.apply(event);
            !matches!(done, Err(NdjsonError::Undecoded(_) | NdjsonError::Expand(_)))
        });
    }
}

#[test]
fn a_message_that_is_a_field_stays_unless_keys_overwrite_it() {
    let keeping = |settings: Settings| Settings { keep_message: true, ..settings };
    let of = |settings: Settings, line: &str| {
        let mut seen = decode(keeping(settings), line).0;
        let fields = seen.as_object_mut().unwrap();
        fields.retain(|key, _| key != "@timestamp" && key != "log");
        seen
    };
    let (a, both) = (r#"{"a":1}"#, r#"{"message":"m","a":1}"#);
    let key = |settings: Settings| Settings { message_key: Some("message".into()), ..settings };
    let target = || Settings { target: Some(Path::parse("j").unwrap()), ..Settings::default() };
    assert_eq!(of(Settings::default(), a), json!({"message": a, "a": 1}));
    assert_eq!(of(overwriting(), a), json!({"message": a, "a": 1}));
    assert_eq!(of(target(), a), json!({"message": a, "j": {"a": 1}}));
    assert_eq!(of(Settings::default(), both), json!({"message": both, "a": 1}));
    assert_eq!(of(key(Settings::default()), both), json!({"message": both, "a": 1}));
    assert_eq!(of(key(overwriting()), both), json!({"message": "m", "a": 1}));
    assert_eq!(of(overwriting(), both), json!({"message": "m", "a": 1}));
    assert_eq!(of(target(), both), json!({"message": both, "j": {"message": "m", "a": 1}}));
    assert_eq!(of(overwriting(), r#"{"message":{"b":1}}"#), json!({"message": {"b": 1}}));
    assert_eq!(of(overwriting(), "{}"), json!({"message": "{}"}));
    let gone = r#"{"message":null,"a":1}"#;
    assert_eq!(of(overwriting(), gone), json!({"a": 1}));
    assert_eq!(of(Settings::default(), gone), json!({"message": gone, "a": 1}));
    let inside = r#"{"a":{"message":null},"text":"\"message\":null"}"#;
    let expected = json!({"message": inside, "a": {}, "text": "\"message\":null"});
    assert_eq!(of(overwriting(), inside), expected);
    // As in Filebeat, which takes it for a line that could not be decoded.
    let error = r#"{"error":{"message":"e"}}"#;
    assert_eq!(of(Settings::default(), error), json!({"message": "", "error": {"message": "e"}}));
    assert_eq!(of(overwriting(), "x")["message"], json!("x"));
}
