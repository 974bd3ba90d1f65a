//! Random damage to files of every kind, from a seed: whatever happens, all ways of reading agree.
//!
//! A longer run: `cargo xtask fuzz --seconds 600`; one round:
//! `SKIDDER_SEED=17 cargo test -p skidder-decode --test fuzz`.

mod common;

use common::{MemoryFile, Outcome, Random, gzip, kinds, log_text, noise, pool, read_on, rounds};
use skidder_decode::gzip::GzipReader;
use skidder_decode::{Damage, DecodeError};

const ROUNDS: u64 = 400;

/// Changes, removes, repeats or inserts a few bytes.
fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..random.below(4) {
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
        if bytes.is_empty() {
            return;
        }
    }
}

fn read(reader: &mut GzipReader, file: &MemoryFile, random: &mut Random) -> Outcome {
    let (scratch, out) = (1 + random.below(3_000), 1 + random.below(30_000));
    let mut outcome = Outcome::default();
    read_on(reader, file, scratch as usize, out as usize, &mut outcome);
    outcome
}

/// How it ended. Where exactly the decoder notices damage, and why it thinks so, depends on the
/// buffers; what was handed out before does not.
fn end(outcome: &Outcome) -> String {
    match &outcome.end {
        Some(Err(DecodeError::Damaged(Damage::Corrupt { decompressed_offset, .. }))) => {
            format!("corrupt at {decompressed_offset}")
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn damaged_files_read_the_same_in_every_way() {
    let mut seeds = kinds(&log_text(60_000));
    seeds.extend(kinds(&[noise(3_000), vec![0; 20_000], log_text(30_000)].concat()));
    let pool = pool();
    rounds(ROUNDS, |round, random| {
        let (kind, seed) = &seeds[random.below(seeds.len() as u64) as usize];
        let mut bytes = [&seed[..], &gzip(b"another member\n", 6)].concat();
        damage(&mut bytes, random);
        let what = format!("SKIDDER_SEED={round}, {kind}");
        let file = MemoryFile::new(&bytes);

        let mut reader = GzipReader::new(&pool).with_checkpoint_interval(random.below(20_000));
        let first = read(&mut reader, &file, random);
        let mut reader = GzipReader::new(&pool).without_checkpoints();
        let second = read(&mut reader, &file, random);
        assert!(first.output == second.output, "{what}: other buffers, other output");
        assert_eq!(end(&first), end(&second), "{what}");
        assert_eq!(first.notes, second.notes, "{what}");

        if !first.checkpoints.is_empty() {
            let pick = random.below(first.checkpoints.len() as u64) as usize;
            let checkpoint = &first.checkpoints[pick];
            let at = checkpoint.decompressed_offset() as usize;
            let mut reader = GzipReader::resume(checkpoint, &file, &pool).expect("same file");
            let rest = read(&mut reader, &file, random);
            assert!(rest.output == first.output[at..], "{what}: resumed at {at}");
            assert_eq!(end(&rest), end(&first), "{what}: resumed at {at}");
            assert!(first.notes.ends_with(&rest.notes), "{what}: resumed at {at}");
        }

        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let file = MemoryFile::new(&bytes[..cut]);
        let mut reader = GzipReader::new(&pool);
        let mut grown = read(&mut reader, &file, random);
        file.append(&bytes[cut..]);
        read_on(&mut reader, &file, 4096, 4096, &mut grown);
        assert!(grown.output == first.output, "{what}: grown at {cut}");
        assert_eq!(end(&grown), end(&first), "{what}: grown at {cut}");
        assert_eq!(grown.notes, first.notes, "{what}: grown at {cut}");
    });
}
