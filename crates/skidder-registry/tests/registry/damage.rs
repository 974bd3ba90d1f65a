//! Damaged files: never a refusal to start, never a panic, and no entry that was not once committed.

use crate::common::*;
use proptest::prelude::*;
use skidder_os::Fs;
use skidder_registry::{Entry, Opened, Options, Registry};
use skidder_testkit::{Random, SimClock, SimFs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const STORE: &str = "/data/registry/registry.redb";
const SNAPSHOT: &str = "/data/registry/registry.snapshot";

/// The content before the damage.
struct Past {
    /// The state after each commit.
    states: Vec<Truth>,
    /// Every entry that a key ever had.
    entries: BTreeMap<String, Vec<Entry>>,
    closed: bool,
}

impl Past {
    fn last(&self) -> &Truth {
        &self.states[self.states.len() - 1]
    }
}

/// A machine whose registry was used for a while and closed, or not closed.
fn used(closed: bool) -> (SimFs, SimClock, Past) {
    let (fs, clock) = machine();
    let mut random = Random::new(1);
    let (registry, _) = open(&fs, &clock);
    let mut past = Past { states: vec![Truth::new()], entries: BTreeMap::new(), closed };
    for _ in 0..40 {
        let changes = changes(&mut random, &clock);
        registry.commit(&changes).unwrap();
        let state = after(past.last(), &changes);
        for (key, (entry, _)) in &state {
            past.entries.entry(key.clone()).or_default().push(entry.clone());
        }
        past.states.push(state);
    }
    if closed {
        registry.close().unwrap();
    } else {
        fs.crash();
    }
    (fs, clock, past)
}

/// Opens after damage, and checks that nothing was invented and the registry works.
#[track_caller]
fn check(fs: &SimFs, clock: &SimClock, past: &Past) -> Opened {
    let (registry, opened) = open(fs, clock);
    let found = content(&registry);
    match &opened {
        Opened::Damaged { set_aside, recovered } => {
            assert_eq!(found.len() as u64, *recovered);
            assert!(set_aside.iter().all(|path| fs.peek(path).is_some()));
            for (key, (entry, _)) in &found {
                assert!(past.entries[key].contains(entry), "{key} was never so");
            }
        }
        _ if past.closed => assert!(found == *past.last(), "not as it was closed"),
        // Damage of the newest transaction looks like one that the power cut short: the store
        // falls back to the one before.
        _ => assert!(past.states.contains(&found), "never was so"),
    }
    let mut random = Random::new(2);
    registry.commit(&changes(&mut random, clock)).unwrap();
    registry.close().unwrap();
    assert_eq!(open(fs, clock).1, Opened::Clean);
    opened
}

fn aside(opened: &Opened) -> Vec<PathBuf> {
    match opened {
        Opened::Damaged { set_aside, .. } => set_aside.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn garbage_is_set_aside_and_the_state_continues_from_the_snapshot() {
    let (fs, clock, past) = used(true);
    fs.write_as_other(STORE, b"this is no registry");
    let opened = check(&fs, &clock, &past);
    let aside = aside(&opened);
    assert_eq!(aside, [Path::new("/data/registry/registry.redb.damaged-1767225640")]);
    assert_eq!(fs.peek(&aside[0]).unwrap(), b"this is no registry");
    assert!(
        matches!(opened, Opened::Damaged { recovered, .. } if recovered == past.last().len() as u64)
    );
}

#[test]
fn second_damage_in_a_second_gets_a_name_of_its_own() {
    let (fs, clock, _) = used(true);
    for _ in 0..2 {
        fs.write_as_other(STORE, b"garbage");
        drop(open(&fs, &clock));
    }
    let names = fs.peek_names(DIRECTORY);
    assert!(names.contains(&"registry.redb.damaged-1767225640-1".into()), "{names:?}");
}

#[test]
fn a_store_cut_to_any_length_is_replaced() {
    for closed in [true, false] {
        let (fs, _, _) = used(closed);
        let whole = fs.peek(STORE).unwrap();
        let mut random = Random::new(3);
        let lengths = (0..200).map(|_| random.below(whole.len() as u64));
        for length in lengths.chain([0, 1, 9, 10, 320, 4095, 4096, 8192]) {
            let (fs, clock, past) = used(closed);
            fs.truncate_as_other(STORE, length);
            let opened = check(&fs, &clock, &past);
            assert_eq!(aside(&opened).len(), 1, "length {length}");
        }
    }
}

#[test]
fn a_missing_store_is_made_from_the_snapshot() {
    let (fs, clock, past) = used(true);
    fs.remove_as_other(STORE);
    let opened = check(&fs, &clock, &past);
    assert_eq!(opened, Opened::Damaged { set_aside: vec![], recovered: past.last().len() as u64 });
}

#[test]
fn a_damaged_snapshot_does_not_matter_while_the_store_is_good() {
    let (fs, clock, past) = used(true);
    fs.write_as_other(SNAPSHOT, b"garbage");
    assert_eq!(check(&fs, &clock, &past), Opened::Clean);
}

#[test]
fn if_both_are_damaged_both_are_set_aside_and_what_can_be_read_is_kept() {
    let (fs, clock, past) = used(true);
    fs.write_as_other(STORE, b"garbage");
    fs.truncate_as_other(SNAPSHOT, fs.peek(SNAPSHOT).unwrap().len() as u64 / 2);
    let opened = check(&fs, &clock, &past);
    assert_eq!(aside(&opened).len(), 2);
    let Opened::Damaged { recovered, .. } = opened else { panic!() };
    assert!(recovered > 0 && recovered < past.last().len() as u64);

    fs.write_as_other(STORE, &[0; 8192]);
    fs.write_as_other(SNAPSHOT, &[]);
    let opened = check(&fs, &clock, &past);
    assert!(matches!(opened, Opened::Damaged { recovered: 0, .. }), "{opened:?}");
}

#[test]
fn what_can_be_read_of_a_damaged_store_is_newer_than_the_snapshot() {
    let (fs, clock, past) = used(true);
    // A snapshot of long ago.
    let (old_fs, old_clock) = machine();
    let (registry, _) = open(&old_fs, &old_clock);
    registry.commit(&changes(&mut Random::new(1), &old_clock)).unwrap();
    registry.close().unwrap();
    fs.write_as_other(SNAPSHOT, &old_fs.peek(SNAPSHOT).unwrap());
    // One bit in the value of the first entry; its source is found in no other place that is in use.
    let mut bytes = fs.peek(STORE).unwrap();
    let files = past.last().iter().filter_map(|(key, (entry, _))| Some((key, entry.as_file()?)));
    let (victim, file) = files.min_by_key(|(key, _)| *key).unwrap();
    let source = file.meta.source.as_os_str().as_encoded_bytes();
    let places = (0..bytes.len() - source.len()).filter(|at| bytes[*at..].starts_with(source));
    for place in places.collect::<Vec<_>>() {
        bytes[place] ^= 1;
    }
    fs.write_as_other(STORE, &bytes);

    let (registry, opened) = open(&fs, &clock);
    assert!(matches!(opened, Opened::Damaged { .. }), "{opened:?}");
    let found = content(&registry);
    for (key, (entry, checkpoint)) in past.last().iter().filter(|(key, _)| *key != victim) {
        assert_eq!(&found[key], &(entry.clone(), checkpoint.clone()));
    }
    let old = found.get(victim).map(|(entry, _)| entry);
    assert!(old.is_none_or(|old| past.entries[victim][..1].contains(old)), "{old:?}");
}

#[test]
fn damage_that_comes_while_the_registry_is_open_is_survived_too() {
    let (fs, clock, past) = used(true);
    let options = Options { cache_bytes: 0, ..OPTIONS };
    let machine: Arc<dyn Fs> = Arc::new(fs.clone());
    let (registry, _) =
        Registry::open(machine, Arc::new(clock.clone()), Path::new(DIRECTORY), options).unwrap();
    let length = fs.peek(STORE).unwrap().len();
    fs.write_as_other(STORE, &vec![0xa5; length]);
    let found = content(&registry);
    assert!(found.keys().eq(past.last().keys()), "all are in the snapshot");
    assert!(found.iter().all(|(key, (entry, _))| past.entries[key].contains(entry)));
    registry.commit(&changes(&mut Random::new(2), &clock)).unwrap();
    registry.close().unwrap();
    assert_eq!(open(&fs, &clock).1, Opened::Clean);
    let names = fs.peek_names(DIRECTORY);
    assert!(names.iter().any(|name| name.to_string_lossy().contains("damaged")), "{names:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bits_anywhere_are_survived(
        closed: bool,
        places in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..8), 1..20),
        header: bool,
    ) {
        let (fs, clock, past) = used(closed);
        let mut bytes = fs.peek(STORE).unwrap();
        let length = if header { 400 } else { bytes.len() };
        for (place, bit) in places {
            bytes[place.index(length)] ^= 1 << bit;
        }
        fs.write_as_other(STORE, &bytes);
        check(&fs, &clock, &past);
    }

    #[test]
    fn overwritten_stretches_are_survived(
        closed: bool,
        start: prop::sample::Index,
        stretch in prop::collection::vec(any::<u8>(), 1..9000),
    ) {
        let (fs, clock, past) = used(closed);
        let mut bytes = fs.peek(STORE).unwrap();
        let start = start.index(bytes.len());
        let end = (start + stretch.len()).min(bytes.len());
        bytes[start..end].copy_from_slice(&stretch[..end - start]);
        fs.write_as_other(STORE, &bytes);
        check(&fs, &clock, &past);
    }
}
