//! Events as bytes that outlive the program: one item of CBOR (RFC 8949) for some rows of a batch, and back.
//!
//! ```text
//! [fields of the base, @metadata of the base, [row, …]]
//! row: [offset, time, line bytes, flags, message, own fields, own @metadata]
//! ```
//!
//! Keys and texts of events are byte strings, because they need not be UTF-8; those of a base are text strings. What CBOR has
//! no word for is tagged ([`TAG_TIME`], …). `undefined` stands for a field that is removed from the base. What comes back is
//! the same event, as every processor and output sees it; how a processor or parser came to it is forgotten.

use crate::base::{Base, BaseNode, BaseValue};
use crate::batch::{Batch, Cell, Node, NodeId, Parts, Row, Text};
use crate::layout::Laid;
use crate::provenance::Provenance;
use crate::value::{Map, Value};
use minicbor::data::{Tag, Type};
use minicbor::{Decoder, Encoder};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// Nanoseconds since 1970-01-01 UTC, an integer.
pub const TAG_TIME: u64 = 40_501;
/// A JSON number as it was written, a byte string.
pub const TAG_NUMBER: u64 = 40_502;
/// An object that hides the base's object of the same path, a map.
pub const TAG_OPAQUE: u64 = 40_503;

/// Objects and lists inside each other that are read back: four times as many as a parser makes.
const DEPTH_MAX: usize = 2048;

/// Bases that are remembered by [`Bases`].
const BASES_MAX: usize = 64;

/// Bytes are no events of [`Batch::store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no stored events")]
pub struct RestoreError;

impl From<minicbor::decode::Error> for RestoreError {
    fn from(_: minicbor::decode::Error) -> Self {
        Self
    }
}

type Written = Result<(), minicbor::encode::Error<Infallible>>;

/// The layers that were read back last, so that stored events of one source share theirs.
#[derive(Debug, Default)]
pub struct Bases(Vec<(Vec<u8>, Arc<Base>)>);

impl Bases {
    /// The layer of these bytes, and whether it is to be made: the newest stands at the end.
    fn get(&mut self, bytes: &[u8]) -> Option<Arc<Base>> {
        let at = self.0.iter().rposition(|(known, _)| known == bytes)?;
        let found = self.0.remove(at);
        let base = Arc::clone(&found.1);
        self.0.push(found);
        Some(base)
    }

    fn put(&mut self, bytes: &[u8], base: &Arc<Base>) {
        if self.0.len() == BASES_MAX {
            self.0.remove(0);
        }
        self.0.push((bytes.to_vec(), Arc::clone(base)));
    }
}

impl Batch {
    /// Stack that a thread needs which calls [`Batch::restore`], in bytes: objects inside each other are calls inside
    /// each other.
    pub const RESTORE_STACK_BYTES: usize = 16 << 20;

    /// Appends some rows, none of which was dropped. What processors need while they run must have been forgotten
    /// ([`Batch::finish`]).
    ///
    /// # Panics
    /// If `rows` are not rows of the batch.
    pub fn store(&self, rows: Range<u32>, out: &mut Vec<u8>) {
        let rows = &self.rows[rows.start as usize..rows.end as usize];
        self.write(rows, &mut Encoder::new(out)).expect("writing to memory does not fail");
    }

    fn write(&self, rows: &[Row], out: &mut Encoder<&mut Vec<u8>>) -> Written {
        out.array(3)?;
        write_base(self.base().nodes(), out)?;
        write_base(self.base().metadata(), out)?;
        out.array(rows.len() as u64)?;
        for row in rows {
            let has_message = row.has(Row::MESSAGE);
            let message = if has_message { self.text(row.message) } else { &[] };
            out.array(7)?.u64(row.offset)?.i64(row.time)?;
            out.u32(row.line_bytes)?
                .u8(row.flags & (Row::MESSAGE | Row::OFFSET))?
                .bytes(message)?;
            match self.laid(row) {
                Some(laid) => self.write_laid_fields(laid, Laid::FIRST, out)?,
                None => self.write_fields(row.own, out)?,
            }
            self.write_fields(row.metadata, out)?;
        }
        Ok(())
    }

