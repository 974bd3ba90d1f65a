//! The power goes at every operation, and what reached the disk is any mixture that POSIX allows: every
//! commit that returned is there, and none is there by halves.

use crate::common::*;
use skidder_registry::Opened;
use skidder_testkit::{Random, SimClock, SimFs};

/// Runs commits until the machine halts or `commits` are done. Returns what is certain, and what the last
/// commit would have made of it.
fn run(
    fs: &SimFs,
    clock: &SimClock,
    random: &mut Random,
    truth: Truth,
    commits: u32,
) -> [Truth; 2] {
    let mut truth = [truth.clone(), truth];
    let Ok((registry, _)) = try_open(fs, clock) else { return truth };
    for _ in 0..commits {
        let changes = changes(random, clock);
        truth[1] = after(&truth[0], &changes);
        if registry.commit(&changes).is_err() {
            return truth;
        }
        truth[0] = truth[1].clone();
    }
    // At the end too: closing writes.
    drop(registry.close());
    truth
}

/// Starts the machine again, and checks what the registry holds.
#[track_caller]
fn check(fs: &SimFs, clock: &SimClock, [certain, possible]: &[Truth; 2]) -> Truth {
    let (registry, opened) = open(fs, clock);
    assert!(!matches!(opened, Opened::Damaged { .. }), "{opened:?}");
    let found = content(&registry);
    assert!(found == *certain || found == *possible, "neither the old nor the new state");
    let names = fs.peek_names(DIRECTORY);
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("new")), "{names:?}");
    found
}

#[test]
fn no_commit_is_lost_or_torn_wherever_the_power_goes() {
    for seed in seeds(3) {
        let mut halted = true;
        let mut operation = 0;
        while halted {
            operation += 1;
            let (fs, clock) = machine();
            fs.halt_at(operation);
            let mut random = Random::new(seed);
            let truth = run(&fs, &clock, &mut random, Truth::new(), 8);
            halted = fs.halted();
            fs.crash_torn(seed * 100_000 + operation);
            let found = check(&fs, &clock, &truth);

            let truth = run(&fs, &clock, &mut random, found, 2);
            assert_eq!(open(&fs, &clock).1, Opened::Clean);
            check(&fs, &clock, &truth);
        }
    }
}

#[test]
fn one_machine_survives_many_power_cuts_and_kills() {
    for seed in seeds(4) {
        let (fs, clock) = machine();
        let mut random = Random::new(seed);
        let mut truth = Truth::new();
        for _ in 0..60 {
            fs.halt_at(1 + random.below(150));
            let reached = run(&fs, &clock, &mut random, truth, 5);
            match random.below(3) {
                0 => fs.kill(),
                1 => fs.crash(),
                _ => fs.crash_torn(random.number()),
            }
            truth = check(&fs, &clock, &reached);
        }
    }
}

/// The canary: on a disk that lies about syncs commits must get lost, or these tests see nothing. And even
/// there the program starts.
#[test]
fn a_disk_that_lies_about_syncs_is_noticed_by_these_tests() {
    let mut noticed = 0;
    for seed in 0..60 {
        let (fs, clock) = machine();
        let mut random = Random::new(seed);
        let truth = run(&fs, &clock, &mut random, Truth::new(), 8);
        fs.lie_about_syncs(true);
        fs.halt_at(1 + random.below(100));
        let [certain, possible] = run(&fs, &clock, &mut random, truth[0].clone(), 8);
        fs.crash_torn(seed);
        fs.lie_about_syncs(false);
        let (registry, _) = open(&fs, &clock);
        let found = content(&registry);
        noticed += u32::from(found != certain && found != possible);
    }
    assert!(noticed > 10, "{noticed} of 60");
}
