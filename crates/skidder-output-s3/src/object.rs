//! An object as it is sent: made once, so that every try sends the same bytes under the same key.

use super::key::Names;
use super::ready::Closed;
use crate::compress::Compressor;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use skidder_outputs::{CHUNK_BYTES, Codec, Refusal};
use skidder_pipeline::{Delivery, Ticket};

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) key: String,
    pub(crate) body: Vec<Bytes>,
    /// CRC-32 of the body in Base64, as `x-amz-checksum-crc32`.
    pub(crate) checksum: String,
    /// SHA-256 of the body in hexadecimal, which is signed.
    pub(crate) digest: String,
    /// Its events, and how many of each part are in it.
    pub(crate) events: usize,
    pub(crate) parts: Vec<(Delivery, u32)>,
}

impl Object {
    /// One without events.
    pub(crate) fn of(key: String, body: Vec<Bytes>) -> Self {
        let mut checksum = crc32fast::Hasher::new();
        for piece in &body {
            checksum.update(piece);
        }
        let checksum = BASE64.encode(checksum.finalize().to_be_bytes());
        let digest = skidder_aws::digest(body.iter().map(|piece| &piece[..]));
        Self { key, body, checksum, digest, events: 0, parts: Vec::new() }
    }

    /// Bytes of the body.
    pub(crate) fn bytes(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }

    /// All of its events were taken.
    pub(crate) fn deliver(&self) {
        Ticket::deliver_all(self.parts.iter().map(|(part, count)| (&*part.ticket, *count)));
    }
}

/// Makes objects. One for each worker.
pub(crate) struct Maker {
    pub(crate) codec: Codec,
    pub(crate) compressor: Compressor,
    pub(crate) names: Names,
    pub(crate) piece: Vec<u8>,
}

impl Maker {
    /// The object, and the events that have no text.
    pub(crate) async fn make(&mut self, closed: &Closed) -> (Object, Vec<Refusal>) {
        let mut refusals = Vec::new();
        let mut parts = Vec::with_capacity(closed.parts.len());
        self.piece.clear();
        for part in &closed.parts {
            let mut count = 0;
            for row in part.rows.clone() {
                match self.codec.write(&mut self.piece, &part.batch, row as usize) {
                    Ok(()) => {
                        self.piece.push(b'\n');
                        count += 1;
                    }
                    Err(error) => refusals.push(Refusal::unsent(part, row, error)),
                }
                if self.piece.len() >= CHUNK_BYTES {
                    self.compressor.add(&mut self.piece);
                    // Compressing a piece takes a while; others want to run too.
                    tokio::task::yield_now().await;
                }
            }
            parts.push((part.clone(), count));
        }
        self.compressor.add(&mut self.piece);
        let body = self.compressor.finish();
        let key = self.names.key(&closed.prefix, closed.time);
        let object =
            Object { events: closed.events - refusals.len(), parts, ..Object::of(key, body) };
        (object, refusals)
    }
}
