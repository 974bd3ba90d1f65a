//! Inputs for containers and pods, which begin and end while the program runs.
//!
//! Watchers report what there is; [`Autodiscover`] decides which inputs should run; here they are read and switched. An
//! input of a container that is gone ends when its files are read to their end and all of it is settled, so that
//! nothing is lost behind a slow output.

use super::Running;
use super::changes::Exchange;
use super::remembered::Remembered;
use crate::assemble::Parts;
use crate::idle::IDLE;
use crate::input_print::InputPrint;
use crate::input_reader::{Found, InputReader, acquaint, feeding};
use crate::inputs::Input;
use crate::made_fields::MadeFields;
use crate::modules::{ModulePipelines, ModuleRenderer, Started};
use crate::watchers::{News, Watchers, What};
use serde_json::json;
use skidder_autodiscover::{
    Autodiscover, Made, Saved, Trouble, WantedSecret, is_of_hint, is_unknown_hint, with_hints,
};
use skidder_config::{Node, Problem, Problems, Settings, Severity};
use skidder_input_file::Ending;
use skidder_modules::{FILESET_NAME, MODULE_NAME};
use skidder_observe::{Explain, ProviderTrouble};
use skidder_os::Monotonic;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers of made inputs begin here: those below are of the configuration.
pub(super) const MADE_NUMBERS: usize = 1 << 16;

/// Which inputs autodiscover has made.
pub(crate) struct Discovery {
    machine: Arc<Mutex<Autodiscover>>,
    watchers: Watchers,
    /// For which objects there are inputs, for the next run.
    remembered: Remembered,
    /// Those that run, by their keys.
    running: BTreeMap<String, RunningMade>,
    /// The ids of those that are `filestream` inputs.
    ids: HashSet<Arc<str>>,
    /// Those that end, by their keys: of how many outputs.
    ending: BTreeMap<String, usize>,
    /// Secrets that were requested and are not there yet.
    requested: BTreeSet<WantedSecret>,
    next_number: usize,
    /// What should run may be different from what runs.
    is_changed: bool,
    /// An input has ended, which another one may have waited for.
    has_ended: bool,
    /// Which judgement of the machine is carried out.
    judged: u64,
}

/// A made input that runs.
struct RunningMade {
    number: usize,
    made: Arc<Made>,
    fields: MadeFields,
    /// Its id, if it is a `filestream` input.
    id: Option<Arc<str>>,
    /// What it is for each output: the place of the output, and the print there.
    prints: Vec<(usize, InputPrint)>,
    /// What was wrong when it was read, until that is reported.
    warnings: Vec<String>,
}

/// What made inputs are read with.
pub(crate) struct Readers {
    /// One for each output.
    of_outputs: Vec<InputReader>,
    /// The ids of the `filestream` inputs of the configuration.
    ids: HashSet<String>,
    /// `compat: lenient`.
    is_lenient: bool,
    /// Renders modules that hints name, if there is a folder of them.
    renderer: Option<ModuleRenderer>,
    /// Where their pipelines go.
    pub(crate) pipelines: Arc<ModulePipelines>,
}

impl Readers {
    /// Takes those of a configuration.
    pub(crate) fn take(parts: &mut Parts) -> Self {
        Self {
            of_outputs: std::mem::take(&mut parts.readers),
            ids: std::mem::take(&mut parts.input_ids),
            is_lenient: parts.is_lenient,
            renderer: parts.renderer.take(),
            pipelines: Arc::clone(&parts.pipelines),
        }
    }

    /// For what is wrong with an input; as severe as in the configuration.
    fn problems(&self) -> Problems {
        let problems = Problems::new();
        problems.set_lenient(self.is_lenient);
        problems.set_idle(IDLE);
        problems
    }
}

/// Inputs that end and begin together: those of one container.
#[derive(Default)]
struct Switch {
    end: Vec<String>,
    begin: Vec<Arc<Made>>,
}

impl Discovery {
    /// Over the providers of `machine`, which the watchers follow; objects of the last run are `remembered`.
    pub(super) fn new(
        machine: Arc<Mutex<Autodiscover>>,
        watchers: Watchers,
        remembered: Remembered,
    ) -> Self {
        for saved in remembered.all() {
            if !lock(&machine).remember(saved) {
                tracing::debug!(id = saved.id, "no provider makes inputs for this object now");
            }
        }
        Self {
            machine,
            watchers,
            remembered,
            running: BTreeMap::new(),
            ids: HashSet::new(),
            ending: BTreeMap::new(),
            requested: BTreeSet::new(),
            next_number: MADE_NUMBERS,
            is_changed: true,
            has_ended: false,
            judged: 0,
        }
    }

