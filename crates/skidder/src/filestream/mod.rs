//! Reading the settings of a `filestream` input.

#[cfg(feature = "aws")]
pub(crate) mod aws_cloudwatch;
#[cfg(feature = "aws")]
pub(crate) mod aws_s3;
#[cfg(feature = "aws")]
mod aws_script;
#[cfg(feature = "azure")]
pub(crate) mod azure_blob_storage;
pub(crate) mod docker_logs;
#[cfg(feature = "gcs")]
pub(crate) mod gcs;
mod identity;
pub(crate) mod journald;
#[cfg(feature = "kafka")]
pub(crate) mod kafka;
mod keeping;
pub(crate) mod log;
mod parsers;
pub(crate) mod stdin;
#[cfg(test)]
mod testing;

use crate::input_settings::ID;
use regex::bytes::Regex;
use skidder_config::{Group, Key, OneOf, PathList, Section, settings};
use skidder_os::{Fs, Timestamp};
use skidder_processors::compile_pattern;
use skidder_read::FilestreamSettings;
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use std::path::Path;
use std::time::Duration;

/// What the settings of an input depend on.
pub(crate) struct InputContext<'a> {
    pub(crate) fs: &'a dyn Fs,
    /// The directory that relative paths are taken from.
    pub(crate) directory: &'a Path,
    /// When this process began.
    pub(crate) started: Timestamp,
    /// When a process began with this data directory for the first time.
    pub(crate) first_start: Timestamp,
    /// The same, but never a process of Filebeat.
    pub(crate) first_use: Timestamp,
}

/// `prospector.scanner.rotated_logs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RotatedLogs {
    SinceFirstStart,
    All,
    Off,
}

impl RotatedLogs {
    /// Since when a rotated file that is read was changed; nothing = none is read.
    fn since(self, first_use: Timestamp) -> Option<Timestamp> {
        match self {
            Self::SinceFirstStart => Some(first_use),
            Self::All => Some(Timestamp(i64::MIN)),
            Self::Off => None,
        }
    }
}

settings! {
    /// Which files, of every input that reads files.
    pub(crate) static WHICH = Group::new("files.which", "Which files.");

    PATHS: PathList = Key::new("paths").required().about(
        "patterns: `*`, `?`, `[a-z]`, `[^a-z]`, `\\`; the rightmost `**` is 0 to 8 directories. Relative ones begin \
         at the working directory. *Cost*: a scan lists each directory and reads the metadata of each matching name",
    );
    IGNORE_OLDER: Duration = Key::new("ignore_older").default(Duration::ZERO).about(
        "files not modified for so long are not read; 0: off. Without state they continue at their end when they grow \
         (compressed ones are read whole then). *Differs*: state that is there is left alone, so that nothing unread \
         is skipped",
    );
    HARVESTER_LIMIT: usize = Key::new("harvester_limit").default(0).about(
        "files of this input open at once; 0: no limit. *Differs*: those that wait are served in order, and a file \
         that is read for long makes way",
    );
}

settings! {
    /// Which messages become events.
    pub(crate) static MESSAGES = Group::new("files.messages", "Which messages.");

    INCLUDE_LINES: Vec<String> = Key::<Vec<String>>::new("include_lines").default(&[]).about(
        "regular expressions: a message must match one. *Cost*: one search a line and expression",
    );
    EXCLUDE_LINES: Vec<String> = Key::<Vec<String>>::new("exclude_lines")
        .default(&[])
        .about("regular expressions: a message must match none. *Cost*: the same");
    KEEP_NULL: bool =
        Key::new("keep_null").default(false).about("members that are null stay on events");
}

/// What becomes of lines, of every input that reads files.
pub(crate) static LINES: Group =
    Group::new("files.lines", "Which lines.").include(&[&MESSAGES, &parsers::TEXT]);

