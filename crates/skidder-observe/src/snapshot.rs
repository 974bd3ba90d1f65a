//! One consistent look at all counters of a run.

use crate::inputs::{Counts, InputList};
use crate::lag::{Lag, LagNumbers, Sums};
use crate::numbers::{
    InputNumbers, OutputNumbers, QueueNumbers, ReadNumbers, RegistrarNumbers, events_of,
};
use crate::problems::Survey;
use crate::process::{Process, System, cores};
use crate::reload::{ReloadNumbers, Reloads};
use crate::states::OutputState;
use skidder_event::DropReason;
use skidder_input_file::Looks;
use skidder_log::{Log, LogNumbers};
use skidder_os::{Clock, Fs, Monotonic, Timestamp};
use skidder_pipeline::{DiskQueue, Ledger, OutputMetrics, Queue, Rates, RegistrarMetrics, Settle};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The program: constant for the life of the process.
#[derive(Clone, Debug)]
pub struct Program {
    /// Filebeat's `beat`: `filebeat`, so that dashboards match.
    pub beat: String,
    /// The `name` setting, by default the host's name.
    pub name: String,
    /// The version shown as the beat's.
    pub version: String,
    /// The host's name.
    pub hostname: String,
    /// Identifies the data directory; stays over restarts.
    pub uuid: String,
    /// Identifies this process; new with each start.
    pub ephemeral_id: String,
    /// Commit it was built from, if known.
    pub build_commit: Option<String>,
    /// When it was built, in RFC 3339, if known.
    pub build_time: Option<String>,
    /// Kind of the output: `elasticsearch`, `console`, …; of several, with commas between them.
    pub output: String,
    /// When it started.
    pub start: Start,
}

/// When the process started, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// For the uptime.
    pub monotonic: Monotonic,
    /// For `process_start_time_seconds`.
    pub wall: Timestamp,
}

impl Start {
    /// The start is now.
    pub fn now(clock: &dyn Clock) -> Self {
        Self { monotonic: clock.monotonic(), wall: clock.wall() }
    }
}

/// The resolved processors of an input.
pub trait Describe: std::fmt::Debug + Send + Sync {
    /// The steps, with what they cost as far as that was measured.
    fn steps(&self) -> Vec<Step>;

    /// Measures what the steps cost on the next events.
    fn measure(&self);
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// When it is run.
    pub when: String,
    /// Its action.
    pub step: String,
    /// Its cost; nothing if it is not run for each event, or was not measured.
    pub cost: Option<StepCost>,
}

/// The cost of a step on events that passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Events that came to it.
    pub events: u64,
    /// Of these, how many it dropped.
    pub dropped: u64,
    /// Time that it took for all of them.
    pub nanoseconds: u64,
}

/// One configured input.
#[derive(Clone, Debug)]
pub struct InputSource {
    /// Its `id`.
    pub id: String,
    /// Its name for people: its `id`, or else what distinguishes it from other inputs.
    pub title: String,
    /// Its `type`: `filestream`, `stdin`, …
    pub kind: String,
    /// Its number in the configuration; the first is 0.
    pub number: usize,
    /// Its number in requests to the scanner: it stays when other inputs come and go.
    pub slot: usize,
    /// Its counts. Inputs that share the counters show the same numbers; the totals count them once.
    pub counts: Counts,
    /// Its plan, if there is one to show.
    pub plan: Option<Arc<dyn Describe>>,
    /// A survey of what it finds, if it supports one.
    pub survey: Option<Arc<Survey>>,
}

/// One output, with what lies before it.
#[derive(Clone)]
pub struct OutputSource {
    /// Its id; nothing if it is the only one.
    pub id: Option<String>,
    /// Its kind: `elasticsearch`, `console`, …
    pub kind: String,
    /// The inputs that feed it.
    pub inputs: InputList,
    /// Holds the ledger.
    pub settle: Arc<Settle>,
    /// The queue before it.
    pub queue: Queue,
    /// With `queue.disk`: the queue, of which `queue` is the end at the readers.
    pub disk: Option<Arc<DiskQueue>>,
    /// Its counts.
    pub metrics: Arc<OutputMetrics>,
    /// Set when it has ended by itself.
    pub ended: Arc<AtomicBool>,
    /// For requests about files; `None` if there is no scanner.
    pub looks: Option<Arc<Looks>>,
    /// The registrar's counts; `None` leaves `registrar.*` out.
    pub registrar: Option<Arc<RegistrarMetrics>>,
    /// The file of its dead letters, if it keeps them.
    pub dead_letters: Option<PathBuf>,
}

