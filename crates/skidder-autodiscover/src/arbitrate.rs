//! Which of all inputs run: no configuration twice, no id twice, no container's log twice.
//!
//! The result depends only on the order of the candidates, which is that of the creation of their objects. So a new
//! container never takes the place of an older one.

use crate::candidates::{Candidate, HINTS};
use std::collections::{BTreeMap, HashMap};

/// What becomes of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Runs,
    /// The same configuration runs already for another object; nothing is lost.
    Same(String),
    Refused(String),
}

/// A candidate and its provider.
pub(crate) type Entry<'a> = (usize, &'a Candidate);

/// Judges all candidates, in their order. `refused` are the keys that were refused when their settings were read.
pub(crate) fn judge(all: &[Entry<'_>], refused: &BTreeMap<String, String>) -> Vec<Verdict> {
    let mut judge = Judge::default();
    all.iter().map(|entry| judge.judge(*entry, refused)).collect()
}

/// How two inputs get different ids.
fn advice(first: &Candidate, second: &Candidate) -> &'static str {
    let is_same = first.container_id == second.container_id && !first.container_id.is_empty();
    match (first.origin == HINTS && second.origin == HINTS, is_same) {
        // Hints add to one `default_config`, which has one id.
        (true, true) => {
            "numbered sets of hints get no ids of their own: write these inputs, each with its `id`, as a list in the \
             hint `raw`"
        }
        (false, true) => "give each input of the container its own `id`",
        (_, false) if first.key.starts_with("nomad/") => {
            "make it unique: `id: …-${data.nomad.allocation.id}-${data.nomad.task.name}`"
        }
        (_, false) => "make it unique: `id: …-${data.container.id}`",
    }
}

#[derive(Default)]
struct Judge<'a> {
    hashes: HashMap<u128, &'a Candidate>,
    ids: HashMap<&'a str, &'a Candidate>,
    /// Who reads the log of a container.
    logs: HashMap<(&'a str, &'a str), Vec<Reading<'a>>>,
}

struct Reading<'a> {
    rule: (usize, usize),
    stream: &'a str,
    candidate: &'a Candidate,
}

impl<'a> Judge<'a> {
    fn judge(
        &mut self,
        (provider, candidate): Entry<'a>,
        refused: &BTreeMap<String, String>,
    ) -> Verdict {
        if let Some(first) = self.hashes.get(&candidate.hash) {
            return Verdict::Same(format!("the same configuration runs for {}", first.about));
        }
        if let Some(why) = refused.get(&candidate.key) {
            return Verdict::Refused(why.clone());
        }
        let id = candidate.input_id.as_deref();
        if let Some(first) = id.and_then(|id| self.ids.get(id)) {
            let what = format!(
                "the id `{}` is that of {}, which has another configuration",
                candidate.shown_id(),
                first.about
            );
            return Verdict::Refused(format!("{what}; {}", advice(first, candidate)));
        }
        let rule = (provider, candidate.rank);
        for (file, stream) in &candidate.files {
            let readers = self.logs.get(&(candidate.container_id.as_str(), file.as_str()));
            let other = readers.into_iter().flatten().find(|other| {
                let overlaps = other.stream == stream || other.stream == "all" || stream == "all";
                let is_alone = candidate.reads_alone && other.candidate.reads_alone;
                (other.rule != rule || is_alone) && overlaps
            });
            if let Some(other) = other.filter(|other| other.rule == rule) {
                return Verdict::Refused(format!(
                    "the log of the container is read by {}, and only one input of the types `container` and `log` \
                     can read a file; use the type `filestream` with an `id` for each",
                    other.candidate.about
                ));
            }
            if let Some(other) = other {
                return Verdict::Refused(format!(
                    "the log of the container is read by {}; to read it twice, put both inputs into the `config` of \
                     one template",
                    other.candidate.about
                ));
            }
        }
        self.hashes.insert(candidate.hash, candidate);
        if let Some(id) = id {
            self.ids.insert(id, candidate);
        }
        for (file, stream) in &candidate.files {
            let readers =
                self.logs.entry((candidate.container_id.as_str(), file.as_str())).or_default();
            readers.push(Reading { rule, stream, candidate });
        }
        Verdict::Runs
    }
}
