//! Lumberjack v2 on the wire: a window of events as frames, and acknowledgements.
//!
//! All numbers are big-endian. A window is `2W` and the number of events, then either a `2J` frame for each
//! (its number in the window from 1 on, the length of the document, the document), or one `2C` frame (its length,
//! then those frames as a zlib stream, RFC 1950). The answer is `2A` and the number of the last event that the
//! server is done with; 0, or a number sent before, is a keep-alive. See `protocol/v2` of
//! elastic/go-lumber.

use crate::context::Context;
use flate2::{Compress, Compression, FlushCompress, Status};
use skidder_encode::{Encoder as Fast, Framing};
use skidder_event::Encoder;
use skidder_pipeline::Delivery;

/// Bytes that are encoded before they are compressed, while they are in the cache, and before other tasks
/// get a chance to run.
const PIECE_BYTES: usize = 64 << 10;
/// The same for level 1, whose encoder finds what repeats inside of a piece only.
const FAST_PIECE_BYTES: usize = 256 << 10;
/// Length of an acknowledgement.
pub(crate) const ACK_BYTES: usize = 6;
/// Largest buffer that is kept for the next window.
const KEPT_BYTES_MAX: usize = 4 << 20;

/// Writes windows. One for each worker.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    encoder: Encoder,
    packer: Option<Packer>,
    /// Frames that are not compressed yet.
    plain: Vec<u8>,
}

/// Makes a zlib stream, piece by piece.
#[derive(Debug)]
enum Packer {
    /// Level 1: our own encoder (docs/decisions/0012-own-deflate-encoder.md).
    Fast(Box<Fast>),
    /// Levels 2 to 9.
    Small(Compress),
}

impl Packer {
    fn new(level: u32) -> Self {
        if level == 1 {
            Self::Fast(Box::new(Fast::new(Framing::Zlib)))
        } else {
            Self::Small(Compress::new(Compression::new(level), true))
        }
    }

    fn piece_bytes(&self) -> usize {
        match self {
            Self::Fast(_) => FAST_PIECE_BYTES,
            Self::Small(_) => PIECE_BYTES,
        }
    }

    fn add(&mut self, mut piece: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Fast(encoder) => encoder.add(piece, out),
            Self::Small(compress) => {
                while !piece.is_empty() {
                    let taken = step(compress, piece, out, FlushCompress::None).0;
                    piece = &piece[taken..];
                }
            }
        }
    }

    /// Ends the stream; the next one begins.
    fn finish(&mut self, out: &mut Vec<u8>) {
        match self {
            Self::Fast(encoder) => encoder.finish(out),
            Self::Small(compress) => {
                while step(compress, &[], out, FlushCompress::Finish).1 != Status::StreamEnd {}
                compress.reset();
            }
        }
    }
}

impl FrameWriter {
    /// `level` 0 sends frames as they are.
    pub(crate) fn new(context: &Context, beat: &str, escape_html: bool, level: u32) -> Self {
        let encoder = Encoder::with_metadata(context.precision, beat, &context.version)
            .escaping_html(escape_html);
        let packer = (level > 0).then(|| Packer::new(level));
        Self { encoder, packer, plain: Vec::new() }
    }

    /// Whether a window is compressed, as one.
    pub(crate) fn compresses(&self) -> bool {
        self.packer.is_some()
    }

