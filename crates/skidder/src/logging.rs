//! Turning on our own log, and its end.

use crate::terminal::eprint;
use anyhow::{Context as _, Result};
use skidder_log::{Format, Log, LogConfig, Target};
use std::io::IsTerminal as _;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::Level;

/// What the path of the store's source contains.
const STORE: &str = "/redb-";
/// How long the end of the program waits for the log: normally, and when it leaves at once.
const END_MAX: Duration = Duration::from_secs(5);
const SOON_MAX: Duration = Duration::from_secs(1);

/// The log of the process, which is one as its threads are those of one process.
static LOG: OnceLock<Arc<Log>> = OnceLock::new();

/// Lets lines of this level and above go to stderr, for a command that ends soon. A second call changes nothing.
pub(crate) fn start(level: Level) {
    start_as(level, Format::Auto);
}

/// As [`start`], in a format.
pub(crate) fn start_as(level: Level, format: Format) {
    Log::to_stderr(level, format);
    std::panic::set_hook(Box::new(log_panic));
}

/// Turns the log on as configured. Prints its path if stderr is a terminal.
pub(crate) fn start_run(config: LogConfig) -> Result<()> {
    if let Target::Files(files) = &config.target
        && std::io::stderr().is_terminal()
    {
        let place = files.path.join(&files.name);
        eprint(&format!("skidder logs to {}-*.ndjson; with -e it logs here\n", place.display()));
    }
    let log = Log::start(config).context("cannot start the thread of the log")?;
    // Only a second run in one process would find it set, and there is none.
    drop(LOG.set(Arc::new(log)));
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Logs the error that ends the program; stderr gets it too.
pub(crate) fn failed(error: &anyhow::Error) {
    if LOG.get().is_some_and(|log| !log.is_stderr()) {
        tracing::error!(error = format!("{error:#}"), "skidder ends with an error");
    }
}

/// Whether the log does not go to stderr.
pub(crate) fn is_elsewhere() -> bool {
    LOG.get().is_some_and(|log| !log.is_stderr())
}

/// Whether the log goes to stderr, and that to another program: other text there would not be a line of the log.
pub(crate) fn is_on_pipe() -> bool {
    LOG.get().is_some_and(|log| log.is_stderr()) && !std::io::stderr().is_terminal()
}

/// Writes the rest of the log.
pub(crate) fn end() {
    if let Some(log) = LOG.get() {
        log.end(END_MAX);
    }
}

/// Writes all lines so far, for an end that waits for nothing else.
pub(crate) fn flush() {
    if let Some(log) = LOG.get() {
        log.flush(SOON_MAX);
    }
}

/// The log of a run, for its counters.
pub(crate) fn log() -> Option<Arc<Log>> {
    LOG.get().cloned()
}

/// A panic is a bug and goes to the log like everything else, with place and backtrace.
fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let what = panic.payload_as_str().unwrap_or("no message");
    if place.contains(STORE) {
        // The store panics if its file is damaged; the registry catches and reports it.
        tracing::debug!(place, what, "the store of the registry gave up");
        return;
    }
    let backtrace = std::backtrace::Backtrace::force_capture();
    tracing::error!(place, what, %backtrace, "a bug in skidder: a thread has panicked");
    // The process may end right after this.
    flush();
}
