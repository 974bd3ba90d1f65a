//! What objects of stores want of a reader besides what files do.

use super::{Reader, TAIL_BYTES, TAIL_BYTES_MAX};
use skidder_event::Map;
use std::sync::Arc;

impl Reader {
    /// What all its events have besides those of files.
    pub(crate) fn set_fields(&mut self, fields: Arc<Map>) {
        self.more_fields = Some(fields);
    }

    /// The first byte of the file, as stored, that a later turn may read.
    pub(crate) fn needed_from(&self) -> u64 {
        match &self.decoder {
            Some(decoder) if decoder.is_compressed() => {
                decoder.stored_offset().saturating_sub(TAIL_BYTES as u64)
            }
            _ => self.offset.saturating_sub(TAIL_BYTES_MAX as u64),
        }
    }

    /// The same while records are read that are no lines: none is read twice.
    pub(crate) fn needed_by_records(&self) -> u64 {
        self.decoder
            .as_ref()
            .map_or(0, |decoder| decoder.stored_offset().saturating_sub(TAIL_BYTES as u64))
    }
}
