//! `skidder diff`: what two configurations make of the same lines.

use super::{Look, Sample, one_input, only, run};
use crate::agent::Agent;
use crate::cli::{Diff, Global};
use crate::input_plan::{InputPlan, SourcePlan};
use crate::load::load_files;
use crate::logging;
use crate::system::System;
use crate::table::table;
use crate::terminal::{eprint, print};
use anyhow::{Result, bail};
use serde_json::{Map as JsonMap, Value as Json};
use skidder_event::{Batch, Encoder, Map, Precision};
use skidder_os::{Clock, Monotonic, Timestamp};
use skidder_outputs::Discard;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::Level;

/// Characters of a line that are shown.
const LINE_CHARS_MAX: usize = 120;

/// Maximum events to compare; the rest is only counted.
const EVENTS_MAX: usize = 100_000;

/// Exit code if there is a difference, as `diff` has it.
const DIFFERENT: u8 = 1;

/// Exit code if the comparison could not be made.
const TROUBLE: u8 = 2;

/// What one configuration made of the sample.
#[derive(Default)]
struct Made {
    /// Lines, or groups of them, that became an event or were dropped.
    read: u64,
    /// The events by the offset of their lines.
    events: BTreeMap<u64, Json>,
    delivered: u64,
    failed: Vec<(&'static str, u64)>,
    /// Offsets are of bytes in a file; otherwise events are numbered from 0.
    is_file: bool,
}

/// How a field differs, over all events.
#[derive(Clone, Copy, Debug, Default)]
struct FieldCounts {
    appears: u64,
    vanishes: u64,
    changes: u64,
}

/// Prints the events that differ, and how often each field does.
pub(crate) fn diff(what: &Diff, global: &Global, system: &System) -> ExitCode {
    match compare(what, global, system) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(DIFFERENT),
        Err(error) => {
            eprint(&format!("error: {error:#}\n"));
            ExitCode::from(TROUBLE)
        }
    }
}

fn compare(what: &Diff, global: &Global, system: &System) -> Result<bool> {
    logging::start(Level::WARN);
    let [old, new] = &*global.config else {
        bail!(
            "`diff` compares two configurations: `skidder diff -c old.yml -c new.yml --sample FILE`"
        );
    };
    let sample = Sample::file(&what.sample, what.said.path.as_deref(), system)?;
    // Both read the lines at the same time.
    let still = System { clock: Arc::new(StandingClock::new(&system.clock)), ..system.clone() };
    let agent = Agent::temporary(None, still.clock.wall());
    let make = |file: &PathBuf, input: Option<&str>| -> Result<Made> {
        let settings = load_files(global, std::slice::from_ref(file), &still)?;
        let mut parts = one_input(&settings, &still, &agent, input, what.fed.output.as_deref())?;
        let made = Arc::new(Mutex::new(Made::default()));
        let look = look(&made, parts.output_context.precision);
        let (output, plan) = only(&mut parts);
        output.output = Box::new(Discard);
        let is_file = output.inputs[0].files().is_some();
        run(parts, &still, &sample, look)?;
        let mut made = std::mem::take(&mut *made.lock().unwrap_or_else(PoisonError::into_inner));
        made.failed = failures(&plan);
        made.is_file = is_file;
        Ok(made)
    };
    let input = what.input.as_deref();
    let (old_made, new_made) = (make(old, input)?, make(new, input)?);
    if old_made.is_file != new_made.is_file {
        bail!("only one of the two inputs reads files: their events cannot be compared");
    }
    let (text, same) = compare_events(what, &old_made, &new_made);
    print(&text)?;
    for (name, made) in [(old, &old_made), (new, &new_made)] {
        print(&summary(&name.display().to_string(), made))?;
    }
    Ok(same)
}

/// Processes, and keeps the documents.
fn look(made: &Arc<Mutex<Made>>, precision: Precision) -> Look {
    let made = Arc::clone(made);
    Arc::new(move |plan: &SourcePlan, _: &Map, batch: &mut Batch| {
        use skidder_read::Bound as _;
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        plan.run(batch);
        made.read += batch.lines();
        made.delivered += batch.len() as u64;
        let mut encoder = Encoder::with_metadata(precision, "", "");
        let mut bytes = Vec::new();
        for row in 0..batch.len() {
            if made.events.len() >= EVENTS_MAX {
                break;
            }
            bytes.clear();
            encoder.write(&mut bytes, batch, row);
            let document = serde_json::from_slice(&bytes).expect("the encoder writes JSON");
            made.events.insert(batch.rows()[row].offset, document);
        }
    })
}

fn failures(plan: &InputPlan) -> Vec<(&'static str, u64)> {
    let all = plan.failures();
    let counted = all.iter().map(|failures| (failures.name(), failures.get()));
    counted.filter(|(_, count)| *count > 0).collect()
}

