//! All providers, what they know, and what should run.

use crate::arbitrate::{Verdict, judge};
use crate::candidates::{Built, Candidate, Considered, Rules};
use crate::event::Event;
use crate::fact::{Fact, Version};
use crate::json::text;
use crate::kept::{KeptFact, ShortFact};
use crate::kubernetes::{self, Around};
use crate::logged::Logged;
use crate::made::{Made, Saved};
use crate::objects::{AroundKind, Failure, Object, Objects, State};
use crate::provider::{KubernetesProvider, Provider, ProviderKind, Resource};
use crate::secrets::{SecretAnswer, Secrets, WantedSecret};
use crate::troubles::Troubles;
use serde_json::Value as Json;
use skidder_config::{Group, Settings};
use skidder_os::Monotonic;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

/// Looks up an environment variable.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Lists the filesets of a module; `None` if there is no such module.
pub type Filesets = Arc<dyn Fn(&str) -> Option<Vec<String>> + Send + Sync>;

/// What autodiscover needs from outside.
#[derive(Clone)]
pub struct Context {
    /// The settings that the section is in: variables of templates can name other settings, and the keystore.
    pub settings: Arc<Settings>,
    /// Environment variables.
    pub environment: Environment,
    /// The modules, for the hint `module`.
    pub filesets: Filesets,
    /// The settings of an input: explanations do not show what is secret among them.
    pub inputs: &'static Group,
}

impl fmt::Debug for Context {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Context").finish_non_exhaustive()
    }
}

/// `filebeat.autodiscover`: facts in, inputs out. See the text of the crate.
#[derive(Debug)]
pub struct Autodiscover {
    pub(crate) context: Context,
    pub(crate) providers: Vec<Provider>,
    pub(crate) objects: Vec<Objects>,
    /// Of each provider.
    pub(crate) troubles: Vec<Troubles>,
    secrets: Secrets,
    /// Why keys were refused when their settings were read.
    pub(crate) refused: BTreeMap<String, String>,
    /// What is wrong with inputs that run, by their keys.
    pub(crate) warnings: BTreeMap<String, Vec<String>>,
    running: Vec<Arc<Made>>,
    /// The last decision about each candidate that does not run, by provider and key.
    pub(crate) verdicts: HashMap<(usize, String), Verdict>,
    changed: bool,
    /// An input was refused since the last judgement.
    is_refused: bool,
    /// See [`Autodiscover::judgements`].
    judgements: u64,
    pub(crate) logged: Logged,
}

impl Autodiscover {
    pub(crate) fn new(context: Context, providers: Vec<Provider>) -> Self {
        let objects = providers.iter().map(|_| Objects::default()).collect();
        let troubles = providers.iter().map(|_| Troubles::default()).collect();
        Self {
            context,
            providers,
            objects,
            troubles,
            secrets: Secrets::default(),
            refused: BTreeMap::new(),
            warnings: BTreeMap::new(),
            running: Vec::new(),
            verdicts: HashMap::new(),
            changed: true,
            is_refused: false,
            judgements: 0,
            logged: Logged::default(),
        }
    }

    /// The providers, in the order of the configuration; their index is the `provider` of all methods.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// A container, a pod or another object as the API describes it now. A fact that is older than what is known is
    /// ignored, and so is one that the provider does not need.
    pub fn seen(&mut self, provider: usize, fact: impl Into<ShortFact>, now: Monotonic) {
        let fact = fact.into();
        let (Some(of), Some(objects)) =
            (self.providers.get(provider), self.objects.get_mut(provider))
        else {
            return;
        };
        if fact.id.is_empty() {
            tracing::warn!(provider = of.kind.name(), "an object without an id is ignored");
            return;
        }
        self.changed |= match (&of.kind, fact.kind()) {
            (ProviderKind::Docker(_), Fact::Docker(_))
            | (ProviderKind::Nomad(_), Fact::Nomad(_))
            | (ProviderKind::Jolokia(_), Fact::Jolokia(_)) => objects.seen(fact, now),
            (ProviderKind::Kubernetes(own), kind) if is_followed(own, &kind) => {
                objects.seen(fact, now)
            }
            (ProviderKind::Kubernetes(_), _) => seen_around(objects, &fact),
            (ProviderKind::Docker(_) | ProviderKind::Nomad(_) | ProviderKind::Jolokia(_), _) => {
                false
            }
        };
    }

