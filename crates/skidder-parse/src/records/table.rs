//! Records of content that is read from several places at once, as tables are: all of it must be there first.

use super::{Found, RecordError};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Content that is there as a whole.
pub trait Stored: Send + Sync {
    /// Its bytes.
    fn size(&self) -> u64;

    /// Reads up to as many bytes as fit, at a place; 0 at the end.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize>;
}

/// How tables are written in files.
pub trait TableFormat: fmt::Debug + Send + Sync {
    /// Its name, which the registry has: the place in such content is a number of rows.
    fn name(&self) -> &'static str;

    /// Looks at content; its rows begin with this one, the first being 0. `bytes_max` is the bound of the text of a row.
    ///
    /// # Errors
    /// It is no such table.
    fn open(
        &self,
        stored: Arc<dyn Stored>,
        from: u64,
        bytes_max: usize,
    ) -> Result<Box<dyn TableRows>, RecordError>;
}

/// The rows of a table, one after the other.
pub trait TableRows: Send {
    /// Adds at most so many rows, fewer if their text becomes long; `false` once there are no more. The offset of a record is
    /// the number of its row.
    ///
    /// # Errors
    /// The next row cannot be read; `found` has those before it.
    fn next(&mut self, found: &mut Found, count_max: usize) -> Result<bool, RecordError>;
}

/// What content consists of that is a table, and where it is kept while it is read.
#[derive(Clone, Debug)]
pub struct Table {
    /// How it is written.
    pub format: Arc<dyn TableFormat>,
    /// The folder of a file that has the content, decompressed, until its rows were read; nothing for that of temporary files.
    pub folder: Option<PathBuf>,
    /// The most bytes that this file may have.
    pub bytes_max: u64,
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        let of = |table: &Self| (table.format.name(), table.folder.clone(), table.bytes_max);
        of(self) == of(other)
    }
}

impl Eq for Table {}
