//! Records as another implementation writes them.

use super::*;
use bytes::{Bytes, BytesMut};
use kafka_protocol::indexmap::IndexMap;
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{
    Compression, Record as Theirs, RecordBatchEncoder, RecordEncodeOptions, TimestampType,
};
use std::io::Write as _;

/// A record as a test compares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    offset: i64,
    time: i64,
    block_time: Option<i64>,
    key: Vec<u8>,
    value: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
}

pub(crate) fn records(offsets: std::ops::Range<i64>) -> Vec<Theirs> {
    let one = |offset: i64| {
        let mut headers = IndexMap::new();
        if offset % 3 == 0 {
            headers
                .insert(StrBytes::from_static_str("trace"), Some(Bytes::from(offset.to_string())));
        }
        Theirs {
            transactional: false,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: 0,
            producer_id: -1,
            producer_epoch: -1,
            timestamp_type: TimestampType::Creation,
            timestamp: 1_700_000_000_000 + offset,
            sequence: offset as i32,
            offset,
            key: (offset % 2 == 0).then(|| Bytes::from(format!("key {offset}"))),
            value: Some(Bytes::from(format!("value of the record {offset}").repeat(20))),
            headers,
        }
    };
    offsets.map(one).collect()
}

/// A batch by the other implementation.
pub(crate) fn encoded(records: &[Theirs]) -> Vec<u8> {
    let mut out = BytesMut::new();
    let options = RecordEncodeOptions { version: 2, compression: Compression::None };
    RecordBatchEncoder::encode(&mut out, records.iter(), &options).expect("records");
    out.to_vec()
}

/// The length and the checksum of a batch that was changed.
pub(crate) fn seal(batch: &mut [u8]) {
    let length = (batch.len() - BEFORE_BYTES) as u32;
    batch[8..12].copy_from_slice(&length.to_be_bytes());
    let sum = crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, &batch[SUMMED_FROM..]) as u32;
    batch[17..21].copy_from_slice(&sum.to_be_bytes());
}

/// The same batch with its records compressed.
pub(crate) fn packed(batch: &[u8], codec: u8) -> Vec<u8> {
    let (head, body) = batch.split_at(HEAD_BYTES);
    let body = match codec {
        0 => body.to_vec(),
        1 => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(body).expect("memory");
            encoder.finish().expect("memory")
        }
        2 => snap::raw::Encoder::new().compress_vec(body).expect("memory"),
        3 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(body).expect("memory");
            encoder.finish().expect("memory")
        }
        _ => {
            let mut out = Vec::with_capacity(zstd_safe::compress_bound(body.len()));
            zstd_safe::compress(&mut out, body, 3).expect("there is room");
            out
        }
    };
    let mut all = [head, &body].concat();
    all[22] = codec;
    seal(&mut all);
    all
}

pub(crate) fn decoded(bytes: &[u8]) -> Result<Vec<Found>, RecordsError> {
    let all = decoded_in_parts(bytes, usize::MAX)?;
    assert_eq!(decoded_in_parts(bytes, 1)?.len(), all.len());
    assert_eq!(decoded_in_parts(bytes, 3)?, all, "however often reading stops");
    Ok(all)
}

/// The same, stopping before records whose number is divided by `every`.
fn decoded_in_parts(mut bytes: &[u8], every: usize) -> Result<Vec<Found>, RecordsError> {
    let mut all: Vec<Found> = Vec::new();
    let mut room = Vec::new();
    while let Some(batch) = next_batch(&mut bytes)? {
        let (mut place, mut is_whole) = (Place::default(), false);
        while !is_whole {
            let (mut taken, done) = (0, all.last().map_or(-1, |last| last.offset));
            is_whole = batch.each(&mut room, &mut place, |record| {
                if record.offset <= done && batch.magic < 2 {
                    return Ok(true);
                }
                if taken == every {
                    return Ok(false);
                }
                taken += 1;
                let mut headers = Vec::new();
                record.headers.each(|key, value| headers.push((key.to_vec(), value.to_vec())))?;
                let Record { offset, time, block_time, key, value, .. } = record;
                let (key, value) = (key.to_vec(), value.to_vec());
                all.push(Found { offset, time, block_time, key, value, headers });
                Ok(true)
            })?;
        }
    }
    Ok(all)
}

fn expected(records: &[Theirs]) -> Vec<Found> {
    let bytes = |bytes: &Option<Bytes>| bytes.as_deref().unwrap_or_default().to_vec();
    let one = |record: &Theirs| Found {
        offset: record.offset,
        time: record.timestamp,
        block_time: None,
        key: bytes(&record.key),
        value: bytes(&record.value),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (key.as_bytes().to_vec(), bytes(value)))
            .collect(),
    };
    records.iter().map(one).collect()
}

