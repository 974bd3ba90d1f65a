//! Arguments of vlagent.

use super::peer::Job;
use anyhow::Result;
use std::process::Command;

/// Its defaults, but for: JSON lines, which the counting server can read, and files are looked for every second.
pub(super) fn prepare(job: &Job<'_>, command: &mut Command) -> Result<()> {
    let state = job.home.join("state");
    std::fs::create_dir_all(&state)?;
    command
        .arg(format!("-fileCollector.glob={}", job.paths))
        .arg(format!("-fileCollector.checkpointsPath={}", job.home.join("positions").display()))
        .arg("-fileCollector.refreshInterval=1s")
        .arg(format!("-remoteWrite.url={}/insert/jsonline", job.url))
        .arg("-remoteWrite.format=jsonline")
        .arg(format!("-tmpDataPath={}", state.display()))
        .arg("-httpListenAddr=127.0.0.1:0");
    Ok(())
}
