//! What gRPC puts before each message: whether it is compressed, and its length.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use prost::Message;

/// Bytes before a message.
pub const HEAD_BYTES: usize = 5;

/// What stands before a message of `length` bytes: a byte that says whether it is compressed, and the length.
pub fn head(is_compressed: bool, length: u32) -> [u8; HEAD_BYTES] {
    let [a, b, c, d] = length.to_be_bytes();
    [u8::from(is_compressed), a, b, c, d]
}

/// Why a message cannot be read. The stream that it came over is of no use any more.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// We asked for no compression.
    #[error("a message is compressed, which was not asked for")]
    Compressed,
    /// Longer than is read.
    #[error("a message has {length} bytes; at most {most} are read")]
    TooLong {
        /// Its length.
        length: usize,
        /// The bound.
        most: usize,
    },
    /// The stream ended in the middle of one.
    #[error("the answer ends in the middle of a message")]
    Cut,
}

/// A message with what stands before it; `None` if it has more than 4 GiB.
pub(crate) fn framed(message: &impl Message) -> Option<Bytes> {
    let length = message.encoded_len();
    let mut out = BytesMut::with_capacity(HEAD_BYTES + length);
    out.put_slice(&head(false, u32::try_from(length).ok()?));
    // There is room for it.
    message.encode(&mut out).ok()?;
    Some(out.freeze())
}

/// Bytes of a body, and the messages in them.
#[derive(Debug)]
pub(crate) struct Frames {
    bytes: BytesMut,
    /// Of a message.
    bytes_max: usize,
}

impl Frames {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes: BytesMut::new(), bytes_max }
    }

    pub(crate) fn push(&mut self, data: &[u8]) {
        self.bytes.extend_from_slice(data);
    }

    /// Keeps the beginning of what is no message, up to `most` bytes.
    pub(crate) fn push_some(&mut self, data: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len());
        self.push(&data[..data.len().min(room)]);
    }

    /// What is left.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes
    }

    /// The next message, if all of it is there.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        let Some(head) = self.bytes.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let [is_compressed, a, b, c, d] = *head;
        if is_compressed != 0 {
            return Err(FrameError::Compressed);
        }
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        if length > self.bytes_max {
            return Err(FrameError::TooLong { length, most: self.bytes_max });
        }
        if self.bytes.len() < HEAD_BYTES + length {
            self.bytes.reserve(HEAD_BYTES + length - self.bytes.len());
            return Ok(None);
        }
        self.bytes.advance(HEAD_BYTES);
        Ok(Some(self.bytes.split_to(length).freeze()))
    }

    /// The body is over.
    pub(crate) fn end(&self) -> Result<(), FrameError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(FrameError::Cut) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_found_wherever_the_bytes_are_cut() {
        let mut all = Vec::new();
        for message in [&b"one"[..], b"", b"three"] {
            all.extend_from_slice(&head(false, message.len() as u32));
            all.extend_from_slice(message);
        }
        for size in 1..=all.len() {
            let mut frames = Frames::new(5);
            let mut found = Vec::new();
            for piece in all.chunks(size) {
                frames.push(piece);
                while let Some(message) = frames.next().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, ["one", "", "three"]);
            assert_eq!(frames.end(), Ok(()));
        }
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let table = [
            (&b"\x01\0\0\0\x01a"[..], FrameError::Compressed),
            (b"\0\0\0\0\x06abcdef", FrameError::TooLong { length: 6, most: 5 }),
            (b"\0\xff\xff\xff\xff", FrameError::TooLong { length: u32::MAX as usize, most: 5 }),
        ];
        for (bytes, expected) in table {
            let mut frames = Frames::new(5);
            frames.push(bytes);
            assert_eq!(frames.next().unwrap_err(), expected);
        }
        let mut frames = Frames::new(5);
        frames.push(b"\0\0\0\0\x02a");
        assert_eq!(frames.next(), Ok(None));
        assert_eq!(frames.end(), Err(FrameError::Cut));
    }
}
