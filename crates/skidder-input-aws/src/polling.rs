//! A bucket that is listed: its pages for [`skidder_input_objects::poll`].

use crate::objects::{ListedVersion, Objects, S3, Wanted, name_of};
use crate::servers::{Endpoint, check_region};
use crate::settings::BucketSettings;
use crate::store::ObjectPlace;
use skidder_amazon::{Failure, List, Listing};
use skidder_input_objects::{
    Bucket, Listed, Page, PageError, PageFuture, PollSettings, Poller, poll, registry_prefix,
};
use std::sync::Arc;

/// The bucket.
struct Pages {
    s3: Arc<S3>,
    settings: Arc<BucketSettings>,
    /// Where the bucket is: the server may know better than the settings.
    region: String,
}

/// Reads from a bucket until the input ends.
pub(crate) async fn run(objects: Arc<Objects>, settings: Arc<BucketSettings>) {
    let intake = objects.intake.clone();
    let s3 = Arc::clone(&objects.cloud);
    let polling = PollSettings {
        interval: settings.interval,
        repeats: true,
        start: settings.start,
        ignore_older: settings.ignore_older,
        workers: s3.settings.workers,
    };
    let region = s3.settings.servers.region.clone();
    let pages = Pages { s3, settings, region };
    poll(&intake, vec![Poller::new(objects, pages, polling)]).await;
}

impl Bucket for Pages {
    type Cloud = S3;

    fn name(&self) -> String {
        self.settings.bucket.text()
    }

    fn registry_prefix(&self) -> String {
        registry_prefix(&self.settings.bucket.text(), &self.settings.prefix)
    }

    fn page<'a>(&'a mut self, token: Option<&'a str>) -> PageFuture<'a, Wanted> {
        Box::pin(async move {
            let BucketSettings { bucket, prefix, .. } = &*self.settings;
            let mut client = self.s3.clients.take(bucket, &self.region);
            let list = List { prefix, token, ..List::default() };
            let listed = client.list(list).await;
            self.s3.clients.give_back(bucket, &self.region, client);
            match listed {
                Ok(Listing { objects, next }) => {
                    let objects = objects.into_iter().map(|listed| self.listed(listed)).collect();
                    Ok(Page { objects, next })
                }
                Err(failure) if self.is_elsewhere(&failure) => Err(PageError::Elsewhere),
                Err(failure) => Err(PageError::Failed(self.advised(&failure))),
            }
        })
    }
}

impl Pages {
    fn listed(&self, listed: skidder_amazon::Listed) -> Listed<Wanted> {
        let skidder_amazon::Listed { key, etag, modified, .. } = listed;
        let place = ObjectPlace {
            bucket: self.settings.bucket.clone(),
            region: self.region.clone(),
            key,
            version: None,
        };
        let name = name_of(&place, &etag, modified);
        let listed = Some(ListedVersion { etag, modified });
        let arn = self.settings.arn.clone();
        let wanted = Wanted { place, arn, provider: String::new(), listed };
        Listed { name, modified, wanted }
    }

    /// Whether the server says that the bucket is in another region, which is taken then.
    fn is_elsewhere(&mut self, failure: &Failure) -> bool {
        let Failure::Refused(refused) = failure else { return false };
        let has_url = self.s3.settings.servers.endpoint.as_ref();
        let region = &refused.region;
        if has_url.is_some_and(Endpoint::is_url)
            || check_region(region).is_err()
            || *region == self.region
        {
            return false;
        }
        tracing::info!(
            bucket = self.name(),
            region,
            before = self.region,
            "the bucket is in this region"
        );
        self.region.clone_from(region);
        true
    }

    /// Why there is no page, with a remedy.
    fn advised(&self, failure: &Failure) -> String {
        let Failure::Refused(refused) = failure else { return failure.to_string() };
        let advice = match &*refused.code {
            "AccessDenied" => format!(
                "whoever has these credentials needs the right `s3:ListBucket` on `{}`",
                self.name()
            ),
            "NoSuchBucket" => "see `bucket_arn` or `non_aws_bucket_name`".to_owned(),
            _ => String::new(),
        };
        (**refused).clone().advised(advice).to_string()
    }
}
