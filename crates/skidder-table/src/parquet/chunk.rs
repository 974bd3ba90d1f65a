//! Content as the library reads it.

use super::Wrong;
use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use skidder_parse::records::Stored;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes of the end of each file: the length of the footer, and the magic number.
const TAIL_BYTES: u64 = 8;

/// Bytes that are read at once where a header is looked for.
const AHEAD_BYTES: usize = 4 << 10;

/// See the module's text.
pub(super) struct Content(Arc<dyn Stored>);

impl Content {
    pub(super) fn new(stored: Arc<dyn Stored>) -> Self {
        Self(stored)
    }

    /// The library takes the length that stands there for true.
    pub(super) fn check_footer(&self, bytes_max: u64) -> std::result::Result<(), Wrong> {
        let size = self.0.size();
        if size < TAIL_BYTES + 4 {
            return Err(Wrong::new(format!("{size} bytes are too few")));
        }
        let tail = self.get_bytes(size - TAIL_BYTES, 8)?;
        if &tail[4..] != b"PAR1" {
            let why = match &tail[4..] {
                b"PARE" => "its footer is encrypted",
                _ => {
                    "it does not end with the magic number `PAR1`: it is something else, or was cut off"
                }
            };
            return Err(Wrong::new(why));
        }
        let footer = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if footer > bytes_max || footer + TAIL_BYTES > size {
            return Err(Wrong::new(format!("its footer cannot have {footer} bytes")));
        }
        Ok(())
    }
}

impl Length for Content {
    fn len(&self) -> u64 {
        self.0.size()
    }
}

impl ChunkReader for Content {
    type T = io::BufReader<Rest>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = Rest { stored: Arc::clone(&self.0), place: start };
        Ok(io::BufReader::with_capacity(AHEAD_BYTES, from))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        // Before so much memory is taken.
        if start.checked_add(length as u64).is_none_or(|end| end > self.0.size()) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are not there")));
        }
        let mut bytes = vec![0; length];
        let mut from = Rest { stored: Arc::clone(&self.0), place: start };
        from.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Content from a place on.
pub(super) struct Rest {
    stored: Arc<dyn Stored>,
    place: u64,
}

impl Read for Rest {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stored.read_at(buffer, self.place)?;
        self.place += count as u64;
        Ok(count)
    }
}
