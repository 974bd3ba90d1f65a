//! `add_docker_metadata`: the container that a line comes from, as `container.*`.
//!
//! A watcher lists the running containers and follows their start and stop. The id of a container is a part
//! of the path of its log, so that usually everything is a constant of the source. Without Docker nothing is added.

mod cgroup;
pub mod containers;
mod watch;

use crate::background::Background;
use crate::known::{Field, Look, merge_into_event, merge_into_source};
use crate::store::Store;
use crate::tls;
use cgroup::Cgroups;
use skidder_config::{Group, Key, Section, mask_address, settings};
use skidder_event::{EventMut, Map, Path};
use skidder_net::HttpClient;
use skidder_os::{Clock, Monotonic};
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use watch::Watch;

settings! {
    /// Settings of `add_docker_metadata`.
    pub(crate) static ADD_DOCKER_METADATA = Group::new("processor.add_docker_metadata", "Adds id, name, image and labels of the container that an event comes \
                               from, as Docker tells them.").include(&[&tls::TLS]);

    HOST: String = Key::new("host")
        .default("unix:///var/run/docker.sock")
        .about("where Docker listens: `unix://`, `tcp://`, `http://` or `https://`");
    MATCH_SOURCE: bool = Key::new("match_source")
        .default(true)
        .about("whether the id of the container is looked for in `log.file.path`");
    MATCH_SOURCE_INDEX: i64 = Key::new("match_source_index")
        .default(4)
        .about("which part of the path it is, from 0; negative ones count from the end");
    MATCH_SHORT_ID: bool = Key::new("match_short_id")
        .default(false)
        .about("whether containers are known by the first 12 characters of their id too");
    MATCH_PIDS: Vec<String> = Key::<Vec<String>>::new("match_pids")
        .default(&["process.pid", "process.parent.pid"])
        .about("fields with the number of a process, whose control groups name the container; for \
                events whose path does not");
    MATCH_FIELDS: Vec<String> = Key::<Vec<String>>::new("match_fields")
        .default(&[])
        .default_words("none")
        .about("fields with the id of the container, for events that neither of the others knows");
    HOSTFS: PathBuf = Key::new("hostfs")
        .default("/")
        .about("where the file system of the host is mounted");
    DEDOT: bool = Key::new("labels.dedot")
        .default(true)
        .about("whether dots in the names of labels become `_`; otherwise they make objects");
    CLEANUP_TIMEOUT: Duration = Key::new("cleanup_timeout")
        .default(Duration::from_mins(1))
        .about("how long a container that ended is known after its events were last seen");
    WAIT_FOR_METADATA: bool = Key::new("wait_for_metadata")
        .default(false)
        .about("whether files are not read until Docker has listed its containers; otherwise events \
                wait only for the end of the first attempt");
    WAIT_FOR_METADATA_TIMEOUT: Duration = Key::new("wait_for_metadata_timeout")
        .default(Duration::ZERO)
        .about("how long Docker is tried, and files wait for it with `wait_for_metadata`, if it was never \
                there; 0 is for ever");
    WAIT_FOR_METADATA_RETRY_PERIOD: Duration = Key::new("wait_for_metadata_retry_period")
        .default(TIMEOUT)
        .at_least(Duration::from_millis(1))
        .about("the time between two tries");
}

/// How long Docker may take for an answer, and how long the first source waits for the first list.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often a file that waits for the list looks.
const HELD: Duration = Duration::from_millis(500);
/// Longest wait for a list that has no end in Filebeat.
const FOREVER: Duration = Duration::from_hours(24 * 365);

static LOG_PATH: LazyLock<Path> = LazyLock::new(|| path("log.file.path"));
static CONTAINER: LazyLock<Path> = LazyLock::new(|| path("container"));

fn path(text: &str) -> Path {
    Path::parse(text).expect("a constant path")
}

/// Adds `container.*` to events of containers.
#[derive(Debug)]
pub(crate) struct AddDockerMetadata {
    docker: Arc<Docker>,
    /// With `wait_for_metadata`: until when files wait for the first list.
    wait: Option<Monotonic>,
    _watching: Option<Background>,
}

/// The matchers of sources and events, and the known containers.
struct Docker {
    match_fields: Vec<Path>,
    match_pids: Vec<Path>,
    /// Where in the path of the log the id is; nothing without `match_source`.
    source_index: Option<i64>,
    cgroups: Cgroups,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
}

