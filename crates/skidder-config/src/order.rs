//! Pairs of pauses: the first one must not be longer than the longest one.

use crate::section::Section;
use crate::units::show_duration;
use std::time::Duration;

impl Section<'_> {
    /// Reports an error if the first pause is longer than the longest one. Both are the name of a setting and its
    /// value.
    pub fn refuse_longer(&self, first: (&str, Duration), longest: (&str, Duration)) {
        if let Some((message, hint)) = self.longer(first, longest) {
            self.problem(self.set_of(first.0, longest.0), message, hint);
        }
    }

    /// Warns of the same where Filebeat starts with it: each pause is as long as the first one then.
    pub fn warn_of_longer(&self, first: (&str, Duration), longest: (&str, Duration)) {
        if let Some((message, hint)) = self.longer(first, longest) {
            let name = self.path_of(first.0);
            let message = format!("{message}: each pause is as long as `{name}`");
            self.warning(self.set_of(first.0, longest.0), message, hint);
        }
    }

    /// The first of two settings, or the other one if only that is set.
    fn set_of<'k>(&self, first: &'k str, other: &'k str) -> &'k str {
        if self.has(first) { first } else { other }
    }

    /// What is wrong with a pair, and a hint.
    fn longer(
        &self,
        (first, init): (&str, Duration),
        (longest, max): (&str, Duration),
    ) -> Option<(String, String)> {
        if init <= max {
            return None;
        }
        let (first, longest) = (self.path_of(first), self.path_of(longest));
        let (init, max) = (show_duration(init), show_duration(max));
        let message = format!("`{first}`, {init}, is longer than `{longest}`, {max}");
        let hint = format!("set `{first}` to at most {max}, or `{longest}` to at least {init}");
        Some((message, hint))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Problems, Settings};
    use std::time::Duration;

    #[test]
    fn a_pair_in_the_wrong_order_is_reported_at_the_one_that_is_set() {
        let seconds = Duration::from_secs;
        for (text, init, max, expected) in [
            ("in: {backoff: {init: 1s, max: 1s}}", 1, 1, ""),
            (
                "in: {backoff: {init: 90s, max: 5s}}",
                90,
                5,
                "f.yml:1:22: `in.backoff.init`, 1m30s, is longer than `in.backoff.max`, 5s",
            ),
            ("in: {backoff: {max: 1s}}", 2, 1, "f.yml:1:21: `in.backoff.init`, 2s, is longer"),
        ] {
            let settings = Settings::parse("f.yml", text).unwrap();
            for is_error in [true, false] {
                let problems = Problems::new();
                let root = settings.root(&problems);
                let section = root.section("in");
                let pair = (("backoff.init", seconds(init)), ("backoff.max", seconds(max)));
                if is_error {
                    section.refuse_longer(pair.0, pair.1);
                } else {
                    section.warn_of_longer(pair.0, pair.1);
                }
                section.skip();
                root.skip();
                let said = problems.to_string();
                assert!(said.contains(expected), "{said}");
                assert_eq!(said.is_empty(), expected.is_empty(), "{said}");
                assert_eq!(problems.has_errors(), is_error && !expected.is_empty(), "{said}");
            }
        }
    }
}
