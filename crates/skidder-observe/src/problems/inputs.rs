//! Problems of inputs: paths without a file, files that cannot be read, compressed files that are read as text.

use super::{NOT_DISCOVERED, Problem, Problems};
use crate::snapshot::{InputSource, ProviderTrouble, Sources};
use crate::summary::grouped;
use skidder_input::{InputState, InputTask};
use skidder_os::{Clock, Fs, Monotonic, Timestamp};
use skidder_read::{FilestreamSettings, Finding, ReadMetrics, survey};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A survey is made again on request when it is older: it lists directories and opens files.
const AGE_MAX: Duration = Duration::from_mins(1);

/// Parts of an input that are named when something is wrong with them.
const PARTS_NAMED: usize = 3;

/// Settings in what holds them, which the input shares.
type Shared = Arc<dyn AsRef<FilestreamSettings> + Send + Sync>;

/// Looks at what an input finds, at most once a minute. Memory: its findings.
pub struct Survey {
    fs: Arc<dyn Fs>,
    clock: Arc<dyn Clock>,
    settings: Shared,
    /// Of an input of one container: its counts. Its paths are where a log may be, and one of them has it.
    of_container: Option<Arc<ReadMetrics>>,
    kept: Mutex<Option<(Monotonic, Vec<Finding>)>>,
}

impl fmt::Debug for Survey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Survey").field("input", &self.settings().id).finish_non_exhaustive()
    }
}

impl Survey {
    /// Of an input with these settings; looks at nothing yet.
    pub fn new(fs: Arc<dyn Fs>, clock: Arc<dyn Clock>, settings: Shared) -> Self {
        Self { fs, clock, settings, of_container: None, kept: Mutex::default() }
    }

    fn settings(&self) -> &FilestreamSettings {
        (*self.settings).as_ref()
    }

    /// The same of an input of one container: its log is at one of the paths, so that the others match nothing. A log that
    /// was there, and is gone with its container, is no problem.
    #[must_use]
    pub fn of_container(self, metrics: Arc<ReadMetrics>) -> Self {
        Self { of_container: Some(metrics), ..self }
    }

    /// The findings of a survey that is no older than `age`; blocks while another thread makes one.
    pub fn findings(&self, age: Duration) -> Vec<Finding> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.monotonic();
        if let Some((_, findings)) = kept.as_ref().filter(|(made, _)| now.since(*made) <= age) {
            return findings.clone();
        }
        let mut findings = survey(&*self.fs, self.settings());
        if let Some(metrics) = &self.of_container {
            let empty = findings.iter().filter(|finding| is_empty(finding)).count();
            let is_missing = empty == self.settings().scan.patterns.len() && !metrics.has_matched();
            findings.retain(|one| !is_empty(one) || is_missing);
        }
        *kept = Some((now, findings.clone()));
        findings
    }
}

fn is_empty(finding: &Finding) -> bool {
    matches!(finding, Finding::NoFile { .. })
}

impl Problems {
    /// Problems of the inputs, each once; lists directories if that was not done within `age`, by
    /// default a minute. If many parts of an input are in trouble, only the first are named.
    pub fn of_inputs(sources: &Sources, age: Option<Duration>) -> Vec<Problem> {
        let mut problems = Self::of_surveys(sources, age);
        problems.extend(of_tasks(sources, PARTS_NAMED));
        problems.extend(Self::losses(sources).into_iter().map(|loss| loss.problem));
        problems
    }

    /// What inputs that read files find, and the inputs of autodiscover; lists directories if that
    /// was not done within `age`, by default a minute.
    pub fn of_surveys(sources: &Sources, age: Option<Duration>) -> Vec<Problem> {
        let found = |input: &InputSource| of_files(input, age.unwrap_or(AGE_MAX));
        let mut problems: Vec<Problem> = each_once(sources).iter().flat_map(found).collect();
        problems.extend(of_autodiscover(sources));
        problems.extend(of_providers(sources));
        problems
    }

    /// Inputs that read no files and have ended by themselves, and each part of them that is in
    /// trouble. Costs little.
    pub fn of_tasks(sources: &Sources) -> Vec<Problem> {
        of_tasks(sources, usize::MAX)
    }
}

/// The inputs of all outputs, each once.
fn each_once(sources: &Sources) -> Vec<InputSource> {
    let mut seen = BTreeSet::new();
    let lists: Vec<_> = sources.outputs.iter().map(|output| output.inputs.list()).collect();
    let all = lists.iter().flat_map(|list| list.iter());
    all.filter(|input| seen.insert(input.number)).cloned().collect()
}

fn of_tasks(sources: &Sources, parts_max: usize) -> Vec<Problem> {
    let now = sources.clock.wall();
    let inputs = each_once(sources);
    let tasks = inputs.iter().filter_map(|input| input.counts.task());
    tasks.flat_map(|task| of_task(task, now, parts_max)).collect()
}

