//! Texts as strings of JSON (RFC 8259), with the escapes of the libraries that Filebeat writes them with.

/// What is escaped beside what must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// Nothing.
    Least,
    /// As Go's `encoding/json` does: `<`, `>`, `&`, U+2028, U+2029, and U+FFFD for what is no text.
    OfGo,
    /// As `goccy/go-json` does, with which Arrow writes rows: the same, and no short form of U+0008 and U+000C.
    OfArrow,
}

/// Appends a text with its quotes. Bytes that are not UTF-8 become U+FFFD, each one by itself as in Go.
pub fn push_json_text(text: &[u8], escapes: Escapes, into: &mut Vec<u8>) {
    let as_go = escapes != Escapes::Least;
    into.push(b'"');
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while let Some(at) = rest.iter().position(|byte| is_special(*byte, as_go)) {
            into.extend_from_slice(&rest[..at]);
            let count = push_special(&rest[at..], escapes, into);
            rest = &rest[at + count..];
        }
        into.extend_from_slice(rest);
        for _ in chunk.invalid() {
            into.extend_from_slice(if as_go { b"\\ufffd" } else { "\u{fffd}".as_bytes() });
        }
    }
    into.push(b'"');
}

/// Whether a byte is escaped, or may begin something that is.
fn is_special(byte: u8, as_go: bool) -> bool {
    match byte {
        b'"' | b'\\' | 0..0x20 => true,
        b'<' | b'>' | b'&' | 0xe2 => as_go,
        _ => false,
    }
}

/// Appends what stands for the first byte, or for the character that it begins; returns their bytes.
fn push_special(rest: &[u8], escapes: Escapes, into: &mut Vec<u8>) -> usize {
    let byte = rest[0];
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 if escapes != Escapes::OfArrow => b'b',
        0x0c if escapes != Escapes::OfArrow => b'f',
        0xe2 => return push_separator(rest, into),
        _ => {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            into.extend_from_slice(b"\\u00");
            into.push(DIGITS[usize::from(byte >> 4)]);
            into.push(DIGITS[usize::from(byte & 15)]);
            return 1;
        }
    };
    into.extend_from_slice(&[b'\\', short]);
    1
}

/// The same for U+2028 and U+2029, which Go escapes, and what begins as they do.
fn push_separator(rest: &[u8], into: &mut Vec<u8>) -> usize {
    match rest {
        [0xe2, 0x80, 0xa8, ..] => into.extend_from_slice(b"\\u2028"),
        [0xe2, 0x80, 0xa9, ..] => into.extend_from_slice(b"\\u2029"),
        _ => {
            into.push(rest[0]);
            return 1;
        }
    }
    3
}
