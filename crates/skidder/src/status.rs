//! `skidder status`: whether all is well, on one screen, and by the exit code for scripts.
//!
//! Reads the HTTP endpoint of the running program twice; rates are the change in between.

mod inputs;
mod look;
mod sources;
mod text;

pub(crate) use inputs::{INPUT_HEAD, InputLook, RECEIVED_HEAD};
pub(crate) use look::{Look, Sample};
pub(crate) use sources::{SOURCE_HEAD, SourceLook};
pub(crate) use text::span;

use crate::agent::{self, Agent};
use crate::cli::{Global, Status};
use crate::endpoint;
use crate::load::{load_settings, read_endpoint, read_parts};
use crate::logging;
use crate::problems;
use crate::system::System;
use crate::table::{or_dash, path_width, shortened, table};
use crate::terminal::{eprint, print};
use anyhow::{Result, anyhow, bail};
use look::{FileLook, OutputLook};
use serde_json::{Value, json};
use skidder_config::unset_variables;
use skidder_observe::{HttpConfig, bytes_text, grouped, is_well};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::channel;
use tracing::Level;

/// Something is stuck, behind or failed.
const TROUBLE: u8 = 1;
/// No skidder uses the data directory.
pub(crate) const NOT_RUNNING: u8 = 3;

/// Columns of an output, and of a file.
pub(crate) const OUTPUT_HEAD: [&str; 9] =
    ["OUTPUT", "STATE", "EVENTS/S", "LATENCY", "IN FLIGHT", "RETRIED", "ERRORS", "DEAD", "QUEUE"];
pub(crate) const FILE_HEAD: [&str; 7] =
    ["BEHIND", "OLDEST", "RATE", "DELETED IN", "STATE", "PATH", "REASON"];

/// Sources that are behind.
const BEHIND_HEAD: [&str; 3] = ["RECORDS BEHIND", "INPUT", "SOURCE"];

/// Files, and sources that are behind, that are shown.
const FILES_SHOWN: usize = 5;

/// Inputs that are shown.
const INPUTS_SHOWN: usize = 20;

/// Prints the state of the running program.
pub(crate) fn status(what: Status, global: &Global, system: &System) -> Result<ExitCode> {
    logging::start(Level::WARN);
    let program = match running(global, system)? {
        Ok(program) => program,
        Err(data) => {
            let text = if what.json {
                format!("{:#}\n", json!({"running": false, "data": data}))
            } else {
                not_running(&data)
            };
            print(&text)?;
            return Ok(ExitCode::from(NOT_RUNNING));
        }
    };
    let before = Sample::ask(&program.http, what.seconds, what.behind)?;
    let (_kept, never) = channel::<()>();
    never.recv_timeout(what.seconds).expect_err("nobody sends: this waits");
    let now = Sample::ask(&program.http, what.seconds, what.behind)?;
    let mut look = Look::of(&before, &now);
    let good = is_well(&look.problems);
    if what.json {
        look.files.truncate(FILES_SHOWN);
        look.sources.truncate(FILES_SHOWN);
        let mut json = serde_json::to_value(&look)?;
        json["running"] = true.into();
        json["well"] = good.into();
        print(&format!("{json:#}\n"))?;
    } else {
        print(&screen(&look))?;
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::from(TROUBLE) })
}

/// The message if no skidder is running.
pub(crate) fn not_running(data: &Path) -> String {
    format!(
        "not running: no skidder uses the data directory `{}` (`--path.data`)\n",
        data.display()
    )
}

/// A program that runs.
pub(crate) struct RunningProgram {
    /// Where it answers.
    pub(crate) http: HttpConfig,
    /// Its data directory.
    pub(crate) data: PathBuf,
}

