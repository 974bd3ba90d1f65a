//! The fields of a tokenizer as one object, put into the event at once.

use crate::plan::Failure;
use skidder_event::{Arena, Cell, EventMut, FieldList, KeyBit, KeyFilter, NodeId, Path, Text};

/// Fields that are known from the start.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// The object that takes them; nothing = the root of the event.
    target: Option<Path>,
    /// All names in a row.
    names: Vec<u8>,
    nodes: Vec<Node>,
    /// The first names, if there is no target.
    tops: Vec<Path>,
    keys: KeyFilter,
}

/// A field or an object of fields.
#[derive(Clone, Debug)]
struct Node {
    /// The place of its name in `names`.
    name: Text,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// A field: which of the tokenizer's.
    Field(usize),
    Inside(Vec<Node>),
}

impl Tree {
    /// The tree of `paths`, which do not overlap, below `target`. `None` if they do not go into
    /// the fields of the event, or something of the row's own may be among them.
    pub(super) fn new(target: &str, paths: &[Option<Path>]) -> Option<Self> {
        let target = if target.is_empty() { None } else { Some(Path::parse(target).ok()?) };
        if target.as_ref().is_some_and(Path::is_metadata) {
            return None;
        }
        let skip = target.as_ref().map_or(0, |target| target.segments().len());
        let mut tree = Self {
            target,
            names: Vec::new(),
            nodes: Vec::new(),
            tops: Vec::new(),
            keys: KeyFilter::NONE,
        };
        for (field, path) in paths.iter().enumerate() {
            let Some(path) = path else { continue };
            let top = &path.segments()[0];
            if path.is_metadata() || matches!(&**top, "message" | "log" | "@timestamp") {
                return None;
            }
            if tree.target.is_none() && !tree.tops.iter().any(|other| other.as_str() == &**top) {
                tree.tops.push(Path::parse(top).ok()?);
                tree.keys.add(KeyBit::of(top.as_bytes()));
            }
            insert(&mut tree.nodes, &mut tree.names, &path.segments()[skip..], field);
        }
        (!tree.nodes.is_empty()).then_some(tree)
    }

    /// Whether the event has nothing where the fields go.
    pub(super) fn is_free(&self, event: &EventMut<'_>) -> bool {
        match &self.target {
            Some(target) => !event.as_ref().has(target),
            None if event.is_beside(&self.fields(NodeId::NONE, NodeId::NONE)) => true,
            None => !self.tops.iter().any(|top| event.as_ref().has(top)),
        }
    }

    fn fields(&self, first: NodeId, last: NodeId) -> FieldList {
        FieldList { first, last, keys: self.keys, timestamp: false }
    }

    /// Puts the fields where nothing is.
    pub(super) fn put(&self, event: &mut EventMut<'_>, cells: &[Cell]) -> Result<(), Failure> {
        let names = event.store_text(&self.names).start;
        let (first, last) = add(&mut event.arena().1, &self.nodes, names, cells);
        let Some(target) = &self.target else {
            event.merge_list_over(self.fields(first, last), true);
            return Ok(());
        };
        // A field of the event itself there may hide one of the base.
        let opaque = event.as_ref().has_own(&target.segments()[0], false);
        event.put_cell(target, Cell::Map { first, opaque }).map_err(|_| super::taken(target))
    }
}

fn insert(nodes: &mut Vec<Node>, names: &mut Vec<u8>, segments: &[Box<str>], field: usize) {
    let Some((head, rest)) = segments.split_first() else { return };
    let same = |node: &&mut Node| {
        let Text { start, len } = node.name;
        &names[start as usize..(start + len) as usize] == head.as_bytes()
    };
    if let Some(Node { place: Place::Inside(inside), .. }) = nodes.iter_mut().find(same) {
        insert(inside, names, rest, field);
        return;
    }
    let name = Text { start: names.len() as u32, len: head.len() as u32 };
    names.extend_from_slice(head.as_bytes());
    let place = if rest.is_empty() {
        Place::Field(field)
    } else {
        let mut inside = Vec::new();
        insert(&mut inside, names, rest, field);
        Place::Inside(inside)
    };
    nodes.push(Node { name, place });
}

/// Adds the nodes; gives the first and the last.
fn add(arena: &mut Arena<'_>, nodes: &[Node], names: u32, cells: &[Cell]) -> (NodeId, NodeId) {
    let (mut first, mut last) = (NodeId::NONE, NodeId::NONE);
    for node in nodes {
        let cell = match &node.place {
            Place::Field(field) => cells[*field],
            // A later step may put fields into the layer beside these.
            Place::Inside(inside) => {
                Cell::Map { first: add(arena, inside, names, cells).0, opaque: false }
            }
        };
        let name = Text { start: names + node.name.start, len: node.name.len };
        last = arena.push(last, name, cell, 0);
        if first.is_none() {
            first = last;
        }
    }
    (first, last)
}
