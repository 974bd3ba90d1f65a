//! What decoders of one text share: the text of a field, decoded into another or in its place.

use crate::fields::pairs::{optional_path, required_path};
use crate::go_value::go_type;
use skidder_config::Section;
use skidder_event::{EventMut, EventRef, Path, ValueRef};
use smallvec::SmallVec;

/// Decoded text. Longer ones go to the heap.
pub(super) type Decoded = SmallVec<[u8; 512]>;

/// `from`, and `to` or the same.
#[derive(Clone, Debug)]
pub(super) struct FromTo {
    pub(super) from: Path,
    pub(super) to: Path,
}

impl FromTo {
    /// Nothing if `from` is missing or one of them is no path, which is told.
    pub(super) fn read(section: &Section<'_>) -> Option<Self> {
        let from = required_path(section, "from");
        let to = optional_path(section, "to");
        let from = from?;
        let to = to.unwrap_or_else(|| from.clone());
        Some(Self { from, to })
    }

    /// The bytes at `from`; nothing if there are none, that need not be there.
    pub(super) fn text<'a>(
        &self,
        event: EventRef<'a>,
        ignore_missing: bool,
        noun: &str,
    ) -> Result<Option<&'a [u8]>, String> {
        match event.get(&self.from) {
            None if ignore_missing => Ok(None),
            None => {
                let from = &self.from;
                Err(format!("could not fetch {noun} for key: {from}, Error: key not found"))
            }
            Some(ValueRef::Str(text)) => Ok(Some(text)),
            Some(value) => Err(format!(
                "invalid type for `from`, expecting a string received {}",
                go_type(value)
            )),
        }
    }

    /// Puts the text as it is, which needs no copy where it is of the event's own.
    pub(super) fn keep(&self, event: &mut EventMut<'_>) -> Result<(), String> {
        if self.from == self.to {
            return Ok(());
        }
        let to = &self.to;
        let Some(cell) = event.copy(&self.from) else { return Ok(()) };
        event.put_cell(to, cell).map_err(|error| format!("could not put value: {to}: {error}"))
    }

    /// Puts what was decoded.
    pub(super) fn put(&self, event: &mut EventMut<'_>, decoded: &[u8]) -> Result<(), String> {
        let to = &self.to;
        event.put_text(to, decoded).map_err(|error| format!("could not put value: {to}: {error}"))
    }
}
