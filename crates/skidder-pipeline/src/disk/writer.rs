//! From events to durable frames. What could not be made durable is written again, in another segment.

use super::cipher::{self, DiskQueueKey};
use super::format::{FrameHeader, FrameKey, Place, SEGMENT_HEADER, SegmentHeader};
use super::payload::{self, Origin};
use super::store::{FILE_MODE, Segment, Store};
use super::survey::segment_path;
use skidder_event::Batch;
use skidder_os::{File, OpenMode, write_all_at};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Writes frames.
pub(crate) struct Writer {
    store: Arc<Store>,
    active: Option<Active>,
    /// Behind the last frame that was added.
    next: Place,
    payload: Vec<u8>,
    /// Kept for its room.
    pending: Vec<u8>,
}

/// The segment that is written to.
struct Active {
    file: Box<dyn File>,
    number: u64,
    first: Place,
    /// Bytes that are durable: 0 as long as the name of the file is not.
    len: u64,
    /// What comes behind them.
    pending: Vec<u8>,
}

impl Active {
    /// Bytes with those that are pending.
    fn total(&self) -> u64 {
        self.len + self.pending.len() as u64
    }
}

impl Writer {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let next = store.lock().durable;
        Self { store, active: None, next, payload: Vec::new(), pending: Vec::new() }
    }

    /// Bytes that [`Writer::flush`] would write.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.active.as_ref().map_or(0, |active| active.pending.len())
    }

    /// Adds a frame; it is durable after the next [`Writer::flush`]. `false` = there is no room for it now. After an
    /// error all that was not durable is to be added again.
    pub(crate) fn add(
        &mut self,
        batch: &Batch,
        rows: Range<u32>,
        origin: Option<&Origin>,
        flushed: &mut dyn FnMut(),
    ) -> io::Result<bool> {
        self.payload.clear();
        payload::encode(batch, rows.clone(), origin, &mut self.payload);
        let store = Arc::clone(&self.store);
        let cipher = store.settings.key.as_ref();
        let mut header = FrameHeader {
            place: self.next,
            rows: rows.len() as u32,
            len: (self.payload.len() + cipher.map_or(0, |_| cipher::OVERHEAD)) as u32,
            crc: 0,
            key: cipher.map(DiskQueueKey::id),
        };
        let is_full = self.active.as_ref().is_some_and(|active| {
            active.total() > SEGMENT_HEADER as u64
                && active.total() + header.total() > self.store.settings.segment_size
        });
        if is_full {
            self.flush()?;
            flushed();
            self.seal();
        }
        if !self.has_room(header.total()) {
            return Ok(false);
        }
        if self.active.is_none() {
            self.active = Some(self.begin()?);
        }
        let Some(active) = &mut self.active else { return Ok(false) };
        let key = FrameKey { queue: self.store.queue, segment: active.number };
        if let Some(cipher) = cipher
            && let Err(error) = cipher.seal(&key, header.place, header.rows, &mut self.payload)
        {
            self.abandon();
            return Err(error);
        }
        header.crc = crc32fast::hash(&self.payload);
        let encoded = header.encode(&key, active.total());
        active.pending.extend_from_slice(&encoded);
        active.pending.extend_from_slice(&self.payload);
        self.next = header.end();
        Ok(true)
    }

    /// Whether so many bytes may be added. A frame above the bound is added to an empty queue.
    fn has_room(&mut self, bytes: u64) -> bool {
        let max = self.store.settings.max_size;
        let pending = self.pending_bytes();
        let header = if self.active.is_some() { 0 } else { SEGMENT_HEADER as u64 };
        let mut shared = self.store.lock();
        if max == 0 || shared.bytes() + pending as u64 + header + bytes <= max {
            return true;
        }
        if pending > 0 || shared.events() > 0 {
            return false;
        }
        // Nothing of what takes the room is needed: the segment that is written to goes, too.
        if let Some(active) = self.active.take() {
            seal(&mut shared.segments, active.number);
        }
        shared.segments.is_empty()
    }

    /// Makes all frames durable that were added.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Some(active) = &mut self.active else { return Ok(()) };
        if active.pending.is_empty() {
            return Ok(());
        }
        let written = write_all_at(&*active.file, &active.pending, active.len)
            .and_then(|()| active.file.sync())
            .and_then(|()| match active.len {
                0 => self.store.fs.sync_dir(&self.store.settings.path),
                _ => Ok(()),
            });
        if let Err(error) = written {
            self.abandon();
            return Err(error);
        }
        let is_new = active.len == 0;
        active.len = active.total();
        let metrics = &self.store.metrics;
        metrics.written_bytes.add(active.pending.len() as u64);
        active.pending.clear();
        let (number, first, bytes, end) = (active.number, active.first, active.len, self.next);
        self.store.change(|shared| {
            metrics.written_frames.add(end.sequence - shared.durable.sequence);
            if is_new {
                let (size, sealed) = (bytes, false);
                shared.segments.push_back(Segment { number, first, end, bytes, size, sealed });
            } else if let Some(last) = shared.segments.back_mut() {
                (last.bytes, last.size, last.end) = (bytes, bytes, end);
            }
            shared.durable = end;
        });
        Ok(())
    }

    /// Nothing more is written to the segment.
    pub(crate) fn seal(&mut self) {
        if let Some(active) = self.active.take() {
            self.pending = active.pending;
            self.store.change(|shared| seal(&mut shared.segments, active.number));
        }
    }

    fn begin(&mut self) -> io::Result<Active> {
        let number = self.store.change(|shared| {
            shared.next_number += 1;
            shared.next_number - 1
        });
        let path = segment_path(&self.store.settings.path, number);
        let file = self.store.fs.open_write(&path, OpenMode::New, FILE_MODE);
        let file = file.inspect_err(|_| self.next = self.store.lock().durable)?;
        let key = self.store.settings.key.as_ref().map(DiskQueueKey::id);
        let header = SegmentHeader { queue: self.store.queue, number, first: self.next, key };
        let mut pending = std::mem::take(&mut self.pending);
        pending.clear();
        pending.extend_from_slice(&header.encode());
        let first = self.next;
        Ok(Active { file, number, first, len: 0, pending })
    }

    /// After a failure it is unknown which of the pending bytes are on the disk, and the system may have forgotten
    /// them: they are cut off, and written anew elsewhere.
    fn abandon(&mut self) {
        let Some(active) = self.active.take() else { return };
        let path = segment_path(&self.store.settings.path, active.number);
        if active.len == 0 {
            // What is left of it holds no frame that counts.
            if let Err(error) = self.store.fs.remove_file(&path) {
                tracing::debug!(%error, path = %path.display(), "an unfinished segment stays");
            }
        } else if let Err(error) = active.file.set_len(active.len) {
            tracing::debug!(%error, path = %path.display(), "an unfinished frame stays");
        }
        let size = active.file.metadata().map_or(active.len, |of| of.size);
        self.next = self.store.change(|shared| {
            seal(&mut shared.segments, active.number);
            if let Some(last) = shared.segments.back_mut().filter(|of| of.number == active.number) {
                last.size = size;
            }
            shared.durable
        });
    }
}

fn seal(segments: &mut std::collections::VecDeque<Segment>, number: u64) {
    if let Some(last) = segments.back_mut().filter(|last| last.number == number) {
        last.sealed = true;
    }
}
