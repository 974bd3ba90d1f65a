//! Events to bulk bodies: what a worker does between the queue and the socket.
//!
//! Bytes are those of the log lines, without the metadata that is added to each.

use divan::black_box;
use divan::counter::{BytesCount, ItemsCount};
use skidder_contract::{ACCESS_LOG_ROWS as ROWS, access_log as delivery};
use skidder_output_elasticsearch::{BulkBench, Config, parse_host};
use skidder_outputs::Context;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

#[expect(clippy::print_stderr, reason = "speed without the ratio says little")]
/// A request of 1600 events, encoded, compressed at this level, and its buffers given back.
#[divan::bench(args = [0, 1, 3, 6])]
fn request_at_compression_level(bencher: divan::Bencher<'_, '_>, level: u32) {
    let (delivery, size) = delivery();
    let context = Context::sample();
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