    fn write_fields(&self, first: NodeId, out: &mut Encoder<&mut Vec<u8>>) -> Written {
        out.map(self.count(first))?;
        let mut next = first;
        while !next.is_none() {
            let node = self.node(next);
            out.bytes(self.text(node.key))?;
            self.write_cell(node.cell, out)?;
            next = node.next;
        }
        Ok(())
    }

    /// The fields from `first` on of an event of which values are kept instead of nodes.
    fn write_laid_fields(
        &self,
        laid: Laid<'_>,
        first: NodeId,
        out: &mut Encoder<&mut Vec<u8>>,
    ) -> Written {
        let mut nodes = Vec::new();
        let mut next = first;
        while !next.is_none() {
            let (node, is_around) = laid.node(next);
            nodes.push((node, is_around));
            next = node.next;
        }
        out.map(nodes.len() as u64)?;
        for (node, is_around) in nodes {
            out.bytes(self.text(node.key))?;
            match node.cell {
                Cell::Map { first, .. } if is_around => self.write_laid_fields(laid, first, out)?,
                cell => self.write_cell(cell, out)?,
            }
        }
        Ok(())
    }

    fn count(&self, first: NodeId) -> u64 {
        let (mut count, mut next) = (0, first);
        while !next.is_none() {
            count += 1;
            next = self.node(next).next;
        }
        count
    }

    fn write_cell(&self, cell: Cell, out: &mut Encoder<&mut Vec<u8>>) -> Written {
        match cell {
            Cell::Gone => out.undefined()?,
            Cell::Null => out.null()?,
            Cell::Bool(truth) => out.bool(truth)?,
            Cell::Int(number) => out.i64(number)?,
            Cell::UInt(number) => out.u64(number)?,
            Cell::Float(number) => out.f64(number)?,
            Cell::Number(text) => out.tag(Tag::new(TAG_NUMBER))?.bytes(self.text(text))?,
            Cell::Str(text) => out.bytes(self.text(text))?,
            Cell::Time(time) => out.tag(Tag::new(TAG_TIME))?.i64(time)?,
            Cell::List(first) => {
                out.array(self.count(first))?;
                let mut next = first;
                while !next.is_none() {
                    let node = self.node(next);
                    self.write_cell(node.cell, out)?;
                    next = node.next;
                }
                out
            }
            Cell::Map { first, opaque } => {
                if opaque {
                    out.tag(Tag::new(TAG_OPAQUE))?;
                }
                return self.write_fields(first, out);
            }
        };
        Ok(())
    }

    /// Reads back what [`Batch::store`] wrote. `bytes` holds one item and nothing else; no line of it counts as read.
    pub fn restore(
        bytes: &[u8],
        provenance: Provenance,
        bases: &mut Bases,
    ) -> Result<Self, RestoreError> {
        if bytes.len() > Self::BYTES_MAX {
            return Err(RestoreError);
        }
        let mut input = Decoder::new(bytes);
        expect(input.array()?, 3)?;
        let start = input.position();
        input.skip()?;
        input.skip()?;
        let layers = &bytes[start..input.position()];
        let base = match bases.get(layers) {
            Some(base) => base,
            None => {
                let base = Arc::new(read_base(layers)?);
                bases.put(layers, &base);
                base
            }
        };
        let count = input.array()?.ok_or(RestoreError)?;
        // A row is not shorter than eight bytes: more than there can be is not believed.
        if count > bytes.len() as u64 / 8 {
            return Err(RestoreError);
        }
        let mut events = Events::default();
        events.bytes.reserve(bytes.len() - input.position());
        events.rows.reserve(count as usize);
        for _ in 0..count {
            events.row(&mut input)?;
        }
        if input.position() != bytes.len() {
            return Err(RestoreError);
        }
        // Texts are set apart by line feeds, so that all of them are UTF-8 if the whole is.
        let utf8 = simdutf8::basic::from_utf8(&events.bytes).is_ok();
        let known = if utf8 { events.bytes.len() } else { 0 };
        let parts = Parts { bytes: events.bytes, rows: events.rows, ..Parts::default() };
        let mut batch = Self::with_lines(parts, known, base, provenance);
        (batch.nodes, batch.dotted) = (events.nodes, events.dotted);
        Ok(batch)
    }
}