/// The program that runs on the data directory of the configuration and answers; the directory if none runs. Other
/// mistakes in the configuration are reported, and do not matter: the program may run with one from before them.
pub(crate) fn running(global: &Global, system: &System) -> Result<Result<RunningProgram, PathBuf>> {
    let settings = load_settings(global, system)?;
    let parts =
        read_parts(&settings, system, |name| Ok(Agent::temporary(name, system.clock.wall())));
    let (mut http, data, mistakes) = match parts {
        Ok(parts) => (parts.http, parts.data, None),
        Err(error) => match read_endpoint(&settings) {
            Some((http, data)) if http.enabled => (http, data, Some(error)),
            _ => return Err(with_shell_hint(error)),
        },
    };
    match (agent::is_running(&*system.fs, &data)?, mistakes) {
        (true, None) => {}
        (true, Some(error)) => eprint(&mistakes_text(&error)),
        (false, None) => return Ok(Err(system.directory.join(&data))),
        (false, Some(error)) => return Err(with_shell_hint(error)),
    }
    if !http.enabled {
        bail!(
            "skidder is running, but `http.enabled` is off: there is nobody to ask\nhint: set \
             `http.enabled: true`, or look at its log"
        );
    }
    http.auth.own = crate::page_token::kept_token(&*system.fs, &data);
    let id = agent::kept_id(&*system.fs, &data);
    endpoint::check(&http, id.as_deref())?;
    Ok(Ok(RunningProgram { http, data }))
}

/// What is wrong with the configuration, although a program runs with it or with an earlier one.
fn mistakes_text(error: &anyhow::Error) -> String {
    let text = format!("{error:#}");
    let why = shell_hint(&text).unwrap_or_else(|| {
        "the configuration has mistakes, so that what runs is an earlier one".to_owned()
    });
    format!("{why}:\nerror: {text}\n")
}

/// The error, with what to do if a variable is only missing here.
fn with_shell_hint(error: anyhow::Error) -> anyhow::Error {
    let text = format!("{error:#}");
    match shell_hint(&text) {
        Some(hint) => anyhow!("{text}\nhint: {hint}"),
        None => error,
    }
}

/// Where the running program may have the variables that the configuration needs; `None` if none is missing.
fn shell_hint(text: &str) -> Option<String> {
    let names = unset_variables(text);
    let (list, first) = (names.join("`, `"), names.first()?);
    Some(format!(
        "not set in this shell: `{list}`; the program that runs may have it. Give it to this command, too, as in \
         `{first}=… skidder status`; `systemctl show skidder -p Environment -p EnvironmentFiles` shows where a service \
         has it from"
    ))
}

/// All of it on one screen.
fn screen(look: &Look) -> String {
    let Look { name, host, version, .. } = look;
    let called = if name == host { host.clone() } else { format!("{name} ({host})") };
    let memory = bytes_text(look.resident_bytes as f64);
    let up = span(look.uptime_ms);
    let mut text = format!("skidder {version} on {called}, up {up}, {memory} of memory\n");
    if look.problems.is_empty() {
        text.push_str("all is well\n");
    }
    for problem in &look.problems {
        text.push_str(&problems::lines(problem));
    }
    push_ledger(&mut text, look);
    let rows: Vec<_> = look.outputs.iter().map(output_row).collect();
    text.push_str(&table(OUTPUT_HEAD, &rows));
    text.push('\n');
    push_inputs(&mut text, look);
    if look.reads_files() {
        push_files(&mut text, look);
    }
    text
}

/// The inputs: those that read files, and those that receive.
fn push_inputs(text: &mut String, look: &Look) {
    let mut rows: Vec<_> = look.inputs.iter().filter_map(InputLook::row).collect();
    let more = rows.len().saturating_sub(INPUTS_SHOWN);
    rows.truncate(INPUTS_SHOWN);
    if look.reads_files() {
        text.push_str(&table(INPUT_HEAD, &rows));
    }
    if more > 0 {
        writeln!(text, "{more} more inputs, which are less behind")
            .expect("a string takes everything");
    }
    let mut rows: Vec<_> = look.inputs.iter().filter_map(InputLook::received_row).collect();
    if rows.is_empty() {
        return;
    }
    let more = rows.len().saturating_sub(INPUTS_SHOWN);
    rows.truncate(INPUTS_SHOWN);
    if look.reads_files() {
        text.push('\n');
    }
    text.push_str(&table(RECEIVED_HEAD, &rows));
    if more > 0 {
        writeln!(text, "{more} more of these inputs").expect("a string takes everything");
    }
    for line in look.inputs.iter().filter_map(InputLook::last_error_line).take(INPUTS_SHOWN) {
        writeln!(text, "{line}").expect("a string takes everything");
    }
    let sources = if look.sources_open == 1 { "source" } else { "sources" };
    writeln!(text, "\n{} {sources} open", grouped(look.sources_open))
        .expect("a string takes everything");
    push_behind(text, &look.sources);
}

