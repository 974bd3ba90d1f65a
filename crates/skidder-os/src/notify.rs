//! Change notification for the rest of the program: watched directories that report their changes.
//!
//! A notification is a hint. It may be late, come twice, or be lost without a trace: writes through
//! memory mappings, and to a file system below another, are not seen. Callers must also poll, only
//! less often.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A watched directory. Two paths to one directory have the same one; after its end it is not used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WatchId(pub i32);

/// A notification. Names are those of entries directly in the directory; they may not be UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A file was written to, cut, or touched through this name.
    Content {
        /// Of its directory.
        watch: WatchId,
        /// Its name.
        name: &'a OsStr,
    },
    /// A name came, went, or is that of another file now.
    Name {
        /// Of its directory.
        watch: WatchId,
        /// The name.
        name: &'a OsStr,
        /// Whether it is that of a directory; links to directories are not.
        directory: bool,
    },
    /// The directory itself is gone, moved or unmounted: no more notifications follow.
    Gone {
        /// Of the directory.
        watch: WatchId,
    },
    /// Notices were lost: anything may have changed.
    Lost,
}

/// Why a directory is not watched. The caller must poll.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// Its file system does not report all changes: it is on another machine, or made by a program.
    #[error("the file system (type {kind:#x}) does not report changes")]
    Blind {
        /// `f_type` of statfs(2).
        kind: u64,
    },
    /// The system allows no more watches for this user; later ones may succeed.
    #[error("the limit on watched directories is reached; raise `fs.inotify.max_user_watches`")]
    Limit,
    /// It is not there, not a directory, or not permitted.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reports changes in directories.
pub trait Notifier: Send {
    /// Watches a directory, links followed. Watching it again is cheap, and shows whether the path
    /// still leads to the same one.
    fn watch(&mut self, directory: &Path) -> Result<WatchId, WatchError>;
    /// Ends the watch of a directory. Earlier notifications may still arrive.
    fn unwatch(&mut self, watch: WatchId);
    /// Passes the notifications since the last call to `each`, in order, without waiting.
    fn take(&mut self, each: &mut dyn FnMut(Notice<'_>));
    /// Waits until there are notifications or the bell rings, at most `limit`. May return early.
    fn wait(&mut self, limit: Duration);
    /// Ends a wait from another thread.
    fn bell(&self) -> Arc<dyn Bell>;
}

/// Ends a [`Notifier::wait`].
pub trait Bell: Send + Sync {
    /// The wait that is under way, or the next one, ends at once.
    fn ring(&self);
}
