//! Why a file is in its state, as a text for people.

use crate::readers::ReaderLimit;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Why a file is in its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All places of this kind are taken.
    Waiting(ReaderLimit),
    /// A processor waits for metadata.
    Metadata,
    /// `ignore_older`.
    Older(Duration),
    /// `ignore_inactive`.
    NotModified,
    /// It was rotated away before `prospector.scanner.rotated_logs` begins.
    RotatedBefore,
    /// It has the same identity or content as this one.
    SameAs(PathBuf),
    /// It is being compared with this one.
    Comparing(PathBuf),
    /// There are not yet enough bytes for a fingerprint.
    TooShort,
    /// There is nothing in it.
    Empty,
    /// It cannot be decoded.
    Damaged(String),
    /// The system refuses to open or read it.
    Unopened(String),
    /// A compressed file without an end.
    BeingWritten,
    /// The next scan decides.
    NextScan,
    /// The rest is no whole line.
    LineWithoutEnd,
    /// Everything is read, and some of it is in flight.
    InFlight,
    /// Everything is read and delivered.
    AtEnd,
    /// It was closed at its end.
    Inactive,
    /// It was read to its verified end.
    Finished,
    /// It is gone, and forgotten after a while.
    Gone,
    /// The same, and not all of it was read.
    GoneUnread,
    /// It was rewritten; what it was is forgotten after a while.
    Rewritten,
    /// The same, and not all of what it was was read.
    RewrittenUnread,
    /// None is known: the watchdog wakes it.
    Unknown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waiting(ReaderLimit::OpenFile) => "waiting for a place: open files",
            Self::Metadata => "waiting for metadata that a processor adds",
            Self::Waiting(ReaderLimit::OfInput) => "waiting for a slot of harvester_limit",
            Self::Waiting(ReaderLimit::Decoder) => "waiting for a decoder",
            Self::Older(limit) => return write!(f, "ignored: older than {}", Span(*limit)),
            Self::NotModified => "ignored: not modified since the start (ignore_inactive)",
            Self::RotatedBefore => {
                "ignored: rotated away before this data directory was first used (prospector.scanner.rotated_logs)"
            }
            Self::SameAs(path) => return write!(f, "identity equals {}", path.display()),
            Self::Comparing(path) => return write!(f, "being compared with {}", path.display()),
            Self::TooShort => "too short for a fingerprint",
            Self::Empty => "empty",
            Self::Damaged(what) => return write!(f, "damaged: {what}"),
            Self::Unopened(what) => return write!(f, "cannot be opened: {what}"),
            Self::BeingWritten => "a compressed file that has no end yet",
            Self::NextScan => "looked at again with the next scan",
            Self::LineWithoutEnd => "the last line or event has no end yet",
            Self::InFlight => "read to its end; some lines are on their way",
            Self::AtEnd => "at its end",
            Self::Inactive => "closed: inactive, wakes on change",
            Self::Finished => "finished",
            Self::Gone => "no longer at its path; forgotten after a minute",
            Self::GoneUnread => {
                "no longer at its path, and not read to its end; forgotten after a minute"
            }
            Self::RewrittenUnread => "rewritten before it was read to its end",
            Self::Rewritten => "rewritten; what it was is forgotten after a minute",
            Self::Unknown => "none is known; the watchdog wakes it",
        })
    }
}

/// A duration in the notation of the configuration.
struct Span(Duration);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0 => write!(f, "{:?}", self.0),
            _ if seconds.is_multiple_of(3600) => write!(f, "{}h", seconds / 3600),
            _ if seconds.is_multiple_of(60) => write!(f, "{}m", seconds / 60),
            _ => write!(f, "{seconds}s"),
        }
    }
}
