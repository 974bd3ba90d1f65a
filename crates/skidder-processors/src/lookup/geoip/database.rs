//! A database of MaxMind's format in memory, and the file it came from, which is looked at again once a minute.
//!
//! A new file replaces the old one as a whole: events are looked up in either. One that is missing, damaged, of
//! another type or still being written leaves the old one in its place.

use super::property::{DatabaseKind, Facts};
use maxminddb::{LookupResult, MaxMindDbError, Reader, WithinOptions};
use skidder_os::{Clock, Fs, Metadata, Monotonic, Timestamp, read_exact_at};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, TryLockError};
use std::time::Duration;

/// How often the file is looked at.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// Largest file that is read; it is kept in memory. City databases have about 60 to 130 MB.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Networks whose records are read before a database is used, from its beginning; with that, small databases
/// are checked as a whole.
const NETWORKS_CHECKED: usize = 50_000;

/// Addresses whose records are read before a database is used, evenly spread.
const ADDRESSES_CHECKED: u32 = 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DatabaseError {
    /// Look at the path and the permissions.
    #[error("{path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    /// Wait: another program writes it.
    #[error("{path} changed while it was read")]
    Changing { path: PathBuf },
    /// Get the file anew.
    #[error("{path} is not a database of MaxMind's format, or damaged: {source}")]
    Damaged { path: PathBuf, source: MaxMindDbError },
    /// Get one of another type.
    #[error("{path} is a database of type `{kind}`; expected a City, Country or ASN database")]
    OtherKind { path: PathBuf, kind: String },
    /// Give the new one a name of its own.
    #[error("{path} is now a database of another type (`{kind}`)")]
    NewKind { path: PathBuf, kind: String },
}

/// Which content a file has, as far as can be seen without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Timestamp,
    size: u64,
    device: u64,
    inode: u64,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        let Metadata { modified, size, device, inode, .. } = *metadata;
        Self { modified, size, device, inode }
    }
}

/// A database in memory.
pub(super) struct Database {
    pub(super) kind: DatabaseKind,
    reader: Reader<Vec<u8>>,
}

impl Database {
    /// Reads a file and checks some of its records.
    fn read(fs: &dyn Fs, path: &Path) -> Result<(Self, Stamp), DatabaseError> {
        let path = path.to_owned();
        let (bytes, stamp) = match read(fs, &path) {
            Ok(Some(read)) => read,
            Ok(None) => return Err(DatabaseError::Changing { path }),
            Err(source) => return Err(DatabaseError::Read { path, source }),
        };
        let reader = match Reader::from_source(bytes) {
            Ok(reader) => reader,
            Err(source) => return Err(DatabaseError::Damaged { path, source }),
        };
        let name = &reader.metadata().database_type;
        let Some(kind) = DatabaseKind::of(name) else {
            return Err(DatabaseError::OtherKind { path, kind: name.clone() });
        };
        let database = Self { kind, reader };
        match database.check() {
            Ok(()) => Ok((database, stamp)),
            Err(source) => Err(DatabaseError::Damaged { path, source }),
        }
    }

    /// Reads some of the records.
    fn check(&self) -> Result<(), MaxMindDbError> {
        // Those without a record count, so that a tree with a circle has an end.
        let options = WithinOptions::default().include_networks_without_data();
        for network in self.reader.networks(options)?.take(NETWORKS_CHECKED) {
            self.decode(&network?)?;
        }
        for part in 0..ADDRESSES_CHECKED {
            self.facts(Ipv4Addr::from(part * (u32::MAX / ADDRESSES_CHECKED)).into())?;
        }
        Ok(())
    }

    fn decode<'a>(
        &self,
        found: &LookupResult<'a, Vec<u8>>,
    ) -> Result<Option<Facts<'a>>, MaxMindDbError> {
        Ok(match self.kind {
            DatabaseKind::System => found.decode()?.map(Facts::System),
            DatabaseKind::City | DatabaseKind::Country => found.decode()?.map(Facts::Place),
        })
    }

    /// What is known about an address, and in which network it is; `None` if nothing is.
    pub(super) fn facts(
        &self,
        address: IpAddr,
    ) -> Result<Option<(Facts<'_>, impl Fn() -> Option<String>)>, MaxMindDbError> {
        if address.is_ipv6() && self.reader.metadata().ip_version == 4 {
            return Ok(None);
        }
        let found = self.reader.lookup(address)?;
        Ok(self.decode(&found)?.map(|facts| (facts, move || network(&found))))
    }
}

