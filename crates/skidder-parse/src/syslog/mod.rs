//! Syslog messages, RFC 3164 (BSD) and RFC 5424: header fields become `log.syslog.*`, the text
//! becomes the message.
//!
//! Field names, labels and leniencies are those of Filebeat 9.5 (libbeat `reader/syslog`): the
//! priority of RFC 3164 is optional, its time may be RFC 3339, a time without a year gets that of
//! the clock, structured data is read as far as it is as the RFC wants it, and stands before the
//! text if nothing of it is, `-` is nothing, and of a message that is wrong somewhere what stands
//! before that is kept, beside the whole message and the error. Where Filebeat replaces `log` this
//! merges into it, so that `log.file` and `log.offset` stay; a word with a colon is a program only
//! if a space follows, so `http://…` stays text.

mod fields;
mod rfc3164;
mod rfc5424;
mod structured;
mod timezone;

pub use timezone::{TimeZoneError, timezone};

use jiff::tz::TimeZone;
use skidder_event::{Cell, EventMut, Path, Text};
use std::ops::Range;

/// How messages are written (`format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// RFC 5424 if it begins so, else RFC 3164.
    #[default]
    Auto,
    /// `<13>Oct 11 22:14:15 host program[1]: text`.
    Rfc3164,
    /// `<13>1 2026-11-21T20:52:57Z host program 1 id [data a="b"] text`.
    Rfc5424,
}

/// Why a message is no syslog message; its event has what was read before, and the message as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct SyslogError {
    /// Where, from the first byte of the message.
    pub offset: usize,
    /// What.
    pub problem: Problem,
}

/// An error in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// `<…>` is missing or holds no number from 0 to 191.
    #[error("invalid priority, expected `<` a number from 0 to 191 `>`")]
    Priority,
    /// The version behind the priority is no number.
    #[error("invalid version, expected an integer")]
    Version,
    /// The time is invalid.
    #[error("invalid timestamp")]
    Timestamp,
    /// A word of the header is empty, or has something else than printable ASCII in it.
    #[error("invalid word in the header")]
    Word,
    /// Structured data is neither `-` nor in brackets.
    #[error("invalid structured data")]
    StructuredData,
    /// The message ends within the header.
    #[error("unexpected end of the message")]
    Unfinished,
}

impl SyslogError {
    fn new(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// A message cut into its parts, which are spans of it; empty = not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// 0 to 191: facility × 8 + severity.
    pub priority: Option<u8>,
    /// Nanoseconds since 1970-01-01 UTC.
    pub time: Option<i64>,
    /// The version of RFC 5424.
    pub version: Option<u32>,
    /// The sender.
    pub hostname: Range<usize>,
    /// The program.
    pub appname: Range<usize>,
    /// Its process; never without `appname` in the event.
    pub procid: Range<usize>,
    /// The kind of message.
    pub msgid: Range<usize>,
    /// All of the structured data, with its brackets.
    pub structured_data: Range<usize>,
    /// The text.
    pub message: Range<usize>,
}

impl Message {
    /// Cuts a message into its parts. `now` (nanoseconds since 1970-01-01 UTC) gives the year and
    /// `timezone` the zone to times that have none.
    ///
    /// Of a message that is wrong somewhere the parts before that are there, and the text is all of it.
    pub fn parse(
        text: &[u8],
        format: Format,
        timezone: &TimeZone,
        now: i64,
    ) -> (Self, Result<(), SyslogError>) {
        let mut message = Self::default();
        let done = match format {
            Format::Auto if rfc5424::begins(text) => rfc5424::parse(text, &mut message),
            Format::Rfc5424 => rfc5424::parse(text, &mut message),
            Format::Auto | Format::Rfc3164 => rfc3164::parse(text, timezone, now, &mut message),
        };
        if done.is_err() {
            message.message = 0..text.len();
        }
        (message, done)
    }

    /// Puts time and header into the event. `text` is the span of the message that was parsed;
    /// `overwrite` says whether `log.syslog.*` wins over what the event has.
    pub fn put_header(&self, event: &mut EventMut<'_>, text: Text, overwrite: bool) {
        if let Some(time) = self.time {
            event.set_time(time);
        }
        fields::merge(event, text, self, overwrite);
    }

    /// The text without the header, as a span of the batch; `None` if it is empty.
    pub fn text(&self, text: Text) -> Option<Text> {
        (!self.message.is_empty()).then(|| span(text, &self.message))
    }
}

/// Settings of one `syslog` parser or processor, by Filebeat's names.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `format`.
    pub format: Format,
    /// `timezone`, for times without one.
    pub timezone: TimeZone,
    /// Errors are put in `error.message`.
    pub add_error_key: bool,
}

