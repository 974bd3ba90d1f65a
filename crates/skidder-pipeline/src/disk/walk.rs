//! From frame to frame through a segment, over damaged places to the next whole one.

use super::format::{FRAME_HEADER, FRAME_MAGIC, FrameHeader, FrameKey};
use skidder_os::{File, read_exact_at};
use std::io;

/// Bytes that are looked through at once for the next frame.
const WINDOW: usize = 64 * 1024;

/// What stands at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A header that is whole, with a payload that ends where the walk may go.
    Frame(FrameHeader),
    /// The rest, so many bytes, holds no whole frame: 0 is the end as it should be.
    End(u64),
}

/// A way through one segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk {
    pub(crate) key: FrameKey,
    /// Where the next frame is looked for.
    pub(crate) at: u64,
}

impl Walk {
    /// Looks for the next frame from `at` on, which is then where it begins. Nothing from `until` on is looked at.
    pub(crate) fn find(&mut self, file: &dyn File, until: u64) -> io::Result<Step> {
        let start = self.at;
        let mut header = [0; FRAME_HEADER];
        loop {
            if self.at + FRAME_HEADER as u64 > until {
                self.at = start;
                return Ok(Step::End(until.saturating_sub(start)));
            }
            read_exact_at(file, &mut header, self.at)?;
            if let Some(found) = FrameHeader::decode(&header, &self.key, self.at)
                && self.at + found.total() <= until
            {
                return Ok(Step::Frame(found));
            }
            match next_magic(file, self.at + 1, until)? {
                Some(at) => self.at = at,
                None => self.at = until,
            }
        }
    }

    /// Reads the payload of the frame at `at` and goes on behind it; returns whether it is as it was written.
    pub(crate) fn read(
        &mut self,
        file: &dyn File,
        header: &FrameHeader,
        payload: &mut Vec<u8>,
    ) -> io::Result<bool> {
        payload.resize(header.len as usize, 0);
        read_exact_at(file, payload, self.at + FRAME_HEADER as u64)?;
        self.at += header.total();
        Ok(crc32fast::hash(payload) == header.crc)
    }

    /// Goes on behind the frame at `at`.
    pub(crate) fn pass(&mut self, header: &FrameHeader) {
        self.at += header.total();
    }
}

/// Where the first bytes of a frame stand next.
fn next_magic(file: &dyn File, mut at: u64, until: u64) -> io::Result<Option<u64>> {
    let mut window = vec![0; WINDOW];
    while at + FRAME_MAGIC.len() as u64 <= until {
        let len = (until - at).min(WINDOW as u64) as usize;
        read_exact_at(file, &mut window[..len], at)?;
        if let Some(found) = memchr::memmem::find(&window[..len], &FRAME_MAGIC) {
            return Ok(Some(at + found as u64));
        }
        at += (len - FRAME_MAGIC.len() + 1) as u64;
    }
    Ok(None)
}
