//! Objects of a store: their CPU over the same files from the disk, the memory of many at once, and kills.

use super::encoded::ship_events;
use super::queue::queue_alone;
use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Running};
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_os::{Clock, SystemClock};
use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const CPU: Goal = (
    "z1",
    "CPU of gzip objects from versitygw to `output.discard`, over the same files from the disk",
    1.4,
    1.15,
    "",
);
const MEMORY: Goal = ("z2", "peak memory, 64 gzip objects at once", 64.0, 24.0, "MB");
const KILLS: [Goal; 2] = [
    ("z3", "lines missing, killed every 3 s while 1,000 objects of 1 MB are read", 0.0, 0.0, ""),
    (
        "z4",
        "lines that come twice for each of these kills, over what comes in a second",
        1.0,
        0.0,
        "",
    ),
];

/// Objects of the comparison with files, which share the lines of the main workload.
const OBJECTS: u64 = 20;
/// Objects at once, and lines of each: about 4 MB of text.
const AT_ONCE: u64 = 64;
const LINES_AT_ONCE: u64 = 16_000;
/// Objects that are read between kills, and lines of each: about 1 MB of text.
const KILLED: u64 = 1_000;
const KILLED_LINES: u64 = 4_000;
/// Time from a start of the program to its kill.
const KILL_AFTER: Duration = Duration::from_secs(3);
/// So many kills in a row without a new line at the sink: it stands still.
const STILL_MAX: u32 = 10;
/// How long nothing new may come before the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// The rows z1 to z5. The repository is the current folder: its script starts the server.
pub fn clouds(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[CPU], cpu(stage));
    rows.extend(rows_or_why(&[MEMORY], memory(stage)));
    rows.extend(rows_or_why(&KILLS, kills(stage)));
    rows.extend(queue_alone(stage));
    rows
}

fn cpu(stage: &Stage) -> Result<Vec<Row>> {
    let each = (stage.lines / OBJECTS).max(1);
    let lines = each * OBJECTS;
    let folder = stage.many_gzipped(OBJECTS, each)?;
    let store = Store::with(&folder)?;
    let objects = store.input("");
    let paths = Value::from(folder.join("*.gz").to_string_lossy());
    let files = format!("type: filestream, id: bench, paths: [{paths}], compression: auto");
    let (mut cost, mut base) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        let of = |input: &str| ship_events(stage, input, "output.discard: {}\n", lines);
        base.push(of(&files)?.cpu.as_secs_f64());
        cost.push(of(&objects)?.cpu.as_secs_f64());
        measure::note(&format!("{} {}: {cost:?} over {base:?}", CPU.0, run + 1));
    }
    let cost = summarize(&cost).context("no run was made")?;
    let base = summarize(&base).context("no run was made")?;
    let one = |seconds: f64| seconds / lines as f64 * 1e6;
    let detail = format!(
        "{OBJECTS} objects, {lines} lines, {:.2} µs each over {:.2}; {}; {}",
        one(cost.median),
        one(base.median),
        spread("s:", cost),
        spread("file s:", base)
    );
    Ok(vec![row(&CPU, cost.median / base.median, detail)])
}

fn memory(stage: &Stage) -> Result<Vec<Row>> {
    let store = Store::with(&stage.many_gzipped(AT_ONCE, LINES_AT_ONCE)?)?;
    let mut peaks = Vec::new();
    let input = store.input(&format!(", number_of_workers: {AT_ONCE}"));
    for run in 0..stage.runs {
        let lines = AT_ONCE * LINES_AT_ONCE;
        let cost = ship_events(stage, &input, "output.discard: {}\n", lines)?;
        peaks.push(cost.memory_peak_bytes as f64 / 1e6);
        measure::note(&format!("{} {}: {peaks:?}", MEMORY.0, run + 1));
    }
    let peak = summarize(&peaks).context("no run was made")?;
    let detail = format!("{AT_ONCE} workers; {}", spread("MB:", peak));
    Ok(vec![row(&MEMORY, peak.median, detail)])
}