/// The sources that are most behind, of those of which it is known.
fn push_behind(text: &mut String, sources: &[SourceLook]) {
    let behind = |source: &SourceLook| source.behind.filter(|behind| *behind > 0);
    let mut late: Vec<_> = sources.iter().filter_map(|of| Some((behind(of)?, of))).collect();
    late.sort_by_key(|(behind, _)| std::cmp::Reverse(*behind));
    let row =
        |(behind, of): &(u64, &SourceLook)| [grouped(*behind), of.input.clone(), of.name.clone()];
    let rows: Vec<_> = late.iter().take(FILES_SHOWN).map(row).collect();
    if !rows.is_empty() {
        text.push_str(&table(BEHIND_HEAD, &rows));
    }
}

/// How far behind the files are, and those that are most behind.
fn push_files(text: &mut String, look: &Look) {
    let lag = &look.lag;
    let total = |name: &str| lag[name].as_u64().unwrap_or(0);
    let behind = bytes_text(total("behind_bytes") as f64);
    let (files, behind_files) = (grouped(total("files")), grouped(total("behind_files")));
    let oldest = oldest(total("behind_ms"), look.uptime_ms);
    let catch_up = look.catch_up();
    write!(text, "\n{files} files, {behind_files} of them behind: {behind}{oldest}{catch_up}\n")
        .expect("a string takes everything");
    let width = path_width();
    let is_behind = |file: &&FileLook| file.behind.is_some_and(|bytes| bytes > 0);
    let rows: Vec<_> = look
        .files
        .iter()
        .filter(is_behind)
        .take(FILES_SHOWN)
        .map(|file| file_row(file, width))
        .collect();
    if !rows.is_empty() {
        text.push_str(&table(FILE_HEAD, &rows));
    }
}

/// The lines read and where they are: of each output, if there are several, as a line that feeds two is read by both.
fn push_ledger(text: &mut String, look: &Look) {
    text.push('\n');
    let speed = bytes_text(look.read_bytes_rate);
    let (read, delivered) = (look.read_rate, look.delivered_rate);
    let rates =
        (format!(" ({read:.0} a second, {speed}/s)"), format!(" ({delivered:.0} a second)"));
    if let [_] | [] = &look.outputs[..] {
        text.push_str(&ledger_text(&look.ledger, &rates.0, &rates.1));
    } else {
        for output in &look.outputs {
            let rate = format!(" ({:.0} a second)", output.rate);
            write!(text, "{}: {}", output.name(), ledger_text(&output.ledger, "", &rate))
                .expect("a string takes everything");
        }
        writeln!(text, "together: {read:.0} lines a second read, {speed}/s")
            .expect("a string takes everything");
    }
    text.push('\n');
}

fn ledger_text(ledger: &Value, read_rate: &str, rate: &str) -> String {
    let of = |name: &str| grouped(ledger[name].as_u64().unwrap_or(0));
    let read_bytes = bytes_text(ledger["read_bytes"].as_f64().unwrap_or(0.0));
    format!(
        "read {} lines, {read_bytes}{read_rate}\n= delivered {}{rate} + dropped {} + dead-lettered {} + in flight {}\n",
        of("read"),
        of("delivered"),
        of("dropped"),
        of("dead_lettered"),
        of("in_flight"),
    )
}

