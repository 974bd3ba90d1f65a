//! `add_kubernetes_metadata`: which pod a line comes from.
//!
//! The fields in the path of a log file (namespace, pod, container, uid) are added at once, without a
//! request. The rest comes from the API: the pods of this node are listed and their changes followed in the
//! background, and events get the known fields of theirs. For the file of a pod all of it is the same for every
//! line, and is done once; when the pod changes, once again.

pub mod access;
mod facts;
pub mod first_lists;
mod found;
pub mod lease;
mod list;
mod matchers;
pub mod objects;
mod path;
mod request_limit;
pub(super) mod settings;
mod store;
mod watch;

#[cfg(test)]
mod tests;

use crate::background::Background;
use crate::known::{Field, field_of, merge_into_source};
use access::Access;
use found::Found;
use matchers::log_file_path;
use settings::Settings;
use skidder_config::Section;
use skidder_event::{EventMut, Path, ValueRef};
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use watch::Shared;

/// The name in the configuration.
const NAME: &str = "add_kubernetes_metadata";

/// The top-level fields that it writes.
const WRITTEN: [&str; 3] = ["kubernetes", "container", "orchestrator"];

/// Adds `kubernetes.*`, `container.*` and `orchestrator.cluster.*`.
#[derive(Debug)]
pub(crate) struct AddKubernetesMetadata {
    settings: Arc<Settings>,
    /// The fields that lead to a pod.
    reads: Vec<Path>,
    /// `kubernetes`.
    kubernetes: Path,
    /// Of the event before: those of one file follow each other.
    last: Mutex<Option<Found>>,
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
                    settings::KUBE_CONFIG.name(),
                    format!("`{}`: {error}", section.path_of(settings::KUBE_CONFIG.name())),
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
        Some(Self::new(Arc::new(settings), shared, follower))
    }

    fn new(
        settings: Arc<Settings>,
        shared: Arc<Shared>,
        follower: Option<Arc<Background>>,
    ) -> Self {
        let reads = settings.matchers.iter().flat_map(matchers::Matcher::fields);
        let reads = reads.chain([log_file_path()]).collect();
        Self {
            settings,
            reads,
            kubernetes: top("kubernetes"),
            last: Mutex::default(),
            shared,
            follower,
        }
    }
}

impl Processor for AddKubernetesMetadata {
    fn name(&self) -> &'static str {
        NAME
    }

    /// An event that has `kubernetes` already keeps it, and gets nothing.
    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        let own = event.as_ref();
        if own.has(&self.kubernetes) {
            return Ok(Outcome::Done);
        }
        let text = |path: &Path| match own.get(path) {
            Some(ValueRef::Str(text)) => Some(text),
            _ => None,
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.as_ref().is_some_and(|last| !last.is_of(&self.reads, text)) {
            *last = None;
        }
        let found = last.get_or_insert_with(|| {
            let look = |path: &Path| Some(String::from_utf8_lossy(text(path)?).into_owned());
            Found::new(&self.settings, &self.reads, &look)
        });
        if let Some(fields) = found.fields(&self.shared.store()) {
            event.merge(fields);
        }
        Ok(Outcome::Done)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint {
            reads: self.reads.clone(),
            writes: WRITTEN.map(top).to_vec(),
            open: true,
            ..Footprint::default()
        }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        if constants.get(&self.kubernetes).is_none() {
            merge_into_source(constants, |look| {
                let look = &|path: &Path| look(path).and_then(Field::text);
                let mut found = Found::new(&self.settings, &self.reads, look);
                found.fields(&self.shared.store()).cloned()
            });
        }
        true
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        let (settings, shared) = (Arc::clone(&self.settings), Arc::clone(&self.shared));
        Some(Arc::new(Self::new(settings, shared, self.follower.clone())))
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
