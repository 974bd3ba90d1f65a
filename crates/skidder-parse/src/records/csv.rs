//! Rows of comma-separated values (RFC 4180) in a stream, each written as an object of JSON whose values are strings.
//!
//! The rules are those of Go's `encoding/csv`, and keys, order and escapes those of Filebeat's codec `csv`
//! (`x-pack/libbeat/reader/decoder/csv.go`). A row may have several lines between quotes. Empty lines and comments are passed
//! over.
//!
//! Memory: one row of at most `bytes_max` bytes, its text, and the names.

mod write;

use super::{Found, Record, RecordError};
use std::mem::take;
use std::sync::Arc;
use write::Keys;

/// No more rows are looked for once there is so much text: a short row can have long names.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// How rows are taken apart, and what becomes of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvRules {
    /// Between two values; no quote and no line break.
    pub comma: char,
    /// Lines that begin with it are passed over.
    pub comment: Option<char>,
    /// A quote may stand in a value without quotes, and one that is not doubled in a value between quotes.
    pub lazy_quotes: bool,
    /// White space before a value is left out, also when a quote follows.
    pub trim_leading_space: bool,
    /// The names of the values; empty if the first row has them.
    pub names: Vec<String>,
    /// The order of the keys.
    pub keys: CsvKeys,
}

/// The order of the keys in an object, and what is escaped there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvKeys {
    /// By name, and of two with the same name the last one. `<`, `>` and `&` are escaped. As Go writes a map.
    #[default]
    Sorted,
    /// As the values come. Only what must be is escaped.
    InOrder,
}

impl Default for CsvRules {
    fn default() -> Self {
        Self {
            comma: ',',
            comment: None,
            lazy_quotes: false,
            trim_leading_space: false,
            names: Vec::new(),
            keys: CsvKeys::Sorted,
        }
    }
}

impl CsvRules {
    /// Whether a character can stand between values, or begin a comment.
    pub fn is_delimiter(letter: char) -> bool {
        !matches!(letter, '\0' | '"' | '\r' | '\n' | char::REPLACEMENT_CHARACTER)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Rows {
    rules: Arc<CsvRules>,
    bytes_max: usize,
    /// Bytes of the content that were taken.
    place: u64,
    /// Lines that were taken, for messages.
    lines: u64,
    /// What there is of a line whose end is not there yet.
    line: Vec<u8>,
    /// The row so far.
    row: Row,
    /// The place behind the row before.
    row_start: u64,
    /// Nothing before the first row was read.
    keys: Option<Keys>,
}

/// The values of a row, one behind the other.
#[derive(Debug, Default)]
struct Row {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// The last line has ended between quotes.
    in_quotes: bool,
    /// Number of its first line.
    first_line: u64,
}

/// What is wrong with a line.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    /// A quote in a value without quotes.
    BareQuote,
    /// A quote in a value between quotes, or none at its end.
    Quote,
}

impl Rows {
    pub(super) fn new(rules: Arc<CsvRules>, bytes_max: usize) -> Self {
        let keys = (!rules.names.is_empty())
            .then(|| Keys::new(rules.names.iter().map(String::as_bytes).collect(), rules.keys));
        Self {
            rules,
            bytes_max,
            place: 0,
            lines: 0,
            line: Vec::new(),
            row: Row::default(),
            row_start: 0,
            keys,
        }
    }

    pub(super) fn push(
        &mut self,
        piece: &[u8],
        found: &mut Found,
        count_max: usize,
    ) -> Result<usize, RecordError> {
        let mut taken = 0;
        while taken < piece.len()
            && found.records.len() < count_max
            && found.text.len() < TEXT_BYTES_MAX
        {
            let rest = &piece[taken..];
            let end = memchr::memchr(b'\n', rest).map(|at| at + 1);
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.row.text.len() + self.line.len() + part.len() > self.bytes_max {
                return Err(self.too_long());
            }
            taken += part.len();
            self.place += part.len() as u64;
            if end.is_none() {
                self.line.extend_from_slice(part);
            } else if self.line.is_empty() {
                self.take_line(part, found)?;
            } else {
                self.line.extend_from_slice(part);
                let line = take(&mut self.line);
                self.take_line(&line, found)?;
                self.line = line;
                self.line.clear();
            }
        }
        Ok(taken)
    }

    pub(super) fn end(&mut self, found: &mut Found) -> Result<(), RecordError> {
        let line = take(&mut self.line);
        // As Go: a carriage return at the very end is part of the line break.
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        if !line.is_empty() {
            self.take_line(line, found)?;
        }
        if !take(&mut self.row.in_quotes) {
            return Ok(());
        }
        if !self.rules.lazy_quotes {
            return Err(self.wrong(Wrong::Quote));
        }
        self.row.end_value();
        self.complete(found)
    }

    /// A line with its line break, if it has one.
    fn take_line(&mut self, line: &[u8], found: &mut Found) -> Result<(), RecordError> {
        self.lines += 1;
        let (line, broken) = match line.strip_suffix(b"\n") {
            Some(line) => (line.strip_suffix(b"\r").unwrap_or(line), true),
            None => (line, false),
        };
        if !self.row.in_quotes {
            let mut encoded = [0_u8; 4];
            let comment = self.rules.comment.map(|letter| &*letter.encode_utf8(&mut encoded));
            let is_comment = comment.is_some_and(|text| line.starts_with(text.as_bytes()));
            if line.is_empty() && broken || is_comment {
                return Ok(());
            }
            self.row.first_line = self.lines;
        }
        match self.row.take(&self.rules, line, broken) {
            Ok(()) if self.row.in_quotes => Ok(()),
            Ok(()) => self.complete(found),
            Err(wrong) => Err(self.wrong(wrong)),
        }
    }

