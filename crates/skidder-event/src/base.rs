//! The layer of fields that all events of a source share: rendered to JSON once.

use crate::escape::write_string;
use crate::filter::{KeyBit, KeyFilter};
use crate::form::BaseSlots;
use crate::layout::Layout;
use crate::merge::write_leaf;
use crate::value::{Map, Value};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Immutable fields under every event of a source: `log.file.*`, `agent.*`, `host.*`, tags, …
///
/// Never holds `message`, `@timestamp` or `log.offset`: those belong to each event.
#[derive(Debug)]
pub struct Base {
    nodes: Vec<BaseNode>,
    metadata: Vec<BaseNode>,
    text: Vec<u8>,
    pieces: Pieces,
    /// The same for events without `log.offset`, which a base of files never has: made when the first is written.
    plain: OnceLock<Pieces>,
    filter: KeyFilter,
    /// There are keys with dots in them.
    dotted: bool,
    /// What it has where the fields of the form are that lists over it work with.
    slots: OnceLock<BaseSlots>,
    /// How the events look that have it under them in the end.
    layouts: Mutex<Vec<Arc<Layout>>>,
}

/// One field of a base. Key and inner fields are shared by bases that differ elsewhere.
#[derive(Clone, Debug)]
pub struct BaseNode {
    /// Its key.
    pub key: Arc<str>,
    /// Its value.
    pub value: BaseValue,
    /// Where `"key":value` stands in the rendered text.
    rendered: Range<u32>,
}

/// A value of a base.
#[derive(Clone, Debug)]
pub enum BaseValue {
    /// Anything but an object.
    Leaf(Value),
    /// An object, its keys in byte order.
    Map(Arc<[BaseNode]>),
}

/// The document of an untouched event, cut at what differs from event to event.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    text: Vec<u8>,
    /// Where the offset belongs.
    offset: usize,
    /// Where the message belongs.
    message: usize,
}

impl Pieces {
    /// From behind the timestamp and the output's own metadata to `"offset":`.
    #[inline]
    pub(crate) fn before_offset(&self) -> &[u8] {
        &self.text[..self.offset]
    }

    /// From behind the offset to `"message":`.
    #[inline]
    pub(crate) fn before_message(&self) -> &[u8] {
        &self.text[self.offset..self.message]
    }

    /// From behind the message to the closing brace.
    #[inline]
    pub(crate) fn after_message(&self) -> &[u8] {
        &self.text[self.message..]
    }
}

/// Bytes of [`Pieces`] besides what is rendered.
const PIECES_BYTES: usize = 64;

impl Base {
    /// Renders the layer. `message`, `@timestamp` and `log.offset` in `fields` are left out.
    pub fn new(fields: &Map, metadata: &Map) -> Self {
        let mut fields = fields.clone();
        for own in ["message", "@timestamp", "log.offset"] {
            fields.remove_path(own);
        }
        let mut text = Vec::with_capacity(1024);
        let nodes = render(&fields, &mut text, &[]);
        let metadata = render(metadata, &mut text, &[]);
        text.shrink_to_fit();
        Self::of(nodes, metadata, text)
    }

    fn of(nodes: Vec<BaseNode>, metadata: Vec<BaseNode>, text: Vec<u8>) -> Self {
        let mut filter = KeyFilter::NONE;
        for node in &nodes {
            filter.add(KeyBit::of(node.key.as_bytes()));
        }
        let (pieces, slots, layouts) = (Pieces::default(), OnceLock::new(), Mutex::default());
        let dotted = has_dots(&nodes) || has_dots(&metadata);
        let plain = OnceLock::new();
        let mut base =
            Self { nodes, metadata, text, pieces, plain, filter, dotted, slots, layouts };
        base.pieces = base.cut();
        base
    }

    #[inline]
    pub(crate) fn slots(&self) -> Option<&BaseSlots> {
        self.slots.get()
    }

