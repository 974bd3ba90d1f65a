//! zstd, bzip2, xz and lz4: what comes out is what went in, whatever wrote it and however it is read.

mod common;

use common::frames::{Outcome, Sample, by_tool, pool, read_all, read_on, samples};
use common::{MemoryFile, Random, log_text, noise};
use skidder_decode::{Checkpoint, Codec, Damage, DecodeError, Decoder, Note, ReadState};
use std::path::Path;

/// Lines, noise, and runs, of which each codec has its own way.
fn mixed_text() -> Vec<u8> {
    [log_text(150_000), noise(70_000), vec![b'x'; 90_000], log_text(50_000)].concat()
}

#[test]
fn every_kind_of_file_decodes_to_its_text_with_buffers_of_any_size() {
    let text = mixed_text();
    let mut all = samples(&text);
    all.extend(samples(b"").into_iter().filter(|sample| sample.kind != "zstd seekable"));
    all.extend(samples(b"short\n"));
    for sample in all {
        for buffers in [(64 << 10, 256 << 10), (1000, 777), (7, 65_536)] {
            let outcome = read_all(&sample, buffers);
            let (kind, end, notes) = (&sample.kind, &outcome.end, &outcome.notes);
            assert!(outcome.is_complete(), "{kind} {buffers:?}: {end:?} {notes:?}");
            assert!(
                [&text[..], b"", b"short\n"].contains(&&outcome.output[..]),
                "{kind} {buffers:?}: other text"
            );
        }
    }
}

#[test]
fn what_the_tools_write_decodes_to_its_text() {
    let text = mixed_text();
    let commands: &[(Codec, &[&str])] = &[
        (Codec::Zstd, &["zstd", "-q", "-c"]),
        (Codec::Zstd, &["zstd", "-q", "-19", "--long=27", "-c"]),
        (Codec::Zstd, &["zstd", "-q", "--no-check", "-B16384", "-T2", "-c"]),
        (Codec::Bzip2, &["bzip2", "-c"]),
        (Codec::Bzip2, &["bzip2", "-1", "-c"]),
        (Codec::Xz, &["xz", "-c"]),
        (Codec::Xz, &["xz", "-9e", "-C", "sha256", "-c"]),
        (Codec::Xz, &["xz", "-0", "-C", "crc32", "--block-size=65536", "-T2", "-c"]),
        (Codec::Xz, &["xz", "-C", "none", "-c"]),
        (Codec::Lz4, &["lz4", "-q", "-c"]),
        (Codec::Lz4, &["lz4", "-q", "-9", "-B4", "-BD", "-c"]),
        (Codec::Lz4, &["lz4", "-q", "-BX", "-B5", "--no-frame-crc", "-c"]),
    ];
    let mut seen = 0;
    for (codec, command) in commands {
        // Where a tool is missing, the libraries and the files in `testdata` have to do.
        let Some(bytes) = by_tool(command, &text) else { continue };
        seen += 1;
        let (kind, codec) = (command.join(" "), *codec);
        let sample = Sample { kind, codec, bytes, checked: true };
        let outcome = read_all(&sample, (64 << 10, 100_000));
        assert!(outcome.is_complete(), "{}: {:?}", sample.kind, outcome.end);
        assert!(outcome.output == text, "{}: other text", sample.kind);
        let file = MemoryFile::new(&sample.bytes);
        assert_eq!(Codec::detect(&file).unwrap(), Some(codec), "{}", sample.kind);
    }
    println!("{seen} of {} files written by tools", commands.len());
}

