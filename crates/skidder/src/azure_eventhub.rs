//! Reading the settings of an `azure-eventhub` input.

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_eventhub::AZURE_EVENTHUB_INPUT;
use skidder_inputs::Context;

/// Settings of `azure-eventhub`.
pub(crate) static AZURE_EVENTHUB: Group =
    Group::new("input.azure-eventhub", "Events of a hub of Azure Event Hubs.")
        .include(&[&AZURE_EVENTHUB_INPUT, &skidder_inputs::EVERY_INPUT]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&AZURE_EVENTHUB);
    skidder_inputs::read_common(section);
    let variable = |name: &str| std::env::var(name).ok();
    let input = skidder_input_eventhub::read(section, &context.fs, variable)?;
    Some(Box::new(input))
}
