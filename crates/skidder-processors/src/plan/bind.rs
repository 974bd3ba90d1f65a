//! Binding: walks the list once with the fields of a source, does the work that is the same for all
//! its events, and keeps the rest.
//!
//! A step is folded into the constants if its condition can be decided from them and no event can
//! have anything of its own at the fields it reads or writes. If events can, but usually have not, it
//! is folded as well and kept behind a guard: on the events that do have something of their own there
//! the fold is taken back and the step runs as if it had never been done. Everything else runs on
//! every event, over the layer at that point of the list.

use super::bound::{BoundPlan, BoundStep, Folded, Guard, GuardFilter, Guards};
use super::compiled::{Compiled, FailureCount};
use super::constants::Constants;
use super::footprint::{Footprint, Touched};
use super::forms::Forms;
use super::join::{is_same_over, join, join_inside};
use super::note::{Fate, StepNote};
use super::processor::Processor;
use super::rehearse::probe;
use super::shared::Uniform;
use crate::condition::Condition;
use crate::plan::Shape;
use skidder_event::{Base, Path};
use std::sync::{Arc, LazyLock};

/// Fields of each row's own, never in a base.
static ROW_FIELDS: LazyLock<[Path; 3]> = LazyLock::new(|| {
    ["message", "@timestamp", "log.offset"].map(|name| Path::parse(name).expect("a constant path"))
});

/// What the lines of some sources have besides: notes about the line, and an id.
static LINE_FIELDS: LazyLock<[Path; 2]> = LazyLock::new(|| {
    ["log.flags", "@metadata._id"].map(|name| Path::parse(name).expect("a constant path"))
});

pub(crate) struct Binder {
    constants: Constants,
    /// The layer of `constants`, made at its first use.
    base: Option<Arc<Base>>,
    touched: Touched,
    steps: Vec<BoundStep>,
    /// The fields that each of the steps reads and writes, if known.
    paths: Vec<Option<Vec<Path>>>,
    drops: bool,
    /// The layer before all processors, if parsers need it.
    input_base: Option<Arc<Base>>,
    /// Every event is dropped before the rest of the list.
    ended: bool,
    notes: Option<Vec<StepNote>>,
    /// The constants under the last step that was left for every event.
    kept: Option<Constants>,
    /// A path to watch; `met` is whether a step touches it.
    watched: Option<&'static Path>,
    met: bool,
}

impl Binder {
    pub(crate) fn new(constants: Constants, shape: Shape) -> Self {
        let touched = match shape {
            Shape::Lines => {
                let mut paths = ROW_FIELDS.to_vec();
                paths.extend_from_slice(&*LINE_FIELDS);
                Touched::paths(paths)
            }
            Shape::Any => Touched::everything(),
        };
        let mut binder = Self {
            constants,
            base: None,
            input_base: None,
            touched,
            steps: Vec::new(),
            paths: Vec::new(),
            drops: false,
            ended: false,
            notes: None,
            kept: None,
            watched: None,
            met: false,
        };
        if shape == Shape::Any {
            binder.input_base = Some(binder.base());
        }
        binder
    }

    /// Records what happens to every step.
    pub(crate) fn with_notes(mut self) -> Self {
        self.notes = Some(Vec::new());
        self
    }

    /// Checks whether the result of the list may depend on a field at, inside or around a path.
    pub(crate) fn watching(mut self, path: &'static Path) -> Self {
        self.watched = Some(path);
        self
    }

    /// Whether it may.
    pub(crate) fn has_met(&self) -> bool {
        self.met
    }

    pub(crate) fn add_all(&mut self, list: &[Compiled]) {
        for step in list {
            self.add(&step.bound());
        }
    }

    pub(crate) fn finish(mut self, forms: &Forms) -> (BoundPlan, Vec<StepNote>) {
        let base = self.base();
        let Self { input_base, mut steps, paths, drops, notes, .. } = self;
        let input_base = input_base.unwrap_or_else(|| Arc::clone(&base));
        let guards = GuardFilter::of(&steps);
        // Where all is folded, an event with remaining work has nodes. Where keys have
        // dots, what a path names is found by looking for it.
        let (form, steps_in_slots) =
            if guards.is_some() || base.has_dots() || steps.iter().any(BoundStep::has_dots) {
                (None, 0)
            } else {
                forms.of(&paths)
            };
        if let Some(form) = &form {
            base.know(form);
            for step in &mut steps {
                step.know(form);
            }
        }
        let uniform = Uniform::of(&steps);
        let steps = steps.into();
        let plan =
            BoundPlan { base, input_base, steps, guards, drops, uniform, form, steps_in_slots };
        (plan, notes.unwrap_or_default())
    }