    /// When to call [`Self::step`] at the latest.
    pub(crate) fn due(&self) -> Option<Monotonic> {
        lock(&self.machine).wakes_at()
    }

    /// These inputs have ended for one output.
    pub(crate) fn ended(&mut self, keys: &[String]) {
        for key in keys {
            if let Some(outputs) = self.ending.get_mut(key) {
                *outputs -= 1;
                if *outputs == 0 {
                    self.ending.remove(key);
                    (self.is_changed, self.has_ended) = (true, true);
                }
            }
        }
    }

    /// Takes what the watchers report, and ends and begins inputs.
    pub(crate) fn step(&mut self, with: &Readers, running: &mut Running, now: Monotonic) {
        let shared = Arc::clone(&self.machine);
        let mut machine = lock(&shared);
        let mut is_listed = false;
        for News { provider, what } in self.watchers.take() {
            self.is_changed = true;
            is_listed |= matches!(what, What::Listed(_));
            match what {
                What::Seen(fact) => machine.seen(provider, fact, now),
                What::Gone(id, Some(version)) => machine.gone_at(provider, &id, &version, now),
                What::Gone(id, None) => machine.gone(provider, &id, now),
                What::Listed(ids) => machine.listed(provider, &ids, now),
                What::Trouble(about, trouble) => machine.set_trouble(provider, &about, trouble),
                What::Secret(secret, answer) => {
                    self.requested.remove(&secret);
                    machine.secret(secret, answer);
                }
                What::SecretIsDue(secret) => {
                    self.requested.remove(&secret);
                    if machine.named_secrets().contains(&secret) {
                        self.requested.insert(secret.clone());
                        self.watchers.request(secret);
                    }
                }
            }
        }
        let is_due = machine.wakes_at().is_some_and(|at| at <= now);
        if !std::mem::take(&mut self.is_changed) && !is_due {
            return;
        }
        let wanted = machine.decide(now);
        for secret in machine.wanted_secrets() {
            if self.requested.insert(secret.clone()) {
                self.watchers.request(secret);
            }
        }
        let to_remember = machine.to_remember();
        let judged = machine.judgements();
        drop(machine);
        // Before they begin: a crash may come at any time.
        self.remember(to_remember);
        let is_judged = std::mem::replace(&mut self.judged, judged) != judged;
        if is_judged | std::mem::take(&mut self.has_ended) {
            for switch in self.switches(&wanted) {
                self.switch(switch, with, running);
            }
        }
        let (running, ending) = (&self.running, &self.ending);
        with.pipelines.retain(|key| running.contains_key(key) || ending.contains_key(key));
        if is_listed {
            // A list is some kilobytes for each pod until it is read.
            crate::allocator::give_back();
        }
    }

    /// Saves for which objects there are inputs that run or end.
    fn remember(&mut self, with_inputs: Vec<Saved>) {
        let keys = self.running.keys().chain(self.ending.keys());
        let ids: HashSet<&str> = keys.map(|key| id_of(key)).collect();
        self.remembered.update(with_inputs, &|id| ids.contains(id));
    }

    /// What is to change, by container; what waits for the end of an input is left out.
    fn switches(&self, wanted: &[Arc<Made>]) -> Vec<Switch> {
        let keys: BTreeSet<&str> = wanted.iter().map(|made| made.key.as_str()).collect();
        let mut switches: BTreeMap<&str, Switch> = BTreeMap::new();
        for key in self.running.keys().filter(|key| !keys.contains(key.as_str())) {
            switches.entry(object_of(key)).or_default().end.push(key.clone());
        }
        for made in wanted {
            match self.running.get(&made.key) {
                Some(running) => {
                    running.fields.set(&made.fields);
                }
                None => {
                    switches.entry(object_of(&made.key)).or_default().begin.push(Arc::clone(made));
                }
            }
        }
        let is_ending = |object: &str| self.ending.keys().any(|key| object_of(key) == object);
        switches.retain(|object, switch| switch.begin.is_empty() || !is_ending(object));
        switches.into_values().collect()
    }

