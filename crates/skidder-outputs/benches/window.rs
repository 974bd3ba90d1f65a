//! Events to windows of Lumberjack: what a worker does between the queue and the socket.
//!
//! Bytes are those of the log lines, without the metadata that is added to each.

use divan::black_box;
use divan::counter::{BytesCount, ItemsCount};
use skidder_contract::{ACCESS_LOG_ROWS as ROWS, access_log as delivery};
use skidder_outputs::Context;
use skidder_outputs::logstash::FrameBench;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// A window of 1600 events for Logstash at this level; compared with `request_at_compression_level` 0 of Elasticsearch, it adds the frames.
#[divan::bench(args = [0, 1, 3])]
fn window_at_compression_level(bencher: divan::Bencher<'_, '_>, level: u32) {
    let (delivery, size) = delivery();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut bench = FrameBench::new(&Context::sample(), level);
    bencher
        .counter(BytesCount::new(size))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| runtime.block_on(bench.write(black_box(&delivery))));
}
