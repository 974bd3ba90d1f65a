//! What `contains` and `regexp` look for in a text.

use crate::pattern::{PatternError, compile_pattern, literal_start};
use memchr::memmem::Finder;
use regex::bytes::Regex;
use std::fmt;

/// A text or a regular expression to be found anywhere in a field.
#[derive(Debug)]
pub(super) enum Wanted {
    /// This text.
    Substring(Box<str>, Box<Finder<'static>>),
    /// A match of this expression, which is kept as it was written.
    Regexp(Box<str>, Box<Expression>),
}

/// A compiled expression.
#[derive(Debug)]
pub(super) struct Expression {
    regex: Regex,
    /// What every match begins with, if that is worth to be looked for first.
    start: Option<Finder<'static>>,
}

impl Wanted {
    /// Looks for `text`; an empty text is found everywhere.
    pub(super) fn substring(text: &str) -> Self {
        Self::Substring(text.into(), Box::new(Finder::new(text).into_owned()))
    }

    /// Looks for a match of `pattern`, written for Go's RE2.
    pub(super) fn regexp(pattern: &str) -> Result<Self, PatternError> {
        let regex = compile_pattern(pattern)?;
        let start = literal_start(pattern).map(|start| Finder::new(&start).into_owned());
        Ok(Self::Regexp(pattern.into(), Box::new(Expression { regex, start })))
    }

    /// Whether it is found in `text`.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Substring(_, finder) => finder.find(text).is_some(),
            Self::Regexp(_, expression) => match &expression.start {
                None => expression.regex.is_match(text),
                Some(start) => {
                    start.find(text).is_some_and(|at| expression.regex.is_match_at(text, at))
                }
            },
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Substring(text, _) | Self::Regexp(text, _) => out.write_str(text),
        }
    }
}