    /// A container died, or an object was deleted. Its inputs run on for `cleanup_timeout`, unless it is seen again with
    /// a higher version.
    pub fn gone(&mut self, provider: usize, id: &str, now: Monotonic) {
        self.end(provider, id, None, now);
    }

    /// Like [`Autodiscover::gone`] with the version of the end: the `resourceVersion` of the deleted object, the
    /// `ModifyIndex` of the allocation, or the time
    /// of the end of a container, as a time like `2026-01-02T03:04:05.678Z` or in nanoseconds since 1970. So it is
    /// ignored if it comes late, and a fact from before the end is ignored if that comes late.
    pub fn gone_at(&mut self, provider: usize, id: &str, version: &str, now: Monotonic) {
        self.end(provider, id, Version::of(version), now);
    }

    fn end(&mut self, provider: usize, id: &str, version: Option<Version>, now: Monotonic) {
        let Some(objects) = self.objects.get_mut(provider) else { return };
        match objects.gone_around(id, version) {
            Some((kind, name)) => self.changed |= concern(objects, kind, &name),
            None => self.changed |= objects.gone(id, version, now),
        }
    }

    /// The list of containers, or of objects of the provider's `resource`, was made anew: those that are not in it are
    /// gone. Objects around pods are not concerned.
    pub fn listed(&mut self, provider: usize, ids: &[String], now: Monotonic) {
        if let Some(objects) = self.objects.get_mut(provider) {
            self.changed |= objects.listed(ids, now);
        }
    }

    /// An object that had inputs in the last run, as [`Autodiscover::to_remember`] gave it. If the first list does not have
    /// it, its inputs run for `cleanup_timeout`. `false` if it is no such object.
    pub fn remember(&mut self, saved: &Saved) -> bool {
        let Some(objects) = self.objects.get_mut(saved.provider) else { return false };
        let Some(fact) = KeptFact::saved(&saved.kind, &saved.fact) else { return false };
        objects.remembered.insert(saved.id.clone(), fact);
        true
    }

    /// Objects that have inputs or wait for a secret: after a restart some of them may be gone, and their logs not
    /// read to the end.
    pub fn to_remember(&self) -> Vec<Saved> {
        let mut all = Vec::new();
        for (provider, objects) in self.objects.iter().enumerate() {
            let waits = |it: &Object| it.secrets.iter().any(|secret| !self.secrets.knows(secret));
            let is_read = |it: &Object| it.candidates().next().is_some() || waits(it);
            let with_inputs = objects.all.iter().filter(|(_, it)| is_read(it));
            let facts = with_inputs.filter_map(|(id, object)| Some((id, object.fact.as_ref()?)));
            for (id, fact) in facts.chain(&objects.remembered) {
                if let Some((kind, fact)) = fact.to_save() {
                    let (id, fact) = (id.clone(), Arc::clone(fact));
                    all.push(Saved { provider, id, kind: kind.into(), fact });
                }
            }
        }
        all
    }

    /// When the next `cleanup_timeout` ends; `None` if no object is ending.
    pub fn wakes_at(&self) -> Option<Monotonic> {
        let all = self.objects.iter().zip(&self.providers);
        all.filter_map(|(objects, provider)| objects.wakes_at(provider.cleanup_timeout)).min()
    }

    /// Secrets that inputs wait for; the watcher fetches them and calls [`Autodiscover::secret`].
    pub fn wanted_secrets(&self) -> Vec<WantedSecret> {
        let mut wanted = self.named_secrets();
        wanted.retain(|secret| !self.secrets.knows(secret));
        wanted.into_iter().collect()
    }

