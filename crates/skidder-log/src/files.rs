//! The files of the log: `NAME-YYYYMMDD.ndjson`, then `-1`, `-2`, …, as Filebeat names them. The
//! newest is written to, nothing is ever renamed.
//!
//! A file that another program moves or removes is created again within [`LOOK_EVERY`], so that
//! logrotate needs no signal.

use crate::calendar;
use jiff::Zoned;
use jiff::tz::TimeZone;
use skidder_os::{DatedName, Timestamp, directory_permissions};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often to check that the file is still the one at its path.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Attempts to find a free name.
const NAMES_MAX: u32 = 1000;

/// `logging.files`, `logging.event_data.files`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesConfig {
    /// `path`: the directory; made if it is missing.
    pub path: PathBuf,
    /// `name`: how the names of the files begin.
    pub name: String,
    /// `rotateeverybytes`: a file does not exceed it, unless by one line.
    pub bytes_max: u64,
    /// `keepfiles`: files besides the one that is written.
    pub kept: usize,
    /// `permissions` of new files.
    pub permissions: u32,
    /// `interval`: zero for never.
    pub interval: Duration,
    /// `rotateonstartup`: begin a new file rather than go on with the last.
    pub rotate_on_startup: bool,
    /// `redirect_stderr`: stderr of the process goes to the file too.
    pub redirect_stderr: bool,
}

/// The files, and the one that is written.
#[derive(Debug)]
pub(crate) struct Files {
    config: FilesConfig,
    zone: TimeZone,
    active: Option<Active>,
    started: bool,
    /// Old files that could not be removed, not reported yet.
    stuck: Vec<(PathBuf, io::Error)>,
}

#[derive(Debug)]
struct Active {
    stamp: DatedName,
    path: PathBuf,
    file: File,
    /// Device and inode.
    identity: (u64, u64),
    size: u64,
    /// When it was created, for the interval.
    begun: Zoned,
    /// When it was last checked.
    looked: Timestamp,
}

impl Files {
    /// Touches no file yet. Dates are those of `zone`.
    pub(crate) fn new(config: FilesConfig, zone: TimeZone) -> Self {
        Self { config, zone, active: None, started: false, stuck: Vec::new() }
    }

    /// The directory and the beginning of names, to show where the log is.
    pub(crate) fn place(&self) -> PathBuf {
        self.config.path.join(&self.config.name)
    }

    /// The file that is written.
    #[cfg(test)]
    pub(crate) fn path(&self) -> Option<&Path> {
        self.active.as_ref().map(|active| active.path.as_path())
    }

    /// Writes whole lines, all into one file. After an error none of them is there, not even in part.
    pub(crate) fn write(&mut self, text: &[u8], now: Timestamp) -> io::Result<()> {
        self.look(now)?;
        if let Some(active) = &self.active {
            let time = calendar::at(now, &self.zone);
            let is_full =
                active.size > 0 && active.size + text.len() as u64 > self.config.bytes_max;
            if is_full || calendar::differ(self.config.interval, &active.begun, &time) {
                let stamp = active.stamp;
                self.active = Some(self.create(Some(stamp), now)?);
                self.purge();
            }
        } else {
            self.begin_file(now)?;
        }
        let shares = self.config.redirect_stderr;
        let Some(active) = &mut self.active else { return Ok(()) };
        let written = active.file.write_all(text);
        if written.is_err() && !shares {
            // Removes half a line. If that fails too, the rest of the line follows later.
            drop(active.file.set_len(active.size));
        }
        written?;
        active.size += text.len() as u64;
        Ok(())
    }

    /// With `redirect_stderr`: opens the file before there is a line, so that nothing is said on
    /// stderr before it goes there.
    pub(crate) fn redirect(&mut self, now: Timestamp) -> io::Result<()> {
        if self.config.redirect_stderr && self.active.is_none() {
            self.begin_file(now)?;
        }
        Ok(())
    }

    fn begin_file(&mut self, now: Timestamp) -> io::Result<()> {
        self.active = Some(self.open(now)?);
        self.started = true;
        // A program that is started often has files too.
        self.purge();
        Ok(())
    }

    /// Bytes that go into the file as it is.
    pub(crate) fn room(&self) -> u64 {
        let size = self.active.as_ref().map_or(0, |active| active.size);
        self.config.bytes_max.saturating_sub(size)
    }

    /// Old files that could not be removed since the last call.
    pub(crate) fn take_stuck(&mut self) -> Vec<(PathBuf, io::Error)> {
        std::mem::take(&mut self.stuck)
    }

