//! A bucket that is listed again and again: objects that were not read to their end are read.
//!
//! The registry knows each object by name, content and time. An entry of an object that is in no listing any more is
//! forgotten.

use crate::cloud::{Cloud, Wanted};
use crate::copies::Copies;
use crate::failed::FailedObjects;
use crate::objects::{ObjectError, Objects};
use crate::seen::{BegunAt, Times, nanoseconds};
use skidder_input::{Intake, Row};
use skidder_os::{Monotonic, Timestamp};
use std::collections::HashSet;
use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Tries of a page before a listing is given up until the next one.
const TRIES: u32 = 10;
/// First pause after a failure; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(2);
/// Pause between two looks for entries of objects that are gone.
const TIDY_EVERY: Duration = Duration::from_hours(1);

/// A bucket, as its service lists it.
pub trait Bucket: Send + Sync + 'static {
    /// The service.
    type Cloud: Cloud;

    /// The bucket in messages.
    fn name(&self) -> String;

    /// What the names of its objects begin with in the registry, those of one input with no other bucket's
    /// ([`crate::registry_prefix`]).
    fn registry_prefix(&self) -> String;

    /// A page of all its objects; without `token` the first one.
    fn page<'a>(
        &'a mut self,
        token: Option<&'a str>,
    ) -> PageFuture<'a, <Self::Cloud as Cloud>::Wanted>;
}

/// A page that comes later.
pub type PageFuture<'a, W> = Pin<Box<dyn Future<Output = Result<Page<W>, PageError>> + Send + 'a>>;

/// A page of a listing.
#[derive(Clone, Debug)]
pub struct Page<W> {
    /// The objects.
    pub objects: Vec<Listed<W>>,
    /// The token for the next page; nothing on the last one.
    pub next: Option<String>,
}

/// An object as a listing shows it.
#[derive(Clone, Debug)]
pub struct Listed<W> {
    /// Its name in the registry, as [`crate::First`] has it.
    pub name: String,
    /// When it was put; nothing if the server does not say it.
    pub modified: Option<Timestamp>,
    /// How it is asked for.
    pub wanted: W,
}

/// Why there is no page. It is asked for again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The bucket knows better now where it is: ask again at once.
    #[error("the bucket is elsewhere")]
    Elsewhere,
    /// The text says why, and what to do.
    #[error("{0}")]
    Failed(String),
}

/// How a bucket is listed.
#[derive(Clone, Debug)]
pub struct PollSettings {
    /// Pause between two listings.
    pub interval: Duration,
    /// Whether there are more than one.
    pub repeats: bool,
    /// Objects are read that were put later.
    pub start: Option<Timestamp>,
    /// Objects that were put longer ago are not read, but those of the first listing with `start`.
    pub ignore_older: Option<Duration>,
    /// Objects read at once.
    pub workers: usize,
}

/// Lists a bucket, and reads its objects.
pub struct Poller<B: Bucket> {
    run: Arc<BucketRun<B::Cloud>>,
    bucket: B,
    settings: PollSettings,
    workers: Arc<Semaphore>,
    /// The first listing does not look at `ignore_older`.
    is_first: bool,
    tidied_at: Option<Monotonic>,
    hasher: RandomState,
    /// Objects of the last listing that are known, or are being read.
    tracked: u64,
}

/// What becomes of an object of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// It is being read now.
    Begun,
    /// It was read, or is being read.
    Known,
    /// It is not to be read, or not yet.
    Passed,
    /// Nothing: the input ends.
    Stopped,
}

/// What the tasks of a bucket share.
struct BucketRun<C> {
    objects: Arc<Objects<C>>,
    /// The bucket in messages.
    name: String,
    /// [`PollSettings::interval`].
    interval: Duration,
    failed: FailedObjects,
    copies: Copies,
    /// The bucket on the status page.
    row: Option<Arc<Row>>,
    /// Of the objects that are being read.
    times: Arc<Times>,
}

/// Names of objects that a listing has, hashed.
type Names = HashSet<u64>;

/// Reads from buckets until the input ends, or none is listed again.
pub async fn poll<B: Bucket>(intake: &Intake, pollers: Vec<Poller<B>>) {
    let mut polling = JoinSet::new();
    for mut poller in pollers {
        let work = async move {
            poller.poll().await;
            poller
        };
        polling.spawn(work.in_current_span());
    }
    let pollers = polling.join_all().await;
    intake.set_finishing();
    let mut finishing = JoinSet::new();
    for poller in pollers {
        let work = async move { poller.run.copies.finish(&poller.run.objects.intake).await };
        finishing.spawn(work.in_current_span());
    }
    finishing.join_all().await;
}

