//! `add_docker_metadata`: the container that a line comes from, as `container.*`.
//!
//! A watcher lists the running containers and hears of those that start and stop. The id of a container is a part
//! of the path of its log, so that usually everything is a constant of the source. Without Docker nothing is added.

mod cgroup;
mod watch;

use crate::background::Background;
use crate::known::{Field, Look, merge_into_event, merge_into_source};
use crate::store::Store;
use crate::tls;
use cgroup::Cgroups;
use skidder_config::Section;
use skidder_event::{EventMut, Map, Path};
use skidder_net::HttpClient;
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use watch::Watch;

/// Default of `host`.
const HOST: &str = "unix:///var/run/docker.sock";
/// How long Docker may take for an answer, and how long the first source waits for the first list.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Default of `match_source_index`: the id in `/var/lib/docker/containers/ID/ID-json.log`.
const SOURCE_INDEX: i64 = 4;
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
    /// How long, and whether for success, the first source waits.
    wait: (Duration, bool),
    _watching: Option<Background>,
}

/// What a source and an event are asked for, and what is known.
struct Docker {
    match_fields: Vec<Path>,
    match_pids: Vec<Path>,
    /// Where in the path of the log the id is; nothing without `match_source`.
    source_index: Option<i64>,
    cgroups: Cgroups,
    store: Arc<Store>,
}

impl AddDockerMetadata {
    /// Reads the settings and begins to listen.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let tls = tls::read(settings, context);
        let retry = settings.duration("wait_for_metadata_retry_period");
        let retry = retry.range(Duration::from_millis(1)..).or(TIMEOUT);
        let wait = settings.bool("wait_for_metadata").or(false);
        let limit = settings.duration("wait_for_metadata_timeout").or(Duration::ZERO);
        let limit = if limit.is_zero() { FOREVER } else { limit };
        let cleanup = settings.duration("cleanup_timeout").or(Duration::from_mins(1));
        let store = Arc::new(Store::new(Arc::clone(&context.clock), cleanup));
        let dedot = settings.bool("labels.dedot").or(true);
        let short_ids = settings.bool("match_short_id").or(false);
        let tls = tls.ok();
        let host = settings.string("host").or(HOST);
        let server = tls.and_then(|tls| {
            let told = |error| {
                let message = format!("`{}` is `{host}`; {error}", settings.path_of("host"));
                settings.problem("host", message, "");
            };
            HttpClient::parse(&host, tls, TIMEOUT).map_err(told).ok()
        });
        let paths = |key: &str, default: Vec<String>| {
            let parse = |names: Vec<String>| {
                let paths = names.iter().map(|name| Path::parse(name)).collect::<Result<_, _>>();
                paths.map_err(|error| error.to_string())
            };
            let default = default.iter().map(|name| path(name)).collect::<Vec<_>>();
            settings.strings(key).try_map(parse).or(default)
        };
        let match_source = settings.bool("match_source").or(true);
        let index = settings.i64("match_source_index").or(SOURCE_INDEX);
        let pids = ["process.pid", "process.parent.pid"].map(str::to_owned).to_vec();
        let hostfs = settings.path_buf("hostfs").or("/");
        let docker = Arc::new(Docker {
            match_fields: paths("match_fields", Vec::new()),
            match_pids: paths("match_pids", pids),
            source_index: match_source.then_some(index),
            cgroups: Cgroups::new(hostfs, context),
            store: Arc::clone(&store),
        });
        let watch = Watch { server: server?, store, dedot, short_ids, retry, limit };
        let watching = Background::start("docker", watch.run());
        if let Err(error) = &watching {
            tracing::error!(%error, "no thread for add_docker_metadata; it adds nothing");
            docker.store.failed();
        }
        let wait = if wait { (limit, true) } else { (TIMEOUT * 2, false) };
        Some(Self { docker, wait, _watching: watching.ok() })
    }
}

impl Docker {
    /// What is added to an event whose fields `get` gives.
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

/// What is known now, for sources to be bound to.
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
        self.docker.store.wait(self.wait.0, self.wait.1);
        Bound(Arc::clone(&self.docker)).run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        self.docker.store.wait(self.wait.0, self.wait.1);
        Some(Arc::new(Bound(Arc::clone(&self.docker))))
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
