//! What inputs with cursors cost: a journal over `journalctl`, and a partition of Kafka over librdkafka.

use super::encoded::ship_events;
use super::{Goal, row, rows_or_why, spread};
use crate::measure;
use crate::stage::Stage;
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use skidder_workload::Workload;
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, Stdio};

const JOURNAL: Goal = (
    "x8",
    "CPU of a journal to `output.discard`, over `journalctl -o export` of the same files to `/dev/null`",
    0.6,
    0.25,
    "",
);

const KAFKA: Goal = (
    "x9",
    "CPU of a partition of Kafka (lz4, lines of 240 bytes) to `output.discard`, over `kcat` (librdkafka) that prints nothing",
    1.6,
    1.2,
    "",
);

/// Entries of the journal, at most: a real writer takes 16 µs for each.
const ENTRIES_MAX: u64 = 500_000;

/// Bytes of a value of the row about Kafka.
const LINE_BYTES: usize = 240;

/// Turns entries as text into files of a journal (package systemd-journal-remote).
const JOURNAL_REMOTE: &str = "/lib/systemd/systemd-journal-remote";

/// Services of the journal, and their processes.
const SERVICES: [(&str, u32); 4] =
    [("nginx", 812), ("sshd", 20_411), ("payments", 4_120), ("cron", 977)];

/// The row x8, and x9 if there is a broker.
pub fn sources(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[JOURNAL], journal(stage));
    match &stage.kafka {
        Some(broker) => rows.extend(rows_or_why(&[KAFKA], kafka(stage, broker))),
        None => measure::note("no row x9: it needs `--kafka HOST:PORT`"),
    }
    rows
}

/// Runs both in turns; the ratio of their medians.
fn compare(
    stage: &Stage,
    (goal, what, other): (&Goal, &str, &str),
    events: u64,
    mut ours: impl FnMut(u32) -> Result<f64>,
    mut theirs: impl FnMut() -> Result<f64>,
) -> Result<Vec<Row>> {
    let (mut cost, mut base) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        base.push(theirs()?);
        cost.push(ours(run)?);
        measure::note(&format!("{what} {}: {cost:?} over {base:?}", run + 1));
    }
    let cost = summarize(&cost).context("no run was made")?;
    let base = summarize(&base).context("no run was made")?;
    let each = |seconds: f64| seconds / events as f64 * 1e6;
    let detail = format!(
        "{events} {what}, {:.2} µs each over {:.2}; {}; {}",
        each(cost.median),
        each(base.median),
        spread("s:", cost),
        spread(&format!("{other} s:"), base)
    );
    Ok(vec![row(goal, cost.median / base.median, detail)])
}

/// Seconds of CPU of a command.
fn cost_of(stage: &Stage, command: &mut Command) -> Result<f64> {
    let home = stage.home_of("")?;
    Ok(measure::run(command.stdout(Stdio::null()), &home.log())?.cpu.as_secs_f64())
}

fn journal(stage: &Stage) -> Result<Vec<Row>> {
    let entries = stage.lines.min(ENTRIES_MAX);
    let folder = stage.journal(entries)?;
    let path = Value::from(folder.to_string_lossy());
    let input = format!("type: journald, id: bench, paths: [{path}]");
    let ours =
        |_| Ok(ship_events(stage, &input, "output.discard: {}\n", entries)?.cpu.as_secs_f64());
    let theirs = || {
        let mut command = Command::new("journalctl");
        cost_of(stage, command.arg("-D").arg(&folder).args(["--quiet", "-o", "export"]))
    };
    compare(stage, (&JOURNAL, "entries", "journalctl"), entries, ours, theirs)
}

/// Writes a journal into a folder that is made for it.
pub(crate) fn write_journal(folder: &Path, entries: u64) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut remote = Command::new(JOURNAL_REMOTE);
    remote.arg("--output").arg(folder.join("bench.journal")).arg("-");
    remote.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = remote.spawn().with_context(|| {
        format!("cannot start `{JOURNAL_REMOTE}`; install the package systemd-journal-remote")
    })?;
    let pipe = child.stdin.take().context("its standard input is a pipe")?;
    let written = write_entries(BufWriter::new(pipe), entries);
    ensure!(child.wait()?.success(), "`{JOURNAL_REMOTE}` failed");
    written
}

