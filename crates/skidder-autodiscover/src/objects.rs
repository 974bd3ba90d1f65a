//! The known objects of one provider, each with its newest fact.

use crate::candidates::{Built, Candidate};
use crate::fact::{Fact, Version};
use crate::kept::{KeptFact, ShortFact};
use crate::limits::OBJECTS_MAX;
use crate::secrets::WantedSecret;
use serde_json::{Value as Json, json};
use skidder_os::Monotonic;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// How long an object that is gone is remembered, so that a late fact does not bring it back.
const REMEMBERED: Duration = Duration::from_mins(10);

/// Whether an object is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    /// It ended then; its inputs run on for `cleanup_timeout`.
    Ending(Monotonic),
    /// Its inputs do not run.
    Gone(Monotonic),
}

/// Why an input does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What it is for: `container web of pod shop/web-1`.
    pub about: String,
    /// The reason, with what to do.
    pub reason: String,
}

/// An object.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) version: Option<Version>,
    pub(crate) state: State,
    /// `None` if the object is gone.
    pub(crate) fact: Option<KeptFact>,
    /// The inputs that the rules made of it the last time.
    pub(crate) inputs: Box<[Arc<Candidate>]>,
    /// Secrets that were named then.
    pub(crate) secrets: Box<[WantedSecret]>,
    /// Why an input of it does not run, of those that the rules could not make; the first reason.
    pub(crate) failure: Option<Box<Failure>>,
    /// The rules have to be applied again.
    pub(crate) is_stale: bool,
    /// Inputs of containers of a pod that were replaced; they run on for `cleanup_timeout`, as their last lines may not
    /// be read yet.
    pub(crate) leaving: Vec<(Arc<Candidate>, Monotonic)>,
}

impl Object {
    fn new(version: Option<Version>, state: State, fact: Option<KeptFact>) -> Self {
        let (inputs, secrets, leaving) = (Box::default(), Box::default(), Vec::new());
        Self { version, state, fact, inputs, secrets, failure: None, is_stale: true, leaving }
    }

    /// Takes over what the rules made of the newest fact; returns whether these are other inputs than before.
    pub(crate) fn set_built(&mut self, built: Built, now: Monotonic) -> bool {
        let is_same = self.inputs.len() == built.candidates.len()
            && self.inputs.iter().zip(&built.candidates).all(|(old, new)| old.is_same(new));
        let leaving = self.leaving.len();
        let has = |container: &str| built.containers.contains(container);
        for old in &self.inputs {
            if !old.container_id.is_empty() && !has(&old.container_id) {
                self.leaving.push((Arc::clone(old), now));
            }
        }
        self.leaving.retain(|(old, _)| !has(&old.container_id));
        self.leaving.shrink_to_fit();
        self.inputs = built.candidates.into();
        self.secrets = built.secrets.into_iter().collect();
        self.failure = built.events.into_iter().find_map(|event| {
            let reason = event.failures.into_iter().next()?;
            Some(Box::new(Failure { about: event.about, reason }))
        });
        self.is_stale = false;
        !is_same || self.leaving.len() != leaving
    }

    /// Its inputs, before objects are compared.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Arc<Candidate>> {
        let leaving = self.leaving.iter().map(|(old, _)| old);
        self.inputs.iter().chain(leaving).filter(|_| self.fact.is_some())
    }
}

/// Kinds of objects around a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AroundKind {
    Node,
    Namespace,
    ReplicaSet,
    Job,
    Cluster,
}

#[derive(Debug)]
struct AroundObject {
    id: String,
    version: Option<Version>,
    /// `None` if it is gone.
    value: Option<Json>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) all: BTreeMap<String, Object>,
    around: BTreeMap<(AroundKind, String), AroundObject>,
    /// Objects that had inputs in the last run, until the first list says which of them are there.
    pub(crate) remembered: BTreeMap<String, KeptFact>,
    is_full: bool,
}

impl Objects {
    /// A fact about an object that inputs are made for. `true` if something changed.
    pub(crate) fn seen(&mut self, fact: ShortFact, now: Monotonic) -> bool {
        let ShortFact { id, version, is_over, kept } = fact;
        let Some(object) = self.all.get_mut(&id) else {
            if self.is_bound_reached() {
                return false;
            }
            let state = if is_over { State::Gone(now) } else { State::Alive };
            let fact = (!is_over).then_some(kept);
            self.all.insert(id, Object::new(version, state, fact));
            return !is_over;
        };
        if let (Some(new), Some(known)) = (version, object.version)
            && (new < known || new == known && object.state != State::Alive)
        {
            return false;
        }
        object.version = version.or(object.version);
        if is_over {
            return end(object, now);
        }
        let is_same = object.fact.as_ref().is_some_and(|known| known.is_same(&kept));
        if is_same && object.state == State::Alive {
            // Only what no rule can name has changed.
            return false;
        }
        object.state = State::Alive;
        object.fact = Some(kept);
        object.is_stale = true;
        true
    }

    /// The object ended, at `version` if that is known.
    pub(crate) fn gone(&mut self, id: &str, version: Option<Version>, now: Monotonic) -> bool {
        let Some(object) = self.all.get_mut(id) else {
            if version.is_some() && !self.is_bound_reached() {
                let object = Object::new(version, State::Gone(now), None);
                self.all.insert(id.to_owned(), object);
            }
            return false;
        };
        if let (Some(end), Some(known)) = (version, object.version)
            && end < known
        {
            return false;
        }
        object.version = version.max(object.version);
        end(object, now)
    }

