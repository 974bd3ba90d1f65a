//! Messages about keys that are known and not read.

use crate::node::Entry;
use crate::problem::{Problem, Problems, Severity, Subject};

/// Messages about keys that are known but not read.
#[derive(Debug)]
pub(crate) struct Rule {
    /// `key` or `key.*`, relative to the section.
    pub(crate) pattern: String,
    verdict: Verdict,
    advice: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Unsupported,
    Deprecated,
    NoEffect,
    /// [`Verdict::NoEffect`], because it is a setting of another kind of the same map.
    OfOthers,
}

impl Rule {
    pub(crate) fn new(pattern: &str, verdict: Verdict, advice: &str) -> Self {
        Self { pattern: pattern.to_owned(), verdict, advice: advice.to_owned() }
    }

    /// For a key that is in the list of [`Idle`] ones.
    pub(crate) fn idle(key: &str, idle: &Idle) -> Self {
        Self::new(key, Verdict::NoEffect, idle.why)
    }

    /// Nothing happens with such a setting, so that its name is no better one for a misspelt one.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.verdict, Verdict::NoEffect | Verdict::OfOthers)
    }

    /// It is a setting of another kind of the same map. A name of this kind that is spelt alike wins over it.
    pub(crate) fn is_of_others(&self) -> bool {
        self.verdict == Verdict::OfOthers
    }

    /// The message about the setting with this full path.
    pub(crate) fn problem(&self, path: &str, entry: &Entry, problems: &Problems) -> Problem {
        let (severity, subject, message) = match self.verdict {
            Verdict::Unsupported => (
                problems.unknown_severity(),
                Subject::Unsupported,
                format!("`{path}` is known to Filebeat, but not supported by skidder yet"),
            ),
            Verdict::Deprecated => (
                Severity::Warning,
                Subject::NoEffect,
                format!("`{path}` is deprecated and has no effect"),
            ),
            Verdict::NoEffect | Verdict::OfOthers => {
                (Severity::Warning, Subject::NoEffect, format!("`{path}` has no effect here"))
            }
        };
        let problem = Problem::error(entry.key_position.clone(), message);
        Problem { severity, ..problem.about(subject).hint(&*self.advice) }
    }

    pub(crate) fn covers(&self, key: &str) -> bool {
        match self.pattern.strip_suffix(".*") {
            Some(top) => {
                key.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            }
            None => key == self.pattern,
        }
    }
}

/// A common setting that has no effect here, at any place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Its full path without numbers of lists; `*` at the beginning stands for any part, `*` at the
    /// end for what is below.
    pub pattern: &'static str,
    /// Why it does nothing, and what does.
    pub why: &'static str,
}

impl Idle {
    /// Whether it covers a setting with this full path.
    pub fn covers(&self, path: &str) -> bool {
        let mut plain = String::with_capacity(path.len());
        let mut in_brackets = false;
        for letter in path.chars() {
            match letter {
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ if in_brackets => {}
                letter => plain.push(letter),
            }
        }
        let path = plain.trim_start_matches('.');
        let (pattern, is_open) = match self.pattern.strip_suffix(".*") {
            Some(pattern) => (pattern, true),
            None => (self.pattern, false),
        };
        let ends = |rest: &str| rest.is_empty() || (is_open && rest.starts_with('.'));
        match pattern.strip_prefix("*.") {
            None => path.strip_prefix(pattern).is_some_and(ends),
            Some(part) => path.match_indices(part).any(|(at, _)| {
                (at == 0 || path[..at].ends_with('.')) && ends(&path[at + part.len()..])
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_settings_are_found_by_their_whole_path_or_by_its_end() {
        let covers = |pattern, path| Idle { pattern, why: "" }.covers(path);
        assert!(covers("setup.kibana.*", "setup.kibana.host") && covers("xpack.*", "xpack"));
        assert!(!covers("xpack.*", "xpacks") && !covers("xpack", "xpack.monitoring"));
        assert!(covers("*.json", "filebeat.inputs[3].json") && covers("*.json", "[0].json"));
        assert!(!covers("*.json", "filebeat.inputs[3].my_json"));
        assert!(!covers("*.json", "filebeat.inputs[0].json.keys"));
        assert!(covers("*.add_x.host", "processors[0].then[1].add_x.host"));
    }
}
