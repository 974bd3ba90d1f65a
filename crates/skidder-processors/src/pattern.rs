//! Regular expressions as Filebeat takes them (Go's RE2 syntax), for the `regex` crate.
//!
//! Both libraries descend from RE2; what is written differently, or means something else, is
//! translated: `\d \w \s \b` are ASCII, `\Q…\E` is literal, `{` that begins no repetition and `[`,
//! `&`, `~` inside brackets are literal, escaped punctuation is never an assertion, `\012` is octal.
//! Syntax of Go: <https://pkg.go.dev/regexp/syntax>. One difference stays: `.` and negated classes
//! do not match bytes that are no UTF-8.

use regex::bytes::Regex;
use regex_syntax::hir::{Hir, HirKind};

/// Why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{pattern}` is not a regular expression: {reason}")]
pub struct PatternError {
    /// The expression as it was written.
    pub pattern: String,
    /// The error.
    pub reason: String,
}

/// Compiles an expression written for Go's RE2, to be found anywhere in a text.
pub fn compile_pattern(pattern: &str) -> Result<Regex, PatternError> {
    let failed = |reason: String| PatternError { pattern: pattern.to_owned(), reason };
    let translated = Translation::of(pattern).map_err(failed)?;
    Regex::new(&translated).map_err(|error| {
        let reason = match error {
            regex::Error::CompiledTooBig(limit) => {
                format!("it needs more than {limit} bytes when compiled")
            }
            // The message of the library shows the expression in several lines; the last has the reason.
            other => {
                let text = other.to_string();
                let last = text.lines().last().unwrap_or_default();
                last.trim_start_matches("error: ").to_owned()
            }
        };
        failed(reason)
    })
}

/// What every match of an expression begins with, if that is more than one byte.
pub(crate) fn literal_start(pattern: &str) -> Option<Vec<u8>> {
    let translated = Translation::of(pattern).ok()?;
    let expression =
        regex_syntax::ParserBuilder::new().utf8(false).build().parse(&translated).ok()?;
    let mut start = Vec::new();
    add_start(&expression, &mut start);
    (start.len() > 1).then_some(start)
}

/// Adds the text that an expression begins with; returns whether that is all of it.
fn add_start(expression: &Hir, start: &mut Vec<u8>) -> bool {
    match expression.kind() {
        HirKind::Literal(literal) => {
            start.extend_from_slice(&literal.0);
            true
        }
        HirKind::Capture(group) => add_start(&group.sub, start),
        HirKind::Concat(parts) => parts.iter().all(|part| add_start(part, start)),
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            add_start(&repetition.sub, start);
            false
        }
        _ => false,
    }
}

/// An expression on its way from one syntax to the other.
struct Translation<'a> {
    rest: &'a str,
    out: String,
}