settings! {
    /// How a filestream input looks for files.
    static SCANNER = Group::new("filestream.scanner", "How files are looked for.");

    ALLOW_DEPRECATED_ID_DUPLICATION: bool = Key::new("allow_deprecated_id_duplication").default(false).about(
        "inputs with the same id are allowed. *Differs*: a file that several of them match is read by the first that \
         finds it, and not twice",
    );
    CHECK_INTERVAL: Duration = Key::new("prospector.scanner.check_interval")
        .default(FilestreamSettings::CHECK_INTERVAL)
        .noun(ABOVE_ZERO)
        .about(
            "between two scans; above 0. *Cost*: each scan reads the metadata of files with a change notification, \
             or of every file where there are no notifications",
        );
    NOTIFY: OneOf<bool> = Key::one_of("prospector.scanner.notify", &[("auto", true), ("off", false)])
        .default("auto")
        .ours()
        .about(
            "`auto`: directories of local file systems are watched (inotify), and what is written is read at once, \
             whatever the intervals say; others are looked into by every scan. `off`: that for all \
             ([0011](decisions/0011-change-notification.md)). *Cost*: `auto` takes a watch for each directory \
             (`fs.inotify.max_user_watches`)",
        );
    RECURSIVE_GLOB: bool = Key::new("prospector.scanner.recursive_glob")
        .default(true)
        .about("`false`: `**` is the same as `*`");
    INCLUDE_FILES: Vec<String> = Key::<Vec<String>>::new("prospector.scanner.include_files")
        .default(&[])
        .about("regular expressions: the path must match one");
    EXCLUDE_FILES: Vec<String> = Key::<Vec<String>>::new("prospector.scanner.exclude_files")
        .default(&[])
        .about(
            "regular expressions: the path must match none; looked at first. Both are matched with the target of a \
             link, too",
        );
    SYMLINKS: bool = Key::new("prospector.scanner.symlinks").default(false).about(
        "links to files are followed, and what was rotated away from the file that a link leads to \
         (`0.log.20261121-…`, `.gz` too) is read under the path of the link; see [links](#links). *Cost*: two more \
         questions to the system for each link and scan, and one for each rotated file",
    );
    ROTATED_LOGS: OneOf<RotatedLogs> = Key::one_of(
        "prospector.scanner.rotated_logs",
        &[
            ("since_first_start", RotatedLogs::SinceFirstStart),
            ("all", RotatedLogs::All),
            ("off", RotatedLogs::Off),
        ],
    )
    .default("since_first_start")
    .ours()
    .about(
        "with the parser `container`: which files are read that were rotated away before the first look at their log. \
         `since_first_start`: those that were changed since skidder first used this data directory; older ones are \
         shown as ignored, counted, and never read later. `all`: the older ones, too, and behind any link. `off`: \
         none, as in Filebeat; see [links](#links)",
    );
    RESEND_ON_TOUCH: bool = Key::new("prospector.scanner.resend_on_touch").default(false).about(
        "a file whose time of change is new and whose size is not is read again from the start",
    );
}

settings! {
    /// How a filestream input reads its files.
    pub(crate) static READING = Group::new("filestream.reading", "How files are read.")
        .include(&[&LINES, &parsers::PARSING])
        .deprecated(&[
            // Settings that Filebeat takes no notice of either.
            ("gzip_experimental", "use `compression: auto`"),
            ("seek_to_tail", "it has no effect in Filebeat either"),
        ]);

    BUFFER_SIZE: usize = Key::new("buffer_size")
        .default(FilestreamSettings::BUFFER_SIZE)
        .range(1, BUFFER_SIZE_MAX)
        .noun("a number of bytes")
        .about(
            "bytes, 1 to 16 MiB. *Differs*: the least that is read at once, and never less than 32 KiB, but for plain \
             files of which a full batch needs less; usually 256 KiB are",
        );
    MESSAGE_MAX_BYTES: usize = Key::new("message_max_bytes")
        .default(FilestreamSettings::MESSAGE_MAX_BYTES)
        .range(1, FilestreamSettings::MESSAGE_MAX_BYTES_MAX)
        .noun("a number of bytes")
        .about(
            "bytes, at most 128 MiB: a longer message is cut (`log.flags: truncated`). A raw line of more than four \
             times as much is skipped and counted. *Cost*: memory of one such line for each reader thread",
        );
    INCLUDE_FILE_FINGERPRINT: bool = Key::new("include_file_fingerprint")
        .default(true)
        .about("`log.file.fingerprint` on events, once it is complete");
    INCLUDE_FILE_OWNER_NAME: bool = Key::new("include_file_owner_name").default(false).about(
        "`log.file.owner`, as the system names the owner. *Cost*: one question to the name service each time a file \
         is opened",
    );
    INCLUDE_FILE_OWNER_GROUP_NAME: bool = Key::new("include_file_owner_group_name")
        .default(false)
        .about("`log.file.group`. *Cost*: the same");
}

/// Which files a filestream input reads.
static SCAN: Group =
    Group::new("filestream.scan", "Which files are read.").include(&[&WHICH, &SCANNER]);

/// Settings of a `filestream` input.
pub(crate) static FILESTREAM: Group =
    Group::new("input.filestream", "Files, compressed ones too, while they grow and rotate.")
        .include(&[&SCAN, &identity::IDENTITY, &READING, &keeping::KEEPING])
        .without_effect(&[(
            "docker-json.*",
            "of a `log` input; a `filestream` input has `parsers: [{container: {}}]`",
        )]);

/// The most that is read at once, bytes.
const BUFFER_SIZE_MAX: usize = 16 << 20;

/// The expected value of a duration that must not be zero.
const ABOVE_ZERO: &str = "a duration above zero";

