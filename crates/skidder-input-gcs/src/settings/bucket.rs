//! Settings that a bucket has, or the input for all buckets.

use regex::bytes::Regex;
use skidder_config::{Group, Key, Section, settings};
use skidder_google::PAGE_OBJECTS_MAX;
use skidder_input_objects::{DECODING, DECODING_NAME, Decoding, PollSettings, Selector};
use skidder_os::Timestamp;
use skidder_read::{CsvKeys, Expand, FilestreamSettings, InputKind};
use std::path::Path;
use std::time::Duration;

/// Most workers of a bucket, as in Filebeat.
const WORKERS_MAX: usize = 5000;
/// 3000-01-01 in seconds, the latest `timestamp_epoch` in Filebeat.
const EPOCH_MAX: i64 = 32_503_680_000;
/// Longest name of a bucket, with dots.
const NAME_BYTES_MAX: usize = 222;

/// What the types of objects begin with whose content is JSON.
const JSON_TYPES: &[&str] = &["application/json", "application/x-ndjson"];
/// The same of those whose content is JSON in Filebeat, which reads nothing else; here it may be lines, too.
const MAYBE_JSON_TYPES: &[&str] =
    &["application/octet-stream", "application/gzip", "application/x-gzip"];

settings! {
    /// Settings that a bucket has, or the input for all buckets.
    pub static GCS_BUCKET = Group::new("input.gcs.bucket", "How a bucket is listed, and its objects are read.")
        .include(&[&DECODING]);

    MAX_WORKERS: usize = Key::new("max_workers")
        .default(1)
        .range(1, WORKERS_MAX)
        .noun("a number of workers")
        .about("objects of a bucket read at once");
    BATCH_SIZE: u16 = Key::new("batch_size")
        .default_words("1000")
        .range(1, PAGE_OBJECTS_MAX)
        .noun("a number of objects")
        .about("objects of a page of a listing. *Differs*: Filebeat takes `max_workers` without it");
    POLL: bool = Key::new("poll")
        .default(true)
        .about("the bucket is listed again and again; `false`: until one listing was whole, then the input ends");
    POLL_INTERVAL: Duration = Key::new("poll_interval")
        .default(Duration::from_mins(5))
        .range(Duration::from_millis(1), Duration::from_hours(24 * 365))
        .about("pause between two listings");
    BUCKET_TIMEOUT: Duration = Key::new("bucket_timeout")
        .default(Duration::from_mins(2))
        .range(Duration::from_secs(1), Duration::from_hours(24))
        .about("of a connection, of an answer, and of each piece of an object. Filebeat has it no more");
    TIMESTAMP_EPOCH: i64 = Key::new("timestamp_epoch")
        .range(0, EPOCH_MAX)
        .noun("seconds since 1970-01-01")
        .about("objects that were changed earlier are not read");
    PARSE_JSON: bool = Key::new("parse_json")
        .default(false)
        .about("the object that a message is, as the only item of `gcs.storage.object.json_data`");
    CONTENT_TYPE: String = Key::new("content_type")
        .default_words("that of the object")
        .about(
            "of objects without a type. Each value of JSON is an event in objects of the types JSON and NDJSON, and in those \
             of gzip and bytes (`application/octet-stream`) that begin with an object or a list; each line in all others, \
             which Filebeat refuses",
        );
    EXPAND: String = Key::new("expand_event_list_from_field")
        .about("each element of the list in this field of a value of JSON is an event");
    OVERRIDE_CONTENT_TYPE: bool =
        Key::new("override_content_type").default(false).about("`content_type` is that of all objects");
    OVERRIDE_ENCODING: bool = Key::new("override_encoding")
        .default(false)
        .about("no effect, with a notice: objects are recognised as compressed by their first bytes");
}

/// Settings of [`Reading`]: with one of them, a bucket has all of its own, and none of the input's.
pub(crate) const OF_READING: [&str; 5] = [
    "content_type",
    DECODING_NAME,
    "expand_event_list_from_field",
    "override_content_type",
    "override_encoding",
];

/// How a bucket is listed, and what becomes of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Objects read at once.
    pub(crate) workers: usize,
    /// Objects of a page.
    pub(crate) batch_size: u16,
    /// Whether it is listed again and again.
    pub(crate) repeats: bool,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Objects must have been changed then or later, seconds.
    pub(crate) epoch: Option<i64>,
    pub(crate) parse_json: bool,
}

/// How the objects of a bucket are read.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Instead of none, or instead of any (`true`).
    content_type: Option<(String, bool)>,
    pub(crate) selector: Selector,
}

/// A bucket.
#[derive(Clone, Debug)]
pub struct BucketSettings {
    pub(crate) name: String,
    pub(crate) listing: Listing,
    pub(crate) reading: Reading,
}