    fn add(&mut self, step: &Compiled) {
        if self.ended {
            self.note(Fate::Unreachable, || step.describe());
            return;
        }
        if let Compiled::Run { when: Some(condition), .. } | Compiled::Choose { condition, .. } =
            step
        {
            self.meet(|watched, met| {
                condition.for_each_path(&mut |path| *met |= path.overlaps(watched));
            });
        }
        match step {
            Compiled::Run { when, processor, failures } => {
                let decision = when.as_ref().map_or(Ok(true), |when| self.decide(when));
                match decision {
                    Ok(true) => self.add_always(processor, failures),
                    Ok(false) => self.note(Fate::Never, || step.describe()),
                    Err(open) => self.add_sometimes(open, processor, failures),
                }
            }
            Compiled::Choose { condition, then, otherwise } => match self.decide(condition) {
                Ok(true) => self.add_branch(then),
                Ok(false) => self.add_branch(otherwise),
                Err(open) => self.keep(Compiled::Choose {
                    condition: open,
                    then: Arc::clone(then),
                    otherwise: Arc::clone(otherwise),
                }),
            },
            Compiled::Branch(list) => self.add_branch(list),
        }
    }

    /// A branch that is taken by every event. It can be a part of the list around it unless a
    /// failure inside would have to end it early.
    fn add_branch(&mut self, list: &Arc<[Compiled]>) {
        let Some((_, before)) = list.split_last() else { return };
        if before.iter().any(Compiled::can_stop) {
            self.keep(Compiled::Branch(Arc::clone(list)));
        } else {
            for step in &**list {
                self.add(step);
            }
        }
    }

    /// A processor that runs on every event.
    fn add_always(&mut self, processor: &Arc<dyn Processor>, failures: &Arc<FailureCount>) {
        if let Some(parts) = processor.parts(&self.constants, self.touched.known()) {
            // The fields it makes may depend on anything there.
            self.met = true;
            for part in &parts {
                self.add_always(part, failures);
            }
            return;
        }
        let step = self.run(None, processor, failures);
        let footprint = processor.footprint(&self.constants);
        self.meet(|watched, met| *met |= footprint.overlaps(watched));
        if self.touched.overlaps_footprint(&footprint) {
            self.add_guarded(step, processor, &footprint, true);
        } else if self.fold(&**processor) {
            self.note(Fate::Once, || processor.describe());
        } else {
            self.keep(step);
        }
    }

    /// A processor for events over the constants as they are now.
    fn run(
        &self,
        when: Option<Condition>,
        processor: &Arc<dyn Processor>,
        failures: &Arc<FailureCount>,
    ) -> Compiled {
        let knowing = processor.knowing(&self.constants, &|path| self.touched.overlaps(path));
        let processor = knowing.unwrap_or_else(|| Arc::clone(processor));
        Compiled::Run { when, processor, failures: Arc::clone(failures) }
    }

    /// A processor whose condition depends on the event.
    fn add_sometimes(
        &mut self,
        when: Condition,
        processor: &Arc<dyn Processor>,
        failures: &Arc<FailureCount>,
    ) {
        let usual = self.decide_usual(&when);
        let footprint = processor.footprint(&self.constants);
        self.meet(|watched, met| *met |= footprint.overlaps(watched));
        let step = self.run(Some(when), processor, failures);
        match usual {
            Ok(usual) => self.add_guarded(step, processor, &footprint, usual),
            Err(_) => self.keep(step),
        }
    }

