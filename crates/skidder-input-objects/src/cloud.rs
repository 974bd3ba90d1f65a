//! What is different with each service: the first answer about an object, and what becomes of one that was read.

use crate::decoding::Decoding;
use crate::read::Reading;
use crate::store::StoreFuture;
use regex::bytes::Regex;
use skidder_event::{Bind, SourceId};
use skidder_read::{Expand, FilestreamSettings, Layout};
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
    /// Their type, whatever the service says; nothing if that counts.
    pub content_type: Option<String>,
    /// What the types of objects begin with that have values of JSON, in lower case.
    pub json_types: &'static [&'static str],
    /// What those begin with that may have them.
    pub maybe_json_types: &'static [&'static str],
    /// What of a value of JSON is an event.
    pub expand: Expand,
    /// How records are taken apart, whatever the type is; nothing if that counts.
    pub decoding: Option<Decoding>,
    /// Parsers, encoding and bounds.
    pub reading: FilestreamSettings,
}

impl Selector {
    /// Whether it is for an object of this name.
    pub fn selects(&self, key: &str) -> bool {
        let is_found = |pattern: &Regex| pattern.is_match(key.as_bytes());
        self.patterns.is_empty() || self.patterns.iter().any(is_found)
    }

    /// Whether events of its objects have fields of their own: whatever an object consists of, an event is a text of it, and
    /// only parsers make fields of that.
    pub fn makes_fields(&self) -> bool {
        self.reading.parsers.makes_fields()
    }

    /// What an object consists of whose type is this one: as in Filebeat, values if it is JSON, and lines else, as long as no
    /// codec takes it apart.
    pub fn layout(&self, content_type: &str) -> Layout {
        if let Some(decoding) = &self.decoding {
            return decoding.layout();
        }
        let content_type = self.content_type.as_deref().unwrap_or(content_type);
        let name = content_type.trim_start().to_ascii_lowercase();
        let is_of = |types: &[&str]| types.iter().any(|beginning| name.starts_with(beginning));
        if is_of(self.json_types) {
            Layout::Json(self.expand.clone())
        } else if is_of(self.maybe_json_types)
            || (name.is_empty() && !self.maybe_json_types.is_empty())
        {
            Layout::JsonOrLines(self.expand.clone())
        } else {
            Layout::Lines
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_read::CsvRules;
    use skidder_read::scan::ScanSettings;

    #[test]
    fn a_selector_finds_names_of_objects() {
        let selector = |patterns: &[&str]| Selector {
            patterns: patterns.iter().map(|text| Regex::new(text).unwrap()).collect(),
            content_type: None,
            json_types: &[],
            maybe_json_types: &[],
            expand: Expand::default(),
            decoding: None,
            reading: FilestreamSettings::new("", ScanSettings::default()),
        };
        assert!(selector(&[]).selects("anything"));
        let some = selector(&["\\.gz$", "^a/"]);
        assert!(some.selects("b.gz") && some.selects("a/b") && !some.selects("b.gz.tmp"));
    }

    #[test]
    fn the_type_decides_what_an_object_consists_of() {
        let table = [
            ("application/json", true),
            (" Application/JSON; charset=utf-8", true),
            ("application/x-ndjson", true),
            ("text/plain", false),
            ("", false),
        ];
        let mut selector = Selector {
            patterns: Vec::new(),
            content_type: None,
            json_types: &["application/json", "application/x-ndjson"],
            maybe_json_types: &[],
            expand: Expand::parse("Records"),
            decoding: None,
            reading: FilestreamSettings::new("", ScanSettings::default()),
        };
        for (text, expected) in table {
            let layout = Layout::Json(Expand::parse("Records"));
            let layout = if expected { layout } else { Layout::Lines };
            assert_eq!(selector.layout(text), layout, "{text}");
        }
        selector.maybe_json_types = &["application/octet-stream"];
        let maybe = Layout::JsonOrLines(Expand::parse("Records"));
        assert_eq!(selector.layout("application/octet-stream"), maybe);
        assert_eq!(selector.layout(""), maybe);
        selector.content_type = Some("text/csv".to_owned());
        assert_eq!(selector.layout("application/json"), Layout::Lines);
        selector.decoding = Some(Decoding::Csv(CsvRules::default()));
        assert_eq!(selector.layout("application/json"), Layout::Csv(Arc::default()));
    }
}
