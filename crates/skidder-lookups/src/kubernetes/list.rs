//! A page of a list of the API server, read item by item.
//!
//! The tree of one pod takes some 60 KB, and a page has 500 of them: each is made into what is kept of it before the
//! next one is read.

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;
use std::fmt;

/// Makes of an object what is kept of it.
pub(super) type Make<T> = dyn Fn(Json) -> T + Send + Sync;

/// A page, of what was made of its items.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page<T> {
    /// Where the next page begins; empty if this is the last one.
    pub(super) next: String,
    /// The version of the list.
    pub(super) version: String,
    pub(super) items: Vec<T>,
    /// Of those items that have one.
    pub(super) uids: Vec<String>,
}

/// Reads a page, and makes something of each item.
pub(super) fn read<T>(body: &[u8], make: &Make<T>) -> Result<Page<T>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let page = List { make }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(page)
}

/// The object around the items.
struct List<'a, T> {
    make: &'a Make<T>,
}

impl<'de, T> DeserializeSeed<'de> for List<'_, T> {
    type Value = Page<T>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de, T> Visitor<'de> for List<'_, T> {
    type Value = Page<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of the API")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (next, version) = (String::new(), String::new());
        let mut page = Page { next, version, items: Vec::new(), uids: Vec::new() };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => {
                    let meta: Json = map.next_value()?;
                    let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
                    page.next = text(&meta["continue"]);
                    page.version = text(&meta["resourceVersion"]);
                }
                "items" => {
                    let into = Items { make: self.make, page: &mut page };
                    map.next_value_seed(into)?;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(page)
    }
}

/// The items of a list.
struct Items<'a, T> {
    make: &'a Make<T>,
    page: &'a mut Page<T>,
}

impl<'de, T> DeserializeSeed<'de> for Items<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de, T> Visitor<'de> for Items<'_, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the items of a list")
    }

    /// An empty list of Go is `null`.
    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<Json>()? {
            self.page.uids.extend(item["metadata"]["uid"].as_str().map(str::to_owned));
            self.page.items.push((self.make)(item));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(body: &str) -> Result<Page<String>, serde_json::Error> {
        read(body.as_bytes(), &|item| item["metadata"]["name"].to_string())
    }

    #[test]
    fn items_are_made_one_by_one_wherever_the_metadata_is() {
        let items =
            r#""items": [{"metadata": {"name": "a", "uid": "1"}}, {"metadata": {"name": "b"}}]"#;
        let meta = r#""metadata": {"continue": "c", "resourceVersion": "7"}"#;
        let (first, last) =
            (format!("{{{meta}, {items}}}"), format!("{{\"kind\": [1], {items}, {meta}}} "));
        let page = names(&first).unwrap();
        assert_eq!((page.next.as_str(), page.version.as_str()), ("c", "7"));
        assert_eq!(
            (&page.items[..], &page.uids[..]),
            (&["\"a\"".to_owned(), "\"b\"".to_owned()][..], &["1".to_owned()][..])
        );
        assert_eq!(names(&last).unwrap(), page);
    }

    #[test]
    fn a_list_without_items_is_empty_and_anything_else_is_an_error() {
        for body in [
            r#"{"items": null, "metadata": {"resourceVersion": "7"}}"#,
            r#"{"metadata": {"resourceVersion": "7"}}"#,
        ] {
            let page = names(body).unwrap();
            assert_eq!((page.items.len(), page.version.as_str()), (0, "7"));
        }
        for body in ["[]", "{", r#"{"items": [{]}"#, r#"{"items": 7}"#, "{} {}"] {
            assert!(names(body).is_err(), "{body}");
        }
    }
}
