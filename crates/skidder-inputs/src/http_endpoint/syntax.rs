//! Where a JSON value ends, strictly, with the messages of Go's `encoding/json` for what is no JSON.
//!
//! Only for bodies that are not one object a line, and for those with an error.

use skidder_parse::json::string_of;
use std::ops::Range;

/// Objects and lists inside each other, as in Go.
const DEPTH_MAX: usize = 10_000;

/// The end of the value that begins at `start`, which is no white space.
///
/// # Errors
/// Go's message.
pub(super) fn value_end(body: &[u8], start: usize) -> Result<usize, String> {
    Walk { body, at: start, open: Vec::new() }.value()
}

/// The members of the object that begins at `start`: their names, and where their values stand.
///
/// # Errors
/// Go's message.
pub(super) fn members(body: &[u8], start: usize) -> Result<Vec<(String, Range<usize>)>, String> {
    let end = value_end(body, start)?;
    let (mut at, mut found) = (start + 1, Vec::new());
    loop {
        at = skip_space(body, at);
        match body.get(at) {
            Some(b',') => at += 1,
            Some(b'"') => {
                let name_end = value_end(body, at)?;
                let name = string_of(&body[at..name_end]).map_err(|error| error.to_string())?;
                // It was checked that a colon follows.
                let value = skip_space(body, skip_space(body, name_end) + 1);
                at = value_end(body, value)?;
                found.push((name, value..at));
            }
            _ => {
                debug_assert_eq!(at + 1, end, "an object ends with its bracket");
                return Ok(found);
            }
        }
    }
}