/// The first events that differ, the fields that do, and whether nothing does.
fn compare_events(what: &Diff, old: &Made, new: &Made) -> (String, bool) {
    let offsets: BTreeSet<u64> = old.events.keys().chain(new.events.keys()).copied().collect();
    let mut text = String::new();
    let mut fields: BTreeMap<String, FieldCounts> = BTreeMap::new();
    let (mut different, mut compared) = (0_u64, 0_u64);
    let empty = Json::Object(JsonMap::new());
    for offset in offsets {
        compared += 1;
        let (before, after) = (old.events.get(&offset), new.events.get(&offset));
        let mut lines = String::new();
        match (before, after) {
            (Some(_), None) => lines.push_str("  - the event is no longer delivered\n"),
            (None, Some(_)) => lines.push_str("  + the event is delivered now\n"),
            _ => {
                let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
                differences("", before, after, &mut lines, &mut fields);
            }
        }
        if lines.is_empty() {
            continue;
        }
        different += 1;
        if different <= what.events {
            let line = before.or(after).map(line_of).unwrap_or_default();
            let place =
                if old.is_file { format!("at byte {offset}") } else { (offset + 1).to_string() };
            write!(text, "event {place}{line}\n{lines}").expect("a string takes it");
        }
    }
    if different > what.events {
        let rest = different - what.events;
        writeln!(text, "… and {rest} more events (--events shows more)")
            .expect("a string takes it");
    }
    if !fields.is_empty() {
        let rows: Vec<_> = fields
            .into_iter()
            .map(|(name, counts)| {
                let FieldCounts { appears, vanishes, changes } = counts;
                [appears.to_string(), vanishes.to_string(), changes.to_string(), name]
            })
            .collect();
        write!(text, "\n{}", table(["APPEARS", "VANISHES", "CHANGES", "FIELD"], &rows))
            .expect("a string takes it");
    }
    let newline = if text.is_empty() { "" } else { "\n" };
    writeln!(text, "{newline}{different} of {compared} events differ").expect("a string takes it");
    let cut = [old, new].iter().any(|made| made.delivered > made.events.len() as u64);
    if cut {
        writeln!(text, "only the first {EVENTS_MAX} events were compared")
            .expect("a string takes it");
    }
    (text, different == 0 && old.delivered == new.delivered)
}

/// The line of an event, as far as it goes into a line of the report.
fn line_of(event: &Json) -> String {
    let original = event["event"]["original"].as_str().or(event["message"].as_str());
    let Some(original) = original else { return String::new() };
    let end = original.char_indices().nth(LINE_CHARS_MAX).map_or(original.len(), |(at, _)| at);
    let more = if end < original.len() { "…" } else { "" };
    let shown: String =
        original[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!(": {shown}{more}")
}

/// Writes how two values differ, an object by its fields.
fn differences(
    name: &str,
    before: &Json,
    after: &Json,
    lines: &mut String,
    fields: &mut BTreeMap<String, FieldCounts>,
) {
    let (Json::Object(old), Json::Object(new)) = (before, after) else {
        if before != after {
            fields.entry(name.to_owned()).or_default().changes += 1;
            writeln!(lines, "  ~ {name}: {before} → {after}").expect("a string takes it");
        }
        return;
    };
    let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    for key in keys {
        let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        match (old.get(key), new.get(key)) {
            (Some(before), Some(after)) => differences(&name, before, after, lines, fields),
            (Some(before), None) => {
                fields.entry(name.clone()).or_default().vanishes += 1;
                writeln!(lines, "  - {name}: {before}").expect("a string takes it");
            }
            (None, Some(after)) => {
                fields.entry(name.clone()).or_default().appears += 1;
                writeln!(lines, "  + {name}: {after}").expect("a string takes it");
            }
            (None, None) => {}
        }
    }
}

fn summary(name: &str, made: &Made) -> String {
    let dropped = made.read - made.delivered;
    let mut text = format!(
        "{name}: {} events read, {} delivered, {dropped} dropped",
        made.read, made.delivered
    );
    if made.failed.is_empty() {
        text.push_str(", no failures");
    }
    for (processor, count) in &made.failed {
        write!(text, ", `{processor}` failed {count} times").expect("a string takes it");
    }
    text.push('\n');
    text
}

/// A clock whose time of day is fixed.
struct StandingClock {
    wall: Timestamp,
    running: Arc<dyn Clock>,
}

impl StandingClock {
    fn new(running: &Arc<dyn Clock>) -> Self {
        Self { wall: running.wall(), running: Arc::clone(running) }
    }
}

impl Clock for StandingClock {
    fn wall(&self) -> Timestamp {
        self.wall
    }

    fn monotonic(&self) -> Monotonic {
        self.running.monotonic()
    }
}
