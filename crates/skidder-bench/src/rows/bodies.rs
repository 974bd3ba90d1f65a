//! What compressed bodies cost, and how large they are.

use super::{Goal, row, rows_or_why, ship_with, spread};
use crate::measure;
use crate::sink::{Behaviour, Kept, Sink};
use crate::stage::{Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result, ensure};
use skidder_workload::Kind;
use std::process::Command;

const COST: Goal = ("q1", "CPU with gzip level 1 bodies, over uncompressed ones", 5.0, 2.0, "");
const SIZE: Goal = (
    "q2",
    "bytes of gzip level 1 bodies, over those of Go's compress/gzip at level 1",
    1.1,
    1.0,
    "",
);

/// Lines that are shipped to compare sizes.
const SIZE_LINES_MAX: u64 = 100_000;
/// Bodies that are kept of them, about 1.3 MB each.
const KEPT_MAX: usize = 32;
/// Compresses files at level 1 and prints how many bytes come out in all.
const GO: &str = include_str!("bodies.go");

/// The rows q1 and q2.
pub fn bodies(stage: &Stage) -> Vec<Row> {
    let mut rows = rows_or_why(&[COST], cost(stage));
    rows.extend(rows_or_why(&[SIZE], size(stage)));
    rows
}

fn cost(stage: &Stage) -> Result<Vec<Row>> {
    let file = stage.plain(stage.lines)?;
    let paths = file.to_string_lossy();
    let (mut plain, mut packed) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        for (gzip_bodies, costs) in [(false, &mut plain), (true, &mut packed)] {
            let settings = Settings { gzip_bodies, ..Settings::default() };
            let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, stage.lines)?;
            costs.push(cost.cpu.as_secs_f64());
        }
        measure::note(&format!("bodies {}: {plain:?} {packed:?}", run + 1));
    }
    let plain = summarize(&plain).context("no run was made")?;
    let packed = summarize(&packed).context("no run was made")?;
    let each = packed.median / stage.lines as f64 * 1e6;
    let detail = format!(
        "{each:.2} µs a line; {}; {}",
        spread("s:", packed),
        spread("uncompressed s:", plain)
    );
    Ok(vec![row(&COST, packed.median / plain.median, detail)])
}

fn size(stage: &Stage) -> Result<Vec<Row>> {
    let mut details = Vec::new();
    let mut measured = 0.0_f64;
    for kind in [Kind::Mixed, Kind::Apache, Kind::Json, Kind::Container, Kind::ContainerJson] {
        let kept = kept(stage, kind)?;
        let sent: u64 = kept.iter().map(|body| body.sent).sum();
        let of_go = by_go(stage, &kept)?;
        let ratio = sent as f64 / of_go as f64;
        measured = measured.max(ratio);
        details.push(format!("{} {sent} over {of_go}: {ratio:.3}", kind.name()));
    }
    Ok(vec![row(&SIZE, measured, format!("the largest of: {}", details.join("; ")))])
}

/// Bodies of one kind of lines, with their lengths as sent.
fn kept(stage: &Stage, kind: Kind) -> Result<Vec<Kept>> {
    let (file, lines) = stage.of_kind(kind, stage.lines.min(SIZE_LINES_MAX))?;
    let sink = Sink::start(Behaviour { keep_bodies: KEPT_MAX, ..Behaviour::default() })?;
    let settings = Settings { gzip_bodies: true, ..Settings::default() };
    let home = stage.home(&file.to_string_lossy(), &sink, settings)?;
    measure::run(home.command(&stage.skidder).arg("--once"), &home.log())?;
    let came = sink.count().documents;
    ensure!(came == lines, "{came} of {lines} lines came");
    Ok(sink.take_bodies())
}

/// Bytes that Go makes of the bodies, compressed one by one.
fn by_go(stage: &Stage, bodies: &[Kept]) -> Result<u64> {
    let directory = tempfile::Builder::new().prefix("bodies-").tempdir_in(&stage.work)?;
    let program = directory.path().join("bodies.go");
    std::fs::write(&program, GO)?;
    let mut command = Command::new("go");
    command.arg("run").arg(&program);
    for (number, body) in bodies.iter().enumerate() {
        let path = directory.path().join(format!("{number}.ndjson"));
        std::fs::write(&path, &body.text)?;
        command.arg(&path);
    }
    let output =
        command.output().context("cannot start `go`, which makes what is compared with")?;
    ensure!(
        output.status.success(),
        "`go run` failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().with_context(|| format!("`{}` is no number", said.trim()))
}