/// Reads one input; the section reports mistakes. Keys that all inputs share are left to the caller.
pub(crate) fn read(section: &Section<'_>, context: &InputContext<'_>) -> FilestreamSettings {
    section.declared_by(&FILESTREAM);
    let id = section.get(&ID).value();
    let scan = read_scan(section, context.directory);
    let mut settings = FilestreamSettings::new(&id, scan);
    settings.shares_keys = section.get(&ALLOW_DEPRECATED_ID_DUPLICATION).value();
    if id.is_empty() {
        let message = "the input has no `id`";
        section.warning(
            ID.name(),
            message,
            "give it one: it is a part of what is saved of its files",
        );
    }
    settings.check_interval = positive(section, &CHECK_INTERVAL);
    settings.notify = section.get(&NOTIFY).value();
    let rotated_logs = section.get(&ROTATED_LOGS).value();
    settings.resend_on_touch = section.get(&RESEND_ON_TOUCH).value();
    identity::read(section, context, &mut settings);
    identity::read_rotation(section, &settings.identity);
    settings.take_over = identity::read_take_over(section, &id, settings.shares_keys);
    settings.include_file_fingerprint = section.get(&INCLUDE_FILE_FINGERPRINT).value();
    settings.include_owner = section.get(&INCLUDE_FILE_OWNER_NAME).value();
    settings.include_group = section.get(&INCLUDE_FILE_OWNER_GROUP_NAME).value();
    settings.buffer_size = section.get(&BUFFER_SIZE).value();
    settings.message_max_bytes = section.get(&MESSAGE_MAX_BYTES).value();
    settings.include_lines = patterns(section, &INCLUDE_LINES);
    settings.exclude_lines = patterns(section, &EXCLUDE_LINES);
    settings.harvester_limit =
        Some(section.get(&HARVESTER_LIMIT).value()).filter(|limit| *limit > 0);
    settings.ignore_older = some(section.get(&IGNORE_OLDER).value());
    settings.keep_null = section.get(&KEEP_NULL).value();
    keeping::read(section, context, &mut settings);
    parsers::read(section, &mut settings);
    // Names alone do not show that a neighbour of what a link leads to was rotated away from it.
    if settings.parsers.reads_containers() || rotated_logs == RotatedLogs::All {
        settings.rotated_since = rotated_logs.since(context.first_use);
    }
    settings
}

fn read_scan(section: &Section<'_>, directory: &Path) -> ScanSettings {
    let recursive = section.get(&RECURSIVE_GLOB).value();
    ScanSettings {
        include_files: patterns(section, &INCLUDE_FILES),
        exclude_files: patterns(section, &EXCLUDE_FILES),
        left_out: std::sync::Arc::default(),
        symlinks: section.get(&SYMLINKS).value(),
        patterns: read_paths(section, directory, recursive),
    }
}

/// What `paths` looks like.
const PATHS_HINT: &str = "for example `paths: [/var/log/*.log]`";

fn read_paths(section: &Section<'_>, directory: &Path, recursive: bool) -> Vec<Pattern> {
    let setting = section.get(&PATHS).hint(PATHS_HINT);
    let is_wrong = setting.is_wrong();
    let paths = setting.optional().unwrap_or_default();
    if paths.is_empty() && !is_wrong {
        section.missing(PATHS.name(), "names no path", PATHS_HINT);
    }
    let mut patterns = Vec::with_capacity(paths.len());
    for path in paths {
        match Pattern::parse(&path, directory, recursive) {
            Ok(pattern) => patterns.push(pattern),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of(PATHS.name()));
                section.problem(
                    PATHS.name(),
                    message,
                    "the syntax is that of Go's `filepath.Glob`",
                );
            }
        }
    }
    patterns
}

fn patterns(section: &Section<'_>, key: &Key<Vec<String>>) -> Vec<Regex> {
    let mut compiled = Vec::new();
    for pattern in section.get(key).optional().unwrap_or_default() {
        match compile_pattern(&pattern) {
            Ok(regex) => compiled.push(regex),
            Err(error) => {
                let message = format!("`{}`: {error}", section.path_of(key.name()));
                section.problem(
                    key.name(),
                    message,
                    "the syntax is that of RE2; `\\(` is the character",
                );
            }
        }
    }
    compiled
}

fn positive(section: &Section<'_>, key: &Key<Duration>) -> Duration {
    let above_zero =
        |span: &Duration| if span.is_zero() { Err("it is zero".to_owned()) } else { Ok(()) };
    section.get(key).check(above_zero).value()
}

/// Zero means off.
fn some(span: Duration) -> Option<Duration> {
    (!span.is_zero()).then_some(span)
}

#[cfg(test)]
mod parsers_tests;
#[cfg(test)]
mod tests;
