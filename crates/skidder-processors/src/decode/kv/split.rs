//! Regular expressions between pairs and around values.
//!
//! Java's expressions have look-ahead, which those here do not have; but what a key of a text looks like is
//! often said so: `\s+(?=\w+=)`. One at the end of the expression is therefore an expression of its own, which
//! is tried behind each match, on a bounded part of the text. So the time stays linear.

use regex_automata::meta::{self, Regex};
use regex_automata::{Anchored, Input};
use std::ops::Range;

/// Bytes that a look-ahead looks at.
const AHEAD_BYTES_MAX: usize = 1024;

/// Places of a text where a look-ahead is tried.
const PLACES_MAX: usize = 65_536;

/// Bytes of a compiled expression.
const COMPILED_BYTES_MAX: usize = 1 << 20;

/// What is between two parts of a text.
#[derive(Clone, Debug)]
pub(super) enum Splitter {
    Byte(u8),
    Regex { regex: Regex, ahead: Option<Ahead> },
}

/// An expression for what must come, or must not come.
#[derive(Clone, Debug)]
pub(super) struct Ahead {
    regex: Regex,
    is_negative: bool,
}

/// The parts of a text.
pub(super) struct Parts<'a> {
    splitter: &'a Splitter,
    text: &'a [u8],
    /// Where the next part begins; `None` behind the last one.
    next: Option<usize>,
    places: usize,
}

impl Splitter {
    /// Compiles an expression, which must not match an empty text.
    pub(super) fn new(expression: &str) -> Result<Self, String> {
        if let [byte] = expression.as_bytes()
            && !b"\\.+*?()|[]{}^$".contains(byte)
        {
            return Ok(Self::Byte(*byte));
        }
        let (before, ahead) = split_ahead(expression)?;
        let regex = compile(before)?;
        if regex.is_match("") {
            return Err("it matches an empty text".to_owned());
        }
        let ahead = match ahead {
            None => None,
            Some((text, is_negative)) => Some(Ahead { regex: compile(text)?, is_negative }),
        };
        Ok(Self::Regex { regex, ahead })
    }

    /// The first place of a text.
    pub(super) fn find(&self, text: &[u8]) -> Option<Range<usize>> {
        self.find_from(text, 0, &mut 0).ok().flatten()
    }

    /// The parts of a text that are not empty.
    pub(super) fn parts<'a>(&'a self, text: &'a [u8]) -> Parts<'a> {
        Parts { splitter: self, text, next: Some(0), places: 0 }
    }

    fn find_from(
        &self,
        text: &[u8],
        mut at: usize,
        places: &mut usize,
    ) -> Result<Option<Range<usize>>, String> {
        let (regex, ahead) = match self {
            Self::Byte(byte) => {
                let found = memchr::memchr(*byte, &text[at..]);
                return Ok(found.map(|found| at + found..at + found + 1));
            }
            Self::Regex { regex, ahead } => (regex, ahead),
        };
        loop {
            let Some(found) = regex.find(Input::new(text).range(at..)) else { return Ok(None) };
            let found = found.range();
            let Some(ahead) = ahead else { return Ok(Some(found)) };
            *places += 1;
            if *places > PLACES_MAX {
                return Err(format!("the text has more than {PLACES_MAX} places for a look-ahead"));
            }
            let end = text.len().min(found.end + AHEAD_BYTES_MAX);
            let input = Input::new(text).range(found.end..end).anchored(Anchored::Yes);
            if ahead.regex.is_match(input) != ahead.is_negative {
                return Ok(Some(found));
            }
            at = found.end;
        }
    }
}

impl Parts<'_> {
    /// The next part that is not empty.
    pub(super) fn next(&mut self) -> Result<Option<Range<usize>>, String> {
        while let Some(start) = self.next {
            let found = self.splitter.find_from(self.text, start, &mut self.places)?;
            let end = found.as_ref().map_or(self.text.len(), |found| found.start);
            self.next = found.map(|found| found.end);
            if start < end {
                return Ok(Some(start..end));
            }
        }
        Ok(None)
    }
}

