//! One value of the settings tree: what it is, how it was written, where.
//!
//! A scalar keeps its original text beside the resolved value, because only the reader knows which
//! of the two is meant: `0644` is 420 to a number and `0644` to a string, `1.10` is a version to
//! some and a number to others.

use crate::problem::{Position, Problem};
use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// What replaces a secret wherever a value is shown.
pub const MASK: &str = "xxxxx";

/// Longest piece of a value quoted in a message, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// The resolved value of a node. The string of [`Content::String`] is the node's text.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// `null`, `~` or nothing at all. Readers take it as "not set".
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number that fits 64 bits with a sign.
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text; see [`Node::text`].
    String,
    /// A list.
    List(Vec<Node>),
    /// A map.
    Map(Map),
}

/// How far the `${...}` of a text are resolved.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Variables {
    /// Not yet.
    Fresh,
    /// They are replaced (or there were none).
    Expanded,
    /// They could not be replaced. The text is still the original one; reading it is the error.
    Unresolved(Box<Unresolved>),
}

/// Why a variable could not be replaced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unresolved {
    /// Continues a sentence that begins with the setting's name.
    pub(crate) reason: String,
    pub(crate) hint: String,
}

/// A value with its place and its original text.
#[derive(Clone, PartialEq)]
pub struct Node {
    pub(crate) position: Position,
    pub(crate) content: Content,
    /// Always there for scalars; for lists and maps only if they were written as one text (in an
    /// environment variable or after `-E`).
    pub(crate) text: Option<String>,
    /// Came from the keystore: never shown.
    pub(crate) secret: bool,
    pub(crate) variables: Variables,
}

impl Node {
    pub(crate) fn scalar(position: Position, content: Content, text: impl Into<String>) -> Self {
        let text = Some(text.into());
        Self { position, content, text, secret: false, variables: Variables::Fresh }
    }

    pub(crate) fn collection(position: Position, content: Content) -> Self {
        Self { position, content, text: None, secret: false, variables: Variables::Fresh }
    }

    /// Where the value begins.
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// The resolved value.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The text as written, without quotes. `None` for a list or map written as YAML.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Whether this is nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(self.content, Content::Null) && !self.is_unresolved()
    }

    /// Whether the value came from the keystore.
    pub fn is_secret(&self) -> bool {
        self.secret
    }

    /// Whether the value holds a variable that could not be replaced.
    pub fn is_unresolved(&self) -> bool {
        matches!(self.variables, Variables::Unresolved(_))
    }

    /// The map, if it is one.
    pub fn as_map(&self) -> Option<&Map> {
        match &self.content {
            Content::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The list, if it is one.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.content {
            Content::List(list) => Some(list),
            _ => None,
        }
    }

    /// The value for a message: shortened text, `a list`, `a map`, or the mask.
    pub fn shown(&self) -> String {
        if self.secret {
            return format!("`{MASK}`");
        }
        match (&self.text, &self.content) {
            (Some(text), _) => format!("`{}`", shorten(&crate::mask::mask_login(text))),
            (None, Content::List(_)) => "a list".to_owned(),
            (None, Content::Map(_)) => "a map".to_owned(),
            (None, _) => "empty".to_owned(),
        }
    }

    /// The same for the value at a path, which may mark it as a secret, or an address.
    pub(crate) fn shown_at(&self, path: &str) -> String {
        match &self.text {
            Some(_) if crate::mask::is_secret(path) => format!("`{MASK}`"),
            Some(text) if !self.secret && crate::mask::is_address(path) => {
                format!("`{}`", shorten(&crate::mask::mask_address(text)))
            }
            _ => self.shown(),
        }
    }

    /// The value without places. Maps stay nested; an unresolved variable stays as it is written.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Int(value) => Value::Int(*value),
            Content::UInt(value) => Value::UInt(*value),
            Content::Float(value) => Value::Float(*value),
            Content::String => Value::String(self.text.clone().unwrap_or_default()),
            Content::List(list) => Value::List(list.iter().map(Node::to_value).collect()),
            Content::Map(map) => Value::Map(
                map.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect(),
            ),
        }
    }

    /// The problem of an unresolved variable in the setting `path`.
    pub(crate) fn unresolved_problem(&self, path: &str) -> Option<Problem> {
        let Variables::Unresolved(unresolved) = &self.variables else { return None };
        let message = format!("`{path}` {}", unresolved.reason);
        Some(Problem::error(self.position.clone(), message).hint(unresolved.hint.clone()))
    }

    /// Weight (nodes, and 64 bytes of text each) and depth of the tree below and with this node.
    pub(crate) fn measure(&self) -> Measure {
        let own = 1 + self.text.as_ref().map_or(0, |text| text.len() / 64);
        let mut measure = Measure { weight: own, depth: 1 };
        let mut add = |child: &Node| {
            let inner = child.measure();
            measure.weight += inner.weight;
            measure.depth = measure.depth.max(1 + inner.depth);
        };
        match &self.content {
            Content::List(list) => list.iter().for_each(&mut add),
            Content::Map(map) => map.iter().for_each(|entry| add(&entry.value)),
            _ => {}
        }
        measure
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::List(list) => formatter.debug_list().entries(list).finish(),
            Content::Map(map) => fmt::Debug::fmt(map, formatter),
            content => write!(formatter, "{} ({content:?}, {})", self.shown(), self.position),
        }
    }
}

