//! Records as a broker sends them: batches of Kafka 0.11 and later, and the sets of messages before them
//! (<https://kafka.apache.org/documentation/#messageformat>).
//!
//! What comes from the network is checked before it is used: lengths, checksums, codecs. A batch that is cut off at
//! the end of an answer is no error: the next answer begins with it.

use crate::unpack::unpack;
use crc_fast::CrcAlgorithm;
use std::io;

/// Bytes before the length that a batch or message counts.
const BEFORE_BYTES: usize = 12;
/// Bytes of a batch before its records.
const HEAD_BYTES: usize = 61;
/// Where the format's number stands, in all formats.
const MAGIC_AT: usize = 16;
/// The part with a checksum, of batches.
const SUMMED_FROM: usize = 21;

const CODEC: i16 = 7;
const APPEND_TIME: i16 = 8;
const TRANSACTIONAL: i16 = 16;
const CONTROL: i16 = 32;

/// Why records cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordsError {
    /// Damaged on the way, or on the broker's disk.
    #[error("the checksum of the batch is wrong")]
    Checksum,
    /// Not what the format says.
    #[error("the batch makes no sense: {0}")]
    Malformed(&'static str),
    /// Not what its codec says.
    #[error("cannot unpack the batch: {0}")]
    Codec(#[from] io::Error),
    /// A format that is not known.
    #[error("the batch has a format of number {0}")]
    Format(u8),
}

/// A record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) offset: i64,
    /// Milliseconds since 1970; below zero if there is none.
    pub(crate) time: i64,
    /// Of the compressed message that it was in, of the formats before batches.
    pub(crate) block_time: Option<i64>,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
    pub(crate) headers: Headers<'a>,
}

/// The headers of a record, as they stand in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Each key and value.
    pub(crate) fn each(
        mut self,
        mut each: impl FnMut(&'a [u8], &'a [u8]),
    ) -> Result<(), RecordsError> {
        let mut rest = Bytes(std::mem::take(&mut self.bytes));
        for _ in 0..self.count {
            let key = rest.sized()?.unwrap_or_default();
            each(key, rest.sized()?.unwrap_or_default());
        }
        Ok(())
    }
}

/// Bytes that are read from the front.
struct Bytes<'a>(&'a [u8]);

const SHORT: RecordsError = RecordsError::Malformed("it ends too early");

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], RecordsError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<i64, RecordsError> {
        let mut value = 0_u64;
        for (place, byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * place as u32);
            if byte & 0x80 == 0 {
                self.0 = &self.0[place + 1..];
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(RecordsError::Malformed("a number has no end"))
    }

    /// Bytes behind their length; nothing if it is below zero.
    fn sized(&mut self) -> Result<Option<&'a [u8]>, RecordsError> {
        match usize::try_from(self.varint()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn i32(&mut self) -> Result<i32, RecordsError> {
        Ok(i32::from_be_bytes(at(self.take(4)?, 0)))
    }

    fn i64(&mut self) -> Result<i64, RecordsError> {
        Ok(i64::from_be_bytes(at(self.take(8)?, 0)))
    }

    /// The same with a length of four bytes, as messages have it.
    fn message_bytes(&mut self) -> Result<&'a [u8], RecordsError> {
        let length = usize::try_from(self.i32()?).unwrap_or(0);
        self.take(length)
    }
}

/// Bytes at a place that is there.
fn at<const N: usize>(bytes: &[u8], place: usize) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(&bytes[place..place + N]);
    found
}

/// A batch, or a message of the formats before, whose checksum is right.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordBatch<'a> {
    base: i64,
    /// The offset of its last record, whether that is still there or not.
    pub(crate) last: i64,
    attributes: i16,
    first_time: i64,
    max_time: i64,
    /// Its producer; of a transaction.
    pub(crate) producer: i64,
    count: usize,
    /// Records, perhaps compressed; of the formats before, all of the message behind its checksum.
    body: &'a [u8],
    /// The format: 0, 1 or 2.
    magic: u8,
}

/// How far the records of a batch are read.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// Records, and the bytes that they take of all records, unpacked.
    records: usize,
    at: usize,
    is_unpacked: bool,
}

