//! The scanner: one pass over the text, one node for each value.

use super::keys::{KeyId, Keys, Open};
use super::text::{Kind, string};
use super::{DEPTH_MAX, JsonError, Problem};
use skidder_event::{Arena, Cell, EventMut, FieldList, NodeId, Text};

/// Reads JSON objects. Remembers keys from one text to the next, so that it is cheap for texts of the same kind: keep
/// one for each source or thread.
#[derive(Debug)]
pub struct Scanner {
    keys: Keys,
    frames: Vec<Frame>,
    /// Texts without their escapes, to be appended to the batch's bytes.
    plain: Vec<u8>,
    keep_null: bool,
}

/// An object or list that is open.
#[derive(Clone, Copy, Debug)]
struct Frame {
    node: NodeId,
    first: NodeId,
    last: NodeId,
    /// The object, if it is one.
    object: Option<Open>,
    /// Its own key, and the last one in it.
    key: KeyId,
    last_key: KeyId,
    /// Where the member that it is the value of begins; 0 in a list.
    member: u32,
    /// It cannot be copied as it stands.
    altered: bool,
}

impl Scanner {
    /// A scanner that has seen nothing. Members that are `null` are left out unless `keep_null`.
    pub fn new(keep_null: bool) -> Self {
        Self { keys: Keys::new(), frames: Vec::new(), plain: Vec::new(), keep_null }
    }

    /// Makes fields of the JSON object that `text` is, in the batch of `event`, which itself stays as it is.
    /// Objects inside are made to be merged with what the event has of their name.
    pub fn object(&mut self, event: &mut EventMut<'_>, text: Text) -> Result<FieldList, JsonError> {
        if event.is_utf8(text) {
            return self.scan(event, text);
        }
        let bytes = event.text(text).to_vec();
        let copy = event.store_text(String::from_utf8_lossy(&bytes).as_bytes());
        self.scan(event, copy)
            .map_err(|error| JsonError { offset: original_offset(&bytes, error.offset), ..error })
    }

    fn scan(&mut self, event: &mut EventMut<'_>, text: Text) -> Result<FieldList, JsonError> {
        self.keys.begin();
        self.frames.clear();
        self.plain.clear();
        let plain_start = event.bytes_len();
        let (bytes, arena) = event.arena();
        let before = arena.len();
        let mut scan = Scan {
            end: (text.start + text.len) as usize,
            at: text.start as usize,
            bytes,
            arena,
            plain_start,
            keys: &mut self.keys,
            frames: &mut self.frames,
            plain: &mut self.plain,
            keep_null: self.keep_null,
            line_breaks: false,
        };
        match scan.document() {
            Ok(fields) => {
                if scan.line_breaks {
                    scan.arena.forget_raw(before);
                }
                if !self.plain.is_empty() {
                    event.store_text(&self.plain);
                }
                Ok(fields)
            }
            Err(error) => {
                scan.arena.truncate(before);
                Err(JsonError { offset: error.offset - text.start as usize, ..error })
            }
        }
    }
}

/// Where a byte of the text with replacement characters stood in the original.
fn original_offset(original: &[u8], offset: usize) -> usize {
    let (mut read, mut written) = (0, 0);
    for chunk in original.utf8_chunks() {
        let valid = chunk.valid().len();
        if offset <= written + valid {
            return read + offset - written;
        }
        read += valid + chunk.invalid().len();
        written += valid + char::REPLACEMENT_CHARACTER.len_utf8();
        if offset < written {
            return read - chunk.invalid().len();
        }
    }
    original.len()
}

/// One text being read.
struct Scan<'s> {
    bytes: &'s [u8],
    at: usize,
    end: usize,
    arena: Arena<'s>,
    /// Where `plain` will stand in the batch's bytes.
    plain_start: u32,
    keys: &'s mut Keys,
    frames: &'s mut Vec<Frame>,
    plain: &'s mut Vec<u8>,
    keep_null: bool,
    /// There are line breaks between values.
    line_breaks: bool,
}

/// A key that was read.
#[derive(Clone, Copy)]
struct Key {
    id: KeyId,
    text: Text,
    /// Where its member begins.
    member: u32,
    /// Its text stands between its quotes.
    plain: bool,
}

/// A list's element has no key.
const NO_KEY: Key =
    Key { id: KeyId::ROOT, text: Text { start: 0, len: 0 }, member: 0, plain: false };

