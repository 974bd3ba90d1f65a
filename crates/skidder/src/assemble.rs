//! From settings to parts: every section is read and checked here, before anything starts.

use crate::agent::{Agent, BEAT, COMPATIBLE_VERSION};
use crate::filestream::{self, Surroundings};
use crate::input_plan::{self, Common, InputPlan};
use skidder_config::{Problems, Section, Settings};
use skidder_event::Precision;
use skidder_observe::HttpConfig;
use skidder_os::{Clock, Fs};
use skidder_outputs::{BuildOther, Check, Context as OutputContext, Other};
use skidder_pipeline::{DeadLettersLimits, Output, QueueLimits};
use skidder_processors::{Context, Kind};
use skidder_read::{Bind, FilestreamSettings, InputKind};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

/// Default of `filebeat.shutdown_timeout`. Filebeat waits for nothing by default and repeats what was in
/// flight; a healthy output needs milliseconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Everything that a run needs, checked.
pub(crate) struct Parts {
    pub(crate) inputs: Vec<Input>,
    pub(crate) output: Box<dyn Output>,
    pub(crate) check: Check,
    pub(crate) queue: QueueLimits,
    pub(crate) agent: Agent,
    pub(crate) http: HttpConfig,
    pub(crate) data: PathBuf,
    pub(crate) registry: PathBuf,
    pub(crate) flush: Duration,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) dead_letters: Option<DeadLettersLimits>,
    pub(crate) metrics_period: Option<Duration>,
    pub(crate) workers: usize,
    pub(crate) log_level: Level,
    /// What outputs know of the program.
    pub(crate) output_context: OutputContext,
}

/// One file input.
pub(crate) struct Input {
    pub(crate) settings: FilestreamSettings,
    pub(crate) plan: Arc<InputPlan>,
    /// What runs: the plan, unless somebody looks on.
    pub(crate) bind: Arc<dyn Bind>,
}

/// What reading the settings needs from outside.
pub(crate) struct Outside<'a> {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) clock: Arc<dyn Clock>,
    /// The directory that relative paths of inputs are taken from.
    pub(crate) directory: &'a Path,
    /// Lines are only tried: nothing is written that lasts.
    pub(crate) trial: bool,
    /// Number of processors.
    pub(crate) cores: usize,
}

/// Reads and checks all settings. `None` if something is wrong; `problems` has it then.
pub(crate) fn assemble(
    settings: &Settings,
    problems: &Problems,
    outside: &Outside<'_>,
    agent_of: impl FnOnce(Option<String>) -> Option<Agent>,
) -> Option<Parts> {
    let root = settings.root(problems);
    let agent = agent_of(root.string("name").optional())?;
    let context =
        processors_of(outside).with_data(&settings.paths().data).with_trial(outside.trial);
    let precision = read_precision(&root);
    let common = Common::read(&root, &context, &agent);
    let beat = root.section("filebeat");
    let data = settings.paths().data.clone();
    let inputs = read_inputs(&beat, &common, &context, outside, &data);
    let output_context = OutputContext {
        beat: BEAT.to_owned(),
        version: COMPATIBLE_VERSION.to_owned(),
        agent_name: agent.name.clone(),
        precision,
        fs: Arc::clone(&outside.fs),
    };
    let outputs = root.section("output");
    let built =
        skidder_outputs::build(&outputs, &output_context, outside.clock.wall(), &OTHER_OUTPUTS);
    let queue = read_queue(&root, &outputs, built.as_ref());
    outputs.finish();
    let registry = beat.section("registry");
    let registry_path = registry_directory(&data, &registry);
    registry.unsupported(
        &["backend", "otel_file_storage.*", "migrate_file"],
        "the registry is skidder's own",
    );
    let flush = registry.duration("flush").or(Duration::from_secs(1));
    registry.deprecated(&["file_permissions"], "registry files are only for their owner (0600)");
    registry.finish();
    let http = HttpConfig::from_section(root.section("http"));
    let dead_letters = read_dead_letters(&root);
    let metrics_period = read_metrics_period(&root);
    let shutdown_timeout = beat.duration("shutdown_timeout").or(SHUTDOWN_TIMEOUT);
    let workers = Some(root.usize("max_procs").or(0_usize)).filter(|count| *count > 0);
    let log_level = read_log_level(&root);
    refuse(&root, &beat);
    beat.finish();
    root.finish();
    let built = built?;
    Some(Parts {
        inputs,
        queue,
        registry: registry_path,
        data,
        flush,
        http,
        shutdown_timeout,
        dead_letters,
        metrics_period,
        workers: workers.unwrap_or(outside.cores),
        log_level,
        output: built.output,
        check: built.check,
        agent,
        output_context,
    })
}

