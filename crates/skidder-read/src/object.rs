//! Objects of a store: content that arrives from its beginning, or from where it was settled, and never changes.
//!
//! An [`Object`] is read by the same [`Reader`] as a file, so that it has the same lines, parsers, codecs, checkpoints
//! and cursors. Its bytes are in a window, a file that grows as they arrive and is forgotten behind the reader. A turn is
//! a call, as that of a file; who calls it brings the bytes.

mod window;

use crate::compare::codec_of;
use crate::cursors::CursorsError;
use crate::fingerprint::{Fingerprint, read_up_to};
use crate::reader::{Framing, InputContext, Reader, Scratch, ShownPrint, Tabling, Target, TurnEnd};
use skidder_decode::{Checkpoint, Codec};
use skidder_event::{Batch, Map, SourceId};
use skidder_os::{File, Timestamp};
use skidder_parse::records::Layout;
use skidder_registry::{Cursor, FileEntry, Meta};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
pub use window::HEAD_BYTES;
use window::Window;

/// Bytes before a checkpoint that prove that it is of the same content.
const PROOF_BYTES: u64 = 64;

/// The identity in the registry of an object that is not compressed; of others it is the name of the codec.
const PLAIN: &str = "object";

/// The same of one that consists of values of JSON, compressed or not.
const VALUES: &str = "json";

/// The same of one that consists of rows of comma-separated values.
const ROWS: &str = "csv";

/// Decompressed bytes that show what an object consists of.
const BEGINNING_BYTES: usize = 64;

/// Which object it is.
#[derive(Clone, Debug)]
pub struct ObjectName {
    /// Its number in this run of the program.
    pub id: SourceId,
    /// Its key in the registry, which no other content has: store, name and version.
    pub key: Arc<str>,
    /// As events show it, in `log.file.path`.
    pub path: Arc<Path>,
    /// What all its events have besides.
    pub fields: Arc<Map>,
    /// What its content consists of.
    pub layout: Layout,
}

/// Both contexts of the objects of an input. They differ in what the end of what is there means: more may come, or
/// nothing.
#[derive(Clone, Copy)]
pub struct ObjectContext<'a> {
    /// While it arrives: `final_line` and `read_once` are off.
    pub arriving: &'a InputContext,
    /// When all of it has arrived: both are on.
    pub whole: &'a InputContext,
}

/// What comes after a turn.
#[derive(Debug)]
pub enum Step {
    /// Another turn.
    More,
    /// More bytes, or the news that there are none.
    Wants,
    /// Nothing: all of it was read.
    Done,
    /// Nothing: the rest cannot be decoded. It was reported.
    Damaged,
    /// A turn after this time: a processor has to know something first.
    Held(Duration),
    /// It is not the content whose place was saved: it is read from its beginning again, with [`Object::starts_at`].
    Anew,
    /// A turn later.
    Failed(io::Error),
}

/// An object that is being read.
pub struct Object {
    reader: Reader,
    window: Arc<Window>,
    /// Whether the first bytes have shown how it is compressed.
    is_known: bool,
    /// There is no turn before it has arrived up to here, unless it ends before: what identifies it must be there.
    ready_at: u64,
    path: Arc<Path>,
    /// How its records are found, if they are no lines.
    framing: Option<Framing>,
    /// The same if it is a table.
    tabling: Option<Tabling>,
    layout: Layout,
}

/// The window, as the reader owns a file.
struct Shared(Arc<Window>);

impl File for Shared {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn metadata(&self) -> io::Result<skidder_os::Metadata> {
        self.0.metadata()
    }

    fn set_len(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }
}

/// Where the bytes of an object must begin, and whether its head is needed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The place in the stored object.
    pub from: u64,
    /// Its first [`HEAD_BYTES`] must be given to [`Object::begin`].
    pub head: bool,
}

