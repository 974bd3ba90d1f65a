//! From a grok pattern to one regular expression for the `regex` crate.
//!
//! References are replaced by what they name, and Oniguruma's syntax (with the options that Elasticsearch
//! and Logstash have) is translated on the way: `^` and `$` are the ends of lines, `(?m)` lets `.` match a
//! line feed, `\h` is a hexadecimal digit, groups without a name keep nothing. Classes like `\d`, `\w`, `\s`
//! and `\b` are ASCII. Constructs that need a search with steps back are refused by their names.

use super::library;
use super::name::{self, Type};
use skidder_config::nearest;
use std::collections::BTreeMap;

/// Patterns inside patterns.
const DEPTH_MAX: usize = 64;

/// Bytes of a pattern with everything that it refers to.
const EXPANDED_BYTES_MAX: usize = 256 << 10;

/// A pattern with everything that it refers to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Expanded {
    /// For the `regex` crate.
    pub(super) regex: String,
    /// What the groups are kept as, in the order of their numbers from 1.
    pub(super) captures: Vec<(String, Type)>,
}

/// Where patterns are looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bank<'a> {
    /// The user's.
    pub(super) own: &'a BTreeMap<String, String>,
    /// Fields of ECS instead of those of old.
    pub(super) ecs: bool,
}

impl<'a> Bank<'a> {
    /// Expands a pattern of the configuration.
    pub(super) fn expand(self, pattern: &'a str) -> Result<Expanded, String> {
        self.expand_from(pattern, Vec::new())
    }

    /// Expands one of the user's own patterns, so that a wrong one is refused also where nothing refers to it.
    pub(super) fn expand_own(self, name: &'a str) -> Result<Expanded, String> {
        if !is_name(name) {
            return Err(format!(
                "`{name}` cannot name a pattern: use letters, digits, `_`, `-` and `.`"
            ));
        }
        let text = self.own.get(name).map_or("", String::as_str);
        self.expand_from(text, vec![name]).map_err(|error| format!("pattern `{name}`: {error}"))
    }

    fn expand_from(self, pattern: &'a str, open: Vec<&'a str>) -> Result<Expanded, String> {
        let mut expansion = Expansion { bank: self, open, done: Expanded::default() };
        expansion.text(pattern, false)?;
        Ok(expansion.done)
    }

    /// The text of a pattern, and whether it comes from the library.
    fn find(self, name: &str) -> Option<(&'a str, bool)> {
        let own = self.own.get(name).map(|text| (text.as_str(), false));
        own.or_else(|| library::find(name, self.ecs).map(|text| (text, true)))
    }
}

/// A pattern that is being expanded.
struct Expansion<'a> {
    bank: Bank<'a>,
    /// The patterns around this place.
    open: Vec<&'a str>,
    done: Expanded,
}

impl<'a> Expansion<'a> {
    /// Adds a text; `library`: it comes from the library.
    fn text(&mut self, text: &'a str, library: bool) -> Result<(), String> {
        let mut rest = text;
        while let Some(letter) = rest.chars().next() {
            rest = match letter {
                '%' if rest.starts_with("%{") => self.reference(rest, library)?,
                '\\' => self.escape(rest, false)?,
                '[' => self.class(rest)?,
                '(' => self.group(rest)?,
                '.' => self.dot(rest),
                '^' => self.push("(?m:^)", &rest[1..]),
                '$' => self.push("(?m:$)", &rest[1..]),
                '{' if rest.starts_with("{,") && is_repetition(&rest[1..]) => {
                    self.push("{0", &rest[1..])
                }
                '{' if !is_repetition(rest) => self.push("\\{", &rest[1..]),
                _ => self.push(&rest[..letter.len_utf8()], &rest[letter.len_utf8()..]),
            };
            if self.done.regex.len() > EXPANDED_BYTES_MAX {
                return Err(format!(
                    "it has more than {EXPANDED_BYTES_MAX} bytes with all patterns it refers to; use fewer or \
                     smaller ones"
                ));
            }
        }
        Ok(())
    }

