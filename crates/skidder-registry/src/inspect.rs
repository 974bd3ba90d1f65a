//! Looking into a registry without opening it: nothing is locked and nothing is written, so that it may be
//! in use meanwhile.

use crate::codec;
use crate::entry::Entry;
use crate::files::{Files, SNAPSHOT, STORE};
use crate::registry::{Options, ReadError};
use crate::store::{Store, StoreError, Trust};
use skidder_os::{Clock, File, Fs, Metadata, Timestamp, read_to_end};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// How often a store that changes while it is read is read again.
const TRIES: usize = 5;

/// The largest store that is read into memory, in bytes; of a larger one the snapshot is taken.
const STORE_BYTES_MAX: usize = 1 << 30;

/// Where entries come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The store, as of its last commit.
    Store,
    /// The snapshot beside it, which was written then: entries may be older than the store's.
    Snapshot {
        /// When.
        written: Timestamp,
    },
}

/// The content of a registry.
#[derive(Clone, Debug)]
pub struct Inspected {
    /// All entries that can be read, in the order of their keys.
    pub entries: Vec<(String, Entry)>,
    /// Where they come from.
    pub origin: Origin,
    /// Some are missing: they are damaged.
    pub incomplete: bool,
}

/// Whether there is a registry in `directory`, damaged or not.
pub fn is_there(fs: &dyn Fs, directory: &Path) -> io::Result<bool> {
    for name in [STORE, SNAPSHOT] {
        match fs.metadata(&directory.join(name)) {
            Ok(_) => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Reads all entries of the registry in `directory`; `None` if there is none. A process that uses it may
/// go on: of a store that changes too fast the snapshot is taken. Fails if all of it is damaged.
pub fn inspect(
    fs: &Arc<dyn Fs>,
    clock: &Arc<dyn Clock>,
    directory: &Path,
) -> Result<Option<Inspected>, ReadError> {
    let retry = |source| ReadError::Retry { directory: directory.to_owned(), source };
    let files = Files::new(Arc::clone(fs), Arc::clone(clock), directory, Options::default());
    let mut seen = false;
    for _ in 0..TRIES {
        match copy(&files) {
            Ok(None) => break,
            Ok(Some(file)) => {
                seen = true;
                // A copy that was torn by a commit has wrong checksums, which opening finds.
                if let Ok(inspected) = read_store(file) {
                    return Ok(Some(inspected));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                seen = true;
                break;
            }
            Err(error) => return Err(retry(error)),
        }
    }
    match files.read_snapshot() {
        Ok(Some(snapshot)) => {
            let mut entries = Vec::new();
            let mut incomplete = snapshot.damaged;
            for (key, value) in snapshot.entries {
                incomplete |= !add(&mut entries, &key, &value);
            }
            if incomplete && entries.is_empty() {
                let what = "the store and its snapshot are damaged, and no entry can be read";
                return Err(retry(io::Error::new(io::ErrorKind::InvalidData, what)));
            }
            let origin = Origin::Snapshot { written: snapshot.written };
            Ok(Some(Inspected { entries, origin, incomplete }))
        }
        Ok(None) if seen => {
            let what = "the store is damaged, or changes too fast, and there is no snapshot";
            Err(retry(io::Error::new(io::ErrorKind::InvalidData, what)))
        }
        Ok(None) => Ok(None),
        Err(error) => Err(retry(error)),
    }
}

fn copy(files: &Files) -> io::Result<Option<Copy>> {
    let file = match files.open_raw_store() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    let bytes = read_to_end(&*file, STORE_BYTES_MAX)?;
    Ok(Some(Copy { bytes, metadata }))
}

fn read_store(copy: Copy) -> Result<Inspected, StoreError> {
    if copy.bytes.is_empty() {
        return Err(StoreError::Damaged("the file is empty".to_owned()));
    }
    let store = Store::open(Box::new(copy), Options::default().cache_bytes, Trust::ReadOnly)?;
    let mut entries = Vec::new();
    let mut incomplete = false;
    store.each_entry(|key, value| {
        incomplete |= !std::str::from_utf8(key).is_ok_and(|key| add(&mut entries, key, value));
    })?;
    Ok(Inspected { entries, origin: Origin::Store, incomplete })
}

fn add(entries: &mut Vec<(String, Entry)>, key: &str, value: &[u8]) -> bool {
    match codec::decode_entry(key, value) {
        Ok(entry) => {
            entries.push((key.to_owned(), entry));
            true
        }
        Err(error) => {
            tracing::error!(key, %error, "a value in the registry is left out");
            false
        }
    }
}

/// The store in memory, as it was at one moment or nearly so.
struct Copy {
    bytes: Vec<u8>,
    metadata: Metadata,
}

impl File for Copy {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let count = buffer.len().min(self.bytes.len() - start);
        buffer[..count].copy_from_slice(&self.bytes[start..start + count]);
        Ok(count)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata { size: self.bytes.len() as u64, ..self.metadata })
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}
