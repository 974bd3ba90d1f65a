//! The state of a closed reader: there may be very many of them, and few are read again.

use super::{Reader, Target};
use crate::readers::ReaderLook;
use skidder_event::{SourceId, Tail};
use std::sync::Arc;

/// The state of a closed reader: the fields of [`Reader`] that outlive its open file.
pub(crate) struct Rest {
    key: Arc<str>,
    pub(crate) target: Target,
    generation: u32,
    finished: bool,
    unverified: bool,
    offset: u64,
    tail: Option<Tail>,
    stored_seen: u64,
}

impl Rest {
    /// Where the source stands, as far as its reader knows.
    pub(crate) fn look(&self) -> ReaderLook {
        ReaderLook {
            generation: self.generation,
            offset: self.offset,
            tail: self.tail,
            finished: self.finished,
            unverified: self.unverified,
            stored_seen: self.stored_seen,
            ..ReaderLook::default()
        }
    }
}

impl Reader {
    /// Where the source stands, as far as its reader knows.
    pub(crate) fn look(&self) -> ReaderLook {
        ReaderLook {
            generation: self.generation,
            offset: self.offset,
            tail: self.tail,
            finished: self.finished,
            unverified: self.unverified,
            stored_seen: self.stored_seen,
            open: self.is_open(),
            group_waits: self.has_unfinished_group(),
            ..ReaderLook::default()
        }
    }

    /// Takes the state out of a closed reader; `None` if it is open or remembers groups.
    pub(crate) fn take_rest(&mut self) -> Option<Rest> {
        if self.is_open() || self.remembers_groups() {
            return None;
        }
        Some(Rest {
            key: std::mem::take(&mut self.key),
            target: self.target.clone(),
            generation: self.generation,
            finished: self.finished,
            unverified: self.unverified,
            offset: self.offset,
            tail: self.tail,
            stored_seen: self.stored_seen,
        })
    }

    /// The closed reader that `rest` was taken from.
    pub(crate) fn from_rest(id: SourceId, rest: Rest) -> Self {
        let Rest { key, target, generation, offset, tail, .. } = rest;
        let mut reader = Self::new(id, key, generation, target, offset, tail);
        reader.finished = rest.finished;
        reader.unverified = rest.unverified;
        reader.stored_seen = rest.stored_seen;
        reader
    }
}
