//! Objects of a bucket for [`skidder_input_objects`]: how they are asked for, and what their events have.

use crate::json::WithJson;
use crate::settings::BucketSettings;
use bytes::Bytes;
use skidder_event::{Bind, Map, Value};
use skidder_google::{Content, Failure, Listed, ObjectName, Part, Storage};
use skidder_input_objects::{
    AfterFirst, Body, Cloud, First, Range, Reading, Store, StoreError, StoreFuture, begin_ids,
    digest, registry_name,
};
use std::path::Path;
use std::sync::Arc;

/// `cloud.provider`, as Filebeat has it.
const PROVIDER: &str = "google cloud";
/// Digits of the hash that ids begin with.
const HASH_DIGITS: usize = 10;

/// The objects of one bucket.
pub(crate) struct BucketObjects {
    pub(crate) storage: Storage,
    pub(crate) bucket: Arc<BucketSettings>,
}

/// An object that is to be read.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) bucket: Arc<str>,
    pub(crate) object: Listed,
}

/// One object, in the generation that the listing has.
struct ObjectStore {
    storage: Storage,
    wanted: Wanted,
}

/// The content of an answer.
struct Pieces {
    content: Content,
    bucket: Arc<str>,
}

impl skidder_input_objects::Wanted for Wanted {
    fn key(&self) -> &str {
        &self.object.name
    }

    fn bucket(&self) -> String {
        self.bucket.to_string()
    }
}

impl Wanted {
    fn name(&self) -> ObjectName<'_> {
        let Listed { name, generation, size, .. } = &self.object;
        ObjectName { bucket: &self.bucket, name, generation: *generation, size: *size }
    }
}

impl Cloud for BucketObjects {
    type Wanted = Wanted;

    fn begin<'a>(&'a self, wanted: &'a Wanted, _selector: usize) -> StoreFuture<'a, First> {
        Box::pin(async move {
            let first = get(&self.storage, wanted, Part::default()).await?;
            Ok(self.first(wanted, first))
        })
    }

    fn bind(&self, bind: Arc<dyn Bind>) -> Arc<dyn Bind> {
        if self.bucket.listing.parse_json { Arc::new(WithJson::new(bind)) } else { bind }
    }
}

impl BucketObjects {
    fn first(&self, wanted: &Wanted, first: Pieces) -> First {
        let Listed { name, generation, size, content_type, .. } = &wanted.object;
        let content_type = self.bucket.reading.content_type_of(content_type);
        let path = format!("gs://{}/{name}", wanted.bucket);
        let rest = ObjectStore { storage: self.storage.clone(), wanted: wanted.clone() };
        let reading = Reading {
            key: name_of(wanted),
            path: Arc::from(Path::new(&path)),
            fields: Arc::new(fields(wanted, content_type)),
            store: Box::new(AfterFirst::new(*size, Box::new(first), rest)),
        };
        let content_type = content_type.to_owned();
        First { reading, version: generation.to_string(), content_type }
    }
}

/// What all events of an object have.
fn fields(wanted: &Wanted, content_type: &str) -> Map {
    let Wanted { bucket, object: Listed { name, generation, .. } } = wanted;
    let (mut of_bucket, mut object) = (Map::new(), Map::new());
    of_bucket.insert_constant("name", &**bucket);
    object.insert_constant("name", name.as_str());
    object.insert_constant("content_type", content_type);
    // As in Filebeat, which has an empty list there without `parse_json`.
    object.insert_constant("json_data", Value::List(Vec::new()));
    let (mut storage, mut gcs, mut cloud) = (Map::new(), Map::new(), Map::new());
    storage.insert_constant("bucket", of_bucket);
    storage.insert_constant("object", object);
    gcs.insert_constant("storage", storage);
    cloud.insert_constant("provider", PROVIDER);
    let mut fields = Map::new();
    fields.insert_constant("gcs", gcs);
    fields.insert_constant("cloud", cloud);
    let generation = generation.to_string();
    let hash = digest([bucket.as_bytes(), name.as_bytes(), generation.as_bytes()]);
    begin_ids(&mut fields, &hash[..HASH_DIGITS]);
    fields
}

/// The name of an object in the registry: no other content has it.
pub(crate) fn name_of(wanted: &Wanted) -> String {
    let Wanted { bucket, object } = wanted;
    registry_name(bucket, &object.name, &object.generation.to_string())
}

async fn get(storage: &Storage, wanted: &Wanted, part: Part) -> Result<Pieces, StoreError> {
    let got = storage.get(wanted.name(), part).await;
    let got = got.map_err(|failure| store_error(&failure, &wanted.bucket))?;
    Ok(Pieces { content: got.content, bucket: Arc::clone(&wanted.bucket) })
}

impl Store for ObjectStore {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        Box::pin(async move {
            let part = Part { from: range.from, until: range.to };
            let pieces = get(&self.storage, &self.wanted, part).await?;
            Ok(Box::new(pieces) as Box<dyn Body>)
        })
    }
}

impl Body for Pieces {
    fn next(&mut self) -> StoreFuture<'_, Option<Bytes>> {
        Box::pin(async move {
            let piece = self.content.piece().await;
            piece.map_err(|failure| store_error(&failure, &self.bucket))
        })
    }
}

/// What a failure means for the object.
fn store_error(failure: &Failure, bucket: &str) -> StoreError {
    match failure {
        Failure::Refused(refused) if refused.is_missing() => StoreError::Gone,
        Failure::Refused(refused) if refused.is_changed() => StoreError::Changed,
        Failure::Refused(refused) if refused.status == 403 => {
            let advice = format!(
                "whoever has these credentials needs the right `storage.objects.get` on `{bucket}`, as the role Storage \
                 Object Viewer has it"
            );
            StoreError::Refused((**refused).clone().advised(advice).to_string())
        }
        failure if failure.may_pass() => StoreError::Passing(failure.to_string()),
        failure => StoreError::Refused(failure.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skidder_google::Refused;

    fn wanted(generation: u64) -> Wanted {
        let object = Listed { name: "a/b.log".to_owned(), generation, ..Listed::default() };
        Wanted { bucket: "logs".into(), object }
    }

    #[test]
    fn each_generation_has_a_name_and_ids_of_its_own() {
        assert_eq!(name_of(&wanted(7)), "logs/a/b.log@7");
        let of = |generation| fields(&wanted(generation), "text/plain");
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8), "the ids differ");
        let fields = of(7);
        let text = |path: &str| fields.get_path(path).cloned();
        assert_eq!(text("gcs.storage.bucket.name"), Some("logs".into()));
        assert_eq!(text("gcs.storage.object.name"), Some("a/b.log".into()));
        assert_eq!(text("gcs.storage.object.content_type"), Some("text/plain".into()));
        assert_eq!(text("gcs.storage.object.json_data"), Some(Value::List(Vec::new())));
        assert_eq!(text("cloud.provider"), Some("google cloud".into()));
    }

    #[test]
    fn a_refusal_passes_or_stays() {
        let error = |status| {
            let refused = Refused::read(status, &http::HeaderMap::new(), b"no");
            store_error(&Failure::Refused(Box::new(refused)), "logs")
        };
        assert_eq!(error(404), StoreError::Gone);
        assert_eq!(error(412), StoreError::Changed);
        for status in [401, 408, 429, 500, 503] {
            assert!(matches!(error(status), StoreError::Passing(_)), "{status}");
        }
        let StoreError::Refused(text) = error(403) else { panic!("it stays") };
        assert!(text.contains("`storage.objects.get` on `logs`"), "{text}");
        assert!(matches!(error(400), StoreError::Refused(_)));
    }
}