/// Files that the tools wrote (`testdata/tools/README.md`), with a checkpoint of version 1 inside
/// of each: for machines without the tools, and for checkpoints of earlier versions.
#[test]
fn kept_files_and_checkpoints_of_version_1_are_still_good() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/tools");
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    let text = read("text");
    for (name, codec) in [
        ("text.pzst", Codec::Zstd),
        ("text.zst", Codec::Zstd),
        ("text.bz2", Codec::Bzip2),
        ("text.xz", Codec::Xz),
        ("text.lz4", Codec::Lz4),
        ("text.BD.lz4", Codec::Lz4),
    ] {
        let (kind, bytes) = (name.to_owned(), read(name));
        let sample = Sample { kind, codec, bytes, checked: true };
        let outcome = read_all(&sample, (4096, 4096));
        assert!(outcome.is_complete() && outcome.output == text, "{name}");
        let path = directory.join(format!("{name}.checkpoint"));
        let middle = &outcome.checkpoints[outcome.checkpoints.len() / 2];
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, middle.to_bytes()).unwrap();
        }
        let point = Checkpoint::from_bytes(&std::fs::read(&path).unwrap()).unwrap();
        let file = MemoryFile::new(&sample.bytes);
        let mut decoder = Decoder::resume(&point, &file, &pool()).unwrap();
        let mut rest = Outcome::default();
        read_on(&mut decoder, &file, (4096, 4096), &mut rest);
        let at = point.decompressed_offset() as usize;
        assert!(rest.is_complete() && rest.output == text[at..], "{name} from {at}");
    }
}

#[test]
fn every_checkpoint_resumes_to_the_same_rest() {
    let text = [mixed_text(), log_text(1_200_000)].concat();
    for sample in samples(&text) {
        let whole = read_all(&sample, (64 << 10, 50_000));
        assert!(!whole.checkpoints.is_empty(), "{}", sample.kind);
        let file = MemoryFile::new(&sample.bytes);
        let step = whole.checkpoints.len().div_ceil(12);
        for point in whole.checkpoints.iter().step_by(step) {
            let point = Checkpoint::from_bytes(&point.to_bytes()).unwrap();
            assert_eq!(point.codec(), sample.codec);
            let mut decoder = Decoder::resume(&point, &file, &pool()).unwrap();
            let at = point.decompressed_offset() as usize;
            assert_eq!(decoder.offset() as usize, at);
            let mut rest = Outcome::default();
            read_on(&mut decoder, &file, (30_000, 40_000), &mut rest);
            assert!(rest.is_complete(), "{} at {at}: {:?} {:?}", sample.kind, rest.end, rest.notes);
            assert!(rest.output == text[at..], "{} at {at}: another rest", sample.kind);
        }
    }
}

#[test]
fn skipping_to_any_offset_reaches_the_byte_that_is_there() {
    let text = mixed_text();
    let mut random = Random(0x5eed);
    for sample in samples(&text) {
        let whole = read_all(&sample, (64 << 10, 10_000));
        let file = MemoryFile::new(&sample.bytes);
        for _ in 0..4 {
            let target = random.below(text.len() as u64);
            let before = whole.checkpoints.iter().rev();
            let point = before.into_iter().find(|point| point.decompressed_offset() <= target);
            let mut decoder = match point {
                Some(point) => Decoder::resume(point, &file, &pool()).unwrap(),
                None => Decoder::start(Some(sample.codec), &pool()),
            };
            let (mut scratch, mut out) = (vec![0; 4096], vec![0; 5000]);
            while decoder.offset() < target {
                let step = decoder.skip_to(&file, &mut scratch, &mut out, target).unwrap();
                assert_eq!(step.state, ReadState::More);
            }
            let mut rest = Outcome::default();
            read_on(&mut decoder, &file, (64 << 10, 60_000), &mut rest);
            assert!(rest.output == text[target as usize..], "{} at {target}", sample.kind);
        }
    }
}

/// Where a file is complete: at its end, and between its parts.
fn is_between_parts(sample: &Sample, cut: usize) -> bool {
    let file = MemoryFile::new(&sample.bytes[..cut]);
    let mut decoder = Decoder::start(Some(sample.codec), &pool());
    let mut outcome = Outcome::default();
    read_on(&mut decoder, &file, (4096, 4096), &mut outcome);
    outcome.is_complete()
}

