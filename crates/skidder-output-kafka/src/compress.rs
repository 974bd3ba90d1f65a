//! The codecs of batches, in the framing that Kafka's own clients read.

use crate::config::Compression;
use flate2::{Compress, FlushCompress, Status};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use std::io::Write as _;

/// Base-2 logarithm of the window of gzip: its largest.
const WINDOW_BITS: u8 = 15;
/// Level of Zstandard: its own default, and Kafka's.
const ZSTD_LEVEL: i32 = 3;
/// Bytes that Snappy compresses at once, as by snappy-java.
const SNAPPY_BLOCK_BYTES: usize = 32 << 10;
/// Before the blocks of snappy-java: its name, its version and the oldest one that can read it
/// (<https://github.com/xerial/snappy-java>, `SnappyCodec`).
const SNAPPY_HEAD: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// The growth step of an output of gzip.
const STEP_BYTES: usize = 64 << 10;

/// Compresses one batch after the other; keeps its memory.
pub(crate) enum Compressor {
    None,
    Gzip(Compress),
    Snappy(Box<snap::raw::Encoder>),
    Lz4,
    Zstd(zstd_safe::CCtx<'static>, Vec<u8>),
}

impl Compressor {
    /// `level` is one of gzip; -1 is zlib's own.
    pub(crate) fn new(compression: Compression, level: i32) -> Self {
        match compression {
            Compression::None => Self::None,
            Compression::Gzip => {
                let level = u32::try_from(level).map_or_else(
                    |_| flate2::Compression::default(),
                    |level| flate2::Compression::new(level.min(9)),
                );
                Self::Gzip(Compress::new_gzip(level, WINDOW_BITS))
            }
            Compression::Snappy => Self::Snappy(Box::new(snap::raw::Encoder::new())),
            Compression::Lz4 => Self::Lz4,
            Compression::Zstd => Self::Zstd(zstd_safe::CCtx::create(), Vec::new()),
        }
    }

    /// The number that batches have of it.
    pub(crate) fn number(&self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip(_) => 1,
            Self::Snappy(_) => 2,
            Self::Lz4 => 3,
            Self::Zstd(..) => 4,
        }
    }

    /// Appends the compressed form of `text`.
    pub(crate) fn add(&mut self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::None => out.extend_from_slice(text),
            Self::Gzip(state) => gzip(state, text, out),
            Self::Snappy(encoder) => snappy(encoder, text, out),
            Self::Lz4 => lz4(text, out),
            Self::Zstd(context, scratch) => {
                scratch.clear();
                scratch.reserve(zstd_safe::compress_bound(text.len()));
                context
                    .compress(scratch, text, ZSTD_LEVEL)
                    .expect("it fails only when there is too little room");
                out.extend_from_slice(scratch);
            }
        }
    }
}

fn gzip(state: &mut Compress, text: &[u8], out: &mut Vec<u8>) {
    state.reset();
    loop {
        if out.capacity() - out.len() < STEP_BYTES / 2 {
            out.reserve(STEP_BYTES);
        }
        let taken = state.total_in() as usize;
        let status = state
            .compress_vec(&text[taken..], out, FlushCompress::Finish)
            .expect("deflate fails only on a state that was never set up");
        if status == Status::StreamEnd {
            return;
        }
    }
}

fn snappy(encoder: &mut snap::raw::Encoder, text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&SNAPPY_HEAD);
    for block in text.chunks(SNAPPY_BLOCK_BYTES) {
        let at = out.len();
        out.resize(at + 4 + snap::raw::max_compress_len(block.len()), 0);
        let length = encoder
            .compress(block, &mut out[at + 4..])
            .expect("it fails only when there is too little room");
        out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
        out.truncate(at + 4 + length);
    }
}

/// A frame of independent blocks of 64 KiB: Kafka's Java client reads no others.
fn lz4(text: &[u8], out: &mut Vec<u8>) {
    let frame = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(frame, out);
    encoder.write_all(text).expect("a vector takes everything");
    encoder.finish().expect("a vector takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn unpack(compression: Compression, packed: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        match compression {
            Compression::None => text.extend_from_slice(packed),
            Compression::Gzip => {
                flate2::read::GzDecoder::new(packed).read_to_end(&mut text).expect("gzip");
            }
            Compression::Snappy => {
                let mut rest = packed.strip_prefix(&SNAPPY_HEAD[..]).expect("the head");
                while !rest.is_empty() {
                    let (length, behind) = rest.split_at(4);
                    let length = u32::from_be_bytes(length.try_into().expect("four")) as usize;
                    let (block, behind) = behind.split_at(length);
                    let block = snap::raw::Decoder::new().decompress_vec(block).expect("snappy");
                    assert!(block.len() <= SNAPPY_BLOCK_BYTES);
                    text.extend_from_slice(&block);
                    rest = behind;
                }
            }
            Compression::Lz4 => {
                // Version 1, independent blocks, no checksums; blocks of 64 KiB.
                assert_eq!(packed[..6], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40]);
                let mut decoder = lz4_flex::frame::FrameDecoder::new(packed);
                decoder.read_to_end(&mut text).expect("lz4");
            }
            Compression::Zstd => {
                text.reserve(4 << 20);
                zstd_safe::decompress(&mut text, packed).expect("zstd");
            }
        }
        text
    }

    #[test]
    fn what_every_codec_packs_comes_out_as_it_went_in() {
        for compression in Compression::WORDS.map(|(_, compression)| compression) {
            for level in [-1, 0, 4, 9] {
                let mut compressor = Compressor::new(compression, level);
                for size in [1, 100, 32_768, 32_769, 300_000, 3_000_000] {
                    let mut random = 1_u32;
                    let text: Vec<u8> = std::iter::repeat_with(|| {
                        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        if random >> 30 == 0 { (random >> 20) as u8 } else { b'x' }
                    })
                    .take(size)
                    .collect();
                    let mut out = b"before".to_vec();
                    compressor.add(&text, &mut out);
                    let packed = out.strip_prefix(b"before").expect("it is left alone");
                    assert!(unpack(compression, packed) == text, "{compression:?} {level} {size}");
                }
            }
        }
    }
}
