//! The machine's own file system, straight on the system calls.
//!
//! Promises: a descriptor never leaks into a child process, opening never blocks on an unwanted
//! pipe and never makes a terminal the controlling one, and looking at a directory costs one
//! descriptor whatever the number of names in it. What a path is (regular file or not) is for the
//! caller to look at.

mod notify;

use crate::{Boxes, DirEntry, File, FileKind, Fs, Metadata, Notifier, OpenMode, Timestamp};
use notify::Inotify;
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawDir, Stat, fdatasync, flock, fstat,
    fsync, ftruncate, openat, statat,
};
use rustix::io::{Errno, pread, pwrite, read, retry_on_intr};
use std::ffi::{CStr, OsStr};
use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether an operation failed because the process (`EMFILE`) or the system (`ENFILE`) may open no
/// more files.
pub fn is_out_of_descriptors(error: &io::Error) -> bool {
    let code = error.raw_os_error();
    code == Some(Errno::MFILE.raw_os_error()) || code == Some(Errno::NFILE.raw_os_error())
}

/// Whether a path has links that lead to themselves, or too many of them (`ELOOP`).
pub fn is_link_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Bytes of directory listing fetched by one system call: about 1,500 names.
const LISTING_BYTES: usize = 64 * 1024;

/// `O_NONBLOCK` so that a pipe without a writer does not hold the caller, `O_NOCTTY` so that a
/// terminal in a glob does no harm. Regular files ignore both.
const ALWAYS: OFlags = OFlags::CLOEXEC.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// The machine's own file system.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFs;

impl Fs for RealFs {
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let descriptor = open(path, OFlags::RDONLY, 0)?;
        Ok(RealFile::new(descriptor, false).boxed())
    }

    fn open_stream(&self, path: &Path) -> io::Result<Box<dyn File>> {
        let how = (OFlags::RDONLY | ALWAYS).difference(OFlags::NONBLOCK);
        let descriptor = retry_on_intr(|| openat(CWD, path, how, Mode::empty()))?;
        Ok(RealFile::new(descriptor, true).boxed())
    }

    fn open_write(
        &self,
        path: &Path,
        mode: OpenMode,
        permissions: u32,
    ) -> io::Result<Box<dyn File>> {
        let how = match mode {
            OpenMode::Keep => OFlags::empty(),
            OpenMode::Truncate => OFlags::TRUNC,
            OpenMode::New => OFlags::EXCL,
        };
        let descriptor = open(path, OFlags::RDWR | OFlags::CREATE | how, permissions)?;
        Ok(RealFile::new(descriptor, false).boxed())
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata_of(&retry_on_intr(|| statat(CWD, path, AtFlags::empty()))?))
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata> {
        Ok(metadata_of(&retry_on_intr(|| statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW))?))
    }

    fn read_dir(&self, directory: &Path, each: &mut dyn FnMut(DirEntry<'_>)) -> io::Result<()> {
        list(directory, |directory, name, kind| {
            let kind = match kind {
                // Some file systems do not return the kind with the name.
                FileType::Unknown => match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(Errno::NOENT) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
                known => known,
            };
            each(DirEntry { name: OsStr::from_bytes(name.to_bytes()), kind: kind_of(kind) });
            Ok(())
        })
    }

    fn scan_dir(
        &self,
        directory: &Path,
        wanted: &mut dyn FnMut(&OsStr) -> bool,
        each: &mut dyn FnMut(&OsStr, Metadata),
    ) -> io::Result<()> {
        list(directory, |directory, name, _| {
            let shown = OsStr::from_bytes(name.to_bytes());
            if !wanted(shown) {
                return Ok(());
            }
            match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => each(shown, metadata_of(&stat)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(())
        })
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        std::fs::canonicalize(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::rename(from, to))?)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let follow = rustix::fs::AtFlags::SYMLINK_FOLLOW;
        let link = || rustix::fs::linkat(rustix::fs::CWD, from, rustix::fs::CWD, to, follow);
        Ok(retry_on_intr(link)?)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::unlink(path))?)
    }

    fn create_dir_all(&self, path: &Path, permissions: u32) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(permissions).create(path)
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        let descriptor = open(directory, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
        Ok(retry_on_intr(|| fsync(&descriptor))?)
    }

    fn notifier(&self) -> io::Result<Box<dyn Notifier>> {
        Ok(Box::new(Inotify::new()?))
    }
}

