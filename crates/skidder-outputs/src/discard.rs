//! `output.discard`: takes everything and delivers it to nobody, for load tests.
//!
//! Counts as delivered, as in Filebeat.

use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits};

/// The output that forgets.
#[derive(Debug, Default)]
pub struct Discard;

impl Output for Discard {
    fn kind(&self) -> &'static str {
        "discard"
    }

    fn run(self: Box<Self>, feed: Feed) -> OutputFuture {
        Box::pin(async move {
            let limits = TakeLimits { events: 0, bytes: usize::MAX };
            let mut deliveries = Vec::new();
            while feed.queue.take(limits, &mut deliveries).await {
                let mut events = 0;
                for delivery in deliveries.drain(..) {
                    delivery.ticket.delivered(delivery.len() as u32);
                    events += delivery.len() as u64;
                }
                feed.metrics.total.add(events);
                feed.metrics.acked.add(events);
                feed.metrics.batches.add(1);
            }
        })
    }
}
