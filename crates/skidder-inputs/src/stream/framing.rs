//! Where a message ends in a stream of bytes.
//!
//! The rules are those of Filebeat (filebeat/inputsource/common/streaming, and `bufio.Scanner` of Go below it): a delimiter,
//! or RFC 6587, where a message that begins with a digit has its length in front of it (octet counting, 3.4.1) and any other
//! ends with the delimiter (non-transparent framing, 3.4.2).

use memchr::{memchr, memmem};
use std::ops::Range;

/// Most digits of a length: more cannot be a number of bytes.
const DIGITS_MAX: usize = 19;

/// How a stream is split into messages.
#[derive(Clone, Debug)]
pub struct Framing {
    /// Octet counting comes first.
    counts: bool,
    /// Ends a message.
    delimiter: Delimiter,
    /// Most bytes of a message with its delimiter or its length.
    message_bytes_max: usize,
}

#[derive(Clone, Debug)]
enum Delimiter {
    Byte(u8),
    Bytes(Box<memmem::Finder<'static>>),
}

/// What stands at a place in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message; the next one begins at `end`.
    Message {
        /// Where its text stands.
        text: Range<usize>,
        /// Behind its delimiter.
        end: usize,
    },
    /// More bytes are needed.
    Incomplete,
    /// No message can be found from here on.
    Wrong(FrameError),
}

/// Why a stream cannot be read any further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A message is longer than the limit.
    #[error("a message with its delimiter or length is longer than `max_message_size` ({0} bytes)")]
    TooLong(usize),
    /// Digits at the start of a message are not a length.
    #[error(
        "a message begins with digits that are not its length and a space (`framing: rfc6587`)"
    )]
    NoLength,
}

/// The rest at the end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing.
    Nothing,
    /// A message without a delimiter.
    Message(Range<usize>),
    /// The beginning of a message whose length is known.
    Cut,
}

impl Framing {
    /// `counts`: octet counting comes first, as `rfc6587` says. `delimiter` is not empty.
    pub fn new(counts: bool, delimiter: &[u8], message_bytes_max: usize) -> Self {
        let delimiter = match delimiter {
            [byte] => Delimiter::Byte(*byte),
            bytes => Delimiter::Bytes(Box::new(memmem::Finder::new(bytes).into_owned())),
        };
        Self { counts, delimiter, message_bytes_max }
    }

    /// Most bytes of a message with its delimiter or its length.
    pub fn message_bytes_max(&self) -> usize {
        self.message_bytes_max
    }

    /// Whether messages of a stream that is UTF-8 as a whole are UTF-8 themselves.
    pub fn keeps_utf8(&self) -> bool {
        !self.counts
            && match &self.delimiter {
                Delimiter::Byte(byte) => byte.is_ascii(),
                Delimiter::Bytes(finder) => std::str::from_utf8(finder.needle()).is_ok(),
            }
    }

    /// What begins at `start`. `searched` is the place before which no delimiter begins, and moves on.
    #[inline]
    pub fn next(&self, data: &[u8], start: usize, searched: &mut usize) -> Frame {
        if self.counts {
            // One byte is not enough, as in Filebeat.
            let [first, _, ..] = data[start..] else { return Frame::Incomplete };
            if first.is_ascii_digit() {
                return self.counted(data, start);
            }
        }
        let from = (*searched).max(start);
        if let Some(at) = self.delimiter.find(&data[from..]) {
            let (at, end) = (from + at, from + at + self.delimiter.len());
            *searched = end;
            if end - start > self.message_bytes_max {
                return Frame::Wrong(FrameError::TooLong(self.message_bytes_max));
            }
            return Frame::Message { text: self.trimmed(data, start..at), end };
        }
        *searched = start.max((data.len() + 1).saturating_sub(self.delimiter.len()));
        self.incomplete(data.len() - start)
    }

    /// The rest when nothing follows.
    pub fn rest(&self, data: &[u8]) -> Rest {
        match data.first() {
            None => Rest::Nothing,
            Some(first) if self.counts && first.is_ascii_digit() => Rest::Cut,
            Some(_) => Rest::Message(self.trimmed(data, 0..data.len())),
        }
    }

    /// A message with its length in front of it.
    fn counted(&self, data: &[u8], start: usize) -> Frame {
        let digits = data[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > DIGITS_MAX {
            return Frame::Wrong(FrameError::NoLength);
        }
        let space = start + digits;
        let Some(separator) = data.get(space) else { return self.incomplete(digits) };
        let length = std::str::from_utf8(&data[start..space]).ok().and_then(|of| of.parse().ok());
        let (b' ', Some(length)) = (*separator, length) else {
            return Frame::Wrong(FrameError::NoLength);
        };
        let begin = space + 1;
        let end = begin.saturating_add(length);
        if end - start > self.message_bytes_max {
            return Frame::Wrong(FrameError::TooLong(self.message_bytes_max));
        }
        if data.len() < end {
            return Frame::Incomplete;
        }
        Frame::Message { text: begin..end, end }
    }

    fn incomplete(&self, length: usize) -> Frame {
        if length >= self.message_bytes_max {
            Frame::Wrong(FrameError::TooLong(self.message_bytes_max))
        } else {
            Frame::Incomplete
        }
    }

    /// Lines end with `\r\n` as well, but only without octet counting, as in Filebeat.
    fn trimmed(&self, data: &[u8], text: Range<usize>) -> Range<usize> {
        let is_line = !self.counts && matches!(self.delimiter, Delimiter::Byte(b'\n'));
        if is_line && data[text.clone()].ends_with(b"\r") {
            return text.start..text.end - 1;
        }
        text
    }
}

impl Delimiter {
    fn len(&self) -> usize {
        match self {
            Self::Byte(_) => 1,
            Self::Bytes(finder) => finder.needle().len(),
        }
    }

