//! All automation of the repository: `cargo xtask VERB`, with the same names in the Makefile.

mod bench;
mod ci;
mod fuzz;
mod lanes;
mod package;
mod process;
mod repository;
mod rotated;
mod servers;
mod settings;
mod ship;
mod simulate;
mod tidy;
mod verify;

use anyhow::{Result, bail};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask VERB (or make VERB)

  run               build, ship a small set of rotated logs into ./run/out, check every line
  test [ARGUMENT..] all tests, also those against real servers; the arguments go to `cargo test`
  test-all [ARGUMENT..]  these and those with a real API server of Kubernetes, whose build takes minutes
  bench [ARGUMENT..]  the end-to-end benchmark; the arguments go to `skidder-bench run`
  peers [ARGUMENT..]  race log shippers; the arguments go to `skidder-bench peers`, as `--filebeat PATH`
  simulate [OPTION..]  runs in a simulated world, from seeds; `--with-bug NAME` with a deliberate bug
  fuzz [--seconds N] [--from SEED]  damaged files and checkpoints, from seeds
  package [--program FILE]  a Debian package, checked with what else is in packaging/
  ci                everything that is checked before a change lands
  settings [--last]  each declared setting that no test sets: of all tests, or of the last run
  tidy [--update]   the repository's own rules; --update lowers the limits in .config/tidy-ratchet.txt
  servers           start the servers of the tests, print their variables, stop them on Ctrl-C
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::eprint(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<()> {
    process::watch_signals()?;
    let verb = arguments.first().map_or("help", String::as_str);
    let rest = arguments.get(1..).unwrap_or_default();
    match (verb, rest) {
        ("run", []) => ship::run(),
        ("test", _) => servers::test(rest, &[]),
        ("test-all", _) => servers::test_all(&[], rest, &[]),
        ("bench", _) => bench::run(rest),
        ("peers", _) => bench::peers(rest),
        ("simulate", _) => simulate::run(rest),
        ("fuzz", _) => fuzz::run(rest),
        ("package", []) => package::run(),
        ("package", [flag, program]) if flag == "--program" => package::of(program.as_ref()),
        ("ci", []) => ci::run(),
        ("settings", []) => {
            settings::run_tests(&servers::test)?;
            settings::check()
        }
        ("settings", [flag]) if flag == "--last" => settings::check(),
        ("tidy", []) => tidy::run(tidy::Mode::Check),
        ("tidy", [flag]) if flag == "--update" => tidy::run(tidy::Mode::Update),
        ("servers", []) => servers::serve(),
        ("help" | "--help" | "-h", _) => {
            process::print(HELP.trim_end());
            Ok(())
        }
        _ => bail!("`{}` is not understood\n\n{HELP}", arguments.join(" ")),
    }
}
