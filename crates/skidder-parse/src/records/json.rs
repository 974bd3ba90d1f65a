//! Values of JSON in a stream (RFC 8259), and the elements of lists in them.
//!
//! Brackets and strings show where a value ends. What is between two values of a list or an object is not checked, a record
//! is.

use super::{Expand, Found, Lists, Record, RecordError};
use std::mem::take;

/// The longest name of a field that is compared: a longer one is another field.
const NAME_BYTES_MAX: usize = 64 << 10;

/// The byte order mark, which is no part of the first value.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// See the module's text.
#[derive(Debug)]
pub(super) struct Values {
    expand: Expand,
    bytes_max: usize,
    /// Bytes of the content that were taken.
    place: u64,
    at: At,
    /// What there is of a record or of a name.
    text: Vec<u8>,
    /// The record has more bytes than it may have.
    is_too_long: bool,
    /// Where the record begins.
    record_start: u64,
    /// Its place as Filebeat counts it.
    record_offset: u64,
    /// Bytes of the byte order mark, which Filebeat does not count.
    mark: u64,
    /// Values at the top, or elements that are taken for them, that have begun.
    begun: u64,
    /// Where the last of them begins.
    item_start: u64,
    /// The same as Filebeat counts it.
    item_offset: u64,
    /// The list at the top, while it is in there.
    top: Option<List>,
    /// The list in the field, while it is in there.
    inner: Option<List>,
    /// The object has the field.
    has_field: bool,
}

/// A list whose elements are taken.
#[derive(Clone, Copy, Debug)]
struct List {
    start: u64,
    /// The last comma; nothing before the second element.
    comma: Option<u64>,
}

/// Where in the content it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// Between values at the top.
    Top,
    /// In a record; it is an element of a list, or a value at the top.
    Record { is_element: bool, scan: Scan },
    /// Among elements, of the inner list if there is one.
    List,
    /// Among fields, before a name or behind a value.
    Fields,
    /// In a name.
    Name(Scan),
    /// Behind a name, which is the one that is looked for, or not.
    Colon(bool),
    /// Before the value of a field.
    Before(bool),
    /// In a value that is no record.
    Other(Scan),
}

impl Values {
    pub(super) fn new(expand: Expand, bytes_max: usize) -> Self {
        Self {
            expand,
            bytes_max,
            place: 0,
            at: At::Top,
            text: Vec::new(),
            is_too_long: false,
            record_start: 0,
            record_offset: 0,
            mark: 0,
            begun: 0,
            item_start: 0,
            item_offset: 0,
            top: None,
            inner: None,
            has_field: false,
        }
    }

    pub(super) fn push(
        &mut self,
        piece: &[u8],
        found: &mut Found,
        count_max: usize,
    ) -> Result<usize, RecordError> {
        let mut taken = 0;
        while taken < piece.len() && found.records.len() < count_max {
            let rest = &piece[taken..];
            let count = match self.at {
                At::Record { .. } | At::Name(_) | At::Other(_) => self.inside(rest, found)?,
                _ if rest[0].is_ascii_whitespace() => 1,
                _ => self.between(rest[0])?,
            };
            taken += count;
            self.place += count as u64;
        }
        Ok(taken)
    }

    pub(super) fn end(&mut self, found: &mut Found) -> Result<(), RecordError> {
        match self.at {
            At::Top => Ok(()),
            // Only what follows it shows that a number is complete.
            At::Record { is_element: false, scan: Scan { way: Way::Scalar, .. } } => {
                self.complete(found)?;
                self.at = At::Top;
                Ok(())
            }
            At::Record { .. } => {
                Err(wrong(self.record_start, "the value that begins here has no end"))
            }
            _ => {
                let start = self.top.map_or(self.item_start, |list| list.start);
                Err(wrong(start, "the value that begins here has no end"))
            }
        }
    }