#[test]
fn a_file_cut_at_any_byte_gives_what_is_there_and_goes_on_when_it_grows() {
    let text = log_text(2_500);
    for sample in samples(&text) {
        let whole = &sample.bytes;
        let mut complete = 0;
        for cut in 0..whole.len() {
            let file = MemoryFile::new(&whole[..cut]);
            let mut decoder = Decoder::start(Some(sample.codec), &pool());
            let mut outcome = Outcome::default();
            read_on(&mut decoder, &file, (4096, 4096), &mut outcome);
            let kind = &sample.kind;
            assert!(text.starts_with(&outcome.output), "{kind} cut at {cut}");
            match outcome.end.take() {
                Some(Ok(ReadState::Waiting)) => {}
                Some(Ok(ReadState::End)) => complete += 1,
                other => panic!("{kind} cut at {cut}: {other:?}"),
            }
            file.append(&whole[cut..]);
            read_on(&mut decoder, &file, (4096, 4096), &mut outcome);
            assert!(outcome.is_complete(), "{kind} cut at {cut}: {:?}", outcome.end);
            assert!(outcome.output == text, "{kind} cut at {cut}: other text");
        }
        assert!(is_between_parts(&sample, whole.len()));
        assert!(complete <= 16, "{}: {complete} cuts count as complete", sample.kind);
    }
}

#[test]
fn files_one_behind_the_other_are_one_file() {
    let text = log_text(20_000);
    let mut all = samples(&text);
    while let Some(one) = all.pop() {
        for other in all.iter().filter(|other| other.codec == one.codec) {
            let kind = format!("{} + {}", one.kind, other.kind);
            let bytes = [&one.bytes[..], &other.bytes].concat();
            let sample = Sample { kind, codec: one.codec, bytes, checked: true };
            let outcome = read_all(&sample, (5000, 9000));
            assert!(outcome.is_complete(), "{}: {:?}", sample.kind, outcome.end);
            assert!(outcome.output == [&text[..], &text].concat(), "{}", sample.kind);
        }
    }
}

#[test]
fn what_is_appended_is_read_from_the_checkpoint_at_the_end() {
    let text = log_text(5_000);
    for sample in samples(&text) {
        let file = MemoryFile::new(&sample.bytes);
        let mut decoder = Decoder::start(Some(sample.codec), &pool());
        let mut outcome = Outcome::default();
        read_on(&mut decoder, &file, (4096, 4096), &mut outcome);
        let point = outcome.checkpoints.last().expect("one at the end");
        assert_eq!(point.decompressed_offset(), text.len() as u64, "{}", sample.kind);
        assert_eq!(point.compressed_offset(), sample.bytes.len() as u64, "{}", sample.kind);
        file.append(&sample.bytes);
        let mut decoder = Decoder::resume(point, &file, &pool()).unwrap();
        let mut rest = Outcome::default();
        read_on(&mut decoder, &file, (4096, 4096), &mut rest);
        assert!(rest.is_complete() && rest.output == text, "{}", sample.kind);
    }
}

#[test]
fn what_follows_the_last_part_is_told_and_ignored() {
    let text = log_text(5_000);
    for sample in samples(&text) {
        for garbage in [&b"garbage"[..], b"g"] {
            let bytes = [&sample.bytes[..], garbage].concat();
            let outcome = read_all(&Sample { bytes, kind: String::new(), ..sample }, (4096, 4096));
            assert!(outcome.output == text, "{}", sample.kind);
            let offset = sample.bytes.len() as u64;
            assert_eq!(outcome.notes, [Note::TrailingGarbage { offset }], "{}", sample.kind);
        }
    }
}

#[test]
fn a_file_of_something_else_is_refused() {
    for codec in [Codec::Zstd, Codec::Bzip2, Codec::Xz, Codec::Lz4] {
        for text in [&b"plain text"[..], b"x"] {
            let file = MemoryFile::new(text);
            let mut decoder = Decoder::start(Some(codec), &pool());
            let result = decoder.read(&file, &mut [0; 100], &mut [0; 100]);
            let expected = Damage::NotOf { codec };
            assert!(
                matches!(result, Err(DecodeError::Damaged(damage)) if damage == expected),
                "{codec}: {result:?}"
            );
        }
    }
}

