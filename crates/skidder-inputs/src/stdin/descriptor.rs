//! Reading a descriptor of any kind (pipe, terminal, socket, file) without blocking a task, and so that the reading can be
//! called off.
//!
//! A thread of the runtime waits with `poll` and then reads what is there. The descriptor is not made non-blocking: that would
//! hold for all programs that share it, and for our own standard output if it is the same terminal. epoll would be cheaper
//! for a pipe, but does not know regular files.

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::Errno;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Something to read from.
pub(super) type Descriptor = Arc<dyn AsFd + Send + Sync>;

/// The result of a read.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) bytes: Vec<u8>,
    pub(super) then: Then,
}

/// What follows the bytes that were read.
#[derive(Debug, Default)]
pub(super) enum Then {
    /// More is there already.
    More,
    /// Nothing for now.
    Idle,
    /// Nothing: the far side has closed its end, or it is the end of the file.
    End,
    /// It is not known: the reading was called off.
    #[default]
    CalledOff,
    /// An error.
    Failed(io::Error),
}

/// Reads a descriptor, one chunk after the other.
pub(super) struct Reading {
    descriptor: Descriptor,
    /// Goes to call off the reading.
    wake: Option<PipeWriter>,
    woken: Arc<PipeReader>,
    /// Most bytes of a chunk.
    most: usize,
    pending: Option<JoinHandle<Chunk>>,
}

impl Reading {
    pub(super) fn new(descriptor: Descriptor, most: usize) -> io::Result<Self> {
        let (woken, wake) = io::pipe()?;
        let woken = Arc::new(woken);
        Ok(Self { descriptor, wake: Some(wake), woken, most, pending: None })
    }

    /// Waits for bytes. If the future is dropped, the next call returns what was read.
    pub(super) async fn next(&mut self) -> Chunk {
        let (descriptor, woken, most) = (&self.descriptor, &self.woken, self.most);
        let pending = self.pending.get_or_insert_with(|| {
            let (descriptor, woken) = (Arc::clone(descriptor), Arc::clone(woken));
            tokio::task::spawn_blocking(move || read(descriptor.as_fd(), woken.as_fd(), most))
        });
        let read = pending.await;
        self.pending = None;
        read.unwrap_or_else(failed)
    }

    /// Calls off the reading; returns what was read meanwhile.
    pub(super) async fn call_off(&mut self) -> Chunk {
        self.wake = None;
        let Some(pending) = self.pending.take() else { return Chunk::default() };
        pending.await.unwrap_or_else(failed)
    }

    /// Reads what the system has received at this moment. Of a regular file nothing: what is not read stays there.
    pub(super) async fn drain(&self) -> Chunk {
        let descriptor = Arc::clone(&self.descriptor);
        let drained = tokio::task::spawn_blocking(move || drain(descriptor.as_fd())).await;
        drained.unwrap_or_else(failed)
    }
}

/// A bug in a thread that reads.
fn failed(error: tokio::task::JoinError) -> Chunk {
    Chunk { bytes: Vec::new(), then: Then::Failed(io::Error::other(error)) }
}

/// Waits for bytes, and reads as long as there are some, up to `most`.
fn read(descriptor: BorrowedFd<'_>, woken: BorrowedFd<'_>, most: usize) -> Chunk {
    let mut bytes = Vec::with_capacity(most);
    let then = loop {
        if bytes.len() == most {
            break Then::More;
        }
        let mut polled =
            [PollFd::new(&descriptor, PollFlags::IN), PollFd::new(&woken, PollFlags::IN)];
        let limit = (!bytes.is_empty()).then(Timespec::default);
        match poll(&mut polled, limit.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => break Then::Failed(error.into()),
        }
        if !polled[1].revents().is_empty() {
            break Then::CalledOff;
        }
        if polled[0].revents().is_empty() {
            break Then::Idle;
        }
        let room = most - bytes.len();
        if let Some(then) = read_once(descriptor, &mut bytes, room) {
            break then;
        }
    };
    Chunk { bytes, then }
}

/// Reads up to `most` bytes; returns what ends the reading.
fn read_once(descriptor: BorrowedFd<'_>, bytes: &mut Vec<u8>, most: usize) -> Option<Then> {
    bytes.reserve_exact(most);
    match rustix::io::read(descriptor, spare_capacity(bytes)) {
        Ok(0) => Some(Then::End),
        // Another program that shares it was faster.
        Ok(_) | Err(Errno::INTR | Errno::AGAIN) => None,
        Err(error) => Some(Then::Failed(error.into())),
    }
}

