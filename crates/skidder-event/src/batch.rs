//! A batch: the bytes that a reader filled in, rows of spans into them, and an arena of changes.

use crate::base::{Base, BaseNode, BaseValue, find, is_same};
use crate::edit::EventMut;
use crate::event::EventRef;
use crate::layout::Layout;
use crate::provenance::{DropCounts, DropReason, Provenance};
use crate::slots::{Slots, SlotsMark};
use std::ops::Range;
use std::sync::Arc;

/// A span of the batch's bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// First byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

/// Names a node of the batch's arena, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// No node: the end of a list, or an empty one.
    pub const NONE: Self = Self(u32::MAX);

    /// Whether it names no node.
    #[inline]
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }
}

/// A field that an event has of its own: added, replaced, or removed from the base.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub(crate) key: Text,
    pub(crate) cell: Cell,
    pub(crate) next: NodeId,
    /// Length of `"key":value` as it stands in the batch's bytes, from the quote before `key`: one
    /// member of JSON that may be copied. 0 if it does not stand there, or not any more. With [`Node::KEY`]
    /// it is no length.
    pub(crate) raw: u32,
}

impl Node {
    /// In the place of a length: `"key":` stands in the batch's bytes, from the quote before `key`, and may be copied.
    /// What is inside may change.
    pub(crate) const KEY: u32 = 1 << 31;

    /// Length of the member that may be copied, or 0.
    #[inline]
    pub(crate) fn raw(&self) -> u32 {
        if self.raw < Self::KEY { self.raw } else { 0 }
    }

    /// Takes note that the member does not stand anywhere as it is now.
    #[inline]
    pub(crate) fn forget_raw(&mut self) {
        self.raw &= Self::KEY;
    }

    pub(crate) fn new(key: Text, cell: Cell, next: NodeId) -> Self {
        Self { key, cell, next, raw: 0 }
    }
}

/// A value in a batch. Texts and inner fields live in the batch that made it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell {
    /// The base's field of this name is removed.
    Gone,
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// A JSON number as it was written, finite as a floating-point one; converted to a number on demand.
    Number(Text),
    /// Text, normally UTF-8; what is not is replaced when it is written.
    Str(Text),
    /// Nanoseconds since 1970-01-01 UTC.
    Time(i64),
    /// A list: its elements are linked nodes without keys.
    List(NodeId),
    /// An object over the base's object of the same path, or instead of it.
    Map {
        /// Its first field.
        first: NodeId,
        /// Whether it hides the base's object.
        opaque: bool,
    },
}

/// One event: spans and numbers, 48 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Place of the event in its source. Of a file: the offset of the line's first byte, decompressed. Of another source:
    /// how many events came before it, so that two of them differ.
    pub offset: u64,
    /// `@timestamp` in nanoseconds since 1970-01-01 UTC.
    pub time: i64,
    /// The message, as long as the row has its own.
    pub message: Text,
    /// Bytes in the source from the first of its line to the end of its last one, terminators included.
    pub line_bytes: u32,
    pub(crate) own: NodeId,
    pub(crate) metadata: NodeId,
    pub(crate) flags: u8,
    /// Which of the batch's layouts it has, from 1. `own` is the first of its values then. 0 if it has nodes.
    pub(crate) layout: u16,
}

impl Row {
    /// `message` is the row's own text.
    pub(crate) const MESSAGE: u8 = 1;
    /// `log.offset` is the row's own number.
    pub(crate) const OFFSET: u8 = 2;
    /// The event was dropped and goes with the next [`Batch::remove_dropped`].
    pub(crate) const DROPPED: u8 = 4;
    /// Other events have the nodes of `own`, too: they are copied before one of them changes.
    pub(crate) const SHARED: u8 = 8;

    /// A fresh event of one line.
    #[inline]
    pub fn new(offset: u64, line_bytes: u32, message: Text, time: i64) -> Self {
        Self {
            offset,
            time,
            message,
            line_bytes,
            own: NodeId::NONE,
            metadata: NodeId::NONE,
            flags: Self::MESSAGE | Self::OFFSET,
            layout: 0,
        }
    }

    /// A fresh event of a source that is no file: `log.offset` is not one of its fields. `number` is how many events of
    /// the source came before it, `bytes` how many of its bytes are the event's.
    #[inline]
    pub fn numbered(number: u64, bytes: u32, message: Text, time: i64) -> Self {
        Self { flags: Self::MESSAGE, ..Self::new(number, bytes, message, time) }
    }