impl Translation<'_> {
    fn of(pattern: &str) -> Result<String, String> {
        let mut this =
            Translation { rest: pattern, out: String::with_capacity(pattern.len() + 16) };
        while let Some(letter) = this.rest.chars().next() {
            match letter {
                '\\' => this.escape(false)?,
                '[' => this.class()?,
                '{' if !is_repetition(this.rest) => this.literal('{'),
                _ => this.copy(letter),
            }
        }
        Ok(this.out)
    }

    fn advance(&mut self, letter: char) {
        self.rest = &self.rest[letter.len_utf8()..];
    }

    fn copy(&mut self, letter: char) {
        self.out.push(letter);
        self.advance(letter);
    }

    fn literal(&mut self, letter: char) {
        push_literal(&mut self.out, letter);
        self.advance(letter);
    }

    /// A backslash and what belongs to it.
    fn escape(&mut self, in_class: bool) -> Result<(), String> {
        let after = &self.rest[1..];
        let Some(letter) = after.chars().next() else {
            return Err("a backslash at the end".to_owned());
        };
        if letter == 'Q' && !in_class {
            let (literal, rest) = after[1..].split_once("\\E").unwrap_or((&after[1..], ""));
            for quoted in literal.chars() {
                push_literal(&mut self.out, quoted);
            }
            self.rest = rest;
            return Ok(());
        }
        if let Some(octal) = octal_digits(after) {
            let code = u32::from_str_radix(octal, 8).unwrap_or(0);
            self.out.push_str(&format!("\\x{{{code:X}}}"));
            self.rest = &after[octal.len()..];
            return Ok(());
        }
        let ascii = match (letter, in_class) {
            ('d', false) => Some("[0-9]"),
            ('d', true) => Some("0-9"),
            ('D', _) => Some("[^0-9]"),
            ('w', false) => Some("[0-9A-Za-z_]"),
            ('w', true) => Some("0-9A-Za-z_"),
            ('W', _) => Some("[^0-9A-Za-z_]"),
            ('s', false) => Some("[\\t\\n\\x0C\\r ]"),
            ('s', true) => Some("\\t\\n\\x0C\\r "),
            ('S', _) => Some("[^\\t\\n\\x0C\\r ]"),
            ('b', false) => Some("(?-u:\\b)"),
            ('B', false) => Some("(?-u:\\B)"),
            _ => None,
        };
        self.rest = &after[letter.len_utf8()..];
        match letter {
            _ if ascii.is_some() => self.out.push_str(ascii.unwrap_or_default()),
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'x' | 'p' | 'P' => {
                self.out.push('\\');
                self.out.push(letter);
                // What follows `\x` and `\p` in braces is no repetition.
                if let Some(braced) = self.rest.strip_prefix('{')
                    && let Some(end) = braced.find('}')
                    && matches!(letter, 'x' | 'p' | 'P')
                {
                    self.out.push_str(&self.rest[..end + 2]);
                    self.rest = &self.rest[end + 2..];
                }
            }
            'A' | 'z' if !in_class => {
                self.out.push('\\');
                self.out.push(letter);
            }
            '1'..='9' => return Err("references back to a group are not supported".to_owned()),
            _ if letter.is_ascii_punctuation() => push_literal(&mut self.out, letter),
            _ => return Err(format!("`\\{letter}` is not known")),
        }
        Ok(())
    }

    /// Brackets: everything but `^`, `-` between two letters, escapes and `[:name:]` is literal.
    fn class(&mut self) -> Result<(), String> {
        self.copy('[');
        if self.rest.starts_with('^') {
            self.copy('^');
        }
        let mut first = true;
        loop {
            let Some(letter) = self.rest.chars().next() else {
                return Err("`[` without `]`".to_owned());
            };
            match letter {
                ']' if !first => {
                    self.copy(']');
                    return Ok(());
                }
                '\\' => self.escape(true)?,
                '[' if self.rest.starts_with("[:") && self.rest.contains(":]") => {
                    let end = self.rest.find(":]").unwrap_or_default() + 2;
                    self.out.push_str(&self.rest[..end]);
                    self.rest = &self.rest[end..];
                }
                // A minus at an end is literal, between two letters it makes a range.
                '-' if first || self.rest[1..].starts_with(']') => self.literal('-'),
                '-' => self.range_end()?,
                _ => self.literal(letter),
            }
            first = false;
        }
    }

    /// The minus of a range and the letter behind it.
    fn range_end(&mut self) -> Result<(), String> {
        self.copy('-');
        match self.rest.chars().next() {
            Some('\\') => self.escape(true),
            Some(letter) => {
                self.literal(letter);
                Ok(())
            }
            None => Err("`[` without `]`".to_owned()),
        }
    }
}

/// Writes a literal letter.
fn push_literal(out: &mut String, letter: char) {
    if letter.is_ascii_alphanumeric() || letter == ' ' || !letter.is_ascii() {
        out.push(letter);
    } else {
        out.push_str(&format!("\\x{:02X}", letter as u32));
    }
}

/// Whether `{` begins `{n}`, `{n,}` or `{n,m}`.
fn is_repetition(text: &str) -> bool {
    let Some(end) = text.find('}') else { return false };
    let inner = &text[1..end];
    let (low, high) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    !low.is_empty() && digits(low) && digits(high)
}

/// `\0`, `\012`, `\123`: a zero, or two or three octal digits.
fn octal_digits(text: &str) -> Option<&str> {
    let count = text.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let is_octal = text.starts_with('0') || count >= 2;
    (is_octal && count > 0).then(|| &text[..count])
}

#[cfg(test)]
mod tests;
