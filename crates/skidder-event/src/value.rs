//! Owned values: what configurations and processors bring in. Events in a batch use [`crate::Cell`].

use std::borrow::Cow;

/// An owned field value. Maps keep their keys sorted and unique.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A floating-point number; not finite ones are written as `null`.
    Float(f64),
    /// Text.
    Str(Box<str>),
    /// Nanoseconds since 1970-01-01 UTC; written like `@timestamp`.
    Time(i64),
    /// A list.
    List(Vec<Value>),
    /// An object.
    Map(Map),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Self {
        Self::Bool(truth)
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Self {
        Self::Map(map)
    }
}

/// An object with unique keys in byte order, as Filebeat writes its documents.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map {
    /// Keys that the program itself gives take no memory.
    entries: Vec<(Cow<'static, str>, Value)>,
}

impl Map {
    /// An empty object.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value at one key (not a dotted path).
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.position(key).ok().map(|at| &self.entries[at].1)
    }

    /// The value at a dotted path; at each object all that is left of it is looked for as one key first.
    pub fn get_path(&self, path: &str) -> Option<&Value> {
        match self.split(path) {
            None => self.get(path),
            Some((head, rest)) => match self.get(head)? {
                Value::Map(inner) => inner.get_path(rest),
                _ => None,
            },
        }
    }

    /// The first part of a path and its rest. `None` if there is no rest, or the whole of it is a key.
    fn split<'p>(&self, path: &'p str) -> Option<(&'p str, &'p str)> {
        path.split_once('.').filter(|_| self.get(path).is_none())
    }

    /// Whether a part of the path before the last has a value that is no object.
    pub fn is_blocking(&self, path: &str) -> bool {
        match self.split(path) {
            None => false,
            Some((head, rest)) => match self.get(head) {
                Some(Value::Map(inner)) => inner.is_blocking(rest),
                Some(_) => true,
                None => false,
            },
        }
    }

    /// Sets one key, replacing what was there.
    pub fn insert(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.position(key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (Cow::Owned(key.into()), value)),
        }
    }

    /// The same for a key that is a constant of the program.
    pub fn insert_constant(&mut self, key: &'static str, value: impl Into<Value>) {
        let value = value.into();
        match self.position(key) {
            Ok(at) => self.entries[at].1 = value,
            Err(at) => self.entries.insert(at, (Cow::Borrowed(key), value)),
        }
    }

    /// Sets a dotted path; whatever is in the way and not an object is replaced by one.
    pub fn insert_path(&mut self, path: &str, value: impl Into<Value>) {
        match self.split(path) {
            None => self.insert(path, value),
            Some((head, rest)) => self.object(head).insert_path(rest, value),
        }
    }

    /// Removes a dotted path; returns whether something was there.
    pub fn remove_path(&mut self, path: &str) -> bool {
        match self.split(path) {
            None => match self.position(path) {
                Ok(at) => {
                    self.entries.remove(at);
                    true
                }
                Err(_) => false,
            },
            Some((head, rest)) => match self.position(head) {
                Ok(at) => match &mut self.entries[at].1 {
                    Value::Map(inner) => inner.remove_path(rest),
                    _ => false,
                },
                Err(_) => false,
            },
        }
    }

    /// Merges `other` over `self`: objects deeply, everything else replaced.
    pub fn merge(&mut self, other: &Self) {
        for (key, value) in &other.entries {
            match value {
                Value::Map(theirs) => self.object(key).merge(theirs),
                _ => self.insert(key, value.clone()),
            }
        }
    }

    /// Merges `other` under `self`: only what is missing is added.
    pub fn merge_missing(&mut self, other: &Self) {
        for (key, value) in &other.entries {
            match self.position(key) {
                Err(at) => self.entries.insert(at, (key.clone(), value.clone())),
                Ok(at) => {
                    if let (Value::Map(ours), Value::Map(theirs)) = (&mut self.entries[at].1, value)
                    {
                        ours.merge_missing(theirs);
                    }
                }
            }
        }
    }

    /// Keys and values in byte order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.entries.iter().map(|(key, value)| (&**key, value))
    }

    fn object(&mut self, key: &str) -> &mut Self {
        let at = match self.position(key) {
            Ok(at) => at,
            Err(at) => {
                self.entries.insert(at, (Cow::Owned(key.into()), Value::Map(Self::new())));
                at
            }
        };
        let slot = &mut self.entries[at].1;
        if !matches!(slot, Value::Map(_)) {
            *slot = Value::Map(Self::new());
        }
        match slot {
            Value::Map(inner) => inner,
            _ => unreachable!("the slot was made an object above"),
        }
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.entries.binary_search_by(|(have, _)| (**have).cmp(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_and_replaced() {
        let mut map = Map::new();
        map.insert("b", 1);
        map.insert("a", 2);
        map.insert("b", 3);
        assert_eq!(map.iter().collect::<Vec<_>>(), [("a", &Value::Int(2)), ("b", &Value::Int(3))]);
    }

    #[test]
    fn merge_is_deep_and_the_other_side_wins() {
        let mut map = Map::new();
        map.insert_path("a.b", 1);
        map.insert_path("a.c", 2);
        let mut over = Map::new();
        over.insert_path("a.c", 3);
        over.insert_path("d", 4);
        map.merge(&over);
        assert_eq!(map.get_path("a.b"), Some(&Value::Int(1)));
        assert_eq!(map.get_path("a.c"), Some(&Value::Int(3)));
        assert_eq!(map.get_path("d"), Some(&Value::Int(4)));
    }

    #[test]
    fn merge_missing_keeps_what_is_there() {
        let mut map = Map::new();
        map.insert_path("host.name", "mine");
        let mut under = Map::new();
        under.insert_path("host.name", "default");
        under.insert_path("host.id", "x");
        map.merge_missing(&under);
        assert_eq!(map.get_path("host.name"), Some(&"mine".into()));
        assert_eq!(map.get_path("host.id"), Some(&"x".into()));
    }

    #[test]
    fn a_path_that_is_a_key_as_a_whole_is_that_field() {
        let mut map = Map::new();
        map.insert_path("a.b.c", 1);
        let mut inner = Map::new();
        inner.insert("x.y", 2);
        map.insert("a.b.c", 3);
        map.insert("l", inner);
        assert_eq!(map.get_path("a.b.c"), Some(&Value::Int(3)));
        assert_eq!(map.get_path("l.x.y"), Some(&Value::Int(2)));
        map.insert_path("l.x.y", 4);
        let Some(Value::Map(inner)) = map.get("l") else { panic!("it is an object") };
        assert_eq!(inner.iter().collect::<Vec<_>>(), [("x.y", &Value::Int(4))]);
        assert!(map.remove_path("a.b.c"));
        assert_eq!(map.get_path("a.b.c"), Some(&Value::Int(1)));
        assert!(
            map.is_blocking("a.b.c.d") && !map.is_blocking("a.b.c") && !map.is_blocking("l.x.y")
        );
    }

    #[test]
    fn removing_a_path_leaves_its_siblings() {
        let mut map = Map::new();
        map.insert_path("a.b", 1);
        map.insert_path("a.c", 2);
        assert!(map.remove_path("a.b"));
        assert!(!map.remove_path("a.b"));
        assert_eq!(map.get_path("a.c"), Some(&Value::Int(2)));
    }
}
