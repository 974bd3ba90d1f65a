//! Deliberate bugs, to show that the simulated world finds such bugs.
//!
//! They are compiled in with the feature `sabotage` only, which the program refuses to be built with.
//! Without it [`is_on`] is a constant `false`, and checking it costs nothing.

/// Whether deliberate bugs are compiled in.
pub const COMPILED_IN: bool = cfg!(feature = "sabotage");

/// A deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The settle moves a cursor over one range that has no verdict yet.
    CursorPassesUnsettled,
    /// The bytes before a cursor are not compared when a file is read on.
    TailUnchecked,
    /// A file with the inode of a source is that source, whatever it holds.
    InodeIsIdentity,
    /// Copies that were held back are not looked at when their original is gone.
    TwinsForgotten,
    /// A commit of the registry that failed is not tried again.
    FailedCommitForgotten,
    /// Sources that wait for a place are not woken when there is one.
    WaitersForgotten,
    /// A compressed file's line that lies over the end of a chunk loses its beginning.
    CarryLost,
    /// A directory without notifications is never listed again: changes without a notification are
    /// never found.
    QuietForEver,
    /// A group of lines is complete at the end of the file, however soon more of it follows.
    GroupsTorn,
    /// With parsers, what was truncated and written anew is taken for what follows.
    ParsedUnchecked,
    /// When a link leads to another file, the file before is not looked for.
    LinksUnfollowed,
    /// What was rotated away before the first look at a log is not looked for.
    FirstLookShort,
    /// A pin is removed when its file was read, whether that has its verdict or not.
    PinReleasedEarly,
    /// A file is deleted when one output has all of it, whatever the others have.
    PeersUnasked,
    /// What the output took from the disk queue counts as delivered.
    FrameAckedEarly,
    /// Files that wait for a turn stay closed, however long the output takes nothing.
    WaitersUnopened,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::CursorPassesUnsettled,
        Self::TailUnchecked,
        Self::InodeIsIdentity,
        Self::TwinsForgotten,
        Self::FailedCommitForgotten,
        Self::WaitersForgotten,
        Self::CarryLost,
        Self::QuietForEver,
        Self::GroupsTorn,
        Self::ParsedUnchecked,
        Self::LinksUnfollowed,
        Self::FirstLookShort,
        Self::PinReleasedEarly,
        Self::PeersUnasked,
        Self::FrameAckedEarly,
        Self::WaitersUnopened,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::CursorPassesUnsettled => "cursor-passes-unsettled",
            Self::TailUnchecked => "tail-unchecked",
            Self::InodeIsIdentity => "inode-is-identity",
            Self::TwinsForgotten => "twins-forgotten",
            Self::FailedCommitForgotten => "failed-commit-forgotten",
            Self::WaitersForgotten => "waiters-forgotten",
            Self::CarryLost => "carry-lost",
            Self::QuietForEver => "quiet-for-ever",
            Self::GroupsTorn => "groups-torn",
            Self::ParsedUnchecked => "parsed-unchecked",
            Self::LinksUnfollowed => "links-unfollowed",
            Self::FirstLookShort => "first-look-short",
            Self::PinReleasedEarly => "pin-released-early",
            Self::PeersUnasked => "peers-unasked",
            Self::FrameAckedEarly => "frame-acked-early",
            Self::WaitersUnopened => "waiters-unopened",
        }
    }
}

/// Whether this thread is to have a bug.
#[cfg(not(feature = "sabotage"))]
#[inline(always)]
pub const fn is_on(_bug: Sabotage) -> bool {
    false
}

#[cfg(feature = "sabotage")]
pub use compiled_in::{commit, is_on};

#[cfg(feature = "sabotage")]
mod compiled_in {
    use super::Sabotage;
    use std::cell::Cell;

    thread_local! {
        static BUG: Cell<Option<Sabotage>> = const { Cell::new(None) };
    }

    /// From now on this thread has this bug, or none.
    pub fn commit(bug: Option<Sabotage>) {
        BUG.set(bug);
    }

    /// Whether this thread is to have a bug.
    pub fn is_on(bug: Sabotage) -> bool {
        BUG.get() == Some(bug)
    }
}
