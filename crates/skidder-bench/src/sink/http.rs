//! As much of HTTP/1.1 (RFC 9112) as a shipper's client uses: the head of a request.

use super::wake;
use std::io::{self, Read};
use std::net::TcpStream;

/// Longest request head that is read.
const HEAD_BYTES_MAX: usize = 64 << 10;

/// A connection with what was read beyond the last request.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: TcpStream,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: vec![0; 256 << 10].into_boxed_slice(), start: 0, end: 0 }
    }

    /// Bytes read and not yet consumed.
    pub(super) fn buffered(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, length: usize) {
        self.start += length;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Reads more after the buffered bytes; `false` at the end of the stream.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Err(invalid("a line is longer than the buffer"));
        }
        let read = self.stream.read(&mut self.buffer[self.end..])?;
        self.end += read;
        Ok(read > 0)
    }

    /// Like [`Connection::fill`] inside a body of which `left` bytes are missing: waits for a large piece.
    pub(super) fn fill_body(&mut self, left: u64) -> io::Result<bool> {
        // Nothing is buffered here, so the whole buffer is room.
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(self.buffer.len());
        wake::wait_for(&self.stream, wanted)?;
        let more = self.fill()?;
        wake::as_usual(&self.stream)?;
        Ok(more)
    }

    /// The next request's head; `None` when the client closed the connection between requests.
    pub(super) fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(length) = memchr::memmem::find(self.buffered(), b"\r\n\r\n") {
                let head = Head::parse(&self.buffered()[..length]);
                self.consume(length + 4);
                return head.map(Some);
            }
            if self.buffered().len() > HEAD_BYTES_MAX {
                return Err(invalid("the head of the request is too long"));
            }
            let between = self.buffered().is_empty();
            if !self.fill()? {
                return if between { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// One line without its `\r\n`.
    pub(super) fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = memchr::memmem::find(self.buffered(), b"\r\n") {
                let line = self.buffered()[..length].to_vec();
                self.consume(length + 2);
                return Ok(line);
            }
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// How the length of a body is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked,
}

/// How a body is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Coding {
    #[default]
    Identity,
    Gzip,
    Zstd,
}

/// The relevant parts of a request's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: String,
    /// Without the query.
    pub(super) path: String,
    /// Behind the `?`; empty without one.
    pub(super) query: String,
    pub(super) framing: Framing,
    pub(super) coding: Coding,
    pub(super) expects_continue: bool,
    pub(super) close: bool,
}

impl Head {
    fn parse(head: &[u8]) -> io::Result<Self> {
        let text = std::str::from_utf8(head).map_err(|_| invalid("the head is not UTF-8"))?;
        let mut lines = text.split("\r\n");
        let mut request = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target)) = (request.next(), request.next()) else {
            return Err(invalid("no request line"));
        };
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut parsed = Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: query.to_owned(),
            framing: Framing::Length(0),
            coding: Coding::Identity,
            expects_continue: false,
            close: false,
        };
        for line in lines {
            if let Some((name, value)) = line.split_once(':') {
                parsed.header(name, value.trim())?;
            }
        }
        Ok(parsed)
    }

    fn header(&mut self, name: &str, value: &str) -> io::Result<()> {
        let is = |wanted: &str| name.eq_ignore_ascii_case(wanted);
        if is("content-length") {
            let length = value.parse().map_err(|_| invalid("`content-length` is no number"))?;
            self.framing = Framing::Length(length);
        } else if is("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            self.framing = Framing::Chunked;
        } else if is("content-encoding") {
            self.coding = match value {
                value if value.eq_ignore_ascii_case("gzip") => Coding::Gzip,
                value if value.eq_ignore_ascii_case("zstd") => Coding::Zstd,
                value if value.eq_ignore_ascii_case("identity") => Coding::Identity,
                _ => return Err(invalid("the body has an unknown `content-encoding`")),
            };
        } else if is("expect") {
            self.expects_continue = value.eq_ignore_ascii_case("100-continue");
        } else if is("connection") {
            self.close = value.eq_ignore_ascii_case("close");
        }
        Ok(())
    }
}

pub(super) fn invalid(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bulk_request_is_read_whatever_the_case_of_its_headers() {
        let head = Head::parse(
            b"POST /logs/_bulk?filter_path=errors HTTP/1.1\r\nhost: x\r\nCONTENT-LENGTH: 12\r\n\
              content-encoding: gzip\r\nExpect: 100-continue\r\nconnection: close",
        )
        .unwrap();
        assert_eq!((head.method.as_str(), head.path.as_str()), ("POST", "/logs/_bulk"));
        assert_eq!(head.query, "filter_path=errors");
        assert_eq!(head.framing, Framing::Length(12));
        assert_eq!(head.coding, Coding::Gzip);
        assert!(head.expects_continue && head.close);
    }

    #[test]
    fn nonsense_is_refused() {
        for head in [
            "",
            "GET",
            "GET / HTTP/1.1\r\ncontent-length: x",
            "GET / HTTP/1.1\r\ncontent-encoding: br",
        ] {
            assert!(Head::parse(head.as_bytes()).is_err(), "{head}");
        }
    }
}