    pub(crate) fn layouts(&self) -> MutexGuard<'_, Vec<Arc<Layout>>> {
        self.layouts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn know_slots(&self, look: impl FnOnce() -> BaseSlots) {
        self.slots.get_or_init(look);
    }

    /// The same layer with the object `inner` inside the object `outer`, in the place of one that is there. Costs less
    /// than [`Base::new`], for layers that differ in nothing else. `None` if there is no object `outer`.
    ///
    /// `outer` and `inner` are keys, not paths. `fields` must hold nothing that belongs to each event.
    pub fn with_inside(&self, outer: &str, inner: &str, fields: &Map) -> Option<Self> {
        let at = self.position(outer.as_bytes())?;
        let BaseValue::Map(around) = &self.nodes[at].value else { return None };
        let mut text = Vec::with_capacity(self.text.len() + INSIDE_BYTES);
        text.extend_from_slice(&self.text);
        // Behind what is there: of the other fields nothing moves.
        let start = text.len() as u32;
        write_string(&mut text, outer.as_bytes(), true);
        text.extend_from_slice(b":{");
        let mut children = Vec::with_capacity(around.len() + 1);
        let others = |node: &&BaseNode| *node.key != *inner;
        // The keys of an object of the same kind are used again.
        let before = around.iter().find(|node| *node.key == *inner);
        let keys = before.map_or(&[][..], BaseNode::children);
        let key = before.map_or_else(|| inner.into(), |node| Arc::clone(&node.key));
        for node in around.iter().filter(others).filter(|node| *node.key < *inner) {
            children.push(self.copied(node, &mut text));
        }
        children.push(render_one(key, &mut text, |text| {
            BaseValue::Map(render_object(fields, text, keys).into())
        }));
        text.push(b',');
        for node in around.iter().filter(others).filter(|node| *node.key > *inner) {
            children.push(self.copied(node, &mut text));
        }
        text.pop();
        text.push(b'}');
        let mut nodes = self.nodes.clone();
        nodes[at].value = BaseValue::Map(children.into());
        nodes[at].rendered = start..text.len() as u32;
        Some(Self::of(nodes, self.metadata.clone(), text))
    }

    /// A node of this layer, its text once more with a comma behind it.
    fn copied(&self, node: &BaseNode, text: &mut Vec<u8>) -> BaseNode {
        text.extend_from_slice(self.rendered(node));
        text.push(b',');
        node.clone()
    }

    /// Whether there are keys with dots in them, at any depth.
    #[inline]
    pub fn has_dots(&self) -> bool {
        self.dotted
    }

    /// A filter that shows which keys are not among the top-level fields.
    #[inline]
    pub(crate) fn filter(&self) -> &KeyFilter {
        &self.filter
    }

    /// Where a top-level field of this name stands in [`Base::nodes`].
    #[inline]
    pub(crate) fn position(&self, key: &[u8]) -> Option<usize> {
        if self.filter.may_have(KeyBit::of(key)) { position(&self.nodes, key) } else { None }
    }

    /// Whether there is a top-level field of this name.
    pub fn has(&self, key: &str) -> bool {
        self.position(key.as_bytes()).is_some()
    }

    /// The fields, keys in byte order.
    pub fn nodes(&self) -> &[BaseNode] {
        &self.nodes
    }

    /// What is said about every event (`@metadata`), keys in byte order.
    pub fn metadata(&self) -> &[BaseNode] {
        &self.metadata
    }

    pub(crate) fn pieces(&self) -> &Pieces {
        &self.pieces
    }

    /// The document of an untouched event without `log.offset`: there is nothing before the offset.
    #[inline]
    pub(crate) fn plain_pieces(&self) -> &Pieces {
        self.plain.get_or_init(|| self.cut_plain())
    }