    /// Ends and begins inputs of a container.
    fn switch(&mut self, switch: Switch, with: &Readers, running: &mut Running) {
        let mut exchanges: BTreeMap<usize, Exchange> = BTreeMap::new();
        // What another input goes on with is not read to its end.
        let ending = if switch.begin.is_empty() { Ending::WhenRead } else { Ending::Now };
        for key in switch.end {
            let Some(ended) = self.running.remove(&key) else { continue };
            if let Some(id) = &ended.id {
                self.ids.remove(id);
            }
            tracing::info!(input = ended.made.about, "an input ends: what it is for is gone");
            if !ended.prints.is_empty() {
                self.ending.insert(key.clone(), ended.prints.len());
            }
            for (output, print) in ended.prints {
                let exchange = exchanges.entry(output).or_default();
                exchange.end.push(print);
                exchange.keys.push(key.clone());
            }
        }
        for made in switch.begin {
            let number = self.next_number;
            self.next_number += 1;
            let fields = MadeFields::new(&made.fields);
            match self.read(&made, number, fields, with) {
                Ok((inputs, begun)) => {
                    tracing::info!(input = made.about, "an input begins");
                    self.insert(made.key.clone(), begun);
                    for (output, input) in inputs {
                        exchanges.entry(output).or_default().begin.push(input);
                    }
                }
                Err(why) => self.refuse(&made.key, why),
            }
        }
        if let Err(error) = running.exchange(exchanges, ending) {
            tracing::error!(%error, "inputs of autodiscover cannot begin");
        }
    }

    fn insert(&mut self, key: String, mut begun: RunningMade) {
        let warnings = std::mem::take(&mut begun.warnings);
        lock(&self.machine).warn(&key, &begun.made.about, warnings);
        self.ids.extend(begun.id.clone());
        self.running.insert(key, begun);
    }

    /// An input does not run, which the next decision logs.
    fn refuse(&mut self, key: &str, why: String) {
        self.is_changed = true;
        lock(&self.machine).refuse(key, why);
    }

    /// All that run, read anew for each output: for a reload.
    pub(crate) fn anew(&mut self, with: &Readers) -> Vec<(usize, Input)> {
        let mut all = Vec::new();
        self.ids.clear();
        for (key, before) in std::mem::take(&mut self.running) {
            let made = Arc::clone(&before.made);
            // What goes on has these fields, and they may change later.
            match self.read(&made, before.number, before.fields, with) {
                Ok((inputs, begun)) => {
                    all.extend(inputs);
                    self.insert(key, begun);
                }
                Err(why) => self.refuse(&key, why),
            }
        }
        all
    }

    /// Reads a made input for each output that it feeds.
    fn read(
        &self,
        made: &Arc<Made>,
        number: usize,
        fields: MadeFields,
        with: &Readers,
    ) -> Result<(Vec<(usize, Input)>, RunningMade), String> {
        let (mut inputs, mut warnings) = (Vec::new(), Vec::new());
        let mut id = None;
        let mut is_new = |of: &str| {
            id = Some(Arc::from(of));
            !with.ids.contains(of) && !self.ids.contains(of)
        };
        let own = Arc::new(made.settings.settings());
        let rendered = match (made.is_module, &with.renderer) {
            (true, Some(renderer)) => Some(render(renderer, &own, &with.problems())?),
            (true, None) => {
                return Err("it is a module, and there is no folder of modules".to_owned());
            }
            (false, _) => None,
        };
        let lists = match &rendered {
            Some(started) => &started.inputs[..],
            None => std::slice::from_ref(&own),
        };
        for (output, reader) in with.of_outputs.iter().enumerate() {
            let (mut found, mut mistakes) = (Vec::new(), Vec::new());
            for list in lists {
                let problems = with.problems();
                for item in list.items(&problems) {
                    if let Found::Input(mut input, feeds) =
                        reader.read(&item, number, &mut is_new, Some(&fields))
                    {
                        input.object = Some(made.object().to_owned());
                        found.push((*input, feeds));
                    }
                }
                let sorted = problems.sorted().into_iter();
                mistakes.extend(sorted.map(|problem| with_hints(list, problem)));
            }
            for mistake in mistakes.iter_mut().filter(|mistake| is_unknown_hint(mistake)) {
                mistake.severity = Severity::Warning;
            }
            if mistakes.iter().any(|mistake| mistake.severity == Severity::Error) {
                return Err(text_of(&mistakes));
            }
            let of_hints =
                mistakes.into_iter().filter(is_of_hint).map(|mistake| text_of(&[mistake]));
            warnings.extend(of_hints.filter(|_| output == 0));
            let feeding = feeding(found, reader.output);
            inputs.extend(feeding.into_iter().map(|input| (output, input)));
        }
        warnings.extend(rendered.iter().flat_map(|started| lost_multiline(&started.inputs)));
        // Before the first event that names one.
        let filesets = rendered.map(|started| started.filesets).unwrap_or_default();
        with.pipelines.add(&made.key, &made.about, filesets);
        acquaint(inputs.iter_mut().map(|(_, input)| input));
        let prints = inputs.iter().map(|(output, input)| (*output, input.print)).collect();
        let made = Arc::clone(made);
        Ok((inputs, RunningMade { number, made, fields, id, prints, warnings }))
    }
}

