//! `skidder-simulate`: runs seeds of the simulated world; `cargo xtask simulate` builds and starts it.
//!
//! Ends with 0 if every seed went well, or if every deliberate bug was found; with 1 otherwise; with 2 if
//! the command line is not understood.

use skidder_os::sabotage::Sabotage;
use skidder_os::{Clock, SystemClock};
use skidder_simulate::{FOUND, Failure, Options, Theme, run};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const HELP: &str = "\
cargo xtask simulate [OPTION..]

  --seeds N        so many seeds (2000)
  --from SEED      the first of them (1)
  --jobs N         so many at once (2)
  --story          tell what happens; meant for one seed
  --operations     tell each operation of the program on the disk as well
  --twice          run each seed twice and compare
  --theme NAME     all seeds have this theme: `containers`, `pins`, `names`, `delete`, `ids`,
                   `outputs`, `disk`, `reload` or `hang`
  --found          the seeds that have found something, instead of a range
  --failures N     stop after so many failing seeds (10)
  --with-bug NAME  with a deliberate bug, which must be found; `all` for each in turn, `list` for names
";

/// The arguments of the command line.
struct Arguments {
    seeds: u64,
    from: u64,
    jobs: u64,
    story: bool,
    operations: bool,
    twice: bool,
    found: bool,
    failures: usize,
    bug: Option<String>,
    theme: Option<Theme>,
}

/// A seed and its theme.
type Seed = (u64, Option<Theme>);

/// What a range of seeds has shown.
#[derive(Default)]
struct Shown {
    seeds: u64,
    steps: u64,
    lines: u64,
    failures: Vec<(Seed, Failure)>,
}

fn main() -> ExitCode {
    let arguments = match read_arguments(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(problem) => {
            complain(&format!("{problem}\n\n{HELP}"));
            return ExitCode::from(2);
        }
    };
    if arguments.story {
        let to = tracing_subscriber::fmt().with_max_level(tracing::Level::DEBUG).without_time();
        to.with_target(false).with_ansi(false).with_writer(std::io::stderr).init();
    }
    match arguments.bug.as_deref() {
        None => judge(&arguments),
        Some("list") => {
            for bug in Sabotage::ALL {
                say(bug.name());
            }
            ExitCode::SUCCESS
        }
        Some(name) => look_for(&arguments, name),
    }
}

fn read_arguments(mut arguments: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut parsed = Arguments {
        seeds: 2000,
        from: 1,
        jobs: 2,
        story: false,
        operations: false,
        twice: false,
        found: false,
        failures: 10,
        bug: None,
        theme: None,
    };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().ok_or(format!("`{argument}` wants a number"))?;
            text.parse::<u64>().map_err(|_| format!("`{text}` is not a number"))
        };
        match argument.as_str() {
            "--seeds" => parsed.seeds = number()?,
            "--from" => parsed.from = number()?,
            "--jobs" => parsed.jobs = number()?.max(1),
            "--failures" => parsed.failures = number()? as usize,
            "--story" => parsed.story = true,
            "--operations" => parsed.operations = true,
            "--twice" => parsed.twice = true,
            "--found" => parsed.found = true,
            "--theme" => {
                let name = arguments.next().ok_or("`--theme` wants a name")?;
                let theme = Theme::named(&name);
                parsed.theme = Some(theme.ok_or(format!("there is no theme `{name}`"))?);
            }
            "--with-bug" => parsed.bug = Some(arguments.next().ok_or("`--with-bug` wants a name")?),
            _ => return Err(format!("`{argument}` is not understood")),
        }
    }
    Ok(parsed)
}

/// The selected seeds.
fn range(arguments: &Arguments) -> Vec<Seed> {
    let numbers = arguments.from..arguments.from.saturating_add(arguments.seeds);
    numbers.map(|seed| (seed, arguments.theme)).collect()
}

