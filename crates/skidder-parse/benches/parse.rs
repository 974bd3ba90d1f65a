//! Parsers: time per line and allocations, and JSON lines as fields against the same lines as plain text.

use divan::counter::{BytesCount, ItemsCount};
use jiff::tz::TimeZone;
use skidder_event::*;
use skidder_parse::time::TimeReader;
use skidder_parse::{auditd, cri, docker, json, ndjson, syslog};
use std::hint::black_box;
use std::sync::{Arc, Mutex};

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

const ROWS: usize = 1000;

fn main() {
    divan::main();
}

/// Lines of a service: nine keys, one object inside, an escape in every tenth line, about 300 bytes.
fn service(n: usize) -> String {
    format!(
        "{{\"@timestamp\":\"2026-11-21T20:52:57.{:03}Z\",\"log.level\":\"info\",\"message\":\"order {n} \
         accepted{}\",\"service.name\":\"checkout\",\"trace.id\":\"{:032x}\",\"duration_ms\":{}.{},\
         \"cached\":{},\"user\":{{\"id\":{n},\"name\":\"user-{n}\",\"country\":\"NZ\"}},\"logger\":\
         \"org.example.shop.OrderService\"}}",
        n % 1000,
        if n.is_multiple_of(10) { " by \\\"shop\\\"" } else { "" },
        n * 7919,
        n % 80,
        n % 10,
        n.is_multiple_of(3)
    )
}

/// Lines as Python's `json.dumps` and large loggers write them: spaces, twenty keys, lists, about 550 bytes.
fn wide(n: usize) -> String {
    format!(
        "{{\"time\": \"2026-11-21T20:52:57.{:03}Z\", \"level\": \"INFO\", \"logger\": \"api.access\", \
         \"host\": {{\"name\": \"web-17\"}}, \"method\": \"GET\", \"path\": \"/shop/item/{n}\", \"status\": 200, \
         \"bytes\": {}, \"remote\": \"10.1.{}.7\", \"referer\": \"https://example.org/shop\", \"agent_text\": \
         \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\", \"took\": 0.0{}, \
         \"tags_list\": [\"a\", \"b\", \"c\"], \"ids\": [{n}, {}, {}], \"ok\": true, \"error_code\": null, \
         \"pid\": 4711, \"thread\": \"MainThread\", \"module\": \"access\", \"line\": 88}}",
        n % 1000,
        n * 37,
        n % 250,
        n % 100,
        n + 1,
        n + 2
    )
}

fn record(n: usize) -> String {
    format!(
        "2026-11-21T20:52:57.{:09}Z stdout F 10.1.{}.7 - - \"GET /shop/item/{n}?ref=home HTTP/1.1\" 200 {}",
        n * 997,
        n % 250,
        n * 37
    )
}

fn docker_record(n: usize) -> String {
    format!(
        "{{\"log\":\"10.1.{}.7 - - \\\"GET /shop/item/{n}?ref=home HTTP/1.1\\\" 200 {}\\n\",\"stream\":\"stdout\",\
         \"time\":\"2026-11-21T20:52:57.{:09}Z\"}}",
        n % 250,
        n * 37,
        n * 997
    )
}

fn bsd(n: usize) -> String {
    format!(
        "<13>Nov 21 20:52:{:02} web-17 sshd[{n}]: Accepted publickey for deploy from 10.1.2.3 port {n}",
        n % 60
    )
}

fn ietf(n: usize) -> String {
    format!(
        "<165>1 2026-11-21T20:52:57.{:03}Z web-17 sshd {n} ID47 [exampleSDID@32473 iut=\"3\" eventID=\"{n}\"] \
         Accepted publickey for deploy",
        n % 1000
    )
}

fn audit(n: usize) -> String {
    format!(
        "type=SYSCALL msg=audit(1481077231.371:{n}): arch=c000003e syscall=59 success=yes exit=0 a0=7ffe a1=0 a2=8 \
         items=1 ppid=1 pid={n} auid=1000 uid=0 gid=0 euid=0 tty=pts0 ses=3 comm=\"sh\" exe=\"/usr/bin/sh\" \
         subj=unconfined_u:unconfined_r:unconfined_t:s0 key=\"net\""
    )
}

/// The fields that the reader adds to an event.
fn of_reader() -> Arc<Base> {
    let mut fields = Map::new();
    fields.insert_path("log.file.device_id", "64768");
    fields.insert_path("log.file.fingerprint", "9f86d081884c7d659a2feaa0c55ad015".repeat(2));
    fields.insert_path("log.file.inode", "1837465");
    fields.insert_path("log.file.path", "/var/log/app/access.log");
    Arc::new(Base::new(&fields, &Map::new()))
}