    /// Makes sure that the file is the one at its path, or lets it go.
    fn look(&mut self, now: Timestamp) -> io::Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        // A clock that is set back is no reason to wait.
        if now >= active.looked && now.since(active.looked) < LOOK_EVERY {
            return Ok(());
        }
        active.looked = now;
        match std::fs::symlink_metadata(&active.path) {
            Ok(found) if (found.dev(), found.ino()) == active.identity => {
                // Another program may have emptied it, or written to it.
                active.size = found.len();
            }
            Ok(found) if found.is_file() => {
                let (path, stamp) = (active.path.clone(), active.stamp);
                self.active = Some(self.append(path, stamp, now)?);
            }
            Ok(_) => {
                let stamp = active.stamp;
                self.active = Some(self.create(Some(stamp), now)?);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (path, stamp) = (active.path.clone(), active.stamp);
                self.make_directory()?;
                let file = self.create_file(&path)?;
                self.active = Some(self.begin(file, path, stamp, now)?);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn open(&mut self, now: Timestamp) -> io::Result<Active> {
        self.make_directory()?;
        let newest = self.stamps()?.last().copied();
        if let Some(stamp) = newest
            && (self.started || !self.config.rotate_on_startup)
        {
            let path = self.path_of(stamp);
            // A link could lead our lines to any file of the machine.
            if std::fs::symlink_metadata(&path)?.is_file() {
                let active = self.append(path, stamp, now)?;
                let time = calendar::at(now, &self.zone);
                let is_old = calendar::differ(self.config.interval, &active.begun, &time);
                if !is_old && active.size < self.config.bytes_max {
                    return Ok(active);
                }
            }
        }
        self.create(newest, now)
    }

    /// Goes on with a file that is there.
    fn append(&self, path: PathBuf, stamp: DatedName, now: Timestamp) -> io::Result<Active> {
        let mut file = self.options().open(&path)?;
        let size = file.metadata()?.len();
        if size > 0 {
            let mut last = [0];
            file.read_exact_at(&mut last, size - 1)?;
            if last != *b"\n" {
                // A crash left half a line behind.
                file.write_all(b"\n")?;
            }
        }
        self.begin(file, path, stamp, now)
    }

    /// A new file behind `newest`.
    fn create(&self, newest: Option<DatedName>, now: Timestamp) -> io::Result<Active> {
        self.make_directory()?;
        let today = calendar::date_number(&calendar::at(now, &self.zone));
        let mut stamp = DatedName::behind(newest, today);
        for _ in 0..NAMES_MAX {
            let path = self.path_of(stamp);
            match self.create_file(&path) {
                Ok(file) => return self.begin(file, path, stamp, now),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => stamp.index += 1,
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn create_file(&self, path: &Path) -> io::Result<File> {
        let file = self.options().create_new(true).open(path)?;
        // As configured, whatever the umask.
        file.set_permissions(Permissions::from_mode(self.config.permissions))?;
        Ok(file)
    }

    fn options(&self) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(true).append(true).mode(self.config.permissions);
        options.custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits() as i32
        );
        options
    }

    fn begin(
        &self,
        file: File,
        path: PathBuf,
        stamp: DatedName,
        now: Timestamp,
    ) -> io::Result<Active> {
        let metadata = file.metadata()?;
        let size = metadata.len();
        let modified = metadata.mtime().saturating_mul(1_000_000_000);
        let begun = if size > 0 { Timestamp(modified) } else { now };
        if self.config.redirect_stderr {
            rustix::stdio::dup2_stderr(&file)?;
        }
        Ok(Active {
            stamp,
            path,
            identity: (metadata.dev(), metadata.ino()),
            file,
            size,
            begun: calendar::at(begun, &self.zone),
            looked: now,
        })
    }

    fn make_directory(&self) -> io::Result<()> {
        let mode = directory_permissions(self.config.permissions);
        DirBuilder::new().recursive(true).mode(mode).create(&self.config.path)
    }

    /// Removes the oldest files beyond `keepfiles`.
    fn purge(&mut self) {
        let active = self.active.as_ref().map(|active| active.stamp);
        let old = self.stamps().map(|mut stamps| {
            stamps.retain(|stamp| Some(*stamp) != active);
            stamps.truncate(stamps.len().saturating_sub(self.config.kept));
            stamps
        });
        match old {
            Ok(old) => {
                for stamp in old {
                    let path = self.path_of(stamp);
                    match std::fs::remove_file(&path) {
                        Err(error) if error.kind() != io::ErrorKind::NotFound => {
                            self.stuck.push((path, error));
                        }
                        _ => {}
                    }
                }
            }
            Err(error) => self.stuck.push((self.config.path.clone(), error)),
        }
    }

    /// The files that are there, oldest first.
    fn stamps(&self) -> io::Result<Vec<DatedName>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(&self.config.path)? {
            found.extend(
                entry?
                    .file_name()
                    .to_str()
                    .and_then(|name| DatedName::parse(&self.config.name, name)),
            );
        }
        found.sort_unstable();
        Ok(found)
    }

    fn path_of(&self, stamp: DatedName) -> PathBuf {
        self.config.path.join(stamp.of(&self.config.name))
    }
}

#[cfg(test)]
mod tests;
