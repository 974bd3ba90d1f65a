//! Checkpoints: taken at every boundary, stored, loaded, resumed in a new reader.

#![expect(clippy::unwrap_used, reason = "a test helper that fails is a failed test")]

mod common;

use common::{MemoryFile, Outcome, gzip, kinds, log_text, pool, read_on};
use proptest::prelude::*;
use skidder_decode::ReadState;
use skidder_decode::gzip::{Checkpoint, GzipReader, ResumeError};

/// All checkpoints of a file, one per block boundary and member.
fn checkpoints(file: &MemoryFile, interval: u64, out: usize) -> Outcome {
    let mut reader = GzipReader::new(&pool()).with_checkpoint_interval(interval);
    let mut outcome = Outcome::default();
    read_on(&mut reader, file, 4096, out, &mut outcome);
    assert!(outcome.is_clean());
    outcome
}

/// Stores and loads `checkpoint`, then reads the rest of the file.
fn rest_from(checkpoint: &Checkpoint, file: &MemoryFile) -> Outcome {
    let loaded = Checkpoint::from_bytes(&checkpoint.to_bytes()).unwrap();
    assert_eq!(loaded, *checkpoint);
    let mut reader = GzipReader::resume(&loaded, file, &pool()).unwrap();
    assert_eq!(reader.decompressed_offset(), checkpoint.decompressed_offset());
    let mut outcome = Outcome::default();
    read_on(&mut reader, file, 4096, 10_000, &mut outcome);
    outcome
}

#[test]
fn every_boundary_of_every_kind_of_stream_can_be_resumed() {
    let content = log_text(900_000);
    let mut unaligned = 0;
    for (kind, member) in kinds(&content) {
        let bytes = [member, gzip(&content[..5_000], 6), gzip(b"", 1)].concat();
        let whole = [&content[..], &content[..5_000]].concat();
        let file = MemoryFile::new(&bytes);
        // One byte of output a call would hand out every boundary; this is nearly as many.
        let outcome = checkpoints(&file, 0, 2_000);
        assert!(outcome.output == whole, "{kind}");
        let inside = outcome.checkpoints.iter().filter(|checkpoint| !checkpoint.is_free()).count();
        assert!(inside >= 1, "{kind}: no checkpoint inside the member");
        for checkpoint in &outcome.checkpoints {
            unaligned += usize::from(checkpoint.to_bytes()[5] != 0);
            let rest = rest_from(checkpoint, &file);
            let at = checkpoint.decompressed_offset() as usize;
            assert!(rest.is_clean(), "{kind} at {at}: {:?} {:?}", rest.end, rest.notes);
            assert!(rest.output == whole[at..], "{kind} at {at}");
        }
    }
    assert!(unaligned > 50, "{unaligned} boundaries inside a byte");
}

#[test]
fn a_checkpoint_of_a_resumed_reader_is_the_same() {
    let content = log_text(600_000);
    let file = MemoryFile::new(&gzip(&content, 6));
    let first = checkpoints(&file, 0, 1_000);
    let middle = first.checkpoints.len() / 2;
    let mut reader = GzipReader::resume(&first.checkpoints[middle], &file, &pool())
        .unwrap()
        .with_checkpoint_interval(0);
    let mut rest = Outcome::default();
    read_on(&mut reader, &file, 4096, 1_000, &mut rest);
    assert!(rest.is_clean());
    assert_eq!(rest.checkpoints, first.checkpoints[middle + 1..]);
}

#[test]
fn checkpoints_come_at_the_interval() {
    let content = log_text(5_000_000);
    let file = MemoryFile::new(&gzip(&content, 6));
    let outcome = checkpoints(&file, 1_000_000, 50_000);
    let offsets: Vec<u64> =
        outcome.checkpoints.iter().map(Checkpoint::decompressed_offset).collect();
    assert_eq!(*offsets.last().unwrap(), content.len() as u64, "the free one behind the member");
    for pair in offsets.windows(2).rev().skip(1) {
        assert!((1_000_000..1_400_000).contains(&(pair[1] - pair[0])), "{offsets:?}");
    }
    assert!(offsets.len() >= 4);
    let mut reader = GzipReader::new(&pool()).without_checkpoints();
    let mut none = Outcome::default();
    read_on(&mut reader, &file, 65_536, 65_536, &mut none);
    assert!(none.is_clean() && none.checkpoints.is_empty());
}

#[test]
fn skipping_leads_to_the_exact_byte() {
    let content = log_text(700_000);
    let file =
        MemoryFile::new(&[gzip(&content[..300_000], 6), gzip(&content[300_000..], 1)].concat());
    let all = checkpoints(&file, 100_000, 10_000).checkpoints;
    let (mut scratch, mut out) = (vec![0; 4096], vec![0; 30_000]);
    for target in [1, 99_999, 250_000, 299_999, 300_000, 300_001, 650_000, 700_000] {
        let near = all.iter().rfind(|checkpoint| checkpoint.decompressed_offset() <= target);
        let mut reader = match near {
            Some(checkpoint) => GzipReader::resume(checkpoint, &file, &pool()).unwrap(),
            None => GzipReader::new(&pool()),
        };
        let start = reader.decompressed_offset();
        let mut skipped = 0;
        while reader.decompressed_offset() < target {
            let progress = reader.skip_to(&file, &mut scratch, &mut out, target).unwrap();
            assert_eq!(progress.note, None);
            skipped += progress.produced as u64;
        }
        assert_eq!(start + skipped, target);
        let mut rest = Outcome::default();
        read_on(&mut reader, &file, 4096, 10_000, &mut rest);
        assert!(rest.is_clean() && rest.output == content[target as usize..], "{target}");
    }
    let mut reader = GzipReader::new(&pool());
    let progress = reader.skip_to(&file, &mut scratch, &mut out, 1 << 40).unwrap();
    assert_eq!((progress.produced, progress.state), (content.len(), ReadState::End));
}

