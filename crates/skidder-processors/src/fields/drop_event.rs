//! `drop_event`: the event goes no further.
//!
//! Without a condition it drops everything; that is a warning when the configuration is read.

use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::Group;
use skidder_event::EventMut;

/// Settings of `drop_event`.
pub(crate) static DROP_EVENT: Group = Group::new("processor.drop_event", "Drops the event.");

/// Drops every event it sees.
#[derive(Clone, Copy, Debug)]
pub struct DropEvent;

impl Processor for DropEvent {
    fn name(&self) -> &'static str {
        "drop_event"
    }

    fn run(&self, _: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        Ok(Outcome::Dropped)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::default()
    }

    fn can_fail(&self) -> bool {
        false
    }
}
