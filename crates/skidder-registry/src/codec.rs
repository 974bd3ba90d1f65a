//! Entries and checkpoints as bytes: see `FORMAT.md`, "Values".
//!
//! Every value carries a checksum over its key and itself, so that a value is never taken for another
//! one's, wherever it was found.

use crate::{Cursor, Entry, FileEntry, Meta, SourceAbout, SourceCursor, SourceEntry, Tail};
use skidder_os::Timestamp;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The newest version of an entry that this program reads, and the one it writes.
const ENTRY_VERSION: u8 = 2;
/// What version 2 begins with, behind its version.
const KIND_FILE: u8 = 1;
const KIND_SOURCE: u8 = 2;
const CHECKPOINT_VERSION: u8 = 1;
const CRC_BYTES: usize = 4;

const FLAG_EOF: u8 = 1;
const FLAG_TAIL: u8 = 2;
const FLAG_FINGERPRINT_LEN: u8 = 4;
const FLAG_TTL: u8 = 8;
const FLAGS: u8 = FLAG_EOF | FLAG_TAIL | FLAG_FINGERPRINT_LEN | FLAG_TTL;

/// Why bytes are not a value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The bytes are not what was written.
    #[error("the checksum does not match")]
    Checksum,
    /// Written by a later program.
    #[error("version {0} is newer than this program")]
    Newer(u8),
    /// The checksum matches but the bytes make no sense: a mistake of the program that wrote them.
    #[error("the fields do not fit their length")]
    Malformed,
}

pub(crate) fn encode_entry(key: &str, entry: &Entry) -> Vec<u8> {
    let out = match entry {
        Entry::File(file) => encode_file(file),
        Entry::Source(source) => encode_source(source),
    };
    seal(key, out)
}

fn encode_file(entry: &FileEntry) -> Vec<u8> {
    let source = entry.meta.source.as_os_str().as_bytes();
    let mut out = Vec::with_capacity(84 + source.len() + entry.meta.identifier_name.len());
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.extend([ENTRY_VERSION, KIND_FILE]);
    out.push(
        flag(entry.cursor.eof, FLAG_EOF)
            | flag(entry.cursor.tail.is_some(), FLAG_TAIL)
            | flag(entry.meta.fingerprint_len.is_some(), FLAG_FINGERPRINT_LEN)
            | flag(entry.ttl.is_some(), FLAG_TTL),
    );
    out.extend(entry.cursor.offset.to_le_bytes());
    out.extend(entry.cursor.generation.to_le_bytes());
    out.extend(entry.meta.device.to_le_bytes());
    out.extend(entry.meta.inode.to_le_bytes());
    out.extend(entry.updated.0.to_le_bytes());
    if let Some(tail) = entry.cursor.tail {
        out.extend(tail.len.to_le_bytes());
        out.extend(tail.crc.to_le_bytes());
    }
    if let Some(length) = entry.meta.fingerprint_len {
        out.extend(length.to_le_bytes());
    }
    if let Some(ttl) = entry.ttl {
        out.extend(ttl.as_secs().to_le_bytes());
        out.extend(ttl.subsec_nanos().to_le_bytes());
    }
    put_bytes(&mut out, source);
    put_bytes(&mut out, entry.meta.identifier_name.as_bytes());
    out
}

fn encode_source(entry: &SourceEntry) -> Vec<u8> {
    let SourceEntry { cursor, about, updated } = entry;
    let mut out = vec![ENTRY_VERSION, KIND_SOURCE];
    out.extend(cursor.version.to_le_bytes());
    out.extend(updated.0.to_le_bytes());
    put_bytes(&mut out, cursor.text.as_bytes());
    put_bytes(&mut out, about.input.as_bytes());
    put_bytes(&mut out, about.name.as_bytes());
    out
}

pub(crate) fn decode_entry(key: &str, bytes: &[u8]) -> Result<Entry, DecodeError> {
    let (version, value) = unseal(key, bytes, ENTRY_VERSION)?;
    let mut fields = Fields(value);
    // Version 1 knew nothing but files.
    let kind = if version == 1 { KIND_FILE } else { u8::from_le_bytes(fields.array()?) };
    let entry = match kind {
        KIND_FILE => Entry::File(decode_file(&mut fields)?),
        KIND_SOURCE => Entry::Source(decode_source(&mut fields)?),
        _ => return Err(DecodeError::Malformed),
    };
    if !fields.0.is_empty() {
        return Err(DecodeError::Malformed);
    }
    Ok(entry)
}

