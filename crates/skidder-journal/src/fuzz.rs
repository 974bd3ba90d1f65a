//! Damaged files, from seeds: reading ends and keeps its bounds, and a whole file gives all its entries.
//! `SKIDDER_SEED=17 cargo test -p skidder-journal --lib fuzz` repeats a round; `cargo xtask fuzz` runs more of them.

use crate::tests::{COMPRESSIONS, open, place};
use crate::{JournalError, JournalFile, PAYLOAD_BYTES_MAX};
use skidder_os::{Fs, RealFs};
use skidder_testkit::journal::{JournalOptions, JournalWriter};
use skidder_testkit::{Random, rounds};

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 400;

fn message(number: u64) -> String {
    format!("MESSAGE={number} {}", "long ".repeat(number as usize * 7 % 40))
}

/// Everything that can be read, as texts of whole entries.
fn read_all(file: &mut JournalFile) -> Vec<Option<Vec<u8>>> {
    let (mut all, mut items, mut index) = (Vec::new(), Vec::new(), 0);
    while index < file.len() {
        let read = file.entry(index, &mut items).and_then(|_| {
            let mut text = Vec::new();
            for item in &items {
                file.data(*item, &mut text)?;
                assert!(text.len() <= items.len() * PAYLOAD_BYTES_MAX);
                text.push(b'\n');
            }
            Ok(text)
        });
        assert!(!matches!(read, Err(JournalError::Io(_))), "the disk is well: {read:?}");
        all.push(read.ok());
        index += 1;
    }
    all
}

fn damage(bytes: &mut Vec<u8>, from: usize, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = from + random.below((bytes.len() - from) as u64) as usize;
        let end = bytes.len().min(at + 1 + random.below(64) as usize);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at..end].fill(0),
            2 => bytes[at] = random.below(8) as u8,
            3 => bytes.truncate(end),
            // A place or a size that promises much, or leads back.
            4 => {
                let numbers = [0, 1, 272, bytes.len() as u64, u64::MAX, random.below(1 << 20)];
                let at = (at / 8 * 8).min(bytes.len() - 8);
                let number = numbers[random.below(6) as usize];
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            _ => bytes[at..end].iter_mut().for_each(|byte| *byte = random.number() as u8),
        }
        if bytes.len() <= from + 8 {
            return;
        }
    }
}

#[test]
fn damaged_files_are_read_to_their_end_within_bounds() {
    let (mut read, mut lost, mut count) = (0, 0, 0_u64);
    rounds(ROUNDS, |seed, random| {
        let (_directory, path) = place();
        let compression = COMPRESSIONS[random.below(4) as usize];
        let compact = random.one_in(2);
        let options = JournalOptions { compact, compression, ..JournalOptions::default() };
        let mut writer = JournalWriter::create(&path, options);
        let entries = 1 + random.below(60);
        for number in 1..=entries {
            let message = message(number);
            writer.entry(number, number, &[message.as_bytes(), b"_PID=1", b"_COMM=init"]);
        }
        drop(writer);
        let whole = read_all(&mut open(&path));
        assert_eq!(whole.iter().flatten().count() as u64, entries, "SKIDDER_SEED={seed}");
        let mut bytes = std::fs::read(&path).unwrap();
        // The header is damaged now and then.
        let from = if random.one_in(4) { 0 } else { 272 };
        damage(&mut bytes, from, random);
        std::fs::write(&path, &bytes).unwrap();
        let Ok(mut file) = JournalFile::open(RealFs.open(&path).unwrap()) else { return };
        let found = read_all(&mut file);
        let bound = bytes.len() as u64 / 64;
        assert!(found.len() as u64 <= bound, "SKIDDER_SEED={seed}: {} entries", found.len());
        let first = file.first_not(|entry| entry.seqnum <= entries / 2);
        assert!(first.is_ok_and(|first| first <= bound), "SKIDDER_SEED={seed}: the search ends");
        read += found.iter().flatten().count();
        lost += found.iter().filter(|found| found.is_none()).count();
        count += 1;
    });
    assert!(count < 100 || (read > 500 && lost > 50), "{count} rounds: {read} read, {lost} lost");
}
