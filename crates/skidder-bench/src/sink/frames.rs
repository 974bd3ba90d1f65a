//! Logstash, Redis and Kafka as they look to a shipper, that only count: one blocking thread for a connection, texts of
//! events skipped unread.

use super::kafka;
use anyhow::{Context, Result};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of the buffer of a connection.
const BUFFER_BYTES: usize = 256 << 10;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Lumberjack 2 without compression
    /// (<https://github.com/elastic/go-lumber/blob/main/server/v2/reader.go>).
    Lumberjack,
    /// RESP 2 (<https://redis.io/docs/latest/develop/reference/protocol-spec/>), as far as `RPUSH` needs it.
    Redis,
    /// Kafka 0.11, without compression.
    Kafka,
}

/// A running counter. Its threads end with the process.
#[derive(Debug)]
pub struct Counter {
    address: SocketAddr,
    events: Arc<AtomicU64>,
}

impl Counter {
    /// Listens on a free port of the loopback interface.
    pub fn start(protocol: Protocol) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let address = listener.local_addr().context("a bound socket has an address")?;
        let events = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&events);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let events = Arc::clone(&counted);
                std::thread::spawn(move || {
                    if let Err(error) = serve(&stream, protocol, &events) {
                        crate::measure::note(&format!("{protocol:?}: {error}"));
                    }
                });
            }
        });
        Ok(Self { address, events })
    }

    /// `host:port`.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Events that came and were acknowledged.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}

fn serve(stream: &TcpStream, protocol: Protocol, events: &AtomicU64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let port = stream.local_addr()?.port();
    let mut input = BufReader::with_capacity(BUFFER_BYTES, stream);
    while !input.fill_buf()?.is_empty() {
        let (count, answer) = match protocol {
            Protocol::Lumberjack => window(&mut input)?,
            Protocol::Redis => command(&mut input)?,
            Protocol::Kafka => kafka::question(&mut input, port)?,
        };
        // The sender may end and read the counts after the answer.
        events.fetch_add(count, Ordering::Relaxed);
        (&*stream).write_all(&answer)?;
    }
    Ok(())
}

/// Reads a window: how many events it has, and their acknowledgement.
fn window(input: &mut impl BufRead) -> io::Result<(u64, Vec<u8>)> {
    let mut head = [0; 6];
    input.read_exact(&mut head)?;
    let count = counted(&head, *b"2W")?;
    for _ in 0..count {
        input.read_exact(&mut head)?;
        counted(&head, *b"2J")?;
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        skip(input, u32::from_be_bytes(length).into())?;
    }
    let mut answer = b"2A".to_vec();
    answer.extend(count.to_be_bytes());
    Ok((count.into(), answer))
}

/// The number in a frame of this kind.
fn counted(frame: &[u8; 6], kind: [u8; 2]) -> io::Result<u32> {
    let [first, second, number @ ..] = *frame;
    if [first, second] != kind {
        return Err(invalid("a frame of another kind"));
    }
    Ok(u32::from_be_bytes(number))
}

/// Reads a command: how many events it has, and the answer.
fn command(input: &mut impl BufRead) -> io::Result<(u64, Vec<u8>)> {
    let parts = number(input, b'*')?;
    let mut name = vec![0; usize::try_from(number(input, b'$')?).map_err(io::Error::other)?];
    input.read_exact(&mut name)?;
    skip(input, 2)?;
    for _ in 1..parts {
        let length = number(input, b'$')?;
        skip(input, length + 2)?;
    }
    match &*name {
        b"RPUSH" => {}
        b"PING" => return Ok((0, b"+PONG\r\n".to_vec())),
        _ => return Ok((0, b"+OK\r\n".to_vec())),
    }
    let events = parts.saturating_sub(2);
    Ok((events, format!(":{events}\r\n").into_bytes()))
}

/// A line with a number behind `kind`.
fn number(input: &mut impl BufRead, kind: u8) -> io::Result<u64> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    let text = line.strip_prefix(&[kind]).and_then(|rest| rest.strip_suffix(b"\r\n"));
    let parsed = text.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
    parsed.ok_or_else(|| invalid("a line that is no number"))
}

pub(super) fn skip(input: &mut impl BufRead, length: u64) -> io::Result<()> {
    match io::copy(&mut input.take(length), &mut io::sink())? {
        skipped if skipped == length => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(protocol: Protocol, sent: &[u8], answer: &[u8]) -> u64 {
        let counter = Counter::start(protocol).unwrap();
        let mut stream = TcpStream::connect(counter.address()).unwrap();
        stream.write_all(sent).unwrap();
        let mut came = vec![0; answer.len()];
        stream.read_exact(&mut came).unwrap();
        assert_eq!(came, answer);
        counter.events()
    }

    #[test]
    fn windows_are_counted_and_acknowledged() {
        let mut sent = b"2W\0\0\0\x02".to_vec();
        for sequence in [1, 2] {
            sent.extend(b"2J\0\0\0");
            sent.extend([sequence, 0, 0, 0, 2]);
            sent.extend(b"{}");
        }
        assert_eq!(exchange(Protocol::Lumberjack, &sent, b"2A\0\0\0\x02"), 2);
    }

    #[test]
    fn values_of_a_list_are_counted_and_other_commands_are_not() {
        let sent = b"*1\r\n$4\r\nPING\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*4\r\n$5\r\nRPUSH\r\n$1\r\nk\r\n$2\r\n{}\r\n$2\r\n{}\r\n";
        assert_eq!(exchange(Protocol::Redis, sent, b"+PONG\r\n+OK\r\n:2\r\n"), 2);
    }

    #[test]
    fn what_is_cut_or_something_else_is_an_error() {
        for text in [&b"2W\0\0\0\x01"[..], b"2J\0\0\0\x01", b"2W\0\0\0\x01xJ\0\0\0\x01\0\0\0\x01x"]
        {
            assert!(window(&mut &*text).is_err(), "{text:?}");
        }
        for text in [&b"*x\r\n"[..], b"PING\r\n", b"*2\r\n$1\r\na\r\n$9\r\nshort"] {
            assert!(command(&mut &*text).is_err(), "{text:?}");
        }
    }
}