    /// Whether the event was dropped and goes with the next [`Batch::remove_dropped`].
    pub fn is_dropped(&self) -> bool {
        self.has(Self::DROPPED)
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A point in an event's history to which it can be taken back.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    pub(crate) row: Row,
    pub(crate) nodes: u32,
    pub(crate) journal: u32,
    pub(crate) bytes: u32,
    pub(crate) slots: SlotsMark,
}

/// Events of one source, in its order, with the bytes they are made of.
#[derive(Debug)]
pub struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rows: Vec<Row>,
    pub(crate) nodes: Vec<Node>,
    /// Nodes as they were before a change, for [`EventMut::rollback`].
    pub(crate) journal: Vec<(NodeId, Node)>,
    /// Bytes from the start that are known to be UTF-8 at every line's ends.
    pub(crate) utf8_bytes: u32,
    /// Appended bytes that are known to be UTF-8 likewise.
    pub(crate) utf8_appended: Range<u32>,
    /// Room for a line that is decoded before it is appended.
    pub(crate) decoded: Vec<u8>,
    pub(crate) slots: Slots,
    /// How events look whose fields were in slots.
    pub(crate) layouts: Vec<Arc<Layout>>,
    /// The values of events that have a layout.
    pub(crate) cells: Vec<Cell>,
    /// Where the names of the layouts stand.
    pub(crate) names: u32,
    /// Events may have keys with dots in them.
    pub(crate) dotted: bool,
    base: Arc<Base>,
    pub(crate) lines: u64,
    pub(crate) drops: DropCounts,
    pub(crate) provenance: Provenance,
    pub(crate) recycle: Option<Arc<dyn Recycle>>,
}

/// The large parts of a batch, for reuse.
#[derive(Debug, Default)]
pub struct Parts {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// What its events had of their own; of no meaning, but for its room.
    pub nodes: Vec<Node>,
    /// The values of those that processors made; likewise.
    pub cells: Vec<Cell>,
}

/// Takes the large parts of a batch back when it goes.
pub trait Recycle: Send + Sync + std::fmt::Debug {
    /// Keeps them or lets them go.
    fn recycle(&self, parts: Parts);
}

impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(recycle) = self.recycle.take() {
            let bytes = std::mem::take(&mut self.bytes);
            let (rows, nodes) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.nodes));
            let cells = std::mem::take(&mut self.cells);
            recycle.recycle(Parts { bytes, rows, nodes, cells });
        }
    }
}

impl Batch {
    /// Most bytes a batch can hold: spans are 32 bits, and processors append to the bytes.
    pub const BYTES_MAX: usize = 1 << 30;

    /// A batch over `bytes`, which the reader has filled; rows are added with [`Batch::push`].
    ///
    /// `utf8` says that `bytes` was checked to be UTF-8 as a whole.
    ///
    /// # Panics
    /// If there are more than [`Batch::BYTES_MAX`] bytes: the reader bounds its lines.
    pub fn new(bytes: Vec<u8>, utf8: bool, base: Arc<Base>, provenance: Provenance) -> Self {
        let utf8_bytes = if utf8 { bytes.len() } else { 0 };
        let parts = Parts { bytes, ..Parts::default() };
        Self::with_lines(parts, utf8_bytes, base, provenance)
    }

    /// A batch of lines that were split already: `parts.rows` are its events. The first `utf8_bytes`
    /// bytes were checked to be UTF-8; bytes behind the lines are of no meaning.
    pub fn with_lines(
        mut parts: Parts,
        utf8_bytes: usize,
        base: Arc<Base>,
        provenance: Provenance,
    ) -> Self {
        assert!(parts.bytes.len() <= Self::BYTES_MAX, "a batch of {} bytes", parts.bytes.len());
        parts.nodes.clear();
        parts.cells.clear();
        Self {
            lines: parts.rows.len() as u64,
            bytes: parts.bytes,
            rows: parts.rows,
            utf8_bytes: utf8_bytes as u32,
            utf8_appended: 0..0,
            decoded: Vec::new(),
            recycle: None,
            nodes: parts.nodes,
            journal: Vec::new(),
            slots: Slots::EMPTY,
            layouts: Vec::new(),
            cells: parts.cells,
            names: 0,
            dotted: false,
            base,
            drops: DropCounts::default(),
            provenance,
        }
    }

