//! `skidder queue`: shows the content of a disk queue, and repairs a damaged one.

use crate::agent::Agent;
use crate::cli::{Global, QueueCommand, WhichQueue};
use crate::load::{load_settings, read_parts};
use crate::logging;
use crate::outputs::{key_of_file, quoted};
use crate::system::System;
use crate::table::{or_dash, table};
use crate::terminal::print;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use skidder_event::{Precision, TimeText};
use skidder_os::Timestamp;
use skidder_pipeline::{
    DiskQueueKey, DiskQueueReport, SegmentReport, inspect_disk_queue, repair_disk_queue,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tracing::Level;

/// The effect of segments without a state.
const STATE_LOST: &str = "`queue.state` is gone or damaged: events may be missing before the first segment and behind the last one\n";

/// Runs the subcommand.
pub(crate) fn dispatch(what: &QueueCommand, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::WARN });
    match what {
        QueueCommand::Inspect { which, json } => {
            inspect(&which.find(global, system)?, *json, system)
        }
        QueueCommand::Repair { which } => repair(&which.find(global, system)?, system),
    }
}

/// A queue to look at.
struct SelectedQueue {
    path: PathBuf,
    /// Its key, if it is encrypted and the key is given.
    key: Option<DiskQueueKey>,
}

impl WhichQueue {
    /// The queue, whose directory must be there.
    fn find(&self, global: &Global, system: &System) -> Result<SelectedQueue> {
        let mut selected = match &self.path {
            Some(path) => SelectedQueue { path: path.clone(), key: None },
            None => self.configured(global, system)?,
        };
        if let Some(file) = &self.key_file {
            selected.key = Some(key_of_file(&*system.fs, file).map_err(anyhow::Error::msg)?);
        }
        let found = system.fs.metadata(&selected.path);
        found
            .with_context(|| format!("there is no disk queue in `{}`", selected.path.display()))?;
        Ok(selected)
    }

    fn configured(&self, global: &Global, system: &System) -> Result<SelectedQueue> {
        let settings = load_settings(global, system)?;
        let agent = |name| Ok(Agent::temporary(name, system.clock.wall()));
        let parts = read_parts(&settings, system, agent)?;
        let wanted = |id: &Option<String>| self.output.is_none() || *id == self.output;
        let mut queues: Vec<_> = parts.outputs.iter().filter(|output| wanted(&output.id)).collect();
        if let Some(id) = self.output.as_ref().filter(|_| queues.is_empty()) {
            bail!("there is no output `{id}`");
        }
        queues.retain(|output| output.disk.is_some());
        if queues.len() > 1 {
            let ids: Vec<String> = queues.iter().filter_map(|output| output.id.clone()).collect();
            let ids = quoted(&ids);
            bail!("there are several disk queues ({ids}); choose one with `--output ID`");
        }
        let disk = queues.pop().and_then(|output| output.disk.as_ref());
        let disk =
            disk.context("the configuration has no `queue.disk`; say where with `--path`")?;
        Ok(SelectedQueue { path: disk.path.clone(), key: disk.key.clone() })
    }
}

fn inspect(queue: &SelectedQueue, json: bool, system: &System) -> Result<ExitCode> {
    let path = queue.path.as_path();
    let report = inspect_disk_queue(&*system.fs, path, queue.key.as_ref())?;
    let text = if json { as_json(path, &report) } else { as_text(path, &report) };
    print(&text)?;
    Ok(if report.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn time(time: Option<Timestamp>) -> Option<String> {
    let mut text = TimeText::new(Precision::Millisecond);
    time.map(|time| String::from_utf8_lossy(text.format(time.0)).into_owned())
}

fn as_json(path: &Path, report: &DiskQueueReport) -> String {
    let segment = |of: &SegmentReport| {
        json!({
            "path": of.path.to_string_lossy(), "bytes": of.bytes, "frames": of.frames,
            "events": of.events, "waiting": of.waiting, "damaged": of.damaged,
            "missing": of.missing, "unfinished_bytes": of.unfinished,
            "oldest": time(of.oldest), "newest": time(of.newest),
        })
    };
    let segments: Vec<Value> = report.segments.iter().map(segment).collect();
    let value = json!({
        "path": path.to_string_lossy(), "waiting": report.waiting, "missing": report.missing,
        "damaged": report.damaged, "sealed": report.sealed, "has_state": report.has_state, "segments": segments,
    });
    format!("{value:#}\n")
}

fn as_text(path: &Path, report: &DiskQueueReport) -> String {
    let row = |of: &SegmentReport| {
        [
            of.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            of.bytes.to_string(),
            of.frames.to_string(),
            of.events.to_string(),
            of.waiting.to_string(),
            of.damaged.to_string(),
            of.missing.to_string(),
            of.unfinished.to_string(),
            or_dash(time(of.oldest)),
            or_dash(time(of.newest)),
        ]
    };
    let rows: Vec<_> = report.segments.iter().map(row).collect();
    let head = [
        "SEGMENT",
        "BYTES",
        "FRAMES",
        "EVENTS",
        "WAITING",
        "DAMAGED",
        "MISSING",
        "UNFINISHED",
        "OLDEST",
        "NEWEST",
    ];
    let mut text = table(head, &rows);
    let sealed = match report.sealed {
        0 => String::new(),
        frames => format!("; {frames} frames are encrypted, and were only counted without the key"),
    };
    text.push_str(&format!(
        "{}: {} events wait, {} are missing at {} damaged places{}{sealed}\n",
        path.display(),
        report.waiting,
        report.missing,
        report.damaged,
        if report.has_state { "" } else { "; nothing says how far it was delivered" },
    ));
    if report.state_is_lost() {
        text.push_str(STATE_LOST);
    }
    text
}

fn repair(queue: &SelectedQueue, system: &System) -> Result<ExitCode> {
    let path = queue.path.as_path();
    let report = inspect_disk_queue(&*system.fs, path, queue.key.as_ref());
    let state_is_lost = report.as_ref().is_ok_and(DiskQueueReport::state_is_lost);
    // A queue that cannot be inspected may still be repaired.
    if report.is_ok_and(|report| report.is_whole()) {
        print(&format!("{}: nothing is damaged\n", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let done =
        repair_disk_queue(Arc::clone(&system.fs), path, queue.key.clone(), system.clock.wall())?;
    print(&format!(
        "{}: {} events in {} frames are kept, {} are missing at {} damaged places\n\
         the files that were there are in {}\n",
        path.display(),
        done.events,
        done.frames,
        done.missing,
        done.damaged,
        done.aside.display(),
    ))?;
    if state_is_lost {
        print(STATE_LOST)?;
    }
    Ok(ExitCode::SUCCESS)
}
