//! `add_process_metadata`: data about the process that an event names by its number.
//!
//! All of it is read from `proc` and `etc` under `host_path` (`add_process_metadata/process.rs`),
//! and kept for a while (`add_process_metadata/expiring.rs`).

mod capabilities;
mod container;
mod expiring;
mod process;

use crate::fields::pairs::required_paths;
use crate::go_value::{go_type, utf8_of};
use crate::kinds::Context;
use crate::pattern::compile_pattern;
use crate::plan::{Constants, Failure, Footprint, Outcome, Processor};
use container::Groups;
use expiring::Expiring;
use skidder_config::{Group, Key, Section, settings};
use skidder_event::{EventMut, Map, Path, Value, ValueRef};
use skidder_os::{Clock, Fs};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

settings! {
    /// Settings of `add_process_metadata`.
    pub(crate) static ADD_PROCESS_METADATA = Group::new("processor.add_process_metadata", "Adds what is known about the process that an event names by its \
                               number, and the container it is in.");

    MATCH_PIDS: Vec<String> = Key::<Vec<String>>::new("match_pids")
        .default(&["process.pid", "process.ppid", "process.parent.pid", "process.parent.ppid"])
        .about("fields that may hold the number; the first existing one counts");
    TARGET: String = Key::new("target")
        .default("")
        .default_words("the root")
        .about("the field below which everything goes");
    INCLUDE_FIELDS: Vec<String> = Key::new("include_fields")
        .default_words("everything")
        .about("what to add: `process`, `container`, or parts of them such as `process.name`");
    IGNORE_MISSING: bool = Key::new("ignore_missing")
        .default(true)
        .about("an event without any of the fields is not a failure");
    OVERWRITE_KEYS: bool = Key::new("overwrite_keys")
        .default(false)
        .about("existing fields are replaced; otherwise they are a failure");
    RESTRICTED_FIELDS: bool = Key::new("restricted_fields")
        .default(false)
        .about("`process.env` too, in which there may be secrets");
    HOST_PATH: PathBuf = Key::new("host_path")
        .default("/")
        .about("where the root of the machine is, if this program runs in a container");
    CGROUP_PREFIXES: Vec<String> = Key::new("cgroup_prefixes")
        .default_words("none")
        .about("a control group that begins so ends with the id of a container; in version 2 of \
                control groups the id has 64 letters or digits");
    CGROUP_REGEX: String = Key::new("cgroup_regex")
        .default_words("64 hexadecimal digits at the end")
        .about("an expression for control groups, whose only group is the id; it goes before \
                `cgroup_prefixes`");
    CGROUP_CACHE_EXPIRE_TIME: Duration = Key::new("cgroup_cache_expire_time")
        .default(EXPIRE_TIME)
        .about("how long the container of a process is cached; 0 looks it up for every event");
}

/// How long the data of a process is cached, and the default of `cgroup_cache_expire_time`.
const EXPIRE_TIME: Duration = Duration::from_secs(30);

/// Everything that can be known.
const FIELDS: [&str; 15] = [
    "process.name",
    "process.title",
    "process.executable",
    "process.args",
    "process.pid",
    "process.parent.pid",
    "process.entity_id",
    "process.start_time",
    "process.owner.name",
    "process.owner.id",
    "process.group.name",
    "process.group.id",
    "process.thread.capabilities.effective",
    "process.thread.capabilities.permitted",
    "container.id",
];

/// Only added with `restricted_fields`: it may contain secrets.
const RESTRICTED: &str = "process.env";

/// Adds `process.*` and `container.id`.
pub(crate) struct AddProcessMetadata {
    match_pids: Vec<Path>,
    /// Names of the data, and where they go.
    mappings: Vec<(&'static str, Path)>,
    ignore_missing: bool,
    overwrite_keys: bool,
    host_path: PathBuf,
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    /// Nothing for a process that is not there.
    processes: Expiring<Option<Arc<Map>>>,
    /// How containers are found, if they are wanted.
    groups: Option<Groups>,
    /// Nothing for a process that is in no container.
    containers: Expiring<Option<Arc<str>>>,
}

impl AddProcessMetadata {
    /// All settings.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let match_pids = if settings.has_key(&MATCH_PIDS) {
            required_paths(settings, &MATCH_PIDS)
        } else {
            settings.get(&MATCH_PIDS).value().iter().map(|name| Path::parse(name).ok()).collect()
        };
        let restricted = settings.get(&RESTRICTED_FIELDS).value();
        let mappings = read_mappings(settings, restricted);
        let ignore_missing = settings.get(&IGNORE_MISSING).value();
        let overwrite_keys = settings.get(&OVERWRITE_KEYS).value();
        let host_path = settings.get(&HOST_PATH).value();
        let prefixes = settings.get(&CGROUP_PREFIXES);
        let prefixes = if prefixes.is_set() { prefixes.optional() } else { None };
        let pattern = settings.get(&CGROUP_REGEX).try_map(|text| {
            let pattern = compile_pattern(&text).map_err(|error| error.to_string())?;
            if pattern.captures_len() == 2 {
                Ok(pattern)
            } else {
                Err("expected exactly one capturing group, for the id of the container".to_owned())
            }
        });
        let pattern = pattern.optional();
        let expire_time = settings.get(&CGROUP_CACHE_EXPIRE_TIME).value();
        let mappings = mappings?;
        let wanted = mappings.iter().any(|(name, _)| *name == "container.id");
        let groups = wanted.then(|| Groups::new(pattern, prefixes));
        Some(Self {
            match_pids: match_pids?,
            mappings,
            ignore_missing,
            overwrite_keys,
            host_path,
            fs: Arc::clone(&context.fs),
            clock: Arc::clone(&context.clock),
            processes: Expiring::new(EXPIRE_TIME),
            groups,
            containers: Expiring::new(expire_time),
        })
    }

    fn enrich(&self, event: &mut EventMut<'_>, pid: i64) -> Result<(), String> {
        let now = self.clock.monotonic();
        let process = self
            .processes
            .get(pid, now, || process::read(&*self.fs, &self.host_path, pid).map(Arc::new));
        let container = self.groups.as_ref().and_then(|groups| {
            self.containers.get(pid, now, || groups.container_of(&*self.fs, &self.host_path, pid))
        });
        if process.is_none() && container.is_none() {
            return Err("process not found".to_owned());
        }
        let applying =
            |error: String| format!("error applying add_process_metadata processor: {error}");
        for (name, target) in &self.mappings {
            if !self.overwrite_keys && event.as_ref().has(target) {
                return Err(applying(format!(
                    "target field '{target}' already exists and overwrite_keys is false"
                )));
            }
            let written = match (*name, &container, &process) {
                ("container.id", Some(id), _) => event.put_text(target, id.as_bytes()),
                (_, _, Some(process)) => match process.get_path(name) {
                    Some(value) => event.put(target, value),
                    None => Ok(()),
                },
                _ => Ok(()),
            };
            written.map_err(|error| applying(error.to_string()))?;
        }
        Ok(())
    }
}

