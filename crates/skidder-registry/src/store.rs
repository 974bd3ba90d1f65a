//! The store: two tables of `redb`, and the line between a bad disk and a bad file.
//!
//! `redb` answers a damaged file with an error or a panic; both end here. A panic is caught around every
//! use of it because the content of a file must not be able to end the program, and the store that
//! panicked is dropped and opened anew, so that nothing half changed is used again.

use crate::backend::{Disk, During, Health, Overlay};
use crate::codec;
use crate::{Change, Checkpoint};
use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};
use skidder_os::File;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
const CHECKPOINTS: TableDefinition<&[u8], &[u8]> = TableDefinition::new("checkpoints");
const ABOUT: TableDefinition<&[u8], u32> = TableDefinition::new("about");
/// Commits of so many changes are made in the order of the keys, so that each page is written once: the cache does
/// not hold all pages that they touch.
const SORTED_MIN: usize = 256;
const FORMAT_KEY: &[u8] = b"format";
/// The newest format that this program knows, and the one it writes. In a store of an older one the first commit notes
/// it, so that an older program, which cannot read the new entries, refuses the store by its number.
const FORMAT: u32 = 2;

/// Place and bit of "recovery required" in the header of `redb` (its `docs/design.md`, "god byte").
const STATE_OFFSET: u64 = 9;
const STATE_UNCLEAN: u8 = 2;

/// Why the store did not do it. The store is unusable afterwards.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    /// The disk failed: open the file again later.
    #[error("{source}")]
    Io { during: During, source: io::Error },
    /// The content of the file is wrong: set it aside.
    #[error("{0}")]
    Damaged(String),
    /// A later program wrote the file: leave it alone.
    #[error("format {0} is newer than this program")]
    Newer(u32),
}

impl StoreError {
    pub(crate) fn reading(source: io::Error) -> Self {
        Self::Io { during: During::Read, source }
    }

    pub(crate) fn writing(source: io::Error) -> Self {
        Self::Io { during: During::Write, source }
    }
}

/// How much a file is trusted when it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Verify every page; write to the file.
    Verified,
    /// Verify every page; never write to the file.
    ReadOnly,
    /// Take what can be had from a damaged file; never write to it.
    Salvage,
}

/// An open store.
pub(crate) struct Store {
    /// `None` only while it is being closed.
    database: Option<Database>,
    health: Health,
    /// Changes are refused.
    pub(crate) read_only: bool,
    /// The last writer did not close the file properly.
    pub(crate) was_unclean: bool,
    /// The content is wrong or unverified, so that closing, which writes, must not be tried: see `Drop`.
    broken: AtomicBool,
    /// The file says an older format.
    is_older: AtomicBool,
}

impl Store {
    /// Opens a store; an empty file becomes an empty store.
    pub(crate) fn open(
        file: Box<dyn File>,
        cache_bytes: usize,
        trust: Trust,
    ) -> Result<Self, StoreError> {
        let health = Health::default();
        let was_unclean = is_unclean(&*file).map_err(StoreError::reading)?;
        let database = contained(&health, || {
            let mut builder = Database::builder();
            builder
                .set_cache_size(cache_bytes)
                .set_check_integrity_on_open(trust != Trust::Salvage);
            Ok(match trust {
                Trust::Verified => builder.create_with_backend(Disk::new(file, health.clone()))?,
                _ => builder.create_with_backend(Overlay::new(file, health.clone())?)?,
            })
        })?;
        let read_only = trust != Trust::Verified;
        let broken = AtomicBool::new(trust == Trust::Salvage);
        let is_older = AtomicBool::new(false);
        let mut store =
            Self { database: Some(database), health, read_only, was_unclean, broken, is_older };
        let format = store.run(|database| {
            let transaction = database.begin_read()?;
            match transaction.open_table(ABOUT) {
                Ok(about) => Ok(about.get(FORMAT_KEY)?.map(|value| value.value())),
                Err(redb::TableError::TableDoesNotExist(_)) => Ok(None),
                Err(error) => Err(error.into()),
            }
        })?;
        match format {
            Some(format) if format > FORMAT => Err(StoreError::Newer(format)),
            Some(format) => {
                *store.is_older.get_mut() = format < FORMAT;
                Ok(store)
            }
            None if trust == Trust::Salvage => Ok(store),
            None => store.prepare(),
        }
    }

    /// Creates the tables.
    fn prepare(self) -> Result<Self, StoreError> {
        self.run(|database| {
            let transaction = database.begin_write()?;
            transaction.open_table(ENTRIES)?;
            transaction.open_table(CHECKPOINTS)?;
            transaction.open_table(ABOUT)?.insert(FORMAT_KEY, FORMAT)?;
            Ok(transaction.commit()?)
        })?;
        Ok(self)
    }

    /// The value of an entry.
    pub(crate) fn entry(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(ENTRIES, key)
    }

    /// The value of a checkpoint.
    pub(crate) fn checkpoint(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.get(CHECKPOINTS, key)
    }