/// The view of the outputs.
fn of_output() -> Arc<Base> {
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

/// The lines of a batch, to make one again and again.
struct Lines {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    base: Arc<Base>,
    kept: Arc<Kept>,
}

/// The parts of the last batch, as readers keep them.
#[derive(Debug, Default)]
struct Kept(Mutex<Parts>);

impl Recycle for Kept {
    fn recycle(&self, parts: Parts) {
        *self.0.lock().expect("one thread") = parts;
    }
}

impl Lines {
    fn new(line: impl Fn(usize) -> String) -> Self {
        let mut bytes = Vec::new();
        let mut rows = Vec::new();
        for n in 0..ROWS {
            let line = line(n);
            let start = bytes.len() as u32;
            bytes.extend_from_slice(line.as_bytes());
            bytes.push(b'\n');
            let text = Text { start, len: line.len() as u32 };
            rows.push(Row::new(u64::from(start), text.len + 1, text, 1_795_294_377_123_000_000));
        }
        Self { bytes, rows, base: of_reader(), kept: Arc::default() }
    }

    fn batch(&self) -> Batch {
        let provenance = Provenance::new(SourceId(1), 0..self.bytes.len() as u64);
        let mut parts = std::mem::take(&mut *self.kept.0.lock().expect("one thread"));
        parts.bytes.clear();
        parts.bytes.extend_from_slice(&self.bytes);
        parts.rows.clear();
        parts.rows.extend_from_slice(&self.rows);
        let mut batch = Batch::with_lines(parts, self.bytes.len(), self.base.clone(), provenance);
        batch.set_recycle(self.kept.clone());
        batch
    }

    /// Runs a parser over all events of a batch that is made anew each time.
    fn run(&self, bencher: divan::Bencher<'_, '_>, mut parse: impl FnMut(&mut EventMut<'_>)) {
        bencher
            .counter(BytesCount::new(self.bytes.len()))
            .counter(ItemsCount::new(ROWS))
            .bench_local(|| {
                // A copy of the lines is part of what is measured: some 10 ns a line.
                let mut batch = self.batch();
                for row in 0..ROWS {
                    parse(&mut batch.event_mut(row, &self.base));
                }
            });
    }

    fn encode(&self, bencher: divan::Bencher<'_, '_>, prepare: impl Fn(&mut Batch)) {
        let mut batch = self.batch();
        prepare(&mut batch);
        batch.set_base(of_output());
        let mut encoder = Encoder::new(Precision::Millisecond);
        let mut out = Vec::with_capacity(4 << 20);
        bencher
            .counter(BytesCount::new(self.bytes.len()))
            .counter(ItemsCount::new(ROWS))
            .bench_local(|| {
                out.clear();
                for row in 0..ROWS {
                    encoder.write(&mut out, black_box(&batch), row);
                }
            });
    }
}

fn decoded(lines: &Lines, batch: &mut Batch, settings: ndjson::Settings) {
    let mut parser = ndjson::Ndjson::new(settings);
    for row in 0..ROWS {
        parser.apply(&mut batch.event_mut(row, &lines.base)).expect("the lines are JSON");
    }
}

#[divan::bench(args = ["service", "wide"])]
fn a_plain_encode(bencher: divan::Bencher<'_, '_>, kind: &str) {
    Lines::new(if kind == "wide" { wide } else { service }).encode(bencher, |_| {});
}

#[divan::bench(args = ["service", "wide"])]
fn b_ndjson_parse(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let mut parser = ndjson::Ndjson::new(ndjson::Settings::default());
    Lines::new(if kind == "wide" { wide } else { service })
        .run(bencher, |event| parser.apply(event).expect("the lines are JSON"));
}

#[divan::bench(args = ["service", "wide"])]
fn c_ndjson_encode(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let lines = Lines::new(if kind == "wide" { wide } else { service });
    lines.encode(bencher, |batch| decoded(&lines, batch, ndjson::Settings::default()));
}

#[divan::bench(args = ["service", "wide"])]
fn d_scan_alone(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let mut scanner = json::Scanner::new(false);
    Lines::new(if kind == "wide" { wide } else { service }).run(bencher, |event| {
        let text = event.own_message().expect("the line");
        black_box(scanner.object(event, text).expect("the lines are JSON"));
    });
}

#[divan::bench]
fn ndjson_with_keys_expanded(bencher: divan::Bencher<'_, '_>) {
    let settings =
        ndjson::Settings { expand_keys: true, overwrite_keys: true, ..Default::default() };
    let mut parser = ndjson::Ndjson::new(settings);
    Lines::new(service).run(bencher, |event| parser.apply(event).expect("the lines are JSON"));
}

#[divan::bench]
fn ndjson_below_a_target(bencher: divan::Bencher<'_, '_>) {
    let target = Some(Path::parse("json").expect("a path"));
    let mut parser = ndjson::Ndjson::new(ndjson::Settings { target, ..Default::default() });
    Lines::new(service).run(bencher, |event| parser.apply(event).expect("the lines are JSON"));
}

#[divan::bench]
fn cri_records(bencher: divan::Bencher<'_, '_>) {
    let mut times = TimeReader::default();
    Lines::new(record).run(bencher, |event| {
        let text = event.own_message().expect("the line");
        black_box(cri::parse(event.text(text), &mut times).expect("the lines are records"));
    });
}

#[divan::bench]
fn docker_records(bencher: divan::Bencher<'_, '_>) {
    let (mut scanner, mut times) = (json::Scanner::new(false), TimeReader::default());
    Lines::new(docker_record).run(bencher, |event| {
        let text = event.own_message().expect("the line");
        let record = docker::parse(&mut scanner, &mut times, event, text);
        black_box(record.expect("the lines are records"));
    });
}

#[divan::bench(args = ["rfc3164", "rfc5424"])]
fn syslog_messages(bencher: divan::Bencher<'_, '_>, kind: &str) {
    let parser = syslog::Syslog::new(syslog::Settings::local(TimeZone::UTC));
    Lines::new(if kind == "rfc3164" { bsd } else { ietf }).run(bencher, |event| {
        parser.apply(event, 1_795_294_377_123_000_000).expect("the lines are messages");
    });
}

#[divan::bench]
fn audit_records(bencher: divan::Bencher<'_, '_>) {
    let mut parser = auditd::Auditd::new(auditd::Settings::default());
    Lines::new(audit).run(bencher, |event| parser.apply(event).expect("the lines are records"));
}