/// An open file of the machine. Dropping it closes it and gives up its lock.
#[derive(Debug)]
struct RealFile {
    descriptor: OwnedFd,
    /// Nothing in it has an offset.
    is_stream: bool,
    /// It has the lock, which is given up before it is closed.
    is_locked: AtomicBool,
}

/// A file stays open for long, and the thread that opened it reads its first lines right after that.
static FILES: Mutex<Boxes<RealFile>> = Mutex::new(Boxes::new());

/// Allocates for so many files that will be opened, see [`Boxes::prepare`].
pub fn prepare_files(count: usize) {
    FILES.lock().unwrap_or_else(PoisonError::into_inner).prepare(count);
}

impl RealFile {
    fn new(descriptor: OwnedFd, is_stream: bool) -> Self {
        Self { descriptor, is_stream, is_locked: AtomicBool::new(false) }
    }

    fn boxed(self) -> Box<dyn File> {
        FILES.lock().unwrap_or_else(PoisonError::into_inner).put(self)
    }
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let got = if self.is_stream {
            read(&self.descriptor, buffer)
        } else {
            pread(&self.descriptor, buffer, offset)
        };
        Ok(got?)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwrite(&self.descriptor, bytes, offset)?)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(metadata_of(&fstat(&self.descriptor)?))
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        Ok(retry_on_intr(|| ftruncate(&self.descriptor, size))?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| fdatasync(&self.descriptor))?)
    }

    fn try_lock(&self) -> io::Result<bool> {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        match retry_on_intr(|| flock(&self.descriptor, exclusive)) {
            Ok(()) => {
                self.is_locked.store(true, Ordering::Relaxed);
                Ok(true)
            }
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for RealFile {
    /// Closing alone does not give up the lock while a process that is just being started has the descriptor, too.
    fn drop(&mut self) {
        if *self.is_locked.get_mut() {
            // What is closed next needs no unlocking, and there is nobody to tell.
            flock(&self.descriptor, FlockOperation::Unlock).unwrap_or_default();
        }
    }
}

fn open(path: &Path, how: OFlags, permissions: u32) -> rustix::io::Result<OwnedFd> {
    let permissions = Mode::from_raw_mode(permissions);
    retry_on_intr(|| openat(CWD, path, how | ALWAYS, permissions))
}

/// Calls `each` with the directory's descriptor, a name and what the listing says it is. Stops at the
/// first error.
fn list(
    directory: &Path,
    mut each: impl FnMut(&OwnedFd, &CStr, FileType) -> io::Result<()>,
) -> io::Result<()> {
    let descriptor = open(directory, OFlags::RDONLY | OFlags::DIRECTORY, 0)?;
    let mut listing = Vec::with_capacity(LISTING_BYTES);
    let mut names = RawDir::new(&descriptor, listing.spare_capacity_mut());
    while let Some(entry) = names.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            each(&descriptor, name, entry.file_type())?;
        }
    }
    Ok(())
}

fn kind_of(kind: FileType) -> FileKind {
    match kind {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    }
}

#[expect(clippy::unnecessary_cast, reason = "the widths differ between architectures")]
fn metadata_of(stat: &Stat) -> Metadata {
    let seconds = stat.st_mtime as i64;
    Metadata {
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        size: stat.st_size as u64,
        modified: Timestamp(
            seconds.saturating_mul(1_000_000_000).saturating_add(stat.st_mtime_nsec as i64),
        ),
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        links: stat.st_nlink as u64,
        mode: stat.st_mode as u32 & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
    }
}

#[cfg(test)]
mod tests;
