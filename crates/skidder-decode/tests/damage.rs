//! Files that are cut short, still growing, or broken.

mod common;

use common::{MemoryFile, Outcome, gzip, gzip_with, log_text, pool, read_all, read_on};
use proptest::prelude::*;
use skidder_decode::gzip::GzipReader;
use skidder_decode::{Damage, DecodeError, MismatchKind, Note, ReadState};
use skidder_os::{File, Metadata};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use zlib_rs::{DeflateFlush, Strategy};

fn two_members() -> (Vec<u8>, Vec<u8>) {
    let content = log_text(2_500);
    (content.clone(), [gzip(&content[..1_200], 6), gzip(&content[1_200..], 9)].concat())
}

#[test]
fn a_file_cut_at_any_byte_waits_and_continues_when_it_grows() {
    let (content, bytes) = two_members();
    let first = gzip(&content[..1_200], 6).len();
    for out in [1, 50, 4096] {
        for cut in 0..bytes.len() {
            let file = MemoryFile::new(&bytes[..cut]);
            let mut reader = GzipReader::new(&pool());
            let mut outcome = Outcome::default();
            read_on(&mut reader, &file, 512, out, &mut outcome);
            let expected = if cut == first { ReadState::End } else { ReadState::Waiting };
            assert_eq!(outcome.state(), Some(expected), "cut at {cut}");
            assert!(content.starts_with(&outcome.output));
            let whole = read_all(&bytes[..cut], 4096, 4096);
            assert!(whole.output == outcome.output, "all that can be decoded is, {cut} {out}");
            file.append(&bytes[cut..]);
            read_on(&mut reader, &file, 512, out, &mut outcome);
            assert!(outcome.is_clean() && outcome.output == content, "cut at {cut}");
        }
    }
}

#[test]
fn a_file_that_grows_byte_by_byte_gives_the_same() {
    let (content, bytes) = two_members();
    let file = MemoryFile::new(b"");
    let mut reader = GzipReader::new(&pool()).with_checkpoint_interval(0);
    let mut outcome = Outcome::default();
    for byte in bytes {
        file.append(&[byte]);
        read_on(&mut reader, &file, 512, 100, &mut outcome);
    }
    assert!(outcome.is_clean() && outcome.output == content);
}

/// Whatever was flipped: the output is the truth, or damage was reported. A stream that has become
/// longer than the file looks as one still being written; its checksum is yet to come.
fn check_damaged(outcome: &Outcome, content: &[u8], what: &str) {
    let reported = !outcome.notes.is_empty() || matches!(outcome.end, Some(Err(_)));
    let waiting = outcome.state() == Some(ReadState::Waiting);
    let intact = outcome.is_clean() && outcome.output == content;
    assert!(intact || reported || waiting, "{what}: nothing was said; {outcome:?}");
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    let (content, bytes) = two_members();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            let outcome = read_all(&flipped, 4096, 300);
            check_damaged(&outcome, &content, &format!("byte {at} bit {bit}"));
            let whole = read_all(&flipped, 1, 4096);
            assert!(whole.output == outcome.output, "buffers change nothing: byte {at} bit {bit}");
            assert_eq!(whole.notes, outcome.notes);
        }
    }
}

#[test]
fn what_precedes_the_damage_comes_first_and_the_error_stays() {
    let content = log_text(100_000);
    let mut bytes = gzip_with(&content, 6, Strategy::Default, DeflateFlush::SyncFlush, 20_000);
    // Behind the marker of a flush a block begins; its type is made the invalid one.
    let half = bytes.len() / 2;
    let marker = bytes[half..].windows(4).position(|four| four == [0, 0, 0xff, 0xff]).unwrap();
    let cut = half + marker + 4;
    bytes[cut] = 0x07;
    let file = MemoryFile::new(&bytes);
    let mut reader = GzipReader::new(&pool());
    let mut outcome = Outcome::default();
    read_on(&mut reader, &file, 65_536, 262_144, &mut outcome);
    assert!(outcome.output.len() > 40_000);
    let at = outcome.output.len() as u64;
    for _ in 0..2 {
        let Some(Err(DecodeError::Damaged(Damage::Corrupt {
            compressed_offset,
            decompressed_offset,
            ..
        }))) = outcome.end
        else {
            panic!("{:?}", outcome.end)
        };
        assert_eq!(decompressed_offset, at);
        assert!((cut as u64..cut as u64 + 8).contains(&compressed_offset));
        let before = outcome.output.len();
        read_on(&mut reader, &file, 65_536, 262_144, &mut outcome);
        assert_eq!(outcome.output.len(), before, "an error repeats no output");
    }
}

