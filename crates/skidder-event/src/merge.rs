//! Writing an event that processors have touched: its own fields merged over the base's.

use crate::base::{Base, BaseNode, find, position};
use crate::batch::{Batch, Cell, Node, NodeId, Row};
use crate::encode::Precision;
use crate::escape::write_string;
use crate::time::TimeText;
use crate::value::Value;
use std::ops::Range;

/// Writes a value of a configuration or a base.
pub(crate) fn write_leaf(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => write_bool(out, *truth),
        Value::Int(number) => write_int(out, *number),
        Value::UInt(number) => write_uint(out, *number),
        Value::Float(number) => write_float(out, *number),
        Value::Str(text) => write_string(out, text.as_bytes(), true),
        Value::Time(time) => write_time(out, *time, &mut time_text()),
        Value::List(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_leaf(out, item);
            }
            out.push(b']');
        }
        Value::Map(map) => {
            out.push(b'{');
            for (at, (key, item)) in map.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_string(out, key.as_bytes(), true);
                out.push(b':');
                write_leaf(out, item);
            }
            out.push(b'}');
        }
    }
}

fn write_bool(out: &mut Vec<u8>, truth: bool) {
    out.extend_from_slice(if truth { b"true" } else { b"false" });
}

pub(crate) fn write_int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(crate) fn write_uint(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn write_float(out: &mut Vec<u8>, number: f64) {
    use std::io::Write;
    if number.is_finite() && (number.abs() < 1e17 && number.abs() > 1e-7 || number == 0.0) {
        write!(out, "{number}").expect("writing to a vector cannot fail");
    } else if number.is_finite() {
        // An exponent: without one the number would read as an integer that fits nowhere.
        write!(out, "{number:e}").expect("writing to a vector cannot fail");
    } else {
        out.extend_from_slice(b"null");
    }
}

fn time_text() -> TimeText {
    TimeText::new(Precision::Millisecond)
}

/// Writes a time. `text` keeps what it has in common with the one before.
pub(crate) fn write_time(out: &mut Vec<u8>, time: i64, text: &mut TimeText) {
    out.push(b'"');
    out.extend_from_slice(text.format(time));
    out.push(b'"');
}

/// Writes members of one object: commas between them, and members that stand next to each other in
/// the batch's bytes copied at once.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    batch: &'a Batch,
    first: bool,
    /// Members to copy together with the next ones.
    run: Range<usize>,
}

impl<'a> Members<'a> {
    fn new(out: &'a mut Vec<u8>, batch: &'a Batch, first: bool) -> Self {
        Self { out, batch, first, run: 0..0 }
    }

    fn separate(&mut self) {
        if !self.run.is_empty() {
            self.flush();
        }
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
    }

    #[cold]
    fn flush(&mut self) {
        self.end();
    }

    /// Members of JSON as they stand in the batch's bytes, to be copied.
    #[inline]
    fn copy(&mut self, start: usize, len: usize) {
        if self.run.end < start && !self.run.is_empty() {
            // Between neighbours of one text stand a comma and at most a space.
            let between = &self.batch.bytes[self.run.end..start];
            if between == b"," || between == b", " {
                self.run.end = start + len;
                return;
            }
        }
        if !self.run.is_empty() {
            self.flush();
        }
        self.run = start..start + len;
    }

    /// Members of a base that stand next to each other in its rendered text.
    #[inline]
    fn copy_base(&mut self, base: &Base, run: Option<Range<u32>>) {
        if let Some(run) = run {
            self.separate();
            self.out.extend_from_slice(base.text(run));
        }
    }

    /// Ends the members, for others to go on behind them.
    #[inline]
    fn end(&mut self) {
        let run = std::mem::take(&mut self.run);
        if !run.is_empty() {
            self.separate();
            self.out.extend_from_slice(&self.batch.bytes[run]);
        }
    }

    fn close(mut self) {
        self.end();
        self.out.push(b'}');
    }

    /// An object inside, for its members; to be closed.
    fn open(&mut self, key: &[u8], known_utf8: bool) -> Members<'_> {
        self.separate();
        write_string(self.out, key, known_utf8);
        self.out.extend_from_slice(b":{");
        Members::new(self.out, self.batch, true)
    }
}

/// Appends the members of a touched event behind its timestamp, each with a leading comma, and the
/// closing brace.
pub(crate) fn write_touched(out: &mut Vec<u8>, batch: &Batch, row: &Row, base: &Base) {
    if row.flags & !Row::SHARED == Row::MESSAGE && write_plain(out, batch, row, base) {
        return;
    }
    if row.has(Row::OFFSET) && is_apart(batch, row, base) {
        write_beside(out, batch, row, base);
        return;
    }
    let skip = if row.has(Row::OFFSET) { "log" } else { "" };
    let mut members = Members::new(out, batch, false);
    write_layers(&mut members, base, base.nodes(), row.own, skip);
    if row.has(Row::OFFSET) {
        write_log(&mut members, row, base);
    }
    members.end();
    if row.has(Row::MESSAGE) {
        members.out.extend_from_slice(b",\"message\":");
        write_string(members.out, batch.text(row.message), batch.known_utf8(row.message));
    }
    members.out.push(b'}');
}

