//! Reading the settings of a `kafka` input: its own, and the parsers of `filestream`.

use super::parsers;
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_kafka::KAFKA_INPUT;
use skidder_inputs::Context;
use skidder_read::FilestreamSettings;
use skidder_read::scan::ScanSettings;

/// Settings of `kafka`.
pub(crate) static KAFKA: Group =
    Group::new("input.kafka", "Records of topics of Kafka, as a member of a group.").include(&[
        &KAFKA_INPUT,
        &parsers::PARSING,
        &skidder_inputs::EVERY_INPUT,
    ]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&KAFKA);
    skidder_inputs::read_common(section);
    let mut settings = FilestreamSettings::new("", ScanSettings::default());
    parsers::read_of_messages(section, &mut settings);
    let parsing = (settings.parsers, settings.message_max_bytes);
    let input = skidder_input_kafka::read(section, &context.fs, parsing)?;
    Some(Box::new(input))
}
