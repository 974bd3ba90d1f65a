//! Events to bulk bodies, to windows of Lumberjack and to requests of OTLP: what a worker does between the queue and the socket.
//!
//! Bytes are those of the log lines, without the metadata that is added to each.

use divan::black_box;
use divan::counter::{BytesCount, ItemsCount};
use skidder_event::{Base, Batch, Map, Provenance, Row, SourceId, Text};
use skidder_outputs::Context;
use skidder_outputs::elasticsearch::{BulkBench, Config, parse_host};
use skidder_outputs::logstash::FrameBench;
use skidder_outputs::otlp::{self, Compression, ExportBench};
use skidder_pipeline::{Delivery, Queue, QueueLimits, Settle, TakeLimits};
use std::sync::Arc;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

/// Events of one request.
const ROWS: usize = 1600;

fn main() {
    divan::main();
}

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
    (0..ROWS)
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

/// One request's worth of events, and the bytes of their lines.
fn delivery() -> (Delivery, usize) {
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

fn context() -> Context {
    Context::sample()
}

/// A window of 1600 events for Logstash at this level; beside `request_at_compression_level` 0 it is the frames.
#[divan::bench(args = [0, 1, 3])]
fn window_at_compression_level(bencher: divan::Bencher<'_, '_>, level: u32) {
    let (delivery, size) = delivery();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut bench = FrameBench::new(&context(), level);
    bencher
        .counter(BytesCount::new(size))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| runtime.block_on(bench.write(black_box(&delivery))));
}

/// A request of 1600 events for a collector; beside `request_at_compression_level` 0 and 1 it is Protocol Buffers.
#[divan::bench(args = [Compression::None, Compression::Gzip, Compression::Zstd])]
fn export_in_codec(bencher: divan::Bencher<'_, '_>, compression: Compression) {
    let (delivery, size) = delivery();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut config = otlp::Config::new(Vec::new());
    config.compression = compression;
    let mut bench = ExportBench::new(&config, &context());
    bencher
        .counter(BytesCount::new(size))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| runtime.block_on(bench.encode(black_box(&delivery))));
}

#[expect(clippy::print_stderr, reason = "speed without the ratio says little")]
/// A request of 1600 events, encoded, compressed at this level, and its buffers given back.
#[divan::bench(args = [0, 1, 3, 6])]
fn request_at_compression_level(bencher: divan::Bencher<'_, '_>, level: u32) {
    let (delivery, size) = delivery();
    let context = context();
    let host = parse_host("localhost", "http", "").expect("a host");
    let mut config = Config::new(vec![host]);
    config.compression_level = level;
    let mut bench = BulkBench::new(&config, &context);
    let (plain, sent) = bench.encode(&delivery);
    eprintln!("level {level}: {size} bytes of lines, {plain} in the body, {sent} sent");
    bencher
        .counter(BytesCount::new(size))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| bench.encode(black_box(&delivery)));
}
