//! A source in the hands of a worker.

use super::{Trouble, slot};
use crate::reader::{InputContext, Reader, Scratch, TurnEnd};
use skidder_event::{Batch, SourceId};
use skidder_os::{Monotonic, Timestamp};
use std::sync::Arc;

/// A source that a worker has for one turn. Give it back with [`super::Readers::finish`].
pub struct Turn {
    pub(super) reader: Box<Reader>,
    pub(super) input: Arc<InputContext>,
}

impl Turn {
    /// The source that has the turn.
    pub fn source(&self) -> SourceId {
        self.reader.id
    }

    /// Reads one chunk.
    pub fn run(&mut self, scratch: &mut Scratch, now: Timestamp) -> (Option<Batch>, TurnEnd) {
        self.reader.turn(&self.input, scratch, now)
    }

    /// Reads another chunk, without giving the source back in between.
    pub fn run_again(
        &mut self,
        scratch: &mut Scratch,
        wall: Timestamp,
        now: Monotonic,
    ) -> (Option<Batch>, TurnEnd) {
        self.reader.end_turn(now);
        self.reader.begin_turn(now);
        self.run(scratch, wall)
    }

    /// Whether the path that the file was opened with leads to it.
    pub(super) fn can_open_again(&self) -> bool {
        slot::leads_to(&*self.input.fs, &self.reader.target)
    }
}

/// The trouble that the end of a turn leaves to the scan; logged if it is an error.
pub(super) fn trouble(turn: &Turn, end: &TurnEnd) -> Option<Trouble> {
    match end {
        TurnEnd::Displaced => Some(Trouble::Displaced),
        TurnEnd::Rewritten => Some(Trouble::Rewritten),
        TurnEnd::Damaged => Some(Trouble::Damaged),
        TurnEnd::Failed(error) => {
            turn.input.metrics.errors.add(1);
            let (errors, reader) = (&turn.input.metrics.last_errors, &turn.reader);
            errors.note(Some(reader.id), &reader.target.path, error.to_string(), reader.turn_at);
            tracing::error!(path = %turn.reader.target.path.display(),
                offset = turn.reader.offset, %error,
                "cannot read a file; it is tried again with the next scan");
            Some(Trouble::Failed)
        }
        TurnEnd::More | TurnEnd::Waiting | TurnEnd::Held(_) | TurnEnd::Finished => None,
    }
}