    /// A byte outside of all values that are taken as a whole. Returns how many were taken.
    fn between(&mut self, byte: u8) -> Result<usize, RecordError> {
        match self.at {
            At::Top => self.begin_value(byte),
            At::List => self.among_elements(byte),
            At::Fields => match byte {
                b',' => Ok(1),
                b'}' => self.end_object(),
                b'"' => {
                    self.text.clear();
                    self.text.push(byte);
                    self.at = At::Name(Scan::begin(byte));
                    Ok(1)
                }
                _ => Err(wrong(self.place, "the name of a field must stand here")),
            },
            At::Colon(is_it) if byte == b':' => {
                self.at = At::Before(is_it);
                Ok(1)
            }
            At::Colon(_) => Err(wrong(self.place, "a colon must follow the name of a field")),
            At::Before(true) if byte == b'[' => {
                self.inner = Some(List { start: self.place, comma: None });
                self.has_field = true;
                self.at = At::List;
                Ok(1)
            }
            At::Before(true) => {
                let message = format!(
                    "`{}` is not a list, and `expand_event_list_from_field` names it",
                    self.field()
                );
                Err(wrong(self.place, &message))
            }
            At::Before(false) => {
                self.check_beginning(byte)?;
                self.at = At::Other(Scan::begin(byte));
                Ok(1)
            }
            At::Record { .. } | At::Name(_) | At::Other(_) => Ok(0),
        }
    }

    /// A value at the top begins.
    fn begin_value(&mut self, byte: u8) -> Result<usize, RecordError> {
        let of_mark = usize::try_from(self.place).ok().and_then(|place| BYTE_ORDER_MARK.get(place));
        if self.begun == 0 && of_mark == Some(&byte) {
            self.mark += 1;
            return Ok(1);
        }
        match self.expand.lists {
            Lists::Must | Lists::May if byte == b'[' => {
                self.top = Some(List { start: self.place, comma: None });
                self.at = At::List;
                Ok(1)
            }
            Lists::Must => {
                let message = "a value is not a list, and `expand_event_list_from_field` is `.[]`";
                Err(wrong(self.place, message))
            }
            Lists::Whole | Lists::May => self.begin_item(byte, self.place),
        }
    }

    fn among_elements(&mut self, byte: u8) -> Result<usize, RecordError> {
        let place = self.place;
        let list = if self.inner.is_some() { &mut self.inner } else { &mut self.top };
        let Some(of) = list else { return Ok(1) };
        match byte {
            b',' => {
                of.comma = Some(place);
                Ok(1)
            }
            b']' => {
                let was_inner = self.inner.take().is_some();
                if !was_inner {
                    self.top = None;
                }
                self.at = if was_inner { At::Fields } else { At::Top };
                Ok(1)
            }
            _ => {
                // As Filebeat: with the comma before it.
                let offset = of.comma.unwrap_or(place);
                let start = of.start;
                if self.inner.is_none() {
                    return self.begin_item(byte, offset);
                }
                // As Filebeat: from the list, behind the object. Only in the first: in later ones two records could have the
                // same place.
                let offset = if self.begun == 1 {
                    self.item_offset + offset - start
                } else {
                    offset - self.mark
                };
                self.begin_record(byte, offset, true)
            }
        }
    }

    /// A value at the top begins, or an element that is taken for one.
    fn begin_item(&mut self, byte: u8, offset: u64) -> Result<usize, RecordError> {
        self.begun += 1;
        self.item_start = self.place;
        self.item_offset = offset - self.mark;
        if self.expand.field.is_none() {
            return self.begin_record(byte, self.item_offset, self.top.is_some());
        }
        if byte != b'{' {
            let message =
                "a value is not an object, and `expand_event_list_from_field` names a field";
            return Err(wrong(self.place, message));
        }
        self.has_field = false;
        self.at = At::Fields;
        Ok(1)
    }

    fn begin_record(
        &mut self,
        byte: u8,
        offset: u64,
        is_element: bool,
    ) -> Result<usize, RecordError> {
        self.check_beginning(byte)?;
        self.text.clear();
        self.text.push(byte);
        self.is_too_long = false;
        self.record_start = self.place;
        self.record_offset = offset;
        self.at = At::Record { is_element, scan: Scan::begin(byte) };
        Ok(1)
    }

    fn check_beginning(&self, byte: u8) -> Result<(), RecordError> {
        if matches!(byte, b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') {
            return Ok(());
        }
        Err(wrong(self.place, "no value of JSON begins so"))
    }

    fn end_object(&mut self) -> Result<usize, RecordError> {
        if !self.has_field {
            let message = format!(
                "an object has no field `{}`, which `expand_event_list_from_field` names",
                self.field()
            );
            return Err(wrong(self.item_start, &message));
        }
        self.at = if self.top.is_some() { At::List } else { At::Top };
        Ok(1)
    }

