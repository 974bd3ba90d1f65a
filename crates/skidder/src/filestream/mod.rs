//! Reading the settings of a `filestream` input.

use regex::bytes::Regex;
use skidder_config::Section;
use skidder_processors::compile_pattern;
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{CloseSettings, Compression, FilestreamSettings, FingerprintSettings};
use std::path::Path;
use std::time::Duration;

/// Reads one input; what is wrong is told to the section. Keys that all inputs share are left to the
/// caller.
pub(crate) fn read(section: &Section<'_>, directory: &Path) -> FilestreamSettings {
    let id = section.string("id").or("");
    let scan = read_scan(section, directory);
    let mut settings = FilestreamSettings::new(&id, scan);
    settings.check_interval = positive(section, "prospector.scanner.check_interval")
        .unwrap_or(FilestreamSettings::CHECK_INTERVAL);
    settings.resend_on_touch = section.bool("prospector.scanner.resend_on_touch").or(false);
    settings.compression = section
        .one_of(
            "compression",
            &[("", Compression::None), ("auto", Compression::Auto), ("gzip", Compression::Gzip)],
        )
        .or(Compression::None);
    settings.fingerprint = read_identity(section);
    settings.include_file_fingerprint = section.bool("include_file_fingerprint").or(true);
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
    settings.close = read_close(section);
    settings.harvester_limit =
        Some(section.usize("harvester_limit").or(0_usize)).filter(|limit| *limit > 0);
    settings.ignore_older = some(section.duration("ignore_older").or(Duration::ZERO));
    settings.clean_removed = section.bool("clean_removed").or(true);
    settings.clean_inactive = read_clean_inactive(section, &settings);
    refuse(section);
    settings
}

fn read_scan(section: &Section<'_>, directory: &Path) -> ScanSettings {
    let recursive = section.bool("prospector.scanner.recursive_glob").or(true);
    let mut scan = ScanSettings {
        include_files: patterns(section, "prospector.scanner.include_files"),
        exclude_files: patterns(section, "prospector.scanner.exclude_files"),
        symlinks: section.bool("prospector.scanner.symlinks").or(false),
        patterns: Vec::new(),
    };
    let paths = section.strings("paths").or(Vec::new());
    if paths.is_empty() {
        let message = format!("`{}` names no path", section.path_of("paths"));
        section.problem("paths", message, "for example `paths: [/var/log/*.log]`");
    }
    for path in paths {
        match Pattern::parse(&path, directory, recursive) {
            Ok(pattern) => scan.patterns.push(pattern),
            Err(error) => section.problem("paths", error.to_string(), ""),
        }
    }
    scan
}

fn read_identity(section: &Section<'_>) -> FingerprintSettings {
    let identity = section.section("file_identity");
    let mut growing = true;
    for name in identity.keys() {
        match name {
            "fingerprint" => {
                let settings = identity.section(name);
                growing = settings.bool("growing").or(true);
                settings.finish();
            }
            _ => identity.unsupported(
                &["native.*", "path.*", "inode_marker.*"],
                "files are recognised by their content; leave `file_identity` out",
            ),
        }
    }
    identity.finish();
    let length = section
        .u32("prospector.scanner.fingerprint.length")
        .named("a number of bytes")
        .range(FingerprintSettings::LENGTH_MIN..=FingerprintSettings::LENGTH_MAX)
        .or(FingerprintSettings::LENGTH);
    let offset = section
        .u64("prospector.scanner.fingerprint.offset")
        .named("a number of bytes")
        .range(0..=(64 << 20))
        .or(0_u64);
    if !section.bool("prospector.scanner.fingerprint.enabled").or(true) {
        section.problem(
            "prospector.scanner.fingerprint.enabled",
            "files are recognised by their content; this cannot be turned off yet",
            "leave it out",
        );
    }
    FingerprintSettings { enabled: true, offset, length, growing }
}

fn read_close(section: &Section<'_>) -> CloseSettings {
    let defaults = CloseSettings::default();
    let init = positive(section, "backoff.init").unwrap_or(defaults.backoff_init);
    let max = positive(section, "backoff.max").unwrap_or(defaults.backoff_max);
    CloseSettings {
        inactive: some(
            section.duration("close.on_state_change.inactive").or(Duration::from_mins(5)),
        ),
        removed: section.bool("close.on_state_change.removed").or(defaults.removed),
        renamed: section.bool("close.on_state_change.renamed").or(defaults.renamed),
        check_interval: positive(section, "close.on_state_change.check_interval")
            .unwrap_or(defaults.check_interval),
        on_eof: section.bool("close.reader.on_eof").or(defaults.on_eof),
        after_interval: some(section.duration("close.reader.after_interval").or(Duration::ZERO)),
        backoff_init: init,
        backoff_max: max.max(init),
    }
}

fn read_clean_inactive(section: &Section<'_>, settings: &FilestreamSettings) -> Option<Duration> {
    let text = section.signed_duration("clean_inactive").optional()?;
    if text.negative || text.length.is_zero() {
        return None;
    }
    let limit = text.length;
    let least = settings.ignore_older.map(|older| older + settings.check_interval);
    match least {
        Some(least) if limit > least => Some(limit),
        Some(least) => {
            let message = format!(
                "`clean_inactive` must be more than `ignore_older` and \
                 `prospector.scanner.check_interval` together, {least:?}"
            );
            section.problem("clean_inactive", message, "or files would be read again");
            None
        }
        None => {
            let message = "`clean_inactive` needs `ignore_older`";
            section.problem("clean_inactive", message, "or files would be read again");
            None
        }
    }
}

/// Settings of Filebeat that are not here yet.
fn refuse(section: &Section<'_>) {
    let later = "leave it out; it comes with a later version";
    if section.has("encoding") {
        let encoding = section.string("encoding").or("");
        if !matches!(&*encoding, "" | "plain" | "utf-8" | "utf8") {
            let message = format!("encoding `{encoding}` is not supported by skidder yet");
            section.problem("encoding", message, "`plain` and `utf-8` are");
        }
    }
    if section.has("line_terminator") {
        let terminator = section.string("line_terminator").or("auto");
        if terminator != "auto" {
            let message = format!("line terminator `{terminator}` is not supported by skidder yet");
            section.problem(
                "line_terminator",
                message,
                "`auto` takes line feeds with or without a carriage return",
            );
        }
    }
    for off in [
        "delete.enabled",
        "read_until_eof.enabled",
        "take_over.enabled",
        "include_file_owner_name",
        "include_file_owner_group_name",
        "allow_deprecated_id_duplication",
        "legacy_clean_inactive",
    ] {
        if section.bool(off).or(false) {
            let message = format!(
                "`{}` is known to Filebeat, but not supported by skidder yet",
                section.path_of(off)
            );
            section.problem(off, message, later);
        }
    }
    section.unsupported(
        &[
            "parsers.*",
            "ignore_inactive",
            "rotation.*",
            "delete.*",
            "read_until_eof.*",
            "take_over.*",
        ],
        later,
    );
    section.deprecated(&["gzip_experimental"], "use `compression: auto`");
    section.deprecated(&["seek_to_tail"], "it has no effect in Filebeat either");
}

fn patterns(section: &Section<'_>, key: &str) -> Vec<Regex> {
    let mut compiled = Vec::new();
    for pattern in section.strings(key).or(Vec::new()) {
        match compile_pattern(&pattern) {
            Ok(regex) => compiled.push(regex),
            Err(error) => section.problem(key, error.to_string(), ""),
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
