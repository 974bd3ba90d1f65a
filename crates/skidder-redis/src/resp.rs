//! RESP2, the protocol of Redis, as far as it is needed. See <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

use crate::advice::with_advice;
use skidder_net::{Stream, WithoutTls, is_hang_up, is_tls_alert, plain_remedy};
use std::fmt;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Longest answer that is read, unless another bound is set: `INFO` has a few KiB.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Lists in lists of an answer: those of streams have five.
const DEPTH_MAX: usize = 8;

/// Bytes of the first line of a value, which has a number, a status or an error.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Digits of the largest number.
const DIGITS_MAX: usize = 20;
/// Most memory that is kept for the next answer behind a shorter one.
const KEPT_BYTES_MAX: usize = 256 << 10;
/// Bytes of one read.
const READ_BYTES: usize = 16 << 10;

/// How long to wait for what a server says that takes no more of a command.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// An answer to one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status (`+`) or a text (`$`).
    Value(Vec<u8>),
    /// A number (`:`).
    Number(i64),
    /// Nothing.
    Null,
    /// Several (`*`).
    List(Vec<Reply>),
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
    #[error("{}", plain_remedy(WithoutTls::Redis, true))]
    Tls,
    /// A connection without TLS was closed before the first answer.
    #[error("{}{}", .0, plain_remedy(WithoutTls::Redis, false))]
    Unanswered(Box<RespError>),
    /// The server ended the connection with an error, while a command was sent.
    #[error("the server ended the connection: {}", with_advice(.0))]
    Ended(String),
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
    /// An answer that is longer than it may be.
    #[error("the server's answer is longer than {0} bytes")]
    TooLong(usize),
}

impl Reply {
    /// The same, but of a list only how many items it has: what an error shows of an answer.
    pub fn outline(&self) -> Self {
        match self {
            Self::List(items) => Self::List(vec![Self::Null; items.len()]),
            other => other.clone(),
        }
    }
}

