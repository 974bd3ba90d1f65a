//! The Common Event Format of ArcSight: a header of values between `|`, then extensions as `key=value`.
//!
//! ```text
//! CEF:0|vendor|product|version|event class|name|severity|key=value key=value with spaces
//! ```
//!
//! What is accepted and how a message that is wrong somewhere is read on is that of Filebeat
//! (x-pack/filebeat `processors/decode_cef/cef`): in the header `\\` and `\|` are escapes, in
//! values `\\`, `\=`, `\n` and `\r`. A value goes on until a space, a key and `=`; one with a `=`
//! in it that is not escaped is left out, and the reading goes on at the next key. Of a header that
//! is not complete the parts that are there count, and the extensions behind its last `|`.

mod keys;
mod time;
mod value;

pub use keys::{Kind, Known, known};
pub use time::timestamp;
pub use value::{Number, ValueError, address, float, integer, mac_address};

use smallvec::SmallVec;
use std::ops::Range;

/// A value as it stands in the message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// Its bytes in the message.
    pub range: Range<usize>,
    /// There are escapes in it.
    pub escaped: bool,
}

impl Text {
    /// The text without its escapes, in `scratch` if there are any.
    pub fn unescape<'t>(&self, message: &'t [u8], scratch: &'t mut Vec<u8>) -> &'t [u8] {
        let raw = &message[self.range.clone()];
        if !self.escaped {
            return raw;
        }
        scratch.clear();
        let mut bytes = raw.iter();
        while let Some(&byte) = bytes.next() {
            let plain = match byte {
                b'\\' => match bytes.next() {
                    Some(b'n') => b'\n',
                    Some(b'r') => b'\r',
                    Some(&other) => other,
                    None => byte,
                },
                _ => byte,
            };
            scratch.push(plain);
        }
        scratch
    }
}

/// Names of the parts of the header behind the version, in their order.
pub const HEADER: [&str; 6] = [
    "device.vendor",
    "device.product",
    "device.version",
    "device.event_class_id",
    "name",
    "severity",
];

/// One `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The key's bytes in the message.
    pub key: Range<usize>,
    /// The value; may be empty.
    pub value: Text,
}

/// What of a message could be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The version; `None` if not even that could be read.
    pub version: Option<i64>,
    /// The parts of [`HEADER`]; empty where they are not there.
    pub header: [Text; 6],
    /// The extensions in their order; keys may be there more than once.
    pub extensions: SmallVec<[Extension; 24]>,
    /// The error.
    pub errors: Vec<CefError>,
}

/// An error in a message. Positions count bytes from 1, at the `C` of `CEF:`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CefError {
    /// A value has a `=` or a `\` in it that is no escape; it is left out.
    #[error("malformed value for {key} at pos {position}")]
    Value {
        /// Its key.
        key: String,
        /// Where the value goes wrong.
        position: usize,
    },
    /// Nothing from here on can be read.
    #[error("error in CEF event at pos {0}")]
    Invalid(usize),
    /// The message ends too early.
    #[error("unexpected end of CEF event")]
    Unfinished,
    /// There are fewer than seven `|`.
    #[error("incomplete CEF header")]
    Header,
}

impl Message {
    /// Where the message begins in a text that may have something before it.
    pub fn find(text: &[u8]) -> Option<usize> {
        memchr::memmem::find(text, b"CEF:")
    }

    /// Reads a message that begins with `CEF:`.
    pub fn parse(text: &[u8]) -> Self {
        let mut message = Self::default();
        let mut at = b"CEF:".len();
        let digits = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let version = &text[at..at + digits];
        at += digits;
        if digits == 0 || text.get(at) != Some(&b'|') {
            message.stop(text, at, true);
            return message;
        }
        let number = std::str::from_utf8(version).unwrap_or_default().parse();
        message.version = Some(number.unwrap_or(i64::MAX));
        at += 1;
        for (part, name) in HEADER.iter().enumerate() {
            let allowed = if *name == "severity" { is_severity } else { is_header };
            match header_part(text, at, allowed) {
                Ok(read) => {
                    at = read.range.end + 1;
                    message.header[part] = read;
                }
                Err(end) => {
                    message.stop(text, end, true);
                    if end == text.len() {
                        message.recover(text, at);
                    }
                    return message;
                }
            }
        }
        message.read_extensions(text, at);
        message
    }

    /// The reading ends at byte `at`.
    fn stop(&mut self, text: &[u8], at: usize, in_header: bool) {
        if at < text.len() {
            self.errors.push(CefError::Invalid(at + 1));
            return;
        }
        self.errors.push(CefError::Unfinished);
        if in_header {
            self.errors.push(CefError::Header);
        }
    }

