//! Why which inputs run: for people, and as JSON.

use crate::arbitrate::Verdict;
use crate::objects::{Object, Objects, State};
use crate::provider::Provider;
use crate::state::{Autodiscover, name_of, state_words};
use crate::troubles::Trouble;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Every object that is known, the rules that matched it, and the inputs that they made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// In the order of the configuration.
    pub providers: Vec<ExplainedProvider>,
}

/// One provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedProvider {
    /// `docker`, `kubernetes` or `nomad`.
    pub kind: String,
    /// Where it stands: `filebeat.yml:3:5`.
    pub position: String,
    /// Why it learns of no changes now.
    #[serde(default)]
    pub troubles: Vec<ExplainedTrouble>,
    /// Sorted by id.
    pub objects: Vec<ExplainedObject>,
}

/// Why a provider learns of no changes now, or not of all, which it tries again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedTrouble {
    /// The last error.
    pub error: String,
    /// What to do; empty if there is nothing to advise.
    pub remedy: String,
    /// New containers are not seen; otherwise their events only lack metadata.
    pub blocks: bool,
}

/// A container, a pod, or another object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedObject {
    /// Its id.
    pub id: String,
    /// What it is: `pod shop/web-1`.
    pub name: String,
    /// Whether it is there.
    pub state: String,
    /// Each container and port of it.
    pub events: Vec<ExplainedEvent>,
    /// What the rules made.
    pub inputs: Vec<ExplainedInput>,
}

/// What the rules were applied to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedEvent {
    /// `container web of pod shop/web-1, port 80`.
    pub about: String,
    /// Which rules matched, which did not, and why.
    pub notes: Vec<String>,
}

/// An input that a rule made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExplainedInput {
    /// See [`Made::key`](crate::Made::key).
    pub key: String,
    /// The template (`filebeat.yml:7:9`), or `hints`.
    pub origin: String,
    /// Whether it runs.
    pub runs: bool,
    /// Why it does not run; empty if it does.
    pub reason: String,
    /// What is wrong with it although it runs.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Its configuration as YAML, with secrets replaced by `xxxxx`.
    pub configuration: String,
}

impl Autodiscover {
    /// An input runs, and something is wrong with its hints or its module. Each warning is logged once.
    pub fn warn(&mut self, key: &str, about: &str, warnings: Vec<String>) {
        if warnings.is_empty() {
            self.warnings.remove(key);
            return;
        }
        for warning in &warnings {
            if self.logged.is_new(warning) {
                tracing::warn!(input = about, warning, "an input of autodiscover has a mistake");
            }
        }
        self.warnings.insert(key.to_owned(), warnings);
    }

    /// Why which inputs run, as of the last [`Autodiscover::decide`] and what was refused since.
    pub fn explain(&self) -> Explanation {
        let all = self.providers.iter().zip(&self.objects).enumerate();
        let provider =
            |(number, (provider, objects)): (usize, (&Provider, &Objects))| ExplainedProvider {
                kind: provider.kind.name().to_owned(),
                position: provider.position.to_string(),
                troubles: self.explain_troubles(number),
                objects: objects
                    .all
                    .iter()
                    .filter(|(_, object)| !matches!(object.state, State::Gone(_)))
                    .map(|(id, object)| self.explain_object(number, id, object))
                    .collect(),
            };
        Explanation { providers: all.map(provider).collect() }
    }

    fn explain_troubles(&self, number: usize) -> Vec<ExplainedTrouble> {
        let troubles = self.troubles.get(number).into_iter().flat_map(BTreeMap::values).cloned();
        let explained =
            |Trouble { error, remedy, blocks }| ExplainedTrouble { error, remedy, blocks };
        troubles.map(explained).collect()
    }

    fn explain_object(&self, number: usize, id: &str, object: &Object) -> ExplainedObject {
        let events = self.considered(number, object);
        ExplainedObject {
            id: id.to_owned(),
            name: object.fact.as_ref().map(|fact| name_of(&fact.fact())).unwrap_or_default(),
            state: state_words(object.state).to_owned(),
            events: events
                .into_iter()
                .map(|event| ExplainedEvent { about: event.about, notes: event.notes })
                .collect(),
            inputs: object
                .candidates()
                .map(|candidate| {
                    let reason = match self.verdicts.get(&(number, candidate.key.clone())) {
                        Some(Verdict::Same(reason) | Verdict::Refused(reason)) => reason.clone(),
                        // It may have been refused since then.
                        Some(Verdict::Runs) | None => {
                            self.refused.get(&candidate.key).cloned().unwrap_or_default()
                        }
                    };
                    ExplainedInput {
                        key: candidate.key.clone(),
                        origin: candidate.origin.clone(),
                        runs: reason.is_empty(),
                        reason,
                        warnings: self.warnings.get(&candidate.key).cloned().unwrap_or_default(),
                        configuration: candidate.configuration(self.context.inputs),
                    }
                })
                .collect(),
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for provider in &self.providers {
            writeln!(out, "provider {} ({})", provider.kind, provider.position)?;
            for trouble in &provider.troubles {
                let mark = if trouble.blocks { '!' } else { '-' };
                writeln!(out, "  {mark} {}; it is tried again", trouble.error)?;
                for line in trouble.remedy.lines() {
                    writeln!(out, "    → {line}")?;
                }
            }
            if provider.objects.is_empty() {
                writeln!(out, "  knows no containers")?;
            }
            for object in &provider.objects {
                writeln!(out, "\n  {} ({}), {}", object.name, object.id, object.state)?;
                for event in &object.events {
                    writeln!(out, "    {}", event.about)?;
                    for note in &event.notes {
                        writeln!(out, "      {note}")?;
                    }
                }
                if object.inputs.is_empty() {
                    writeln!(out, "    no input")?;
                }
                for input in &object.inputs {
                    let state = if input.runs { "runs" } else { "does not run" };
                    writeln!(out, "    input of {}: {state}", input.origin)?;
                    for line in input.reason.lines() {
                        writeln!(out, "      {line}")?;
                    }
                    for line in input.warnings.iter().flat_map(|warning| warning.lines()) {
                        writeln!(out, "      warning: {line}")?;
                    }
                    for line in input.configuration.lines() {
                        writeln!(out, "      | {line}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
