//! Settings that were made at run time, as they are kept while what they start runs.
//!
//! A tree of values has a block of memory for each level, key and text: 3 KB for the input of a container. It is read
//! once at the start, and again only to be shown; there may be very many of them.

use crate::node::{Content, Entry, Map, Node, Unresolved, Variables};
use crate::problem::{Position, Source};
use crate::secret::Secret;
use crate::settings::{Paths, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bits of the first byte of a node, beside the number of its content.
const SECRET: u8 = 1 << 3;
const HAS_TEXT: u8 = 1 << 4;
const SAME_PLACE: u8 = 1 << 5;
const EXPANDED: u8 = 1 << 6;
const UNRESOLVED: u8 = 1 << 7;
const CONTENT: u8 = 7;

/// Of the first byte of an entry, beside [`SAME_PLACE`].
const INDEXED: u8 = 1;

/// Settings that hold a list of items, see [`Settings::made`], as bytes.
#[derive(Clone, Debug)]
pub struct MadeSettings {
    bytes: Box<[u8]>,
    /// Those that positions name by their number.
    sources: Box<[Arc<Source>]>,
    secrets: Arc<BTreeMap<String, Secret>>,
    paths: Arc<Paths>,
}

impl MadeSettings {
    pub(crate) fn new(settings: &Settings, root: &Node) -> Self {
        let mut writer = Writer::default();
        writer.node(root);
        Self {
            bytes: writer.bytes.into(),
            sources: writer.sources.into(),
            secrets: Arc::clone(&settings.secrets),
            paths: Arc::clone(&settings.paths),
        }
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        let mut reader = Reader { bytes: &self.bytes, sources: &self.sources, place: None };
        Settings {
            root: reader.node(),
            pending: Vec::new(),
            secrets: Arc::clone(&self.secrets),
            paths: Arc::clone(&self.paths),
            inputs: Vec::new(),
            modules: Vec::new(),
        }
    }
}

#[derive(Default)]
struct Writer {
    bytes: Vec<u8>,
    sources: Vec<Arc<Source>>,
    /// The last place: most nodes are at the same.
    place: Option<Position>,
}

impl Writer {
    /// Seven bits in each byte, the lowest first.
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// The flags, and where it stands.
    fn head(&mut self, mut flags: u8, place: &Position) {
        if self.place.as_ref() == Some(place) {
            flags |= SAME_PLACE;
            self.bytes.push(flags);
            return;
        }
        self.bytes.push(flags);
        let known = self.sources.iter().position(|source| **source == *place.source());
        let source = known.unwrap_or_else(|| {
            self.sources.push(place.shared_source());
            self.sources.len() - 1
        });
        self.number(source as u64);
        self.number(place.line().into());
        self.number(place.column().into());
        self.place = Some(place.clone());
    }

    fn node(&mut self, node: &Node) {
        let mut flags = match &node.content {
            Content::Null => 0,
            Content::Bool(_) => 1,
            Content::Int(_) => 2,
            Content::UInt(_) => 3,
            Content::Float(_) => 4,
            Content::String => 5,
            Content::List(_) => 6,
            Content::Map(_) => 7,
        };
        flags |= if node.secret { SECRET } else { 0 };
        flags |= if node.text.is_some() { HAS_TEXT } else { 0 };
        flags |= match &node.variables {
            Variables::Fresh => 0,
            Variables::Expanded => EXPANDED,
            Variables::Unresolved(_) => UNRESOLVED,
        };
        self.head(flags, &node.position);
        if let Some(text) = &node.text {
            self.text(text);
        }
        if let Variables::Unresolved(why) = &node.variables {
            self.text(&why.reason);
            self.text(&why.hint);
        }
        match &node.content {
            Content::Null | Content::String => {}
            Content::Bool(truth) => self.bytes.push((*truth).into()),
            Content::Int(number) => self.number(number.cast_unsigned()),
            Content::UInt(number) => self.number(*number),
            Content::Float(number) => self.number(number.to_bits()),
            Content::List(items) => {
                self.number(items.len() as u64);
                for item in items {
                    self.node(item);
                }
            }
            Content::Map(map) => {
                self.number(map.len() as u64);
                for entry in map.iter() {
                    self.head(if entry.indexed { INDEXED } else { 0 }, &entry.key_position);
                    self.text(&entry.key);
                    self.node(&entry.value);
                }
            }
        }
    }
}

/// Reads what a [`Writer`] has written, and nothing else.
struct Reader<'a> {
    bytes: &'a [u8],
    sources: &'a [Arc<Source>],
    place: Option<Position>,
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.bytes.split_first().expect("a writer has written them");
        self.bytes = rest;
        *first
    }

    fn number(&mut self) -> u64 {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return number;
            }
            shift += 7;
        }
    }

    fn text(&mut self) -> String {
        let length = self.number() as usize;
        let (text, rest) = self.bytes.split_at(length);
        self.bytes = rest;
        str::from_utf8(text).expect("it was a text").to_owned()
    }

    fn head(&mut self) -> (u8, Position) {
        let flags = self.byte();
        if flags & SAME_PLACE == 0 {
            let source = &self.sources[self.number() as usize];
            let (line, column) = (self.number() as u32, self.number() as u32);
            self.place = Some(Position::new(source, line, column));
        }
        (flags, self.place.clone().expect("the first one has a place of its own"))
    }

    fn node(&mut self) -> Node {
        let (flags, position) = self.head();
        let text = (flags & HAS_TEXT != 0).then(|| self.text());
        let variables = match flags & (EXPANDED | UNRESOLVED) {
            0 => Variables::Fresh,
            EXPANDED => Variables::Expanded,
            _ => {
                let (reason, hint) = (self.text(), self.text());
                Variables::Unresolved(Box::new(Unresolved { reason, hint }))
            }
        };
        let content = match flags & CONTENT {
            0 => Content::Null,
            1 => Content::Bool(self.byte() != 0),
            2 => Content::Int(self.number().cast_signed()),
            3 => Content::UInt(self.number()),
            4 => Content::Float(f64::from_bits(self.number())),
            5 => Content::String,
            6 => Content::List((0..self.number()).map(|_| self.node()).collect()),
            _ => {
                let mut map = Map::default();
                for _ in 0..self.number() {
                    let (flags, key_position) = self.head();
                    let (key, value) = (self.text(), self.node());
                    let indexed = flags & INDEXED != 0;
                    map.insert(Entry { key, key_position, value, indexed });
                }
                Content::Map(map)
            }
        };
        Node { position, content, text, secret: flags & SECRET != 0, variables }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_comes_out_as_it_went_in() {
        let text = "a: [1, -5, 18446744073709551615, 1.5, yes, ~, 'x', {}]\n\
                    b: {c.0: '${none}', d: '${env}', 'ü': \"\"}\nc:\n";
        let environment = |name: &str| (name == "env").then(|| "value".to_owned());
        let settings = Settings::parse_with("a.yml", text, &environment).unwrap();
        let mut root = settings.root.clone();
        let Content::Map(map) = &mut root.content else { panic!("it is a map") };
        let last = Position::new(&Source::new(7, "b.yml"), u32::MAX, 1);
        let mut secret = Node::scalar(last.clone(), Content::Float(-0.0), "-0.0");
        secret.secret = true;
        let entry = Entry { key: "s".to_owned(), key_position: last, value: secret, indexed: true };
        map.insert(entry);
        let many = (0..40).map(|at| Entry {
            key: at.to_string(),
            key_position: root.position.clone(),
            value: Node::scalar(root.position.clone(), Content::Int(at), at.to_string()),
            indexed: false,
        });
        let mut large = Map::default();
        many.for_each(|entry| large.insert(entry));
        let large = Node::collection(root.position.clone(), Content::Map(large));
        let Content::Map(map) = &mut root.content else { panic!("it is a map") };
        let position = root.position.clone();
        map.insert(Entry {
            key: "l".to_owned(),
            key_position: position,
            value: large,
            indexed: false,
        });
        let unpacked = MadeSettings::new(&settings, &root).settings();
        assert_eq!(unpacked.root, root);
        let order = |node: &Node| -> Vec<String> {
            node.as_map().unwrap().iter().map(|entry| entry.key.clone()).collect()
        };
        assert_eq!(order(&unpacked.root), order(&root));
        assert_eq!(unpacked.root.at("l.33").and_then(Node::text), Some("33"));
        assert!(root.at("b.c.0").unwrap().is_unresolved());
    }
}
