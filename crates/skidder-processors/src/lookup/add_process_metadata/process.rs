//! One process, read from `/proc/PID` (<https://man7.org/linux/man-pages/man5/proc.5.html>). What
//! cannot be read is left out.

use super::capabilities::names_of;
use super::list;
use crate::lookup::add_host_metadata::read_text;
use data_encoding::BASE64_NOPAD;
use sha2::{Digest, Sha256};
use skidder_event::{Map, Value};
use skidder_os::Fs;
use std::path::Path;

/// Length of a clock tick in `/proc/PID/stat`: the kernel reports 100 per second to user space.
const TICK_NANOSECONDS: i64 = 10_000_000;

const SECOND_NANOSECONDS: i64 = 1_000_000_000;

/// Everything about a process, under `process`; `None` if there is none.
pub(super) fn read(fs: &dyn Fs, host: &Path, pid: i64) -> Option<Map> {
    let folder = host.join("proc").join(pid.to_string());
    let file = |name: &str| read_text(fs, folder.join(name).to_str()?);
    let stat = Stat::parse(&file("stat")?)?;
    let mut process = Map::new();
    process.insert("pid", pid);
    process.insert("name", stat.name.as_str());
    process.insert_path("parent.pid", stat.parent);
    if let Some(arguments) = file("cmdline") {
        let arguments: Vec<&str> = arguments.trim_end_matches('\0').split('\0').collect();
        process.insert("title", arguments.join(" "));
        process.insert("args", list(arguments.into_iter()));
    }
    if let Ok(path) = fs.canonicalize(&folder.join("exe"))
        && let Some(path) = path.to_str()
        && path != folder.join("exe").to_str().unwrap_or_default()
    {
        process.insert("executable", path);
    }
    if let Some(variables) = file("environ") {
        let pairs = variables.split('\0').filter_map(|pair| pair.split_once('='));
        let mut environment = Map::new();
        pairs.for_each(|(name, value)| environment.insert(name, value));
        process.insert("env", environment);
    }
    if let Some(started) =
        boot_time(fs, host).map(|boot| boot + stat.started_ticks * TICK_NANOSECONDS)
    {
        process.insert("start_time", Value::Time(started));
        if let Some(machine) = read_text(fs, host.join("etc/machine-id").to_str()?) {
            process.insert("entity_id", entity_id(machine.trim(), pid, started));
        }
    }
    if let Some(status) = file("status") {
        add_status(fs, host, &status, &mut process);
    }
    let mut all = Map::new();
    all.insert("process", process);
    Some(all)
}

/// The fields used of `/proc/PID/stat`.
struct Stat {
    name: String,
    parent: i64,
    /// Since the machine started.
    started_ticks: i64,
}

impl Stat {
    /// `17 (name) S 1 …`; there may be anything in the name.
    fn parse(text: &str) -> Option<Self> {
        let (before, after) = text.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let mut rest = after.split_ascii_whitespace();
        let parent = rest.nth(1)?.parse().ok()?;
        let started_ticks = rest.nth(17)?.parse().ok()?;
        Some(Self { name: name.to_owned(), parent, started_ticks })
    }
}

/// When the machine started, in nanoseconds since 1970.
fn boot_time(fs: &dyn Fs, host: &Path) -> Option<i64> {
    let text = read_text(fs, host.join("proc/stat").to_str()?)?;
    let seconds = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    seconds.trim().parse::<i64>().ok()?.checked_mul(SECOND_NANOSECONDS)
}

/// Owner, group and capabilities.
fn add_status(fs: &dyn Fs, host: &Path, status: &str, process: &mut Map) {
    for line in status.lines() {
        let Some((name, values)) = line.split_once(':') else { continue };
        let Some(first) = values.split_ascii_whitespace().next() else { continue };
        let (field, book) = match name {
            "Uid" => ("owner", "etc/passwd"),
            "Gid" => ("group", "etc/group"),
            "CapEff" | "CapPrm" => {
                let names = names_of(first);
                let field = if name == "CapEff" { "effective" } else { "permitted" };
                if !names.is_empty() {
                    let path = format!("thread.capabilities.{field}");
                    process.insert_path(&path, list(names.into_iter()));
                }
                continue;
            }
            _ => continue,
        };
        process.insert_path(&format!("{field}.id"), first);
        if let Some(name) = name_in(fs, &host.join(book), first) {
            process.insert_path(&format!("{field}.name"), name);
        }
    }
}

/// The name of a user or group by its number, in a file of lines `name:password:number:…`.
fn name_in(fs: &dyn Fs, book: &Path, number: &str) -> Option<String> {
    let text = read_text(fs, book.to_str()?)?;
    text.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next()?;
        (parts.nth(1)? == number).then(|| name.to_owned())
    })
}

/// What no other process of any machine has: a hash of the machine's id, the number, and the part
/// of the start that is below a second, as Filebeat makes it.
fn entity_id(machine: &str, pid: i64, started: i64) -> String {
    let mut hash = Sha256::new();
    hash.update(machine.as_bytes());
    hash.update(pid.to_le_bytes());
    hash.update(started.rem_euclid(SECOND_NANOSECONDS).to_le_bytes());
    BASE64_NOPAD.encode(&hash.finalize()[..12])
}
