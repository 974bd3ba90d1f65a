//! Records of content that is no lines: values of JSON, rows of CSV. The content comes in pieces, and each record is given
//! out with its own text.
//!
//! Promises: the records do not depend on where a piece ends, and those before an error are given out. A [`Finder`] begins
//! at the first byte of the content: who goes on later passes over what it has already.

mod csv;
mod json;
mod json_text;
mod table;
#[cfg(test)]
mod tests;

use csv::Rows;
pub use csv::{CsvKeys, CsvRules};
use json::Values;
pub use json_text::{Escapes, push_json_text};
use std::sync::Arc;
pub use table::{Stored, Table, TableFormat, TableRows};

/// What the content of a file or an object consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Lines.
    #[default]
    Lines,
    /// Values of JSON, one after the other, with whitespace between them or not.
    Json(Expand),
    /// The same if an object or a list of JSON may begin the content, and lines else: who reads it decides with
    /// [`Layout::decide`].
    JsonOrLines(Expand),
    /// Rows of comma-separated values, each of which becomes an object of JSON.
    Csv(Arc<CsvRules>),
    /// Rows of a table, each of which becomes an object of JSON.
    Table(Table),
}

impl Layout {
    /// What content consists of that begins so.
    #[must_use]
    pub fn decide(self, beginning: &[u8]) -> Self {
        let Self::JsonOrLines(expand) = self else { return self };
        let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning);
        match beginning.trim_ascii_start().first() {
            Some(b'{' | b'[') => Self::Json(expand),
            _ => Self::Lines,
        }
    }
}

/// What of a value of JSON is a record: the value, as long as this says nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expand {
    /// What becomes of values that are lists.
    pub lists: Lists,
    /// Each element of the list in this field of what would be a record, which must be an object, is one instead.
    pub field: Option<Arc<str>>,
}

/// What becomes of a value that is a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lists {
    /// It is one.
    #[default]
    Whole,
    /// Its elements are taken for it; another value is none.
    Must,
    /// Its elements are taken for it.
    May,
}

impl Expand {
    /// What `expand_event_list_from_field` says; `.[]` for the elements of each value.
    pub fn parse(field: &str) -> Self {
        match field {
            "" => Self::default(),
            ".[]" => Self { lists: Lists::Must, field: None },
            field => Self { lists: Lists::Whole, field: Some(field.into()) },
        }
    }

    /// The same for inputs that take the elements of a value for it.
    pub fn of_lists(field: &str) -> Self {
        let field = Some(field).filter(|field| !field.is_empty());
        Self { lists: Lists::May, field: field.map(Arc::from) }
    }

    /// Whether it says anything but [`Lists`].
    pub fn has_field(&self) -> bool {
        self.field.is_some() || self.lists == Lists::Must
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// First byte of its text in [`Found::text`].
    pub start: u32,
    /// Bytes of its text.
    pub len: u32,
    /// The place that Filebeat gives it, which no other record of the content has.
    pub offset: u64,
    /// The place in the content behind its last byte.
    pub end: u64,
}

/// Records that were found.
#[derive(Debug, Default)]
pub struct Found {
    /// Their texts.
    pub text: Vec<u8>,
    /// In the order of the content.
    pub records: Vec<Record>,
    /// Records that are longer than the bound and are left out: their places and bytes.
    pub too_long: Vec<(u64, u64)>,
}

/// Why there are no more records: nothing can be read behind this place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {unit} {offset}: {message}")]
pub struct RecordError {
    /// What places are counted in: `byte`, or `row`.
    pub unit: &'static str,
    /// The place in the content.
    pub offset: u64,
    /// What is wrong there.
    pub message: String,
}

/// Finds the records of one content.
#[derive(Debug)]
pub struct Finder(Kind);

/// What the records are.
#[derive(Debug)]
enum Kind {
    Json(Box<Values>),
    Csv(Box<Rows>),
}

impl RecordError {
    /// Nothing can be read behind this byte.
    pub fn at_byte(offset: u64, message: impl Into<String>) -> Self {
        Self { unit: "byte", offset, message: message.into() }
    }

    /// Nothing can be read from this row on, the first being 0.
    pub fn at_row(offset: u64, message: impl Into<String>) -> Self {
        Self { unit: "row", offset, message: message.into() }
    }
}

impl Finder {
    /// For content of this layout; nothing if it consists of lines, or is a table. Values of more than `bytes_max` bytes are left out; a row
    /// of more is an error.
    pub fn new(layout: &Layout, bytes_max: usize) -> Option<Self> {
        Some(Self(match layout {
            Layout::Lines | Layout::JsonOrLines(_) | Layout::Table(_) => return None,
            Layout::Json(expand) => Kind::Json(Box::new(Values::new(expand.clone(), bytes_max))),
            Layout::Csv(rules) => Kind::Csv(Box::new(Rows::new(Arc::clone(rules), bytes_max))),
        }))
    }

    /// Looks at what follows; returns how many bytes it has taken: not all once there are `count_max` records.
    ///
    /// # Errors
    /// If it is not what it should be; `found` has the records before that.
    pub fn push(
        &mut self,
        piece: &[u8],
        found: &mut Found,
        count_max: usize,
    ) -> Result<usize, RecordError> {
        match &mut self.0 {
            Kind::Json(values) => values.push(piece, found, count_max),
            Kind::Csv(rows) => rows.push(piece, found, count_max),
        }
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// If the content ends inside of a record.
    pub fn end(&mut self, found: &mut Found) -> Result<(), RecordError> {
        match &mut self.0 {
            Kind::Json(values) => values.end(found),
            Kind::Csv(rows) => rows.end(found),
        }
    }
}
