//! What the catalogs of one input agree on, if it feeds several outputs: each output has a catalog of its
//! own, and they share the files.
//!
//! A file is deleted only when all of the catalogs have delivered it for the grace period, by the last one
//! that finds so. The others get the open file, so that all of them read what a writer adds at the last
//! moment.

use skidder_event::{SourceId, Tail};
use skidder_os::File;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The device and the inode of a file.
pub(super) type FileNumbers = (u64, u64);

/// What a catalog has read of a file that it agrees to delete. The others must have read as much.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadWhole {
    /// Size of the file.
    pub(super) size: u64,
    /// Position of the reader, in decompressed bytes.
    pub(super) offset: u64,
    /// The bytes before that position, as they were when they were read.
    pub(super) tail: Option<Tail>,
}

/// The seat of one catalog among those of its input.
#[derive(Clone)]
pub struct Peer {
    shared: Arc<Mutex<Vec<Seat>>>,
    number: usize,
}

/// What one catalog has published for the others, and received from them.
#[derive(Default)]
struct Seat {
    /// Files that it agrees to delete.
    agreed: HashMap<FileNumbers, (SourceId, ReadWhole)>,
    /// Its sources whose files another catalog has deleted.
    deleted: Vec<(SourceId, Box<dyn File>)>,
    /// Files that it has pinned.
    pinned: HashSet<FileNumbers>,
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Peer").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Peer {
    /// Seats for the catalogs of one input.
    pub fn seats(count: usize) -> Vec<Self> {
        let seats = std::iter::repeat_with(Seat::default).take(count).collect();
        let shared = Arc::new(Mutex::new(seats));
        (0..count).map(|number| Self { shared: Arc::clone(&shared), number }).collect()
    }

    /// Publishes the files that this catalog agrees to delete; it agrees to no others any more.
    pub(super) fn agree(&self, files: HashMap<FileNumbers, (SourceId, ReadWhole)>) {
        self.lock()[self.number].agreed = files;
    }

    /// Deletes a file with `delete`, if all others agree; returns `None` if one does not. `delete` gets what
    /// the others have read, and returns one open file for each of them.
    pub(super) fn delete<E>(
        &self,
        file: FileNumbers,
        read: ReadWhole,
        delete: impl FnOnce(&[ReadWhole]) -> Result<Vec<Box<dyn File>>, E>,
    ) -> Option<Result<(), E>> {
        let mut seats = self.lock();
        let (mut others, mut of_others) = (Vec::new(), Vec::new());
        for (number, seat) in seats.iter().enumerate() {
            if number == self.number {
                continue;
            }
            match seat.agreed.get(&file) {
                Some((id, theirs)) if (theirs.size, theirs.offset) == (read.size, read.offset) => {
                    others.push((number, *id));
                    of_others.push(*theirs);
                }
                _ => return None,
            }
        }
        // The lock is held, so that no catalog withdraws.
        let opened = match delete(&of_others) {
            Ok(opened) => opened,
            Err(error) => return Some(Err(error)),
        };
        assert_eq!(opened.len(), others.len(), "one open file for each of the others");
        for ((number, id), opened) in others.into_iter().zip(opened) {
            seats[number].agreed.remove(&file);
            seats[number].deleted.push((id, opened));
        }
        Some(Ok(()))
    }

    /// Sources of this catalog whose files were deleted by another since the last call.
    pub(super) fn take_deleted(&self) -> Vec<(SourceId, Box<dyn File>)> {
        std::mem::take(&mut self.lock()[self.number].deleted)
    }

    /// Publishes the files that this catalog has pinned.
    pub(super) fn pins(&self, files: HashSet<FileNumbers>) {
        self.lock()[self.number].pinned = files;
    }

    /// The number of other catalogs that have pinned a file: so many of its names are theirs.
    pub(super) fn pins_of_others(&self, file: FileNumbers) -> u64 {
        let seats = self.lock();
        let others = seats.iter().enumerate().filter(|(number, _)| *number != self.number);
        others.filter(|(_, seat)| seat.pinned.contains(&file)).count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