    /// All secrets that inputs use or wait for.
    pub fn named_secrets(&self) -> BTreeSet<WantedSecret> {
        let all = self.objects.iter().flat_map(|objects| objects.all.values());
        all.flat_map(|object| object.secrets.iter().cloned()).collect()
    }

    /// The answer about a secret that inputs wait for.
    pub fn secret(&mut self, secret: WantedSecret, answer: SecretAnswer) {
        let provider = secret.provider;
        if self.secrets.set(secret, answer)
            && let Some(objects) = self.objects.get_mut(provider)
        {
            self.changed |= objects.rebuild(|_| true);
        }
    }

    /// The inputs that should run now, in a stable order. Without a change, they are the same as before.
    pub fn decide(&mut self, now: Monotonic) -> Vec<Arc<Made>> {
        let mut is_other = std::mem::take(&mut self.is_refused);
        for (objects, provider) in self.objects.iter_mut().zip(&self.providers) {
            is_other |= objects.expire(provider.cleanup_timeout, now);
        }
        if std::mem::take(&mut self.changed) {
            is_other |= self.build(now);
            for (objects, provider) in self.objects.iter_mut().zip(&self.providers) {
                is_other |= objects.expire(provider.cleanup_timeout, now);
            }
        }
        if is_other {
            self.arbitrate();
            self.judgements += 1;
        }
        self.running.clone()
    }

    /// How often it was judged anew which inputs run: only then [`Autodiscover::decide`] gives others than before.
    pub fn judgements(&self) -> u64 {
        self.judgements
    }

    /// An input was refused when its settings were read. It is not tried again until its configuration changes.
    pub fn refuse(&mut self, key: &str, why: String) {
        if self.refused.insert(key.to_owned(), why.clone()) != Some(why) {
            self.is_refused = true;
        }
    }

    /// The inputs that should run and cannot: one for each object, as of the last [`Autodiscover::decide`].
    pub fn failures(&self) -> Vec<Failure> {
        let all = self.objects.iter().enumerate();
        let all =
            all.flat_map(|(number, objects)| objects.all.values().map(move |it| (number, it)));
        let failure = |(number, object): (usize, &Object)| {
            if object.state != State::Alive {
                return None;
            }
            let refused = object.inputs.iter().find_map(|it| {
                match self.verdicts.get(&(number, it.key.clone()))? {
                    Verdict::Refused(reason) => {
                        Some(Failure { about: it.about.clone(), reason: reason.clone() })
                    }
                    Verdict::Same(_) | Verdict::Runs => None,
                }
            });
            object.failure.as_deref().cloned().or(refused)
        };
        all.filter_map(failure).collect()
    }

    /// Applies the rules where they have to be; returns whether that made other inputs.
    fn build(&mut self, now: Monotonic) -> bool {
        let mut is_other = false;
        let Self { context, providers, objects, secrets, logged, .. } = self;
        for (number, (objects, provider)) in objects.iter_mut().zip(providers.iter()).enumerate() {
            let rules = Rules { context, secrets, number, provider };
            let is_stale = |object: &Object| object.is_stale && object.fact.is_some();
            let stale = objects.all.iter().filter(|(_, object)| is_stale(object));
            let stale: Vec<String> = stale.map(|(id, _)| id.clone()).collect();
            for id in stale {
                let Some(fact) = objects.all.get(&id).and_then(|object| object.fact.as_ref())
                else {
                    continue;
                };
                let built = build_one(rules, objects, &fact.fact());
                logged.report(&built);
                if let Some(object) = objects.all.get_mut(&id) {
                    is_other |= object.set_built(built, now);
                }
            }
        }
        is_other
    }

    /// What the rules make of an object now, with the reasons; they are not kept, as they are seldom wanted.
    pub(crate) fn considered(&self, number: usize, object: &Object) -> Vec<Considered> {
        let (provider, objects) = (&self.providers[number], &self.objects[number]);
        let Self { context, secrets, .. } = self;
        let rules = Rules { context, secrets, number, provider };
        let fact = object.fact.as_ref().filter(|_| !object.is_stale);
        fact.map(|fact| build_one(rules, objects, &fact.fact()).events).unwrap_or_default()
    }