    /// Adds the translation of a piece, and returns the rest after it.
    fn push<'t>(&mut self, text: &str, rest: &'t str) -> &'t str {
        self.done.regex.push_str(text);
        rest
    }

    /// `%{NAME}`, `%{NAME:field}` and `%{NAME:field:type}`.
    fn reference<'t>(&mut self, text: &'t str, library: bool) -> Result<&'t str, String> {
        let Some((inner, rest)) = text[2..].split_once('}') else {
            return Err("`%{` without `}`; a percent sign before a brace is `%\\{`".to_owned());
        };
        let (name, field) = inner.split_once(':').map_or((inner, None), |(n, f)| (n, Some(f)));
        if !is_name(name) {
            return Err(format!(
                "`%{{{inner}}}` is no reference: write `%{{NAME}}`, `%{{NAME:field}}` or `%{{NAME:field:type}}`"
            ));
        }
        let field = field.map(|field| if library { self.choose(field) } else { field });
        match field {
            None => self.done.regex.push_str("(?:"),
            Some("") if library => self.done.regex.push_str("(?:"),
            Some(field) => self.open_capture(field).map_err(|e| format!("`%{{{inner}}}`: {e}"))?,
        }
        self.inside(name)?;
        self.done.regex.push(')');
        Ok(rest)
    }

    /// The field of old or of ECS.
    fn choose<'t>(&self, field: &'t str) -> &'t str {
        match field.split_once('|') {
            Some((_, ecs)) if self.bank.ecs => ecs,
            Some((old, _)) => old,
            None => field,
        }
    }

    /// The definition of a name.
    fn inside(&mut self, name: &str) -> Result<(), String> {
        let Some((text, library)) = self.bank.find(name) else {
            let all = self
                .bank
                .own
                .keys()
                .map(String::as_str)
                .chain(library::names().map(|own| own as &str));
            let near = nearest(name, all);
            let hint = near.map(|near| format!(", or did you mean `{near}`?")).unwrap_or_default();
            return Err(format!(
                "`%{{{name}}}` names no pattern; add `{name}` to `pattern_definitions`{hint}"
            ));
        };
        if let Some(at) = self.open.iter().position(|open| *open == name) {
            let circle = self.open[at..].join(" -> ");
            return Err(format!("a pattern refers to itself: {circle} -> {name}"));
        }
        if self.open.len() >= DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} patterns stand inside each other"));
        }
        let own = self.bank.own.get_key_value(name).map(|(own, _)| own.as_str());
        self.open
            .push(own.or_else(|| library::names().find(|own| *own == name)).unwrap_or_default());
        self.text(text, library).map_err(|error| {
            // The innermost pattern of the user is where the error is.
            let is_here = !library && !error.starts_with("pattern `");
            if is_here { format!("pattern `{name}`: {error}") } else { error }
        })?;
        self.open.pop();
        Ok(())
    }

    fn open_capture(&mut self, field: &str) -> Result<(), String> {
        self.done.captures.push(name::parse(field)?);
        self.done.regex.push('(');
        Ok(())
    }

    /// A dot. Where any number of letters may stand, bytes that are no UTF-8 may stand too: this is also cheaper.
    fn dot<'t>(&mut self, text: &'t str) -> &'t str {
        let rest = &text[1..];
        let is_counted = |rest: &str| rest.starts_with('{');
        match rest.as_bytes().first() {
            Some(b'*') if !is_counted(&rest[1..]) => self.push("(?-u:.)*", &rest[1..]),
            Some(b'+') if !is_counted(&rest[1..]) => self.push(".(?-u:.)*", &rest[1..]),
            _ => self.push(".", rest),
        }
    }

    /// A bracket and the special parts after it.
    fn group<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let Some(special) = text.strip_prefix("(?") else {
            return Ok(self.push("(?:", &text[1..]));
        };
        for (start, what, instead) in REFUSED {
            if special.starts_with(start) {
                return Err(format!("{what} `(?{start}` is not supported: {instead}"));
            }
        }
        let named = [("<", '>'), ("P<", '>'), ("'", '\'')];
        for (start, end) in named {
            if let Some(inner) = special.strip_prefix(start) {
                let Some((field, rest)) = inner.split_once(end) else {
                    return Err(format!("`(?{start}` without `{end}`"));
                };
                self.open_capture(field)
                    .map_err(|error| format!("`(?{start}{field}{end}`: {error}"))?;
                return Ok(rest);
            }
        }
        if let Some(comment) = special.strip_prefix('#') {
            let end = comment.find(')').ok_or("`(?#` without `)`")?;
            return Ok(&comment[end + 1..]);
        }
        if let Some(rest) = special.strip_prefix('>').or_else(|| special.strip_prefix(':')) {
            return Ok(self.push("(?:", rest));
        }
        let end = special.find([':', ')']).ok_or("`(?` without `)`")?;
        let flags = &special[..end];
        if flags.is_empty()
            || !flags.bytes().all(|flag| matches!(flag, b'i' | b'm' | b's' | b'x' | b'-'))
        {
            return Err(format!("`(?{flags}` is not known: the flags are `i`, `m` and `x`"));
        }
        self.done.regex.push_str("(?");
        self.done.regex.push_str(&flags.replace('m', "s"));
        Ok(self.push(&special[end..=end], &special[end + 1..]))
    }

    /// A backslash and what belongs to it.
    fn escape<'t>(&mut self, text: &'t str, in_class: bool) -> Result<&'t str, String> {
        let after = &text[1..];
        let Some(letter) = after.chars().next() else {
            return Err("a backslash at the end".to_owned());
        };
        let rest = &after[letter.len_utf8()..];
        if let Some(class) = ascii_class(letter, in_class) {
            return Ok(self.push(class, rest));
        }
        match letter {
            'a' | 'f' | 't' | 'n' | 'r' | 'v' => Ok(self.push(&text[..2], rest)),
            'A' | 'z' if !in_class => Ok(self.push(&text[..2], rest)),
            'Z' if !in_class => Ok(self.push("\\n?\\z", rest)),
            'R' if !in_class => Ok(self.push("(?:\\r\\n|[\\n\\x0B\\x0C\\r])", rest)),
            'b' if in_class => Ok(self.push("\\x08", rest)),
            'e' => Ok(self.push("\\x1B", rest)),
            '0' => Ok(self.push("\\x00", rest)),
            'x' | 'u' | 'p' | 'P' => {
                // These braces are no repetition.
                let end =
                    if rest.starts_with('{') { rest.find('}').map_or(0, |end| end + 1) } else { 0 };
                let whole = &text[..text.len() - rest.len() + end];
                Ok(self.push(whole, &rest[end..]))
            }
            '1'..='9' => Err(back_reference(&text[..2])),
            'k' if !in_class => Err(back_reference("\\k")),
            'g' if !in_class => {
                Err("the call of a group `\\g` is not supported: use a pattern by its name"
                    .to_owned())
            }
            'G' | 'K' | 'X' if !in_class => {
                Err(format!("`\\{letter}` is not supported: the engine looks at each byte once"))
            }
            _ if letter.is_ascii_alphabetic() => Err(format!("`\\{letter}` is not known")),
            _ if letter.is_ascii_punctuation() || letter == ' ' => {
                let code = format!("\\x{:02X}", letter as u32);
                Ok(self.push(&code, rest))
            }
            _ => Ok(self.push(&after[..letter.len_utf8()], rest)),
        }
    }

    /// Brackets, and those inside.
    fn class<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let mut depth = 0;
        let mut rest = text;
        loop {
            let Some(letter) = rest.chars().next() else {
                return Err("`[` without `]`".to_owned());
            };
            match letter {
                '[' if rest.starts_with("[:") && rest.contains(":]") => {
                    let end = rest.find(":]").unwrap_or_default() + 2;
                    rest = self.push(&rest[..end], &rest[end..]);
                }
                '[' => {
                    depth += 1;
                    rest = self.push("[", &rest[1..]);
                    if rest.starts_with('^') {
                        rest = self.push("^", &rest[1..]);
                    }
                    // One at the start is literal.
                    if rest.starts_with(']') {
                        rest = self.push("\\]", &rest[1..]);
                    }
                }
                ']' => {
                    depth -= 1;
                    rest = self.push("]", &rest[1..]);
                    if depth == 0 {
                        return Ok(rest);
                    }
                }
                '\\' => rest = self.escape(rest, true)?,
                '~' => rest = self.push("\\~", &rest[1..]),
                '-' if rest.starts_with("--") => rest = self.push("\\-", &rest[1..]),
                _ => rest = self.push(&rest[..letter.len_utf8()], &rest[letter.len_utf8()..]),
            }
        }
    }
}