impl Object {
    /// An object that goes on where it was settled.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn open(context: ObjectContext<'_>, name: &ObjectName) -> Result<Self, CursorsError> {
        let cursors = &context.arriving.cursors;
        let saved = cursors.saved(&name.key)?;
        let (cursor, codec, layout) = place_of(saved.as_ref(), &name.layout);
        let is_lines = layout == Layout::Lines;
        let meta = Meta {
            source: Arc::clone(&name.path),
            identifier_name: identifier_of(&layout, codec).into(),
            ..Meta::default()
        };
        cursors.begin(name.id, &name.key, meta, cursor, false);
        let target = Target {
            path: Arc::clone(&name.path),
            shown: None,
            device: 0,
            inode: 0,
            compressed: codec.is_some(),
            print: Fingerprint::of(&[]),
            shown_print: ShownPrint::None,
        };
        let tail = cursor.tail.filter(|_| is_lines);
        let tail = tail.map(|tail| skidder_event::Tail { len: tail.len, crc: tail.crc });
        let (id, key) = (name.id, Arc::clone(&name.key));
        let mut reader = Reader::new(id, key, cursor.generation, target, cursor.offset, tail);
        reader.finished = cursor.eof;
        reader.set_fields(Arc::clone(&name.fields));
        let window = Arc::default();
        let is_known = cursor.offset > 0 && is_lines;
        let path = Arc::clone(&name.path);
        let (framing, tabling) = (None, None);
        Ok(Self { reader, window, is_known, ready_at: 0, path, framing, tabling, layout })
    }

    /// Whether it was read to its verified end, in an earlier run.
    pub fn is_finished(&self) -> bool {
        self.reader.finished
    }

    /// The place behind its last line that was given out, in decompressed bytes.
    pub fn offset(&self) -> u64 {
        self.reader.offset
    }

    /// Why the rest cannot be read behind [`Step::Damaged`].
    pub fn damage(&self) -> String {
        let of_table = self.tabling.as_ref().and_then(|tabling| tabling.wrong.as_ref());
        let wrong = self.framing.as_ref().and_then(|framing| framing.wrong.as_ref()).or(of_table);
        let usual = || "its end cannot be decoded: it is damaged, or was cut off".to_owned();
        wrong.map_or_else(usual, ToString::to_string)
    }

    /// Where its bytes must begin.
    ///
    /// # Errors
    /// If the registry cannot be read.
    pub fn starts_at(&self, context: ObjectContext<'_>) -> Result<Start, CursorsError> {
        let reader = &self.reader;
        if reader.offset == 0 || self.layout != Layout::Lines {
            return Ok(Start { from: 0, head: false });
        }
        if !reader.target.compressed {
            let tail = reader.tail.map_or(0, |tail| u64::from(tail.len));
            return Ok(Start { from: reader.offset.saturating_sub(tail), head: true });
        }
        let saved = context.arriving.cursors.checkpoint(&reader.key)?;
        let point = saved.and_then(|bytes| Checkpoint::from_bytes(&bytes).ok());
        let point = point.filter(|point| point.decompressed_offset() <= reader.offset);
        let from = point.map_or(0, |point| point.compressed_offset().saturating_sub(PROOF_BYTES));
        Ok(Start { from, head: from > 0 })
    }

    /// Its bytes come now, from this start on.
    pub fn begin(&mut self, context: ObjectContext<'_>, start: Start, head: &[u8]) {
        self.reader.close(context.arriving);
        self.window.begin(start.from, head);
        self.frame(context.arriving);
        self.ready_at = start.from + HEAD_BYTES as u64;
    }

    /// Its records are found from its first byte on, if they are no lines.
    fn frame(&mut self, context: &InputContext) {
        let bytes_max = context.settings.line_bytes_max();
        let settled = self.reader.offset;
        self.framing = Framing::new(&self.layout, bytes_max, settled);
        self.tabling = match &self.layout {
            Layout::Table(table) => Some(Tabling::new(table, bytes_max, settled)),
            _ => None,
        };
    }

    /// Bytes that have arrived, behind those before them.
    pub fn append(&mut self, bytes: &[u8]) {
        self.window.append(bytes);
    }

    /// How much of it has arrived, as it is stored.
    pub fn arrived(&self) -> u64 {
        self.window.end()
    }

    /// Takes one turn over what has arrived: at most one batch. `is_whole`: nothing more comes.
    pub fn turn(
        &mut self,
        context: ObjectContext<'_>,
        is_whole: bool,
        scratch: &mut Scratch,
        now: Timestamp,
    ) -> (Option<Batch>, Step) {
        let context = if is_whole { context.whole } else { context.arriving };
        if self.window.end() < self.ready_at && !is_whole {
            return (None, Step::Wants);
        }
        if !self.is_known {
            self.know(context, scratch);
        }
        if !self.reader.is_open() {
            self.reader.take_file(context, Box::new(Shared(Arc::clone(&self.window))));
        }
        let (batch, end) = match (&mut self.framing, &mut self.tabling) {
            (_, Some(tabling)) => self.reader.turn_table(context, tabling, scratch, now),
            (Some(framing), _) => self.reader.turn_records(context, framing, scratch, now),
            (None, None) => self.reader.turn(context, scratch, now),
        };
        self.window.forget_before(match self.layout {
            Layout::Lines => self.reader.needed_from(),
            _ => self.reader.needed_by_records(),
        });
        let step = match end {
            TurnEnd::More => Step::More,
            // The end of a plain object is known only here: a batch of its own says so to the cursor.
            TurnEnd::Waiting if is_whole && batch.is_some() => Step::More,
            // It was cut off: the end of what is compressed is known by itself.
            TurnEnd::Waiting if is_whole && self.reader.target.compressed => Step::Damaged,
            TurnEnd::Waiting if is_whole => {
                let is_new = !std::mem::replace(&mut self.reader.finished, true);
                let end = is_new.then(|| self.reader.empty_batch(context, true));
                return (end, Step::Done);
            }
            TurnEnd::Waiting => Step::Wants,
            TurnEnd::Finished => Step::Done,
            TurnEnd::Damaged => Step::Damaged,
            TurnEnd::Held(span) => Step::Held(span),
            TurnEnd::Displaced | TurnEnd::Rewritten => {
                let generation = self.reader.generation + 1;
                context.cursors.restart(self.reader.id, generation);
                self.reader.restart(generation);
                self.is_known = false;
                Step::Anew
            }
            TurnEnd::Failed(error) => Step::Failed(error),
        };
        (batch, step)
    }

    /// Learns from its first bytes how it is compressed, and what it consists of.
    fn know(&mut self, context: &InputContext, scratch: &mut Scratch) {
        self.is_known = true;
        let codec = Codec::detect(&*self.window).ok().flatten();
        debug_assert!(codec.is_none_or(|codec| codec == codec_of(&*self.window)), "the same bytes");
        self.reader.target.compressed = codec.is_some();
        if matches!(self.layout, Layout::JsonOrLines(_)) {
            let mut beginning = [0; BEGINNING_BYTES];
            // An error is met again by the reader.
            let count = match codec {
                Some(codec) => scratch.head_of(&*self.window, codec, &mut beginning, context),
                None => read_up_to(&*self.window, &mut beginning, 0).unwrap_or(0),
            };
            self.layout = std::mem::take(&mut self.layout).decide(&beginning[..count]);
            self.frame(context);
        }
        let meta = Meta {
            source: Arc::clone(&self.path),
            identifier_name: identifier_of(&self.layout, codec).into(),
            ..Meta::default()
        };
        context.cursors.update(self.reader.id, &self.reader.key, meta);
    }
}

