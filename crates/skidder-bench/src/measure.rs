//! Runs a program and reads its cost from the kernel.

use anyhow::{Context, Result, ensure};
use skidder_os::{Clock, SystemClock};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// How much of a failed program's standard error is shown.
const STDERR_SHOWN_BYTES: usize = 2_000;

/// How often it is looked whether a program has ended.
const LOOK: Duration = Duration::from_millis(5);

/// What a process cost, from its start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// User and system time of all its threads.
    pub cpu: Duration,
    /// The user time in it.
    pub user: Duration,
    /// Time by the clock.
    pub wall: Duration,
    /// Most resident memory at any instant, in bytes.
    pub memory_peak_bytes: u64,
}

/// Runs `command` to its end with its standard error in `stderr`; an unsuccessful end is an error.
pub fn run(command: &mut Command, stderr: &Path) -> Result<Cost> {
    let log =
        File::create(stderr).with_context(|| format!("cannot create `{}`", stderr.display()))?;
    forget_own_memory_peak()?;
    let clock = SystemClock::new();
    let began = clock.monotonic();
    let child = command.stdin(Stdio::null()).stderr(log).spawn();
    let child = child.with_context(|| format!("cannot start {command:?}"))?;
    let mut cost =
        wait(child)?.with_context(|| format!("{command:?} failed; it said: {}", tail(stderr)))?;
    cost.wall = clock.monotonic().since(began);
    Ok(cost)
}

/// The end of what a program wrote to its standard error.
pub fn tail(stderr: &Path) -> String {
    let text = std::fs::read(stderr).unwrap_or_default();
    let tail = &text[text.len().saturating_sub(STDERR_SHOWN_BYTES)..];
    String::from_utf8_lossy(tail).into_owned()
}

/// The kernel counts the memory of the process that started a program into the program's own peak
/// (`exec_mmap` in Linux' fs/exec.c). Resetting our peak leaves a few megabytes of that, less than
/// what any measured program takes (proc(5), `clear_refs`).
fn forget_own_memory_peak() -> Result<()> {
    std::fs::write("/proc/self/clear_refs", "5").context("cannot write `/proc/self/clear_refs`")
}

/// Waits for `child`; the inner error is how it failed.
fn wait(child: Child) -> Result<Result<Cost>> {
    let (status, cost) = reap(child.id(), 0)?.context("wait4 returned without a child")?;
    if !libc::WIFEXITED(status) {
        return Ok(Err(anyhow::anyhow!("ended by signal {}", libc::WTERMSIG(status))));
    }
    if libc::WEXITSTATUS(status) != 0 {
        return Ok(Err(anyhow::anyhow!("exit status {}", libc::WEXITSTATUS(status))));
    }
    Ok(Ok(cost))
}

/// The status of a child that has ended, and what it cost; `None` if it runs and `options` say not to wait. The caller
/// has not waited for this child before.
#[expect(unsafe_code, reason = "the resource usage of one child comes from wait4 only")]
fn reap(id: u32, options: libc::c_int) -> Result<Option<(libc::c_int, Cost)>> {
    let id = libc::pid_t::try_from(id).context("a process id beyond the system's type")?;
    let mut status = 0;
    // SAFETY: `rusage` is plain old data, for which all zeros are a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are to live values of the types that the call writes. By the contract of this
        // function `id` names a child that was not waited for.
        let waited = unsafe { libc::wait4(id, &raw mut status, options, &raw mut usage) };
        if waited == 0 {
            return Ok(None);
        }
        if waited == id {
            break;
        }
        let error = std::io::Error::last_os_error();
        ensure!(error.kind() == std::io::ErrorKind::Interrupted, "cannot wait for {id}: {error}");
    }
    let cost = Cost {
        cpu: duration(usage.ru_utime) + duration(usage.ru_stime),
        user: duration(usage.ru_utime),
        wall: Duration::ZERO,
        memory_peak_bytes: usage.ru_maxrss as u64 * 1_024,
    };
    Ok(Some((status, cost)))
}

/// A program that runs until it is stopped. Dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    id: u32,
    /// Waited for, so that the id may name another process.
    reaped: bool,
}