fn drain(descriptor: BorrowedFd<'_>) -> Chunk {
    let mut chunk = Chunk::default();
    let is_file = |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode).is_file();
    if fstat(descriptor).is_ok_and(is_file) {
        return chunk;
    }
    // Nothing where the system cannot say it, as of `/dev/null`.
    let there = rustix::io::ioctl_fionread(descriptor).unwrap_or(0);
    let there = usize::try_from(there).unwrap_or(usize::MAX);
    loop {
        let mut polled = [PollFd::new(&descriptor, PollFlags::IN)];
        match poll(&mut polled, Some(&Timespec::default())) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(_) => return chunk,
        }
        let state = polled[0].revents();
        let is_readable = state.contains(PollFlags::IN);
        if !is_readable && state.contains(PollFlags::HUP) {
            chunk.then = Then::End;
            return chunk;
        }
        if !is_readable || chunk.bytes.len() >= there {
            return chunk;
        }
        let room = there - chunk.bytes.len();
        if let Some(then) = read_once(descriptor, &mut chunk.bytes, room) {
            chunk.then = then;
            return chunk;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};
    use std::time::Duration;

    fn is_end(chunk: &Chunk) -> bool {
        matches!(chunk.then, Then::End)
    }

    fn is_called_off(chunk: &Chunk) -> bool {
        matches!(chunk.then, Then::CalledOff)
    }

    #[tokio::test]
    async fn a_pipe_is_read_in_chunks_until_its_end() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut reading = Reading::new(Arc::new(reader), 4).unwrap();
        writer.write_all(b"abcdef").unwrap();
        let chunk = reading.next().await;
        assert!(matches!(chunk.then, Then::More) && chunk.bytes == b"abcd", "{chunk:?}");
        let chunk = reading.next().await;
        assert!(matches!(chunk.then, Then::Idle) && chunk.bytes == b"ef", "{chunk:?}");
        drop(writer);
        let chunk = reading.next().await;
        assert!(is_end(&chunk) && chunk.bytes.is_empty(), "{chunk:?}");
    }

    #[tokio::test]
    async fn waiting_is_called_off_and_what_was_read_is_kept() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut reading = Reading::new(Arc::new(reader), 64).unwrap();
        // Nothing is there: the thread waits.
        let waited = tokio::time::timeout(Duration::from_millis(20), reading.next()).await;
        assert!(waited.is_err());
        let chunk = reading.call_off().await;
        assert!(is_called_off(&chunk) && chunk.bytes.is_empty(), "{chunk:?}");
        writer.write_all(b"late").unwrap();
        let chunk = reading.drain().await;
        assert!(is_called_off(&chunk) && chunk.bytes == b"late", "{chunk:?}");
        writer.write_all(b"last").unwrap();
        drop(writer);
        let chunk = reading.drain().await;
        assert!(is_end(&chunk) && chunk.bytes == b"last", "{chunk:?}");
    }

    #[tokio::test]
    async fn a_dropped_wait_loses_no_bytes() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut reading = Reading::new(Arc::new(reader), 64).unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(20), reading.next()).await;
        assert!(waited.is_err());
        writer.write_all(b"abc").unwrap();
        let chunk = reading.next().await;
        assert_eq!(chunk.bytes, b"abc");
    }

    #[tokio::test]
    async fn regular_files_are_read_and_left_where_they_are_at_a_stop() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"abcdef").unwrap();
        file.rewind().unwrap();
        let mut reading = Reading::new(Arc::new(file), 4).unwrap();
        assert_eq!(reading.next().await.bytes, b"abcd");
        let chunk = reading.drain().await;
        assert!(is_called_off(&chunk) && chunk.bytes.is_empty(), "{chunk:?}");
        let chunk = reading.next().await;
        assert!(is_end(&chunk) && chunk.bytes == b"ef", "{chunk:?}");
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_error() {
        let directory = std::fs::File::open("/").unwrap();
        let mut reading = Reading::new(Arc::new(directory), 4).unwrap();
        let chunk = reading.next().await;
        assert!(matches!(chunk.then, Then::Failed(_)), "{chunk:?}");
    }
}
