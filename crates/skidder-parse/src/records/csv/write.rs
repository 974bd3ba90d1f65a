//! Values of a row as an object of JSON.

use super::CsvKeys;
use crate::records::{Escapes, push_json_text};

/// The names of the values, with what stands before each value.
#[derive(Debug)]
pub(super) struct Keys {
    /// For each key of the object the place of its value in a row, and `"name":`.
    each: Vec<(usize, Vec<u8>)>,
    count: usize,
    escapes: Escapes,
}

impl Keys {
    pub(super) fn new(names: Vec<&[u8]>, order: CsvKeys) -> Self {
        let count = names.len();
        // Go makes texts of the names before it sorts them.
        let mut names: Vec<(usize, &[u8])> = names.into_iter().enumerate().collect();
        if order == CsvKeys::Sorted {
            names.sort_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(&a.0)));
            names.dedup_by(|later, first| later.1 == first.1);
        }
        let escapes = match order {
            CsvKeys::Sorted => Escapes::OfGo,
            CsvKeys::InOrder => Escapes::Least,
        };
        let key = |(place, name): (usize, &[u8])| {
            let mut key = Vec::with_capacity(name.len() + 3);
            push_json_text(name, escapes, &mut key);
            key.push(b':');
            (place, key)
        };
        Self { each: names.into_iter().map(key).collect(), count, escapes }
    }

    /// Values that a row must have.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the keys in each object.
    pub(super) fn bytes(&self) -> usize {
        self.each.iter().map(|(_, key)| key.len() + 3).sum()
    }

    /// Appends the object of a row with as many values as there are names; `ends` are their ends in `text`.
    pub(super) fn write(&self, text: &[u8], ends: &[usize], into: &mut Vec<u8>) {
        into.push(b'{');
        for (number, (place, key)) in self.each.iter().enumerate() {
            if number > 0 {
                into.push(b',');
            }
            into.extend_from_slice(key);
            let start = place.checked_sub(1).map_or(0, |before| ends[before]);
            push_json_text(&text[start..ends[*place]], self.escapes, into);
        }
        into.push(b'}');
    }
}
