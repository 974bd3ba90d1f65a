//! `expand_event_list_from_field`: a record that is an object of JSON with a list becomes an event for each item.

use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Why a record is sent as it is.
#[derive(Debug, thiserror::Error)]
#[error("`expand_event_list_from_field: {field}`: {source}")]
pub(crate) struct ExpandError {
    field: String,
    source: serde_json::Error,
}

/// Looks for one field of an object.
struct Items<'f>(&'f str);

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an object with a list `{}`", self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.0 {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        found.ok_or_else(|| A::Error::custom(format!("there is no list `{}`", self.0)))
    }
}

/// The items of the list `field` of an object, each as it was written.
pub(crate) fn items<'a>(value: &'a [u8], field: &str) -> Result<Vec<&'a RawValue>, ExpandError> {
    let mut reader = serde_json::Deserializer::from_slice(value);
    let found = (&mut reader).deserialize_map(Items(field)).and_then(|found| {
        reader.end()?;
        Ok(found)
    });
    found.map_err(|source| ExpandError { field: field.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_the_list_are_taken_as_they_were_written() {
        let found = |value: &str| {
            let items = items(value.as_bytes(), "records").map_err(|error| error.to_string());
            items.map(|items| items.iter().map(|item| item.get().to_owned()).collect::<Vec<_>>())
        };
        let value = r#"{"x": 1, "records": [{"b": 1.0, "a": 12345678901234567890}, "t", 3]}"#;
        let expected = [r#"{"b": 1.0, "a": 12345678901234567890}"#, r#""t""#, "3"];
        assert_eq!(found(value).expect("a list"), expected);
        assert_eq!(found(r#"{"records": []}"#), Ok(Vec::new()));
        for wrong in
            ["", "x", "[]", "{}", r#"{"records": 1}"#, r#"{"records": [1]} x"#, r#"{"records": [1"#]
        {
            let error = found(wrong).expect_err(wrong);
            assert!(error.starts_with("`expand_event_list_from_field: records`: "), "{error}");
        }
    }
}