/// Groups that need steps back.
const REFUSED: [(&str, &str, &str); 6] = [
    ("<=", "the look-behind", "let the pattern match what stands before, outside the named group"),
    ("<!", "the look-behind", "use `\\b`, or `^` at the start"),
    ("=", "the look-ahead", "let the pattern match what follows, outside the named group"),
    (
        "!",
        "the look-ahead",
        "say what may stand there, as in `[^,]+`, or put another pattern before this one",
    ),
    ("~", "the absent operator", "say what may stand there, as in `[^,]+`"),
    ("(", "the condition", "use `|`, or another pattern in `patterns`"),
];

fn back_reference(text: &str) -> String {
    format!("the back-reference `{text}` is not supported: write what may stand there once more")
}

fn ascii_class(letter: char, in_class: bool) -> Option<&'static str> {
    Some(match (letter, in_class) {
        ('d', false) => "[0-9]",
        ('d', true) => "0-9",
        ('D', _) => "[^0-9]",
        ('w', false) => "[0-9A-Za-z_]",
        ('w', true) => "0-9A-Za-z_",
        ('W', _) => "[^0-9A-Za-z_]",
        ('s', false) => "[\\t\\n\\x0B\\x0C\\r ]",
        ('s', true) => "\\t\\n\\x0B\\x0C\\r ",
        ('S', _) => "[^\\t\\n\\x0B\\x0C\\r ]",
        ('h', false) => "[0-9A-Fa-f]",
        ('h', true) => "0-9A-Fa-f",
        ('H', _) => "[^0-9A-Fa-f]",
        ('b', false) => "(?-u:\\b)",
        ('B', false) => "(?-u:\\B)",
        _ => return None,
    })
}

/// Whether a pattern can have this name.
fn is_name(name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !name.is_empty() && name.bytes().all(is_letter)
}

/// Whether `{` begins `{n}`, `{n,}`, `{,m}` or `{n,m}`; also without the brace, for `{,m}`.
fn is_repetition(text: &str) -> bool {
    let text = text.strip_prefix('{').unwrap_or(text);
    let Some((inner, _)) = text.split_once('}') else { return false };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        Some((low, high)) => digits(low) && digits(high) && !(low.is_empty() && high.is_empty()),
        None => digits(inner) && !inner.is_empty(),
    }
}
