//! Decoding and line splitting, in bytes of decompressed text per second of one core.
//!
//! `cargo bench -p skidder-decode --bench decode`; other codecs than gzip are in `codecs.rs`. The
//! file is in memory, but copied into the scratch buffer as `pread` would. The measure is
//! `raw_inflate` (the decoder with CRC-32, nothing around it, input in place); `flate2` is what a
//! program without need of checkpoints would use.

#![expect(clippy::print_stdout, reason = "the ratio belongs to the figures")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{MemoryFile, gzip, log_text};
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use skidder_decode::gzip::{Checkpoint, GzipReader, Inflate, InflatePool, Stop};

use skidder_decode::lines::Splitter;
use skidder_decode::{Codec, DecoderPool, ReadState, head};
use std::io::Read;
use std::sync::LazyLock;

const CONTENT_BYTES: usize = 32 << 20;
const SCRATCH_BYTES: usize = 64 * 1024;
const OUT_BYTES: usize = 256 * 1024;
/// Header without fields; trailer.
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

static CONTENT: LazyLock<Vec<u8>> = LazyLock::new(|| log_text(CONTENT_BYTES));
static ZIPPED: LazyLock<Vec<u8>> = LazyLock::new(|| gzip(&CONTENT, 6));

fn main() {
    println!(
        "content {CONTENT_BYTES} bytes, ratio {:.2}",
        CONTENT_BYTES as f64 / ZIPPED.len() as f64
    );
    divan::main();
}

#[divan::bench]
fn raw_inflate(bencher: Bencher) {
    let mut inflate = Inflate::new();
    let mut out = vec![0; OUT_BYTES];
    let deflated = &ZIPPED[HEADER_BYTES..ZIPPED.len() - TRAILER_BYTES];
    bencher.counter(BytesCount::new(CONTENT_BYTES)).bench_local(|| {
        inflate.reset();
        let mut crc = crc32fast::Hasher::new();
        let mut at = 0;
        loop {
            let end = deflated.len().min(at + OUT_BYTES);
            let step = inflate.inflate(&deflated[at..end], &mut out, false);
            at += step.consumed;
            crc.update(&out[..step.produced]);
            if step.stop == Stop::End {
                break;
            }
        }
        crc.finalize()
    });
}

#[divan::bench]
fn flate2_reader(bencher: Bencher) {
    let mut out = vec![0; OUT_BYTES];
    bencher.counter(BytesCount::new(CONTENT_BYTES)).bench_local(|| {
        let input = std::io::BufReader::with_capacity(SCRATCH_BYTES, ZIPPED.as_slice());
        let mut decoder = flate2::bufread::MultiGzDecoder::new(input);
        let mut total = 0;
        loop {
            match decoder.read(&mut out).expect("valid") {
                0 => break total,
                count => total += count,
            }
        }
    });
}

fn read_through(
    file: &MemoryFile,
    mut reader: GzipReader,
    scratch: &mut [u8],
    out: &mut [u8],
) -> u64 {
    loop {
        let progress = reader.read(file, scratch, out).expect("valid");
        black_box(&out[..progress.produced]);
        if let Some(checkpoint) = reader.take_checkpoint() {
            reader.recycle(black_box(checkpoint));
        }
        if progress.state != ReadState::More {
            return reader.decompressed_offset();
        }
    }
}

/// Decompressed bytes between checkpoints; 0: none are taken; 1: at every block boundary.
#[divan::bench(args = [0, 4 << 20, 1 << 20, 256 << 10, 1])]
fn reader_with_interval(bencher: Bencher, interval: u64) {
    let file = MemoryFile::new(&ZIPPED);
    let pool = InflatePool::new(1);
    let (mut scratch, mut out) = (vec![0; SCRATCH_BYTES], vec![0; OUT_BYTES]);
    bencher.counter(BytesCount::new(CONTENT_BYTES)).bench_local(|| {
        let reader = GzipReader::new(&pool);
        let reader = match interval {
            0 => reader.without_checkpoints(),
            _ => reader.with_checkpoint_interval(interval),
        };
        read_through(&file, reader, &mut scratch, &mut out)
    });
}