/// What processors may look at, and all of them.
fn processors_of(outside: &Outside<'_>) -> Context {
    Context::new(Arc::clone(&outside.fs), Arc::clone(&outside.clock))
        .with(skidder_lookups::KINDS)
        .with(SCRIPT_KINDS)
}

#[cfg(feature = "script")]
const SCRIPT_KINDS: &[Kind] = skidder_script::KINDS;

/// Says that the processor is not here.
#[cfg(not(feature = "script"))]
const SCRIPT_KINDS: &[Kind] = &[("script", |settings, _| {
    for key in settings.keys() {
        settings.accept(key);
    }
    let message = format!("`{}`: this program was built without scripts", settings.path());
    settings.problem("", message, "use one with the cargo feature `script`");
    None
})];

/// Outputs in crates of their own.
const OTHER_OUTPUTS: [Other; 1] = [("kafka", KAFKA)];

#[cfg(feature = "kafka")]
const KAFKA: BuildOther = skidder_output_kafka::build;

/// Says that the output is not here.
#[cfg(not(feature = "kafka"))]
const KAFKA: BuildOther = |section, _, _| {
    for key in section.keys() {
        section.accept(key);
    }
    let message = format!("`{}`: this program was built without Kafka", section.path());
    section.problem("", message, "use one with the cargo feature `kafka`");
    None
};

/// The directory of the registry, from `path.data` and `filebeat.registry`.
pub(crate) fn registry_directory(data: &Path, registry: &Section<'_>) -> PathBuf {
    data.join(registry.path_buf("path").or("registry")).join(BEAT)
}

fn read_inputs(
    beat: &Section<'_>,
    common: &Common,
    context: &Context,
    outside: &Outside<'_>,
    data: &Path,
) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut ids = HashSet::new();
    let sections = beat.sections("inputs");
    if sections.is_empty() {
        beat.problem("inputs", "there is no input", "add one under `filebeat.inputs`");
    }
    let mut disabled = 0;
    let surroundings = Surroundings {
        fs: &*outside.fs,
        directory: outside.directory,
        started: outside.clock.wall(),
        first_start: common.agent.first_start,
    };
    for section in sections {
        if !section.bool("enabled").or(true) {
            disabled += 1;
            section.skip();
            continue;
        }
        let kind = section.string("type").required();
        let mut settings = match &*kind {
            "filestream" => filestream::read(&section, &surroundings),
            "log" => filestream::log::read(&section, &surroundings, InputKind::Log),
            "container" => filestream::log::read(&section, &surroundings, InputKind::Container),
            _ => {
                if !kind.is_empty() {
                    let message = format!("input type `{kind}` is not supported by skidder yet");
                    section.problem("type", message, "`filestream` is");
                }
                section.skip();
                continue;
            }
        };
        settings.pin.directory = Some(data.join("pins"));
        let is_new = settings.kind != InputKind::Filestream || ids.insert(settings.id.clone());
        if !is_new && !settings.shares_keys {
            let message = format!("two inputs have the id `{}`", settings.id);
            section.problem("id", message, "give each its own `id`, and never change it");
        }
        let plan = input_plan::read(&section, common, context, &settings);
        section.finish();
        let plan = Arc::new(plan);
        inputs.push(Input { settings, bind: Arc::clone(&plan) as _, plan });
    }
    share_keys(&mut inputs);
    if inputs.is_empty() && disabled > 0 {
        beat.problem("inputs", "no input is enabled", "set `enabled: true` for one");
    }
    inputs
}

/// Of inputs with one id, each must know that others have its keys.
fn share_keys(inputs: &mut [Input]) {
    let ids: Vec<(InputKind, String)> =
        inputs.iter().map(|input| (input.settings.kind, input.settings.id.clone())).collect();
    for input in inputs {
        let own = (input.settings.kind, input.settings.id.clone());
        input.settings.shares_keys |= ids.iter().filter(|other| **other == own).count() > 1;
    }
}