/// How old the oldest undelivered line is, to go on a sentence; nothing if there is none.
fn oldest(behind_ms: u64, uptime_ms: u64) -> String {
    let from = if behind_ms > uptime_ms { " (written before the start)" } else { "" };
    match behind_ms {
        0 => String::new(),
        age => format!(", the oldest line {} old{from}", span(age)),
    }
}

/// The cells of an output.
pub(crate) fn output_row(output: &OutputLook) -> [String; 9] {
    let state = match output.blocked_ms {
        Some(blocked) => format!("blocked {}", span(blocked)),
        None => output.state.clone(),
    };
    [
        output.name(),
        state,
        format!("{:.0}", output.rate),
        or_dash(output.latency_ms.map(|latency| format!("{latency:.1} ms"))),
        grouped(output.in_flight),
        grouped(output.retried),
        grouped(output.errors),
        grouped(output.dead_lettered),
        // One on the disk has no bound in events.
        match output.queue_events_max {
            0 => grouped(output.queue_events),
            most => format!("{} of {}", grouped(output.queue_events), grouped(most)),
        },
    ]
}

/// The cells of a file, its path in so many characters.
pub(crate) fn file_row(file: &FileLook, width: usize) -> [String; 7] {
    [
        or_dash(file.behind.map(|bytes| bytes_text(bytes as f64))),
        span(file.behind_ms),
        or_dash(file.rate.map(|rate| format!("{}/s", bytes_text(rate)))),
        or_dash(file.deleted_in_ms.map(span)),
        file.state.clone(),
        shortened(&file.path, width),
        or_dash(file.reason.as_ref()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(inputs: &Value, sources: &Value) -> String {
        let sample = |seconds: u64, events: u64| {
            let mut inputs = inputs.clone();
            inputs[0]["skidder"]["events_total"] = events.into();
            let live =
                json!({"uptime_ms": seconds * 1000, "host": "box", "ledger": {}, "outputs": []});
            let lag = json!({"totals": {"files": 4}, "files": []});
            Sample::new(live, lag, inputs, Vec::new()).with_sources(sources.clone())
        };
        screen(&Look::of(&sample(1, 100), &sample(3, 400)))
    }

    #[test]
    fn inputs_that_receive_have_a_table_of_their_own_and_no_files() {
        let input = json!({"id": "apps", "input": "tcp", "skidder": {
            "name": "apps", "number": 0, "state": "waiting", "ledger": {"read": 400}, "sources_open": 2,
            "errors_total": 5, "lost_before_total": 1234, "trouble": "cannot listen on :9000"}});
        let text = shown(&json!([input]), &json!({"open": 2, "sources": []}));
        let row = text.lines().find(|line| line.starts_with("apps")).expect("a row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells[..4], ["apps", "waiting", "2", "150"], "{text}");
        assert!(row.ends_with("5       1,234        cannot listen on :9000"), "{text}");
        assert!(text.ends_with("\n2 sources open\n"), "{text}");
        assert!(!text.contains("files") && !text.contains("BEHIND"), "{text}");
        let sources = json!({"open": 3, "sources": [
            {"name": "t/0", "input_name": "apps", "behind": 7}, {"name": "t/1", "input_name": "apps", "behind": 1234},
            {"name": "t/2", "input_name": "apps", "behind": 0}]});
        let late = shown(&json!([input]), &sources);
        let lines: Vec<&str> = late.lines().collect();
        let [.., head, first, second] = &lines[..] else { panic!("{late}") };
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(head.starts_with("RECORDS BEHIND"), "{late}");
        assert_eq!((words(first), words(second)), (words("1,234 apps t/1"), words("7 apps t/0")));
        let files = json!({"id": "logs", "input": "filestream", "skidder": {"name": "logs", "number": 1, "ledger": {}}});
        let both = shown(&json!([input, files]), &json!({"open": 2, "sources": []}));
        assert!(both.contains("BEHIND") && both.contains("\nlogs"), "{both}");
        assert!(both.contains("2 sources open\n\n4 files, 0 of them behind"), "{both}");
    }
}