/// Runs seeds of the unchanged product.
fn judge(arguments: &Arguments) -> ExitCode {
    let seeds: Vec<Seed> = if arguments.found {
        FOUND.iter().map(|(seed, theme, _)| (*seed, *theme)).collect()
    } else {
        range(arguments)
    };
    let clock = SystemClock::new();
    let shown = run_all(arguments, &seeds, None, arguments.failures);
    let seconds = clock.monotonic().0.as_secs_f64();
    for (seed, failure) in &shown.failures {
        report(*seed, failure, None);
    }
    let rate = |count: u64, span: f64| (count as f64 / seconds.max(1e-9) * span) as u64;
    say(&format!(
        "{} seeds, {} failed, {} lines, {} steps in {seconds:.1} s: {} seeds/minute, {} steps/second",
        shown.seeds,
        shown.failures.len(),
        shown.lines,
        shown.steps,
        rate(shown.seeds, 60.0),
        rate(shown.steps, 1.0),
    ));
    if shown.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The theme without which a deliberate bug does nothing.
fn theme_of(bug: Sabotage) -> Option<Theme> {
    match bug {
        Sabotage::PinReleasedEarly => Some(Theme::Pins),
        Sabotage::PeersUnasked => Some(Theme::Outputs),
        Sabotage::FrameAckedEarly => Some(Theme::Disk),
        Sabotage::WaitersUnopened => Some(Theme::Hang),
        _ => None,
    }
}

/// Runs seeds with deliberate bugs, until each is found.
fn look_for(arguments: &Arguments, name: &str) -> ExitCode {
    if !skidder_os::sabotage::COMPILED_IN {
        complain("deliberate bugs are not compiled in: build with the feature `sabotage`");
        return ExitCode::from(2);
    }
    let mut bugs: Vec<Sabotage> = Sabotage::ALL.into();
    bugs.retain(|bug| name == "all" || bug.name() == name);
    if bugs.is_empty() {
        complain(&format!("there is no deliberate bug `{name}`; `--with-bug list` names them"));
        return ExitCode::from(2);
    }
    let mut all_found = true;
    for bug in bugs {
        let seeds: Vec<Seed> = range(arguments)
            .into_iter()
            .map(|(seed, theme)| (seed, theme.or(theme_of(bug))))
            .collect();
        let shown = run_all(arguments, &seeds, Some(bug), 1);
        if let Some((seed, failure)) = shown.failures.first() {
            say(&format!("{}: found after {} seeds", bug.name(), shown.seeds));
            report(*seed, failure, Some(bug));
        } else {
            all_found = false;
            complain(&format!("{}: NOT found in {} seeds", bug.name(), shown.seeds));
        }
    }
    if all_found { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs seeds on several threads, each seed on one, until there were `failures_max` failures.
fn run_all(
    arguments: &Arguments,
    seeds: &[Seed],
    bug: Option<Sabotage>,
    failures_max: usize,
) -> Shown {
    let next = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    let shown = Mutex::new(Shown::default());
    let work = || {
        begin(bug);
        while !stop.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed) as usize;
            let Some(&seed) = seeds.get(at) else { return };
            let result = run_one(arguments, seed);
            let mut shown = shown.lock().expect("no thread panics while it holds this");
            shown.seeds += 1;
            match result {
                Ok((steps, lines)) => {
                    shown.steps += steps;
                    shown.lines += lines;
                }
                Err(failure) => {
                    shown.failures.push((seed, failure));
                    if shown.failures.len() >= failures_max {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..arguments.jobs {
            scope.spawn(work);
        }
    });
    let mut shown = shown.into_inner().expect("no thread panics while it holds this");
    shown.failures.sort_by_key(|(seed, _)| *seed);
    shown
}

/// Runs one seed; a panic of the product is a failure as well.
fn run_one(arguments: &Arguments, (seed, theme): Seed) -> Result<(u64, u64), Failure> {
    let options = Options { story: arguments.story, operations: arguments.operations, theme };
    let once = || {
        std::panic::catch_unwind(|| run(seed, options)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(Failure { what: format!("panic: {}", text.unwrap_or_default()), state: Vec::new() })
        })
    };
    let outcome = once()?;
    if arguments.twice {
        let again = once()?;
        if again.digest != outcome.digest {
            let what = "replay: two runs of this seed were not the same".to_owned();
            return Err(Failure { what, state: Vec::new() });
        }
    }
    Ok((outcome.steps, outcome.lines as u64))
}

#[cfg(feature = "sabotage")]
fn begin(bug: Option<Sabotage>) {
    skidder_os::sabotage::commit(bug);
}

#[cfg(not(feature = "sabotage"))]
fn begin(_bug: Option<Sabotage>) {}

/// A failed seed, and how to see it again.
fn report((seed, theme): Seed, failure: &Failure, bug: Option<Sabotage>) {
    complain(&format!("seed {seed}: {}", failure.what));
    for line in &failure.state {
        complain(&format!("    {line}"));
    }
    let bug = bug.map(|bug| format!(" --with-bug {}", bug.name())).unwrap_or_default();
    let theme = theme.map(|theme| format!(" --theme {}", theme.name())).unwrap_or_default();
    complain(&format!(
        "    replay with its story: cargo xtask simulate --from {seed} --seeds 1 --jobs 1 --story{theme}{bug}"
    ));
}

#[expect(clippy::print_stdout, reason = "a tool for the terminal")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
fn complain(text: &str) {
    eprintln!("{text}");
}