fn compile(expression: &str) -> Result<Regex, String> {
    let config = meta::Config::new().nfa_size_limit(Some(COMPILED_BYTES_MAX));
    let built = Regex::builder().configure(config).build(expression);
    built.map_err(|error| {
        let error: &dyn std::error::Error = &error;
        let inner = std::iter::successors(Some(error), |error| error.source()).last();
        let text = inner.map(ToString::to_string).unwrap_or_default();
        let last = text.trim_end().lines().last().unwrap_or_default();
        last.trim_start_matches("error: ").to_owned()
    })
}

/// The expression of a look-ahead, and whether it must not come.
type AheadText<'a> = (&'a str, bool);

/// An expression without its look-ahead, and that.
fn split_ahead(expression: &str) -> Result<(&str, Option<AheadText<'_>>), String> {
    let bytes = expression.as_bytes();
    let (mut depth, mut class, mut ahead, mut choice) = (0_usize, false, None, false);
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b']' if class => class = false,
            _ if class => {}
            b'[' => class = true,
            b'|' if depth == 0 => choice = true,
            b'(' => {
                let rest = &bytes[at..];
                if depth == 0 && (rest.starts_with(b"(?=") || rest.starts_with(b"(?!")) {
                    ahead = Some(at);
                }
                depth += 1;
            }
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    match ahead {
        Some(start) if closes_at_end(&bytes[start..]) => {
            if choice {
                return Err(
                    "put the choice before the look-ahead into a group: `(?:a|b)(?=c)`".to_owned()
                );
            }
            let inner = &expression[start + 3..expression.len() - 1];
            Ok((&expression[..start], Some((inner, bytes[start + 2] == b'!'))))
        }
        _ => Ok((expression, None)),
    }
}

/// Whether the group that a text begins with ends where the text does.
fn closes_at_end(group: &[u8]) -> bool {
    let (mut depth, mut class, mut at) = (0_usize, false, 0);
    while at < group.len() {
        match group[at] {
            b'\\' => at += 1,
            b']' if class => class = false,
            _ if class => {}
            b'[' => class = true,
            b'(' => depth += 1,
            b')' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1 == group.len();
                }
            }
            _ => {}
        }
        at += 1;
    }
    false
}

/// A set of characters, as between the brackets of an expression.
#[derive(Clone, Debug)]
pub(super) struct Class {
    ascii: [bool; 128],
    regex: Regex,
}

impl Class {
    /// Reads a set.
    pub(super) fn new(characters: &str) -> Result<Self, String> {
        let regex = compile(&format!("^[{characters}]$"))?;
        let mut ascii = [false; 128];
        for (byte, is_in) in (0_u8..).zip(&mut ascii) {
            *is_in = regex.is_match(&[byte][..]);
        }
        Ok(Self { ascii, regex })
    }

    /// A part of a text without what is in the set at its ends.
    pub(super) fn trim(&self, text: &[u8], part: Range<usize>) -> Range<usize> {
        let is_in = |letter: char| match self.ascii.get(letter as usize) {
            Some(is_in) => *is_in,
            None => self.regex.is_match(&*letter.encode_utf8(&mut [0; 4])),
        };
        match std::str::from_utf8(&text[part.clone()]) {
            Ok(whole) => {
                let rest = whole.trim_start_matches(is_in);
                let start = part.end - rest.len();
                start..start + rest.trim_end_matches(is_in).len()
            }
            Err(_) => {
                let is_in =
                    |byte: &u8| self.ascii.get(usize::from(*byte)).is_some_and(|is_in| *is_in);
                let bytes = &text[part.clone()];
                let start = part.start + bytes.iter().take_while(|byte| is_in(byte)).count();
                let ends =
                    text[start..part.end].iter().rev().take_while(|byte| is_in(byte)).count();
                start..part.end - ends
            }
        }
    }
}
