//! The cost of processors for each event, and their allocations. The parts that each event has to
//! itself (the batch, its bytes and rows) are made outside the measured time.

use divan::counter::ItemsCount;
use skidder_config::{Problems, Settings};
use skidder_event::*;
use skidder_os::{RealFs, SystemClock};
use skidder_processors::*;
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const ROWS: usize = 1000;

/// What Filebeat's own `filebeat.yml` has.
const DEFAULT: &str = "
processors:
  - add_host_metadata:
      when.not.contains.tags: forwarded
";

/// What a user may add to it: half of it depends on the line.
const MIXED: &str = "
processors:
  - drop_event.when.contains.message: 'GET /health'
  - add_fields: {target: '', fields: {env: prod, team: shop}}
  - add_tags:
      tags: [error]
      when.regexp.message: '\" 5[0-9]{2} '
  - rename: {fields: [{from: message, to: event.original}]}
  - drop_fields: {fields: [log.offset, agent.ephemeral_id, ecs]}
";

/// Ten processors that look at every line.
const TEN: &str = r#"
processors:
  - dissect:
      tokenizer: '%{source.ip} %{} %{user.name} [%{time}] "%{http.request.method} %{url.original} HTTP/%{http.version}" %{http.response.status_code} %{http.response.body.bytes} "%{http.request.referrer}" "%{user_agent.original}"'
      target_prefix: ''
  - timestamp: {field: time, layouts: ['02/Jan/2006:15:04:05 -0700']}
  - convert:
      fields: [{from: http.response.status_code, type: long}, {from: http.response.body.bytes, type: long}]
  - rename: {fields: [{from: url.original, to: url.path}]}
  - drop_fields: {fields: [time]}
  - add_fields:
      target: ''
      fields: {source.port: 51000, destination: {ip: 10.0.0.1, port: 443}, network.transport: tcp, team: shop}
  - add_tags:
      tags: [error]
      when.regexp.message: '" 5[0-9]{2} '
  - community_id:
  - urldecode: {fields: [{from: url.path, to: url.path}]}
  - truncate_fields: {fields: [user_agent.original], max_bytes: 32}
"#;

/// One of the ten alone.
const DISSECT: &str = r#"
processors:
  - dissect: {tokenizer: '%{ip} %{} %{} [%{time}] "%{request}" %{status} %{bytes} "%{referrer}" "%{agent}"'}
"#;

/// The time of a line.
const TIMESTAMP: &str = r"
processors:
  - dissect: {tokenizer: '%{}[%{time}]%{}'}
  - timestamp: {field: dissect.time, layouts: ['02/Jan/2006:15:04:05 -0700']}
";

/// JSON to the root, as behind the parser of container logs.
const JSON: &str = "
processors:
  - decode_json_fields: {fields: [message], target: ''}
";

/// JSON to a field of its own.
const JSON_FIELD: &str = "
processors:
  - decode_json_fields: {fields: [message], target: app}
";

fn main() {
    divan::main();
}

fn plan(yaml: &str) -> Plan {
    let settings = Settings::parse("bench.yml", yaml).expect("the text above is YAML");
    let problems = Problems::new();
    let context = Context::new(Arc::new(RealFs), Arc::new(SystemClock::new()));
    let global = read_processors(settings.root(&problems).items("processors"), &context);
    assert!(problems.is_empty(), "{problems}");
    let mut builtin = Map::new();
    for (name, text) in [
        ("agent.ephemeral_id", "3c1a5f2e-8d0b-4e7a-9b61-0f4f4f6f2a11"),
        ("agent.id", "8f14e45f-ceea-467f-a0e6-5b1f5a2d9c33"),
        ("agent.name", "web-17"),
        ("agent.type", "filebeat"),
        ("agent.version", "9.5.3"),
        ("ecs.version", "8.0.0"),
        ("host.name", "web-17"),
    ] {
        builtin.insert_path(name, text);
    }
    Plan::compile(&[], &builtin, &global)
}

fn fields() -> Map {
    let mut fields = Map::new();
    fields.insert_path("input.type", "filestream");
    fields.insert_path("log.file.path", "/var/log/app/access.log");
    fields.insert_path("log.file.inode", "1837465");
    fields
}

