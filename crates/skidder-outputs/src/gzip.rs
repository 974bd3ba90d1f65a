//! gzip of a request body, piece by piece while the pieces are in the cache.
//!
//! Level 1, which is Filebeat's default, has an encoder of our own (docs/decisions/0012-own-deflate-encoder.md); the
//! other levels give smaller bodies, and are zlib's.

use crate::buffers::{Buffers, CHUNK_BYTES};
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};
use skidder_encode::{Encoder, Framing};

/// Base-2 logarithm of the window: the largest that gzip has.
const WINDOW_BITS: u8 = 15;
/// Pieces that are shorter wait for the next ones: our encoder finds what repeats inside of what it is given only.
const PIECE_BYTES_MIN: usize = CHUNK_BYTES / 2;

/// A compressor whose state is reused from body to body.
#[derive(Debug)]
pub enum Gzip {
    /// Level 1.
    Fast(Fast),
    /// Levels 2 to 9.
    Small(Small),
}

impl Gzip {
    /// The level of our own encoder.
    pub const FAST: u32 = 1;

    /// `level` is 1 (fast) to 9 (small).
    pub fn new(level: u32, buffers: Buffers) -> Self {
        if level == Self::FAST {
            Self::Fast(Fast::new(buffers))
        } else {
            Self::Small(Small::new(level, buffers))
        }
    }

    /// Compresses another piece. Its first `known` bytes are the last of what was compressed before, and not meant.
    pub fn add(&mut self, piece: &[u8], known: usize) {
        match self {
            Self::Fast(fast) => fast.add(piece, known),
            Self::Small(small) => small.add(&piece[known..]),
        }
    }

    /// The compressed body; the next one begins.
    pub fn finish(&mut self) -> Vec<Bytes> {
        match self {
            Self::Fast(fast) => fast.finish(),
            Self::Small(small) => small.finish(),
        }
    }
}

/// Our own encoder.
#[derive(Debug)]
pub struct Fast {
    encoder: Box<Encoder>,
    buffers: Buffers,
    /// Short pieces, one behind the other.
    short: Vec<u8>,
    current: Vec<u8>,
    done: Vec<Bytes>,
}

impl Fast {
    fn new(buffers: Buffers) -> Self {
        let encoder = Box::new(Encoder::new(Framing::Gzip));
        Self { encoder, buffers, short: Vec::new(), current: Vec::new(), done: Vec::new() }
    }

    fn add(&mut self, piece: &[u8], known: usize) {
        if self.short.is_empty() && piece.len() >= PIECE_BYTES_MIN {
            return self.encode(piece, known);
        }
        let piece = &piece[known..];
        self.short.extend_from_slice(piece);
        if self.short.len() >= PIECE_BYTES_MIN {
            self.encode_short();
        }
    }

    fn encode_short(&mut self) {
        let mut short = std::mem::take(&mut self.short);
        self.encode(&short, 0);
        if short.len() <= CHUNK_BYTES {
            short.clear();
            self.short = short;
        }
    }

    fn encode(&mut self, piece: &[u8], known: usize) {
        if self.current.len() >= CHUNK_BYTES {
            let full = std::mem::take(&mut self.current);
            self.done.push(self.buffers.seal(full));
        }
        if self.current.capacity() == 0 {
            self.current = self.buffers.take();
        }
        self.encoder.add_behind(piece, known, &mut self.current);
    }

    fn finish(&mut self) -> Vec<Bytes> {
        if !self.short.is_empty() {
            self.encode_short();
        }
        let mut last = std::mem::take(&mut self.current);
        self.encoder.finish(&mut last);
        self.done.push(self.buffers.seal(last));
        std::mem::take(&mut self.done)
    }
}

/// zlib-rs.
#[derive(Debug)]
pub struct Small {
    state: Compress,
    buffers: Buffers,
    current: Vec<u8>,
    done: Vec<Bytes>,
}

impl Small {
    fn new(level: u32, buffers: Buffers) -> Self {
        let state = Compress::new_gzip(Compression::new(level), WINDOW_BITS);
        Self { state, buffers, current: Vec::new(), done: Vec::new() }
    }

    fn add(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let taken = self.step(piece, FlushCompress::None).0;
            piece = &piece[taken..];
        }
    }

    fn finish(&mut self) -> Vec<Bytes> {
        while self.step(&[], FlushCompress::Finish).1 != Status::StreamEnd {}
        let last = std::mem::take(&mut self.current);
        if !last.is_empty() {
            self.done.push(self.buffers.seal(last));
        }
        self.state.reset();
        std::mem::take(&mut self.done)
    }

    fn step(&mut self, input: &[u8], flush: FlushCompress) -> (usize, Status) {
        if self.current.len() == self.current.capacity() {
            let full = std::mem::replace(&mut self.current, self.buffers.take());
            if !full.is_empty() {
                self.done.push(self.buffers.seal(full));
            }
        }
        let before = self.state.total_in();
        let status = self
            .state
            .compress_vec(input, &mut self.current, flush)
            .expect("deflate fails only on a state that was never set up");
        ((self.state.total_in() - before) as usize, status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    fn unpack(pieces: &[Bytes]) -> Vec<u8> {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(&pieces.concat()[..]).read_to_end(&mut plain).unwrap();
        plain
    }

    fn noise(size: usize) -> Vec<u8> {
        let mut random = 1_u32;
        std::iter::repeat_with(|| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 24) as u8
        })
        .take(size)
        .collect()
    }

    #[test]
    fn bodies_of_every_size_come_out_as_they_went_in() {
        for level in [1, 2, 9] {
            let mut gzip = Gzip::new(level, Buffers::default());
            for size in [0, 1, 1000, 300_000, 3_000_000] {
                // Noise does not shrink, so the output needs several buffers.
                let text = noise(size);
                for piece in [100_000, 300, CHUNK_BYTES] {
                    for piece in text.chunks(piece) {
                        gzip.add(piece, 0);
                    }
                    assert!(unpack(&gzip.finish()) == text, "{size} bytes at level {level}");
                }
            }
        }
    }

    #[test]
    fn many_short_pieces_shrink_like_one_long_one() {
        let mut gzip = Gzip::new(1, Buffers::default());
        let document = noise(800);
        for _ in 0..1000 {
            gzip.add(&document, 0);
        }
        let body = gzip.finish();
        assert!(unpack(&body) == document.repeat(1000));
        let sent: usize = body.iter().map(Bytes::len).sum();
        assert!(sent < 20 * document.len(), "{sent}");
    }
}