#[test]
fn batches_of_every_codec_are_read() {
    let theirs = records(1_000..1_100);
    let batch = encoded(&theirs);
    assert_eq!(decoded(&batch).expect("records"), expected(&theirs));
    for codec in 0..5 {
        let bytes = packed(&batch, codec);
        assert_eq!(decoded(&bytes).expect("records"), expected(&theirs), "{codec}");
        assert_eq!(decoded(&bytes.repeat(2)).expect("records").len(), 200, "{codec}");
        // Cut off anywhere, there is nothing of the batch, and no error.
        for length in [0, 8, 17, 60, 61, bytes.len() - 1] {
            assert_eq!(decoded(&bytes[..length]).expect("no error"), [], "{codec} {length}");
        }
    }
}

/// A compressed message: offsets in it count from the first (format 1), or are those of the partition (format 0).
#[test]
fn compressed_messages_of_the_formats_before_batches_are_read() {
    let message = |magic: u8, codec: u8, offset: i64, time: i64, value: &[u8]| {
        let mut body = vec![magic, codec];
        if magic == 1 {
            body.extend_from_slice(&time.to_be_bytes());
        }
        body.extend_from_slice(&(-1_i32).to_be_bytes());
        body.extend_from_slice(&(value.len() as i32).to_be_bytes());
        body.extend_from_slice(value);
        let sum = crc_fast::checksum(CrcAlgorithm::Crc32IsoHdlc, &body) as u32;
        let length = (body.len() + 4) as i32;
        [&offset.to_be_bytes()[..], &length.to_be_bytes(), &sum.to_be_bytes(), &body].concat()
    };
    for magic in [0, 1] {
        let (offset, time) = (7, if magic == 0 { -1 } else { 5 });
        let alone = decoded(&message(magic, 0, offset, 5, b"alone")).expect("a message");
        let value = b"alone".to_vec();
        let (key, headers) = (Vec::new(), Vec::new());
        assert_eq!(alone, [Found { offset, time, block_time: None, key, value, headers }]);
        let first = if magic == 1 { 0 } else { 40 };
        let inner: Vec<u8> = (0..3)
            .flat_map(|place| message(magic, 0, first + place, 100 + place, b"text"))
            .collect();
        let packed = snap::raw::Encoder::new().compress_vec(&inner).expect("packed");
        let bytes = message(magic, 2, 42, 200, &packed);
        let found = decoded(&bytes).expect("messages");
        let facts: Vec<_> =
            found.iter().map(|one| (one.offset, one.time, one.block_time)).collect();
        let wanted = match magic {
            0 => vec![(40, -1, None), (41, -1, None), (42, -1, None)],
            _ => vec![(40, 100, Some(200)), (41, 101, Some(200)), (42, 102, Some(200))],
        };
        assert_eq!(facts, wanted);
    }
}

/// Whatever byte is damaged: it is found, or it is none that has a meaning (the offset and the epoch of the leader).
#[test]
fn a_damaged_batch_is_an_error_or_is_not_complete() {
    let theirs = records(0..3);
    let bytes = encoded(&theirs);
    let whole = decoded(&bytes).expect("records");
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x55;
        match decoded(&damaged) {
            Err(_) => {}
            // Its length is of more bytes than there are.
            Ok(found) if found.is_empty() => assert!((8..12).contains(&place), "{place}"),
            Ok(found) => {
                assert!(place < 8 || (12..16).contains(&place), "{place}");
                assert_eq!(found.len(), whole.len());
            }
        }
    }
    assert!(matches!(
        decoded(&{
            let mut damaged = bytes.clone();
            damaged[70] ^= 1;
            damaged
        }),
        Err(RecordsError::Checksum)
    ));
}

/// A fuzz target of seeds: nothing panics, and nothing takes memory that the bytes do not justify.
#[test]
fn random_damage_with_a_right_checksum_never_panics() {
    let mut random = 1_u64;
    let mut next = move || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    for codec in 0..5 {
        let bytes = packed(&encoded(&records(0..20)), codec);
        for _ in 0..3_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=next() % 4 {
                let place = SUMMED_FROM + next() % (damaged.len() - SUMMED_FROM);
                damaged[place] = next() as u8;
            }
            seal(&mut damaged);
            if let Ok(found) = decoded(&damaged) {
                assert!(found.len() <= bytes.len() * 64, "{}", found.len());
            }
        }
    }
}
