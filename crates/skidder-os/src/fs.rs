//! The file system as the rest of the program sees it.

use crate::{Notifier, Timestamp};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

/// What a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file: the only kind that is ever read as a log.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link (only from calls that do not follow links).
    Symlink,
    /// Pipe, socket, device.
    Other,
}

/// Metadata of a file. `device` and `inode` are hints, never an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// Size in bytes as stored (compressed size for a compressed file).
    pub size: u64,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Device number.
    pub device: u64,
    /// Inode number; reused after deletion.
    pub inode: u64,
    /// Number of names (hard links); 0 for an open file that was deleted.
    pub links: u64,
    /// Permission bits, `0o7777` at most.
    pub mode: u32,
    /// Numeric owner.
    pub uid: u32,
    /// Numeric group.
    pub gid: u32,
}

/// Permissions of a directory for our own data: its owner's alone, whatever the umask says.
pub const PRIVATE_DIRECTORY: u32 = 0o700;

/// Which file it is: says of a path that was looked at before whether the same file is still there.
/// An inode is reused after deletion, so this is never an identity for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Device number.
    pub device: u64,
    /// Inode number.
    pub inode: u64,
}

impl Metadata {
    /// Which file it is.
    pub fn id(&self) -> FileId {
        FileId { device: self.device, inode: self.inode }
    }
}

/// One name in a directory.
#[derive(Clone, Copy, Debug)]
pub struct DirEntry<'a> {
    /// The name without its directory; may not be UTF-8.
    pub name: &'a OsStr,
    /// What the entry itself is (links are not followed).
    pub kind: FileKind,
}

/// How to open a file for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Read and write; create if missing; keep the content.
    Keep,
    /// Read and write; create if missing; empty it.
    Truncate,
    /// Read and write; fail with `AlreadyExists` if it is there.
    New,
}

/// A file system. Paths are absolute or relative to the process; they may not be UTF-8.
///
/// Durability follows POSIX: data is safe after [`File::sync`]; a created, renamed or removed name
/// is safe after [`Fs::sync_dir`] of its directory. The simulated version drops what was not synced.
pub trait Fs: Send + Sync + 'static {
    /// Opens an existing file for reading, following links. Never blocks on a pipe.
    fn open(&self, path: &Path) -> io::Result<Box<dyn File>>;
    /// Opens what can only be read once from its beginning to its end: a pipe, a terminal or
    /// another device. Blocks until a pipe has a writer, and each read until there is something;
    /// the offsets of reads mean nothing.
    fn open_stream(&self, path: &Path) -> io::Result<Box<dyn File>> {
        self.open(path)
    }
    /// Opens for reading and writing. `permissions` are used when the file is created.
    fn open_write(
        &self,
        path: &Path,
        mode: OpenMode,
        permissions: u32,
    ) -> io::Result<Box<dyn File>>;
    /// What `path` names, following links.
    fn metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// What `path` names, without following a link in its last part.
    fn symlink_metadata(&self, path: &Path) -> io::Result<Metadata>;
    /// Calls `each` for every name in `directory` (without `.` and `..`), in no particular order.
    fn read_dir(&self, directory: &Path, each: &mut dyn FnMut(DirEntry<'_>)) -> io::Result<()>;
    /// Looks up every name of `directory` that `wanted` accepts and gives its metadata to `each`,
    /// links not followed. Cheaper than `read_dir` and `symlink_metadata` of each path. Names that
    /// vanish meanwhile are left out.
    fn scan_dir(
        &self,
        directory: &Path,
        wanted: &mut dyn FnMut(&OsStr) -> bool,
        each: &mut dyn FnMut(&OsStr, Metadata),
    ) -> io::Result<()>;
    /// The path without links, `.` and `..`.
    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf>;
    /// Renames, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name on the same file system, following links; fails with `AlreadyExists` if
    /// that is taken and with `CrossesDevices` on another file system.
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file's name.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory and its parents with these permission bits; existing ones are fine.
    fn create_dir_all(&self, path: &Path, permissions: u32) -> io::Result<()>;
    /// Makes names in `directory` durable.
    fn sync_dir(&self, directory: &Path) -> io::Result<()>;
    /// Change notification. Fails with `Unsupported` where there is none.
    fn notifier(&self) -> io::Result<Box<dyn Notifier>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// An open file. Reads and writes are positional, so that one handle can be shared.
pub trait File: Send + Sync {
    /// Reads up to `buffer.len()` bytes at `offset`; 0 means end of file (for now).
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes up to `bytes.len()` bytes at `offset`; may write less.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    /// What the open file is now, whatever its name.
    fn metadata(&self) -> io::Result<Metadata>;
    /// Cuts or extends the file.
    fn set_len(&self, size: u64) -> io::Result<()>;
    /// Makes the data durable (`fdatasync`).
    fn sync(&self) -> io::Result<()>;
    /// Takes an exclusive advisory lock that lives as long as the handle; `false` if it is taken.
    fn try_lock(&self) -> io::Result<bool>;
}

/// Opens a regular file that was looked at before. The path may have been swapped meanwhile, for a
/// link to a file that the attacker may not read: fails with `Interrupted` if the opened file is
/// another one.
pub fn open_same(fs: &dyn Fs, path: &Path, id: FileId) -> io::Result<Box<dyn File>> {
    let file = fs.open(path)?;
    let metadata = file.metadata()?;
    if metadata.kind == FileKind::Regular && metadata.id() == id {
        return Ok(file);
    }
    let message = "another file is at its path since the last scan";
    Err(io::Error::new(io::ErrorKind::Interrupted, message))
}

/// Fills `buffer` from `offset`, or fails with `UnexpectedEof`.
pub fn read_exact_at(file: &dyn File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` at `offset`, or fails; on failure a prefix may have been written.
pub fn write_all_at(file: &dyn File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], offset + done as u64) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Replaces a whole file, in a folder that is there; `permissions` are those of the new one. A crash leaves the old one or
/// the new one. The bytes are first in a file beside it, whose name ends with `.tmp`; one that was left there, perhaps
/// with other permissions, is removed.
///
/// # Errors
/// Those of the file system; the file is as it was, or new.
pub fn replace_file(
    fs: &dyn Fs,
    path: &Path,
    bytes: &[u8],
    permissions: u32,
) -> io::Result<Box<dyn File>> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    match fs.remove_file(temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = fs.open_write(temporary, OpenMode::New, permissions)?;
    write_all_at(&*file, bytes, 0)?;
    file.sync()?;
    fs.rename(temporary, path)?;
    let directory = path.parent().filter(|above| !above.as_os_str().is_empty());
    fs.sync_dir(directory.unwrap_or(Path::new(".")))?;
    Ok(file)
}

/// Reads a whole small file, at most `limit` bytes; `FileTooLarge` beyond.
pub fn read_to_end(file: &dyn File, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0_u8; 8192];
    loop {
        match file.read_at(&mut piece, bytes.len() as u64) {
            Ok(0) => return Ok(bytes),
            Ok(count) if bytes.len() + count > limit => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Ok(count) => bytes.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RealFs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_file_is_replaced_with_its_permissions_whatever_was_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("meta.json");
        std::fs::write(folder.path().join("meta.json.tmp"), "left by a crash, and longer").unwrap();
        for text in ["one", "2"] {
            let file = replace_file(&RealFs, &path, text.as_bytes(), 0o600).unwrap();
            assert_eq!(file.metadata().unwrap().size, text.len() as u64);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(replace_file(&RealFs, Path::new("/nowhere/x"), b"", 0o600).is_err());
    }
}