#[divan::bench(args = [16, 32, 64, 128, 256])]
fn reader_with_scratch_kib(bencher: Bencher, kib: usize) {
    let file = MemoryFile::new(&ZIPPED);
    let pool = InflatePool::new(1);
    let (mut scratch, mut out) = (vec![0; kib << 10], vec![0; OUT_BYTES]);
    bencher
        .counter(BytesCount::new(CONTENT_BYTES))
        .bench_local(|| read_through(&file, GzipReader::new(&pool), &mut scratch, &mut out));
}

#[divan::bench]
fn many_small_members(bencher: Bencher) {
    let bytes: Vec<u8> = CONTENT.chunks(64 * 1024).flat_map(|part| gzip(part, 6)).collect();
    let file = MemoryFile::new(&bytes);
    let pool = InflatePool::new(1);
    let (mut scratch, mut out) = (vec![0; SCRATCH_BYTES], vec![0; OUT_BYTES]);
    bencher
        .counter(BytesCount::new(CONTENT_BYTES))
        .bench_local(|| read_through(&file, GzipReader::new(&pool), &mut scratch, &mut out));
}

/// One fingerprint: open, decode 1 KiB, put the decoder back.
#[divan::bench]
fn fingerprint_head(bencher: Bencher) {
    let file = MemoryFile::new(&ZIPPED);
    let pool = DecoderPool::new(1);
    let (mut scratch, mut out) = (vec![0; SCRATCH_BYTES], vec![0; 1024]);
    bencher.bench_local(|| head(&file, Codec::Gzip, &mut scratch, &mut out, &pool).expect("valid"));
}

/// A checkpoint in the middle of the file, as one would be stored.
fn some_checkpoint(file: &MemoryFile) -> Checkpoint {
    let mut reader = GzipReader::new(&InflatePool::new(1));
    let (mut scratch, mut out) = (vec![0; SCRATCH_BYTES], vec![0; OUT_BYTES]);
    loop {
        let _progress = reader.read(file, &mut scratch, &mut out).expect("valid");
        if let Some(checkpoint) = reader.take_checkpoint()
            && checkpoint.decompressed_offset() > CONTENT_BYTES as u64 / 2
        {
            return checkpoint;
        }
    }
}

#[divan::bench]
fn checkpoint_store(bencher: Bencher) {
    let checkpoint = some_checkpoint(&MemoryFile::new(&ZIPPED));
    bencher.bench_local(|| checkpoint.to_bytes());
}

#[divan::bench]
fn checkpoint_load_and_resume(bencher: Bencher) {
    let file = MemoryFile::new(&ZIPPED);
    let stored = some_checkpoint(&file).to_bytes();
    let pool = InflatePool::new(1);
    let mut scratch = vec![0; SCRATCH_BYTES];
    let mut out = vec![0; 4096];
    bencher.bench_local(|| {
        let checkpoint = Checkpoint::from_bytes(&stored).expect("valid");
        let mut reader = GzipReader::resume(&checkpoint, &file, &pool).expect("fresh");
        reader.read(&file, &mut scratch, &mut out).expect("valid").produced
    });
}

/// Bytes of log lines of about 240 bytes that fit the second-level cache, as a batch does.
fn batch() -> &'static [u8] {
    &CONTENT[..OUT_BYTES]
}

#[divan::bench]
fn split_lines(bencher: Bencher) {
    bencher.counter(BytesCount::new(OUT_BYTES)).bench_local(|| {
        let mut sum = 0;
        let consumed = Splitter::default().split(black_box(batch()), |start, end, _next| {
            sum += end - start;
        });
        sum + consumed
    });
}

/// The same by a fresh search for each line: the other way `split` could work.
#[divan::bench]
fn split_lines_by_repeated_search(bencher: Bencher) {
    bencher.counter(BytesCount::new(OUT_BYTES)).bench_local(|| {
        let bytes = black_box(batch());
        let mut sum = 0;
        let mut start = 0;
        while let Some(length) = memchr::memchr(b'\n', &bytes[start..]) {
            let end = start + length;
            let carriage_return = length > 0 && bytes[end - 1] == b'\r';
            sum += end - usize::from(carriage_return) - start;
            start = end + 1;
        }
        sum + start
    });
}
