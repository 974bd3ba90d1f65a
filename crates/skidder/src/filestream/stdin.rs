//! Reading the settings of a `stdin` input: those of the `log` input that are about lines and not about files.

use super::{LINES, log, parsers};
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_inputs::Context;
use skidder_inputs::stdin::{Stdin, TextSettings};
use skidder_read::scan::ScanSettings;
use skidder_read::{FilestreamSettings, InputKind};

/// Settings of `stdin`.
pub(crate) static STDIN: Group = Group::new("input.stdin", "The standard input.")
    .include(&[&log::OF_LINES, &LINES])
    .without_effect(&[("paths", "`stdin` reads the standard input only")]);

/// Reads one input; what is wrong is told to the section.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&STDIN);
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
