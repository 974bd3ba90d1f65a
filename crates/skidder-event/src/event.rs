//! Reading one event of a batch: its own fields over the base.

use crate::base::{Base, BaseNode, BaseValue, find, is_same};
use crate::batch::{Batch, Cell, Node, NodeId, Row};
use crate::filter::{KeyBit, KeyFilter};
use crate::layout::Laid;
use crate::path::Path;
use crate::slots::NO_ROW;
use crate::value::Value;

/// A value as a processor or condition sees it.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
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
    /// Text; not necessarily UTF-8.
    Str(&'a [u8]),
    /// Nanoseconds since 1970-01-01 UTC.
    Time(i64),
    /// A list.
    List(ListRef<'a>),
    /// An object.
    Map(MapRef<'a>),
}

/// A list, of the event or of the base.
#[derive(Clone, Copy, Debug)]
pub enum ListRef<'a> {
    /// The event's own.
    Own(&'a Batch, NodeId),
    /// The base's.
    Base(&'a [Value]),
}

/// An object, of the event over that of the base.
#[derive(Clone, Copy, Debug)]
pub struct MapRef<'a> {
    batch: &'a Batch,
    pub(crate) own: NodeId,
    /// The row of which values are kept instead of nodes, in whose list of fields `own` is then; else [`NO_ROW`].
    laid: u32,
    base: &'a [BaseNode],
    /// `log.offset`, when this is `log` and the row has its own.
    pub(crate) offset: Option<u64>,
}

/// An event to be read.
#[derive(Clone, Copy, Debug)]
pub struct EventRef<'a> {
    pub(crate) batch: &'a Batch,
    pub(crate) row: usize,
    pub(crate) base: &'a Base,
}

impl<'a> EventRef<'a> {
    pub(crate) fn new(batch: &'a Batch, row: usize, base: &'a Base) -> Self {
        Self { batch, row, base }
    }

    /// The row itself.
    pub fn row(&self) -> &'a Row {
        &self.batch.rows[self.row]
    }

    /// The message text, if the event still has one as text.
    pub fn message(&self) -> Option<&'a [u8]> {
        let row = self.row();
        row.has(Row::MESSAGE).then(|| self.batch.text(row.message))
    }

    /// `log.offset`, as long as the row has its own.
    pub fn offset(&self) -> Option<u64> {
        let row = self.row();
        row.has(Row::OFFSET).then_some(row.offset)
    }

    /// The value at a path: the event's own, or the base's if nothing hides it.
    #[inline]
    pub fn get(&self, path: &Path) -> Option<ValueRef<'a>> {
        match self.slot_of(path) {
            Some((slot, known)) => self.get_slot(slot, known, path),
            None => self.search(path),
        }
    }

    /// The same for a path without a slot.
    fn search(&self, path: &Path) -> Option<ValueRef<'a>> {
        if path.is_dotted() && self.has_dots() {
            return self.search_dotted(path);
        }
        let row = self.row();
        if path.is_message() && row.has(Row::MESSAGE) {
            return Some(ValueRef::Str(self.batch.text(row.message)));
        }
        if path.is_timestamp() {
            return Some(ValueRef::Time(row.time));
        }
        if path.is_log_offset() && row.has(Row::OFFSET) {
            return Some(ValueRef::UInt(row.offset));
        }
        let (mut own, mut base) = if path.is_metadata() {
            (row.metadata, self.base.metadata())
        } else {
            if self.batch.slots.is_live(self.row)
                && let Some(found) = self.inside_slot(path)
            {
                return found;
            }
            (row.own, self.base.nodes())
        };
        let (last, parents) = path.segments().split_last()?;
        let mut around = self.fields();
        if row.layout == 0 || path.is_metadata() {
            for segment in parents {
                (own, base) = self.batch.inside(own, base, segment)?;
            }
            around = MapRef::of(self.batch, own, base);
        } else {
            for segment in parents {
                let ValueRef::Map(inner) = around.get(segment)? else { return None };
                around = inner;
            }
        }
        let value = around.get(last)?;
        if let ValueRef::Map(mut inner) = value
            && path.is_log()
            && row.has(Row::OFFSET)
        {
            inner.offset = Some(row.offset);
            return Some(ValueRef::Map(inner));
        }
        Some(value)
    }

    /// Whether there is a value at a path, `null` included.
    #[inline]
    pub fn has(&self, path: &Path) -> bool {
        match self.slot_of(path) {
            Some((slot, known)) => self.has_slot(slot, known),
            None => self.search(path).is_some() || (path.is_log() && self.row().has(Row::OFFSET)),
        }
    }

    /// Whether the event says anything of its own about a top-level field (of `@metadata` if
    /// `metadata`): a value, fields inside it, or that it is removed. `message`, `@timestamp` and
    /// `log.offset` do not count while they are the row's own.
    #[inline]
    pub fn has_own(&self, key: &str, metadata: bool) -> bool {
        let row = self.row();
        if !metadata && self.batch.slots.is_live(self.row) {
            return self.has_own_slot(key);
        }
        if !metadata && row.layout != 0 {
            return self.fields().find_own(Laid::FIRST, |own| own == key.as_bytes()).is_some();
        }
        let first = if metadata { row.metadata } else { row.own };
        !first.is_none() && self.batch.find(first, key.as_bytes()).is_some()
    }

    /// The same, also of a field whose key begins with this one and a dot.
    #[inline]
    pub fn has_own_at(&self, key: &str, metadata: bool) -> bool {
        self.has_own(key, metadata) || (self.batch.dotted && self.has_own_dotted(key, metadata))
    }

    /// Whether the event may say anything of its own about one of these top-level fields (of `@metadata` if
    /// `metadata`): a "no" is a "no" of [`EventRef::has_own_at`] for each of them.
    #[inline]
    pub fn may_have_own(&self, keys: &KeyFilter, metadata: bool) -> bool {
        let row = self.row();
        if !metadata && (row.layout != 0 || self.batch.slots.is_live(self.row)) {
            return true;
        }
        let mut next = if metadata { row.metadata } else { row.own };
        while !next.is_none() {
            let node = self.batch.node(next);
            let key = self.batch.text(node.key);
            if keys.may_have(KeyBit::of(key)) || (self.batch.dotted && keys.may_have_around(key)) {
                return true;
            }
            next = node.next;
        }
        false
    }

    /// Whether something in `@metadata` was set on this event rather than on its base.
    #[inline]
    pub fn has_own_metadata(&self) -> bool {
        !self.row().metadata.is_none()
    }

    /// The event's own fields over the base's.
    pub(crate) fn fields(&self) -> MapRef<'a> {
        let row = self.row();
        let (own, laid) =
            if row.layout == 0 { (row.own, NO_ROW) } else { (Laid::FIRST, self.row as u32) };
        MapRef { batch: self.batch, own, laid, base: self.base.nodes(), offset: None }
    }

    /// All fields but `message`, `@timestamp` and `log.offset` where they are the row's own.
    pub fn root(&self) -> MapRef<'a> {
        debug_assert!(
            !self.batch.slots.is_live(self.row),
            "all fields are looked at by a step that does not say so"
        );
        self.fields()
    }
}

