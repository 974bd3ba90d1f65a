//! Reading the settings of an `aws-cloudwatch` input.

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_aws::cloudwatch::{AWS_CLOUDWATCH_INPUT, read as read_input};
use skidder_inputs::Context;

/// Settings of `aws-cloudwatch`.
pub(crate) static AWS_CLOUDWATCH: Group =
    Group::new("input.aws-cloudwatch", "Events of log groups of CloudWatch Logs.")
        .include(&[&AWS_CLOUDWATCH_INPUT, &skidder_inputs::EVERY_INPUT]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&AWS_CLOUDWATCH);
    skidder_inputs::read_common(section);
    let variable = |name: &str| std::env::var(name).ok();
    let input = read_input(section, &context.fs, variable)?;
    Some(Box::new(input))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filestream::testing;

    #[test]
    fn a_group_is_read_with_the_settings_of_every_input() {
        let place = "log_group_name: /app, region_name: eu-west-1, access_key_id: id, secret_access_key: secret";
        let read_text = |text: &str| testing::read_text(&format!("{{{place}, {text}}}"), read);
        let (input, problems) = read_text("keep_null: true, log_streams: [a]");
        assert_eq!(problems, "");
        let input = input.expect("no problem");
        assert_eq!((input.kind(), input.address()), ("aws-cloudwatch", Some("eu-west-1:/app [a]")));
        for (text, expected) in [("paths: [/a]", "paths"), ("parsers: []", "parsers")] {
            let (_, problems) = read_text(text);
            assert!(problems.contains("error: ") && problems.contains(expected), "{problems}");
        }
    }
}
