//! A file in memory, gzip streams of every kind, and ways to read them.

#![expect(clippy::unwrap_used, reason = "a test helper that fails is a failed test")]
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod frames;

use flate2::Compression;
use flate2::write::GzEncoder;
use skidder_decode::gzip::{Checkpoint, GzipReader, InflatePool};
use skidder_decode::{DecodeError, Note, ReadState};
use skidder_os::{File, Metadata};
use std::io::{self, Write};
use std::sync::Mutex;
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Strategy};

/// A file that lives in memory and may give short reads.
pub(crate) struct MemoryFile {
    pub(crate) bytes: Mutex<Vec<u8>>,
    /// Bytes one `read_at` gives at most.
    pub(crate) read_max: usize,
}

impl MemoryFile {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self { bytes: Mutex::new(bytes.to_vec()), read_max: usize::MAX }
    }

    pub(crate) fn append(&self, bytes: &[u8]) {
        self.bytes.lock().unwrap().extend_from_slice(bytes);
    }
}

impl File for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.bytes.lock().unwrap();
        let rest = bytes.get(offset as usize..).unwrap_or_default();
        let count = rest.len().min(buffer.len()).min(self.read_max);
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().truncate(size as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

/// Deterministic pseudo-random numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Calls `round` for each number of a run: one if `SKIDDER_SEED` is given, else
/// `SKIDDER_FUZZ_ROUNDS` (or `each`) from `SKIDDER_FUZZ_FROM` (or 1) on.
pub(crate) fn rounds(each: u64, mut round: impl FnMut(u64, &mut Random)) {
    let number = |name: &str| {
        let value = std::env::var(name).ok()?;
        Some(value.parse::<u64>().unwrap_or_else(|_| panic!("`{name}` is no number")))
    };
    let from = number("SKIDDER_FUZZ_FROM").unwrap_or(1);
    let seeds = match number("SKIDDER_SEED") {
        Some(seed) => seed..seed + 1,
        None => from..from + number("SKIDDER_FUZZ_ROUNDS").unwrap_or(each),
    };
    for seed in seeds {
        round(seed, &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    }
}

const PATHS: [&str; 6] =
    ["/", "/index.html", "/api/v1/orders", "/static/app.js", "/login", "/search?q=tree"];

const AGENTS: [&str; 4] = [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:132.0) Gecko/20100101 Firefox/132.0",
    "curl/8.11.0",
    "kube-probe/1.31",
];

/// Lines as servers write them: an access log, JSON and free text in turn, no two alike.
pub(crate) fn log_text(bytes: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut text = Vec::with_capacity(bytes + 400);
    while text.len() < bytes {
        let path = PATHS[random.below(6) as usize];
        let agent = AGENTS[random.below(4) as usize];
        let (small, minute, number) = (random.below(256), random.below(60), random.below(100_000));
        let (trace, micros) = (random.next(), random.below(1_000_000));
        let line = match random.below(3) {
            0 => writeln!(
                text,
                "10.{small}.{minute}.17 - user{micros} [21/Nov/2026:13:{minute:02}:07 +0000] \"GET {path}?id={number} \
                 HTTP/1.1\" 200 {micros} \"https://example.org/{number:x}\" \"{agent}\" {trace:016x}",
            ),
            1 => writeln!(
                text,
                "{{\"@timestamp\":\"2026-11-21T13:{minute:02}:07.{micros:06}Z\",\"log.level\":\"info\",\
                 \"message\":\"order {number} took {small} ms\",\"trace.id\":\"{trace:016x}\",\
                 \"url.path\":\"{path}\",\"user_agent.original\":\"{agent}\"}}",
            ),
            _ => writeln!(
                text,
                "2026-11-21T13:{minute:02}:07.{micros:06}Z stderr F worker-{small} could not reach shard {number} of \
                 {path}: timeout after {minute} s (attempt {small}, connection {trace:x}), will try again",
            ),
        };
        line.unwrap();
    }
    text.truncate(bytes);
    text
}

pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random(42);
    (0..bytes).map(|_| random.next() as u8).collect()
}

/// One member by flate2.
pub(crate) fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Puts a header and a trailer around a deflate stream.
pub(crate) fn wrap(deflated: &[u8], content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    bytes.extend_from_slice(deflated);
    bytes.extend_from_slice(&crc32fast::hash(content).to_le_bytes());
    bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
    bytes
}

