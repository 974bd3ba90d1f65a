//! Rows of Parquet (<https://parquet.apache.org/docs/file-format/>) as objects of JSON, written as Arrow for Go does, with
//! which Filebeat reads it (`x-pack/libbeat/reader/parquet/parquet.go`): keys in the order of their names, times as RFC 3339,
//! decimals as texts, bytes in base64, maps as lists of `key` and `value`.
//!
//! The library decompresses pages and decodes columns. What becomes a row is put together here, from the levels of the
//! columns.

mod chunk;
mod columns;
mod schema;
mod values;

use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use chunk::Content;
use columns::Column;
use schema::Field;
use skidder_parse::records::{Found, Record, RecordError, Stored, TableFormat, TableRows};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows whose values are decoded at once.
pub const ROWS_AT_ONCE: usize = 64;

/// No more rows are written once there is so much text.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Largest footer: the schema, and the places of all pieces.
const FOOTER_BYTES_MAX: u64 = 64 << 20;

/// The format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parquet;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    /// The library says so.
    #[error("{0}")]
    Library(#[from] ParquetError),
    /// What it gives does not fit together.
    #[error("{0}")]
    Content(String),
}

impl Wrong {
    fn new(message: impl Into<String>) -> Self {
        Self::Content(message.into())
    }
}

impl TableFormat for Parquet {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn open(
        &self,
        stored: Arc<dyn Stored>,
        from: u64,
        bytes_max: usize,
    ) -> Result<Box<dyn TableRows>, RecordError> {
        let opened = guarded(|| Rows::open(stored, from, bytes_max));
        match opened {
            Ok(rows) => Ok(Box::new(rows)),
            Err(wrong) => Err(RecordError::at_row(
                from,
                format!("this is no Parquet that can be read: {wrong}"),
            )),
        }
    }
}

/// A mistake in a file may be one that the library does not expect.
fn guarded<T>(run: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(Wrong::new("the content is damaged in a way that nobody expected")))
}

/// The rows of a file.
struct Rows {
    file: SerializedFileReader<Content>,
    fields: Vec<Field>,
    bytes_max: usize,
    /// The next row.
    row: u64,
    /// The group of rows that comes next.
    group: usize,
    /// Rows of the group before it that were not decoded yet.
    left: u64,
    columns: Vec<Column>,
    /// Rows that were decoded and not written yet.
    decoded: usize,
    /// Nothing can be read any more.
    is_broken: bool,
}

impl Rows {
    fn open(stored: Arc<dyn Stored>, from: u64, bytes_max: usize) -> Result<Self, Wrong> {
        let content = Content::new(stored);
        content.check_footer(FOOTER_BYTES_MAX)?;
        let file = SerializedFileReader::new(content)?;
        let fields = schema::fields_of(file.metadata().file_metadata().schema())?;
        let mut rows = Self {
            file,
            fields,
            bytes_max,
            row: 0,
            group: 0,
            left: 0,
            columns: Vec::new(),
            decoded: 0,
            is_broken: false,
        };
        rows.pass_over(from)?;
        Ok(rows)
    }

    /// Goes to a row; groups before it are not looked at.
    fn pass_over(&mut self, from: u64) -> Result<(), Wrong> {
        while self.row < from {
            let Some(count) = self.rows_of(self.group)? else { return Ok(()) };
            if self.row + count <= from {
                self.row += count;
                self.group += 1;
                continue;
            }
            self.begin_group(count)?;
            let skipped = from - self.row;
            for column in &mut self.columns {
                column.skip(skipped)?;
            }
            self.left -= skipped;
            self.row = from;
        }
        Ok(())
    }

    /// Rows of a group; nothing if there is none.
    fn rows_of(&self, group: usize) -> Result<Option<u64>, Wrong> {
        let Some(group) = self.file.metadata().row_groups().get(group) else { return Ok(None) };
        let count = u64::try_from(group.num_rows());
        count.map(Some).map_err(|_| Wrong::new("a group has less than no rows"))
    }

    fn begin_group(&mut self, count: u64) -> Result<(), Wrong> {
        let group = self.file.get_row_group(self.group)?;
        let columns = (0..group.num_columns()).map(|number| {
            let description = group.metadata().column(number).column_descr_ptr();
            Ok(Column::new(group.get_column_reader(number)?, &description))
        });
        self.columns = columns.collect::<Result<_, Wrong>>()?;
        self.left = count;
        self.group += 1;
        Ok(())
    }

    /// Decodes values of the next rows; `false` if there are none.
    fn decode(&mut self) -> Result<bool, Wrong> {
        while self.left == 0 {
            let Some(count) = self.rows_of(self.group)? else { return Ok(false) };
            self.begin_group(count)?;
        }
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(ROWS_AT_ONCE);
        for column in &mut self.columns {
            column.decode(count)?;
        }
        self.left -= count as u64;
        self.decoded = count;
        Ok(true)
    }

    fn add(&mut self, found: &mut Found, count_max: usize) -> Result<bool, Wrong> {
        while found.records.len() < count_max && found.text.len() < TEXT_BYTES_MAX {
            if self.decoded == 0 && !self.decode()? {
                return Ok(false);
            }
            let start = found.text.len();
            let written = schema::write_object(&self.fields, &mut self.columns, &mut found.text);
            let len = found.text.len() - start;
            let bounds = u32::try_from(start).ok().zip(u32::try_from(len).ok());
            let Some((start_in, len_in)) = bounds.filter(|_| len <= self.bytes_max) else {
                found.text.truncate(start);
                let max = self.bytes_max;
                return Err(Wrong::new(format!(
                    "the row has {len} bytes as JSON, more than {max}, four times `max_bytes`"
                )));
            };
            if let Err(wrong) = written {
                found.text.truncate(start);
                return Err(wrong);
            }
            let (offset, end) = (self.row, self.row + 1);
            found.records.push(Record { start: start_in, len: len_in, offset, end });
            self.decoded -= 1;
            self.row = end;
        }
        Ok(true)
    }
}

impl TableRows for Rows {
    fn next(&mut self, found: &mut Found, count_max: usize) -> Result<bool, RecordError> {
        if self.is_broken {
            return Ok(false);
        }
        let added = guarded(|| self.add(found, count_max));
        added.map_err(|wrong| {
            self.is_broken = true;
            RecordError::at_row(self.row, format!("the rows from here on cannot be read: {wrong}"))
        })
    }
}

#[cfg(test)]
mod tests;
