//! Conditions: `when`, `if`, and the selectors of outputs. Compiled once, evaluated on an event
//! without allocation.
//!
//! The meaning is Filebeat's (libbeat's `conditions`): a missing field makes a test false and is
//! never an error, so `not` around it is true; several fields under one operator must all match; an
//! array matches if one of its elements does. Filebeat silently keeps one operator of a condition
//! that has several; here that is an error when the configuration is read.

mod network;
mod read;
pub use read::CONDITION;
mod text;

pub(crate) use network::address;
pub use network::{Network, NetworkError};

use skidder_event::{EventRef, Path, ValueRef};
use std::fmt;
use std::sync::Arc;
use text::Wanted;

/// A compiled condition. Cheap to clone.
#[derive(Clone, Debug)]
pub enum Condition {
    /// One field against one test.
    Test(Arc<FieldTest>),
    /// All must hold; true if there are none.
    And(Vec<Condition>),
    /// One must hold; false if there are none.
    Or(Vec<Condition>),
    /// It must not hold.
    Not(Box<Condition>),
}

/// A field and its test.
#[derive(Debug)]
pub struct FieldTest {
    path: Path,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Equals(EqualsValue),
    Contains(Wanted),
    Regexp(Wanted),
    Range(Bounds),
    Network(Vec<Network>),
    Exists,
}

/// What `equals` compares with. The field must be of the same kind: a number is never equal to text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EqualsValue {
    /// A whole number, as the 64 bits of it: Filebeat compares so, whatever the sign.
    Int(u64),
    /// Text.
    Str(Box<str>),
    /// A boolean.
    Bool(bool),
}

/// The bounds of `range`; all that are given must hold.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Greater than or equal.
    pub gte: Option<f64>,
    /// Greater than.
    pub gt: Option<f64>,
    /// Less than or equal.
    pub lte: Option<f64>,
    /// Less than.
    pub lt: Option<f64>,
}

impl Condition {
    fn test(path: Path, test: Test) -> Self {
        Self::Test(Arc::new(FieldTest { path, test }))
    }

    /// `equals`.
    pub fn equals(path: Path, value: EqualsValue) -> Self {
        Self::test(path, Test::Equals(value))
    }

    /// `contains`: the field, or one of its elements, contains `text`.
    pub fn contains(path: Path, text: &str) -> Self {
        Self::test(path, Test::Contains(Wanted::substring(text)))
    }

    /// `regexp`: the field, or one of its elements, has a match anywhere.
    pub fn regexp(path: Path, pattern: &str) -> Result<Self, crate::PatternError> {
        Ok(Self::test(path, Test::Regexp(Wanted::regexp(pattern)?)))
    }

    /// `range`: a number, or text that is one, within bounds.
    pub fn range(path: Path, bounds: Bounds) -> Self {
        Self::test(path, Test::Range(bounds))
    }

    /// `network`: an address, or one of several, is in one of these.
    pub fn network(path: Path, networks: Vec<Network>) -> Self {
        Self::test(path, Test::Network(networks))
    }

    /// `has_fields` of one field; `null` counts as a value.
    pub fn has_field(path: Path) -> Self {
        Self::test(path, Test::Exists)
    }

    /// Whether it holds for an event.
    pub fn check(&self, event: EventRef<'_>) -> bool {
        match self {
            Self::Test(test) => test.check(event),
            Self::And(list) => list.iter().all(|condition| condition.check(event)),
            Self::Or(list) => list.iter().any(|condition| condition.check(event)),
            Self::Not(inner) => !inner.check(event),
        }
    }

    /// Calls `each` with every field it looks at.
    pub fn for_each_path(&self, each: &mut dyn FnMut(&Path)) {
        match self {
            Self::Test(test) => each(&test.path),
            Self::And(list) | Self::Or(list) => {
                for condition in list {
                    condition.for_each_path(each);
                }
            }
            Self::Not(inner) => inner.for_each_path(each),
        }
    }

    /// Decides it for all events that differ from `event` at most in fields for which `varies` is
    /// true; gives the rest of it where that is not possible.
    pub(crate) fn decide(
        &self,
        event: EventRef<'_>,
        varies: &dyn Fn(&Path) -> bool,
    ) -> Result<bool, Self> {
        match self {
            Self::Test(test) if varies(&test.path) => Err(self.clone()),
            Self::Test(test) => Ok(test.check(event)),
            Self::And(list) => {
                decide_all(list, event, varies, false).map_err(|open| one_or(open, Self::And))
            }
            Self::Or(list) => {
                decide_all(list, event, varies, true).map_err(|open| one_or(open, Self::Or))
            }
            Self::Not(inner) => match inner.decide(event, varies) {
                Ok(truth) => Ok(!truth),
                Err(open) => Err(Self::Not(Box::new(open))),
            },
        }
    }
}