impl<'a> MapRef<'a> {
    pub(crate) fn of(batch: &'a Batch, own: NodeId, base: &'a [BaseNode]) -> Self {
        Self { batch, own, laid: NO_ROW, base, offset: None }
    }

    /// The fields of the event of which values are kept instead of nodes, if it is of one.
    fn laid(&self) -> Option<Laid<'a>> {
        self.batch.laid(self.batch.rows.get(self.laid as usize)?)
    }

    /// The first of the event's own fields from `next` on with a key that fits, and which follows behind it.
    #[inline]
    pub(crate) fn find_own(
        &self,
        mut next: NodeId,
        fits: impl Fn(&[u8]) -> bool,
    ) -> Option<(Node, bool)> {
        let laid = self.laid();
        while !next.is_none() {
            let (node, is_around) = match laid {
                Some(laid) => laid.node(next),
                None => (*self.batch.node(next), false),
            };
            if fits(self.batch.text(node.key)) {
                return Some((node, is_around));
            }
            next = node.next;
        }
        None
    }

    /// The value of a field of the event over what the base has in its place.
    #[inline]
    fn value(
        &self,
        (node, is_around): (Node, bool),
        below: Option<&'a BaseNode>,
    ) -> Option<ValueRef<'a>> {
        let value = own_value(self.batch, node.cell, below)?;
        Some(match value {
            ValueRef::Map(inner) if is_around => ValueRef::Map(Self { laid: self.laid, ..inner }),
            value => value,
        })
    }

    /// The value of one key.
    pub fn get(&self, key: &str) -> Option<ValueRef<'a>> {
        if let Some(offset) = self.offset
            && key == "offset"
        {
            return Some(ValueRef::UInt(offset));
        }
        let below = || find(self.base, key);
        match self.find_own(self.own, |own| is_same(own, key.as_bytes())) {
            // Only under an object of the event may there be something of the base.
            Some(found @ (Node { cell: Cell::Map { opaque: false, .. }, .. }, _)) => {
                self.value(found, below())
            }
            Some(found) => self.value(found, None),
            None => below().map(|node| base_value(self.batch, node)),
        }
    }

    /// Calls `each` with every key that the event says something about itself, and what is seen there then: objects
    /// over those of the base, and nothing where a field of the base is removed.
    pub fn for_each_own(&self, mut each: impl FnMut(&'a [u8], Option<ValueRef<'a>>)) {
        let mut next = self.own;
        while let Some(found) = self.find_own(next, |_| true) {
            let key = self.batch.text(found.0.key);
            let below = match found.0.cell {
                Cell::Map { opaque: false, .. } => {
                    self.base.iter().find(|node| is_same(node.key.as_bytes(), key))
                }
                _ => None,
            };
            each(key, self.value(found, below));
            next = found.0.next;
        }
    }

    /// Calls `each` with every key and value, the base's first.
    pub fn for_each(&self, mut each: impl FnMut(&'a [u8], ValueRef<'a>)) {
        if let Some(offset) = self.offset {
            each(b"offset", ValueRef::UInt(offset));
        }
        for node in self.base {
            if let Some(value) = self.get(&node.key) {
                each(node.key.as_bytes(), value);
            }
        }
        let mut next = self.own;
        while let Some(found) = self.find_own(next, |_| true) {
            let key = self.batch.text(found.0.key);
            let in_base = std::str::from_utf8(key).is_ok_and(|key| find(self.base, key).is_some());
            if !in_base && let Some(value) = self.value(found, None) {
                each(key, value);
            }
            next = found.0.next;
        }
    }
}

