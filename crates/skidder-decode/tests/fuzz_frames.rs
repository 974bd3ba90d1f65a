//! Random damage to files of zstd, bzip2, xz and lz4, to their checkpoints, and random text in
//! random encodings.
//!
//! A round is made from one number, which a failure prints:
//! `SKIDDER_SEED=17 cargo test -p skidder-decode --test fuzz_frames`. A longer run:
//! `cargo xtask fuzz --seconds 600`, or `SKIDDER_FUZZ_FROM` and `SKIDDER_FUZZ_ROUNDS`.

mod common;

use common::frames::{Outcome, Sample, pool, read_on, samples};
use common::{MemoryFile, Random, gzip, log_text, noise, rounds};
use skidder_decode::encoding::Encoding;
use skidder_decode::lines::{LineTerminator, Splitter};
use skidder_decode::{Checkpoint, Codec, Damage, DecodeError, Decoder};

/// Rounds of an ordinary run.
const ROUNDS: u64 = 120;

/// Changes, removes, repeats or inserts a few bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len() as u64) as usize;
        let end = bytes.len().min(at + random.below(40) as usize);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..end)),
            3 => bytes.extend_from_within(at..end),
            4 => bytes.insert(at, random.next() as u8),
            _ => bytes.truncate(end.max(1)),
        }
    }
}

fn read(decoder: &mut Decoder, file: &MemoryFile, random: &mut Random) -> Outcome {
    let buffers = (1 + random.below(5_000) as usize, 1 + random.below(50_000) as usize);
    let mut outcome = Outcome::default();
    read_on(decoder, file, buffers, &mut outcome);
    outcome
}

/// How it ended. Where exactly damage is noticed depends on the buffers.
fn end(outcome: &Outcome) -> String {
    match &outcome.end {
        Some(Err(DecodeError::Damaged(Damage::Corrupt { .. }))) => "corrupt".to_owned(),
        other => format!("{other:?}"),
    }
}

fn agree(one: &Outcome, other: &Outcome) -> bool {
    one.output == other.output && one.notes == other.notes && end(one) == end(other)
}

#[test]
fn all_that_the_bytes_before_the_damage_give_is_given() {
    let text = log_text(60_000);
    // Few bytes hold many lines.
    let repeated = log_text(300).repeat(300);
    let gzipped = |text: &[u8]| Sample {
        kind: "gzip".to_owned(),
        codec: Codec::Gzip,
        bytes: gzip(text, 6),
        checked: true,
    };
    let all = [&text, &repeated].map(|text| {
        let mut samples = samples(text);
        samples.push(gzipped(text));
        samples
    });
    let pool = pool();
    rounds(ROUNDS * 5, |seed, random| {
        let samples = &all[random.below(2) as usize];
        let sample: &Sample = &samples[random.below(samples.len() as u64) as usize];
        let mut bytes = sample.bytes.clone();
        damage(&mut bytes, random);
        let pairs = bytes.iter().zip(&sample.bytes);
        let good = pairs.take_while(|(one, other)| one == other).count();
        let start = || Decoder::start(Some(sample.codec), &pool).without_checkpoints();
        let before = read(&mut start(), &MemoryFile::new(&bytes[..good]), random);
        let damaged = read(&mut start(), &MemoryFile::new(&bytes), random);
        let (given, wanted) = (damaged.output.len(), before.output.len());
        let what = format!("SKIDDER_SEED={seed}, {}: {given} of {wanted} bytes", sample.kind);
        assert!(damaged.output.starts_with(&before.output), "{what}");
    });
}

#[test]
fn damaged_files_read_the_same_in_every_way_and_what_is_wrong_is_told() {
    let text = log_text(60_000);
    let mixed = [noise(3_000), vec![0; 20_000], log_text(30_000)].concat();
    let contents = [(samples(&text), &text), (samples(&mixed), &mixed)];
    let pool = pool();
    rounds(ROUNDS, |seed, random| {
        let (samples, content) = &contents[random.below(2) as usize];
        let sample: &Sample = &samples[random.below(samples.len() as u64) as usize];
        let mut bytes = [&sample.bytes[..], &sample.bytes].concat();
        damage(&mut bytes, random);
        let what = format!("SKIDDER_SEED={seed}, {}", sample.kind);
        let file = MemoryFile::new(&bytes);
        let start = || Decoder::start(Some(sample.codec), &pool);

        let first =
            read(&mut start().with_checkpoint_interval(random.below(20_000)), &file, random);
        let second = read(&mut start().without_checkpoints(), &file, random);
        assert!(agree(&first, &second), "{what}: other buffers, other output");
        // Nothing wrong is handed out as if it were right; what is missing may be missing at the end.
        if sample.checked && first.is_complete() {
            let twice = [&content[..], content].concat();
            assert!(twice.starts_with(&first.output), "{what}: damage was not noticed");
        }
        if let Some(point) = first.checkpoints.get(random.below(8) as usize) {
            let point = Checkpoint::from_bytes(&point.to_bytes()).expect("just written");
            let mut resumed = Decoder::resume(&point, &file, &pool).expect("the same file");
            let rest = read(&mut resumed, &file, random);
            let at = point.decompressed_offset() as usize;
            let same = Outcome { output: first.output[at..].to_vec(), ..first };
            let reported = same.notes.ends_with(&rest.notes) || same.notes.is_empty();
            let rest = Outcome { notes: same.notes.clone(), ..rest };
            assert!(reported && agree(&rest, &same), "{what}: resumed at {at}");
        }
    });
}

