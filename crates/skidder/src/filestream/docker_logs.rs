//! Reading the settings of a `docker_logs` input: those of `filestream` that are about messages, and its own.

use super::{EXCLUDE_LINES, INCLUDE_LINES, KEEP_NULL, MESSAGES, parsers, patterns};
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_inputs::Context;
use skidder_inputs::docker_logs;
use skidder_inputs::stdin::TextSettings;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;

/// Settings of `docker_logs`.
pub(crate) static DOCKER_LOGS: Group =
    Group::new("input.docker_logs", "Logs of containers through Docker's API.").include(&[
        &docker_logs::CONTAINERS,
        &MESSAGES,
        &parsers::PARSING,
    ]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&DOCKER_LOGS);
    let mut settings = FilestreamSettings::new("", ScanSettings::default());
    settings.include_lines = patterns(section, &INCLUDE_LINES);
    settings.exclude_lines = patterns(section, &EXCLUDE_LINES);
    settings.keep_null = section.get(&KEEP_NULL).value();
    parsers::read_of_records(section, &mut settings);
    let text = TextSettings {
        encoding: settings.encoding,
        line_terminator: settings.line_terminator,
        parsers: settings.parsers,
        message_max_bytes: settings.message_max_bytes,
        include_lines: settings.include_lines,
        exclude_lines: settings.exclude_lines,
        buffer_size: settings.buffer_size,
    };
    docker_logs::read(section, context, text)
}
