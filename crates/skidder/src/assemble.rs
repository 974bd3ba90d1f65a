//! From settings to parts: every section is read and checked here, before anything starts.

use crate::agent::{Agent, BEAT, COMPATIBLE_VERSION};
use crate::cloud::Cloud;
use crate::config_files::{self, AllConfigFiles, refuse_modules};
use crate::filestream::InputContext;
use crate::idle::IDLE;
use crate::input_plan::{self, Common};
use crate::input_print::Prints;
use crate::input_settings::{ENABLED, ID};
use crate::inputs::{self, Input, Reads};
use crate::monitoring::{Monitoring, Otlp};
use crate::outputs::{Feeds, OutputParts, Outputs, Place, Places};
use crate::own_log::OwnLog;
use crate::processors;
use crate::root_settings;
use crate::schema::{self, CONFIGURATION, FILEBEAT, INPUTS};
use skidder_config::{Problems, Section, Settings};
use skidder_log::LogSettings;
use skidder_net::Sockets;
use skidder_observe::HttpConfig;
use skidder_os::{Clock, Fs, Timestamp};
use skidder_output_elasticsearch::Setup;
use skidder_outputs::Context as OutputContext;
use skidder_processors::Context;
use skidder_read::{FilestreamSettings, InputKind, Peer};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Everything that a run needs, checked.
pub(crate) struct Parts {
    /// At least one; each has a pipeline of its own.
    pub(crate) outputs: Vec<OutputParts>,
    /// The ids of all outputs of `outputs`, also of those that are turned off; empty if there is `output`.
    pub(crate) output_ids: Vec<String>,
    pub(crate) places: Places,
    pub(crate) agent: Agent,
    pub(crate) http: HttpConfig,
    pub(crate) data: PathBuf,
    /// How often files with further inputs are reloaded; `None` for never.
    pub(crate) reload_period: Option<Duration>,
    pub(crate) flush: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) monitoring: Option<Monitoring>,
    pub(crate) otlp: Option<Otlp>,
    pub(crate) workers: usize,
    pub(crate) log: LogSettings,
    /// What outputs know of the program.
    pub(crate) output_context: OutputContext,
}

impl Parts {
    /// The outputs that run: those that an input feeds.
    pub(crate) fn running(&self) -> impl Iterator<Item = &OutputParts> {
        self.outputs.iter().filter(|output| !output.inputs.is_empty())
    }

    /// The inputs, each once, in the order of the configuration.
    pub(crate) fn inputs(&self) -> Vec<&Input> {
        let all = self.outputs.iter().flat_map(|output| &output.inputs);
        let each: BTreeMap<usize, &Input> = all.map(|input| (input.number, input)).collect();
        each.into_values().collect()
    }

    /// The settings of those that read files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &FilestreamSettings> {
        self.inputs().into_iter().filter_map(Input::files)
    }
}

/// The file system, clock and limits that reading the settings depends on.
pub(crate) struct ConfigContext<'a> {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The directory that relative paths of inputs are taken from.
    pub(crate) directory: &'a Path,
    /// A trial of some lines: nothing is stored.
    pub(crate) trial: bool,
    /// Number of processors.
    pub(crate) cores: usize,
    /// Set when the program ends: interrupts processors.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Sockets that outlive their input.
    pub(crate) sockets: Sockets,
}

