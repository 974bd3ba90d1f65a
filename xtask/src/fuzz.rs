//! `cargo xtask fuzz`: the seeded fuzz tests of the decoders, encodings, lines, parsers, the disk queue, the frames of
//! Lumberjack, packets of MQTT, files of the journal, answers of Kafka and Redis, packets of NetFlow
//! and sFlow and the faces of `http_endpoint`, for as long as one likes. Their short run is part of the ordinary tests.

use crate::{process, repository};
use anyhow::{Context, Result, bail};
use skidder_os::{Clock, SystemClock};
use std::process::Command;
use std::time::Duration;

/// Rounds between two looks at the time.
const ROUNDS: u64 = 2_000;

const SECONDS: u64 = 60;

/// The test programs: of `skidder-decode`, of `skidder-parse` and of `skidder-pipeline`.
const PROGRAMS: [&str; 4] = ["fuzz", "fuzz_frames", "fuzz_parsers", "fuzz_queue"];
const PACKAGES: [&str; 3] = ["skidder-decode", "skidder-parse", "skidder-pipeline"];

/// Beside the code, because what they test is not public: the package, and the path of the tests in it.
const INNER: [(&str, &str); 8] = [
    ("skidder-inputs", "lumberjack::frames::fuzz::"),
    ("skidder-inputs", "http_endpoint::tests::faces_fuzz::"),
    ("skidder-inputs", "mqtt::decode::tests::fuzz_"),
    ("skidder-journal", "fuzz::"),
    ("skidder-input-kafka", "fuzz::"),
    ("skidder-netflow", "tests::fuzz_"),
    ("skidder-netflow", "tests::sflow::fuzz_"),
    ("skidder-redis", "resp::fuzz::"),
];

/// `[--seconds N] [--from SEED]`: rounds from a seed on until the time is over, or one fails.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut seconds, mut from) = (SECONDS, 1);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let target = match option.as_str() {
            "--seconds" => &mut seconds,
            "--from" => &mut from,
            other => bail!("`{other}` is not understood: [--seconds N] [--from SEED]"),
        };
        let value = rest.next().with_context(|| format!("`{option}` needs a number"))?;
        *target = value.parse().with_context(|| format!("`{option} {value}` is no number"))?;
    }
    let clock = SystemClock::new();
    let end = Duration::from_secs(seconds);
    let mut passes = 0;
    while passes == 0 || (clock.monotonic().0 < end && !process::stopping()) {
        let mut command = tests(from);
        command.args(PACKAGES.iter().flat_map(|package| ["--package", package]));
        command.args(PROGRAMS.iter().flat_map(|program| ["--test", program]));
        process::run(&mut command)?;
        for (package, path) in INNER {
            process::run(tests(from).args(["--package", package, "--lib", path]))?;
        }
        from += ROUNDS;
        passes += 1;
    }
    process::print(&format!(
        "fuzz: {} rounds of each test, up to seed {}",
        passes * ROUNDS,
        from - 1
    ));
    Ok(())
}

/// Tests whose seeds begin at `from`.
fn tests(from: u64) -> Command {
    let mut command = repository::cargo();
    command.args(["test", "--quiet", "--release"]);
    command.env("SKIDDER_FUZZ_FROM", from.to_string());
    command.env("SKIDDER_FUZZ_ROUNDS", ROUNDS.to_string());
    command
}
