//! One function a command.

use crate::agent::{Agent, VERSION};
use crate::assemble::{Outside, Parts, assemble};
use crate::cli::{Command, CommandLine, Export, Global, SetupArguments, Test};
use crate::migrate::judge;
use crate::plain;
use crate::reload::{Reloader, with_files};
use crate::service::Service;
use crate::signals::Caught;
use crate::startup::Startup;
use crate::{
    agent, cloud, files, keystore, logging, migrate, pages, registry, run, sample, schema, ship,
    tune,
};
use anyhow::{Context as _, Result, bail};
use skidder_config::{
    LoadOptions, OpenKeystore, Pipes, Problem, Problems, Settings, Subject, load,
};
use skidder_net::Sockets;
use skidder_os::{Clock, Fs, RealFs, SystemClock};
use skidder_read::survey;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Default of `-c`, looked for in `path.config`.
const CONFIG_FILE: &str = "filebeat.yml";

/// The file system and the clock of this process, and what it knows about its surroundings.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) pipes: Arc<Pipes>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) directory: PathBuf,
    /// Lines are only tried: nothing is written that lasts.
    pub(crate) trial: bool,
    pub(crate) cores: usize,
    pub(crate) startup: Startup,
    pub(crate) caught: Caught,
    pub(crate) service: Arc<Service>,
    /// Set when the program ends: what processors are at is stopped.
    pub(crate) interrupt: Arc<AtomicBool>,
    /// Sockets that outlive the input that has them.
    pub(crate) sockets: Sockets,
}

impl World {
    pub(crate) fn real() -> Result<Self> {
        Ok(Self {
            fs: Arc::new(RealFs),
            pipes: Arc::default(),
            clock: Arc::new(SystemClock::new()),
            directory: std::env::current_dir().context("cannot tell the current directory")?,
            trial: false,
            cores: std::thread::available_parallelism().map_or(1, Into::into),
            startup: Startup::default(),
            caught: Caught::default(),
            service: Arc::new(Service::of_environment()),
            interrupt: Arc::default(),
            sockets: Sockets::default(),
        })
    }

    /// The same for trying lines.
    pub(crate) fn for_trial(self) -> Self {
        Self { trial: true, ..self }
    }

    pub(crate) fn outside(&self) -> Outside<'_> {
        Outside {
            fs: Arc::clone(&self.fs),
            clock: Arc::clone(&self.clock),
            directory: &self.directory,
            trial: self.trial,
            cores: self.cores,
            interrupt: Arc::clone(&self.interrupt),
            sockets: self.sockets.clone(),
        }
    }
}