impl fmt::Display for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(text) => write!(out, "`{}`", String::from_utf8_lossy(text)),
            Self::Number(number) => write!(out, "`{number}`"),
            Self::Null => out.write_str("nothing"),
            Self::List(items) => write!(out, "a list of {}", items.len()),
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
    /// How far the next answer was looked through.
    scan: Scan,
    answer_bytes_max: usize,
    /// It is not encrypted, and there was no answer yet.
    is_plain_and_new: bool,
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
        Self {
            stream,
            timeout,
            buffer: Vec::new(),
            start: 0,
            scan: Scan::default(),
            answer_bytes_max: ANSWER_BYTES_MAX,
            is_plain_and_new: false,
            read_bytes: 0,
        }
    }

    /// It is not encrypted: a server that closes it at once may want TLS.
    #[must_use]
    pub fn without_tls(self) -> Self {
        Self { is_plain_and_new: true, ..self }
    }

    /// Longer answers are an error.
    pub fn set_answer_bytes_max(&mut self, bytes: usize) {
        self.answer_bytes_max = bytes;
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
            match written.map_err(|_| RespError::Timeout(self.timeout))? {
                Ok(0) => return Err(self.over(RespError::Closed)),
                Ok(count) => rest = &rest[count..],
                Err(error) => return Err(self.last_words(error).await),
            }
        }
        let flushed = tokio::time::timeout(self.timeout, self.stream.flush()).await;
        match flushed.map_err(|_| RespError::Timeout(self.timeout))? {
            Ok(()) => Ok(()),
            Err(error) => Err(self.last_words(error).await),
        }
    }

    /// Why nothing can be sent: the server may have said so before it hung up.
    async fn last_words(&mut self, error: io::Error) -> RespError {
        match self.reply_within(LAST_WORDS_MAX).await {
            Ok(Reply::Error(words)) => RespError::Ended(words),
            Err(RespError::Tls) => RespError::Tls,
            _ => self.over(RespError::Broken(error)),
        }
    }

    /// The error of a connection that is over.
    fn over(&self, error: RespError) -> RespError {
        let is_hung_up = match &error {
            RespError::Closed => true,
            RespError::Broken(error) => is_hang_up(error),
            _ => false,
        };
        if self.is_plain_and_new && is_hung_up {
            return RespError::Unanswered(Box::new(error));
        }
        error
    }

    /// The next answer.
    pub async fn reply(&mut self) -> Result<Reply, RespError> {
        self.reply_within(self.timeout).await
    }

    /// The same with another timeout, for a command that waits.
    pub async fn reply_within(&mut self, timeout: Duration) -> Result<Reply, RespError> {
        loop {
            let rest = &self.buffer[self.start..];
            if is_tls_alert(rest) {
                return Err(RespError::Tls);
            }
            if let Some(length) = self.scan.end(rest, self.answer_bytes_max)? {
                let reply = Parser { rest: &rest[..length], depth: 0 }.reply()?;
                self.scan = Scan::default();
                self.is_plain_and_new = false;
                self.start += length;
                if self.start == self.buffer.len() {
                    self.buffer.clear();
                    // While long answers come, their memory is kept.
                    self.buffer.shrink_to(KEPT_BYTES_MAX.max(length.next_power_of_two()));
                    self.start = 0;
                }
                return Ok(reply);
            }
            self.read(timeout).await?;
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

    async fn read(&mut self, timeout: Duration) -> Result<(), RespError> {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.reserve(READ_BYTES);
        let read = tokio::time::timeout(timeout, self.stream.read_buf(&mut self.buffer)).await;
        match read.map_err(|_| RespError::Timeout(timeout))? {
            Ok(0) => Err(self.over(RespError::Closed)),
            Ok(count) => {
                self.read_bytes += count as u64;
                Ok(())
            }
            Err(error) => Err(self.over(RespError::Broken(error))),
        }
    }
}

/// Looks for the end of an answer in bytes that come piece by piece, each of them once.
#[derive(Debug)]
struct Scan {
    /// So many bytes were looked through.
    at: usize,
    /// So many values are missing.
    missing: usize,
    /// The last values were so many lists, each the first value of the one before.
    lists: usize,
}

impl Default for Scan {
    fn default() -> Self {
        Self { at: 0, missing: 1, lists: 0 }
    }
}

impl Scan {
    /// The length of the answer at the beginning of `bytes`; `None` if it is not all there. Nothing is reserved for what
    /// an answer only claims to have.
    fn end(&mut self, bytes: &[u8], most: usize) -> Result<Option<usize>, RespError> {
        while self.missing > 0 {
            let Some(line) = line(&bytes[self.at..])? else {
                let rest = bytes.len() - self.at;
                let most = most.min(LINE_BYTES_MAX);
                return if rest > most { Err(RespError::TooLong(most)) } else { Ok(None) };
            };
            let mut end = self.at + line.length;
            let mut more = 0;
            match line.kind {
                b'$' => end += line.size()?.map_or(0, |size| size.saturating_add(2)),
                b'*' => more = line.size()?.unwrap_or(0),
                _ => {}
            }
            // Lists that begin one in the other are as deep as they are many.
            self.lists = if more > 0 { self.lists + 1 } else { 0 };
            if self.lists > DEPTH_MAX {
                return Err(protocol(line.text));
            }
            // A value has at least three bytes.
            if end > most || more > most / 3 {
                return Err(RespError::TooLong(most));
            }
            if end > bytes.len() {
                return Ok(None);
            }
            self.at = end;
            self.missing = self.missing - 1 + more;
        }
        Ok(Some(self.at))
    }
}

/// The first line of a value.
struct Line<'a> {
    kind: u8,
    text: &'a [u8],
    /// With the line break.
    length: usize,
}

/// The line at the beginning of `bytes`; `None` if it is not all there.
fn line(bytes: &[u8]) -> Result<Option<Line<'_>>, RespError> {
    let Some(&kind) = bytes.first() else { return Ok(None) };
    if !b"+-:$*".contains(&kind) {
        return Err(protocol(bytes));
    }
    let mut from = 1;
    while let Some(place) = bytes[from..].iter().position(|byte| *byte == b'\r') {
        let place = from + place;
        match bytes.get(place + 1) {
            Some(b'\n') => {
                return Ok(Some(Line { kind, text: &bytes[1..place], length: place + 2 }));
            }
            Some(_) => from = place + 1,
            None => break,
        }
    }
    Ok(None)
}

