//! RESP2, the protocol of Redis, as far as it is needed. See <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use skidder_net::{Stream, is_tls_alert};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest answer that is read: `INFO` has a few KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Digits of the largest number.
const DIGITS_MAX: usize = 20;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// An answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status (`+`) or a text (`$`).
    Value(Vec<u8>),
    /// A number (`:`).
    Number(i64),
    /// Nothing.
    Null,
    /// The command failed: kind and reason, as `WRONGTYPE Operation against …`.
    Error(String),
}

/// Why a connection is given up.
#[derive(Debug, thiserror::Error)]
pub enum RespError {
    /// An error of the system.
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    /// It was closed.
    #[error("the server closed the connection")]
    Closed,
    /// No answer.
    #[error("nothing came within `timeout` ({} s)", .0.as_secs_f64())]
    Timeout(Duration),
    /// An alert of TLS.
    #[error("this port speaks TLS: use `rediss://` in `hosts`, or set `ssl`")]
    Tls,
    /// Another protocol; how the answer begins.
    #[error("the server does not speak the protocol of Redis: {0:?}; is it Redis?")]
    Protocol(String),
    /// An answer that this command cannot have.
    #[error(
        "the server answered {answer} to {command}, which does not show that it was done; is there a proxy before it \
         that answers for it?"
    )]
    Unproven {
        /// The command.
        command: &'static str,
        /// Its answer.
        answer: Reply,
    },
    /// An answer to nothing.
    #[error("the server answered more than it was asked")]
    Unsolicited,
}

impl fmt::Display for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) => write!(out, "`{}`", String::from_utf8_lossy(text)),
            Self::Number(number) => write!(out, "`{number}`"),
            Self::Null => out.write_str("nothing"),
            Self::Error(error) => write!(out, "the error `{error}`"),
        }
    }
}

/// An open connection.
pub struct Connection {
    stream: Box<dyn Stream>,
    timeout: Duration,
    /// Received bytes; the unread ones begin at `start`.
    buffer: Vec<u8>,
    start: usize,
    /// Bytes of all answers.
    pub read_bytes: u64,
}

/// Appends the head of a command with so many arguments, its name among them.
pub fn write_head(out: &mut Vec<u8>, arguments: usize) {
    write_number(out, b'*', arguments);
}

/// Appends one argument.
pub fn write_argument(out: &mut Vec<u8>, argument: &[u8]) {
    write_number(out, b'$', argument.len());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

/// Appends one argument that `write` appends, without a copy: its length, which stands before it, is known only
/// afterwards. `usual` is how many digits the one before it had, and which this one has. After an error there is
/// nothing of it.
#[inline]
pub fn write_in_place<E>(
    out: &mut Vec<u8>,
    usual: &mut usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    // Dollar sign, digits and line break.
    let from = start + 1 + *usual + 2;
    out.extend_from_slice(&[0; 3 + DIGITS_MAX]);
    out.truncate(from);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error);
    }
    let length = out.len() - from;
    let mut digits = [0; DIGITS_MAX];
    let digits = decimal(&mut digits, length);
    if digits.len() != *usual {
        *usual = digits.len();
        let to = start + 1 + digits.len() + 2;
        out.resize(out.len().max(to + length), 0);
        out.copy_within(from..from + length, to);
        out.truncate(to + length);
    }
    out[start] = b'$';
    out[start + 1..start + 1 + digits.len()].copy_from_slice(digits);
    out[start + 1 + digits.len()..start + 3 + digits.len()].copy_from_slice(b"\r\n");
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Appends a command.
pub fn write_command(out: &mut Vec<u8>, arguments: &[&[u8]]) {
    write_head(out, arguments.len());
    for argument in arguments {
        write_argument(out, argument);
    }
}

fn write_number(out: &mut Vec<u8>, kind: u8, number: usize) {
    out.push(kind);
    out.extend_from_slice(decimal(&mut [0; DIGITS_MAX], number));
    out.extend_from_slice(b"\r\n");
}

/// The digits of a number.
#[inline]
fn decimal(digits: &mut [u8; DIGITS_MAX], mut number: usize) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    &digits[at..]
}

impl Connection {
    /// `timeout` is for each answer, and for each piece that is written.
    pub fn new(stream: Box<dyn Stream>, timeout: Duration) -> Self {
        Self { stream, timeout, buffer: Vec::new(), start: 0, read_bytes: 0 }
    }

