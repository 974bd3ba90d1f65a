//! A registry that was damaged while the program was away.

use crate::common::lines::{gzip, judge, lines};
use crate::common::server::BulkServer;
use crate::common::{Place, accept};
use std::path::Path;

const LOGS: [(&str, usize); 3] = [("a", 3000), ("b", 2000), ("c", 10)];

/// What may come again: the store alone is recovered from its snapshot.
const NONE: usize = 0;
const ALL: usize = 4010;

/// Damages the registry between two runs; what is lost of it may come again, but no line is lost.
fn damages(fault: &str, is_reported: bool, bound: usize, damage: impl FnOnce(&Path)) {
    let server = BulkServer::start();
    let place = Place::new(&server);
    place.write("a", &lines("a", 0..2000));
    place.write("b.gz", &gzip(&lines("b", 0..2000)));
    place.write("c", &lines("c", 0..10));
    place.once(&[]).succeeded();
    assert_eq!(server.count(), ALL);
    place.write("a", &lines("a", 0..3000));
    damage(&place.registry());
    let ended = place.once(&[]).succeeded();
    let verdict = judge(&LOGS, &server.documents());
    accept(fault, verdict, bound);
    if is_reported {
        let message = "the registry was damaged and is set aside";
        let line = ended.log.lines().find(|line| line.contains(message));
        let line = line.unwrap_or_else(|| panic!("{fault}: not reported:\n{}", ended.log));
        // The damaged file is kept under the reported name.
        let kept: Vec<_> = std::fs::read_dir(place.registry())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| line.contains(&*path.to_string_lossy()))
            .collect();
        assert!(kept.iter().any(|path| *path != place.registry()), "{fault}: {line}");
    }
    // And from then on the registry is good.
    assert_eq!(place.once(&[]).succeeded().ledger().read, 0, "{fault}");
}

fn store(registry: &Path) -> std::path::PathBuf {
    registry.join("registry.redb")
}

#[test]
fn a_zeroed_registry_is_set_aside() {
    damages("registry file zeroed", true, NONE, |registry| {
        let length = std::fs::metadata(store(registry)).unwrap().len() as usize;
        std::fs::write(store(registry), vec![0; length]).unwrap();
    });
}

#[test]
fn a_truncated_registry_is_set_aside() {
    damages("registry file cut in the middle", true, NONE, |registry| {
        let file = std::fs::OpenOptions::new().write(true).open(store(registry)).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    });
}

#[test]
fn a_registry_full_of_noise_is_set_aside() {
    damages("registry file full of noise", true, NONE, |registry| {
        let mut bytes = std::fs::read(store(registry)).unwrap();
        skidder_testkit::Random::new(31).fill(&mut bytes);
        std::fs::write(store(registry), bytes).unwrap();
    });
}

#[test]
fn a_registry_with_flipped_bits_loses_nothing() {
    // Where nothing is kept, nothing needs to be reported.
    damages("registry file with flipped bits", false, NONE, |registry| {
        let mut bytes = std::fs::read(store(registry)).unwrap();
        let mut random = skidder_testkit::Random::new(32);
        for _ in 0..200 {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        std::fs::write(store(registry), bytes).unwrap();
    });
}

#[test]
fn an_empty_registry_file_loses_nothing() {
    damages("registry file empty", false, NONE, |registry| {
        std::fs::write(store(registry), b"").unwrap();
    });
}

#[test]
fn a_missing_registry_file_loses_nothing() {
    damages("registry file removed, snapshot there", false, NONE, |registry| {
        std::fs::remove_file(store(registry)).unwrap();
    });
    damages("registry removed", false, ALL, |registry| std::fs::remove_dir_all(registry).unwrap());
}

#[test]
fn a_snapshot_that_is_damaged_is_no_trouble() {
    damages("snapshot of the registry damaged", false, NONE, |registry| {
        std::fs::write(registry.join("registry.snapshot"), b"nonsense").unwrap();
    });
}
