//! File patterns with the meaning of Go's `filepath.Glob`, and `**`.
//!
//! `*` any run of characters but `/`, `?` one character, `[a-z]` and `[^a-z]` classes, `\` takes the
//! next character literally. There is no `{a,b}`. The rightmost part `**` stands for 0 to 8 directory
//! levels; any other `**` is the same as `*`. Hidden files are matched.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directory levels that `**` stands for at most, as in Filebeat.
pub const RECURSIVE_LEVELS_MAX: usize = 8;

/// A pattern, split into the parts of its path.
#[derive(Clone, Debug, PartialEq)]
pub struct Pattern {
    text: String,
    /// The part before the first wildcard.
    root: PathBuf,
    parts: Vec<Part>,
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// Exactly this name.
    Name(OsString),
    /// Names that match.
    Wild(Wildcard),
    /// 0 to [`RECURSIVE_LEVELS_MAX`] directories.
    Recursive,
}

/// A part with wildcards. Clones share it: a container's has the 64 characters of its id.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wildcard(Arc<[Token]>);

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Any,
    One,
    /// These characters.
    Text(Box<str>),
    Class {
        negated: bool,
        ranges: Vec<(char, char)>,
    },
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Nothing was given.
    #[error("a path is empty")]
    Empty,
    /// A `[` that never ends, or an empty one.
    #[error("the `[` in `{0}` is not closed, or has nothing in it; write `\\[` for the character")]
    Class(String),
    /// A `\` at the end.
    #[error("`{0}` ends with a `\\` that escapes nothing")]
    Escape(String),
}

impl Pattern {
    /// Splits a pattern; relative ones are taken from `directory`. With `recursive` off, `**` is `*`.
    pub fn parse(text: &str, directory: &Path, recursive: bool) -> Result<Self, PatternError> {
        if text.is_empty() {
            return Err(PatternError::Empty);
        }
        let absolute = directory.join(text);
        let whole = absolute.to_string_lossy().into_owned();
        let names: Vec<&str> =
            whole.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        let rightmost = names.iter().rposition(|name| *name == "**").filter(|_| recursive);
        let mut root = PathBuf::from("/");
        let mut parts = Vec::new();
        for (at, name) in names.iter().enumerate() {
            if Some(at) == rightmost {
                parts.push(Part::Recursive);
            } else if name.contains(['*', '?', '[', '\\']) {
                parts.push(Part::Wild(Wildcard::parse(name)?));
            } else if parts.is_empty() && at + 1 < names.len() {
                root.push(name);
            } else {
                parts.push(Part::Name(OsString::from(name)));
            }
        }
        if parts.last() == Some(&Part::Recursive) {
            // `dir/**` means the files at any level below, as `dir/**/*` does.
            parts.push(Part::Wild(Wildcard(Arc::new([Token::Any]))));
        }
        parts.shrink_to_fit();
        root.shrink_to_fit();
        Ok(Self { text: text.to_owned(), root, parts })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The directory before the first wildcard.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether a path may be one that this pattern finds.
    pub fn covers(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.root) else { return false };
        let names: Vec<&OsStr> = rest.iter().collect();
        covers(&self.parts, &names)
    }

    /// The only path that it can match, if it has no wildcard.
    pub(crate) fn only_path(&self) -> Option<PathBuf> {
        let mut path = self.root.clone();
        for part in &self.parts {
            match part {
                Part::Name(name) => path.push(name),
                Part::Wild(_) | Part::Recursive => return None,
            }
        }
        Some(path)
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.parts
    }
}

fn covers(parts: &[Part], names: &[&OsStr]) -> bool {
    match (parts, names) {
        ([], []) => true,
        ([Part::Recursive, rest @ ..], names) => {
            let levels = names.len().min(RECURSIVE_LEVELS_MAX);
            (0..=levels).any(|level| covers(rest, &names[level..]))
        }
        ([part, parts @ ..], [name, names @ ..]) => {
            let fits = match part {
                Part::Name(wanted) => wanted == name,
                Part::Wild(wildcard) => wildcard.matches(name),
                Part::Recursive => true,
            };
            fits && covers(parts, names)
        }
        _ => false,
    }
}

impl Part {
    /// Whether a file of this name matches, as the last part of a path.
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Name(only) => only == name,
            Self::Wild(wildcard) => wildcard.matches(name),
            Self::Recursive => false,
        }
    }
}

impl Wildcard {
    fn parse(text: &str) -> Result<Self, PatternError> {
        let mut tokens = Vec::new();
        let mut plain = String::new();
        let mut rest = text.chars();
        while let Some(letter) = rest.next() {
            let token = match letter {
                '*' => Token::Any,
                '?' => Token::One,
                '[' => class(&mut rest).ok_or_else(|| PatternError::Class(text.to_owned()))?,
                '\\' => {
                    plain.push(rest.next().ok_or_else(|| PatternError::Escape(text.to_owned()))?);
                    continue;
                }
                letter => {
                    plain.push(letter);
                    continue;
                }
            };
            if !plain.is_empty() {
                tokens.push(Token::Text(std::mem::take(&mut plain).into()));
            }
            if token != Token::Any || tokens.last() != Some(&Token::Any) {
                tokens.push(token);
            }
        }
        if !plain.is_empty() {
            tokens.push(Token::Text(plain.into()));
        }
        Ok(Self(tokens.into()))
    }

