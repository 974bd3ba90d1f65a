//! The inputs `aws-s3`, objects of buckets, as a queue announces them or a listing shows them, and `aws-cloudwatch`
//! ([`cloudwatch`]), events of log groups.
//!
//! ```text
//! queue of SQS ─▶ notifications ─┐
//!                                ├─▶ skidder-input-objects ─▶ events
//! bucket ─▶ pages (`polling.rs`) ─┘        │
//!                                          └ first answer (`objects.rs`), bytes (`store.rs`) ─ skidder-amazon ─ S3
//! ```
//!
//! An object is known in the registry by bucket, name, content and time, and goes on where it was settled, whatever named it.
//! A message is deleted behind the verdict of the last line of its last object (`queue.rs`). See
//! `docs/decisions/0038-amazon-without-its-sdk.md`.

mod backup;
pub mod cloudwatch;
mod ids;
mod messages;
mod metadata;
mod notifications;
mod objects;
mod polling;
mod queue;
mod servers;
mod settings;
mod store;

pub use notifications::{NamedObject, ParseNotifications};
pub use settings::{AWS_S3_INPUT, AWS_S3_OBJECT, Selector, read};

use objects::{Objects, S3};
use settings::{Place, Settings};
use skidder_input::{Input, InputFuture, Intake};
use skidder_os::Fs;
use std::fmt;
use std::sync::Arc;
use store::Clients;

/// The name of the type.
pub const KIND: &str = "aws-s3";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct AwsS3 {
    settings: Arc<Settings>,
    fs: Arc<dyn Fs>,
    /// The queue or bucket.
    address: String,
    /// Reads the messages of a queue instead of this crate.
    script: Option<Arc<dyn ParseNotifications>>,
}

impl AwsS3 {
    fn new(settings: Settings, fs: Arc<dyn Fs>) -> Self {
        let address = match &settings.place {
            Place::Queue(queue) => queue.url.text.clone(),
            Place::Bucket(bucket) => format!("{}/{}", bucket.bucket.text(), bucket.prefix),
        };
        Self { settings: Arc::new(settings), fs, address, script: None }
    }

    /// Whether it reads a queue.
    pub fn reads_queue(&self) -> bool {
        matches!(self.settings.place, Place::Queue(_))
    }

    /// The same with a script that reads the messages of its queue.
    #[must_use]
    pub fn with_script(self, script: Arc<dyn ParseNotifications>) -> Self {
        Self { script: Some(script), ..self }
    }
}

impl fmt::Debug for AwsS3 {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("AwsS3").field(&self.settings).finish()
    }
}

impl Input for AwsS3 {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn makes_fields(&self) -> bool {
        self.settings.selectors.iter().any(|selector| selector.of.makes_fields())
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
            let Self { settings, fs, script, .. } = *self;
            let (metrics, clock) = (Arc::clone(intake.metrics()), Arc::clone(intake.clock()));
            let clients = Clients::new(settings.servers.clone(), metrics, clock, settings.workers);
            let selectors = settings.selectors.iter().map(|selector| selector.of.clone());
            let selectors: Vec<_> = selectors.collect();
            let s3 = Arc::new(S3 { settings: Arc::clone(&settings), clients });
            let objects = Objects::new(intake, s3, selectors, fs)?;
            match &settings.place {
                Place::Queue(queue) => queue::run(objects, queue, script).await,
                Place::Bucket(bucket) => {
                    polling::run(objects, Arc::clone(bucket)).await;
                    Ok(())
                }
            }
        })
    }
}
