//! Events to requests of OTLP: what a worker does between the queue and the socket.
//!
//! Bytes are those of the log lines, without the metadata that is added to each.

use divan::black_box;
use divan::counter::{BytesCount, ItemsCount};
use skidder_contract::{ACCESS_LOG_ROWS as ROWS, access_log as delivery};
use skidder_output_otlp::{Compression, Config, ExportBench};
use skidder_outputs::Context;

#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

/// A request of 1600 events for a collector; compared with `request_at_compression_level` 0 and 1 of Elasticsearch, it is Protocol Buffers.
#[divan::bench(args = [Compression::None, Compression::Gzip, Compression::Zstd])]
fn export_in_codec(bencher: divan::Bencher<'_, '_>, compression: Compression) {
    let (delivery, size) = delivery();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut config = Config::new(Vec::new());
    config.compression = compression;
    let mut bench = ExportBench::new(&config, &Context::sample());
    bencher
        .counter(BytesCount::new(size))
        .counter(ItemsCount::new(ROWS))
        .bench_local(|| runtime.block_on(bench.encode(black_box(&delivery))));
}
