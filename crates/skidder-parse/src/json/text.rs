//! JSON strings: finding their end, and taking escapes out.

use super::{JsonError, Problem};
use crate::lane::{LANE, special};

/// A string that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Where its closing quote stands.
    pub(crate) quote: usize,
    /// How its text can be had.
    pub(crate) kind: Kind,
}

/// What stands between the quotes of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The text itself.
    Plain,
    /// Escapes; the text without them was appended.
    Escaped,
    /// Escapes, among them a half surrogate, which became U+FFFD.
    Lossy,
}

/// The text of a string with its quotes. Half a surrogate pair and bytes that are not UTF-8 become U+FFFD, as in Go.
///
/// # Errors
/// It is no JSON string, or something follows it.
///
/// # Panics
/// If it does not begin with a quote.
pub fn string_of(json: &[u8]) -> Result<String, JsonError> {
    assert_eq!(json.first(), Some(&b'"'), "a string begins with a quote");
    let mut plain = Vec::new();
    let found = string(json, 1, json.len(), &mut plain)?;
    if found.quote + 1 < json.len() {
        return Err(JsonError::new(found.quote + 1, Problem::Trailing));
    }
    let text = if found.kind == Kind::Plain { &json[1..found.quote] } else { &plain[..] };
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Finds the end of the string whose first byte is at `at`, before `end`. If it has escapes, its text is
/// appended to `plain`.
#[inline(always)]
pub(crate) fn string(
    bytes: &[u8],
    at: usize,
    end: usize,
    plain: &mut Vec<u8>,
) -> Result<Found, JsonError> {
    let stop = skip_plain(bytes, at);
    if stop < end && bytes[stop] == b'"' {
        return Ok(Found { quote: stop, kind: Kind::Plain });
    }
    escaped(bytes, at, stop.min(end), end, plain)
}

/// The rest of a string that is not plain up to its quote: `stop` is where it ceased to be.
#[inline(never)]
fn escaped(
    bytes: &[u8],
    at: usize,
    mut stop: usize,
    end: usize,
    plain: &mut Vec<u8>,
) -> Result<Found, JsonError> {
    let mut from = at;
    let mut kind = Kind::Plain;
    loop {
        if stop >= end {
            return Err(JsonError::new(end, Problem::Unfinished));
        }
        match bytes[stop] {
            b'"' => {
                plain.extend_from_slice(&bytes[from..stop]);
                return Ok(Found { quote: stop, kind });
            }
            b'\\' => {
                plain.extend_from_slice(&bytes[from..stop]);
                let (letter, next) = escape(&bytes[..end], stop)?;
                let letter = letter.unwrap_or_else(|| {
                    kind = Kind::Lossy;
                    char::REPLACEMENT_CHARACTER
                });
                if kind == Kind::Plain {
                    kind = Kind::Escaped;
                }
                plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                from = next;
                stop = skip_plain(bytes, next).min(end);
            }
            _ => return Err(JsonError::new(stop, Problem::Control)),
        }
    }
}

/// The character of the escape at `at` (nothing: half a surrogate pair) and where the text goes on.
fn escape(text: &[u8], at: usize) -> Result<(Option<char>, usize), JsonError> {
    let letter = match text.get(at + 1) {
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b'b') => '\x08',
        Some(b'f') => '\x0c',
        Some(b'n') => '\n',
        Some(b'r') => '\r',
        Some(b't') => '\t',
        Some(b'u') => return unicode(text, at),
        Some(_) => return Err(JsonError::new(at, Problem::Escape)),
        None => return Err(JsonError::new(text.len(), Problem::Unfinished)),
    };
    Ok((Some(letter), at + 2))
}

/// `\uXXXX` at `at`, with the second half of a surrogate pair if it follows.
fn unicode(text: &[u8], at: usize) -> Result<(Option<char>, usize), JsonError> {
    let first = hex(text, at + 2).ok_or_else(|| {
        let kind = if text.len() < at + 6 { Problem::Unfinished } else { Problem::Escape };
        JsonError::new(if kind == Problem::Unfinished { text.len() } else { at }, kind)
    })?;
    if let 0xd800..0xdc00 = first
        && text.get(at + 6..at + 8) == Some(b"\\u")
        && let Some(second @ 0xdc00..0xe000) = hex(text, at + 8)
    {
        let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Ok((char::from_u32(code), at + 12));
    }
    Ok((char::from_u32(first), at + 6))
}

fn hex(text: &[u8], at: usize) -> Option<u32> {
    text.get(at..at + 4)?
        .iter()
        .try_fold(0, |code, &byte| Some(code << 4 | char::from(byte).to_digit(16)?))
}

/// Where the first quote, backslash or control byte stands, from `at` on; the end if there is none.
#[inline(always)]
pub(crate) fn skip_plain(bytes: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<LANE>()) {
        let mask = special(chunk);
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += LANE;
    }
    while at < bytes.len() && !matches!(bytes[at], b'"' | b'\\' | 0..0x20) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<(String, Kind), JsonError> {
        let mut plain = Vec::new();
        let quoted = format!("{text}\"");
        let found = string(quoted.as_bytes(), 0, quoted.len(), &mut plain)?;
        assert_eq!(found.quote, text.len());
        let text = if found.kind == Kind::Plain {
            text.to_owned()
        } else {
            String::from_utf8(plain).unwrap()
        };
        Ok((text, found.kind))
    }

    #[test]
    fn escapes_are_taken_out() {
        let cases = [
            ("plain grün", "plain grün", Kind::Plain),
            (r#"\"\\\/\b\f\n\r\t"#, "\"\\/\x08\x0c\n\r\t", Kind::Escaped),
            (r"a\u0041\u00e9\u20ACb", "aAé€b", Kind::Escaped),
            (r"\ud83d\ude00", "😀", Kind::Escaped),
            (r"\ud83d", "\u{fffd}", Kind::Lossy),
            (r"\ud83dx\n", "\u{fffd}x\n", Kind::Lossy),
            (r"\ude00\ud83d", "\u{fffd}\u{fffd}", Kind::Lossy),
            (r"\ud83d\u0041", "\u{fffd}A", Kind::Lossy),
        ];
        for (text, expected, kind) in cases {
            assert_eq!(read(text).unwrap(), (expected.to_owned(), kind), "{text}");
        }
    }

    #[test]
    fn bad_strings_say_where() {
        let refused = |text: &[u8]| string(text, 0, text.len(), &mut Vec::new()).unwrap_err();
        assert_eq!(refused(b"abc"), JsonError::new(3, Problem::Unfinished));
        assert_eq!(refused(b"abc\\"), JsonError::new(4, Problem::Unfinished));
        assert_eq!(refused(b"abc\\u12"), JsonError::new(7, Problem::Unfinished));
        assert_eq!(refused(b"abc\\u12x4\""), JsonError::new(3, Problem::Escape));
        assert_eq!(refused(b"abc\\x\""), JsonError::new(3, Problem::Escape));
        assert_eq!(refused(b"ab\ncd\""), JsonError::new(2, Problem::Control));
        assert_eq!(refused(b"0123456789abcdef01\0\""), JsonError::new(18, Problem::Control));
    }

    proptest! {
        #[test]
        fn the_first_special_byte_is_found(
            text in proptest::collection::vec(prop_oneof![30 => 0x20_u8..=255, 1 => any::<u8>()], 0..80),
            from in 0_usize..80
        ) {
            let from = from.min(text.len());
            let expected = text[from..]
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
                .map_or(text.len(), |at| from + at);
            prop_assert_eq!(skip_plain(&text, from), expected);
        }
    }
}
