//! A bucket that is listed again and again: objects that were not read to their end are read.
//!
//! The registry knows each object by name, content and time. An entry of an object that is in no listing any more is
//! forgotten.

use crate::backup::back_up;
use crate::objects::{
    ListedVersion, ObjectError, Objects, Sent, Wanted, registry_name, registry_prefix,
};
use crate::servers::{Endpoint, check_region};
use crate::settings::BucketSettings;
use crate::store::ObjectPlace;
use skidder_amazon::{Failure, List};
use skidder_aws::{Listed, Listing};
use skidder_input::InputError;
use skidder_os::{Monotonic, Timestamp};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
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
/// The longest pause until an object that failed is tried again.
const RETRY_MAX: Duration = Duration::from_hours(24);
/// Objects that failed whose pauses are remembered; others are tried with each listing.
const FAILED_MAX: usize = 10_000;
/// Pause between two looks whether an object is settled that is to be copied.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Objects that wait for being copied: reading waits at this bound.
const COPYING_MAX: usize = 1000;
/// How long a stop waits for objects that are to be copied.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// What the tasks of a bucket share.
struct BucketRun {
    objects: Arc<Objects>,
    /// The bucket in messages.
    name: String,
    /// Objects that failed, by their names in the registry.
    failed: Mutex<HashMap<String, Failed>>,
    /// There are so many tasks that copy at most.
    copying: Arc<Semaphore>,
    copies: Mutex<JoinSet<()>>,
}

/// An object that failed.
#[derive(Clone, Copy, Debug)]
struct Failed {
    times: u32,
    not_before: Monotonic,
}

/// Lists a bucket.
struct Poller<'a> {
    run: Arc<BucketRun>,
    settings: &'a BucketSettings,
    /// Where the bucket is: the server may know better than the settings.
    region: String,
    workers: Arc<Semaphore>,
    /// The first listing does not look at `ignore_older`.
    is_first: bool,
    tidied_at: Option<Monotonic>,
    hasher: RandomState,
}

/// Names of objects that a listing has, hashed.
type Names = HashSet<u64>;

/// Reads from a bucket until the input ends.
pub(crate) async fn run(
    objects: Arc<Objects>,
    settings: &BucketSettings,
) -> Result<(), InputError> {
    let intake = objects.intake.clone();
    let workers = Arc::new(Semaphore::new(objects.settings.workers));
    let region = objects.settings.servers.region.clone();
    let run = BucketRun {
        name: settings.bucket.text(),
        objects,
        failed: Mutex::default(),
        copying: Arc::new(Semaphore::new(COPYING_MAX)),
        copies: Mutex::default(),
    };
    let mut poller = Poller {
        run: Arc::new(run),
        settings,
        region,
        workers,
        is_first: true,
        tidied_at: None,
        hasher: RandomState::new(),
    };
    loop {
        poller.list().await;
        if intake.is_stopped() || intake.is_once() {
            break;
        }
        tokio::select! {
            biased;
            () = intake.stopped() => break,
            () = tokio::time::sleep(settings.interval) => {}
        }
    }
    intake.set_finishing();
    poller.finish().await;
    Ok(())
}