    #[cold]
    fn cut_plain(&self) -> Pieces {
        let mut out = Vec::with_capacity(self.text.len() + PIECES_BYTES);
        let first = self.nodes.partition_point(|node| *node.key < *"message");
        for node in &self.nodes[..first] {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.extend_from_slice(b",\"message\":");
        let message = out.len();
        for node in &self.nodes[first..] {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.push(b'}');
        Pieces { text: out, offset: 0, message }
    }

    /// `"key":value` of a node of this base.
    pub(crate) fn rendered(&self, node: &BaseNode) -> &[u8] {
        &self.text[node.rendered.start as usize..node.rendered.end as usize]
    }

    /// Where `"key":value` of a node of this base stands in the rendered text; nodes of one object stand next to each
    /// other, with a comma between.
    pub(crate) fn place(&self, node: &BaseNode) -> Range<u32> {
        node.rendered.clone()
    }

    /// A part of the rendered text.
    pub(crate) fn text(&self, place: Range<u32>) -> &[u8] {
        &self.text[place.start as usize..place.end as usize]
    }

    fn cut(&self) -> Pieces {
        let mut out = Vec::with_capacity(self.text.len() + PIECES_BYTES);
        let before = |node: &&BaseNode, key: &str| *node.key < *key;
        for node in self.nodes.iter().filter(|node| before(node, "log")) {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.extend_from_slice(b",\"log\":{");
        let log = find(&self.nodes, "log").map_or(&[][..], BaseNode::children);
        for node in log.iter().filter(|node| before(node, "offset")) {
            out.extend_from_slice(self.rendered(node));
            out.push(b',');
        }
        out.extend_from_slice(b"\"offset\":");
        let offset = out.len();

        for node in log.iter().filter(|node| !before(node, "offset")) {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.push(b'}');
        let between = |node: &&BaseNode| *node.key > *"log" && before(node, "message");
        for node in self.nodes.iter().filter(between) {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.extend_from_slice(b",\"message\":");
        let message = out.len();

        for node in self.nodes.iter().filter(|node| !before(node, "message")) {
            out.push(b',');
            out.extend_from_slice(self.rendered(node));
        }
        out.push(b'}');
        Pieces { text: out, offset, message }
    }
}

impl BaseNode {
    /// The fields inside, none unless it is an object.
    pub fn children(&self) -> &[BaseNode] {
        match &self.value {
            BaseValue::Map(children) => children,
            BaseValue::Leaf(_) => &[],
        }
    }

    /// The value with everything inside, as an owned copy.
    pub fn to_value(&self) -> Value {
        match &self.value {
            BaseValue::Leaf(value) => value.clone(),
            BaseValue::Map(children) => Value::Map(to_map(children)),
        }
    }
}

fn to_map(nodes: &[BaseNode]) -> Map {
    let mut map = Map::new();
    for node in nodes {
        map.insert(&node.key, node.to_value());
    }
    map
}

/// Up to here a list is looked through from its beginning: most keys differ in length or first byte, which costs less than
/// to compare a few of them as a whole.
const LOOKED_THROUGH_MAX: usize = 16;

/// Where a key stands in a list in byte order.
#[inline]
pub(crate) fn position(nodes: &[BaseNode], key: &[u8]) -> Option<usize> {
    if nodes.len() <= LOOKED_THROUGH_MAX {
        return nodes.iter().position(|node| is_same(node.key.as_bytes(), key));
    }
    nodes.binary_search_by(|node| node.key.as_bytes().cmp(key)).ok()
}

/// Whether two keys are the same, without a look at the whole of those that differ at their beginning.
#[inline]
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.first() == other.first() && one == other
}

/// The node with this key in a list in byte order.
#[inline]
pub(crate) fn find<'a>(nodes: &'a [BaseNode], key: &str) -> Option<&'a BaseNode> {
    position(nodes, key.as_bytes()).map(|at| &nodes[at])
}

fn has_dots(nodes: &[BaseNode]) -> bool {
    nodes.iter().any(|node| node.key.contains('.') || has_dots(node.children()))
}

/// Room for what [`Base::with_inside`] renders, before the text has to grow.
const INSIDE_BYTES: usize = 512;

/// `keys` may have some of the keys already.
fn render(fields: &Map, text: &mut Vec<u8>, keys: &[BaseNode]) -> Vec<BaseNode> {
    let mut nodes = Vec::with_capacity(fields.len());
    for (key, value) in fields.iter() {
        if !nodes.is_empty() {
            text.push(b',');
        }
        let key = find(keys, key).map_or_else(|| key.into(), |node| Arc::clone(&node.key));
        nodes.push(render_one(key, text, |text| match value {
            Value::Map(inner) => BaseValue::Map(render_object(inner, text, &[]).into()),
            leaf => {
                write_leaf(text, leaf);
                BaseValue::Leaf(leaf.clone())
            }
        }));
    }
    nodes
}

fn render_object(fields: &Map, text: &mut Vec<u8>, keys: &[BaseNode]) -> Vec<BaseNode> {
    text.push(b'{');
    let children = render(fields, text, keys);
    text.push(b'}');
    children
}

/// A field whose value is written by `value`.
fn render_one(
    key: Arc<str>,
    text: &mut Vec<u8>,
    value: impl FnOnce(&mut Vec<u8>) -> BaseValue,
) -> BaseNode {
    let start = text.len() as u32;
    write_string(text, key.as_bytes(), true);
    text.push(b':');
    let value = value(text);
    BaseNode { key, value, rendered: start..text.len() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&str, &str)]) -> Map {
        let mut map = Map::new();
        for (path, text) in fields {
            map.insert_path(path, *text);
        }
        map
    }

