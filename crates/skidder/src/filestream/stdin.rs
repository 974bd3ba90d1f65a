//! Reading the settings of a `stdin` input: those of the `log` input that are about lines and not about files.

use super::{LINES, log, parsers};
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_inputs::Context;
use skidder_inputs::stdin::{Stdin, TextSettings};
use skidder_read::scan::ScanSettings;
use skidder_read::{FilestreamSettings, InputKind};

/// Why an option about files has no effect.
const NO_FILE: &str = "it is about files, and `stdin` reads the standard input only";

/// Why an option about when to look for more has no effect.
const NO_PAUSE: &str = "what comes is read at once";

/// Settings of `stdin`. Filebeat starts with all the others of a `log` input.
pub(crate) static STDIN: Group = Group::new("input.stdin", "The standard input.")
    .include(&[&log::OF_LINES, &LINES])
    .without_effect(&[
        ("paths", "`stdin` reads the standard input only"),
        ("exclude_files", NO_FILE),
        ("recursive_glob.*", NO_FILE),
        ("symlinks", NO_FILE),
        ("scan_frequency", NO_FILE),
        ("scan.*", NO_FILE),
        ("ignore_older", NO_FILE),
        ("harvester_limit", NO_FILE),
        ("file_identity.*", NO_FILE),
        ("clean_inactive", NO_FILE),
        ("clean_removed", NO_FILE),
        ("tail_files", NO_FILE),
        ("close_inactive", NO_FILE),
        ("close_removed", NO_FILE),
        ("close_renamed", NO_FILE),
        ("close_timeout", NO_FILE),
        ("close_eof", "the input ends with the standard input"),
        ("backoff", NO_PAUSE),
        ("max_backoff", NO_PAUSE),
        ("backoff_factor", NO_PAUSE),
    ]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&STDIN);
    section.unknown("parsers", "", "`stdin` has `json` and `multiline`, as a `log` input does");
    let mut settings = FilestreamSettings::new("", ScanSettings::default());
    log::read_lines(section, &mut settings);
    parsers::read_deprecated(section, &mut settings, InputKind::Log);
    let settings = TextSettings {
        encoding: settings.encoding,
        line_terminator: settings.line_terminator,
        parsers: settings.parsers,
        message_max_bytes: settings.message_max_bytes,
        include_lines: settings.include_lines,
        exclude_lines: settings.exclude_lines,
        buffer_size: settings.buffer_size,
    };
    Some(Box::new(Stdin::new(settings, &context.sockets)))
}
