//! Pipelines that came during the run and cannot be loaded: whether events wait, and when to try again.
//!
//! A label of one container must not stop the events of all others. So events wait for such a pipeline only while its
//! failure may be over in a moment, and not for long. Then they go on, the server refuses those that name it, and it is
//! loaded later.

use super::pipelines::PipelineGroup;
use skidder_os::{Clock, Monotonic, Timestamp};
use skidder_pipeline::Missing;
use std::time::Duration;

/// Events wait for pipelines that came during the run, while the server is too busy to take them.
const LATE_WAIT: Duration = Duration::from_secs(30);

/// The first pause before a pipeline that could not be loaded is tried again. It doubles with each try.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The longest of these pauses.
pub(super) const RETRY_MAX: Duration = Duration::from_mins(5);

/// What to do after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Events wait.
    Wait,
    /// Events go on.
    GoOn,
}

/// The groups that could not be loaded.
#[derive(Debug, Default)]
pub(super) struct Late(Vec<Failed>);

#[derive(Debug)]
struct Failed {
    group: PipelineGroup,
    since: Monotonic,
    found: Timestamp,
    /// Events do not wait any more.
    is_released: bool,
    pause: Duration,
    retry_at: Monotonic,
    error: String,
}

impl Late {
    /// These groups are wanted now.
    pub(super) fn retain(&mut self, wanted: &[PipelineGroup]) {
        self.0.retain_mut(|failed| {
            let now = wanted.iter().find(|group| group.is_same(&failed.group));
            if let Some(group) = now {
                let known = |about: &str| failed.group.needs.iter().any(|it| it.about == about);
                let new = group.needs.iter().filter(|need| !known(&need.about));
                if failed.is_released {
                    for need in new {
                        log(&group.name, &need.about, &failed.error);
                    }
                }
                failed.group.needs.clone_from(&group.needs);
            }
            now.is_some()
        });
    }

    /// Whether a group has failed and is not to be tried yet.
    pub(super) fn rests(&self, group: &PipelineGroup, now: Monotonic) -> bool {
        self.0.iter().any(|failed| failed.group.is_same(group) && failed.retry_at > now)
    }

    /// A group was loaded.
    pub(super) fn loaded(&mut self, group: &PipelineGroup) {
        self.0.retain(|failed| !failed.group.is_same(group));
    }

    /// A group could not be loaded. `may_pass`: the failure may be over in a moment.
    pub(super) fn failed(
        &mut self,
        group: &PipelineGroup,
        error: String,
        may_pass: bool,
        clock: &dyn Clock,
    ) -> Then {
        let now = clock.monotonic();
        let may_wait = may_pass && !self.0.iter().any(|failed| failed.is_released);
        let place = self.0.iter().position(|failed| failed.group.is_same(group));
        let place = place.unwrap_or_else(|| {
            self.0.push(Failed {
                group: group.clone(),
                since: now,
                found: clock.wall(),
                is_released: false,
                pause: RETRY_MIN,
                retry_at: now,
                error: String::new(),
            });
            self.0.len() - 1
        });
        let failed = &mut self.0[place];
        let is_other = failed.error != error;
        failed.error = error;
        if may_wait && now.since(failed.since) < LATE_WAIT {
            failed.retry_at = now;
            return Then::Wait;
        }
        if !failed.is_released || is_other {
            for need in &group.needs {
                log(&group.name, &need.about, &failed.error);
            }
        }
        failed.is_released = true;
        failed.retry_at = now + failed.pause;
        failed.pause = (failed.pause * 2).min(RETRY_MAX);
        Then::GoOn
    }

    /// When the next one is to be tried.
    pub(super) fn retry_at(&self) -> Option<Monotonic> {
        self.0.iter().map(|failed| failed.retry_at).min()
    }

    /// What the server lacks, for people.
    pub(super) fn missing(&self) -> Vec<Missing> {
        let released = self.0.iter().filter(|failed| failed.is_released);
        let missing = released.map(|failed| Missing {
            what: format!("the ingest pipelines of `{}`", failed.group.name),
            error: failed.error.clone(),
            since: failed.found,
            needs: failed.group.needs.clone(),
        });
        missing.collect()
    }
}

fn log(fileset: &str, input: &str, error: &str) {
    tracing::error!(
        fileset,
        input,
        error,
        "the ingest pipelines of an input cannot be loaded: the server refuses its events until they are there, and they \
         become dead letters; they are tried again"
    );
}
