//! Snapshots as bytes and back, whole and damaged.

use super::*;
use skidder_os::{Fs, OpenMode};
use skidder_testkit::{SimClock, SimFs};
use std::path::Path;

/// Entries as the store has them; a snapshot looks only at their checksum.
fn entries(count: u64) -> Vec<(String, Vec<u8>)> {
    (0..count)
        .map(|number| {
            let key = format!("key-{number:05}");
            let value = codec::encode_checkpoint(&key, &vec![number as u8; number as usize % 700]);
            (key, value)
        })
        .collect()
}

fn written(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    let fs = SimFs::new(&SimClock::new());
    let file = fs.open_write(Path::new("/s"), OpenMode::New, 0o600).unwrap();
    let mut writer = Writer::new(&*file);
    for (key, value) in entries {
        writer.add(key.as_bytes(), value).unwrap();
    }
    let size = writer.finish().unwrap();
    let bytes = fs.peek("/s").unwrap();
    assert_eq!(bytes.len() as u64, size);
    bytes
}

fn read_back(bytes: &[u8]) -> (Outcome, Vec<(String, Vec<u8>)>) {
    let fs = SimFs::new(&SimClock::new());
    fs.write_as_other("/s", bytes);
    fs.short_transfers(Some(1));
    let mut found = Vec::new();
    let outcome = read(&*fs.open(Path::new("/s")).unwrap(), |key, value| {
        found.push((key.to_owned(), value.to_vec()));
        io::Result::Ok(())
    });
    (outcome.unwrap(), found)
}

#[test]
fn what_is_written_is_read_across_many_buffers() {
    for count in [0, 1, 2, 1000] {
        let entries = entries(count);
        assert_eq!(read_back(&written(&entries)), (Outcome::Complete, entries));
    }
}

#[test]
fn every_cut_is_noticed_and_gives_the_entries_before_it() {
    let entries = entries(5);
    let bytes = written(&entries);
    for length in 0..bytes.len() {
        let (outcome, found) = read_back(&bytes[..length]);
        assert_eq!(outcome, Outcome::Damaged, "length {length}");
        assert!(entries.starts_with(&found));
    }
}

#[test]
fn every_flipped_bit_is_noticed_and_invents_nothing() {
    let entries = entries(5);
    let bytes = written(&entries);
    for bit in 0..bytes.len() * 8 {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        let (outcome, found) = read_back(&bad);
        assert_eq!(outcome, Outcome::Damaged, "bit {bit}");
        assert!(found.iter().all(|entry| entries.contains(entry)));
    }
}

#[test]
fn bytes_after_the_end_are_damage() {
    let mut bytes = written(&entries(3));
    bytes.push(0);
    assert_eq!(read_back(&bytes).0, Outcome::Damaged);
}