fn network(found: &LookupResult<'_, Vec<u8>>) -> Option<String> {
    found.network().ok().map(|network| network.to_string())
}

impl fmt::Debug for Database {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Database").field(&self.reader.metadata().database_type).finish()
    }
}

/// A whole file, and which content it is; `None` if that changed meanwhile.
fn read(fs: &dyn Fs, path: &Path) -> io::Result<Option<(Vec<u8>, Stamp)>> {
    let file = fs.open(path)?;
    let stamp = Stamp::of(&file.metadata()?);
    if stamp.size > FILE_BYTES_MAX {
        let message = format!("it has {} bytes, and {FILE_BYTES_MAX} at most are read", stamp.size);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let mut bytes = vec![0; stamp.size as usize];
    match read_exact_at(&*file, &mut bytes, 0) {
        Ok(()) if Stamp::of(&file.metadata()?) == stamp => Ok(Some((bytes, stamp))),
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

/// A database that follows its file.
pub(super) struct DatabaseFile {
    path: PathBuf,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    current: RwLock<Arc<Database>>,
    checks: Mutex<Checks>,
    /// How often the database was replaced.
    epoch: AtomicU64,
}

/// When the file was looked at, and the content that was read or refused last.
struct Checks {
    last: Monotonic,
    stamp: Option<Stamp>,
}

impl DatabaseFile {
    /// Reads the file.
    pub(super) fn open(
        path: &Path,
        fs: &Arc<dyn Fs>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, DatabaseError> {
        let (database, stamp) = Database::read(&**fs, path)?;
        let (fs, clock) = (Arc::clone(fs), Arc::clone(clock));
        let checks = Mutex::new(Checks { last: clock.monotonic(), stamp: Some(stamp) });
        let current = RwLock::new(Arc::new(database));
        Ok(Self { path: path.to_owned(), fs, clock, current, checks, epoch: AtomicU64::new(0) })
    }

    /// The database as it is now.
    pub(super) fn current(&self) -> Arc<Database> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the file, if that was a minute ago, and reads it if it changed. A number that grows with each new
    /// database. While one thread reads, the others go on with the old one.
    pub(super) fn epoch(&self) -> u64 {
        let checks = match self.checks.try_lock() {
            Ok(checks) => Some(checks),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        };
        if let Some(mut checks) = checks {
            let now = self.clock.monotonic();
            if now.since(checks.last) >= CHECK_INTERVAL {
                checks.last = now;
                self.check(&mut checks);
            }
        }
        self.epoch.load(Ordering::Acquire)
    }

    fn check(&self, checks: &mut Checks) {
        let stamp = self.fs.metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        if stamp == checks.stamp {
            return;
        }
        match self.replace() {
            Ok(stamp) => checks.stamp = Some(stamp),
            // It is read in a minute, whatever it is then.
            Err(DatabaseError::Changing { .. }) => {}
            Err(error) => {
                checks.stamp = stamp;
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "a database of geoip cannot be read again; the old one stays"
                );
            }
        }
    }

    /// Reads the file, and puts what it is now in the place of the old one.
    fn replace(&self) -> Result<Stamp, DatabaseError> {
        let (database, stamp) = Database::read(&*self.fs, &self.path)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if database.kind != current.kind {
            let kind = database.reader.metadata().database_type.clone();
            return Err(DatabaseError::NewKind { path: self.path.clone(), kind });
        }
        *current = Arc::new(database);
        self.epoch.fetch_add(1, Ordering::Release);
        tracing::info!(path = %self.path.display(), "a database of geoip was read again");
        Ok(stamp)
    }
}

impl fmt::Debug for DatabaseFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("DatabaseFile").field(&self.path).finish()
    }
}
