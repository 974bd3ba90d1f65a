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
use crate::passing::Passing;
use crate::progress::Progress;
use crate::run::{Running, Shortfall, Watch};
use crate::terminal::{print_beside, tell};
use crate::world::World;
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
pub(crate) fn ship(what: &Ship, global: &Global, world: &World) -> Result<ExitCode> {
    let state = Passing::new("ship")?;
    let settings = settings(what, global, world, state.path())?;
    let mut parts =
        read_parts(&settings, world, |name| Ok(Agent::passing(name, world.clock.wall())))?;
    // A terminal shows the progress; the log would only tear it.
    let quiet = global.debug.is_none() && !global.stderr;
    let log = parts.log.clone();
    let wanted = log.with_flags(&global.log_flags());
    logging::start_as(if quiet { Level::WARN } else { wanted.level }, wanted.format);
    // The dead letters are for the user and stay.
    for output in &mut parts.outputs {
        output.place.data.clone_from(&world.directory);
        for settings in output.inputs.iter_mut().filter_map(Input::files_mut) {
            settings.final_line = true;
        }
    }
    let files: Vec<_> =
        parts.files().flat_map(|settings| scan(&*world.fs, &settings.scan).0).collect();
    if files.is_empty() {
        bail!("{}", nothing_to_ship(&parts, world));
    }
    let agent = parts.agent.clone();
    let mut running = Running::start(parts, world, true)?;
    let watch = Watch::new(&running, &agent, None, &log.metrics, world)?;
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
        tell(&format!("refused events are in {}\n", letters.path().display()));
    }
    let held: u64 = lists.iter().map(|input| input.counts.read().files_held).sum();
    if held > 0 {
        tell(&format!("not read twice, because another file has the same content: {held} files\n"));
    }
    shortfall.add(&ledger, spoiled);
    watch.tell_problems();
    tell("`ship` remembers nothing: the same command sends these files again\n");
    shortfall.report(true);
    Ok(if outcome.settled { shortfall.code(&global.fail_on) } else { ExitCode::FAILURE })
}

/// Why there is no file.
fn nothing_to_ship(parts: &Parts, world: &World) -> String {
    let found = parts.files().flat_map(|settings| survey(&*world.fs, settings));
    let told = |finding: Finding| match finding {
        // Nothing is looked for again here.
        Finding::NoFile { .. } => format!("{finding}\nhint: check the path"),
        finding => format!("{finding}\nhint: {}", finding.remedy()),
    };
    let lines: Vec<String> = found.map(told).collect();
    if lines.is_empty() { "no file matches".to_owned() } else { lines.join("\n") }
}

/// The arguments as a configuration; `-c` files and `-E` come over it.
fn settings(what: &Ship, global: &Global, world: &World, state: &Path) -> Result<Settings> {
    let path = state.join("ship.yml");
    std::fs::write(&path, configuration(what, world)?)
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    let mut files = vec![path];
    files.extend(global.config.iter().cloned());
    let options = LoadOptions {
        files: &files,
        overrides: &global.overrides,
        home: state,
        path_home: Some(state),
        path_config: Some(&world.directory),
        path_data: Some(state),
        path_logs: Some(state),
        strict_permissions: global.strict_permissions,
        user_id: rustix::process::geteuid().as_raw(),
        fs: &RealFs,
        pipes: &world.pipes,
        environment: &|name| std::env::var(name).ok(),
        keystore: None,
    };
    load(options).map_err(|problems| anyhow::anyhow!("{problems}"))
}

fn configuration(what: &Ship, world: &World) -> Result<String> {
    let paths = serde_json::to_string(&what.paths)?;
    let output = output(what, world)?;
    // Everything is there already: nothing is gained by waiting, and the queue may be large.
    Ok(format!(
        "filebeat.inputs:\n- type: filestream\n  id: ship\n  compression: auto\n  paths: {paths}\n\
         queue.mem: {{events: 12800, flush.min_events: 1600, flush.timeout: 1s}}\n{output}\n"
    ))
}

fn output(what: &Ship, world: &World) -> Result<String> {
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
        let path = world.directory.join(directory);
        let path = serde_json::to_string(&path.to_string_lossy())?;
        // All of it is kept: rotation would delete what was just delivered.
        return Ok(format!(
            "output.file: {{path: {path}, filename: skidder, rotate_every_kb: 1048576, \
             number_of_files: 1024}}"
        ));
    }
    bail!("`--to {to}` is no destination; use http://HOST:9200, https://…, file:DIRECTORY or -")
}
