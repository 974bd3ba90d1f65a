//! The memory of one idle input of each kind, over that of an idle file.
//!
//! Programs of all kinds run at the same time, and once for each run. The kernel maps pages of the program's file that
//! other processes have read, 16 at a time, so that how much of the program is resident differs by a megabyte between
//! two runs of the same configuration; hence the medians, and the part that is no file.

use super::brokers::Server;
use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Memory, Running, pause};
use crate::stage::{Home, Stage};
use crate::statistics::{Summary, summarize};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::net::TcpListener;
use std::time::Duration;

/// A kind, and its goal: megabytes.
const KINDS: [(&str, Goal); 7] = [
    ("journald", goal("x10j", "memory of an idle input `journald`, over an idle file")),
    ("kafka", goal("x10k", "the same of `kafka`")),
    ("redis", goal("x10r", "the same of `redis`")),
    ("mqtt", goal("x10m", "the same of `mqtt`")),
    ("netflow", goal("x10n", "the same of `netflow`")),
    ("http_endpoint", goal("x10h", "the same of `http_endpoint`")),
    ("lumberjack", goal("x10l", "the same of `lumberjack`")),
];

const fn goal(letter: &'static str, what: &'static str) -> Goal {
    (letter, what, 2.0, 0.5, " MB")
}

/// After which memory is measured.
const SETTLE: Duration = Duration::from_secs(8);

/// Entries of the journal that is followed.
const ENTRIES: u64 = 100_000;

/// How lines of the log about problems are marked.
const LEVELS: [&str; 2] = [r#""log.level":"error""#, r#""log.level":"warn""#];

const MEGABYTE: f64 = 1e6;

/// The rows x10. That of Kafka needs a broker.
pub fn idle_inputs(stage: &Stage) -> Vec<Row> {
    let goals = KINDS.map(|(_, goal)| goal);
    rows_or_why(&goals, measured(stage))
}

/// Where the inputs find their far sides.
struct FarSides<'s> {
    redis: Server,
    mosquitto: Server,
    kafka: Option<&'s str>,
    /// A folder with a journal.
    journal: String,
    /// A file with one line.
    file: String,
}

impl FarSides<'_> {
    /// Settings of an input of this kind.
    fn input(&self, kind: &str, run: u32) -> Result<String> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        Ok(match kind {
            "journald" => format!("paths: [{}], seek: tail", Value::from(&*self.journal)),
            "kafka" => format!(
                "hosts: ['{}'], topics: [skidder-bench-idle], group_id: bench-{run}",
                self.kafka.context("it needs `--kafka HOST:PORT`")?
            ),
            "redis" => format!("hosts: ['127.0.0.1:{}'], lists: [bench]", self.redis.port),
            "mqtt" => {
                format!("hosts: ['tcp://127.0.0.1:{}'], topics: [bench]", self.mosquitto.port)
            }
            "http_endpoint" => format!("listen_port: {port}"),
            "lumberjack" => format!("listen_address: '127.0.0.1:{port}'"),
            "netflow" => format!("host: '127.0.0.1:{port}'"),
            _ => format!("paths: [{}]", Value::from(&*self.file)),
        })
    }
}

fn measured(stage: &Stage) -> Result<Vec<Row>> {
    let far = FarSides {
        redis: Server::redis()?,
        mosquitto: Server::mosquitto()?,
        kafka: stage.kafka.as_deref(),
        journal: stage.journal(stage.lines.min(ENTRIES))?.display().to_string(),
        file: stage.cut(100, 1)?.display().to_string(),
    };
    let is_there = |kind: &str| kind != "kafka" || far.kafka.is_some();
    let kinds = KINDS.iter().filter(|(kind, _)| is_there(kind)).collect::<Vec<_>>();
    if kinds.len() < KINDS.len() {
        measure::note("no row x10k: it needs `--kafka HOST:PORT`");
    }
    // The first programs would find less of their file in the page cache.
    std::fs::read(&stage.skidder)?;
    let mut base = Vec::new();
    let mut found: Vec<Vec<Memory>> = vec![Vec::new(); kinds.len()];
    for run in 0..stage.runs {
        let file = Idle::start(stage, "filestream", &far.input("filestream", run)?)?;
        let start =
            |(kind, _): &&(&'static str, Goal)| Idle::start(stage, kind, &far.input(kind, run)?);
        let programs = kinds.iter().map(start).collect::<Result<Vec<_>>>()?;
        pause(SETTLE);
        base.push(file.memory()?);
        for (program, found) in programs.iter().zip(&mut found) {
            found.push(program.memory()?);
        }
        measure::note(&format!("run {}: {:?} over {:?}", run + 1, last(&found), base.last()));
    }
    let rows = kinds.iter().zip(&found).map(|((_, goal), found)| compare(goal, found, &base));
    rows.collect()
}

fn last(found: &[Vec<Memory>]) -> Vec<Option<&Memory>> {
    found.iter().map(|found| found.last()).collect()
}

fn compare(goal: &Goal, found: &[Memory], base: &[Memory]) -> Result<Row> {
    let of = |all: &[Memory], part: fn(&Memory) -> u64| -> Result<Summary> {
        let all: Vec<f64> = all.iter().map(|memory| part(memory) as f64 / MEGABYTE).collect();
        summarize(&all).context("no run was made")
    };
    let (all, file) = (of(found, |memory| memory.all)?, of(base, |memory| memory.all)?);
    let (own, own_file) = (of(found, |memory| memory.own)?, of(base, |memory| memory.own)?);
    let detail = format!(
        "{}; {}; of it no page of a file: {:.2} over {:.2}, that is {:.2} more",
        spread("MB:", all),
        spread("file MB:", file),
        own.median,
        own_file.median,
        own.median - own_file.median
    );
    Ok(row(goal, all.median - file.median, detail))
}

/// A program with one input, to which nothing comes.
struct Idle {
    program: Running,
    home: Home,
    kind: &'static str,
}

impl Idle {
    fn start(stage: &Stage, kind: &'static str, input: &str) -> Result<Self> {
        let home = stage.home_of(&format!(
            "filebeat.inputs: [{{type: {kind}, id: bench, {input}}}]\noutput.discard: {{}}\n\
             logging.metrics.enabled: false\n"
        ))?;
        let log = std::fs::File::create(home.log())?;
        let program = Running::start(home.command(&stage.skidder).stderr(log))?;
        Ok(Self { program, home, kind })
    }

    /// Its memory; an error if it has logged a problem, or nothing at all.
    fn memory(&self) -> Result<Memory> {
        let said = std::fs::read_to_string(self.home.log())?;
        let is_problem = |line: &&str| LEVELS.iter().any(|level| line.contains(level));
        let problem = said.lines().find(is_problem);
        ensure!(problem.is_none(), "{}: {}", self.kind, problem.unwrap_or_default());
        ensure!(said.contains("skidder is running"), "{} does not run", self.kind);
        self.program.resident()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_compared() {
        let memory = |all, own| Memory { all, own };
        let base = [memory(9_000_000, 3_000_000), memory(10_000_000, 3_100_000)];
        let row = compare(&KINDS[0].1, &[memory(10_500_000, 3_250_000)], &base).unwrap();
        assert!((row.measured.unwrap() - 1.0).abs() < 1e-9, "{}", row.detail);
        assert!(row.detail.ends_with("3.25 over 3.05, that is 0.20 more"), "{}", row.detail);
    }
}
