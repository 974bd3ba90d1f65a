//! Records in the format of Kafka 0.11 and later (<https://kafka.apache.org/documentation/#messageformat>), written one
//! behind the other as a batch has them, so that a batch is sent from the memory into which its events were encoded.

use crate::wire::{put_uvarint, put_varint, width, zigzag};
use crc_fast::{CrcAlgorithm, Digest};

/// Bytes before the records of a batch.
pub(crate) const HEAD_BYTES: usize = 61;
/// Bytes of a batch that its length does not count: the offset and the length.
const BEFORE_BYTES: usize = 12;
/// The first byte of the part with a checksum.
const SUMMED_FROM: usize = 21;

/// Bytes that are written at once before the key of a record; the excess is taken back.
const HEAD_ROOM: usize = 16;

/// Records of one batch, without the batch's head.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: i32,
    /// Time of the first one, in milliseconds since 1970.
    first: i64,
    /// The latest time.
    latest: i64,
    /// Where the last record begins.
    last: usize,
    /// Bytes of the numbers before the last record and its value: what the next one's are likely to have.
    widths: (usize, usize),
}

/// The producer of a batch, and its place among the batches of a partition; none without idempotence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// The number of its first record.
    pub(crate) first: i32,
}

impl Sequence {
    const NONE: Self = Self { id: -1, epoch: -1, first: -1 };
}

impl Records {
    /// In this memory, which is emptied.
    pub(crate) fn within(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        Self { bytes, ..Self::default() }
    }

    /// Appends a record: `value` appends its value, `headers` are as [`headers`] made them. Gives the size of key and
    /// value. After an error there is nothing of it.
    #[inline]
    pub(crate) fn push<E>(
        &mut self,
        time: i64,
        key: Option<&[u8]>,
        headers: &[u8],
        value: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<usize, E> {
        if self.count == 0 {
            (self.first, self.latest, self.widths) = (time, time, (2, 2));
        }
        let start = self.bytes.len();
        let (length_width, value_width) = self.widths;
        let bytes = &mut self.bytes;
        // Both lengths are known only afterwards; where they were guessed wrong, the bytes after them move.
        let body = start + length_width;
        let numbers = [
            zigzag(time.wrapping_sub(self.first)),
            zigzag(i64::from(self.count)),
            zigzag(key.map_or(-1, |key| key.len() as i64)),
        ];
        put_head(bytes, length_width, numbers);
        if let Some(key) = key {
            bytes.extend_from_slice(key);
        }
        let at = bytes.len();
        put_room(bytes, value_width);
        if let Err(error) = value(bytes) {
            bytes.truncate(start);
            return Err(error);
        }
        let length = bytes.len() - at - value_width;
        let value_width = put_length(bytes, at, value_width, length);
        match headers {
            // There are none, most often.
            [none] => bytes.push(*none),
            _ => bytes.extend_from_slice(headers),
        }
        let body_length = bytes.len() - body;
        let length_width = put_length(bytes, start, length_width, body_length);
        self.widths = (length_width, value_width);
        self.last = start;
        self.count += 1;
        self.latest = self.latest.max(time);
        Ok(length + key.map_or(0, <[u8]>::len))
    }

    /// Takes the record back that came last; once.
    pub(crate) fn undo(&mut self) {
        self.bytes.truncate(self.last);
        self.count -= 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The head of a batch of these records, which are `body` when they are sent: compressed by the codec of this
    /// number, or as they are (0).
    pub(crate) fn head(
        &self,
        codec: i16,
        body: &[u8],
        sequence: Option<Sequence>,
    ) -> [u8; HEAD_BYTES] {
        let sequence = sequence.unwrap_or(Sequence::NONE);
        let length = (HEAD_BYTES - BEFORE_BYTES + body.len()) as i32;
        let mut head = [0; HEAD_BYTES];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        // The offset, which the broker gives, is zero.
        put(8, &length.to_be_bytes());
        // The epoch of the leader: unknown.
        put(12, &(-1_i32).to_be_bytes());
        // The format.
        put(16, &[2]);
        put(21, &codec.to_be_bytes());
        put(23, &(self.count - 1).to_be_bytes());
        put(27, &self.first.to_be_bytes());
        put(35, &self.latest.to_be_bytes());
        put(43, &sequence.id.to_be_bytes());
        put(51, &sequence.epoch.to_be_bytes());
        put(53, &sequence.first.to_be_bytes());
        put(57, &self.count.to_be_bytes());
        let mut sum = Digest::new(CrcAlgorithm::Crc32Iscsi);
        sum.update(&head[SUMMED_FROM..]);
        sum.update(body);
        head[17..21].copy_from_slice(&(sum.finalize() as u32).to_be_bytes());
        head
    }
}

/// Appends room for the length of a record, no attributes, and the numbers before its key.
#[inline]
fn put_head(bytes: &mut Vec<u8>, length_width: usize, numbers: [u64; 3]) {
    let mut end = length_width + 1;
    if end > 3 || numbers.iter().any(|number| *number >= 1 << 14) {
        return put_large_head(bytes, length_width, numbers);
    }
    // Built in a register, as none of them has more than two bytes: at most 3 + 3 × 2.
    let mut head = 0_u128;
    for number in numbers {
        let (low, high) = (number & 0x7f, number >> 7);
        let is_long = u64::from(high > 0);
        head |= u128::from(low | is_long << 7 | high << 8) << (8 * end);
        end += 1 + is_long as usize;
    }
    let start = bytes.len();
    bytes.extend_from_slice(&head.to_le_bytes());
    bytes.truncate(start + end);
}

#[cold]
fn put_large_head(bytes: &mut Vec<u8>, length_width: usize, numbers: [u64; 3]) {
    bytes.resize(bytes.len() + length_width + 1, 0);
    for number in numbers {
        put_uvarint(bytes, number);
    }
}

/// Appends room for a number of so many bytes.
#[inline]
fn put_room(bytes: &mut Vec<u8>, width: usize) {
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEAD_ROOM]);
    bytes.truncate(start + width);
}

