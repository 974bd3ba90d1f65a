//! What reading the objects of an input needs, and the reading of one: from its name to its events.

use crate::hand::{Claim, Claimed, InHand};
use crate::ids::{self, WithIds};
use crate::metadata;
use crate::servers::BucketName;
use crate::settings::{Selector, Settings, is_json};
use crate::store::{Began, Clients, ObjectPlace, ObjectStore};
use skidder_event::{Map, SourceId};
use skidder_input::{InputError, Intake};
use skidder_input_file::SavedCursors;
use skidder_input_objects::{Contexts, Outcome, Range, ReadError, Reading, StoreError, read};
use skidder_os::{Fs, Timestamp};
use skidder_pipeline::Settle;
use skidder_read::{
    BufferPool, Cursors, CursorsError, DecoderPool, FilestreamSettings, InputContext, ReadMetrics,
};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Decoders kept for reuse; each has about 50 KiB.
const DECODERS_IDLE_MAX: usize = 8;
/// Bytes of the name of an object that stand in the registry; of a longer one a hash follows.
const KEY_BYTES_MAX: usize = 1024;
/// Pause until an object is looked at again that another task reads.
const BUSY_PAUSE: Duration = Duration::from_millis(200);
/// Tries of an object whose bytes cannot be had for now, before it is given back to what named it: some five minutes.
const TRIES: u32 = 10;
/// First pause between these; doubled with each that follows.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
/// The longest of these.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// See the module's text. Shared by all tasks of the input.
pub(crate) struct Objects {
    pub(crate) intake: Intake,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) hand: InHand,
    pub(crate) settle: Arc<Settle>,
    pub(crate) cursors: Arc<dyn Cursors>,
    /// What the keys of the input's objects begin with in the registry.
    pub(crate) prefix: Arc<str>,
    /// One for each of the settings' selectors.
    contexts: Vec<Arc<Contexts>>,
    /// An object was read whose lines may be no whole values.
    has_warned: AtomicBool,
}

/// An object that is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) place: ObjectPlace,
    /// Of the bucket.
    pub(crate) arn: String,
    /// The only version that is meant, with its time; nothing for what is there now.
    pub(crate) listed: Option<ListedVersion>,
}

/// An object as a listing shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListedVersion {
    /// With its quotes; empty if the server has none.
    pub(crate) etag: String,
    pub(crate) modified: Option<Timestamp>,
}

/// An object that was sent on, or was known.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    /// The source that is settled when the object is; nothing if an earlier run has settled it.
    pub(crate) source: Option<SourceId>,
    pub(crate) place: ObjectPlace,
    pub(crate) etag: String,
}

/// Why an object was not read to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ObjectError {
    /// The program ends.
    #[error("the program ends")]
    Stopped,
    /// There is no object of this name.
    #[error("the object is gone")]
    Gone,
    /// As [`ObjectError::Failed`]; it is not the object's fault.
    #[error("{0}")]
    Passing(String),
    /// The same; it does not pass by itself.
    #[error("{0}")]
    Refused(String),
    /// It may be tried again, and goes on where it was settled. The text says why.
    #[error("{0}")]
    Failed(String),
}

impl From<StoreError> for ObjectError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone => Self::Gone,
            StoreError::Passing(text) => Self::Passing(text),
            StoreError::Refused(text) => Self::Refused(text),
            StoreError::Changed => Self::Failed(error.to_string()),
        }
    }
}

