//! The inputs of a running output: files are read for each output, a task feeds all of its outputs at once.

use super::discovery::MADE_NUMBERS;
use super::output::RunningInput;
use crate::agent::Agent;
use crate::inputs::{Input, Reads};
use crate::problems;
use crate::runtime::runtime;
use crate::shown_plan::ShownPlan;
use crate::system::System;
use anyhow::Result;
use skidder_input::{InputState, InputTask, LaneOf, Setup};
use skidder_input_file::FileInput;
use skidder_observe::{Counts, InputList, Problem, Survey, lost_before, queue_full};
use skidder_os::{Clock, Fs};
use skidder_pipeline::Settle;
use skidder_read::{
    BufferPool, Cursors, DecoderPool, FilestreamSettings, InputContext, ReadMetrics, Readers,
    SourceIds,
};
use skidder_registry::Registry;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Decoders kept for reuse by all inputs of an output; each has about 50 KiB.
pub(super) const DECODERS_IDLE_MAX: usize = 8;

/// The slots of tasks begin here: those below are of file inputs, which their scanner numbers from 0.
const TASK_SLOTS: usize = 1 << 20;

/// The numbers that the next inputs of an output get.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Slots {
    files: usize,
    tasks: usize,
}

impl Slots {
    fn next_file(&mut self) -> usize {
        self.files += 1;
        self.files - 1
    }

    fn next_task(&mut self) -> usize {
        self.tasks += 1;
        TASK_SLOTS + self.tasks - 1
    }
}

/// What inputs are to the pipeline of an output.
#[derive(Default)]
pub(super) struct Inputs {
    /// What others may see of them.
    pub(super) running: Vec<RunningInput>,
    /// With their slots.
    pub(super) files: Vec<(usize, FileInput)>,
    pub(super) lanes: Vec<LaneOf>,
}

/// The inputs that are tasks, of all outputs. Their runtime starts with the first of them.
pub(super) struct Tasks {
    /// Threads of the runtime.
    workers: usize,
    runtime: Option<Runtime>,
    setup: Setup,
    /// How many there were.
    started: u64,
    /// Those that are about to start, by their number in the configuration.
    fresh: BTreeMap<usize, Arc<InputTask>>,
    /// How many outputs each of these feeds.
    outputs: BTreeMap<usize, usize>,
    /// All that may still run.
    running: Vec<Arc<InputTask>>,
    /// What the outputs had no room for.
    drops: Vec<Drops>,
}

/// Where an output counts the events that its inputs had to drop.
struct Drops {
    output: Option<String>,
    inputs: InputList,
    settle: Arc<Settle>,
}

impl Tasks {
    /// None yet; `workers` is how many threads may process events.
    pub(super) fn of(agent: &Agent, system: &System, once: bool, workers: usize) -> Self {
        let setup = Setup {
            id: "".into(),
            name: "".into(),
            run: agent.ephemeral_id.as_str().into(),
            once,
            clock: Arc::clone(&system.clock),
        };
        Self {
            workers,
            runtime: None,
            setup,
            started: 0,
            fresh: BTreeMap::new(),
            outputs: BTreeMap::new(),
            running: Vec::new(),
            drops: Vec::new(),
        }
    }

    /// An output has these inputs and this ledger.
    pub(super) fn count_drops(
        &mut self,
        output: Option<&str>,
        inputs: &InputList,
        settle: &Arc<Settle>,
    ) {
        let (inputs, settle) = (inputs.clone(), Arc::clone(settle));
        self.drops.push(Drops { output: output.map(str::to_owned), inputs, settle });
    }

    /// These outputs are about to get these inputs.
    pub(super) fn expect<'a>(&mut self, inputs: impl Iterator<Item = &'a Input>) {
        self.fresh.clear();
        self.outputs.clear();
        // Of an ended input only its losses are of use, which its successor has as well.
        let running = std::mem::take(&mut self.running);
        let is_of_use = |at: usize, task: &InputTask| {
            let has_lost = task.metrics().lost_before.total() > 0;
            task.state() != InputState::Ended
                || (has_lost && !is_followed(task, &running[at + 1..]))
        };
        let of_use = running.iter().enumerate().filter(|(at, task)| is_of_use(*at, task));
        self.running = of_use.map(|(_, task)| Arc::clone(task)).collect();
        for input in inputs.filter(|input| input.files().is_none()) {
            *self.outputs.entry(input.number).or_default() += 1;
        }
    }

    /// The task of an input, which the outputs that it feeds share.
    fn get(
        &mut self,
        number: usize,
        id: &str,
        name: &str,
        input: Box<dyn skidder_input::Input>,
    ) -> Result<Arc<InputTask>> {
        let is_own = input.has_cursors();
        if let Some(task) = self.fresh.get(&number).filter(|_| !is_own) {
            return Ok(Arc::clone(task));
        }
        let runtime = match &mut self.runtime {
            Some(runtime) => runtime,
            // Its own threads: processors run in them, and must not hold up requests.
            none => none.insert(runtime("inputs", self.workers)?),
        };
        self.started += 1;
        let run = format!("{}.{}", self.setup.run, self.started);
        let (id, name) = (id.into(), name.into());
        let setup = Setup { id, name, run: run.into(), ..self.setup.clone() };
        // Cursors of two outputs differ: each has a run of its own.
        let outputs = if is_own { 1 } else { self.outputs.get(&number).copied().unwrap_or(1) };
        let runtime = runtime.handle().clone();
        let task = match self.before(input.kind(), &setup.name) {
            Some(before) => InputTask::after(before, input, setup, outputs, runtime),
            None => InputTask::new(input, setup, outputs, runtime),
        };
        self.fresh.insert(number, Arc::clone(&task));
        self.running.push(Arc::clone(&task));
        Ok(task)
    }

    /// The input whose place one that is about to start takes: the last of its type that had its name, and that no other
    /// one has followed.
    fn before(&self, kind: &str, name: &str) -> Option<&InputTask> {
        let is_it = |task: &&Arc<InputTask>| task.kind() == kind && task.name() == name;
        let before = self.running.iter().rev().find(is_it)?;
        (!self.fresh.values().any(|fresh| Arc::ptr_eq(fresh, before))).then_some(before)
    }

    /// The runtime, if there is one; it ends before those of the outputs.
    pub(super) fn into_runtime(self) -> Option<Runtime> {
        self.runtime
    }

    /// Why inputs have ended by themselves, for people.
    pub(super) fn failed(&self) -> Vec<String> {
        let of = |task: &Arc<InputTask>| match task.state() {
            InputState::Failed(error) => Some(format!("input `{}`: {error}", task.name())),
            _ => None,
        };
        self.running.iter().filter_map(of).collect()
    }

    /// What the inputs have lost, for people: what the system threw away before they saw it, and what they had to
    /// drop.
    pub(super) fn lost_before(&self) -> Vec<String> {
        // The last one has what all before it have lost.
        let all = self.running.iter().enumerate();
        let last = all.filter(|(at, task)| !is_followed(task, &self.running[at + 1..]));
        let lost = last.filter_map(|(_, task)| lost_before(task));
        let dropped = self.drops.iter().flat_map(|of| {
            let Drops { output, inputs, settle } = of;
            queue_full(output.as_deref(), inputs, settle)
        });
        let text = |problem: Problem| {
            let line = problems::line(&problem);
            format!("{line}; {}", problem.remedy.unwrap_or_default())
        };
        lost.chain(dropped).map(|loss| text(loss.problem)).collect()
    }
}

