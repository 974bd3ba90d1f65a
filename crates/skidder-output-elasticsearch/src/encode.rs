//! Events to bulk requests: each is written once, straight into the pieces of the body.

use super::Config;
use super::action::{Actions, Operation};
use super::request::{BodyWriter, Item, Request};
use skidder_event::Encoder;
use skidder_outputs::{Buffers, CHUNK_BYTES, Context, Refusal};
use skidder_pipeline::Delivery;
use std::collections::VecDeque;

/// Writes requests. One for each worker.
#[derive(Debug)]
pub(crate) struct BulkEncoder {
    actions: Actions,
    encoder: Encoder,
    writer: BodyWriter,
    /// Most events of a request; 0 = as many as there are.
    items_max: usize,
    /// Most uncompressed bytes of a request; a single larger event goes alone.
    bytes_max: u64,
    /// The size of the last request: the next one gets as much room at once.
    usual: Usual,
}

/// Lengths of the lists of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Usual {
    deliveries: usize,
    items: usize,
    pieces: usize,
}

impl Usual {
    fn of(request: &Request) -> Self {
        Self {
            deliveries: request.deliveries.len(),
            items: request.items.len(),
            pieces: request.plain.len(),
        }
    }

    fn reserve(self, request: &mut Request) {
        request.deliveries.reserve(self.deliveries);
        request.items.reserve(self.items);
        request.plain.reserve(self.pieces);
        request.body.reserve(self.pieces);
    }
}

impl BulkEncoder {
    pub(crate) fn new(config: &Config, context: &Context, buffers: Buffers) -> Self {
        Self {
            actions: Actions::new(config, context),
            encoder: Encoder::new(context.precision).escaping_html(config.escape_html),
            writer: BodyWriter::new(config.compression_level, buffers),
            items_max: config.bulk_max_size,
            bytes_max: config.bulk_max_bytes as u64,
            usual: Usual::default(),
        }
    }

    /// For the next request: most events of it, and the level at which it is compressed.
    pub(crate) fn set(&mut self, items_max: usize, level: u32) {
        self.items_max = items_max;
        self.writer.set_level(level);
    }

    /// Moves events from `waiting` into `request` until a piece is full. `true` when the request is
    /// complete: it is full, or nothing is waiting.
    pub(crate) fn fill(&mut self, request: &mut Request, waiting: &mut VecDeque<Delivery>) -> bool {
        let (mut chunk, before) = self.writer.piece_behind(request);
        if request.deliveries.is_empty() {
            self.usual.reserve(request);
        }
        let chunk_index = request.plain.len() as u32;
        let bytes_left = self.bytes_max.saturating_sub(request.plain_bytes);
        let mut full = false;
        while let Some(front) = waiting.front_mut() {
            self.actions.begin(front);
            // Only the first piece begins with a delivery that the request does not have yet.
            let known = request.deliveries.last().is_some_and(|last| same(last, front));
            if !known {
                request.deliveries.push(front.clone());
            }
            let delivery = request.deliveries.len() as u32 - 1;
            while front.rows.start < front.rows.end {
                if self.items_max > 0 && request.items.len() == self.items_max {
                    full = true;
                    break;
                }
                let row = front.rows.start;
                let start = chunk.len();
                match self.actions.write(&mut chunk, &front.batch, row as usize) {
                    Ok(operation) => {
                        if operation == Operation::Delete {
                            request.deletes = true;
                        } else {
                            self.encoder.write(&mut chunk, &front.batch, row as usize);
                            chunk.push(b'\n');
                        }
                    }
                    Err(error) => {
                        request.refusals.push(Refusal::unsent(front, row, error));
                        front.rows.start += 1;
                        continue;
                    }
                }
                if (chunk.len() - before) as u64 > bytes_left && !request.items.is_empty() {
                    // It begins the next request.
                    chunk.truncate(start);
                    full = true;
                    break;
                }
                let (start, end) = (start as u32, chunk.len() as u32);
                request.items.push(Item { delivery, row, chunk: chunk_index, start, end });
                front.rows.start += 1;
                if chunk.len() >= before + CHUNK_BYTES {
                    break;
                }
            }
            if front.rows.start == front.rows.end {
                waiting.pop_front();
            }
            if full || chunk.len() >= before + CHUNK_BYTES {
                break;
            }
        }
        self.end_piece(request, chunk, before);
        let complete = full || waiting.is_empty() || request.plain_bytes >= self.bytes_max;
        if complete {
            self.usual = Usual::of(request);
            self.writer.finish(request);
            request.fresh = true;
        }
        complete
    }

    /// Of the chunk all behind the first `before` bytes is new.
    fn end_piece(&mut self, request: &mut Request, chunk: Vec<u8>, before: usize) {
        request.plain_bytes += (chunk.len() - before) as u64;
        if chunk.len() > before {
            let piece = self.writer.buffers.seal(chunk);
            self.writer.add(request, piece, before);
        }
    }
}

/// Whether both are the same rows, but for those already taken from the second.
fn same(held: &Delivery, front: &Delivery) -> bool {
    std::sync::Arc::ptr_eq(&held.ticket, &front.ticket) && held.rows.end == front.rows.end
}

/// The encoder by itself, for the benchmark.
#[doc(hidden)]
#[derive(Debug)]
pub struct BulkBench(BulkEncoder, VecDeque<Delivery>);

impl BulkBench {
    /// An encoder with these settings.
    pub fn new(config: &Config, context: &Context) -> Self {
        Self(BulkEncoder::new(config, context, Buffers::default()), VecDeque::new())
    }

    /// Encodes one delivery; gives the bytes of the body before and after compression.
    pub fn encode(&mut self, delivery: &Delivery) -> (u64, u64) {
        let mut request = Request::default();
        self.1.push_back(delivery.clone());
        while !self.0.fill(&mut request, &mut self.1) {}
        (request.plain_bytes, request.body_bytes())
    }
}

#[cfg(test)]
mod tests;
