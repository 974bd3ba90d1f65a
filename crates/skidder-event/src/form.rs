//! The fields that a list of processors works on, each with a number: while the list runs on an event, they are kept
//! in *slots*, where a field is found by its number, and only then become nodes.

use crate::base::{Base, BaseNode, BaseValue, find, position};
use crate::batch::{Node, Text};
use crate::escape::{is_plain, write_string};
use crate::path::Path;

/// Most slots of a form: sets of them are 64 bits.
const SLOTS_MAX: usize = 64;

/// No slot.
const NONE: u8 = u8::MAX;

/// The fields that a list of processors works on. None of them is inside another.
#[derive(Debug)]
pub struct Form {
    /// The field of each slot.
    paths: Box<[Path]>,
    /// The slot of the path of each number ([`Path::number`]).
    slots: Box<[u8]>,
    /// The fields and the objects around them, as they are written: an object stands before what is in it.
    entries: Box<[Entry]>,
    /// `"key":` of all entries.
    names: Vec<u8>,
}

/// A field, or an object around some.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The key; `start` counts from the first of the names.
    pub(crate) key: Text,
    /// [`Node::KEY`] if the key stands among the names as it is written.
    pub(crate) raw: u32,
    /// The slots of all fields in it.
    pub(crate) slots: u64,
    /// Nothing = an object.
    pub(crate) slot: Option<u8>,
    /// How many entries behind it are in it.
    pub(crate) inside: usize,
}

/// What a base has where the fields of a form are.
#[derive(Debug)]
pub(crate) struct BaseSlots {
    /// It has a value at the field.
    pub(crate) present: u64,
    /// It has something that is no object around the field.
    pub(crate) blocked: u64,
    /// Where each of them stands in the base: in the lists of the objects around it. Nothing if it is deeper inside.
    places: Box<[Option<[u8; PLACES]>]>,
}

/// Fields this deep inside are found in a base without a look at their names.
const PLACES: usize = 4;

/// The end of a place.
const END: u8 = u8::MAX;

impl BaseSlots {
    /// What the base has at a field.
    #[inline]
    pub(crate) fn node<'a>(&self, slot: usize, base: &'a Base) -> Option<&'a BaseNode> {
        let mut below = base.nodes();
        let mut found = None;
        for at in self.places[slot]? {
            if at == END {
                break;
            }
            let node = &below[usize::from(at)];
            below = node.children();
            found = Some(node);
        }
        found
    }
}

/// Paths for a [`Form`], as long as none is inside another.
#[derive(Debug, Default)]
pub struct FormBuilder {
    paths: Vec<Path>,
}

impl FormBuilder {
    /// Adds paths. `false`, and none is added, if an event cannot have all of them in slots. What is said about the event
    /// (`@metadata`) and `message`, `@timestamp` and `log.offset` are no fields of a form, and left out.
    pub fn add(&mut self, paths: &[Path]) -> bool {
        let before = self.paths.len();
        for path in paths {
            let of_row = path.is_message() || path.is_timestamp() || path.is_log_offset();
            if path.is_metadata() || of_row || self.paths.contains(path) {
                continue;
            }
            let around = ["message", "@timestamp"].contains(&&*path.segments()[0]);
            let is_free = !around
                && !path.is_log()
                && path.segments().get(..2) != Some(&["log".into(), "offset".into()])
                && !self.paths.iter().any(|other| other.overlaps(path));
            if !is_free || self.paths.len() == SLOTS_MAX {
                self.paths.truncate(before);
                return false;
            }
            self.paths.push(path.clone());
        }
        true
    }

    /// The form; `None` if it has no field.
    pub fn build(self) -> Option<Form> {
        (!self.paths.is_empty()).then(|| Form::new(self.paths))
    }

    /// The fields so far.
    pub fn paths(&self) -> &[Path] {
        &self.paths
    }
}

impl Form {
    fn new(paths: Vec<Path>) -> Self {
        let mut slots = Vec::new();
        for (slot, path) in paths.iter().enumerate() {
            let number = path.give_number() as usize;
            if slots.len() <= number {
                slots.resize(number + 1, NONE);
            }
            slots[number] = slot as u8;
        }
        let (mut entries, mut names) = (Vec::new(), Vec::new());
        let all: Vec<_> = paths.iter().map(|path| path.segments()).zip(0_u8..).collect();
        add_entries(&all, &mut entries, &mut names);
        Self { paths: paths.into(), slots: slots.into(), entries: entries.into(), names }
    }

