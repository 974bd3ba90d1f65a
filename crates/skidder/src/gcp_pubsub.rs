//! Reading the settings of a `gcp-pubsub` input.

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_pubsub::GCP_PUBSUB_INPUT;
use skidder_inputs::Context;

/// Settings of `gcp-pubsub`.
pub(crate) static GCP_PUBSUB: Group =
    Group::new("input.gcp-pubsub", "Messages of a subscription of Google Cloud Pub/Sub.")
        .include(&[&GCP_PUBSUB_INPUT, &skidder_inputs::EVERY_INPUT]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&GCP_PUBSUB);
    skidder_inputs::read_common(section);
    let variable = |name: &str| std::env::var(name).ok();
    let input = skidder_input_pubsub::read(section, &context.fs, variable)?;
    Some(Box::new(input))
}
