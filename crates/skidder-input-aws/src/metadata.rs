//! Headers of objects as fields of their events, of the types that Filebeat gives them.

use http::HeaderMap;
use skidder_aws::http_time_of;
use skidder_event::{Map, Value};

/// Headers that are numbers.
const NUMBERS: [&str; 4] =
    ["content-length", "x-amz-missing-meta", "x-amz-mp-parts-count", "x-amz-tagging-count"];
/// Headers that are `true` or `false`.
const TRUTHS: [&str; 2] =
    ["x-amz-delete-marker", "x-amz-server-side-encryption-bucket-key-enabled"];

/// The values of those of the headers that are there. `names` are in lower case.
pub(crate) fn of(names: &[String], headers: &HeaderMap) -> Map {
    let mut fields = Map::new();
    for name in names {
        let Some(value) = headers.get(name.as_str()) else { continue };
        let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
        fields.insert(name, typed(name, text));
    }
    fields
}

fn typed(name: &str, text: String) -> Value {
    let value = match name {
        "last-modified" => http_time_of(&text).map(|time| Value::Time(time.0)),
        name if NUMBERS.contains(&name) => text.parse().ok().map(Value::Int),
        name if TRUTHS.contains(&name) => text.parse().ok().map(Value::Bool),
        _ => None,
    };
    value.unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn headers_that_are_asked_for_become_fields() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("last-modified", "Sun, 30 Aug 2015 12:36:00 GMT"),
            ("content-length", "7"),
            ("x-amz-delete-marker", "false"),
            ("x-amz-missing-meta", "many"),
            ("x-amz-meta-team", "a"),
            ("etag", "\"0123\""),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let names = [
            "last-modified",
            "content-length",
            "x-amz-delete-marker",
            "x-amz-missing-meta",
            "x-amz-meta-team",
            "x-amz-meta-none",
            "no header",
        ];
        let fields = of(&names.map(str::to_owned), &headers);
        let expected = [
            ("content-length", Value::Int(7)),
            ("last-modified", Value::Time(1_440_938_160_000_000_000)),
            ("x-amz-delete-marker", Value::Bool(false)),
            ("x-amz-meta-team", "a".into()),
            ("x-amz-missing-meta", "many".into()),
        ];
        assert!(
            fields.iter().eq(expected.iter().map(|(name, value)| (*name, value))),
            "{fields:?}"
        );
    }
}
