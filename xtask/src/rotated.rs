//! A small set of rotated logs, with a live file that grows while it is read.

use crate::process;
use anyhow::{Context, Result};
use skidder_workload::{Kind, Plan};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The same lines in each run.
const SEED: u64 = 1;
/// How the live file grows: so many bytes at a time, whole lines or not.
const PIECE_BYTES: usize = 50_021;
/// Pause between two pieces.
const PIECE_PAUSE: Duration = Duration::from_millis(20);

/// One file of the set.
struct Spec {
    name: &'static str,
    lines: u64,
    /// Members of a `.gz`; 0 for a plain file.
    members: u64,
}

/// The files that are complete, oldest lines first, then the live one.
const ROTATED: [Spec; 3] = [
    Spec { name: "archive.log.gz", lines: 80_000, members: 4 },
    Spec { name: "app.log.2.gz", lines: 60_000, members: 1 },
    Spec { name: "app.log.1", lines: 40_000, members: 0 },
];
const LIVE: Spec = Spec { name: "app.log", lines: 20_000, members: 0 };

/// The set on disk.
pub(crate) struct Rotated {
    /// Numbers of the lines are 0 to this.
    pub(crate) lines: u64,
    live: PathBuf,
    /// Text appended to the live file, in one piece.
    staged: PathBuf,
}

/// Writes the complete files to `logs` and the beginning of the live one.
pub(crate) fn make(logs: &Path, staging: &Path) -> Result<Rotated> {
    let mut first = 0;
    for spec in &ROTATED {
        generate(spec, first, &logs.join(spec.name))?;
        first += spec.lines;
    }
    let staged = staging.join(LIVE.name);
    generate(&LIVE, first, &staged)?;
    let rotated = Rotated { lines: first + LIVE.lines, live: logs.join(LIVE.name), staged };
    File::create(&rotated.live)
        .with_context(|| format!("cannot create `{}`", rotated.live.display()))?;
    Ok(rotated)
}

fn generate(spec: &Spec, first: u64, out: &Path) -> Result<()> {
    let plan =
        Plan { kind: Kind::Mixed, lines: spec.lines, seed: SEED, first, members: spec.members };
    skidder_workload::generate(&plan, out).map(|_| ())
}

impl Rotated {
    /// A set of one live file, for tests.
    #[cfg(test)]
    pub(crate) fn live_only(lines: u64, live: PathBuf, staged: PathBuf) -> Self {
        Self { lines, live, staged }
    }

    /// Appends to the live file piece by piece, until all is written or `stop` is set.
    pub(crate) fn grow(&self, stop: &AtomicBool) -> Result<()> {
        let mut from = File::open(&self.staged)?;
        let mut to = OpenOptions::new().append(true).open(&self.live)?;
        let mut piece = vec![0; PIECE_BYTES];
        while !stop.load(Ordering::Relaxed) {
            let length = from.read(&mut piece)?;
            if length == 0 {
                break;
            }
            to.write_all(&piece[..length])?;
            process::pause(PIECE_PAUSE);
        }
        Ok(())
    }
}
