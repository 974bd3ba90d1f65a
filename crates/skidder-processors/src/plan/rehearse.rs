//! Doing a processor's work on the fields of a source by running it once on an event that has only those.

use super::constants::Constants;
use super::processor::{Outcome, Processor};
use skidder_event::{Base, Batch, ListRef, MapRef, Path, Value, ValueRef};
use skidder_event::{Map, Provenance, Row, SourceId, Text};
use std::sync::Arc;

/// An event that has nothing but what all events of the source have.
pub(crate) fn probe(base: Arc<Base>) -> Batch {
    let provenance = Provenance::new(SourceId(0), 0..0);
    let mut batch = Batch::new(Vec::new(), true, base, provenance);
    batch.push(Row::new(0, 0, Text { start: 0, len: 0 }, 0));
    batch
}

/// `fold` of a processor whose work depends on nothing but the event: runs it on an event over `constants`,
/// and takes from there the fields at `writes`, all that it may have changed. `false`: it failed or dropped the
/// event, and `constants` are as they were.
///
/// The plan folds only what does not look at `message`, `@timestamp` and `log.offset`, so these are of no
/// matter here.
pub(crate) fn rehearse(
    processor: &dyn Processor,
    constants: &mut Constants,
    writes: &[&Path],
) -> bool {
    let base = Arc::new(Base::new(constants.fields(), constants.metadata()));
    let mut batch = probe(Arc::clone(&base));
    let mut event = batch.event_mut(0, &base);
    if !matches!(processor.run(&mut event), Ok(Outcome::Done)) {
        return false;
    }
    let mut after = constants.clone();
    for path in writes {
        let written = match event.as_ref().get(path) {
            Some(value) => owned(value).is_some_and(|value| after.set(path, value)),
            None => {
                after.remove(path);
                true
            }
        };
        if !written {
            return false;
        }
    }
    *constants = after;
    true
}

/// A value of an event as one that owns everything; `None` if there is a text in it that is not UTF-8,
/// which constants cannot hold.
pub(crate) fn owned(value: ValueRef<'_>) -> Option<Value> {
    Some(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Bool(truth) => Value::Bool(truth),
        ValueRef::Int(number) => Value::Int(number),
        ValueRef::UInt(number) => Value::UInt(number),
        ValueRef::Float(number) => Value::Float(number),
        ValueRef::Str(text) => Value::from(std::str::from_utf8(text).ok()?),
        ValueRef::Time(time) => Value::Time(time),
        ValueRef::List(list) => Value::List(owned_list(list)?),
        ValueRef::Map(map) => Value::Map(owned_map(map)?),
    })
}

/// Whether [`owned`] would give this.
pub(crate) fn is_owned_as(value: ValueRef<'_>, known: &Value) -> bool {
    match (value, known) {
        (ValueRef::Null, Value::Null) => true,
        (ValueRef::Bool(truth), Value::Bool(known)) => truth == *known,
        (ValueRef::Int(number), Value::Int(known)) => number == *known,
        (ValueRef::UInt(number), Value::UInt(known)) => number == *known,
        (ValueRef::Float(number), Value::Float(known)) => number.to_bits() == known.to_bits(),
        (ValueRef::Str(text), Value::Str(known)) => text == known.as_bytes(),
        (ValueRef::Time(time), Value::Time(known)) => time == *known,
        (ValueRef::List(list), Value::List(known)) => {
            let (mut same, mut rest) = (true, known.iter());
            list.for_each(|item| {
                same = rest.next().is_some_and(|known| is_owned_as(item, known));
                same
            });
            same && rest.next().is_none()
        }
        (ValueRef::Map(map), Value::Map(known)) => {
            let (mut same, mut keys) = (true, 0);
            map.for_each(|key, value| {
                let known = std::str::from_utf8(key).ok().and_then(|key| known.get(key));
                same &= known.is_some_and(|known| is_owned_as(value, known));
                keys += 1;
            });
            same && keys == known.len()
        }
        _ => false,
    }
}

fn owned_list(list: ListRef<'_>) -> Option<Vec<Value>> {
    if let ListRef::Base(items) = list {
        return Some(items.to_vec());
    }
    let mut items = Vec::new();
    list.for_each(|item| {
        items.push(owned(item));
        true
    });
    items.into_iter().collect()
}

fn owned_map(map: MapRef<'_>) -> Option<Map> {
    let (mut all, mut whole) = (Map::new(), true);
    map.for_each(|key, value| match (std::str::from_utf8(key), owned(value)) {
        (Ok(key), Some(value)) => all.insert(key, value),
        _ => whole = false,
    });
    whole.then_some(all)
}