#[test]
fn a_wrong_checksum_or_size_is_told_and_the_next_member_read() {
    let (first, second) = (gzip(b"first\n", 6), gzip(b"second\n", 6));
    for (back, kind) in [(8, MismatchKind::Crc), (4, MismatchKind::Size)] {
        let mut bytes = [&first[..], &second[..]].concat();
        bytes[first.len() - back] ^= 1;
        let outcome = read_all(&bytes, 4096, 4096);
        assert_eq!(outcome.output, b"first\nsecond\n");
        assert_eq!(outcome.state(), Some(ReadState::End));
        let [
            Note::Mismatch {
                kind: found_kind,
                member_offset,
                decompressed_offset,
                expected,
                found,
            },
        ] = outcome.notes[..]
        else {
            panic!("{:?}", outcome.notes)
        };
        assert_eq!((found_kind, member_offset, decompressed_offset), (kind, 0, 6));
        assert_eq!(expected ^ found, 1);
    }
    let mut bytes = [&first[..], &second[..]].concat();
    let at = bytes.len() - 1;
    bytes[at] ^= 0x80;
    let outcome = read_all(&bytes, 4096, 4096);
    let [Note::Mismatch { kind: MismatchKind::Size, member_offset, .. }] = outcome.notes[..] else {
        panic!("{:?}", outcome.notes)
    };
    assert_eq!(member_offset, first.len() as u64);
}

#[test]
fn a_header_that_nobody_can_decode_is_a_clear_error() {
    let member = gzip(b"content\n", 6);
    let mut method = member.clone();
    method[2] = 9;
    let error = read_all(&method, 64, 64).end.unwrap().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the gzip member at byte 0 has compression method 0x09, which is unknown"
    );
    let mut flags = [&member[..], &member[..]].concat();
    flags[member.len() + 3] = 0x40;
    let outcome = read_all(&flags, 64, 64);
    assert_eq!(outcome.output, b"content\n");
    let Some(Err(DecodeError::Damaged(Damage::Unsupported { member_offset, value, .. }))) =
        outcome.end
    else {
        panic!("{:?}", outcome.end)
    };
    assert_eq!((member_offset, value), (member.len() as u64, 0x40));
    let plain = read_all(b"plain text", 64, 64);
    assert!(matches!(plain.end, Some(Err(DecodeError::Damaged(Damage::NotGzip)))));
}

/// Fails once, then works.
struct FailsOnce {
    inner: MemoryFile,
    fail: AtomicBool,
    kind: io::ErrorKind,
}

impl File for FailsOnce {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset > 500 && self.fail.swap(false, Ordering::Relaxed) {
            return Err(self.kind.into());
        }
        self.inner.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(bytes, offset)
    }
    fn metadata(&self) -> io::Result<Metadata> {
        self.inner.metadata()
    }
    fn set_len(&self, size: u64) -> io::Result<()> {
        self.inner.set_len(size)
    }
    fn sync(&self) -> io::Result<()> {
        self.inner.sync()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.inner.try_lock()
    }
}

#[test]
fn a_failed_read_loses_nothing() {
    let content = log_text(50_000);
    for (kind, out) in [
        (io::ErrorKind::Other, 64),
        (io::ErrorKind::Other, 65_536),
        (io::ErrorKind::Interrupted, 64),
    ] {
        let inner = MemoryFile::new(&gzip(&content, 6));
        let file = FailsOnce { inner, fail: AtomicBool::new(true), kind };
        let mut reader = GzipReader::new(&pool());
        let mut outcome = Outcome::default();
        read_on(&mut reader, &file, 100, out, &mut outcome);
        if let Some(Err(error)) = &outcome.end {
            assert!(matches!(error, DecodeError::Read { offset: 501.., .. }));
            read_on(&mut reader, &file, 100, out, &mut outcome);
        }
        assert!(outcome.is_clean() && outcome.output == content);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_bytes_behind_a_header_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
        scratch in 1..300_usize,
        out in 1..300_usize,
    ) {
        let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
        file.extend_from_slice(&bytes);
        let outcome = read_all(&file, scratch, out);
        prop_assert!(outcome.end.is_some());
        let whole = read_all(&file, 4096, 65_536);
        prop_assert_eq!(whole.output, outcome.output);
    }
}
