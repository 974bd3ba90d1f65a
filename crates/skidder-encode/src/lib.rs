//! Deflate for what is sent to servers: quick, for texts of many documents that are alike.
//!
//! A level of compression like that of zlib's level 1, at a fraction of its time. A text goes through
//! three steps, a segment at a time:
//!
//! 1. `matcher` finds copies of earlier bytes. It looks up keys of six bytes in one table, goes over what
//!    does not repeat with longer and longer steps, and behind a copy tries the same distance again.
//! 2. `counts` counts a sample of the symbols. As long as the codes in use are near the ideal for
//!    them, they are kept, and the block goes on; otherwise new ones are made.
//! 3. `block` writes the bits.
//!
//! The state is one table and some buffers, and no text is copied: copies reach back to the beginning of what
//! is given. So pieces should be long (a hundred KiB and more), or have the end of the piece before in front
//! ([`Encoder::add_behind`]).
//!
//! ```
//! use skidder_encode::{Encoder, Framing};
//!
//! let mut encoder = Encoder::new(Framing::Gzip);
//! let mut body = Vec::new();
//! encoder.add(b"{\"create\":{}}\n{\"message\":\"hello\"}\n", &mut body);
//! encoder.finish(&mut body);
//! assert_eq!(body[..3], [0x1f, 0x8b, 8]);
//! ```

mod bits;
mod block;
mod checksum;
mod codes;
mod counts;
mod load;
mod matcher;
mod stream;
mod symbols;

use checksum::Checksum;
use stream::Stream;

/// How far back copies reach (RFC 1951, 3.2.5).
pub const WINDOW_BYTES: usize = 32 << 10;

/// What stands around the compressed text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// RFC 1952: `Content-Encoding: gzip`.
    Gzip,
    /// RFC 1950: `Content-Encoding: deflate`, and the compressed frames of the Lumberjack protocol.
    Zlib,
}

/// Compresses one text after the other. Its memory is kept: about 300 KiB where texts do not shrink, 60 KiB
/// where they do.
#[derive(Debug)]
pub struct Encoder {
    framing: Framing,
    stream: Stream,
    checksum: Checksum,
    /// Bytes of the text so far.
    length: u64,
    begun: bool,
}

impl Encoder {
    /// An encoder at the beginning of a text.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            stream: Stream::new(),
            checksum: Checksum::new(framing),
            length: 0,
            begun: false,
        }
    }

    /// Appends the compressed form of `piece` to `out`, but for up to seven bits.
    ///
    /// What does not shrink becomes longer by a part in 4096 and some bytes at most. Copies reach
    /// back only to the beginning of the piece.
    pub fn add(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        self.add_behind(piece, 0, out);
    }

    /// Appends the compressed form of `text[known..]`, as [`Encoder::add`]. `text[..known]` is the
    /// end of what was added to this text before, for copies to reach back to; more than
    /// [`WINDOW_BYTES`] of it are of no use.
    ///
    /// # Panics
    /// If `known` is more than the length of `text`, or than what was added.
    pub fn add_behind(&mut self, text: &[u8], known: usize, out: &mut Vec<u8>) {
        assert!(known as u64 <= self.length, "what is known was added before");
        self.begin(out);
        let piece = &text[known..];
        self.checksum.update(piece);
        self.length += piece.len() as u64;
        self.stream.add(text, known, out);
    }

    /// Ends the text; the next one begins.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        self.stream.finish(out);
        let sum = self.checksum.value();
        match self.framing {
            Framing::Gzip => {
                out.extend_from_slice(&sum.to_le_bytes());
                out.extend_from_slice(&(self.length as u32).to_le_bytes());
            }
            Framing::Zlib => out.extend_from_slice(&sum.to_be_bytes()),
        }
        self.checksum = Checksum::new(self.framing);
        self.length = 0;
        self.begun = false;
    }

    /// Forgets what was added since the last text.
    pub fn reset(&mut self) {
        self.stream.reset();
        self.checksum = Checksum::new(self.framing);
        self.length = 0;
        self.begun = false;
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.begun {
            return;
        }
        self.begun = true;
        match self.framing {
            // No name, no time, the fastest level, an unknown system (RFC 1952, 2.3).
            Framing::Gzip => {
                out.extend_from_slice(&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255]);
            }
            // A window of 32 KiB, the fastest level (RFC 1950, 2.2).
            Framing::Zlib => out.extend_from_slice(&[0x78, 0x01]),
        }
    }
}
