//! Finds out about the machine: `uname` and the files under `/etc`, `/proc` and `/sys`.
//!
//! The fields and their values are those of Filebeat's go-sysinfo. What cannot be found is left out.

use super::network::{ip_addresses, mac_addresses};
use super::os_release::os_fields;
use jiff::tz::TimeZone;
use skidder_event::{Map, Value};
use skidder_os::{Fs, read_to_end};
use std::path::Path;

/// Largest file that is read; these files have a few KiB, `fib_trie` of a router may have many.
const FILE_BYTES_MAX: usize = 4 << 20;

/// The results of `uname` and the settings of the machine. A trait, so that a simulated machine can stand in.
pub trait Machine: Send + Sync {
    /// Name of the machine (`nodename`).
    fn hostname(&self) -> String;
    /// Version of the kernel (`release`).
    fn kernel(&self) -> String;
    /// Architecture (`machine`).
    fn architecture(&self) -> String;

    /// The configured time zone.
    fn time_zone(&self) -> TimeZone {
        TimeZone::system()
    }
}

/// The machine this program runs on.
#[derive(Clone, Copy, Debug)]
pub struct ThisMachine;

impl Machine for ThisMachine {
    fn hostname(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn kernel(&self) -> String {
        rustix::system::uname().release().to_string_lossy().into_owned()
    }

    fn architecture(&self) -> String {
        rustix::system::uname().machine().to_string_lossy().into_owned()
    }
}

/// Everything below `host`, addresses only if `netinfo`.
pub(super) fn host_fields(machine: &dyn Machine, fs: &dyn Fs, netinfo: bool) -> Map {
    let mut host = Map::new();
    let hostname = machine.hostname();
    // Filebeat gives the name in lower case (ECS), the hostname as it is.
    host.insert("name", hostname.to_lowercase());
    host.insert("hostname", hostname);
    host.insert("architecture", machine.architecture());
    if let Some(truth) = is_container(fs) {
        host.insert("containerized", truth);
    }
    let ids = ["/etc/machine-id", "/var/lib/dbus/machine-id", "/var/db/dbus/machine-id"];
    if let Some(id) = ids.iter().find_map(|file| read_text(fs, file)) {
        host.insert("id", id.trim());
    }
    let mut os = os_fields(fs);
    os.insert("kernel", machine.kernel());
    host.insert("os", os);
    if netinfo {
        let list = |items: Vec<String>| Value::List(items.into_iter().map(Value::from).collect());
        let (ip, mac) = (ip_addresses(fs), mac_addresses(fs));
        if !ip.is_empty() {
            host.insert("ip", list(ip));
        }
        if !mac.is_empty() {
            host.insert("mac", list(mac));
        }
    }
    host
}

/// Whether process 1 is a container's: on the machine itself it is in the root control group or in
/// systemd's `init.scope`. `None` if that is unknown.
fn is_container(fs: &dyn Fs) -> Option<bool> {
    let groups = read_text(fs, "/proc/1/cgroup")?;
    let of_systemd = groups.lines().any(|line| line.ends_with("init.scope"));
    Some(!of_systemd)
}

/// The text of a small file; `None` if it is not there, empty or cannot be read.
pub(in crate::lookup) fn read_text(fs: &dyn Fs, file: &str) -> Option<String> {
    let file = fs.open(Path::new(file)).ok()?;
    let bytes = read_to_end(&*file, FILE_BYTES_MAX).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then_some(text)
}
