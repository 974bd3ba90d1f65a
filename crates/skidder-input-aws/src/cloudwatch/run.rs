//! Scans of all groups, one after the other, each by some workers.

use super::calls::{CallError, Calls, Shared};
use super::group::{Group, Turn};
use super::pace::Pace;
use super::settings::{Groups, Settings};
use super::window::milliseconds;
use skidder_input::{InputError, Intake};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// By what requests name them.
type All = BTreeMap<String, Group>;

/// The groups of a scan.
#[derive(Default)]
struct Work {
    /// Those that have not ended their scan.
    waiting: Mutex<VecDeque<(String, Group)>>,
    done: Mutex<All>,
}

impl Work {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(String, Group)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn done(&self) -> MutexGuard<'_, All> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads until the input ends.
pub(crate) async fn run(settings: Arc<Settings>, intake: Intake) -> Result<(), InputError> {
    let now = intake.clock().wall();
    let start = if settings.from_end {
        now.earlier_by(settings.latency).earlier_by(settings.scan_frequency)
    } else {
        skidder_os::Timestamp(0)
    };
    let shared = Arc::new(Shared {
        pace: Pace::new(settings.api_sleep, Arc::clone(intake.clock())),
        service: settings.servers.logs(),
        started: milliseconds(now),
        start: milliseconds(start),
        numbers: intake.metrics().groups(),
        intake: intake.clone(),
        settings: Arc::clone(&settings),
    });
    let mut groups = All::new();
    loop {
        if list(&shared, &mut groups).await.is_err() {
            return Ok(());
        }
        let there = groups.values().filter(|group| group.is_there()).count();
        shared.numbers.groups.set(there as u64);
        groups = scan(&shared, groups).await;
        if intake.is_stopped() || intake.is_once() {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = intake.stopped() => return Ok(()),
            () = tokio::time::sleep(settings.scan_frequency) => {}
        }
    }
}

/// Looks which groups there are. The error says that the input ends; after a failure, those that are known stay.
async fn list(shared: &Arc<Shared>, groups: &mut All) -> Result<(), CallError> {
    match &shared.settings.groups {
        Groups::Arn(id) | Groups::Name(id) => {
            groups.entry(id.clone()).or_insert_with(|| Group::new(id.clone(), shared));
            Ok(())
        }
        Groups::Prefix { prefix, linked } => {
            match list_with_prefix(shared, (prefix, *linked)).await {
                Ok(found) => {
                    listed(shared, found, groups);
                    Ok(())
                }
                Err(CallError::Stopped) => Err(CallError::Stopped),
                Err(error @ (CallError::Missing(_) | CallError::Failed(_))) => {
                    report(
                        shared,
                        &error.to_string(),
                        "cannot list log groups; the next scan tries again",
                    );
                    Ok(())
                }
            }
        }
    }
}

/// What requests name the groups by whose names begin so.
async fn list_with_prefix(
    shared: &Arc<Shared>,
    names: (&str, bool),
) -> Result<BTreeSet<String>, CallError> {
    let mut calls = Calls::new(shared);
    let (mut found, mut token) = (BTreeSet::new(), None);
    loop {
        let page = calls.groups(names, token.as_deref()).await?;
        let id = |group: skidder_amazon::FoundGroup| {
            if group.arn.is_empty() { group.name } else { group.arn }
        };
        found.extend(page.items.into_iter().map(id));
        token = page.next;
        if token.is_none() {
            return Ok(found);
        }
    }
}

/// Takes up new groups, and leaves out those that are gone.
fn listed(shared: &Arc<Shared>, found: BTreeSet<String>, groups: &mut All) {
    let metrics = shared.intake.metrics();
    let part = shared.settings.address();
    if found.is_empty() {
        let error = format!(
            "no log group begins so in `{}`: see `log_group_name_prefix` and `region_name`, or wait for one",
            shared.settings.servers.region
        );
        report(shared, &error, "there is no log group");
    } else {
        metrics.set_trouble_of(&part, None);
    }
    for (_, group) in groups.iter_mut().filter(|(id, _)| !found.contains(*id)) {
        group.set_gone(shared);
    }
    let now = shared.intake.clock().monotonic();
    groups.retain(|_, group| !group.is_over(now));
    for id in found {
        groups.entry(id.clone()).or_insert_with(|| Group::new(id, shared)).set_found();
    }
}

/// Reports trouble with the listing.
fn report(shared: &Shared, error: &str, message: &'static str) {
    let part = shared.settings.address();
    let metrics = shared.intake.metrics();
    let is_new = !metrics.troubles().iter().any(|it| *it.part == *part && *it.text == *error);
    metrics.failed(&part, error);
    metrics.set_trouble_of(&part, Some(error));
    if is_new {
        tracing::error!(groups = part, error, "{message}");
    }
}

/// Scans all groups once. Returns them.
async fn scan(shared: &Arc<Shared>, groups: All) -> All {
    let (there, gone): (All, All) = groups.into_iter().partition(|(_, group)| group.is_there());
    let workers = shared.settings.workers.min(there.len());
    let work = Arc::new(Work::default());
    work.waiting().extend(there);
    work.done().extend(gone);
    let mut working = JoinSet::new();
    for _ in 0..workers {
        let (shared, work) = (Arc::clone(shared), Arc::clone(&work));
        working.spawn(async move { read(&shared, &work).await }.in_current_span());
    }
    // A group whose worker has failed by a bug is taken up again with the next listing.
    while working.join_next().await.is_some() {}
    std::mem::take(&mut *work.done())
}

/// Takes turns, as long as there are groups.
async fn read(shared: &Arc<Shared>, work: &Work) {
    let mut calls = Calls::new(shared);
    loop {
        let Some((id, mut group)) = work.waiting().pop_front() else { return };
        match group.turn(&mut calls).await {
            Turn::More => work.waiting().push_back((id, group)),
            Turn::Done => drop(work.done().insert(id, group)),
            Turn::Gone => {
                group.set_gone(shared);
                work.done().insert(id, group);
            }
            Turn::Stopped => return,
        }
    }
}
