//! Values in a search filter (RFC 4515), and GUIDs as Active Directory has them.
//!
//! The first three parts of such a GUID have their lowest byte first, the other eight bytes are as written
//! ([MS-DTYP] 2.3.4).

use std::fmt::Write;

/// Bytes of a GUID.
const BYTES: usize = 16;

/// Why a text or bytes are no GUID; in Filebeat's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum GuidError {
    #[error("invalid GUID format: expected 32 hex characters, got {0}")]
    Length(usize),
    #[error("invalid GUID format: `{0}` is no hex character")]
    Character(char),
    #[error("invalid GUID format: expected 16 bytes, got {0}")]
    Bytes(usize),
}

/// The bytes of a GUID, with or without braces and hyphens, in the order of Active Directory.
pub(super) fn parse(text: &str) -> Result<[u8; BYTES], GuidError> {
    let inner = text.trim_matches(['{', '}']);
    let digits = || inner.chars().filter(|character| *character != '-');
    let length = digits().map(char::len_utf8).sum();
    if length != 2 * BYTES {
        return Err(GuidError::Length(length));
    }
    let mut bytes = [0; BYTES];
    for (index, character) in digits().enumerate() {
        let digit = character.to_digit(16).ok_or(GuidError::Character(character))?;
        bytes[index / 2] = bytes[index / 2] << 4 | digit as u8;
    }
    swap(&mut bytes);
    Ok(bytes)
}

/// The GUID with these bytes of Active Directory, in lower case with hyphens.
pub(super) fn text(bytes: &[u8]) -> Result<String, GuidError> {
    let mut bytes: [u8; BYTES] = bytes.try_into().map_err(|_| GuidError::Bytes(bytes.len()))?;
    swap(&mut bytes);
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.into_iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        push_hex(&mut text, byte);
    }
    Ok(text)
}

/// From the order of Active Directory to that of the text, and back.
fn swap(bytes: &mut [u8; BYTES]) {
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
}

fn push_hex(out: &mut String, byte: u8) {
    write!(out, "{byte:02x}").expect("a text takes everything");
}

/// Every byte as `\XX`.
pub(super) fn escape_all(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(3 * bytes.len());
    for byte in bytes {
        out.push('\\');
        push_hex(&mut out, *byte);
    }
    out
}

/// As `\XX` the special characters of a filter (`*`, `(`, `)`, `\`), control characters and all beyond ASCII.
pub(super) fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'*' | b'(' | b')' | b'\\' | 0..0x20 | 0x7f.. => {
                out.push('\\');
                push_hex(&mut out, *byte);
            }
            _ => out.push(char::from(*byte)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_meaning_in_a_filter_is_escaped() {
        for (text, escaped) in [
            ("jane doe", "jane doe"),
            ("Parens R Us (for all)", "Parens R Us \\28for all\\29"),
            ("*", "\\2a"),
            ("C:\\MyFile", "C:\\5cMyFile"),
            ("a)(uid=*", "a\\29\\28uid=\\2a"),
            ("Lučić", "Lu\\c4\\8di\\c4\\87"),
            ("\0\x1f\x7f", "\\00\\1f\\7f"),
            ("", ""),
        ] {
            assert_eq!(escape(text.as_bytes()), escaped, "{text}");
        }
    }

    #[test]
    fn guids_have_the_byte_order_of_active_directory() {
        let bytes = [
            0xee, 0x25, 0xb1, 0x7f, 0xaf, 0xce, 0xff, 0x48, 0x83, 0x85, 0x32, 0xc5, 0x16, 0xab,
            0x10, 0xed,
        ];
        for written in [
            "{7fb125ee-ceaf-48ff-8385-32c516ab10ed}",
            "7fb125ee-ceaf-48ff-8385-32c516ab10ed",
            "7FB125EECEAF48FF838532C516AB10ED",
        ] {
            assert_eq!(parse(written), Ok(bytes), "{written}");
        }
        assert_eq!(text(&bytes).unwrap(), "7fb125ee-ceaf-48ff-8385-32c516ab10ed");
        assert_eq!(
            escape_all(&bytes),
            "\\ee\\25\\b1\\7f\\af\\ce\\ff\\48\\83\\85\\32\\c5\\16\\ab\\10\\ed"
        );
    }

    #[test]
    fn what_is_no_guid_is_refused() {
        for (written, error) in [
            ("", GuidError::Length(0)),
            ("7fb125ee", GuidError::Length(8)),
            ("7fb125ee-ceaf-48ff-8385-32c516ab10edff", GuidError::Length(34)),
            ("zfb125ee-ceaf-48ff-8385-32c516ab10ed", GuidError::Character('z')),
        ] {
            assert_eq!(parse(written), Err(error), "{written}");
        }
        assert_eq!(text(&[1, 2]), Err(GuidError::Bytes(2)));
    }
}