    /// Gives the row out that ends here; the first one may have the names.
    fn complete(&mut self, found: &mut Found) -> Result<(), RecordError> {
        let Some(keys) = &self.keys else {
            self.keys = Some(Keys::new(self.row.values().collect(), self.rules.keys));
            self.row_start = self.place;
            self.row.clear();
            return Ok(());
        };
        if self.row.ends.len() != keys.count() {
            let (values, names) = (self.row.ends.len(), keys.count());
            let message = format!(
                "the row in line {} has {values} values, and there are {names} names",
                self.row.first_line
            );
            return Err(RecordError::at_byte(self.row_start, message));
        }
        let start = found.text.len();
        if keys.bytes() + self.row.text.len() > self.bytes_max {
            return Err(self.too_long());
        }
        keys.write(&self.row.text, &self.row.ends, &mut found.text);
        let len = found.text.len() - start;
        let (Ok(start), Ok(len)) = (u32::try_from(start), u32::try_from(len)) else {
            return Err(self.too_long());
        };
        let (offset, end) = (self.row_start, self.place);
        found.records.push(Record { start, len, offset, end });
        self.row_start = self.place;
        self.row.clear();
        Ok(())
    }

    fn wrong(&self, wrong: Wrong) -> RecordError {
        let why = match wrong {
            Wrong::BareQuote => "has a quote in a value that begins with none",
            Wrong::Quote => {
                "has a quote in a value that is not doubled, or none at the end of a value"
            }
        };
        let message = format!(
            "the row in line {} {why}; `lazy_quotes: true` allows that",
            self.row.first_line
        );
        RecordError::at_byte(self.row_start, message)
    }

    fn too_long(&self) -> RecordError {
        let message = format!(
            "the row behind this place has more than {} bytes with its names, four times `max_bytes`; is a quote missing?",
            self.bytes_max
        );
        RecordError::at_byte(self.row_start, message)
    }
}

impl Row {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn end_value(&mut self) {
        self.ends.push(self.text.len());
    }

    fn values(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }

    /// Adds the values of a line, which goes on in a value between quotes if the last one has ended there.
    fn take(&mut self, rules: &CsvRules, line: &[u8], broken: bool) -> Result<(), Wrong> {
        let mut encoded = [0_u8; 4];
        let comma = rules.comma.encode_utf8(&mut encoded).as_bytes();
        let mut line = line;
        if !take(&mut self.in_quotes) {
            match self.plain_values(rules, line, comma)? {
                Some(quoted) => line = quoted,
                None => return Ok(()),
            }
        }
        loop {
            let Some(rest) = self.quoted_value(rules, line, (comma, broken))? else {
                return Ok(());
            };
            match self.plain_values(rules, rest, comma)? {
                Some(quoted) => line = quoted,
                None => return Ok(()),
            }
        }
    }

    /// Adds values until one begins with a quote, and returns what is behind that; nothing at the end of the line.
    fn plain_values<'a>(
        &mut self,
        rules: &CsvRules,
        line: &'a [u8],
        comma: &[u8],
    ) -> Result<Option<&'a [u8]>, Wrong> {
        let mut line = line;
        loop {
            if rules.trim_leading_space {
                line = trim_start(line);
            }
            if let Some(quoted) = line.strip_prefix(b"\"") {
                return Ok(Some(quoted));
            }
            let end = memchr::memmem::find(line, comma);
            let value = &line[..end.unwrap_or(line.len())];
            if !rules.lazy_quotes && memchr::memchr(b'"', value).is_some() {
                return Err(Wrong::BareQuote);
            }
            self.text.extend_from_slice(value);
            self.end_value();
            match end {
                Some(end) => line = &line[end + comma.len()..],
                None => return Ok(None),
            }
        }
    }

    /// Adds what there is of a value that began with a quote, and returns what is behind its comma; nothing at the end of the
    /// line.
    fn quoted_value<'a>(
        &mut self,
        rules: &CsvRules,
        line: &'a [u8],
        (comma, broken): (&[u8], bool),
    ) -> Result<Option<&'a [u8]>, Wrong> {
        let mut line = line;
        loop {
            let Some(quote) = memchr::memchr(b'"', line) else {
                self.text.extend_from_slice(line);
                if broken {
                    self.text.push(b'\n');
                }
                self.in_quotes = true;
                return Ok(None);
            };
            self.text.extend_from_slice(&line[..quote]);
            line = &line[quote + 1..];
            if let Some(rest) = line.strip_prefix(b"\"") {
                self.text.push(b'"');
                line = rest;
            } else if let Some(rest) = line.strip_prefix(comma) {
                self.end_value();
                return Ok(Some(rest));
            } else if line.is_empty() {
                self.end_value();
                return Ok(None);
            } else if rules.lazy_quotes {
                self.text.push(b'"');
            } else {
                return Err(Wrong::Quote);
            }
        }
    }
}

/// Without the white space of Unicode that it begins with.
fn trim_start(line: &[u8]) -> &[u8] {
    let known = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default(),
    };
    &line[known.len() - known.trim_start().len()..]
}

#[cfg(test)]
mod tests;
