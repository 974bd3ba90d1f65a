//! The bytes of objects: clients of buckets, each used by one answer at a time ([`skidder_input_objects::take`]).

use crate::servers::{BucketName, Servers};
use http::HeaderMap;
use skidder_amazon::{Bucket, Failure, GotObject, Meter, ObjectHead, ObjectName, Part, Refused};
use skidder_input::InputMetrics;
use skidder_input_objects::{
    Body, Got, Idle, Metered, Pieces, Range, Request, Store, StoreError, StoreFuture, take,
};
use skidder_os::Clock;
use std::sync::Arc;

/// An object as requests name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectPlace {
    pub(crate) bucket: BucketName,
    pub(crate) region: String,
    pub(crate) key: String,
    pub(crate) version: Option<String>,
}

/// Clients of buckets.
pub(crate) struct Clients {
    servers: Servers,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    /// By bucket and region.
    idle: Idle<(BucketName, String), Bucket>,
}

/// The beginning of an answer.
#[derive(Debug)]
pub(crate) struct Began {
    pub(crate) head: ObjectHead,
    pub(crate) headers: HeaderMap,
    pub(crate) pieces: Pieces,
}

/// One object, in the version that the first answer had.
pub(crate) struct ObjectStore {
    pub(crate) clients: Arc<Clients>,
    pub(crate) place: ObjectPlace,
    pub(crate) etag: String,
}

impl Clients {
    /// At most so many are kept while they are not used.
    pub(crate) fn new(
        servers: Servers,
        metrics: Arc<InputMetrics>,
        clock: Arc<dyn Clock>,
        idle_max: usize,
    ) -> Arc<Self> {
        let meter = Arc::new(Metered(metrics));
        Arc::new(Self { servers, meter, clock, idle: Idle::new(idle_max) })
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// A client of a bucket.
    pub(crate) fn take(&self, bucket: &BucketName, region: &str) -> Bucket {
        self.idle.take(|(of, at)| of == bucket && at == region).unwrap_or_else(|| {
            let service = self.servers.bucket(bucket, region);
            Bucket::new(service.client(Arc::clone(&self.meter), Arc::clone(&self.clock)))
        })
    }

    /// A client that is not used any more.
    pub(crate) fn give_back(&self, bucket: &BucketName, region: &str, client: Bucket) {
        self.idle.give_back((bucket.clone(), region.to_owned()), client);
    }

    /// Begins to read an object.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        place: &ObjectPlace,
        range: Range,
        etag: Option<&str>,
    ) -> Result<Began, StoreError> {
        let asking = Asking {
            clients: Arc::clone(self),
            client: self.take(&place.bucket, &place.region),
            place: place.clone(),
            range,
            etag: etag.map(str::to_owned),
        };
        let ((head, headers), pieces) = take(asking).await?;
        Ok(Began { head, headers, pieces })
    }
}

/// A request for an object, or a part of it.
struct Asking {
    clients: Arc<Clients>,
    client: Bucket,
    place: ObjectPlace,
    range: Range,
    etag: Option<String>,
}

impl Request for Asking {
    type Head = (ObjectHead, HeaderMap);

    fn get(&mut self) -> StoreFuture<'_, Got<'_, Self::Head>> {
        let Self { client, place, range, etag, .. } = self;
        Box::pin(async move {
            let name = ObjectName { key: &place.key, version: place.version.as_deref() };
            let part = Part { from: range.from, until: range.to, if_match: etag.as_deref() };
            let got = client.get(name, part).await;
            let GotObject { head, headers, content } =
                got.map_err(|failure| store_error(&failure, place))?;
            let left = content.left();
            Ok(Got { head: (head, headers), left, content: Box::new(content) })
        })
    }

    fn end(self) {
        self.clients.give_back(&self.place.bucket, &self.place.region, self.client);
    }
}

impl Store for ObjectStore {
    fn get(&self, range: Range) -> StoreFuture<'_, Box<dyn Body>> {
        Box::pin(async move {
            let began = self.clients.begin(&self.place, range, Some(&self.etag)).await?;
            Ok(Box::new(began.pieces) as Box<dyn Body>)
        })
    }
}

/// What a failure means for the object.
pub(crate) fn store_error(failure: &Failure, place: &ObjectPlace) -> StoreError {
    match failure {
        Failure::Refused(refused) if refused.is_missing() => StoreError::Gone,
        Failure::Refused(refused) if refused.is_changed() => StoreError::Changed,
        failure => {
            let text = match failure {
                Failure::Refused(refused) => {
                    (**refused).clone().advised(advice(refused, place)).to_string()
                }
                failure => failure.to_string(),
            };
            if failure.may_pass() { StoreError::Passing(text) } else { StoreError::Refused(text) }
        }
    }
}

/// The remedy; empty if there is none.
fn advice(refused: &Refused, place: &ObjectPlace) -> String {
    let bucket = place.bucket.text();
    match &*refused.code {
        "AccessDenied" => format!(
            "whoever has these credentials needs the right `s3:GetObject` on `{bucket}/*`, and `s3:ListBucket` to learn of \
             objects that are gone"
        ),
        "NoSuchBucket" => format!("there is no bucket `{bucket}`"),
        "InvalidObjectState" => "the object is archived: restore it".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> ObjectPlace {
        ObjectPlace {
            bucket: BucketName::Bucket("logs".to_owned()),
            region: "eu-west-1".to_owned(),
            key: "a".to_owned(),
            version: None,
        }
    }

    #[test]
    fn a_refusal_passes_or_stays() {
        let error = |status, code: &str| {
            let body = format!("<Error><Code>{code}</Code><Message>no</Message></Error>");
            let refused = Refused::read(status, &HeaderMap::new(), body.as_bytes());
            store_error(&Failure::Refused(Box::new(refused)), &place())
        };
        assert_eq!(error(404, "NoSuchKey"), StoreError::Gone);
        assert_eq!(error(412, "PreconditionFailed"), StoreError::Changed);
        for (status, code) in [(503, "SlowDown"), (500, "InternalError"), (400, "ExpiredToken")] {
            assert!(matches!(error(status, code), StoreError::Passing(_)), "{code}");
        }
        for (status, code, advice) in [
            (403, "AccessDenied", "`s3:GetObject` on `logs/*`"),
            (404, "NoSuchBucket", "no bucket `logs`"),
            (403, "InvalidObjectState", "restore it"),
            (400, "InvalidRequest", "`InvalidRequest`: no"),
        ] {
            let StoreError::Refused(text) = error(status, code) else { panic!("{code}") };
            assert!(text.contains(advice), "{text}");
        }
    }
}