    /// Reads extensions behind a header that is not complete; if there are none that is no further error.
    fn recover(&mut self, text: &[u8], at: usize) {
        let mut rest = Self::default();
        rest.read_extensions(text, at);
        self.extensions = rest.extensions;
        let values = rest.errors.into_iter();
        self.errors.extend(values.filter(|error| matches!(error, CefError::Value { .. })));
    }

    fn read_extensions(&mut self, text: &[u8], mut at: usize) {
        if at == text.len() {
            return;
        }
        at += text[at..].iter().take_while(|&&byte| byte == b' ').count();
        let Some(mut key) = key_at(text, at) else {
            let stopped = at + text[at..].iter().take_while(|&&byte| is_key(byte)).count();
            self.stop(text, stopped, false);
            return;
        };
        loop {
            match value_at(text, key.end + 1) {
                ValueEnd::Key(value, next) => {
                    self.extensions.push(Extension { key, value });
                    key = next;
                }
                ValueEnd::End(value) => {
                    if !value.range.is_empty() {
                        self.extensions.push(Extension { key, value });
                    }
                    return;
                }
                ValueEnd::Malformed(at) => {
                    let name = String::from_utf8_lossy(&text[key]).into_owned();
                    self.errors.push(CefError::Value { key: name, position: at + 1 });
                    match next_key(text, at) {
                        Some(next) => key = next,
                        None => {
                            self.errors.push(CefError::Unfinished);
                            return;
                        }
                    }
                }
            }
        }
    }
}

/// A part of the header from `start` up to its `|`, or where it goes wrong.
fn header_part(text: &[u8], start: usize, allowed: fn(u8) -> bool) -> Result<Text, usize> {
    let mut escaped = false;
    let mut at = start;
    loop {
        match (text.get(at), text.get(at + 1)) {
            (Some(b'|'), _) => return Ok(Text { range: start..at, escaped }),
            (Some(b'\\'), Some(b'\\' | b'|')) if allowed(b'\\') => {
                escaped = true;
                at += 2;
            }
            (Some(b'\\'), _) if allowed(b'\\') => return Err((at + 1).min(text.len())),
            (Some(&byte), _) if allowed(byte) => at += 1,
            _ => return Err(at),
        }
    }
}

fn is_header(_: u8) -> bool {
    true
}

fn is_severity(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn is_key_start(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_key(byte: u8) -> bool {
    is_key_start(byte) || matches!(byte, b'.' | b',' | b'[' | b']' | b'-')
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The key that begins here and has its `=` behind it.
fn key_at(text: &[u8], start: usize) -> Option<Range<usize>> {
    if !is_key_start(*text.get(start)?) {
        return None;
    }
    let len = text[start..].iter().take_while(|&&byte| is_key(byte)).count();
    (text.get(start + len) == Some(&b'=')).then_some(start..start + len)
}

/// The first key behind a space from here on.
fn next_key(text: &[u8], from: usize) -> Option<Range<usize>> {
    memchr::memchr_iter(b' ', &text[from..]).find_map(|space| key_at(text, from + space + 1))
}

enum ValueEnd {
    /// Another key follows the value and a space.
    Key(Text, Range<usize>),
    /// The message ends behind it; white space at its end is no part of it.
    End(Text),
    /// It goes wrong here.
    Malformed(usize),
}

/// The value that begins at `start`.
fn value_at(text: &[u8], start: usize) -> ValueEnd {
    let mut escaped = false;
    let mut at = start;
    loop {
        let Some(found) = memchr::memchr2(b'=', b'\\', &text[at..]) else {
            let trimmed = text[start..].iter().rposition(|&byte| !is_space(byte));
            let end = trimmed.map_or(start, |last| start + last + 1);
            return ValueEnd::End(Text { range: start..end, escaped });
        };
        let mark = at + found;
        if text[mark] == b'\\' {
            match text.get(mark + 1) {
                Some(b'\\' | b'=' | b'n' | b'r') => escaped = true,
                _ => return ValueEnd::Malformed((mark + 1).min(text.len())),
            }
            at = mark + 2;
            continue;
        }
        let space = memchr::memrchr(b' ', &text[start..mark]).map(|space| start + space);
        return match space.and_then(|space| Some((space, key_at(text, space + 1)?))) {
            Some((space, key)) if key.end == mark => {
                ValueEnd::Key(Text { range: start..space, escaped }, key)
            }
            _ => ValueEnd::Malformed(mark),
        };
    }
}

#[cfg(test)]
mod tests;
