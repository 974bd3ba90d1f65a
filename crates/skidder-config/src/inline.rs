//! Values written on one line outside YAML: after `-E key=` and in environment variables.
//!
//! A superset of JSON: `true`, `on`, `12`, `0x1f`, `1.5`, `a,b` (a list), `[a, b]`, `{k: v}`,
//! `"escaped"`, `'as it is'`, anything else is text. The rules follow go-ucfg's `parse.Value`
//! (<https://github.com/elastic/go-ucfg/blob/main/parse/parse.go>); unlike it, the original text is
//! kept beside the value, so that a password `a,b` or `007` survives.

use crate::node::{Content, Entry, Map, Node};
use crate::problem::Position;
use crate::scalar;

/// Levels of brackets; deeper is an error.
const DEPTH_MAX: usize = 32;

/// The error in an inline value; a sentence part for messages.
pub(crate) type InlineError = String;

/// Parses a whole inline value. The result keeps `text` unless it is one quoted string.
pub(crate) fn parse(text: &str, position: &Position) -> Result<Node, InlineError> {
    let mut parser = Inline { rest: text.trim(), position, depth: 0 };
    let mut values = Vec::new();
    loop {
        values.push(parser.value(",")?);
        parser.skip_space();
        if parser.rest.is_empty() {
            break;
        }
        parser.expect(',')?;
        parser.skip_space();
        // A trailing comma makes a list, but adds no empty item to it.
        if parser.rest.is_empty() {
            return Ok(list(values, text, position));
        }
    }
    if values.len() > 1 {
        return Ok(list(values, text, position));
    }
    let mut only = values.remove(0);
    if only.text.is_none() {
        only.text = Some(text.to_owned());
    }
    Ok(only)
}

/// Like [`parse`], but what does not parse is text.
pub(crate) fn parse_or_text(text: &str, position: &Position) -> Node {
    parse(text, position).unwrap_or_else(|_| Node::scalar(position.clone(), Content::String, text))
}

fn list(values: Vec<Node>, text: &str, position: &Position) -> Node {
    let mut node = Node::collection(position.clone(), Content::List(values));
    node.text = Some(text.to_owned());
    node
}

struct Inline<'a> {
    rest: &'a str,
    position: &'a Position,
    depth: usize,
}