    fn arbitrate(&mut self) {
        let mut ordered: Vec<(usize, Option<Version>, &String, &Object)> = Vec::new();
        for (number, objects) in self.objects.iter().enumerate() {
            for (id, object) in &objects.all {
                if let Some(fact) = &object.fact {
                    ordered.push((number, fact.created, id, object));
                }
            }
        }
        ordered.sort_by(|left, right| (left.0, left.1, left.2).cmp(&(right.0, right.1, right.2)));
        let all: Vec<(usize, &Candidate)> = ordered
            .iter()
            .flat_map(|(number, _, _, object)| object.candidates().map(|it| (*number, &**it)))
            .collect();
        let present: BTreeSet<&str> =
            all.iter().map(|(_, candidate)| candidate.key.as_str()).collect();
        self.refused.retain(|key, _| present.contains(key.as_str()));
        self.warnings.retain(|key, _| present.contains(key.as_str()));
        let mut before: HashMap<String, Arc<Made>> =
            self.running.drain(..).map(|made| (made.key.clone(), made)).collect();
        let mut verdicts = HashMap::new();
        for ((number, candidate), verdict) in all.iter().zip(judge(&all, &self.refused)) {
            let place = (*number, candidate.key.clone());
            if verdict == Verdict::Runs {
                let known = before.remove(&candidate.key);
                self.running.push(made(candidate, known));
                continue;
            }
            if let Verdict::Refused(reason) = &verdict
                && self.verdicts.get(&place) != Some(&verdict)
            {
                tracing::warn!(
                    input = candidate.about,
                    reason,
                    "an input of autodiscover does not run"
                );
            }
            verdicts.insert(place, verdict);
        }
        self.verdicts = verdicts;
    }
}

/// The same input as before, if it was there with the same fields.
fn made(candidate: &Candidate, known: Option<Arc<Made>>) -> Arc<Made> {
    if let Some(known) = known {
        if known.fields == candidate.fields {
            return known;
        }
        let fields = candidate.fields.clone();
        return Arc::new(Made { fields, ..(*known).clone() });
    }
    Arc::new(Made {
        key: candidate.key.clone(),
        settings: Arc::clone(&candidate.settings),
        is_module: candidate.is_module,
        fields: candidate.fields.clone(),
        about: candidate.about.clone(),
    })
}

/// Whether inputs are made for such an object.
fn is_followed(own: &KubernetesProvider, fact: &Fact) -> bool {
    match fact {
        Fact::Leader(_) => own.unique.is_some(),
        _ if own.unique.is_some() => false,
        Fact::Pod(_) => own.resource == Resource::Pod,
        Fact::Node(_) => own.resource == Resource::Node,
        Fact::Service(_) => own.resource == Resource::Service,
        _ => false,
    }
}

fn seen_around(objects: &mut Objects, fact: &ShortFact) -> bool {
    let (kind, value) = match fact.kept.fact() {
        Fact::Node(value) => (AroundKind::Node, value),
        Fact::Namespace(value) => (AroundKind::Namespace, value),
        Fact::ReplicaSet(value) => (AroundKind::ReplicaSet, value),
        Fact::Job(value) => (AroundKind::Job, value),
        Fact::Cluster(value) => (AroundKind::Cluster, value),
        Fact::Docker(_)
        | Fact::Pod(_)
        | Fact::Service(_)
        | Fact::Leader(_)
        | Fact::Nomad(_)
        | Fact::Jolokia(_) => {
            return false;
        }
    };
    match objects.seen_around(kind, fact, &value) {
        Some(name) => concern(objects, kind, &name),
        None => false,
    }
}

/// What is around some pods changed.
fn concern(objects: &mut Objects, kind: AroundKind, name: &str) -> bool {
    objects.rebuild(|fact| {
        let (Fact::Pod(object) | Fact::Service(object) | Fact::Node(object)) = fact else {
            return false;
        };
        match kind {
            AroundKind::Cluster => true,
            AroundKind::Namespace => object["metadata"]["namespace"] == name,
            AroundKind::Node => object["spec"]["nodeName"] == name,
            AroundKind::ReplicaSet => owner_of(object, "ReplicaSet").as_deref() == Some(name),
            AroundKind::Job => owner_of(object, "Job").as_deref() == Some(name),
        }
    })
}

