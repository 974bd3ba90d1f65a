//! JSON as a value of an event.

use serde_json::Value as Json;
use skidder_event::{Map, Value};

/// The same as a value of an event: dots in names are kept, integers stay integers.
pub fn value_of_json(json: Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(truth),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::UInt(number),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text),
        Json::Array(items) => Value::List(items.into_iter().map(value_of_json).collect()),
        Json::Object(members) => {
            let mut map = Map::new();
            for (key, value) in members {
                map.insert(&key, value_of_json(value));
            }
            Value::Map(map)
        }
    }
}
