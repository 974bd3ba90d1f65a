//! Reading the settings of a `gcs` input: its own, and how lines of objects become events, as in `filestream`.

use super::parsers;
use regex::bytes::Regex;
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_input::Input;
use skidder_input_gcs::{BucketSettings, GCS_BUCKET, GCS_INPUT, Listing, Reading};
use skidder_inputs::Context;
use skidder_processors::compile_pattern;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;
use std::path::PathBuf;

settings! {
    /// Objects that are read.
    static SELECTOR = Group::new("input.gcs.file_selectors", "Objects that are read.");

    REGEX: String = Key::new("regex")
        .required()
        .noun("a regular expression")
        .about("finds the names of the objects");
}

settings! {
    /// Which objects are read.
    static SELECTORS = Group::new("input.gcs.selectors", "Which objects are read.");

    FILE_SELECTORS: Parts = Key::parts("file_selectors", &SELECTOR)
        .default_words("all")
        .about("which objects are read: those whose names one of them finds");
}

settings! {
    /// A bucket.
    static BUCKET = Group::new("input.gcs.buckets", "A bucket.").include(&[
        &GCS_BUCKET,
        &SELECTORS,
        &parsers::TEXT,
        &parsers::PARSING,
    ]);

    NAME: String = Key::new("name").required().noun("the name of a bucket").about("of the bucket");
}

settings! {
    /// The buckets.
    static BUCKETS = Group::new("input.gcs.all", "The buckets.");

    ALL: Parts = Key::parts("buckets", &BUCKET).required().about(
        "the buckets, each with a `name` and settings that win over those beside the list: of how it is listed each \
         for itself, `file_selectors`, and all of how objects are read together",
    );
}

/// Settings of `gcs`.
pub(crate) static GCS: Group =
    Group::new("input.gcs", "Objects of buckets of Google Cloud Storage, by listings.").include(&[
        &GCS_INPUT,
        &BUCKETS,
        &GCS_BUCKET,
        &SELECTORS,
        &parsers::TEXT,
        &parsers::PARSING,
        &skidder_inputs::EVERY_INPUT,
    ]);

/// Settings of how lines become events: with one of them a bucket has all of its own.
const OF_LINES: [&str; 4] = ["encoding", "line_terminator", "max_bytes", "parsers"];

/// What the input has for all buckets.
struct OfInput {
    listing: Listing,
    reading: Reading,
    patterns: Vec<Regex>,
    folder: Option<PathBuf>,
    keep_null: bool,
}

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&GCS);
    let keep_null = skidder_inputs::read_common(section);
    let of_input = OfInput {
        listing: Listing::read(section, None),
        reading: read_reading(section, keep_null),
        folder: context.data.clone(),
        patterns: read_patterns(section).unwrap_or_default(),
        keep_null,
    };
    let given = section.parts(&ALL);
    if given.is_empty() {
        let hint = "a list, as in `buckets: [{name: logs}]`";
        section.missing(ALL.name(), "names no bucket", hint);
    }
    let count = given.len();
    let buckets = given.into_iter().filter_map(|given| read_bucket(given, &of_input));
    let buckets: Vec<BucketSettings> = buckets.collect();
    let is_whole = buckets.len() == count;
    let variable = |name: &str| std::env::var(name).ok();
    let input = skidder_input_gcs::read(section, &context.fs, buckets, variable)?;
    is_whole.then(|| Box::new(input) as Box<dyn Input>)
}

/// One of `buckets`.
fn read_bucket(section: Section<'_>, of_input: &OfInput) -> Option<BucketSettings> {
    let name = section.get(&NAME).check(|name| BucketSettings::check_name(name));
    let is_wrong = name.is_wrong();
    let name = name.required();
    let listing = Listing::read(&section, Some(&of_input.listing));
    let own = read_reading(&section, of_input.keep_null);
    let is_own = Reading::is_set_in(&section) || OF_LINES.iter().any(|name| section.has(name));
    let reading = if is_own { own } else { of_input.reading.clone() };
    let patterns = read_patterns(&section);
    let patterns = patterns.unwrap_or_else(|| of_input.patterns.clone());
    section.finish();
    let is_good = !is_wrong && !name.is_empty();
    let reading = reading.of_objects(patterns).keeping_in(of_input.folder.as_deref());
    is_good.then(|| BucketSettings::new(name, listing, reading))
}

/// `file_selectors`; nothing if there are none.
fn read_patterns(section: &Section<'_>) -> Option<Vec<Regex>> {
    let given = section.parts(&FILE_SELECTORS);
    if given.is_empty() {
        return None;
    }
    let pattern = |given: Section<'_>| {
        let compiled = compile_pattern(&given.get(&REGEX).required());
        let compiled = compiled.map_err(|error| {
            let hint = "the syntax is that of RE2; `\\(` is the character";
            given.problem(REGEX.name(), error.to_string(), hint);
        });
        given.finish();
        compiled.ok()
    };
    Some(given.into_iter().filter_map(pattern).collect())
}

fn read_reading(section: &Section<'_>, keep_null: bool) -> Reading {
    let mut reading = FilestreamSettings::new("", ScanSettings::default());
    reading.keep_null = keep_null;
    parsers::read_of_blobs(section, &mut reading);
    Reading::read(section, reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    const PLACE: &str = "project_id: p, alternative_host: 'http://127.0.0.1:1'";

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(&format!("{{{PLACE}, {text}}}"), read);
        (input.is_some_and(|input| input.kind() == "gcs"), problems)
    }

    #[test]
    fn objects_are_read_as_files_are() {
        let (is_read, problems) = read_text(
            "keep_null: true, max_bytes: 1MiB, encoding: gbk, line_terminator: line_feed, \
             parsers: [{multiline: {pattern: '^ ', match: after}}, {ndjson: {target: ''}}], \
             file_selectors: [{regex: '/a/'}, {regex: 'b'}], max_workers: 3, \
             buckets: [{name: logs}, {name: other, max_workers: 2, poll: false, parse_json: true, encoding: plain, \
             file_selectors: [{regex: c}]}]",
        );
        assert!(is_read, "{problems}");
        assert_eq!(problems, "");
        for text in [
            "buckets: [{name: logs}], encoding: gzip",
            "buckets: [{name: logs, encoding: gzip, expand_event_list_from_field: Records}]",
        ] {
            let (is_read, problems) = read_text(text);
            assert!(is_read && problems.is_empty(), "{text}: {problems}");
        }
    }

    #[test]
    fn mistakes_are_found_in_buckets_too() {
        for (text, expected) in [
            ("max_workers: 1", "`buckets`"),
            ("buckets: []", "`buckets`"),
            ("buckets: [{max_workers: 1}]", "`buckets[0].name` is missing"),
            ("buckets: [{name: 'A B'}]", "3 to 222 small letters"),
            ("buckets: [{name: logs}, {name: logs}]", "has `logs` twice"),
            ("buckets: [{name: logs, parsers: [{multiline: {pattern: '('}}]}]", "unclosed group"),
            ("buckets: [{name: logs, file_selectors: [{regex: '('}]}]", "unclosed group"),
            ("buckets: [{name: logs, file_selectors: [{a: b}]}]", "file_selectors[0].regex"),
            ("buckets: [{name: logs, project_id: p}]", "project_id"),
            ("buckets: [{name: logs}], encoding: none", "encoding"),
            ("buckets: [{name: logs}], paths: [/a]", "paths"),
        ] {
            let (is_read, problems) = read_text(text);
            assert!(!is_read || problems.contains("error: "), "{text}");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