/// The next batch of an answer; `None` if none is complete. `bytes` then begin behind it.
pub(crate) fn next_batch<'a>(
    bytes: &mut &'a [u8],
) -> Result<Option<RecordBatch<'a>>, RecordsError> {
    if bytes.len() <= MAGIC_AT {
        return Ok(None);
    }
    let length = u32::from_be_bytes(at(bytes, 8)) as usize;
    let magic = bytes[MAGIC_AT];
    let least = match magic {
        0 => 14,
        1 => 22,
        2 => HEAD_BYTES - BEFORE_BYTES,
        magic => return Err(RecordsError::Format(magic)),
    };
    if length < least || length > i32::MAX as usize {
        return Err(RecordsError::Malformed("its length is none"));
    }
    let Some((batch, rest)) = bytes.split_at_checked(BEFORE_BYTES + length) else {
        return Ok(None);
    };
    let read = if magic == 2 { read_batch(batch)? } else { read_message(batch, magic)? };
    *bytes = rest;
    Ok(Some(read))
}

fn read_batch(batch: &[u8]) -> Result<RecordBatch<'_>, RecordsError> {
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &batch[SUMMED_FROM..]) as u32;
    if sum != u32::from_be_bytes(at(batch, 17)) {
        return Err(RecordsError::Checksum);
    }
    let base = i64::from_be_bytes(at(batch, 0));
    let last_delta = i32::from_be_bytes(at(batch, 23));
    let count = i32::from_be_bytes(at(batch, 57));
    if base < 0 || last_delta < 0 || count < 0 || base.checked_add(i64::from(last_delta)).is_none()
    {
        return Err(RecordsError::Malformed("a number is below zero"));
    }
    Ok(RecordBatch {
        base,
        last: base + i64::from(last_delta),
        attributes: i16::from_be_bytes(at(batch, 21)),
        first_time: i64::from_be_bytes(at(batch, 27)),
        max_time: i64::from_be_bytes(at(batch, 35)),
        producer: i64::from_be_bytes(at(batch, 43)),
        count: count as usize,
        body: &batch[HEAD_BYTES..],
        magic: 2,
    })
}

fn read_message(message: &[u8], magic: u8) -> Result<RecordBatch<'_>, RecordsError> {
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, &message[MAGIC_AT..]) as u32;
    if sum != u32::from_be_bytes(at(message, BEFORE_BYTES)) {
        return Err(RecordsError::Checksum);
    }
    let offset = i64::from_be_bytes(at(message, 0));
    let (time, body) = match magic {
        0 => (-1, &message[18..]),
        _ => (i64::from_be_bytes(at(message, 18)), &message[26..]),
    };
    Ok(RecordBatch {
        base: offset,
        last: offset,
        attributes: i16::from(message[17]),
        first_time: time,
        max_time: time,
        producer: -1,
        count: 1,
        body,
        magic,
    })
}

impl<'a> RecordBatch<'a> {
    /// The offset of its first record.
    pub(crate) fn first(&self) -> i64 {
        self.base
    }

    /// Whether it is part of a transaction.
    pub(crate) fn is_transactional(&self) -> bool {
        self.magic == 2 && self.attributes & TRANSACTIONAL != 0
    }

    /// Whether it is for clients and no user's.
    pub(crate) fn is_control(&self) -> bool {
        self.magic == 2 && self.attributes & CONTROL != 0
    }

    /// Whether it says that a transaction was aborted.
    pub(crate) fn is_abort(&self) -> Result<bool, RecordsError> {
        let mut kind = None;
        self.each(&mut Vec::new(), &mut Place::default(), |record| {
            // The version, and the kind: 0 aborts, 1 commits.
            kind = record.key.get(2..4).map(|kind| kind == [0, 0]);
            Ok(true)
        })?;
        kind.ok_or(RecordsError::Malformed("a control record has no kind"))
    }

