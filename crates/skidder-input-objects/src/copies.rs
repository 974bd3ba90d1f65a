//! Objects that are to be copied behind the verdict of their last line.

use crate::cloud::{Cloud, Sent, Wanted as _};
use crate::objects::Objects;
use skidder_input::Intake;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tracing::Instrument as _;

/// Pause between two looks whether an object is settled that is to be copied.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Objects that wait for being copied: reading waits at this bound.
const COPYING_MAX: usize = 1000;
/// How long a stop waits for objects that are to be copied.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// See the module's text.
pub(crate) struct Copies {
    /// There are so many tasks that copy at most.
    room: Arc<Semaphore>,
    tasks: Mutex<JoinSet<()>>,
}

impl Copies {
    pub(crate) fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(COPYING_MAX)), tasks: Mutex::default() }
    }

    /// Copies an object when it is settled, if the settings say so.
    pub(crate) async fn add<C: Cloud>(&self, objects: &Arc<Objects<C>>, sent: Sent<C::Wanted>) {
        if !objects.cloud.has_backup() {
            return;
        }
        let permit = tokio::select! {
            biased;
            () = objects.intake.stopped() => return,
            permit = Arc::clone(&self.room).acquire_owned() => permit,
        };
        let objects = Arc::clone(objects);
        let work = async move { copy(&objects, sent, permit.ok()).await };
        self.lock().spawn(work.in_current_span());
    }

    /// Forgets tasks that have ended.
    pub(crate) fn tidy(&self) {
        while self.lock().try_join_next().is_some() {}
    }

    /// Waits for objects that are to be copied: all of them, or for some time if the input was stopped.
    pub(crate) async fn finish(&self, intake: &Intake) {
        let late = async {
            intake.stopped().await;
            tokio::time::sleep(STOP_WAIT).await;
        };
        let copied = async {
            while self.room.available_permits() < COPYING_MAX {
                intake.flush();
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::select! {
            () = copied => {}
            () = late => {}
        }
        let mut tasks = std::mem::take(&mut *self.lock());
        tasks.shutdown().await;
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn copy<C: Cloud>(
    objects: &Objects<C>,
    sent: Sent<C::Wanted>,
    _permit: Option<OwnedSemaphorePermit>,
) {
    let is_settled = || sent.source.is_none_or(|id| objects.settle.is_settled(id));
    while !is_settled() {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    if let Err(error) = objects.cloud.back_up(&sent).await {
        objects.intake.metrics().failed(sent.wanted.key(), &error);
        tracing::error!(
            bucket = sent.wanted.bucket(),
            error,
            "all of an object was sent, but it stays where it is"
        );
    }
}
