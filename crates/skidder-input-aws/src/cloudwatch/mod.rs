//! The input `aws-cloudwatch`: events of groups of CloudWatch Logs, which are asked for again and again.
//!
//! ```text
//! groups by prefix ─▶ workers (`run.rs`) ─▶ a group's pages (`group.rs`) ─▶ what is new (`window.rs`) ─▶ events
//!                                                  │
//!                                                  └ at one pace (`pace.rs`), tried again (`calls.rs`)
//! ```
//!
//! Each group is a source. Its cursor is what was read of it, and moves behind the verdicts of its events. See
//! `docs/aws-cloudwatch.md`.

mod calls;
mod events;
mod group;
mod pace;
mod run;
mod settings;
mod slice;
mod window;

pub use settings::{AWS_CLOUDWATCH_INPUT, read};

use settings::Settings;
use skidder_input::{Input, InputFuture, Intake};
use std::fmt;
use std::sync::Arc;

/// The name of the type.
pub const KIND: &str = "aws-cloudwatch";

/// The input, ready to run on a tokio runtime with time and I/O enabled.
pub struct AwsCloudwatch {
    settings: Arc<Settings>,
    /// The groups.
    address: String,
}

impl AwsCloudwatch {
    fn new(settings: Settings) -> Self {
        let address = settings.address();
        Self { settings: Arc::new(settings), address }
    }
}

impl fmt::Debug for AwsCloudwatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("AwsCloudwatch").field(&self.settings).finish()
    }
}

impl Input for AwsCloudwatch {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn address(&self) -> Option<&str> {
        Some(&self.address)
    }

    fn has_cursors(&self) -> bool {
        true
    }

    fn run(self: Box<Self>, intake: Intake) -> InputFuture {
        Box::pin(run::run(self.settings, intake))
    }
}
