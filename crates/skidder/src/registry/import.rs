//! `skidder registry import`: every file goes on where Filebeat stopped.

use super::{commit, file_entries, filebeat_runs, warn_of_problems};
use crate::agent::{self, Agent};
use crate::assemble::Parts;
use crate::cli::{Global, Import};
use crate::inputs::Input;
use crate::load::{load_settings, read_parts};
use crate::system::System;
use crate::table::{or_dash, short, table};
use crate::terminal::{eprint, print};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use skidder_os::File;
use skidder_read::FilestreamSettings;
use skidder_read::import::{Adopted, Adoption, Restart, plan};
use skidder_registry::filebeat::{FilebeatEntry, FilebeatRegistry, Owner, find, load};
use skidder_registry::{Change, Checkpoint, FileEntry};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What an import does, or would do.
pub(crate) struct Imported {
    /// What becomes of each entry of Filebeat, for each input that could be meant.
    pub(crate) rows: Vec<Adopted>,
    /// Filebeat's entries.
    pub(crate) theirs: Vec<FilebeatEntry>,
    /// What could not be read of its registry.
    pub(crate) problems: Vec<String>,
    /// Whether entries of it may be missing.
    pub(crate) is_damaged: bool,
    /// The directory of its registry.
    pub(crate) store: PathBuf,
}

pub(super) fn import(options: &Import, global: &Global, system: &System) -> Result<ExitCode> {
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())))?;
    let from = options.from.as_ref().unwrap_or(&parts.data);
    let imported = take_over(from, options.dry_run, &parts, system)?;
    if options.json {
        print(&format!("{:#}\n", imported.as_json(options.dry_run)))?;
    } else {
        warn_of_problems(&imported.problems);
        print(&imported.as_table())?;
        print(&format!("{}\n", imported.summary()))?;
        if options.dry_run {
            print("nothing was written (`--dry-run`)\n")?;
        }
    }
    Ok(imported.exit_code())
}

/// Takes over the registry at or below `from`, for the output that a single one would be; or only prints
/// what it would do.
pub(crate) fn take_over(
    from: &Path,
    dry_run: bool,
    parts: &Parts,
    system: &System,
) -> Result<Imported> {
    let Some(output) = parts.outputs.iter().find(|output| output.place.is_main) else {
        bail!(
            "the output that goes on where a single one was is not among those of `outputs`; list it, or \
             import into another directory with `--path.data`"
        );
    };
    let registry = &output.place.registry;
    let store = find(&*system.fs, &system.directory.join(from))?;
    // Held to the end: neither program may start or stop meanwhile.
    let _lock = lock(dry_run, &parts.data, &store, system)?;
    let FilebeatRegistry { entries: theirs, problems, is_damaged, .. } = load(&*system.fs, &store)?;
    let ours: HashMap<String, FileEntry> = file_entries(registry, system)?.into_iter().collect();
    let inputs: Vec<&FilestreamSettings> = output.inputs.iter().filter_map(Input::files).collect();
    let now = system.clock.wall();
    let rows = plan(&*system.fs, &inputs, &theirs, &ours, now);
    if !dry_run {
        let outdated = rows.iter().filter_map(|row| row.remove.as_deref());
        let mut changes: Vec<Change> =
            outdated.map(|key| Change::Remove { key: key.into() }).collect();
        let put = rows.iter().filter_map(|row| row.put.clone()).map(|(key, entry)| Change::Put {
            key: key.into(),
            entry: entry.into(),
            checkpoint: Checkpoint::Clear,
        });
        changes.extend(put);
        agent::take_over_id(&*system.fs, &store, &parts.data)?;
        commit(registry, &changes, system)?;
    }
    Ok(Imported { rows, theirs, problems, is_damaged, store })
}

/// Locks out other programs that change one of the registries.
fn lock(
    dry_run: bool,
    data: &Path,
    store: &Path,
    system: &System,
) -> Result<Option<Box<dyn File>>> {
    let running = filebeat_runs(&*system.fs, store);
    if dry_run {
        if let Some(path) = running {
            eprint(&format!(
                "warning: Filebeat is running (it holds `{}`), so its cursors still move\n",
                path.display()
            ));
        }
        return Ok(None);
    }
    if let Some(path) = running {
        bail!(
            "Filebeat is running (it holds `{}`); stop it first, so that its last cursors are saved and \
             no line is sent twice",
            path.display()
        );
    }
    agent::lock_data(&*system.fs, data).map(Some)
}

