//! gzip of a request body, piece by piece while the pieces are in the cache.

use super::buffers::Buffers;
use bytes::Bytes;
use flate2::{Compress, Compression, FlushCompress, Status};

/// Base-2 logarithm of the window: the largest that gzip has.
const WINDOW_BITS: u8 = 15;

/// A compressor whose state is reused from body to body.
#[derive(Debug)]
pub(crate) struct Gzip {
    state: Compress,
    buffers: Buffers,
    current: Vec<u8>,
    done: Vec<Bytes>,
}

impl Gzip {
    /// `level` is 1 (fast) to 9 (small).
    pub(crate) fn new(level: u32, buffers: Buffers) -> Self {
        let state = Compress::new_gzip(Compression::new(level), WINDOW_BITS);
        Self { state, buffers, current: Vec::new(), done: Vec::new() }
    }

    /// Compresses another piece.
    pub(crate) fn add(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            let taken = self.step(piece, FlushCompress::None).0;
            piece = &piece[taken..];
        }
    }

    /// The compressed body; the next one begins.
    pub(crate) fn finish(&mut self) -> Vec<Bytes> {
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

    #[test]
    fn bodies_of_every_size_come_out_as_they_went_in() {
        let mut gzip = Gzip::new(1, Buffers::default());
        let mut random = 1_u32;
        for size in [0, 1, 1000, 300_000, 3_000_000] {
            // Noise does not shrink, so the output needs several buffers.
            let text: Vec<u8> = std::iter::repeat_with(|| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 24) as u8
            })
            .take(size)
            .collect();
            for piece in text.chunks(100_000) {
                gzip.add(piece);
            }
            assert!(unpack(&gzip.finish()) == text, "{size} bytes");
        }
    }
}