/// The fields below `target`: all, or those in `include_fields`.
fn read_mappings(settings: &Section<'_>, restricted: bool) -> Option<Vec<(&'static str, Path)>> {
    let target = settings.get(&TARGET).value();
    let wanted = settings.get(&INCLUDE_FIELDS).optional().unwrap_or_default();
    let all = FIELDS.iter().copied().chain(restricted.then_some(RESTRICTED));
    let is_inside = |name: &str, outer: &str| {
        name.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let known: Vec<&'static str> = all.collect();
    let mut right = true;
    for outer in &wanted {
        if !known.iter().any(|name| is_inside(name, outer)) {
            let message = format!(
                "`{}` names `{outer}`, which is not known",
                settings.path_of(INCLUDE_FIELDS.name())
            );
            let hint = if is_inside(RESTRICTED, outer) {
                "it may hold secrets, and needs `restricted_fields: true`".to_owned()
            } else {
                format!("known are {}", known.join(", "))
            };
            settings.problem(INCLUDE_FIELDS.name(), message, hint);
            right = false;
        }
    }
    let mut mappings = Vec::new();
    for name in known {
        if !wanted.is_empty() && !wanted.iter().any(|outer| is_inside(name, outer)) {
            continue;
        }
        let text = if target.is_empty() { name.to_owned() } else { format!("{target}.{name}") };
        match Path::parse(&text) {
            Ok(path) => mappings.push((name, path)),
            Err(error) => {
                settings.problem(
                    TARGET.name(),
                    format!("`{}`: {error}", settings.path_of(TARGET.name())),
                    "",
                );
                return None;
            }
        }
    }
    right.then_some(mappings)
}

/// The number of a process.
fn pid_of(value: ValueRef<'_>) -> Result<i64, String> {
    match value {
        ValueRef::Int(number) => Ok(number),
        ValueRef::UInt(number) => Err(format!("integer out of range: {number}")),
        ValueRef::Str(_) => match utf8_of(value).map(str::parse) {
            Some(Ok(number)) => Ok(number),
            _ => Err("error converting string to integer: invalid syntax".to_owned()),
        },
        other => Err(format!("not an integer or string, but {}", go_type(other))),
    }
}

impl fmt::Debug for AddProcessMetadata {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("AddProcessMetadata")
            .field("match_pids", &self.match_pids)
            .field("mappings", &self.mappings)
            .field("host_path", &self.host_path)
            .finish_non_exhaustive()
    }
}

impl Processor for AddProcessMetadata {
    fn name(&self) -> &'static str {
        "add_process_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        for field in &self.match_pids {
            let Some(value) = event.as_ref().get(field) else { continue };
            let pid = pid_of(value).map_err(|error| {
                Failure::unnoted(format!(
                    "error applying add_process_metadata processor: cannot parse pid field '{field}': {error}"
                ))
            })?;
            self.enrich(event, pid).map_err(Failure::unnoted)?;
            return Ok(Outcome::Done);
        }
        if self.ignore_missing {
            return Ok(Outcome::Done);
        }
        Err(Failure::unnoted("none of the fields in match_pids found in the event"))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let writes: Vec<Path> = self.mappings.iter().map(|(_, target)| target.clone()).collect();
        let reads = self.match_pids.iter().chain(&writes).cloned().collect();
        Footprint { reads, writes, open: true, ..Footprint::default() }
    }

    fn describe(&self) -> String {
        let names: Vec<_> = self.match_pids.iter().map(Path::as_str).collect();
        format!("add_process_metadata by {}", names.join(", "))
    }
}

/// A list of texts.
fn list(items: impl Iterator<Item = impl Into<Value>>) -> Value {
    Value::List(items.map(Into::into).collect())
}

#[cfg(test)]
mod tests;