impl AddDockerMetadata {
    /// Reads the settings and begins to listen.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let tls = tls::read(settings, context);
        let retry = settings.get(&WAIT_FOR_METADATA_RETRY_PERIOD);
        let retry = retry.value();
        let wait = settings.get(&WAIT_FOR_METADATA).value();
        let limit = settings.get(&WAIT_FOR_METADATA_TIMEOUT).value();
        let limit = if limit.is_zero() { FOREVER } else { limit };
        let cleanup = settings.get(&CLEANUP_TIMEOUT).value();
        let store = Arc::new(Store::new(Arc::clone(&context.clock), cleanup));
        let dedot = settings.get(&DEDOT).value();
        let short_ids = settings.get(&MATCH_SHORT_ID).value();
        let tls = tls.ok();
        let host = settings.get(&HOST).value();
        let server = tls.and_then(|tls| {
            let report = |error| {
                let (path, shown) = (settings.path_of(HOST.name()), mask_address(&host));
                let message = format!("`{path}` is `{shown}`; {error}");
                settings.problem(HOST.name(), message, "");
            };
            HttpClient::parse(&host, tls, TIMEOUT).map_err(report).ok()
        });
        let paths = |key: &Key<Vec<String>>| {
            let parse = |names: Vec<String>| {
                let paths = names.iter().map(|name| Path::parse(name)).collect::<Result<_, _>>();
                paths.map_err(|error| error.to_string())
            };
            settings.get(key).try_map(parse).value()
        };
        let match_source = settings.get(&MATCH_SOURCE).value();
        let index = settings.get(&MATCH_SOURCE_INDEX).value();
        let hostfs = settings.get(&HOSTFS).value();
        let docker = Arc::new(Docker {
            match_fields: paths(&MATCH_FIELDS),
            match_pids: paths(&MATCH_PIDS),
            source_index: match_source.then_some(index),
            cgroups: Cgroups::new(hostfs, context),
            store: Arc::clone(&store),
            clock: Arc::clone(&context.clock),
        });
        let watch = Watch { server: server?, store, dedot, short_ids, retry, limit, wait };
        let watching = Background::start("docker", watch.run());
        if let Err(error) = &watching {
            tracing::error!(%error, "no thread for add_docker_metadata; it adds nothing");
            docker.store.failed();
        }
        let end = Monotonic(context.clock.monotonic().0.saturating_add(limit));
        Some(Self { docker, wait: wait.then_some(end), _watching: watching.ok() })
    }
}

impl Docker {
    /// The fields for an event whose own fields `get` returns.
    fn fields(&self, get: Look<'_>) -> Option<Arc<Map>> {
        if !self.store.is_listed() {
            return None;
        }
        if let Some(index) = self.source_index
            && let Some(Field::Text(log)) = get(&LOG_PATH)
            && let Some(id) = part(&log, index)
        {
            let found = self.store.get(id);
            if found.is_some() || is_id(id) {
                return Some(found.unwrap_or_else(|| only(id)));
            }
        }
        for field in &self.match_pids {
            let Some(Field::Number(pid)) = get(field) else { continue };
            let Some(id) = self.cgroups.container(pid) else { continue };
            if id.is_empty() {
                break;
            }
            let found = self.store.get(&id);
            return Some(found.unwrap_or_else(|| only(&id)));
        }
        for field in &self.match_fields {
            if let Some(Field::Text(id)) = get(field) {
                return self.store.get(&id);
            }
        }
        None
    }
}

/// The part of a path at `index`, from its end if that is negative. Empty parts do not count.
fn part(path: &str, index: i64) -> Option<&str> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match usize::try_from(index) {
        Ok(index) => parts.nth(index),
        Err(_) => parts.rev().nth(usize::try_from(-(index + 1)).ok()?),
    }
}

/// Whether it looks like the id of a container.
fn is_id(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn only(id: &str) -> Arc<Map> {
    let mut fields = Map::new();
    fields.insert_path("container.id", id);
    Arc::new(fields)
}

impl fmt::Debug for Docker {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Docker").field("match_fields", &self.match_fields).finish_non_exhaustive()
    }
}

/// The current fields, for sources to be bound to.
#[derive(Debug)]
struct Bound(Arc<Docker>);

impl Processor for Bound {
    fn name(&self) -> &'static str {
        "add_docker_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        Ok(merge_into_event(event, |look| self.0.fields(look)))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let mut reads = [&self.0.match_fields[..], &self.0.match_pids].concat();
        if self.0.source_index.is_some() {
            reads.push(LOG_PATH.clone());
        }
        Footprint { reads, writes: vec![CONTAINER.clone()], open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        merge_into_source(constants, |look| self.0.fields(look));
        true
    }

    fn can_fail(&self) -> bool {
        false
    }
}

impl Processor for AddDockerMetadata {
    fn name(&self) -> &'static str {
        "add_docker_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.docker.store.wait(TIMEOUT * 2);
        Bound(Arc::clone(&self.docker)).run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        self.docker.store.wait(TIMEOUT * 2);
        Some(Arc::new(Bound(Arc::clone(&self.docker))))
    }

    fn looks_outside(&self) -> bool {
        true
    }

    fn can_hold(&self) -> bool {
        self.wait.is_some()
    }

    fn hold(&self, _: &Constants) -> Option<Duration> {
        let waits = self.wait.is_some_and(|end| self.docker.clock.monotonic() < end);
        (waits && !self.docker.store.is_listed()).then_some(HELD)
    }

    fn epoch(&self) -> u64 {
        self.docker.store.epoch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_path_count_from_both_ends() {
        let path = "/var/lib/docker//containers/id/id-json.log";
        for (index, expected) in
            [(0, Some("var")), (4, Some("id")), (6, None), (-1, Some("id-json.log")), (-9, None)]
        {
            assert_eq!(part(path, index), expected, "{index}");
        }
    }
}
