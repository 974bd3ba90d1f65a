//! Writes a workload to a file, plain or as gzip of one or more members.

use super::{Kind, Workload};
use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// What `gzip` uses when nothing is said.
const GZIP_LEVEL: u32 = 6;
/// Lines are collected to about this much before they are written.
const CHUNK_BYTES: usize = 1 << 20;
/// Ten digits number this many lines.
const SEQUENCE_LIMIT: u64 = 10_000_000_000;

/// What to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What the lines look like.
    pub kind: Kind,
    /// Number of records: lines, but for [`Kind::Trace`].
    pub lines: u64,
    /// The same seed gives the same bytes.
    pub seed: u64,
    /// Number of the first line.
    pub first: u64,
    /// Members of the gzip file; 0 for a plain file.
    pub members: u64,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Number of lines.
    pub lines: u64,
    /// Bytes of the lines, newlines included.
    pub text_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// Writes `plan` to `path`, replacing an existing file.
pub fn generate(plan: &Plan, path: &Path) -> Result<Generated> {
    let file = File::create(path).with_context(|| format!("cannot create `{}`", path.display()))?;
    let generated = write_plan(plan, file);
    generated.with_context(|| format!("cannot write `{}`", path.display()))
}

fn write_plan(plan: &Plan, mut file: File) -> Result<Generated> {
    ensure!(
        plan.first.saturating_add(plan.lines) <= SEQUENCE_LIMIT,
        "line numbers end at {SEQUENCE_LIMIT}"
    );
    let mut workload = Workload::of(plan.kind, plan.seed, plan.first);
    let mut written = Generated { lines: 0, text_bytes: 0, file_bytes: 0 };
    if plan.members == 0 {
        write_lines(&mut workload, plan.lines, &mut file, &mut written)?;
    }
    for member in 0..plan.members {
        let lines = share(plan.lines, plan.members, member);
        let mut encoder = GzEncoder::new(&mut file, Compression::new(GZIP_LEVEL));
        write_lines(&mut workload, lines, &mut encoder, &mut written)?;
        encoder.finish()?;
    }
    written.file_bytes = file.metadata()?.len();
    Ok(written)
}

/// How many of `lines` the part number `part` of `parts` gets; the shares add up to `lines`.
fn share(lines: u64, parts: u64, part: u64) -> u64 {
    lines / parts + u64::from(part < lines % parts)
}

fn write_lines(
    workload: &mut Workload,
    records: u64,
    out: &mut impl Write,
    written: &mut Generated,
) -> Result<()> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES + 4_096);
    for _ in 0..records {
        written.lines += workload.line(&mut chunk);
        if chunk.len() >= CHUNK_BYTES {
            written.text_bytes += chunk.len() as u64;
            out.write_all(&chunk)?;
            chunk.clear();
        }
    }
    written.text_bytes += chunk.len() as u64;
    out.write_all(&chunk)?;
    Ok(())
}

/// How many times gzip shrinks the first `lines` lines of a workload.
pub fn sample_ratio(seed: u64, first: u64, lines: u64) -> Result<f64> {
    let mut workload = Workload::new(seed, first);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    let mut written = Generated { lines: 0, text_bytes: 0, file_bytes: 0 };
    write_lines(&mut workload, lines, &mut encoder, &mut written)?;
    Ok(written.text_bytes as f64 / encoder.finish()?.len() as f64)
}
