//! `skidder files`: what every file is doing, how far behind it is, and why; and the open sources of inputs that read none.
//!
//! A running skidder answers over its HTTP endpoint. Without one, or without an endpoint, the answer is
//! what the next start would find: a scan, matched with the registry, without reading any further.

mod offline;
mod sources;

use crate::agent::{self, Agent};
use crate::assemble::Parts;
use crate::cli::{Files, Global};
use crate::endpoint;
use crate::inputs::Input;
use crate::load::{load_settings, read_parts};
use crate::logging;
use crate::outputs::quoted;
use crate::plain::plain;
use crate::status::span;
use crate::system::System;
use crate::table::{or_dash, path_width, short, shortened, table};
use crate::terminal::{eprint, print};
use anyhow::{Result, bail};
use serde_json::{Value, json};
use skidder_observe::bytes_text;
use skidder_read::{FilestreamSettings, Finding, survey};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use tracing::Level;

/// A file as it is shown, with all that is known of it as JSON if wanted.
#[derive(Debug)]
struct Row {
    path: String,
    input: String,
    /// The id of the output, if there are several.
    output: Option<String>,
    identity: String,
    generation: u64,
    size: u64,
    cursor: u64,
    /// `None` if it is unknown.
    behind: Option<u64>,
    state: String,
    reason: String,
    json: Option<String>,
}

