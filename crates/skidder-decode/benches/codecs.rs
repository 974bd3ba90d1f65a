//! What each codec that is read costs beside gzip, as a table: CPU time of one thread, in rounds in
//! which each codec has its turn, so that whatever else the machine does meets all of them.
//!
//! `cargo bench -p skidder-decode --bench codecs` (rounds: `SKIDDER_ROUNDS`). Text is that of the
//! other benchmarks; files are what the tools make by default, and in memory. Decoders run as a
//! reader has them, with checkpoints.

#![expect(clippy::print_stdout, reason = "the table is the result")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{MemoryFile, frames, gzip, log_text};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use lzma_rust2::{CheckType, XzOptions, XzWriter};
use rustix::time::{ClockId, clock_gettime};
use skidder_decode::{Codec, Decoder, DecoderPool, ReadState};
use std::hint::black_box;
use std::io::Write as _;
use std::time::Duration;

const CONTENT_BYTES: usize = 16 << 20;
const SCRATCH_BYTES: usize = 64 * 1024;
const OUT_BYTES: usize = 256 * 1024;
const ROUNDS: usize = 15;

/// A file as one of the tools makes it.
struct Kind {
    name: &'static str,
    codec: Codec,
    file: MemoryFile,
    bytes: usize,
    pool: DecoderPool,
    /// CPU time of each round.
    took: Vec<Duration>,
}

impl Kind {
    fn new(name: &'static str, codec: Codec, bytes: &[u8]) -> Self {
        let (file, pool) = (MemoryFile::new(bytes), DecoderPool::new(1));
        Self { name, codec, file, bytes: bytes.len(), pool, took: Vec::new() }
    }

    fn decode(&mut self, scratch: &mut [u8], out: &mut [u8]) {
        let before = cpu_time();
        let mut decoder = Decoder::start(Some(self.codec), &self.pool);
        loop {
            let progress = decoder.read(&self.file, scratch, out).expect("valid");
            black_box(&out[..progress.produced]);
            black_box(decoder.take_checkpoint());
            if progress.state != ReadState::More {
                break;
            }
        }
        assert_eq!(decoder.offset(), CONTENT_BYTES as u64);
        self.took.push(cpu_time().saturating_sub(before));
    }
}

/// As the program `xz` makes it: one block with a dictionary of 8 MiB.
fn xz(text: &[u8]) -> Vec<u8> {
    let mut options = XzOptions::with_preset(6);
    options.set_check_sum_type(CheckType::Crc64);
    let mut writer = XzWriter::new(Vec::new(), options).expect("good options");
    writer.write_all(text).expect("memory takes it");
    writer.finish().expect("memory takes it")
}

/// As the program `lz4` makes it: blocks of 4 MiB, a checksum of the text.
fn lz4(text: &[u8], mode: BlockMode) -> Vec<u8> {
    let info =
        FrameInfo::new().block_size(BlockSize::Max4MB).block_mode(mode).content_checksum(true);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

/// CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Least, median and most.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn main() {
    let rounds = std::env::var("SKIDDER_ROUNDS").ok().and_then(|text| text.parse().ok());
    let text = log_text(CONTENT_BYTES);
    let mut kinds = [
        Kind::new("gzip -6", Codec::Gzip, &gzip(&text, 6)),
        Kind::new("zstd -3", Codec::Zstd, &frames::zstd(&text, 3, true)),
        Kind::new("lz4", Codec::Lz4, &lz4(&text, BlockMode::Independent)),
        Kind::new("lz4 -BD", Codec::Lz4, &lz4(&text, BlockMode::Linked)),
        Kind::new("xz -6", Codec::Xz, &xz(&text)),
        Kind::new("bzip2 -9", Codec::Bzip2, &frames::bzip2(&text, 9)),
    ];
    let (mut scratch, mut out) = (vec![0; SCRATCH_BYTES], vec![0; OUT_BYTES]);
    for kind in &mut kinds {
        kind.decode(&mut scratch, &mut out);
        kind.took.clear();
    }
    for _ in 0..rounds.unwrap_or(ROUNDS) {
        for kind in &mut kinds {
            kind.decode(&mut scratch, &mut out);
        }
    }
    println!("| file | times smaller | MB/s of text | CPU time, of gzip's | least and most |");
    println!("|---|---|---|---|---|");
    let gzip = kinds[0].took.clone();
    for kind in &kinds {
        let smaller = CONTENT_BYTES as f64 / kind.bytes as f64;
        let (_, took, _) = spread(kind.took.iter().map(Duration::as_secs_f64).collect());
        let speed = CONTENT_BYTES as f64 / 1e6 / took;
        let ratios = kind.took.iter().zip(&gzip).map(|(own, of)| own.div_duration_f64(*of));
        let (least, ratio, most) = spread(ratios.collect());
        let name = kind.name;
        println!("| `{name}` | {smaller:.1} | {speed:.0} | {ratio:.2} | {least:.2} to {most:.2} |");
    }
}