    /// These objects are there, and no others.
    pub(crate) fn listed(&mut self, ids: &[String], now: Monotonic) -> bool {
        let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
        let mut changed = false;
        for (id, fact) in std::mem::take(&mut self.remembered) {
            let is_here = ids.contains(id.as_str()) || self.all.contains_key(&id);
            if !is_here && !self.is_bound_reached() {
                tracing::info!(
                    id,
                    "a container is gone since the last run; the rest of its log is read"
                );
                self.all.insert(id, Object::new(None, State::Ending(now), Some(fact)));
                changed = true;
            }
        }
        for (id, object) in &mut self.all {
            match (ids.contains(id.as_str()), object.state) {
                (false, State::Alive) => changed |= end(object, now),
                (true, State::Ending(_)) => {
                    object.state = State::Alive;
                    changed = true;
                }
                _ => {}
            }
        }
        changed
    }

    /// Ends inputs whose `cleanup_timeout` is over, and forgets old objects. `true` if inputs ended.
    pub(crate) fn expire(&mut self, cleanup: Duration, now: Monotonic) -> bool {
        let mut changed = false;
        for object in self.all.values_mut() {
            if let State::Ending(since) = object.state
                && now >= since + cleanup
            {
                object.state = State::Gone(since + cleanup);
                object.fact = None;
                (object.inputs, object.secrets) = (Box::default(), Box::default());
                object.failure = None;
                object.leaving.clear();
                changed = true;
            }
            let before = object.leaving.len();
            object.leaving.retain(|(_, since)| now < *since + cleanup);
            changed |= object.leaving.len() < before;
        }
        let before = self.all.len();
        self.all
            .retain(|_, object| !matches!(object.state, State::Gone(at) if now >= at + REMEMBERED));
        if self.all.len() < before {
            self.is_full = false;
        }
        changed
    }

    /// When the next `cleanup_timeout` ends.
    pub(crate) fn wakes_at(&self, cleanup: Duration) -> Option<Monotonic> {
        let ends = self.all.values().flat_map(|object| {
            let own = match object.state {
                State::Ending(since) => Some(since),
                _ => None,
            };
            own.into_iter().chain(object.leaving.iter().map(|(_, since)| *since))
        });
        ends.min().map(|since| since + cleanup)
    }

    /// A fact about an object around pods. Returns its kind and name if it changed.
    pub(crate) fn seen_around(
        &mut self,
        kind: AroundKind,
        fact: &ShortFact,
        value: &Json,
    ) -> Option<String> {
        let name = around_name(kind, value);
        let value = reduced(kind, value);
        let (id, version) = (fact.id.clone(), fact.version);
        let is_known = self.around.contains_key(&(kind, name.clone()));
        if !is_known && self.around.len() >= OBJECTS_MAX {
            return None;
        }
        let known = self.around.entry((kind, name.clone())).or_insert(AroundObject {
            id: id.clone(),
            version: None,
            value: None,
        });
        if let (Some(new), Some(old)) = (version, known.version)
            && (new < old || new == old && known.value.is_none())
        {
            return None;
        }
        (known.id, known.version) = (id, version.or(known.version));
        if known.value.as_ref() == Some(&value) {
            return None;
        }
        known.value = Some(value);
        Some(name)
    }

    /// An object around pods is gone. Returns its kind and name if it was there.
    pub(crate) fn gone_around(
        &mut self,
        id: &str,
        version: Option<Version>,
    ) -> Option<(AroundKind, String)> {
        let (key, object) = self.around.iter_mut().find(|(_, object)| object.id == id)?;
        if let (Some(end), Some(known)) = (version, object.version)
            && end < known
        {
            return None;
        }
        object.version = version.max(object.version);
        object.value.take().map(|_| key.clone())
    }

    /// An object around pods.
    pub(crate) fn around(&self, kind: AroundKind, name: &str) -> Option<&Json> {
        self.around.get(&(kind, name.to_owned()))?.value.as_ref()
    }

    /// What the rules made of all objects has to be made again.
    pub(crate) fn rebuild(&mut self, concerned: impl Fn(&Fact) -> bool) -> bool {
        let mut changed = false;
        for object in self.all.values_mut() {
            if object.fact.as_ref().is_some_and(|fact| concerned(&fact.fact())) {
                object.is_stale = true;
                changed = true;
            }
        }
        changed
    }

    fn is_bound_reached(&mut self) -> bool {
        if self.all.len() < OBJECTS_MAX {
            return false;
        }
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!(
                bound = OBJECTS_MAX,
                "too many containers or pods: further ones get no inputs"
            );
        }
        true
    }
}

fn end(object: &mut Object, now: Monotonic) -> bool {
    if object.state != State::Alive {
        return false;
    }
    object.state = State::Ending(now);
    true
}

fn around_name(kind: AroundKind, value: &Json) -> String {
    match kind {
        AroundKind::Cluster => String::new(),
        AroundKind::Node | AroundKind::Namespace => {
            value["metadata"]["name"].as_str().unwrap_or_default().to_owned()
        }
        AroundKind::ReplicaSet | AroundKind::Job => crate::kubernetes::name(value),
    }
}

/// What counts of an object: its heartbeats change nothing.
fn reduced(kind: AroundKind, value: &Json) -> Json {
    if kind == AroundKind::Cluster {
        return value.clone();
    }
    let meta = &value["metadata"];
    let mut reduced = json!({ "metadata": {
        "name": meta["name"], "uid": meta["uid"], "labels": meta["labels"], "annotations": meta["annotations"],
        "ownerReferences": meta["ownerReferences"],
    } });
    if kind == AroundKind::Node {
        reduced["status"] = json!({ "addresses": value["status"]["addresses"] });
    }
    reduced
}