fn kills(stage: &Stage) -> Result<Vec<Row>> {
    let lines = KILLED * KILLED_LINES;
    let store = Store::with(&stage.many_plain(KILLED, KILLED_LINES)?)?;
    let sink = Sink::start(Behaviour { check: true, ..Behaviour::default() })?;
    let url = Value::from(sink.url());
    let home = stage.home_of(&format!(
        "filebeat.inputs: [{{{}}}]\noutput.elasticsearch: {{hosts: [{url}], compression_level: 0}}\n",
        store.input("")
    ))?;
    let (mut kills, mut still) = (0_u32, 0);
    let began = SystemClock::new();
    while sink.count().missing(lines) > 0 {
        let before = sink.count().distinct;
        let mut command = home.command(&stage.skidder);
        let running = Running::start(command.stderr(File::create(home.log())?))?;
        let clock = SystemClock::new();
        while clock.monotonic().0 < KILL_AFTER && sink.count().missing(lines) > 0 {
            measure::pause(Duration::from_millis(50));
        }
        running.kill()?;
        kills += 1;
        still = if sink.count().distinct == before { still + 1 } else { 0 };
        measure::note(&format!("{} kill {kills}: {:?}", KILLS[0].0, sink.count()));
        if still == STILL_MAX {
            break;
        }
    }
    let took = began.monotonic().0;
    // What was not settled at the last kill comes again.
    let running = Running::start(home.command(&stage.skidder).stderr(File::create(home.log())?))?;
    let mut seen = 0;
    while sink.count().documents > seen {
        seen = sink.count().documents;
        sink.wait_for(seen + 1, PATIENCE);
    }
    running.kill()?;
    let count = sink.count();
    ensure!(count.unnumbered == 0, "{} lines came altered", count.unnumbered);
    let seconds = took.as_secs_f64();
    let of_a_kill = count.repeated as f64 / f64::from(kills.max(1));
    let detail = format!(
        "{lines} lines, {kills} kills in {seconds:.0} s, {} lines came twice, {of_a_kill:.0} a kill",
        count.repeated
    );
    Ok(vec![
        row(&KILLS[0], count.missing(lines) as f64, detail.clone()),
        row(&KILLS[1], of_a_kill / (lines as f64 / seconds), detail),
    ])
}

/// versitygw with the bucket `logs`. Dropped, it is stopped.
struct Store {
    directory: TempDir,
    port: String,
}

/// Starts and stops versitygw.
const SCRIPT: &str = "tests/servers/s3.sh";

impl Store {
    /// A server with the files of a folder.
    fn with(folder: &Path) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let started = script("start", &directory, &["0"])?;
        let port = started.trim().rsplit(':').next().unwrap_or_default().to_owned();
        let store = Self { directory, port };
        let url = format!("http://127.0.0.1:{}/logs/", store.port);
        for file in std::fs::read_dir(folder)? {
            let mut put = Command::new("curl");
            put.args(["-sSf", "--aws-sigv4", "aws:amz:eu-test-1:s3"]);
            put.args(["--user", "test:secret of tests"]);
            // Not every curl says by itself that it signs no body.
            put.args(["-H", "x-amz-content-sha256: UNSIGNED-PAYLOAD", "-T"]);
            let put = put.arg(file?.path()).arg(&url).stdin(Stdio::null()).output();
            let put = put.context("cannot start `curl`")?;
            ensure!(put.status.success(), "curl: {}", String::from_utf8_lossy(&put.stderr));
        }
        Ok(store)
    }

    /// An input of all objects.
    fn input(&self, more: &str) -> String {
        format!(
            "type: aws-s3, id: bench, non_aws_bucket_name: logs, endpoint: 'http://127.0.0.1:{}', region: eu-test-1, \
             access_key_id: test, secret_access_key: 'secret of tests'{more}",
            self.port
        )
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Err(error) = script("stop", &self.directory, &[]) {
            measure::note(&format!("versitygw is left behind: {error:#}"));
        }
    }
}

/// Runs the script of the server, and returns what it prints.
fn script(verb: &str, directory: &TempDir, more: &[&str]) -> Result<String> {
    let mut command = Command::new(SCRIPT);
    command.arg(verb).arg(directory.path()).args(more);
    let output = command.stdin(Stdio::null()).output();
    let output = output
        .with_context(|| format!("cannot start `{SCRIPT}`, from the root of the repository"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "`{SCRIPT} {verb}` failed: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