/// What there is to say about the inputs of autodiscover.
#[derive(Clone)]
pub struct Explain {
    /// Answers why which inputs run, as JSON.
    pub explain: Arc<dyn Fn() -> serde_json::Value + Send + Sync>,
    /// Answers which should run and cannot: for each container or pod, what it is and why.
    pub failures: Arc<dyn Fn() -> Vec<(String, String)> + Send + Sync>,
    /// Answers which providers learn of no changes now.
    pub troubles: Arc<dyn Fn() -> Vec<ProviderTrouble> + Send + Sync>,
}

/// A provider of autodiscover whose API cannot be reached, or refuses.
#[derive(Clone, Debug)]
pub struct ProviderTrouble {
    /// Its type and where it stands.
    pub provider: String,
    /// The last error.
    pub error: String,
    /// What to do.
    pub remedy: String,
    /// New containers are not seen; otherwise their events only lack metadata.
    pub blocks: bool,
}

/// Where all numbers of a run are.
#[derive(Clone)]
pub struct Sources {
    /// The program.
    pub program: Arc<Program>,
    /// The outputs, in the order of the configuration; at least one.
    pub outputs: Vec<OutputSource>,
    /// The results of reloads.
    pub reloads: Arc<Reloads>,
    /// Our own log; `None` if it counts nothing.
    pub log: Option<Arc<Log>>,
    /// How far all files are behind, on request.
    pub lag: Arc<Lag>,
    /// For `/autodiscover`; `None` without it.
    pub explain: Option<Explain>,
    /// For the uptime.
    pub clock: Arc<dyn Clock>,
    /// For `/proc/self` and `/etc/passwd`.
    pub fs: Arc<dyn Fs>,
}

/// All numbers at one moment. The ledger is taken once and adds up; counters of other stages are read
/// one after the other and may be some events ahead of it or behind. Of several outputs these are the sums.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The program.
    pub program: Arc<Program>,
    /// When it was taken.
    pub time: Timestamp,
    /// Time since the start.
    pub uptime: Duration,
    /// The total of all sources.
    pub ledger: Ledger,
    /// The queue.
    pub queue: QueueNumbers,
    /// The output.
    pub output: OutputNumbers,
    /// All readers together.
    pub read: ReadNumbers,
    /// The inputs, in the order of the configuration.
    pub inputs: Vec<InputNumbers>,
    /// The registrar, if there is one.
    pub registrar: Option<RegistrarNumbers>,
    /// How far behind all files are, if measured.
    pub lag: Option<LagNumbers>,
    /// Of one output: what it is doing, and for how long it has been blocked.
    pub state: Option<(OutputState, Option<Duration>)>,
    /// Of one of several outputs: whether it works, or has ended by itself.
    pub working: Option<bool>,
    /// Each of several outputs with its id: its own numbers, and nothing of process and machine. Empty if there is one.
    pub outputs: Vec<(String, Snapshot)>,
    /// The results of reloads.
    pub reloads: ReloadNumbers,
    /// The counts of our own log.
    pub log: LogNumbers,
    /// This process.
    pub process: Process,
    /// The machine.
    pub system: System,
}

impl Sources {
    /// Takes all numbers.
    pub fn snapshot(&self) -> Snapshot {
        let mut total = self.of_none();
        for output in &self.outputs {
            let one = self.of_output(output);
            total.add(&one);
            if self.outputs.len() == 1 {
                total.state = one.state;
            }
            if let (Some(id), true) = (&output.id, self.outputs.len() > 1) {
                total.outputs.push((id.clone(), one));
            }
        }
        total.reloads = self.reloads.numbers();
        total.log = self.log.as_ref().map(|log| log.numbers()).unwrap_or_default();
        total.process = Process::look(&*self.fs);
        total.system = System::look(cores());
        total
    }

    /// Takes all numbers, and looks how far behind the files are: that makes the scanner answer, at most once a second.
    pub async fn look(self: &Arc<Self>) -> Snapshot {
        let sums = Lag::sums(self).await;
        let mut snapshot = self.snapshot();
        if let Some((sums, age)) = sums {
            snapshot.take_lag(&sums, age, self);
        }
        snapshot
    }

    fn of_none(&self) -> Snapshot {
        Snapshot {
            program: Arc::clone(&self.program),
            time: self.clock.wall(),
            uptime: self.clock.monotonic().since(self.program.start.monotonic),
            ledger: Ledger::default(),
            queue: QueueNumbers::default(),
            output: OutputNumbers::default(),
            read: ReadNumbers::default(),
            inputs: Vec::new(),
            registrar: None,
            lag: None,
            state: None,
            working: None,
            outputs: Vec::new(),
            reloads: ReloadNumbers::default(),
            log: LogNumbers::default(),
            process: Process::default(),
            system: System::default(),
        }
    }

