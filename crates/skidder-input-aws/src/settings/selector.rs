//! Settings of how objects are read: those of all, or of those whose names match.

use regex::bytes::Regex;
use skidder_config::{Group, Key, Section, Size, settings};
use skidder_input_objects::is_json;
use skidder_read::{FilestreamSettings, InputKind};

/// Why there is no `expand_event_list_from_field`.
const NO_EXPANSION: &str = "objects are read line by line: with a list in each line the processor `decode_json_fields` makes \
                            one event of it; leave such an input to Filebeat";
/// Why there is no `decoding`.
const NO_DECODING: &str = "objects are read line by line; lines of CSV can be taken apart by the processor \
                           `decode_csv_fields`, and Parquet is left to Filebeat";

settings! {
    /// How objects are read.
    pub static AWS_S3_OBJECT = Group::new("input.aws-s3.object", "How objects are read.")
        .unsupported(&[("expand_event_list_from_field", NO_EXPANSION), ("decoding.*", NO_DECODING)]);

    CONTENT_TYPE: String = Key::new("content_type")
        .default_words("that of the object")
        .about(
            "instead of what the object says. *Differs*: each line is an event, whatever the type is; with \
             `application/json`, Filebeat makes one of each JSON value",
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
        if let Some(name) = content_type.as_ref().filter(|name| is_json(name)) {
            let message = format!(
                "each line of an object is an event; Filebeat makes one of each JSON value of `{name}`"
            );
            let hint = "the same if each line is one value, as in NDJSON; else leave the input to Filebeat";
            section.warning(CONTENT_TYPE.name(), message, hint);
        }
        let of = skidder_input_objects::Selector {
            patterns: regex.into_iter().collect(),
            has_type: content_type.is_some(),
            reading,
        };
        let metadata = names.into_iter().map(|name| name.to_ascii_lowercase()).collect();
        Self { of, metadata }
    }

    /// Whether it is for some objects only.
    pub fn has_regex(&self) -> bool {
        !self.of.patterns.is_empty()
    }
}
