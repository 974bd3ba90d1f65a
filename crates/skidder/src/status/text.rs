//! Numbers for people.

use skidder_observe::span_text;
use std::time::Duration;

/// A time in milliseconds, in its two largest units.
pub(crate) fn span(milliseconds: u64) -> String {
    span_text(Duration::from_millis(milliseconds))
}