/// Writes an event of a source that is no file, if none of its own fields has a name that the base has; else `false`, and
/// nothing was written.
#[inline]
fn write_plain(out: &mut Vec<u8>, batch: &Batch, row: &Row, base: &Base) -> bool {
    let mut next = row.own;
    while !next.is_none() {
        let node = batch.node(next);
        if base.position(batch.text(node.key)).is_some() {
            return false;
        }
        next = node.next;
    }
    let pieces = base.plain_pieces();
    out.extend_from_slice(pieces.before_message());
    write_string(out, batch.text(row.message), batch.known_utf8(row.message));
    if !row.own.is_none() {
        let mut members = Members::new(out, batch, false);
        let mut next = row.own;
        while !next.is_none() {
            write_member(&mut members, next);
            next = batch.node(next).next;
        }
        members.end();
    }
    out.extend_from_slice(pieces.after_message());
    true
}

/// What an event is to have between its message and what follows, if that is all that makes it another than an
/// untouched one: nothing, or its only field as it stands in the batch's bytes, of a name that the base does not have.
#[inline]
pub(crate) fn lone_member<'a>(batch: &'a Batch, row: &Row, base: &Base) -> Option<&'a [u8]> {
    if row.flags & !Row::SHARED != Row::MESSAGE | Row::OFFSET {
        return None;
    }
    if row.own.is_none() {
        return Some(&[]);
    }
    let node = batch.node(row.own);
    let key = batch.text(node.key);
    if node.raw() == 0 || !node.next.is_none() || key == b"log" || base.position(key).is_some() {
        return None;
    }
    let start = node.key.start as usize - 1;
    Some(&batch.bytes[start..start + node.raw() as usize])
}

/// Whether none of the event's own fields has a name that the base has.
fn is_apart(batch: &Batch, row: &Row, base: &Base) -> bool {
    let mut next = row.own;
    while !next.is_none() {
        let node = batch.node(next);
        let key = batch.text(node.key);
        if base.position(key).is_some() || key == b"log" {
            return false;
        }
        next = node.next;
    }
    true
}

/// Writes an event whose own fields stand beside those of the base, which needs no merging.
fn write_beside(out: &mut Vec<u8>, batch: &Batch, row: &Row, base: &Base) {
    const MESSAGE: &[u8] = b",\"message\":";
    let pieces = base.pieces();
    out.extend_from_slice(pieces.before_offset());
    write_uint(out, row.offset);
    if row.has(Row::MESSAGE) {
        out.extend_from_slice(pieces.before_message());
        write_string(out, batch.text(row.message), batch.known_utf8(row.message));
    } else {
        let before = pieces.before_message();
        out.extend_from_slice(&before[..before.len() - MESSAGE.len()]);
    }
    let mut members = Members::new(out, batch, false);
    let mut next = row.own;
    while !next.is_none() {
        write_member(&mut members, next);
        next = batch.node(next).next;
    }
    members.end();
    out.extend_from_slice(pieces.after_message());
}

/// `log` with the row's own offset in it.
fn write_log(members: &mut Members<'_>, row: &Row, base: &Base) {
    members.separate();
    members.out.extend_from_slice(b"\"log\":{\"offset\":");
    write_uint(members.out, row.offset);
    let batch = members.batch;
    let below = find(base.nodes(), "log").map_or(&[][..], BaseNode::children);
    let (first, opaque) = match batch.find(row.own, b"log").map(|id| batch.node(id).cell) {
        Some(Cell::Map { first, opaque }) => (first, opaque),
        _ => (NodeId::NONE, false),
    };
    let mut inner = Members::new(members.out, batch, false);
    write_layers(&mut inner, base, if opaque { &[] } else { below }, first, "");
    inner.close();
}

/// Most fields of one object of a base for which the event's own are looked up in one pass.
const OVER_MAX: usize = 32;

