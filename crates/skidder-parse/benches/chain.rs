//! Chains of parsers over a chunk of lines: what a line costs on its way to an event, without reading and
//! encoding.

use divan::counter::{BytesCount, ItemsCount};
use regex::bytes::Regex;
use skidder_event::{Base, Batch, Encoder, Map, Parts, Precision, Provenance, Row, SourceId, Text};
use skidder_parse::chain::{
    Accept, Chain, Container, Ending, Format, Match, Matcher, Multiline, Parser, Rule, Run, State,
};
use std::sync::Arc;

#[global_allocator]
static ALLOCATOR: divan::AllocProfiler = divan::AllocProfiler::system();

/// Bytes of a turn.
const CHUNK_BYTES: usize = 256 << 10;

fn main() {
    divan::main();
}

fn access() -> String {
    (0..).map(|number| format!(
        "10.1.{}.7 - - [21/Nov/2026:20:52:57 +0000] \"GET /shop/item/{number}?ref=home HTTP/1.1\" \
         200 {} \"https://example.org/shop\" \"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101\"\n",
        number % 250, number * 37
    )).take(1000).collect()
}

fn cri() -> String {
    let record = |line: &str| format!("2026-11-21T20:52:57.123456789Z stdout F {line}\n");
    access().lines().map(record).collect()
}

fn traces() -> String {
    let mut text = String::new();
    for number in 0..100 {
        text += &format!("2026-11-21 20:52:57.123 ERROR [main] cart {number}: it is empty\n");
        for at in 0..number % 20 {
            text += &format!(
                "\tat org.example.shop.cart.CartService.add(CartService.java:{at}) ~[shop.jar:1.7]\n"
            );
        }
    }
    text
}

fn container() -> Parser {
    Parser::Container(Container { stream: None, format: Format::Cri, max_bytes: 10 << 20 })
}

fn join() -> Parser {
    let pattern = Matcher::new(Regex::new(r"^(?-u:\d){4}-").expect("a good pattern"));
    Parser::Multiline(Multiline {
        rule: Rule::Pattern { pattern, negate: true, side: Match::After, flush: None },
        max_lines: Multiline::MAX_LINES,
        max_bytes: 10 << 20,
        timeout: None,
        skip_newline: false,
    })
}

fn run(bencher: divan::Bencher, text: &str, parsers: Vec<Parser>, encode: bool) {
    let mut bytes = text.as_bytes().repeat(CHUNK_BYTES / text.len() + 1);
    bytes.truncate(CHUNK_BYTES);
    let mut rows = Vec::new();
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', &bytes) {
        let text = Text { start: start as u32, len: (end - start) as u32 };
        rows.push(Row::new(start as u64, text.len + 1, text, 1_795_294_377_123_000_000));
        start = end + 1;
    }
    let chain = Chain::new(parsers, Chain::GROUP_BYTES);
    let mut fields = Map::new();
    fields.insert_path("log.file.path", "/var/log/shop.log");
    fields.insert_path("input.type", "filestream");
    fields.insert_path("host.name", "shop-1");
    let base = Arc::new(Base::new(&fields, &Map::new()));
    let accept = Accept { message_max_bytes: 10 << 20, include: &[], exclude: &[] };
    let mut state = State::default();
    let mut encoder = Encoder::new(Precision::Millisecond);
    let mut out = Vec::with_capacity(2 * CHUNK_BYTES);
    let mut parts = Parts::default();
    bencher.counter(BytesCount::new(start)).counter(ItemsCount::new(rows.len())).bench_local(
        || {
            let mut used = std::mem::take(&mut parts);
            used.bytes.clear();
            used.bytes.extend_from_slice(&bytes);
            used.rows.clear();
            let provenance = Provenance::new(SourceId(1), 0..0);
            let mut batch = Batch::with_lines(used, bytes.len(), Arc::clone(&base), provenance);
            let mut run = Run::new(&chain, &mut state, accept, &batch, 0);
            for row in &rows {
                run.line(&mut batch, *row);
            }
            run.finish(&mut batch, Ending::More);
            batch.set_utf8_appended(bytes.len()..batch.bytes().len());
            if encode {
                out.clear();
                for row in 0..batch.len() {
                    encoder.write(&mut out, &batch, row);
                }
                divan::black_box(&out);
            }
            parts = batch.into_parts();
        },
    );
}

#[divan::bench(args = [false, true])]
fn no_parser(bencher: divan::Bencher, encode: bool) {
    run(bencher, &access(), Vec::new(), encode);
}

#[divan::bench(args = [false, true])]
fn cri_records(bencher: divan::Bencher, encode: bool) {
    run(bencher, &cri(), vec![container()], encode);
}

#[divan::bench(args = [false, true])]
fn java_traces(bencher: divan::Bencher, encode: bool) {
    run(bencher, &traces(), vec![join()], encode);
}

#[divan::bench(args = [false, true])]
fn java_traces_as_lines(bencher: divan::Bencher, encode: bool) {
    run(bencher, &traces(), Vec::new(), encode);
}

#[divan::bench(args = [false, true])]
fn java_traces_in_cri(bencher: divan::Bencher, encode: bool) {
    let record = |line: &str| format!("2026-11-21T20:52:57.123456789Z stdout F {line}\n");
    let text: String = traces().lines().map(record).collect();
    run(bencher, &text, vec![container(), join()], encode);
}