impl<'a> Inline<'a> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn expect(&mut self, wanted: char) -> Result<(), InlineError> {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => Err(format!("expected `{wanted}` before `{}`", self.rest)),
        }
    }

    /// One value; an unquoted word ends before any character of `stops`.
    fn value(&mut self, stops: &str) -> Result<Node, InlineError> {
        self.skip_space();
        match self.rest.chars().next() {
            Some('[') => self.nested(Self::array),
            Some('{') => self.nested(Self::object),
            Some('"') => Ok(self.text(Self::double_quoted)?),
            Some('\'') => Ok(self.text(Self::single_quoted)?),
            _ => self.word(stops),
        }
    }

    fn nested(
        &mut self,
        inner: fn(&mut Self) -> Result<Content, InlineError>,
    ) -> Result<Node, InlineError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("brackets are nested more than {DEPTH_MAX} levels deep"));
        }
        self.rest = &self.rest[1..];
        let content = inner(self)?;
        self.depth -= 1;
        Ok(Node::collection(self.position.clone(), content))
    }

    fn text(
        &mut self,
        inner: fn(&mut Self) -> Result<String, InlineError>,
    ) -> Result<Node, InlineError> {
        let text = inner(self)?;
        Ok(Node::scalar(self.position.clone(), Content::String, text))
    }

    fn array(&mut self) -> Result<Content, InlineError> {
        let mut values = Vec::new();
        loop {
            self.skip_space();
            if self.rest.starts_with(']') {
                break;
            }
            values.push(self.value(",]")?);
            self.skip_space();
            if !self.rest.starts_with(',') {
                break;
            }
            self.rest = &self.rest[1..];
        }
        self.expect(']').map_err(|_| "the closing `]` is missing".to_owned())?;
        Ok(Content::List(values))
    }

    fn object(&mut self) -> Result<Content, InlineError> {
        let mut map = Map::default();
        loop {
            self.skip_space();
            if self.rest.starts_with('}') {
                break;
            }
            let key = self.key()?;
            self.skip_space();
            self.expect(':').map_err(|_| format!("expected `:` after the key `{key}`"))?;
            let value = self.value(",}")?;
            let key_position = self.position.clone();
            map.insert(Entry { key, key_position, value, indexed: false });
            self.skip_space();
            if !self.rest.starts_with(',') {
                break;
            }
            self.rest = &self.rest[1..];
        }
        self.expect('}').map_err(|_| "the closing `}` is missing".to_owned())?;
        Ok(Content::Map(map))
    }

    fn key(&mut self) -> Result<String, InlineError> {
        match self.rest.chars().next() {
            Some('"') => self.double_quoted(),
            Some('\'') => self.single_quoted(),
            _ => Ok(self.until(":,}")?.to_owned()),
        }
    }

    fn until(&mut self, stops: &str) -> Result<&'a str, InlineError> {
        let end = self.rest.find(|found| stops.contains(found)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(match self.rest.chars().next() {
                Some(found) => format!("unexpected `{found}`"),
                None => "the value ends too early".to_owned(),
            });
        }
        let word = self.rest[..end].trim();
        self.rest = &self.rest[end..];
        Ok(word)
    }

    fn word(&mut self, stops: &str) -> Result<Node, InlineError> {
        if self.rest.is_empty() && self.depth == 0 {
            return Ok(Node::scalar(self.position.clone(), Content::String, ""));
        }
        let word = self.until(stops)?;
        Ok(Node::scalar(self.position.clone(), meaning(word), word))
    }

    fn single_quoted(&mut self) -> Result<String, InlineError> {
        let inner = &self.rest[1..];
        let end = inner.find('\'').ok_or("the closing `'` is missing")?;
        self.rest = &inner[end + 1..];
        Ok(inner[..end].to_owned())
    }

    fn double_quoted(&mut self) -> Result<String, InlineError> {
        let mut text = String::new();
        let mut rest = self.rest[1..].chars();
        while let Some(next) = rest.next() {
            match next {
                '"' => {
                    self.rest = rest.as_str();
                    return Ok(text);
                }
                '\\' => {
                    let (character, after) = escape(rest.as_str())?;
                    text.push(character);
                    rest = after.chars();
                }
                other => text.push(other),
            }
        }
        Err("the closing `\"` is missing".to_owned())
    }
}

/// The character of an escape, given what follows the backslash, and the text after it.
fn escape(text: &str) -> Result<(char, &str), InlineError> {
    let mut characters = text.chars();
    let simple = match characters.next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('a') => '\x07',
        Some('b') => '\x08',
        Some('f') => '\x0c',
        Some('v') => '\x0b',
        Some(same @ ('"' | '\\' | '\'' | '/')) => same,
        Some(kind @ ('x' | 'u' | 'U')) => {
            let digits = match kind {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            let code = characters.as_str().get(..digits).ok_or("an escape is cut short")?;
            let number = u32::from_str_radix(code, 16).map_err(|_| bad_escape(code))?;
            let character = char::from_u32(number).ok_or_else(|| bad_escape(code))?;
            return Ok((character, &characters.as_str()[digits..]));
        }
        Some(other) => return Err(bad_escape(&other.to_string())),
        None => return Err("the closing `\"` is missing".to_owned()),
    };
    Ok((simple, characters.as_str()))
}

fn bad_escape(what: &str) -> String {
    format!("unknown escape `\\{what}`; use single quotes to keep backslashes")
}

