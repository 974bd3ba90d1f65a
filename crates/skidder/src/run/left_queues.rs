//! Disk queues that the configuration no longer has, and those that are gone: their events are not delivered.
//!
//! The data directory has the path of each queue while it may hold events, so that a run notices when its setting has
//! changed, or when it was deleted.

use crate::system::System;
use anyhow::{Context as _, Result};
use skidder_observe::grouped;
use skidder_os::{Fs, OpenMode, read_to_end, write_all_at};
use skidder_pipeline::{DiskQueueSettings, waiting_in_disk_queue};
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// In the data directory: the paths of its queues, each followed by a NUL.
const PATHS_FILE: &str = "diskqueue.paths";

/// Most bytes of that file that are read.
const PATHS_BYTES_MAX: usize = 1 << 20;

/// Of that file.
const FILE_MODE: u32 = 0o600;

/// Old queues of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftQueues {
    /// Events in queues that the configuration no longer has.
    pub(crate) events: u64,
    /// A queue that may have held events is gone.
    pub(crate) gone: bool,
    /// A line about each, for the end of a run.
    pub(super) lines: Vec<String>,
}

/// Logs an error for each queue with events but that at `current`, and for each that is gone.
pub(super) fn look(system: &System, data: &Path, current: Option<&Path>) -> LeftQueues {
    let usual = whole(&data.join(DiskQueueSettings::DIRECTORY));
    let current = current.map(whole);
    let known = match known(&*system.fs, data) {
        Ok(known) => known,
        Err(error) => {
            tracing::warn!(%error, "cannot read where disk queues were: what is left in one is not known");
            Vec::new()
        }
    };
    let unknown_usual = (!known.contains(&usual)).then_some(usual);
    let mut left = LeftQueues::default();
    for (path, is_known) in
        known.into_iter().map(|path| (path, true)).chain(unknown_usual.map(|path| (path, false)))
    {
        let is_current = current.as_ref() == Some(&path);
        let shown = path.display();
        match waiting_in_disk_queue(&*system.fs, &path) {
            Ok(Some(_)) if is_current => {}
            Ok(Some(events @ 1..)) => {
                left.events += events;
                left.lines.push(format!(
                    "! {} events are left in the disk queue `{shown}`, which is not configured any more: run once with \
                     this as `queue.disk.path`\n",
                    grouped(events)
                ));
                tracing::error!(
                    events, path = %shown,
                    "a disk queue holds events that nobody delivers: run once with this as `queue.disk.path`"
                );
            }
            Ok(None) if is_known => {
                left.gone = true;
                left.lines.push(format!(
                    "! the disk queue `{shown}` is gone with what it held: read the files again with `skidder registry \
                     forget`, or mount its disk\n"
                ));
                tracing::error!(
                    path = %shown,
                    "a disk queue is gone, and what it held is lost: their files can be read again with `skidder \
                     registry forget`. If its disk is only not mounted, mount it and run with this as `queue.disk.path`"
                );
                forget_or_log(&*system.fs, data, &path);
            }
            Ok(Some(0)) if is_known => forget_or_log(&*system.fs, data, &path),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, path = %shown, "a disk queue that is not used cannot be read");
            }
        }
    }
    left
}

/// A queue whose path is stored as long as it may hold events.
pub(super) struct UsedQueue {
    fs: Arc<dyn Fs>,
    data: PathBuf,
    path: PathBuf,
}

impl UsedQueue {
    /// The line for the end of a run in which so many of its events were lost.
    pub(super) fn loss(&self, events: u64) -> String {
        format!(
            "! {} events were lost in the disk queue `{}`, which was cut off or damaged: read their files again with \
             `skidder registry forget`\n",
            grouped(events),
            self.path.display()
        )
    }

    /// The line for the end of a run whose queue had lost its state.
    pub(super) fn lost_state(&self) -> String {
        format!(
            "! the disk queue `{}` had no `queue.state`: what was in it was delivered, some of it perhaps again; events may be \
             missing at its beginning or end: read their files again with `skidder registry forget`\n",
            self.path.display()
        )
    }

    /// Stores the path of an opened queue, unless it is known.
    pub(super) fn new(system: &System, data: &Path, path: &Path) -> Result<Self> {
        let used = Self { fs: Arc::clone(&system.fs), data: data.to_path_buf(), path: whole(path) };
        let file = data.join(PATHS_FILE);
        used.note()
            .with_context(|| format!("cannot write `{}`, where disk queues are", file.display()))?;
        Ok(used)
    }

    fn note(&self) -> io::Result<()> {
        let mut known = known(&*self.fs, &self.data)?;
        if known.contains(&self.path) {
            return Ok(());
        }
        known.push(self.path.clone());
        write(&*self.fs, &self.data, &known)
    }

    /// All that was in it has its verdict, and nothing more is put in: it may be deleted.
    pub(super) fn is_empty_now(&self) {
        forget_or_log(&*self.fs, &self.data, &self.path);
    }
}

/// Removes a path from the stored ones.
fn forget_or_log(fs: &dyn Fs, data: &Path, path: &Path) {
    let forget = || {
        let mut known = known(fs, data)?;
        known.retain(|known| known != path);
        write(fs, data, &known)
    };
    if let Err(error) = forget() {
        // The next start looks at it again.
        tracing::warn!(%error, path = %path.display(), "cannot write down that a disk queue is empty");
    }
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
