//! Writing an event that processors have touched: its own fields merged over the base's.

use crate::base::{Base, BaseNode, find};
use crate::batch::{Batch, Cell, NodeId, Row};
use crate::encode::Precision;
use crate::escape::write_string;
use crate::time::TimeText;
use crate::value::Value;

/// Writes a value of a configuration or a base.
pub(crate) fn write_leaf(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => write_bool(out, *truth),
        Value::Int(number) => write_int(out, *number),
        Value::UInt(number) => write_uint(out, *number),
        Value::Float(number) => write_float(out, *number),
        Value::Str(text) => write_string(out, text.as_bytes(), true),
        Value::Time(time) => write_time(out, *time),
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
    if number.is_finite() {
        write!(out, "{number}").expect("writing to a vector cannot fail");
    } else {
        out.extend_from_slice(b"null");
    }
}

fn write_time(out: &mut Vec<u8>, time: i64) {
    out.push(b'"');
    out.extend_from_slice(TimeText::new(Precision::Millisecond).format(time));
    out.push(b'"');
}

/// Writes members of one object, remembering whether a comma is due.
struct Members<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl Members<'_> {
    fn separate(&mut self) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
    }
}

/// Appends the members of a touched event behind its timestamp, each with a leading comma, and the
/// closing brace.
pub(crate) fn write_touched(out: &mut Vec<u8>, batch: &Batch, row: &Row, base: &Base) {
    let mut members = Members { out, first: false };
    let own = row.own;
    for node in base.nodes() {
        if *node.key == *"log" && row.has(Row::OFFSET) {
            continue;
        }
        write_over(&mut members, batch, base, node, batch.find(own, node.key.as_bytes()));
    }
    let mut next = own;
    while !next.is_none() {
        let node = batch.node(next);
        let key = batch.text(node.key);
        let of_log = key == b"log" && row.has(Row::OFFSET);
        if !of_log && find_bytes(base.nodes(), key).is_none() {
            write_member(&mut members, batch, next);
        }
        next = node.next;
    }
    if row.has(Row::OFFSET) {
        write_log(&mut members, batch, row, base);
    }
    if row.has(Row::MESSAGE) {
        members.separate();
        members.out.extend_from_slice(b"\"message\":");
        write_string(members.out, batch.text(row.message), batch.known_utf8(row.message));
    }
    members.out.push(b'}');
}

/// `log` with the row's own offset in it.
fn write_log(members: &mut Members<'_>, batch: &Batch, row: &Row, base: &Base) {
    members.separate();
    members.out.extend_from_slice(b"\"log\":{\"offset\":");
    write_uint(members.out, row.offset);
    let mut inner = Members { out: members.out, first: false };
    let below = find(base.nodes(), "log").map_or(&[][..], BaseNode::children);
    let (first, opaque) = match batch.find(row.own, b"log").map(|id| batch.node(id).cell) {
        Some(Cell::Map { first, opaque }) => (first, opaque),
        _ => (NodeId::NONE, false),
    };
    write_layers(&mut inner, batch, base, if opaque { &[] } else { below }, first);
    members.out.push(b'}');
}

/// All members of one object: the base's where nothing of the event's own is over them, then the
/// event's own.
fn write_layers(
    members: &mut Members<'_>,
    batch: &Batch,
    base: &Base,
    below: &[BaseNode],
    first: NodeId,
) {
    for node in below {
        write_over(members, batch, base, node, batch.find(first, node.key.as_bytes()));
    }
    let mut next = first;
    while !next.is_none() {
        let node = batch.node(next);
        if find_bytes(below, batch.text(node.key)).is_none() {
            write_member(members, batch, next);
        }
        next = node.next;
    }
}

/// A member of the base under what the event says about it.
fn write_over(
    members: &mut Members<'_>,
    batch: &Batch,
    base: &Base,
    node: &BaseNode,
    own: Option<NodeId>,
) {
    let Some(id) = own else {
        members.separate();
        members.out.extend_from_slice(base.rendered(node));
        return;
    };
    match batch.node(id).cell {
        Cell::Map { first, opaque: false } => {
            members.separate();
            write_string(members.out, node.key.as_bytes(), true);
            members.out.extend_from_slice(b":{");
            let mut inner = Members { out: members.out, first: true };
            write_layers(&mut inner, batch, base, node.children(), first);
            members.out.push(b'}');
        }
        _ => write_member(members, batch, id),
    }
}

/// A member that only the event has.
fn write_member(members: &mut Members<'_>, batch: &Batch, id: NodeId) {
    let node = batch.node(id);
    if node.cell == Cell::Gone {
        return;
    }
    members.separate();
    write_string(members.out, batch.text(node.key), false);
    members.out.push(b':');
    write_cell(members.out, batch, node.cell);
}

/// A value that hides whatever the base has in its place.
pub(crate) fn write_cell(out: &mut Vec<u8>, batch: &Batch, cell: Cell) {
    match cell {
        Cell::Gone | Cell::Null => out.extend_from_slice(b"null"),
        Cell::Bool(truth) => write_bool(out, truth),
        Cell::Int(number) => write_int(out, number),
        Cell::UInt(number) => write_uint(out, number),
        Cell::Float(number) => write_float(out, number),
        Cell::Str(text) => write_string(out, batch.text(text), batch.known_utf8(text)),
        Cell::Time(time) => write_time(out, time),
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
            let mut inner = Members { out, first: true };
            let mut next = first;
            while !next.is_none() {
                write_member(&mut inner, batch, next);
                next = batch.node(next).next;
            }
            out.push(b'}');
        }
    }
}

fn find_bytes<'a>(nodes: &'a [BaseNode], key: &[u8]) -> Option<&'a BaseNode> {
    nodes.binary_search_by(|node| node.key.as_bytes().cmp(key)).ok().map(|at| &nodes[at])
}

/// Appends the members of an event's `@metadata`, each with a leading comma.
pub(crate) fn write_metadata_members(out: &mut Vec<u8>, batch: &Batch, base: &Base, own: NodeId) {
    let mut members = Members { out, first: false };
    write_layers(&mut members, batch, base, base.metadata(), own);
}
