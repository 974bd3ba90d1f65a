//! Reading the settings of a `redis` input.

use skidder_config::{Group, Section};
use skidder_input::Input;
use skidder_input_redis::REDIS_INPUT;
use skidder_inputs::Context;

/// Settings of `redis`.
pub(crate) static REDIS: Group =
    Group::new("input.redis", "The slow log, lists or streams of servers of Redis.")
        .include(&[&REDIS_INPUT, &skidder_inputs::EVERY_INPUT]);

/// Reads one input; the section reports mistakes.
pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Box<dyn Input>> {
    section.declared_by(&REDIS);
    skidder_inputs::read_common(section);
    let host = crate::agent::hostname();
    let input = skidder_input_redis::read(section, &context.fs, &host)?;
    Some(Box::new(input))
}
