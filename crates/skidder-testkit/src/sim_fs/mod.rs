//! A file system in memory that behaves as POSIX says, and as badly as POSIX allows.
//!
//! - Names and inodes are apart: hard links, open handles of deleted files, rename over a file, links
//!   that are followed, inode numbers that are used again as soon as they are free (lowest first).
//! - What was not synced is lost in [`SimFs::crash`]; [`SimFs::crash_torn`] leaves a random part of it,
//!   torn at sectors and out of order. A failed sync loses data although it can still be read
//!   (as Linux does, <https://wiki.postgresql.org/wiki/Fsync_Errors>).
//! - Every operation can be made to fail ([`Fault`]), transfers can be cut short, the disk has a size.
//! - Directories notify changes ([`Fs::notifier`]), and can be made to notify late, twice, or not at all.
//! - What *other* programs do (`…_as_other`) neither fails nor counts, and is durable at once.
//!
//! Not modelled: permissions, umask, more than one device, atime.

mod content;
mod faults;
mod notify;
mod other;
mod state;

pub use faults::{Fault, Operation};
pub use other::OtherHandle;

use crate::{Random, SimClock};
use skidder_os::{DirEntry, File, FileKind, Fs, Metadata, Notifier, OpenMode};
use state::{Body, Edit, NodeId, Place, State};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A simulated file system. Clones are the same disk. Relative paths start at `/`.
#[derive(Clone, Debug)]
pub struct SimFs {
    state: Arc<Mutex<State>>,
}

impl SimFs {
    /// An empty disk of unlimited size that takes its times from `clock`.
    pub fn new(clock: &SimClock) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(clock.clone()))) }
    }

    /// The number of operations of the program under test so far, also failed ones.
    pub fn operations(&self) -> u64 {
        self.lock().faults.count
    }

    /// The number of operations of one kind so far, also failed ones.
    pub fn operations_of(&self, operation: Operation) -> u64 {
        self.lock().faults.counts[operation as usize]
    }

    /// A number made of all operations of the program under test so far, with their paths and what they read and write
    /// where, in their order: two runs that do the same have the same.
    pub fn trace(&self) -> u64 {
        self.lock().faults.trace
    }

    /// From now on `listener` is called with each operation of the program under test, before it is done.
    pub fn listen(&self, listener: fn(Operation, &Path)) {
        self.lock().faults.listener = Some(listener);
    }

    /// Plans a failure.
    pub fn inject(&self, fault: Fault) {
        self.lock().faults.planned.push(fault);
    }

    /// Forgets all planned failures and halts.
    pub fn clear_faults(&self) {
        let mut state = self.lock();
        state.faults.planned.clear();
        state.faults.halt_at = None;
    }

    /// The `nth` operation from now (the next one is 1) and all later ones fail without effect, until
    /// [`Self::crash`], [`Self::crash_torn`] or [`Self::kill`] says what has happened.
    pub fn halt_at(&self, nth: u64) {
        let mut state = self.lock();
        state.faults.halt_at = Some(state.faults.count + nth);
    }

    /// Whether [`Self::halt_at`] has come into effect.
    pub fn halted(&self) -> bool {
        self.lock().faults.halted()
    }

    /// From now on about half of all reads and writes transfer less than requested; `None` ends it.
    pub fn short_transfers(&self, seed: Option<u64>) {
        self.lock().faults.short = seed.map(Random::new);
    }

    /// From now on the disk answers every sync at once and does nothing, as some do. Nothing can be safe on
    /// such a disk: this is for tests that tests notice, and that programs survive it.
    pub fn lie_about_syncs(&self, lying: bool) {
        self.lock().faults.lying = lying;
    }

    /// Limits the disk to `bytes`, rounded down to blocks of 4,096; `None` lifts the limit. Files keep
    /// what they have. Only writes of the program under test meet the limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().blocks_max = bytes.map_or(u64::MAX, state::blocks_in);
    }

    /// Bytes of the disk in use; holes are free.
    pub fn used(&self) -> u64 {
        self.lock().blocks_used * content::BLOCK as u64
    }

    /// The program under test dies: its handles and locks are gone, no data is.
    pub fn kill(&self) {
        self.lock().kill();
    }

    /// The power goes and comes back: everything that was not synced is lost, all handles are dead.
    pub fn crash(&self) {
        self.lock().crash(None);
    }

    /// As [`Self::crash`], but a random part of what was not synced has reached the disk: the first few
    /// changes of names, and any mix of old and new sectors of each file.
    pub fn crash_torn(&self, seed: u64) {
        self.lock().crash(Some(&mut Random::new(seed)));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of a test in between leaves nothing half done that matters to the next one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, operation: Operation, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        state.faults.begin(operation, path)?;
        Ok(state)
    }

    fn handle(
        &self,
        mut state: MutexGuard<'_, State>,
        node: NodeId,
        path: &Path,
        writable: bool,
    ) -> Box<dyn File> {
        state.node_mut(node).ours += 1;
        state.next_handle += 1;
        let (id, process) = (state.next_handle, state.process);
        drop(state);
        Box::new(SimFile { fs: self.clone(), node, id, process, path: path.into(), writable })
    }
}

