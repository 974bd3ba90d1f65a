//! Mistakes in a configuration: positions, messages, hints.
//!
//! Nothing here stops at the first mistake. All readers of settings add to one [`Problems`], and
//! the user sees all mistakes at once, in the order of the files. Messages never hold a secret:
//! they show a value through [`crate::Node::shown`], and secrets in what they quote otherwise are
//! replaced when problems are given out.

use crate::rule::Idle;
use crate::veil::Veil;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Where settings come from: a file, or one `-E` of the command line.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// Place in the order of loading; problems are sorted by it.
    order: u32,
    /// File name as the user wrote it, or `-E key`.
    name: String,
}

impl Source {
    /// The name of settings that are in no file.
    pub(crate) const DEFAULTS: &str = "default";

    /// A source called `name`, reported after all sources of a lower `order`.
    pub fn new(order: u32, name: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { order, name: name.into() })
    }

    /// The name shown in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A place in a source. Line and column count from 1, columns in characters; line 0 means the
/// source has no lines (the command line, a file that could not be read).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    source: Arc<Source>,
    line: u32,
    column: u32,
}

impl Position {
    /// Line and column of `source`, both from 1.
    pub fn new(source: &Arc<Source>, line: u32, column: u32) -> Self {
        Self { source: Arc::clone(source), line, column }
    }

    /// `source` as a whole.
    pub fn whole(source: &Arc<Source>) -> Self {
        Self::new(source, 0, 0)
    }

    /// The source this place is in.
    pub fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn shared_source(&self) -> Arc<Source> {
        Arc::clone(&self.source)
    }

    /// Line from 1; 0 if the source has no lines.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Column from 1, in characters; 0 if the source has no lines.
    pub fn column(&self) -> u32 {
        self.column
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return formatter.write_str(&self.source.name);
        }
        write!(formatter, "{}:{}:{}", self.source.name, self.line, self.column)
    }
}

/// Whether a problem stops the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The configuration cannot be used.
    Error,
    /// It can be used, but the user should know.
    Warning,
}

/// What a problem is about, to sort problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Subject {
    /// A value, a combination, a file: anything that needs correction.
    #[default]
    Mistake,
    /// A setting that must be there, and is not.
    Missing,
    /// An unknown setting.
    Unknown,
    /// A setting of Filebeat that is not here.
    Unsupported,
    /// A setting that is accepted without effect.
    NoEffect,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What it is about.
    pub subject: Subject,
    /// Whether it stops the start.
    pub severity: Severity,
    /// Where; `None` if it has no place (an empty list of files, say).
    pub position: Option<Position>,
    /// Lower case, no full stop, settings and values in backticks.
    pub message: String,
    /// What to do about it; may be several lines, one hint each.
    pub hints: Vec<String>,
}

impl Problem {
    /// An error at `position`.
    pub fn error(position: impl Into<Option<Position>>, message: impl Into<String>) -> Self {
        let severity = Severity::Error;
        Self {
            subject: Subject::Mistake,
            severity,
            position: position.into(),
            message: message.into(),
            hints: Vec::new(),
        }
    }

    /// A warning at `position`.
    pub fn warning(position: impl Into<Option<Position>>, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(position, message) }
    }

    /// The same about something else than a mistake.
    pub fn about(self, subject: Subject) -> Self {
        Self { subject, ..self }
    }

    /// Adds a hint; an empty one is left out.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        let hint = hint.into();
        if !hint.is_empty() {
            self.hints.push(hint);
        }
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(formatter, "{severity}: ")?;
        // A setting of no file has no place.
        let position =
            self.position.as_ref().filter(|position| position.source.name != Source::DEFAULTS);
        if let Some(position) = position {
            write!(formatter, "{position}: ")?;
        }
        formatter.write_str(&self.message)?;
        for hint in &self.hints {
            write!(formatter, "\nhint: {hint}")?;
        }
        Ok(())
    }
}

/// Collects every problem of one configuration. Shared by reference among all readers.
///
/// Its `Display` is the text for the user: one problem after the other, sorted by place.
#[derive(Debug, Default, thiserror::Error)]
#[error("{}", self.render())]
pub struct Problems {
    list: Mutex<Vec<Problem>>,
    lenient: AtomicBool,
    /// Number of reported errors.
    errors_reported: AtomicU64,
    /// Settings that do nothing here.
    idle: OnceLock<&'static [Idle]>,
    /// Full paths of the settings that were read, if they are recorded.
    paths_read: Mutex<Option<BTreeSet<String>>>,
    /// The secrets of the settings that are read.
    veil: Box<Mutex<Veil>>,
}