/// Namespace and name of an owner of this kind.
fn owner_of(object: &Json, kind: &str) -> Option<String> {
    let owner = kubernetes::owner(object, kind)?;
    Some(format!("{}/{owner}", text(&object["metadata"]["namespace"]).unwrap_or_default()))
}

/// Applies the rules to one object.
fn build_one(rules: Rules<'_>, objects: &Objects, fact: &Fact) -> Built {
    let name = name_of(fact);
    match events(rules.provider, objects, fact) {
        Ok(events) => rules.apply(&name, &events),
        Err(reason) => {
            let considered =
                Considered { about: name, notes: vec![reason], ..Considered::default() };
            Built { events: vec![considered], ..Built::default() }
        }
    }
}

fn events(provider: &Provider, objects: &Objects, fact: &Fact) -> Result<Vec<Event>, String> {
    let around = |object: &Json| Around {
        node: text(&object["spec"]["nodeName"])
            .and_then(|name| objects.around(AroundKind::Node, name)),
        namespace: text(&object["metadata"]["namespace"])
            .and_then(|name| objects.around(AroundKind::Namespace, name)),
        replica_set: owner_of(object, "ReplicaSet")
            .and_then(|name| objects.around(AroundKind::ReplicaSet, &name)),
        job: owner_of(object, "Job").and_then(|name| objects.around(AroundKind::Job, &name)),
        cluster: objects.around(AroundKind::Cluster, ""),
    };
    match (&provider.kind, fact) {
        (ProviderKind::Docker(own), Fact::Docker(object)) => {
            Ok(crate::docker::events(object, own.dedot))
        }
        (ProviderKind::Nomad(own), Fact::Nomad(object)) => {
            let prefix = provider.hints.as_ref().map(|hints| hints.prefix.as_str());
            crate::nomad::events(object, own, prefix)
        }
        (ProviderKind::Kubernetes(own), Fact::Pod(object)) => {
            kubernetes::pod_events(object, &own.metadata, around(object))
        }
        (ProviderKind::Kubernetes(own), Fact::Node(object)) => {
            kubernetes::node_events(object, &own.metadata, around(object))
        }
        (ProviderKind::Kubernetes(own), Fact::Service(object)) => {
            kubernetes::service_events(object, &own.metadata, around(object))
        }
        (ProviderKind::Kubernetes(_), Fact::Leader(id)) => Ok(kubernetes::leader_events(id)),
        (ProviderKind::Jolokia(_), Fact::Jolokia(agent)) => Ok(crate::jolokia::events(agent)),
        _ => Err("nothing is made for such an object".to_owned()),
    }
}

/// The name of an object, for messages.
pub(crate) fn name_of(fact: &Fact) -> String {
    match fact {
        Fact::Docker(object) => format!("container {}", crate::docker::name(object)),
        Fact::Nomad(object) => crate::nomad::name(object),
        Fact::Pod(object) => format!("pod {}", kubernetes::name(object)),
        Fact::Node(object) => format!("node {}", kubernetes::name(object)),
        Fact::Service(object) => format!("service {}", kubernetes::name(object)),
        Fact::Leader(_) => "the holder of the lease".to_owned(),
        Fact::Namespace(object) | Fact::ReplicaSet(object) | Fact::Job(object) => {
            kubernetes::name(object)
        }
        Fact::Jolokia(agent) => format!("Jolokia agent {}", crate::jolokia::id(agent)),
        Fact::Cluster(_) => "the cluster".to_owned(),
    }
}

/// What is known about the life of an object, for messages.
pub(crate) fn state_words(state: State) -> &'static str {
    match state {
        State::Alive => "there",
        State::Ending(_) => "ended; its inputs run until `cleanup_timeout` is over",
        State::Gone(_) => "gone",
    }
}