    #[inline]
    fn find(&self, data: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => memchr(*byte, data),
            Self::Bytes(finder) => finder.find(data),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of a stream that comes in these chunks and ends, and how it ended.
    fn messages(framing: &Framing, chunks: &[&[u8]]) -> (Vec<String>, Option<FrameError>) {
        let (mut data, mut start, mut searched) = (Vec::new(), 0, 0);
        let mut found = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for chunk in chunks {
            data.extend_from_slice(chunk);
            loop {
                match framing.next(&data, start, &mut searched) {
                    Frame::Message { text: at, end } => {
                        found.push(text(&data[at]));
                        start = end;
                    }
                    Frame::Incomplete => break,
                    Frame::Wrong(error) => return (found, Some(error)),
                }
            }
        }
        if let Rest::Message(at) = framing.rest(&data[start..]) {
            found.push(text(&data[start..][at]));
        }
        (found, None)
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    const LINES: (bool, &[u8], usize) = (false, b"\n", 1 << 20);
    const OCTETS: (bool, &[u8], usize) = (true, b"\n", 1 << 20);
    const SIXTEEN: (bool, &[u8], usize) = (false, b"\n", 16);

    type Case = ((bool, &'static [u8], usize), &'static [u8], &'static [&'static str]);

    /// What Filebeat 9.6 made of the same bytes.
    const FILEBEAT: &[Case] = &[
        (
            LINES,
            b"one\ntwo\r\n\n\r\nthree\nbad \xff\xfe\xe2\x82 end\nnul\0x\nrest",
            &["one", "two", "", "", "three", "bad \u{fffd}\u{fffd}\u{fffd} end", "nul\0x", "rest"],
        ),
        (LINES, b"x\r\ny\r\r\nrest2\r", &["x", "y\r", "rest2"]),
        (LINES, b"", &[]),
        ((false, b"ab", 100), b"1ab2ab3abab4\r\nab5a", &["1", "2", "3", "", "4\r\n", "5a"]),
        (
            OCTETS,
            b"5 hello5 world\n5 again0 3 abcplain\nmore text\n7 a\nb\nc\nd",
            &["hello", "world", "", "again", "", "abc", "plain", "more text", "a\nb\nc\nd"],
        ),
        (OCTETS, b"x-1\n007 sevensix3 abc\n", &["x-1", "sevensi", "x3 abc"]),
        (OCTETS, b"123 short", &[]),
        (OCTETS, b"lines\r\n", &["lines\r"]),
        (SIXTEEN, b"0123456789abcde\nfits\n", &["0123456789abcde", "fits"]),
    ];

    #[test]
    fn messages_are_those_of_filebeat_wherever_the_stream_is_cut() {
        for ((counts, delimiter, most), data, expected) in FILEBEAT {
            let framing = Framing::new(*counts, delimiter, *most);
            for cut in 0..=data.len() {
                for next in cut..=data.len() {
                    let chunks = [&data[..cut], &data[cut..next], &data[next..]];
                    let (found, error) = messages(&framing, &chunks);
                    let what = String::from_utf8_lossy(data);
                    assert_eq!((found, error), (strings(expected), None), "{what} {cut} {next}");
                }
            }
        }
    }

    #[test]
    fn a_message_beyond_the_limit_and_a_wrong_length_end_the_stream() {
        let no_length = FrameError::NoLength;
        let cases: &[(_, &[u8], &[&str], FrameError)] = &[
            (SIXTEEN, b"0123456789abcdef\nnext\n", &[], FrameError::TooLong(16)),
            (SIXTEEN, b"fits\n0123456789abcdef\nnext2\n", &["fits"], FrameError::TooLong(16)),
            (SIXTEEN, b"0123456789abcdef", &[], FrameError::TooLong(16)),
            ((true, b"\n", 8), b"1 a6 abcdef7 abcdefg", &["a", "abcdef"], FrameError::TooLong(8)),
            (OCTETS, b"3 abc12x later\n3 def", &["abc"], no_length),
            (OCTETS, b"3 ghi99999999999999999999 later", &["ghi"], no_length),
        ];
        for ((counts, delimiter, most), data, expected, error) in cases {
            let framing = Framing::new(*counts, delimiter, *most);
            for cut in 0..=data.len() {
                let found = messages(&framing, &[&data[..cut], &data[cut..]]);
                assert_eq!(found, (strings(expected), Some(*error)), "cut at {cut}");
            }
        }
    }

    #[test]
    fn the_end_of_a_stream_gives_what_is_left_of_a_line_and_nothing_of_a_counted_message() {
        let octets = Framing::new(true, b"\n", 100);
        assert_eq!(octets.rest(b"7 abc"), Rest::Cut);
        // Filebeat loses a single byte.
        assert_eq!(octets.rest(b"x"), Rest::Message(0..1));
        assert_eq!(octets.rest(b""), Rest::Nothing);
    }
}