impl Running {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Result<Self> {
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Self { id: child.id(), reaped: false })
    }

    /// The number of the process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Resident memory, in bytes.
    pub fn memory(&self) -> Result<u64> {
        memory_of(self.id)
    }

    /// Resident memory with the part that is its own, which is exact where [`Running::memory`] may be off by a
    /// hundred pages (proc(5)).
    pub fn resident(&self) -> Result<Memory> {
        let path = format!("/proc/{}/smaps_rollup", self.id);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
        memory_in(&text).with_context(|| format!("`{path}` is not as expected"))
    }

    /// User and system time of all its threads so far, to the nanosecond.
    #[expect(unsafe_code, reason = "the clock of another process has no safe interface")]
    pub fn cpu(&self) -> Result<Duration> {
        let id = libc::pid_t::try_from(self.id)?;
        let mut clock: libc::clockid_t = 0;
        // SAFETY: the pointer is to a live value of the type that the call writes.
        let failed = unsafe { libc::clock_getcpuclockid(id, &raw mut clock) };
        ensure!(failed == 0, "cannot measure the CPU of process {id}: error {failed}");
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: as above; the clock is the one that was just returned.
        let failed = unsafe { libc::clock_gettime(clock, &raw mut time) };
        ensure!(failed == 0, "process {id} has ended");
        Ok(Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
    }

    /// Sends SIGTERM, waits for so long, then kills it. Its exit code is not checked; having ended before
    /// is an error.
    pub fn end(mut self, patience: Duration) -> Result<Cost> {
        self.still_runs()?;
        let memory_peak_bytes = memory_peak_of(self.id)?;
        self.signal(libc::SIGTERM)?;
        let clock = SystemClock::new();
        while clock.monotonic().0 < patience {
            if let Some((_, cost)) = reap(self.id, libc::WNOHANG)? {
                self.reaped = true;
                return Ok(Cost { memory_peak_bytes, ..cost });
            }
            pause(LOOK);
        }
        self.kill()
    }

    /// Fails if the program has ended.
    fn still_runs(&mut self) -> Result<()> {
        if let Some((status, _)) = reap(self.id, libc::WNOHANG)? {
            self.reaped = true;
            anyhow::bail!("it ended by itself with wait status {status:#x}");
        }
        Ok(())
    }

    /// Ends it at once (SIGKILL). Having ended before is an error.
    pub fn kill(mut self) -> Result<Cost> {
        self.still_runs()?;
        let memory_peak_bytes = memory_peak_of(self.id)?;
        self.signal(libc::SIGKILL)?;
        let (_, cost) = reap(self.id, 0)?.context("wait4 returned without a child")?;
        self.reaped = true;
        Ok(Cost { memory_peak_bytes, ..cost })
    }

    #[expect(unsafe_code, reason = "std sends SIGKILL only")]
    fn signal(&self, signal: libc::c_int) -> Result<()> {
        let id = libc::pid_t::try_from(self.id)?;
        // SAFETY: no memory is touched, and the child was not waited for, so its id names no other process.
        let failed = unsafe { libc::kill(id, signal) };
        ensure!(failed == 0, "cannot signal {id}: {}", std::io::Error::last_os_error());
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped && self.signal(libc::SIGKILL).is_ok() && reap(self.id, 0).is_err() {
            note(&format!("process {} is left behind", self.id));
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
}

/// User and system time of a running process so far, from `/proc/PID/stat` (proc(5), fields 14, 15).
pub fn cpu_of(id: u32) -> Result<Duration> {
    let path = format!("/proc/{id}/stat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    let ticks = ticks_in(&text).with_context(|| format!("`{path}` is not as expected"))?;
    let per_second = rustix::param::clock_ticks_per_second();
    Ok(Duration::from_secs_f64(ticks as f64 / per_second as f64))
}

/// Resident memory of a running process, in bytes, from `/proc/PID/statm` (proc(5), field 2).
pub fn memory_of(id: u32) -> Result<u64> {
    let path = format!("/proc/{id}/statm");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    let pages = text.split_whitespace().nth(1).and_then(|field| field.parse::<u64>().ok());
    let pages = pages.with_context(|| format!("`{path}` is not as expected"))?;
    Ok(pages * rustix::param::page_size() as u64)
}

/// Most memory that a running program had resident, in bytes, from `/proc/PID/status` (proc(5), `VmHWM`). It is of the
/// program alone, where wait4 counts the memory of the process that started it as well.
pub fn memory_peak_of(id: u32) -> Result<u64> {
    let path = format!("/proc/{id}/status");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read `{path}`"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kilobytes.with_context(|| format!("`{path}` has no `VmHWM`"))? * 1_024)
}

/// Resident memory of a process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// With pages of files, which are shared with the page cache.
    pub all: u64,
    /// What is no page of a file.
    pub own: u64,
}

/// From `/proc/PID/smaps_rollup` (proc(5)).
fn memory_in(rollup: &str) -> Option<Memory> {
    let bytes = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1_024)
    };
    Some(Memory { all: bytes("Rss:")?, own: bytes("Anonymous:")? })
}

