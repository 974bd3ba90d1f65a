//! Disk queues that the configuration no longer has: what is in them is delivered by nobody.
//!
//! Where a queue was outside of its usual place is written down in the data directory before it is used, so that it is
//! known when its setting has changed.

use crate::commands::World;
use anyhow::{Context as _, Result};
use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use skidder_pipeline::{DiskQueueSettings, waiting_in_disk_queue};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// In the data directory: the paths of its queues, each with a NUL behind it.
const PATHS_FILE: &str = "diskqueue.paths";

/// Most bytes of that file that are read.
const PATHS_BYTES_MAX: usize = 1 << 20;

/// Of that file.
const FILE_MODE: u32 = 0o600;

/// Logs an error for each queue with events but that at `current`.
pub(super) fn tell(world: &World, data: &Path, current: Option<&Path>) {
    let usual = whole(&data.join(DiskQueueSettings::DIRECTORY));
    let current = current.map(whole);
    let known = match known(&*world.fs, data) {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!(%error, "cannot read where disk queues were: what is left in one is not known");
            Vec::new()
        }
    };
    for path in std::iter::once(usual).chain(known) {
        if current.as_ref() == Some(&path) {
            continue;
        }
        match waiting_in_disk_queue(&*world.fs, &path) {
            Ok(0) => {}
            Ok(events) => tracing::error!(
                events, path = %path.display(),
                "a disk queue holds events that nobody delivers: run once with this as `queue.disk.path`"
            ),
            Err(error) => tracing::debug!(
                %error, path = %path.display(), "a disk queue that is not used cannot be read"
            ),
        }
    }
}

/// Writes down where a queue is, unless that is known.
pub(super) fn remember(world: &World, data: &Path, path: &Path) -> Result<()> {
    let path = whole(path);
    if path == whole(&data.join(DiskQueueSettings::DIRECTORY)) {
        return Ok(());
    }
    let note = || {
        let mut known = known(&*world.fs, data)?;
        if known.contains(&path) {
            return Ok(());
        }
        known.push(path.clone());
        write(&*world.fs, data, &known)
    };
    let file = data.join(PATHS_FILE);
    note().with_context(|| format!("cannot write `{}`, where disk queues are", file.display()))
}

/// With the working directory of this run before it, which another run need not have.
fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn known(fs: &dyn Fs, data: &Path) -> io::Result<Vec<PathBuf>> {
    let file = match fs.open(&data.join(PATHS_FILE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let bytes = read_to_end(&*file, PATHS_BYTES_MAX)?;
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()))).collect())
}

fn write(fs: &dyn Fs, data: &Path, paths: &[PathBuf]) -> io::Result<()> {
    let (file, new) = (data.join(PATHS_FILE), data.join(format!("{PATHS_FILE}.new")));
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    match fs.remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let written = fs.open_write(&new, OpenMode::New, FILE_MODE)?;
    write_all_at(&*written, &bytes, 0)?;
    written.sync()?;
    fs.rename(&new, &file)
}
