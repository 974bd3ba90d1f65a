//! `grok` over a regular expression with the same groups, in this process.
//!
//! The expression is searched for by the crate `regex`, with all its groups, and nothing is done with them;
//! `grok` also puts the fields into the events.

use super::{Goal, row, rows_or_why};
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context as _, Result, ensure};
use regex::bytes::Regex;
use skidder_config::{Problems, Settings};
use skidder_event::{Batch, Map, Path, Provenance, Row as Event, SourceId, Text};
use skidder_os::{Clock, RealFs, SystemClock};
use skidder_processors::{BoundPlan, Context, Plan, Shape, read_processors};
use skidder_workload::Kind;
use std::hint::black_box;
use std::sync::Arc;

const GROK: Goal =
    ("p7", "`grok` of an access log over a hand-written regex with the same groups", 1.1, 1.0, "");

const PATTERN: &str = r#"
processors:
  - grok:
      patterns: ['^%{IPV4:source.ip} %{NOTSPACE} %{NOTSPACE:user} \[%{HTTPDATE:time}\] "%{WORD:method} %{NOTSPACE:path} HTTP/%{NUMBER:version}" %{INT:status} (?:-|%{INT:bytes}) "(?<referrer>[^"]*)" "(?<agent>[^"]*)"']
"#;

/// What a person would write instead who knows the crate: ASCII, and each part ends where the next begins, so that
/// the groups are found in one pass.
const EXPRESSION: &str = r#"(?-u)^(\d+\.\d+\.\d+\.\d+) [^ ]+ ([^ ]+) \[([^\]]+)\] "(\w+) ([^ ]+) HTTP/([\d.]+)" (\d+) (?:-|(\d+)) "([^"]*)" "([^"]*)"$"#;

/// Events of a batch, as many as a reader makes at once.
const BATCH: usize = 800;

/// Batches of a measurement.
const BATCHES: usize = 200;

/// The row p7.
pub(super) fn grok(stage: &Stage) -> Vec<Row> {
    rows_or_why(&[GROK], measure(stage))
}

fn measure(stage: &Stage) -> Result<Vec<Row>> {
    let (file, _) = stage.of_kind(Kind::Apache, stage.lines.min(100_000))?;
    let text = std::fs::read_to_string(&file)?;
    let lines: Vec<&str> = text.lines().take(BATCH).collect();
    ensure!(lines.len() == BATCH, "`{}` has too few lines", file.display());
    let clock = SystemClock::new();
    let (mut groks, mut searches) = (Vec::new(), Vec::new());
    let plan = plan()?;
    let regex = Regex::new(EXPRESSION).context("the expression above is one")?;
    for _ in 0..stage.runs.max(3) {
        groks.push(of_grok(&clock, &plan, &lines)?);
        searches.push(of_regex(&clock, &regex, &lines)?);
    }
    let grok = summarize(&groks).context("no run was made")?;
    let search = summarize(&searches).context("no run was made")?;
    let detail = format!(
        "ns a line: {:.0} ({:.0} to {:.0}), regex {:.0} ({:.0} to {:.0})",
        grok.median, grok.least, grok.most, search.median, search.least, search.most
    );
    Ok(vec![row(&GROK, grok.median / search.median, detail)])
}

fn plan() -> Result<Plan> {
    let settings = Settings::parse("bench.yml", PATTERN).context("the text above is YAML")?;
    let problems = Problems::new();
    let context = Context::new(Arc::new(RealFs), Arc::new(SystemClock::new()));
    let list = read_processors(settings.root(&problems).items("processors"), &context);
    ensure!(problems.is_empty(), "{problems}");
    Ok(Plan::compile(&list, &Map::new(), &[]))
}

/// Nanoseconds a line of the processor.
fn of_grok(clock: &SystemClock, plan: &Plan, lines: &[&str]) -> Result<f64> {
    let bound = plan.bind(&Map::new(), &Map::new(), Shape::Lines);
    let mut nanoseconds = Vec::new();
    for _ in 0..BATCHES {
        let mut batch = batch(lines, &bound);
        let started = clock.monotonic();
        bound.run(&mut batch);
        nanoseconds.push(clock.monotonic().since(started).as_nanos() as f64);
        let path = Path::parse("agent").context("a name is a path")?;
        let base = Arc::clone(bound.input_base());
        ensure!(batch.event_mut(0, &base).as_ref().has(&path), "the pattern does not match");
    }
    per_line(&nanoseconds)
}

/// Nanoseconds a line of the search for all groups.
fn of_regex(clock: &SystemClock, regex: &Regex, lines: &[&str]) -> Result<f64> {
    let mut groups = regex.capture_locations();
    let mut nanoseconds = Vec::new();
    for _ in 0..BATCHES {
        let mut found = 0;
        let started = clock.monotonic();
        for line in lines {
            found += usize::from(regex.captures_read(&mut groups, line.as_bytes()).is_some());
            black_box(&groups);
        }
        nanoseconds.push(clock.monotonic().since(started).as_nanos() as f64);
        ensure!(found == lines.len(), "the expression does not match");
    }
    per_line(&nanoseconds)
}

fn per_line(nanoseconds: &[f64]) -> Result<f64> {
    Ok(summarize(nanoseconds).context("no batch was measured")?.median / BATCH as f64)
}

fn batch(lines: &[&str], bound: &BoundPlan) -> Batch {
    let mut bytes = Vec::new();
    let mut events = Vec::new();
    for line in lines {
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        events.push(Event::new(
            u64::from(text.start),
            text.len + 1,
            text,
            1_795_294_377_123_000_000,
        ));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, Arc::clone(bound.input_base()), provenance);
    for event in events {
        batch.push(event);
    }
    batch
}
