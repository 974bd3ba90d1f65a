//! One setting on its way from the tree to a typed value.
//!
//! A [`Setting`] is made by a getter of [`crate::Section`], may be checked further, and ends with
//! [`Setting::or`], [`Setting::optional`] or [`Setting::required`]. A mistake is added to the
//! problems there and the default is returned, so reading goes on and the user sees all mistakes.

use crate::node::{Content, Node};
use crate::problem::{Position, Problem, Problems, Subject};
use crate::units;
use std::fmt::Write as _;
use std::ops::{Bound, RangeBounds};
use std::path::PathBuf;
use std::time::Duration;

/// Why a value was not taken.
pub(crate) enum Refusal {
    /// "`path` is `text`; expected <this>".
    Expected(String),
    /// "`path` is `text`; <this>".
    Because(String),
    /// It is reported already.
    Reported,
}

enum State<T> {
    Missing,
    Value(T),
    Refused(Refusal),
}

/// Where a setting is and how messages name it.
#[derive(Clone)]
pub(crate) struct Place<'a> {
    pub(crate) problems: &'a Problems,
    /// Full path, as in messages.
    pub(crate) path: String,
    /// The value, if it is set.
    pub(crate) node: Option<&'a Node>,
    /// Where to report a missing value: the section.
    pub(crate) section: Option<Position>,
    /// Messages must not show the value.
    pub(crate) hidden: bool,
    /// Its section is no map, which is reported.
    pub(crate) is_reported: bool,
}

impl Place<'_> {
    pub(crate) fn position(&self) -> Option<Position> {
        self.node.map(|node| node.position.clone()).or_else(|| self.section.clone())
    }

    /// The place of one of the `count` texts of a list; of the whole if a variable stands for
    /// several of them.
    fn item(&self, index: usize, count: usize) -> Self {
        let list = self.node.and_then(Node::as_list).filter(|list| list.len() == count);
        match list {
            Some(list) => Self {
                path: format!("{}[{index}]", self.path),
                node: list.get(index),
                ..self.clone()
            },
            None => self.clone(),
        }
    }

    fn refuse(&self, refusal: Refusal, hint: &str) {
        let end = match refusal {
            Refusal::Expected(what) => format!("; expected {what}"),
            Refusal::Because(reason) => format!("; {reason}"),
            Refusal::Reported => return,
        };
        let shown = match self.node {
            Some(_) if self.hidden || crate::mask::is_secret(&self.path) => {
                format!("`{}`", crate::node::MASK)
            }
            Some(node) => node.shown_at(&self.path),
            None => "missing".to_owned(),
        };
        let message = format!("`{}` is {shown}{end}", self.path);
        self.problems.push(Problem::error(self.position(), message).hint(hint));
    }
}

/// A setting of type `T` that may be missing or wrong. See the module's text.
#[must_use = "end with `or`, `optional` or `required`"]
pub struct Setting<'a, T> {
    place: Place<'a>,
    state: State<T>,
    /// What is expected, for messages: `a number of events`.
    noun: String,
    /// What to do about a mistake; empty for nothing but the message.
    hint: &'static str,
    /// It is an empty text, where a text is expected: not set, if it can be no value. That is what
    /// a variable that is not set leaves behind (`${X:}`), and Filebeat takes no notice of it
    /// either.
    is_blank: bool,
    /// The default of its declaration, see [`Setting::value`].
    default: Option<T>,
}

impl<'a, T> Setting<'a, T> {
    /// Reads the value with `parse` if it is set. Reports an unresolved variable.
    pub(crate) fn read(
        place: Place<'a>,
        noun: &str,
        parse: impl FnOnce(&'a Node, &Place<'a>) -> Result<T, Refusal>,
    ) -> Self {
        let state = match place.node {
            None if place.is_reported => State::Refused(Refusal::Reported),
            None => State::Missing,
            Some(node) => match node.unresolved_problem(&place.path) {
                Some(problem) => {
                    place.problems.push(problem);
                    State::Refused(Refusal::Reported)
                }
                None => match parse(node, &place) {
                    Ok(value) => State::Value(value),
                    Err(refusal) => State::Refused(refusal),
                },
            },
        };
        Self { place, state, noun: noun.to_owned(), hint: "", is_blank: false, default: None }
    }

    /// For texts: an empty one is not set, unless it is a value.
    pub(crate) fn or_blank(mut self) -> Self {
        self.is_blank = self.place.node.is_some_and(|node| {
            matches!(node.content(), Content::String) && node.text() == Some("")
        });
        self
    }

