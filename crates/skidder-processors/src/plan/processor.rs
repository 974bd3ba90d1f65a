//! The interface of processors: run on one event, and describe itself well enough to be folded.

use super::constants::Constants;
use super::failure::Failure;
use super::footprint::Footprint;
use skidder_event::{EventMut, Path};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

/// What a processor did with an event that it could work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything.
    Done,
    /// As far as possible; something was missing. Nothing is noted on the event, but the rest of
    /// an `if`/`then`/`else` branch does not run.
    Incomplete,
    /// The event goes no further.
    Dropped,
}

/// One processor of a configuration, compiled. Shared by all sources and threads.
///
/// `run` works on any event. The other methods let the plan do the work once for all events of a
/// source: `footprint` names the fields involved, `fold` does to a source's constants what `run`
/// would do to an event that has only those.
pub trait Processor: Any + Debug + Send + Sync {
    /// The name in the configuration.
    fn name(&self) -> &'static str;

    /// Works on one event. After an error the event may be half changed; the caller undoes it.
    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure>;

    /// The fields it may read and write on an event whose shared fields are `constants`.
    fn footprint(&self, constants: &Constants) -> Footprint;

    /// Does its work on the fields that all events of a source share. `false`: this cannot be done
    /// (it would fail, or drop, or depends on more than the constants), and `constants` are as they were.
    fn fold(&self, constants: &mut Constants) -> bool {
        let _ = constants;
        false
    }

    /// Whether `run` on an event over the constants from before `fold` leaves nothing that reading
    /// it over those from after `fold` would not show: true if all it does is to set, to add and to
    /// remove fields and never fail because of existing values.
    fn is_repeatable(&self) -> bool {
        false
    }

    /// Whether `run` can return a failure.
    fn can_fail(&self) -> bool {
        true
    }

    /// Whether `run` can keep the rest of an `if`/`then`/`else` branch from running.
    fn can_stop(&self) -> bool {
        self.can_fail()
    }

    /// Smaller processors that do the same one after the other, if it can be taken apart. `own` are
    /// all paths that an event may have beyond `constants`, if they are known.
    fn parts(
        &self,
        constants: &Constants,
        own: Option<&[Path]>,
    ) -> Option<Vec<Arc<dyn Processor>>> {
        let _ = (constants, own);
        None
    }

    /// The same with what it makes of `_constants` looked up once, for the fields where,
    /// by `_is_own`, no event has anything of its own at, inside or around them. Only for
    /// fields that the footprint reads.
    fn knowing(
        &self,
        _constants: &Constants,
        _is_own: &dyn Fn(&Path) -> bool,
    ) -> Option<Arc<dyn Processor>> {
        None
    }

    /// One processor that does to every event what this one and then `next` do, if there is one. Neither may
    /// count failures, since each counts its own. `in_branch`: they stand in an `if`, where one that is
    /// incomplete keeps the other from running; elsewhere that means nothing.
    fn join(&self, next: &dyn Processor, in_branch: bool) -> Option<Arc<dyn Processor>> {
        let _ = (next, in_branch);
        None
    }

    /// The processor with everything it looks up outside the event fixed to its current value.
    fn bound(&self) -> Option<Arc<dyn Processor>> {
        None
    }

    /// Whether it has a `bound`, without waiting for what that looks up.
    fn looks_outside(&self) -> bool {
        self.bound().is_some()
    }

    /// Whether `hold` can ever return a time. Only called for processors that have a `bound`.
    fn can_hold(&self) -> bool {
        false
    }

    /// How long to wait before the next call, if it needs to know something about a source before
    /// its lines are read. Waiting ends by itself. Only called if `can_hold`.
    fn hold(&self, constants: &Constants) -> Option<Duration> {
        let _ = constants;
        None
    }

    /// A number that grows when the result of `bound` changes.
    fn epoch(&self) -> u64 {
        0
    }

    /// Its settings in a few words, for messages.
    fn describe(&self) -> String {
        self.name().to_owned()
    }
}
