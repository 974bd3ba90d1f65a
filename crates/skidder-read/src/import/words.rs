//! The outcome for an entry, in words.

use super::{Adoption, Restart, Skip};
use std::fmt;

impl fmt::Display for Adoption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Continue { offset } => write!(f, "continue at byte {offset}"),
            Self::Finished => f.write_str("finished: read to its end"),
            Self::Restart(why) => write!(f, "from the start: {why}"),
            Self::Known { offset } => write!(f, "known already, at byte {offset}"),
            Self::Skip(why) => write!(f, "left out: {why}"),
        }
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unread => f.write_str("nothing was delivered of it"),
            Self::Shorter => f.write_str("it is shorter than what was read of it"),
            Self::InsideLine => {
                f.write_str("the cursor is inside a line, so the file was written anew since")
            }
            Self::TooShort => f.write_str("it is too short to be recognised again"),
            Self::Unreadable(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameAs(path) => return write!(f, "it has the content of `{}`", path.display()),
            Self::NoFile => "the file is not there",
            Self::OtherFile => {
                "the file at its path does not begin with what Filebeat saw, so it is read from the start"
            }
            Self::Replaced => "the file is gone, and another one is at its path",
            Self::OtherPath => "its inode is that of a file with an unrelated name",
            Self::NoInput => "the file is there, and no input of the configuration reads it",
            Self::Removed => "marked for removal",
            Self::Superseded => "a newer entry is of the same file",
            Self::Journal => {
                "places in a journal are not taken over: the input `journald` begins at the oldest entry, unless `seek: \
                 tail`, or `seek: since` with `since`, is set"
            }
            Self::Objects => {
                "objects that Filebeat has read are not taken over: those that are still there are read again, unless \
                 `start_timestamp` or `ignore_older` (`aws-s3`), or `timestamp_epoch` (`gcs`, `azure-blob-storage`), is set"
            }
            Self::Foreign => "not of an input that reads files, or recognised by something unknown",
        })
    }
}