    /// Everything that can be seen of a layer.
    fn seen(base: &Base) -> String {
        fn nodes(base: &Base, all: &[BaseNode]) -> String {
            let shown = |node: &BaseNode| {
                let rendered = String::from_utf8_lossy(base.rendered(node)).into_owned();
                let value = match &node.value {
                    BaseValue::Leaf(value) => format!("{value:?}"),
                    BaseValue::Map(children) => nodes(base, children),
                };
                format!("{} {rendered} [{value}]", node.key)
            };
            all.iter().map(shown).collect::<Vec<_>>().join(";")
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pieces = &base.pieces;
        format!(
            "{}\n{}\n{:?}\n{}\n{}\n{}",
            nodes(base, &base.nodes),
            nodes(base, &base.metadata),
            base.filter,
            text(pieces.before_offset()),
            text(pieces.before_message()),
            text(pieces.after_message())
        )
    }

    #[test]
    fn an_object_put_inside_is_as_if_it_had_been_there_from_the_start() {
        let metadata = map(&[("pipeline", "p")]);
        let file = map(&[("path", "/var/log/\"a\".log"), ("inode", "7")]);
        let cases: [&[(&str, &str)]; 5] = [
            &[("log.file.path", "/another"), ("log.file.offset", "x")],
            &[("agent.name", "host"), ("log.a", "1"), ("log.z", "2"), ("zone", "z")],
            &[("log.offset_unit", "bytes"), ("input.type", "filestream"), ("n.m.o", "p")],
            &[("log.file", "a text"), ("nothing", "else")],
            &[("log.level", "info"), ("log.file.path", "/another"), ("tags", "t")],
        ];
        for fields in cases {
            let fields = map(fields);
            let base = Base::new(&fields, &metadata);
            let mut all = fields.clone();
            all.remove_path("log.file");
            all.insert_path("log.file", file.clone());
            let grafted = base.with_inside("log", "file", &file).expect("there is such an object");
            assert_eq!(seen(&grafted), seen(&Base::new(&all, &metadata)));
            let again = grafted.with_inside("log", "file", &file).expect("there is such an object");
            assert_eq!(seen(&again), seen(&grafted));
        }
    }

    #[test]
    fn nothing_is_put_inside_of_what_is_no_object() {
        for fields in [map(&[("log", "a text")]), map(&[("agent.name", "host")])] {
            let base = Base::new(&fields, &Map::new());
            assert!(base.with_inside("log", "file", &Map::new()).is_none());
        }
    }
}
