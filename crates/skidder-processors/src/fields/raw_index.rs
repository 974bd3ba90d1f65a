//! `index` of an input: sets `@metadata.raw_index` from the date of the event.
//!
//! Not a processor of a configuration; an input whose `index` holds a date has it before its own.

use crate::plan::Constants;
use crate::plan::Failure;
use crate::plan::Footprint;
use crate::plan::{Outcome, Processor};
use skidder_event::{EventMut, Format, Path};

/// Sets the index that an input asks for.
#[derive(Clone, Debug)]
pub struct RawIndex {
    format: Format,
    target: Path,
    time: Path,
}

impl RawIndex {
    /// `format` depends on nothing but the date of the event; others are refused.
    pub fn new(format: Format) -> Option<Self> {
        let path = |name| Path::parse(name).expect("a constant path");
        let (target, time) = (path("@metadata.raw_index"), path("@timestamp"));
        format.is_dated_only().then_some(Self { format, target, time })
    }
}

impl Processor for RawIndex {
    fn name(&self) -> &'static str {
        "index"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let mut index = Vec::with_capacity(48);
        self.format
            .write(&mut index, event.as_ref())
            .map_err(|error| Failure::new(format!("Failed to set the index: {error}")))?;
        event
            .put_text(&self.target, &index)
            .map_err(|_| Failure::new(format!("Failed to set {}", self.target)))?;
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint {
            reads: vec![self.time.clone()],
            writes: vec![self.target.clone()],
            ..Footprint::default()
        }
    }

    /// Each event has its own date.
    fn fold(&self, _: &mut Constants) -> bool {
        false
    }

    fn is_repeatable(&self) -> bool {
        true
    }

    fn can_fail(&self) -> bool {
        true
    }
}