/// Decides a list that ends at the first member that is `end`; gives the undecided members.
fn decide_all(
    list: &[Condition],
    event: EventRef<'_>,
    varies: &dyn Fn(&Path) -> bool,
    end: bool,
) -> Result<bool, Vec<Condition>> {
    let mut open = Vec::new();
    for condition in list {
        match condition.decide(event, varies) {
            Ok(truth) if truth == end => return Ok(end),
            Ok(_) => {}
            Err(left) => open.push(left),
        }
    }
    if open.is_empty() { Ok(!end) } else { Err(open) }
}

fn one_or(mut list: Vec<Condition>, join: fn(Vec<Condition>) -> Condition) -> Condition {
    match list.pop() {
        Some(only) if list.is_empty() => only,
        Some(last) => {
            list.push(last);
            join(list)
        }
        None => join(list),
    }
}

impl FieldTest {
    fn check(&self, event: EventRef<'_>) -> bool {
        if let Test::Exists = self.test {
            return event.has(&self.path);
        }
        let Some(value) = event.get(&self.path) else { return false };
        match &self.test {
            Test::Equals(wanted) => wanted.is(value),
            Test::Contains(wanted) | Test::Regexp(wanted) => {
                any_text(value, &|text| wanted.matches(text))
            }
            Test::Range(bounds) => number_of(value).is_some_and(|number| bounds.hold(number)),
            Test::Network(networks) => any_text(value, &|text| {
                address(text)
                    .is_some_and(|address| networks.iter().any(|network| network.contains(address)))
            }),
            Test::Exists => true,
        }
    }
}

impl EqualsValue {
    fn is(&self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (Self::Int(wanted), ValueRef::Int(number)) => *wanted == number as u64,
            (Self::Int(wanted), ValueRef::UInt(number)) => *wanted == number,
            (Self::Str(wanted), ValueRef::Str(text)) => wanted.as_bytes() == text,
            (Self::Bool(wanted), ValueRef::Bool(truth)) => *wanted == truth,
            _ => false,
        }
    }
}

impl Bounds {
    /// Not a number is within all bounds, as in Filebeat.
    fn hold(&self, number: f64) -> bool {
        let outside = self.gte.is_some_and(|bound| number < bound)
            || self.gt.is_some_and(|bound| number <= bound)
            || self.lte.is_some_and(|bound| number > bound)
            || self.lt.is_some_and(|bound| number >= bound);
        !outside
    }
}

/// Whether the text, or one text of the list, fits.
fn any_text(value: ValueRef<'_>, fits: &dyn Fn(&[u8]) -> bool) -> bool {
    match value {
        ValueRef::Str(text) => fits(text),
        ValueRef::List(list) => {
            let mut found = false;
            list.for_each(|item| {
                found = matches!(item, ValueRef::Str(text) if fits(text));
                !found
            });
            found
        }
        _ => false,
    }
}

fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Int(number) => Some(number as f64),
        ValueRef::UInt(number) => Some(number as f64),
        ValueRef::Float(number) => Some(number),
        ValueRef::Str(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |out: &mut fmt::Formatter<'_>, name: &str, list: &[Self]| {
            write!(out, "{name}(")?;
            for (at, condition) in list.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                write!(out, "{comma}{condition}")?;
            }
            out.write_str(")")
        };
        match self {
            Self::Test(test) => write!(out, "{test}"),
            Self::And(all) => list(out, "and", all),
            Self::Or(any) => list(out, "or", any),
            Self::Not(inner) => write!(out, "not({inner})"),
        }
    }
}

impl fmt::Display for FieldTest {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.test {
            Test::Equals(EqualsValue::Int(number)) => write!(out, "{path} = {}", *number as i64),
            Test::Equals(EqualsValue::Str(text)) => write!(out, "{path} = `{text}`"),
            Test::Equals(EqualsValue::Bool(truth)) => write!(out, "{path} = {truth}"),
            Test::Contains(wanted) => write!(out, "{path} contains `{wanted}`"),
            Test::Regexp(wanted) => write!(out, "{path} matches `{wanted}`"),
            Test::Range(bounds) => {
                let all =
                    [(">=", bounds.gte), (">", bounds.gt), ("<=", bounds.lte), ("<", bounds.lt)];
                let given: Vec<_> = all
                    .iter()
                    .filter_map(|(sign, bound)| bound.map(|bound| format!("{path} {sign} {bound}")))
                    .collect();
                out.write_str(&given.join(" and "))
            }
            Test::Network(networks) => {
                let names: Vec<_> = networks.iter().map(Network::to_string).collect();
                write!(out, "{path} in network {}", names.join(" or "))
            }
            Test::Exists => write!(out, "has {path}"),
        }
    }
}

#[cfg(test)]
mod tests;
