//! The inputs that the rules of a provider make for one object, before objects are compared.

use crate::condition::View;
use crate::event::Event;
use crate::hints_input;
use crate::made::{BY, Fields};
use crate::provider::Provider;
use crate::resolve::{Resolver, Unresolved, names_container};
use crate::secrets::{SecretLookup, Secrets, WantedSecret};
use crate::state::Context;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use skidder_config::{Group, Lists, MASK, MadeSettings, Node};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Parts of paths that are logs of containers, wherever the file system of the host is mounted.
const LOG_FOLDERS: [&str; 3] = ["/containers/", "/pods/", "/container-logs/"];

/// The origin of inputs that hints make.
pub(crate) const HINTS: &str = "hints";

/// An input that a rule makes.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// See [`Made::key`](crate::Made::key).
    pub(crate) key: String,
    /// Of the configuration. A pod may not be able to make one that equals that of another pod.
    pub(crate) hash: u128,
    /// `id`; `None` without one, and for modules.
    pub(crate) input_id: Option<String>,
    /// The files of the container that it reads, each with its stream; all names of the log are one file, `""`.
    pub(crate) files: Vec<(String, String)>,
    /// The template or `hints`, as `filebeat.yml:3:5`.
    pub(crate) origin: String,
    /// Which template of the provider; hints come last.
    pub(crate) rank: usize,
    pub(crate) about: String,
    /// See [`Made::settings`](crate::Made::settings).
    pub(crate) settings: Arc<MadeSettings>,
    pub(crate) is_module: bool,
    /// Inputs of its type know a file by its inode alone: only one of them reads it.
    pub(crate) reads_alone: bool,
    pub(crate) fields: Fields,
    pub(crate) container_id: String,
}

impl Candidate {
    /// Whether another one is the same input, for the same object, with the same fields.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.key, self.hash, self.rank, &self.about)
            == (&other.key, other.hash, other.rank, &other.about)
            && (&self.container_id, &self.files) == (&other.container_id, &other.files)
            && self.fields == other.fields
    }

    /// `id` for messages.
    pub(crate) fn shown_id(&self) -> &str {
        let settings = self.settings.settings();
        let is_secret = settings.node().at("0.id").is_some_and(Node::is_secret);
        if is_secret { MASK } else { self.input_id.as_deref().unwrap_or_default() }
    }

    /// The configuration as YAML, without secrets. `inputs` has the settings of an input; those of a module that are
    /// secret are known by their names.
    pub(crate) fn configuration(&self, inputs: &'static Group) -> String {
        let settings = self.settings.settings();
        let list = settings.node().as_list().unwrap_or_default();
        list.iter().map(|node| node.to_masked_yaml(inputs)).collect()
    }
}

/// What became of one event.
#[derive(Debug, Default)]
pub(crate) struct Considered {
    pub(crate) about: String,
    pub(crate) notes: Vec<String>,
    /// Of those, why an input does not run.
    pub(crate) failures: Vec<String>,
    /// Of those, mistakes in hints with which inputs run all the same.
    pub(crate) warnings: Vec<String>,
    /// A template waits for a secret that is looked up.
    pub(crate) waits: bool,
}

impl Considered {
    fn fail(&mut self, reason: String) {
        self.failures.push(reason.clone());
        self.notes.push(reason);
    }
}

/// The result for one object.
#[derive(Debug, Default)]
pub(crate) struct Built {
    pub(crate) candidates: Vec<Arc<Candidate>>,
    pub(crate) events: Vec<Considered>,
    /// The ids of all containers of the object, also of those without inputs.
    pub(crate) containers: BTreeSet<String>,
    /// Secrets that are named.
    pub(crate) secrets: BTreeSet<WantedSecret>,
}

/// Everything that decides.
#[derive(Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) context: &'a Context,
    pub(crate) secrets: &'a Secrets,
    pub(crate) number: usize,
    pub(crate) provider: &'a Provider,
}