impl Fs for SimFs {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let state = self.begin(Operation::Open, path)?;
        let node = state.find(path, true)?;
        Ok(self.handle(state, node, path, false))
    }

    fn open_write(
        &self,
        path: &Path,
        mode: OpenMode,
        permissions: u32,
    ) -> io::Result<Box<dyn File>> {
        let mut state = self.begin(Operation::Open, path)?;
        let follow = mode != OpenMode::New;
        let missing = match state.walk(path, follow, &mut Vec::with_capacity(8))? {
            Place::Node(_) if mode == OpenMode::New => {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            Place::Node(node) => Err(node),
            Place::Missing { directory, name } => Ok((directory, Arc::from(name))),
        };
        let node = match missing {
            Ok((directory, name)) => {
                let node = state.create(Body::File(content::Content::default()), permissions);
                state.edit(vec![Edit { directory, name, target: Some(node) }]);
                node
            }
            Err(node) if state.kind(node) == FileKind::Directory => {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            Err(node) => {
                if mode == OpenMode::Truncate && state.kind(node) == FileKind::Regular {
                    state.set_len(node, 0)?;
                }
                node
            }
        };
        Ok(self.handle(state, node, path, true))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        let state = self.begin(Operation::Stat, path)?;
        Ok(state.metadata(state.find(path, true)?))
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        let state = self.begin(Operation::Stat, path)?;
        Ok(state.metadata(state.find(path, false)?))
    }

    fn read_dir(&self, directory: &Path, each: &mut dyn FnMut(DirEntry<'_>)) -> io::Result<()> {
        let state = self.begin(Operation::List, directory)?;
        let names = state.names(state.find(directory, true)?)?;
        let entries: Vec<(Arc<OsStr>, FileKind)> =
            names.iter().map(|(name, node)| (name.clone(), state.kind(*node))).collect();
        // The callback may use this file system.
        drop(state);
        for (name, kind) in entries {
            each(DirEntry { name: &name, kind });
        }
        Ok(())
    }

    fn scan_dir(
        &self,
        directory: &Path,
        wanted: &mut dyn FnMut(&OsStr) -> bool,
        each: &mut dyn FnMut(&OsStr, Metadata),
    ) -> io::Result<()> {
        let state = self.begin(Operation::List, directory)?;
        let id = state.find(directory, true)?;
        let entries: Vec<Arc<OsStr>> = state.names(id)?.keys().cloned().collect();
        drop(state);
        for name in entries {
            if wanted(&name) {
                let state = self.lock();
                let found = state.names(id).ok().and_then(|names| names.get(&name));
                let Some(metadata) = found.map(|node| state.metadata(*node)) else { continue };
                drop(state);
                each(&name, metadata);
            }
        }
        Ok(())
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        let state = self.begin(Operation::Stat, path)?;
        let mut trail = Vec::with_capacity(8);
        match state.walk(path, true, &mut trail)? {
            Place::Node(_) => {}
            Place::Missing { .. } => return Err(io::ErrorKind::NotFound.into()),
        }
        let mut whole = PathBuf::from("/");
        whole.extend(trail.iter().skip(1).map(|(_, name)| name));
        Ok(whole)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(Operation::Rename, from)?.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.begin(Operation::Rename, to)?.hard_link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.begin(Operation::Remove, path)?.remove_file(path)
    }

    fn create_dir_all(&self, path: &Path, permissions: u32) -> io::Result<()> {
        self.begin(Operation::CreateDir, path)?.create_dir_all(path, permissions)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let mut state = self.begin(Operation::Sync, directory)?;
        let node = state.find(directory, true)?;
        state.names(node)?;
        if !state.faults.lying {
            state.settle(node);
        }
        Ok(())
    }

    fn notifier(&self) -> io::Result<Box<dyn Notifier>> {
        Ok(self.new_notifier())
    }
}

/// What both the program under test and others do with names and sizes.
impl State {
    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_directory, from_name) = self.spelled(from)?;
        let (to_directory, to_name) = self.spelled(to)?;
        let moved = *self.names(from_directory)?.get(&from_name).ok_or(io::ErrorKind::NotFound)?;
        if self.within(to, moved)? {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        if let Some(&replaced) = self.names(to_directory)?.get(&to_name) {
            if self.within(from, replaced)? {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            if replaced == moved {
                return Ok(());
            }
            match (self.kind(moved), self.kind(replaced)) {
                (FileKind::Directory, FileKind::Directory) if self.names(replaced)?.is_empty() => {}
                (FileKind::Directory, FileKind::Directory) => {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
                (FileKind::Directory, _) => return Err(io::ErrorKind::NotADirectory.into()),
                (_, FileKind::Directory) => return Err(io::ErrorKind::IsADirectory.into()),
                _ => {}
            }
        }
        self.edit(vec![
            Edit { directory: from_directory, name: from_name, target: None },
            Edit { directory: to_directory, name: to_name, target: Some(moved) },
        ]);
        Ok(())
    }

    /// Whether `path` lies in `directory`, at any depth.
    fn within(&self, path: &Path, directory: NodeId) -> io::Result<bool> {
        let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(false);
        };
        let mut trail = Vec::with_capacity(8);
        self.walk(parent, true, &mut trail)?;
        Ok(trail.iter().any(|(node, _)| *node == directory))
    }

    fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let target = self.find(from, true)?;
        let (directory, name) = self.spelled(to)?;
        if self.names(directory)?.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.edit(vec![Edit { directory, name, target: Some(target) }]);
        Ok(())
    }

    fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let (directory, name) = self.spelled(path)?;
        let node = *self.names(directory)?.get(&name).ok_or(io::ErrorKind::NotFound)?;
        if self.kind(node) == FileKind::Directory {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.edit(vec![Edit { directory, name, target: None }]);
        Ok(())
    }

    fn create_dir_all(&mut self, path: &Path, permissions: u32) -> io::Result<()> {
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let (directory, name) = match self.walk(path, false, &mut Vec::with_capacity(8)) {
            Ok(Place::Missing { directory, name }) => (directory, Arc::from(name)),
            Ok(Place::Node(_)) => {
                let found = self.find(path, true).map(|node| self.kind(node));
                return match found {
                    Ok(FileKind::Directory) => Ok(()),
                    _ => Err(io::ErrorKind::AlreadyExists.into()),
                };
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.create_dir_all(path.parent().unwrap_or(Path::new("")), permissions)?;
                return self.create_dir_all(path, permissions);
            }
            Err(error) => return Err(error),
        };
        let body = Body::Directory { names: Default::default(), durable: Default::default() };
        let target = Some(self.create(body, permissions));
        self.edit(vec![Edit { directory, name, target }]);
        Ok(())
    }

    fn set_len(&mut self, node: NodeId, size: u64) -> io::Result<()> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let freed = self.content_mut(node)?.set_len(size);
        self.blocks_used -= freed;
        self.node_mut(node).modified = self.now();
        self.notify_content(node);
        Ok(())
    }

    fn write(&mut self, node: NodeId, bytes: &[u8], offset: u64, free: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let (written, taken) = self.content_mut(node)?.write(offset, bytes, free);
        self.blocks_used += taken;
        if written == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.node_mut(node).modified = self.now();
        self.notify_content(node);
        Ok(written)
    }
}

