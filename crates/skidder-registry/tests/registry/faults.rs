//! Operations fail one after the other: nothing committed is lost, and the registry goes on by itself when
//! the fault is gone.

use crate::common::*;
use skidder_registry::{Change, Opened, Registry};
use skidder_testkit::{Fault, Operation, Random, SimClock, SimFs};
use std::io::ErrorKind;

/// Opens; a fault may make it fail once.
fn open_again(fs: &SimFs, clock: &SimClock) -> Registry {
    let (registry, opened) = try_open(fs, clock).unwrap_or_else(|_| open(fs, clock));
    assert!(!matches!(opened, Opened::Damaged { .. }), "{opened:?}");
    registry
}

/// Commits, and after an error checks the state and tries again. Returns the new truth.
fn commit(registry: &Registry, truth: &Truth, changes: &[Change]) -> Truth {
    let new = after(truth, changes);
    if registry.commit(changes).is_err() {
        let found = content(registry);
        assert!(found == *truth || found == new, "neither the old nor the new state");
        registry.commit(changes).unwrap();
    }
    new
}

fn one_fault(seed: u64, fault: impl Fn(u64) -> Fault) {
    let mut nth = 0;
    loop {
        nth += 1;
        let (fs, clock) = machine();
        let mut random = Random::new(seed);
        fs.inject(fault(nth));
        let registry = open_again(&fs, &clock);
        let mut truth = Truth::new();
        for _ in 0..8 {
            truth = commit(&registry, &truth, &changes(&mut random, &clock));
        }
        assert_eq!(content(&registry), truth);
        // The worst that can follow: the power goes, and only what was synced is left.
        fs.crash();
        drop(registry);
        assert_eq!(content(&open_again(&fs, &clock)), truth, "operation {nth}");
        if nth > fs.operations() {
            return;
        }
    }
}

#[test]
fn an_error_of_any_operation_loses_nothing() {
    for seed in seeds(1) {
        one_fault(seed, |nth| Fault::nth(nth, ErrorKind::Other));
    }
}

#[test]
fn a_full_disk_at_any_operation_loses_nothing() {
    for seed in seeds(1) {
        one_fault(seed + 100, |nth| Fault::nth(nth, ErrorKind::StorageFull));
    }
}

#[test]
fn an_interrupted_operation_is_no_error() {
    for nth in 1..400 {
        let (fs, clock) = machine();
        fs.inject(Fault::nth(nth, ErrorKind::Interrupted).of(Operation::Sync));
        fs.inject(Fault::nth(nth, ErrorKind::Interrupted).of(Operation::Write));
        fs.inject(Fault::nth(nth, ErrorKind::Interrupted).of(Operation::Read));
        fs.inject(Fault::nth(nth, ErrorKind::Interrupted).of(Operation::SetLen));
        let mut random = Random::new(3);
        let (registry, _) = open(&fs, &clock);
        for _ in 0..4 {
            registry.commit(&changes(&mut random, &clock)).unwrap();
        }
        registry.close().unwrap();
        if nth > fs.operations() {
            return;
        }
    }
}

#[test]
fn short_transfers_are_completed() {
    let (fs, clock) = machine();
    fs.short_transfers(Some(1));
    let mut random = Random::new(4);
    let (registry, _) = open(&fs, &clock);
    let mut truth = Truth::new();
    for _ in 0..30 {
        truth = commit(&registry, &truth, &changes(&mut random, &clock));
    }
    registry.close().unwrap();
    let (registry, opened) = open(&fs, &clock);
    assert_eq!((content(&registry), opened), (truth, Opened::Clean));
}

