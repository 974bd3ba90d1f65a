//! `skidder tune`: an output with other sizes than the configured ones, at a place where that does no harm.

use skidder_pipeline::Output;
use std::pin::Pin;
use std::sync::Arc;

/// Sizes that are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialSizes {
    /// `worker`: requests under way at once, to each host.
    pub workers: usize,
    /// `bulk_max_size`: most events of a request.
    pub events: usize,
    /// `compression_level`.
    pub level: u32,
}

/// Settings with these sizes, which stand in them at `places`.
pub fn sized<C: Clone>(
    config: &C,
    sizes: TrialSizes,
    places: fn(&mut C) -> (&mut usize, &mut usize, &mut u32),
) -> Arc<C> {
    let mut config = config.clone();
    let (workers, events, level) = places(&mut config);
    (*workers, *events, *level) = (sizes.workers, sizes.events, sizes.level);
    Arc::new(config)
}

/// The trials of an output by `skidder tune`, or why there are none.
pub type Tuning = Result<Box<dyn Tunable>, &'static str>;

/// An output whose sizes `skidder tune` tries.
pub trait Tunable: Send {
    /// A trial of this output in the index with this name, which must not be there; with or without the ingest
    /// pipelines of the configuration. `really_send`: also if the events go where all events go.
    ///
    /// # Errors
    ///
    /// Why there is no trial.
    fn trial(
        &self,
        index: &str,
        pipelines: bool,
        really_send: bool,
    ) -> Result<Box<dyn Trial>, &'static str>;
}

/// An output at a place where events do no harm.
pub trait Trial {
    /// The output with these sizes.
    fn output(&self, sizes: TrialSizes) -> Box<dyn Output>;

    /// Whether more than one worker can be at work.
    fn has_workers(&self) -> bool;

    /// Whether it has a place of its own, which must be removed.
    fn has_place(&self) -> bool {
        false
    }

    /// Makes the place of the trial, empty, inside a tokio runtime.
    fn prepare(&self) -> TrialFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Removes the place of the trial with all that is in it, if it is there, inside a tokio runtime.
    fn remove(&self) -> TrialFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Makes or removes the place of a trial.
pub type TrialFuture<'a> = Pin<Box<dyn Future<Output = Result<(), TrialError>> + 'a>>;

/// The server does not make or remove the place of a trial.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TrialError(pub String);