    /// Adds an event; its line counts as read.
    #[inline]
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
        self.lines += 1;
    }

    /// Counts lines that were read and dropped before they became events.
    pub fn count_dropped(&mut self, reason: DropReason, lines: u64) {
        self.lines += lines;
        self.drops.add(reason, lines);
    }

    /// Lines that were read: `len() + drops().total()` at every instant.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Events dropped so far, by reason.
    pub fn drops(&self) -> &DropCounts {
        &self.drops
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no event (lines may have been read and dropped).
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes this batch holds in memory, for every bound that is counted in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.len()
            + self.rows.len() * std::mem::size_of::<Row>()
            + self.nodes.len() * std::mem::size_of::<Node>()
            + self.cells.len() * std::mem::size_of::<Cell>()
    }

    /// The shared layer.
    pub fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Sets the layer that the outputs see.
    pub fn set_base(&mut self, base: Arc<Base>) {
        if !self.layouts.is_empty() {
            for row in 0..self.rows.len() {
                if self.rows[row].layout != 0 {
                    self.make_nodes(row);
                }
            }
            self.layouts.clear();
        }
        self.base = base;
    }

    /// Where the lines come from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// The rows, in the order of the source.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The text of a span.
    #[inline]
    pub fn text(&self, text: Text) -> &[u8] {
        &self.bytes[text.start as usize..(text.start + text.len) as usize]
    }

    /// The event of a row over the batch's base.
    pub fn event(&self, row: usize) -> EventRef<'_> {
        EventRef::new(self, row, &self.base)
    }

    /// The event of a row over the base as it stood at one step of the plan.
    pub fn event_over<'a>(&'a self, row: usize, base: &'a Base) -> EventRef<'a> {
        EventRef::new(self, row, base)
    }

    /// The event of a row, to be changed, over the base as it stood at one step of the plan.
    pub fn event_mut<'a>(&'a mut self, row: usize, base: &'a Base) -> EventMut<'a> {
        EventMut::new(self, row, base)
    }

    /// Takes the dropped events out and counts them under `reason`; the order is kept.
    pub fn remove_dropped(&mut self, reason: DropReason) {
        let before = self.rows.len();
        self.rows.retain(|row| !row.has(Row::DROPPED));
        self.drops.add(reason, (before - self.rows.len()) as u64);
    }

    /// Forgets how changes are taken back: no [`Mark`] made until now is used any more.
    pub fn forget_changes(&mut self) {
        self.journal.clear();
    }

    /// Forgets what is needed only while processors run.
    pub fn finish(&mut self) {
        self.journal = Vec::new();
        self.slots = Slots::EMPTY;
        self.decoded = Vec::new();
    }

    /// Sets where the large parts go when the batch is dropped.
    pub fn set_recycle(&mut self, recycle: Arc<dyn Recycle>) {
        self.recycle = Some(recycle);
    }

    /// Appends text to the batch's bytes.
    ///
    /// # Panics
    /// Beyond [`Batch::BYTES_MAX`] bytes: values are bounded by the message they come from.
    pub(crate) fn push_text(&mut self, text: &[u8]) -> Text {
        let place = self.push_unchecked(text);
        self.check_appended(place.start, text);
        place
    }

    /// The same for text that the caller marks later ([`Batch::set_utf8_appended`]).
    pub(crate) fn push_unchecked(&mut self, text: &[u8]) -> Text {
        let start = self.bytes.len();
        assert!(start + text.len() <= Self::BYTES_MAX, "a batch beyond its bound");
        self.bytes.extend_from_slice(text);
        Text { start: start as u32, len: text.len() as u32 }
    }

    /// Takes away what was appended from `end` on.
    pub(crate) fn cut_bytes(&mut self, end: u32) {
        self.bytes.truncate(end as usize);
        let known = &mut self.utf8_appended;
        (known.start, known.end) = (known.start.min(end), known.end.min(end));
    }

    /// Takes note of text that was appended at `start`, if it is UTF-8 and so is all from the first text on that is
    /// known to be: what processors append is short, and looked at while it is at hand.
    #[inline]
    fn check_appended(&mut self, start: u32, text: &[u8]) {
        let known = &mut self.utf8_appended;
        if known.start == known.end {
            *known = start..start;
        }
        if known.end == start && (text.is_ascii() || simdutf8::basic::from_utf8(text).is_ok()) {
            known.end = start + text.len() as u32;
        }
    }

    pub(crate) fn push_node(&mut self, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        id
    }

    #[inline]
    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// The node with this key in a linked list.
    pub(crate) fn find(&self, mut first: NodeId, key: &[u8]) -> Option<NodeId> {
        while !first.is_none() {
            let node = self.node(first);
            if node.key.len as usize == key.len() && is_same(self.text(node.key), key) {
                return Some(first);
            }
            first = node.next;
        }
        None
    }

    /// The list of an event and the one of its base inside the object `key` of two such lists; `None` if there is
    /// no object of this name. The base is looked at only where the event leaves it to be seen.
    #[inline]
    pub(crate) fn inside<'b>(
        &self,
        own: NodeId,
        below: &'b [BaseNode],
        key: &str,
    ) -> Option<(NodeId, &'b [BaseNode])> {
        let Some(id) = self.find(own, key.as_bytes()) else {
            return match &find(below, key)?.value {
                BaseValue::Map(children) => Some((NodeId::NONE, children)),
                BaseValue::Leaf(_) => None,
            };
        };
        match self.node(id).cell {
            Cell::Map { first, opaque: true } => Some((first, &[])),
            Cell::Map { first, opaque: false } => {
                Some((first, find(below, key).map_or(&[][..], BaseNode::children)))
            }
            _ => None,
        }
    }

    /// Whether a span is known to be UTF-8 without looking.
    pub(crate) fn known_utf8(&self, text: Text) -> bool {
        let end = text.start + text.len;
        end <= self.utf8_bytes
            || (text.start >= self.utf8_appended.start && end <= self.utf8_appended.end)
    }
}
