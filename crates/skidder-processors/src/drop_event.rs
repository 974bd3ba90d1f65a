//! `drop_event`: the event goes no further.
//!
//! Without a condition it drops everything; that is a warning when the configuration is read.

use crate::constants::Constants;
use crate::footprint::Footprint;
use crate::processor::{Failure, Outcome, Processor};
use skidder_config::Section;
use skidder_event::EventMut;

/// Drops every event it sees.
#[derive(Clone, Copy, Debug)]
pub struct DropEvent;

impl DropEvent {
    /// There is nothing to be set but `when`, which is not missed in a branch of an `if`.
    pub(crate) fn read(settings: &Section<'_>, branch: bool) -> Self {
        if !branch && !settings.has("when") {
            let message = format!("`{}` without a condition drops every event", settings.path());
            settings.warning("", message, "give it a `when`");
        }
        Self
    }
}

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

    fn fold(&self, _: &mut Constants) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        false
    }

    fn can_fail(&self) -> bool {
        false
    }
}
