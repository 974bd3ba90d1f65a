//! Reading the settings of a `kafka` input: its own, and the parsers of `filestream`.

use super::parsers;
use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_kafka::KAFKA_INPUT;
use skidder_inputs::Context;

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
    let parsing = parsers::read_of_messages(section);
    let input = skidder_input_kafka::read(section, &context.fs, parsing)?;
    Some(Box::new(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    fn read_text(text: &str) -> (bool, String) {
        let (input, problems) = testing::read_text(text, read);
        (input.is_some_and(|input| input.kind() == "kafka"), problems)
    }

    #[test]
    fn parsers_are_those_of_filestream() {
        let (is_read, problems) = read_text(
            "{hosts: [h], topics: [t], group_id: g, keep_null: true, max_bytes: 1MiB, \
             parsers: [{multiline: {pattern: '^ ', match: after}}, {ndjson: {target: ''}}]}",
        );
        assert!(is_read);
        assert_eq!(problems, "");
        for (text, expected) in [
            ("{parsers: [{multiline: {pattern: '(', match: after}}]}", "unclosed group"),
            ("{paths: [/a]}", "paths"),
            ("{encoding: gbk}", "encoding"),
        ] {
            let (is_read, problems) = read_text(text);
            assert!(!is_read && problems.contains(expected), "{text}: {problems}");
        }
    }
}