    /// A step that runs on the usual event, or usually does not. The usual case is done once.
    fn add_guarded(
        &mut self,
        step: Compiled,
        processor: &Arc<dyn Processor>,
        footprint: &Footprint,
        usual: bool,
    ) {
        let before = self.constants.clone();
        let base = self.base();
        if footprint.touches_row(&*ROW_FIELDS) || (usual && !self.fold(&**processor)) {
            self.keep(step);
            return;
        }
        let Some(changes) = before.differences(&self.constants) else {
            self.constants = before;
            self.base = Some(base);
            self.keep(step);
            return;
        };
        let fate = if usual { Fate::OnceUnlessOwn } else { Fate::UsuallyNot };
        self.note(fate, || step.describe());
        let mut reads = Vec::new();
        if let Compiled::Run { when: Some(when), .. } = &step {
            when.for_each_path(&mut |path| reads.push(path.clone()));
        }
        let touched: &[Path] = if usual { &footprint.writes } else { &[] };
        let fields = guards_of(footprint.reads.iter().chain(touched));
        let mut paths = changes.clone();
        let named = step.paths(&before, &mut paths);
        self.paths.push(named.then_some(paths));
        // Taking the fold back writes at all of its changes.
        let back = Footprint { writes: changes.clone(), ..Footprint::default() };
        self.touched.add(&back, false);
        self.touched.add(footprint, processor.can_fail());
        self.drops = true;
        let mut all = reads.iter().chain(&footprint.reads).chain(&footprint.writes);
        let of_each =
            |path: &Path| path.is_metadata() || ROW_FIELDS.iter().any(|own| own.overlaps(path));
        let folded = Folded {
            after: self.base(),
            is_uniform: !all.any(of_each),
            condition: guards_of(reads.iter()),
            fields,
            // What the fold did was to fields inside objects.
            changes: changes.into_iter().map(Path::exact).collect(),
            repeatable: processor.is_repeatable(),
        };
        self.steps.push(BoundStep { base, step, folded: Some(folded) });
    }

    /// Leaves a step for every event.
    fn keep(&mut self, step: Compiled) {
        step.touch(&mut self.touched, &self.constants);
        self.drops = true;
        if let Compiled::Run { when: None, processor, .. } = &step {
            self.ended = processor.name() == "drop_event";
        }
        let step = match self.joined_with_last(&step) {
            Some(both) => {
                self.steps.pop();
                self.paths.pop();
                self.forget_last_note();
                both
            }
            None => join_inside(step),
        };
        self.note(Fate::PerEvent, || step.describe());
        let mut paths = Vec::new();
        let named = step.paths(&self.constants, &mut paths);
        self.paths.push(named.then_some(paths));
        let base = self.base();
        self.steps.push(BoundStep { base, step, folded: None });
        self.kept = Some(self.constants.clone());
    }

    /// The step and the one before it as one, if that runs on every event, too, and steps folded in
    /// between do not affect it.
    fn joined_with_last(&self, step: &Compiled) -> Option<Compiled> {
        let last = self.steps.last().filter(|last| last.folded.is_none())?;
        let same = is_same_over(&last.step, self.kept.as_ref()?, &self.constants);
        join(&last.step, step, false).filter(|_| same)
    }

    /// Removes the note of the last step that is left.
    fn forget_last_note(&mut self) {
        if let Some(notes) = &mut self.notes
            && let Some(at) = notes.iter().rposition(|note| note.fate.is_left())
        {
            notes.remove(at);
        }
    }

    fn meet(&mut self, look: impl FnOnce(&Path, &mut bool)) {
        if let Some(watched) = self.watched {
            look(watched, &mut self.met);
        }
    }

    fn fold(&mut self, processor: &dyn Processor) -> bool {
        let before = self.constants.clone();
        let folded = processor.fold(&mut self.constants);
        if self.constants != before {
            self.base = None;
        }
        folded
    }

    fn decide(&mut self, condition: &Condition) -> Result<bool, Condition> {
        let base = self.base();
        let batch = probe(base);
        condition.decide(batch.event(0), &|path| self.touched.overlaps(path))
    }

    /// The same for the usual event, which has nothing of its own but what every line has.
    fn decide_usual(&mut self, condition: &Condition) -> Result<bool, Condition> {
        let base = self.base();
        let batch = probe(base);
        let of_lines =
            |path: &Path| LINE_FIELDS.iter().chain(&*ROW_FIELDS).any(|own| own.overlaps(path));
        condition.decide(batch.event(0), &of_lines)
    }

    fn base(&mut self) -> Arc<Base> {
        let constants = &self.constants;
        let make = || Arc::new(Base::new(constants.fields(), constants.metadata()));
        Arc::clone(self.base.get_or_insert_with(make))
    }

    fn note(&mut self, fate: Fate, step: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(StepNote { fate, step: step() });
        }
    }
}

/// The top-level fields of some paths.
fn guards_of<'a>(paths: impl Iterator<Item = &'a Path>) -> Guards {
    let mut guards: Vec<Guard> = Vec::new();
    for path in paths {
        let guard = Guard { key: path.segments()[0].clone(), metadata: path.is_metadata() };
        if !guards.contains(&guard) {
            guards.push(guard);
        }
    }
    let metadata = guards.iter().any(|guard| guard.metadata);
    let filter = GuardFilter::of_guards(&guards);
    Guards { all: guards.into(), slots: 0, metadata, filter }
}
