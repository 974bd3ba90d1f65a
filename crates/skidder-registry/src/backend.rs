//! The file under the store: straight through, or with all changes kept in memory.

use redb::StorageBackend;
use skidder_os::{File, read_exact_at, write_all_at};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Unit in which [`Overlay`] keeps changes: the page of the store.
const PAGE: usize = 4096;
/// Reads of a file through [`Overlay`] for each page it has, before it is taken for a maze without end.
const READS_PER_PAGE_MAX: u64 = 16;

/// The operation on the file that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum During {
    Read,
    Write,
    /// What was written since the last sync may never reach the disk, although it can be read.
    Sync,
}

/// The first failure of a file. It distinguishes a bad disk (the file failed) from a bad file (it did not).
#[derive(Clone, Debug, Default)]
pub(crate) struct Health(Arc<Mutex<Option<(During, io::Error)>>>);

impl Health {
    /// Takes the failure out; the file stays unusable.
    pub(crate) fn failure(&self) -> Option<(During, io::Error)> {
        let mut failure = self.lock();
        let (during, error) = failure.as_mut()?;
        Some((*during, std::mem::replace(error, io::Error::other("failed before"))))
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.lock().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Option<(During, io::Error)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an operation unless one has failed before: nothing may be built on a failed write.
    fn run<T>(
        &self,
        during: During,
        mut operation: impl FnMut() -> io::Result<T>,
    ) -> io::Result<T> {
        if self.has_failed() {
            return Err(io::Error::other("the file failed before"));
        }
        loop {
            match operation() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The file is shorter than its content says: damage, not a failure.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Err(error),
                Err(error) => {
                    let same = io::Error::from(error.kind());
                    *self.lock() = Some((during, error));
                    return Err(same);
                }
                Ok(value) => return Ok(value),
            }
        }
    }
}

/// A file as the store uses it.
pub(crate) struct Disk {
    file: Box<dyn File>,
    health: Health,
}

impl Disk {
    pub(crate) fn new(file: Box<dyn File>, health: Health) -> Self {
        Self { file, health }
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Disk").finish_non_exhaustive()
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.health.run(During::Read, || Ok(self.file.metadata()?.size))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.health.run(During::Read, || read_exact_at(&*self.file, out, offset))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.health.run(During::Write, || self.file.set_len(length))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.health.run(During::Sync, || self.file.sync())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.health.run(During::Write, || write_all_at(&*self.file, data, offset))
    }
}

/// A file that is only read: changes stay in memory and vanish with the handle. For a file that must
/// not be touched, because it is damaged or because its content may not be on the disk.
pub(crate) struct Overlay {
    disk: Disk,
    changed: Mutex<Changed>,
}

struct Changed {
    /// Length of the store as it sees it.
    length: u64,
    /// Length of the file that still shows through.
    shown: u64,
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    reads_left: u64,
}

impl Overlay {
    pub(crate) fn new(file: Box<dyn File>, health: Health) -> io::Result<Self> {
        let disk = Disk::new(file, health);
        let length = disk.len()?;
        let changed = Changed {
            length,
            shown: length,
            pages: BTreeMap::new(),
            reads_left: (length / PAGE as u64 + 64) * READS_PER_PAGE_MAX,
        };
        Ok(Self { disk, changed: Mutex::new(changed) })
    }

    fn lock(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Overlay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Overlay").finish_non_exhaustive()
    }
}

impl Changed {
    /// Reads what lies in one page, `out` being at `offset`.
    fn read_in_page(&self, disk: &Disk, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let within = (offset % PAGE as u64) as usize;
        if let Some(page) = self.pages.get(&(offset / PAGE as u64)) {
            out.copy_from_slice(&page[within..within + out.len()]);
            return Ok(());
        }
        let shown = usize::try_from(self.shown.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (from_file, zeros) = out.split_at_mut(shown.min(out.len()));
        zeros.fill(0);
        if from_file.is_empty() { Ok(()) } else { disk.read(offset, from_file) }
    }
}

impl StorageBackend for Overlay {
    fn len(&self) -> io::Result<u64> {
        Ok(self.lock().length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut changed = self.lock();
        let end = offset.checked_add(out.len() as u64).ok_or(io::ErrorKind::UnexpectedEof)?;
        if end > changed.length || changed.reads_left == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        changed.reads_left -= 1;
        for (offset, length, start) in pieces(offset, out.len()) {
            changed.read_in_page(&self.disk, offset, &mut out[start..start + length])?;
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut changed = self.lock();
        if length < changed.length {
            changed.pages.split_off(&length.div_ceil(PAGE as u64));
            changed.shown = changed.shown.min(length);
        }
        changed.length = length;
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut changed = self.lock();
        for (offset, length, start) in pieces(offset, data.len()) {
            let page = offset / PAGE as u64;
            if !changed.pages.contains_key(&page) {
                let mut content = Box::new([0; PAGE]);
                changed.read_in_page(&self.disk, page * PAGE as u64, &mut content[..])?;
                changed.pages.insert(page, content);
            }
            let content = changed.pages.get_mut(&page).expect("it was put there just now");
            let within = (offset % PAGE as u64) as usize;
            content[within..within + length].copy_from_slice(&data[start..start + length]);
        }
        Ok(())
    }
}

/// Splits `length` bytes at `offset` at the borders of pages: offset, length, and start in the buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let room = PAGE - (at % PAGE as u64) as usize;
        let piece = (at, room.min(length - done), done);
        done += piece.1;
        (piece.1 > 0).then_some(piece)
    })
}
