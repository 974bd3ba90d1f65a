//! What binding did with each step of a list, for `explain`.

use std::fmt;

/// What becomes of a step for the events of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is done in the fields that all events share.
    Once,
    /// The same, and it runs on an event that has something of its own there.
    OnceUnlessOwn,
    /// Its condition does not hold for the usual event; it is checked where an event has its own.
    UsuallyNot,
    /// It runs on every event.
    PerEvent,
    /// Its condition never holds.
    Never,
    /// Every event was dropped before.
    Unreachable,
}

impl Fate {
    /// Whether there is something left to do for events: a step of the bound plan.
    pub fn is_left(self) -> bool {
        matches!(self, Self::OnceUnlessOwn | Self::UsuallyNot | Self::PerEvent)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(match self {
            Self::Once => "once per source",
            Self::OnceUnlessOwn => "once per source, again where an event has its own",
            Self::UsuallyNot => "usually not, again where an event has its own",
            Self::PerEvent => "per event",
            Self::Never => "never",
            Self::Unreachable => "unreachable",
        })
    }
}

/// A step and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepNote {
    /// What becomes of it.
    pub fate: Fate,
    /// The step in words.
    pub step: String,
}

impl fmt::Display for StepNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.fate, self.step)
    }
}
