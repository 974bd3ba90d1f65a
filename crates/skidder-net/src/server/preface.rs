//! Whether a client speaks HTTP/2: the first bytes of its connection say so, over TLS as well.
//!
//! <https://www.rfc-editor.org/rfc/rfc9113#section-3.4>

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

/// The first bytes of a client of HTTP/2.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A stream whose first bytes were read already, and are read again.
#[derive(Debug)]
pub(super) struct Rewound<S> {
    first: [u8; PREFACE.len()],
    /// Of `first`: what was not read again yet.
    rest: std::ops::Range<usize>,
    stream: S,
}

/// What a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// HTTP/1.1, or something else, which it refuses.
    Http1,
    /// HTTP/2.
    Http2,
    /// TLS: the beginning of a handshake.
    Tls,
}

/// Whether a client begins with a handshake of TLS: a record of that type (RFC 8446, 5.1), which no method of HTTP begins
/// with.
fn is_handshake(first: &[u8]) -> bool {
    first.starts_with(&[0x16])
}

/// Reads as much as it needs to know the version. `None` if the client sends too little within `timeout`.
pub(super) async fn version<S: AsyncRead + Unpin>(
    mut stream: S,
    timeout: Duration,
) -> Option<(Version, Rewound<S>)> {
    let mut first = [0; PREFACE.len()];
    let mut read = 0;
    let reading = async {
        loop {
            if first[..read] != PREFACE[..read] {
                return if is_handshake(&first[..read]) { Version::Tls } else { Version::Http1 };
            }
            if read == PREFACE.len() {
                return Version::Http2;
            }
            match stream.read(&mut first[read..]).await {
                // The server finds the same.
                Ok(0) | Err(_) => return Version::Http1,
                Ok(more) => read += more,
            }
        }
    };
    let version = tokio::time::timeout(timeout, reading).await.ok()?;
    Some((version, Rewound { first, rest: 0..read, stream }))
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.rest.len().min(buffer.remaining());
        let end = self.rest.start + length;
        buffer.put_slice(&self.first[self.rest.start..end]);
        self.rest.start = end;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt as _;

    /// Sends pieces one by one; returns the version and all bytes as the server reads them.
    async fn read(pieces: &[&[u8]]) -> (Version, Vec<u8>) {
        let (mut client, server) = tokio::io::duplex(1024);
        let sending = async {
            for piece in pieces {
                client.write_all(piece).await.unwrap();
                tokio::task::yield_now().await;
            }
            client.shutdown().await.unwrap();
        };
        let reading = async {
            let (version, mut stream) = version(server, Duration::from_secs(10)).await.unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).await.unwrap();
            (version, bytes)
        };
        tokio::join!(sending, reading).1
    }

    #[tokio::test]
    async fn the_first_bytes_decide_and_are_read_again() {
        for (text, expected) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0"[..], Version::Http2),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r", Version::Http1),
            (b"PUT / HTTP/1.1\r\n\r\n", Version::Http1),
            (b"PRI", Version::Http1),
            (b"\x16\x03\x01\x02\0\x01\0\x01", Version::Tls),
            (b"", Version::Http1),
        ] {
            for at in 0..=text.len() {
                let (one, other) = text.split_at(at);
                assert_eq!(read(&[one, other]).await, (expected, text.to_vec()), "{text:?} {at}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_sends_too_little_is_given_up() {
        let (mut client, server) = tokio::io::duplex(1024);
        client.write_all(b"PRI *").await.unwrap();
        assert!(version(server, Duration::from_secs(10)).await.is_none());
    }
}