/// See [`Node::measure`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) weight: usize,
    pub(crate) depth: usize,
}

/// Cuts `text` to what a message bears, on one line.
fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short.replace('\n', "\\n")
}

/// One key of a map.
#[derive(Clone, PartialEq)]
pub struct Entry {
    /// The key, one segment (dots are levels).
    pub key: String,
    /// Where the key is written.
    pub key_position: Position,
    /// Its value.
    pub value: Node,
    /// The key is a number inside a dotted key, so it may mean a list index.
    pub(crate) indexed: bool,
}

/// Maps with more keys have an index of them: there may be thousands, in `fields` or in settings of modules.
const SEARCHED_MAX: usize = 16;

/// A map in the order of writing.
#[derive(Clone, Default)]
pub struct Map {
    entries: Vec<Entry>,
    /// The places of all keys, if there are many.
    #[expect(clippy::box_collection, reason = "a sixth of the size of a map, and rare")]
    index: Option<Box<HashMap<String, usize>>>,
}

impl Map {
    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The keys in the order of writing.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entry of one key, which is a single level.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.place(key).map(|place| &self.entries[place])
    }

    fn place(&self, key: &str) -> Option<usize> {
        match &self.index {
            Some(index) => index.get(key).copied(),
            None => self.entries.iter().position(|entry| entry.key == key),
        }
    }

    /// All entries, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.place(key).map(|place| &mut self.entries[place])
    }

    /// Adds or replaces.
    pub(crate) fn insert(&mut self, entry: Entry) {
        if let Some(place) = self.place(&entry.key) {
            self.entries[place] = entry;
            return;
        }
        if let Some(index) = &mut self.index {
            index.insert(entry.key.clone(), self.entries.len());
        }
        self.entries.push(entry);
        if self.index.is_none() && self.entries.len() > SEARCHED_MAX {
            let keys = self.entries.iter().enumerate();
            let index = keys.map(|(place, entry)| (entry.key.clone(), place)).collect();
            self.index = Some(Box::new(index));
        }
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }
}

impl PartialEq for Map {
    /// The order of keys does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self.iter().all(|entry| other.get(&entry.key).is_some_and(|it| it == entry))
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter().map(|entry| (&entry.key, &entry.value))).finish()
    }
}

/// A value without places, for settings that take anything (`fields`, constants of conditions).
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A whole number that fits `i64`.
    Int(i64),
    /// A whole number above `i64::MAX`.
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    List(Vec<Value>),
    /// A map, sorted by key.
    Map(BTreeMap<String, Value>),
}

impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::UInt(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(value) => value.as_str().into(),
            Value::List(list) => Self::Array(list.iter().map(Self::from).collect()),
            Value::Map(map) => {
                Self::Object(map.iter().map(|(key, value)| (key.clone(), value.into())).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    #[test]
    fn keys_are_found_and_replaced_in_maps_with_few_and_with_many() {
        for count in [1, SEARCHED_MAX, SEARCHED_MAX + 1, 3 * SEARCHED_MAX] {
            let lines: Vec<String> = (0..count).map(|key| format!("k{key}: {key}\n")).collect();
            let settings = Settings::parse("a.yml", &lines.concat()).unwrap();
            let mut map = settings.node().as_map().unwrap().clone();
            assert_eq!(map.index.is_some(), count > SEARCHED_MAX);
            let number = |map: &Map, key: usize| {
                map.get(&format!("k{key}")).unwrap().value.text().map(str::to_owned)
            };
            assert!((0..count).all(|key| number(&map, key) == Some(key.to_string())));
            let mut last = map.get(&format!("k{}", count - 1)).unwrap().clone();
            last.value = map.get("k0").unwrap().value.clone();
            map.insert(last);
            assert_eq!((map.len(), number(&map, count - 1)), (count, Some("0".to_owned())));
            assert!(map.get("k").is_none());
        }
    }
}
