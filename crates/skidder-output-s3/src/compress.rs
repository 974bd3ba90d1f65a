//! The codecs of objects, piece by piece while the pieces are in the cache.

use super::config::Compression;
use bytes::Bytes;
use skidder_outputs::{Buffers, CHUNK_BYTES, Gzip};
use zstd_safe::{CCtx, CParameter, OutBuffer, ResetDirective};

/// Compresses one object after the other; keeps its memory.
pub(crate) enum Compressor {
    None(Vec<Bytes>),
    Gzip(Gzip),
    Zstd(Zstd),
}

impl Compressor {
    pub(crate) fn new(compression: Compression) -> Self {
        match compression {
            Compression::None => Self::None(Vec::new()),
            Compression::Gzip(level) => Self::Gzip(Gzip::new(level, Buffers::default())),
            Compression::Zstd(level) => Self::Zstd(Zstd::new(level)),
        }
    }

    /// Takes another piece; empties it.
    pub(crate) fn add(&mut self, piece: &mut Vec<u8>) {
        match self {
            Self::None(pieces) => {
                pieces.push(Bytes::copy_from_slice(piece));
            }
            Self::Gzip(gzip) => gzip.add(piece, 0),
            Self::Zstd(zstd) => zstd.add(piece),
        }
        piece.clear();
    }

    /// The object; the next one begins.
    pub(crate) fn finish(&mut self) -> Vec<Bytes> {
        match self {
            Self::None(pieces) => std::mem::take(pieces),
            Self::Gzip(gzip) => gzip.finish(),
            Self::Zstd(zstd) => zstd.finish(),
        }
    }
}

/// One frame, with a checksum of its content.
pub(crate) struct Zstd {
    context: CCtx<'static>,
    current: Vec<u8>,
    done: Vec<Bytes>,
}

impl Zstd {
    fn new(level: i32) -> Self {
        let mut context = CCtx::create();
        let good = "the level and the flag are in their bounds";
        context.set_parameter(CParameter::CompressionLevel(level)).expect(good);
        context.set_parameter(CParameter::ChecksumFlag(true)).expect(good);
        Self { context, current: Vec::with_capacity(CHUNK_BYTES), done: Vec::new() }
    }

    fn add(&mut self, piece: &[u8]) {
        let mut input = zstd_safe::InBuffer::around(piece);
        while input.pos() < piece.len() {
            self.make_room();
            let at = self.current.len();
            let mut out = OutBuffer::around_pos(&mut self.current, at);
            self.context
                .compress_stream(&mut out, &mut input)
                .expect("it fails only for want of memory");
        }
    }

    fn finish(&mut self) -> Vec<Bytes> {
        loop {
            self.make_room();
            let at = self.current.len();
            let mut out = OutBuffer::around_pos(&mut self.current, at);
            let left = self.context.end_stream(&mut out).expect("it fails only for want of memory");
            if left == 0 {
                break;
            }
        }
        let last = std::mem::replace(&mut self.current, Vec::with_capacity(CHUNK_BYTES));
        self.done.push(last.into());
        self.context.reset(ResetDirective::SessionOnly).expect("a session can always be ended");
        std::mem::take(&mut self.done)
    }

    fn make_room(&mut self) {
        if self.current.len() == self.current.capacity() {
            let full = std::mem::replace(&mut self.current, Vec::with_capacity(CHUNK_BYTES));
            self.done.push(full.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn unpack(compression: Compression, pieces: &[Bytes]) -> Vec<u8> {
        let packed = pieces.concat();
        let mut plain = Vec::new();
        match compression {
            Compression::None => plain = packed,
            Compression::Gzip(_) => {
                flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut plain).unwrap();
            }
            Compression::Zstd(_) => {
                plain.reserve(4 << 20);
                zstd_safe::decompress(&mut plain, &packed).unwrap();
            }
        }
        plain
    }

    #[test]
    fn objects_of_every_codec_come_out_as_they_went_in() {
        let levels = [1, 3, 19].map(Compression::Zstd);
        let gzip = [1, 6, 9].map(Compression::Gzip);
        for compression in [Compression::None].into_iter().chain(levels).chain(gzip) {
            let mut compressor = Compressor::new(compression);
            for size in [0, 1, 1000, 300_000, 1_500_000] {
                let mut random = 1_u32;
                let noise = || {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    if random >> 30 == 0 { (random >> 20) as u8 } else { b'x' }
                };
                let text: Vec<u8> = std::iter::repeat_with(noise).take(size).collect();
                for piece in text.chunks(100_000) {
                    let mut piece = piece.to_vec();
                    compressor.add(&mut piece);
                    assert!(piece.is_empty());
                }
                let object = compressor.finish();
                assert!(unpack(compression, &object) == text, "{compression:?} {size}");
            }
        }
    }
}
