//! A regular expression that can reject most lines by their first byte.

use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind, Look};

/// A regular expression, and the bytes that a match can begin with if it can only be at the start of a
/// line: a line of a stack trace and `^\d{4}-` need no more than one look.
#[derive(Clone, Debug)]
pub struct Matcher {
    regex: Regex,
    first: Option<Box<[bool; 256]>>,
}

impl Matcher {
    /// Prepares an expression.
    pub fn new(regex: Regex) -> Self {
        let first = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(regex.as_str())
            .ok()
            .and_then(|hir| first_bytes(&hir));
        Self { regex, first }
    }

    /// Whether the expression is found in the text.
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        if let Some(first) = &self.first {
            match text.first() {
                Some(byte) if first[usize::from(*byte)] => {}
                // Every match takes at least one byte.
                _ => return false,
            }
        }
        self.regex.is_match(text)
    }
}

/// The bytes that a match can begin with, if all matches begin at the start of the text and are not empty.
fn first_bytes(hir: &Hir) -> Option<Box<[bool; 256]>> {
    let is_anchored = hir.properties().look_set_prefix().contains(Look::Start);
    if !is_anchored || hir.properties().minimum_len().is_none_or(|length| length == 0) {
        return None;
    }
    let mut set = Box::new([false; 256]);
    (begin(hir, &mut set)? == Begin::Taken).then_some(set)
}

/// Whether an expression takes a byte for certain.
#[derive(PartialEq)]
enum Begin {
    Taken,
    Maybe,
}

/// Adds the bytes that the first byte of a match can be; `None` if that is not known.
fn begin(hir: &Hir, set: &mut [bool; 256]) -> Option<Begin> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(Look::Start) => Some(Begin::Maybe),
        // Says something about the bytes that follow: they are looked at without it.
        HirKind::Look(_) => Some(Begin::Maybe),
        HirKind::Literal(literal) => {
            set[usize::from(*literal.0.first()?)] = true;
            Some(Begin::Taken)
        }
        HirKind::Class(class) => {
            match class {
                regex_syntax::hir::Class::Bytes(class) => {
                    for range in class.ranges() {
                        set[usize::from(range.start())..=usize::from(range.end())].fill(true);
                    }
                }
                regex_syntax::hir::Class::Unicode(class) => {
                    for range in class.ranges() {
                        let mut start = [0; 4];
                        let mut end = [0; 4];
                        let start = range.start().encode_utf8(&mut start).as_bytes()[0];
                        let end = range.end().encode_utf8(&mut end).as_bytes()[0];
                        set[usize::from(start)..=usize::from(end)].fill(true);
                    }
                }
            }
            Some(Begin::Taken)
        }
        HirKind::Repetition(repetition) => {
            let inner = begin(&repetition.sub, set)?;
            Some(if repetition.min == 0 { Begin::Maybe } else { inner })
        }
        HirKind::Capture(capture) => begin(&capture.sub, set),
        HirKind::Concat(parts) => {
            for part in parts {
                if begin(part, set)? == Begin::Taken {
                    return Some(Begin::Taken);
                }
            }
            Some(Begin::Maybe)
        }
        HirKind::Alternation(parts) => {
            let mut all = Begin::Taken;
            for part in parts {
                if begin(part, set)? == Begin::Maybe {
                    all = Begin::Maybe;
                }
            }
            Some(all)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(pattern: &str) -> Matcher {
        Matcher::new(Regex::new(pattern).expect("a good pattern"))
    }

    #[test]
    fn the_first_byte_is_known_of_anchored_patterns_only() {
        let known = [
            r"^\d{4}-",
            r"^[[:space:]]",
            r"^(?:\s|Caused by:)",
            r"^\[",
            r"^(a|b)?c",
            r"(?i)^x",
            r"(?-u:^\d+)",
            r"^[^\s]",
        ];
        for pattern in known {
            assert!(matcher(pattern).first.is_some(), "{pattern}");
        }
        for pattern in [r"\d{4}-", r"^", r"^a*", r"(?m)^a", r"^a|b", "", r"a$", r"^(a|)"] {
            assert!(matcher(pattern).first.is_none(), "{pattern}");
        }
    }

    #[test]
    fn it_finds_what_the_expression_finds() {
        let patterns = [
            r"^\d{4}-",
            r"^[[:space:]]",
            r"^(?:\s|Caused by:)",
            r"(?i)^x",
            r"^[^\s]",
            r"^\bab",
            r"^(a|b)?c",
            r"^.\xff?",
            r"^\p{Lu}",
            r"^(?-u:[\x80-\xff])",
            r"^\s*a",
            r"a$",
        ];
        let texts: [&[u8]; 14] = [
            b"",
            b"2026-11",
            b" at x",
            b"\tat",
            b"Caused by: y",
            b"Xy",
            b"xy",
            b"ab",
            b"c",
            b"bc",
            b"\xff\xfe",
            "\u{c4}b".as_bytes(),
            "\u{3000}a".as_bytes(),
            b"  a",
        ];
        for pattern in patterns {
            let (regex, matcher) = (Regex::new(pattern).expect("a good pattern"), matcher(pattern));
            for text in texts {
                assert_eq!(matcher.is_match(text), regex.is_match(text), "{pattern} {text:?}");
            }
        }
    }
}