/// One member by zlib-rs with a strategy, flushed every `every` bytes with `flush`.
pub(crate) fn gzip_with(
    content: &[u8],
    level: i32,
    strategy: Strategy,
    flush: DeflateFlush,
    every: usize,
) -> Vec<u8> {
    let config = DeflateConfig { level, strategy, window_bits: -15, ..DeflateConfig::default() };
    let mut deflate = Deflate::new_with_config(config);
    let mut deflated = vec![0; content.len() * 2 + content.len() / every.max(1) * 16 + 1024];
    let mut out = 0;
    let mut pieces = content.chunks(every).peekable();
    while let Some(piece) = pieces.next() {
        let mode = if pieces.peek().is_none() { DeflateFlush::Finish } else { flush };
        let before = deflate.total_in();
        deflate.compress(piece, &mut deflated[out..], mode).unwrap();
        assert_eq!(deflate.total_in() - before, piece.len() as u64);
        out = deflate.total_out() as usize;
    }
    wrap(&deflated[..out], content)
}

/// Every kind of deflate stream for the same content.
pub(crate) fn kinds(content: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let every = 20_000;
    let none = DeflateFlush::NoFlush;
    vec![
        ("level 1", gzip(content, 1)),
        ("level 6", gzip(content, 6)),
        ("level 9", gzip(content, 9)),
        ("stored", gzip_with(content, 0, Strategy::Default, none, every)),
        ("fixed", gzip_with(content, 6, Strategy::Fixed, none, every)),
        ("huffman only", gzip_with(content, 6, Strategy::HuffmanOnly, none, every)),
        ("rle", gzip_with(content, 6, Strategy::Rle, none, every)),
        ("filtered", gzip_with(content, 6, Strategy::Filtered, none, every)),
        ("sync flush", gzip_with(content, 6, Strategy::Default, DeflateFlush::SyncFlush, every)),
        ("full flush", gzip_with(content, 6, Strategy::Default, DeflateFlush::FullFlush, every)),
        ("block flush", gzip_with(content, 6, Strategy::Default, DeflateFlush::Block, every)),
        ("partial", gzip_with(content, 6, Strategy::Default, DeflateFlush::PartialFlush, every)),
    ]
}

/// All that a reader gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) output: Vec<u8>,
    pub(crate) notes: Vec<Note>,
    /// Where it stopped, or the error.
    pub(crate) end: Option<Result<ReadState, DecodeError>>,
    pub(crate) checkpoints: Vec<Checkpoint>,
}

impl Outcome {
    pub(crate) fn state(&self) -> Option<ReadState> {
        match &self.end {
            Some(Ok(state)) => Some(*state),
            _ => None,
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.notes.is_empty() && self.state() == Some(ReadState::End)
    }
}

/// Reads on until the reader waits, ends or fails. Checks what holds for every call.
pub(crate) fn read_on(
    reader: &mut GzipReader,
    file: &dyn File,
    scratch_bytes: usize,
    out_bytes: usize,
    outcome: &mut Outcome,
) {
    let mut scratch = vec![0; scratch_bytes];
    let mut out = vec![0; out_bytes];
    let mut idle = 0;
    loop {
        let before = (reader.compressed_offset(), reader.decompressed_offset());
        match reader.read(file, &mut scratch, &mut out) {
            Ok(progress) => {
                assert_eq!(reader.decompressed_offset() - before.1, progress.produced as u64);
                outcome.output.extend_from_slice(&out[..progress.produced]);
                outcome.notes.extend(progress.note);
                if let Some(checkpoint) = reader.take_checkpoint() {
                    assert!(checkpoint.decompressed_offset() <= reader.decompressed_offset());
                    outcome.checkpoints.push(checkpoint);
                }
                if progress.state != ReadState::More {
                    outcome.end = Some(Ok(progress.state));
                    return;
                }
                let moved = reader.compressed_offset() != before.0 || progress.produced > 0;
                idle = if moved || progress.note.is_some() { 0 } else { idle + 1 };
                assert!(idle < 3, "the reader asks to be called again but does not move");
            }
            Err(error) => {
                outcome.end = Some(Err(error));
                return;
            }
        }
    }
}

pub(crate) fn pool() -> InflatePool {
    InflatePool::new(2)
}

/// Reads a whole file.
pub(crate) fn read_all(bytes: &[u8], scratch_bytes: usize, out_bytes: usize) -> Outcome {
    let mut outcome = Outcome::default();
    let mut reader = GzipReader::new(&pool());
    read_on(&mut reader, &MemoryFile::new(bytes), scratch_bytes, out_bytes, &mut outcome);
    outcome
}
