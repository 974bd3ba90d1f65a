//! A second copy of all entries, for the day the store is damaged: see `FORMAT.md`, "Snapshot".
//!
//! It is written whole, and is at its place only when it is durable.

use crate::codec;
use crate::entry::KEY_BYTES_MAX;
use skidder_os::{File, write_all_at};
use std::io;

const MAGIC: &[u8; 8] = b"skidsnap";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;
/// Stands where a key's length would, before the trailer.
const END: u32 = u32::MAX;
/// Bounds what a damaged length can make us allocate; entries are far smaller.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Unit of reading and writing.
const BUFFER_BYTES: usize = 64 * 1024;

/// The result of reading a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything was there.
    Complete,
    /// Some of it was not; what was given is right.
    Damaged,
}

/// Writes a snapshot into an empty file.
pub(crate) struct Writer<'a> {
    file: &'a dyn File,
    buffer: Vec<u8>,
    offset: u64,
    hasher: crc32fast::Hasher,
    count: u64,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(file: &'a dyn File) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES * 2);
        buffer.extend(MAGIC);
        buffer.extend(VERSION.to_le_bytes());
        Self { file, buffer, offset: 0, hasher: crc32fast::Hasher::new(), count: 0 }
    }

    /// Adds an entry.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> io::Result<()> {
        self.buffer.extend((key.len() as u32).to_le_bytes());
        self.buffer.extend((value.len() as u32).to_le_bytes());
        self.buffer.extend(key);
        self.buffer.extend(value);
        self.count += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Ends the snapshot and makes its data durable; returns its size in bytes.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        self.buffer.extend(END.to_le_bytes());
        self.buffer.extend(self.count.to_le_bytes());
        self.flush()?;
        let crc = self.hasher.clone().finalize();
        self.buffer.extend(crc.to_le_bytes());
        self.flush()?;
        loop {
            match self.file.sync() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(self.offset),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        write_all_at(self.file, &self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// Calls `each` with every intact entry of a snapshot, and stops where the file makes no sense.
pub(crate) fn read<E: From<io::Error>>(
    file: &dyn File,
    mut each: impl FnMut(&str, &[u8]) -> Result<(), E>,
) -> Result<Outcome, E> {
    let mut reader = Reader::new(file);
    let mut outcome = Outcome::Complete;
    let Some(header) = reader.take(HEADER_BYTES)? else { return Ok(Outcome::Damaged) };
    if header[..8] != *MAGIC || header[8..] != VERSION.to_le_bytes() {
        return Ok(Outcome::Damaged);
    }
    let mut count = 0_u64;
    loop {
        let Some(key_length) = reader.number()? else { return Ok(Outcome::Damaged) };
        if key_length == END {
            break;
        }
        let Some(value_length) = reader.number()? else { return Ok(Outcome::Damaged) };
        let (key_length, value_length) = (key_length as usize, value_length as usize);
        if key_length > KEY_BYTES_MAX || value_length > VALUE_BYTES_MAX {
            return Ok(Outcome::Damaged);
        }
        let Some(pair) = reader.take(key_length + value_length)? else {
            return Ok(Outcome::Damaged);
        };
        let (key, value) = pair.split_at(key_length);
        match std::str::from_utf8(key) {
            Ok(key) if codec::is_intact(key, value) => each(key, value)?,
            _ => outcome = Outcome::Damaged,
        }
        count += 1;
    }
    let counted = reader.take(8)?.is_some_and(|bytes| *bytes == count.to_le_bytes());
    let crc = reader.hasher.clone().finalize();
    let sealed = reader.take(4)?.is_some_and(|bytes| *bytes == crc.to_le_bytes());
    let ended = reader.take(1)?.is_none();
    Ok(if counted && sealed && ended { outcome } else { Outcome::Damaged })
}

/// Reads a file from the start in pieces.
struct Reader<'a> {
    file: &'a dyn File,
    buffer: Vec<u8>,
    /// What of the buffer is taken.
    taken: usize,
    offset: u64,
    /// Of all bytes taken.
    hasher: crc32fast::Hasher,
}

impl<'a> Reader<'a> {
    fn new(file: &'a dyn File) -> Self {
        Self { file, buffer: Vec::new(), taken: 0, offset: 0, hasher: crc32fast::Hasher::new() }
    }

    /// The next `length` bytes; `None` if the file ends before.
    fn take(&mut self, length: usize) -> io::Result<Option<&[u8]>> {
        if self.buffer.len() - self.taken < length {
            self.buffer.drain(..self.taken);
            self.taken = 0;
            while self.buffer.len() < length {
                if !self.fill(length)? {
                    return Ok(None);
                }
            }
        }
        let bytes = &self.buffer[self.taken..self.taken + length];
        self.taken += length;
        self.hasher.update(bytes);
        Ok(Some(bytes))
    }

    fn number(&mut self) -> io::Result<Option<u32>> {
        let bytes = self.take(4)?;
        Ok(bytes.map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four were taken"))))
    }

    /// Reads on; false at the end of the file.
    fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        let have = self.buffer.len();
        self.buffer.resize(have + BUFFER_BYTES.max(wanted - have), 0);
        let result = loop {
            match self.file.read_at(&mut self.buffer[have..], self.offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result,
            }
        };
        let count = *result.as_ref().unwrap_or(&0);
        self.buffer.truncate(have + count);
        self.offset += count as u64;
        result.map(|count| count > 0)
    }
}

#[cfg(test)]
mod tests;
