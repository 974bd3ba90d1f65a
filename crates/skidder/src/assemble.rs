//! From settings to parts: every section is read and checked here, before anything starts.

use crate::agent::{Agent, BEAT, COMPATIBLE_VERSION};
use crate::cloud::Cloud;
use crate::config_context::ConfigContext;
use crate::config_files::{self, AllConfigFiles};
use crate::drafts;
use crate::idle::IDLE;
use crate::input_reader::{Found, InputReader, Shared, acquaint, feeding, share_keys};
use crate::inputs::{self, Input};
use crate::modules::{self, ModulePipelines, ModuleRenderer, Started};
use crate::monitoring::{Monitoring, Otlp};
use crate::outputs::{Feeds, OutputParts, Outputs, Place, Places};
use crate::own_log::OwnLog;
use crate::root_settings;
use crate::schema::{self, CONFIGURATION, FILEBEAT, INPUTS};
use skidder_autodiscover::Autodiscover;
use skidder_config::{Problems, Section, Settings, Severity};
use skidder_kibana::Dashboards;
use skidder_log::LogSettings;
use skidder_observe::HttpConfig;
use skidder_os::Fs;
use skidder_output_elasticsearch::{Pipelines, Setup};
use skidder_outputs::Context as OutputContext;
use skidder_read::FilestreamSettings;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// Renders modules that hints name; nothing without a folder of modules.
    pub(crate) renderer: Option<ModuleRenderer>,
    /// Whether inputs may begin while it runs: outputs without one run, too.
    pub(crate) may_get_inputs: bool,
    /// `filebeat.autodiscover`.
    pub(crate) discovery: Option<Autodiscover>,
    /// Reads further inputs, for each of `outputs`.
    pub(crate) readers: Vec<InputReader>,
    /// The ids of `filestream` inputs, which further ones must not have.
    pub(crate) input_ids: HashSet<String>,
    /// `compat: lenient`.
    pub(crate) is_lenient: bool,
    /// The ingest pipelines of modules, which outputs to Elasticsearch load.
    pub(crate) pipelines: Arc<ModulePipelines>,
    /// `setup.dashboards`.
    pub(crate) dashboards: Dashboards,
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
    let output_context = read_output_context(&root, &agent, context);
    let beat = root.part(&FILEBEAT);
    let data = settings.paths().data.clone();
    let pipelines = Arc::new(ModulePipelines::new(beat.get(&root_settings::OVERWRITE).value()));
    let (setup, dashboards) = read_setup(&root, &output_context, settings, &pipelines);
    let outputs = Outputs::read(&root, &output_context, setup, context.clock.wall());
    let (places, flush) = read_places(&root, &beat, &data, &*context.fs);
    let output_ids = outputs.ids.clone();
    let files = AllConfigFiles::read(&beat, &settings.paths().config);
    let reload_period = files.period();
    let (discovery, renderer) = read_discovery(&beat, settings, &output_context);
    let Started { filesets, inputs: of_modules } =
        modules::start(&beat, settings, &output_context, context.modules);
    modules::warn_of_pipelines(&root, &filesets, &outputs);
    pipelines.start(filesets);
    let may_come = files.is_any() || beat.has("modules") || beat.has("autodiscover");
    let logs = context.directory.join(&settings.paths().logs);
    let log = LogSettings::read(root.part(&schema::LOGGING), &logs);
    let shared = Shared::new(settings, context, &agent, &output_ids, OwnLog::of(&log));
    let mut reading = Reading::new(settings, of_modules, shared, &output_ids, may_come);
    let inputs = places.as_ref().map(|places| reading.inputs(&root, &beat, &outputs, places));
    drafts::check(discovery.as_ref(), reading.readers.first(), renderer.as_ref(), problems);
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
    let Reading { readers, input_ids, .. } = reading;
    Some(Parts {
        outputs,
        renderer,
        may_get_inputs: reload_period.is_some() || discovery.is_some(),
        discovery,
        readers,
        input_ids,
        is_lenient: problems.unknown_severity() == Severity::Warning,
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
        pipelines,
        dashboards,
    })
}

/// The endpoint, with a look at the files of `http.ssl`.
fn read_http(root: &Section<'_>, context: &ConfigContext<'_>) -> HttpConfig {
    let http = HttpConfig::from_section(root.part(&schema::HTTP));
    if let (true, Err(error)) = (http.enabled, http.tls_server(&context.fs)) {
        for error in error.each() {
            root.problem(&format!("http.{}", error.setting()), error.to_string(), "");
        }
    }
    http
}

/// What outputs know of the program.
fn read_output_context(
    root: &Section<'_>,
    agent: &Agent,
    context: &ConfigContext<'_>,
) -> OutputContext {
    OutputContext {
        beat: BEAT.to_owned(),
        version: COMPATIBLE_VERSION.to_owned(),
        agent_name: agent.name.clone(),
        agent_id: agent.id.clone(),
        precision: root.get(&root_settings::PRECISION).value(),
        fs: Arc::clone(&context.fs),
    }
}

/// The directory of the registries, from `path.data` and `filebeat.registry`.
pub(crate) fn registries_directory(data: &Path, registry: &Section<'_>) -> PathBuf {
    data.join(registry.get(&root_settings::registry::PATH).value())
}

