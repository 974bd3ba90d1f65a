//! Writing the store: a checkpoint with all entries, and an empty log.

use super::entry::FilebeatEntry;
use super::memlog::{self, LoadError, checkpoints};
use super::{ACTIVE, KEY, LOG, META, VERSION};
use serde_json::json;
use skidder_os::{Fs, OpenMode, write_all_at};
use std::io;
use std::path::{Path, PathBuf};

const DIRECTORY_PERMISSIONS: u32 = 0o750;
const FILE_PERMISSIONS: u32 = 0o600;
const CHECKPOINT_NEW: &str = "checkpoint.new";

/// Why a registry was not written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Say that it may be replaced, or choose another directory.
    #[error("there is a registry of Filebeat in `{}` already", .directory.display())]
    Exists {
        /// The directory.
        directory: PathBuf,
    },
    /// What is there cannot be replaced safely.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Mend the disk or the permissions. What was there before still is, or the new one is.
    #[error("cannot write the registry in `{}`", .directory.display())]
    Disk {
        /// The directory.
        directory: PathBuf,
        /// What failed.
        source: io::Error,
    },
}

/// Writes a store with these entries into `directory`, which is made with its parents. With `replace`, one
/// that is there is replaced in the way in which Filebeat writes a checkpoint: an interruption leaves the
/// old one or the new one.
pub fn write(
    fs: &dyn Fs,
    directory: &Path,
    entries: &[FilebeatEntry],
    replace: bool,
) -> Result<(), WriteError> {
    let disk = |source| WriteError::Disk { directory: directory.to_owned(), source };
    let exists = memlog::holds_registry(fs, directory).map_err(disk)?;
    if exists && !replace {
        return Err(WriteError::Exists { directory: directory.to_owned() });
    }
    let newest = if exists { memlog::load(fs, directory)?.newest } else { 0 };
    let old = checkpoints(fs, directory).map_err(disk)?;
    fs.create_dir_all(directory, DIRECTORY_PERMISSIONS).map_err(disk)?;
    put(fs, directory, newest.wrapping_add(1), &old, entries).map_err(disk)
}

fn put(
    fs: &dyn Fs,
    directory: &Path,
    number: u64,
    old: &[u64],
    entries: &[FilebeatEntry],
) -> io::Result<()> {
    let mut text = String::from("[");
    for (at, entry) in entries.iter().enumerate() {
        let mut value = entry.value();
        value[KEY] = entry.key.as_str().into();
        text.push_str(if at == 0 { "\n" } else { ",\n" });
        text.push_str(&value.to_string());
    }
    text.push_str("\n]");
    let path = directory.join(format!("{number}.json"));
    put_file(fs, &directory.join(META), &json!({"version": VERSION}).to_string())?;
    put_file(fs, &directory.join(CHECKPOINT_NEW), &text)?;
    fs.rename(&directory.join(CHECKPOINT_NEW), &path)?;
    fs.sync_dir(directory)?;
    // The rest of the log is older than the checkpoint, so it does not matter when it goes.
    put_file(fs, &directory.join(LOG), "")?;
    put_file(fs, &directory.join(ACTIVE), &path.to_string_lossy())?;
    for number in old {
        fs.remove_file(&directory.join(format!("{number}.json")))?;
    }
    fs.sync_dir(directory)
}

fn put_file(fs: &dyn Fs, path: &Path, text: &str) -> io::Result<()> {
    let file = fs.open_write(path, OpenMode::Truncate, FILE_PERMISSIONS)?;
    write_all_at(&*file, text.as_bytes(), 0)?;
    file.sync()
}