/// Reads and checks all settings. `None` if something is wrong; `problems` has it then.
pub(crate) fn assemble(
    settings: &Settings,
    problems: &Problems,
    context: &ConfigContext<'_>,
    agent_of: impl FnOnce(Option<String>) -> Option<Agent>,
) -> Option<Parts> {
    problems.set_idle(IDLE);
    let root = settings.root(problems);
    root.declared_by(&CONFIGURATION);
    let agent = agent_of(root.get(&root_settings::NAME).optional())?;
    let precision = root.get(&root_settings::PRECISION).value();
    let beat = root.part(&FILEBEAT);
    let data = settings.paths().data.clone();
    let output_context = OutputContext {
        beat: BEAT.to_owned(),
        version: COMPATIBLE_VERSION.to_owned(),
        agent_name: agent.name.clone(),
        agent_id: agent.id.clone(),
        precision,
        fs: Arc::clone(&context.fs),
    };
    let setup = read_setup(&root, &output_context, settings);
    let outputs = Outputs::read(&root, &output_context, setup, context.clock.wall());
    let registry = beat.part(&root_settings::IN_REGISTRY);
    let registries = registries_directory(&data, &registry);
    let flush = read_flush(registry);
    let places = Places::find(&*context.fs, &data, registries)
        .map_err(|error| root.problem("outputs", format!("{error:#}"), ""))
        .ok();
    let output_ids = outputs.ids.clone();
    let started = context.clock.wall();
    let files = AllConfigFiles::read(&beat, &settings.paths().config);
    let reload_period = files.period();
    refuse_modules(settings, problems);
    let may_come = files.is_any() || beat.has("modules") || beat.has("autodiscover");
    let logs = context.directory.join(&settings.paths().logs);
    let log = LogSettings::read(root.part(&schema::LOGGING), &logs);
    let own_log = OwnLog::of(&log);
    let ids = &output_ids;
    let reading = Reading { settings, context, agent: &agent, started, ids, may_come, own_log };
    let inputs = places.as_ref().map(|places| reading.inputs(&root, &beat, &outputs, places));
    let http = read_http(&root, context);
    let (monitoring, otlp) = Monitoring::read(&root, settings, &output_context, problems);
    let shutdown_timeout = beat.get(&root_settings::SHUTDOWN).value();
    let workers = Some(root.get(&root_settings::MAX_PROCS).value()).filter(|count| *count > 0);
    refuse(&root);
    beat.finish();
    root.finish();
    let (places, inputs) = (places?, inputs?);
    if outputs.wrong || problems.has_errors() {
        return None;
    }
    let outputs = reading.parts(settings, inputs, outputs, &places);
    Some(Parts {
        outputs,
        output_ids,
        places,
        data,
        reload_period,
        flush,
        http,
        shutdown_timeout,
        monitoring,
        otlp,
        workers: workers.unwrap_or(context.cores),
        log,
        agent,
        output_context,
    })
}

/// The endpoint, with a look at the files of `http.ssl`.
fn read_http(root: &Section<'_>, context: &ConfigContext<'_>) -> HttpConfig {
    let http = HttpConfig::from_section(root.part(&schema::HTTP));
    if let (true, Err(error)) = (http.enabled, http.tls_server(&context.fs)) {
        root.problem(&format!("http.{}", error.setting()), error.to_string(), "");
    }
    http
}

/// The context of the processors, with all their kinds.
fn processors_of(context: &ConfigContext<'_>) -> Context {
    let bare = Context::new(Arc::clone(&context.fs), Arc::clone(&context.clock))
        .with_interrupt(Arc::clone(&context.interrupt));
    processors::OTHERS.iter().fold(bare, |context, kinds| context.with(kinds))
}

/// The directory of the registries, from `path.data` and `filebeat.registry`.
pub(crate) fn registries_directory(data: &Path, registry: &Section<'_>) -> PathBuf {
    data.join(registry.get(&root_settings::registry::PATH).value())
}

/// How often cursors are saved; and the end of the section.
fn read_flush(registry: Section<'_>) -> Duration {
    let flush = registry.get(&root_settings::registry::FLUSH).value();
    registry.finish();
    flush
}

/// Reading the inputs, once for each output: what processors and parsers remember is each output's own.
struct Reading<'a> {
    settings: &'a Settings,
    context: &'a ConfigContext<'a>,
    agent: &'a Agent,
    started: Timestamp,
    /// Of the outputs, if there is a list of them.
    ids: &'a [String],
    /// Inputs may come later, or from unsupported parts: none is required.
    may_come: bool,
    own_log: OwnLog,
}

