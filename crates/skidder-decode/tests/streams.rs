//! Intact files: every stream, every size of buffer, every way to join members.

mod common;

use common::{MemoryFile, Outcome, gzip, kinds, log_text, noise, pool, read_all, read_on};
use proptest::prelude::*;
use skidder_decode::gzip::{GzipReader, is_gzip};
use skidder_decode::{Codec, DecodeError, Decoder, DecoderPool, Note, ReadState, head};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn every_kind_of_stream_is_decoded_whole() {
    for content in [log_text(300_000), noise(100_000), vec![b'x'; 500_000], b"one".to_vec()] {
        for (kind, bytes) in kinds(&content) {
            for (scratch, out) in [(65_536, 262_144), (4096, 1000), (61, 65_536), (65_536, 259)] {
                let outcome = read_all(&bytes, scratch, out);
                assert!(outcome.is_clean(), "{kind} {scratch} {out}: {:?}", outcome.end);
                assert!(outcome.output == content, "{kind} {scratch} {out}");
            }
        }
    }
}

#[test]
fn every_size_of_buffer_gives_the_same() {
    let content = log_text(3_000);
    let bytes = [gzip(&content[..1_000], 6), gzip(&[], 6), gzip(&content[1_000..], 1)].concat();
    for scratch in 1..=bytes.len() + 1 {
        for out in [1, 2, 3, 257, 1_000, 5_000] {
            let outcome = read_all(&bytes, scratch, out);
            assert!(outcome.is_clean() && outcome.output == content, "{scratch} {out}");
        }
    }
    for out in 1..=content.len() + 1 {
        for scratch in [1, 7, 100, 4096] {
            let outcome = read_all(&bytes, scratch, out);
            assert!(outcome.is_clean() && outcome.output == content, "{scratch} {out}");
        }
    }
}

#[test]
fn short_reads_of_the_file_change_nothing() {
    let content = log_text(20_000);
    let bytes = gzip(&content, 6);
    for read_max in [1, 2, 17, 1000] {
        let file = MemoryFile { read_max, ..MemoryFile::new(&bytes) };
        let mut outcome = Outcome::default();
        read_on(&mut GzipReader::new(&pool()), &file, 4096, 8192, &mut outcome);
        assert!(outcome.is_clean() && outcome.output == content, "{read_max}");
    }
}

#[test]
fn members_read_as_one_stream() {
    let content = log_text(200_000);
    let mut bytes = Vec::new();
    for (index, part) in content.chunks(777).enumerate() {
        bytes.extend(gzip(part, (index % 10) as u32));
        if index % 5 == 0 {
            bytes.extend(gzip(b"", 6));
        }
    }
    let outcome = read_all(&bytes, 65_536, 262_144);
    assert!(outcome.is_clean() && outcome.output == content);
}

#[test]
fn zero_padding_is_no_content_even_between_members() {
    let padded = [gzip(b"one\n", 6), vec![0; 3000], gzip(b"two\n", 6), vec![0; 70_000]].concat();
    let outcome = read_all(&padded, 512, 512);
    assert!(outcome.is_clean(), "{outcome:?}");
    assert_eq!(outcome.output, b"one\ntwo\n");
}

#[test]
fn a_flood_of_empty_members_is_read_in_bounded_turns() {
    let bytes = gzip(b"", 6).repeat(150_000);
    let file = MemoryFile::new(&bytes);
    let mut reader = GzipReader::new(&pool());
    let (mut scratch, mut out) = (vec![0; 65_536], vec![0; 4096]);
    let progress = reader.read(&file, &mut scratch, &mut out).unwrap();
    assert_eq!((progress.produced, progress.state), (0, ReadState::More));
    assert!(reader.compressed_offset() < bytes.len() as u64 / 2);
    let mut outcome = Outcome::default();
    read_on(&mut reader, &file, 65_536, 4096, &mut outcome);
    assert!(outcome.is_clean());
}

#[test]
fn trailing_garbage_is_told_once_and_ends_the_stream() {
    for garbage in [&b"garbage"[..], &[0x1f], &[0x1f, 0x8c, 8], &[0, 0, 7]] {
        for scratch in [1, 2, 4096] {
            let member = gzip(b"content\n", 6);
            let outcome = read_all(&[&member[..], garbage].concat(), scratch, 64);
            assert_eq!(outcome.output, b"content\n");
            if garbage == [0x1f] {
                // Perhaps the first byte of a member that is still being written.
                assert_eq!(outcome.state(), Some(ReadState::Waiting));
                continue;
            }
            assert_eq!(outcome.state(), Some(ReadState::End));
            let zeros = garbage.iter().take_while(|&&byte| byte == 0).count();
            let offset = (member.len() + zeros) as u64;
            assert_eq!(outcome.notes, [Note::TrailingGarbage { offset }]);
        }
    }
}