/// `filebeat.autodiscover`, if it is there, and what renders the modules that its hints name.
fn read_discovery(
    beat: &Section<'_>,
    settings: &Settings,
    output_context: &OutputContext,
) -> (Option<Autodiscover>, Option<ModuleRenderer>) {
    let Some(section) = beat.optional_part(&root_settings::AUTODISCOVER) else {
        return (None, None);
    };
    let renderer = ModuleRenderer::find(beat, settings, output_context);
    let of_hints = renderer.clone();
    let context = skidder_autodiscover::Context {
        settings: Arc::new(settings.clone()),
        environment: Arc::new(|name| std::env::var(name).ok()),
        filesets: Arc::new(move |module| of_hints.as_ref()?.filesets_of(module)),
        inputs: &inputs::INPUT,
    };
    let discovery = Autodiscover::read(&section, context);
    section.finish();
    (discovery, renderer)
}

/// Where the state of the outputs is, and how often cursors are saved.
fn read_places(
    root: &Section<'_>,
    beat: &Section<'_>,
    data: &Path,
    fs: &dyn Fs,
) -> (Option<Places>, Duration) {
    let registry = beat.part(&root_settings::IN_REGISTRY);
    let registries = registries_directory(data, &registry);
    let flush = registry.get(&root_settings::registry::FLUSH).value();
    registry.finish();
    let places = Places::find(fs, data, registries);
    (places.map_err(|error| root.problem("outputs", format!("{error:#}"), "")).ok(), flush)
}

/// Reading the inputs, once for each output: what processors and parsers remember is each output's own.
struct Reading<'a> {
    settings: &'a Settings,
    /// The inputs of modules.
    of_modules: Vec<Arc<Settings>>,
    shared: Shared,
    /// Of the outputs, if there is a list of them.
    ids: &'a [String],
    /// Inputs may come later, or from unsupported parts: none is required.
    may_come: bool,
    /// One for each output that was read for.
    readers: Vec<InputReader>,
    /// Of the `filestream` inputs.
    input_ids: HashSet<String>,
}

impl<'a> Reading<'a> {
    fn new(
        settings: &'a Settings,
        of_modules: Vec<Arc<Settings>>,
        shared: Shared,
        ids: &'a [String],
        may_come: bool,
    ) -> Self {
        let (readers, input_ids) = (Vec::new(), HashSet::new());
        Self { settings, of_modules, shared, ids, may_come, readers, input_ids }
    }

    /// Reads the inputs for the first enabled output; reports all problems of all inputs.
    fn inputs(
        &mut self,
        root: &Section<'_>,
        beat: &Section<'_>,
        outputs: &Outputs,
        places: &Places,
    ) -> Vec<Input> {
        let first = outputs.built.first().map_or(0, |(number, _)| *number);
        let read = self.read(root, beat, first, places);
        // With no input yet, there is no output that lacks one.
        if !outputs.wrong && !root.problems().has_errors() && !read.is_empty() {
            warn_of_unfed(root, &read, outputs);
        }
        feeding(read, first)
    }

    /// Each output with its inputs; `inputs` are those of the first.
    fn parts(
        &mut self,
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
                let read = self.read(&root, &beat, number, places);
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
        acquaint(parts.iter_mut().flat_map(|output| &mut output.inputs));
        parts
    }

    /// Reports that there is no input: an error, unless inputs may come.
    fn report_no_input(&self, beat: &Section<'_>, disabled: usize) {
        let (message, hint) = match disabled {
            0 => ("there is no input", "add one under `filebeat.inputs`"),
            _ => ("no input is enabled", "set `enabled: true` for one"),
        };
        if beat.has("autodiscover") {
            // Its inputs come when there is a container.
        } else if self.may_come {
            beat.warning("inputs", format!("{message}: nothing is read for now"), hint);
        } else {
            beat.problem("inputs", message, hint);
        }
    }

    fn place(&self, output: usize, places: &Places) -> Place {
        places.of(self.ids.get(output).map(String::as_str), self.ids)
    }

    /// Reads all inputs for the output with this number.
    fn read(
        &mut self,
        root: &Section<'_>,
        beat: &Section<'_>,
        output: usize,
        places: &Places,
    ) -> Vec<(Input, Feeds)> {
        let reader = InputReader::new(root, &self.shared, output, self.place(output, places));
        let mut inputs = Vec::new();
        let mut ids = HashSet::new();
        let mut items = beat.items_of(&INPUTS);
        items.extend(config_files::items(self.settings.input_files(), root.problems()));
        items.extend(config_files::items(&self.of_modules, root.problems()));
        let is_empty = items.is_empty();
        let mut disabled = 0;
        for (number, item) in items.into_iter().enumerate() {
            let mut is_new = |id: &str| ids.insert(id.to_owned());
            match reader.read(&item, number, &mut is_new, None) {
                Found::Input(input, feeds) => inputs.push((*input, feeds)),
                Found::Off => disabled += 1,
                Found::Wrong => {}
            }
        }
        share_keys(&mut inputs);
        inputs::refuse_beside_stdin(beat, inputs.iter().map(|(input, _)| input.kind()));
        if is_empty || (inputs.is_empty() && disabled > 0) {
            self.report_no_input(beat, disabled);
        }
        self.readers.push(reader);
        self.input_ids = ids;
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

/// `setup`: what outputs to Elasticsearch look at, and dashboards.
fn read_setup(
    root: &Section<'_>,
    context: &OutputContext,
    settings: &Settings,
    pipelines: &Arc<ModulePipelines>,
) -> (Arc<Setup>, Dashboards) {
    let section = root.part(&schema::SETUP);
    let mut setup = Setup::read(&section, context, &settings.paths().config);
    let dashboards = crate::dashboards::read(&section, settings);
    section.finish();
    setup.pipelines = Pipelines(Some(Arc::clone(pipelines) as _));
    (Arc::new(setup), dashboards)
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
