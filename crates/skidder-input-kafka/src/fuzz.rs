//! Answers and records against damage, from seeds: nothing panics, nothing is larger than what came allows, and records
//! do not depend on how often reading stops.
//! `SKIDDER_SEED=17 cargo test -p skidder-input-kafka --lib fuzz` repeats a round; `cargo xtask fuzz` runs more of them.

use crate::api::read_fetched;
use crate::assign::{Strategy, Subscription, read_assignment};
use crate::records::tests::{decoded, encoded, packed, records, seal};
use skidder_testkit::{Random, rounds};

/// Rounds of the ordinary test run.
const ROUNDS: u64 = 2_000;

/// Where the part with a checksum begins in a batch.
const SUMMED_FROM: usize = 21;

fn damage(bytes: &mut Vec<u8>, from: usize, random: &mut Random) {
    for _ in 0..random.below(4) {
        if bytes.len() <= from {
            return;
        }
        let at = from + random.below((bytes.len() - from) as u64) as usize;
        let end = bytes.len().min(at + random.below(20) as usize);
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => drop(bytes.drain(at..end)),
            2 => bytes.extend_from_within(at..end),
            3 => bytes.insert(at, random.number() as u8),
            4 => bytes.truncate(at),
            // A length or a count that promises much, or nothing.
            _ => {
                let numbers = [0, 1, 100, 0xffff, 0x7fff_ffff, u32::MAX];
                let number = numbers[random.below(6) as usize].to_be_bytes();
                let kept = (bytes.len() - at).min(4);
                bytes[at..at + kept].copy_from_slice(&number[..kept]);
            }
        }
    }
}

/// A batch of any codec, of any size.
fn batch(random: &mut Random) -> Vec<u8> {
    let first = random.below(100) as i64;
    let last = first + 1 + random.below(60) as i64;
    packed(&encoded(&records(first..last)), random.below(5) as u8)
}

#[test]
fn damaged_batches_with_a_right_checksum_give_records_within_bounds_or_an_error() {
    let (mut whole, mut refused, mut count) = (0, 0, 0_u64);
    rounds(ROUNDS, |seed, random| {
        let mut bytes = batch(random);
        let length = bytes.len();
        damage(&mut bytes, SUMMED_FROM, random);
        if bytes.len() > SUMMED_FROM {
            seal(&mut bytes);
        }
        match decoded(&bytes) {
            Ok(found) => {
                let bound = 64 * (bytes.len() + length);
                assert!(found.len() <= bound, "SKIDDER_SEED={seed}: {} records", found.len());
                whole += u32::from(!found.is_empty());
            }
            Err(_) => refused += 1,
        }
        count += 1;
    });
    assert!(
        count < 100 || (whole > 50 && refused > 50),
        "{count}: {whole} whole, {refused} refused"
    );
}

/// An answer to a fetch request with the records of some partitions.
fn answer(version: i16, random: &mut Random) -> Vec<u8> {
    let mut bytes = 0_i32.to_be_bytes().to_vec();
    if version >= 7 {
        bytes.extend([0; 6]);
    }
    let topics = random.below(3) as i32;
    bytes.extend(topics.to_be_bytes());
    for _ in 0..topics {
        bytes.extend(b"\x00\x05topic");
        let partitions = random.below(3) as i32;
        bytes.extend(partitions.to_be_bytes());
        for partition in 0..partitions {
            bytes.extend(partition.to_be_bytes());
            bytes.extend([0; 18]);
            if version >= 5 {
                bytes.extend([0; 8]);
            }
            bytes.extend(1_i32.to_be_bytes());
            bytes.extend([1; 16]);
            if version >= 11 {
                bytes.extend([0; 4]);
            }
            let records = batch(random);
            bytes.extend((records.len() as i32).to_be_bytes());
            bytes.extend(records);
        }
    }
    bytes
}

#[test]
fn damaged_answers_are_refused_or_read_within_bounds() {
    let (mut read, mut refused, mut count) = (0, 0, 0_u64);
    rounds(ROUNDS, |seed, random| {
        let version = 4 + random.below(8) as i16;
        let mut bytes = answer(version, random);
        let is_whole = read_fetched(&bytes, version);
        assert!(is_whole.is_ok(), "SKIDDER_SEED={seed}: version {version}: {is_whole:?}");
        damage(&mut bytes, 0, random);
        match read_fetched(&bytes, version) {
            Ok(all) => {
                let records: usize = all.iter().map(|(_, _, fetched)| fetched.records.len()).sum();
                assert!(records <= bytes.len(), "SKIDDER_SEED={seed}");
                for (_, _, fetched) in &all {
                    // Only its outcome is of interest: whatever the bytes are.
                    drop(decoded(fetched.records));
                }
                read += 1;
            }
            Err(_) => refused += 1,
        }
        let plan = read_assignment(&bytes).map_or(0, |plan| plan.values().map(Vec::len).sum());
        let wanted = Subscription::read(&bytes, Strategy::Sticky).unwrap_or_default();
        let had: usize = wanted.had.values().map(Vec::len).sum();
        let most = plan.max(had).max(wanted.topics.len());
        assert!(most <= bytes.len(), "SKIDDER_SEED={seed}");
        count += 1;
    });
    assert!(count < 100 || (read > 50 && refused > 50), "{count}: {read} read, {refused} refused");
}
