//! What is not taken: counted, kept as the last error, and in the log with its client and why.

use super::answer::Session;
use hyper::StatusCode;
use skidder_input::Source;
use std::borrow::Cow;

/// Bytes of a reason in the log: it may have words of the client.
const REASON_BYTES_MAX: usize = 512;

/// The beginning of a reason, if it is long.
fn cut(why: &str) -> Cow<'_, str> {
    if why.len() <= REASON_BYTES_MAX {
        return Cow::Borrowed(why);
    }
    Cow::Owned(format!("{}…", &why[..why.floor_char_boundary(REASON_BYTES_MAX)]))
}

/// A part of a request that is taken without it.
pub(super) fn left_out(source: &Source, what: &str) {
    let what = cut(what);
    source.failed(&what);
    tracing::warn!(source = %source.about().name, "{what}");
}

impl Session {
    /// A request that is wrong: its client is to change it.
    pub(super) fn refused(&self, status: StatusCode, why: &str) {
        let (name, why) = (&self.source.about().name, cut(why));
        self.source.failed(&why);
        tracing::warn!(source = %name, status = status.as_u16(), "a request is refused: {why}");
    }

    /// A request, or a part of one, that its client is to send again as it is.
    pub(super) fn put_off(&self, why: &str) {
        let (name, why) = (&self.source.about().name, cut(why));
        self.source.failed(&why);
        tracing::debug!(source = %name, "a request is to come again: {why}");
    }

    /// See [`left_out`].
    pub(super) fn left_out(&self, what: &str) {
        left_out(&self.source, what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_reason_the_beginning_is_logged() {
        assert_eq!(cut("no token"), "no token");
        assert_eq!(cut(&"é".repeat(25_000)), format!("{}…", "é".repeat(256)));
    }
}