impl Line<'_> {
    fn number(&self) -> Result<i64, RespError> {
        let number = std::str::from_utf8(self.text).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| protocol(self.text))
    }

    /// Bytes of a text, or values of a list; `None`: there is none.
    fn size(&self) -> Result<Option<usize>, RespError> {
        Ok(usize::try_from(self.number()?).ok())
    }
}

fn protocol(bytes: &[u8]) -> RespError {
    RespError::Protocol(String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned())
}

/// Reads an answer that is all there.
struct Parser<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl Parser<'_> {
    fn reply(&mut self) -> Result<Reply, RespError> {
        let Some(line) = line(self.rest)? else { return Err(protocol(self.rest)) };
        let behind = &self.rest[line.length..];
        let reply = match line.kind {
            b'-' => Reply::Error(String::from_utf8_lossy(line.text).into_owned()),
            b':' => Reply::Number(line.number()?),
            b'$' => match line.size()? {
                None => Reply::Null,
                Some(size) => {
                    let text = behind.split_at_checked(size).map(|(text, _)| text.to_vec());
                    let text = text.ok_or_else(|| protocol(self.rest))?;
                    self.rest = behind.get(size + 2..).unwrap_or_default();
                    return Ok(Reply::Value(text));
                }
            },
            b'*' => match line.size()? {
                None => Reply::Null,
                Some(_) if self.depth == DEPTH_MAX => return Err(protocol(self.rest)),
                Some(size) => {
                    let mut inner = Parser { rest: behind, depth: self.depth + 1 };
                    // A value has at least three bytes.
                    let mut items = Vec::with_capacity(size.min(behind.len() / 3));
                    for _ in 0..size {
                        items.push(inner.reply()?);
                    }
                    self.rest = inner.rest;
                    return Ok(Reply::List(items));
                }
            },
            _ => Reply::Value(line.text.to_vec()),
        };
        self.rest = behind;
        Ok(reply)
    }
}

