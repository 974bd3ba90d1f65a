//! The input `azure-blob-storage`: blobs of containers, as listings show them.
//!
//! ```text
//! container ─▶ pages (`polling.rs`) ─▶ skidder-input-objects ─▶ events
//!                                          │
//!                                          └ first answer (`blobs.rs`), bytes (`store.rs`) ─ skidder-azure ─ Azure
//! ```
//!
//! A blob is known in the registry by account, container, name and `etag`, and goes on where it was settled. Each container of
//! the settings is listed for itself, with workers of its own. See `docs/decisions/0040-azure-without-its-sdk.md`.

mod blobs;
mod ids;
mod polling;
mod settings;
mod store;

pub use settings::{
    AZURE_BLOB_INPUT, AZURE_BLOB_READING, AZURE_LISTING, BlobReading, ContainerSettings,
    ListingOptions, read,
};

use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use skidder_os::Fs;
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "azure-blob-storage";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct AzureBlobs {
    settings: Settings,
    fs: Arc<dyn Fs>,
    /// The account, and its containers.
    address: String,
}

impl AzureBlobs {
    fn new(settings: Settings, fs: Arc<dyn Fs>) -> Self {
        let names: Vec<&str> =
            settings.containers.iter().map(|container| &*container.name).collect();
        let address = format!("{}/{}", settings.url, names.join(","));
        Self { settings, fs, address }
    }
}

impl fmt::Debug for AzureBlobs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("AzureBlobs").field(&self.settings).finish()
    }
}

impl Input for AzureBlobs {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn makes_fields(&self) -> bool {
        self.settings.containers.iter().any(|container| container.blobs.selector.makes_fields())
    }

    fn has_cursors(&self) -> bool {
        true
    }

    // Its blobs have cursors, which two runs at once would move.
    fn has_a_name(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(async move {
            let Self { settings, fs, address } = *self;
            let _first = intake.metrics().objects().url.set(address);
            polling::run(&intake, settings, &fs).await
        })
    }
}
