//! Field paths, resolved once when a configuration is compiled.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

/// The numbers of all paths that are fields of a [`crate::Form`], from 1. It only grows, with the configuration.
static NUMBERS: LazyLock<RwLock<HashMap<Arc<str>, u32>>> = LazyLock::new(RwLock::default);

/// The number of a path, assigned on first use; 0 before.
#[derive(Debug, Default)]
struct Number(AtomicU32);

impl Clone for Number {
    fn clone(&self) -> Self {
        Self(AtomicU32::new(self.0.load(Ordering::Relaxed)))
    }
}

/// Paths are equal whether or not they have a number.
impl PartialEq for Number {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// A dotted field path such as `log.file.path`, split once. `@metadata.…` paths address what is
/// said about the event rather than the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    text: Arc<str>,
    segments: Box<[Box<str>]>,
    metadata: bool,
    place: Place,
    /// It is of the event's fields, and of no row itself.
    plain: bool,
    /// Its end may also be the key of a field, dots included.
    dotted: bool,
    number: Number,
}

/// Whether a path names what each row has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    Message,
    Timestamp,
    Log,
    LogOffset,
    /// Some of its parts have dots in them.
    Keys,
    /// Anything else.
    Field,
}

/// Why a text is no field path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Nothing was given.
    #[error("a field name is empty")]
    Empty,
    /// Two dots in a row, or one at an end.
    #[error("field name `{0}` has an empty part between its dots")]
    EmptySegment(String),
    /// `@metadata` itself has no value that could be used.
    #[error("`@metadata` needs a key, as in `@metadata.pipeline`")]
    BareMetadata,
}

impl Path {
    /// Splits `text` at its dots.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text == "@metadata" {
            return Err(PathError::BareMetadata);
        }
        let (metadata, rest) = match text.strip_prefix("@metadata.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let segments: Box<[Box<str>]> = rest.split('.').map(Into::into).collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return Err(PathError::EmptySegment(text.to_owned()));
        }
        let place = match text {
            "message" => Place::Message,
            "@timestamp" => Place::Timestamp,
            "log" => Place::Log,
            "log.offset" => Place::LogOffset,
            _ => Place::Field,
        };
        let plain = place == Place::Field && !metadata;
        let (number, dotted) = (Number::default(), segments.len() > 1);
        Ok(Self { text: text.into(), segments, metadata, place, plain, dotted, number })
    }

    /// The path of these keys, which may have dots in them; no other key is looked for.
    pub fn of_keys(keys: &[&str]) -> Result<Self, PathError> {
        let text = keys.join(".");
        if !keys.iter().any(|key| key.contains('.')) {
            return Self::parse(&text).map(Self::exact);
        }
        let segments = keys.iter().map(|&key| key.into()).collect();
        let (place, number) = (Place::Keys, Number::default());
        let (metadata, plain, dotted) = (false, false, false);
        Ok(Self { text: text.into(), segments, metadata, place, plain, dotted, number })
    }

    /// The same path, for which no key with dots in it is looked for: each of its parts is a key.
    pub fn exact(self) -> Self {
        Self { dotted: false, ..self }
    }

    /// Whether its end may also be the key of a field, dots included.
    #[inline]
    pub(crate) fn is_dotted(&self) -> bool {
        self.dotted
    }

    /// Whether some of its parts have dots in them.
    pub(crate) fn is_of_keys(&self) -> bool {
        self.place == Place::Keys
    }

    /// Its parts from `depth` on, with the dots between them.
    pub(crate) fn rest(&self, depth: usize) -> &str {
        let behind: usize = self.segments[depth..].iter().map(|part| part.len() + 1).sum();
        &self.text[self.text.len() + 1 - behind..]
    }

    /// The number that all paths of this text have; 0 if it is no field of a form.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        match self.number.0.load(Ordering::Relaxed) {
            0 => self.ask_number(),
            number => number,
        }
    }

    #[cold]
    fn ask_number(&self) -> u32 {
        let numbers = NUMBERS.read().unwrap_or_else(PoisonError::into_inner);
        let number = numbers.get(&self.text).copied().unwrap_or(0);
        self.number.0.store(number, Ordering::Relaxed);
        number
    }

    /// The same; assigns one if there is none.
    pub(crate) fn give_number(&self) -> u32 {
        let mut numbers = NUMBERS.write().unwrap_or_else(PoisonError::into_inner);
        let next = numbers.len() as u32 + 1;
        *numbers.entry(Arc::clone(&self.text)).or_insert(next)
    }

    /// The path as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The same, shared with it.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// Its parts, without `@metadata`.
    pub fn segments(&self) -> &[Box<str>] {
        &self.segments
    }

    /// Whether it addresses `@metadata`.
    pub fn is_metadata(&self) -> bool {
        self.metadata
    }

    /// Whether it is no path of `@metadata`, and none of `message`, `@timestamp`, `log` and `log.offset`.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// Whether it is `@timestamp`.
    pub fn is_timestamp(&self) -> bool {
        self.place == Place::Timestamp
    }

    /// Whether it is `message`.
    pub fn is_message(&self) -> bool {
        self.place == Place::Message
    }

    /// Whether it is `log.offset`.
    pub fn is_log_offset(&self) -> bool {
        self.place == Place::LogOffset
    }

    /// Whether it is `log`, the object around `log.offset`.
    pub(crate) fn is_log(&self) -> bool {
        self.place == Place::Log
    }

    /// Whether writing one of the two can change what reading the other gives: the same path, or
    /// one inside the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.metadata == other.metadata
            && self.segments.iter().zip(&*other.segments).all(|(ours, theirs)| ours == theirs)
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_once() {
        let path = Path::parse("log.file.path").unwrap();
        assert_eq!(path.segments().len(), 3);
        assert!(!path.is_metadata());
        let path = Path::parse("@metadata.pipeline").unwrap();
        assert!(path.is_metadata());
        assert_eq!(path.segments().len(), 1);
    }

    #[test]
    fn the_rest_of_a_path_begins_at_one_of_its_parts() {
        let path = Path::parse("@metadata.a.bc.d").unwrap();
        assert_eq!([0, 1, 2].map(|depth| path.rest(depth)), ["a.bc.d", "bc.d", "d"]);
        assert_eq!(Path::parse("message").unwrap().rest(0), "message");
    }

    #[test]
    fn bad_paths_say_why() {
        assert_eq!(Path::parse(""), Err(PathError::Empty));
        assert_eq!(Path::parse("a..b"), Err(PathError::EmptySegment("a..b".into())));
        assert_eq!(Path::parse("@metadata"), Err(PathError::BareMetadata));
    }

    #[test]
    fn paths_overlap_when_one_holds_the_other() {
        let path = |text| Path::parse(text).unwrap();
        assert!(path("a.b").overlaps(&path("a.b")));
        assert!(path("a").overlaps(&path("a.b")));
        assert!(path("a.b.c").overlaps(&path("a.b")));
        assert!(!path("a.b").overlaps(&path("a.c")));
        assert!(!path("a").overlaps(&path("@metadata.a")));
    }
}