    fn get(
        &self,
        table: TableDefinition<&[u8], &[u8]>,
        key: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.run(|database| {
            let table = database.begin_read()?.open_table(table)?;
            Ok(table.get(key.as_bytes())?.map(|value| value.value().to_vec()))
        })
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> Result<u64, StoreError> {
        self.run(|database| Ok(database.begin_read()?.open_table(ENTRIES)?.len()?))
    }

    /// Calls `each` with all entries, in the order of the keys, as bytes.
    pub(crate) fn each_entry(&self, each: impl FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.each(ENTRIES, each)
    }

    /// Calls `each` with all checkpoints, in the order of the keys, as bytes.
    pub(crate) fn each_checkpoint(&self, each: impl FnMut(&[u8], &[u8])) -> Result<(), StoreError> {
        self.each(CHECKPOINTS, each)
    }

    fn each(
        &self,
        table: TableDefinition<&[u8], &[u8]>,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), StoreError> {
        // A panic of `each` is not the store's: it goes on to the caller.
        let mut thrown = None;
        let result = self.run(|database| {
            let table = database.begin_read()?.open_table(table)?;
            for pair in table.iter()? {
                let (key, value) = pair?;
                // Outside of the call: a damaged file can make these panic.
                let (key, value) = (key.value(), value.value());
                let call = AssertUnwindSafe(|| each(key, value));
                if let Err(panic) = catch_unwind(call) {
                    thrown = Some(panic);
                    break;
                }
            }
            Ok(())
        });
        match thrown {
            Some(panic) => resume_unwind(panic),
            None => result,
        }
    }

    /// Makes all changes, or none, durable.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<(), StoreError> {
        let mut changes: Vec<&Change> = changes.iter().collect();
        if changes.len() >= SORTED_MIN {
            // Changes of one key stay in their order.
            changes.sort_by_key(|change| change.key());
        }
        self.write(|mut tables| {
            for change in changes {
                match change {
                    Change::Put { key, entry, checkpoint } => {
                        tables.put_entry(key.as_bytes(), &codec::encode_entry(key, entry))?;
                        match checkpoint {
                            Checkpoint::Keep => {}
                            Checkpoint::Set(bytes) => {
                                let value = codec::encode_checkpoint(key, bytes);
                                tables.put_checkpoint(key.as_bytes(), &value)?;
                            }
                            Checkpoint::Clear => tables.remove_checkpoint(key.as_bytes())?,
                        }
                    }
                    Change::Remove { key } => {
                        tables.entries.remove(key.as_bytes())?;
                        tables.remove_checkpoint(key.as_bytes())?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Runs `fill` in one transaction and makes it durable.
    pub(crate) fn write(
        &self,
        fill: impl FnOnce(Tables<'_>) -> Result<(), redb::Error>,
    ) -> Result<(), StoreError> {
        self.run(|database| {
            let transaction = database.begin_write()?;
            fill(Tables {
                entries: transaction.open_table(ENTRIES)?,
                checkpoints: transaction.open_table(CHECKPOINTS)?,
            })?;
            if self.is_older.load(Ordering::Relaxed) {
                transaction.open_table(ABOUT)?.insert(FORMAT_KEY, FORMAT)?;
            }
            transaction.commit()?;
            self.is_older.store(false, Ordering::Relaxed);
            Ok(())
        })
    }

    /// Whether the file has failed, so that the store is unusable.
    pub(crate) fn has_failed(&self) -> bool {
        self.health.has_failed()
    }

    /// Closes the file properly, so that the next one to open it finds it clean.
    pub(crate) fn close(mut self) -> Result<(), StoreError> {
        match self.database.take_if(|_| !self.broken.load(Ordering::Relaxed)) {
            Some(database) => contained(&self.health, || Ok(database.close()?)),
            None => Ok(()),
        }
    }

    fn run<T>(
        &self,
        operation: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let database =
            self.database.as_ref().expect("only closing takes it, and that consumes the store");
        contained(&self.health, || operation(database)).inspect_err(|error| {
            if matches!(error, StoreError::Damaged(_)) {
                self.broken.store(true, Ordering::Relaxed);
            }
        })
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let database = self.database.take();
        if *self.broken.get_mut() {
            // `redb` commits when it is dropped, and on a damaged tree that can panic in a destructor while it
            // panics, which ends the process. So a broken database is leaked: one descriptor and the cache,
            // once for each damage.
            std::mem::forget(database);
            return;
        }
        let dropped = contained(&self.health, || {
            drop(database);
            Ok(())
        });
        if let Err(error) = dropped {
            tracing::warn!(%error, "closing the registry failed; it is repaired when it is opened again");
        }
    }
}

/// The tables while they are written.
pub(crate) struct Tables<'a> {
    entries: redb::Table<'a, &'static [u8], &'static [u8]>,
    checkpoints: redb::Table<'a, &'static [u8], &'static [u8]>,
}

impl Tables<'_> {
    /// The value that this transaction has for a key.
    pub(crate) fn entry(&self, key: &[u8]) -> Result<Option<Vec<u8>>, redb::Error> {
        Ok(self.entries.get(key)?.map(|value| value.value().to_vec()))
    }

    pub(crate) fn put_entry(&mut self, key: &[u8], value: &[u8]) -> Result<(), redb::Error> {
        self.entries.insert(key, value)?;
        Ok(())
    }

    pub(crate) fn put_checkpoint(&mut self, key: &[u8], value: &[u8]) -> Result<(), redb::Error> {
        self.checkpoints.insert(key, value)?;
        Ok(())
    }

    fn remove_checkpoint(&mut self, key: &[u8]) -> Result<(), redb::Error> {
        self.checkpoints.remove(key)?;
        Ok(())
    }
}

/// Runs `operation`, and says of an error or panic whether disk or file is to blame.
fn contained<T>(
    health: &Health,
    operation: impl FnOnce() -> Result<T, redb::Error>,
) -> Result<T, StoreError> {
    let what = match catch_unwind(AssertUnwindSafe(operation)) {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            format!("the store gave up: {}", message.unwrap_or("no reason given"))
        }
    };
    Err(match health.failure() {
        Some((during, source)) => StoreError::Io { during, source },
        None => StoreError::Damaged(what),
    })
}

fn is_unclean(file: &dyn File) -> io::Result<bool> {
    let mut state = [0];
    loop {
        match file.read_at(&mut state, STATE_OFFSET) {
            Ok(count) => return Ok(count == 1 && state[0] & STATE_UNCLEAN != 0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