/// All members of one object but `skip`: the base's where nothing of the event's own is over them,
/// then the event's own.
fn write_layers(
    members: &mut Members<'_>,
    base: &Base,
    below: &[BaseNode],
    first: NodeId,
    skip: &str,
) {
    let batch = members.batch;
    let is_root = std::ptr::eq(below, base.nodes());
    let place = |key| if is_root { base.position(key) } else { position(below, key) };
    // Which of the first fields are over one of the base, so that each is looked up once.
    let (mut over, mut known) = ([NodeId::NONE; OVER_MAX], 0_u64);
    let (mut next, mut at) = (first, 0);
    while !next.is_none() && !below.is_empty() {
        let node = batch.node(next);
        if let Some(found) = place(batch.text(node.key)) {
            if let Some(place) = over.get_mut(found) {
                *place = next;
            }
            known |= 1_u64.checked_shl(at).unwrap_or(0);
        }
        next = node.next;
        at += 1;
    }
    // Neighbours that the event says nothing about are copied at once, with the commas between them.
    let mut run: Option<Range<u32>> = None;
    for (at, node) in below.iter().enumerate() {
        let own = match over.get(at) {
            Some(id) if id.is_none() => None,
            Some(&id) => Some(id),
            None => batch.find(first, node.key.as_bytes()),
        };
        let is_skipped = !skip.is_empty() && *node.key == *skip;
        if own.is_none() && !is_skipped {
            let place = base.place(node);
            run = Some(run.map_or(place.start, |run| run.start)..place.end);
            continue;
        }
        members.copy_base(base, run.take());
        if let Some(id) = own
            && !is_skipped
        {
            write_over(members, base, node, id);
        }
    }
    members.copy_base(base, run);
    (next, at) = (first, 0);
    while !next.is_none() {
        let node = batch.node(next);
        let key = batch.text(node.key);
        let written = match 1_u64.checked_shl(at) {
            Some(bit) => known & bit != 0,
            None => !below.is_empty() && place(key).is_some(),
        };
        if !written && (skip.is_empty() || key != skip.as_bytes()) {
            write_member(members, next);
        }
        next = node.next;
        at += 1;
    }
}

/// A member of the base under what the event says about it.
fn write_over(members: &mut Members<'_>, base: &Base, node: &BaseNode, id: NodeId) {
    match members.batch.node(id).cell {
        Cell::Map { first, opaque: false } if !node.children().is_empty() => {
            let mut inner = members.open(node.key.as_bytes(), true);
            write_layers(&mut inner, base, node.children(), first, "");
            inner.close();
        }
        _ => write_member(members, id),
    }
}

/// `"key":` of a field.
#[inline]
fn write_key(out: &mut Vec<u8>, batch: &Batch, node: &Node) {
    if node.raw & Node::KEY != 0 {
        let (start, len) = (node.key.start as usize, node.key.len as usize);
        out.extend_from_slice(&batch.bytes[start - 1..start + len + 2]);
        return;
    }
    write_string(out, batch.text(node.key), batch.known_utf8(node.key));
    out.push(b':');
}

/// A member that only the event has.
#[inline]
fn write_member(members: &mut Members<'_>, id: NodeId) {
    let node = members.batch.node(id);
    if node.raw() > 0 {
        members.copy(node.key.start as usize - 1, node.raw() as usize);
    } else if node.cell != Cell::Gone {
        members.separate();
        write_key(members.out, members.batch, node);
        write_cell(members.out, members.batch, node.cell);
    }
}

/// Appends a member that only the event has, without a comma.
pub(crate) fn append_member(out: &mut Vec<u8>, batch: &Batch, id: NodeId) {
    let mut members = Members::new(out, batch, true);
    write_member(&mut members, id);
    members.end();
}

/// A value that hides whatever the base has in its place.
pub(crate) fn write_cell(out: &mut Vec<u8>, batch: &Batch, cell: Cell) {
    match cell {
        Cell::Gone | Cell::Null => out.extend_from_slice(b"null"),
        Cell::Bool(truth) => write_bool(out, truth),
        Cell::Int(number) => write_int(out, number),
        Cell::UInt(number) => write_uint(out, number),
        Cell::Float(number) => write_float(out, number),
        Cell::Number(text) => out.extend_from_slice(batch.text(text)),
        Cell::Str(text) => write_string(out, batch.text(text), batch.known_utf8(text)),
        Cell::Time(time) => write_time(out, time, &mut time_text()),
        Cell::List(first) => {
            out.push(b'[');
            let mut next = first;
            while !next.is_none() {
                if next != first {
                    out.push(b',');
                }
                let node = batch.node(next);
                write_cell(out, batch, node.cell);
                next = node.next;
            }
            out.push(b']');
        }
        Cell::Map { first, .. } => {
            out.push(b'{');
            let mut inner = Members::new(out, batch, true);
            let mut next = first;
            while !next.is_none() {
                write_member(&mut inner, next);
                next = batch.node(next).next;
            }
            inner.close();
        }
    }
}

/// Appends the members of an event's `@metadata`, each with a leading comma.
pub(crate) fn write_metadata_members(
    out: &mut Vec<u8>,
    batch: &Batch,
    base: &Base,
    own: NodeId,
    first: bool,
) {
    let mut members = Members::new(out, batch, first);
    write_layers(&mut members, base, base.metadata(), own, "");
    members.end();
}
