//! Child processes, signals and the terminal.

use anyhow::{Context, Result, bail};
use skidder_os::{Clock, SystemClock};
use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

/// How often to check a child.
const POLL: Duration = Duration::from_millis(50);

/// Set by SIGINT and SIGTERM. The signal handler needs an address that lives as long as the process.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From here on Ctrl-C and SIGTERM let the verb clean up: it sees [`stopping`].
pub(crate) fn watch_signals() -> Result<()> {
    let flag = STOP.get_or_init(Arc::default);
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(flag))
            .context("cannot register a signal handler")?;
    }
    Ok(())
}

/// Whether the user asked to stop.
pub(crate) fn stopping() -> bool {
    STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Runs a command with the terminal's output; an unsuccessful end is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let child = command.stdin(Stdio::null()).spawn();
    let child = child.with_context(|| format!("cannot start `{shown}`"))?;
    let status = wait(child, &mut || {})?;
    if stopping() {
        bail!("stopped");
    }
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// Standard output of a command; an unsuccessful end is an error.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let shown = shown(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    Ok(output.stdout)
}

/// Waits for a child and calls `meanwhile` about twenty times a second; kills it on a signal.
pub(crate) fn wait(mut child: Child, meanwhile: &mut dyn FnMut()) -> Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a child")? {
            return Ok(status);
        }
        if stopping() {
            child.kill().context("cannot stop a child")?;
            return child.wait().context("cannot wait for a child");
        }
        meanwhile();
        pause(POLL);
    }
}

/// Lets `span` pass.
pub(crate) fn pause(span: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let outcome = receiver.recv_timeout(span);
    debug_assert_eq!(outcome, Err(mpsc::RecvTimeoutError::Timeout), "the sender is still alive");
}

/// Runs `step` and prints how many minutes it took, also when it failed.
pub(crate) fn timed(name: &str, step: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let clock = SystemClock::new();
    print(&format!("== {name}"));
    let outcome = step();
    let took = clock.monotonic().0;
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    print(&format!("== {name}: {verdict} in {}", minutes(took)));
    outcome.with_context(|| name.to_owned()).map(|()| took)
}

pub(crate) fn minutes(span: Duration) -> String {
    format!("{:.1} min", span.as_secs_f64() / 60.0)
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

/// A line on standard output. A terminal that went away stops nothing.
pub(crate) fn print(text: &str) {
    if writeln!(std::io::stdout(), "{text}").is_err() {
        eprint(text);
    }
}

/// A line on standard error.
#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
pub(crate) fn eprint(text: &str) {
    eprintln!("{text}");
}
