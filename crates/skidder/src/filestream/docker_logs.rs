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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(text, read);
        (input.is_some_and(|input| input.has_cursors()), problems)
    }

    #[test]
    fn the_settings_of_lines_are_those_of_filestream() {
        let (is_read, problems) = read_text(
            "{host: 'unix:///d.sock', ids: [web], stream: stderr, since: 1h, include_lines: ['^a'], \
             exclude_lines: [b], keep_null: true, max_bytes: 1MiB, \
             parsers: [{multiline: {pattern: '^ ', match: after}}, {ndjson: {target: ''}}]}",
        );
        assert!(is_read);
        assert_eq!(problems, "");
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        let (is_read, problems) =
            read_text("{ids: [web], parsers: [{container: {stream: stdout}}]}");
        assert!(is_read);
        assert!(
            problems.contains("warning") && problems.contains("`stream` of the input"),
            "{problems}"
        );
        for (text, expected) in [
            (
                "{ids: [web], parsers: [{multiline: {pattern: '(', match: after}}]}",
                "unclosed group",
            ),
            ("{ids: [web], encoding: gbk}", "encoding"),
            ("{ids: [web], paths: [/a]}", "paths"),
            ("{}", "`ids` is missing"),
        ] {
            let (_, problems) = read_text(text);
            assert!(problems.contains(expected), "{text}: {problems}");
        }
    }
}
