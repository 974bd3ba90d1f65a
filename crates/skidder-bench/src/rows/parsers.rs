//! What parsers cost: the same file with and without them, in turn.

use super::{Goal, row, rows_or_why, ship_with, spread};
use crate::measure;
use crate::stage::{Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result};
use skidder_workload::Kind;

const CASES: [Case; 3] = [
    Case {
        goal: ("k", "CPU of JSON lines with the `ndjson` parser, over plain text", 2.0, 1.5, ""),
        kind: Kind::Json,
        share: 1,
        parsers: "[{ndjson: {target: \"\", overwrite_keys: true}}]",
    },
    Case {
        goal: ("l", "CPU of CRI lines with the `container` parser, over plain text", 1.25, 1.1, ""),
        kind: Kind::Container,
        share: 1,
        parsers: "[{container: {format: cri}}]",
    },
    Case {
        goal: ("m", "CPU of Java traces with `multiline`, over plain text", 1.3, 1.15, ""),
        kind: Kind::Trace,
        share: 4,
        parsers: "[{multiline: {type: pattern, pattern: '^\\d{4}-', negate: true, match: after}}]",
    },
];

/// One parser on lines that are made for it.
struct Case {
    goal: Goal,
    kind: Kind,
    /// Of how many lines of the main workload one record is made.
    share: u64,
    parsers: &'static str,
}

/// The rows k, l and m.
pub fn parsers(stage: &Stage) -> Vec<Row> {
    CASES.iter().flat_map(|case| rows_or_why(&[case.goal], measure(stage, case))).collect()
}

fn measure(stage: &Stage, case: &Case) -> Result<Vec<Row>> {
    let records = (stage.lines / case.share).max(1);
    let (file, lines) = stage.of_kind(case.kind, records)?;
    let paths = file.to_string_lossy();
    let (mut plain, mut parsed) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        for (parsers, events, costs) in
            [("", lines, &mut plain), (case.parsers, records, &mut parsed)]
        {
            let settings = Settings { parsers, ..Settings::default() };
            let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, events)?;
            costs.push(cost.cpu.as_secs_f64());
        }
        measure::note(&format!("{} {}: {plain:?} {parsed:?}", case.kind.name(), run + 1));
    }
    let plain = summarize(&plain).context("no run was made")?;
    let parsed = summarize(&parsed).context("no run was made")?;
    let each = parsed.median / lines as f64 * 1e6;
    let detail = format!(
        "{lines} lines, {records} events, {each:.2} µs a line; {}; {}",
        spread("s:", parsed),
        spread("plain text s:", plain)
    );
    Ok(vec![row(&case.goal, parsed.median / plain.median, detail)])
}