    fn of_output(&self, output: &OutputSource) -> Snapshot {
        let several = self.outputs.len() > 1;
        let id = output.id.as_ref().filter(|_| several);
        let mut program = Arc::clone(&self.program);
        if several {
            program = Arc::new(Program { output: output.kind.clone(), ..Program::clone(&program) });
        }
        let (ledger, of_inputs) = output.settle.ledgers();
        let inputs = output.inputs.list();
        let of_input = |input: &InputSource| {
            let ledger = of_inputs.get(&input.slot).copied().unwrap_or_default();
            let is_only = |other: &&InputSource| other.id == input.id;
            let is_name = !input.id.is_empty() && inputs.iter().filter(is_only).nth(1).is_none();
            InputNumbers::of(input, id, is_name, ledger)
        };
        Snapshot {
            program,
            state: Some(OutputState::of(output, &ledger, self.clock.monotonic())),
            ledger,
            queue: QueueNumbers::of(&output.queue, output.disk.as_deref()),
            output: OutputNumbers::of(&output.metrics),
            read: output.inputs.total(),
            inputs: inputs.iter().map(of_input).collect(),
            registrar: output.registrar.as_deref().map(RegistrarNumbers::of),
            working: several.then(|| !output.ended.load(Ordering::Relaxed)),
            ..self.of_none()
        }
    }
}

impl OutputSource {
    /// How fast its lines come and go, over at least the time that a request waits to be full.
    pub(crate) fn rates(&self, now: Monotonic) -> Option<Rates> {
        self.settle.rates(now, self.flush_timeout())
    }

    /// So long a request waits to be full.
    pub(crate) fn flush_timeout(&self) -> Duration {
        let queue = self.disk.as_ref().map_or(&self.queue, |disk| disk.back());
        queue.limits().flush_timeout
    }

    /// Files that match, as the last scans saw them; nothing if no input reads files.
    pub fn files(&self) -> Option<u64> {
        let inputs = self.inputs.list();
        let of_files = inputs.iter().filter(|input| input.counts.task().is_none());
        let matched = of_files.map(|input| input.counts.read().files_matched);
        matched.fold(None, |sum, files| Some(sum.unwrap_or(0) + files))
    }
}

impl Snapshot {
    /// Takes in how far behind the files are.
    fn take_lag(&mut self, sums: &Sums, age: Duration, sources: &Sources) {
        self.lag = Some(LagNumbers { age, ..sums.total.clone() });
        for (place, output) in sources.outputs.iter().enumerate() {
            let id = output.id.as_ref().filter(|_| sources.outputs.len() > 1);
            let mut of_output = LagNumbers { age, ..LagNumbers::default() };
            let one = self.outputs.iter_mut().find(|(other, _)| Some(other) == id);
            let (state, more) = match one {
                Some((_, one)) => (one.state, Some(one)),
                None => (self.state, None),
            };
            let name = output.id.as_ref().unwrap_or(&output.kind);
            let take = |input: &mut InputNumbers| {
                let lag = sums.inputs.get(&(place, input.slot));
                // One that has started since the round: of files nothing is known yet, a task has its state by itself.
                if lag.is_some() || input.task.is_some() {
                    let lag = lag.cloned().unwrap_or_default();
                    input.take_lag(LagNumbers { age, ..lag }, state, name);
                }
                lag
            };
            for input in self.inputs.iter_mut().filter(|input| input.output.as_ref() == id) {
                if let Some(lag) = take(input) {
                    of_output.add_all(lag);
                }
            }
            if let Some(one) = more {
                for input in &mut one.inputs {
                    take(input);
                }
                one.lag = Some(of_output);
            }
        }
    }

    /// Adds the numbers of one output.
    fn add(&mut self, one: &Self) {
        self.ledger.add(&one.ledger);
        self.queue.add(&one.queue);
        self.output.add(&one.output);
        self.read.add(&one.read);
        self.inputs.extend(one.inputs.iter().cloned());
        if let Some(more) = one.registrar {
            let sum = self.registrar.get_or_insert_default();
            sum.succeeded += more.succeeded;
            sum.failed += more.failed;
        }
    }

    /// How many inputs are configured: one that feeds several outputs counts once.
    pub(crate) fn inputs_count(&self) -> usize {
        self.inputs.iter().map(|input| input.number).collect::<BTreeSet<_>>().len()
    }

    /// Events that are not meant to be sent: a processor dropped them, or they were not for the output.
    pub(crate) fn events_filtered(&self) -> u64 {
        let dropped = self.ledger.dropped();
        dropped.get(DropReason::Processor) + dropped.get(DropReason::NotForOutput)
    }

    /// Lines that became events: all but those that the readers and parsers dropped.
    pub(crate) fn events_total(&self) -> u64 {
        events_of(&self.ledger)
    }

    /// Lines with a verdict.
    pub(crate) fn lines_done(&self) -> u64 {
        self.ledger.read() - self.ledger.in_flight()
    }
}
