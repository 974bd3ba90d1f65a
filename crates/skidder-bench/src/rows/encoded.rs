//! CPU of the outputs that send encoded events to a server, over encoding the same events without sending.

use super::{Goal, row, rows_or_why, spread};
use crate::measure::{self, Cost};
use crate::sink::frames::{Counter, Protocol};
use crate::stage::Stage;
use crate::statistics::{Summary, summarize};
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;

const GOALS: [Goal; 5] = [
    (
        "s1",
        "CPU with Logstash, uncompressed, over `output.console` to `/dev/null`, which encodes the same",
        1.5,
        1.2,
        "",
    ),
    ("s2", "the same for Redis", 1.5, 1.2, ""),
    ("s3", "the same for Kafka", 1.5, 1.2, ""),
    ("s3i", "the same for Kafka with `enable_idempotence` and `required_acks: -1`", 1.5, 1.2, ""),
    (
        "s3r",
        "the same for Kafka, to a real broker, which has the caches while skidder waits for it",
        1.5,
        1.2,
        "",
    ),
];

/// Beyond the defaults of `output.kafka`.
const IDEMPOTENCE: &str = ", enable_idempotence: true, required_acks: -1";

/// A real Kafka keeps on its disk what it is sent.
const KAFKA_LINES_MAX: u64 = 500_000;

/// The rows s1 to s3i, and s3r if there is a broker.
///
/// `output.console` writes the documents that these outputs send, and `/dev/null` takes them without looking: that is
/// reading, queue and encoding, and next to nothing for the output.
pub fn encoded(stage: &Stage) -> Vec<Row> {
    let logstash = counted(stage, &GOALS[0], Protocol::Lumberjack, &|host| {
        format!("output.logstash: {{hosts: [{host}], compression_level: 0}}\n")
    });
    let redis = counted(stage, &GOALS[1], Protocol::Redis, &|host| {
        format!("output.redis: {{hosts: [{host}], key: bench}}\n")
    });
    let kafka = counted(stage, &GOALS[2], Protocol::Kafka, &|host| to_kafka(host, ""));
    let idempotent =
        counted(stage, &GOALS[3], Protocol::Kafka, &|host| to_kafka(host, IDEMPOTENCE));
    let mut rows = Vec::new();
    for (goal, found) in GOALS.iter().zip([logstash, redis, kafka, idempotent]) {
        rows.extend(rows_or_why(std::slice::from_ref(goal), found));
    }
    if let Some(host) = &stage.kafka {
        let output = to_kafka(&Value::from(host.as_str()), "");
        let real = compare(stage, &GOALS[4], stage.lines.min(KAFKA_LINES_MAX), &output);
        rows.extend(rows_or_why(&GOALS[4..], real));
    } else {
        measure::note("no row s3r: it needs `--kafka HOST:PORT`");
    }
    rows
}

fn to_kafka(host: &Value, more: &str) -> String {
    format!("output.kafka: {{hosts: [{host}], topic: skidder-bench, compression: none{more}}}\n")
}

/// The row of an output with one of our own servers, that counts too.
fn counted(
    stage: &Stage,
    goal: &Goal,
    protocol: Protocol,
    output: &dyn Fn(&Value) -> String,
) -> Result<Vec<Row>> {
    let counter = Counter::start(protocol)?;
    let rows = compare(stage, goal, stage.lines, &output(&Value::from(counter.address())))?;
    let (came, sent) = (counter.events(), stage.lines * u64::from(stage.runs));
    ensure!(came == sent, "{came} of {sent} events came");
    Ok(rows)
}

/// Runs of both in turns.
fn compare(stage: &Stage, goal: &Goal, lines: u64, output: &str) -> Result<Vec<Row>> {
    let file = stage.plain(lines)?;
    let (mut theirs, mut base) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        base.push(ship(stage, &file, "output.console: {}\n", lines)?);
        theirs.push(ship(stage, &file, output, lines)?);
    }
    measure::note(&format!("{}: {theirs:?} over {base:?}", goal.0));
    let over = |costs: &[Cost], value: fn(&Cost) -> f64| -> Result<Summary> {
        let values: Vec<f64> = costs.iter().map(value).collect();
        summarize(&values).context("no run was made")
    };
    let (all, user) = (|cost: &Cost| cost.cpu.as_secs_f64(), |cost: &Cost| cost.user.as_secs_f64());
    let (cpu, base_cpu) = (over(&theirs, all)?, over(&base, all)?);
    let (own, base_own) = (over(&theirs, user)?, over(&base, user)?);
    let detail = format!(
        "{lines} lines, {:.2} µs a line; {}; {}; outside of the kernel: {:.2} over {:.2}, ratio {:.2}",
        cpu.median / lines as f64 * 1e6,
        spread("s:", cpu),
        spread("encoded only s:", base_cpu),
        own.median,
        base_own.median,
        own.median / base_own.median
    );
    Ok(vec![row(goal, cpu.median / base_cpu.median, detail)])
}

/// Ships a file with `--once`; all lines must have been delivered.
fn ship(stage: &Stage, file: &Path, output: &str, lines: u64) -> Result<Cost> {
    let path = Value::from(file.to_string_lossy().into_owned());
    ship_events(stage, &format!("type: filestream, id: bench, paths: [{path}]"), output, lines)
}

/// The same with an input of these settings.
pub(super) fn ship_events(stage: &Stage, input: &str, output: &str, events: u64) -> Result<Cost> {
    let home = stage.home_of(&format!("filebeat.inputs: [{{{input}}}]\n{output}"))?;
    let cost = measure::run(home.command(&stage.skidder).arg("--once"), &home.log())?;
    let said = std::fs::read_to_string(home.log())?;
    let delivered = delivered(&said).context("the program did not log its total metrics")?;
    ensure!(delivered == events, "{delivered} of {events} events were delivered");
    Ok(cost)
}

/// The accepted events, from the metrics that the program logs at its end.
pub(super) fn delivered(said: &str) -> Option<u64> {
    let mut lines = said.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let last = lines.find(|line| line["message"] == "Total metrics")?;
    last["monitoring"]["metrics"]["libbeat"]["output"]["events"]["acked"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metrics_say_what_was_delivered() {
        let said = "not JSON\n{\"message\":\"Total metrics\",\"monitoring\":{\"metrics\":{\"libbeat\":{\"output\":\
                    {\"events\":{\"acked\":7}}}}}}\n{\"message\":\"something else\"}\n";
        assert_eq!(delivered(said), Some(7));
        assert_eq!(delivered("{\"message\":\"Total metrics\"}"), None);
    }
}
