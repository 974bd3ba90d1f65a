//! Child processes, signals and the terminal.

use anyhow::{Context, Result, bail};
use skidder_os::{Clock, SystemClock};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
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

/// Lines of a failed command that its error repeats.
const REPEATED_MAX: usize = 60;

/// Characters of such a line, half of its beginning and half of its end: the one of a linker has thousands.
const REPEATED_CHARS_MAX: usize = 300;

/// How long to wait for the last lines of a command that has ended: a server that it left behind may hold the
/// pipe open.
const LAST_LINES: Duration = Duration::from_secs(10);

/// As [`run`], for a command with thousands of lines: its error repeats those that say what failed. What the
/// command prints arrives through a pipe, so it has no colours.
pub(crate) fn run_and_find(command: &mut Command) -> Result<()> {
    run_into(command, std::io::stdout(), std::io::stderr())
}

/// As [`run_and_find`] beside another command: what it prints comes back, standard error in its place.
pub(crate) fn run_and_keep(command: &mut Command) -> (String, Result<()>) {
    let kept = Kept::default();
    let outcome = run_into(command, kept.clone(), kept.clone());
    let bytes = std::mem::take(&mut *kept.0.lock().unwrap_or_else(PoisonError::into_inner));
    (String::from_utf8_lossy(&bytes).into_owned(), outcome)
}

/// Both outputs of a command, by lines.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn run_into(
    command: &mut Command,
    to_out: impl Write + Send + 'static,
    to_err: impl Write + Send + 'static,
) -> Result<()> {
    let shown = shown(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start `{shown}`"))?;
    let found = Arc::new(Mutex::new(Vec::new()));
    let (at_end, ended) = mpsc::channel();
    if let Some(from) = child.stdout.take() {
        let (found, at_end) = (Arc::clone(&found), at_end.clone());
        std::thread::spawn(move || pass_on(from, to_out, &found, &at_end));
    }
    if let Some(from) = child.stderr.take() {
        let (found, at_end) = (Arc::clone(&found), at_end.clone());
        std::thread::spawn(move || pass_on(from, to_err, &found, &at_end));
    }
    drop(at_end);
    let status = wait(child, &mut || {})?;
    while ended.recv_timeout(LAST_LINES).is_ok() {}
    if stopping() {
        bail!("stopped");
    }
    if status.success() {
        return Ok(());
    }
    let mut found = std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner));
    let more = found.len().saturating_sub(REPEATED_MAX);
    found.truncate(REPEATED_MAX);
    if more > 0 {
        found.push(format!("and {more} lines more"));
    }
    bail!("`{shown}` failed: {status}\n{}", found.join("\n"));
}

/// Passes lines on, and adds those that say what failed to `found`.
fn pass_on(
    from: impl Read,
    mut to: impl Write,
    found: &Mutex<Vec<String>>,
    at_end: &mpsc::Sender<()>,
) {
    let mut line = Vec::new();
    let mut from = BufReader::new(from);
    let mut is_next = false;
    while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        // A terminal that went away stops nothing.
        let _gone = to.write_all(&line);
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        if is_next || says_failure(text) {
            found.lock().unwrap_or_else(PoisonError::into_inner).push(shortened(text));
        }
        is_next = text.contains("panicked at ");
        line.clear();
    }
    let _nobody_waits = at_end.send(());
}

fn says_failure(line: &str) -> bool {
    let passed = line.starts_with("test ") && line.ends_with(" ok");
    let marks = ["FAILED", "panicked at ", "No space left", "collect2: ", "/ld: ", "signal: "];
    !passed && (line.starts_with("error") || marks.iter().any(|mark| line.contains(mark)))
}

fn shortened(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= REPEATED_CHARS_MAX {
        return line.to_owned();
    }
    let half = REPEATED_CHARS_MAX / 2;
    let part = |chars: &[char]| chars.iter().collect::<String>();
    format!("{} … {}", part(&chars[..half]), part(&chars[chars.len() - half..]))
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

/// A command that runs in the background at the lowest priority. Its output is not shown: the step that needs the result runs
/// the same command again, which waits for this one or shows why it fails.
pub(crate) struct Beside(Child);

impl Beside {
    /// Starts it.
    pub(crate) fn start(command: &Command) -> Result<Self> {
        let mut nice = Command::new("nice");
        nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => nice.env(name, value),
                None => nice.env_remove(name),
            };
        }
        if let Some(place) = command.get_current_dir() {
            nice.current_dir(place);
        }
        let nice = nice.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        nice.spawn().map(Self).context("cannot start `nice`")
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let ended = if stopping() { self.0.kill() } else { Ok(()) };
        if let Err(error) = ended.and_then(|()| self.0.wait().map(|_| ())) {
            eprint(&format!("warning: cannot wait for a command beside others: {error}"));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_long_command_repeats_what_failed() {
        let script = "echo 'test a ... ok'; echo 'test b_FAILED ... ok'; echo 'test c ... FAILED'; \
            echo 'thread x panicked at y.rs:1:'; echo 'left: 1'; echo other; \
            echo 'error: linking' >&2; printf 'collect2: %0400d No space left\\n' 0 >&2; exit 101";
        let run = |script: &str| {
            run_into(Command::new("sh").arg("-c").arg(script), std::io::sink(), std::io::sink())
        };
        let error = run(script).unwrap_err().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert!(lines[0].ends_with("failed: exit status: 101"), "{error}");
        // Of two pipes, so that only the order of each is certain.
        let of_out: Vec<&str> =
            lines[1..].iter().copied().filter(|line| !line.starts_with(['c', 'e'])).collect();
        assert_eq!(of_out, ["test c ... FAILED", "thread x panicked at y.rs:1:", "left: 1"]);
        let of_err: Vec<&str> =
            lines[1..].iter().copied().filter(|line| line.starts_with(['c', 'e'])).collect();
        assert_eq!(of_err[0], "error: linking");
        assert!(of_err[1].starts_with("collect2: 000") && of_err[1].ends_with("0 No space left"));
        assert_eq!((lines.len(), of_err[1].chars().count()), (6, REPEATED_CHARS_MAX + 3));
        run("echo FAILED").unwrap();
    }
}