impl Listing {
    /// Reads the settings of a bucket; those that it has not are the input's, or Filebeat's.
    pub fn read(section: &Section<'_>, of_input: Option<&Self>) -> Self {
        let batch_size = section.get(&BATCH_SIZE).optional();
        let own = Self {
            workers: section.get(&MAX_WORKERS).value(),
            batch_size: batch_size.unwrap_or(PAGE_OBJECTS_MAX),
            repeats: section.get(&POLL).value(),
            interval: section.get(&POLL_INTERVAL).value(),
            timeout: section.get(&BUCKET_TIMEOUT).value(),
            epoch: section.get(&TIMESTAMP_EPOCH).optional(),
            parse_json: section.get(&PARSE_JSON).value(),
        };
        let Some(all) = of_input else { return own };
        let all = all.clone();
        let has = |name: &str| section.has(name);
        Self {
            workers: if has(MAX_WORKERS.name()) { own.workers } else { all.workers },
            batch_size: batch_size.unwrap_or(all.batch_size),
            repeats: if has(POLL.name()) { own.repeats } else { all.repeats },
            interval: if has(POLL_INTERVAL.name()) { own.interval } else { all.interval },
            timeout: if has(BUCKET_TIMEOUT.name()) { own.timeout } else { all.timeout },
            epoch: own.epoch.or(all.epoch),
            parse_json: if has(PARSE_JSON.name()) { own.parse_json } else { all.parse_json },
        }
    }

    pub(crate) fn polling(&self) -> PollSettings {
        // One of the same second is read.
        let before = |epoch: i64| Timestamp(epoch.saturating_mul(1_000_000_000) - 1);
        PollSettings {
            interval: self.interval,
            repeats: self.repeats,
            start: self.epoch.map(before),
            ignore_older: None,
            workers: self.workers,
        }
    }
}

impl Reading {
    /// Reads how objects are read; `reading` has parsers, encoding and bounds.
    pub fn read(section: &Section<'_>, reading: FilestreamSettings) -> Self {
        let mut reading = reading;
        reading.kind = InputKind::Objects(crate::KIND);
        reading.include_file_fingerprint = false;
        let content_type = section.get(&CONTENT_TYPE).optional().filter(|name| !name.is_empty());
        let wins = section.get(&OVERRIDE_CONTENT_TYPE).value();
        if wins && content_type.is_none() {
            let message = "`override_content_type` has no effect without `content_type`";
            section.warning(OVERRIDE_CONTENT_TYPE.name(), message, "leave it out");
        }
        if section.get(&OVERRIDE_ENCODING).value() {
            let message = "no effect: objects are recognised as compressed by their first bytes";
            section.warning(OVERRIDE_ENCODING.name(), message, "leave it out");
        }
        let expand = section.get(&EXPAND).optional().unwrap_or_default();
        let selector = Selector {
            patterns: Vec::new(),
            // The type that counts is that of `content_type_of()`.
            content_type: None,
            json_types: JSON_TYPES,
            maybe_json_types: MAYBE_JSON_TYPES,
            expand: Expand::of_lists(&expand),
            decoding: Decoding::read(section, CsvKeys::InOrder),
            reading,
        };
        Self { content_type: content_type.map(|name| (name, wins)), selector }
    }

    /// Tables are kept in this folder while they are read; nothing for that of temporary files.
    #[must_use]
    pub fn keeping_in(mut self, folder: Option<&Path>) -> Self {
        if let (Some(decoding), Some(folder)) = (&mut self.selector.decoding, folder) {
            decoding.keep_in(folder);
        }
        self
    }

    /// Whether a bucket has settings of [`Reading`] of its own.
    pub fn is_set_in(section: &Section<'_>) -> bool {
        OF_READING.iter().any(|name| section.has(name))
    }

    /// The same for objects whose names one of these finds; for all if there is none.
    #[must_use]
    pub fn of_objects(mut self, patterns: Vec<Regex>) -> Self {
        self.selector.patterns = patterns;
        self
    }

    /// The type of an object that was put with `found`.
    pub(crate) fn content_type_of<'a>(&'a self, found: &'a str) -> &'a str {
        match &self.content_type {
            Some((name, wins)) if *wins || found.is_empty() => name,
            _ => found,
        }
    }
}

impl BucketSettings {
    /// Of the bucket `name`.
    ///
    /// # Errors
    ///
    /// No bucket is called so; the text ends the sentence "`name` is …; ".
    pub fn check_name(name: &str) -> Result<(), String> {
        let is_good = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
        };
        if !(3..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_good) {
            return Err(
                "the name of a bucket has 3 to 222 small letters, digits, `-`, `_` and `.`"
                    .to_owned(),
            );
        }
        Ok(())
    }

    /// A bucket whose name was checked.
    pub fn new(name: String, listing: Listing, reading: Reading) -> Self {
        let mut reading = reading;
        if let Some(decoding) = reading.selector.decoding.as_mut().filter(|_| listing.parse_json) {
            // As in Filebeat.
            decoding.set_keys(CsvKeys::Sorted);
        }
        Self { name, listing, reading }
    }
}
