//! Batches and deliveries for unit tests and benchmarks.

use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_pipeline::{Delivery, Queue, QueueLimits, Settle, TakeLimits};
use std::sync::Arc;

/// 2026-01-02 03:04:05 UTC.
const TIME: i64 = 1_767_323_045_000_000_000;

/// One batch of these lines.
pub fn batch_with(lines: &[&str], fields: &Map, metadata: &Map) -> Batch {
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
pub fn deliveries(batches: Vec<Batch>) -> Vec<Delivery> {
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

/// Events of [`access_log`].
pub const ACCESS_LOG_ROWS: usize = 1600;

/// Lines of an access log: 240 bytes on average, every field varies.
fn lines() -> Vec<String> {
    let mut random = 7_u64;
    let mut next = move |bound: u64| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    let agents = [
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36",
        "curl/8.11.0",
        "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148",
    ];
    (0..ACCESS_LOG_ROWS)
        .map(|_| {
            let (a, b, c, d) = (next(255), next(255), next(255), next(255));
            let (hour, minute, second) = (next(24), next(60), next(60));
            let (page, size, agent) = (next(100_000), next(1_000_000), next(3) as usize);
            format!(
                "{a}.{b}.{c}.{d} - - [02/Jan/2026:{hour:02}:{minute:02}:{second:02} +0000] \
                 \"GET /shop/item/{page}?ref=mail HTTP/1.1\" 200 {size} \
                 \"https://example.org/list/{}\" \"{}\"",
                page / 7,
                agents[agent]
            )
        })
        .collect()
}

fn base() -> Arc<Base> {
    let mut fields = Map::new();
    for (path, value) in [
        ("agent.ephemeral_id", "5f2c1c1e-6e2a-4b29-9a0e-0d9f6f1b8d1a"),
        ("agent.id", "0f2cfb1f-21ea-4e4b-8b0c-4c5b6b9e33d7"),
        ("agent.name", "web-03.example.org"),
        ("agent.type", "filebeat"),
        ("agent.version", "9.5.0"),
        ("ecs.version", "8.0.0"),
        ("host.name", "web-03.example.org"),
        ("input.type", "filestream"),
        ("log.file.path", "/var/log/nginx/access.log"),
        ("log.file.device_id", "64769"),
        ("log.file.inode", "1573921"),
        (
            "log.file.fingerprint",
            "2edc986847e209b4016e141a6dc8716d3207350f416969382d431539bf292e4a",
        ),
    ] {
        fields.insert_path(path, value);
    }
    Arc::new(Base::new(&fields, &Map::new()))
}

/// [`ACCESS_LOG_ROWS`] events of an access log as a worker takes them, with the fields that skidder adds to each; and the
/// bytes of their lines.
pub fn access_log() -> (Delivery, usize) {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for line in lines() {
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        rows.push(Row::new(bytes.len() as u64, text.len + 1, text, 1_795_294_377_123_000_000));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let size = bytes.len();
    let provenance = Provenance::new(SourceId(1), 0..size as u64);
    let mut batch = Batch::new(bytes, true, base(), provenance);
    for row in rows {
        batch.push(row);
    }
    let queue = Queue::new(QueueLimits::default(), Settle::new());
    assert!(queue.push(batch).is_ok(), "the queue is open");
    let mut taken = Vec::new();
    queue.try_take(TakeLimits { events: 0, bytes: usize::MAX }, &mut taken);
    (taken.remove(0), size)
}