/// A line of an access log.
fn access(number: usize) -> String {
    let (path, status) = match number % 20 {
        0 => ("/health", 200),
        7 => ("/shop/pay", 503),
        _ => ("/shop/item", 200),
    };
    format!(
        "10.1.{}.7 - - [21/Nov/2026:20:52:57 +0000] \"GET {path}?n={number} HTTP/1.1\" {status} \
         {} \"https://example.org/shop\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko\"",
        number % 250,
        number * 37
    )
}

/// A line of about 300 bytes of JSON.
fn json(number: usize) -> String {
    format!(
        "{{\"level\":\"info\",\"logger\":\"shop.orders.api\",\"thread\":\"worker-{}\",\"msg\":\"order accepted and \
         queued for payment\",\"order\":{{\"id\":{number},\"customer\":\"c-{}\",\"items\":3,\"total\":{}.95}},\
         \"http\":{{\"method\":\"POST\",\"path\":\"/shop/order\",\"status\":201,\"duration_ms\":{}}},\
         \"trace_id\":\"4bf92f3577b34da6a3ce929d0e0e4736\",\"sampled\":true}}",
        number % 16,
        number * 7919 % 100_000,
        number % 500,
        number % 90
    )
}

fn batch(base: &Arc<Base>, line: fn(usize) -> String) -> Batch {
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for number in 0..ROWS {
        let line = line(number);
        let text = Text { start: bytes.len() as u32, len: line.len() as u32 };
        rows.push(Row::new(u64::from(text.start), text.len + 1, text, 1_795_294_377_123_000_000));
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    let provenance = Provenance::new(SourceId(1), 0..bytes.len() as u64);
    let mut batch = Batch::new(bytes, true, Arc::clone(base), provenance);
    for row in rows {
        batch.push(row);
    }
    batch
}

fn run(bencher: divan::Bencher<'_, '_>, yaml: &str, shape: Shape) {
    run_on(bencher, yaml, shape, access);
}

fn run_on(bencher: divan::Bencher<'_, '_>, yaml: &str, shape: Shape, line: fn(usize) -> String) {
    let bound = plan(yaml).bind(&fields(), &Map::new(), shape);
    bencher
        .counter(ItemsCount::new(ROWS))
        .with_inputs(|| batch(bound.input_base(), line))
        .bench_local_refs(|batch| bound.run(batch));
}

#[divan::bench]
fn default_list_on_lines(bencher: divan::Bencher<'_, '_>) {
    run(bencher, DEFAULT, Shape::Lines);
}

#[divan::bench]
fn default_list_behind_parsers(bencher: divan::Bencher<'_, '_>) {
    run(bencher, DEFAULT, Shape::Any);
}

#[divan::bench]
fn mixed_list_on_lines(bencher: divan::Bencher<'_, '_>) {
    run(bencher, MIXED, Shape::Lines);
}

#[divan::bench]
fn mixed_list_behind_parsers(bencher: divan::Bencher<'_, '_>) {
    run(bencher, MIXED, Shape::Any);
}

#[divan::bench]
fn ten_on_lines(bencher: divan::Bencher<'_, '_>) {
    run(bencher, TEN, Shape::Lines);
}

#[divan::bench]
fn dissect_on_lines(bencher: divan::Bencher<'_, '_>) {
    run(bencher, DISSECT, Shape::Lines);
}

#[divan::bench]
fn timestamp_on_lines(bencher: divan::Bencher<'_, '_>) {
    run(bencher, TIMESTAMP, Shape::Lines);
}

#[divan::bench]
fn json_to_the_root(bencher: divan::Bencher<'_, '_>) {
    run_on(bencher, JSON, Shape::Any, json);
}

#[divan::bench]
fn json_to_a_field(bencher: divan::Bencher<'_, '_>) {
    run_on(bencher, JSON_FIELD, Shape::Lines, json);
}

#[divan::bench]
fn binding_a_source(bencher: divan::Bencher<'_, '_>) {
    let plan = plan(MIXED);
    bencher.bench_local(|| plan.bind(&fields(), &Map::new(), Shape::Lines));
}
