//! Whether the store's file can be trusted to be on the disk: not after a failed sync, until it is written anew.
//!
//! The system may show what a failed sync has not written for as long as it runs, and a later sync need not fail. So
//! the next process must know too, and finds a note in the lock file. The note is never synced and need not be: when
//! the power goes, what the system showed goes with it, and all that is left to be read is on the disk.

use skidder_os::{File, read_exact_at, write_all_at};
use std::io;

/// The note, in place, so that it needs no room on a disk that may be full.
const TRUSTED: &[u8; 12] = b"sync ok    \n";
const DISTRUSTED: &[u8; 12] = b"sync failed\n";

/// The lock of the directory, with the note in it.
pub(crate) struct Distrust {
    /// Held as long as the registry is open.
    lock: Box<dyn File>,
    held: bool,
    /// What the note says; `None` if that is not known.
    noted: Option<bool>,
}

impl Distrust {
    /// Reads what the last process has noted. A note that cannot be read costs a copy of the store, not more.
    pub(crate) fn of_last(lock: Box<dyn File>) -> Self {
        let mut note = [0; TRUSTED.len()];
        let (held, noted) = match read_exact_at(&*lock, &mut note, 0) {
            Ok(()) if note == *DISTRUSTED => (true, Some(true)),
            Ok(()) if note == *TRUSTED => (false, Some(false)),
            Ok(()) => (false, None),
            // Nothing was ever noted here.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => (false, None),
            Err(_) => (true, None),
        };
        Self { lock, held, noted }
    }

    /// Whether the file must be written anew before it is built upon.
    pub(crate) fn is_held(&self) -> bool {
        self.held
    }

    pub(crate) fn set(&mut self, held: bool) {
        self.held = held;
        self.note();
    }

    /// Notes it, unless it is noted already; after a failure the next call tries again.
    pub(crate) fn note(&mut self) {
        if self.noted == Some(self.held) {
            return;
        }
        let note = if self.held { DISTRUSTED } else { TRUSTED };
        self.noted = match write_all_at(&*self.lock, note, 0) {
            Ok(()) => Some(self.held),
            Err(error) => {
                tracing::debug!(%error, "cannot note in the lock file whether a sync has failed");
                None
            }
        };
    }
}
