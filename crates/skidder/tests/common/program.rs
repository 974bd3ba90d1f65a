//! The built program, run from outside.

use rustix::process::{Pid, Signal, kill_process};
use skidder_testkit::{try_wait_for, wait_for};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A condition that does not hold after this time never will.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// What the program writes to one of its streams.
type Captured = Arc<Mutex<String>>;

/// A running program. It is killed when the test ends before it does.
pub(crate) struct Program {
    child: Child,
    out: Captured,
    log: Captured,
    readers: Vec<JoinHandle<()>>,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) log: String,
}

/// The counts that it prints at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    pub(crate) read: usize,
    pub(crate) delivered: usize,
    pub(crate) dropped: usize,
    pub(crate) dead_lettered: usize,
    pub(crate) in_flight: usize,
    /// Found in the disk queue.
    pub(crate) recovered: usize,
    /// In the disk queue at the end.
    pub(crate) stored: usize,
}

/// The program with these arguments, not yet started: the one of this build, or that of `SKIDDER_TEST_PROGRAM`.
pub(crate) fn command<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let given = std::env::var_os("SKIDDER_TEST_PROGRAM");
    let mut command = Command::new(given.unwrap_or_else(|| env!("CARGO_BIN_EXE_skidder").into()));
    command.args(arguments);
    command
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_into(command, Stdio::piped())
    }

    /// The same with another standard output, of which nothing is known then.
    pub(crate) fn start_into(command: &mut Command, stdout: Stdio) -> Self {
        Self::start_with(command, Stdio::null(), stdout)
    }

    /// The same with another standard input, too.
    pub(crate) fn start_with(command: &mut Command, stdin: Stdio, stdout: Stdio) -> Self {
        command.stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, log) = (Captured::default(), Captured::default());
        let mut readers = vec![capture(child.stderr.take().unwrap(), Arc::clone(&log))];
        readers.extend(child.stdout.take().map(|stdout| capture(stdout, Arc::clone(&out))));
        Self { child, out, log, readers }
    }

    /// Runs it to its end.
    pub(crate) fn run(command: &mut Command) -> Ended {
        Self::start(command).end()
    }

    /// Waits until so many lines are at the standard output.
    pub(crate) fn await_out(&mut self, lines: usize) {
        let out = Arc::clone(&self.out);
        self.await_that(&format!("{lines} lines at its output"), || {
            out.lock().unwrap().lines().count() >= lines
        });
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line of the log that contains a text, and gives it.
    pub(crate) fn await_log(&self, text: &str) -> String {
        self.await_log_while(text, || {})
    }

    /// Does something again and again until the log has a line that contains a text, and gives the line.
    pub(crate) fn await_log_while(&self, text: &str, mut work: impl FnMut()) -> String {
        let find = || {
            work();
            let log = self.log();
            log.lines().find(|line| line.contains(text)).map(str::to_owned)
        };
        let found = try_wait_for(PATIENCE, find);
        let log = self.log();
        found.unwrap_or_else(|| panic!("the log does not say `{text}`:\n{log}"))
    }

    /// Waits until so many lines of the log contain all of the texts.
    pub(crate) fn await_log_times(&mut self, texts: &[String], times: usize) {
        let log = Arc::clone(&self.log);
        self.await_that(&format!("the log says {texts:?}, {times} times"), || {
            let log = log.lock().unwrap();
            let says = |line: &&str| texts.iter().all(|text| line.contains(text));
            log.lines().filter(says).count() >= times
        });
    }

    /// Waits until a condition from outside holds, while the program must be alive.
    pub(crate) fn await_that(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        let met = try_wait_for(PATIENCE, || {
            if let Some(status) = self.child.try_wait().unwrap() {
                let met = condition();
                let log = self.log();
                assert!(met, "it ended ({status}) before {what}:\n{log}");
            }
            condition().then_some(())
        });
        let log = self.log();
        assert!(met.is_some(), "waited in vain until {what}:\n{log}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) fn terminate(self) -> Ended {
        self.signal(Signal::TERM);
        self.end()
    }

    /// Asks it to stop.
    pub(crate) fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it as a power failure would.
    pub(crate) fn kill(self) -> Ended {
        self.signal(Signal::KILL);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let Some(status) = try_wait_for(PATIENCE, || self.child.try_wait().unwrap()) else {
            let log = self.log();
            panic!("the program does not end:\n{log}");
        };
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        let ended = Ended {
            status,
            out: std::mem::take(&mut self.out.lock().unwrap()),
            log: std::mem::take(&mut self.log.lock().unwrap()),
        };
        assert!(!ended.log.contains("panicked"), "{}", ended.log);
        ended
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.child.try_wait().unwrap().is_none() {
            // Only when a test has failed: what remains must not outlive it.
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
        if std::thread::panicking() {
            super::print(&format!("the log of the program:\n{}", self.log()));
        }
    }
}

impl Ended {
    /// The exit code; a signal has none.
    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Whether `kill -9` ended it.
    pub(crate) fn was_killed(&self) -> bool {
        self.status.signal() == Some(Signal::KILL.as_raw())
    }

    /// Asserts that it reports success.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        self.ended_with(0)
    }

    /// Asserts that with `--once` files were not read to their end.
    #[track_caller]
    pub(crate) fn left_unread(self) -> Self {
        self.ended_with(4)
    }

    /// Asserts that with `--once` events were refused.
    #[track_caller]
    pub(crate) fn was_refused(self) -> Self {
        self.ended_with(5)
    }

    /// Asserts that with `--once` no file was found.
    #[track_caller]
    pub(crate) fn found_nothing(self) -> Self {
        self.ended_with(7)
    }

    #[track_caller]
    fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "{}\n{}", self.out, self.log);
        self
    }

    /// The ledger at the end of its output, which must add up.
    pub(crate) fn ledger(&self) -> Ledger {
        self.ledger_behind("")
    }

    /// The ledger of one of several outputs.
    pub(crate) fn ledger_of(&self, output: &str) -> Ledger {
        self.ledger_behind(&format!("output `{output}` ("))
    }

    /// The first ledger behind a text.
    fn ledger_behind(&self, head: &str) -> Ledger {
        let text = format!("{}\n{}", self.out, self.log);
        let at = text.find(head).unwrap_or_else(|| panic!("no `{head}` in:\n{text}"));
        let text = &text[at..];
        let find = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?.trim_start();
            line.split(' ').next().unwrap().replace(',', "").parse::<usize>().ok()
        };
        let count = |name| find(name).unwrap_or_else(|| panic!("no `{name}` in:\n{text}"));
        // These are shown only if there are any.
        let some = |name| find(name).unwrap_or(0);
        let ledger = Ledger {
            read: count("read "),
            delivered: count("= delivered"),
            dropped: count("+ dropped"),
            dead_lettered: count("+ dead-lettered"),
            in_flight: count("+ in flight"),
            recovered: some("+ recovered"),
            stored: some("+ in the disk queue"),
        };
        let settled = ledger.delivered + ledger.dropped + ledger.dead_lettered;
        let kept = ledger.stored + ledger.in_flight;
        assert_eq!(ledger.read + ledger.recovered, settled + kept, "{ledger:?}");
        ledger
    }
}

fn capture(stream: impl Read + Send + 'static, into: Captured) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).unwrap() > 0 {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
            line.clear();
        }
    })
}

/// Waits for something that no program of ours does.
pub(crate) fn patiently<T>(what: &str, condition: impl FnMut() -> Option<T>) -> T {
    wait_for(what, PATIENCE, condition)
}