/// The disk fails from one operation on, for several attempts, and then works again.
#[test]
fn a_long_failure_is_survived_whenever_it_begins() {
    for operation in [None, Some(Operation::Write), Some(Operation::Sync), Some(Operation::SetLen)]
    {
        for nth in 1..120 {
            let (fs, clock) = machine();
            let mut random = Random::new(nth);
            let registry = open_again(&fs, &clock);
            let mut truth = Truth::new();
            for _ in 0..3 {
                truth = commit(&registry, &truth, &changes(&mut random, &clock));
            }
            let fault = Fault::nth(nth, ErrorKind::StorageFull).forever();
            fs.inject(match operation {
                Some(operation) => fault.of(operation),
                None => fault,
            });
            let changes = changes(&mut random, &clock);
            let mut failed = false;
            for _ in 0..6 {
                failed |= registry.commit(&changes).is_err();
                if failed && operation.is_some() {
                    let found = content(&registry);
                    assert!(found == truth || found == after(&truth, &changes));
                }
            }
            fs.clear_faults();
            registry.commit(&changes).unwrap();
            truth = after(&truth, &changes);
            fs.crash();
            drop(registry);
            assert_eq!(content(&open_again(&fs, &clock)), truth, "{operation:?} {nth}");
        }
    }
}

#[test]
fn a_full_disk_still_lets_the_program_start_and_read() {
    // A file that cannot be extended either, as under a quota, cannot even be opened for writing.
    for quota in [false, true] {
        let (fs, clock) = machine();
        let mut random = Random::new(5);
        let (registry, _) = open(&fs, &clock);
        let mut truth = Truth::new();
        for _ in 0..5 {
            truth = commit(&registry, &truth, &changes(&mut random, &clock));
        }
        fs.crash();
        drop(registry);
        fs.set_capacity(Some(0));
        if quota {
            fs.inject(Fault::nth(1, ErrorKind::QuotaExceeded).of(Operation::SetLen).forever());
        }
        let (registry, opened) = open(&fs, &clock);
        assert_eq!(opened, Opened::Repaired);

        let mut failed = 0;
        for _ in 0..100 {
            assert_eq!(content(&registry), truth);
            let changes = changes(&mut random, &clock);
            match registry.commit(&changes) {
                Ok(()) => truth = after(&truth, &changes),
                Err(_) => {
                    failed += 1;
                    // The old state or the new one, see `CommitError::Retry`.
                    let found = content(&registry);
                    assert!(found == truth || found == after(&truth, &changes));
                    truth = found;
                }
            }
        }
        assert!(failed > 0);
        fs.clear_faults();
        fs.set_capacity(None);
        truth = commit(&registry, &truth, &changes(&mut random, &clock));
        registry.close().unwrap();
        assert_eq!(content(&open(&fs, &clock).0), truth);
    }
}

#[test]
fn a_failed_sync_is_known_to_the_next_process() {
    // Found by the simulated world: the next process took what it could read for written, built upon it, and the power
    // cut after that left a store of new pages that lead to old ones.
    for nth in 1..6 {
        let (fs, clock) = machine();
        let mut random = Random::new(nth);
        let (registry, _) = open(&fs, &clock);
        let mut truth = Truth::new();
        for _ in 0..5 {
            truth = commit(&registry, &truth, &changes(&mut random, &clock));
        }
        let fault = Fault::nth(1, ErrorKind::Other).of(Operation::Sync);
        fs.inject(fault.times(nth));
        for _ in 0..nth {
            let changes = changes(&mut random, &clock);
            registry.commit(&changes).unwrap_err();
            let found = content(&registry);
            assert!(found == truth || found == after(&truth, &changes));
            truth = found;
        }
        fs.kill();
        drop(registry);
        fs.clear_faults();

        let (registry, opened) = open(&fs, &clock);
        assert_eq!(opened, Opened::Repaired, "{nth}");
        assert!(content(&registry) == truth, "{nth}");
        for _ in 0..3 {
            truth = commit(&registry, &truth, &changes(&mut random, &clock));
        }
        fs.crash();
        drop(registry);
        let (registry, opened) = open(&fs, &clock);
        assert_eq!(opened, Opened::Repaired, "{nth}");
        assert!(content(&registry) == truth, "{nth}");
        // It is forgotten when the store is a new one.
        registry.close().unwrap();
        let (registry, opened) = open(&fs, &clock);
        assert_eq!(opened, Opened::Clean, "{nth}");
        assert!(content(&registry) == truth, "{nth}");
    }
}
