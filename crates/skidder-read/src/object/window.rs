//! The bytes of an object that are here, as a file.

use skidder_os::{File, FileKind, Metadata, Timestamp};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The first bytes of an object, which say how it is compressed and encoded, stay here.
pub const HEAD_BYTES: usize = 4 << 10;

/// A file that grows at its end as an object arrives, and is forgotten at its front as it is read.
#[derive(Debug, Default)]
pub(super) struct Window(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    head: Vec<u8>,
    bytes: Vec<u8>,
    /// Bytes at the front of `bytes` that are forgotten.
    forgotten: usize,
    /// Where `bytes` begin in the object.
    start: u64,
}

impl State {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl Window {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is appended first stands at this place of the object, of which this is the head.
    pub(super) fn begin(&self, start: u64, head: &[u8]) {
        *self.lock() = State { start, head: head.to_vec(), ..State::default() };
    }

    /// Appends what has arrived.
    pub(super) fn append(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let missing = HEAD_BYTES.saturating_sub(state.head.len());
        if missing > 0 && state.end() == state.head.len() as u64 {
            state.head.extend_from_slice(&bytes[..bytes.len().min(missing)]);
        }
        // Each byte is moved once at most, on the average.
        if state.forgotten > state.bytes.len() / 2 {
            let forgotten = std::mem::take(&mut state.forgotten);
            state.bytes.drain(..forgotten);
            state.start += forgotten as u64;
        }
        // Many objects may be open: no room that nothing will fill.
        state.bytes.reserve_exact(bytes.len());
        state.bytes.extend_from_slice(bytes);
    }

    /// Nothing before this place is read any more, but for the head.
    pub(super) fn forget_before(&self, place: u64) {
        let mut state = self.lock();
        let forgotten = usize::try_from(place.saturating_sub(state.start)).unwrap_or(usize::MAX);
        state.forgotten = forgotten.clamp(state.forgotten, state.bytes.len());
    }

    /// Where the object has arrived.
    pub(super) fn end(&self) -> u64 {
        self.lock().end()
    }
}

impl File for Window {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.lock();
        let place = offset.checked_sub(state.start).and_then(|place| usize::try_from(place).ok());
        let from = match place {
            Some(place) if place >= state.forgotten => state.bytes.get(place..),
            _ => usize::try_from(offset).ok().and_then(|place| state.head.get(place..)),
        };
        let is_behind = offset >= state.end();
        match from {
            Some(from) if !from.is_empty() => {
                let count = from.len().min(buffer.len());
                buffer[..count].copy_from_slice(&from[..count]);
                Ok(count)
            }
            _ if is_behind => Ok(0),
            _ => Err(io::Error::other(format!("byte {offset} of an object is not here any more"))),
        }
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata {
            kind: FileKind::Regular,
            size: self.end(),
            modified: Timestamp(0),
            device: 0,
            inode: 0,
            links: 1,
            mode: 0,
            uid: 0,
            gid: 0,
        })
    }

    fn set_len(&self, _size: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(window: &Window, offset: u64, count: usize) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; count];
        let count = window.read_at(&mut buffer, offset)?;
        buffer.truncate(count);
        Ok(buffer)
    }

    #[test]
    fn what_arrives_is_read_once_and_the_head_stays() {
        let window = Window::default();
        window.begin(0, b"");
        let content: Vec<u8> = (0..40_000_u32).flat_map(u32::to_be_bytes).collect();
        let mut given = 0;
        for piece in content.chunks(7_000) {
            window.append(piece);
            given += piece.len();
            assert_eq!(read(&window, given as u64, 9).unwrap(), b"");
            let at = given - piece.len();
            assert_eq!(read(&window, at as u64, 9_000).unwrap(), piece);
            window.forget_before((given - 100) as u64);
            assert_eq!(
                read(&window, (given - 100) as u64, 200).unwrap(),
                content[given - 100..given]
            );
            assert_eq!(read(&window, 10, 20).unwrap(), content[10..30]);
            assert!(window.lock().bytes.len() < 3 * 7_000);
        }
        assert!(read(&window, 50_000, 1).is_err());
        assert_eq!(window.metadata().unwrap().size, content.len() as u64);
    }

    #[test]
    fn what_is_resumed_has_its_head_and_what_came() {
        let window = Window::default();
        window.begin(1_000, b"head");
        window.append(b"more");
        assert_eq!(read(&window, 0, 9).unwrap(), b"head");
        assert_eq!(read(&window, 1_001, 9).unwrap(), b"ore");
        assert_eq!((read(&window, 1_004, 9).unwrap(), window.end()), (Vec::new(), 1_004));
        assert!(read(&window, 999, 1).is_err());
    }
}