    /// Replaces the content of `out` by a window of these events, `count` in all.
    pub(crate) async fn write<'a>(
        &mut self,
        out: &mut Vec<u8>,
        deliveries: impl Iterator<Item = &'a Delivery>,
        count: u32,
    ) {
        out.clear();
        out.shrink_to(KEPT_BYTES_MAX);
        out.extend_from_slice(b"2W");
        out.extend_from_slice(&count.to_be_bytes());
        let length_at = out.len() + 2;
        if self.packer.is_some() {
            out.extend_from_slice(b"2C\0\0\0\0");
        }
        let mut sequence = 0_u32;
        let mut piece_from = out.len();
        for delivery in deliveries {
            for row in delivery.rows.clone() {
                sequence += 1;
                match &mut self.packer {
                    None => {
                        write_frame(&mut self.encoder, out, delivery, row, sequence);
                        if out.len() - piece_from >= PIECE_BYTES {
                            piece_from = out.len();
                            tokio::task::yield_now().await;
                        }
                    }
                    Some(packer) => {
                        write_frame(&mut self.encoder, &mut self.plain, delivery, row, sequence);
                        if self.plain.len() >= packer.piece_bytes() {
                            packer.add(&self.plain, out);
                            self.plain.clear();
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
        }
        if let Some(packer) = &mut self.packer {
            packer.add(&self.plain, out);
            self.plain.clear();
            self.plain.shrink_to(KEPT_BYTES_MAX);
            packer.finish(out);
            let length = (out.len() - length_at - 4) as u32;
            out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
}

/// Appends one data frame.
#[inline]
fn write_frame(
    encoder: &mut Encoder,
    out: &mut Vec<u8>,
    delivery: &Delivery,
    row: u32,
    sequence: u32,
) {
    const HEAD_BYTES: usize = 10;
    let start = out.len();
    let mut head = *b"2J\0\0\0\0\0\0\0\0";
    head[2..6].copy_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&head);
    encoder.write(out, &delivery.batch, row as usize);
    let length = (out.len() - start - HEAD_BYTES) as u32;
    out[start + 6..start + HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

fn step(
    compress: &mut Compress,
    input: &[u8],
    out: &mut Vec<u8>,
    flush: FlushCompress,
) -> (usize, Status) {
    if out.len() == out.capacity() {
        out.reserve(PIECE_BYTES);
    }
    let before = compress.total_in();
    let status = compress
        .compress_vec(input, out, flush)
        .expect("deflate fails only on a state that was never set up");
    ((compress.total_in() - before) as usize, status)
}

/// The number in an acknowledgement; `None` if it is none.
pub(crate) fn read_ack(frame: [u8; ACK_BYTES]) -> Option<u32> {
    match frame {
        [b'2', b'A', a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

/// The writer by itself, for the benchmark.
#[doc(hidden)]
#[derive(Debug)]
pub struct FrameBench(FrameWriter, Vec<u8>);

impl FrameBench {
    /// A writer with this compression level.
    pub fn new(context: &Context, level: u32) -> Self {
        Self(FrameWriter::new(context, "filebeat", false, level), Vec::new())
    }

    /// Writes a window of one delivery; gives its bytes.
    pub async fn write(&mut self, delivery: &Delivery) -> usize {
        let count = delivery.len() as u32;
        self.0.write(&mut self.1, std::iter::once(delivery), count).await;
        self.1.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context, deliveries};
    use skidder_event::Map;
    use std::io::Read as _;

    async fn window(lines: &[&str], level: u32) -> Vec<u8> {
        let batch = batch_with(lines, &Map::new(), &Map::new());
        let deliveries = deliveries(vec![batch]);
        let mut writer = FrameWriter::new(&context(), "mine", true, level);
        let mut out = b"what was there".to_vec();
        // A second window must not know of the first.
        for _ in 0..2 {
            writer.write(&mut out, deliveries.iter(), lines.len() as u32).await;
        }
        out
    }

    #[tokio::test]
    async fn a_window_is_what_the_protocol_says() {
        let plain = window(&["one", "<two>"], 0).await;
        let document = |offset: usize, message: &str| {
            format!(
                "{{\"@timestamp\":\"2026-01-02T03:04:05.000Z\",\"@metadata\":{{\"beat\":\"mine\",\
                 \"type\":\"_doc\",\"version\":\"9.5.0\"}},\"log\":{{\"offset\":{offset}}},\
                 \"message\":\"{message}\"}}"
            )
        };
        let mut frames = Vec::new();
        for (sequence, document) in
            [document(0, "one"), document(4, "\\u003ctwo\\u003e")].iter().enumerate()
        {
            frames.extend_from_slice(b"2J");
            frames.extend_from_slice(&(sequence as u32 + 1).to_be_bytes());
            frames.extend_from_slice(&(document.len() as u32).to_be_bytes());
            frames.extend_from_slice(document.as_bytes());
        }
        assert_eq!(plain, [&b"2W\0\0\0\x02"[..], &frames].concat());
        let compressed = window(&["one", "<two>"], 3).await;
        assert_eq!(compressed[..8], *b"2W\0\0\0\x022C");
        let length = u32::from_be_bytes(compressed[8..12].try_into().unwrap());
        assert_eq!(length as usize, compressed.len() - 12);
        let mut unpacked = Vec::new();
        flate2::read::ZlibDecoder::new(&compressed[12..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, frames);
    }

    #[tokio::test]
    async fn large_windows_are_compressed_in_pieces() {
        let lines: Vec<String> =
            (0..5000).map(|number| format!("{number} {}", number * 7)).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let plain = window(&lines, 0).await;
        assert!(plain.len() > 2 * FAST_PIECE_BYTES);
        for level in [1, 3, 9] {
            let compressed = window(&lines, level).await;
            let mut unpacked = Vec::new();
            flate2::read::ZlibDecoder::new(&compressed[12..]).read_to_end(&mut unpacked).unwrap();
            assert!(unpacked == plain[6..] && compressed.len() < plain.len() / 4, "{level}");
        }
    }

    #[test]
    fn acknowledgements_are_told_from_other_frames() {
        assert_eq!(read_ack(*b"2A\0\0\x01\x02"), Some(258));
        for frame in [b"1A\0\0\0\0", b"2W\0\0\0\0", b"HTTP/1"] {
            assert_eq!(read_ack(*frame), None);
        }
    }
}