impl Reading<'_> {
    /// Reads the inputs for the first enabled output; reports all problems of all inputs.
    fn inputs(
        &self,
        root: &Section<'_>,
        beat: &Section<'_>,
        outputs: &Outputs,
        places: &Places,
    ) -> Vec<Input> {
        let first = outputs.built.first().map_or(0, |(number, _)| *number);
        let read = self.read(root, beat, &self.place(first, places));
        // With no input yet, there is no output that lacks one.
        if !outputs.wrong && !root.problems().has_errors() && !read.is_empty() {
            warn_of_unfed(root, &read, outputs);
        }
        feeding(read, first)
    }

    /// Each output with its inputs; `inputs` are those of the first.
    fn parts(
        &self,
        settings: &Settings,
        inputs: Vec<Input>,
        outputs: Outputs,
        places: &Places,
    ) -> Vec<OutputParts> {
        let mut first = Some(inputs);
        let mut parts = Vec::new();
        for (number, one) in outputs.built {
            let place = self.place(number, places);
            let inputs = first.take().unwrap_or_else(|| {
                // Problems are already reported.
                let again = Problems::new();
                let root = settings.root(&again);
                let beat = root.part(&FILEBEAT);
                let read = self.read(&root, &beat, &place);
                beat.skip();
                root.skip();
                feeding(read, number)
            });
            parts.push(OutputParts {
                id: self.ids.get(number).cloned(),
                inputs,
                output: one.built.output,
                tuning: one.built.tuning,
                queue: one.queue.limits,
                disk: one.queue.disk(&place, self.ids.get(number).map(String::as_str)),
                dead_letters: one.dead_letters,
                place,
            });
        }
        acquaint(&mut parts);
        parts
    }

    /// Reports that there is no input: an error, unless inputs may come.
    fn report_no_input(&self, beat: &Section<'_>, disabled: usize) {
        let (message, hint) = match disabled {
            0 => ("there is no input", "add one under `filebeat.inputs`"),
            _ => ("no input is enabled", "set `enabled: true` for one"),
        };
        if self.may_come {
            beat.warning("inputs", format!("{message}: nothing is read for now"), hint);
        } else {
            beat.problem("inputs", message, hint);
        }
    }

    fn place(&self, output: usize, places: &Places) -> Place {
        places.of(self.ids.get(output).map(String::as_str), self.ids)
    }

    /// Reads all inputs for the output with this place.
    fn read(&self, root: &Section<'_>, beat: &Section<'_>, place: &Place) -> Vec<(Input, Feeds)> {
        let context = self.context;
        let processors = processors_of(context).with_data(&place.data).with_trial(context.trial);
        let common = Common::read(root, &processors, self.agent);
        let input_context = InputContext {
            fs: &*context.fs,
            directory: context.directory,
            started: self.started,
            first_start: self.agent.first_start,
        };
        let tasks = skidder_inputs::Context {
            fs: Arc::clone(&context.fs),
            clock: Arc::clone(&context.clock),
            sockets: context.sockets.clone(),
            wanted: skidder_inputs::Wanted::default(),
        };
        let mut inputs = Vec::new();
        let mut ids = HashSet::new();
        let mut items = beat.items_of(&INPUTS);
        items.extend(config_files::items(self.settings.input_files(), root.problems()));
        let is_empty = items.is_empty();
        let prints = Prints::of(self.settings);
        let mut disabled = 0;
        for (number, item) in items.into_iter().enumerate() {
            let section = item.section();
            if !item.is_map() {
                inputs::refuse_empty(&item);
                continue;
            }
            if !section.get(&ENABLED).value() {
                disabled += 1;
                inputs::turned_off(section);
                continue;
            }
            let Some(mut reads) = inputs::read(&section, &input_context, &tasks) else {
                section.skip();
                continue;
            };
            let id = match &mut reads {
                Reads::Files(settings) => {
                    self.own_log.leave_out(&section, settings);
                    settings.pin.directory = Some(place.data.join("pins"));
                    let is_new =
                        settings.kind != InputKind::Filestream || ids.insert(settings.id.clone());
                    if !is_new && !settings.shares_keys {
                        let message = format!("two inputs have the id `{}`", settings.id);
                        let hint = "give each its own `id`, and never change it";
                        section.problem("id", message, hint);
                    }
                    settings.id.clone()
                }
                Reads::Task(_) => section.get(&ID).value(),
            };
            let feeds = Feeds::read(&section, self.ids);
            let plan = Arc::new(input_plan::read(&section, &common, &processors, reads.of_type()));
            section.finish();
            let bind = Arc::clone(&plan) as _;
            let print = prints.of_input(item.node());
            inputs.push((Input { number, id, reads, print, bind, plan, peer: None }, feeds));
        }
        share_keys(&mut inputs);
        inputs::refuse_beside_stdin(beat, inputs.iter().map(|(input, _)| input.kind()));
        if is_empty || (inputs.is_empty() && disabled > 0) {
            self.report_no_input(beat, disabled);
        }
        inputs
    }
}

