//! The files of a registry directory: opening, replacing, setting aside. The steps and their order are in
//! `FORMAT.md`, "Recovery".

use crate::codec;
use crate::registry::Options;
use crate::snapshot::{self, Outcome};
use crate::store::{Store, StoreError, Tables, Trust};
use skidder_os::{Clock, File, Fs, OpenMode, Timestamp};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const STORE: &str = "registry.redb";
const STORE_NEW: &str = "registry.redb.new";
pub(crate) const SNAPSHOT: &str = "registry.snapshot";
const SNAPSHOT_NEW: &str = "registry.snapshot.new";
const LOCK: &str = "registry.lock";

const DIRECTORY_PERMISSIONS: u32 = skidder_os::PRIVATE_DIRECTORY;
const FILE_PERMISSIONS: u32 = 0o600;

/// Why a snapshot could not be loaded.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    /// It cannot be read.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// The store does not take it.
    #[error(transparent)]
    Store(#[from] redb::Error),
}

/// How damage was repaired.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) store: Store,
    /// New names of the damaged files.
    pub(crate) set_aside: Vec<PathBuf>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("read_only", &self.read_only).finish_non_exhaustive()
    }
}

/// The snapshot in memory.
pub(crate) struct SnapshotContent {
    pub(crate) entries: Vec<(String, Vec<u8>)>,
    pub(crate) written: Timestamp,
    /// Some of it cannot be read.
    pub(crate) damaged: bool,
}

/// The directory of a registry.
pub(crate) struct Files {
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    pub(crate) directory: PathBuf,
    options: Options,
}

impl Files {
    pub(crate) fn new(
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
        directory: &Path,
        options: Options,
    ) -> Self {
        Self { fs, clock, directory: directory.to_path_buf(), options }
    }

    pub(crate) fn store_path(&self) -> PathBuf {
        self.directory.join(STORE)
    }

    pub(crate) fn lock_path(&self) -> PathBuf {
        self.directory.join(LOCK)
    }

    /// Creates the directory with its parents.
    pub(crate) fn create_directory(&self) -> io::Result<()> {
        self.fs.create_dir_all(&self.directory, DIRECTORY_PERMISSIONS)
    }

    /// Makes the names that lead to the directory durable. The process that created them may have died before, so
    /// this is done for all of them, once, before the first store is made.
    pub(crate) fn sync_way(&self) -> io::Result<()> {
        let way = self.directory.ancestors().skip(1);
        for directory in way.filter(|path| !path.as_os_str().is_empty()) {
            match self.sync_dir(directory) {
                // What we may not read we did not create.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                result => result?,
            }
        }
        if self.directory.is_relative() { self.sync_dir(Path::new(".")) } else { Ok(()) }
    }

    /// Takes the lock of the directory; `None` if another process has it.
    pub(crate) fn lock(&self) -> io::Result<Option<Box<dyn File>>> {
        let file = self.fs.open_write(&self.lock_path(), OpenMode::Keep, FILE_PERMISSIONS)?;
        Ok(file.try_lock()?.then_some(file))
    }

