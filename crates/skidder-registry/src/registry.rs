//! The registry as the rest of the program uses it.

use crate::backend::During;
use crate::codec;
use crate::distrust::Distrust;
use crate::entry::{CURSOR_BYTES_MAX, Change, Entry, KEY_BYTES_MAX};
use crate::files::{Files, Recovery};
use crate::store::{Store, StoreError, Trust};
use skidder_os::{Clock, Fs};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Snapshots up to this size, in bytes, are written at every close.
const SNAPSHOT_CHEAP: u64 = 16 << 20;

/// Sizes, all of them upper bounds.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Memory for pages of the store, in bytes. More makes random reads of a large registry faster.
    pub cache_bytes: usize,
    /// A snapshot is written when so many bytes of entries have changed since the last one, or as many
    /// as it has, whichever is more. More writes less and repeats more lines after damage.
    pub snapshot_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { cache_bytes: 4 << 20, snapshot_bytes: 4 << 20 }
    }
}

/// The state of the registry when it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opened {
    /// There was none; it is empty.
    New,
    /// It was closed properly.
    Clean,
    /// The program or the machine had died; everything committed is there.
    Repaired,
    /// It was damaged, or missing beside its snapshot. It continues from the snapshot and from what could
    /// be read; cursors may be older than the last commit and entries may be missing.
    Damaged {
        /// Where the damaged files are now.
        set_aside: Vec<PathBuf>,
        /// Number of entries that could be recovered; with 0 everything is read from the start.
        recovered: u64,
    },
}

/// Why the registry cannot be opened. None of these is a damaged file.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Stop that process, or use another directory.
    #[error("another process uses the registry (it holds the lock on `{}`)", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// Use the newer program, or another directory.
    #[error("the registry `{}` has format {format}, which is newer than this program", .path.display())]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its format.
        format: u32,
    },
    /// Mend the disk or the permissions.
    #[error("cannot open the registry in `{}`", .directory.display())]
    Disk {
        /// The directory of the registry.
        directory: PathBuf,
        /// What failed.
        source: io::Error,
    },
}

/// Why an entry cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Try again later: the registry opens its file anew by itself.
    #[error("cannot read the registry in `{}`", .directory.display())]
    Retry {
        /// The directory of the registry.
        directory: PathBuf,
        /// What failed.
        source: io::Error,
    },
}

/// Why changes are not durable.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Try again later, with the same or newer changes. The state is the old one or the new one, never
    /// a mixture.
    #[error("cannot write the registry in `{}`", .directory.display())]
    Retry {
        /// The directory of the registry.
        directory: PathBuf,
        /// What failed.
        source: io::Error,
    },
    /// Never try these again: a key is empty or longer than [`KEY_BYTES_MAX`]. Nothing was changed.
    #[error("a key of {length} bytes cannot be stored; 1 to {KEY_BYTES_MAX} can")]
    Refused {
        /// The key's length.
        length: usize,
    },
    /// Never try these again: the cursor of an input is longer than [`CURSOR_BYTES_MAX`]. Nothing was changed.
    #[error("the cursor of `{key}` has {length} bytes; at most {CURSOR_BYTES_MAX} can be stored")]
    LongCursor {
        /// Whose cursor it is.
        key: Arc<str>,
        /// The cursor's length.
        length: usize,
    },
}

/// Entries and checkpoints by key, on disk. Calls from several threads wait for each other.
pub struct Registry {
    inner: Mutex<Inner>,
}

struct Inner {
    files: Files,
    /// `None` after a failure, until it is opened again.
    store: Option<Store>,
    /// Bytes of entries changed since the last snapshot.
    changed: u64,
    /// Size of the last snapshot.
    snapshot: u64,
    snapshot_bytes: u64,
    /// Content of the file that may not be on the disk. Last, because it has the lock, which must be released last.
    distrust: Distrust,
}

impl Registry {
    /// Opens the registry in `directory`, or creates it with the directory.
    pub fn open(
        fs: Arc<dyn Fs>,
        clock: Arc<dyn Clock>,
        directory: &Path,
        options: Options,
    ) -> Result<(Self, Opened), OpenError> {
        let files = Files::new(fs, clock, directory, options);
        let disk = |source| OpenError::Disk { directory: directory.to_path_buf(), source };
        files.create_directory().map_err(disk)?;
        let Some(lock) = files.lock().map_err(disk)? else {
            return Err(OpenError::Locked { path: files.lock_path() });
        };
        files.remove_leftovers().map_err(disk)?;
        let snapshot = files.snapshot_size().map_err(disk)?;
        let mut inner = Inner {
            files,
            store: None,
            changed: 0,
            snapshot: snapshot.unwrap_or(0),
            snapshot_bytes: options.snapshot_bytes,
            distrust: Distrust::of_last(lock),
        };
        let opened = inner.start(snapshot.is_some()).map_err(|error| match error {
            StoreError::Newer(format) => {
                OpenError::Newer { path: inner.files.store_path(), format }
            }
            error => disk(as_io(error)),
        })?;
        inner.distrust.note();
        if snapshot.is_none() || opened != Opened::Clean {
            inner.write_snapshot();
        }
        Ok((Self { inner: Mutex::new(inner) }, opened))
    }

    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Result<Option<Entry>, ReadError> {
        let mut inner = self.lock();
        let value = inner.read(|store| store.entry(key))?;
        Ok(value.and_then(|value| decoded(key, codec::decode_entry(key, &value))))
    }