/// The first place from `at` on that is no white space.
pub(super) fn skip_space(body: &[u8], mut at: usize) -> usize {
    while matches!(body.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

struct Walk<'a> {
    body: &'a [u8],
    at: usize,
    /// `}` or `]` of what is open.
    open: Vec<u8>,
}

impl Walk<'_> {
    fn value(&mut self) -> Result<usize, String> {
        loop {
            // A value begins.
            self.at = skip_space(self.body, self.at);
            match self.here()? {
                b'{' => {
                    self.push(b'}')?;
                    self.at = skip_space(self.body, self.at + 1);
                    match self.here()? {
                        b'}' => {}
                        _ => {
                            self.key()?;
                            continue;
                        }
                    }
                }
                b'[' => {
                    self.push(b']')?;
                    self.at = skip_space(self.body, self.at + 1);
                    if self.here()? != b']' {
                        continue;
                    }
                }
                b'"' => self.string()?,
                b'-' | b'0'..=b'9' => self.number()?,
                b't' => self.word(b"true")?,
                b'f' => self.word(b"false")?,
                b'n' => self.word(b"null")?,
                _ => return self.fail("looking for beginning of value"),
            }
            if self.after()? {
                return Ok(self.at);
            }
        }
    }

    /// Behind a value, or at the closing bracket of an empty one; returns whether the root is complete.
    fn after(&mut self) -> Result<bool, String> {
        loop {
            let Some(&closing) = self.open.last() else { return Ok(true) };
            self.at = skip_space(self.body, self.at);
            let context = match closing {
                b'}' => "after object key:value pair",
                _ => "after array element",
            };
            match self.here()? {
                b',' => {
                    self.at += 1;
                    if closing == b'}' {
                        self.at = skip_space(self.body, self.at);
                        self.key()?;
                    }
                    return Ok(false);
                }
                byte if byte == closing => {
                    self.open.pop();
                    self.at += 1;
                }
                _ => return self.fail(context),
            }
        }
    }

    fn push(&mut self, closing: u8) -> Result<(), String> {
        self.open.push(closing);
        if self.open.len() > DEPTH_MAX {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }

    fn key(&mut self) -> Result<(), String> {
        if self.here()? != b'"' {
            return self.fail("looking for beginning of object key string");
        }
        self.string()?;
        self.at = skip_space(self.body, self.at);
        if self.here()? != b':' {
            return self.fail("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<(), String> {
        self.at += 1;
        loop {
            match self.here()? {
                b'"' => break,
                b'\\' => {
                    self.at += 1;
                    match self.here()? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                        b'u' => {
                            for _ in 0..4 {
                                self.at += 1;
                                let context = "in \\u hexadecimal character escape";
                                if !self.here()?.is_ascii_hexdigit() {
                                    return self.fail(context);
                                }
                            }
                        }
                        _ => return self.fail("in string escape code"),
                    }
                }
                0..0x20 => return self.fail("in string literal"),
                _ => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<(), String> {
        if self.here()? == b'-' {
            self.at += 1;
        }
        match self.here()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits(),
            _ => return self.fail("in numeric literal"),
        }
        if self.body.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.body.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.here()?, b'+' | b'-') {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, context: &str) -> Result<(), String> {
        if !self.here()?.is_ascii_digit() {
            return self.fail(context);
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.body.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), String> {
        for &expected in word {
            let context = || {
                let (word, letter) = (String::from_utf8_lossy(word), char::from(expected));
                format!("in literal {word} (expecting '{letter}')")
            };
            if self.here()? != expected {
                return self.fail(&context());
            }
            self.at += 1;
        }
        Ok(())
    }

    fn here(&self) -> Result<u8, String> {
        self.body.get(self.at).copied().ok_or_else(|| "unexpected EOF".to_owned())
    }

    fn fail<T>(&self, context: &str) -> Result<T, String> {
        let byte = self.body.get(self.at).copied().unwrap_or_default();
        let quoted = match byte {
            b'\'' => r"'\''".to_owned(),
            b'"' => "'\"'".to_owned(),
            b'\\' => r"'\\'".to_owned(),
            b'\n' => r"'\n'".to_owned(),
            b'\r' => r"'\r'".to_owned(),
            b'\t' => r"'\t'".to_owned(),
            0x07 => r"'\a'".to_owned(),
            0x08 => r"'\b'".to_owned(),
            0x0b => r"'\v'".to_owned(),
            0x0c => r"'\f'".to_owned(),
            byte if byte < 0x20 || byte == 0x7f => format!(r"'\x{byte:02x}'"),
            byte @ (0x80..0xa1 | 0xad) => format!(r"'\u{byte:04x}'"),
            byte => format!("'{}'", char::from(byte)),
        };
        Err(format!("invalid character {quoted} {context}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_go_ends_them() {
        for (text, end) in [
            ("{}x", 2),
            ("{\"a\":[1,{\"b\":null}]} {", 20),
            ("[]", 2),
            ("[[],{}]", 7),
            ("12 3", 2),
            ("01", 1),
            ("-1.5e+3}", 7),
            ("\"\\u00e9\\\"\"", 10),
            ("true1", 4),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0), Ok(end), "{text}");
        }
    }

    #[test]
    fn members_are_found_with_names_without_escapes() {
        let object = br#"x{ "a" : 1 ,"\u0062":{"c":[2]}, "":"}" }y"#;
        let found = members(object, 1).unwrap();
        let found: Vec<_> =
            found.iter().map(|(name, span)| (&**name, &object[span.clone()])).collect();
        assert_eq!(found, [("a", &b"1"[..]), ("b", b"{\"c\":[2]}"), ("", b"\"}\"")]);
        assert_eq!(members(b"{}", 0), Ok(vec![]));
        assert!(members(b"{\"a\"", 0).is_err());
    }

    #[test]
    fn messages_are_those_of_go() {
        for (text, message) in [
            ("{", "unexpected EOF"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\" 1", "invalid character '1' after object key"),
            ("{\"a\":1 \"", "invalid character '\"' after object key:value pair"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("tru,", "invalid character ',' in literal true (expecting 'e')"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1ex", "invalid character 'x' in exponent of numeric literal"),
            ("\"\\q", "invalid character 'q' in string escape code"),
            ("\"\\u1g", "invalid character 'g' in \\u hexadecimal character escape"),
            ("\"\n", "invalid character '\\n' in string literal"),
            ("'", "invalid character '\\'' looking for beginning of value"),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0), Err(message.to_owned()), "{text}");
        }
    }
}
