//! The last event's fields, kept for the next one: those of one file follow each other and get the same.

use super::matchers::{Look, log_file_path};
use super::path::Named;
use super::settings::Settings;
use super::store::Store;
use skidder_event::{Map, Path};
use std::sync::Arc;

/// The result for one set of values.
#[derive(Debug)]
pub(super) struct Found {
    /// These fields of the event.
    values: Vec<Option<String>>,
    /// The keys of each matcher.
    keys: Vec<Vec<String>>,
    /// The fields from the path.
    of_path: Option<Arc<Map>>,
    /// The entry under the keys when `fields` were made.
    known: Option<Arc<Map>>,
    fields: Option<Arc<Map>>,
}

impl Found {
    /// Of the fields `reads`, which are those of the matchers and the path.
    pub(super) fn new(settings: &Settings, reads: &[Path], look: Look<'_>) -> Self {
        let path = look(&log_file_path());
        let of_path = path.as_deref().and_then(Named::read).map(|named| named.fields());
        let of_path = of_path.filter(|fields| !fields.is_empty()).map(Arc::new);
        Self {
            values: reads.iter().map(look).collect(),
            keys: settings.matchers.iter().map(|matcher| matcher.keys(look)).collect(),
            fields: of_path.clone(),
            of_path,
            known: None,
        }
    }

    /// Whether the fields are the same.
    pub(super) fn is_of<'a>(
        &self,
        reads: &[Path],
        text: impl Fn(&Path) -> Option<&'a [u8]>,
    ) -> bool {
        let is_same = |(path, value): (&Path, &Option<String>)| {
            text(path) == value.as_deref().map(str::as_bytes)
        };
        reads.iter().zip(&self.values).all(is_same)
    }

    /// The current fields for an event with these fields; nothing if it is of no pod.
    pub(super) fn fields(&mut self, store: &Store) -> Option<&Arc<Map>> {
        let known = self.keys.iter().find_map(|keys| store.find(keys));
        let is_same = match (&known, &self.known) {
            (Some(known), Some(before)) => Arc::ptr_eq(known, before),
            (known, before) => known.is_none() && before.is_none(),
        };
        if !is_same {
            self.fields = match (&self.of_path, &known) {
                (Some(of_path), Some(known)) => {
                    let mut fields = (**of_path).clone();
                    fields.merge(known);
                    Some(Arc::new(fields))
                }
                (of_path, known) => of_path.clone().or_else(|| known.clone()),
            };
            self.known = known;
        }
        self.fields.as_ref()
    }
}
