//! The input `gcs`: objects of buckets of Google Cloud Storage, as listings show them.
//!
//! ```text
//! each bucket ─▶ pages (`pages.rs`) ─▶ skidder-input-objects ─▶ json_data (`json.rs`) ─▶ events
//!                                            │
//!                    first answer, bytes (`objects.rs`) ─ skidder-google ─ Cloud Storage
//! ```
//!
//! An object is known in the registry by bucket, name and generation, and goes on where it was settled. See
//! `docs/decisions/0039-google-without-its-sdk.md`.

mod json;
mod objects;
mod pages;
mod settings;

pub use settings::{BucketSettings, GCS_BUCKET, GCS_INPUT, Listing, Reading, read};

use objects::BucketObjects;
use pages::Pages;
use settings::Settings;
use skidder_google::{Service, Storage};
use skidder_input::{Input, InputFuture, Intake};
use skidder_input_objects::{Metered, Objects, Poller, poll};
use skidder_os::Fs;
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "gcs";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct Gcs {
    settings: Settings,
    fs: Arc<dyn Fs>,
    /// The names of the buckets.
    address: String,
}

impl Gcs {
    fn new(settings: Settings, fs: Arc<dyn Fs>) -> Self {
        let names: Vec<&str> = settings.buckets.iter().map(|bucket| &*bucket.name).collect();
        let address = names.join(",");
        Self { settings, fs, address }
    }
}

impl fmt::Debug for Gcs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Gcs").field(&self.settings).finish()
    }
}

impl Input for Gcs {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn has_cursors(&self) -> bool {
        true
    }

    // Its objects have cursors, which two runs at once would move.
    fn has_a_name(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let Self { settings, fs, address } = *self;
            let _first = intake.metrics().objects().url.set(format!("gs://{address}"));
            let mut pollers = Vec::with_capacity(settings.buckets.len());
            for bucket in settings.buckets {
                let bucket = Arc::new(bucket);
                let meter = Arc::new(Metered(Arc::clone(intake.metrics())));
                let service =
                    Service { timeout: bucket.listing.timeout, ..settings.service.clone() };
                let clock = Arc::clone(intake.clock());
                let client = service.client(meter, clock, bucket.listing.workers);
                let storage = Storage::new(client);
                let selector = bucket.reading.selector.clone();
                let cloud = BucketObjects { storage: storage.clone(), bucket: Arc::clone(&bucket) };
                let objects =
                    Objects::new(intake.clone(), Arc::new(cloud), [selector], Arc::clone(&fs))?;
                let polling = bucket.listing.polling();
                pollers.push(Poller::new(objects, Pages { storage, bucket }, polling));
            }
            poll(&intake, pollers).await;
            Ok(())
        })
    }
}
