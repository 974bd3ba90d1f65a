//! Reading the settings of an `azure-blob-storage` input: its own, and how lines of blobs become events, as in `filestream`.

use super::parsers;
use regex::bytes::Regex;
use skidder_config::{Group, Key, Parts, Section, settings};
use skidder_input::Input;
use skidder_input_azure::{
    AZURE_BLOB_INPUT, AZURE_BLOB_READING, AZURE_LISTING, BlobReading, ContainerSettings,
    ListingOptions,
};
use skidder_inputs::Context;
use skidder_processors::compile_pattern;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;
use std::path::PathBuf;

settings! {
    /// Which blobs are read.
    static SELECTOR = Group::new("input.azure-blob-storage.file_selectors", "Blobs that are read.");

    REGEX: String = Key::new("regex")
        .required()
        .noun("a regular expression")
        .about("finds the names of blobs that are read");
}

settings! {
    /// Which blobs are read.
    static SELECTORS = Group::new("input.azure-blob-storage.selectors", "Which blobs are read.");

    FILE_SELECTORS: Parts = Key::parts("file_selectors", &SELECTOR)
        .default_words("all")
        .about("maps with a `regex` each: blobs are read whose names one of them finds. Others are listed, and not read");
}

settings! {
    /// A container.
    static CONTAINER = Group::new("input.azure-blob-storage.containers", "A container.").include(&[
        &AZURE_LISTING,
        &SELECTORS,
        &AZURE_BLOB_READING,
        &parsers::TEXT,
        &parsers::PARSING,
    ]);

    NAME: String = Key::new("name").required().noun("the name of a container").about("the container");
}

settings! {
    /// The containers.
    static CONTAINERS = Group::new("input.azure-blob-storage.places", "The containers.");

    ALL: Parts = Key::parts("containers", &CONTAINER)
        .required()
        .about("the containers, [each](#containers) with its `name`, and with settings of its own instead of those beside it");
}

/// Settings of `azure-blob-storage`.
pub(crate) static AZURE_BLOB_STORAGE: Group =
    Group::new("input.azure-blob-storage", "Blobs of containers, by listings.").include(&[
        &AZURE_BLOB_INPUT,
        &CONTAINERS,
        &AZURE_LISTING,
        &SELECTORS,
        &AZURE_BLOB_READING,
        &parsers::TEXT,
        &parsers::PARSING,
        &skidder_inputs::EVERY_INPUT,
    ]);

/// Settings of how blobs are read. A container with one of them has none of the input's, as in Filebeat.
const OF_BLOBS: [&str; 10] = [
    "buffer_size",
    "content_type",
    "decoding",
    "encoding",
    "expand_event_list_from_field",
    "line_terminator",
    "max_bytes",
    "override_content_type",
    "override_encoding",
    "parsers",
];

/// What the settings of an input say for containers that say nothing.
struct Defaults {
    listing: ListingOptions,
    blobs: BlobReading,
    patterns: Vec<Regex>,
    folder: Option<PathBuf>,
    keep_null: bool,
}

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&AZURE_BLOB_STORAGE);
    let keep_null = skidder_inputs::read_common(section);
    let defaults = Defaults {
        listing: ListingOptions::read(section),
        blobs: read_blobs(section, keep_null),
        patterns: read_patterns(section),
        folder: context.data.clone(),
        keep_null,
    };
    let given = section.parts(&ALL);
    if given.is_empty() {
        section.missing(ALL.name(), "is not set", "for example `containers: [{name: logs}]`");
    }
    let containers = given.into_iter().map(|given| read_container(given, &defaults)).collect();
    let variable = |name: &str| std::env::var(name).ok();
    let input = skidder_input_azure::read(section, &context.fs, containers, variable)?;
    Some(Box::new(input))
}