/// What is wrong, in one line for each problem and each hint.
fn text_of(problems: &[Problem]) -> String {
    let text = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    let severities = ["error: ", "warning: "];
    let bare = |line| severities.iter().find_map(|start| str::strip_prefix(line, start));
    text.lines().map(|line| bare(line).unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// The `multiline` of filesets whose input ignores it, as the `filestream` of hints does.
fn lost_multiline(of_modules: &[Arc<Settings>]) -> Vec<String> {
    let lost = |list: &Arc<Settings>| {
        let input = list.node().at("0")?;
        let text = |key| input.at(key).and_then(Node::text).unwrap_or_default();
        let has = |key| input.at(key).and_then(Node::as_map).is_some_and(|map| !map.is_empty());
        let parsers = input.at("parsers").and_then(Node::as_list).unwrap_or_default();
        let is_given = parsers.iter().any(|parser| parser.at("multiline").is_some());
        (text("type") == "filestream" && has("multiline") && !is_given).then(|| {
            format!(
                "`multiline` of the fileset `{}/{}` is not applied, since its input is a `filestream`: each line becomes \
                 an event\nhint: add the hints `multiline.pattern`, `multiline.negate` and `multiline.match`",
                text(MODULE_NAME.name()),
                text(FILESET_NAME.name()),
            )
        })
    };
    of_modules.iter().filter_map(lost).collect()
}

/// The machine, which the endpoint looks at, too.
pub(crate) fn lock(machine: &Mutex<Autodiscover>) -> MutexGuard<'_, Autodiscover> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers why which inputs of autodiscover run.
pub(super) fn explain(machine: Arc<Mutex<Autodiscover>>) -> Explain {
    let (shared, other) = (Arc::clone(&machine), Arc::clone(&machine));
    let troubles = move || {
        let troubles = lock(&other).troubles().into_iter();
        troubles
            .map(|(provider, Trouble { error, remedy, blocks })| ProviderTrouble {
                provider,
                error,
                remedy,
                blocks,
            })
            .collect()
    };
    let failures = move || {
        let failures = lock(&shared).failures();
        failures.into_iter().map(|failure| (failure.about, failure.reason)).collect()
    };
    Explain {
        explain: Arc::new(move || json!(lock(&machine).explain())),
        failures: Arc::new(failures),
        troubles: Arc::new(troubles),
    }
}

/// The inputs of a module that hints name.
fn render(
    renderer: &ModuleRenderer,
    settings: &Arc<Settings>,
    problems: &Problems,
) -> Result<Started, String> {
    let started = renderer.render(settings, problems);
    if problems.has_errors() {
        let named = problems.sorted().into_iter().map(|problem| with_hints(settings, problem));
        return Err(text_of(&named.collect::<Vec<_>>()));
    }
    Ok(started)
}

/// The container or other object that a made input is for: its key without the hash of the configuration.
fn object_of(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(object, _)| object)
}

/// The id of the pod or container that a made input is for: `kubernetes/UID.CONTAINER/HASH`, `docker/ID/HASH`.
fn id_of(key: &str) -> &str {
    let object = object_of(key);
    let id = object.split_once('/').map_or(object, |(_, id)| id);
    id.split('.').next().unwrap_or(id)
}
