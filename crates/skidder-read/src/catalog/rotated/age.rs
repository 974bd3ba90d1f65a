//! The age of rotated files, by their names.

use crate::catalog::matching::{is_related, rotated_suffix};
use std::cmp::Reverse;
use std::path::Path;

/// A key that sorts rotated files, oldest first. Earlier runs of a container come first; numbers grow with
/// age, dates do not; a file that was not rotated is the newest.
pub(in crate::catalog) fn age(path: &Path) -> (Option<u64>, bool, Reverse<u64>, Vec<u8>) {
    let suffix = rotated_suffix(path);
    let text = std::str::from_utf8(suffix).unwrap_or_default();
    let (number, rest) = match text.parse::<u64>() {
        Ok(number) if text.len() < 8 => (Reverse(number), Vec::new()),
        _ => (Reverse(0), suffix.to_vec()),
    };
    (run_of(path), suffix.is_empty(), number, rest)
}

/// The run of a container that a log belongs to: the kubelet calls it `0.log`, and `1.log` after a restart of
/// the container.
fn run_of(path: &Path) -> Option<u64> {
    let (run, rest) = path.file_name()?.to_str()?.split_once('.')?;
    let is_log = rest == "log" || rest.starts_with("log.");
    run.parse().ok().filter(|_| is_log)
}

/// Whether a file is the log of an earlier run of the container whose log `target` is, or was rotated from it.
pub(super) fn is_of_earlier_run(target: &Path, other: &Path) -> bool {
    match (run_of(target), run_of(other)) {
        (Some(run), Some(earlier)) => earlier < run,
        _ => false,
    }
}

/// Whether one file was rotated away after another of the same log, judging by their names: only an older
/// file gets a higher number, and a later one a later date.
pub(super) fn is_rotated_after(one: &Path, other: &Path) -> bool {
    let is_same_log = is_related(one, other) || is_of_earlier_run(one, other);
    is_same_log && !rotated_suffix(other).is_empty() && age(other) < age(one)
}
