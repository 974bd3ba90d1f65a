//! What is not taken: counted, kept as the last error, and in the log with its client and why.

use super::answer::Session;
use hyper::StatusCode;

impl Session {
    /// A request that is wrong: its client is to change it.
    pub(super) fn refused(&self, status: StatusCode, why: &str) {
        self.source.failed(why);
        let name = &self.source.about().name;
        tracing::warn!(source = %name, status = status.as_u16(), "a request is refused: {why}");
    }

    /// A request, or a part of one, that its client is to send again as it is.
    pub(super) fn put_off(&self, why: &str) {
        self.source.failed(why);
        let name = &self.source.about().name;
        tracing::debug!(source = %name, "a request is to come again: {why}");
    }

    /// A part of a request that is taken without it.
    pub(super) fn left_out(&self, what: &str) {
        self.source.failed(what);
        tracing::warn!(source = %self.source.about().name, "{what}");
    }
}