/// Containers and pods that autodiscover cannot read: one problem for all, with the first of them.
fn of_autodiscover(sources: &Sources) -> Option<Problem> {
    let failures = (sources.explain.as_ref()?.failures)();
    let (about, reason) = failures.first()?;
    let what = match failures.len() {
        1 => format!("autodiscover: an input of {about} does not run"),
        more => format!(
            "autodiscover: inputs of {} objects do not run, such as {about}",
            grouped(more as u64)
        ),
    };
    let remedy = "`skidder autodiscover explain` has all of them";
    Some(Problem::error(NOT_DISCOVERED, what).because(reason).remedy(remedy))
}

/// Providers of autodiscover that do not learn what there is.
fn of_providers(sources: &Sources) -> Vec<Problem> {
    let troubles = sources.explain.iter().flat_map(|explain| (explain.troubles)());
    let problem = |trouble: ProviderTrouble| {
        let ProviderTrouble { provider, error, remedy, blocks } = trouble;
        let problem = if blocks {
            let what =
                format!("autodiscover: the {provider} does not see new containers; it tries again");
            Problem::error("provider_trouble", what)
        } else {
            let what = format!("autodiscover: the {provider} lacks metadata; it tries again");
            Problem::warning("provider_metadata", what)
        };
        problem.because(error).remedy(remedy)
    };
    troubles.map(problem).collect()
}

/// What an input that reads files finds.
fn of_files(input: &InputSource, age: Duration) -> Vec<Problem> {
    let findings = input.survey.as_ref().map(|survey| survey.findings(age));
    let name = if input.id.is_empty() { &input.kind } else { &input.id };
    let problem = |finding: Finding| Problem {
        input: Some(input.id.clone()),
        path: Some(finding.place()),
        ..Problem::warning(finding.kind(), format!("input `{name}`: {finding}"))
            .remedy(finding.remedy())
    };
    findings.into_iter().flatten().map(problem).collect()
}

/// An input that has ended by itself, or that cannot do its work at the moment.
fn of_task(task: &InputTask, now: Timestamp, parts_max: usize) -> Vec<Problem> {
    let name = task.name();
    let of_input = |problem| Problem { input: Some(task.id().to_owned()), ..problem };
    let mut problems = Vec::new();
    if let InputState::Failed(error) = task.state() {
        let what = format!("input `{name}` has ended");
        problems.push(Problem::error("input_failed", what).because(error.to_string()));
    }
    let troubles = task.metrics().troubles();
    let more = troubles.len().saturating_sub(parts_max);
    for trouble in troubles.into_iter().take(parts_max) {
        let what = match &*trouble.part {
            "" => format!("input `{name}` cannot receive"),
            part => format!("input `{name}` cannot read `{part}`"),
        };
        let cause = format!("{}; it is tried again", trouble.text);
        let problem = Problem::error("input_trouble", what).because(cause);
        problems.push(match trouble.since {
            Some(since) => problem.since(since, now),
            None => problem,
        });
    }
    if more > 0 {
        let what = format!("input `{name}` cannot read {} more sources", grouped(more as u64));
        problems.push(Problem::error("input_trouble", what));
    }
    problems.into_iter().map(of_input).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_read::glob::Pattern;
    use skidder_read::scan::ScanSettings;
    use skidder_testkit::{SimClock, SimFs};
    use std::path::Path;

    #[test]
    fn a_container_has_its_log_at_one_of_several_paths() {
        let clock = SimClock::new();
        let fs = SimFs::new(&clock);
        fs.create_dir_as_other("/logs");
        let pattern = |path: &str| Pattern::parse(path, Path::new("/"), true).expect("a pattern");
        let patterns = vec![pattern("/logs/a-*.log"), pattern("/docker/a/*.log")];
        let scan = ScanSettings { patterns, ..ScanSettings::default() };
        let settings = FilestreamSettings::new("a", scan);
        let survey = |is_of_container: bool| {
            let survey = Survey::new(
                Arc::new(fs.clone()),
                Arc::new(clock.clone()),
                Arc::new(settings.clone()),
            );
            let survey = if is_of_container { survey.of_container(Arc::default()) } else { survey };
            survey.findings(Duration::ZERO).len()
        };
        assert_eq!((survey(false), survey(true)), (2, 2), "without any log, all paths are named");
        let seen = Arc::new(ReadMetrics::default());
        seen.set_matched(1);
        seen.set_matched(0);
        let gone =
            Survey::new(Arc::new(fs.clone()), Arc::new(clock.clone()), Arc::new(settings.clone()));
        let gone = gone.of_container(seen).findings(Duration::ZERO);
        assert!(gone.is_empty(), "a log that was there went with its container: {gone:?}");
        fs.write_as_other("/logs/a-1.log", b"a line\n");
        assert_eq!((survey(false), survey(true)), (1, 0));
    }
}
