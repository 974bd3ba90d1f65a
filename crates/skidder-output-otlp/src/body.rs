//! A request as it is sent: compressed, and with what gRPC puts before it.

use super::config::Compression;
use bytes::Bytes;
use flate2::read::GzDecoder;
use skidder_encode::{Encoder, Framing, WINDOW_BYTES};
use skidder_grpc::HEAD_BYTES;
use std::borrow::Cow;
use std::io::Read as _;

/// Bytes that are compressed before other tasks get a chance to run.
const PIECE_BYTES: usize = 256 << 10;
/// The fastest level of zstd that is not one of its negative ones; the library's own is 3, which takes twice the time.
const ZSTD_LEVEL: i32 = 1;
/// Most bytes of an answer when it is unpacked: a usual one has none.
const PLAIN_BYTES_MAX: usize = 64 << 10;

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
        let is_compressed = !matches!(self.codec, Codec::None);
        Bytes::copy_from_slice(&skidder_grpc::head(is_compressed, len as u32))
    }
}

/// The message in an answer of gRPC; nothing if there is not exactly one. Servers answer in the codec of the
/// request, which `encoding` names.
pub(crate) fn unframe<'a>(answer: &'a [u8], encoding: Option<&str>) -> Option<Cow<'a, [u8]>> {
    let (head, message) = answer.split_first_chunk::<HEAD_BYTES>()?;
    let len = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
    if len as usize != message.len() {
        return None;
    }
    match (head[0], encoding) {
        (0, _) => Some(Cow::Borrowed(message)),
        (1, Some("gzip")) => {
            let mut plain = Vec::new();
            let mut decoder = GzDecoder::new(message).take(PLAIN_BYTES_MAX as u64 + 1);
            decoder.read_to_end(&mut plain).ok()?;
            (plain.len() <= PLAIN_BYTES_MAX).then_some(Cow::Owned(plain))
        }
        (1, Some("zstd")) => {
            let mut plain = Vec::with_capacity(PLAIN_BYTES_MAX);
            zstd_safe::decompress(&mut plain, message).ok()?;
            Some(Cow::Owned(plain))
        }
        _ => None,
    }
}
