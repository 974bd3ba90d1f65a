//! `add_kubernetes_metadata`: which pod a line comes from.
//!
//! What the path of a log file says (namespace, pod, container, uid) is added at once, without asking
//! anybody. The rest comes from the API: the pods of this node are listed and their changes followed beside the
//! pipeline, and events get what is known about theirs. For the file of a pod all of it is the same for every
//! line, and is done once; when the pod changes, once again.

mod access;
mod facts;
mod matchers;
mod path;
mod settings;
mod store;
mod watch;

#[cfg(test)]
mod tests;

use crate::background::Background;
use crate::known::{self, Field, field_of, merge_into_event, merge_into_source};
use access::Access;
use matchers::log_file_path;
use path::Named;
use settings::Settings;
use skidder_config::Section;
use skidder_event::{EventMut, Map, Path};
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use watch::Shared;

/// The name in the configuration.
const NAME: &str = "add_kubernetes_metadata";

/// The top-level fields that it writes.
const WRITTEN: [&str; 3] = ["kubernetes", "container", "orchestrator"];

/// Adds `kubernetes.*`, `container.*` and `orchestrator.cluster.*`.
#[derive(Clone, Debug)]
pub(crate) struct AddKubernetesMetadata {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    /// Nothing without an API server.
    follower: Option<Arc<Background>>,
}

impl AddKubernetesMetadata {
    /// Reads the settings and begins to follow the API, if there is one.
    pub(crate) fn read(section: &Section<'_>, context: &Context) -> Option<Self> {
        let settings = Settings::read(section)?;
        let shared = Arc::new(Shared::new(Arc::clone(&context.clock)));
        let follower = match Access::find(settings.kube_config.as_deref(), &context.fs) {
            Ok(access) => {
                let work = watch::follow(access, settings.clone(), Arc::clone(&shared));
                match Background::start("kubernetes", work) {
                    Ok(follower) => Some(Arc::new(follower)),
                    Err(error) => {
                        tracing::error!(%error, "no thread for add_kubernetes_metadata");
                        None
                    }
                }
            }
            Err(error) if settings.kube_config.is_some() => {
                section.problem(
                    "kube_config",
                    format!("`{}`: {error}", section.path_of("kube_config")),
                    "",
                );
                return None;
            }
            Err(error) => {
                tracing::info!(
                    error,
                    "add_kubernetes_metadata adds only what the paths of files say"
                );
                None
            }
        };
        Some(Self { settings: Arc::new(settings), shared, follower })
    }

    /// What an event gets; nothing if it is of no pod.
    fn fields(&self, look: known::Look<'_>) -> Option<Arc<Map>> {
        let look = &|path: &Path| look(path).and_then(Field::text);
        let path = look(&log_file_path());
        let named = path.as_deref().and_then(Named::read);
        let mut fields = named.map(|named| named.fields()).unwrap_or_default();
        let store = self.shared.store();
        let mut matchers = self.settings.matchers.iter();
        if let Some(known) = matchers.find_map(|matcher| store.find(&matcher.keys(look))) {
            fields.merge(&known);
        }
        (!fields.is_empty()).then(|| Arc::new(fields))
    }
}

impl Processor for AddKubernetesMetadata {
    fn name(&self) -> &'static str {
        NAME
    }

    /// An event that has `kubernetes` already keeps it, and gets nothing.
    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        if event.as_ref().has(&top("kubernetes")) {
            return Ok(Outcome::Done);
        }
        Ok(merge_into_event(event, |look| self.fields(look)))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = self.settings.matchers.iter().flat_map(matchers::Matcher::fields);
        Footprint {
            reads: reads.chain([log_file_path()]).collect(),
            writes: WRITTEN.map(top).to_vec(),
            open: true,
            ..Footprint::default()
        }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        if constants.get(&top("kubernetes")).is_none() {
            merge_into_source(constants, |look| self.fields(look));
        }
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        Some(Arc::new(self.clone()))
    }

    fn can_hold(&self) -> bool {
        self.settings.wait.is_some() && self.follower.is_some()
    }

    fn hold(&self, constants: &Constants) -> Option<Duration> {
        let wait = self.settings.wait?;
        self.follower.as_ref()?;
        let look = |path: &Path| field_of(constants, path).and_then(Field::text);
        let keys: Vec<String> =
            self.settings.matchers.iter().flat_map(|matcher| matcher.keys(&look)).collect();
        let now = self.shared.clock.monotonic();
        let waits = self.shared.store().waits(&keys, wait, now);
        waits.then_some(self.settings.wait_retry)
    }

    fn epoch(&self) -> u64 {
        self.shared.epoch.load(Ordering::Acquire)
    }
}

fn top(name: &str) -> Path {
    Path::parse(name).expect("a constant that is a path")
}
