//! Files that are behind, or that rotation deletes too early.

use super::{Problem, Problems};
use crate::lag::BoardFile;
use crate::snapshot::Sources;
use crate::summary::{bytes_text, span_text};
use skidder_read::Reason;
use std::collections::BTreeSet;
use std::time::Duration;

/// Files that are named when something is wrong with them.
const FILES_NAMED: usize = 3;

impl Problems {
    /// Adds problems of files. Files of an output that has a problem itself are behind because of that.
    pub(super) fn add_files(&self, sources: &Sources, problems: &mut Vec<Problem>) {
        let stuck: BTreeSet<usize> = sources
            .outputs
            .iter()
            .enumerate()
            .filter(|(_, output)| {
                let is_of = |problem: &&Problem| {
                    problem.kind.starts_with("output_")
                        && (problem.output.is_none() || problem.output == output.id)
                };
                problems.iter().any(|problem| is_of(&problem))
            })
            .map(|(place, _)| place)
            .collect();
        let uptime = sources.clock.monotonic().since(sources.program.start.monotonic);
        let limit = Limit { line: self.behind, uptime };
        let found = sources.lag.with_files(sources, |files| {
            let mut behind: Vec<&BoardFile> = files
                .iter()
                .filter(|file| !stuck.contains(&file.output) && limit.is_behind(file))
                .collect();
            behind.sort_by_key(|file| std::cmp::Reverse(file.behind_for));
            let more = behind.len().saturating_sub(FILES_NAMED);
            let mut found: Vec<Problem> = behind
                .into_iter()
                .take(FILES_NAMED)
                .map(|file| of_file(sources, file, behind_problem(file)))
                .collect();
            if more > 0 {
                found.push(Problem::error("files_behind", format!("{more} more files are behind")));
            }
            let soon = files
                .iter()
                .filter_map(|file| Some(of_file(sources, file, limit.deleted_too_early(file)?)));
            found.extend(soon.take(FILES_NAMED));
            found
        });
        // Without an answer of the scanner the rest is still true.
        problems.extend(found.unwrap_or_default());
    }
}

/// When a file is called behind: a line of it is older than this, and the program has run for so long. A line that was
/// written before the start is late, but not by a fault of now.
#[derive(Clone, Copy)]
struct Limit {
    line: Duration,
    uptime: Duration,
}

impl Limit {
    /// Whether it has lines that should have been delivered by now.
    fn is_behind(self, file: &BoardFile) -> bool {
        let is_due =
            file.behind_for > Duration::ZERO && file.look.reason != Some(Reason::LineWithoutEnd);
        is_due && file.behind_for.min(self.uptime) >= self.line
    }

    /// The problem if rotation deletes it before it is delivered.
    fn deleted_too_early(self, file: &BoardFile) -> Option<Problem> {
        file.look.behind.filter(|bytes| *bytes > 0)?;
        let deleted = file.look.deleted_in?;
        let is_late = match file.catch_up() {
            Some(catch_up) => catch_up > deleted,
            None => self.is_behind(file),
        };
        let (path, span) = (file.look.path.display(), span_text(deleted));
        let what = format!("{path} is deleted by rotation in {span}, before it is delivered");
        is_late.then(|| {
            Problem::error("file_deleted_early", what)
                .remedy("`pin.enabled: true` keeps deleted files until they are delivered")
        })
    }
}

fn behind_problem(file: &BoardFile) -> Problem {
    let (path, age) = (file.look.path.display(), span_text(file.behind_for));
    let bytes = bytes_text(file.look.behind.unwrap_or(0) as f64);
    let what = format!("{path} is {bytes} behind, its oldest undelivered line is {age} old");
    let problem = Problem::error("file_behind", what);
    match &file.look.reason {
        Some(reason) => problem.because(reason.to_string()),
        None => problem,
    }
}

fn of_file(sources: &Sources, file: &BoardFile, problem: Problem) -> Problem {
    let id = sources.outputs[file.output].id.clone();
    Problem {
        output: id.filter(|_| sources.outputs.len() > 1),
        input: Some(file.input.to_string()),
        path: Some(file.look.path.to_string_lossy().into_owned()),
        ..problem
    }
}