impl<B: Bucket> Poller<B> {
    /// For a bucket.
    pub fn new(objects: Arc<Objects<B::Cloud>>, bucket: B, settings: PollSettings) -> Self {
        let (name, times) = (bucket.name(), Arc::new(Times::default()));
        let row = objects.buckets.of(&objects.intake, &name);
        if let Some(row) = &row {
            let times = Arc::clone(&times);
            row.set_oldest(move || times.oldest());
        }
        let run = BucketRun {
            objects,
            name,
            interval: settings.interval,
            failed: FailedObjects::default(),
            copies: Copies::new(),
            row,
            times,
        };
        Self {
            run: Arc::new(run),
            bucket,
            workers: Arc::new(Semaphore::new(settings.workers)),
            settings,
            is_first: true,
            tidied_at: None,
            hasher: RandomState::new(),
            tracked: 0,
        }
    }

    /// Lists the bucket until the input ends, or, if that is not repeated, until one listing was whole.
    async fn poll(&mut self) {
        let intake = self.run.objects.intake.clone();
        loop {
            let is_whole = self.list().await;
            let is_enough = is_whole && !self.settings.repeats;
            if is_enough || intake.is_stopped() || intake.is_once() {
                return;
            }
            tokio::select! {
                biased;
                () = intake.stopped() => return,
                () = tokio::time::sleep(self.settings.interval) => {}
            }
        }
    }

    /// One listing, and all objects in it that are to be read. Returns whether it is whole.
    async fn list(&mut self) -> bool {
        let run = Arc::clone(&self.run);
        let intake = &run.objects.intake;
        let now = intake.clock().monotonic();
        run.objects.forget_settled(now);
        run.copies.tidy();
        let filter = self.filter(intake.clock().wall());
        let mut reading = JoinSet::new();
        let (mut names, mut token, mut tracked) = (Names::default(), None, 0);
        let is_whole = loop {
            let Some(page) = self.page(token.as_deref()).await else { break false };
            run.objects.numbers.listed.add(page.objects.len() as u64);
            let mut begun = 0;
            for listed in page.objects {
                names.insert(self.hasher.hash_one(&listed.name));
                match self.read(listed, filter, &mut reading).await {
                    Look::Begun => begun += 1,
                    Look::Known => tracked += 1,
                    Look::Passed => {}
                    Look::Stopped => break,
                }
            }
            run.objects.numbers.scheduled.add(begun, 1);
            tracked += begun;
            let before = std::mem::replace(&mut token, page.next);
            if intake.is_stopped() {
                break false;
            }
            if token.is_some() && token == before {
                run.listing_failed("the store names a page as the one that follows it; the next listing begins anew");
                break false;
            }
            if token.is_none() {
                break true;
            }
        };
        while reading.join_next().await.is_some() {}
        if is_whole {
            self.is_first = false;
            self.set_tracked(tracked);
            self.tidy(names, now).await;
        }
        is_whole
    }

    /// A listing had so many objects that are known. Other buckets of the input have theirs.
    fn set_tracked(&mut self, tracked: u64) {
        let gauge = &self.run.objects.numbers.tracked;
        gauge.add(tracked);
        gauge.sub(std::mem::replace(&mut self.tracked, tracked));
    }

    /// The time that objects must be younger than.
    fn filter(&self, now: Timestamp) -> Option<Timestamp> {
        let PollSettings { start, ignore_older, .. } = self.settings;
        // The first listing reads all from the start on.
        let ignore_older = ignore_older.filter(|_| !(self.is_first && start.is_some()));
        start.max(ignore_older.map(|span| now.earlier_by(span)))
    }

    /// Begins to read an object if it is to be read, when there is a worker.
    async fn read(
        &self,
        listed: Listed<<B::Cloud as Cloud>::Wanted>,
        younger_than: Option<Timestamp>,
        reading: &mut JoinSet<()>,
    ) -> Look {
        let run = &self.run;
        let Listed { name, modified, wanted } = listed;
        if !run.objects.selects(wanted.key()) {
            return Look::Passed;
        }
        if let (Some(row), Some(time)) = (&run.row, modified) {
            row.read_until(time);
        }
        if younger_than.is_some_and(|limit| modified.is_some_and(|time| time <= limit)) {
            return Look::Passed;
        }
        if run.objects.hand.has(&name) {
            return Look::Known;
        }
        if run.waits(&name) {
            return Look::Passed;
        }
        match run.objects.is_finished(&name) {
            Ok(true) => return Look::Known,
            Ok(false) => {}
            Err(error) => {
                run.object_failed(&wanted, &name, &error.to_string());
                return Look::Passed;
            }
        }
        while reading.try_join_next().is_some() {}
        let worker = tokio::select! {
            biased;
            () = run.objects.intake.stopped() => return Look::Stopped,
            worker = Arc::clone(&self.workers).acquire_owned() => worker,
        };
        let run = Arc::clone(run);
        let work = async move {
            let _begun = modified.map(|time| run.begin(time));
            run.work(wanted, name).await;
            drop(worker);
        };
        reading.spawn(work.in_current_span());
        Look::Begun
    }

