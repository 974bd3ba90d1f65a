//! The pages of a bucket for [`skidder_input_objects::poll`].

use crate::objects::{BucketObjects, Wanted, name_of};
use crate::settings::BucketSettings;
use skidder_google::{Failure, List, Listing, Storage};
use skidder_input_objects::{Bucket, Listed, Page, PageError, PageFuture, registry_prefix};
use std::sync::Arc;

/// A bucket.
pub(crate) struct Pages {
    pub(crate) storage: Storage,
    pub(crate) bucket: Arc<BucketSettings>,
}

impl Bucket for Pages {
    type Cloud = BucketObjects;

    fn name(&self) -> String {
        self.bucket.name.clone()
    }

    fn registry_prefix(&self) -> String {
        registry_prefix(&self.bucket.name, "")
    }

    fn page<'a>(&'a mut self, token: Option<&'a str>) -> PageFuture<'a, Wanted> {
        Box::pin(async move {
            let bucket = &self.bucket.name;
            let objects_max = self.bucket.listing.batch_size;
            let list = List { bucket, prefix: "", token, objects_max };
            match self.storage.list(list).await {
                Ok(Listing { objects, next }) => {
                    // Those whose names end so are folders, which have no content.
                    let files = objects.into_iter().filter(|object| !object.name.ends_with('/'));
                    let objects = files.map(|object| self.listed(object)).collect();
                    Ok(Page { objects, next })
                }
                Err(failure) => Err(PageError::Failed(advised(&failure, bucket))),
            }
        })
    }
}

impl Pages {
    fn listed(&self, object: skidder_google::Listed) -> Listed<Wanted> {
        let wanted = Wanted { bucket: self.bucket.name.as_str().into(), object };
        let name = name_of(&wanted);
        Listed { name, modified: wanted.object.updated, wanted }
    }
}

/// Why there is no page, with a remedy.
fn advised(failure: &Failure, bucket: &str) -> String {
    let Failure::Refused(refused) = failure else { return failure.to_string() };
    let advice = match refused.status {
        401 => {
            "see `auth.credentials_file.path` and `auth.credentials_json.account_key`".to_owned()
        }
        403 => format!(
            "whoever has these credentials needs the right `storage.objects.list` on `{bucket}`, as the role \
             Storage Object Viewer has it"
        ),
        404 => "see `buckets`".to_owned(),
        _ => String::new(),
    };
    (**refused).clone().advised(advice).to_string()
}
