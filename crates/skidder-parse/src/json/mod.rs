//! JSON: one object of a text becomes fields of the batch that the text is in.
//!
//! The scanner is strict (RFC 8259) and reads a text once. Keys and texts are spans of the text; a
//! member whose text can stand in a document as it is (UTF-8, no escape that would be lost, no key
//! twice, no line break) is marked so and copied by the encoder. Only texts with escapes are
//! written a second time, into the batch's bytes.
//!
//! Where the RFC leaves a choice, this does what Go's `encoding/json` and Filebeat do: of equal keys the
//! last wins, half a surrogate pair and bytes that are not UTF-8 become U+FFFD, a number too large
//! for a double becomes a text. Numbers are kept as they are written, where Filebeat rounds what
//! does not fit an `int64` to a double: integers up to `u64::MAX` stay exact, larger ones are
//! rounded as there. What follows the object is an error, but for the parser `ndjson`.

mod keys;

mod scan;
pub(crate) mod text;

pub use scan::{JsonValue, Scanner};
pub use text::string_of;

/// Objects and lists inside each other: what Elasticsearch takes at most is 1000.
pub const DEPTH_MAX: usize = 512;

/// Why a text is no JSON object. Nothing of it was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {offset}")]
pub struct JsonError {
    /// Where, from the first byte of the text.
    pub offset: usize,
    /// What.
    pub problem: Problem,
}

impl JsonError {
    pub(crate) fn new(offset: usize, problem: Problem) -> Self {
        Self { offset, problem }
    }
}

/// An error in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It ends too early.
    #[error("unexpected end of JSON")]
    Unfinished,
    /// It is a list, a text, a number, …
    #[error("not a JSON object, a value")]
    NotAnObject,
    /// It is `null`.
    #[error("`null` where a JSON object is expected")]
    Null,
    /// `{` or `,` is followed by something else.
    #[error("no key in quotes")]
    Key,
    /// A key is followed by something else.
    #[error("no `:` behind a key")]
    Colon,
    /// Something else than a value.
    #[error("no JSON value")]
    Value,
    /// A value is followed by something else.
    #[error("neither `,` nor the end of the object or list")]
    Comma,
    /// `-`, `01`, `1.`, `1e`.
    #[error("a number that is not complete")]
    Number,
    /// A byte below 0x20 in a text.
    #[error("a control byte in a text, which must be escaped,")]
    Control,
    /// A backslash with something else behind it.
    #[error("an escape that JSON does not have")]
    Escape,
    /// More than [`DEPTH_MAX`] objects and lists inside each other.
    #[error("more than {DEPTH_MAX} objects and lists inside each other")]
    Depth,
    /// Something follows the object.
    #[error("more text behind the JSON object")]
    Trailing,
}

#[cfg(test)]
mod tests;