impl Row {
    fn new(file: &Value, keep: bool) -> Self {
        let text = |name: &str| file[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| file[name].as_u64().unwrap_or(0);
        Self {
            path: text("path"),
            input: file["input_name"]
                .as_str()
                .map_or_else(|| text("input"), |name| plain(name).into()),
            output: file["output"].as_str().map(str::to_owned),
            identity: text("identity"),
            generation: number("generation"),
            size: number("size"),
            cursor: number("cursor"),
            behind: file["behind"].as_u64(),
            state: text("state"),
            reason: why(file),
            json: keep.then(|| file.to_string()),
        }
    }
}

/// The reason for its state, and other notes.
fn why(file: &Value) -> String {
    let mut why = file["reason"].as_str().unwrap_or_default().to_owned();
    if let Some(left) = file["deleted_in_ms"].as_u64() {
        why.push_str(&format!("; rotation deletes it in {}", span(left)));
    }
    if let Some(error) = file["error"]["text"].as_str().filter(|error| !why.contains(error)) {
        let at = file["error"]["at"].as_str().map(|at| format!(" at {at}"));
        why.push_str(&format!("; last error{}: {error}", at.unwrap_or_default()));
    }
    why
}

/// Shows the files.
pub(crate) fn files(options: &Files, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(if global.debug.is_some() { Level::DEBUG } else { Level::WARN });
    let settings = load_settings(global, system)?;
    let data = settings.paths().data.clone();
    let parts = read_parts(&settings, system, |name| {
        Ok(Agent::onlooker(&*system.fs, &*system.clock, &data, name))
    })?;
    let paths: Vec<PathBuf> =
        options.paths.iter().map(|path| system.directory.join(path)).collect();
    let keep = options.json;
    let mut rows: Vec<Row> = Vec::new();
    let output = options.output.as_deref();
    if let Some(id) = output.filter(|id| !parts.output_ids.iter().any(|other| other == id)) {
        bail!("there is no output `{id}`; there is {}", quoted(&parts.output_ids));
    }
    let scans: Vec<_> = parts.files().map(|settings| settings.scan.clone()).collect();
    let input = options.input.as_deref();
    let id = input.map(|name| id_of(&parts, name)).transpose()?;
    let data_source = ask(&parts, &paths, output, system, &mut |file| {
        if id.as_deref().is_none_or(|id| file["input"] == *id || file["input_name"] == *id) {
            rows.push(Row::new(file, keep));
        }
    })?;
    let (mut open, mut listening) = (Vec::new(), Vec::new());
    if data_source == DataSource::Endpoint && paths.is_empty() {
        open = sources::ask(&parts, output, input, &options.sort)?;
        if open.is_empty() && !options.json {
            listening = sources::listening(&parts, input)?;
        }
    }
    for path in &paths {
        let shown = rows.iter().any(|row| PathBuf::from(&row.path).starts_with(path));
        if !shown {
            let why = scans.iter().find_map(|scan| scan.why_not(&*system.fs, path));
            let why = why.unwrap_or_else(|| "no input has a path that matches".to_owned());
            let file = json!({"path": path.to_string_lossy(), "state": "unmatched", "reason": why});
            rows.push(Row::new(&file, keep));
        }
    }
    sort(&mut rows, &options.sort);
    // With paths given, only these are shown.
    let mut findings = if paths.is_empty() { findings(&parts, system) } else { Vec::new() };
    findings.retain(|(name, _)| input.is_none_or(|wanted| wanted == name));
    if options.json {
        print_json(&rows, &open, data_source, &findings)?;
    } else {
        let receiving = sources::receiving(&parts, input);
        let reads_files = input.is_none() && parts.files().next().is_some();
        if !rows.is_empty() || receiving.is_empty() || reads_files {
            print_table(&rows, data_source)?;
        }
        if paths.is_empty() {
            print(&sources::text(&open, &receiving, &listening, data_source))?;
        }
        for (input, finding) in &findings {
            let found = format!("! input `{input}`: {finding}; {}", finding.remedy());
            print(&format!("{}\n", plain(&found)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The id of the input that is called so. One that autodiscover made is known to the running program only.
fn id_of(parts: &Parts, name: &str) -> Result<String> {
    let inputs = || parts.running().flat_map(|output| &output.inputs);
    if let Some(input) = inputs().find(|input| input.is_called(name)) {
        return Ok(input.id.clone());
    }
    if parts.discovery.is_some() {
        return Ok(name.to_owned());
    }
    let names: BTreeSet<String> = inputs().map(Input::name).collect();
    let names: Vec<String> = names.into_iter().collect();
    bail!("no input that is enabled is called `{name}`; there is {}", quoted(&names));
}

/// What the inputs find that is no file to read, by their ids.
fn findings(parts: &Parts, system: &System) -> Vec<(String, Finding)> {
    let found = parts.files().flat_map(|input| {
        let all = survey(&*system.fs, input).into_iter();
        all.map(|finding| (name_of(input).to_owned(), finding))
    });
    found.collect()
}

/// What an input is called in a message: one without an `id` by its type.
pub(crate) fn name_of(input: &FilestreamSettings) -> &str {
    if input.id.is_empty() { input.kind.name() } else { &input.id }
}

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataSource {
    /// The running skidder.
    Endpoint,
    /// Registry and file system, while it runs: its current work is not known.
    RegistryOfRunning,
    /// Registry and file system.
    Registry,
}

/// Passes all files to `each`, from the best available source.
fn ask(
    parts: &Parts,
    paths: &[PathBuf],
    output: Option<&str>,
    system: &System,
    each: &mut dyn FnMut(&Value),
) -> Result<DataSource> {
    let output = sources::one_of_several(parts, output);
    let running = agent::is_running(&*system.fs, &parts.data)?;
    if running && parts.http.enabled {
        let id = agent::kept_id(&*system.fs, &parts.data);
        endpoint::files(&parts.http, id.as_deref(), paths, output, each)?;
        return Ok(DataSource::Endpoint);
    }
    if running {
        eprint(
            "skidder is running, but `http.enabled` is off: what it is doing is not known; this is what \
             a start would find now\n",
        );
    }
    offline::files(parts, paths, output, system, running, each)?;
    Ok(if running { DataSource::RegistryOfRunning } else { DataSource::Registry })
}

fn sort(rows: &mut [Row], by: &str) {
    rows.sort_by(|one, other| one.path.cmp(&other.path));
    match by {
        // An unknown amount may be large: it comes after the known ones, and before 0.
        "behind" => rows.sort_by_key(|row| {
            let known = row.behind.unwrap_or(0);
            (Reverse(known), row.behind == Some(0))
        }),
        "size" => rows.sort_by_key(|row| Reverse(row.size)),
        "state" => rows.sort_by(|one, other| one.state.cmp(&other.state)),
        _ => {}
    }
}

fn print_table(rows: &[Row], data_source: DataSource) -> Result<()> {
    let width = path_width();
    let cells: Vec<[String; 9]> = rows
        .iter()
        .map(|row| {
            [
                or_dash(row.behind.map(size)),
                size(row.size),
                size(row.cursor),
                row.generation.to_string(),
                row.state.clone(),
                if row.identity.is_empty() { "-".to_owned() } else { short(&row.identity) },
                row.input.clone(),
                shortened(&row.path, width),
                row.reason.clone(),
            ]
        })
        .collect();
    let head = ["BEHIND", "SIZE", "CURSOR", "GEN", "STATE", "IDENTITY", "INPUT", "PATH", "REASON"];
    if rows.iter().any(|row| row.output.is_some()) {
        let [behind, size, cursor, generation, state, identity, input, path, reason] = head;
        let head =
            [behind, size, cursor, generation, state, identity, "OUTPUT", input, path, reason];
        let outputs = rows.iter().map(|row| or_dash(row.output.as_ref()));
        let cells: Vec<[String; 10]> = cells
            .into_iter()
            .zip(outputs)
            .map(|(cells, output)| {
                let [behind, size, cursor, generation, state, identity, input, path, reason] =
                    cells;
                [behind, size, cursor, generation, state, identity, output, input, path, reason]
            })
            .collect();
        print(&table(head, &cells))?;
    } else {
        print(&table(head, &cells))?;
    }
    let behind: u64 = rows.iter().filter_map(|row| row.behind).sum();
    let unknown = rows.iter().filter(|row| row.behind.is_none() && row.state != "held").count();
    let from = match data_source {
        DataSource::Endpoint => "the running skidder",
        DataSource::RegistryOfRunning => "the registry, while skidder is running",
        DataSource::Registry => "the registry; skidder is not running",
    };
    let more = if unknown > 0 {
        let have = if unknown == 1 { "file has" } else { "files have" };
        format!(", and what {unknown} {have} that cannot be told")
    } else {
        String::new()
    };
    print(&format!("{} files, {} behind{more}; from {from}\n", rows.len(), size(behind)))
}

fn size(bytes: u64) -> String {
    bytes_text(bytes as f64)
}

fn print_json(
    rows: &[Row],
    open: &[Value],
    data_source: DataSource,
    findings: &[(String, Finding)],
) -> Result<()> {
    let from = match data_source {
        DataSource::Endpoint => "endpoint",
        DataSource::RegistryOfRunning | DataSource::Registry => "registry",
    };
    let running = data_source != DataSource::Registry;
    print(&format!("{{\"from\":\"{from}\",\"running\":{running},\"files\":["))?;
    for (at, row) in rows.iter().enumerate() {
        let comma = if at == 0 { "\n" } else { ",\n" };
        print(&format!("{comma}{}", row.json.as_deref().unwrap_or("{}")))?;
    }
    let findings: Vec<Value> = findings
        .iter()
        .map(|(input, finding)| {
            json!({
                "input": input,
                "kind": finding.kind(),
                "path": finding.place(),
                "message": finding.to_string(),
                "remedy": finding.remedy(),
            })
        })
        .collect();
    print("\n],\"sources\":[")?;
    for (at, source) in open.iter().enumerate() {
        let comma = if at == 0 { "\n" } else { ",\n" };
        print(&format!("{comma}{source}"))?;
    }
    print(&format!("\n],\"findings\":{}}}\n", Value::from(findings)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_shown_with_its_time_unless_it_is_the_reason() {
        let mut file = json!({
            "reason": "at its end",
            "error": {"at": "2026-01-02T03:04:05.678Z", "path": "/a", "text": "torn"}});
        assert_eq!(why(&file), "at its end; last error at 2026-01-02T03:04:05.678Z: torn");
        file["reason"] = "it cannot be opened: torn".into();
        assert_eq!(why(&file), "it cannot be opened: torn");
    }
}
