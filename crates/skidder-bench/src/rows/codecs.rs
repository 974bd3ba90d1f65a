//! Compressed files over plain ones, for every codec, with lines of all lengths and queues of two sizes.

use super::cpu::decompress;
use super::{Goal, row, rows_or_why, ship_with};
use crate::measure;
use crate::stage::{Settings, Stage};
use crate::statistics::summarize;
use crate::table::Row;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// What a compressed file costs is linear for every length: the plain file, and decoding it.
const GOALS: [Goal; 1] = [(
    "q",
    "CPU of a compressed file over that of the plain one and of the codec's own tool, the worst of 5 codecs, 5 lengths of \
     lines and 2 queues",
    1.5,
    1.0,
    "",
)];

/// Bytes of a line, without its line feed.
const LINE_BYTES: [usize; 5] = [1, 11, 40, 240, 4_000];

/// `queue.mem.events`.
const QUEUE_EVENTS: [u32; 2] = [256, 3_200];

/// A file has so many bytes of text at most, and so many lines.
const TEXT_BYTES_MAX: usize = 32 << 20;
const LINES_MAX: usize = 1_000_000;

/// The codecs that are read, and the programs that make such files.
pub(super) const CODECS: [(&str, &str); 5] =
    [("gz", "gzip"), ("zst", "zstd"), ("bz2", "bzip2"), ("xz", "xz"), ("lz4", "lz4")];

/// The row q.
pub fn codecs(stage: &Stage) -> Vec<Row> {
    rows_or_why(&GOALS, measure(stage).map(|row| vec![row]))
}

/// One line length, with the same text plain and compressed.
struct Text {
    line_bytes: usize,
    lines: u64,
    plain: PathBuf,
    packed: Vec<PathBuf>,
    /// CPU of each codec's own tool, in seconds.
    own: Vec<f64>,
}

fn measure(stage: &Stage) -> Result<Row> {
    let mut worst = (0.0, String::new());
    for line_bytes in LINE_BYTES {
        let text = Text::new(stage, line_bytes)?;
        for events in QUEUE_EVENTS {
            let plain = text.ship(stage, &text.plain, events)?;
            for (number, (end, _)) in CODECS.iter().enumerate() {
                let packed = text.ship(stage, &text.packed[number], events)?;
                let own = text.own[number];
                let ratio = packed / (plain + own);
                let cell = format!(
                    "`.{end}`, {line_bytes} bytes, {events} events: {packed:.2} s, plain {plain:.2} s, its tool {own:.2} s"
                );
                measure::note(&format!("q {cell}: {ratio:.2}"));
                if ratio > worst.0 {
                    worst = (ratio, cell);
                }
            }
        }
    }
    Ok(row(&GOALS[0], worst.0, worst.1))
}

impl Text {
    fn new(stage: &Stage, line_bytes: usize) -> Result<Self> {
        let lines = LINES_MAX.min(TEXT_BYTES_MAX / (line_bytes + 1));
        let plain = stage.cut(line_bytes, lines)?;
        let packed: Vec<PathBuf> = CODECS
            .iter()
            .map(|(end, tool)| stage.packed_by(&plain, end, tool))
            .collect::<Result<_>>()?;
        let own = packed
            .iter()
            .zip(CODECS)
            .map(|(path, (_, tool))| {
                median(stage, || Ok(decompress(tool, path, &stage.work)?.cpu.as_secs_f64()))
            })
            .collect::<Result<_>>()?;
        Ok(Self { line_bytes, lines: lines as u64, plain, packed, own })
    }

    /// CPU seconds to ship one of its files.
    fn ship(&self, stage: &Stage, path: &std::path::Path, queue_events: u32) -> Result<f64> {
        let compressed = *path != self.plain;
        let settings = Settings { compressed, queue_events, ..Settings::default() };
        let paths = path.to_string_lossy();
        median(stage, || {
            let (cost, _) = ship_with(stage, &stage.skidder, &paths, settings, self.lines)
                .with_context(|| format!("lines of {} bytes", self.line_bytes))?;
            Ok(cost.cpu.as_secs_f64())
        })
    }
}

fn median(stage: &Stage, mut once: impl FnMut() -> Result<f64>) -> Result<f64> {
    let values = (0..stage.runs).map(|_| once()).collect::<Result<Vec<f64>>>()?;
    Ok(summarize(&values).context("no run was made")?.median)
}
