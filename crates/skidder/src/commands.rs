//! One function a command.

use crate::agent::{Agent, VERSION};
use crate::cli::{Command, CommandLine, Export, Global, SetupArguments, Test};
use crate::load::{load_settings, read_parts};
use crate::migrate::judge;
use crate::run::Reloader;
use crate::signals::Caught;
use crate::startup::Startup;
use crate::system::System;
use crate::terminal::{eprint, print};
use crate::{
    agent, dashboards, files, keystore, logging, migrate, module_files, pages, registry, run,
    sample, schema, ship, tune,
};
use anyhow::{Result, bail};
use skidder_config::{Problem, Subject};
use skidder_modules::Overrides;
use skidder_pipeline::SetUp;
use skidder_read::survey;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs the command of the command line.
pub(crate) fn dispatch(line: &CommandLine, caught: Caught) -> Result<ExitCode> {
    if !matches!(line.command, None | Some(Command::Run | Command::Ship(_))) {
        caught.release();
    }
    let mut system = System { caught, ..System::real()? };
    system.modules = Arc::new(modules_of(line));
    if line.global.trace_startup {
        system.startup = Startup::traced(&system.clock);
    }
    match &line.command {
        None | Some(Command::Run) => run_command(&line.global, &system),
        Some(Command::Ship(what)) => ship::ship(what, &line.global, &system),
        Some(Command::Test { what: Test::Config }) => test_config(&line.global, &system),
        Some(Command::Test { what: Test::Output }) => test_output(&line.global, &system),
        Some(Command::Export { what: Export::Config }) => export_config(&line.global, &system),
        Some(Command::Export { what: Export::Schema }) => schema::export(),
        Some(Command::Files(what)) => files::files(what, &line.global, &system),
        Some(Command::Status(what)) => crate::status::status(*what, &line.global, &system),
        Some(Command::Autodiscover { what }) => {
            crate::autodiscover::dispatch(what, &line.global, &system)
        }
        Some(Command::Top(what)) => top(*what, &line.global, &system),
        Some(Command::Page(what)) => crate::page::page(*what, &line.global, &system),
        Some(Command::Process(what)) => sample::process(what, &line.global, &system.for_trial()),
        Some(Command::Explain(what)) => sample::explain(what, &line.global, &system.for_trial()),
        Some(Command::Diff(what)) => Ok(sample::diff(what, &line.global, &system.for_trial())),
        Some(Command::Tune(what)) => tune::tune(what, &line.global, &system),
        Some(Command::Migrate(what)) => migrate::migrate(what, &line.global, &system),
        Some(Command::Registry { what }) => registry::dispatch(what, &line.global, &system),
        Some(Command::DeadLetters { what }) => {
            crate::dead_letters::dispatch(what, &line.global, &system)
        }
        Some(Command::Queue { what }) => crate::queue::dispatch(what, &line.global, &system),
        Some(Command::Version) => {
            print(&format!(
                "skidder version {VERSION} ({}), compatible with filebeat {}\n",
                std::env::consts::ARCH,
                agent::COMPATIBLE_VERSION
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        Some(Command::Setup(what)) => set_up(*what, &line.global, &system),
        Some(Command::Keystore { what }) => keystore::dispatch(what, &line.global, &system),
        Some(Command::Modules { what }) => module_files::dispatch(what, &line.global, &system),
        Some(Command::Generate { what }) => crate::generate::dispatch(what, &line.global, &system),
        Some(Command::Completion { shell }) => pages::completion(*shell),
        Some(Command::Man { directory }) => pages::man(directory.as_deref()),
        Some(Command::Help { words }) => pages::help(words),
        Some(Command::Validate) => test_config(&line.global, &system),
    }
}

#[cfg(feature = "top")]
use crate::top::top;

/// Says that the command is not here.
#[cfg(not(feature = "top"))]
fn top(_: crate::cli::Top, _: &Global, _: &System) -> Result<ExitCode> {
    bail!("this program was built without `top`; use one with the cargo feature `top`")
}

/// What the command line says of modules.
fn modules_of(line: &CommandLine) -> Overrides {
    let setup = match &line.command {
        Some(Command::Setup(what)) => (what.enable_all_filesets, what.force_enable_module_filesets),
        _ => (false, false),
    };
    Overrides {
        modules: line.global.modules.clone(),
        settings: line.global.module_settings.clone(),
        enable_all: setup.0,
        force: setup.1,
    }
}

fn run_command(global: &Global, system: &System) -> Result<ExitCode> {
    // Before any other descriptor is opened.
    system.sockets.inherit()?;
    let settings = load_settings(global, system)?;
    system.startup.step(|| "configuration read".to_owned());
    // The lock comes first, because the agent's id is in the directory that it protects.
    let data = settings.paths().data.clone();
    let (_lock, mut parts) = {
        let lock = agent::lock_data(&*system.fs, &data)?;
        (
            lock,
            read_parts(&settings, system, |name| {
                Agent::load(&*system.fs, &*system.clock, &data, name)
            })?,
        )
    };
    system.startup.step(|| "data directory locked, settings checked".to_owned());
    if global.once && parts.inputs().is_empty() {
        bail!("there is no input: with `--once` there is nothing to wait for");
    }
    for output in parts.outputs.iter().filter(|output| output.place.is_main) {
        registry::refuse_unadopted(system, &output.place.registry)?;
    }
    logging::start_run(parts.log.with_flags(&global.log_flags()))?;
    for id in parts.places.claim(&*system.fs, &parts.output_ids)? {
        tracing::warn!(
            output.id = id,
            "what is remembered for an output that the configuration does not have is kept"
        );
    }
    dashboards::load_at_start(&parts.dashboards, system, global.once)?;
    let reloader = (!global.once).then(|| Reloader::new(global, system, settings, &mut parts));
    run::run(parts, system, reloader, &global.fail_on)
}

fn test_config(global: &Global, system: &System) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    for input in parts.files() {
        let name = files::name_of(input);
        for finding in survey(&*system.fs, input) {
            eprint(&format!("warning: input `{name}`: {finding}\nhint: {}\n", finding.remedy()));
        }
    }
    print("Config OK\n")?;
    Ok(ExitCode::SUCCESS)
}

fn test_output(global: &Global, system: &System) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    let runtime = crate::runtime::runtime("sockets", 1)?;
    let mut lines = Vec::new();
    let mut good = true;
    for output in &parts.outputs {
        if let Some(id) = &output.id {
            lines.push(format!("output `{id}`\n"));
        }
        let mut add_line = |line: &str| lines.push(format!("{line}\n"));
        good &= runtime.block_on(output.output.check(&mut add_line));
    }
    print(&lines.concat())?;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// `skidder setup`: for every output that has something to be set up.
fn set_up(what: SetupArguments, global: &Global, system: &System) -> Result<ExitCode> {
    let is_all = !(what.index_management || what.pipelines || what.dashboards);
    let parts_of = SetUp {
        index_management: is_all || what.index_management,
        pipelines: is_all || what.pipelines,
    };
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    let runtime = crate::runtime::runtime("sockets", 1)?;
    let mut lines = Vec::new();
    let mut all = Vec::new();
    for output in parts.outputs.iter().filter(|_| parts_of.index_management || parts_of.pipelines) {
        let mut add_line = |line: &str| lines.push(format!("{line}\n"));
        if let Some(setting_up) = output.output.set_up(parts_of, &mut add_line) {
            all.push(runtime.block_on(setting_up));
        }
    }
    if is_all || what.dashboards {
        let mut add_line = |line: &str| lines.push(format!("{line}\n"));
        all.extend(dashboards::set_up(&parts.dashboards, system, &runtime, !is_all, &mut add_line));
    }
    print(&lines.concat())?;
    if all.is_empty() {
        bail!(
            "no output is `elasticsearch`, and there are no dashboards: there is nothing to set up"
        );
    }
    Ok(if all.contains(&false) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn export_config(global: &Global, system: &System) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let (_, problems) = judge(&settings, system);
    let (unknown, wrong): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.subject == Subject::Unknown);
    let places = |problems: Vec<Problem>| -> Vec<_> {
        problems.into_iter().filter_map(|problem| problem.position).collect()
    };
    print(&settings.export_yaml_without(&schema::CONFIGURATION, &places(unknown), &places(wrong)))?;
    Ok(ExitCode::SUCCESS)
}