    /// The field of each slot.
    pub(crate) fn paths(&self) -> &[Path] {
        &self.paths
    }

    /// The fields and the objects around them.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// `"key":` of all of them.
    pub(crate) fn names(&self) -> &[u8] {
        &self.names
    }

    /// Whether these are its fields, in their order.
    pub fn is_of(&self, paths: &[Path]) -> bool {
        *self.paths == *paths
    }

    /// The slot of a path.
    #[inline]
    pub(crate) fn slot(&self, path: &Path) -> Option<usize> {
        let slot = *self.slots.get(path.number() as usize)?;
        (slot != NONE).then_some(usize::from(slot))
    }

    /// The slots of all fields below a top-level field.
    pub fn slots_below(&self, key: &str) -> u64 {
        let below = |(slot, path): (usize, &Path)| u64::from(*path.segments()[0] == *key) << slot;
        self.paths.iter().enumerate().map(below).fold(0, |all, slot| all | slot)
    }

    /// What a base has where the fields are.
    pub(crate) fn look_at(&self, base: &Base) -> BaseSlots {
        let places = self.paths.iter().map(|path| place_of(base, path)).collect();
        let mut found = BaseSlots { present: 0, blocked: 0, places };
        for (slot, path) in self.paths.iter().enumerate() {
            let mut below = base.nodes();
            let (last, parents) = path.segments().split_last().expect("a path has a segment");
            for segment in parents {
                below = match find(below, segment).map(|node| &node.value) {
                    Some(BaseValue::Map(children)) => children,
                    Some(BaseValue::Leaf(_)) => {
                        found.blocked |= 1 << slot;
                        &[]
                    }
                    None => &[],
                };
            }
            found.present |= u64::from(find(below, last).is_some()) << slot;
        }
        found
    }
}

/// Where the node of a path stands in a base, if it is there and the place can be stored.
fn place_of(base: &Base, path: &Path) -> Option<[u8; PLACES]> {
    let mut below = base.nodes();
    let mut places = [END; PLACES];
    for (depth, segment) in path.segments().iter().enumerate() {
        let at = position(below, segment.as_bytes())?;
        *places.get_mut(depth)? = u8::try_from(at).ok().filter(|at| *at != END)?;
        below = below[at].children();
    }
    Some(places)
}

/// The node of a base at a path.
pub(crate) fn base_node<'a>(base: &'a Base, path: &Path) -> Option<&'a BaseNode> {
    let (last, parents) = path.segments().split_last()?;
    let mut below = base.nodes();
    for segment in parents {
        below = find(below, segment)?.children();
    }
    find(below, last)
}

/// Adds the entries of the fields of one object.
fn add_entries(fields: &[(&[Box<str>], u8)], entries: &mut Vec<Entry>, names: &mut Vec<u8>) {
    let mut done: Vec<&str> = Vec::new();
    for (segments, slot) in fields {
        let Some((key, rest)) = segments.split_first() else { continue };
        if done.contains(&&**key) {
            continue;
        }
        done.push(key);
        let plain = is_plain(key.as_bytes());
        let start = names.len() as u32 + 1;
        write_string(names, key.as_bytes(), true);
        names.push(b':');
        let mut name = Text { start, len: key.len() as u32 };
        if !plain {
            // As it is, behind the one that is escaped.
            name.start = names.len() as u32;
            names.extend_from_slice(key.as_bytes());
        }
        let same: Vec<_> = fields.iter().filter(|(other, _)| other.first() == Some(key)).collect();
        let slots = same.iter().fold(0, |all, (_, slot)| all | 1_u64 << slot);
        let at = entries.len();
        let slot = rest.is_empty().then_some(*slot);
        let raw = if plain { Node::KEY } else { 0 };
        entries.push(Entry { key: name, raw, slots, slot, inside: 0 });
        if slot.is_none() {
            let inside: Vec<_> = same.iter().map(|(path, slot)| (&path[1..], *slot)).collect();
            add_entries(&inside, entries, names);
        }
        entries[at].inside = entries.len() - at - 1;
    }
}
