//! `add_nomad_metadata`: the allocation that a line comes from, as `nomad.*`.
//!
//! The allocations of this node are requested every `refresh_interval`; the id of one is a part of the path of its
//! logs, so that usually everything is a constant of the source.

pub mod allocations;
pub mod api;
mod matchers;
mod watch;

use crate::background::Background;
use crate::known::{Field, Look, merge_into_event, merge_into_source};
use crate::store::Store;
use api::NomadApi;
use matchers::Matcher;
use skidder_config::{Group, Key, OneOf, Secret, Section, mask_address, settings};
use skidder_event::{EventMut, Map, Path};
use skidder_net::HttpClient;
use skidder_processors::{Constants, Context, Failure, Footprint, Outcome, Processor};
use skidder_tls::{TlsClient, TlsSettings};
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use watch::{Scope, Watch};

settings! {
    /// Settings of `add_nomad_metadata`.
    pub(crate) static ADD_NOMAD_METADATA = Group::new("processor.add_nomad_metadata", "Adds job, namespace and allocation in Nomad that an event comes \
                               from.")
    .include(&[&matchers::MATCHING])
    .deprecated(&[("sync_period", "every question has its own time-out")]);

    ADDRESS: String = Key::new("address")
        .default("http://127.0.0.1:4646")
        .about("the API of the agent; `https` is checked with the certificate authorities of the \
                system");
    NAMESPACE: String = Key::new("namespace")
        .default_words("none")
        .about("the namespace to ask for");
    REGION: String = Key::new("region")
        .default_words("none")
        .about("the region to ask for");
    SECRET_ID: Secret = Key::new("secret_id")
        .default_words("none")
        .about("the token for the API");
    SCOPE: OneOf<bool> = Key::one_of("scope", &[("node", false), ("global", true)])
        .default("node")
        .about("`node` asks for the allocations of one node, `global` for those of all");
    NODE: String = Key::new("node")
        .default_words("the node of the agent")
        .about("the name of the node");
    REFRESH_INTERVAL: Duration = Key::new("refresh_interval")
        .default(Duration::from_secs(30))
        .at_least(Duration::from_millis(1))
        .about("how often the allocations are asked for");
    CLEANUP_TIMEOUT: Duration = Key::new("cleanup_timeout")
        .default(Duration::from_mins(1))
        .about("how long an allocation that ended is known after its events were last seen");
}

/// How long Nomad may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

static NOMAD: LazyLock<Path> = LazyLock::new(|| Path::parse("nomad").expect("a constant path"));

/// Adds `nomad.*` to events of allocations.
#[derive(Debug)]
pub(crate) struct AddNomadMetadata {
    bound: Arc<Bound>,
    _watching: Option<Background>,
}

/// The matchers of events and sources, and the known allocations.
struct Bound {
    matchers: Vec<Matcher>,
    store: Arc<Store>,
}

impl AddNomadMetadata {
    /// Reads the settings and begins to ask.
    pub(crate) fn read(settings: &Section<'_>, context: &Context) -> Option<Self> {
        let cleanup = settings.get(&CLEANUP_TIMEOUT).value();
        let node = settings.get(&NODE).optional().filter(|node| !node.is_empty());
        let is_global = settings.get(&SCOPE).value();
        let scope = if is_global { Scope::Global } else { Scope::Node(node) };
        let period = settings.get(&REFRESH_INTERVAL).value();
        let indexers = matchers::read_indexers(settings);
        let matchers = matchers::read_matchers(settings);
        let store = Arc::new(Store::new(Arc::clone(&context.clock), cleanup));
        let query = [&NAMESPACE, &REGION].map(|key| (key.name(), settings.get(key).optional()));
        let token = settings.get(&SECRET_ID).optional();
        let server = read_server(settings, context);
        let watch = Watch {
            api: NomadApi::new(server?, &query, token),
            store: Arc::clone(&store),
            scope,
            indexers: indexers?,
            period,
        };
        let watching = Background::start("nomad", watch.run());
        if let Err(error) = &watching {
            tracing::error!(%error, "no thread for add_nomad_metadata; it adds nothing");
            store.failed();
        }
        let bound = Arc::new(Bound { matchers: matchers?, store });
        Some(Self { bound, _watching: watching.ok() })
    }
}

fn read_server(settings: &Section<'_>, context: &Context) -> Option<HttpClient> {
    let address = settings.get(&ADDRESS).value();
    let tls = if address.starts_with("https") {
        match TlsClient::new(&TlsSettings::default(), Arc::clone(&context.fs)) {
            Ok(client) => Some(client),
            Err(error) => {
                settings.problem(ADDRESS.name(), error.to_string(), "");
                return None;
            }
        }
    } else {
        None
    };
    let report = |error| {
        let (path, shown) = (settings.path_of(ADDRESS.name()), mask_address(&address));
        let message = format!("`{path}` is `{shown}`; {error}");
        settings.problem(ADDRESS.name(), message, "");
    };
    HttpClient::parse(&address, tls, TIMEOUT).map_err(report).ok()
}

impl Bound {
    fn fields(&self, look: Look<'_>) -> Option<Arc<Map>> {
        let text = |path: &Path| look(path).and_then(Field::text);
        let key = self.matchers.iter().find_map(|matcher| matcher.key(&text))?;
        self.store.get(&key)
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Nomad").field("matchers", &self.matchers).finish_non_exhaustive()
    }
}

/// The current fields, for sources to be bound to.
#[derive(Debug)]
struct Now(Arc<Bound>);

impl Processor for Now {
    fn name(&self) -> &'static str {
        "add_nomad_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        Ok(merge_into_event(event, |look| self.0.fields(look)))
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        let reads = self.0.matchers.iter().flat_map(Matcher::fields).collect();
        Footprint { reads, writes: vec![NOMAD.clone()], open: true, ..Footprint::default() }
    }

    fn fold(&self, constants: &mut Constants) -> bool {
        merge_into_source(constants, |look| self.0.fields(look));
        true
    }

    fn can_fail(&self) -> bool {
        false
    }
}

impl Processor for AddNomadMetadata {
    fn name(&self) -> &'static str {
        "add_nomad_metadata"
    }

    fn run(&self, event: &mut EventMut<'_>) -> Result<Outcome, Failure> {
        self.bound.store.wait(TIMEOUT * 2);
        Now(Arc::clone(&self.bound)).run(event)
    }

    fn footprint(&self, _: &Constants) -> Footprint {
        Footprint::everything()
    }

    fn can_fail(&self) -> bool {
        false
    }

    fn bound(&self) -> Option<Arc<dyn Processor>> {
        self.bound.store.wait(TIMEOUT * 2);
        Some(Arc::new(Now(Arc::clone(&self.bound))))
    }

    fn looks_outside(&self) -> bool {
        true
    }

    fn epoch(&self) -> u64 {
        self.bound.store.epoch()
    }
}
