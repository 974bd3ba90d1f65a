//! Configuration that comes out of a pipe: `-c <(sops -d filebeat.yml)`, `-c /dev/stdin`.

use skidder_os::{Fs, Metadata, read_to_end};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The content of pipes. Each can be read only once, so it stays the same for as long as the
/// program runs, also when the configuration is read again.
#[derive(Debug, Default)]
pub struct Pipes(Mutex<BTreeMap<PathBuf, (Metadata, Vec<u8>)>>);

impl Pipes {
    /// What the pipe or device at `path` is and holds, at most `limit` bytes. The first time it
    /// waits for the writer to end.
    pub(crate) fn read(
        &self,
        fs: &dyn Fs,
        path: &Path,
        limit: usize,
    ) -> io::Result<(Metadata, Vec<u8>)> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(path) {
            return Ok(found.clone());
        }
        let pipe = fs.open_stream(path)?;
        let found = (pipe.metadata()?, read_to_end(&*pipe, limit)?);
        known.insert(path.to_owned(), found.clone());
        Ok(found)
    }
}
