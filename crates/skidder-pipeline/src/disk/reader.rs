//! Reads events from the segments, in the order in which they were written, each once per run.

use super::cipher;
use super::format::{FrameKey, Place, SEGMENT_HEADER};
use super::payload::{self, Origin};
use super::store::{Segment, Store};
use super::survey::segment_path;
use super::walk::{Step, Walk};
use skidder_event::{Bases, Batch};
use skidder_os::File;
use std::io;
use std::sync::Arc;

/// The next item of a queue.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one at a time, moved once")]
pub(crate) enum Next {
    /// Nothing yet.
    Nothing,
    /// The events of a frame, of this sequence number.
    Events(u64, Batch, Option<Origin>),
    /// So many events here cannot be read any more.
    Lost(u64),
}

/// Reads frames.
pub(crate) struct Reader {
    store: Arc<Store>,
    /// The current segment; those before it are done.
    number: u64,
    open: Option<(Walk, Box<dyn File>)>,
    /// Where it was in a file that it has closed: while there is nothing to read it holds no file, which may be removed
    /// to make room.
    closed: Option<Walk>,
    /// Behind the last frame that was read or missed.
    next: Place,
    payload: Vec<u8>,
    bases: Bases,
}

impl Reader {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        let shared = store.lock();
        let next = shared.acks.settled();
        let before = shared.segments.iter().take_while(|segment| segment.first <= next);
        let number = before.last().map_or(0, |segment| segment.number);
        drop(shared);
        let (payload, bases) = (Vec::new(), Bases::default());
        Self { store, number, open: None, closed: None, next, payload, bases }
    }

    /// Behind the last frame that was read or missed.
    pub(crate) fn place(&self) -> Place {
        self.next
    }

    /// The next frame. After an error the same one is tried again.
    pub(crate) fn next(&mut self) -> io::Result<Next> {
        loop {
            let shared = self.store.lock();
            let released = shared.released;
            if self.next >= released {
                drop(shared);
                self.close();
                return Ok(Next::Nothing);
            }
            let segment = shared.segments.iter().find(|segment| segment.number >= self.number);
            let segment = segment.copied();
            drop(shared);
            let Some(segment) = segment else {
                // Segments are there no more.
                return Ok(self.lost(released));
            };
            if let Some(next) = self.look(&segment, released)? {
                return Ok(next);
            }
        }
    }

    /// Looks into a segment; `None` if there is to be another look.
    fn look(&mut self, segment: &Segment, released: Place) -> io::Result<Option<Next>> {
        let Some((mut walk, file)) = self.take_open(segment)? else { return Ok(None) };
        let found = walk.find(&*file, segment.bytes);
        let header = match &found {
            Ok(Step::Frame(header)) if header.place.sequence < segment.end.sequence => *header,
            Err(_) => {
                self.open = Some((walk, file));
                return found.map(|_| None);
            }
            // What a failed write left behind is written again in the segment that follows.
            Ok(_) => {
                walk.at = segment.bytes;
                self.open = Some((walk, file));
                return Ok(self.at_end(segment, released));
            }
        };
        if header.place.sequence < self.next.sequence {
            walk.pass(&header);
            self.open = Some((walk, file));
            return Ok(None);
        }
        if header.place > self.next {
            self.open = Some((walk, file));
            return Ok(Some(self.lost(header.place.min(released))));
        }
        let cipher = match cipher::of(self.store.settings.key.as_ref(), &header) {
            Ok(cipher) => cipher,
            Err(error) => {
                self.open = Some((walk, file));
                return Err(error);
            }
        };
        let key = walk.key;
        let read = walk.read(&*file, &header, &mut self.payload);
        self.open = Some((walk, file));
        let is_whole =
            read? && cipher.is_none_or(|cipher| cipher.open(&key, &header, &mut self.payload));
        let events =
            if is_whole { payload::decode(&self.payload, &mut self.bases).ok() } else { None };
        let Some((batch, origin)) = events.filter(|(batch, _)| batch.len() as u32 == header.rows)
        else {
            return Ok(Some(self.lost(header.end())));
        };
        self.next = header.end();
        self.store.lock().acks.begin(header.place, self.next);
        Ok(Some(Next::Events(header.place.sequence, batch, origin)))
    }

    fn at_end(&mut self, segment: &Segment, released: Place) -> Option<Next> {
        if self.next < segment.end {
            return Some(self.lost(segment.end.min(released)));
        }
        if !segment.sealed {
            self.close();
            return Some(Next::Nothing);
        }
        self.number = segment.number + 1;
        (self.open, self.closed) = (None, None);
        None
    }

    fn close(&mut self) {
        if let Some((walk, _)) = self.open.take() {
            self.closed = Some(walk);
        }
    }

    fn take_open(&mut self, segment: &Segment) -> io::Result<Option<(Walk, Box<dyn File>)>> {
        let open = self.open.take().filter(|(walk, _)| walk.key.segment == segment.number);
        if open.is_some() {
            return Ok(open);
        }
        let path = segment_path(&self.store.settings.path, segment.number);
        let file = self.store.fs.open(&path)?;
        self.number = segment.number;
        let known = self.closed.take().filter(|walk| walk.key.segment == segment.number);
        let key = FrameKey { queue: self.store.queue, segment: segment.number };
        Ok(Some((known.unwrap_or(Walk { key, at: SEGMENT_HEADER as u64 }), file)))
    }

    /// Misses the rest of the segment that cannot be read.
    pub(crate) fn give_up(&mut self) -> Next {
        let shared = self.store.lock();
        let segment = shared.segments.iter().find(|segment| segment.number >= self.number);
        let (number, end) = segment.map_or((self.number, shared.released), |segment| {
            (segment.number + 1, segment.end.min(shared.released))
        });
        drop(shared);
        (self.number, self.open, self.closed) = (number, None, None);
        self.lost(end.max(self.next))
    }

    /// Everything up to `to` is missed.
    fn lost(&mut self, to: Place) -> Next {
        let events = to.event.saturating_sub(self.next.event);
        self.next = to;
        self.store.lock().acks.pass(to);
        self.store.metrics.damaged.add(1);
        self.store.metrics.damaged_events.add(events);
        Next::Lost(events)
    }
}
