//! Merging what is known of a thing into an event, or into what all events of a source share: the thing is
//! looked up by the fields of either.

use skidder_event::{EventMut, Map, Path, Value, ValueRef};
use skidder_processors::{Constants, Outcome};
use std::sync::Arc;

/// A field that can lead to a thing.
pub(crate) enum Field {
    Text(String),
    Number(i64),
}

impl Field {
    /// The text, if it is one.
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) => None,
        }
    }
}

/// Gives a field, if it is there and can lead to a thing.
pub(crate) type Look<'a> = &'a dyn Fn(&Path) -> Option<Field>;

/// Merges into an event what `known` finds by its fields.
pub(crate) fn merge_into_event(
    event: &mut EventMut<'_>,
    known: impl FnOnce(Look<'_>) -> Option<Arc<Map>>,
) -> Outcome {
    let own = event.as_ref();
    let fields = known(&|path| match own.get(path)? {
        ValueRef::Str(text) => Some(Field::Text(String::from_utf8_lossy(text).into_owned())),
        ValueRef::Int(number) => Some(Field::Number(number)),
        ValueRef::UInt(number) => i64::try_from(number).ok().map(Field::Number),
        _ => None,
    });
    if let Some(fields) = fields {
        event.merge(&fields);
    }
    Outcome::Done
}

/// Merges into what a source gives to all of its events what `known` finds by it.
pub(crate) fn merge_into_source(
    constants: &mut Constants,
    known: impl FnOnce(Look<'_>) -> Option<Arc<Map>>,
) {
    let fields = known(&|path| field_of(constants, path));
    if let Some(fields) = fields {
        constants.merge(&fields, &Map::new());
    }
}

/// A field that all events of a source share.
pub(crate) fn field_of(constants: &Constants, path: &Path) -> Option<Field> {
    match constants.get(path)? {
        Value::Str(text) => Some(Field::Text(text.to_string())),
        Value::Int(number) => Some(Field::Number(*number)),
        _ => None,
    }
}
