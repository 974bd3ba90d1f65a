//! Reading the settings of a `filestream` input.

mod identity;
mod keeping;
pub(crate) mod log;
mod parsers;
pub(crate) mod stdin;

use regex::bytes::Regex;
use skidder_config::Section;
use skidder_os::{Fs, Timestamp};
use skidder_processors::compile_pattern;
use skidder_read::FilestreamSettings;
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use std::path::Path;
use std::time::Duration;

/// What the settings of an input are read against.
pub(crate) struct Surroundings<'a> {
    pub(crate) fs: &'a dyn Fs,
    /// The directory that relative paths are taken from.
    pub(crate) directory: &'a Path,
    /// When this process began.
    pub(crate) started: Timestamp,
    /// When a process began with this data directory for the first time.
    pub(crate) first_start: Timestamp,
}

/// Reads one input; what is wrong is told to the section. Keys that all inputs share are left to the
/// caller.
pub(crate) fn read(section: &Section<'_>, outside: &Surroundings<'_>) -> FilestreamSettings {
    let id = section.string("id").or("");
    let scan = read_scan(section, outside.directory);
    let mut settings = FilestreamSettings::new(&id, scan);
    settings.shares_keys = section.bool("allow_deprecated_id_duplication").or(false);
    if id.is_empty() {
        let message = "the input has no `id`";
        section.warning("id", message, "give it one: it is a part of what is saved of its files");
    }
    settings.check_interval = positive(section, "prospector.scanner.check_interval")
        .unwrap_or(FilestreamSettings::CHECK_INTERVAL);
    settings.notify = section
        .one_of("prospector.scanner.notify", &[("auto", true), ("off", false)])
        .or(settings.notify);
    settings.resend_on_touch = section.bool("prospector.scanner.resend_on_touch").or(false);
    identity::read(section, outside, &mut settings);
    identity::read_rotation(section, &settings.identity);
    settings.take_over = identity::read_take_over(section, &id, settings.shares_keys);
    settings.include_file_fingerprint = section.bool("include_file_fingerprint").or(true);
    settings.include_owner = section.bool("include_file_owner_name").or(false);
    settings.include_group = section.bool("include_file_owner_group_name").or(false);
    settings.buffer_size = section
        .usize("buffer_size")
        .named("a number of bytes")
        .range(1..=(16 << 20))
        .or(FilestreamSettings::BUFFER_SIZE);
    settings.message_max_bytes = section
        .usize("message_max_bytes")
        .named("a number of bytes")
        .range(1..=FilestreamSettings::MESSAGE_MAX_BYTES_MAX)
        .or(FilestreamSettings::MESSAGE_MAX_BYTES);
    settings.include_lines = patterns(section, "include_lines");
    settings.exclude_lines = patterns(section, "exclude_lines");
    settings.harvester_limit =
        Some(section.usize("harvester_limit").or(0_usize)).filter(|limit| *limit > 0);
    settings.keep_null = section.bool("keep_null").or(false);
    keeping::read(section, outside, &mut settings);
    parsers::read(section, &mut settings);
    refuse(section);
    settings
}

fn read_scan(section: &Section<'_>, directory: &Path) -> ScanSettings {
    let recursive = section.bool("prospector.scanner.recursive_glob").or(true);
    ScanSettings {
        include_files: patterns(section, "prospector.scanner.include_files"),
        exclude_files: patterns(section, "prospector.scanner.exclude_files"),
        symlinks: section.bool("prospector.scanner.symlinks").or(false),
        patterns: read_paths(section, directory, recursive),
    }
}

/// What `paths` looks like.
const PATHS_HINT: &str = "for example `paths: [/var/log/*.log]`";

fn read_paths(section: &Section<'_>, directory: &Path, recursive: bool) -> Vec<Pattern> {
    let setting = section.paths("paths").hint(PATHS_HINT);
    let is_wrong = setting.is_wrong();
    let paths = setting.or(Vec::new());
    if paths.is_empty() && !is_wrong {
        section.missing("paths", "names no path", PATHS_HINT);
    }
    let mut patterns = Vec::new();
    for path in paths {
        match Pattern::parse(&path, directory, recursive) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of("paths"));
                section.problem("paths", message, "the syntax is that of Go's `filepath.Glob`");
            }
        }
    }
    patterns
}

/// Settings that Filebeat takes no notice of either.
fn refuse(section: &Section<'_>) {
    section.deprecated(&["gzip_experimental"], "use `compression: auto`");
    section.deprecated(&["seek_to_tail"], "it has no effect in Filebeat either");
}

fn patterns(section: &Section<'_>, key: &str) -> Vec<Regex> {
    let mut compiled = Vec::new();
    for pattern in section.strings(key).or(Vec::new()) {
        match compile_pattern(&pattern) {
            Ok(regex) => compiled.push(regex),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of(key));
                section.problem(key, message, "the syntax is that of RE2; `\\(` is the character");
            }
        }
    }
    compiled
}

fn positive(section: &Section<'_>, key: &str) -> Option<Duration> {
    section
        .duration(key)
        .named("a duration above zero")
        .check(|span| if span.is_zero() { Err("it is zero".to_owned()) } else { Ok(()) })
        .optional()
}

/// Zero means off.
fn some(span: Duration) -> Option<Duration> {
    (!span.is_zero()).then_some(span)
}

#[cfg(test)]
mod parsers_tests;
#[cfg(test)]
mod tests;
