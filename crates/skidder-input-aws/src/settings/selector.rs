//! Settings of how objects are read: those of all, or of those whose names match.

use regex::bytes::Regex;
use skidder_config::{Group, Key, Section, Size, settings};
use skidder_input_objects::{DECODING, Decoding};
use skidder_read::{CsvKeys, Expand, FilestreamSettings, InputKind};
use std::path::Path;

settings! {
    /// How objects are read.
    pub static AWS_S3_OBJECT = Group::new("input.aws-s3.object", "How objects are read.")
        .include(&[&DECODING]);

    CONTENT_TYPE: String = Key::new("content_type")
        .default_words("that of the object")
        .about(
            "instead of what the object says: each value of `application/json` and `application/x-ndjson` is an event, \
             whatever lines it has, and each line of others",
        );
    EXPAND: String = Key::new("expand_event_list_from_field")
        .about(
            "each element of the list in this field of a value of JSON is an event, as `Records` of CloudTrail; `.[]` if the \
             value is the list",
        );
    INCLUDE_S3_METADATA: Vec<String> = Key::<Vec<String>>::new("include_s3_metadata")
        .default(&[])
        .about("headers of the object, as `last-modified` or `x-amz-meta-team`, that go to `aws.s3.metadata`");
    BUFFER_SIZE: Size = Key::new("buffer_size")
        .default(16 << 10)
        .range(1, 16 << 20)
        .about("the least that is decoded at once, and never less than 32 KiB");
}

/// How some objects are read.
#[derive(Debug)]
pub struct Selector {
    pub(crate) of: skidder_input_objects::Selector,
    /// In lower case.
    pub(crate) metadata: Vec<String>,
}

impl Selector {
    /// Reads the settings of [`AWS_S3_OBJECT`]. `regex` finds the names of the objects, nothing for all; `reading` has parsers,
    /// encoding and bounds.
    pub fn read(section: &Section<'_>, regex: Option<Regex>, reading: FilestreamSettings) -> Self {
        let mut reading = reading;
        reading.kind = InputKind::Objects(crate::KIND);
        reading.buffer_size = section.get(&BUFFER_SIZE).value() as usize;
        reading.include_file_fingerprint = false;
        let names = section.get(&INCLUDE_S3_METADATA).value();
        let content_type = section.get(&CONTENT_TYPE).optional().filter(|name| !name.is_empty());
        let expand = section.get(&EXPAND).optional().unwrap_or_default();
        let decoding = Decoding::read(section, CsvKeys::Sorted);
        if !expand.is_empty() && decoding.as_ref().is_some_and(Decoding::is_table) {
            let message = "is of values of JSON, and `decoding` says that the objects are tables";
            section.problem(EXPAND.name(), message, "leave it out: each row is an event");
        }
        let is_other = content_type.as_ref().is_some_and(|name| name != "application/json");
        if !expand.is_empty() && is_other {
            let message =
                "is of values of JSON, and `content_type` says that the objects have none";
            let hint = "set `content_type: application/json`, or leave it out";
            section.problem(EXPAND.name(), message, hint);
        }
        let of = skidder_input_objects::Selector {
            patterns: regex.into_iter().collect(),
            content_type,
            json_types: &["application/json", "application/x-ndjson"],
            maybe_json_types: &[],
            expand: Expand::parse(&expand),
            decoding,
            reading,
        };
        let metadata = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { of, metadata }
    }

    /// Tables are kept in this folder while they are read; nothing for that of temporary files.
    #[must_use]
    pub fn keeping_in(mut self, folder: Option<&Path>) -> Self {
        if let (Some(decoding), Some(folder)) = (&mut self.of.decoding, folder) {
            decoding.keep_in(folder);
        }
        self
    }

    /// Whether it is for some objects only.
    pub fn has_regex(&self) -> bool {
        !self.of.patterns.is_empty()
    }
}