#[cfg(test)]
mod fuzz;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outline_shows_what_errors_show() {
        let list = Reply::List(vec![Reply::Value(b"long".to_vec()), Reply::List(Vec::new())]);
        assert_eq!(list.outline(), Reply::List(vec![Reply::Null; 2]));
        assert_eq!(list.outline().to_string(), list.to_string());
        assert_eq!(Reply::Number(7).outline(), Reply::Number(7));
    }

    #[tokio::test]
    async fn a_port_that_speaks_tls_is_known_or_guessed() {
        let perhaps = "the server closed the connection; if this port speaks TLS, use `rediss://`";
        let certain = "this port speaks TLS: use `rediss://`";
        for (answer, is_plain, expected) in [
            (&b"\x15\x03\x01\x00\x02\x02\x46"[..], true, certain),
            (b"", true, perhaps),
            (b"", false, "the server closed the connection"),
            (b"+PONG\r\n", true, "the server closed the connection"),
        ] {
            let (ours, mut theirs) = tokio::io::duplex(1000);
            let connection = Connection::new(Box::new(ours), Duration::from_mins(1));
            let mut connection = if is_plain { connection.without_tls() } else { connection };
            connection.send(b"*1\r\n$4\r\nPING\r\n").await.unwrap();
            theirs.write_all(answer).await.unwrap();
            drop(theirs);
            let error = loop {
                match connection.reply().await {
                    Ok(_) => {}
                    Err(error) => break error.to_string(),
                }
            };
            assert!(error.starts_with(expected), "{answer:?}: {error}");
            assert_eq!(error.contains("if this port"), expected == perhaps, "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_that_takes_no_more_of_a_command_may_say_why() {
        let (ours, mut theirs) = tokio::io::duplex(1000);
        let mut connection = Connection::new(Box::new(ours), Duration::from_mins(1)).without_tls();
        let words = b"-ERR Protocol error: unauthenticated multibulk length\r\n";
        theirs.write_all(words).await.unwrap();
        drop(theirs);
        let error = connection.send(b"*12\r\n").await.unwrap_err().to_string();
        assert!(error.contains("unauthenticated") && error.ends_with("`password`"), "{error}");
    }

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

    /// Reads bytes as they come, one at a time.
    fn read(bytes: &[u8], most: usize) -> Result<Option<(Reply, usize)>, RespError> {
        let mut scan = Scan::default();
        for length in 0..bytes.len() {
            if let Some(end) = scan.end(&bytes[..length], most)? {
                let reply = Parser { rest: &bytes[..end], depth: 0 }.reply()?;
                return Ok(Some((reply, end)));
            }
        }
        Ok(None)
    }

    #[test]
    fn answers_are_read_once_all_of_them_is_there() {
        let value = |text: &str| Reply::Value(text.as_bytes().to_vec());
        let one = Reply::List(vec![Reply::Number(1), Reply::Null, value("b")]);
        let table = [
            ("+OK\r\n", value("OK")),
            ("+a\rb\r\n", value("a\rb")),
            (":1000\r\n", Reply::Number(1000)),
            (":-5\r\n", Reply::Number(-5)),
            ("-ERR no\r\n", Reply::Error("ERR no".to_owned())),
            ("$4\r\na\r\nb\r\n", value("a\r\nb")),
            ("$0\r\n\r\n", value("")),
            ("$-1\r\n", Reply::Null),
            ("*-1\r\n", Reply::Null),
            ("*0\r\n", Reply::List(Vec::new())),
            ("*3\r\n:1\r\n$-1\r\n$1\r\nb\r\n", one.clone()),
            (
                "*2\r\n*3\r\n:1\r\n$-1\r\n+b\r\n-E\r\n",
                Reply::List(vec![one, Reply::Error("E".to_owned())]),
            ),
        ];
        for (text, expected) in table {
            let more = [text.as_bytes(), b"+more"].concat();
            let found = read(&more, 100).unwrap();
            assert_eq!(found, Some((expected, text.len())), "{text:?}");
            assert!(read(&more[..text.len()], 100).unwrap().is_none(), "{text:?}");
        }
        for nonsense in ["HTTP/1.1 400", ":x\r\n", ":1.5\r\n", "$x\r\n ", "*x\r\n ", "\r\n"] {
            let text = format!("{nonsense} ");
            let error = read(text.as_bytes(), 100).unwrap_err();
            assert!(matches!(error, RespError::Protocol(_)), "{nonsense:?} {error}");
        }
        let deep = "*1\r\n".repeat(DEPTH_MAX + 1) + ":1\r\n ";
        assert!(matches!(read(deep.as_bytes(), 100), Err(RespError::Protocol(_))));
    }

    #[test]
    fn an_answer_that_claims_to_be_long_is_refused_before_it_comes() {
        for text in ["$101\r\n ", "*34\r\n ", "*2\r\n$40\r\n", "$99999999999999999999\r\n "] {
            let long = text.to_owned() + &"x".repeat(42) + "$60\r\n ";
            let error = read(long.as_bytes(), 100).unwrap_err();
            let is_refused = matches!(error, RespError::TooLong(100) | RespError::Protocol(_));
            assert!(is_refused, "{text} {error}");
        }
        let line = "+".to_owned() + &"x".repeat(200);
        assert!(matches!(read(line.as_bytes(), 100), Err(RespError::TooLong(100))));
        let line = "+".to_owned() + &"x".repeat(LINE_BYTES_MAX);
        let end = |bytes: &[u8]| Scan::default().end(bytes, 1 << 30);
        assert!(matches!(end(line.as_bytes()), Err(RespError::TooLong(LINE_BYTES_MAX))));
        let lists = "*1\r\n".repeat(DEPTH_MAX + 1);
        assert!(matches!(end(lists.as_bytes()), Err(RespError::Protocol(_))));
    }
}
