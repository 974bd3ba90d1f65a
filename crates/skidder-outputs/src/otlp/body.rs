//! A request as it is sent: compressed, and with what gRPC puts before it.

use super::config::Compression;
use bytes::Bytes;
use skidder_encode::{Encoder, Framing, WINDOW_BYTES};

/// Bytes that are compressed before other tasks get a chance to run.
const PIECE_BYTES: usize = 256 << 10;
/// The fastest level of zstd that is not one of its negative ones; the library's own is 3, which takes twice the time.
const ZSTD_LEVEL: i32 = 1;
/// Bytes that gRPC puts before a message: whether it is compressed, and its length.
const HEAD_BYTES: usize = 5;

/// Makes bodies of requests. One for each worker.
pub(crate) struct Packer {
    codec: Codec,
    grpc: bool,
}

enum Codec {
    None,
    Gzip(Box<Encoder>),
    Zstd(zstd_safe::CCtx<'static>),
}

impl Packer {
    pub(crate) fn new(compression: Compression, grpc: bool) -> Self {
        let codec = match compression {
            Compression::None => Codec::None,
            Compression::Gzip => Codec::Gzip(Box::new(Encoder::new(Framing::Gzip))),
            Compression::Zstd => Codec::Zstd(zstd_safe::CCtx::create()),
        };
        Self { codec, grpc }
    }

    /// The body of a request. `plain` is left with what may be in it, to be written into.
    pub(crate) async fn pack(&mut self, plain: &mut Vec<u8>) -> Vec<Bytes> {
        let packed = match &mut self.codec {
            Codec::None => {
                let room = plain.capacity();
                std::mem::replace(plain, Vec::with_capacity(room))
            }
            Codec::Gzip(encoder) => {
                let mut out = Vec::with_capacity(plain.len() / 4);
                let mut from = 0;
                while from < plain.len() {
                    let known = from.min(WINDOW_BYTES);
                    let end = plain.len().min(from + PIECE_BYTES);
                    encoder.add_behind(&plain[from - known..end], known, &mut out);
                    from = end;
                    tokio::task::yield_now().await;
                }
                encoder.finish(&mut out);
                out
            }
            Codec::Zstd(context) => {
                let mut out = Vec::with_capacity(zstd_safe::compress_bound(plain.len()));
                context
                    .compress(&mut out, plain, ZSTD_LEVEL)
                    .expect("it fails only when there is too little room");
                out.shrink_to_fit();
                out
            }
        };
        let packed = Bytes::from(packed);
        if self.grpc { vec![self.head(packed.len()), packed] } else { vec![packed] }
    }

    /// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>, "Length-Prefixed-Message".
    fn head(&self, len: usize) -> Bytes {
        let mut head = [0; HEAD_BYTES];
        head[0] = u8::from(!matches!(self.codec, Codec::None));
        head[1..].copy_from_slice(&(len as u32).to_be_bytes());
        Bytes::copy_from_slice(&head)
    }
}

/// The message in an answer of gRPC; nothing if there is not exactly one that is as it was sent.
pub(crate) fn unframe(answer: &[u8]) -> Option<&[u8]> {
    let (head, message) = answer.split_first_chunk::<HEAD_BYTES>()?;
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    (head[0] == 0 && len as usize == message.len()).then_some(message)
}
