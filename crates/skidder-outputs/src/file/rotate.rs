//! Rotation as Filebeat's file output does it: `<filename>-YYYYMMDD.ndjson`, then `-1`, `-2`, ….
//!
//! The newest name is the one written to; nothing is ever renamed. Dates are in UTC. See libbeat's
//! `common/file/rotator.go`.

use super::FileConfig;
use crate::lines::Lines;
use skidder_event::DateParts;
use skidder_os::{DatedName, File, FileKind, Fs, OpenMode, Timestamp};
use skidder_os::{directory_permissions, read_exact_at, write_all_at};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Attempts to find a name that is still free.
const NAMES_MAX: u32 = 1000;

/// The files of the output, and the one that is written.
pub(super) struct Rotation {
    fs: Arc<dyn Fs>,
    config: FileConfig,
    active: Option<Active>,
    started: bool,
}

struct Active {
    stamp: DatedName,
    file: Box<dyn File>,
    /// Bytes of whole lines in it: the next line goes here, whatever a failed write left behind.
    size: u64,
}

impl Rotation {
    pub(super) fn new(fs: Arc<dyn Fs>, config: FileConfig) -> Self {
        Self { fs, config, active: None, started: false }
    }

    /// Where its files are, for people.
    pub(super) fn place(&self) -> String {
        self.config.path.display().to_string()
    }

    /// Writes the rest of `lines`, into as many files as it takes. After an error no line is there by
    /// half, and the next call goes on with the first one that is not there.
    pub(super) fn write(&mut self, lines: &mut Lines, now: Timestamp) -> io::Result<()> {
        let size_max = self.config.rotate_every_bytes;
        while !lines.rest().is_empty() {
            self.open(now)?;
            let Some(active) = &mut self.active else { continue };
            let text = lines.next_lines(size_max.saturating_sub(active.size));
            if !text.is_empty() {
                if let Err(error) = write_all_at(&*active.file, text, active.size) {
                    // If this fails too the next attempt overwrites the file.
                    if let Err(second) = active.file.set_len(active.size) {
                        tracing::debug!(error = %second, "cannot cut off a line written by half");
                    }
                    return Err(error);
                }
                active.size += text.len() as u64;
                let written = text.len();
                lines.advance(written);
            } else if active.size > 0 {
                self.rotate(now)?;
            } else {
                lines.refuse_next(format!(
                    "the line is longer than `rotate_every_kb` ({} KiB)",
                    size_max >> 10
                ));
            }
        }
        Ok(())
    }

    /// Syncs what was written.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        match self.active.take() {
            Some(active) => active.file.sync(),
            None => Ok(()),
        }
    }

    fn open(&mut self, now: Timestamp) -> io::Result<()> {
        if self.active.is_some() {
            return Ok(());
        }
        let path = &self.config.path;
        let made = self.fs.create_dir_all(path, directory_permissions(self.config.permissions));
        made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                let obstacle = super::standing(&*self.fs, path).err();
                obstacle.map_or(error, io::Error::other)
            }
            _ => error,
        })?;
        let newest = self.stamps()?.last().copied();
        if !self.started
            && let Some(stamp) = newest
            && let Some(active) = self.continue_file(stamp)?
        {
            self.active = Some(active);
        } else {
            self.active = Some(self.create(newest, now)?);
            // A program that is started often has files too.
            self.purge()?;
        }
        self.started = true;
        Ok(())
    }

    /// The last file of an earlier run, if it is one to go on with.
    fn continue_file(&self, stamp: DatedName) -> io::Result<Option<Active>> {
        let path = self.path(stamp);
        let metadata = self.fs.symlink_metadata(&path)?;
        // A link could lead our writes to any file of the machine.
        if metadata.kind != FileKind::Regular {
            tracing::warn!(path = %path.display(), "not a regular file; a new one is begun");
            return Ok(None);
        }
        if self.config.rotate_on_startup && metadata.size > 0 {
            return Ok(None);
        }
        let file = self.fs.open_write(&path, OpenMode::Keep, self.config.permissions)?;
        let opened = file.metadata()?;
        // Something else was put there meanwhile.
        if (opened.device, opened.inode) != (metadata.device, metadata.inode) {
            return Ok(None);
        }
        if opened.size > 0 {
            let mut last = [0];
            read_exact_at(&*file, &mut last, opened.size - 1)?;
            // A crash left half a line behind: it stays as it is.
            if last != *b"\n" {
                return Ok(None);
            }
        }
        Ok(Some(Active { stamp, file, size: opened.size }))
    }

    /// A new file behind `newest`.
    fn create(&self, newest: Option<DatedName>, now: Timestamp) -> io::Result<Active> {
        let today = date(now);
        let mut stamp = DatedName::behind(newest, today);
        for _ in 0..NAMES_MAX {
            let path = self.path(stamp);
            match self.fs.open_write(&path, OpenMode::New, self.config.permissions) {
                Ok(file) => {
                    self.fs.sync_dir(&self.config.path)?;
                    return Ok(Active { stamp, file, size: 0 });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stamp.index += 1,
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn rotate(&mut self, now: Timestamp) -> io::Result<()> {
        let Some(active) = &self.active else { return Ok(()) };
        active.file.sync()?;
        let next = self.create(Some(active.stamp), now)?;
        self.active = Some(next);
        self.purge()
    }

    /// Removes the oldest files beyond `number_of_files`.
    fn purge(&self) -> io::Result<()> {
        let stamps = self.stamps()?;
        let kept = self.config.number_of_files + 1;
        for &stamp in &stamps[..stamps.len().saturating_sub(kept)] {
            let path = self.path(stamp);
            match self.fs.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove an old file");
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The files that are there, oldest first.
    fn stamps(&self) -> io::Result<Vec<DatedName>> {
        let mut found = Vec::new();
        self.fs.read_dir(&self.config.path, &mut |entry| {
            let name = entry.name.to_str();
            found.extend(name.and_then(|name| DatedName::parse(&self.config.filename, name)));
        })?;
        found.sort_unstable();
        Ok(found)
    }

    fn path(&self, stamp: DatedName) -> PathBuf {
        self.config.path.join(stamp.of(&self.config.filename))
    }
}

fn date(now: Timestamp) -> u32 {
    let day = DateParts::utc(now.0);
    u32::try_from(day.year).unwrap_or(0) * 10_000 + u32::from(day.month) * 100 + u32::from(day.day)
}

#[cfg(test)]
mod tests;