#[test]
fn another_file_makes_the_checkpoint_stale() {
    let content = log_text(300_000);
    let bytes = gzip(&content, 6);
    let file = MemoryFile::new(&bytes);
    for checkpoint in checkpoints(&file, 0, 1_000).checkpoints {
        let at = checkpoint.compressed_offset() as usize;
        for (flip, stale) in [(at - 1, true), (at.saturating_sub(64), true)] {
            let mut other = bytes.clone();
            other[flip] ^= 1;
            let resumed = GzipReader::resume(&checkpoint, &MemoryFile::new(&other), &pool());
            assert_eq!(matches!(resumed, Err(ResumeError::Stale)), stale);
        }
        let short = MemoryFile::new(&bytes[..at - 1]);
        let resumed = GzipReader::resume(&checkpoint, &short, &pool());
        assert!(matches!(resumed, Err(ResumeError::Stale)));
    }
}

#[test]
fn a_file_that_has_grown_since_is_continued_from_its_checkpoint() {
    let content = log_text(400_000);
    let bytes = gzip(&content, 6);
    let cut = bytes.len() / 2;
    let file = MemoryFile::new(&bytes[..cut]);
    let mut reader = GzipReader::new(&pool()).with_checkpoint_interval(50_000);
    let mut outcome = Outcome::default();
    read_on(&mut reader, &file, 4096, 10_000, &mut outcome);
    assert_eq!(outcome.state(), Some(ReadState::Waiting));
    let newest = outcome.checkpoints.last().unwrap();
    file.append(&bytes[cut..]);
    let rest = rest_from(newest, &file);
    assert!(rest.is_clean());
    assert!(rest.output == content[newest.decompressed_offset() as usize..]);
}

#[test]
fn a_recycled_checkpoint_lends_its_memory_to_the_next() {
    let content = log_text(2_000_000);
    let file = MemoryFile::new(&gzip(&content, 6));
    let mut reader = GzipReader::new(&pool()).with_checkpoint_interval(0);
    let (mut scratch, mut out) = (vec![0; 4096], vec![0; 2_000]);
    let mut taken = 0;
    loop {
        let progress = reader.read(&file, &mut scratch, &mut out).unwrap();
        if let Some(checkpoint) = reader.take_checkpoint() {
            assert!(checkpoint.heap_bytes() <= 32 * 1024);
            reader.recycle(checkpoint);
            taken += 1;
        }
        if progress.state != ReadState::More {
            break;
        }
    }
    assert!(taken > 5);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn loading_random_bytes_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..200), seal in any::<bool>()) {
        if seal && bytes.len() > 60 {
            bytes[..5].copy_from_slice(b"skgz\x01");
            let packed = (bytes.len() - 60) as u32;
            bytes[52..56].copy_from_slice(&packed.to_le_bytes());
            let end = bytes.len() - 4;
            let checksum = crc32fast::hash(&bytes[..end]);
            bytes[end..].copy_from_slice(&checksum.to_le_bytes());
        }
        prop_assert!(Checkpoint::from_bytes(&bytes).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_files_resume_at_random_checkpoints(
        seed in any::<u64>(),
        bytes in 1_000..200_000_usize,
        level in 0..10_u32,
        interval in 0..60_000_u64,
        out in 100..70_000_usize,
    ) {
        let content = [log_text(bytes), common::noise(bytes / 10), log_text(bytes / 2)].concat();
        let file = MemoryFile::new(&gzip(&content, level));
        let outcome = checkpoints(&file, interval, out);
        prop_assert!(outcome.output == content);
        let pick = seed as usize % outcome.checkpoints.len();
        let checkpoint = &outcome.checkpoints[pick];
        let rest = rest_from(checkpoint, &file);
        prop_assert!(rest.is_clean());
        prop_assert!(rest.output == content[checkpoint.decompressed_offset() as usize..]);
    }
}

/// A gzip file of a single block with fixed codes and no matches, as long as the text.
fn one_block(text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let (mut buffer, mut count) = (0b011_u64, 3);
    let mut put = |code: u64, length: u32| {
        // Codes begin with their highest bit.
        for place in (0..length).rev() {
            buffer |= (code >> place & 1) << count;
            count += 1;
            if count == 8 {
                bytes.push(buffer as u8);
                (buffer, count) = (0, 0);
            }
        }
    };
    for &byte in text {
        match byte {
            0..144 => put(0x30 + u64::from(byte), 8),
            _ => put(0x190 + u64::from(byte) - 144, 9),
        }
    }
    put(0, 7);
    put(0, 7);
    bytes.extend_from_slice(&crc32fast::hash(text).to_le_bytes());
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes
}

#[test]
fn a_file_of_one_block_is_resumed_inside_it() {
    let content = log_text(6_000_000);
    let file = MemoryFile::new(&one_block(&content));
    let outcome = checkpoints(&file, 500_000, 30_000);
    assert!(outcome.output == content);
    let inside: Vec<_> = outcome.checkpoints.iter().filter(|point| !point.is_free()).collect();
    assert!((4..=6).contains(&inside.len()), "{} checkpoints", inside.len());
    for checkpoint in inside {
        assert!(checkpoint.to_bytes().len() < 34_000);
        let rest = rest_from(checkpoint, &file);
        assert!(rest.is_clean(), "{:?} {:?}", rest.end, rest.notes);
        assert!(rest.output == content[checkpoint.decompressed_offset() as usize..]);
    }
}
