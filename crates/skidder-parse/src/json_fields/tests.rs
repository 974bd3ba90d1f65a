//! What is decoded, against another parser.

use super::*;
use crate::testing::{Mutations, base, batch_of, document};
use proptest::prelude::*;
use serde_json::{Map, Value};

/// What another parser makes of a text; `None` if it is none that is decoded.
fn model(text: &str, depth: u32, arrays: bool) -> Option<Value> {
    let deeper = |value: &mut Value| {
        if let Value::String(text) = value
            && is_structured(text.as_bytes())
            && let Some(inside) = model(text, depth - 1, arrays)
        {
            *value = inside;
        }
    };
    let mut value: Value = serde_json::from_str(text).ok()?;
    if depth > 1 {
        match &mut value {
            Value::Array(_) if !arrays => return None,
            Value::Array(items) => items.iter_mut().for_each(deeper),
            Value::Object(fields) => fields.values_mut().for_each(deeper),
            _ => {}
        }
    }
    Some(value)
}

/// What is at `json` of the event after its message was decoded.
fn decode(decoder: &mut JsonFields, text: &[u8], depth: u32, arrays: bool) -> Option<Value> {
    let base = base();
    let mut batch = batch_of(text, &base);
    let before = document(&batch);
    let mut event = batch.event_mut(0, &base);
    let mark = event.mark();
    let message = event.own_message().expect("the text is the message");
    let settings = Settings {
        max_depth: depth,
        process_array: arrays,
        overwrite_keys: false,
        expand_keys: false,
        document_id: None,
    };
    let target = Path::parse("json").expect("a path");
    if decoder.decode(&mut event, message, &settings, Some(&target)).is_err() {
        event.rollback(mark);
        assert_eq!(document(&batch), before);
        return None;
    }
    Some(document(&batch)["json"].take())
}

/// Values, among them texts that are JSON again.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\\n{}\\[\\]é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-c.]{1,3}", inner.clone(), 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
            inner.prop_map(|value| Value::from(value.to_string())),
        ]
    })
}

proptest! {
    #[test]
    fn any_value_is_what_another_parser_sees(
        values in proptest::collection::vec((values(), 1_u32..4, any::<bool>()), 1..5)
    ) {
        let mut decoder = JsonFields::default();
        for (value, depth, arrays) in values {
            let text = value.to_string();
            let found = decode(&mut decoder, text.as_bytes(), depth, arrays);
            prop_assert_eq!(found, model(&text, depth, arrays), "{} {} {}", text, depth, arrays);
        }
    }
}

#[test]
fn broken_texts_leave_the_event_as_it_was() {
    let text = br#" {"a": "{\"b\": \"[1, \\\"{}\\\"]\"}", "c": [1.5e3, "[\"x\"]"], "d": null} "#;
    let mut decoder = JsonFields::default();
    assert!(decode(&mut decoder, text, 3, true).is_some());
    let mut refused = 0;
    for broken in Mutations::new(text).take(3000) {
        refused += usize::from(decode(&mut decoder, &broken, 3, true).is_none());
    }
    assert!(refused > 1000, "{refused}");
}
