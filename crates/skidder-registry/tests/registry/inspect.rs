//! Looking into a registry that may be in use.

use crate::common::*;
use skidder_os::{Clock, Fs, OpenMode, RealFs, SystemClock, write_all_at};
use skidder_registry::{Inspected, Options, Origin, Registry, inspect};
use skidder_testkit::Random;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The entries that `inspected` should have.
fn entries(truth: &Truth) -> Vec<(String, skidder_registry::Entry)> {
    truth.iter().map(|(key, (entry, _))| (key.clone(), entry.clone())).collect()
}

#[test]
fn a_registry_in_use_shows_what_was_committed_and_is_not_changed_by_it() {
    let (fs, clock) = machine();
    let (seam, time): (Arc<dyn Fs>, Arc<dyn Clock>) =
        (Arc::new(fs.clone()), Arc::new(clock.clone()));
    let look = || inspect(&seam, &time, Path::new(DIRECTORY)).unwrap();
    assert!(look().is_none());
    let (registry, _) = open(&fs, &clock);
    let mut random = Random::new(3);
    let mut truth = Truth::new();
    for _ in 0..20 {
        let changes = changes(&mut random, &clock);
        registry.commit(&changes).unwrap();
        truth = after(&truth, &changes);
        let Inspected { entries: seen, origin, incomplete } = look().unwrap();
        assert_eq!((seen, origin, incomplete), (entries(&truth), Origin::Store, false));
    }
    assert_eq!(content(&registry), truth);
    registry.close().unwrap();
    assert_eq!(look().unwrap().entries, entries(&truth));
}

#[test]
fn a_damaged_store_shows_its_snapshot() {
    let (fs, clock) = machine();
    let (registry, _) = open(&fs, &clock);
    let changes = changes(&mut Random::new(4), &clock);
    registry.commit(&changes).unwrap();
    let truth = after(&Truth::new(), &changes);
    registry.close().unwrap();
    let store = Path::new(DIRECTORY).join("registry.redb");
    let file = fs.open_write(&store, OpenMode::Keep, 0o600).unwrap();
    write_all_at(&*file, &[0xff; 20_000], 0).unwrap();
    let (seam, time): (Arc<dyn Fs>, Arc<dyn Clock>) =
        (Arc::new(fs.clone()), Arc::new(clock.clone()));
    let inspected = inspect(&seam, &time, Path::new(DIRECTORY)).unwrap().unwrap();
    assert_eq!(inspected.entries, entries(&truth));
    assert!(matches!(inspected.origin, Origin::Snapshot { .. }));
    fs.remove_file(&Path::new(DIRECTORY).join("registry.snapshot")).unwrap();
    let error = inspect(&seam, &time, Path::new(DIRECTORY)).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the registry in"), "{error}");
}

#[test]
fn a_registry_that_is_written_all_the_time_never_shows_anything_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let (fs, clock): (Arc<dyn Fs>, Arc<dyn Clock>) =
        (Arc::new(RealFs), Arc::new(SystemClock::new()));
    let opened =
        Registry::open(Arc::clone(&fs), Arc::clone(&clock), directory.path(), Options::default());
    let (registry, _) = opened.unwrap();
    let ready = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let done = &ready;
        let writer = scope.spawn(|| {
            let (_, sim) = machine();
            let mut random = Random::new(5);
            while !done.load(Ordering::Relaxed) {
                registry.commit(&changes(&mut random, &sim)).unwrap();
            }
        });
        for _ in 0..50 {
            let Some(inspected) = inspect(&fs, &clock, directory.path()).unwrap() else { continue };
            // Keys are those of the workload, and nothing is damaged.
            assert!(!inspected.incomplete);
            for (name, _) in &inspected.entries {
                assert!((0..12).any(|number| key(number) == *name), "{name}");
            }
        }
        ready.store(true, Ordering::Relaxed);
        writer.join().unwrap();
    });
}