#[test]
fn a_stored_checkpoint_of_another_file_is_stale() {
    let text = log_text(200_000);
    for (one, other) in samples(&text).iter().zip(samples(&noise(200_000))) {
        let whole = read_all(one, (64 << 10, 64 << 10));
        let decoded = |point: &&Checkpoint| point.decompressed_offset() > 0;
        for point in whole.checkpoints.iter().filter(decoded) {
            let file = MemoryFile::new(&other.bytes);
            assert!(Decoder::resume(point, &file, &pool()).is_err(), "{}", one.kind);
        }
    }
}

#[test]
fn a_wrong_checksum_is_told_and_what_follows_is_read() {
    let text = log_text(30_000);
    for sample in samples(&text).iter().filter(|sample| sample.kind == "zstd level 3") {
        let mut bytes = [&sample.bytes[..], &sample.bytes].concat();
        bytes[sample.bytes.len() - 1] ^= 1;
        let outcome = read_all(&Sample { bytes, kind: String::new(), ..*sample }, (4096, 4096));
        assert!(outcome.output == [&text[..], &text].concat());
        assert!(matches!(outcome.end, Some(Ok(ReadState::End))));
        let [Note::Mismatch { member_offset: 0, decompressed_offset, .. }] = outcome.notes[..]
        else {
            panic!("{:?}", outcome.notes)
        };
        assert_eq!(decompressed_offset, text.len() as u64);
    }
    // The checksum of an lz4 frame and of a bzip2 stream end the file, too; that of an xz block does not.
    for sample in
        samples(&text).iter().filter(|s| ["lz4 linked", "bzip2 level 9"].contains(&&s.kind[..]))
    {
        let mut bytes = sample.bytes.clone();
        // In bzip2 the last bits may be padding.
        let at = bytes.len() - 3;
        bytes[at] ^= 0x10;
        let outcome = read_all(&Sample { bytes, kind: String::new(), ..*sample }, (4096, 4096));
        assert!(outcome.output == text, "{}", sample.kind);
        assert_eq!(outcome.notes.len(), 1, "{}", sample.kind);
        assert!(matches!(outcome.end, Some(Ok(ReadState::End))), "{}", sample.kind);
    }
}

#[test]
fn a_window_beyond_the_bound_is_refused_by_name() {
    // A frame of zstd with a window of 256 MiB, and no content.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 18 << 3, 1, 0, 0];
    let file = MemoryFile::new(&zstd);
    let mut decoder = Decoder::start(Some(Codec::Zstd), &pool());
    let error = decoder.read(&file, &mut [0; 100], &mut [0; 100]).unwrap_err().to_string();
    assert!(error.contains("268435456") && error.contains("WINDOW_BYTES_MAX"), "{error}");
    // The header of a stream and of a block of xz with a dictionary of 256 MiB.
    let mut xz = vec![0xfd, b'7', b'z', b'X', b'Z', 0, 0, 0];
    xz.extend_from_slice(&crc32fast::hash(&xz[6..8]).to_le_bytes());
    let block = [2, 0, 0x21, 1, 32, 0, 0, 0];
    xz.extend_from_slice(&block);
    xz.extend_from_slice(&crc32fast::hash(&block).to_le_bytes());
    let file = MemoryFile::new(&xz);
    let mut decoder = Decoder::start(Some(Codec::Xz), &pool());
    let error = decoder.read(&file, &mut [0; 100], &mut [0; 100]).unwrap_err().to_string();
    assert!(error.contains("268435456") && error.contains("WINDOW_BYTES_MAX"), "{error}");
}

#[test]
fn codecs_are_told_by_their_first_bytes_and_behind_skippable_frames() {
    for sample in samples(&log_text(3_000)) {
        let file = MemoryFile::new(&sample.bytes);
        assert_eq!(Codec::detect(&file).unwrap(), Some(sample.codec), "{}", sample.kind);
    }
    let skippable = [&0x184d_2a55_u32.to_le_bytes()[..], &2_u32.to_le_bytes(), b"xy"].concat();
    let lz4 = common::frames::lz4(b"text\n", true, true);
    let file = MemoryFile::new(&[&skippable[..], &skippable, &lz4].concat());
    assert_eq!(Codec::detect(&file).unwrap(), Some(Codec::Lz4));
    assert_eq!(Codec::detect(&MemoryFile::new(b"a line\n")).unwrap(), None);
}