/// Entries of services in the export format of the journal, 22 fields each.
fn write_entries(mut out: impl std::io::Write, entries: u64) -> Result<()> {
    let mut workload = Workload::new(1, 0);
    let mut line = Vec::new();
    for number in 0..entries {
        // Programs write in bursts of different lengths.
        let (name, process) = SERVICES[(number / (1 + number % 3)) as usize % SERVICES.len()];
        let (at, digit) = (number * 1_000, process % 10);
        line.clear();
        workload.line(&mut line);
        line.truncate(line.trim_ascii_end().len());
        write!(
            out,
            "__REALTIME_TIMESTAMP={}\n__MONOTONIC_TIMESTAMP={}\n_BOOT_ID=0123456789abcdef0123456789abcdef\n\
             PRIORITY=6\n_TRANSPORT=stdout\n_MACHINE_ID=fedcba9876543210fedcba9876543210\n_HOSTNAME=web-1\n\
             SYSLOG_FACILITY=3\nSYSLOG_IDENTIFIER={name}\n_PID={process}\n_UID=0\n_GID=0\n_COMM={name}\n\
             _EXE=/usr/sbin/{name}\n_CMDLINE=/usr/sbin/{name} -D --config /etc/{name}.conf\n\
             _CAP_EFFECTIVE=1ffffffffff\n_SELINUX_CONTEXT=unconfined\n\
             _SYSTEMD_CGROUP=/system.slice/{name}.service\n_SYSTEMD_UNIT={name}.service\n\
             _SYSTEMD_SLICE=system.slice\n_SYSTEMD_INVOCATION_ID=0123456789abcdef0123456789abcde{digit}\n\
             _STREAM_ID=fedcba9876543210fedcba987654321{digit}\nMESSAGE=",
            1_790_000_000_000_000 + at,
            1_000_000 + at
        )?;
        out.write_all(&line)?;
        out.write_all(b"\n\n")?;
    }
    Ok(out.flush()?)
}

fn kafka(stage: &Stage, broker: &str) -> Result<Vec<Row>> {
    let lines = stage.lines;
    let file = stage.cut(LINE_BYTES, lines as usize)?;
    let topic = format!("skidder-bench-{}", std::process::id());
    let kcat = |arguments: &[&str]| {
        let mut command = Command::new("kcat");
        command.args(["-b", broker, "-t", &topic, "-p", "0"]).args(arguments);
        command
    };
    let mut produce = kcat(&["-P", "-z", "lz4", "-X", "linger.ms=50", "-l"]);
    cost_of(stage, produce.arg(&file)).context("`kcat` is in the package kafkacat")?;
    let theirs = || cost_of(stage, &mut kcat(&["-C", "-o", "beginning", "-e", "-q", "-f", ""]));
    let ours = |run| {
        let input = format!(
            "type: kafka, id: bench, hosts: ['{broker}'], topics: [{topic}], group_id: {topic}-{run}, \
             initial_offset: oldest"
        );
        Ok(ship_events(stage, &input, "output.discard: {}\n", lines)?.cpu.as_secs_f64())
    };
    compare(stage, (&KAFKA, "records", "kcat"), lines, ours, theirs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_as_the_export_format_has_them() {
        let mut text = Vec::new();
        write_entries(&mut text, 50).unwrap();
        let text = String::from_utf8(text).unwrap();
        let entries: Vec<&str> = text.split_terminator("\n\n").collect();
        assert_eq!(entries.len(), 50);
        for entry in entries {
            assert_eq!(entry.lines().count(), 23, "{entry}");
            assert!(entry.lines().all(|line| line.split_once('=').is_some()), "{entry}");
        }
    }
}