    fn is_missing(&self) -> bool {
        match self.state {
            State::Missing => true,
            State::Refused(_) => self.is_blank,
            State::Value(_) => false,
        }
    }

    /// Describes the expected value in the words of the setting: `a number of events`.
    pub fn named(mut self, noun: &str) -> Self {
        if let State::Refused(Refusal::Expected(expected)) = &mut self.state
            && *expected == self.noun
        {
            noun.clone_into(expected);
        }
        noun.clone_into(&mut self.noun);
        self
    }

    /// Says what to do about a mistake, in a line of its own.
    pub fn hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    /// Does not show a wrong value in the message: something else, a password for instance, may stand in its place.
    pub fn hidden(mut self) -> Self {
        self.place.hidden = true;
        self
    }

    /// Refuses values outside `range`; the message has the bounds.
    pub fn range(self, range: impl RangeBounds<T>) -> Self
    where
        T: Bounded,
    {
        let words = range_words(&range);
        let mut checked = self;
        let expected = format!("{}, {words}", checked.noun);
        checked.state = match checked.state {
            State::Value(value) if !range.contains(&value) => {
                State::Refused(Refusal::Expected(expected.clone()))
            }
            State::Refused(Refusal::Expected(what)) if what == checked.noun => {
                State::Refused(Refusal::Expected(expected.clone()))
            }
            other => other,
        };
        checked.noun = expected;
        checked
    }

    /// Refuses values for which `check` fails; its text ends the message "`path` is `text`; …".
    pub fn check(self, check: impl Fn(&T) -> Result<(), String>) -> Self {
        self.try_map(|value| check(&value).map(|()| value))
    }

    /// Turns the value into another type, or refuses it with a reason (as in [`Setting::check`]).
    /// For patterns, addresses, format strings: compile them here, so that the error has the place.
    pub fn try_map<U>(self, map: impl Fn(T) -> Result<U, String>) -> Setting<'a, U> {
        let state = match self.state {
            State::Missing => State::Missing,
            State::Refused(refusal) => State::Refused(refusal),
            State::Value(value) => match map(value) {
                Ok(mapped) => State::Value(mapped),
                Err(reason) => State::Refused(Refusal::Because(reason)),
            },
        };
        let Self { place, noun, hint, is_blank, default, .. } = self;
        let default = default.and_then(|default| map(default).ok());
        Setting { place, state, noun, hint, is_blank, default }
    }

    /// Turns the value into another type.
    pub fn map<U>(self, map: impl Fn(T) -> U) -> Setting<'a, U> {
        self.try_map(|value| Ok(map(value)))
    }

    /// Whether the setting is there, and its value is refused.
    pub fn is_wrong(&self) -> bool {
        !self.is_missing() && matches!(self.state, State::Refused(_))
    }

    /// Whether the setting is there and not empty (right or wrong).
    pub fn is_set(&self) -> bool {
        !self.is_missing()
    }

    /// The value, or `default` if it is not set or wrong; a mistake is reported.
    pub fn or(self, default: impl DefaultFor<T>) -> T {
        self.optional().unwrap_or_else(|| default.into_default())
    }

    /// Like [`Setting::or`], with a default that is made when needed.
    pub fn or_else(self, default: impl FnOnce() -> T) -> T {
        self.optional().unwrap_or_else(default)
    }

    /// Sets the default that [`Setting::value`] returns.
    pub(crate) fn with_default(self, default: Option<T>) -> Self {
        Self { default, ..self }
    }

    /// The value, or the default of its declaration if it is not set or wrong; a mistake is reported.
    pub fn value(mut self) -> T {
        let default = self.default.take();
        let path = self.place.path.clone();
        // Checked here even if there is a value, so that any test that reads the setting finds the mistake.
        debug_assert!(default.is_some(), "`{path}` is read with `value`, but declares no default");
        let value = self.optional().or(default);
        value.unwrap_or_else(|| panic!("`{path}` declares no default"))
    }

    /// The value if it is set and right; a mistake is reported.
    pub fn optional(self) -> Option<T> {
        match self.state {
            State::Missing => None,
            State::Value(value) => Some(value),
            State::Refused(_) if self.is_blank => None,
            State::Refused(refusal) => {
                self.place.refuse(refusal, self.hint);
                None
            }
        }
    }

    /// The value; if it is missing, reports that and returns an empty value.
    pub fn required(self) -> T
    where
        T: Default,
    {
        if self.is_missing() {
            let message = format!("`{}` is missing; expected {}", self.place.path, self.noun);
            let missing = Problem::error(self.place.position(), message).about(Subject::Missing);
            self.place.problems.push(missing);
        }
        self.optional().unwrap_or_default()
    }
}