    /// Removes what an interrupted step left behind.
    pub(crate) fn remove_leftovers(&self) -> io::Result<()> {
        for name in [STORE_NEW, SNAPSHOT_NEW] {
            match self.fs.remove_file(&self.directory.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn has_store(&self) -> io::Result<bool> {
        Ok(self.size(&self.store_path())?.is_some())
    }

    /// The size of the snapshot in bytes.
    pub(crate) fn snapshot_size(&self) -> io::Result<Option<u64>> {
        self.size(&self.directory.join(SNAPSHOT))
    }

    /// Opens the store that is there.
    pub(crate) fn open_store(&self, trust: Trust) -> Result<Store, StoreError> {
        let path = self.store_path();
        let file = match trust {
            Trust::Verified => self.fs.open_write(&path, OpenMode::Keep, FILE_PERMISSIONS),
            Trust::ReadOnly | Trust::Salvage => self.fs.open(&path),
        };
        // A file that cannot be opened is not damaged.
        let file = file.map_err(StoreError::writing)?;
        // The store takes an empty file for a new one; here it is one that lost its content.
        if file.metadata().map_err(StoreError::reading)?.size == 0 {
            return Err(StoreError::Damaged("the file is empty".to_owned()));
        }
        // Salvage goes over everything once, and its store is leaked.
        let cache_bytes = if trust == Trust::Salvage { 0 } else { self.options.cache_bytes };
        Store::open(file, cache_bytes, trust)
    }

    /// The file of the store, for reading only.
    pub(crate) fn open_raw_store(&self) -> io::Result<Box<dyn File>> {
        self.fs.open(&self.store_path())
    }

    /// The content of the snapshot; `None` if there is none.
    pub(crate) fn read_snapshot(&self) -> io::Result<Option<SnapshotContent>> {
        let file = match self.fs.open(&self.directory.join(SNAPSHOT)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let written = file.metadata()?.modified;
        let mut entries = Vec::new();
        let outcome = snapshot::read(&*file, |key, value| {
            entries.push((key.to_owned(), value.to_owned()));
            Ok::<(), io::Error>(())
        })?;
        Ok(Some(SnapshotContent { entries, written, damaged: outcome == Outcome::Damaged }))
    }

    /// Puts an empty store in place.
    pub(crate) fn create_store(&self) -> Result<Store, StoreError> {
        self.replace_store(|_| Ok(()))
    }

    /// Copies the store into a new file. For a store whose last sync failed: its content is right when
    /// it is read now, but may not be on the disk, so the file must not be built upon.
    pub(crate) fn rewrite_store(&self) -> Result<Store, StoreError> {
        let old = self.open_store(Trust::ReadOnly)?;
        let mut old_failed = None;
        let new = self.replace_store(|new| {
            new.write(|mut tables| {
                let mut result = Ok(());
                let entries = old.each_entry(|key, value| {
                    if result.is_ok() {
                        result = tables.put_entry(key, value);
                    }
                });
                let checkpoints = old.each_checkpoint(|key, value| {
                    if result.is_ok() {
                        result = tables.put_checkpoint(key, value);
                    }
                });
                old_failed = entries.and(checkpoints).err();
                // Any error ends the transaction; the caller gets the true one.
                if old_failed.is_some() { Err(redb::Error::PreviousIo) } else { result }
            })
        });
        match old_failed {
            Some(error) => Err(error),
            None => new,
        }
    }

    /// Sets a damaged store aside and puts one in its place with the entries of the snapshot and those
    /// that can still be read, the newer of the two for each key.
    pub(crate) fn recover(&self) -> Result<Recovery, StoreError> {
        let had_store = self.has_store().map_err(StoreError::reading)?;
        let mut snapshot = Ok(Outcome::Complete);
        let built = self.build_store(|new| {
            new.write(|mut tables| {
                match self.load_snapshot(&mut tables) {
                    Ok(outcome) => snapshot = Ok(outcome),
                    Err(LoadError::Store(error)) => return Err(error),
                    Err(LoadError::Disk(error)) => {
                        snapshot = Err(error);
                        return Err(redb::Error::PreviousIo);
                    }
                }
                if had_store { self.salvage(&mut tables) } else { Ok(()) }
            })
        });
        let snapshot_damaged = snapshot.map_err(StoreError::reading)? == Outcome::Damaged;
        let store = built?;
        let mut set_aside = Vec::new();
        let damaged = [(STORE, had_store), (SNAPSHOT, snapshot_damaged)];
        for (name, _) in damaged.iter().filter(|(_, damaged)| *damaged) {
            set_aside.push(self.set_aside(name).map_err(StoreError::writing)?);
        }
        self.install_store().map_err(StoreError::writing)?;
        Ok(Recovery { store, set_aside })
    }

    /// Loads the snapshot, if there is one.
    fn load_snapshot(&self, tables: &mut Tables<'_>) -> Result<Outcome, LoadError> {
        let file = match self.fs.open(&self.directory.join(SNAPSHOT)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Outcome::Complete),
            Err(error) => return Err(error.into()),
        };
        snapshot::read(&*file, |key, value| Ok(tables.put_entry(key.as_bytes(), value)?))
    }

    /// Adds what can be read of the damaged store. Its failure is no failure: it is damaged.
    fn salvage(&self, tables: &mut Tables<'_>) -> Result<(), redb::Error> {
        let old = match self.open_store(Trust::Salvage) {
            Ok(old) => old,
            Err(error) => {
                tracing::warn!(%error, "nothing can be read from the damaged registry");
                return Ok(());
            }
        };
        let mut result = Ok(());
        let entries = old.each_entry(|key, value| {
            if result.is_ok()
                && let Ok(name) = std::str::from_utf8(key)
            {
                result = salvage_entry(tables, name, value);
            }
        });
        let checkpoints = old.each_checkpoint(|key, value| {
            let intact = std::str::from_utf8(key).is_ok_and(|name| codec::is_intact(name, value));
            if result.is_ok() && intact {
                result = tables.put_checkpoint(key, value);
            }
        });
        if let Err(error) = entries.and(checkpoints) {
            tracing::warn!(%error, "only a part of the damaged registry can be read");
        }
        result
    }

    fn replace_store(
        &self,
        fill: impl FnOnce(&Store) -> Result<(), StoreError>,
    ) -> Result<Store, StoreError> {
        let store = self.build_store(fill)?;
        self.install_store().map_err(StoreError::writing)?;
        Ok(store)
    }

    /// Builds a store beside the one that is there; its data is durable, its name is not.
    fn build_store(
        &self,
        fill: impl FnOnce(&Store) -> Result<(), StoreError>,
    ) -> Result<Store, StoreError> {
        let path = self.directory.join(STORE_NEW);
        let file = self.fs.open_write(&path, OpenMode::Truncate, FILE_PERMISSIONS);
        let built = Store::open(
            file.map_err(StoreError::writing)?,
            self.options.cache_bytes,
            Trust::Verified,
        )
        .and_then(|store| fill(&store).map(|()| store));
        if built.is_err() {
            self.discard(&path);
        }
        built
    }

    /// Removes a file that was not finished, so that it takes no space of a disk that may be full.
    fn discard(&self, path: &Path) {
        if let Err(error) = self.fs.remove_file(path) {
            // The next start tries again.
            tracing::warn!(path = %path.display(), %error, "cannot remove an unfinished file");
        }
    }

    /// Gives the new store its name.
    fn install_store(&self) -> io::Result<()> {
        self.fs.rename(&self.directory.join(STORE_NEW), &self.store_path())?;
        self.sync_dir(&self.directory)
    }

    /// Writes all entries to the snapshot; returns its size in bytes.
    pub(crate) fn write_snapshot(&self, store: &Store) -> Result<u64, StoreError> {
        let path = self.directory.join(SNAPSHOT_NEW);
        let file = self.fs.open_write(&path, OpenMode::Truncate, FILE_PERMISSIONS);
        let size = fill_snapshot(&*file.map_err(StoreError::writing)?, store)
            .inspect_err(|_| self.discard(&path))?;
        self.fs.rename(&path, &self.directory.join(SNAPSHOT)).map_err(StoreError::writing)?;
        self.sync_dir(&self.directory).map_err(StoreError::writing)?;
        Ok(size)
    }

    /// Renames a damaged file so that a person can look at it.
    fn set_aside(&self, name: &str) -> io::Result<PathBuf> {
        let now = self.clock.wall().seconds();
        let mut number = 0;
        loop {
            let mut aside = OsString::from(format!("{name}.damaged-{now}"));
            if number > 0 {
                aside.push(format!("-{number}"));
            }
            let aside = self.directory.join(aside);
            if self.size(&aside)?.is_none() {
                self.fs.rename(&self.directory.join(name), &aside)?;
                return Ok(aside);
            }
            number += 1;
        }
    }

    fn sync_dir(&self, directory: &Path) -> io::Result<()> {
        loop {
            match self.fs.sync_dir(directory) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    /// The size of what is at `path`; `None` if there is nothing.
    fn size(&self, path: &Path) -> io::Result<Option<u64>> {
        match self.fs.metadata(path) {
            Ok(metadata) => Ok(Some(metadata.size)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn fill_snapshot(file: &dyn File, store: &Store) -> Result<u64, StoreError> {
    let mut writer = snapshot::Writer::new(file);
    let mut result = Ok(());
    store.each_entry(|key, value| {
        if result.is_ok() {
            result = writer.add(key, value);
        }
    })?;
    result.and_then(|()| writer.finish()).map_err(StoreError::writing)
}

/// Takes an entry of a damaged store unless the snapshot's is newer.
fn salvage_entry(tables: &mut Tables<'_>, key: &str, value: &[u8]) -> Result<(), redb::Error> {
    let Ok(salvaged) = codec::decode_entry(key, value) else { return Ok(()) };
    let known = tables.entry(key.as_bytes())?;
    let known = known.and_then(|value| codec::decode_entry(key, &value).ok());
    if known.is_none_or(|known| known.updated() <= salvaged.updated()) {
        tables.put_entry(key.as_bytes(), value)?;
    }
    Ok(())
}