/// What an unquoted word means: fewer booleans than YAML, the same numbers.
fn meaning(word: &str) -> Content {
    match word {
        "null" => return Content::Null,
        "t" | "T" | "true" | "TRUE" | "True" | "on" | "ON" => return Content::Bool(true),
        "f" | "F" | "false" | "FALSE" | "False" | "off" | "OFF" => return Content::Bool(false),
        _ => {}
    }
    if word.starts_with('_') || word.ends_with('_') || word.contains("__") {
        return Content::String;
    }
    scalar::number(&word.replace('_', "")).unwrap_or(Content::String)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Value;
    use crate::problem::Source;

    fn shown(text: &str) -> String {
        let position = Position::whole(&Source::new(0, "test"));
        match parse(text, &position) {
            Ok(node) => compact(&node.to_value()),
            Err(error) => format!("error: {error}"),
        }
    }

    fn compact(value: &Value) -> String {
        match value {
            Value::List(list) => {
                format!("[{}]", list.iter().map(compact).collect::<Vec<_>>().join(","))
            }
            Value::Map(map) => {
                let parts: Vec<_> =
                    map.iter().map(|(key, value)| format!("{key}:{}", compact(value))).collect();
                format!("{{{}}}", parts.join(","))
            }
            Value::String(text) => format!("{text:?}"),
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::UInt(value) => value.to_string(),
            Value::Float(value) => format!("{value:?}"),
        }
    }

    #[test]
    fn inline_values_are_parsed_like_go_ucfg() {
        let table = [
            ("", "\"\""),
            ("null", "null"),
            ("true", "true"),
            ("on", "true"),
            ("yes", "\"yes\""),
            ("23", "23"),
            ("-42", "-42"),
            ("3.14", "3.14"),
            ("0644", "420"),
            ("1_000", "1000"),
            ("1_", "\"1_\""),
            ("inf", "\"inf\""),
            (" plain string ", "\"plain string\""),
            ("string : with :: colons", "\"string : with :: colons\""),
            (r"C:\Windows\Path", r#""C:\\Windows\\Path""#),
            ("'single, quoted'", "\"single, quoted\""),
            (r#""double \"q\" \u00e4\n""#, r#""double \"q\" ä\n""#),
            ("a,b,c", r#"["a","b","c"]"#),
            ("a,", r#"["a"]"#),
            ("[]", "[]"),
            ("[array, 1, true, \"abc\"]", r#"["array",1,true,"abc"]"#),
            ("[test, [1,2,3], on]", r#"["test",[1,2,3],true]"#),
            ("[host1:1234, host2:1234]", r#"["host1:1234","host2:1234"]"#),
            ("{}", "{}"),
            (
                "{'key1': true, \"key2\": 1, key 3: ['test', off], n: {\"a\" : 2}}",
                r#"{key 3:["test",false],key1:true,key2:1,n:{a:2}}"#,
            ),
            ("{k: 1},{k: 2}", "[{k:1},{k:2}]"),
            ("[a", "error: the closing `]` is missing"),
            ("{a", "error: expected `:` after the key `a`"),
            ("{a: 1", "error: the closing `}` is missing"),
            ("'a", "error: the closing `'` is missing"),
            ("[1] x", "error: expected `,` before `x`"),
            (",a", "error: unexpected `,`"),
            (r#""\q""#, r"error: unknown escape `\q`; use single quotes to keep backslashes"),
        ];
        for (text, expected) in table {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn the_original_text_stays_beside_a_list() {
        let position = Position::whole(&Source::new(0, "test"));
        assert_eq!(parse("p4ss,word", &position).unwrap().text(), Some("p4ss,word"));
        assert_eq!(parse("'a,b'", &position).unwrap().text(), Some("a,b"));
        assert_eq!(parse("007", &position).unwrap().text(), Some("007"));
        assert_eq!(parse_or_text("{broken", &position).text(), Some("{broken"));
    }

    #[test]
    fn brackets_beyond_the_bound_are_an_error() {
        assert!(shown(&"[".repeat(10_000)).starts_with("error: brackets"));
    }
}