impl<'a> Setting<'a, Vec<String>> {
    /// [`Setting::try_map`] for each text of a list. A mistake is reported at once, with the place
    /// of its text, and a [`Setting::hint`] only if it was said before.
    pub fn try_each<U>(self, map: impl Fn(&str) -> Result<U, String>) -> Setting<'a, Vec<U>> {
        let Self { place, state, noun, hint, is_blank, default } = self;
        let state = match state {
            State::Missing => State::Missing,
            State::Refused(refusal) => State::Refused(refusal),
            State::Value(texts) => {
                let mut mapped = Vec::with_capacity(texts.len());
                for (index, text) in texts.iter().enumerate() {
                    match map(text) {
                        Ok(value) => mapped.push(value),
                        Err(_) if is_blank => {}
                        Err(reason) => {
                            place.item(index, texts.len()).refuse(Refusal::Because(reason), hint);
                        }
                    }
                }
                let is_right = mapped.len() == texts.len();
                if is_right { State::Value(mapped) } else { State::Refused(Refusal::Reported) }
            }
        };
        let each = |texts: Vec<String>| texts.iter().map(|text| map(text).ok()).collect();
        let default = default.and_then(each);
        Setting { place, state, noun, hint, is_blank, default }
    }
}

impl<T> Setting<'_, Vec<T>> {
    /// Refuses an empty list of `what`.
    pub fn at_least_one(self, what: &str) -> Self {
        self.check(|list| {
            if list.is_empty() { Err(format!("expected at least one {what}")) } else { Ok(()) }
        })
    }
}

/// What may stand for a default of type `T`: a `T`, or what is shorter to write (`"text"`).
pub trait DefaultFor<T> {
    /// The default itself.
    fn into_default(self) -> T;
}

impl<T> DefaultFor<T> for T {
    fn into_default(self) -> T {
        self
    }
}

impl DefaultFor<String> for &str {
    fn into_default(self) -> String {
        self.to_owned()
    }
}

impl DefaultFor<PathBuf> for &str {
    fn into_default(self) -> PathBuf {
        PathBuf::from(self)
    }
}

impl<const COUNT: usize> DefaultFor<Vec<String>> for [&str; COUNT] {
    fn into_default(self) -> Vec<String> {
        self.iter().map(|&text| text.to_owned()).collect()
    }
}

/// Types with bounds that a message can show.
pub trait Bounded: PartialOrd {
    /// The bound as the user would write it.
    fn show(&self) -> String;
}

macro_rules! bounded_numbers {
    ($($number:ty),*) => {$(
        impl Bounded for $number {
            fn show(&self) -> String {
                self.to_string()
            }
        }
    )*};
}
bounded_numbers!(u16, u32, u64, usize, i64, f64);

impl Bounded for Duration {
    fn show(&self) -> String {
        units::show_duration(*self)
    }
}

/// `1 to 10`, `at least 1`, `below 10`.
fn range_words<T: Bounded>(range: &impl RangeBounds<T>) -> String {
    let mut words = String::new();
    // Writing to a `String` cannot fail.
    let written = match (range.start_bound(), range.end_bound()) {
        (Bound::Included(low), Bound::Included(high)) => {
            write!(words, "{} to {}", low.show(), high.show())
        }
        (Bound::Included(low), Bound::Unbounded) => write!(words, "at least {}", low.show()),
        (Bound::Excluded(low), Bound::Unbounded) => write!(words, "more than {}", low.show()),
        (Bound::Unbounded, Bound::Included(high)) => write!(words, "at most {}", high.show()),
        (Bound::Unbounded, Bound::Excluded(high)) => write!(words, "below {}", high.show()),
        (Bound::Included(low), Bound::Excluded(high)) => {
            write!(words, "at least {} and below {}", low.show(), high.show())
        }
        (Bound::Excluded(low), Bound::Included(high)) => {
            write!(words, "more than {} and at most {}", low.show(), high.show())
        }
        (Bound::Excluded(low), Bound::Excluded(high)) => {
            write!(words, "between {} and {}", low.show(), high.show())
        }
        (Bound::Unbounded, Bound::Unbounded) => Ok(()),
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
    words
}
