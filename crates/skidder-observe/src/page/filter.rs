//! The filter for events: words, fields, a level, a source.
//!
//! Terms must all hold: `word`, `"some words"`, `field:value`, `field:*`, each negated by `-`
//! before it. A word is looked for in all values of an event, a value in the one of its field. Letters of ASCII are the same
//! in both cases; others have to be as they are.

use super::query::Query;
use serde_json::Value as Json;

/// A condition on an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    terms: Vec<Term>,
    source: Option<String>,
    level: Option<String>,
    output: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    not: bool,
    field: Option<String>,
    text: String,
    /// As it stands in JSON, so that most events need not be taken apart.
    raw: Vec<u8>,
}

/// An event as it is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate<'a> {
    pub(crate) document: &'a [u8],
    pub(crate) source: &'a str,
    pub(crate) output: Option<&'a str>,
}

impl Filter {
    /// Reads `q`, `source`, `level` and `output`.
    pub(crate) fn parse(query: &Query) -> Self {
        let text = |name| query.get(name).map(str::to_owned);
        Self {
            terms: terms(query.get("q").unwrap_or_default()),
            source: text("source"),
            level: text("level"),
            output: text("output"),
        }
    }

    /// Reads `q` alone, for lines of files.
    pub(crate) fn parse_terms(query: &Query) -> Self {
        Self { terms: terms(query.get("q").unwrap_or_default()), ..Self::default() }
    }

    /// Whether all terms hold of a line as it stands in a file. Only a line of JSON has fields.
    pub(crate) fn holds_line(&self, line: &[u8]) -> bool {
        let words =
            |term: &Term| term.field.is_some() || has(line, term.text.as_bytes()) != term.not;
        if !self.terms.iter().all(words) {
            return false;
        }
        let mut fields = self.terms.iter().filter(|term| term.field.is_some()).peekable();
        if fields.peek().is_none() {
            return true;
        }
        let possible = |term: &Term| term.not || term.is_everything() || has(line, &term.raw);
        if !self.terms.iter().all(possible) {
            return false;
        }
        let is_object = line.trim_ascii_start().first() == Some(&b'{');
        let event = is_object.then(|| serde_json::from_slice::<Json>(line).ok()).flatten();
        fields.all(|term| event.as_ref().is_some_and(|event| term.holds(event)) != term.not)
    }

    /// Whether all of it holds.
    pub(crate) fn holds(&self, of: Candidate<'_>) -> bool {
        let of_source = |wanted: &String| has(of.source.as_bytes(), wanted.as_bytes());
        if !self.source.as_ref().is_none_or(of_source)
            || self.output.as_ref().is_some_and(|wanted| of.output != Some(wanted))
        {
            return false;
        }
        let possible =
            |term: &Term| term.not || term.is_everything() || has(of.document, &term.raw);
        if !self.terms.iter().all(possible)
            || !self.level.as_ref().is_none_or(|level| has(of.document, level.as_bytes()))
        {
            return false;
        }
        if self.terms.is_empty() && self.level.is_none() {
            return true;
        }
        let Ok(event) = serde_json::from_slice::<Json>(of.document) else { return false };
        let is_level = |level: &String| {
            let found = field(&event, "log.level").and_then(Json::as_str);
            found.is_some_and(|found| found.eq_ignore_ascii_case(level))
        };
        self.level.as_ref().is_none_or(is_level)
            && self.terms.iter().all(|term| term.holds(&event) != term.not)
    }
}

impl Term {
    fn is_everything(&self) -> bool {
        self.field.is_some() && self.text == "*"
    }

    fn holds(&self, event: &Json) -> bool {
        let Some(name) = &self.field else { return any(event, self.text.as_bytes()) };
        match field(event, name) {
            None => false,
            Some(_) if self.text == "*" => true,
            Some(value) => any(value, self.text.as_bytes()),
        }
    }
}