#[test]
fn headers_with_all_fields_and_the_system_gzip_are_understood() {
    let content = log_text(150_000);
    let mut extra = flate2::GzBuilder::new()
        .extra(vec![b'e'; 60_000])
        .filename(vec![b'n'; 5_000])
        .comment(vec![b'c'; 9_000])
        .write(Vec::new(), flate2::Compression::new(6));
    extra.write_all(&content).unwrap();
    let extra = extra.finish().unwrap();
    for scratch in [1000, 4096, 65_536] {
        let outcome = read_all(&extra, scratch, 65_536);
        assert!(outcome.is_clean() && outcome.output == content);
    }

    let spawned = Command::new("gzip")
        .args(["-9", "-c"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = spawned else {
        println!("skipped: no `gzip` on this machine");
        return;
    };
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn({
        let content = content.clone();
        move || stdin.write_all(&content).unwrap()
    });
    let bytes = child.wait_with_output().unwrap().stdout;
    writer.join().unwrap();
    let outcome = read_all(&bytes, 4096, 65_536);
    assert!(outcome.is_clean() && outcome.output == content);
}

#[test]
fn nothing_and_half_a_header_are_waited_for() {
    let bytes = gzip(b"content", 6);
    for cut in 0..10 {
        let outcome = read_all(&bytes[..cut], 64, 64);
        assert_eq!(outcome.state(), Some(ReadState::Waiting), "{cut}");
    }
}

#[test]
fn another_member_may_be_appended_after_the_end() {
    let file = MemoryFile::new(&gzip(b"one\n", 6));
    let pool = pool();
    let mut reader = GzipReader::new(&pool);
    let mut outcome = Outcome::default();
    read_on(&mut reader, &file, 64, 64, &mut outcome);
    assert!(outcome.is_clean());
    assert_eq!(pool.idle(), 1, "a finished reader holds no decoder");
    read_on(&mut reader, &file, 64, 64, &mut outcome);
    assert!(outcome.is_clean());
    file.append(&gzip(b"two\n", 6));
    read_on(&mut reader, &file, 64, 64, &mut outcome);
    assert!(outcome.is_clean());
    assert_eq!(outcome.output, b"one\ntwo\n");
}

#[test]
fn head_gives_the_first_bytes_and_returns_its_decoder() {
    let pool = DecoderPool::new(1);
    let content = log_text(500_000);
    let file = MemoryFile::new(&gzip(&content, 6));
    let mut scratch = vec![0; 65_536];
    let mut out = vec![0; 1024];
    for _ in 0..3 {
        assert_eq!(head(&file, Codec::Gzip, &mut scratch, &mut out, &pool).unwrap().0, 1024);
        assert_eq!(out, content[..1024]);
        assert_eq!(pool.inflates().idle(), 1);
    }
    let short = MemoryFile::new(&[gzip(b"ab", 6), gzip(b"cd", 6)].concat());
    assert_eq!(head(&short, Codec::Gzip, &mut scratch, &mut out, &pool).unwrap().0, 4);
    assert_eq!(&out[..4], b"abcd");
    assert_eq!(
        head(&MemoryFile::new(b""), Codec::Gzip, &mut scratch, &mut out, &pool).unwrap().0,
        0
    );
    let plain = MemoryFile::new(b"plain text");
    let error = head(&plain, Codec::Gzip, &mut scratch, &mut out, &pool).unwrap_err();
    assert!(matches!(error, DecodeError::Damaged(_)));
    assert_eq!(error.to_string(), "not a gzip file");
}

#[test]
fn gzip_is_known_by_two_bytes() {
    assert!(is_gzip(&gzip(b"", 6)));
    for other in [&b""[..], &[0x1f], b"plain", &[0x28, 0xb5, 0x2f, 0xfd]] {
        assert!(!is_gzip(other));
    }
}

#[test]
fn a_decoder_reads_plain_and_gzip_alike() {
    let content = log_text(100_000);
    let plain = (MemoryFile::new(&content), Decoder::plain(0), ReadState::Waiting);
    let zipped = (
        MemoryFile::new(&gzip(&content, 6)),
        Decoder::gzip(GzipReader::new(&pool())),
        ReadState::End,
    );
    for (file, mut decoder, expected) in [plain, zipped] {
        let (mut scratch, mut out) = (vec![0; 4096], vec![0; 10_000]);
        let mut output = Vec::new();
        let state = loop {
            let progress = decoder.read(&file, &mut scratch, &mut out).unwrap();
            output.extend_from_slice(&out[..progress.produced]);
            if progress.state != ReadState::More {
                break progress.state;
            }
        };
        assert_eq!(state, expected);
        assert_eq!(decoder.offset(), content.len() as u64);
        assert_eq!(decoder.stored_offset(), file.bytes.lock().unwrap().len() as u64);
        assert!(output == content);
    }
}

proptest! {
    #[test]
    fn random_content_levels_and_buffers(
        parts in prop::collection::vec(
            (prop::collection::vec(prop_oneof![Just(b'a'), Just(b'\n'), any::<u8>()], 0..5000), 0..10_u32),
            1..5,
        ),
        scratch in 1..6000_usize,
        out in 1..6000_usize,
    ) {
        let mut bytes = Vec::new();
        let mut content = Vec::new();
        for (part, level) in &parts {
            bytes.extend(gzip(part, *level));
            content.extend_from_slice(part);
        }
        let outcome = read_all(&bytes, scratch, out);
        prop_assert!(outcome.is_clean());
        prop_assert_eq!(outcome.output, content);
    }
}
