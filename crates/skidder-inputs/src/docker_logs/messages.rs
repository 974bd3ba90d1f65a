//! From the bytes of an answer to the messages in it.
//!
//! <https://docs.docker.com/reference/api/engine/>, "Attach to a container": each message is a frame of a header with
//! the stream and the length, and the text. Of a container with a terminal there are no frames: the messages stand one
//! after the other. With `timestamps`, each begins with its time. A line of more than 16 KiB comes in pieces of that length
//! and a rest that is shorter; the driver `local` writes no line feed behind the rest.

use memchr::memchr;
use skidder_parse::time::TimeReader;

/// The longest message that is believed: drivers cut lines at 16 KiB, some at 1 MiB.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes of a header.
const HEADER: usize = 8;

/// Bytes of a time like `2026-01-02T03:04:05.000000000Z`, and the blank behind it.
const TIME: usize = 31;

/// Bytes of a piece of a long line, without its time.
const PIECE: usize = 16 << 10;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message<'a> {
    pub(super) is_error: bool,
    /// As it was written.
    pub(super) time_text: &'a [u8],
    /// In nanoseconds since 1970.
    pub(super) time: i64,
    /// Without the line feed.
    pub(super) text: &'a [u8],
    /// The line goes on with the next message of the stream.
    pub(super) is_piece: bool,
}

/// Why an answer is of no use any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadAnswer {
    /// Begin anew where the last message ended.
    #[error("the answer of the engine is damaged: {0}")]
    Damaged(String),
    /// The same.
    #[error("the engine cannot go on: {0}")]
    Engine(String),
}

/// Takes messages out of bytes.
#[derive(Debug, Default)]
pub(super) struct Messages {
    /// The container has a terminal: there are no frames.
    is_terminal: bool,
    /// The last message of the terminal was a piece of a line.
    is_in_line: bool,
    times: TimeReader,
}

impl Messages {
    pub(super) fn new(is_terminal: bool) -> Self {
        Self { is_terminal, is_in_line: false, times: TimeReader::default() }
    }

    /// Calls `each` for the messages that are complete; returns how many bytes they have.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Message<'_>),
    ) -> Result<usize, BadAnswer> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (body, length, is_error) = if self.is_terminal {
                let Some(length) = self.unframed(rest) else { return Ok(at) };
                (&rest[..length], length, false)
            } else {
                match frame(rest)? {
                    Some((stream, body)) => (body, HEADER + body.len(), stream == 2),
                    None => return Ok(at),
                }
            };
            each(self.message(body, is_error)?);
            at += length;
        }
    }

    /// The last message of an answer that has ended: of a terminal, what has no line feed.
    pub(super) fn finish(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(Message<'_>),
    ) -> Result<(), BadAnswer> {
        if bytes.is_empty() {
            return Ok(());
        }
        if !self.is_terminal {
            return Err(BadAnswer::Damaged("it ends within a message".to_owned()));
        }
        each(self.message(bytes, false)?);
        Ok(())
    }

    /// The length of the first message of a terminal; `None` as long as it is not complete.
    fn unframed(&mut self, rest: &[u8]) -> Option<usize> {
        let end = memchr(b'\n', rest).map(|end| end + 1);
        let piece = TIME + PIECE;
        // A piece is followed by the time of the next one.
        let is_piece = end.unwrap_or(rest.len()) >= piece + TIME
            && self.times.rfc3339(&rest[piece..piece + TIME - 1]).is_some();
        if is_piece {
            self.is_in_line = true;
            return Some(piece);
        }
        if std::mem::take(&mut self.is_in_line) {
            let rest_of_line = self.next_time(&rest[..end.unwrap_or(rest.len())]);
            self.is_in_line = rest_of_line.is_none() && end.is_none();
            return rest_of_line.or(end);
        }
        end
    }

    /// Where the next time stands in the rest of a long line: the driver `local` writes no line feed before it.
    fn next_time(&mut self, rest: &[u8]) -> Option<usize> {
        let within = rest.get(TIME..)?;
        let blanks = memchr::memmem::find_iter(within, b"Z ");
        let mut ends = blanks.map(|at| at + 1).filter(|end| *end >= TIME - 1);
        let end = ends.find(|end| self.times.rfc3339(&within[end - (TIME - 1)..*end]).is_some())?;
        Some(TIME + end - (TIME - 1))
    }

    fn message<'a>(&mut self, body: &'a [u8], is_error: bool) -> Result<Message<'a>, BadAnswer> {
        let damaged = || {
            let shown = String::from_utf8_lossy(&body[..body.len().min(TIME)]).into_owned();
            BadAnswer::Damaged(format!("a message begins with {shown:?}, and not with a time"))
        };
        let blank = memchr(b' ', body).ok_or_else(damaged)?;
        let time = self.times.rfc3339(&body[..blank]).ok_or_else(damaged)?;
        let whole = &body[blank + 1..];
        let text = whole.strip_suffix(b"\n").unwrap_or(whole);
        let is_piece = text.len() == whole.len() && whole.len() >= PIECE;
        Ok(Message { is_error, time_text: &body[..blank], time, text, is_piece })
    }
}

