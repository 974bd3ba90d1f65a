//! A stream over a websocket (RFC 6455, with the protocol `amqp`), for networks where only HTTPS gets out
//! (<https://docs.oasis-open.org/amqp-bindmap/amqp-wsb/v1.0/amqp-wsb-v1.0.html>).

use crate::error::AmqpError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use skidder_net::{AGENT, Stream};
use std::io;
use tokio::io::{
    AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::sync::mpsc;
use tracing::Instrument as _;

/// What the server adds to the key before it hashes it (RFC 6455, 1.3).
const SEAL: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest head of an answer.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The longest piece that is sent in a frame, and bytes that wait on either side.
const PIECE_BYTES: usize = 16 << 10;
/// The longest message of control (RFC 6455, 5.5).
const CONTROL_BYTES_MAX: u64 = 125;
/// Answers to signs of life that wait.
const PONGS_MAX: usize = 4;

const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Asks the server to go on with a websocket. What is read and written then is that of AMQP.
///
/// # Errors
///
/// The server, or a proxy before it, does not do that.
pub async fn upgrade(
    mut stream: Box<dyn Stream>,
    host: &str,
    path: &str,
) -> Result<Box<dyn Stream>, AmqpError> {
    let mut key = [0; 16];
    fill(&mut key)?;
    let key = STANDARD.encode(key);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: amqp\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    // Byte by byte: what follows the head is not ours to read.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD_BYTES_MAX {
            return Err(AmqpError::Protocol("the head of its answer has no end".into()));
        }
        head.push(stream.read_u8().await?);
    }
    check(&String::from_utf8_lossy(&head), &key)?;
    let (ours, theirs) = tokio::io::duplex(4 * PIECE_BYTES);
    tokio::spawn(
        async move {
            if let Err(error) = bridge(theirs, stream).await {
                tracing::debug!(%error, "a websocket broke");
            }
        }
        .in_current_span(),
    );
    Ok(Box::new(ours))
}

fn fill(bytes: &mut [u8]) -> io::Result<()> {
    SystemRandom::new()
        .fill(bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))
}

fn check(head: &str, key: &str) -> Result<(), AmqpError> {
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("101") {
        return Err(AmqpError::Protocol(format!("it answers the websocket with `{status}`")));
    }
    let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{SEAL}").as_bytes());
    let expected = STANDARD.encode(hash);
    let accepted = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("sec-websocket-accept").then(|| value.trim())
    });
    if accepted != Some(&*expected) {
        return Err(AmqpError::Protocol("its answer is to another websocket".into()));
    }
    Ok(())
}

/// Carries bytes in both directions until one of them ends.
async fn bridge(inner: DuplexStream, outer: Box<dyn Stream>) -> io::Result<()> {
    let (inner_read, inner_write) = tokio::io::split(inner);
    let (outer_read, outer_write) = tokio::io::split(outer);
    let (pongs, pings) = mpsc::channel(PONGS_MAX);
    tokio::select! {
        ended = receive(outer_read, inner_write, pongs) => ended,
        ended = send(inner_read, outer_write, pings) => ended,
    }
}

async fn receive(
    mut from: ReadHalf<Box<dyn Stream>>,
    mut to: WriteHalf<DuplexStream>,
    pongs: mpsc::Sender<Vec<u8>>,
) -> io::Result<()> {
    loop {
        let (opcode, length) = read_head(&mut from).await?;
        match opcode {
            0..=BINARY => copy(&mut from, &mut to, length).await?,
            PING | PONG | CLOSE if length <= CONTROL_BYTES_MAX => {
                let mut payload = vec![0; length as usize];
                from.read_exact(&mut payload).await?;
                match opcode {
                    // One more than there is room for is not answered.
                    PING => drop(pongs.try_send(payload)),
                    CLOSE => return to.shutdown().await,
                    _ => {}
                }
            }
            _ => return Err(io::Error::other("a frame that no websocket has")),
        }
    }
}

/// The kind of a frame, and the bytes behind its head.
async fn read_head(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, u64)> {
    let (first, second) = (from.read_u8().await?, from.read_u8().await?);
    if first & 0x70 != 0 || second & 0x80 != 0 {
        return Err(io::Error::other("a frame with bits that a server may not set"));
    }
    let length = match second {
        126 => u64::from(from.read_u16().await?),
        127 => from.read_u64().await?,
        short => u64::from(short),
    };
    Ok((first & 0x0f, length))
}

