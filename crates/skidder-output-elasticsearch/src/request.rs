//! A bulk request: a body in pieces, and where in it each event is.
//!
//! The spans of the events are kept until the answer is there, so that a partial refusal sends
//! slices of what was written and does not encode again.

use bytes::Bytes;
use skidder_encode::WINDOW_BYTES;
use skidder_outputs::{Buffers, Gzip, Refusal};
use skidder_pipeline::Delivery;

/// One event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    /// Index into [`Request::deliveries`].
    pub(crate) delivery: u32,
    /// Row in the delivery's batch.
    pub(crate) row: u32,
    /// Index into [`Request::plain`].
    pub(crate) chunk: u32,
    /// First byte of its action line in that piece.
    pub(crate) start: u32,
    /// Behind the line feed of its document.
    pub(crate) end: u32,
}

/// Events on their way in one request.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) items: Vec<Item>,
    /// The bytes of the items, uncompressed. A piece may begin with the end of the one before.
    pub(crate) plain: Vec<Bytes>,
    /// Bytes of the items, uncompressed.
    pub(crate) plain_bytes: u64,
    /// The body to send.
    pub(crate) body: Vec<Bytes>,
    /// Whether that is compressed.
    pub(crate) gzip: bool,
    /// Events that had no place in it: they get their verdict without asking the server.
    pub(crate) refusals: Vec<Refusal>,
    /// Whether it came from an encoder and was not tried yet.
    pub(crate) fresh: bool,
    /// Whether it is of events that were refused, on their way to the index for these.
    pub(crate) dead_letters: bool,
    /// Whether an item of it deletes a document.
    pub(crate) deletes: bool,
    /// How often the connection broke while it was under way.
    pub(crate) broken: u32,
}

impl Request {
    /// Length of the body as sent.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.body.iter().map(|piece| piece.len() as u64).sum()
    }

    /// The delivery of an item.
    pub(crate) fn delivery(&self, item: &Item) -> &Delivery {
        &self.deliveries[item.delivery as usize]
    }
}

/// Makes bodies out of pieces.
#[derive(Debug)]
pub(crate) struct BodyWriter {
    pub(crate) buffers: Buffers,
    level: u32,
    /// Made when first needed: its state has up to a quarter of a MiB.
    /// With the level that it is for.
    gzip: Option<(u32, Gzip)>,
}

impl BodyWriter {
    /// `level` 0 sends bodies as they are.
    pub(crate) fn new(level: u32, buffers: Buffers) -> Self {
        Self { buffers, level, gzip: None }
    }

    /// From the next body on, bodies are compressed at this level.
    pub(crate) fn set_level(&mut self, level: u32) {
        self.level = level;
    }

    fn gzip(&mut self) -> Option<&mut Gzip> {
        if self.level == 0 {
            return None;
        }
        let level = self.level;
        let (_, gzip) = match self.gzip.take().filter(|(made_for, _)| *made_for == level) {
            Some(made) => self.gzip.insert(made),
            None => self.gzip.insert((level, Gzip::new(level, self.buffers.clone()))),
        };
        Some(gzip)
    }

    /// A buffer for the next piece of `request`, and how much is in it already: the end of the piece before,
    /// which the compressor needs.
    pub(crate) fn piece_behind(&self, request: &Request) -> (Vec<u8>, usize) {
        let mut buffer = self.buffers.take();
        if self.level == Gzip::FAST
            && let Some(before) = request.plain.last()
        {
            buffer.extend_from_slice(&before[before.len().saturating_sub(WINDOW_BYTES)..]);
        }
        let known = buffer.len();
        (buffer, known)
    }

    /// Another finished piece of `request`, which is new behind its first `known` bytes.
    pub(crate) fn add(&mut self, request: &mut Request, piece: Bytes, known: usize) {
        match self.gzip() {
            Some(gzip) => gzip.add(&piece, known),
            None => request.body.push(piece.slice(known..)),
        }
        request.plain.push(piece);
    }

    /// Ends the body.
    pub(crate) fn finish(&mut self, request: &mut Request) {
        if let Some(gzip) = self.gzip() {
            request.body = gzip.finish();
            request.gzip = true;
        }
    }

    /// A request of some of the items of another, in their order, without encoding them again.
    pub(crate) fn part(&mut self, whole: &Request, items: Vec<Item>) -> Request {
        let mut part = Request {
            deliveries: whole.deliveries.clone(),
            plain: whole.plain.clone(),
            dead_letters: whole.dead_letters,
            deletes: whole.deletes,
            ..Request::default()
        };
        let mut rest = &items[..];
        while let Some(first) = rest.first() {
            // Neighbours go as one slice.
            let mut end = first.end;
            let mut count = 1;
            while let Some(next) = rest.get(count)
                && next.chunk == first.chunk
                && next.start == end
            {
                end = next.end;
                count += 1;
            }
            let piece = whole.plain[first.chunk as usize].slice(first.start as usize..end as usize);
            part.plain_bytes += piece.len() as u64;
            match self.gzip() {
                Some(gzip) => gzip.add(&piece, 0),
                None => part.body.push(piece),
            }
            rest = &rest[count..];
        }
        part.items = items;
        self.finish(&mut part);
        part
    }
}
