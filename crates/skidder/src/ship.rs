//! `skidder ship`: files to a destination, once, without a configuration.
//!
//! The arguments become an ordinary configuration, so that everything behaves as it does there; state is
//! kept in a directory that goes when the program ends.

use crate::agent::Agent;
use crate::assemble::Parts;
use crate::cli::{Global, Ship};
use crate::inputs::Input;
use crate::load::read_parts;
use crate::logging;
use crate::progress::Progress;
use crate::run::{Running, Shortfall, Watch};
use crate::system::System;
use crate::temporary::TemporaryDirectory;
use crate::terminal::{eprint, print_beside};
use anyhow::{Context as _, Result, bail};
use skidder_config::{LoadOptions, Settings, load};
use skidder_os::RealFs;
use skidder_read::scan::scan;
use skidder_read::{Finding, survey};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tracing::Level;

/// How often the progress is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// Ships and accounts; success only if everything was delivered.
pub(crate) fn ship(what: &Ship, global: &Global, system: &System) -> Result<ExitCode> {
    let state = TemporaryDirectory::new("ship")?;
    let settings = settings(what, global, system, state.path())?;
    let mut parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    // A terminal shows the progress; the log would only tear it.
    let quiet = global.debug.is_none() && !global.stderr;
    let log = parts.log.clone();
    let wanted = log.with_flags(&global.log_flags());
    logging::start_as(if quiet { Level::WARN } else { wanted.level }, wanted.format);
    // The dead letters are for the user and stay.
    for output in &mut parts.outputs {
        output.place.data.clone_from(&system.directory);
        for settings in output.inputs.iter_mut().filter_map(Input::files_mut) {
            settings.final_line = true;
        }
    }
    let files: Vec<_> =
        parts.files().flat_map(|settings| scan(&*system.fs, &settings.scan).0).collect();
    if files.is_empty() {
        bail!("{}", nothing_to_ship(&parts, system));
    }
    let agent = parts.agent.clone();
    let mut running = Running::start(parts, system, true)?;
    let watch = Watch::new(&running, &agent, None, &log.metrics, None, system)?;
    let mut progress = Progress::new(&files, global.verbose);
    running.watch(None, Some(DRAW_EVERY), |running| progress.draw(running));
    progress.end(&running);
    let only = running.first();
    let (kind, settle) = (only.kind, Arc::clone(&only.settle));
    let lists = only.list.list();
    let letters = only.dead_letters.clone();
    let spoiled = only.spoiled();
    let mut shortfall = Shortfall::of_files(std::mem::take(&mut running.files));
    let outcome = running.end(true);
    let table = watch.end();
    print_beside(kind, &table)?;
    let ledger = settle.total();
    if ledger.dead_lettered() > 0
        && let Some(letters) = letters
    {
        eprint(&format!("refused events are in {}\n", letters.path().display()));
    }
    let held: u64 = lists.iter().map(|input| input.counts.read().files_held).sum();
    if held > 0 {
        eprint(&format!(
            "not read twice, because another file has the same content: {held} files\n"
        ));
    }
    shortfall.add(&ledger, spoiled);
    watch.report_problems();
    eprint("`ship` remembers nothing: the same command sends these files again\n");
    shortfall.report(true);
    Ok(if outcome.settled { shortfall.code(&global.fail_on) } else { ExitCode::FAILURE })
}

/// Why there is no file.
fn nothing_to_ship(parts: &Parts, system: &System) -> String {
    let found = parts.files().flat_map(|settings| survey(&*system.fs, settings));
    let line = |finding: Finding| match finding {
        // There is no further scan here.
        Finding::NoFile { .. } => format!("{finding}\nhint: check the path"),
        finding => format!("{finding}\nhint: {}", finding.remedy()),
    };
    let lines: Vec<String> = found.map(line).collect();
    if lines.is_empty() { "no file matches".to_owned() } else { lines.join("\n") }
}

/// The arguments as a configuration; `-c` files and `-E` come over it.
fn settings(what: &Ship, global: &Global, system: &System, state: &Path) -> Result<Settings> {
    let path = state.join("ship.yml");
    std::fs::write(&path, configuration(what, system)?)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    let mut files = vec![path];
    files.extend(global.config.iter().cloned());
    let options = LoadOptions {
        files: &files,
        overrides: &global.overrides,
        directory: &system.directory,
        home: state,
        path_home: Some(state),
        path_config: Some(&system.directory),
        path_data: Some(state),
        path_logs: Some(state),
        strict_permissions: global.strict_permissions,
        user_id: rustix::process::geteuid().as_raw(),
        fs: &RealFs,
        pipes: &system.pipes,
        environment: &|name| std::env::var(name).ok(),
        keystore: None,
    };
    load(options).map_err(|problems| anyhow::anyhow!("{problems}"))
}

fn configuration(what: &Ship, system: &System) -> Result<String> {
    let paths = serde_json::to_string(&what.paths)?;
    let output = output(what, system)?;
    // Everything is there already: nothing is gained by waiting, and the queue may be large.
    Ok(format!(
        "filebeat.inputs:\n- type: filestream\n  id: ship\n  compression: auto\n  paths: {paths}\n\
         queue.mem: {{events: 12800, flush.min_events: 1600, flush.timeout: 1s}}\n{output}\n"
    ))
}

fn output(what: &Ship, system: &System) -> Result<String> {
    let to = &what.to;
    if to.starts_with("http://") || to.starts_with("https://") {
        let hosts = serde_json::to_string(&[to])?;
        let index = match &what.index {
            Some(index) => format!(", index: {}", serde_json::to_string(index)?),
            None => String::new(),
        };
        return Ok(format!(
            "setup: {{template.enabled: false, ilm.enabled: false}}\n\
             output.elasticsearch: {{hosts: {hosts}{index}}}"
        ));
    }
    if what.index.is_some() {
        bail!("`--index` is for Elasticsearch; `--to {to}` has none");
    }
    if to == "-" {
        return Ok("output.console.enabled: true".to_owned());
    }
    if let Some(directory) = to.strip_prefix("file:") {
        let path = system.directory.join(directory);
        let path = serde_json::to_string(&path.to_string_lossy())?;
        // All of it is kept: rotation would delete data that was just delivered.
        return Ok(format!(
            "output.file: {{path: {path}, filename: skidder, rotate_every_kb: 1048576, \
             number_of_files: 1024}}"
        ));
    }
    bail!("`--to {to}` is no destination; use http://HOST:9200, https://…, file:DIRECTORY or -")
}
