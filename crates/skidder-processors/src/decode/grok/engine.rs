//! A compiled pattern: finds its groups in a text.
//!
//! Each pattern is one regular expression that is searched for anywhere in the text, in linear time. Most
//! lines are made for their pattern, though, and match from their first byte, each part where the part before
//! it ends: that is tried first (`steps.rs`), and costs a fraction of the search. Else the search finds where the
//! match begins, and the steps are tried from there.

use super::steps::{Leaves, Steps};
use regex_automata::meta::{self, Regex};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, util::syntax};
use smallvec::SmallVec;
use std::ops::Range;

/// Bytes of a compiled pattern.
const COMPILED_BYTES_MAX: usize = 8 << 20;

/// Where groups begin and end, two places for each; group 0 is the whole match, and not always there.
pub(super) type Slots = SmallVec<[Option<NonMaxUsize>; 64]>;

/// A pattern that can be searched for.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    regex: Regex,
    steps: Option<Steps>,
    slots: usize,
}

impl Engine {
    /// Compiles an expression; `leaves` keeps what several expressions share.
    pub(super) fn new(expression: &str, leaves: &mut Leaves) -> Result<Self, String> {
        let config = syntax::Config::new().utf8(false);
        let parsed = syntax::parse_with(expression, &config).map_err(|error| last_line(&error))?;
        let config = meta::Config::new().utf8_empty(false).nfa_size_limit(Some(COMPILED_BYTES_MAX));
        let regex = Regex::builder().configure(config).build_from_hir(&parsed);
        let regex = regex.map_err(|error| match error.size_limit() {
            Some(limit) => format!(
                "it needs more than {limit} bytes when compiled; use smaller counts, or fewer patterns in it"
            ),
            None => last_line(&error),
        })?;
        let slots = 2 * regex.captures_len();
        Ok(Self { steps: Steps::new(&parsed, leaves), regex, slots })
    }

    /// Finds the groups in a text. Returns `false` if it does not match.
    pub(super) fn find(&self, text: &[u8], slots: &mut Slots) -> bool {
        slots.clear();
        slots.resize(self.slots, None);
        let Some(steps) = &self.steps else {
            return self.regex.search_slots(&Input::new(text), slots).is_some();
        };
        if steps.run(text, 0, slots) {
            return true;
        }
        // To find only where the match is costs less than its groups.
        let Some(found) = self.regex.search(&Input::new(text)) else { return false };
        if found.start() > 0 {
            slots.fill(None);
            if steps.run(text, found.start(), slots) {
                return true;
            }
        }
        slots.fill(None);
        let input = Input::new(text).range(found.range()).anchored(Anchored::Yes);
        self.regex.search_slots(&input, slots).is_some()
    }

    /// The same without trying the steps.
    #[cfg(test)]
    pub(super) fn search(&self, text: &[u8], slots: &mut Slots) -> bool {
        slots.clear();
        slots.resize(self.slots, None);
        self.regex.search_slots(&Input::new(text), slots).is_some()
    }

    /// Whether lines can match without a search.
    #[cfg(test)]
    pub(super) fn has_steps(&self) -> bool {
        self.steps.is_some()
    }
}

/// The part of a text that a group found.
pub(super) fn group(slots: &[Option<NonMaxUsize>], group: usize) -> Option<Range<usize>> {
    let start = slots.get(2 * group).copied().flatten()?;
    let end = slots.get(2 * group + 1).copied().flatten()?;
    Some(start.get()..end.get())
}

/// The error, without the drawing of the expression.
fn last_line(error: &dyn std::error::Error) -> String {
    let inner = std::iter::successors(Some(error), |error| error.source()).last();
    let text = inner.map(ToString::to_string).unwrap_or_default();
    let last = text.trim_end().lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}
