//! The best of all sizes of a grid, over sizes that find themselves.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

const GOALS: [Goal; 2] = [
    (
        "t1",
        "lines/s to a sink with 20 ms and 429s: the best of a grid, over self-tuned",
        1.18,
        1.053,
        "",
    ),
    ("t2", "lines/s to a real Elasticsearch: the best of a grid, over self-tuned", 1.11, 1.0, ""),
];

/// How long the sink waits before it answers.
const DELAY: Duration = Duration::from_millis(20);
/// How many requests it takes at once; it answers further ones 429.
const LIMIT: usize = 4;
/// The grid.
const WORKERS: [usize; 5] = [1, 2, 4, 8, 16];
const EVENTS: [usize; 4] = [400, 1600, 6400, 25_600];
const LEVELS: [u32; 2] = [0, 1];
/// Seconds of a cell of the grid, and of the runs that are compared.
const CELL: Duration = Duration::from_secs(2);
const RUN: Duration = Duration::from_secs(12);
/// Files of `--lines` lines each: more than any run reads.
const FILES: u64 = 10;

/// The row t1, and t2 if there is a server.
pub fn tuned(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&GOALS[..1], sink_row(stage));
    if let Some(host) = &stage.elasticsearch {
        rows.extend(rows_or_why(&GOALS[1..], server_row(stage, host)));
    } else {
        measure::note("no row t2: it needs `--elasticsearch HOST:PORT`");
    }
    rows
}

fn sink_row(stage: &Stage) -> Result<Vec<Row>> {
    let files = stage.many_plain(FILES, stage.lines)?;
    let rate = |sizes: &Sizes, lasts| {
        let behaviour = Behaviour { delay: DELAY, limit: Some(LIMIT), ..Behaviour::default() };
        let sink = Sink::start(behaviour)?;
        let output = sizes.output(&sink.url(), "bench");
        rate(stage, &files, &output, lasts, || Ok(sink.count().documents))
    };
    Ok(vec![compare(stage, &GOALS[0], &rate)?])
}

fn server_row(stage: &Stage, host: &str) -> Result<Vec<Row>> {
    let files = stage.many_plain(FILES, stage.lines)?;
    let index = "skidder-bench-tuned";
    let rate = |sizes: &Sizes, lasts| {
        let output = sizes.output(&format!("http://{host}"), index);
        let rate = rate(stage, &files, &output, lasts, || indexed(host, index));
        ask(host, "DELETE", index)?;
        rate
    };
    // Its compiler has to have seen the code.
    rate(&Sizes::fixed(2, 1600, 0), 2 * RUN)?;
    Ok(vec![compare(stage, &GOALS[1], &rate)?])
}

/// What is set in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sizes {
    workers: String,
    events: String,
    level: String,
}

impl Sizes {
    fn fixed(workers: usize, events: usize, level: u32) -> Self {
        Self { workers: workers.to_string(), events: events.to_string(), level: level.to_string() }
    }

    fn auto() -> Self {
        let auto = || "auto".to_owned();
        Self { workers: auto(), events: auto(), level: auto() }
    }

    /// The rest of a configuration. The queue is as large as `auto` makes it, for all.
    fn output(&self, url: &str, index: &str) -> String {
        let Self { workers, events, level } = self;
        let mut queue = "queue.mem: {events: 1048576, flush: {min_events: 1048576, timeout: 1s}}\n";
        if *self == Self::auto() {
            queue = "";
        }
        format!(
            "{queue}output.elasticsearch: {{hosts: [{}], index: {index}, worker: {workers}, bulk_max_size: {events}, \
             compression_level: {level}}}\n",
            Value::from(url)
        )
    }
}

/// Lines a second from the start of the program on.
fn rate(
    stage: &Stage,
    files: &Path,
    output: &str,
    lasts: Duration,
    count: impl Fn() -> Result<u64>,
) -> Result<f64> {
    let paths = Value::from(files.join("*.log").to_string_lossy().into_owned());
    let input = format!("filebeat.inputs: [{{type: filestream, id: bench, paths: [{paths}]}}]\n");
    let home = stage.home_of(&format!("{input}{output}"))?;
    let mut command = home.command(&stage.skidder);
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    measure::pause(lasts);
    let came = count();
    let ended = child.try_wait()?;
    measure::kill(&mut child)?;
    ensure!(
        ended.is_none(),
        "the program ended by itself: {}",
        std::fs::read_to_string(home.log())?
    );
    let came = came?;
    ensure!(came < FILES * stage.lines, "there were too few lines; raise `--lines`");
    Ok(came as f64 / lasts.as_secs_f64())
}

/// Goes through the grid, then runs its best cell and the tuner in turns.
fn compare(
    stage: &Stage,
    goal: &Goal,
    rate: &dyn Fn(&Sizes, Duration) -> Result<f64>,
) -> Result<Row> {
    let mut best = (0.0, Sizes::auto());
    for workers in WORKERS {
        for events in EVENTS {
            for level in LEVELS {
                let sizes = Sizes::fixed(workers, events, level);
                let reached = rate(&sizes, CELL)?;
                measure::note(&format!("{sizes:?}: {reached:.0} lines/s"));
                if reached > best.0 {
                    best = (reached, sizes);
                }
            }
        }
    }
    let (mut ratios, mut of_best, mut of_tuner) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let (cell, tuner) = (rate(&best.1, RUN)?, rate(&Sizes::auto(), RUN)?);
        ratios.push(cell / tuner);
        of_best.push(cell / 1e3);
        of_tuner.push(tuner / 1e3);
    }
    let all = |values: &[f64]| summarize(values).context("nothing was measured");
    let ratio = all(&ratios)?;
    let Sizes { workers, events, level } = &best.1;
    let detail = format!(
        "{}; best cell: worker {workers}, bulk_max_size {events}, compression_level {level}, {}; {}",
        spread("ratio", ratio),
        spread("thousand lines/s:", all(&of_best)?),
        spread("self-tuned:", all(&of_tuner)?),
    );
    Ok(row(goal, ratio.median, detail))
}

/// Documents that a server has indexed, whether they can be found yet or not.
fn indexed(host: &str, index: &str) -> Result<u64> {
    let answer: Value =
        serde_json::from_str(&ask(host, "GET", &format!("{index}/_stats/indexing"))?)?;
    let count = &answer["_all"]["primaries"]["indexing"]["index_total"];
    count.as_u64().with_context(|| format!("no number of documents in {answer}"))
}

/// A request without a body; the body of the answer.
fn ask(host: &str, method: &str, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(host).with_context(|| format!("cannot reach {host}"))?;
    // HTTP/1.0 has no chunks, and the connection ends with the answer.
    write!(stream, "{method} /{path} HTTP/1.0\r\nhost: {host}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let Some((head, body)) = answer.split_once("\r\n\r\n") else { bail!("no answer: {answer}") };
    ensure!(head.split(' ').nth(1) == Some("200"), "{method} /{path}: {answer}");
    Ok(body.to_owned())
}