impl Problems {
    /// An empty collection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Turns unknown and unsupported settings into warnings (`compat: lenient`).
    pub fn set_lenient(&self, lenient: bool) {
        self.lenient.store(lenient, Ordering::Relaxed);
    }

    /// Settings without an effect that are not a mistake: a warning gives the reason.
    pub fn set_idle(&self, idle: &'static [Idle]) {
        self.idle.get_or_init(|| idle);
    }

    /// The entry of the setting with this full path, if it has no effect here.
    pub(crate) fn idle(&self, path: &str) -> Option<&'static Idle> {
        self.idle.get().and_then(|idle| idle.iter().find(|idle| idle.covers(path)))
    }

    /// How severe an unknown or unsupported setting is.
    pub fn unknown_severity(&self) -> Severity {
        if self.lenient.load(Ordering::Relaxed) { Severity::Warning } else { Severity::Error }
    }

    /// Adds to the secrets that are replaced in messages.
    pub(crate) fn hide(&self, add: impl FnOnce(&mut Veil)) {
        add(&mut self.veil.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Begins to record which settings are read, to compare them with the documentation.
    pub fn record_paths_read(&self) {
        *self.paths_read.lock().unwrap_or_else(PoisonError::into_inner) = Some(BTreeSet::new());
    }

    /// Full paths of the settings that were read since [`Problems::record_paths_read`].
    pub fn paths_read(&self) -> BTreeSet<String> {
        self.paths_read.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
    }

    /// Adds to the settings that were read.
    pub(crate) fn add_paths_read(&self, paths: impl Iterator<Item = String>) {
        if let Some(read) = &mut *self.paths_read.lock().unwrap_or_else(PoisonError::into_inner) {
            read.extend(paths);
        }
    }

    /// Number of reported errors so far, with duplicates and forgotten ones.
    pub(crate) fn errors_reported(&self) -> u64 {
        self.errors_reported.load(Ordering::Relaxed)
    }

    /// Adds a problem; the same one at the same place is kept once.
    pub fn push(&self, problem: Problem) {
        if problem.severity == Severity::Error {
            self.errors_reported.fetch_add(1, Ordering::Relaxed);
        }
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if !list.contains(&problem) {
            list.push(problem);
        }
    }

    /// Forgets that a setting is missing (messages that begin with `start`): it is there under a
    /// misspelt name, and one problem is enough.
    pub(crate) fn forget_missing(&self, start: &str) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.retain(|known| known.subject != Subject::Missing || !known.message.starts_with(start));
    }

    /// Adds a problem unless another place has the same.
    pub fn push_once(&self, problem: Problem) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if !list.iter().any(|known| known.message == problem.message) {
            list.push(problem);
        }
    }

    /// Adds all of `problems`.
    pub fn extend(&self, problems: impl IntoIterator<Item = Problem>) {
        for problem in problems {
            self.push(problem);
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Whether something was found that stops the start.
    pub fn has_errors(&self) -> bool {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// All problems without secrets, sorted by place; those without a place come first.
    pub fn sorted(&self) -> Vec<Problem> {
        let mut sorted = self.list.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let veil = self.veil.lock().unwrap_or_else(PoisonError::into_inner);
        for problem in &mut sorted {
            veil.cover(problem);
        }
        sorted.sort_by(|left, right| left.position.cmp(&right.position));
        sorted
    }

    /// The warnings, or everything as an error if there is one error among it.
    pub fn into_result(self) -> Result<Vec<Problem>, Self> {
        if self.has_errors() { Err(self) } else { Ok(self.sorted()) }
    }

    fn render(&self) -> String {
        let lines: Vec<String> = self.sorted().iter().map(Problem::to_string).collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_are_shown_in_the_order_of_files_and_lines() {
        let first = Source::new(0, "a.yml");
        let second = Source::new(1, "-E x");
        let problems = Problems::new();
        problems.push(Problem::warning(Position::whole(&second), "last"));
        problems.push(Problem::error(Position::new(&first, 9, 1), "second").hint("try it"));
        problems.push(Problem::error(Position::new(&first, 2, 11), "first"));
        problems.push(Problem::error(Position::new(&first, 2, 11), "first"));
        problems.push(Problem::error(None, "without a place"));
        assert_eq!(
            problems.to_string(),
            "error: without a place\n\
             error: a.yml:2:11: first\n\
             error: a.yml:9:1: second\n\
             hint: try it\n\
             warning: -E x: last"
        );
    }

    #[test]
    fn warnings_alone_are_a_success() {
        let problems = Problems::new();
        problems.push(Problem::warning(None, "old"));
        assert_eq!(problems.into_result().unwrap().len(), 1);
    }
}
