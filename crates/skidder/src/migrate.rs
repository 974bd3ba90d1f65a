//! `skidder migrate`: from an installed Filebeat to skidder, with a check before anything is written.
//!
//! Filebeat's configuration goes over unchanged, its registry through the import, its keystore as it is.
//! Nothing of Filebeat's is changed, so that the way back is open.

mod differences;
mod place;
mod report;
mod rewrite;

use crate::agent::Agent;
use crate::assemble::{Parts, assemble};
use crate::cli::{Global, Migrate};
use crate::load::load_files;
use crate::logging;
use crate::registry::import::{Imported, take_over};
use crate::system::System;
use crate::terminal::{eprint, print, print_exactly};
use anyhow::{Context as _, Result, bail};
use place::{Theirs, copy, copy_folder, write_configuration};
use report::Report;
use skidder_config::{Content, FILE_BYTES_MAX, Problem, Problems, Settings, Severity, Subject};
use skidder_os::{FileKind, read_to_end};
use skidder_registry::filebeat::FindError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tracing::Level;

/// Reports how a Filebeat installation migrates, and does it unless this is a dry run.
pub(crate) fn migrate(options: &Migrate, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::WARN });
    if options.print {
        return print_rewritten(options, system);
    }
    let theirs = Theirs::find(options, global, system)?;
    let ours = Ours::of(options, global);
    let global = ours.global(&theirs, global);
    let settings = load_files(&global, std::slice::from_ref(&theirs.configuration), system)?;
    let (parts, problems) = judge(&settings, system);
    let stops = problems.iter().any(|problem| stops(problem, options.lenient));
    let dry_run = options.dry_run || stops;
    let registry = match &parts {
        Some(parts) => adopt(&theirs, dry_run, parts, system, &ours, options)?,
        None => None,
    };
    let report = Report {
        theirs: &theirs,
        problems: &problems,
        lenient: options.lenient,
        inputs: parts.as_ref().map(|parts| parts.inputs().len()),
        registry: registry.as_ref(),
        dry_run,
    };
    if options.json {
        print(&format!("{:#}\n", report.as_json()))?;
    } else {
        print(&report.as_text())?;
        print(&next_steps(options, &theirs, &ours, stops))?;
    }
    let taken = registry.as_ref().map_or(ExitCode::SUCCESS, Imported::exit_code);
    Ok(if stops { ExitCode::FAILURE } else { taken })
}

