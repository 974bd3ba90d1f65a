//! `exactly_once`: an `_id` that is the same whenever a line is sent, so that the server recognises it.
//!
//! It names the place of the line: the agent, source and generation, the offset; and a checksum
//! of the line, so that a place that holds another line by now has another id. See
//! docs/decisions/0015-exactly-once.md.
//!
//! ```text
//! q8Zk2mXw0rT4uVbN-1f3a0-9c4e77d1
//! └ agent, source,   │     └ CRC-32 of the text
//!   generation       └ offset
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use sha2::{Digest as _, Sha256};
use skidder_event::Batch;
use skidder_outputs::Context;
use skidder_pipeline::Delivery;
use std::io::Write as _;
use std::sync::Arc;

/// Bytes of the hash that are used: among 2^32 sources the chance that two are alike is 2^-33.
const HASH_BYTES: usize = 12;

/// Writes ids. One for each encoder.
#[derive(Debug)]
pub(crate) struct Ids {
    agent: String,
    /// The source of `prefix`: generation and key.
    source: Option<(u32, Arc<str>)>,
    prefix: String,
}

impl Ids {
    pub(crate) fn new(context: &Context) -> Self {
        let agent = format!("{}\0{}", context.agent_id, context.agent_name);
        Self { agent, source: None, prefix: String::new() }
    }

    /// The next events are of this delivery.
    pub(crate) fn begin(&mut self, delivery: &Delivery) {
        let generation = delivery.batch.provenance().generation();
        // A source stays known as long as lines of it are on their way, and in the disk queue.
        let key = delivery.ticket.origin().map_or_else(|| Arc::from(""), |it| it.key);
        let current = (generation, key);
        if self.source.as_ref() == Some(&current) {
            return;
        }
        let mut hash = Sha256::new();
        for part in [self.agent.as_bytes(), current.1.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(generation.to_le_bytes());
        self.prefix.clear();
        BASE64.encode_string(&hash.finalize()[..HASH_BYTES], &mut self.prefix);
        self.source = Some(current);
    }

    /// Appends the id of an event of the delivery that was begun.
    #[inline]
    pub(crate) fn write(&self, out: &mut Vec<u8>, batch: &Batch, row: usize) {
        let row = &batch.rows()[row];
        let checksum = crc32fast::hash(batch.text(row.message));
        out.extend_from_slice(self.prefix.as_bytes());
        write!(out, "-{:x}-{checksum:08x}", row.offset).expect("a vector takes everything");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{batch_with, context, deliveries};
    use skidder_event::Map;

    fn id(context: &Context, lines: &[&str], row: usize) -> String {
        let delivery = deliveries(vec![batch_with(lines, &Map::new(), &Map::new())]).remove(0);
        let mut ids = Ids::new(context);
        ids.begin(&delivery);
        let mut out = Vec::new();
        ids.write(&mut out, &delivery.batch, row);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_id_is_the_same_for_the_same_line_at_the_same_place_only() {
        let first = id(&context(), &["one", "two"], 1);
        assert_eq!(first, id(&context(), &["one", "two"], 1));
        let (prefix, rest) = first.split_at(16);
        assert_eq!(rest, format!("-4-{:08x}", crc32fast::hash(b"two")));
        let elsewhere = id(&context(), &["five", "two"], 1);
        let another = id(&context(), &["one", "too"], 1);
        assert!(first != elsewhere && first != another);
        assert!(elsewhere.starts_with(prefix) && another.starts_with(prefix));
        for other in [
            Context { agent_id: "other".to_owned(), ..context() },
            Context { agent_name: "other".to_owned(), ..context() },
        ] {
            assert!(!id(&other, &["one", "two"], 1).starts_with(prefix));
        }
    }
}
