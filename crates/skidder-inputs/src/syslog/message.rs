//! A syslog message cut into its parts.

use super::time::Stamp;
use super::{rfc3164, rfc5424};
use std::ops::Range;

/// `format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Format {
    /// `<13>Oct 11 22:14:15 host program[1]: text`.
    #[default]
    Rfc3164,
    /// `<13>1 2026-11-21T20:52:57Z host program 1 id [data a="b"] text`.
    Rfc5424,
    /// RFC 5424 if a message begins so, else RFC 3164.
    Auto,
}

impl Format {
    /// Each with its word.
    pub(super) const WORDS: [(&str, Self); 3] =
        [("rfc3164", Self::Rfc3164), ("rfc5424", Self::Rfc5424), ("auto", Self::Auto)];

    /// Its word.
    pub(super) fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, format)| *format == self).map_or("", |(word, _)| word)
    }
}

/// The parts of a message, which are spans of it. Empty: not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    /// Facility × 8 + severity; at most 5 digits.
    pub(super) priority: Option<u32>,
    /// When it was written.
    pub(super) stamp: Stamp,
    /// The sender.
    pub(super) hostname: Range<usize>,
    /// RFC 3164: the program.
    pub(super) program: Range<usize>,
    /// RFC 3164: its process; 0 if there is none.
    pub(super) pid: i64,
    /// RFC 3164, Cisco: the number of the message.
    pub(super) sequence: Option<i64>,
    /// RFC 5424: the version.
    pub(super) version: Option<u32>,
    /// RFC 5424: the program.
    pub(super) app_name: Range<usize>,
    /// RFC 5424: its process.
    pub(super) process_id: Range<usize>,
    /// RFC 5424: the kind of message.
    pub(super) kind: Range<usize>,
    /// RFC 5424: structured data.
    pub(super) data: Vec<Datum>,
    /// RFC 5424: what stands between the time and the text, if nothing of it is wrong.
    pub(super) header: Range<usize>,
    /// RFC 5424: it is that of an earlier message, and its parts were not cut again.
    pub(super) known: Option<Known>,
    /// The text.
    pub(super) text: Range<usize>,
}

/// Looks for what stands behind the time among the headers of earlier messages; priority and version are cut already.
pub(super) type Find<'a> = &'a dyn Fn(&Message, &[u8]) -> Option<Known>;

/// The header of an earlier message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    /// Which of the earlier ones.
    pub(super) at: usize,
    /// Bytes from behind the time to the text.
    pub(super) len: usize,
    /// There is structured data in it.
    pub(super) has_data: bool,
}

/// A part of structured data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Datum {
    /// An element begins; this is its id.
    Element(Range<usize>),
    /// A parameter of the element.
    Parameter {
        /// Its name.
        name: Range<usize>,
        /// Its value as it stands in the message.
        value: Range<usize>,
        /// The value has a backslash that escapes something.
        is_escaped: bool,
    },
}

impl Message {
    /// Cuts `line` into its parts; `false` if it is no message of this format, and nothing of it is of use. `find` looks
    /// for a known header.
    pub(super) fn parse(&mut self, line: &[u8], format: Format, find: Find<'_>) -> bool {
        self.clear();
        let is_message = match format {
            Format::Auto if rfc5424::begins(line) => rfc5424::parse(line, self, find),
            Format::Rfc5424 => rfc5424::parse(line, self, find),
            Format::Auto | Format::Rfc3164 => rfc3164::parse(line, self),
        };
        let mark = "\u{feff}".as_bytes();
        if line[self.text.clone()].starts_with(mark) {
            self.text.start += mark.len();
        }
        let has_data = !self.data.is_empty() || self.known.is_some_and(|known| known.has_data);
        if !is_message || (self.text.is_empty() && !has_data) {
            return false;
        }
        let text = &line[self.text.clone()];
        let feeds = text.iter().rev().take_while(|byte| **byte == b'\n').count();
        self.text.end -= feeds;
        true
    }

    fn clear(&mut self) {
        let mut data = std::mem::take(&mut self.data);
        data.clear();
        *self = Self { data, ..Self::default() };
    }
}

/// How many digits a text begins with.
pub(super) fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// The number of these digits; beyond 64 bits it wraps around, as in Filebeat.
pub(super) fn number(digits: &[u8]) -> i64 {
    let add = |sum: i64, digit: &u8| sum.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
    digits.iter().fold(0, add)
}