impl Settings {
    /// The default settings, for a machine in this zone.
    pub fn local(timezone: TimeZone) -> Self {
        Self { format: Format::Auto, timezone, add_error_key: true }
    }
}

/// One `syslog` parser.
#[derive(Clone, Debug)]
pub struct Syslog {
    settings: Settings,
    error_message: Path,
}

impl Syslog {
    /// A parser.
    pub fn new(settings: Settings) -> Self {
        let error_message = Path::parse("error.message").expect("two names with a dot between");
        Self { settings, error_message }
    }

    /// Parses the message of an event. Without a message nothing happens. `now` is the time of the
    /// clock in nanoseconds since 1970-01-01 UTC.
    pub fn apply(&self, event: &mut EventMut<'_>, now: i64) -> Result<(), SyslogError> {
        let Some(text) = event.own_message() else { return Ok(()) };
        let settings = &self.settings;
        let parsed = Message::parse(event.text(text), settings.format, &settings.timezone, now);
        let (message, done) = parsed;
        if done.is_ok() && message.message.is_empty() {
            event.clear_message();
        } else {
            event.set_message(span(text, &message.message));
        }
        message.put_header(event, text, true);
        if let Err(error) = &done
            && settings.add_error_key
        {
            let note = format!("Error parsing syslog message: {error}");
            append_text(event, &self.error_message, &note);
        }
        done
    }
}

/// A part of a message as a span of the batch.
fn span(text: Text, part: &Range<usize>) -> Text {
    Text { start: text.start + part.start as u32, len: part.len() as u32 }
}

/// Adds a text to a field: the value if there is none, else one more element of a list. A field
/// that holds neither texts nor a list stays as it is.
pub(crate) fn append_text(event: &mut EventMut<'_>, path: &Path, text: &str) {
    let text = Cell::Str(event.store_text(text.as_bytes()));
    let value = match event.copy(path) {
        None => text,
        Some(there @ Cell::Str(_)) => event.store_list(&[there, text]),
        Some(there @ Cell::List(_)) => {
            let mut cells = event.list_cells(there);
            cells.push(text);
            event.store_list(&cells)
        }
        Some(_) => return,
    };
    let before = event.mark();
    if event.put_cell(path, value).is_err() {
        // `error` is a field of the program's own and no object: it matters more than the note.
        event.rollback(before);
    }
}

/// A cursor over a message.
#[derive(Clone, Copy, Debug)]
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Reader<'t> {
    fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text[self.at..]
    }

    fn fail<T>(&self, problem: Problem) -> Result<T, SyslogError> {
        let problem = if self.at < self.text.len() { problem } else { Problem::Unfinished };
        Err(SyslogError::new(self.at, problem))
    }

    /// The number in `<…>`.
    fn priority(&mut self) -> Result<u8, SyslogError> {
        let inner = match self.rest() {
            [b'<', inner @ ..] => inner,
            _ => return self.fail(Problem::Priority),
        };
        let digits = inner.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let number = crate::time::digits(&inner[..digits]).filter(|&number| number <= 191);
        match (number, inner.get(digits)) {
            (Some(number), Some(b'>')) if (1..=3).contains(&digits) => {
                self.at += digits + 2;
                Ok(number as u8)
            }
            (_, None) => Err(SyslogError::new(self.text.len(), Problem::Unfinished)),
            _ => Err(SyslogError::new(self.at + 1, Problem::Priority)),
        }
    }

    /// One word of printable ASCII and the space behind it.
    fn word(&mut self) -> Result<Range<usize>, SyslogError> {
        let start = self.at;
        let Some(len) = memchr::memchr(b' ', self.rest()) else {
            return Err(SyslogError::new(self.text.len(), Problem::Unfinished));
        };
        let word = &self.text[start..start + len];
        if word.is_empty() {
            return self.fail(Problem::Word);
        }
        if let Some(bad) = word.iter().position(|byte| !byte.is_ascii_graphic()) {
            return Err(SyslogError::new(start + bad, Problem::Word));
        }
        self.at = start + len + 1;
        Ok(start..start + len)
    }

    /// One word; `-` stands for none.
    fn word_or_none(&mut self) -> Result<Range<usize>, SyslogError> {
        let word = self.word()?;
        let none = &self.text[word.clone()] == b"-";
        Ok(if none { word.start..word.start } else { word })
    }
}

/// The text of a message from `start` on, without the byte order mark that may precede it.
fn message_from(text: &[u8], start: usize) -> Range<usize> {
    let mark = "\u{feff}".as_bytes();
    let skip = if text[start..].starts_with(mark) { mark.len() } else { 0 };
    start + skip..text.len()
}

#[cfg(test)]
mod tests;