async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut length: u64,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    while length > 0 {
        let most = usize::try_from(length).unwrap_or(usize::MAX).min(PIECE_BYTES);
        let read = from.read(&mut piece[..most]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        to.write_all(&piece[..read]).await?;
        length -= read as u64;
    }
    Ok(())
}

async fn send(
    mut from: ReadHalf<DuplexStream>,
    mut to: WriteHalf<Box<dyn Stream>>,
    mut pings: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        tokio::select! {
            read = from.read(&mut piece) => {
                let read = read?;
                if read == 0 {
                    to.write_all(&frame(CLOSE, &[])?).await?;
                    return to.shutdown().await;
                }
                to.write_all(&frame(BINARY, &piece[..read])?).await?;
            }
            Some(payload) = pings.recv() => to.write_all(&frame(PONG, &payload)?).await?,
        }
        to.flush().await?;
    }
}

/// A frame of a client, which is masked.
fn frame(opcode: u8, payload: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(payload.len() + 8);
    bytes.push(0x80 | opcode);
    match u8::try_from(payload.len()) {
        Ok(length) if length < 126 => bytes.push(0x80 | length),
        _ => {
            let length = u16::try_from(payload.len()).map_err(io::Error::other)?;
            bytes.push(0x80 | 0x7e);
            bytes.extend_from_slice(&length.to_be_bytes());
        }
    }
    let mut mask = [0; 4];
    fill(&mut mask)?;
    bytes.extend_from_slice(&mask);
    bytes.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_one_to_this_key() {
        // The example of RFC 6455, 1.3.
        let answer = |accept: &str| {
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nSEC-WebSocket-Accept: {accept}\r\n\r\n"
            )
        };
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        assert!(check(&answer("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), key).is_ok());
        assert!(check(&answer("s3pPLMBiTxaQ9kYGzzhZRbK+xOP="), key).is_err());
        let error = check("HTTP/1.1 403 Forbidden\r\n\r\n", key).unwrap_err().to_string();
        assert!(error.contains("`HTTP/1.1 403 Forbidden`"), "{error}");
    }

    #[test]
    fn frames_are_masked_and_say_how_long_they_are() {
        for length in [0, 1, 125, 126, 1000, PIECE_BYTES] {
            let payload = vec![7; length];
            let bytes = frame(BINARY, &payload).unwrap();
            assert_eq!((bytes[0], bytes[1] & 0x80), (0x82, 0x80));
            let head = if length < 126 { 2 } else { 4 };
            assert_eq!(bytes.len(), head + 4 + length);
            let (mask, masked) = bytes[head..].split_at(4);
            let clear: Vec<u8> =
                masked.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect();
            assert_eq!(clear, payload);
        }
    }

    #[tokio::test]
    async fn what_comes_in_frames_is_one_stream() {
        let (outer, mut server) = tokio::io::duplex(1 << 20);
        let (mut ours, theirs) = tokio::io::duplex(1 << 20);
        let bridging = tokio::spawn(bridge(theirs, Box::new(outer)));
        // A frame, a sign of life, a message in two frames, the end.
        for bytes in [
            b"\x82\x02ab".as_slice(),
            b"\x89\x01p",
            b"\x02\x01c",
            b"\x80\x7e\x00\x02de",
            b"\x88\x00",
        ] {
            server.write_all(bytes).await.unwrap();
        }
        let mut all = String::new();
        ours.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "abcde");
        bridging.await.unwrap().unwrap();
        let mut masked = vec![0; 6];
        // The answer may not have been sent before the end.
        if let Ok(read) = server.read(&mut masked).await {
            assert!(read == 0 || masked[0] == 0x8a, "{masked:02x?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_frame_ends_it() {
        for bytes in [
            b"\xf2\x01a".as_slice(),
            b"\x82\x81abcd",
            b"\x83\x00",
            b"\x89\x7e\x00\xff",
            b"\x82\x05ab",
        ] {
            let (outer, mut server) = tokio::io::duplex(1 << 20);
            let (_ours, theirs) = tokio::io::duplex(1 << 20);
            let bridging = tokio::spawn(bridge(theirs, Box::new(outer)));
            server.write_all(bytes).await.unwrap();
            drop(server);
            assert!(bridging.await.unwrap().is_err(), "{bytes:02x?}");
        }
    }
}