#[test]
fn a_corrupt_checkpoint_is_refused_or_leads_to_bytes_that_checksums_disprove() {
    let content = log_text(90_000);
    let samples = samples(&content);
    let pool = pool();
    rounds(ROUNDS, |seed, random| {
        let sample = &samples[random.below(samples.len() as u64) as usize];
        let file = MemoryFile::new(&sample.bytes);
        let mut decoder =
            Decoder::start(Some(sample.codec), &pool).with_checkpoint_interval(random.below(9_000));
        let whole = read(&mut decoder, &file, random);
        let pick = random.below(whole.checkpoints.len() as u64) as usize;
        let mut bytes = whole.checkpoints[pick].to_bytes();
        let right = bytes.clone();
        let what = format!("SKIDDER_SEED={seed}, {}", sample.kind);
        damage(&mut bytes, random);
        if bytes == right {
            return;
        }
        assert!(Checkpoint::from_bytes(&bytes).is_err(), "{what}: damage was not noticed");
        // As if the damage had come before the checksum.
        let Some(at) = bytes.len().checked_sub(4) else { return };
        let checksum = crc32fast::hash(&bytes[..at]).to_le_bytes();
        bytes[at..].copy_from_slice(&checksum);
        let Ok(point) = Checkpoint::from_bytes(&bytes) else { return };
        let Ok(mut decoder) = Decoder::resume(&point, &file, &pool) else { return };
        // It may be wrong about where it is; it must end, and not panic.
        let _rest = read(&mut decoder, &file, random);
    });
}

#[test]
fn noise_is_refused_by_every_codec() {
    let pool = pool();
    rounds(ROUNDS, |seed, random| {
        let sample = samples(b"a line\n").swap_remove(random.below(18) as usize);
        let kept = random.below(sample.bytes.len() as u64) as usize;
        let mut bytes = sample.bytes[..kept].to_vec();
        bytes.extend((0..random.below(3_000)).map(|_| random.next() as u8));
        let file = MemoryFile::new(&bytes);
        let mut decoder = Decoder::start(Some(sample.codec), &pool);
        let outcome = read(&mut decoder, &file, random);
        assert!(outcome.output.len() < 200 << 20, "SKIDDER_SEED={seed}");
        assert!(Codec::detect(&file).is_ok());
    });
}

#[test]
fn text_in_any_encoding_splits_into_the_same_lines_in_any_pieces() {
    let names: Vec<&str> = Encoding::names().collect();
    let terminators: Vec<&str> = LineTerminator::names().collect();
    rounds(ROUNDS * 20, |seed, random| {
        let name = names[random.below(names.len() as u64) as usize];
        let terminator = terminators[random.below(terminators.len() as u64) as usize];
        let what = format!("SKIDDER_SEED={seed}, {name}, {terminator}");
        let encoding = Encoding::find(name).expect("a name");
        let terminator = LineTerminator::find(terminator).expect("a name");
        let mut bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
        let Ok(encoding) = encoding.of_file(&bytes) else { return };
        let Some(splitter) = Splitter::new(terminator, encoding) else { return };
        let end: Vec<u8> = terminator
            .characters()
            .chars()
            .flat_map(|c| encoding.encode(c).expect("it has"))
            .collect();
        for _ in 0..random.below(8) {
            let at = random.below(bytes.len() as u64 + 1) as usize / 2 * 2;
            bytes.splice(at..at, end.iter().copied());
        }
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        let whole = splitter.split(&bytes, |start, end, next| {
            assert!(start <= end && end < next, "{what}");
            lines.push(start..end);
            ends.push(next);
        });
        assert_eq!(whole, ends.last().copied().unwrap_or(0), "{what}");
        // Each end is found from wherever the search begins.
        let from = random.below(bytes.len() as u64 + 1) as usize;
        let expected = ends.iter().copied().find(|next| *next > from);
        if encoding.unit_bytes() == 1 || end.len() == 2 {
            let found = splitter.find(&bytes, from);
            assert!(found == expected || end.len() > 1, "{what}: from {from}");
        }
        // In pieces.
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let mut pieces = Vec::new();
        let consumed = splitter.split(&bytes[..cut], |start, end, _| pieces.push(start..end));
        splitter.split(&bytes[consumed..], |start, end, _| {
            pieces.push(start + consumed..end + consumed);
        });
        assert_eq!(pieces, lines, "{what}: cut at {cut}");
        for line in lines {
            let mut out = b"before".to_vec();
            encoding.decode_line(&bytes[line], &mut out);
            assert!(out.starts_with(b"before"), "{what}");
            assert!(encoding.is_plain() || std::str::from_utf8(&out).is_ok(), "{what}");
        }
    });
}
