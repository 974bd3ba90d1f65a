//! The problems of a run, with cause and remedy: one list for `status`, `top`, the page and the end of `--once`.
//!
//! An [`Error`](Severity::Error) keeps lines from being delivered, or loses them; a [`Warning`](Severity::Warning) may be
//! meant so. Without problems all is well.

mod files;
mod inputs;
mod losses;
mod outputs;

pub use inputs::Survey;
pub use losses::{Loss, lost_before, queue_full};

use crate::files::{millis, time_text};
use crate::page::Query;
use crate::snapshot::Sources;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use skidder_log::masked;
use skidder_os::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// The kind of a problem whose cause may quote an event.
const REFUSED: &str = "refused";

/// The kind of a problem whose cause may quote annotations.
const NOT_DISCOVERED: &str = "not_discovered";

/// How serious a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Lines are not delivered, or are lost.
    Error,
    /// It may be meant so.
    Warning,
}

/// One problem. The texts are for people and may change; `kind` is for programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// How serious it is.
    pub severity: Severity,
    /// The kind of problem: `output_failing`, `file_behind`, …
    pub kind: String,
    /// The output that has it, if there are several.
    pub output: Option<String>,
    /// The input that has it.
    pub input: Option<String>,
    /// The file that has it.
    pub path: Option<String>,
    /// The problem: `the output main (elasticsearch) is blocked`.
    pub what: String,
    /// Why: host and error.
    pub cause: Option<String>,
    /// The remedy.
    pub remedy: Option<String>,
    /// Since when, in RFC 3339.
    pub since: Option<String>,
    /// How long that is.
    pub since_ms: Option<u64>,
}

/// When problems are called so.
#[derive(Clone, Copy, Debug)]
pub struct Problems {
    /// A file is behind when a line of it is older than this.
    pub behind: Duration,
    /// An output fails when nothing worked for so long.
    pub failing: Duration,
}

impl Problems {
    /// Default of [`Self::behind`].
    pub const BEHIND: Duration = Duration::from_mins(1);
    /// Default of [`Self::failing`]: where one of several hosts is away, others take something meanwhile.
    pub const FAILING: Duration = Duration::from_secs(2);

    /// All of them, the most serious first; requests them from the scanner, and blocks until it answers.
    pub fn of(&self, sources: &Sources) -> Vec<Problem> {
        let mut problems = self.of_outputs(sources);
        self.add_files(sources, &mut problems);
        problems.extend(Self::of_inputs(sources, None));
        problems.sort_by_key(|problem| problem.severity);
        problems
    }

    /// Answers `/problems?behind_ms=N`; blocks. A server's reason for a refusal may quote the event, and a reason of
    /// autodiscover an annotation: hidden from clients that may not see events.
    pub(crate) fn answer(
        sources: &Arc<Sources>,
        query: &Query,
        sees_events: bool,
    ) -> Result<Json, String> {
        let behind = query.number("behind_ms")?.map_or(Self::BEHIND, Duration::from_millis);
        let mut problems = Self { behind, ..Self::default() }.of(sources);
        let quotes = |it: &&mut Problem| it.kind == REFUSED || it.kind == NOT_DISCOVERED;
        for problem in problems.iter_mut().filter(|it| quotes(it) && !sees_events) {
            problem.cause = None;
        }
        Ok(json!({
            "well": is_well(&problems),
            "problems": problems,
        }))
    }
}

impl Default for Problems {
    fn default() -> Self {
        Self { behind: Self::BEHIND, failing: Self::FAILING }
    }
}

/// Whether no problem keeps lines from being delivered.
pub fn is_well(problems: &[Problem]) -> bool {
    problems.iter().all(|problem| problem.severity != Severity::Error)
}

impl Problem {
    /// A problem that keeps lines from being delivered.
    pub fn error(kind: &str, what: String) -> Self {
        Self {
            severity: Severity::Error,
            kind: kind.to_owned(),
            output: None,
            input: None,
            path: None,
            what,
            cause: None,
            remedy: None,
            since: None,
            since_ms: None,
        }
    }

    /// A problem that may be meant so.
    pub fn warning(kind: &str, what: String) -> Self {
        Self { severity: Severity::Warning, ..Self::error(kind, what) }
    }

    /// Why. Users and passwords in addresses are masked.
    #[must_use]
    pub fn because(self, cause: impl AsRef<str>) -> Self {
        Self { cause: Some(masked(cause.as_ref()).into_owned()), ..self }
    }

    /// Adds the remedy.
    #[must_use]
    pub fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Since when.
    #[must_use]
    pub fn since(self, since: Timestamp, now: Timestamp) -> Self {
        Self { since: Some(time_text(since)), since_ms: Some(millis(now.since(since))), ..self }
    }
}
