//! Processors that find fields in a text: its parts, its encoding, its time.

use crate::kinds::Kind;

/// Those that a configuration can name.
pub(crate) const KINDS: &[Kind] = &[];