    /// Bytes of a value or of a name. Returns how many belong to it.
    fn inside(&mut self, bytes: &[u8], found: &mut Found) -> Result<usize, RecordError> {
        match self.at {
            At::Record { is_element, mut scan } => {
                let (count, is_end) = scan.take(bytes);
                self.keep(&bytes[..count], self.bytes_max);
                self.at = At::Record { is_element, scan };
                if is_end {
                    self.place += count as u64;
                    let completed = self.complete(found);
                    self.place -= count as u64;
                    completed?;
                    self.at = if is_element { At::List } else { At::Top };
                }
                Ok(count)
            }
            At::Name(mut scan) => {
                let (count, is_end) = scan.take(bytes);
                self.keep(&bytes[..count], NAME_BYTES_MAX);
                self.at = At::Name(scan);
                if is_end {
                    self.at = At::Colon(self.is_the_field());
                    self.text.clear();
                    self.is_too_long = false;
                }
                Ok(count)
            }
            At::Other(mut scan) => {
                let (count, is_end) = scan.take(bytes);
                self.at = if is_end { At::Fields } else { At::Other(scan) };
                Ok(count)
            }
            _ => Ok(0),
        }
    }

    fn keep(&mut self, bytes: &[u8], bytes_max: usize) {
        if self.text.len() + bytes.len() > bytes_max {
            self.is_too_long = true;
            self.text = Vec::new();
        }
        if !self.is_too_long {
            self.text.extend_from_slice(bytes);
        }
    }

    fn is_the_field(&self) -> bool {
        let name = &self.text;
        let field = self.field();
        if self.is_too_long {
            return false;
        }
        if !name.contains(&b'\\') {
            return name.get(1..name.len() - 1) == Some(field.as_bytes());
        }
        serde_json::from_slice::<String>(name).is_ok_and(|name| name == field)
    }

    fn field(&self) -> &str {
        self.expand.field.as_deref().unwrap_or_default()
    }

    /// Gives the record out that ends here.
    fn complete(&mut self, found: &mut Found) -> Result<(), RecordError> {
        if take(&mut self.is_too_long) {
            found.too_long.push((self.record_start, self.place - self.record_start));
            return Ok(());
        }
        if let Err(error) = serde_json::from_slice::<serde::de::IgnoredAny>(&self.text) {
            let message = format!("the value that begins here is no JSON: {error}");
            return Err(wrong(self.record_start, &message));
        }
        let start = found.text.len() as u32;
        found.text.extend_from_slice(&self.text);
        let (len, offset, end) = (self.text.len() as u32, self.record_offset, self.place);
        found.records.push(Record { start, len, offset, end });
        self.text.clear();
        Ok(())
    }
}

fn wrong(offset: u64, message: &str) -> RecordError {
    RecordError::at_byte(offset, message)
}

/// Where in a value it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scan {
    /// Open brackets.
    depth: u32,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A number, or `true`, `false`, `null`, that stands alone.
    Scalar,
    /// Among brackets.
    Nested,
    String,
    /// In a string, behind a backslash.
    Escaped,
}

impl Scan {
    /// In a value that begins with this byte.
    fn begin(byte: u8) -> Self {
        match byte {
            b'{' | b'[' => Self { depth: 1, way: Way::Nested },
            b'"' => Self { depth: 0, way: Way::String },
            _ => Self { depth: 0, way: Way::Scalar },
        }
    }

    /// How many of the bytes belong to the value, and whether it ends there.
    fn take(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.way {
                Way::Scalar => {
                    let is_end =
                        |byte: &u8| byte.is_ascii_whitespace() || b",]}:{[\"".contains(byte);
                    return match rest.iter().position(is_end) {
                        Some(count) => (at + count, true),
                        None => (bytes.len(), false),
                    };
                }
                Way::Escaped => {
                    self.way = Way::String;
                    at += 1;
                }
                Way::String => {
                    let Some(count) = memchr::memchr2(b'"', b'\\', rest) else {
                        return (bytes.len(), false);
                    };
                    at += count + 1;
                    if rest[count] == b'\\' {
                        self.way = Way::Escaped;
                    } else if self.depth == 0 {
                        return (at, true);
                    } else {
                        self.way = Way::Nested;
                    }
                }
                Way::Nested => {
                    let is_it = |byte: &u8| b"\"{}[]".contains(byte);
                    let Some(count) = rest.iter().position(is_it) else {
                        return (bytes.len(), false);
                    };
                    at += count + 1;
                    match rest[count] {
                        b'"' => self.way = Way::String,
                        b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                        _ => {
                            self.depth -= 1;
                            if self.depth == 0 {
                                return (at, true);
                            }
                        }
                    }
                }
            }
        }
        (bytes.len(), false)
    }
}
