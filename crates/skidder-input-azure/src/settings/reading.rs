//! Settings of how blobs are read: of the input, or of one container.

use regex::bytes::Regex;
use skidder_config::{Group, Key, Section, Size, settings};
use skidder_input_objects::{DECODING, Decoding, Selector};
use skidder_read::{CsvKeys, Expand, FilestreamSettings, InputKind};
use std::path::Path;

/// What the types of blobs begin with whose content is JSON.
const JSON_TYPES: &[&str] = &["application/json", "application/x-ndjson"];
/// The same of those whose content is JSON in Filebeat, which reads nothing else; here it may be lines, too.
const MAYBE_JSON_TYPES: &[&str] =
    &["application/octet-stream", "application/gzip", "application/x-gzip"];

settings! {
    /// How blobs are read.
    pub static AZURE_BLOB_READING = Group::new("input.azure-blob-storage.reading", "How blobs are read.")
        .include(&[&DECODING]);

    CONTENT_TYPE: String = Key::new("content_type")
        .default_words("that of the blob")
        .about(
            "the type of blobs that have none. Each value of JSON is an event in blobs of the types JSON and NDJSON, and in those \
             of gzip and bytes (`application/octet-stream`) that begin with an object or a list; each line in all others, \
             which Filebeat refuses",
        );
    EXPAND: String = Key::new("expand_event_list_from_field")
        .about("each element of the list in this field of a value of JSON is an event");
    OVERRIDE_CONTENT_TYPE: bool = Key::new("override_content_type")
        .default(false)
        .about("`content_type` counts for blobs that have a type, too");
    OVERRIDE_ENCODING: bool = Key::new("override_encoding")
        .default(false)
        .about("no effect: compressed blobs are recognised by their first bytes, whatever their encoding says");
    BUFFER_SIZE: Size = Key::new("buffer_size")
        .default(16 << 10)
        .range(1, 16 << 20)
        .ours()
        .about("the least that is decoded at once, and never less than 32 KiB");
}

/// How the blobs of a container are read.
#[derive(Clone, Debug)]
pub struct BlobReading {
    pub(crate) selector: Selector,
    /// As events show it; empty for that of the blob.
    content_type: String,
    overrides: bool,
}

impl BlobReading {
    /// Reads the settings of [`AZURE_BLOB_READING`]. `reading` has parsers, encoding and bounds.
    pub fn read(section: &Section<'_>, reading: FilestreamSettings) -> Self {
        let mut reading = reading;
        reading.kind = InputKind::Objects(crate::KIND);
        reading.buffer_size =
            usize::try_from(section.get(&BUFFER_SIZE).value()).unwrap_or(16 << 10);
        reading.include_file_fingerprint = false;
        let content_type = section.get(&CONTENT_TYPE).optional().unwrap_or_default();
        let overrides = section.get(&OVERRIDE_CONTENT_TYPE).value();
        // Both ways are the same.
        section.get(&OVERRIDE_ENCODING).value();
        if overrides && content_type.is_empty() {
            let message = "`override_content_type` has no effect without `content_type`";
            section.warning(OVERRIDE_CONTENT_TYPE.name(), message, "leave it out");
        }
        let expand = section.get(&EXPAND).optional().unwrap_or_default();
        let selector = Selector {
            patterns: Vec::new(),
            // The type that counts is that of `content_type()`.
            content_type: None,
            json_types: JSON_TYPES,
            maybe_json_types: MAYBE_JSON_TYPES,
            expand: Expand::of_lists(&expand),
            decoding: Decoding::read(section, CsvKeys::InOrder),
            reading,
        };
        Self { selector, content_type, overrides }
    }

    /// Tables are kept in this folder while they are read; nothing for that of temporary files.
    #[must_use]
    pub fn keeping_in(mut self, folder: Option<&Path>) -> Self {
        if let (Some(decoding), Some(folder)) = (&mut self.selector.decoding, folder) {
            decoding.keep_in(folder);
        }
        self
    }

    /// The same for blobs whose names one of these finds; for all without any.
    #[must_use]
    pub fn selecting(mut self, patterns: Vec<Regex>) -> Self {
        self.selector.patterns = patterns;
        self
    }

    /// The type of a blob as events show it; empty for none.
    pub(crate) fn content_type<'a>(&'a self, of_blob: &'a str) -> &'a str {
        if self.overrides && !self.content_type.is_empty() || of_blob.is_empty() {
            &self.content_type
        } else {
            of_blob
        }
    }
}