impl Rules<'_> {
    /// Applies all rules to the events of an object called `name`.
    pub(crate) fn apply(&self, name: &str, events: &[Event]) -> Built {
        let mut built = Built::default();
        for event in events {
            let named = RefCell::default();
            let mut considered = Considered { about: event.about.clone(), ..Considered::default() };
            considered.notes.extend(Some(&event.note).filter(|note| !note.is_empty()).cloned());
            for (rank, origin, config) in self.configs(event, &named, &mut considered) {
                let candidate = self.candidate(name, event, rank, origin, config);
                // The ports of a container often give the same input.
                if !built.candidates.iter().any(|known| known.key == candidate.key) {
                    built.candidates.push(Arc::new(candidate));
                }
            }
            if !event.is_around_containers || !considered.notes.is_empty() {
                built.events.push(considered);
            }
            built.containers.insert(event.container_id.clone());
            built.secrets.extend(named.into_inner());
        }
        built
    }

    fn resolver<'a>(
        &'a self,
        event: &'a Event,
        facts: &'a Json,
        named: &'a RefCell<BTreeSet<WantedSecret>>,
    ) -> Resolver<'a> {
        let Rules { secrets, number, context, .. } = *self;
        let secrets =
            SecretLookup { secrets, provider: number, namespace: &event.namespace, named };
        Resolver { context, secrets, facts }
    }

    /// The configurations for one event: of all templates that match, else of hints. While a template waits for a
    /// secret, hints are not used: the template's input would read the same lines once more.
    fn configs(
        &self,
        event: &Event,
        named: &RefCell<BTreeSet<WantedSecret>>,
        considered: &mut Considered,
    ) -> Vec<(usize, String, Node)> {
        let mut configs = Vec::new();
        let view = View::new(&event.facts);
        let resolver = self.resolver(event, &event.facts, named);
        for (rank, template) in self.provider.templates.iter().enumerate() {
            let place = &template.position;
            if !view.meets(template.condition.as_ref()) {
                considered.notes.push(format!(
                    "the template at {place} does not match: its condition does not hold"
                ));
                continue;
            }
            considered.notes.push(format!("the template at {place} matches"));
            for (_, config) in &template.configs {
                match resolver.trusted(config) {
                    Ok(node) => configs.push((rank, place.to_string(), node)),
                    Err(_) if event.is_around_containers && names_container(config) => {}
                    Err(Unresolved { reason, waits }) => {
                        considered.waits |= waits;
                        considered.fail(format!(
                            "the input at {} does not run: {reason}",
                            config.position()
                        ));
                    }
                }
            }
        }
        let hints = self.provider.hints.as_ref().filter(|_| configs.is_empty());
        if considered.waits && hints.is_some() {
            let note = "hints are not used while a template waits for a secret";
            considered.notes.push(note.to_owned());
        } else if let Some(hints) = hints {
            let resolver = self.resolver(event, &event.hint_facts, named);
            let made = hints_input::inputs(hints, event, &resolver);
            if !made.inputs.is_empty() {
                considered.notes.push("hints are used".to_owned());
            }
            considered.notes.extend(made.notes);
            considered.failures.extend(made.failures);
            considered.warnings.extend(made.warnings);
            let rank = self.provider.templates.len();
            configs.extend(made.inputs.into_iter().map(|node| (rank, HINTS.to_owned(), node)));
        }
        self.append(event, &resolver, &mut configs, considered);
        configs
    }

    /// Lays the appenders whose condition holds upon all configurations. Their conditions see no port, since they are
    /// for all ports of a container.
    fn append(
        &self,
        event: &Event,
        resolver: &Resolver<'_>,
        configs: &mut Vec<(usize, String, Node)>,
        considered: &mut Considered,
    ) {
        if self.provider.appenders.is_empty() || configs.is_empty() {
            return;
        }
        let mut facts = event.facts.clone();
        if let Json::Object(facts) = &mut facts {
            facts.remove("port");
            facts.remove("ports");
        }
        let view = View::new(&facts);
        for appender in &self.provider.appenders {
            if !view.meets(appender.condition.as_ref()) {
                continue;
            }
            match resolver.trusted(&appender.config) {
                Ok(over) => {
                    for (_, _, config) in configs.iter_mut() {
                        config.overlay(&over, Lists::Mixed);
                    }
                }
                Err(_) if event.is_around_containers && names_container(&appender.config) => {
                    configs.clear();
                }
                Err(Unresolved { reason, .. }) => {
                    // An input without what is to be added could send its events to the wrong place.
                    let place = appender.config.position();
                    considered.fail(format!(
                        "no input runs: the appender at {place} cannot be applied: {reason}"
                    ));
                    configs.clear();
                }
            }
        }
    }

    fn candidate(
        &self,
        name: &str,
        event: &Event,
        rank: usize,
        origin: String,
        config: Node,
    ) -> Candidate {
        let (value, position) = (config.to_json(), config.position().clone());
        let hash = hash_of(&value);
        let kind = config.at("type").and_then(Node::text).unwrap_or("log");
        let is_module = config.at("module").is_some();
        let input_id =
            config.at("id").and_then(Node::scalar_text).filter(|id| !id.is_empty() && !is_module);
        let id = event.facts["id"].as_str().unwrap_or_default();
        let about = if event.about.contains(name) {
            format!("{}{BY}{origin}", event.about)
        } else {
            format!("{} of {name}{BY}{origin}", event.about)
        };
        Candidate {
            key: format!("{}/{id}/{:016x}", self.provider.kind.name(), hash >> 64),
            input_id: input_id.map(str::to_owned),
            files: files(&value, is_module, &event.container_id),
            hash,
            origin,
            rank,
            about,
            is_module,
            reads_alone: !is_module && ["log", "container", "docker"].contains(&kind),
            settings: Arc::new(self.context.settings.made(&position, vec![config])),
            fields: event.fields.clone(),
            container_id: event.container_id.clone(),
        }
    }
}

