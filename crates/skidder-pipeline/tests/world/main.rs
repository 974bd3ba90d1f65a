//! The simulated world: other programs write, rotate, compress, truncate and delete files while skidder
//! reads, delivers, dies and starts again, all in an order that comes from a seed.
//!
//! Lines carry their names, so that a judge can say of each what became of it: none may be lost, altered
//! or out of order, none may come twice without a death of the program that explains it, the ledger
//! adds up after every action, and no saved cursor passes a line without a verdict.
//!
//! `SKIDDER_SEED=17 cargo test -p skidder-pipeline --test world` runs one seed and tells its story;
//! `SKIDDER_SEEDS=1000` runs so many, from `SKIDDER_SEED` on.

mod disk;
mod program;
mod truth;

use disk::Disk;
use program::{Config, Program};
use skidder_testkit::{Random, SimClock, SimFs};
use truth::{Story, Truth};

/// Actions of a seed.
const STEPS: u64 = 1500;

/// Rounds of scanning and reading at the end: longer than any back-off, grace and idle time.
const ROUNDS: usize = 45;

/// Runs one seed; the error says what must not be.
fn run(seed: u64, loud: bool) -> Result<usize, String> {
    let mut random = Random::new(seed);
    let clock = SimClock::new();
    let fs = SimFs::new(&clock);
    fs.create_dir_as_other("/logs/a");
    fs.create_dir_as_other("/logs/b");
    let config = Config::random(&mut random);
    if random.one_in(2) {
        fs.short_transfers(Some(seed));
    }
    let deaths = random.one_in(2);
    let faults = random.one_in(2);
    let mut truth = Truth::default();
    let mut disk = Disk::new(fs.clone(), clock.clone(), &mut random, Story { loud });
    disk.story.push(format!("{config:?}, deaths: {deaths}, faults: {faults}"));
    let mut program = Program::start(fs, clock, config, deaths, faults);
    let result = live(&mut random, &mut truth, &mut disk, &mut program);
    for sentence in program.sources() {
        disk.story.push(sentence);
    }
    result.map(|()| truth.contents.iter().map(|content| content.lines.len()).sum())
}

fn live(
    random: &mut Random,
    truth: &mut Truth,
    disk: &mut Disk,
    program: &mut Program,
) -> Result<(), String> {
    for _ in 0..STEPS {
        if random.one_in(6) {
            disk.act(random, truth);
        } else {
            program.act(random, truth, disk)?;
        }
        if random.one_in(400) {
            disk.story.push("quiet".to_owned());
            program.drain(random, truth, 3)?;
        }
    }
    disk.finish(random, truth);
    disk.story.push("the end".to_owned());
    program.drain(random, truth, ROUNDS)?;
    let lost = truth.lost();
    if lost.is_empty() { Ok(()) } else { Err(format!("lost: {lost:?}")) }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a seed is a number"))
}

#[test]
fn no_line_is_lost_doubled_altered_or_out_of_order() {
    let first = number("SKIDDER_SEED");
    let count = number("SKIDDER_SEEDS").unwrap_or(if first.is_some() { 1 } else { 60 });
    let first = first.unwrap_or(1);
    let (mut lines, mut failures) = (0, Vec::new());
    if count == 1 {
        let to = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).without_time();
        to.with_target(false).with_ansi(false).with_writer(std::io::stderr).init();
    }
    for seed in first..first + count {
        match run(seed, count == 1) {
            Ok(count) => lines += count,
            Err(error) => {
                eprintln!("seed {seed}: {error}");
                failures.push(seed);
            }
        }
    }
    assert!(failures.is_empty(), "failing seeds: {failures:?}");
    assert!(lines > 50 * count as usize, "only {lines} lines were written");
}