/// Whether one of the later inputs counts on what an input has lost.
fn is_followed(task: &InputTask, later: &[Arc<InputTask>]) -> bool {
    let lost = &task.metrics().lost_before;
    later.iter().any(|other| other.metrics().lost_before.continues(lost))
}

/// What the inputs of an output share.
pub(super) struct Shared {
    pub(super) fs: Arc<dyn Fs>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) registry: Arc<Registry>,
    pub(super) cursors: Arc<dyn Cursors>,
    pub(super) buffers: Arc<BufferPool>,
    pub(super) decoders: DecoderPool,
    pub(super) readers: Arc<Readers>,
    pub(super) ids: Arc<SourceIds>,
    pub(super) rows_max: usize,
    pub(super) once: bool,
}

impl Shared {
    /// Frees what is only kept to be used again.
    pub(super) fn give_back(&self) {
        self.buffers.give_back();
        self.readers.renew_workers();
    }

    /// What inputs are to the pipeline of the output.
    pub(super) fn inputs(
        &self,
        inputs: Vec<Input>,
        slots: &mut Slots,
        tasks: &mut Tasks,
    ) -> Result<Inputs> {
        let mut all = Inputs::default();
        for input in inputs {
            self.add(input, slots, tasks, &mut all)?;
        }
        Ok(all)
    }

    fn add(
        &self,
        input: Input,
        slots: &mut Slots,
        tasks: &mut Tasks,
        all: &mut Inputs,
    ) -> Result<()> {
        let plan = Arc::new(ShownPlan::of(&input, None));
        let (kind, name, title) = (input.kind(), input.name(), input.title());
        let Input { number, id, reads, print, bind, peer, .. } = input;
        let running = |slot, counts, survey| RunningInput {
            number,
            slot,
            print,
            id: id.clone(),
            name: title.clone(),
            kind,
            counts,
            plan,
            survey,
        };
        match reads {
            Reads::Files(settings) => {
                let metrics = Arc::new(ReadMetrics::default());
                let counts = Counts::Files(Arc::clone(&metrics));
                let context = Arc::new(self.context(*settings, bind, Arc::clone(&metrics)));
                let (fs, clock) = (Arc::clone(&self.fs), Arc::clone(&self.clock));
                let survey = Survey::new(fs, clock, Arc::<InputContext>::clone(&context));
                let is_made = number >= MADE_NUMBERS;
                let survey = Arc::new(if is_made { survey.of_container(metrics) } else { survey });
                let (readers, ids) = (Arc::clone(&self.readers), Arc::clone(&self.ids));
                let mut file = FileInput::new(context, readers, ids);
                if let Some(peer) = peer {
                    file = file.with_peer(peer);
                }
                let slot = slots.next_file();
                all.running.push(running(slot, counts, Some(survey)));
                all.files.push((slot, file));
            }
            Reads::Task(input) => {
                let is_counted = input.has_cursors() || !tasks.fresh.contains_key(&number);
                let task = tasks.get(number, &id, &name, input)?;
                let slot = slots.next_task();
                let counts = Counts::Task { task: Arc::clone(&task), is_counted };
                let registry = Arc::clone(&self.registry);
                all.running.push(running(slot, counts, None));
                all.lanes.push(LaneOf { input: task, slot, bind, registry });
            }
        }
        Ok(())
    }

    fn context(
        &self,
        mut settings: FilestreamSettings,
        bind: Arc<dyn skidder_read::Bind>,
        metrics: Arc<ReadMetrics>,
    ) -> InputContext {
        settings.read_once = self.once;
        InputContext {
            settings,
            bind,
            cursors: Arc::clone(&self.cursors),
            fs: Arc::clone(&self.fs),
            metrics,
            buffers: Arc::clone(&self.buffers),
            decoders: self.decoders.clone(),
            rows_max: self.rows_max,
        }
    }
}