impl<'a> ListRef<'a> {
    /// Calls `each` with every element until it says `false`.
    pub fn for_each(&self, mut each: impl FnMut(ValueRef<'a>) -> bool) {
        match *self {
            ListRef::Own(batch, first) => {
                let mut next = first;
                while !next.is_none() {
                    let node = batch.node(next);
                    if let Some(value) = own_value(batch, node.cell, None)
                        && !each(value)
                    {
                        return;
                    }
                    next = node.next;
                }
            }
            ListRef::Base(items) => {
                for item in items {
                    // A list of a base holds no objects with layers, so no batch is needed for them.
                    if let Some(value) = leaf_value(item)
                        && !each(value)
                    {
                        return;
                    }
                }
            }
        }
    }
}

#[inline]
pub(crate) fn own_value<'a>(
    batch: &'a Batch,
    cell: Cell,
    below: Option<&'a BaseNode>,
) -> Option<ValueRef<'a>> {
    Some(match cell {
        Cell::Gone => return None,
        Cell::Null => ValueRef::Null,
        Cell::Bool(truth) => ValueRef::Bool(truth),
        Cell::Int(number) => ValueRef::Int(number),
        Cell::UInt(number) => ValueRef::UInt(number),
        Cell::Float(number) => ValueRef::Float(number),
        Cell::Number(text) => number(batch.text(text)),
        Cell::Str(text) => ValueRef::Str(batch.text(text)),
        Cell::Time(time) => ValueRef::Time(time),
        Cell::List(first) => ValueRef::List(ListRef::Own(batch, first)),
        Cell::Map { first, opaque } => {
            let base = if opaque { &[] } else { below.map_or(&[][..], BaseNode::children) };
            ValueRef::Map(MapRef { batch, own: first, laid: NO_ROW, base, offset: None })
        }
    })
}

/// A JSON number: an integer where it is written as one and fits, else a floating-point number.
fn number(text: &[u8]) -> ValueRef<'static> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    match (text.parse(), text.parse(), text.parse()) {
        (Ok(number), _, _) => ValueRef::Int(number),
        (_, Ok(number), _) => ValueRef::UInt(number),
        (_, _, Ok(number)) => ValueRef::Float(number),
        _ => ValueRef::Null,
    }
}

pub(crate) fn base_value<'a>(batch: &'a Batch, node: &'a BaseNode) -> ValueRef<'a> {
    match &node.value {
        BaseValue::Map(children) => ValueRef::Map(MapRef {
            batch,
            own: NodeId::NONE,
            laid: NO_ROW,
            base: children,
            offset: None,
        }),
        BaseValue::Leaf(value) => leaf_value(value).unwrap_or(ValueRef::Null),
    }
}

/// A value of a configuration as events have it; `None` if it is an object, which has no such form inside a list.
pub fn leaf_value(value: &Value) -> Option<ValueRef<'_>> {
    Some(match value {
        Value::Null => ValueRef::Null,
        Value::Bool(truth) => ValueRef::Bool(*truth),
        Value::Int(number) => ValueRef::Int(*number),
        Value::UInt(number) => ValueRef::UInt(*number),
        Value::Float(number) => ValueRef::Float(*number),
        Value::Str(text) => ValueRef::Str(text.as_bytes()),
        Value::Time(time) => ValueRef::Time(*time),
        Value::List(items) => ValueRef::List(ListRef::Base(items)),
        Value::Map(_) => return None,
    })
}
