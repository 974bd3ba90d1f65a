//! Trying a configuration on sample lines: they go the whole way of one of its inputs, from the file through
//! decoder, parsers and processors, but not to its output, and nothing is remembered of them.

mod diff;
mod explain;
mod process;

pub(crate) use diff::diff;
pub(crate) use explain::explain;
pub(crate) use process::process;

use crate::agent::Agent;
use crate::assemble::Parts;
use crate::input_plan::{InputPlan, SourcePlan};
use crate::inputs::{Input, Reads};
use crate::load::read_parts;
use crate::outputs::{OutputParts, Place, quoted};
use crate::run::Running;
use crate::system::System;
use crate::temporary::TemporaryDirectory;
use anyhow::{Context as _, Result, bail};
use skidder_config::Settings;
use skidder_event::{Base, Batch, Map};
use skidder_read::glob::Pattern;
use skidder_read::scan::ScanSettings;
use skidder_read::{Bind, Bound, Compression, FilestreamSettings, FingerprintSettings};
use std::fmt;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How a compressed file begins (RFC 1952).
const GZIP: &[u8] = &[0x1f, 0x8b];

/// The lines of a sample, as a file.
pub(crate) struct Sample {
    /// The file that is read.
    file: PathBuf,
    /// The path in the events, if it is not the name of the file.
    path: Option<String>,
    /// Holds the file, if it was made.
    _held: Option<TemporaryDirectory>,
}

impl Sample {
    /// A file, plain or compressed. `path`: its path in the events.
    pub(crate) fn file(file: &Path, path: Option<&str>, system: &System) -> Result<Self> {
        let file = system.directory.join(file);
        if !file.is_file() {
            bail!("the sample `{}` is no file", file.display());
        }
        Ok(Self { file, path: path.map(str::to_owned), _held: None })
    }

    /// Standard input.
    pub(crate) fn standard_input(path: Option<&str>) -> Result<Self> {
        let held = TemporaryDirectory::new("sample")?;
        let file = held.path().join("stdin");
        let mut copy = std::fs::File::create(&file)
            .with_context(|| format!("cannot write `{}`", file.display()))?;
        std::io::copy(&mut std::io::stdin().lock(), &mut copy)
            .context("cannot copy the standard input")?;
        let path = Some(path.unwrap_or("stdin").to_owned());
        Ok(Self { file, path, _held: Some(held) })
    }
}

/// Reads a configuration and keeps the selected input: the only one, or the one with the id. With the id of
/// an output it is the input as for that one; without, and with several, conditions of outputs are ignored.
pub(crate) fn one_input(
    settings: &Settings,
    system: &System,
    agent: &Agent,
    wanted: Option<&str>,
    output: Option<&str>,
) -> Result<Parts> {
    let mut parts = read_parts(settings, system, |name| Ok(agent.named(name)))?;
    let mut of = one_output(&mut parts, output)?;
    let ids = |inputs: &[Input]| {
        let ids: Vec<_> = inputs.iter().map(|input| format!("`{}`", input.name())).collect();
        ids.join(", ")
    };
    let place = match wanted {
        Some(id) => of.inputs.iter().position(|input| input.is_called(id)),
        None if of.inputs.len() > 1 => {
            bail!("there are several inputs ({}); choose one with `--input ID`", ids(&of.inputs))
        }
        None => Some(0),
    };
    let Some(place) = place.filter(|place| *place < of.inputs.len()) else {
        let wanted = wanted.unwrap_or_default();
        bail!("no input that is enabled is called `{wanted}`; there is {}", ids(&of.inputs));
    };
    of.inputs = vec![of.inputs.swap_remove(place)];
    of.inputs[0].peer = None;
    parts.outputs = vec![of];
    Ok(parts)
}

/// Takes out the output that is wanted, or what all of them are fed.
pub(crate) fn one_output(parts: &mut Parts, wanted: Option<&str>) -> Result<OutputParts> {
    let mut outputs = std::mem::take(&mut parts.outputs);
    if let Some(wanted) = wanted {
        let place = outputs.iter().position(|output| output.id.as_deref() == Some(wanted));
        let Some(place) = place else {
            let ids: Vec<String> = outputs.into_iter().filter_map(|output| output.id).collect();
            if ids.is_empty() {
                bail!("there is no output `{wanted}`: the configuration has no list of `outputs`");
            }
            bail!("there is no output `{wanted}` that is enabled; there is {}", quoted(&ids));
        };
        return Ok(outputs.swap_remove(place));
    }
    let several = outputs.len() > 1;
    let mut outputs = outputs.into_iter();
    let mut first = outputs.next().context("there is no output")?;
    first.inputs.extend(outputs.flat_map(|output| output.inputs));
    first.inputs.sort_by_key(|input| input.number);
    first.inputs.dedup_by_key(|input| input.number);
    for input in first.inputs.iter_mut().filter(|_| several) {
        input.plan = Arc::new(input.plan.for_output(None));
        input.bind = Arc::clone(&input.plan) as _;
    }
    Ok(first)
}

/// The one output and input that [`one_input`] has left.
pub(crate) fn only(parts: &mut Parts) -> (&mut OutputParts, Arc<InputPlan>) {
    let output = &mut parts.outputs[0];
    let plan = Arc::clone(&output.inputs[0].plan);
    (output, plan)
}

