//! Half a million entries on the real disk. Measures; run with
//! `cargo test --release -p skidder-registry --test registry scale -- --ignored --nocapture`.

use crate::common::*;
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_registry::{Change, Checkpoint, Opened, Options, Registry};
use skidder_testkit::{Random, SimClock};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const ENTRIES: u64 = 500_000;

fn put(number: u64, random: &mut Random, clock: &SimClock) -> Change {
    let mut entry = file_entry(random, clock);
    let path = format!("/var/log/pods/namespace_{number}_0f3a/container/{}.log", random.below(10));
    entry.meta.source = Path::new(&path).into();
    // One in twenty is compressed.
    let checkpoint = match number % 20 {
        0 => Checkpoint::Set(vec![number as u8; 13_000]),
        _ => Checkpoint::Keep,
    };
    Change::Put { key: key(number).into(), entry: entry.into(), checkpoint }
}

fn measure<T>(clock: &SystemClock, what: &str, operation: impl FnOnce() -> T) -> (T, Duration) {
    let start = clock.monotonic();
    let result = operation();
    let span = clock.monotonic().since(start);
    println!("{what}: {span:?}");
    (result, span)
}

/// Resident memory of this process in MiB, now and at its peak.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let lines =
        status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
#[ignore = "measures: writes 1 GB"]
fn half_a_million_entries_open_in_less_than_two_seconds() {
    let temporary = tempfile::tempdir().unwrap();
    let clock = Arc::new(SystemClock::new());
    let directory = temporary.path();
    let open = |directory: &Path| {
        Registry::open(Arc::new(RealFs), clock.clone(), directory, Options::default()).unwrap()
    };
    let (registry, _) = open(directory);
    let (mut random, sim_clock) = (Random::new(1), SimClock::new());
    measure(&clock, "fill", || {
        for start in (0..ENTRIES).step_by(1000) {
            let changes: Vec<Change> =
                (start..start + 1000).map(|n| put(n, &mut random, &sim_clock)).collect();
            registry.commit(&changes).unwrap();
        }
    });
    println!("memory after filling: {}", memory());
    measure(&clock, "close", || registry.close().unwrap());
    for file in std::fs::read_dir(directory).unwrap() {
        let file = file.unwrap();
        println!("{:?}: {} MiB", file.file_name(), file.metadata().unwrap().len() >> 20);
    }

    let ((registry, opened), span) = measure(&clock, "open after a close", || open(directory));
    assert_eq!(opened, Opened::Clean);
    assert!(span < Duration::from_secs(2));
    println!("memory after opening: {}", memory());
    measure(&clock, "100,000 gets at random", || {
        for _ in 0..100_000 {
            assert!(registry.get(&key(random.below(ENTRIES))).unwrap().is_some());
        }
    });
    measure(&clock, "for each", || registry.for_each(|_, _| ()).unwrap());
    for count in [1, 10, 100, 1000] {
        measure(&clock, &format!("20 commits of {count} at random"), || {
            for _ in 0..20 {
                let changes: Vec<Change> = (0..count)
                    .map(|_| put(random.below(ENTRIES), &mut random, &sim_clock))
                    .collect();
                registry.commit(&changes).unwrap();
            }
        });
    }

    // Without a close: as a killed process or a power cut leaves it.
    let unclean = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(directory).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), unclean.path().join(file.file_name())).unwrap();
    }
    let ((registry, opened), span) = measure(&clock, "open after a kill", || open(unclean.path()));
    assert_eq!(opened, Opened::Repaired);
    assert_eq!(registry.len().unwrap(), ENTRIES);
    println!("memory at the end: {}", memory());
    assert!(span < Duration::from_secs(4), "with the snapshot");
}
