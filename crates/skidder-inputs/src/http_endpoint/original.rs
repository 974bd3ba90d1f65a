//! `event.original`: the object as Go's `json.Marshal` writes it, with sorted keys and without `<`, `>` and `&`.

use super::settings::escape_html;
use serde_json::{Number, Value};

/// The text of an object; `None` if it is no JSON, which was checked before.
pub(super) fn text(object: &[u8]) -> Option<String> {
    let value: Value = match std::str::from_utf8(object) {
        Ok(text) => serde_json::from_str(text).ok()?,
        Err(_) => serde_json::from_str(&String::from_utf8_lossy(object)).ok()?,
    };
    let mut out = String::with_capacity(object.len());
    write(&mut out, &value);
    Some(escape_html(&out))
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => {
            // Sorted, whether the map of this build keeps an order or not.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (at, (key, value)) in fields.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                write(out, value);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Number(number) => out.push_str(&number_text(number)),
        other => out.push_str(&other.to_string()),
    }
}

/// A number as Go writes an `int64`, or else a `float64`.
fn number_text(number: &Number) -> String {
    if let Some(number) = number.as_i64() {
        return number.to_string();
    }
    let Some(float) = number.as_f64() else { return number.to_string() };
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{float}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_go_does() {
        for (object, expected) in [
            (r#"{ "b" : 1, "a" : [1.0, "x<y", null] }"#, r#"{"a":[1,"x\u003cy",null],"b":1}"#),
            (
                r#"{"a":1e21,"b":1e20,"c":1e-7,"d":0.5}"#,
                r#"{"a":1e+21,"b":100000000000000000000,"c":1e-7,"d":0.5}"#,
            ),
            (r#"{"a":{"d":1,"c":2}}"#, r#"{"a":{"c":2,"d":1}}"#),
        ] {
            assert_eq!(text(object.as_bytes()).as_deref(), Some(expected), "{object}");
        }
        assert_eq!(text(b"{\"a\":\"\xff\"}").as_deref(), Some("{\"a\":\"\u{fffd}\"}"));
        assert_eq!(text(b"{"), None);
    }
}
