//! Rows of Avro's object container files (<https://avro.apache.org/docs/1.12.0/specification/>) as objects of JSON: keys in
//! the order of the schema, and values as those of Parquet are written. The value of a union stands for itself.
//!
//! Memory: the schema, one block decompressed, and the text that was asked for.

mod block;
mod decode;
mod schema;

use block::{Blocks, Wrong};
use decode::{Bytes, write};
use schema::Schema;
use skidder_parse::records::{Found, Record, RecordError, Stored, TableFormat, TableRows};
use std::sync::Arc;

/// No more rows are written once there is so much text.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// The format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Avro;

impl TableFormat for Avro {
    fn name(&self) -> &'static str {
        "avro"
    }

    fn open(
        &self,
        stored: Arc<dyn Stored>,
        from: u64,
        bytes_max: usize,
    ) -> Result<Box<dyn TableRows>, RecordError> {
        let wrong = |wrong: Wrong| {
            RecordError::at_row(from, format!("this is no Avro that can be read: {wrong}"))
        };
        let (blocks, text) = Blocks::open(stored).map_err(wrong)?;
        let schema = Schema::parse(&text).map_err(wrong)?;
        let block = (Vec::new(), 0, 0);
        let mut rows = Rows { schema, blocks, bytes_max, row: 0, block, is_broken: false };
        rows.pass_over(from).map_err(wrong)?;
        Ok(Box::new(rows))
    }
}

/// The rows of a file.
struct Rows {
    schema: Schema,
    blocks: Blocks,
    bytes_max: usize,
    /// The next row.
    row: u64,
    /// Bytes of the block that it is in, the place in them, and the rows that are left there.
    block: (Vec<u8>, usize, u64),
    /// Nothing can be read any more.
    is_broken: bool,
}

impl Rows {
    /// Goes to a row; blocks before it are not decompressed.
    fn pass_over(&mut self, from: u64) -> Result<(), Wrong> {
        let mut text = Vec::new();
        while self.row < from {
            if self.block.2 == 0 {
                let Some(count) = self.blocks.next()? else { return Ok(()) };
                if self.row.saturating_add(count) <= from {
                    self.row += count;
                    continue;
                }
                self.begin(count)?;
            }
            text.clear();
            self.take(&mut text)?;
        }
        Ok(())
    }

    /// Begins a block of so many rows.
    fn begin(&mut self, rows: u64) -> Result<(), Wrong> {
        let content = self.blocks.content()?;
        // A schema may have values without bytes: a few of them would be rows without end.
        if rows > content.len() as u64 {
            let bytes = content.len();
            let what = format!("a block has {rows} rows in {bytes} bytes: each needs one at least");
            return Err(Wrong::new(what));
        }
        self.block = (content, 0, rows);
        Ok(())
    }

    /// Appends the next row of the block.
    fn take(&mut self, into: &mut Vec<u8>) -> Result<(), Wrong> {
        let (bytes, place, left) = &mut self.block;
        let mut rest = Bytes(bytes.get(*place..).unwrap_or_default());
        write(&self.schema, &mut rest, into, self.bytes_max)?;
        *place = bytes.len() - rest.0.len();
        *left -= 1;
        self.row += 1;
        if *left == 0 && *place < bytes.len() {
            return Err(Wrong::new("a block has bytes behind its rows"));
        }
        Ok(())
    }

    fn add(&mut self, found: &mut Found, count_max: usize) -> Result<bool, Wrong> {
        while found.records.len() < count_max && found.text.len() < TEXT_BYTES_MAX {
            while self.block.2 == 0 {
                let Some(count) = self.blocks.next()? else { return Ok(false) };
                self.begin(count)?;
            }
            let (start, offset) = (found.text.len(), self.row);
            if let Err(wrong) = self.take(&mut found.text) {
                found.text.truncate(start);
                self.row = offset;
                return Err(wrong);
            }
            let len = found.text.len() - start;
            let bounds = u32::try_from(start).ok().zip(u32::try_from(len).ok());
            let Some((start, len)) = bounds else { return Err(Wrong::new("the row is too long")) };
            found.records.push(Record { start, len, offset, end: self.row });
        }
        Ok(true)
    }
}

impl TableRows for Rows {
    fn next(&mut self, found: &mut Found, count_max: usize) -> Result<bool, RecordError> {
        if self.is_broken {
            return Ok(false);
        }
        self.add(found, count_max).map_err(|wrong| {
            self.is_broken = true;
            RecordError::at_row(self.row, format!("the rows from here on cannot be read: {wrong}"))
        })
    }
}

#[cfg(test)]
mod tests;