fn hash_of(config: &Json) -> u128 {
    let digest = Sha256::digest(config.to_string().as_bytes());
    digest.iter().take(16).fold(0, |hash, byte| hash << 8 | u128::from(*byte))
}

/// The files of a container that a configuration reads, each with its stream. All names of the container's log are
/// one file.
fn files(config: &Json, is_module: bool, id: &str) -> Vec<(String, String)> {
    if id.is_empty() {
        return Vec::new();
    }
    let mut files = Vec::new();
    let mut add = |input: &Json| {
        let ids = input["ids"].as_array().into_iter().flatten();
        if ids.filter_map(Json::as_str).any(|one| one == id) {
            files.push((String::new(), stream(input)));
        }
        let paths =
            input["paths"].as_array().cloned().unwrap_or_else(|| vec![input["paths"].clone()]);
        for path in paths.iter().filter_map(Json::as_str) {
            let is_log =
                path.contains(id) && LOG_FOLDERS.iter().any(|folder| path.contains(folder));
            let file = if is_log { String::new() } else { path.to_owned() };
            files.push((file, stream(input)));
        }
    };
    if is_module {
        let filesets = config.as_object().into_iter().flatten().map(|(_, fileset)| fileset);
        filesets
            .filter(|fileset| fileset["enabled"] != false)
            .for_each(|fileset| add(&fileset["input"]));
    } else {
        add(config);
    }
    files.sort();
    files.dedup();
    files.shrink_to_fit();
    files
}

/// `stream` of a `container` input, or of the parser `container`.
fn stream(input: &Json) -> String {
    let parsers = input["parsers"].as_array().into_iter().flatten();
    let of_parser = parsers.into_iter().find_map(|parser| parser["container"]["stream"].as_str());
    of_parser.or_else(|| input["stream"].as_str()).unwrap_or("all").to_owned()
}
