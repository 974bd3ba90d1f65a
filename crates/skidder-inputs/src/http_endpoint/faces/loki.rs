//! Loki's push: streams with labels, and in each of them lines with a time and structured metadata.
//!
//! <https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs>; pkg/push/push.proto of Loki.

use super::events::{Chosen, Events, FIELDS_MAX, object_of};
use super::json_tree;
use super::wire::{Field, Fields, Malformed, text_of};
use serde::Deserialize;
use skidder_event::{Map, Value};
use std::collections::BTreeMap;

/// Bytes that a byte of Snappy can become, at most: a copy of 64 bytes takes three.
const SNAPPY_RATIO_MAX: usize = 22;

/// Levels of a push in JSON: those of structured metadata, and one in which a wrong value is.
const LEVELS_MAX: u32 = 7;

/// A push in JSON.
#[derive(Deserialize)]
struct Push {
    streams: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    #[serde(default)]
    stream: BTreeMap<String, String>,
    values: Vec<Vec<serde_json::Value>>,
}

/// Reads a push in JSON.
///
/// # Errors
/// What is wrong: nothing of the body is used.
pub(super) fn json(body: &[u8], tenant: &str, events: &mut Events<'_>) -> Result<(), String> {
    for stream in push_of(body)?.streams {
        let fields = fields_of(stream.stream, tenant)?;
        for entry in stream.values {
            let (Some(time), Some(line), 2..=3) = (
                entry.first().and_then(|it| it.as_str()),
                entry.get(1).and_then(|it| it.as_str()),
                entry.len(),
            ) else {
                return Err("expected a time in nanoseconds and a line, both as text".to_owned());
            };
            let time = time.parse().map_err(|_| format!("`{time}` is no time in nanoseconds"))?;
            let mut metadata = Map::new();
            if let Some(entry) = entry.get(2) {
                let members = entry.as_object().ok_or("structured metadata is no object")?;
                if members.len() > FIELDS_MAX {
                    return Err(format!("more than {FIELDS_MAX} members of structured metadata"));
                }
                for (name, value) in members {
                    let text = value.as_str().ok_or("a value of structured metadata is no text")?;
                    metadata.insert(name, text);
                }
            }
            add(events, &fields, metadata, line.as_bytes(), time);
        }
    }
    Ok(())
}

fn push_of(body: &[u8]) -> Result<Push, String> {
    serde_json::from_slice(body).or_else(|error| {
        // A text that is no Unicode is an error only to this reader, which is the faster one.
        let tree = json_tree::read(body, LEVELS_MAX, std::convert::identity)?;
        serde_json::from_value(tree).map_err(|_| error.to_string())
    })
}