impl Poller<'_> {
    /// One listing, and all objects in it that are to be read.
    async fn list(&mut self) {
        let run = Arc::clone(&self.run);
        let intake = &run.objects.intake;
        let settle = &run.objects.settle;
        let now = intake.clock().monotonic();
        run.objects.hand.forget(now, |source| settle.is_settled(source));
        while run.copies().try_join_next().is_some() {}
        let filter = self.filter(intake.clock().wall());
        let mut reading = JoinSet::new();
        let (mut names, mut token) = (Names::default(), None);
        let is_whole = loop {
            let Some(page) = self.page(token.as_deref()).await else { break false };
            let Listing { objects, next } = page;
            for listed in objects {
                let wanted = self.wanted(listed);
                names.insert(self.hasher.hash_one(name_of(&wanted)));
                if !self.read(wanted, filter, &mut reading).await {
                    break;
                }
            }
            token = next;
            if intake.is_stopped() {
                break false;
            }
            if token.is_none() {
                break true;
            }
        };
        while reading.join_next().await.is_some() {}
        if is_whole {
            self.is_first = false;
            self.tidy(names, now).await;
        }
    }

    /// The time that objects must be younger than.
    fn filter(&self, now: Timestamp) -> Option<Timestamp> {
        let BucketSettings { start, ignore_older, .. } = self.settings;
        // The first listing reads all from the start on.
        let ignore_older = ignore_older.filter(|_| !(self.is_first && start.is_some()));
        (*start).max(ignore_older.map(|span| now.earlier_by(span)))
    }

    fn wanted(&self, listed: Listed) -> Wanted {
        let Listed { key, etag, modified, .. } = listed;
        let place = ObjectPlace {
            bucket: self.settings.bucket.clone(),
            region: self.region.clone(),
            key,
            version: None,
        };
        let listed = Some(ListedVersion { etag, modified });
        Wanted { place, arn: self.settings.arn.clone(), listed }
    }

    /// Begins to read an object if it is to be read, when there is a worker. `false`: the input ends.
    async fn read(
        &self,
        wanted: Wanted,
        younger_than: Option<Timestamp>,
        reading: &mut JoinSet<()>,
    ) -> bool {
        let run = &self.run;
        let name = name_of(&wanted);
        let modified = wanted.listed.as_ref().and_then(|listed| listed.modified);
        let is_old = younger_than.is_some_and(|limit| modified.is_some_and(|time| time <= limit));
        if is_old
            || run.objects.selector(&wanted.place.key).is_none()
            || run.objects.hand.has(&name)
            || run.waits(&name)
        {
            return true;
        }
        match run.objects.is_finished(&name) {
            Ok(true) => return true,
            Ok(false) => {}
            Err(error) => {
                run.object_failed(&wanted, &name, &error.to_string(), self.settings.interval);
                return true;
            }
        }
        while reading.try_join_next().is_some() {}
        let worker = tokio::select! {
            biased;
            () = run.objects.intake.stopped() => return false,
            worker = Arc::clone(&self.workers).acquire_owned() => worker,
        };
        let (run, interval) = (Arc::clone(run), self.settings.interval);
        let work = async move {
            run.work(wanted, name, interval).await;
            drop(worker);
        };
        reading.spawn(work.in_current_span());
        true
    }

    /// A page of the listing. Nothing if there is none after many tries, or the input ends.
    async fn page(&mut self, token: Option<&str>) -> Option<Listing> {
        let run = Arc::clone(&self.run);
        let intake = &run.objects.intake;
        for times in 0..TRIES {
            let bucket = &self.settings.bucket;
            let mut client = run.objects.clients.take(bucket, &self.region);
            let list = List { prefix: &self.settings.prefix, token, ..List::default() };
            let listed = tokio::select! {
                biased;
                () = intake.stopped() => return None,
                listed = client.list(list) => listed,
            };
            run.objects.clients.give_back(bucket, &self.region, client);
            let failure = match listed {
                Ok(page) => {
                    intake.metrics().set_trouble_of(&run.name, None);
                    return Some(page);
                }
                Err(failure) => failure,
            };
            if self.is_elsewhere(&failure) {
                continue;
            }
            run.listing_failed(&failure);
            let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(times)).min(PAUSE_MAX);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = intake.stopped() => return None,
            }
        }
        tracing::error!(bucket = run.name, "a listing is given up; the next one follows");
        None
    }

    /// Whether the server says that the bucket is in another region, which is taken then.
    fn is_elsewhere(&mut self, failure: &Failure) -> bool {
        let Failure::Refused(refused) = failure else { return false };
        let has_url = self.run.objects.settings.servers.endpoint.as_ref();
        let region = &refused.region;
        if has_url.is_some_and(Endpoint::is_url)
            || check_region(region).is_err()
            || *region == self.region
        {
            return false;
        }
        tracing::info!(
            bucket = self.run.name,
            region,
            before = self.region,
            "the bucket is in this region"
        );
        self.region.clone_from(region);
        true
    }

    /// Forgets entries of objects that are not there any more.
    async fn tidy(&mut self, names: Names, now: Monotonic) {
        if self.tidied_at.is_some_and(|at| now.since(at) < TIDY_EVERY) {
            return;
        }
        self.tidied_at = Some(now);
        let objects = Arc::clone(&self.run.objects);
        let hasher = self.hasher.clone();
        let BucketSettings { bucket, prefix, .. } = self.settings;
        // Others may have an input with the same id, or none, for another bucket.
        let own = format!("{}{}", objects.prefix, registry_prefix(bucket, prefix));
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

    /// Waits for objects that are to be copied: all of them, or for some time if the input was stopped.
    async fn finish(&mut self) {
        let run = Arc::clone(&self.run);
        let intake = &run.objects.intake;
        let late = async {
            intake.stopped().await;
            tokio::time::sleep(STOP_WAIT).await;
        };
        let copied = async {
            while run.copying.available_permits() < COPYING_MAX {
                intake.flush();
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            () = copied => {}
            () = late => {}
        }
        let mut copies = std::mem::take(&mut *run.copies());
        copies.shutdown().await;
    }
}

impl BucketRun {
    /// Reads an object to its end.
    async fn work(self: Arc<Self>, wanted: Wanted, name: String, interval: Duration) {
        match self.objects.read(&wanted).await {
            Ok(sent) => {
                self.lock().remove(&name);
                if let Some(sent) = sent {
                    self.copy_later(sent).await;
                }
            }
            Err(ObjectError::Stopped) => {}
            // It was there when it was listed, and that was all of it.
            Err(ObjectError::Gone) => {
                tracing::info!(key = wanted.place.key, "an object was deleted before it was read");
            }
            Err(error) => self.object_failed(&wanted, &name, &error.to_string(), interval),
        }
    }

    /// Copies an object when it is settled, if the settings say so.
    async fn copy_later(self: &Arc<Self>, sent: Sent) {
        if self.objects.settings.backup.is_none() {
            return;
        }
        let permit = tokio::select! {
            biased;
            () = self.objects.intake.stopped() => return,
            permit = Arc::clone(&self.copying).acquire_owned() => permit,
        };
        let run = Arc::clone(self);
        let work = async move { run.copy(sent, permit.ok()).await };
        self.copies().spawn(work.in_current_span());
    }

    async fn copy(&self, sent: Sent, _permit: Option<OwnedSemaphorePermit>) {
        let Some(backup) = &self.objects.settings.backup else { return };
        let is_settled = || sent.source.is_none_or(|id| self.objects.settle.is_settled(id));
        while !is_settled() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        if let Err(error) = back_up(&self.objects, backup, &sent).await {
            let text = error.to_string();
            self.objects.intake.metrics().failed(&sent.place.key, &text);
            tracing::error!(
                bucket = self.name,
                error = text,
                "all of an object was sent, but it stays where it is"
            );
        }
    }

    /// Reports that an object failed, and when it is tried again.
    fn object_failed(&self, wanted: &Wanted, name: &str, error: &str, interval: Duration) {
        let (bucket, key) = (&self.name, &wanted.place.key);
        self.objects.intake.metrics().failed(&format!("{bucket}/{key}"), error);
        let now = self.objects.intake.clock().monotonic();
        let mut all = self.lock();
        let times = all.get(name).map_or(0, |failed| failed.times);
        let pause = interval.saturating_mul(2_u32.saturating_pow(times.min(20))).min(RETRY_MAX);
        if all.len() < FAILED_MAX || all.contains_key(name) {
            let failed = Failed { times: times.saturating_add(1), not_before: now + pause };
            all.insert(name.to_owned(), failed);
        }
        drop(all);
        tracing::error!(bucket, key, error, again_after = ?pause, "cannot read an object");
    }

    /// Whether an object failed, and is not tried again yet.
    fn waits(&self, name: &str) -> bool {
        let now = self.objects.intake.clock().monotonic();
        self.lock().get(name).is_some_and(|failed| now < failed.not_before)
    }

    /// Reports that a page cannot be had.
    fn listing_failed(&self, failure: &Failure) {
        let name = &self.name;
        let error = match failure {
            Failure::Refused(refused) => {
                let advice = match &*refused.code {
                    "AccessDenied" => format!(
                        "whoever has these credentials needs the right `s3:ListBucket` on `{name}`"
                    ),
                    "NoSuchBucket" => "see `bucket_arn` or `non_aws_bucket_name`".to_owned(),
                    _ => String::new(),
                };
                (**refused).clone().advised(advice).to_string()
            }
            failure => failure.to_string(),
        };
        let metrics = self.objects.intake.metrics();
        metrics.failed(name, &error);
        metrics.set_trouble_of(name, Some(&error));
        tracing::error!(bucket = name, error, "cannot list a bucket; trying again");
    }

    fn copies(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Failed>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name in the registry of an object as it was listed.
fn name_of(wanted: &Wanted) -> String {
    let listed = wanted.listed.clone().unwrap_or_default();
    registry_name(&wanted.place, &listed.etag, listed.modified)
}