/// `queue.mem`, at the root or in the output, under what a preset says.
fn read_queue(
    root: &Section<'_>,
    outputs: &Section<'_>,
    built: Option<&skidder_outputs::Built>,
) -> QueueLimits {
    let inside = outputs.keys().into_iter().find_map(|name| {
        let section = outputs.section(name);
        let queue = section.optional_section("queue");
        section.skip();
        queue
    });
    let at_root = root.optional_section("queue");
    if at_root.is_some() && inside.is_some() {
        let message = "`queue` stands at the root and in the output";
        root.problem("queue", message, "leave one of them out");
    }
    let mut limits = QueueLimits::default();
    for section in [at_root, inside].into_iter().flatten() {
        let mem = section.section("mem");
        limits.events = mem
            .usize("events")
            .named("a number of events")
            .range(1..=10_000_000)
            .or(QueueLimits::EVENTS);
        limits.bytes =
            mem.size("bytes").range(1..=(64_u64 << 30)).or(QueueLimits::BYTES as u64) as usize;
        limits.flush_min_events =
            mem.usize("flush.min_events").or(QueueLimits::FLUSH_MIN_EVENTS).min(limits.events);
        limits.flush_timeout = mem.duration("flush.timeout").or(QueueLimits::FLUSH_TIMEOUT);
        mem.unsupported(&["immediate_shutdown"], "`filebeat.shutdown_timeout: 0` is close to it");
        mem.finish();
        section.unsupported(&["disk.*", "slab.*"], "the files are the queue; use `queue.mem`");
        section.finish();
    }
    if let Some(built) = built {
        if built.queue.events.is_some() && root.has("queue") {
            let message = "the preset of the output overrides `queue.mem`";
            root.warning("queue", message, "use `preset: custom` to set it yourself");
        }
        limits.events = built.queue.events.unwrap_or(limits.events);
        limits.flush_min_events = built.queue.flush_min_events.unwrap_or(limits.flush_min_events);
        limits.flush_timeout = built.queue.flush_timeout.unwrap_or(limits.flush_timeout);
    }
    limits
}

fn read_precision(root: &Section<'_>) -> Precision {
    root.one_of(
        "timestamp.precision",
        &[
            ("millisecond", Precision::Millisecond),
            ("microsecond", Precision::Microsecond),
            ("nanosecond", Precision::Nanosecond),
        ],
    )
    .or(Precision::Millisecond)
}

fn read_dead_letters(root: &Section<'_>) -> Option<DeadLettersLimits> {
    let section = root.section("dead_letters");
    let enabled = section.bool("enabled").or(true);
    let bytes = section.size("max_bytes").or(DeadLettersLimits::BYTES);
    section.finish();
    enabled.then_some(DeadLettersLimits { bytes })
}

fn read_metrics_period(root: &Section<'_>) -> Option<Duration> {
    let enabled = root.bool("logging.metrics.enabled").or(true);
    let period = root
        .duration("logging.metrics.period")
        .range(Duration::from_millis(100)..)
        .or(Duration::from_secs(30));
    enabled.then_some(period)
}

fn read_log_level(root: &Section<'_>) -> Level {
    let logging = root.section("logging");
    let level = logging
        .one_of(
            "level",
            &[
                ("debug", Level::DEBUG),
                ("info", Level::INFO),
                ("warning", Level::WARN),
                ("warn", Level::WARN),
                ("error", Level::ERROR),
            ],
        )
        .or(Level::INFO);
    logging.accept("metrics.enabled");
    logging.accept("metrics.period");
    let to_stderr = logging.bool("to_stderr").or(true);
    if !to_stderr {
        let message = "skidder logs only to stderr yet; `logging.to_stderr: false` cannot be done";
        logging.problem("to_stderr", message, "leave it out and redirect stderr");
    }
    logging.unsupported(
        &[
            "to_files",
            "files.*",
            "to_syslog",
            "to_eventlog",
            "selectors",
            "metrics.namespaces",
            "event_data.*",
            "with_fields.*",
        ],
        "skidder logs to stderr; redirect it",
    );
    logging.finish();
    level
}

/// Sections of Filebeat that are not here yet.
fn refuse(root: &Section<'_>, beat: &Section<'_>) {
    let later = "leave it out; it comes with a later version";
    root.unsupported(
        &[
            "cloud.*",
            "monitoring.*",
            "instrumentation.*",
            "seccomp.*",
            "features.*",
            "management.*",
            "setup.*",
            "keystore.*",
            "outputs",
        ],
        later,
    );
    root.deprecated(&["max_start_delay"], "skidder starts at once");
    beat.unsupported(&["modules", "config.*", "autodiscover.*", "overwrite_pipelines"], later);
}