    /// A page of the listing. Nothing if there is none after many tries, or the input ends.
    async fn page(&mut self, token: Option<&str>) -> Option<Page<<B::Cloud as Cloud>::Wanted>> {
        let run = Arc::clone(&self.run);
        let intake = &run.objects.intake;
        for times in 0..TRIES {
            let listed = tokio::select! {
                biased;
                () = intake.stopped() => return None,
                listed = self.bucket.page(token) => listed,
            };
            if let Some(row) = &run.row {
                row.requested();
            }
            match listed {
                Ok(page) => {
                    intake.metrics().set_trouble_of(&run.name, None);
                    return Some(page);
                }
                Err(PageError::Elsewhere) => continue,
                Err(PageError::Failed(error)) => run.listing_failed(&error),
            }
            let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(times)).min(PAUSE_MAX);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = intake.stopped() => return None,
            }
        }
        tracing::error!(bucket = run.name, "a listing is given up; the next one follows");
        None
    }

    /// Forgets entries of objects that are not there any more.
    async fn tidy(&mut self, names: Names, now: Monotonic) {
        if self.tidied_at.is_some_and(|at| now.since(at) < TIDY_EVERY) {
            return;
        }
        self.tidied_at = Some(now);
        let objects = Arc::clone(&self.run.objects);
        let hasher = self.hasher.clone();
        // Others may have an input with the same id, or none, for another bucket.
        let own = format!("{}{}", objects.prefix, self.bucket.registry_prefix());
        let work = move || {
            let mut gone = Vec::new();
            let mut each = |key: &str, _: &skidder_registry::FileEntry| {
                let name = key.strip_prefix(&*objects.prefix).unwrap_or_default();
                if key.starts_with(&own) && !names.contains(&hasher.hash_one(name)) {
                    gone.push(key.to_owned());
                }
            };
            let read = objects.cursors.for_each_saved(&mut each);
            match read {
                Ok(()) if gone.is_empty() => {}
                Ok(()) => {
                    tracing::debug!(objects = gone.len(), "objects that are gone are forgotten");
                    objects.cursors.forget_saved(gone);
                }
                Err(error) => tracing::warn!(%error, "cannot look for objects to forget"),
            }
        };
        // Nothing is lost if it is cancelled.
        drop(tokio::task::spawn_blocking(work).await);
    }
}

impl<C: Cloud> BucketRun<C> {
    /// An object that was put then is read now.
    fn begin(&self, put: Timestamp) -> BegunAt {
        let now = self.objects.intake.clock().wall();
        self.objects.numbers.lag.add(nanoseconds(now.since(put)), 1);
        self.times.begin(put)
    }

    /// Reads an object to its end.
    async fn work(&self, wanted: C::Wanted, name: String) {
        match self.objects.read(&wanted).await {
            Ok(sent) => {
                self.failed.remove(&name);
                if let Some(sent) = sent {
                    self.copies.add(&self.objects, sent).await;
                }
            }
            Err(ObjectError::Stopped) => {}
            // It was there when it was listed, and that was all of it.
            Err(ObjectError::Gone) => {
                tracing::info!(key = wanted.key(), "an object was deleted before it was read");
            }
            Err(error) => self.object_failed(&wanted, &name, &error.to_string()),
        }
    }

    /// Reports that an object failed, and when it is tried again.
    fn object_failed(&self, wanted: &C::Wanted, name: &str, error: &str) {
        let (bucket, key) = (&self.name, wanted.key());
        let intake = &self.objects.intake;
        self.objects.failed((bucket, key), error);
        let pause = self.failed.add(name, self.interval, intake.clock().monotonic());
        tracing::error!(bucket, key, error, again_after = ?pause, "cannot read an object");
    }

    /// Whether an object failed, and is not tried again yet.
    fn waits(&self, name: &str) -> bool {
        self.failed.waits(name, self.objects.intake.clock().monotonic())
    }

    /// Reports that a page cannot be had.
    fn listing_failed(&self, error: &str) {
        let name = &self.name;
        let metrics = self.objects.intake.metrics();
        metrics.failed(name, error);
        metrics.set_trouble_of(name, Some(error));
        if let Some(row) = &self.row {
            row.failed(error);
        }
        tracing::error!(bucket = name, error, "cannot list a bucket; trying again");
    }
}

#[cfg(test)]
mod tests;