/// Sum of the fields 14 and 15; the name in field 2 may hold spaces and parentheses.
fn ticks_in(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Ends a process at once and takes leave of it.
pub fn kill(child: &mut Child) -> Result<()> {
    child.kill().context("cannot kill the process")?;
    child.wait().context("cannot wait for the killed process")?;
    Ok(())
}

/// Logs progress on standard error: standard output is for results.
#[expect(clippy::print_stderr, reason = "a tool for the terminal")]
pub fn note(text: &str) {
    eprintln!("{text}");
}

/// Lets `span` pass: a window of measurement, or a simulated delay.
pub fn pause(span: Duration) {
    let (_sender, receiver) = mpsc::channel::<()>();
    let outcome = receiver.recv_timeout(span);
    debug_assert_eq!(outcome, Err(mpsc::RecvTimeoutError::Timeout), "the sender is still alive");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_with_the_part_that_is_no_file() {
        let rollup = "5590-7ffc ---p 00000000 00:00 0    [rollup]\nRss:           10596 kB\n\
                      Pss:            5000 kB\nAnonymous:      3984 kB\nAnonHugePages:     0 kB\n";
        let expected = Memory { all: 10_596 << 10, own: 3_984 << 10 };
        assert_eq!(memory_in(rollup), Some(expected));
        assert_eq!(memory_in("Rss: 1\n"), None);
        let own = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
        assert!(memory_in(&own).is_some_and(|memory| memory.all > memory.own), "{own}");
    }

    #[test]
    fn a_busy_child_costs_cpu_and_memory() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"]);
        let cost = run(&mut command, &directory.path().join("stderr")).unwrap();
        assert!(cost.cpu > Duration::from_millis(5), "{cost:?}");
        assert!(cost.wall >= cost.cpu / 2, "{cost:?}");
        assert!(cost.memory_peak_bytes > 500_000, "{cost:?}");
    }

    #[test]
    fn a_failing_child_is_an_error_with_its_words() {
        let directory = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such thing >&2; exit 3"]);
        let error = run(&mut command, &directory.path().join("stderr")).unwrap_err();
        let text = format!("{error:#}");
        assert!(text.contains("no such thing") && text.contains("exit status 3"), "{text}");
    }

    #[test]
    fn a_running_program_is_measured_and_ends_when_it_is_told() {
        // A program that has used some CPU, and so is the right one.
        let busy = || {
            let mut command = Command::new("sh");
            command.args(["-c", "while :; do :; done"]);
            let running = Running::start(&mut command).unwrap();
            while running.cpu().unwrap() < Duration::from_millis(20) {}
            running
        };
        let cost = busy().end(Duration::from_mins(1)).unwrap();
        assert!(cost.cpu >= Duration::from_millis(15), "{cost:?}");
        assert!(busy().kill().unwrap().memory_peak_bytes > 100_000);
    }

    #[test]
    fn a_program_that_ends_by_itself_is_an_error() {
        let mut command = Command::new("true");
        let running = Running::start(&mut command).unwrap();
        while running.cpu().is_ok_and(|_| {
            std::fs::read_to_string(format!("/proc/{}/stat", running.id))
                .is_ok_and(|stat| !stat.contains(") Z "))
        }) {}
        let error = running.end(Duration::from_mins(1)).unwrap_err();
        assert!(error.to_string().contains("by itself"), "{error:#}");
    }

    #[test]
    fn the_time_in_proc_is_found_behind_any_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194304 1 0 0 0 120 30 0 0 20 0 1 0 5 1 1";
        assert_eq!(ticks_in(stat), Some(150));
        assert_eq!(ticks_in("7 (cut) S 1"), None);
        cpu_of(std::process::id()).unwrap();
        assert!(memory_of(std::process::id()).unwrap() > 500_000);
    }
}
