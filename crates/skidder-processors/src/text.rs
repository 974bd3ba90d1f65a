//! Texts of events, for processors that work on one.

use skidder_event::{Cell, EventMut, Path, Text, ValueRef};
use std::ops::Range;

/// Why there is not a text at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoText {
    /// There is no such field.
    Missing,
    /// The field has a value of another kind.
    OtherKind,
}

/// The text of a field as a span of the batch. Nothing is copied, but for what the base has.
pub(crate) fn text_of(event: &mut EventMut<'_>, path: &Path) -> Result<Text, NoText> {
    if path.is_message()
        && let Some(message) = event.own_message()
    {
        return Ok(message);
    }
    if let Some(text) = event.slot_text(path) {
        return Ok(text);
    }
    match event.as_ref().get(path) {
        None => return Err(NoText::Missing),
        Some(ValueRef::Str(_)) => {}
        Some(_) => return Err(NoText::OtherKind),
    }
    match event.copy(path) {
        Some(Cell::Str(text)) => Ok(text),
        _ => Err(NoText::OtherKind),
    }
}

/// Whether a span of a text begins and ends between characters.
pub(crate) fn is_whole(text: &[u8], span: &Range<usize>) -> bool {
    let between = |at: usize| text.get(at).is_none_or(|byte| byte & 0xc0 != 0x80);
    between(span.start) && between(span.end)
}
