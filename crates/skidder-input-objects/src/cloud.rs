//! What is different with each service: the first answer about an object, and what becomes of one that was read.

use crate::read::Reading;
use crate::store::StoreFuture;
use regex::bytes::Regex;
use skidder_event::{Bind, SourceId};
use skidder_read::FilestreamSettings;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// An object that is to be read, as requests name it.
pub trait Wanted: Clone + Send + Sync + 'static {
    /// Its name in the bucket, for selectors and messages.
    fn key(&self) -> &str;

    /// The bucket, for messages and the status of the input.
    fn bucket(&self) -> String;
}

/// A service that keeps objects, as one input asks it.
pub trait Cloud: Send + Sync + 'static {
    /// How it names objects.
    type Wanted: Wanted;

    /// Asks for an object from its first byte on. `selector` is the place of what [`Selector`] is for it, in the order in which
    /// [`crate::Objects::new`] got them.
    fn begin<'a>(&'a self, wanted: &'a Self::Wanted, selector: usize) -> StoreFuture<'a, First>;

    /// What runs over events before `bind`, the processors, does.
    fn bind(&self, bind: Arc<dyn Bind>) -> Arc<dyn Bind> {
        bind
    }

    /// Whether anything becomes of objects that were read ([`Cloud::back_up`]).
    fn has_backup(&self) -> bool {
        false
    }

    /// Copies an object of which every line has its verdict, and perhaps deletes it. The error is for people; it may be
    /// tried again.
    fn back_up<'a>(
        &'a self,
        _sent: &'a Sent<Self::Wanted>,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async { Ok(()) })
    }
}

/// The first answer about an object.
pub struct First {
    /// How it is read. Its key is the name of the object in the registry, which no other content has ([`crate::registry_name`]).
    pub reading: Reading,
    /// What tells this content from others under the same name, for conditions of later requests.
    pub version: String,
    /// The type of the content; empty for none.
    pub content_type: String,
}

/// An object that was sent on, or was known.
#[derive(Clone, Debug)]
pub struct Sent<W> {
    /// The source that is settled when the object is; nothing if an earlier run has settled it.
    pub source: Option<SourceId>,
    /// The object.
    pub wanted: W,
    /// [`First::version`].
    pub version: String,
}

/// How some objects are read.
#[derive(Clone, Debug)]
pub struct Selector {
    /// Which: those whose names one of them finds; empty for all.
    pub patterns: Vec<Regex>,
    /// Whether a type is set, so that there is none to warn of.
    pub has_type: bool,
    /// Parsers, encoding and bounds.
    pub reading: FilestreamSettings,
}

impl Selector {
    /// Whether it is for an object of this name.
    pub fn selects(&self, key: &str) -> bool {
        let is_found = |pattern: &Regex| pattern.is_match(key.as_bytes());
        self.patterns.is_empty() || self.patterns.iter().any(is_found)
    }
}

/// Whether objects of this type may have values over several lines. `application/x-ndjson` has none.
pub fn is_json(content_type: &str) -> bool {
    content_type.trim_start().to_ascii_lowercase().starts_with("application/json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_read::scan::ScanSettings;

    #[test]
    fn a_selector_finds_names_of_objects() {
        let selector = |patterns: &[&str]| Selector {
            patterns: patterns.iter().map(|text| Regex::new(text).unwrap()).collect(),
            has_type: false,
            reading: FilestreamSettings::new("", ScanSettings::default()),
        };
        assert!(selector(&[]).selects("anything"));
        let some = selector(&["\\.gz$", "^a/"]);
        assert!(some.selects("b.gz") && some.selects("a/b") && !some.selects("b.gz.tmp"));
    }

    #[test]
    fn types_of_json_are_told_from_lines_of_json() {
        let table = [
            ("application/json", true),
            (" Application/JSON; charset=utf-8", true),
            ("application/x-ndjson", false),
            ("text/plain", false),
            ("", false),
        ];
        for (text, expected) in table {
            assert_eq!(is_json(text), expected, "{text}");
        }
    }
}
