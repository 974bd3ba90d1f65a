//! `output.discard`: accepts all events and drops them, for load tests.
//!
//! Counts as delivered, as in Filebeat.

use crate::settings::EVERY_OUTPUT;
use skidder_config::{Group, settings};
use skidder_pipeline::{Feed, Output, OutputFuture, TakeLimits, Ticket};

settings! {
    /// Settings of `output.discard`.
    pub static DISCARD = Group::new("output.discard", "Everything counts as delivered: for load tests.")
        .include(&[&EVERY_OUTPUT]);
}

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
                for delivery in &deliveries {
                    events += delivery.len() as u64;
                }
                let verdicts = deliveries.iter();
                Ticket::deliver_all(
                    verdicts.map(|delivery| (&*delivery.ticket, delivery.len() as u32)),
                );
                deliveries.clear();
                feed.metrics.total.add(events);
                feed.metrics.acked.add(events);
                feed.metrics.batches.add(1);
            }
        })
    }
}
