//! Objects of S3 for [`skidder_input_objects`]: how they are asked for, and what their events have.

use crate::backup::back_up;
use crate::ids;
use crate::metadata;
use crate::servers::BucketName;
use crate::settings::{Selector, Settings};
use crate::store::{Began, Clients, ObjectPlace, ObjectStore};
use skidder_event::Map;
use skidder_input_objects::{
    AfterFirst, Cloud, First, Range, Reading, StoreFuture, begin_ids, registry_name,
};
use skidder_os::Timestamp;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

/// The objects of one run of the input.
pub(crate) type Objects = skidder_input_objects::Objects<S3>;

/// An object that was sent on, or was known.
pub(crate) type Sent = skidder_input_objects::Sent<Wanted>;

pub(crate) use skidder_input_objects::ObjectError;

/// S3, as one input asks it.
pub(crate) struct S3 {
    pub(crate) settings: Arc<Settings>,
    pub(crate) clients: Arc<Clients>,
}

/// An object that is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) place: ObjectPlace,
    /// Of the bucket.
    pub(crate) arn: String,
    /// `cloud.provider`; empty for that of the settings.
    pub(crate) provider: String,
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

impl skidder_input_objects::Wanted for Wanted {
    fn key(&self) -> &str {
        &self.place.key
    }

    fn bucket(&self) -> String {
        self.place.bucket.text()
    }
}

impl Cloud for S3 {
    type Wanted = Wanted;

    fn begin<'a>(&'a self, wanted: &'a Wanted, selector: usize) -> StoreFuture<'a, First> {
        let selector = &self.settings.selectors[selector];
        Box::pin(async move {
            let etag = wanted.listed.as_ref().map(|listed| &*listed.etag);
            let etag = etag.filter(|etag| !etag.is_empty());
            let whole = Range { from: 0, to: None };
            let began = self.clients.begin(&wanted.place, whole, etag).await?;
            Ok(self.first(selector, wanted, began))
        })
    }

    fn has_backup(&self) -> bool {
        self.settings.backup.is_some()
    }

    fn back_up<'a>(
        &'a self,
        sent: &'a Sent,
    ) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>> {
        Box::pin(async move {
            let Some(backup) = &self.settings.backup else { return Ok(()) };
            back_up(&self.clients, backup, sent).await.map_err(|error| error.to_string())
        })
    }
}

impl S3 {
    fn first(&self, selector: &Selector, wanted: &Wanted, began: Began) -> First {
        let (etag, modified) = match &wanted.listed {
            // The listing knows it by these.
            Some(listed) => (&listed.etag, listed.modified),
            None => (&began.head.etag, began.head.modified),
        };
        let key = name_of(&wanted.place, etag, modified);
        let fields = Arc::new(self.fields(selector, wanted, &began, modified));
        let path = Arc::from(Path::new(&self.url(&wanted.place)));
        let Began { head, pieces, .. } = began;
        let rest = ObjectStore {
            clients: Arc::clone(&self.clients),
            place: wanted.place.clone(),
            etag: head.etag.clone(),
        };
        let store = Box::new(AfterFirst::new(head.size, Box::new(pieces), rest));
        let reading = Reading { key, path, fields, store };
        First { reading, version: head.etag, content_type: head.content_type }
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
        let provider = Some(&*wanted.provider).filter(|provider| !provider.is_empty());
        cloud.insert_constant("provider", provider.unwrap_or(&self.settings.provider));
        cloud.insert_constant("region", region.as_str());
        let mut fields = Map::new();
        fields.insert_constant("aws", aws);
        fields.insert_constant("cloud", cloud);
        begin_ids(&mut fields, &ids::beginning(modified, &wanted.arn, key));
        fields
    }
}

/// The name of an object in the registry: no other content has it.
pub(crate) fn name_of(place: &ObjectPlace, etag: &str, modified: Option<Timestamp>) -> String {
    let ObjectPlace { bucket, key, version, .. } = place;
    let etag = etag.trim_matches('"');
    let version = version.as_deref().unwrap_or_default();
    // Some listings have milliseconds, and headers have none.
    let seconds = modified.map_or(0, Timestamp::seconds);
    registry_name(&bucket.text(), key, &format!("{etag}@{seconds}@{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_content_has_a_name_of_its_own() {
        let place = |key: &str, version: Option<&str>| ObjectPlace {
            bucket: BucketName::Bucket("logs".to_owned()),
            region: "eu-west-1".to_owned(),
            key: key.to_owned(),
            version: version.map(str::to_owned),
        };
        let at = Some(Timestamp(1_440_938_160_123_000_000));
        let name = name_of(&place("a/b", None), "\"0123\"", at);
        assert_eq!(name, "logs/a/b@0123@1440938160@");
        assert_eq!(name_of(&place("a", Some("v1")), "", None), "logs/a@@0@v1");
    }
}