    /// Writes all of `bytes`. Fails if there is unsolicited input: it must not be taken for the answer to
    /// these bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), RespError> {
        if self.start < self.buffer.len() {
            return Err(RespError::Unsolicited);
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let written = tokio::time::timeout(self.timeout, self.stream.write(rest)).await;
            match written.map_err(|_| RespError::Timeout(self.timeout))?? {
                0 => return Err(RespError::Closed),
                count => rest = &rest[count..],
            }
        }
        let flushed = tokio::time::timeout(self.timeout, self.stream.flush()).await;
        flushed.map_err(|_| RespError::Timeout(self.timeout))?.map_err(RespError::Broken)
    }

    /// The next answer.
    pub async fn reply(&mut self) -> Result<Reply, RespError> {
        loop {
            let rest = &self.buffer[self.start..];
            if is_tls_alert(rest) {
                return Err(RespError::Tls);
            }
            if let Some((reply, length)) = parse(rest).map_err(RespError::Protocol)? {
                self.start += length;
                if self.start == self.buffer.len() {
                    self.buffer.clear();
                    self.start = 0;
                }
                return Ok(reply);
            }
            if rest.len() > ANSWER_BYTES_MAX {
                return Err(RespError::Protocol("a very long answer".to_owned()));
            }
            self.read().await?;
        }
    }

    /// One command and its answer.
    pub async fn ask(&mut self, command: &[&[u8]]) -> Result<Reply, RespError> {
        let mut bytes = Vec::new();
        write_command(&mut bytes, command);
        self.send(&bytes).await?;
        self.reply().await
    }

    /// Waits for unsolicited input, which means that the connection is over.
    pub async fn closed(&mut self) {
        let mut byte = [0];
        // Whatever it is, this connection is of no more use.
        drop(self.stream.read(&mut byte).await);
    }

    async fn read(&mut self) -> Result<(), RespError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.reserve(READ_BYTES);
        let read = tokio::time::timeout(self.timeout, self.stream.read_buf(&mut self.buffer)).await;
        match read.map_err(|_| RespError::Timeout(self.timeout))?? {
            0 => Err(RespError::Closed),
            count => {
                self.read_bytes += count as u64;
                Ok(())
            }
        }
    }
}

/// An answer at the beginning of `bytes`, with its length; nothing if it is not all there.
fn parse(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if !b"+-:$".contains(&kind) {
        return Err(shown());
    }
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
    let line = &bytes[1..end];
    let behind = end + 2;
    match kind {
        b'-' => Ok(Some((Reply::Error(String::from_utf8_lossy(line).into_owned()), behind))),
        b'$' => {
            let length: i64 = std::str::from_utf8(line)
                .ok()
                .and_then(|text| text.parse().ok())
                .ok_or_else(shown)?;
            let Ok(length) = usize::try_from(length) else {
                return Ok(Some((Reply::Null, behind)));
            };
            if length > ANSWER_BYTES_MAX {
                return Err(shown());
            }
            let whole = behind + length + 2;
            if bytes.len() < whole {
                return Ok(None);
            }
            Ok(Some((Reply::Value(bytes[behind..behind + length].to_vec()), whole)))
        }
        b':' => {
            let number = std::str::from_utf8(line).ok().and_then(|text| text.parse().ok());
            Ok(Some((Reply::Number(number.ok_or_else(shown)?), behind)))
        }
        _ => Ok(Some((Reply::Value(line.to_vec()), behind))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_arrays_of_texts() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"RPUSH", b"key", b"a\r\nb", b""]);
        assert_eq!(out, b"*4\r\n$5\r\nRPUSH\r\n$3\r\nkey\r\n$4\r\na\r\nb\r\n$0\r\n\r\n");
        out.clear();
        write_head(&mut out, 1_002_340);
        assert_eq!(out, b"*1002340\r\n");
    }

    #[test]
    fn an_argument_that_is_written_in_place_looks_the_same() {
        let (mut copied, mut written, mut usual) = (b"x".to_vec(), b"x".to_vec(), 1);
        for length in [0, 9, 10, 5, 1234, 99, 100, 3, 1_000_000, 0, 0] {
            let argument: Vec<u8> = (0..length).map(|place: usize| place as u8).collect();
            write_argument(&mut copied, &argument);
            let put = |out: &mut Vec<u8>| {
                out.extend_from_slice(&argument);
                Ok::<(), ()>(())
            };
            write_in_place(&mut written, &mut usual, put).unwrap();
            assert_eq!(usual, length.to_string().len());
            assert!(copied == written, "{length}");
            let fail = |out: &mut Vec<u8>| {
                out.push(b'x');
                Err("no text")
            };
            assert_eq!(write_in_place(&mut written, &mut usual, fail), Err("no text"));
            assert!(copied == written, "{length}");
        }
    }

    #[test]
    fn answers_are_read_once_all_of_them_is_there() {
        let value = |text: &str| Reply::Value(text.as_bytes().to_vec());
        let table = [
            ("+OK\r\n", value("OK")),
            (":1000\r\n", Reply::Number(1000)),
            (":-5\r\n", Reply::Number(-5)),
            ("-ERR no\r\n", Reply::Error("ERR no".to_owned())),
            ("$4\r\na\r\nb\r\n", value("a\r\nb")),
            ("$0\r\n\r\n", value("")),
            ("$-1\r\n", Reply::Null),
        ];
        for (text, expected) in table {
            let bytes = text.as_bytes();
            for length in 0..bytes.len() {
                assert_eq!(parse(&bytes[..length]), Ok(None), "{text:?} cut to {length}");
            }
            let more = [bytes, b"+more"].concat();
            assert_eq!(parse(&more), Ok(Some((expected, bytes.len()))), "{text:?}");
        }
        for nonsense in ["HTTP/1.1 400", ":x\r\n", ":1.5\r\n", "$x\r\n", "$99999999\r\n", "\r\n"] {
            parse(nonsense.as_bytes()).unwrap_err();
        }
    }
}