impl From<ReadError> for ObjectError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Stopped => Self::Stopped,
            ReadError::Store(error) => error.into(),
            ReadError::Cursors(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<CursorsError> for ObjectError {
    fn from(error: CursorsError) -> Self {
        Self::Passing(error.to_string())
    }
}

/// Both contexts of objects with these settings.
fn contexts_of(
    intake: &Intake,
    reading: &FilestreamSettings,
    shared: &Shared,
) -> Result<Arc<Contexts>, InputError> {
    let lane = intake.lane().map_err(|error| InputError(error.to_string()))?;
    let context = |settings| InputContext {
        settings,
        bind: Arc::new(WithIds(Arc::clone(&lane.bind))),
        cursors: Arc::clone(&shared.cursors),
        fs: Arc::clone(&shared.fs),
        metrics: Arc::clone(&shared.metrics),
        buffers: Arc::clone(&shared.buffers),
        decoders: shared.decoders.clone(),
        rows_max: (lane.queue.limits().events / 4).max(1),
    };
    let arriving = FilestreamSettings { final_line: false, read_once: false, ..reading.clone() };
    let whole = FilestreamSettings { final_line: true, read_once: true, ..reading.clone() };
    Ok(Arc::new(Contexts { arriving: context(arriving), whole: context(whole) }))
}

/// What the contexts share.
struct Shared {
    cursors: Arc<dyn Cursors>,
    fs: Arc<dyn Fs>,
    metrics: Arc<ReadMetrics>,
    buffers: Arc<BufferPool>,
    decoders: DecoderPool,
}

impl Objects {
    /// For one run of the input.
    pub(crate) fn new(
        intake: Intake,
        settings: Arc<Settings>,
        fs: Arc<dyn Fs>,
    ) -> Result<Arc<Self>, InputError> {
        let failed = |error: skidder_input::OpenError| InputError(error.to_string());
        let lane = intake.lane().map_err(failed)?;
        let settle = Arc::clone(lane.queue.settle());
        let cursors = SavedCursors::new(Arc::clone(&settle), Arc::clone(&lane.registry));
        let cursors: Arc<dyn Cursors> = Arc::new(cursors);
        let (_, prefix) = intake.number(lane, "");
        let shared = Shared {
            cursors: Arc::clone(&cursors),
            fs,
            metrics: Arc::default(),
            buffers: Arc::default(),
            decoders: DecoderPool::new(DECODERS_IDLE_MAX),
        };
        let contexts = settings.selectors.iter();
        let contexts = contexts.map(|selector| contexts_of(&intake, &selector.reading, &shared));
        let contexts = contexts.collect::<Result<Vec<_>, InputError>>()?;
        let (metrics, clock) = (Arc::clone(intake.metrics()), Arc::clone(intake.clock()));
        let clients = Clients::new(settings.servers.clone(), metrics, clock, settings.workers);
        Ok(Arc::new(Self {
            clients,
            hand: InHand::default(),
            settle,
            cursors,
            prefix,
            contexts,
            has_warned: AtomicBool::new(false),
            intake,
            settings,
        }))
    }

    /// How objects of this name are read; nothing if they are not.
    pub(crate) fn selector(&self, key: &str) -> Option<(&Selector, &Arc<Contexts>)> {
        let mut all = self.settings.selectors.iter().zip(&self.contexts);
        all.find(|(selector, _)| selector.selects(key))
    }

    /// Whether all of an object was read and settled in an earlier run, or by another task.
    pub(crate) fn is_finished(&self, name: &str) -> Result<bool, CursorsError> {
        let saved = self.cursors.saved(&format!("{}{name}", self.prefix))?;
        Ok(saved.is_some_and(|entry| entry.cursor.eof))
    }

    /// Reads an object to its end, also if its bytes cannot be had for some time. Nothing if none of its name is read.
    pub(crate) async fn read(&self, wanted: &Wanted) -> Result<Option<Sent>, ObjectError> {
        let part = wanted.place.bucket.text();
        let metrics = self.intake.metrics();
        for times in 0..TRIES {
            let error = match self.try_read(wanted).await {
                Err(ObjectError::Passing(error)) => error,
                read => {
                    if times > 0 {
                        metrics.set_trouble_of(&part, None);
                    }
                    return read;
                }
            };
            metrics.set_trouble_of(&part, Some(&error));
            let key = &wanted.place.key;
            if times + 1 == TRIES {
                return Err(ObjectError::Passing(error));
            }
            tracing::warn!(
                bucket = part,
                key,
                error,
                "an object cannot be read for now; trying again"
            );
            let pause = PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(times)).min(PAUSE_MAX);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.intake.stopped() => break,
            }
        }
        Err(ObjectError::Stopped)
    }

    async fn try_read(&self, wanted: &Wanted) -> Result<Option<Sent>, ObjectError> {
        let Some((selector, contexts)) = self.selector(&wanted.place.key) else {
            tracing::debug!(key = wanted.place.key, "no selector is for this object");
            return Ok(None);
        };
        let etag = wanted.listed.as_ref().map(|listed| &*listed.etag);
        let etag = etag.filter(|etag| !etag.is_empty());
        let whole = Range { from: 0, to: None };
        let began = self.clients.begin(&wanted.place, whole, etag);
        let began = tokio::select! {
            began = began => began?,
            () = self.intake.stopped() => return Err(ObjectError::Stopped),
        };
        let (etag, modified) = match &wanted.listed {
            // The listing knows it by these.
            Some(listed) => (&listed.etag, listed.modified),
            None => (&began.head.etag, began.head.modified),
        };
        let name = registry_name(&wanted.place, etag, modified);
        let sent =
            |source| Sent { source, place: wanted.place.clone(), etag: began.head.etag.clone() };
        let claimed = match self.claim(&name).await? {
            Ok(claimed) => claimed,
            Err(source) => return Ok(Some(sent(Some(source)))),
        };
        if self.is_finished(&name)? {
            return Ok(Some(sent(None)));
        }
        self.warn_of_type(selector, &began, wanted);
        let fields = Arc::new(self.fields(selector, wanted, &began, modified));
        let sent = sent(None);
        let reading = self.reading(name, fields, wanted, began);
        let source = self.read_claimed(claimed, contexts, &reading).await?;
        Ok(Some(Sent { source, ..sent }))
    }

    /// Reads an object of which this task is the only reader. Returns its source; nothing if it was known.
    async fn read_claimed(
        &self,
        claimed: Claimed<'_>,
        contexts: &Arc<Contexts>,
        reading: &Reading,
    ) -> Result<Option<SourceId>, ObjectError> {
        match read(&self.intake, contexts, reading).await? {
            Outcome::Read(id) => {
                // It is forgotten when it is settled and saved.
                self.settle.end_source(id);
                claimed.read(id, self.intake.clock().monotonic());
                Ok(Some(id))
            }
            Outcome::Known => Ok(None),
            Outcome::Damaged(id) => {
                self.settle.end_source(id);
                let message = "its end cannot be decoded: it is damaged, or was cut off";
                Err(ObjectError::Failed(message.to_owned()))
            }
        }
    }

    /// Waits until no other task reads an object. The source if another one has read it.
    async fn claim(&self, name: &str) -> Result<Result<Claimed<'_>, SourceId>, ObjectError> {
        loop {
            match self.hand.claim(name) {
                Claim::Mine(claimed) => return Ok(Ok(claimed)),
                Claim::Read(source) => return Ok(Err(source)),
                Claim::Busy => {}
            }
            tokio::select! {
                () = tokio::time::sleep(BUSY_PAUSE) => {}
                () = self.intake.stopped() => return Err(ObjectError::Stopped),
            }
        }
    }

    fn reading(&self, name: String, fields: Arc<Map>, wanted: &Wanted, began: Began) -> Reading {
        let Began { head, pieces, .. } = began;
        let store = ObjectStore {
            clients: Arc::clone(&self.clients),
            place: wanted.place.clone(),
            etag: head.etag,
            size: head.size,
            first: Mutex::new(Some(pieces)),
        };
        let url = self.url(&wanted.place);
        Reading { key: name, path: Arc::from(Path::new(&url)), fields, store: Box::new(store) }
    }

    /// The URL of an object.
    fn url(&self, place: &ObjectPlace) -> String {
        let target = self.clients.servers().bucket(&place.bucket, &place.region).target;
        let scheme = if target.https { "https" } else { "http" };
        format!("{scheme}://{}{}", target.authority, target.path(Some(&place.key)))
    }

    /// What all events of an object have.
    fn fields(
        &self,
        selector: &Selector,
        wanted: &Wanted,
        began: &Began,
        modified: Option<Timestamp>,
    ) -> Map {
        let ObjectPlace { bucket, region, key, .. } = &wanted.place;
        let mut of_bucket = Map::new();
        let name = match bucket {
            BucketName::Bucket(name) => name,
            // As in Filebeat.
            BucketName::AccessPoint { .. } => &wanted.arn,
        };
        of_bucket.insert_constant("name", name.as_str());
        of_bucket.insert_constant("arn", wanted.arn.as_str());
        let (mut object, mut s3, mut aws) = (Map::new(), Map::new(), Map::new());
        object.insert_constant("key", key.as_str());
        s3.insert_constant("bucket", of_bucket);
        s3.insert_constant("object", object);
        let metadata = metadata::of(&selector.metadata, &began.headers);
        if !metadata.is_empty() {
            s3.insert_constant("metadata", metadata);
        }
        aws.insert_constant("s3", s3);
        let mut cloud = Map::new();
        cloud.insert_constant("provider", self.settings.provider.as_str());
        cloud.insert_constant("region", region.as_str());
        let mut fields = Map::new();
        fields.insert_constant("aws", aws);
        fields.insert_constant("cloud", cloud);
        ids::begin(&mut fields, modified, &wanted.arn, key);
        fields
    }

    /// Warns once of an object that may have values over several lines.
    fn warn_of_type(&self, selector: &Selector, began: &Began, wanted: &Wanted) {
        let content_type = &began.head.content_type;
        if selector.has_type
            || !is_json(content_type)
            || self.has_warned.swap(true, Ordering::Relaxed)
        {
            return;
        }
        tracing::warn!(
            key = wanted.place.key,
            content_type,
            "each line of this object is an event; Filebeat makes one of each JSON value: the same if each line is one value. \
             Set `content_type` to have this not said"
        );
    }
}