/// A handle of the program under test.
#[derive(Debug)]
struct SimFile {
    fs: SimFs,
    node: NodeId,
    id: u64,
    /// Which life of the program it belongs to.
    process: u64,
    path: PathBuf,
    writable: bool,
}

impl SimFile {
    fn begin(&self, operation: Operation) -> io::Result<MutexGuard<'_, State>> {
        let state = self.fs.begin(operation, &self.path)?;
        if state.process != self.process {
            return Err(io::Error::other("the handle is from before the crash"));
        }
        Ok(state)
    }

    fn begin_change(&self, operation: Operation) -> io::Result<MutexGuard<'_, State>> {
        if !self.writable {
            return Err(io::Error::from_raw_os_error(9)); // EBADF
        }
        self.begin(operation)
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.begin(Operation::Read)?;
        let length = state.faults.shorten(buffer.len());
        state.faults.note(offset);
        state.faults.note(length as u64);
        let bytes = state.content_mut(self.node)?.bytes();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let length = length.min(bytes.len() - start);
        buffer[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.begin_change(Operation::Write)?;
        let length = state.faults.shorten(bytes.len());
        state.faults.note(offset);
        state.faults.note(length as u64);
        let free = state.blocks_free();
        state.write(self.node, &bytes[..length], offset, free)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(self.begin(Operation::Stat)?.metadata(self.node))
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.begin_change(Operation::SetLen)?.set_len(self.node, size)
    }

    fn sync(&self) -> io::Result<()> {
        match self.begin(Operation::Sync) {
            Ok(mut state) => {
                // Syncing a directory's handle does nothing here: names have `sync_dir`.
                if state.faults.lying {
                    return Ok(());
                }
                if let Ok(content) = state.content_mut(self.node) {
                    content.sync();
                }
                Ok(())
            }
            Err(error) => {
                let mut state = self.fs.lock();
                let alive = state.process == self.process && !state.faults.halted();
                if alive
                    && error.kind() != io::ErrorKind::Interrupted
                    && let Ok(content) = state.content_mut(self.node)
                {
                    content.lose();
                }
                Err(error)
            }
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        let mut state = self.begin(Operation::Lock)?;
        let id = self.id;
        Ok(*state.node_mut(self.node).lock.get_or_insert(id) == id)
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut state = self.fs.lock();
        if state.process != self.process {
            return;
        }
        let node = state.node_mut(self.node);
        node.ours -= 1;
        if node.lock == Some(self.id) {
            node.lock = None;
        }
        state.release(self.node);
    }
}

#[cfg(test)]
mod tests;
