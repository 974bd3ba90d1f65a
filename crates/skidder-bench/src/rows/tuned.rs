//! The best of all sizes of a grid, over sizes that find themselves.

use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::sink::{Behaviour, Sink};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_os::{Clock as _, SystemClock};
use std::cell::RefCell;
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
/// Files of `--lines` lines each: half a minute of 1.5 million lines a second.
const FILES: u64 = 22;
/// A run ends when such a part of the lines has come: files that end leave others to be read alone.
const LINES_PART: f64 = 0.95;
/// A run that is compared and ended earlier because of that measures the start more than the sizes.
const RUN_MIN: Duration = Duration::from_secs(20);

/// The row t1, and t2 if there is a server. The lines, 11 GB, are made anew and not kept.
pub fn tuned(stage: &Stage) -> Vec<Row> {
    let files = match stage.many_plain(FILES, stage.lines) {
        Ok(files) => files,
        Err(error) => return rows_or_why(&GOALS[..1], Err(error)),
    };
    let mut rows = rows_or_why(&GOALS[..1], sink_row(stage, &files));
    if let Some(host) = &stage.elasticsearch {
        rows.extend(rows_or_why(&GOALS[1..], server_row(stage, &files, host)));
    } else {
        measure::note("no row t2: it needs `--elasticsearch HOST:PORT`");
    }
    if let Err(error) = std::fs::remove_dir_all(&files) {
        measure::note(&format!("cannot remove {}: {error}", files.display()));
    }
    rows
}

fn sink_row(stage: &Stage, files: &Path) -> Result<Vec<Row>> {
    let run = |sizes: &Sizes, lasts| {
        let behaviour = Behaviour { delay: DELAY, limit: Some(LIMIT), ..Behaviour::default() };
        let sink = Sink::start(behaviour)?;
        let output = sizes.output(&sink.url(), "bench");
        run(stage, files, &output, lasts, || Ok(sink.count().documents))
    };
    Ok(vec![compare(stage, &GOALS[0], AT_SINK, &run)?])
}

fn server_row(stage: &Stage, files: &Path, host: &str) -> Result<Vec<Row>> {
    let made = RefCell::new(Vec::new());
    let run = |sizes: &Sizes, lasts| {
        // What a program that was killed had sent makes its index again after that was deleted, so no run has that of
        // another.
        let index = format!("skidder-bench-tuned-{}-{}", std::process::id(), made.borrow().len());
        made.borrow_mut().push(index.clone());
        // Else the first look finds none.
        ask(host, "PUT", &index)?;
        let output = sizes.output(&format!("http://{host}"), &index);
        let run = run(stage, files, &output, lasts, || indexed(host, &index));
        ask(host, "DELETE", &index)?;
        run
    };
    // Its compiler has to have seen the code.
    let row = run(&Sizes::fixed(2, 1600, 0), 2 * AT_SERVER.run)
        .and_then(|_| compare(stage, &GOALS[1], AT_SERVER, &run));
    for index in made.take() {
        // Most are not there any more.
        drop(ask(host, "DELETE", &index));
    }
    Ok(vec![row?])
}

/// The settings of the output.
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

/// Runs the program for a time, or until nearly all lines have come; looks at how many have.
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
    let enough = LINES_PART * (FILES * stage.lines) as f64;
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
        let has_enough = looks.last().is_some_and(|&(_, came)| came >= enough);
        if has_enough || passed + LOOK >= lasts {
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
    let least = lasts.min(RUN_MIN).as_secs_f64();
    ensure!(came < enough || end >= least, "there were too few lines; raise `--lines`");
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
        "{}; best cell: worker {workers}, bulk_max_size {events}, compression_level {level}, {}; {}; {}; each run {} s \
         or until the lines end, start included",
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
    // With HTTP/1.0 the connection ends with the answer.
    write!(stream, "{method} /{path} HTTP/1.0\r\nhost: {host}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    body(&answer).with_context(|| format!("{method} /{path}: {answer}"))
}

/// The body of an answer with status 200. Elasticsearch sends some in chunks (RFC 9112, section 7.1), which HTTP/1.0
/// does not have.
fn body(answer: &str) -> Result<String> {
    let (head, body) = answer.split_once("\r\n\r\n").context("no end of the head")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "not 200");
    let head = head.to_ascii_lowercase();
    if !head.lines().any(|line| line.starts_with("transfer-encoding:") && line.contains("chunked"))
    {
        return Ok(body.to_owned());
    }
    let (mut whole, mut rest) = (String::new(), body);
    loop {
        let (size, behind) = rest.split_once("\r\n").context("a chunk without a size")?;
        let size = usize::from_str_radix(size, 16).context("a chunk's size is no number")?;
        if size == 0 {
            return Ok(whole);
        }
        whole.push_str(behind.get(..size).context("a chunk is cut")?);
        rest = behind[size..].strip_prefix("\r\n").context("a chunk is longer than it said")?;
    }
}

#[cfg(test)]
mod tests {
    use super::{body, ramp};

    #[test]
    fn a_body_comes_whole_or_in_chunks() {
        let whole = "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(body(whole).unwrap(), "{}");
        let chunks = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let cut = format!("{chunks}3\r\n{{\"a\r\nd\r\n\":1234567");
        let text = format!("{cut}890}}\r\n0\r\n\r\n");
        assert_eq!(body(&text).unwrap(), "{\"a\":1234567890}");
        for wrong in [
            &cut,
            &format!("{chunks}2\r\nabc\r\n0\r\n\r\n"),
            "HTTP/1.0 404 Not Found\r\n\r\n{}",
            "HTTP",
        ] {
            body(wrong).unwrap_err();
        }
    }

    #[test]
    fn the_ramp_ends_where_the_speed_is_reached() {
        // Nothing for two seconds, then 100 lines a second.
        let looks: Vec<_> =
            (0..=40).map(|at| (f64::from(at) / 4.0, 25.0 * f64::from((at - 8).max(0)))).collect();
        let reached = ramp(&looks);
        assert!((1.75..=2.0).contains(&reached), "{reached}");
    }
}