fn decode_source(fields: &mut Fields<'_>) -> Result<SourceEntry, DecodeError> {
    let version = u32::from_le_bytes(fields.array()?);
    let updated = Timestamp(i64::from_le_bytes(fields.array()?));
    let text = fields.text()?.into();
    let about = SourceAbout { input: fields.text()?.into(), name: fields.text()?.into() };
    Ok(SourceEntry { cursor: SourceCursor { version, text }, about, updated })
}

fn decode_file(fields: &mut Fields<'_>) -> Result<FileEntry, DecodeError> {
    let [flags] = fields.array()?;
    if flags & !FLAGS != 0 {
        return Err(DecodeError::Malformed);
    }
    let offset = u64::from_le_bytes(fields.array()?);
    let generation = u32::from_le_bytes(fields.array()?);
    let device = u64::from_le_bytes(fields.array()?);
    let inode = u64::from_le_bytes(fields.array()?);
    let updated = Timestamp(i64::from_le_bytes(fields.array()?));
    let tail = match flags & FLAG_TAIL {
        0 => None,
        _ => Some(Tail {
            len: u32::from_le_bytes(fields.array()?),
            crc: u32::from_le_bytes(fields.array()?),
        }),
    };
    let fingerprint_len = match flags & FLAG_FINGERPRINT_LEN {
        0 => None,
        _ => Some(u32::from_le_bytes(fields.array()?)),
    };
    let ttl = match flags & FLAG_TTL {
        0 => None,
        _ => {
            let seconds = u64::from_le_bytes(fields.array()?);
            let nanoseconds = u32::from_le_bytes(fields.array()?);
            if nanoseconds >= 1_000_000_000 {
                return Err(DecodeError::Malformed);
            }
            Some(Duration::new(seconds, nanoseconds))
        }
    };
    let source = Arc::from(Path::new(OsStr::from_bytes(fields.bytes()?)));
    let identifier_name = Arc::from(fields.text()?);
    Ok(FileEntry {
        cursor: Cursor { offset, generation, eof: flags & FLAG_EOF != 0, tail },
        meta: Meta { source, identifier_name, fingerprint_len, device, inode },
        updated,
        ttl,
    })
}

pub(crate) fn encode_checkpoint(key: &str, checkpoint: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + checkpoint.len() + CRC_BYTES);
    out.push(CHECKPOINT_VERSION);
    out.extend(checkpoint);
    seal(key, out)
}

pub(crate) fn decode_checkpoint<'a>(key: &str, bytes: &'a [u8]) -> Result<&'a [u8], DecodeError> {
    unseal(key, bytes, CHECKPOINT_VERSION).map(|(_, value)| value)
}

/// Whether `bytes` are a value as it was written for `key`, of whatever version.
pub(crate) fn is_intact(key: &str, bytes: &[u8]) -> bool {
    unseal(key, bytes, u8::MAX).is_ok()
}

fn seal(key: &str, mut out: Vec<u8>) -> Vec<u8> {
    let crc = checksum(key, &out);
    out.extend(crc.to_le_bytes());
    out
}

/// Checks the checksum and the version; returns the version and what follows it.
fn unseal<'a>(key: &str, bytes: &'a [u8], newest: u8) -> Result<(u8, &'a [u8]), DecodeError> {
    let (value, crc) = bytes.split_last_chunk::<CRC_BYTES>().ok_or(DecodeError::Checksum)?;
    if checksum(key, value) != u32::from_le_bytes(*crc) {
        return Err(DecodeError::Checksum);
    }
    match value.split_first() {
        Some((&version, _)) if version > newest => Err(DecodeError::Newer(version)),
        Some((&version, rest)) if version > 0 => Ok((version, rest)),
        _ => Err(DecodeError::Malformed),
    }
}

/// The length goes first, so that no byte can move between key and value unnoticed.
fn checksum(key: &str, value: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(key.len() as u32).to_le_bytes());
    hasher.update(key.as_bytes());
    hasher.update(value);
    hasher.finalize()
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).expect("paths and names are far below 4 GiB");
    out.extend(length.to_le_bytes());
    out.extend(bytes);
}

/// The rest of a value.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let (array, rest) = self.0.split_first_chunk().ok_or(DecodeError::Malformed)?;
        self.0 = rest;
        Ok(*array)
    }

    fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let length = u32::from_le_bytes(self.array()?) as usize;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(DecodeError::Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Malformed)
    }
}

#[cfg(test)]
mod tests;