/// Takes a line of terms apart. A term without `field:value` is a word: `12:30:01`, `http://host`, `:x`.
fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let not = rest.len() > 1 && rest.starts_with('-') && !rest.starts_with("- ");
        rest = &rest[usize::from(not)..];
        let name_end = rest.find(|letter: char| !is_of_name(letter)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(name_end);
        let begins =
            name.starts_with(|letter: char| letter.is_alphabetic() || "_@".contains(letter));
        let value = behind.strip_prefix(':').filter(|value| {
            begins
                && !value.starts_with("//")
                && !value.starts_with(char::is_whitespace)
                && !value.is_empty()
        });
        let field = value.map(|_| name.to_owned());
        let (word, behind) = word(value.unwrap_or(rest));
        rest = behind.trim_start();
        if word.is_empty() {
            continue;
        }
        let raw = serde_json::to_string(word).unwrap_or_default();
        let raw = raw.trim_matches('"').as_bytes();
        // Escaped text may be written in another way: then every event is taken apart.
        let raw = if raw == word.as_bytes() { raw.to_vec() } else { Vec::new() };
        terms.push(Term { not, field, text: word.to_owned(), raw });
    }
    terms
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || "_@.-".contains(letter)
}

/// The first word, or what stands in quotes, and the rest.
fn word(text: &str) -> (&str, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted.split_once('"').unwrap_or((quoted, ""));
    }
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// The value at a dotted path; a key may have dots itself.
pub(crate) fn field<'a>(event: &'a Json, path: &str) -> Option<&'a Json> {
    if let Some(value) = event.get(path) {
        return Some(value);
    }
    let dots = path.match_indices('.').map(|(at, _)| at);
    dots.into_iter().find_map(|at| field(event.get(&path[..at])?, &path[at + 1..]))
}

/// Whether a value, or one inside of it, has the text.
fn any(value: &Json, text: &[u8]) -> bool {
    match value {
        Json::Null => text.eq_ignore_ascii_case(b"null"),
        Json::Bool(flag) => has(if *flag { b"true" } else { b"false" }, text),
        Json::Number(number) => has(number.to_string().as_bytes(), text),
        Json::String(found) => has(found.as_bytes(), text),
        Json::Array(list) => list.iter().any(|value| any(value, text)),
        Json::Object(map) => map.values().any(|value| any(value, text)),
    }
}

/// Whether the text stands somewhere in the bytes; letters of ASCII in either case.
pub(crate) fn has(bytes: &[u8], text: &[u8]) -> bool {
    let Some((&first, rest)) = text.split_first() else { return true };
    let (small, large) = (first.to_ascii_lowercase(), first.to_ascii_uppercase());
    let mut from = 0;
    while let Some(at) = memchr::memchr2(small, large, &bytes[from..]) {
        let behind = from + at + 1;
        let Some(found) = bytes.get(behind..behind + rest.len()) else { return false };
        if found.eq_ignore_ascii_case(rest) {
            return true;
        }
        from = behind;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(query: &str) -> bool {
        let document = br#"{"@timestamp":"2026-11-22T20:00:00.000Z","message":"GET \"/cart\" took 12:30 at http://shop",
            "log":{"level":"ERROR","file":{"path":"/var/log/shop.log"}},"svc.team":"Shop","n":404,"tags":["a","b"]}"#;
        let filter = Filter::parse(&Query::parse(query));
        filter.holds(Candidate { document, source: "/var/log/shop.log", output: Some("es") })
    }

    #[test]
    fn terms_hold_all_together() {
        for yes in [
            "",
            "q=cart",
            "q=CART",
            "q=get+took",
            "q=\"took+12\"",
            "q=12:30",
            "q=http://shop",
            "q=log.level:error",
            "q=svc.team:shop",
            "q=n:404",
            "q=tags:b",
            "q=n:*",
            "q=-nothing",
            "q=-n:500",
            "level=error",
            "source=SHOP.log",
            "output=es",
            "q=\"/cart",
            "q=message:cart+n:4",
            "q=-",
            "q=-+took",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in [
            "q=nothing",
            "q=cart+nothing",
            "q=-cart",
            "q=log.level:info",
            "q=n:500",
            "q=x:*",
            "level=info",
            "source=other",
            "output=kafka",
            "q=message:shop.log",
            "q=-n:*",
        ] {
            assert!(!holds(no), "{no}");
        }
    }

    #[test]
    fn names_of_fields_are_no_text() {
        assert!(!holds("q=tags"), "a name");
        assert!(holds("q=log.file.path:shop"), "a path to a value");
    }
}
