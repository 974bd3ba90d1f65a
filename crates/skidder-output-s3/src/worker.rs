//! The second half of the output: makes an object of what was gathered, and puts it until it is there.

use super::answer::Next;
use super::client::BucketClient;
use super::object::{Maker, Object};
use super::ready::{Closed, Ready};
use skidder_amazon::{Failure, Refused};
use skidder_outputs::{Backoff, Failures, Refusal, Refuser};
use skidder_pipeline::OutputMetrics;
use std::sync::Arc;

/// Puts one object after the other.
pub(crate) struct Worker {
    pub(crate) client: BucketClient,
    pub(crate) maker: Maker,
    pub(crate) ready: Arc<Ready>,
    pub(crate) refuser: Arc<Refuser>,
    pub(crate) metrics: Arc<OutputMetrics>,
    pub(crate) backoff: Backoff,
    pub(crate) failures: Failures,
}

impl Worker {
    /// Until there will be no more objects.
    pub(crate) async fn run(mut self) {
        let ready = Arc::clone(&self.ready);
        while let Some(closed) = ready.pop().await {
            let mut left = vec![closed];
            while let Some(closed) = left.pop() {
                if let Some((first, second)) = self.deliver(closed).await {
                    left.push(second);
                    left.push(first);
                }
            }
            ready.settled();
        }
    }

    /// Gives every event its verdict; or two halves, if the whole is too large for the server.
    async fn deliver(&mut self, closed: Closed) -> Option<(Closed, Closed)> {
        let (object, refusals) = self.maker.make(&closed).await;
        let closed = if refusals.is_empty() { closed } else { closed.without(&refusals) };
        self.refuser.settle(refusals).await;
        if closed.events == 0 {
            return None;
        }
        let Some(refused) = self.put(&object).await else {
            object.deliver();
            self.metrics.acked.add(object.events as u64);
            return None;
        };
        if Next::of(&refused) == Next::Smaller && closed.events > 1 {
            self.metrics.split.add(1);
            return Some(closed.halves());
        }
        let reason = refused.to_string().into_bytes();
        let mut refusals = Vec::new();
        for part in closed.parts {
            refusals.extend(part.rows.clone().map(|row| Refusal {
                delivery: part.clone(),
                row,
                status: refused.status,
                reason: reason.clone(),
                id: None,
            }));
        }
        self.refuser.settle(refusals).await;
        None
    }

    /// Puts an object until it is there. Returns the reason if it never will be.
    async fn put(&mut self, object: &Object) -> Option<Refused> {
        let events = object.events as u64;
        loop {
            self.metrics.total.add(events);
            self.metrics.batches.add(1);
            let active = self.metrics.hold_active(events);
            let put = self.client.put(object).await;
            drop(active);
            let failure = match put {
                Ok(()) => {
                    self.succeed();
                    return None;
                }
                Err(Failure::Refused(refused))
                    if matches!(Next::of(&refused), Next::Smaller | Next::Never) =>
                {
                    return Some(*refused);
                }
                Err(failure) => failure,
            };
            if let Failure::Refused(refused) = &failure
                && Next::of(refused) == Next::Slower
            {
                self.metrics.too_many.add(events);
            }
            self.metrics.failed.add(events);
            let place = format!("bucket `{}`", self.client.config.bucket);
            self.metrics.write_error(place, &failure);
            if let Some(failures) = self.failures.add() {
                let (bucket, key) = (&self.client.config.bucket, &object.key);
                tracing::error!(
                    bucket, key, error = %failure, events, bytes = object.bytes(), failures,
                    "cannot put an object; trying again"
                );
            }
            tokio::time::sleep(self.backoff.next_wait()).await;
        }
    }

    fn succeed(&mut self) {
        self.backoff.reset();
        let failures = self.failures.clear();
        if failures > 0 {
            let bucket = &self.client.config.bucket;
            tracing::info!(bucket, failures, "objects are put again");
        }
    }
}