/// Prints the configuration as it would be written today.
fn print_rewritten(options: &Migrate, system: &System) -> Result<ExitCode> {
    let from = system.directory.join(&options.from);
    let from = if from.is_dir() { from.join(place::CONFIGURATION) } else { from };
    let text = read_configuration(&from, system)?;
    // Nested without bounds, or no settings at all: it is refused as a start would refuse it.
    match Settings::parse(&from.display().to_string(), &text) {
        Ok(settings) if matches!(settings.node().content(), Content::Map(_) | Content::Null) => {}
        Ok(_) => {
            bail!("`{}` has no settings; expected a configuration of Filebeat", from.display())
        }
        Err(problems) => {
            let text = problems.to_string();
            bail!("{}", text.strip_prefix("error: ").unwrap_or(&text));
        }
    }
    if let Some((line, obstacle)) = rewrite::given_twice(&text) {
        bail!("{}:{line}: {obstacle}", from.display());
    }
    if let Some(line) = rewrite::in_braces(&text) {
        eprint(&format!(
            "warning: {}:{line}: inputs in braces stay as they are, and run\n\
             hint: to have them rewritten, write each setting of them in a line of its own\n",
            from.display()
        ));
    }
    match rewrite::rewrite(&text) {
        Some(new) => print_exactly(&new)?,
        None => {
            eprint(&format!(
                "nothing to rewrite in `{}`; `skidder migrate --dry-run` says what else may be in the way\n",
                from.display()
            ));
            print_exactly(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The text of a configuration, which must be a file of a bounded size.
fn read_configuration(path: &Path, system: &System) -> Result<String> {
    let shown = path.display();
    let failed = || format!("cannot read `{shown}`");
    // A pipe is not even opened, which would wait for a writer.
    if system.fs.metadata(path).with_context(failed)?.kind != FileKind::Regular {
        bail!("`{shown}` is a pipe or device; expected a file");
    }
    let file = system.fs.open(path).with_context(failed)?;
    let bytes = read_to_end(&*file, FILE_BYTES_MAX).with_context(failed)?;
    String::from_utf8(bytes).with_context(failed)
}

/// Where our own things go.
struct Ours {
    /// The folder of the configuration.
    folder: PathBuf,
    /// `path.data`.
    data: PathBuf,
}

impl Ours {
    fn of(options: &Migrate, global: &Global) -> Self {
        let data = global.path_data.clone();
        Self {
            folder: options.to.clone(),
            data: data.unwrap_or_else(|| PathBuf::from("/var/lib/skidder")),
        }
    }

    fn configuration(&self) -> PathBuf {
        self.folder.join("filebeat.yml")
    }

    /// The command line with which Filebeat's configuration is read as ours.
    fn global(&self, theirs: &Theirs, global: &Global) -> Global {
        let mut overrides = vec!["compat=lenient".to_owned()];
        if let Some(keystore) = &theirs.keystore {
            overrides.push(format!("keystore.path={}", keystore.display()));
        }
        overrides.extend(global.overrides.iter().cloned());
        Global {
            config: vec![theirs.configuration.clone()],
            overrides,
            stderr: global.stderr,
            verbose: global.verbose,
            debug: global.debug.clone(),
            environment: global.environment,
            path_home: global.path_home.clone().or_else(|| Some(theirs.folder.clone())),
            path_config: Some(theirs.folder.clone()),
            path_data: Some(self.data.clone()),
            path_logs: global.path_logs.clone(),
            strict_permissions: global.strict_permissions,
            once: false,
            fail_on: Vec::new(),
            trace_startup: false,
            modules: global.modules.clone(),
            module_settings: global.module_settings.clone(),
        }
    }
}

/// Reads all settings: returns the parts, unless there are errors, and all problems.
pub(crate) fn judge(settings: &Settings, system: &System) -> (Option<Parts>, Vec<Problem>) {
    let problems = Problems::new();
    let trial = system.clone().for_trial();
    let parts = assemble(settings, &problems, &trial.config_context(), |name| {
        Some(Agent::temporary(name, system.clock.wall()))
    });
    let parts = parts.filter(|_| !problems.has_errors());
    (parts, problems.sorted())
}

/// Whether the move cannot be made with this in the configuration.
fn stops(problem: &Problem, lenient: bool) -> bool {
    match problem.subject {
        Subject::Unknown | Subject::Unsupported => !lenient,
        Subject::Mistake | Subject::Missing => problem.severity == Severity::Error,
        Subject::NoEffect => false,
    }
}

/// Takes over the registry and writes our files, or only looks at what that would be.
fn adopt(
    theirs: &Theirs,
    dry_run: bool,
    parts: &Parts,
    system: &System,
    ours: &Ours,
    options: &Migrate,
) -> Result<Option<Imported>> {
    let target = ours.configuration();
    if !dry_run {
        place::refuse_other(&target, &theirs.configuration, options.force)?;
    }
    let imported = match take_over(&theirs.data, dry_run, parts, system) {
        Ok(imported) => Some(imported),
        Err(error) if matches!(error.downcast_ref(), Some(FindError::Nothing { .. })) => None,
        Err(error) => return Err(error),
    };
    if dry_run {
        return Ok(imported);
    }
    if let Some(keystore) = &theirs.keystore {
        system
            .fs
            .create_dir_all(&ours.data, skidder_os::PRIVATE_DIRECTORY)
            .with_context(|| format!("cannot make `{}`", ours.data.display()))?;
        copy(keystore, &ours.data.join("filebeat.keystore"))?;
    }
    for folder in &theirs.beside {
        copy_folder(folder, &theirs.folder, &ours.folder)?;
    }
    write_configuration(&theirs.configuration, &target, options.lenient)?;
    Ok(imported)
}

/// The next steps for the user.
fn next_steps(options: &Migrate, theirs: &Theirs, ours: &Ours, stops: bool) -> String {
    let command = format!(
        "skidder -c {} --path.config {} --path.data {}",
        ours.configuration().display(),
        ours.folder.display(),
        ours.data.display()
    );
    if stops {
        return format!(
            "\nnothing was written: what is marked with ! stands in the way. Change it in {} (Filebeat \
             may run on with it), or take everything else over with `--lenient`, which leaves unknown \
             and unsupported settings without effect\n",
            theirs.configuration.display()
        );
    }
    if options.dry_run {
        return format!(
            "\nnothing was written (`--dry-run`). Next: stop Filebeat (`systemctl disable --now \
             filebeat`), run this again without `--dry-run`, start skidder (`{command}`)\n"
        );
    }
    format!(
        "\nwritten: {}. Next: start skidder (`{command}`); Filebeat must stay off (`systemctl disable \
         filebeat`). Back to Filebeat: `skidder registry export` writes its registry\n",
        ours.configuration().display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_cannot_be_left_out_stops_a_lenient_move() {
        let of = |subject| Problem::error(None, "x").about(subject);
        assert!(stops(&of(Subject::Unknown), false) && !stops(&of(Subject::Unknown), true));
        assert!(stops(&of(Subject::Unsupported), false) && !stops(&of(Subject::Unsupported), true));
        assert!(stops(&of(Subject::Mistake), true) && !stops(&of(Subject::NoEffect), false));
        assert!(!stops(&Problem::warning(None, "x"), false));
    }
}