/// Warns of outputs without inputs, and of inputs without an output.
fn warn_of_unfed(root: &Section<'_>, inputs: &[(Input, Feeds)], outputs: &Outputs) {
    for (number, _) in &outputs.built {
        if !inputs.iter().any(|(_, feeds)| feeds.to(*number).is_some()) {
            let message = format!("no input feeds the output `{}`", outputs.ids[*number]);
            root.warning("outputs", message, "name it in `outputs` of an input");
        }
    }
    for (input, feeds) in inputs {
        if !outputs.built.iter().any(|(number, _)| feeds.to(*number).is_some()) {
            let message = format!("the input `{}` feeds no output that is enabled", input.id);
            root.warning("filebeat.inputs", message, "it is not read");
        }
    }
}

/// The inputs that feed an output, as they do.
fn feeding(inputs: Vec<(Input, Feeds)>, output: usize) -> Vec<Input> {
    let mut feeding = Vec::new();
    for (mut input, feeds) in inputs {
        let Some(route) = feeds.to(output) else { continue };
        if route.condition.is_some() {
            input.plan = Arc::new(input.plan.for_output(route.condition));
            input.bind = Arc::clone(&input.plan) as _;
        }
        feeding.push(input);
    }
    feeding
}

/// The parts of an input that feeds several outputs know of each other.
fn acquaint(outputs: &mut [OutputParts]) {
    let mut alike: BTreeMap<usize, Vec<&mut Input>> = BTreeMap::new();
    for input in outputs.iter_mut().flat_map(|output| &mut output.inputs) {
        alike.entry(input.number).or_default().push(input);
    }
    for inputs in alike.into_values().filter(|inputs| inputs.len() > 1) {
        if inputs[0].files().is_none() {
            continue;
        }
        let peers = Peer::seats(inputs.len());
        for (input, peer) in inputs.into_iter().zip(peers) {
            input.peer = Some(peer);
        }
    }
}

/// Of inputs with one id, each must know that others have its keys.
fn share_keys(inputs: &mut [(Input, Feeds)]) {
    let keys = |input: &Input| input.files().map(|files| (files.kind, files.id.clone()));
    let all: Vec<(InputKind, String)> =
        inputs.iter().filter_map(|(input, _)| keys(input)).collect();
    for (input, _) in inputs {
        let Some(own) = keys(input) else { continue };
        let Some(settings) = input.files_mut() else { continue };
        settings.shares_keys |= all.iter().filter(|other| **other == own).count() > 1;
        // An input that did not share them before starts over.
        let shares_keys = settings.shares_keys;
        input.print.note(shares_keys);
    }
}

/// `setup`, which only outputs to Elasticsearch look at.
fn read_setup(root: &Section<'_>, context: &OutputContext, settings: &Settings) -> Arc<Setup> {
    let section = root.part(&schema::SETUP);
    let setup = Setup::read(&section, context, &settings.paths().config);
    section.finish();
    Arc::new(setup)
}

/// Sections of Filebeat that are not here yet.
fn refuse(root: &Section<'_>) {
    let later = "leave it out; it comes with a later version";
    Cloud::read(root);
    for part in [&root_settings::INSTRUMENTATION, &root_settings::MANAGEMENT] {
        root.accept_key(part);
        root.unsupported_if_enabled(part.name(), later);
    }
    let advice = "set `name` to the name that events shall have";
    root.accept_key(&root_settings::FQDN);
    root.unsupported_if_enabled(root_settings::FQDN.name(), advice);
}
