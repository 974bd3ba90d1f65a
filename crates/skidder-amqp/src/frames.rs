//! Frames (part 2, 2.3 of the specification): read from and written to a stream.

use crate::error::AmqpError;
use bytes::{Buf as _, Bytes, BytesMut};
use skidder_net::Stream;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};

/// The largest frame that is read, which the peer learns from `open`.
pub(crate) const FRAME_BYTES_MAX: u32 = 1 << 16;
/// The smallest that each side must read, before the other one has said more.
pub(crate) const FRAME_BYTES_MIN: u32 = 512;
/// How long a write may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes before the body.
const HEAD: usize = 8;

/// `AMQP`, the protocol (0: AMQP, 3: SASL), and the version.
pub(crate) const AMQP: [u8; 8] = [b'A', b'M', b'Q', b'P', 0, 1, 0, 0];
/// The same for SASL.
pub(crate) const SASL: [u8; 8] = [b'A', b'M', b'Q', b'P', 3, 1, 0, 0];

/// What a frame is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Amqp = 0,
    Sasl = 1,
}

/// A frame that was read.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) channel: u16,
    /// Empty for a heartbeat.
    pub(crate) body: Bytes,
}

/// Reads frames.
pub(crate) struct Frames {
    stream: ReadHalf<Box<dyn Stream>>,
    buffer: BytesMut,
}

/// Writes frames.
pub(crate) struct Output {
    stream: WriteHalf<Box<dyn Stream>>,
    /// The largest frame that the peer reads.
    pub(crate) frame_bytes_max: u32,
}

/// Both halves of a stream.
pub(crate) fn halves(stream: Box<dyn Stream>) -> (Frames, Output) {
    let (read, write) = tokio::io::split(stream);
    let frames = Frames { stream: read, buffer: BytesMut::new() };
    (frames, Output { stream: write, frame_bytes_max: FRAME_BYTES_MIN })
}

impl Frames {
    /// Waits for so many bytes. Loses nothing if it is cancelled.
    async fn fill(&mut self, length: usize) -> Result<(), AmqpError> {
        while self.buffer.len() < length {
            self.buffer.reserve(FRAME_BYTES_MAX as usize);
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into());
            }
        }
        Ok(())
    }

    /// Reads the head of the protocol.
    pub(crate) async fn protocol(&mut self, expected: [u8; 8]) -> Result<(), AmqpError> {
        self.fill(HEAD).await?;
        let head = self.buffer.split_to(HEAD);
        if head[..] == expected {
            return Ok(());
        }
        let what = if head.starts_with(b"AMQP") {
            format!(
                "it wants the protocol {}, version {}.{}.{}",
                head[4], head[5], head[6], head[7]
            )
        } else if skidder_net::is_tls_alert(&head) {
            "this port speaks TLS".to_owned()
        } else {
            format!("it answered {:?}", String::from_utf8_lossy(&head))
        };
        Err(AmqpError::Protocol(what))
    }

    /// The next frame. Loses nothing if it is cancelled.
    pub(crate) async fn next(&mut self) -> Result<Frame, AmqpError> {
        self.fill(HEAD).await?;
        let head = &self.buffer[..HEAD];
        let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
        let offset = usize::from(head[4]) * 4;
        let (kind, channel) = (head[5], u16::from_be_bytes([head[6], head[7]]));
        if size > FRAME_BYTES_MAX || offset < HEAD || offset > size as usize {
            return Err(AmqpError::Protocol(format!("a frame of {size} bytes begins at {offset}")));
        }
        self.fill(size as usize).await?;
        let mut frame = self.buffer.split_to(size as usize);
        frame.advance(offset);
        Ok(Frame { kind, channel, body: frame.freeze() })
    }

    /// Whether a whole frame was read already.
    pub(crate) fn has_more(&self) -> bool {
        let head = &self.buffer[..];
        head.len() >= HEAD
            && head.len() >= u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize
    }
}

impl Output {
    /// Writes bytes as they are.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> Result<(), AmqpError> {
        let writing = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        match tokio::time::timeout(WRITE_TIMEOUT, writing).await {
            Ok(written) => Ok(written?),
            Err(_) => Err(AmqpError::Timeout("what was sent", WRITE_TIMEOUT.as_secs())),
        }
    }

    /// Writes a frame, at most as long as the peer reads.
    pub(crate) async fn frame(
        &mut self,
        kind: Kind,
        channel: u16,
        body: &[u8],
    ) -> Result<(), AmqpError> {
        let size = u32::try_from(body.len() + HEAD).unwrap_or(u32::MAX);
        if size > self.frame_bytes_max.max(FRAME_BYTES_MIN) {
            let what = format!("a frame of {size} bytes is too long for it");
            return Err(AmqpError::Protocol(what));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        bytes.extend_from_slice(&size.to_be_bytes());
        bytes.extend([2, kind as u8]);
        bytes.extend_from_slice(&channel.to_be_bytes());
        bytes.extend_from_slice(body);
        self.raw(&bytes).await
    }

    /// Closes the stream.
    pub(crate) async fn shutdown(&mut self) {
        // The peer may have closed it.
        drop(tokio::time::timeout(Duration::from_secs(1), self.stream.shutdown()).await);
    }
}