/// The part read back so far.
#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    nodes: Vec<Node>,
    dotted: bool,
}

impl Events {
    fn text(&mut self, text: &[u8]) -> Result<Text, RestoreError> {
        let start = self.bytes.len();
        if start + text.len() >= Batch::BYTES_MAX {
            return Err(RestoreError);
        }
        self.bytes.extend_from_slice(text);
        self.bytes.push(b'\n');
        Ok(Text { start: start as u32, len: text.len() as u32 })
    }

    fn row(&mut self, input: &mut Decoder<'_>) -> Result<(), RestoreError> {
        expect(input.array()?, 7)?;
        let (offset, time) = (input.u64()?, input.i64()?);
        let (line_bytes, flags) = (input.u32()?, input.u8()?);
        if flags & !(Row::MESSAGE | Row::OFFSET) != 0 {
            return Err(RestoreError);
        }
        let message = self.text(input.bytes()?)?;
        let own = self.fields(input, DEPTH_MAX)?;
        let metadata = self.fields(input, DEPTH_MAX)?;
        let row = Row { own, metadata, flags, ..Row::new(offset, line_bytes, message, time) };
        self.rows.push(row);
        Ok(())
    }

    fn fields(&mut self, input: &mut Decoder<'_>, depth: usize) -> Result<NodeId, RestoreError> {
        let count = input.map()?.ok_or(RestoreError)?;
        self.list(count, input, depth, |events, input| {
            let key = input.bytes()?;
            events.dotted |= key.contains(&b'.');
            events.text(key)
        })
    }

