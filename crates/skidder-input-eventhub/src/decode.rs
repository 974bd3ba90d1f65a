//! From a message to the texts of its events: the items of `records`, or of a list, or the message as it is
//! (`x-pack/filebeat/input/azureeventhub/decoder.go`).

use crate::sanitize::Sanitizer;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// The field with the events of a message.
const RECORDS: &str = "records";

/// What became of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// It was no JSON.
    pub(crate) is_invalid: bool,
    /// It was repaired, or that was tried.
    pub(crate) is_sanitized: bool,
    /// It is one event, as it is.
    pub(crate) is_whole: bool,
}

/// Calls `take` with the text of each event.
pub(crate) fn decode(
    message: &[u8],
    sanitizers: &[Sanitizer],
    mut take: impl FnMut(&[u8]),
) -> Decoded {
    let is_invalid = !is_json(message);
    let mut message = Cow::Borrowed(message);
    if is_invalid {
        for sanitizer in sanitizers {
            if let Cow::Owned(repaired) = sanitizer.run(&message) {
                message = Cow::Owned(repaired);
            }
        }
    }
    let is_sanitized = is_invalid && !sanitizers.is_empty();
    let items = if is_invalid && !is_sanitized { None } else { items(&message) };
    match &items {
        Some(items) => items.iter().for_each(|item| take(item.get().as_bytes())),
        None => take(&message),
    }
    Decoded { is_invalid, is_sanitized, is_whole: items.is_none() }
}

fn is_json(message: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(message).is_ok()
}

/// Each as it was written; `None` for a message that is one event.
fn items(message: &[u8]) -> Option<Vec<&RawValue>> {
    let mut reader = serde_json::Deserializer::from_slice(message);
    let items = (&mut reader).deserialize_any(Items).ok()??;
    reader.end().ok()?;
    Some(items)
}

/// The items of a list, or of `records` in an object that has lists only.
struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list, or an object with a list `records`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut has_others = false;
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            let value: &RawValue = map.next_value()?;
            let is_list = value.get().starts_with('[');
            if key == RECORDS && is_list {
                found = Some(value);
            } else if !is_list && value.get() != "null" {
                // Its events would lose what they share.
                has_others = true;
            }
        }
        let items = found.filter(|_| !has_others).map(|list| serde_json::from_str(list.get()));
        items.transpose().map_err(serde::de::Error::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Some(all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(message: &str, sanitizers: &[Sanitizer]) -> (Vec<String>, Decoded) {
        let mut all = Vec::new();
        let decoded = decode(message.as_bytes(), sanitizers, |text| {
            all.push(String::from_utf8(text.to_vec()).unwrap());
        });
        (all, decoded)
    }

    #[test]
    fn records_and_lists_are_split_and_their_items_stay_as_they_were_written() {
        let split = Decoded::default();
        let table: [(&str, Vec<&str>); 7] = [
            (
                r#"{"records": [{"b": 1.0, "a": 12345678901234567890}, "t", 3]}"#,
                vec![r#"{"b": 1.0, "a": 12345678901234567890}"#, r#""t""#, "3"],
            ),
            (r#"{"records":[]}"#, vec![]),
            (r#"{"records":[1], "more": [2], "none": null}"#, vec!["1"]),
            (r#"[{"a": 1}, {"b": 2}]"#, vec![r#"{"a": 1}"#, r#"{"b": 2}"#]),
            ("[]", vec![]),
            (" [ 1 , [2] ] ", vec!["1", "[2]"]),
            (r#"{"records":[{"x":"ä<>"}]}"#, vec![r#"{"x":"ä<>"}"#]),
        ];
        for (message, expected) in table {
            assert_eq!(
                texts(message, &[]),
                (expected.into_iter().map(str::to_owned).collect(), split),
                "{message}"
            );
        }
    }

    #[test]
    fn other_messages_are_events_as_they_are() {
        let whole = Decoded { is_whole: true, ..Decoded::default() };
        for message in [
            r#"{"a": 1}"#,
            "{}",
            r#"{"records": 1}"#,
            r#"{"records": [1], "time": "x"}"#,
            r#"{"other": [1]}"#,
            "null",
            "1",
            r#""t""#,
        ] {
            assert_eq!(texts(message, &[]), (vec![message.to_owned()], whole), "{message}");
        }
        for message in ["", "text", "[1", r#"{"records": [1]} x"#, "{'records': [1]}"] {
            let expected = Decoded { is_invalid: true, ..whole };
            assert_eq!(texts(message, &[]), (vec![message.to_owned()], expected), "{message}");
        }
    }

    #[test]
    fn what_is_no_json_is_repaired_first() {
        let all = [Sanitizer::NewLines, Sanitizer::SingleQuotes];
        let repaired = Decoded { is_invalid: true, is_sanitized: true, is_whole: false };
        let (found, decoded) = texts("{'records': [{'a': 'b\n'}]}", &all);
        assert_eq!((found, decoded), (vec![r#"{"a": "b"}"#.to_owned()], repaired));
        // One that is JSON is left alone, line ends and all.
        let (found, decoded) = texts("{\"a\":\n1}", &all);
        assert_eq!((found, decoded.is_sanitized), (vec!["{\"a\":\n1}".to_owned()], false));
        let (found, decoded) = texts("no\njson", &all);
        assert_eq!(
            (found, decoded),
            (vec!["nojson".to_owned()], Decoded { is_whole: true, ..repaired })
        );
    }

    #[test]
    fn depth_is_no_panic() {
        let deep = "[".repeat(100_000);
        assert_eq!(texts(&deep, &[]).0, [deep]);
    }
}
