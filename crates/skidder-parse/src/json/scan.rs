//! The scanner: one pass over the text, one node for each value.

use super::keys::{KeyId, Keys, Open};
use super::text::{Kind, string};
use super::{DEPTH_MAX, JsonError, Problem};
use skidder_event::{Arena, Cell, EventMut, FieldList, KeyFilter, NodeId, Text};

mod number;
mod value;
mod word;

use number::large;
pub use value::JsonValue;

/// Reads JSON objects. Remembers keys from one text to the next, so that it is cheap for texts of
/// the same kind: keep one for each source or thread.
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
    object: Open,
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
    #[inline]
    pub fn object(&mut self, event: &mut EventMut<'_>, text: Text) -> Result<FieldList, JsonError> {
        self.read(event, text, |scan| {
            let fields = scan.document()?;
            scan.nothing_more().map(|()| fields)
        })
    }

    /// The same of a text that begins with an object, and where something else follows behind it.
    #[inline]
    pub(crate) fn first_object(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
    ) -> Result<(FieldList, Option<JsonError>), JsonError> {
        let start = text.start as usize;
        self.read(event, text, |scan| {
            let fields = scan.document()?;
            let behind = scan.nothing_more().err();
            let behind = behind
                .map(|error| JsonError { offset: error.offset.saturating_sub(start), ..error });
            Ok((fields, behind))
        })
    }

    /// Reads a text; one that is not UTF-8 as a copy with replacement characters.
    #[inline]
    fn read<T>(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
        what: impl FnOnce(&mut Scan<'_>) -> Result<T, JsonError>,
    ) -> Result<T, JsonError> {
        if event.is_utf8(text) {
            return self.scan(event, text, what);
        }
        let bytes = event.text(text).to_vec();
        let copy = event.store_text(String::from_utf8_lossy(&bytes).as_bytes());
        self.scan(event, copy, what)
            .map_err(|error| JsonError { offset: original_offset(&bytes, error.offset), ..error })
    }

    #[inline]
    fn scan<T>(
        &mut self,
        event: &mut EventMut<'_>,
        text: Text,
        what: impl FnOnce(&mut Scan<'_>) -> Result<T, JsonError>,
    ) -> Result<T, JsonError> {
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
            root_keys: KeyFilter::NONE,
        };
        match what(&mut scan) {
            Ok(found) => {
                if scan.line_breaks {
                    scan.arena.forget_raw(before);
                }
                if !self.plain.is_empty() {
                    event.store_text(&self.plain);
                }
                if self.keys.has_dots() {
                    event.note_dots();
                }
                Ok(found)
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
    /// The keys of the root.
    root_keys: KeyFilter,
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
    #[cold]
    #[inline(never)]
    fn fail<T>(&self, problem: Problem) -> Result<T, JsonError> {
        if self.at >= self.end {
            return Err(JsonError::new(self.end, Problem::Unfinished));
        }
        Err(JsonError::new(self.at, problem))
    }

    /// The next byte that is no white space; 0 at the end.
    #[inline(always)]
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
        let object = self.keys.open();
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
        self.containers(root)
    }

    fn nothing_more(&mut self) -> Result<(), JsonError> {
        if self.peek() != 0 || self.at < self.end {
            return self.fail(Problem::Trailing);
        }
        Ok(())
    }

    /// Reads behind the opening brace of the root up to behind its closing one.
    fn containers(&mut self, root: Frame) -> Result<FieldList, JsonError> {
        let mut frame = root;
        let mut key = NO_KEY;
        let mut begun = true;
        loop {
            let closing = if frame.object.is_object() { b'}' } else { b']' };
            let byte = self.peek();
            if byte == closing {
                self.at += 1;
                if !self.close(&mut frame) {
                    let keys = self.root_keys;
                    let (first, last) = (frame.first, frame.last);
                    return Ok(FieldList { first, last, keys, timestamp: true });
                }
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
            if frame.object.is_object() {
                self.key(&mut frame, &mut key)?;
            } else {
                key = Key { id: frame.key, ..NO_KEY };
            }
            let byte = self.peek();
            begun = matches!(byte, b'{' | b'[');
            if begun {
                self.open(&mut frame, key, byte)?;
            } else {
                self.value(&mut frame, key, byte)?;
            }
        }
    }

    /// A key and its colon. Written to where the caller has it: moving it costs more than reading it.
    #[inline(always)]
    fn key(&mut self, frame: &mut Frame, key: &mut Key) -> Result<(), JsonError> {
        if self.at >= self.end || self.bytes[self.at] != b'"' {
            return self.fail(Problem::Key);
        }
        let start = self.at + 1;
        key.member = self.at as u32;
        let first = frame.last_key == frame.key && frame.first.is_none();
        let guess = self.keys.guess(frame.last_key, first, self.bytes, start);
        if let Some((id, len)) = guess
            && start + len < self.end
        {
            self.at = start + len + 1;
            key.id = id;
            key.text.start = start as u32;
            key.text.len = len as u32;
            key.plain = true;
        } else {
            self.new_key(frame.last_key, first, start, key)?;
        }
        frame.last_key = key.id;
        if frame.node.is_none() {
            self.root_keys.add(self.keys.bit(key.id));
        }
        let colon = self.at < self.end && self.bytes[self.at] == b':';
        if !colon && self.peek() != b':' {
            return self.fail(Problem::Colon);
        }
        self.at += 1;
        Ok(())
    }

    /// A key that was not guessed.
    #[cold]
    #[inline(never)]
    fn new_key(
        &mut self,
        before: KeyId,
        first: bool,
        start: usize,
        key: &mut Key,
    ) -> Result<(), JsonError> {
        let plain_from = self.plain.len();
        let found = string(self.bytes, start, self.end, self.plain)?;
        self.at = found.quote + 1;
        key.plain = found.kind == Kind::Plain;
        if key.plain {
            key.text = Text { start: start as u32, len: (found.quote - start) as u32 };
            key.id = self.keys.find(before, first, &self.bytes[start..found.quote]);
        } else {
            key.text = self.plain_text(plain_from);
            key.id = self.keys.find(before, first, &self.plain[plain_from..]);
        }
        Ok(())
    }

    /// What was written to `plain` from `from` on, as the span it will be.
    fn plain_text(&self, from: usize) -> Text {
        Text { start: self.plain_start + from as u32, len: (self.plain.len() - from) as u32 }
    }

    /// Begins an object or list inside `frame`, which it becomes.
    fn open(&mut self, frame: &mut Frame, key: Key, byte: u8) -> Result<(), JsonError> {
        if self.frames.len() + 1 >= DEPTH_MAX {
            return self.fail(Problem::Depth);
        }
        self.at += 1;
        let node = self.put(frame, key, Cell::Null, 0);
        self.frames.push(*frame);
        frame.altered = !key.plain && frame.object.is_object();
        frame.node = node;
        frame.first = NodeId::NONE;
        frame.last = NodeId::NONE;
        frame.object = if byte == b'{' { self.keys.open() } else { Open::LIST };
        frame.key = key.id;
        frame.last_key = key.id;
        frame.member = key.member;
        Ok(())
    }

    /// Ends an object or list; `frame` becomes the one around it. Returns `false` if there is none.
    fn close(&mut self, frame: &mut Frame) -> bool {
        let Some(outer) = self.frames.pop() else { return false };
        let cell = if frame.object.is_object() {
            self.keys.close(frame.object);
            Cell::Map { first: frame.first, opaque: false }
        } else {
            Cell::List(frame.first)
        };
        let altered = frame.altered;
        let copied = !altered && outer.object.is_object();
        let raw = if copied { self.at as u32 - frame.member } else { 0 };
        self.arena.set(frame.node, cell, raw);
        *frame = outer;
        frame.altered |= altered;
        true
    }

    /// Adds a value to an object or list; one that an equal key has goes.
    #[inline(always)]
    fn put(&mut self, frame: &mut Frame, key: Key, cell: Cell, raw: u32) -> NodeId {
        let id = self.arena.next_id();
        if frame.object.is_object()
            && let Some(before) = self.keys.take(frame.object, key.id, id)
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

    /// A text, number or word. Each has its own way to its node, which is written where it stays.
    #[inline(always)]
    fn value(&mut self, frame: &mut Frame, key: Key, byte: u8) -> Result<(), JsonError> {
        let start = self.at;
        match byte {
            b'"' => {
                let plain_from = self.plain.len();
                let found = string(self.bytes, start + 1, self.end, self.plain)?;
                self.at = found.quote + 1;
                if found.kind == Kind::Plain {
                    let text =
                        Text { start: start as u32 + 1, len: (found.quote - start) as u32 - 1 };
                    let raw = self.raw(frame, key, true);
                    self.put(frame, key, Cell::Str(text), raw);
                } else {
                    let raw = self.raw(frame, key, found.kind != Kind::Lossy);
                    self.put_rare(frame, key, Cell::Str(self.plain_text(plain_from)), raw);
                }
            }
            b'-' | b'0'..=b'9' => {
                let small = self.number()?;
                let text = Text { start: start as u32, len: (self.at - start) as u32 };
                if small {
                    let raw = self.raw(frame, key, true);
                    self.put(frame, key, Cell::Number(text), raw);
                } else {
                    let cell = large(&self.bytes[start..self.at], text);
                    let raw = self.raw(frame, key, matches!(cell, Cell::Number(_)));
                    self.put_rare(frame, key, cell, raw);
                }
            }
            b't' => {
                self.word(b"true")?;
                let raw = self.raw(frame, key, true);
                self.put(frame, key, Cell::Bool(true), raw);
            }
            b'f' => {
                self.word(b"false")?;
                let raw = self.raw(frame, key, true);
                self.put(frame, key, Cell::Bool(false), raw);
            }
            b'n' => {
                self.word(b"null")?;
                if !self.keep_null && frame.object.is_object() {
                    self.leave_out(frame, key);
                } else {
                    let raw = self.raw(frame, key, true);
                    self.put_rare(frame, key, Cell::Null, raw);
                }
            }
            _ => return self.fail(Problem::Value),
        }
        Ok(())
    }

    /// Length of the member that ends here, if it may be copied: `faithful` says whether its value may.
    #[inline(always)]
    fn raw(&self, frame: &mut Frame, key: Key, faithful: bool) -> u32 {
        if faithful && key.plain {
            return self.at as u32 - key.member;
        }
        frame.altered |= !faithful || frame.object.is_object();
        0
    }

    #[inline(never)]
    fn put_rare(&mut self, frame: &mut Frame, key: Key, cell: Cell, raw: u32) {
        self.put(frame, key, cell, raw);
    }

    /// A member that is `null`: nothing, but in place of an equal key.
    fn leave_out(&mut self, frame: &mut Frame, key: Key) {
        frame.altered = true;
        if frame.object.is_object()
            && let Some(before) = self.keys.held(frame.object, key.id)
        {
            self.arena.replace(before, key.text, Cell::Null, 0);
        }
    }
}
