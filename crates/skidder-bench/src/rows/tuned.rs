//! The best of all sizes of a grid, over sizes that find themselves.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use skidder_os::{Clock as _, SystemClock};
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
/// How long a cell of the grid lasts, and the runs that are compared, start included: at the sink, and at a server, which
/// takes a fiftieth of that and is less even.
const AT_SINK: Lasts = Lasts { cell: Duration::from_secs(2), run: Duration::from_secs(30) };
const AT_SERVER: Lasts = Lasts { cell: Duration::from_secs(5), run: Duration::from_mins(1) };
/// How often it is looked at how many lines have come.
const LOOK: Duration = Duration::from_millis(250);
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
    let run = |sizes: &Sizes, lasts| {
        let behaviour = Behaviour { delay: DELAY, limit: Some(LIMIT), ..Behaviour::default() };
        let sink = Sink::start(behaviour)?;
        let output = sizes.output(&sink.url(), "bench");
        run(stage, &files, &output, lasts, || Ok(sink.count().documents))
    };
    Ok(vec![compare(stage, &GOALS[0], AT_SINK, &run)?])
}

fn server_row(stage: &Stage, host: &str) -> Result<Vec<Row>> {
    let files = stage.many_plain(FILES, stage.lines)?;
    let index = "skidder-bench-tuned";
    let run = |sizes: &Sizes, lasts| {
        // Else the first look finds none.
        ask(host, "PUT", index)?;
        let output = sizes.output(&format!("http://{host}"), index);
        let run = run(stage, &files, &output, lasts, || indexed(host, index));
        ask(host, "DELETE", index)?;
        run
    };
    // Its compiler has to have seen the code.
    run(&Sizes::fixed(2, 1600, 0), 2 * AT_SERVER.run)?;
    Ok(vec![compare(stage, &GOALS[1], AT_SERVER, &run)?])
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
            "{queue}setup.template.enabled: false\noutput.elasticsearch: {{hosts: [{}], index: {index}, worker: {workers}, bulk_max_size: {events}, \
             compression_level: {level}}}\n",
            Value::from(url)
        )
    }
}

/// Times of a kind of server.
#[derive(Clone, Copy, Debug)]
struct Lasts {
    cell: Duration,
    run: Duration,
}

/// What a run of the program reached.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// Lines a second, from the start of the program to the end of the run.
    rate: f64,
    /// Seconds until a second began with 90 % of the rate of the last third.
    ramp: f64,
}

/// Runs the program for a time, and looks at how many lines have come.
fn run(
    stage: &Stage,
    files: &Path,
    output: &str,
    lasts: Duration,
    count: impl Fn() -> Result<u64>,
) -> Result<Reached> {
    let paths = Value::from(files.join("*.log").to_string_lossy().into_owned());
    let input = format!("filebeat.inputs: [{{type: filestream, id: bench, paths: [{paths}]}}]\n");
    let home = stage.home_of(&format!("{input}{output}"))?;
    let mut command = home.command(&stage.skidder);
    let clock = SystemClock::new();
    let mut child =
        command.stderr(File::create(home.log())?).spawn().context("cannot start the program")?;
    // When, and how many lines then.
    let mut looks = vec![(0.0, 0.0)];
    let looked = loop {
        let passed = clock.monotonic().0;
        measure::pause(LOOK.min(lasts.saturating_sub(passed)));
        match count() {
            Ok(came) => looks.push((clock.monotonic().0.as_secs_f64(), came as f64)),
            Err(error) => break Err(error),
        }
        if passed + LOOK >= lasts {
            break Ok(());
        }
    };
    let ended = child.try_wait()?;
    measure::kill(&mut child)?;
    ensure!(
        ended.is_none(),
        "the program ended by itself: {}",
        std::fs::read_to_string(home.log())?
    );
    looked?;
    let &(end, came) = looks.last().context("nothing was looked at")?;
    ensure!(came < (FILES * stage.lines) as f64, "there were too few lines; raise `--lines`");
    Ok(Reached { rate: came / end, ramp: ramp(&looks) })
}

/// See [`Reached`].
fn ramp(looks: &[(f64, f64)]) -> f64 {
    let &(end, _) = looks.last().unwrap_or(&(0.0, 0.0));
    let rate = |from: f64, to: f64| {
        let of = |at: f64| looks.iter().find(|(time, _)| *time >= at).or(looks.last());
        let (Some(first), Some(last)) = (of(from), of(to)) else { return 0.0 };
        (last.1 - first.1) / (last.0 - first.0).max(f64::MIN_POSITIVE)
    };
    let last = rate(end * 2.0 / 3.0, end);
    let fast = |at: &&(f64, f64)| rate(at.0, at.0 + 1.0) >= 0.9 * last;
    looks.iter().find(fast).map_or(end, |at| at.0)
}

/// Goes through the grid, then runs its best cell and the tuner in turns.
fn compare(
    stage: &Stage,
    goal: &Goal,
    lasts: Lasts,
    run: &dyn Fn(&Sizes, Duration) -> Result<Reached>,
) -> Result<Row> {
    let mut best = (0.0, Sizes::auto());
    for workers in WORKERS {
        for events in EVENTS {
            for level in LEVELS {
                let sizes = Sizes::fixed(workers, events, level);
                let rate = run(&sizes, lasts.cell)?.rate;
                measure::note(&format!("{sizes:?}: {rate:.0} lines/s"));
                if rate > best.0 {
                    best = (rate, sizes);
                }
            }
        }
    }
    let (mut ratios, mut of_best) = (Vec::new(), Vec::new());
    let (mut of_tuner, mut ramps) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let (cell, tuner) = (run(&best.1, lasts.run)?, run(&Sizes::auto(), lasts.run)?);
        ratios.push(cell.rate / tuner.rate);
        of_best.push(cell.rate / 1e3);
        of_tuner.push(tuner.rate / 1e3);
        ramps.push(tuner.ramp);
    }
    let all = |values: &[f64]| summarize(values).context("nothing was measured");
    let ratio = all(&ratios)?;
    let Sizes { workers, events, level } = &best.1;
    let detail = format!(
        "{}; best cell: worker {workers}, bulk_max_size {events}, compression_level {level}, {}; {}; {}; each run {} s, \
         start included",
        spread("ratio", ratio),
        spread("thousand lines/s:", all(&of_best)?),
        spread("self-tuned:", all(&of_tuner)?),
        spread("seconds to 90 % of the last speed:", all(&ramps)?),
        lasts.run.as_secs(),
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

#[cfg(test)]
mod tests {
    use super::ramp;

    #[test]
    fn the_ramp_ends_where_the_speed_is_reached() {
        // Nothing for two seconds, then 100 lines a second.
        let looks: Vec<_> =
            (0..=40).map(|at| (f64::from(at) / 4.0, 25.0 * f64::from((at - 8).max(0)))).collect();
        let reached = ramp(&looks);
        assert!((1.75..=2.0).contains(&reached), "{reached}");
    }
}