/// Decompresses a body, which is one block of Snappy.
///
/// # Errors
/// It is none, or too long.
pub(super) fn inflate(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, String> {
    decompress(packed, bytes_max).map_err(|message| {
        // A damaged block of 123 bytes begins so as well: it is no more than a hint.
        let is_json = packed.trim_ascii_start().starts_with(b"{");
        let hint = "; a push in JSON needs `Content-Type: application/json`";
        format!("{message}{}", if is_json { hint } else { "" })
    })
}

fn decompress(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, String> {
    let length = snap::raw::decompress_len(packed).map_err(|error| error.to_string())?;
    // The length is what the client says: nothing is reserved for one that cannot be.
    if length > packed.len().saturating_mul(SNAPPY_RATIO_MAX) {
        return Err("the length of a block of Snappy cannot be".to_owned());
    }
    if length > bytes_max {
        return Err(format!("the body is longer than max_body_bytes, {bytes_max} bytes"));
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(|error| error.to_string())
}

/// Reads a push in Protocol Buffers.
///
/// # Errors
/// What is wrong: nothing of the body is used.
pub(super) fn protobuf(body: &[u8], tenant: &str, events: &mut Events<'_>) -> Result<(), String> {
    for field in Fields(body) {
        if let (1, Field::Bytes(stream)) = field.map_err(|error| error.to_string())? {
            stream_of(stream, tenant, events)?;
        }
    }
    Ok(())
}

fn stream_of(stream: &[u8], tenant: &str, events: &mut Events<'_>) -> Result<(), String> {
    // The labels may stand behind the lines.
    let mut text = String::new();
    for field in Fields(stream) {
        if let (1, Field::Bytes(labels)) = field.map_err(|error| error.to_string())? {
            text = text_of(labels);
        }
    }
    let fields = fields_of(labels(&text)?, tenant)?;
    for field in Fields(stream).flatten() {
        if let (2, Field::Bytes(bytes)) = field {
            entry(bytes, &fields, events).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

fn entry(entry: &[u8], fields: &Map, events: &mut Events<'_>) -> Result<(), Malformed> {
    let (mut time, mut line, mut metadata) = (0, &b""[..], Vec::new());
    for field in Fields(entry) {
        match field? {
            (1, Field::Bytes(bytes)) => time = time_of(bytes)?,
            (2, Field::Bytes(bytes)) => line = bytes,
            (3, Field::Bytes(pair)) => {
                let (mut name, mut value) = (String::new(), String::new());
                for field in Fields(pair) {
                    match field? {
                        (1, Field::Bytes(text)) => name = text_of(text),
                        (2, Field::Bytes(text)) => value = text_of(text),
                        _ => {}
                    }
                }
                metadata.push((name, Value::from(value)));
                if metadata.len() > FIELDS_MAX {
                    return Err(Malformed);
                }
            }
            _ => {}
        }
    }
    add(events, fields, object_of(metadata), line, time);
    Ok(())
}

/// `google.protobuf.Timestamp` in nanoseconds; what is beyond them is the last of them.
fn time_of(bytes: &[u8]) -> Result<i64, Malformed> {
    let (mut seconds, mut nanos) = (0_i64, 0);
    for field in Fields(bytes) {
        match field? {
            (1, Field::Varint(number)) => seconds = number.cast_signed(),
            (2, Field::Varint(number)) => nanos = number.cast_signed(),
            _ => {}
        }
    }
    Ok(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// The fields of all lines of a stream.
fn fields_of(labels: BTreeMap<String, String>, tenant: &str) -> Result<Map, String> {
    if labels.len() > FIELDS_MAX {
        return Err(format!("more than {FIELDS_MAX} labels"));
    }
    let mut fields = Chosen::default();
    for (name, value) in labels {
        fields.insert_label(&name, Value::from(value));
    }
    let mut fields = fields.into_map();
    if !tenant.is_empty() {
        fields.insert_path("loki.tenant", tenant);
    }
    Ok(fields)
}

fn add(events: &mut Events<'_>, fields: &Map, metadata: Map, line: &[u8], time: i64) {
    if events.is_beyond() {
        return;
    }
    events.add(line, time, |event, _| {
        event.merge(fields);
        if !metadata.is_empty() {
            let mut more = Map::new();
            more.insert_path("loki.structured_metadata", metadata);
            event.merge(&more);
        }
    });
}

/// Labels as Loki writes them: `{name="value", …}`, with the escapes of Go.
fn labels(text: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong = || format!("`{text}` are no labels");
    let inner = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let mut rest = inner.ok_or_else(wrong)?.trim();
    let mut found = BTreeMap::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once('=').ok_or_else(wrong)?;
        let value = value.trim_start();
        let (value, end) = match value.as_bytes().first() {
            Some(b'`') => {
                let end = value[1..].find('`').ok_or_else(wrong)? + 2;
                (value[1..end - 1].to_owned(), end)
            }
            Some(b'"') => quoted(value).ok_or_else(wrong)?,
            _ => return Err(wrong()),
        };
        found.insert(name.trim().to_owned(), value);
        rest = rest.split_once('=').ok_or_else(wrong)?.1.trim_start()[end..].trim_start();
        rest = rest.strip_prefix(',').map_or(rest, str::trim_start);
    }
    Ok(found)
}

/// A text in quotes as Go writes it, without them, and where it ends.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut out = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'"' => return Some((String::from_utf8_lossy(&out).into_owned(), at + 1)),
            b'\\' => {
                let escape = *bytes.get(at + 1)?;
                at += 2;
                let digits = match escape {
                    b'x' => 2,
                    b'u' => 4,
                    b'U' => 8,
                    _ => 0,
                };
                if digits > 0 {
                    let code = u32::from_str_radix(text.get(at..at + digits)?, 16).ok()?;
                    at += digits;
                    if escape == b'x' {
                        out.push(code as u8);
                    } else {
                        out.extend(char::from_u32(code)?.to_string().as_bytes());
                    }
                    continue;
                }
                out.push(match escape {
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    b'\\' | b'"' | b'\'' => escape,
                    _ => return None,
                });
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_loki() {
        let pairs = |text: &str| labels(text).map(|map| map.into_iter().collect::<Vec<_>>());
        let own = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("{}", &[][..]),
            ("{a=\"b\"}", &[("a", "b")]),
            (" { a = \"b,}=\" , c=`d\\n` ,} ", &[("a", "b,}="), ("c", "d\\n")]),
            ("{a=\"\\\"\\n\\u00e9\\xc3\\xa9\\U0001F600\"}", &[("a", "\"\néé😀")]),
        ] {
            assert_eq!(pairs(text), Ok(own(expected)), "{text}");
        }
        for text in
            ["", "a=\"b\"", "{a}", "{a=b}", "{a=\"b}", "{a=\"\\q\"}", "{a=\"\\u12\"}", "{a=`b}"]
        {
            assert!(pairs(text).is_err(), "{text}");
        }
    }

    #[test]
    fn snappy_says_no_more_than_it_can() {
        let packed = snap::raw::Encoder::new().compress_vec(&[b'x'; 100_000]).unwrap();
        assert_eq!(inflate(&packed, 100_000).unwrap(), [b'x'; 100_000]);
        assert!(inflate(&packed, 99_999).unwrap_err().contains("max_body_bytes"));
        // 256 MiB in six bytes.
        assert!(
            inflate(&[0x80, 0x80, 0x80, 0x80, 1, 0], 1 << 30).unwrap_err().contains("cannot be")
        );
        assert!(inflate(b"", 100).is_err());
    }

    #[test]
    fn json_that_is_no_unicode_is_read() {
        let stream =
            b"{\"stream\":{\"a\":\"\\ud83d\"},\"values\":[[\"1\",\"\xff\",{\"k\":\"\xc3\"}]]}";
        let body = [&b"{\"streams\":["[..], stream, b"]}"].concat();
        let push = push_of(&body).unwrap();
        let stream = &push.streams[0];
        assert_eq!(stream.stream["a"], "\u{fffd}");
        let values = serde_json::json!([["1", "\u{fffd}", {"k": "\u{fffd}"}]]);
        assert_eq!(serde_json::json!(stream.values), values);
        for wrong in ["{\"streams\":", "{}", "{\"streams\":[{\"values\":[7]}]}"] {
            assert!(push_of(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_that_become_one_are_a_list() {
        let labels = [("a.b", "1"), ("a_b", "2"), ("c", "3")];
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let fields = fields_of(labels.into(), "").unwrap();
        assert_eq!(fields.get_path("labels.c"), Some(&"3".into()));
        let both = Value::List(vec!["1".into(), "2".into()]);
        assert_eq!(fields.get_path("labels.a_b"), Some(&both));
    }

    #[test]
    fn json_where_snappy_is_expected_is_refused_with_a_hint() {
        let hint = "Content-Type: application/json";
        for body in ["{\"streams\":[]}", " {}", &format!("{{{}}}", " ".repeat(1000))] {
            let message = inflate(body.as_bytes(), 1000).unwrap_err();
            assert!(message.contains(hint), "{body}: {message}");
        }
        assert!(!inflate(b"no snappy", 1000).unwrap_err().contains(hint));
    }
}
