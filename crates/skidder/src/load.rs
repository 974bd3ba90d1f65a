//! Loading and checking the configuration of the command line.

use crate::agent::Agent;
use crate::assemble::{Parts, assemble};
use crate::cli::Global;
use crate::config_files::with_files;
use crate::system::System;
use crate::{cloud, plain, schema, secrets};
use anyhow::Result;
use skidder_config::{
    LoadOptions, OpenKeystore, Problems, Settings, is_there, load, load_without_file,
};
use skidder_observe::HttpConfig;
use std::path::{Path, PathBuf};

/// Default of `-c`, looked for in `path.config`.
const CONFIG_FILE: &str = "filebeat.yml";

/// Loads the configuration of the command line.
pub(crate) fn load_settings(global: &Global, system: &System) -> Result<Settings> {
    load_files(global, &global.config, system)
}

/// Loads a configuration from these files, or from the usual one if there is none, with the rest of the
/// command line over it.
pub(crate) fn load_files(global: &Global, files: &[PathBuf], system: &System) -> Result<Settings> {
    let open = |path: &Path| secrets::open(&*system.fs, path, global);
    load_with(global, files, system, Some(&open))
}

/// The configuration of the command line as it is without the keystore.
pub(crate) fn load_without_secrets(global: &Global, system: &System) -> Result<Settings> {
    load_with(global, &global.config, system, None)
}

/// The same for commands that need no file: without `-c` and the usual file, everything is below the current folder.
/// Also returns whether there is a file.
pub(crate) fn load_if_there(global: &Global, system: &System) -> Result<(Settings, bool)> {
    let environment = |name: &str| std::env::var(name).ok();
    let home = home(system);
    let options = LoadOptions { home: &home, ..options(global, system, &environment, None) };
    if !global.config.is_empty() || is_there(options, Path::new(CONFIG_FILE)) {
        return Ok((load_without_secrets(global, system)?, true));
    }
    let options = LoadOptions { home: &system.directory, ..options };
    let settings = load_without_file(options).map_err(|problems| as_error(&problems))?;
    Ok((settings, false))
}

/// The default of `path.home`: the folder of the program.
fn home(system: &System) -> PathBuf {
    std::env::current_exe()
        .ok()
        .and_then(|program| program.parent().map(Path::to_path_buf))
        .unwrap_or_else(|| system.directory.clone())
}

fn load_with(
    global: &Global,
    files: &[PathBuf],
    system: &System,
    keystore: Option<&OpenKeystore<'_>>,
) -> Result<Settings> {
    let home = home(system);
    let mut files = files.to_vec();
    if files.is_empty() {
        files.push(PathBuf::from(CONFIG_FILE));
    }
    let environment = |name: &str| std::env::var(name).ok();
    let options = options(global, system, &environment, keystore);
    let options = LoadOptions { files: &files, home: &home, ..options };
    let settings = load(options).map_err(|problems| as_error(&problems))?;
    let over = cloud::overrides(&settings);
    let settings = if over.is_empty() {
        settings
    } else {
        let overrides = [global.overrides.clone(), over].concat();
        load(LoadOptions { overrides: &overrides, ..options })
            .map_err(|problems| as_error(&problems))?
    };
    if keystore.is_none() {
        return Ok(settings);
    }
    with_files(options, settings).map_err(|problems| as_error(&problems))
}

/// The settings with the current files beside the configuration.
pub(crate) fn load_beside(
    global: &Global,
    settings: Settings,
    system: &System,
) -> Result<Settings> {
    let environment = |name: &str| std::env::var(name).ok();
    let options = options(global, system, &environment, None);
    with_files(options, settings).map_err(|problems| as_error(&problems))
}

/// How to load, but for the files and the place of the program.
fn options<'a>(
    global: &'a Global,
    system: &'a System,
    environment: &'a dyn Fn(&str) -> Option<String>,
    keystore: Option<&'a OpenKeystore<'a>>,
) -> LoadOptions<'a> {
    LoadOptions {
        files: &[],
        overrides: &global.overrides,
        directory: &system.directory,
        home: Path::new("."),
        path_home: global.path_home.as_deref(),
        path_config: global.path_config.as_deref(),
        path_data: global.path_data.as_deref(),
        path_logs: global.path_logs.as_deref(),
        strict_permissions: global.strict_permissions,
        user_id: rustix::process::geteuid().as_raw(),
        fs: &*system.fs,
        pipes: &system.pipes,
        environment,
        keystore,
    }
}

/// Reads all settings; the error holds everything that is wrong, warnings are printed.
pub(crate) fn read_parts(
    settings: &Settings,
    system: &System,
    agent_of: impl FnOnce(Option<String>) -> Result<Agent>,
) -> Result<Parts> {
    let problems = Problems::new();
    let mut failed = None;
    let parts = assemble(settings, &problems, &system.config_context(), |name| {
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
        _ => Err(as_error(&problems)),
    }
}

/// Reads only the settings of the endpoint, and where the data directory is: what else is wrong does not matter. `None` if
/// they are wrong themselves.
pub(crate) fn read_endpoint(settings: &Settings) -> Option<(HttpConfig, PathBuf)> {
    let problems = Problems::new();
    let root = settings.root(&problems);
    let http = HttpConfig::from_section(root.part(&schema::HTTP));
    (!problems.has_errors()).then(|| (http, settings.paths().data.clone()))
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
fn as_error(problems: &Problems) -> anyhow::Error {
    // What stops the start comes first.
    let mut sorted = problems.sorted();
    sorted.sort_by_key(|problem| problem.severity);
    let lines: Vec<String> = sorted.iter().map(ToString::to_string).collect();
    let text = lines.join("\n");
    anyhow::anyhow!(text.strip_prefix("error: ").unwrap_or(&text).to_owned())
}