    /// Nodes in their order, each with the key that `key` reads.
    fn list(
        &mut self,
        count: u64,
        input: &mut Decoder<'_>,
        depth: usize,
        key: impl Fn(&mut Self, &mut Decoder<'_>) -> Result<Text, RestoreError>,
    ) -> Result<NodeId, RestoreError> {
        let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
        for _ in 0..count {
            let key = key(self, input)?;
            let cell = self.cell(input, depth)?;
            let id = NodeId(self.nodes.len() as u32);
            self.nodes.push(Node::new(key, cell, NodeId::NONE));
            if last.is_none() {
                first = id;
            } else {
                self.nodes[last.0 as usize].next = id;
            }
            last = id;
        }
        Ok(first)
    }

    fn cell(&mut self, input: &mut Decoder<'_>, depth: usize) -> Result<Cell, RestoreError> {
        let depth = depth.checked_sub(1).ok_or(RestoreError)?;
        Ok(match input.datatype()? {
            Type::Undefined => {
                input.undefined()?;
                Cell::Gone
            }
            Type::Bytes => Cell::Str(self.text(input.bytes()?)?),
            Type::Array => {
                let count = input.array()?.ok_or(RestoreError)?;
                Cell::List(self.list(count, input, depth, |_, _| Ok(Text::default()))?)
            }
            Type::Map => Cell::Map { first: self.fields(input, depth)?, opaque: false },
            Type::Tag => match input.tag()?.as_u64() {
                TAG_TIME => Cell::Time(input.i64()?),
                TAG_NUMBER => {
                    let text = input.bytes()?;
                    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                    // It is written into documents as it is.
                    if !parsed.is_some_and(f64::is_finite) {
                        return Err(RestoreError);
                    }
                    Cell::Number(self.text(text)?)
                }
                TAG_OPAQUE => Cell::Map { first: self.fields(input, depth)?, opaque: true },
                _ => return Err(RestoreError),
            },
            kind => match read_scalar(input, kind)? {
                Value::Null => Cell::Null,
                Value::Bool(truth) => Cell::Bool(truth),
                Value::Int(number) => Cell::Int(number),
                Value::UInt(number) => Cell::UInt(number),
                Value::Float(number) => Cell::Float(number),
                Value::Str(_) | Value::Time(_) | Value::List(_) | Value::Map(_) => {
                    return Err(RestoreError);
                }
            },
        })
    }
}

fn expect(count: Option<u64>, wanted: u64) -> Result<(), RestoreError> {
    if count == Some(wanted) { Ok(()) } else { Err(RestoreError) }
}

fn write_base(nodes: &[BaseNode], out: &mut Encoder<&mut Vec<u8>>) -> Written {
    out.map(nodes.len() as u64)?;
    for node in nodes {
        out.str(&node.key)?;
        match &node.value {
            BaseValue::Map(children) => write_base(children, out)?,
            BaseValue::Leaf(value) => write_value(value, out)?,
        }
    }
    Ok(())
}

fn write_value(value: &Value, out: &mut Encoder<&mut Vec<u8>>) -> Written {
    match value {
        Value::Null => out.null()?,
        Value::Bool(truth) => out.bool(*truth)?,
        Value::Int(number) => out.i64(*number)?,
        Value::UInt(number) => out.u64(*number)?,
        Value::Float(number) => out.f64(*number)?,
        Value::Str(text) => out.str(text)?,
        Value::Time(time) => out.tag(Tag::new(TAG_TIME))?.i64(*time)?,
        Value::List(items) => {
            out.array(items.len() as u64)?;
            for item in items {
                write_value(item, out)?;
            }
            out
        }
        Value::Map(map) => {
            out.map(map.len() as u64)?;
            for (key, value) in map.iter() {
                out.str(key)?;
                write_value(value, out)?;
            }
            out
        }
    };
    Ok(())
}

fn read_base(layers: &[u8]) -> Result<Base, RestoreError> {
    let mut input = Decoder::new(layers);
    let fields = read_map(&mut input, DEPTH_MAX)?;
    let metadata = read_map(&mut input, DEPTH_MAX)?;
    Ok(Base::new(&fields, &metadata))
}

fn read_map(input: &mut Decoder<'_>, depth: usize) -> Result<Map, RestoreError> {
    let count = input.map()?.ok_or(RestoreError)?;
    let mut map = Map::new();
    for _ in 0..count {
        let key = input.str()?;
        map.insert(key, read_value(input, depth)?);
    }
    Ok(map)
}

fn read_value(input: &mut Decoder<'_>, depth: usize) -> Result<Value, RestoreError> {
    let depth = depth.checked_sub(1).ok_or(RestoreError)?;
    Ok(match input.datatype()? {
        Type::String => Value::Str(input.str()?.into()),
        Type::Map => Value::Map(read_map(input, depth)?),
        Type::Array => {
            let count = input.array()?.ok_or(RestoreError)?;
            let mut items = Vec::new();
            for _ in 0..count {
                items.push(read_value(input, depth)?);
            }
            Value::List(items)
        }
        Type::Tag if input.tag()?.as_u64() == TAG_TIME => Value::Time(input.i64()?),
        Type::Tag => return Err(RestoreError),
        kind => read_scalar(input, kind)?,
    })
}

/// Common code of bases and events.
fn read_scalar(input: &mut Decoder<'_>, kind: Type) -> Result<Value, RestoreError> {
    Ok(match kind {
        Type::Null => {
            input.null()?;
            Value::Null
        }
        Type::Bool => Value::Bool(input.bool()?),
        Type::U8
        | Type::U16
        | Type::U32
        | Type::U64
        | Type::I8
        | Type::I16
        | Type::I32
        | Type::I64
        | Type::Int => {
            let number = i128::from(input.int()?);
            match (i64::try_from(number), u64::try_from(number)) {
                (Ok(number), _) => Value::Int(number),
                (_, Ok(number)) => Value::UInt(number),
                _ => return Err(RestoreError),
            }
        }
        Type::F64 => Value::Float(input.f64()?),
        _ => return Err(RestoreError),
    })
}

#[cfg(test)]
mod tests;