    /// Whether a name matches. Bytes that are not UTF-8 count as one character each.
    pub(crate) fn matches(&self, name: &OsStr) -> bool {
        let text = String::from_utf8_lossy(name.as_bytes());
        // Most names that do not match have another end, such as the id of another container.
        if let Some(Token::Text(end)) = self.0.last()
            && !text.ends_with(&**end)
        {
            return false;
        }
        matches(&self.0, &text)
    }
}

fn class(rest: &mut std::str::Chars<'_>) -> Option<Token> {
    let negated = rest.as_str().starts_with('^');
    if negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        let mut low = rest.next()?;
        if low == ']' && !ranges.is_empty() {
            return Some(Token::Class { negated, ranges });
        }
        if low == ']' || low == '-' {
            return None;
        }
        if low == '\\' {
            low = rest.next()?;
        }
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = rest.next().filter(|&high| high != ']')?;
            if high == '\\' {
                high = rest.next()?;
            }
        }
        ranges.push((low, high));
    }
}

/// Backtracks only to the last `*`, which is enough and keeps it linear times the number of stars.
fn matches(tokens: &[Token], text: &str) -> bool {
    let (mut at, mut rest) = (0, text);
    let mut star: Option<(usize, &str)> = None;
    loop {
        if tokens.get(at) == Some(&Token::Any) {
            star = Some((at + 1, rest));
            at += 1;
            continue;
        }
        let next = match tokens.get(at) {
            None if rest.is_empty() => return true,
            None => None,
            Some(token) => token.strip(rest),
        };
        if let Some(next) = next {
            at += 1;
            rest = next;
            continue;
        }
        let Some((after, from)) = star else { return false };
        let Some(skipped) = from.chars().next() else { return false };
        rest = &from[skipped.len_utf8()..];
        star = Some((after, rest));
        at = after;
    }
}

impl Token {
    /// The text behind what this matches at its beginning; `None` if it does not.
    fn strip<'a>(&self, text: &'a str) -> Option<&'a str> {
        if let Self::Text(wanted) = self {
            return text.strip_prefix(&**wanted);
        }
        let letter = text.chars().next()?;
        let fits = match self {
            Self::Any | Self::Text(_) => unreachable!("handled by the caller and above"),
            Self::One => true,
            Self::Class { negated, ranges } => {
                ranges.iter().any(|&(low, high)| low <= letter && letter <= high) != *negated
            }
        };
        fits.then(|| &text[letter.len_utf8()..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_go() {
        let cases = [
            ("*.log", "a.log", true),
            ("*.log", ".log", true),
            ("*.log", "a.log.1", false),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcdef", false),
            ("?.log", "ä.log", true),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[\\]]x", "]x", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("*", ".hidden", true),
            ("*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaa", false),
            ("app.log*", "app.log.2.gz", true),
            ("*-abc.log", "web_shop-abc.log", true),
            ("*-abc.log", "web_shop-abd.log", false),
            ("*ab*ab", "abab", true),
            ("*ab*ab", "ab", false),
            ("*aab", "aaab", true),
            ("a**b", "ab", true),
            ("", "", true),
            ("ab", "abc", false),
        ];
        for (pattern, name, expected) in cases {
            let wildcard = Wildcard::parse(pattern).unwrap();
            assert_eq!(wildcard.matches(OsStr::new(name)), expected, "{pattern} on {name}");
        }
    }

    #[test]
    fn bad_patterns_say_what_is_wrong() {
        let parse = |text| Pattern::parse(text, Path::new("/"), true);
        assert_eq!(parse("").unwrap_err(), PatternError::Empty);
        assert!(matches!(parse("/a/[b").unwrap_err(), PatternError::Class(_)));
        assert!(matches!(parse("/a/[]b").unwrap_err(), PatternError::Class(_)));
        assert!(matches!(parse("/a/b\\").unwrap_err(), PatternError::Escape(_)));
    }

    #[test]
    fn only_the_rightmost_double_star_recurses() {
        let pattern = Pattern::parse("/var/**/log/**/*.log", Path::new("/"), true).unwrap();
        assert_eq!(pattern.root(), Path::new("/var"));
        let kinds: Vec<bool> =
            pattern.parts().iter().map(|part| *part == Part::Recursive).collect();
        assert_eq!(kinds, [false, false, true, false]);
        let off = Pattern::parse("/var/**/*.log", Path::new("/"), false).unwrap();
        assert!(!off.parts().contains(&Part::Recursive));
    }

    #[test]
    fn a_pattern_covers_the_paths_that_it_finds() {
        let covers = |pattern: &str, path: &str| {
            Pattern::parse(pattern, Path::new("/"), true).unwrap().covers(Path::new(path))
        };
        assert!(covers("/var/log/*.log", "/var/log/a.log"));
        assert!(!covers("/var/log/*.log", "/var/log/a/b.log"));
        assert!(covers("/var/log/**/*.log", "/var/log/a.log"));
        assert!(covers("/var/log/**/*.log", "/var/log/a/b/c.log"));
        assert!(!covers("/var/log/**/*.log", "/var/lib/a.log"));
        assert!(covers("/var/log/a.log", "/var/log/a.log"));
        assert!(!covers("/var/log/a.log", "/var/log/b.log"));
    }

    #[test]
    fn relative_patterns_are_taken_from_the_directory() {
        let pattern = Pattern::parse("logs/*.log", Path::new("/srv"), true).unwrap();
        assert_eq!(pattern.root(), Path::new("/srv/logs"));
    }
}
