//! A few seeds in an ordinary test run, unoptimised and with all assertions; `cargo xtask simulate` runs
//! many.

use skidder_simulate::{FOUND, Options, Theme, run};

/// Seeds of the ordinary test run.
const SEEDS: u64 = 60;

#[test]
fn no_line_is_lost_doubled_altered_or_out_of_order() {
    let mut lines = 0;
    for seed in 1..=SEEDS {
        match run(seed, Options::default()) {
            Ok(outcome) => lines += outcome.lines,
            Err(failure) => panic!("seed {seed}: {}: {:#?}", failure.what, failure.state),
        }
    }
    assert!(lines as u64 > 50 * SEEDS, "only {lines} lines were written");
}

#[test]
fn each_of_several_outputs_and_each_disk_queue_gets_every_line() {
    for theme in [Theme::Outputs, Theme::Disk] {
        for seed in 1..=20 {
            let options = Options { theme: Some(theme), ..Options::default() };
            if let Err(failure) = run(seed, options) {
                panic!("seed {seed} {theme:?}: {}: {:#?}", failure.what, failure.state);
            }
        }
    }
}

#[test]
fn seeds_that_have_found_something_find_nothing_any_more() {
    for (seed, theme, story) in FOUND {
        if let Err(failure) = run(*seed, Options { theme: *theme, ..Options::default() }) {
            panic!("seed {seed} ({story}): {}: {:#?}", failure.what, failure.state);
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for theme in [None].into_iter().chain(Theme::ALL.map(Some)) {
        for seed in 1..=5 {
            let options = Options { theme, ..Options::default() };
            let digest = || run(seed, options).map(|outcome| outcome.digest).ok();
            assert_eq!(digest(), digest(), "seed {seed} {theme:?}");
        }
    }
}
