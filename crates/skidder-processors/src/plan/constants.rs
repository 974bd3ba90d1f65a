//! The fields that all events of a source share, while a plan is bound.

use skidder_event::{Map, Path, Value};

/// Fields and `@metadata` under every event of a source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Constants {
    fields: Map,
    metadata: Map,
}

impl Constants {
    /// `message`, `@timestamp` and `log.offset` are left out: they belong to each event.
    pub fn new(fields: &Map, metadata: &Map) -> Self {
        let mut fields = fields.clone();
        for own in ["message", "@timestamp", "log.offset"] {
            fields.remove_path(own);
        }
        Self { fields, metadata: metadata.clone() }
    }

    /// All fields.
    pub fn fields(&self) -> &Map {
        &self.fields
    }

    /// All of `@metadata`.
    pub fn metadata(&self) -> &Map {
        &self.metadata
    }

    /// The value at a path.
    pub fn get(&self, path: &Path) -> Option<&Value> {
        let map = if path.is_metadata() { &self.metadata } else { &self.fields };
        map.get_path(key_of(path))
    }

    /// Sets a path. `false`, and nothing is changed, if a value that is not an object is in the way.
    pub fn set(&mut self, path: &Path, value: Value) -> bool {
        if self.map_of(path).is_blocking(key_of(path)) {
            return false;
        }
        self.map_of(path).insert_path(key_of(path), value);
        true
    }

    /// Removes a path; objects around it stay, even when they are empty then.
    pub fn remove(&mut self, path: &Path) -> bool {
        self.map_of(path).remove_path(key_of(path))
    }

    /// Merges over the fields and `@metadata`.
    pub fn merge(&mut self, fields: &Map, metadata: &Map) {
        self.fields.merge(fields);
        self.metadata.merge(metadata);
    }

    /// Adds the fields that are missing.
    pub fn merge_missing(&mut self, fields: &Map) {
        self.fields.merge_missing(fields);
    }

    /// The topmost paths at which `self` and `other` differ. `None` if a path cannot name one.
    pub(crate) fn differences(&self, other: &Self) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        let named = differences(&self.fields, &other.fields, "", &mut paths)
            && differences(&self.metadata, &other.metadata, "@metadata.", &mut paths);
        named.then_some(paths)
    }

    fn map_of(&mut self, path: &Path) -> &mut Map {
        if path.is_metadata() { &mut self.metadata } else { &mut self.fields }
    }
}

fn differences(one: &Map, other: &Map, prefix: &str, out: &mut Vec<Path>) -> bool {
    let missing = other.iter().filter(|(key, _)| one.get(key).is_none());
    let keys = one.iter().map(|(key, _)| key).chain(missing.map(|(key, _)| key));
    for key in keys {
        let name = format!("{prefix}{key}");
        match (one.get(key), other.get(key)) {
            (Some(Value::Map(one)), Some(Value::Map(other))) => {
                if !differences(one, other, &format!("{name}."), out) {
                    return false;
                }
            }
            (one, other) if one == other => {}
            _ => match Path::parse(&name) {
                Ok(path) if !key.contains('.') => out.push(path),
                _ => return false,
            },
        }
    }
    true
}

/// The path inside its map: without `@metadata`.
fn key_of(path: &Path) -> &str {
    path.as_str().strip_prefix("@metadata.").unwrap_or(path.as_str())
}
