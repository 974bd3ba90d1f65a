//! What the unit tests of this crate share.

use crate::context::Context;
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_pipeline::{Delivery, Queue, QueueLimits, Settle, TakeLimits};
use std::sync::Arc;

/// 2026-01-02 03:04:05 UTC.
const TIME: i64 = 1_767_323_045_000_000_000;

pub(crate) fn context() -> Context {
    Context::sample()
}

/// One batch of these lines.
pub(crate) fn batch_with(lines: &[&str], fields: &Map, metadata: &Map) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for line in lines {
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        rows.push(Row::new(bytes.len() as u64, line.len() as u32 + 1, text, TIME));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let base = Arc::new(Base::new(fields, metadata));
    let mut batch = Batch::new(bytes, true, base, provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

/// The batches as a worker takes them from a queue.
pub(crate) fn deliveries(batches: Vec<Batch>) -> Vec<Delivery> {
    let limits = QueueLimits {
        events: usize::MAX,
        bytes: usize::MAX,
        flush_min_events: 0,
        ..QueueLimits::default()
    };
    let queue = Queue::new(limits, Settle::new());
    for batch in batches {
        queue.push(batch).expect("the queue is open");
    }
    let mut taken = Vec::new();
    while queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken) {}
    taken
}
