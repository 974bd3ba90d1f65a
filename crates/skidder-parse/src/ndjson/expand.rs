//! `expand_keys`: `{"a.b": 1}` becomes `{"a": {"b": 1}}`, at every depth but inside lists.

use crate::json::DEPTH_MAX;
use skidder_event::{Arena, Cell, EventMut, FieldList, KeyFilter, NodeId, Text};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Fields of an object that are compared one by one; those behind them are looked up.
const COMPARED_MAX: usize = 32;

/// Expands keys; keeps its memory from event to event.
#[derive(Debug, Default)]
pub(crate) struct Expander {
    hasher: RandomState,
    /// Fields behind the first ones, by the object that they are in (nothing: the root) and the
    /// hash of their key.
    known: HashMap<(NodeId, u64), NodeId>,
    /// The last field of each object that has such fields.
    last: HashMap<NodeId, NodeId>,
}

impl Expander {
    /// Expands the keys of `fields`. If two keys give the same field, and not both of them an
    /// object, or objects come to lie too deep inside each other, the fields are of no use and the
    /// error names one of the keys.
    pub(crate) fn expand(
        &mut self,
        event: &mut EventMut<'_>,
        fields: &mut FieldList,
    ) -> Result<(), String> {
        let (bytes, arena) = event.arena();
        if !has_dots(bytes, &arena, fields.first) {
            return Ok(());
        }
        self.known.clear();
        self.last.clear();
        let nothing = FieldList { keys: KeyFilter::ANY, timestamp: true, ..FieldList::EMPTY };
        let mut work = Work { expander: self, bytes, arena, fields: nothing };
        let mut next = fields.first;
        while !next.is_none() {
            let key = work.arena.key(next);
            work.add(NodeId::NONE, key, next, 1)
                .map_err(|()| String::from_utf8_lossy(text(bytes, key)).into_owned())?;
            next = work.arena.next(next);
        }
        *fields = work.fields;
        Ok(())
    }
}

fn text(bytes: &[u8], text: Text) -> &[u8] {
    &bytes[text.start as usize..(text.start + text.len) as usize]
}

fn has_dots(bytes: &[u8], arena: &Arena<'_>, first: NodeId) -> bool {
    let mut next = first;
    while !next.is_none() {
        if memchr::memchr(b'.', text(bytes, arena.key(next))).is_some() {
            return true;
        }
        if let Cell::Map { first, .. } = arena.cell(next)
            && has_dots(bytes, arena, first)
        {
            return true;
        }
        next = arena.next(next);
    }
    false
}

/// Objects that are being put together out of the fields of others.
struct Work<'w> {
    expander: &'w mut Expander,
    bytes: &'w [u8],
    arena: Arena<'w>,
    /// The root.
    fields: FieldList,
}

impl Work<'_> {
    /// Puts a copy of the field `from` into an object under `key`, which may have dots.
    fn add(&mut self, object: NodeId, key: Text, from: NodeId, depth: usize) -> Result<(), ()> {
        if depth > DEPTH_MAX {
            return Err(());
        }
        if let Some(dot) = memchr::memchr(b'.', text(self.bytes, key)) {
            let head = Text { start: key.start, len: dot as u32 };
            let rest = Text { start: key.start + dot as u32 + 1, len: key.len - dot as u32 - 1 };
            let inner = self.object(object, head)?;
            return self.add(inner, rest, from, depth + 1);
        }
        let Cell::Map { first, .. } = self.arena.cell(from) else {
            let Place::Free { last, count } = self.place(object, key) else { return Err(()) };
            let raw = if key == self.arena.key(from) { self.arena.raw(from) } else { 0 };
            self.append(object, (last, count), key, self.arena.cell(from), raw);
            return Ok(());
        };
        let inner = self.object(object, key)?;
        let mut next = first;
        while !next.is_none() {
            self.add(inner, self.arena.key(next), next, depth + 1)?;
            next = self.arena.next(next);
        }
        Ok(())
    }

    /// The object of this name in another one, made if it is missing.
    fn object(&mut self, object: NodeId, key: Text) -> Result<NodeId, ()> {
        match self.place(object, key) {
            Place::Free { last, count } => {
                let cell = Cell::Map { first: NodeId::NONE, opaque: false };
                Ok(self.append(object, (last, count), key, cell, 0))
            }
            Place::Taken(id) if matches!(self.arena.cell(id), Cell::Map { .. }) => Ok(id),
            Place::Taken(_) => Err(()),
        }
    }

    fn hash(&self, key: &[u8]) -> u64 {
        self.expander.hasher.hash_one(key)
    }

    /// Where a key stands in an object, or would.
    fn place(&self, object: NodeId, key: Text) -> Place {
        let key = text(self.bytes, key);
        let mut next = match self.arena_object(object) {
            Some(first) => first,
            None => self.fields.first,
        };
        let (mut last, mut count) = (NodeId::NONE, 0);
        while !next.is_none() {
            if count == COMPARED_MAX {
                let known = self.expander.known.get(&(object, self.hash(key)));
                if let Some(&id) = known
                    && text(self.bytes, self.arena.key(id)) == key
                {
                    return Place::Taken(id);
                }
                last = self.expander.last.get(&object).copied().unwrap_or(last);
                return Place::Free { last, count };
            }
            if text(self.bytes, self.arena.key(next)) == key {
                return Place::Taken(next);
            }
            (last, next) = (next, self.arena.next(next));
            count += 1;
        }
        Place::Free { last, count }
    }

    /// The first field of an object that is not the root.
    fn arena_object(&self, object: NodeId) -> Option<NodeId> {
        if object.is_none() {
            return None;
        }
        match self.arena.cell(object) {
            Cell::Map { first, .. } => Some(first),
            _ => Some(NodeId::NONE),
        }
    }

    /// Adds a field behind the last one of an object, of which there are `count` or more.
    fn append(
        &mut self,
        object: NodeId,
        (last, count): (NodeId, usize),
        key: Text,
        cell: Cell,
        raw: u32,
    ) -> NodeId {
        let id = self.arena.push(last, key, cell, raw);
        if object.is_none() {
            self.fields.last = id;
            if last.is_none() {
                self.fields.first = id;
            }
        } else if last.is_none() {
            self.arena.set(object, Cell::Map { first: id, opaque: false }, 0);
        }
        if count == COMPARED_MAX {
            let hash = self.hash(text(self.bytes, key));
            self.expander.last.insert(object, id);
            self.expander.known.insert((object, hash), id);
        }
        id
    }
}

/// Where a key stands in an object.
enum Place {
    Taken(NodeId),
    /// Nowhere: behind `last`, which is the last of `count` fields or more.
    Free {
        last: NodeId,
        count: usize,
    },
}