    /// The decoder checkpoint of `key`.
    pub fn checkpoint(&self, key: &str) -> Result<Option<Vec<u8>>, ReadError> {
        let mut inner = self.lock();
        let value = inner.read(|store| store.checkpoint(key))?;
        Ok(value.and_then(|value| {
            decoded(key, codec::decode_checkpoint(key, &value)).map(<[u8]>::to_vec)
        }))
    }

    /// The number of entries.
    pub fn len(&self) -> Result<u64, ReadError> {
        self.lock().read(Store::len)
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> Result<bool, ReadError> {
        Ok(self.len()? == 0)
    }

    /// Calls `each` with all entries, in the order of the keys. `each` must not use the registry: it would
    /// wait for itself. If damage is found on the way, or after an error, `each` may have had some of the
    /// entries already, and gets them again.
    pub fn for_each(&self, mut each: impl FnMut(&str, Entry)) -> Result<(), ReadError> {
        self.lock().read(|store| {
            store.each_entry(|key, value| {
                let Ok(key) = std::str::from_utf8(key) else {
                    tracing::error!("a key in the registry is not UTF-8; it is left out");
                    return;
                };
                if let Some(entry) = decoded(key, codec::decode_entry(key, value)) {
                    each(key, entry);
                }
            })
        })
    }

    /// Makes all changes durable in one transaction, or none of them. Later changes of a key in the list
    /// win over earlier ones.
    pub fn commit(&self, changes: &[Change]) -> Result<(), CommitError> {
        for change in changes {
            let (Change::Put { key, .. } | Change::Remove { key }) = change;
            if key.is_empty() || key.len() > KEY_BYTES_MAX {
                return Err(CommitError::Refused { length: key.len() });
            }
            if let Change::Put { key, entry: Entry::Source(source), .. } = change {
                let length = source.cursor.text.len();
                if length > CURSOR_BYTES_MAX {
                    return Err(CommitError::LongCursor { key: Arc::clone(key), length });
                }
            }
        }
        if changes.is_empty() {
            return Ok(());
        }
        let mut inner = self.lock();
        inner.write(|store| store.commit(changes)).map_err(|error| CommitError::Retry {
            directory: inner.files.directory.clone(),
            source: as_io(error),
        })?;
        inner.count(changes);
        Ok(())
    }

    /// Closes the registry, so that it is found clean. An error here has lost nothing.
    pub fn close(self) -> Result<(), CommitError> {
        self.close_shared()
    }

    /// The same for one that others still hold, and use no more. It stays locked until they release it.
    pub fn close_shared(&self) -> Result<(), CommitError> {
        let mut inner = self.lock();
        inner.write_snapshot_at_end();
        let Some(store) = inner.store.take() else { return Ok(()) };
        let closed = store.close();
        if matches!(closed, Err(StoreError::Io { during: During::Sync, .. })) {
            inner.distrust.set(true);
        }
        closed.map_err(|error| CommitError::Retry {
            directory: inner.files.directory.clone(),
            source: as_io(error),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic of a callback leaves nothing half done: transactions end as a whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registry").field("directory", &self.lock().files.directory).finish()
    }
}

impl Inner {
    /// Opens the store for the first time.
    fn start(&mut self, has_snapshot: bool) -> Result<Opened, StoreError> {
        let has_store = self.files.has_store().map_err(StoreError::reading)?;
        if !has_store && !has_snapshot {
            self.files.sync_way().map_err(StoreError::writing)?;
            self.store = Some(self.files.create_store()?);
            self.distrust.set(false);
            return Ok(Opened::New);
        }
        let was_distrusted = self.distrust.is_held();
        let mut result = if has_store {
            self.open_or_rewrite()
        } else {
            Err(StoreError::Damaged("the file is missing beside its snapshot".to_owned()))
        };
        if matches!(result, Err(StoreError::Io { during: During::Read, .. })) {
            // Once is an accident; twice is a bad sector, which is a form of damage.
            result = self.open_or_rewrite();
            if let Err(StoreError::Io { during: During::Read, source }) = result {
                result = Err(StoreError::Damaged(source.to_string()));
            }
        }
        let store = match result {
            Ok(store) => store,
            Err(StoreError::Damaged(what)) => {
                let set_aside = self.recover(&what)?;
                let recovered = self.write(Store::len)?;
                return Ok(Opened::Damaged { set_aside, recovered });
            }
            Err(StoreError::Io { during, source }) if during != During::Read => {
                tracing::warn!(error = %source, "the registry cannot be written; it is only read for now");
                if during == During::Sync {
                    self.distrust.set(true);
                }
                self.files.open_store(Trust::ReadOnly)?
            }
            Err(error) => return Err(error),
        };
        let was_closed = !store.was_unclean && !was_distrusted;
        let opened = if was_closed { Opened::Clean } else { Opened::Repaired };
        self.store = Some(store);
        Ok(opened)
    }

    fn read<T>(
        &mut self,
        mut operation: impl FnMut(&Store) -> Result<T, StoreError>,
    ) -> Result<T, ReadError> {
        let mut result = self.run(false, &mut operation);
        if result.is_err() {
            // A second try, on a file that is opened anew, costs little and changes nothing.
            result = self.run(false, &mut operation);
        }
        result.map_err(|error| ReadError::Retry {
            directory: self.files.directory.clone(),
            source: as_io(error),
        })
    }

    fn write<T>(
        &mut self,
        mut operation: impl FnMut(&Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.run(true, &mut operation)
    }

    /// Runs an operation on the store, which is opened or recovered first if it must be.
    fn run<T>(
        &mut self,
        writes: bool,
        operation: &mut dyn FnMut(&Store) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let result = self.opened(writes).and_then(&mut *operation);
        match result {
            Err(StoreError::Damaged(what)) => {
                self.store = None;
                self.recover(&what)?;
                let again = self.opened(writes).and_then(operation);
                self.settle(again)
            }
            result => self.settle(result),
        }
    }

    /// Gives up the store after a failure.
    fn settle<T>(&mut self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(error) = &result {
            self.store = None;
            if matches!(error, StoreError::Io { during: During::Sync, .. }) {
                self.distrust.set(true);
            }
        }
        // If that has failed before.
        self.distrust.note();
        result
    }

    /// The store, opened if it is not.
    fn opened(&mut self, writes: bool) -> Result<&Store, StoreError> {
        let usable = self.store.take().filter(|store| !(writes && store.read_only));
        let store = match usable {
            Some(store) => store,
            None if self.distrust.is_held() && !writes => self.files.open_store(Trust::ReadOnly)?,
            None => match self.open_or_rewrite() {
                // For reading, a disk that cannot be written is good enough.
                Err(StoreError::Io { during, .. }) if !writes && during != During::Read => {
                    if during == During::Sync {
                        self.distrust.set(true);
                    }
                    self.files.open_store(Trust::ReadOnly)?
                }
                result => result?,
            },
        };
        Ok(self.store.insert(store))
    }

    /// Opens the store for writing; if it is distrusted, a copy takes its place before.
    fn open_or_rewrite(&mut self) -> Result<Store, StoreError> {
        if !self.distrust.is_held() {
            return self.files.open_store(Trust::Verified);
        }
        let store = self.files.rewrite_store()?;
        self.distrust.set(false);
        Ok(store)
    }

    /// Replaces a damaged store; returns the new names of the damaged files.
    fn recover(&mut self, what: &str) -> Result<Vec<PathBuf>, StoreError> {
        let directory = self.files.directory.clone();
        tracing::error!(directory = %directory.display(), damage = what, "the registry is damaged");
        let Recovery { store, set_aside } = self.files.recover()?;
        for path in &set_aside {
            tracing::warn!(path = %path.display(), "the damaged file is kept here");
        }
        self.store = Some(store);
        self.distrust.set(false);
        Ok(set_aside)
    }

    /// Notes what a commit has changed, and writes a snapshot if it is time.
    fn count(&mut self, changes: &[Change]) {
        self.changed += changes.iter().map(entry_bytes).sum::<u64>();
        if self.changed >= self.snapshot_bytes.max(self.snapshot) {
            self.write_snapshot();
        }
    }

    /// Writes a snapshot before the end, unless that costs much and gains little.
    fn write_snapshot_at_end(&mut self) {
        if self.changed > 0 && self.changed >= self.snapshot.saturating_sub(SNAPSHOT_CHEAP) / 4 {
            self.write_snapshot();
        }
    }

    /// Writes a snapshot. A failure costs nothing now; it is tried again when as much has changed again.
    fn write_snapshot(&mut self) {
        self.changed = 0;
        let Some(store) = self.store.take().filter(|store| !store.read_only) else { return };
        match self.files.write_snapshot(&store) {
            Ok(size) => self.snapshot = size,
            Err(error) => tracing::warn!(%error, "cannot write the snapshot of the registry"),
        }
        if !store.has_failed() {
            self.store = Some(store);
        }
    }
}

/// About as many bytes as a change is in a snapshot.
fn entry_bytes(change: &Change) -> u64 {
    let length = match change {
        Change::Put { key, entry: Entry::File(file), .. } => {
            key.len() + file.meta.source.as_os_str().len() + 100
        }
        Change::Put { key, entry: Entry::Source(source), .. } => {
            key.len() + source.cursor.text.len() + source.about.name.len() + 100
        }
        Change::Remove { key } => key.len(),
    };
    length as u64
}

fn decoded<T>(key: &str, result: Result<T, codec::DecodeError>) -> Option<T> {
    result
        .inspect_err(|error| tracing::error!(key, %error, "a value in the registry is left out"))
        .ok()
}

fn as_io(error: StoreError) -> io::Error {
    match error {
        StoreError::Io { source, .. } => source,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}