/// The name of an object in the registry: no other content has it.
pub(crate) fn registry_name(
    place: &ObjectPlace,
    etag: &str,
    modified: Option<Timestamp>,
) -> String {
    let ObjectPlace { bucket, key, version, .. } = place;
    let (bucket, key) = (bucket.text(), shortened(key));
    let etag = etag.trim_matches('"');
    let version = version.as_deref().unwrap_or_default();
    // Some listings have milliseconds, and headers have none.
    let seconds = modified.map_or(0, Timestamp::seconds);
    format!("{bucket}/{key}@{etag}@{seconds}@{version}")
}

/// What the names of objects of a bucket begin with in the registry whose own names begin with `prefix`.
pub(crate) fn registry_prefix(bucket: &BucketName, prefix: &str) -> String {
    format!("{}/{}", bucket.text(), &prefix[..prefix.floor_char_boundary(KEY_BYTES_MAX)])
}

/// The name of an object, or its beginning and a hash.
fn shortened(key: &str) -> String {
    if key.len() <= KEY_BYTES_MAX {
        return key.to_owned();
    }
    let beginning = &key[..key.floor_char_boundary(KEY_BYTES_MAX)];
    format!("{beginning}#{}", skidder_aws::digest([key.as_bytes()]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_has_a_name_of_its_own_and_a_bounded_one() {
        let place = |key: &str, version: Option<&str>| ObjectPlace {
            bucket: BucketName::Bucket("logs".to_owned()),
            region: "eu-west-1".to_owned(),
            key: key.to_owned(),
            version: version.map(str::to_owned),
        };
        let at = Some(Timestamp(1_440_938_160_123_000_000));
        let name = registry_name(&place("a/b", None), "\"0123\"", at);
        assert_eq!(name, "logs/a/b@0123@1440938160@");
        assert_eq!(registry_name(&place("a", Some("v1")), "", None), "logs/a@@0@v1");
        let (one, other) = ("ä".repeat(2000) + "1", "ä".repeat(2000) + "2");
        let name = |key: &str| registry_name(&place(key, None), "e", None);
        assert_ne!(name(&one), name(&other));
        assert!(name(&one).len() < 1200 && name(&one).starts_with("logs/ää"));
        let bucket = place("", None).bucket;
        assert!(name(&one).starts_with(&registry_prefix(&bucket, &one)));
        assert_eq!(registry_prefix(&bucket, "a/"), "logs/a/");
    }
}