/// Writes the length of what stands behind `at`, where there are `guess` bytes for it. Gives how many it took.
#[inline]
fn put_length(bytes: &mut Vec<u8>, at: usize, guess: usize, length: usize) -> usize {
    let number = zigzag(length as i64);
    // Most records have from 64 to 8191 bytes.
    if guess == 2 && (1 << 7..1 << 14).contains(&number) {
        bytes[at..at + 2].copy_from_slice(&[number as u8 | 0x80, (number >> 7) as u8]);
        return 2;
    }
    put_other_length(bytes, at, guess, number, length)
}

#[cold]
fn put_other_length(
    bytes: &mut Vec<u8>,
    at: usize,
    guess: usize,
    number: u64,
    length: usize,
) -> usize {
    let wanted = width(number);
    let (from, to) = (at + guess, at + wanted);
    if wanted > guess {
        bytes.resize(bytes.len() + wanted - guess, 0);
        bytes.copy_within(from..from + length, to);
    } else if wanted < guess {
        bytes.copy_within(from..from + length, to);
        bytes.truncate(to + length);
    }
    let mut rest = number;
    for byte in &mut bytes[at..to - 1] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    bytes[to - 1] = rest as u8;
    wanted
}

/// The end of each record: how many headers there are, and these.
pub(crate) fn headers(headers: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, headers.len() as i64);
    for text in headers.iter().flat_map(|(key, value)| [key, value]) {
        put_uvarint(&mut out, zigzag(text.len() as i64));
        out.extend_from_slice(text.as_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::records::{Compression, RecordBatchDecoder, RecordSet};

    fn push(records: &mut Records, time: i64, key: Option<&[u8]>, value: &[u8]) -> usize {
        let value = |out: &mut Vec<u8>| {
            out.extend_from_slice(value);
            Ok::<(), ()>(())
        };
        records.push(time, key, &[0], value).expect("it has a value")
    }

    fn read(records: &Records, sequence: Option<Sequence>) -> RecordSet {
        let mut batch = records.head(0, &records.bytes, sequence).to_vec();
        batch.extend_from_slice(&records.bytes);
        let mut batch = Bytes::from(batch);
        let found = RecordBatchDecoder::decode(&mut batch).expect("a batch with its checksum");
        assert!(batch.is_empty(), "all of it was read");
        found
    }

    #[test]
    fn another_implementation_reads_records_of_every_size() {
        let sizes = [0, 1, 40, 50, 55, 60, 63, 64, 100, 8100, 8191, 8192, 9000, 1_048_576, 5, 300];
        let mut records = Records::within(b"before".to_vec());
        for (number, size) in sizes.into_iter().enumerate() {
            let key = vec![b'k'; size / 2];
            let key = (number % 2 == 0).then_some(&key[..]);
            let returned = push(&mut records, 1000 - number as i64, key, &vec![b'v'; size]);
            assert_eq!(returned, size + key.map_or(0, <[u8]>::len));
        }
        let sequence = Sequence { id: 7, epoch: 3, first: 100 };
        let found = read(&records, Some(sequence));
        assert_eq!(found.compression, Compression::None);
        assert_eq!(found.records.len(), sizes.len());
        for (number, (record, size)) in found.records.iter().zip(sizes).enumerate() {
            assert_eq!(record.offset, number as i64);
            assert_eq!(record.timestamp, 1000 - number as i64);
            let key = record.key.as_ref().map(Bytes::len);
            assert_eq!(key, (number % 2 == 0).then_some(size / 2));
            assert!(record.value.as_ref().is_some_and(|value| value[..] == vec![b'v'; size][..]));
            assert_eq!((record.producer_id, record.producer_epoch), (7, 3));
            assert_eq!(record.sequence, 100 + number as i32);
        }
        assert_eq!(records.latest, 1000);
    }

    #[test]
    fn a_record_that_fails_or_is_taken_back_leaves_nothing() {
        let mut records = Records::default();
        push(&mut records, 5, None, b"one");
        let before = records.bytes.clone();
        let failed = records.push(9, Some(b"key"), &[0], |out| {
            out.extend_from_slice(b"half");
            Err("no value")
        });
        assert_eq!((failed, &records.bytes, records.count), (Err("no value"), &before, 1));
        push(&mut records, 9, None, &[b'x'; 9000]);
        records.undo();
        assert_eq!((&records.bytes, records.count), (&before, 1));
        push(&mut records, 6, Some(b""), b"two");
        let found = read(&records, None);
        assert_eq!(found.records.len(), 2);
        assert_eq!(found.records[1].key.as_deref(), Some(&b""[..]));
        assert_eq!(found.records[0].key, None);
        assert_eq!(found.records[0].producer_id, -1);
    }

    #[test]
    fn headers_may_repeat_and_be_empty() {
        let pairs = [("a", "one"), ("a", "two"), ("b", "")];
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut records = Records::default();
        let pushed = records.push(0, None, &headers(&pairs[1..]), |out| {
            out.push(b'x');
            Ok::<(), ()>(())
        });
        assert_eq!(pushed, Ok(1));
        let found = read(&records, None);
        let value = |key: &'static str| {
            let key = kafka_protocol::protocol::StrBytes::from_static_str(key);
            found.records[0].headers.get(&key).and_then(Clone::clone)
        };
        assert_eq!(value("a").as_deref(), Some(&b"two"[..]));
        assert_eq!(value("b").as_deref(), Some(&b""[..]));
        assert_eq!(headers(&pairs).len(), 1 + 3 * 2 + 3 + 3 + 3);
    }
}
