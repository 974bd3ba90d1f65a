//! Encoding and escaping: bytes of log text per second and allocations per event.

use divan::counter::{BytesCount, ItemsCount};
use skidder_event::*;
use std::hint::black_box;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const ROWS: usize = 1000;

fn main() {
    divan::main();
}

fn lines() -> Vec<String> {
    let apache = |n| {
        format!(
            "10.1.{}.7 - - [21/Nov/2026:20:52:57 +0000] \"GET /shop/item/{n}?ref=home HTTP/1.1\" 200 {} \
             \"https://example.org/shop\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 \
             Firefox/140.0\"",
            n % 250,
            n * 37
        )
    };
    let json = |n| {
        format!(
            "{{\"@timestamp\":\"2026-11-21T20:52:57.{:03}Z\",\"log.level\":\"info\",\"message\":\
             \"order {n} accepted\",\"service.name\":\"checkout\",\"trace.id\":\"{:032x}\",\
             \"user\":{{\"id\":{n},\"name\":\"user-{n}\"}}}}",
            n % 1000,
            n * 7919
        )
    };
    (0..ROWS).map(|n| if n % 2 == 0 { apache(n) } else { json(n) }).collect()
}

fn base() -> Arc<Base> {
    let mut fields = Map::new();
    fields.insert_path("agent.ephemeral_id", "3c1a5f2e-8d0b-4e7a-9b61-0f4f4f6f2a11");
    fields.insert_path("agent.id", "8f14e45f-ceea-467f-a0e6-5b1f5a2d9c33");
    fields.insert_path("agent.name", "web-17.example.org");
    fields.insert_path("agent.type", "filebeat");
    fields.insert_path("agent.version", "9.5.3");
    fields.insert_path("ecs.version", "8.0.0");
    fields.insert_path("host.name", "web-17.example.org");
    fields.insert_path("input.type", "filestream");
    fields.insert_path("log.file.device_id", "64768");
    fields.insert_path("log.file.fingerprint", "9f86d081884c7d659a2feaa0c55ad015".repeat(2));
    fields.insert_path("log.file.inode", "1837465");
    fields.insert_path("log.file.path", "/var/log/app/access.log");
    Arc::new(Base::new(&fields, &Map::new()))
}

fn batch() -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for line in lines() {
        let start = bytes.len() as u32;
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let text = Text { start, len: line.len() as u32 };
        rows.push(Row::new(u64::from(start), text.len + 1, text, 1_795_294_377_123_000_000));
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, base(), provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

#[divan::bench]
fn untouched_events(bencher: divan::Bencher) {
    let batch = batch();
    let mut encoder = Encoder::new(Precision::Millisecond);
    let mut out = Vec::with_capacity(4 << 20);
    bencher
        .counter(BytesCount::new(batch.provenance().bytes()))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| {
            out.clear();
            for row in 0..batch.len() {
                encoder.write(&mut out, black_box(&batch), row);
            }
        });
}

#[divan::bench]
fn events_with_a_field_of_their_own(bencher: divan::Bencher) {
    let mut batch = batch();
    let base = batch.base().clone();
    let path = Path::parse("event.kind").expect("a path");
    for row in 0..batch.len() {
        batch.event_mut(row, &base).put(&path, &Value::from("event")).expect("free to set");
    }
    let mut encoder = Encoder::new(Precision::Millisecond);
    let mut out = Vec::with_capacity(4 << 20);
    bencher
        .counter(BytesCount::new(batch.provenance().bytes()))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| {
            out.clear();
            for row in 0..batch.len() {
                encoder.write(&mut out, black_box(&batch), row);
            }
        });
}

#[divan::bench]
fn escaping_alone(bencher: divan::Bencher) {
    let text = lines().join("\n");
    let mut out = Vec::with_capacity(4 << 20);
    bencher.counter(BytesCount::new(text.len())).bench_local(|| {
        out.clear();
        write_string(&mut out, black_box(text.as_bytes()), true);
    });
}