impl Scan<'_> {
    fn fail<T>(&self, problem: Problem) -> Result<T, JsonError> {
        if self.at >= self.end {
            return Err(JsonError::new(self.end, Problem::Unfinished));
        }
        Err(JsonError::new(self.at, problem))
    }

    /// The next byte that is no white space; 0 at the end.
    #[inline]
    fn peek(&mut self) -> u8 {
        while self.at < self.end {
            let byte = self.bytes[self.at];
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\n' | b'\r' => {
                    self.line_breaks = true;
                    self.at += 1;
                }
                _ => return byte,
            }
        }
        0
    }

    fn document(&mut self) -> Result<FieldList, JsonError> {
        match self.peek() {
            b'{' => self.at += 1,
            0 if self.at >= self.end => return self.fail(Problem::Unfinished),
            b'n' if self.bytes[self.at..self.end].starts_with(b"null") => {
                return self.fail(Problem::Null);
            }
            b'"' | b'[' | b'0'..=b'9' | b'-' | b't' | b'f' => {
                return self.fail(Problem::NotAnObject);
            }
            _ => return self.fail(Problem::Value),
        }
        let object = Some(self.keys.open());
        let root = Frame {
            node: NodeId::NONE,
            first: NodeId::NONE,
            last: NodeId::NONE,
            object,
            key: KeyId::ROOT,
            last_key: KeyId::ROOT,
            member: 0,
            altered: false,
        };
        let fields = self.containers(root)?;
        if self.peek() != 0 || self.at < self.end {
            return self.fail(Problem::Trailing);
        }
        Ok(fields)
    }

    /// Reads behind the opening brace of the root up to behind its closing one.
    fn containers(&mut self, root: Frame) -> Result<FieldList, JsonError> {
        let mut frame = root;
        let mut begun = true;
        loop {
            let closing = if frame.object.is_some() { b'}' } else { b']' };
            let byte = self.peek();
            if byte == closing {
                self.at += 1;
                let Some(outer) = self.frames.pop() else {
                    return Ok(FieldList { first: frame.first, last: frame.last });
                };
                frame = self.close(frame, outer);
                begun = false;
                continue;
            }
            if !begun {
                if byte != b',' {
                    return self.fail(Problem::Comma);
                }
                self.at += 1;
                self.peek();
            }
            let key = match frame.object {
                Some(_) => self.key(&mut frame)?,
                None => Key { id: frame.key, ..NO_KEY },
            };
            begun = match self.peek() {
                open @ (b'{' | b'[') => {
                    frame = self.open(frame, key, open)?;
                    true
                }
                byte => {
                    self.value(&mut frame, key, byte)?;
                    false
                }
            };
        }
    }

    /// A key and its colon.
    #[inline]
    fn key(&mut self, frame: &mut Frame) -> Result<Key, JsonError> {
        if self.at >= self.end || self.bytes[self.at] != b'"' {
            return self.fail(Problem::Key);
        }
        let member = self.at as u32;
        let start = self.at + 1;
        let first = frame.last_key == frame.key && frame.first.is_none();
        let guess = self.keys.guess(frame.last_key, first, &self.bytes[start..self.end]);
        let key = if let Some((id, len)) = guess {
            self.at = start + len + 1;
            Key { id, text: Text { start: start as u32, len: len as u32 }, member, plain: true }
        } else {
            self.new_key(frame.last_key, first, start)?
        };
        frame.last_key = key.id;
        let colon = self.at < self.end && self.bytes[self.at] == b':';
        if !colon && self.peek() != b':' {
            return self.fail(Problem::Colon);
        }
        self.at += 1;
        Ok(key)
    }

    /// A key that was not guessed.
    fn new_key(&mut self, before: KeyId, first: bool, start: usize) -> Result<Key, JsonError> {
        let plain_from = self.plain.len();
        let found = string(self.bytes, start, self.end, self.plain)?;
        self.at = found.quote + 1;
        let member = start as u32 - 1;
        if found.kind == Kind::Plain {
            let text = Text { start: start as u32, len: (found.quote - start) as u32 };
            let id = self.keys.find(before, first, &self.bytes[start..found.quote]);
            return Ok(Key { id, text, member, plain: true });
        }
        let id = self.keys.find(before, first, &self.plain[plain_from..]);
        Ok(Key { id, text: self.plain_text(plain_from), member, plain: false })
    }

    /// What was written to `plain` from `from` on, as the span it will be.
    fn plain_text(&self, from: usize) -> Text {
        Text { start: self.plain_start + from as u32, len: (self.plain.len() - from) as u32 }
    }

    /// Begins an object or list.
    fn open(&mut self, mut frame: Frame, key: Key, byte: u8) -> Result<Frame, JsonError> {
        if self.frames.len() + 1 >= DEPTH_MAX {
            return self.fail(Problem::Depth);
        }
        self.at += 1;
        let node = self.put(&mut frame, key, Cell::Null, 0);
        self.frames.push(frame);
        let object = if byte == b'{' { Some(self.keys.open()) } else { None };
        Ok(Frame {
            node,
            first: NodeId::NONE,
            last: NodeId::NONE,
            object,
            key: key.id,
            last_key: key.id,
            member: key.member,
            altered: !key.plain && frame.object.is_some(),
        })
    }

    /// Ends an object or list that is inside `outer`.
    fn close(&mut self, frame: Frame, mut outer: Frame) -> Frame {
        let cell = match frame.object {
            Some(object) => {
                self.keys.close(object);
                Cell::Map { first: frame.first, opaque: false }
            }
            None => Cell::List(frame.first),
        };
        let in_object = outer.object.is_some();
        let raw = if frame.altered || !in_object { 0 } else { self.at as u32 - frame.member };
        self.arena.set(frame.node, cell, raw);
        outer.altered |= frame.altered;
        outer
    }

    /// Adds a value to an object or list; one that an equal key has goes.
    #[inline]
    fn put(&mut self, frame: &mut Frame, key: Key, cell: Cell, raw: u32) -> NodeId {
        let id = self.arena.next_id();
        if let Some(object) = frame.object
            && let Some(before) = self.keys.take(object, key.id, id)
        {
            frame.altered = true;
            self.arena.replace(before, key.text, cell, raw);
            return before;
        }
        self.arena.push(frame.last, key.text, cell, raw);
        if frame.first.is_none() {
            frame.first = id;
        }
        frame.last = id;
        id
    }

    /// A text, number or word.
    #[inline]
    fn value(&mut self, frame: &mut Frame, key: Key, byte: u8) -> Result<(), JsonError> {
        let start = self.at;
        let mut faithful = true;
        let cell = match byte {
            b'"' => {
                let plain_from = self.plain.len();
                let found = string(self.bytes, start + 1, self.end, self.plain)?;
                self.at = found.quote + 1;
                faithful = found.kind != Kind::Lossy;
                Cell::Str(match found.kind {
                    Kind::Plain => {
                        Text { start: start as u32 + 1, len: (found.quote - start) as u32 - 1 }
                    }
                    _ => self.plain_text(plain_from),
                })
            }
            b'-' | b'0'..=b'9' => {
                let cell = self.number()?;
                faithful = matches!(cell, Cell::Number(_));
                cell
            }
            b't' => self.word(b"true", Cell::Bool(true))?,
            b'f' => self.word(b"false", Cell::Bool(false))?,
            b'n' => {
                let cell = self.word(b"null", Cell::Null)?;
                if !self.keep_null && frame.object.is_some() {
                    self.leave_out(frame, key);
                    return Ok(());
                }
                cell
            }
            _ => return self.fail(Problem::Value),
        };
        let raw = if faithful && key.plain { self.at as u32 - key.member } else { 0 };
        frame.altered |= !faithful || (!key.plain && frame.object.is_some());
        self.put(frame, key, cell, raw);
        Ok(())
    }

    /// A member that is `null`: nothing, but in place of an equal key.
    fn leave_out(&mut self, frame: &mut Frame, key: Key) {
        frame.altered = true;
        if let Some(object) = frame.object
            && let Some(before) = self.keys.held(object, key.id)
        {
            self.arena.replace(before, key.text, Cell::Null, 0);
        }
    }

    #[inline]
    fn word(&mut self, word: &[u8], cell: Cell) -> Result<Cell, JsonError> {
        let rest = &self.bytes[self.at..self.end];
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(cell);
        }
        let same = rest.iter().zip(word).take_while(|(is, should)| is == should).count();
        if same == rest.len() {
            self.at = self.end;
        }
        self.fail(Problem::Value)
    }

    #[inline]
    fn digits(&mut self) -> usize {
        let from = self.at;
        while self.at < self.end && self.bytes[self.at].is_ascii_digit() {
            self.at += 1;
        }
        self.at - from
    }

    #[inline]
    fn number(&mut self) -> Result<Cell, JsonError> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        let leading_zero = self.at < self.end && self.bytes[self.at] == b'0';
        let digits = self.digits();
        if digits == 0 || (leading_zero && digits > 1) {
            return self.fail(Problem::Number);
        }
        let mut integer = true;
        if self.at < self.end && self.bytes[self.at] == b'.' {
            integer = false;
            self.at += 1;
            if self.digits() == 0 {
                return self.fail(Problem::Number);
            }
        }
        let mut exponent = false;
        if self.at < self.end && matches!(self.bytes[self.at], b'e' | b'E') {
            (integer, exponent) = (false, true);
            self.at += 1;
            if self.at < self.end && matches!(self.bytes[self.at], b'+' | b'-') {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail(Problem::Number);
            }
        }
        let text = Text { start: start as u32, len: (self.at - start) as u32 };
        if (integer && digits <= 18) || (!integer && !exponent && digits < 300) {
            return Ok(Cell::Number(text));
        }
        Ok(large(&self.bytes[start..self.at], text, integer))
    }
}

/// A number that may not fit.
#[cold]
fn large(bytes: &[u8], text: Text, integer: bool) -> Cell {
    let digits = std::str::from_utf8(bytes).unwrap_or_default();
    if integer && (digits.parse::<i64>().is_ok() || digits.parse::<u64>().is_ok()) {
        return Cell::Number(text);
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && !integer => Cell::Number(text),
        Ok(number) if number.is_finite() => Cell::Float(number),
        _ => Cell::Str(text),
    }
}
