//! Settings that are known and not read.

/// What to say about keys that are known but not read.
#[derive(Debug)]
pub(crate) struct Rule {
    /// `key` or `key.*`, relative to the section.
    pub(crate) pattern: String,
    pub(crate) verdict: Verdict,
    pub(crate) advice: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Unsupported,
    Deprecated,
    NoEffect,
}

impl Rule {
    pub(crate) fn covers(&self, key: &str) -> bool {
        match self.pattern.strip_suffix(".*") {
            Some(top) => {
                key.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            None => key == self.pattern,
        }
    }
}