    /// Calls `each` for every record from `place` on, in order, until it returns `false`; returns whether it never did, and
    /// leaves `place` before the record where it did. `room` is for unpacked records, and for the same batch it is as the
    /// call before has left it.
    pub(crate) fn each(
        &self,
        room: &mut Vec<u8>,
        place: &mut Place,
        mut each: impl FnMut(Record<'_>) -> Result<bool, RecordsError>,
    ) -> Result<bool, RecordsError> {
        let codec = (self.attributes & CODEC) as u8;
        if self.magic < 2 {
            return self.each_message(codec, room, each);
        }
        if codec != 0 && !place.is_unpacked {
            unpack(codec, self.body, room)?;
            place.is_unpacked = true;
        }
        let body = if codec == 0 { self.body } else { room };
        let mut rest = Bytes(body.get(place.at..).ok_or(SHORT)?);
        while place.records < self.count {
            if !each(self.record(&mut rest)?)? {
                return Ok(false);
            }
            place.records += 1;
            place.at = body.len() - rest.0.len();
        }
        Ok(true)
    }

    #[inline]
    fn record<'b>(&self, rest: &mut Bytes<'b>) -> Result<Record<'b>, RecordsError> {
        let length = usize::try_from(rest.varint()?).map_err(|_| SHORT)?;
        let mut record = Bytes(rest.take(length)?);
        record.take(1)?;
        let (time, offset) = (record.varint()?, record.varint()?);
        let key = record.sized()?.unwrap_or_default();
        let value = record.sized()?.unwrap_or_default();
        let count = usize::try_from(record.varint()?).unwrap_or(0);
        if count > record.0.len() {
            return Err(SHORT);
        }
        let offset =
            self.base.checked_add(offset).filter(|offset| (self.base..=self.last).contains(offset));
        let offset =
            offset.ok_or(RecordsError::Malformed("a record has an offset of another batch"))?;
        let time = match self.attributes & APPEND_TIME {
            0 if self.first_time < 0 => -1,
            0 => self.first_time.saturating_add(time),
            _ => self.max_time,
        };
        let headers = Headers { count, bytes: record.0 };
        Ok(Record { offset, time, block_time: None, key, value, headers })
    }

    /// A message, or those that are compressed in its value, from the first on: callers pass over what they have seen.
    fn each_message(
        &self,
        codec: u8,
        room: &mut Vec<u8>,
        mut each: impl FnMut(Record<'_>) -> Result<bool, RecordsError>,
    ) -> Result<bool, RecordsError> {
        let mut body = Bytes(self.body);
        let key = body.message_bytes()?;
        let value = body.message_bytes()?;
        let headers = Headers::default();
        if codec == 0 {
            let (offset, time) = (self.base, self.first_time);
            return each(Record { offset, time, block_time: None, key, value, headers });
        }
        unpack(codec, value, room)?;
        let inner = split_inner(room)?;
        // Offsets of the later format count from the first message; that of the outer one is the last one's.
        let last = inner.last().map_or(0, |message| message.base);
        let first = if self.magic == 1 { self.base - last } else { 0 };
        for message in inner {
            let mut body = Bytes(message.body);
            let key = body.message_bytes()?;
            let value = body.message_bytes()?;
            let by_broker = self.attributes & APPEND_TIME != 0;
            let time = if by_broker { self.first_time } else { message.first_time };
            let offset = first.checked_add(message.base).ok_or(SHORT)?;
            let block_time = (self.magic == 1).then_some(self.first_time);
            if !each(Record { offset, time, block_time, key, value, headers })? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The messages in a compressed one, none of which is compressed itself.
fn split_inner(mut bytes: &[u8]) -> Result<Vec<RecordBatch<'_>>, RecordsError> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let message = next_batch(&mut bytes)?.ok_or(SHORT)?;
        if message.magic == 2 || message.attributes & CODEC != 0 {
            return Err(RecordsError::Malformed("a compressed message is in a compressed one"));
        }
        all.push(message);
    }
    Ok(all)
}

/// The offset at which a batch begins that could not be read, for messages about it.
pub(crate) fn first_offset(bytes: &[u8]) -> i64 {
    let mut reader = Bytes(bytes);
    reader.i64().unwrap_or(-1)
}

#[cfg(test)]
pub(crate) mod tests;
