//! `now`: the time at which an event is processed.

use super::pairs::required_path;
use crate::kinds::Context;
use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{Cell, EventMut, Path};
use skidder_os::Clock;
use std::fmt;
use std::sync::Arc;

settings! {
    /// Settings of `now`.
    pub(crate) static NOW = Group::new("processor.now", "Sets a field to the time at which the event is processed.");

    FIELD: String = Key::new("field")
        .required()
        .about("the field; replaces an existing value");
}

/// Sets a field to the time.
pub(crate) struct Now {
    field: Path,
    clock: Arc<dyn Clock>,
}

impl Now {
    /// `field`.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let field = required_path(settings, &FIELD)?;
        Some(Self { field, clock: Arc::clone(&context.clock) })
    }
}

impl fmt::Debug for Now {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Now").field("field", &self.field).finish_non_exhaustive()
    }
}

impl Processor for Now {
    fn name(&self) -> &'static str {
        "now"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let time = Cell::Time(self.clock.wall().0);
        event.put_cell(&self.field, time).map_err(|error| Failure::unnoted(error.to_string()))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint { writes: vec![self.field.clone()], ..Footprint::default() }
    }

    fn describe(&self) -> String {
        format!("now {}", self.field)
    }
}