/// Does what the command line says.
pub(crate) fn dispatch(line: &CommandLine, caught: Caught) -> Result<ExitCode> {
    if !matches!(line.command, None | Some(Command::Run | Command::Ship(_))) {
        caught.release();
    }
    let mut world = World { caught, ..World::real()? };
    if line.global.trace_startup {
        world.startup = Startup::traced(&world.clock);
    }
    match &line.command {
        None | Some(Command::Run) => run_command(&line.global, &world),
        Some(Command::Ship(what)) => ship::ship(what, &line.global, &world),
        Some(Command::Test { what: Test::Config }) => test_config(&line.global, &world),
        Some(Command::Test { what: Test::Output }) => test_output(&line.global, &world),
        Some(Command::Export { what: Export::Config }) => export_config(&line.global, &world),
        Some(Command::Export { what: Export::Schema }) => schema::export(),
        Some(Command::Files(what)) => files::files(what, &line.global, &world),
        Some(Command::Status(what)) => crate::status::status(*what, &line.global, &world),
        Some(Command::Top(what)) => top(*what, &line.global, &world),
        Some(Command::Page(what)) => crate::page::page(*what, &line.global, &world),
        Some(Command::Process(what)) => sample::process(what, &line.global, &world.for_trial()),
        Some(Command::Explain(what)) => sample::explain(what, &line.global, &world.for_trial()),
        Some(Command::Diff(what)) => Ok(sample::diff(what, &line.global, &world.for_trial())),
        Some(Command::Tune(what)) => tune::tune(what, &line.global, &world),
        Some(Command::Migrate(what)) => migrate::migrate(what, &line.global, &world),
        Some(Command::Registry { what }) => registry::dispatch(what, &line.global, &world),
        Some(Command::DeadLetters { what }) => {
            crate::dead_letters::dispatch(what, &line.global, &world)
        }
        Some(Command::Queue { what }) => crate::queue::dispatch(what, &line.global, &world),
        Some(Command::Version) => {
            print(&format!(
                "skidder version {VERSION} ({}), compatible with filebeat {}\n",
                std::env::consts::ARCH,
                agent::COMPATIBLE_VERSION
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Setup(what)) => set_up(*what, &line.global, &world),
        Some(Command::Keystore { what }) => keystore::dispatch(what, &line.global, &world),
        Some(Command::Modules(_)) => not_yet("modules"),
        Some(Command::Generate(_)) => not_yet("generate"),
        Some(Command::Completion { shell }) => pages::completion(*shell),
        Some(Command::Man { directory }) => pages::man(directory.as_deref()),
        Some(Command::Help { words }) => pages::help(words),
        Some(Command::Validate) => test_config(&line.global, &world),
    }
}

#[cfg(feature = "top")]
use crate::top::top;

/// Says that the command is not here.
#[cfg(not(feature = "top"))]
fn top(_: crate::cli::Top, _: &Global, _: &World) -> Result<ExitCode> {
    bail!("this program was built without `top`; use one with the cargo feature `top`")
}

fn not_yet(command: &str) -> Result<ExitCode> {
    bail!("`{command}` is a command of Filebeat that skidder does not have yet")
}

/// Writes lines for people, or JSON, to stdout; a closed pipe is an error like any other.
pub(crate) fn print(text: &str) -> Result<()> {
    print_exactly(&plain::lines(text))
}

/// Writes a text to stdout that is no message of ours, byte by byte.
pub(crate) fn print_exactly(text: &str) -> Result<()> {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        // `| head` has seen enough.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write to the standard output"),
    }
}

/// Writes to stderr, for the person at the terminal.
#[expect(clippy::print_stderr, reason = "this is what it is for")]
pub(crate) fn tell(text: &str) {
    eprint!("{}", plain::lines(text));
}

/// Writes to stdout, or to stderr if stdout is where the events of this kind of output go.
pub(crate) fn print_beside(output: &str, text: &str) -> Result<()> {
    if output == "console" {
        tell(text);
        return Ok(());
    }
    print(text)
}

fn run_command(global: &Global, world: &World) -> Result<ExitCode> {
    // Before any other descriptor is opened.
    world.sockets.inherit()?;
    let settings = load_settings(global, world)?;
    world.startup.step(|| "configuration read".to_owned());
    // The lock comes first, because the agent's id is in the directory that it protects.
    let data = settings.paths().data.clone();
    let (_lock, mut parts) = {
        let lock = agent::lock_data(&*world.fs, &data)?;
        (
            lock,
            read_parts(&settings, world, |name| {
                Agent::load(&*world.fs, &*world.clock, &data, name)
            })?,
        )
    };
    world.startup.step(|| "data directory locked, settings checked".to_owned());
    if global.once && parts.inputs().is_empty() {
        bail!("there is no input: with `--once` there is nothing to wait for");
    }
    for output in parts.outputs.iter().filter(|output| output.place.is_main) {
        registry::refuse_unadopted(world, &output.place.registry)?;
    }
    logging::start_run(parts.log.with_flags(&global.log_flags()))?;
    for id in parts.places.claim(&*world.fs, &parts.output_ids)? {
        tracing::warn!(
            output.id = id,
            "what is remembered for an output that the configuration does not have is kept"
        );
    }
    let reloader = (!global.once).then(|| Reloader::new(global, world, settings, &parts));
    run::run(parts, world, reloader, &global.fail_on)
}

fn test_config(global: &Global, world: &World) -> Result<ExitCode> {
    let settings = load_settings(global, world)?;
    let parts = read_parts(&settings, world, |name| Ok(Agent::passing(name, world.clock.wall())))?;
    for input in parts.files() {
        let name = files::name_of(input);
        for finding in survey(&*world.fs, input) {
            tell(&format!("warning: input `{name}`: {finding}\nhint: {}\n", finding.remedy()));
        }
    }
    print("Config OK\n")?;
    Ok(ExitCode::SUCCESS)
}

fn test_output(global: &Global, world: &World) -> Result<ExitCode> {
    let settings = load_settings(global, world)?;
    let parts = read_parts(&settings, world, |name| Ok(Agent::passing(name, world.clock.wall())))?;
    let runtime = run::runtime("sockets", 1)?;
    let mut lines = Vec::new();
    let mut good = true;
    for output in &parts.outputs {
        if let Some(id) = &output.id {
            lines.push(format!("output `{id}`\n"));
        }
        let mut tell = |line: &str| lines.push(format!("{line}\n"));
        good &= runtime.block_on(output.output.check(&mut tell));
    }
    print(&lines.concat())?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `skidder setup`: for every output that has something to be set up.
fn set_up(what: SetupArguments, global: &Global, world: &World) -> Result<ExitCode> {
    if what.dashboards || what.pipelines {
        bail!(
            "dashboards and pipelines of modules are not in skidder: load them with Filebeat, once"
        );
    }
    let settings = load_settings(global, world)?;
    let parts = read_parts(&settings, world, |name| Ok(Agent::passing(name, world.clock.wall())))?;
    let runtime = run::runtime("sockets", 1)?;
    let mut lines = Vec::new();
    let mut all = Vec::new();
    for output in &parts.outputs {
        let mut tell = |line: &str| lines.push(format!("{line}\n"));
        if let Some(setting_up) = output.output.set_up(&mut tell) {
            all.push(runtime.block_on(setting_up));
        }
    }
    print(&lines.concat())?;
    if all.is_empty() {
        bail!("no output is `elasticsearch`: there is nothing to set up");
    }
    Ok(if all.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn export_config(global: &Global, world: &World) -> Result<ExitCode> {
    let settings = load_settings(global, world)?;
    let (_, problems) = judge(&settings, world);
    let (unknown, wrong): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.subject == Subject::Unknown);
    let places = |problems: Vec<Problem>| -> Vec<_> {
        problems.into_iter().filter_map(|problem| problem.position).collect()
    };
    print(&settings.export_yaml_without(&places(unknown), &places(wrong)))?;
    Ok(ExitCode::SUCCESS)
}

/// Loads the configuration of the command line.
pub(crate) fn load_settings(global: &Global, world: &World) -> Result<Settings> {
    load_files(global, &global.config, world)
}

/// Loads a configuration from these files, or from the usual one if there is none, with the rest of the
/// command line over it.
pub(crate) fn load_files(global: &Global, files: &[PathBuf], world: &World) -> Result<Settings> {
    let open = |path: &Path| keystore::open(&*world.fs, path, global);
    load_with(global, files, world, Some(&open))
}

/// The configuration of the command line as it is without the keystore.
pub(crate) fn load_without_secrets(global: &Global, world: &World) -> Result<Settings> {
    load_with(global, &global.config, world, None)
}

fn load_with(
    global: &Global,
    files: &[PathBuf],
    world: &World,
    keystore: Option<&OpenKeystore<'_>>,
) -> Result<Settings> {
    let home = std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(Path::to_path_buf))
        .unwrap_or_else(|| world.directory.clone());
    let mut files = files.to_vec();
    if files.is_empty() {
        files.push(PathBuf::from(CONFIG_FILE));
    }
    let environment = |name: &str| std::env::var(name).ok();
    let options = options(global, world, &environment, keystore);
    let options = LoadOptions { files: &files, home: &home, ..options };
    let settings = load(options).map_err(|problems| told(&problems))?;
    let over = cloud::overrides(&settings);
    let settings = if over.is_empty() {
        settings
    } else {
        let overrides = [global.overrides.clone(), over].concat();
        load(LoadOptions { overrides: &overrides, ..options })
            .map_err(|problems| told(&problems))?
    };
    if keystore.is_none() {
        return Ok(settings);
    }
    with_files(options, settings).map_err(|problems| told(&problems))
}

/// The settings with the files beside the configuration as they are now.
pub(crate) fn load_beside(global: &Global, settings: Settings, world: &World) -> Result<Settings> {
    let environment = |name: &str| std::env::var(name).ok();
    let options = options(global, world, &environment, None);
    with_files(options, settings).map_err(|problems| told(&problems))
}

/// How to load, but for the files and the place of the program.
fn options<'a>(
    global: &'a Global,
    world: &'a World,
    environment: &'a dyn Fn(&str) -> Option<String>,
    keystore: Option<&'a OpenKeystore<'a>>,
) -> LoadOptions<'a> {
    LoadOptions {
        files: &[],
        overrides: &global.overrides,
        home: Path::new("."),
        path_home: global.path_home.as_deref(),
        path_config: global.path_config.as_deref(),
        path_data: global.path_data.as_deref(),
        path_logs: global.path_logs.as_deref(),
        strict_permissions: global.strict_permissions,
        user_id: rustix::process::geteuid().as_raw(),
        fs: &*world.fs,
        pipes: &world.pipes,
        environment,
        keystore,
    }
}

/// Reads all settings; the error holds everything that is wrong, warnings are printed.
pub(crate) fn read_parts(
    settings: &Settings,
    world: &World,
    agent_of: impl FnOnce(Option<String>) -> Result<Agent>,
) -> Result<Parts> {
    let problems = Problems::new();
    let mut failed = None;
    let parts = assemble(settings, &problems, &world.outside(), |name| {
        agent_of(name).map_err(|error| failed = Some(error)).ok()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    match parts {
        Some(parts) if !problems.has_errors() => {
            warn(&problems);
            Ok(parts)
        }
        _ => Err(told(&problems)),
    }
}

#[expect(
    clippy::print_stderr,
    reason = "warnings about the configuration come before the log is on"
)]
fn warn(problems: &Problems) {
    if !problems.is_empty() {
        eprintln!("{}", plain::lines(&problems.to_string()));
    }
}

/// All problems as one error; they bring their own `error:`, of which the first is printed by main.
fn told(problems: &Problems) -> anyhow::Error {
    // What stops the start comes first.
    let mut sorted = problems.sorted();
    sorted.sort_by_key(|problem| problem.severity);
    let lines: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    anyhow::anyhow!(text.strip_prefix("error: ").unwrap_or(&text).to_owned())
}