/// Observes the processing of a batch: it must run the plan over it, once.
/// The map has the fields that the source adds to all of its events.
pub(crate) type Look = Arc<dyn Fn(&SourcePlan, &Map, &mut Batch) + Send + Sync>;

/// Sends a sample through the one input of `parts`, with `look` in the place of the plan. Returns whether all of it went
/// through: the reader of a pipe may have seen enough.
pub(crate) fn run(mut parts: Parts, system: &System, sample: &Sample, look: Look) -> Result<bool> {
    let state = TemporaryDirectory::new("trial")?;
    parts.workers = 1;
    let (output, plan) = only(&mut parts);
    let Some(input) = output.inputs.pop() else { bail!("there is no input") };
    let reads = over_sample(input.reads, sample)?;
    output.inputs.push(Input { reads, ..input });
    // Only inputs that read files have a name for them.
    let path = sample.path.clone().filter(|_| output.inputs[0].files().is_some());
    output.inputs[0].bind = Arc::new(TrialPlan { plan, path, look });
    output.dead_letters = None;
    output.place = Place {
        registry: state.path().join("registry"),
        data: state.path().to_path_buf(),
        is_main: true,
    };
    let mut running = Running::start(parts, system, true)?;
    running.watch(None, None, |_| {});
    let spoiled = running.first().inputs[0].errors();
    let is_left = running.first().has_ended();
    let outcome = running.end(true);
    if spoiled > 0 {
        bail!("the sample could not be read completely; see the messages above");
    }
    if !outcome.settled && !is_left {
        bail!("ended before the whole sample was through");
    }
    Ok(outcome.settled)
}

/// Makes an input read a sample instead of its own source.
fn over_sample(reads: Reads, sample: &Sample) -> Result<Reads> {
    match reads {
        Reads::Files(given) => Ok(Reads::Files(Box::new(read_only(&given, &sample.file)?))),
        Reads::Task(task) => {
            let path = sample.file.display();
            let file = std::fs::File::open(&sample.file)
                .with_context(|| format!("cannot read `{path}`"))?;
            let mut magic = [0; 2];
            let begun = file.read_at(&mut magic, 0)?;
            if magic[..begun] == *GZIP {
                bail!(
                    "`{path}` is compressed, which inputs of type `{}` do not read: unpack it",
                    task.kind()
                );
            }
            Ok(Reads::Task(task.over_sample(file)))
        }
    }
}

/// Makes an input read one file to its end and leave it as it is. Only the settings that turn lines into
/// events are the input's; all others are ignored.
fn read_only(given: &FilestreamSettings, file: &Path) -> Result<FilestreamSettings> {
    let text = file.to_str().context("the name of the sample is no UTF-8")?;
    let escaped: String = text
        .chars()
        .flat_map(|letter| {
            let special = matches!(letter, '*' | '?' | '[' | '\\');
            special.then_some('\\').into_iter().chain([letter])
        })
        .collect();
    let scan = ScanSettings {
        patterns: vec![Pattern::parse(&escaped, Path::new("/"), false)?],
        include_files: Vec::new(),
        exclude_files: Vec::new(),
        left_out: Arc::default(),
        symlinks: true,
    };
    Ok(FilestreamSettings {
        kind: given.kind,
        fingerprint: FingerprintSettings { enabled: true, growing: true, ..given.fingerprint },
        include_file_fingerprint: given.include_file_fingerprint,
        compression: Compression::Auto,
        message_max_bytes: given.message_max_bytes,
        include_lines: given.include_lines.clone(),
        exclude_lines: given.exclude_lines.clone(),
        keep_null: given.keep_null,
        include_owner: given.include_owner,
        include_group: given.include_group,
        parsers: given.parsers.clone(),
        encoding: given.encoding,
        line_terminator: given.line_terminator,
        notify: false,
        final_line: true,
        ..FilestreamSettings::new(&given.id, scan)
    })
}

/// Binds the plan of an input for a source under the path of another file.
struct TrialPlan {
    plan: Arc<InputPlan>,
    path: Option<String>,
    look: Look,
}

impl fmt::Debug for TrialPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TrialPlan").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl TrialPlan {
    /// The fields of a source under the name that it is to have.
    fn named(&self, fields: &Map) -> Map {
        let mut fields = fields.clone();
        if let Some(path) = &self.path {
            fields.insert_path("log.file.path", path.as_str());
        }
        fields
    }
}

impl Bind for TrialPlan {
    fn bind(&self, fields: &Map) -> Arc<dyn Bound> {
        let fields = self.named(fields);
        let plan = self.plan.bind_source(&fields);
        Arc::new(TrialSource { plan, fields, look: Arc::clone(&self.look) })
    }

    fn can_hold(&self) -> bool {
        self.plan.can_hold()
    }

    fn hold(&self, fields: &Map) -> Option<Duration> {
        Bind::hold(&*self.plan, &self.named(fields))
    }

    fn epoch(&self) -> u64 {
        self.plan.epoch()
    }
}

struct TrialSource {
    plan: SourcePlan,
    fields: Map,
    look: Look,
}

impl fmt::Debug for TrialSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TrialSource").field("plan", &self.plan).finish_non_exhaustive()
    }
}

impl Bound for TrialSource {
    fn base(&self) -> &Arc<Base> {
        self.plan.base()
    }

    fn run(&self, batch: &mut Batch) {
        (self.look)(&self.plan, &self.fields, batch);
    }
}