/// The first frame: its stream and its body; `None` as long as it is not complete.
fn frame(rest: &[u8]) -> Result<Option<(u8, &[u8])>, BadAnswer> {
    let Some((header, rest)) = rest.split_first_chunk::<HEADER>() else { return Ok(None) };
    let [stream, 0, 0, 0, length @ ..] = header else {
        return Err(BadAnswer::Damaged(format!("{header:?} is no header of a message")));
    };
    let length = u32::from_be_bytes(*length) as usize;
    if *stream > 3 || length > MESSAGE_BYTES_MAX {
        return Err(BadAnswer::Damaged(format!("{header:?} is no header of a message")));
    }
    let Some(body) = rest.get(..length) else { return Ok(None) };
    if *stream == 3 {
        return Err(BadAnswer::Engine(String::from_utf8_lossy(body).trim().to_owned()));
    }
    Ok(Some((*stream, body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "2026-01-02T03:04:05.000000007Z";

    fn framed(stream: u8, text: &str) -> Vec<u8> {
        let body = format!("{AT} {text}");
        let mut frame = vec![stream, 0, 0, 0];
        frame.extend((body.len() as u32).to_be_bytes());
        frame.extend(body.as_bytes());
        frame
    }

    fn texts(messages: &mut Messages, bytes: &[u8]) -> (Vec<(bool, String)>, usize) {
        let mut all = Vec::new();
        let taken = messages.take(bytes, |message| {
            assert_eq!(message.time_text, AT.as_bytes());
            assert_eq!(message.time, 1_767_323_045_000_000_007);
            assert_eq!(message.is_piece, message.text.len() == PIECE);
            all.push((message.is_error, String::from_utf8(message.text.to_vec()).unwrap()));
        });
        (all, taken.unwrap())
    }

    #[test]
    fn frames_are_messages_wherever_the_bytes_are_cut() {
        let bytes = [framed(1, "a\n"), framed(2, ""), framed(1, "b c\n")].concat();
        let expected = [(false, "a"), (true, ""), (false, "b c")];
        for cut in 0..=bytes.len() {
            let mut messages = Messages::new(false);
            let (mut all, taken) = texts(&mut messages, &bytes[..cut]);
            let (more, rest) = texts(&mut messages, &bytes[taken..]);
            all.extend(more);
            assert_eq!(taken + rest, bytes.len());
            let all: Vec<_> = all.iter().map(|(error, text)| (*error, text.as_str())).collect();
            assert_eq!(all, expected, "{cut}");
        }
    }

    #[test]
    fn of_a_terminal_lines_are_messages_and_long_ones_come_in_pieces() {
        let long = "x".repeat(PIECE);
        let text = format!(
            "{AT} a\r\n{AT} {long}{AT} end\r\n{AT} {long}{AT} without{AT} next\r\n{AT} open"
        );
        let expected = ["a\r", &long, "end\r", &long, "without", "next\r"];
        for cut in [0, 1, TIME, 40, TIME * 2 + PIECE, TIME * 2 + PIECE + 6, text.len()] {
            let mut messages = Messages::new(true);
            let (mut all, taken) = texts(&mut messages, &text.as_bytes()[..cut]);
            let (more, rest) = texts(&mut messages, &text.as_bytes()[taken..]);
            all.extend(more);
            let all: Vec<&str> = all.iter().map(|(_, text)| text.as_str()).collect();
            assert_eq!(all, expected, "{cut}");
            let mut last = Vec::new();
            let open = &text.as_bytes()[taken + rest..];
            messages.finish(open, |message| last.extend_from_slice(message.text)).unwrap();
            assert_eq!(last, b"open");
        }
    }

    #[test]
    fn what_is_no_message_ends_the_answer() {
        let wrong = |bytes: &[u8]| {
            Messages::new(false).take(bytes, |_| panic!("a message")).unwrap_err().to_string()
        };
        assert!(wrong(&[9, 0, 0, 0, 0, 0, 0, 1, b'x']).contains("no header"));
        assert!(wrong(&[1, 0, 0, 0, 255, 0, 0, 1]).contains("no header"));
        assert!(wrong(b"HTTP/1.1 200").contains("no header"));
        let without_time = [1, 0, 0, 0, 0, 0, 0, 3, b'a', b' ', b'b'];
        assert!(wrong(&without_time).contains("and not with a time"));
        let error = wrong(&[&[3, 0, 0, 0, 0, 0, 0, 5][..], b"oops\n"].concat());
        assert_eq!(error, "the engine cannot go on: oops");
        let cut = Messages::new(false).finish(&[1, 0], |_| panic!("a message"));
        assert!(cut.is_err());
    }
}
