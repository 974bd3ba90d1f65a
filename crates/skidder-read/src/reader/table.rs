//! From the bytes of a chunk to a batch of rows of a table.
//!
//! A table is read from several places at once. So its content is decompressed into a file first, a chunk in each turn, and
//! its rows are given out behind that; those before the cursor are passed over.

use super::{InputContext, Reader, Scratch, TurnEnd};
use crate::pool::CHUNK_BYTES;
use skidder_event::{Batch, Recycle as _};
use skidder_os::{File, Fs, OpenMode, Timestamp};
use skidder_parse::records::{Found, RecordError, Stored, Table, TableRows};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rights of the file: those of its owner.
const PERMISSIONS: u32 = 0o600;

/// How the rows of one source are found.
pub(crate) struct Tabling {
    table: Table,
    bytes_max: usize,
    /// Rows that were settled in an earlier run.
    settled: u64,
    spool: Option<Spool>,
    rows: Option<Box<dyn TableRows>>,
    /// Why nothing can be read behind a place.
    pub(crate) wrong: Option<RecordError>,
}

/// Content in a file without a name, which is gone when it is closed.
struct Spool {
    file: Box<dyn File>,
    size: u64,
}

impl Stored for Spool {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, buffer: &mut [u8], place: u64) -> io::Result<usize> {
        self.file.read_at(buffer, place)
    }
}

impl Spool {
    fn create(fs: &dyn Fs, folder: Option<&Path>, number: u64) -> io::Result<Self> {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        fs.create_dir_all(&folder, 0o750)?;
        let path: PathBuf = folder.join(format!("table-{}-{number}", std::process::id()));
        let file = match fs.open_write(&path, OpenMode::New, PERMISSIONS) {
            // Of a process that was killed before it removed the name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs.remove_file(&path)?;
                fs.open_write(&path, OpenMode::New, PERMISSIONS)?
            }
            opened => opened?,
        };
        fs.remove_file(&path)?;
        Ok(Self { file, size: 0 })
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let count = self.file.write_at(rest, self.size)?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = &rest[count..];
            self.size += count as u64;
        }
        Ok(())
    }
}

impl Tabling {
    /// For a source of which so many rows are settled.
    pub(crate) fn new(table: &Table, bytes_max: usize, settled: u64) -> Self {
        let table = table.clone();
        Self { table, bytes_max, settled, spool: None, rows: None, wrong: None }
    }

    fn append(&mut self, fs: &dyn Fs, number: u64, bytes: &[u8]) -> io::Result<()> {
        let spool = match &mut self.spool {
            Some(spool) => spool,
            none => none.insert(Spool::create(fs, self.table.folder.as_deref(), number)?),
        };
        if spool.size + bytes.len() as u64 > self.table.bytes_max {
            let max = self.table.bytes_max;
            let message = format!("decompressed, the object has more than {max} bytes");
            self.wrong = Some(RecordError::at_row(self.settled, message));
            return Ok(());
        }
        spool.append(bytes)
    }

    /// All of the content is there.
    fn open(&mut self) -> Result<(), RecordError> {
        let Some(spool) = self.spool.take() else { return Ok(()) };
        let stored: Arc<dyn Stored> = Arc::new(spool);
        self.rows = Some(self.table.format.open(stored, self.settled, self.bytes_max)?);
        Ok(())
    }
}

impl Reader {
    /// Takes one turn over a table: a chunk of bytes, or one batch. `final_line`: what is there is all.
    pub(crate) fn turn_table(
        &mut self,
        context: &InputContext,
        tabling: &mut Tabling,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, TurnEnd) {
        if let Some(end) = self.begin_records(context, now) {
            return (None, end);
        }
        if tabling.rows.is_none() {
            match self.spool(context, tabling, scratch) {
                TurnEnd::Finished if tabling.wrong.is_none() => {}
                _ if tabling.wrong.is_some() => {
                    return (None, self.damaged_table(context, tabling));
                }
                end => return (None, end),
            }
            if let Err(error) = tabling.open() {
                tabling.wrong = Some(error);
                return (None, self.damaged_table(context, tabling));
            }
        }
        let mut found = Found::default();
        let next = match &mut tabling.rows {
            Some(rows) => rows.next(&mut found, context.rows_max),
            // No bytes at all.
            None => Ok(false),
        };
        let end = match next {
            Ok(true) => TurnEnd::More,
            Ok(false) => TurnEnd::Finished,
            Err(error) => {
                tabling.wrong = Some(error);
                self.damaged_table(context, tabling)
            }
        };
        let batch = self.batch_of_records(context, tabling.settled, found, &end, now);
        (batch, end)
    }

    /// Takes what has arrived into the file. [`TurnEnd::Finished`] once all of it is there.
    fn spool(
        &mut self,
        context: &InputContext,
        tabling: &mut Tabling,
        scratch: &mut Scratch,
    ) -> TurnEnd {
        let mut parts = context.buffers.take();
        parts.bytes.resize(CHUNK_BYTES, 0);
        let mut filled = 0;
        let end = self.fill(context, scratch, &mut parts.bytes, &mut filled);
        let bytes = &parts.bytes[..filled];
        let kept = match filled {
            0 => Ok(()),
            _ => tabling.append(&*context.fs, self.id.0, bytes),
        };
        context.buffers.recycle(parts);
        match (kept, end) {
            (Err(error), _) => TurnEnd::Failed(error),
            // The end of what is compressed is known by itself.
            (Ok(()), TurnEnd::Waiting)
                if context.settings.final_line && !self.target.compressed =>
            {
                TurnEnd::Finished
            }
            (Ok(()), end) => end,
        }
    }

    fn damaged_table(&mut self, context: &InputContext, tabling: &Tabling) -> TurnEnd {
        if let Some(wrong) = &tabling.wrong {
            self.report_record(context, wrong);
        }
        TurnEnd::Damaged
    }
}