/// What the registry has for an object of this layout, by which a later run knows what its place means.
fn identifier_of(layout: &Layout, codec: Option<Codec>) -> &'static str {
    match layout {
        Layout::Table(table) => table.format.name(),
        Layout::Json(_) | Layout::JsonOrLines(_) => VALUES,
        Layout::Csv(_) => ROWS,
        Layout::Lines => codec.map_or(PLAIN, Codec::name),
    }
}

/// Where it goes on, how it is compressed, and what it consists of.
fn place_of(entry: Option<&FileEntry>, layout: &Layout) -> (Cursor, Option<Codec>, Layout) {
    let Some(entry) = entry.filter(|entry| entry.cursor.offset > 0 || entry.cursor.eof) else {
        return (entry.map_or_else(Cursor::default, |entry| entry.cursor), None, layout.clone());
    };
    let name = &*entry.meta.identifier_name;
    let (cursor, codec) = (entry.cursor, Codec::find(name));
    // Between values, between rows, or between lines.
    let is_of_lines = name == PLAIN || codec.is_some();
    let is_place_of = match layout {
        Layout::Table(table) => name == table.format.name(),
        Layout::Csv(_) => name == ROWS,
        Layout::Json(_) | Layout::JsonOrLines(_) => name == VALUES || is_of_lines,
        Layout::Lines => is_of_lines,
    };
    match layout {
        // The settings have changed: a place between values is none between lines.
        _ if !is_place_of && !cursor.eof => {
            let cursor = Cursor { generation: cursor.generation + 1, ..Cursor::default() };
            (cursor, None, layout.clone())
        }
        Layout::JsonOrLines(expand) if name == VALUES => {
            (cursor, codec, Layout::Json(expand.clone()))
        }
        Layout::JsonOrLines(_) => (cursor, codec, Layout::Lines),
        layout => (cursor, codec, layout.clone()),
    }
}

#[cfg(test)]
mod tests;
