//! What the program inherits: the limit of open files, and a standard output.

use crate::outputs::OutputParts;
use crate::stdio;
use anyhow::{Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors kept for everything that is not a log file.
const DESCRIPTORS_RESERVED: u64 = 256;

/// The same where there are few: what the program has open with one output and its log in a file, and some to spare.
const DESCRIPTORS_NEEDED: u64 = 22;

/// With fewer nothing starts: an output or the registry could fail to open its file, and try for ever.
const DESCRIPTORS_MIN: u64 = DESCRIPTORS_NEEDED + 2;

/// How many log files may be open of so many descriptors: all but the reserve, or a quarter where there are few.
fn log_files_of(descriptors: u64) -> usize {
    let reserved =
        DESCRIPTORS_RESERVED.min((descriptors - descriptors / 4).max(DESCRIPTORS_NEEDED));
    usize::try_from(descriptors.saturating_sub(reserved)).unwrap_or(usize::MAX).max(1)
}

/// Events that go to a standard output that is closed would be lost, and count as delivered.
pub(super) fn refuse_closed_stdout(outputs: &[OutputParts]) -> Result<()> {
    if stdio::stdout_was_closed() && outputs.iter().any(|output| output.output.kind() == "console")
    {
        bail!("the standard output is closed, so that `output.console` has nowhere to write to");
    }
    Ok(())
}

/// How many log files may be open: what the system allows, less a reserve.
pub(super) fn open_files_max() -> Result<usize> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Raising it may fail; the real limit is read below.
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::debug!(%error, "the limit on open files stays");
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
    if current < DESCRIPTORS_MIN {
        bail!(
            "only {current} files may be open at the same time, and skidder needs at least {DESCRIPTORS_MIN}: raise the limit \
             (`ulimit -n`, or `LimitNOFILE=` of systemd)"
        );
    }
    Ok(log_files_of(current))
}