/// One of `containers`.
fn read_container(section: Section<'_>, defaults: &Defaults) -> ContainerSettings {
    let name = section.get(&NAME).required();
    let listing = ListingOptions::read(&section).or(&defaults.listing);
    let has_own = OF_BLOBS.iter().any(|name| section.has(name));
    let own = read_blobs(&section, defaults.keep_null);
    let blobs = if has_own { own } else { defaults.blobs.clone() };
    let patterns = if section.has_key(&FILE_SELECTORS) {
        read_patterns(&section)
    } else {
        defaults.patterns.clone()
    };
    section.finish();
    let blobs = blobs.selecting(patterns).keeping_in(defaults.folder.as_deref());
    ContainerSettings { name, listing, blobs }
}

fn read_blobs(section: &Section<'_>, keep_null: bool) -> BlobReading {
    let mut reading = FilestreamSettings::new("", ScanSettings::default());
    reading.keep_null = keep_null;
    parsers::read_of_blobs(section, &mut reading);
    BlobReading::read(section, reading)
}

/// The patterns of `file_selectors`; what is wrong is reported.
fn read_patterns(section: &Section<'_>) -> Vec<Regex> {
    let pattern = |selector: Section<'_>| {
        let text = selector.get(&REGEX).required();
        let pattern = compile_pattern(&text).map_err(|error| {
            let hint = "the syntax is that of RE2; `\\(` is the character";
            selector.problem(REGEX.name(), error.to_string(), hint);
        });
        selector.finish();
        pattern.ok()
    };
    section.parts(&FILE_SELECTORS).into_iter().filter_map(pattern).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    const PLACE: &str = "account_name: logs1, auth.shared_credentials.account_key: c2VjcmV0";

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(&format!("{{{PLACE}, {text}}}"), read);
        (input.is_some_and(|input| input.kind() == "azure-blob-storage"), problems)
    }

    #[test]
    fn blobs_are_read_as_files_are() {
        let (is_read, problems) = read_text(
            "keep_null: true, expand_event_list_from_field: a, max_bytes: 1MiB, buffer_size: 64KiB, encoding: gbk, line_terminator: line_feed, \
             parsers: [{multiline: {pattern: '^ ', match: after}}, {ndjson: {target: ''}}], containers: [{name: logs}]",
        );
        assert!(is_read, "{problems}");
        assert_eq!(problems, "");
        for (text, expected) in [
            (
                "containers: [{name: logs, parsers: [{multiline: {pattern: '(', match: after}}]}]",
                "unclosed group",
            ),
            ("containers: [{name: logs}], paths: [/a]", "paths"),
            ("containers: [{name: logs, encoding: none}]", "encoding"),
            ("containers: [{name: logs, bucket: x}]", "bucket"),
            ("max_workers: 3", "`containers` is not set"),
            ("containers: [{poll: true}]", "`containers[0].name` is missing"),
            ("containers: [{name: logs}, {name: logs}]", "`logs` twice"),
        ] {
            let (_, problems) = read_text(text);
            assert!(
                problems.contains("error: ") && problems.contains(expected),
                "{text}: {problems}"
            );
        }
    }

    #[test]
    fn containers_have_settings_of_their_own() {
        let (is_read, problems) = read_text(
            "max_workers: 3, poll: true, poll_interval: 10s, file_selectors: [{regex: '\\.gz$'}], content_type: text/csv, \
             override_content_type: true, containers: [{name: logs}, {name: audit, poll: false, batch_size: 10, \
             encoding: gzip, override_encoding: true, file_selectors: [{regex: '^a/'}, {regex: '^b/'}], \
             timestamp_epoch: 1627233600, path_prefix: a}]",
        );
        assert!(is_read, "{problems}");
        assert_eq!(problems, "");
        for (text, expected) in [
            (
                "containers: [{name: logs, file_selectors: [{}]}]",
                "`containers[0].file_selectors[0].regex` is missing",
            ),
            ("containers: [{name: logs}], file_selectors: [{regex: '('}]", "unclosed group"),
            ("containers: [{name: logs, file_selectors: [{regex: a, encoding: gbk}]}]", "encoding"),
            ("containers: [{name: logs, max_workers: 0}]", "containers[0].max_workers"),
        ] {
            let (_, problems) = read_text(text);
            assert!(problems.contains("error: "), "{text}: {problems}");
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
