//! The kernel's numbers of this process and its machine.
//!
//! `/proc/self/stat` as in proc(5). What cannot be read is `None` and left out of every output.

use rustix::process::{Resource, getrlimit};
use skidder_os::{Fs, read_to_end};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// One line of about 300 bytes; a process name is 16 bytes at most.
const STAT_BYTES_MAX: usize = 4096;
/// Load averages are fixed-point numbers with 16 bits after the point, see sysinfo(2).
const LOAD_SCALE: f64 = 65536.0;

/// The resources of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    /// Processor time in user mode; in steps of a clock tick (10 ms).
    pub cpu_user: Option<Duration>,
    /// Processor time in the kernel; in steps of a clock tick.
    pub cpu_system: Option<Duration>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Address space in bytes.
    pub virtual_bytes: Option<u64>,
    /// Open descriptors.
    pub descriptors: Option<u64>,
    /// How many are allowed; `None` is no limit.
    pub descriptors_soft: Option<u64>,
    /// How far the soft limit may be raised; `None` is no limit.
    pub descriptors_hard: Option<u64>,
}

/// The load of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct System {
    /// Processors that this process may use.
    pub cores: u64,
    /// Mean number of runnable tasks over 1, 5 and 15 minutes.
    pub load: [f64; 3],
}

impl Process {
    /// Reads them from the kernel.
    pub fn look(fs: &dyn Fs) -> Self {
        let limits = getrlimit(Resource::Nofile);
        let mut process = read_stat(fs).and_then(|line| parse_stat(&line)).unwrap_or_default();
        process.descriptors = count_descriptors(fs);
        process.descriptors_soft = limits.current;
        process.descriptors_hard = limits.maximum;
        process
    }

    /// Resident memory in bytes, and nothing else: descriptors are not counted for it.
    pub fn resident(fs: &dyn Fs) -> Option<u64> {
        read_stat(fs).and_then(|line| parse_stat(&line))?.resident_bytes
    }

    /// Processor time in both modes.
    pub fn cpu_total(&self) -> Option<Duration> {
        Some(self.cpu_user? + self.cpu_system?)
    }
}

impl System {
    /// Reads them from the kernel.
    pub(crate) fn look(cores: u64) -> Self {
        let load = rustix::system::sysinfo().loads.map(|load| load as f64 / LOAD_SCALE);
        Self { cores, load }
    }
}

/// Processors that this process may use. Read once: it costs several files.
pub(crate) fn cores() -> u64 {
    static CORES: OnceLock<u64> = OnceLock::new();
    *CORES
        .get_or_init(|| std::thread::available_parallelism().map_or(1, |count| count.get() as u64))
}

fn read_stat(fs: &dyn Fs) -> Option<String> {
    let file = fs.open(Path::new("/proc/self/stat")).ok()?;
    let bytes = read_to_end(&*file, STAT_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The needed fields of `/proc/self/stat`. The second one is the name in parentheses and may
/// itself hold spaces and parentheses, so counting begins behind the last of them.
fn parse_stat(line: &str) -> Option<Process> {
    let (_, rest) = line.rsplit_once(')')?;
    // proc(5) counts from 1; `rest` begins with field 3.
    let field = |number: usize| rest.split_ascii_whitespace().nth(number - 3)?.parse::<u64>().ok();
    let time = |ticks: u64| {
        Duration::from_millis(ticks.saturating_mul(1000) / rustix::param::clock_ticks_per_second())
    };
    Some(Process {
        cpu_user: field(14).map(time),
        cpu_system: field(15).map(time),
        virtual_bytes: field(23),
        resident_bytes: field(24).map(|pages| pages * rustix::param::page_size() as u64),
        ..Process::default()
    })
}

/// Since Linux 6.2 the size of `/proc/self/fd` is the number of descriptors; before, it is 0 and they
/// are counted (without the one that the listing itself needs).
fn count_descriptors(fs: &dyn Fs) -> Option<u64> {
    let directory = Path::new("/proc/self/fd");
    let size = fs.metadata(directory).ok()?.size;
    if size > 0 {
        return Some(size);
    }
    let mut count: u64 = 0;
    fs.read_dir(directory, &mut |_| count += 1).ok()?;
    Some(count.saturating_sub(1))
}

/// The name of the user with this number, from `/etc/passwd` (passwd(5)). Users that come from a
/// directory service have none here.
pub(crate) fn user_name(fs: &dyn Fs, uid: u32) -> Option<String> {
    /// Far above what local users need.
    const PASSWD_BYTES_MAX: usize = 1 << 20;
    let file = fs.open(Path::new("/etc/passwd")).ok()?;
    let bytes = read_to_end(&*file, PASSWD_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_os::RealFs;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let line = "7 (a b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 3 0 500 1048576 10 1";
        let process = parse_stat(line).unwrap();
        assert_eq!(process.cpu_user, Some(Duration::from_millis(2500)));
        assert_eq!(process.cpu_system, Some(Duration::from_millis(500)));
        assert_eq!(process.virtual_bytes, Some(1_048_576));
        assert_eq!(process.resident_bytes, Some(10 * rustix::param::page_size() as u64));
    }

    #[test]
    fn a_line_that_is_cut_short_gives_what_it_has() {
        let process = parse_stat("7 (a) S 1 7 7 0 -1 4194560 100 0 0 0 250").unwrap();
        assert_eq!(process.cpu_user, Some(Duration::from_millis(2500)));
        assert_eq!((process.cpu_system, process.cpu_total()), (None, None));
        assert!(parse_stat("").is_none());
    }

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let process = Process::look(&RealFs);
        assert!(process.resident_bytes.unwrap() > 100_000);
        assert!(process.descriptors.unwrap() >= 3);
        assert!(process.descriptors < process.descriptors_soft.or(Some(u64::MAX)));
        assert!(System::look(cores()).cores >= 1);
    }

    #[test]
    fn root_has_a_name_and_a_number_nobody_has_does_not() {
        assert_eq!(user_name(&RealFs, 0).as_deref(), Some("root"));
        assert_eq!(user_name(&RealFs, 4_294_000_000), None);
    }
}