impl Imported {
    /// One row for what becomes of each entry.
    pub(crate) fn as_table(&self) -> String {
        let rows: Vec<[String; 6]> = self
            .rows
            .iter()
            .map(|row| {
                let entry = &self.theirs[row.entry];
                let path = if row.path.as_os_str().is_empty() {
                    entry.key.clone()
                } else {
                    row.path.display().to_string()
                };
                [
                    path,
                    input_of(row, entry),
                    format!("{} {}", entry.identity.name(), short(&entry.identity.value())),
                    or_dash(entry.offset),
                    or_dash(row.size),
                    what(row),
                ]
            })
            .collect();
        table(["PATH", "INPUT", "KNOWN BY", "OFFSET", "SIZE NOW", "WHAT"], &rows)
    }

    /// How many entries there are, and what becomes of how many.
    pub(crate) fn summary(&self) -> String {
        let count = |wanted: fn(&Adoption) -> bool| {
            self.rows.iter().filter(|row| wanted(&row.adoption)).count()
        };
        format!(
            "{} entries in {}: {} go on, {} finished, {} from the start, {} known already, {} left out",
            self.theirs.len(),
            self.store.display(),
            count(|adoption| matches!(adoption, Adoption::Continue { .. })),
            count(|adoption| matches!(adoption, Adoption::Finished)),
            count(|adoption| matches!(adoption, Adoption::Restart(_))),
            count(|adoption| matches!(adoption, Adoption::Known { .. })),
            count(|adoption| matches!(adoption, Adoption::Skip(_))),
        )
    }

    /// Failure if lines may come again because entries could not be read, or are left out although their files are there;
    /// prints that.
    pub(crate) fn exit_code(&self) -> ExitCode {
        if self.is_damaged {
            eprint(&format!(
                "error: the registry in {} is damaged, and entries may be missing; files without an entry are read from \
                 the start\n",
                self.store.display()
            ));
        }
        let lost = self.rows.iter().filter(|row| row.is_lost()).count();
        if lost > 0 {
            eprint(&format!(
                "error: {lost} entries are left out although their files are there, or of objects; what an input reads of \
                 these begins at the start, and lines come twice\nhint: the last column has the reason of each\n"
            ));
        }
        if lost > 0 || self.is_damaged { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }

    /// Everything, for programs.
    pub(crate) fn as_json(&self, dry_run: bool) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let entry = &self.theirs[row.entry];
                json!({
                    "path": row.path.to_string_lossy(),
                    "input": row.input,
                    "from_key": entry.key,
                    "identity": entry.identity.name(),
                    "offset": entry.offset,
                    "size": row.size,
                    "action": action(&row.adoption),
                    "what": what(row),
                    "key": row.put.as_ref().map(|(key, _)| key),
                })
            })
            .collect();
        json!({
            "entries": rows, "problems": self.problems, "damaged": self.is_damaged, "dry_run": dry_run,
        })
    }
}

/// One word for programs.
fn action(adoption: &Adoption) -> &'static str {
    match adoption {
        Adoption::Continue { .. } => "continue",
        Adoption::Finished => "finished",
        Adoption::Restart(Restart::Unread) => "unread",
        Adoption::Restart(_) => "restart",
        Adoption::Known { .. } => "known",
        Adoption::Skip(_) => "skip",
    }
}

fn input_of(row: &Adopted, entry: &FilebeatEntry) -> String {
    match (&row.input, &entry.owner) {
        (Some(id), _) if id.is_empty() => "(no id)".to_owned(),
        (Some(id), _) => id.clone(),
        (None, Owner::Log) => "(log inputs)".to_owned(),
        (None, _) => "-".to_owned(),
    }
}

fn what(row: &Adopted) -> String {
    let mut what = row.adoption.to_string();
    if row.other_device {
        what.push_str("; its device has another number now");
    }
    if row.absent_input && row.put.is_some() {
        what.push_str("; kept for this input, which the configuration does not have");
    }
    what
}
