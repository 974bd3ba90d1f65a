//! Values of a row as an object of JSON, as Go's `encoding/json` writes strings.

use super::CsvKeys;

/// The names of the values, with what stands before each value.
#[derive(Debug)]
pub(super) struct Keys {
    /// For each key of the object the place of its value in a row, and `"name":`.
    keys: Vec<(usize, Vec<u8>)>,
    count: usize,
    order: CsvKeys,
}

impl Keys {
    pub(super) fn new(names: Vec<&[u8]>, order: CsvKeys) -> Self {
        let count = names.len();
        // Go makes texts of the names before it sorts them.
        let mut names: Vec<(usize, &[u8])> = names.into_iter().enumerate().collect();
        if order == CsvKeys::Sorted {
            names.sort_by(|a, b| a.1.cmp(b.1).then(b.0.cmp(&a.0)));
            names.dedup_by(|later, first| later.1 == first.1);
        }
        let key = |(place, name): (usize, &[u8])| {
            let mut key = Vec::with_capacity(name.len() + 3);
            push_string(name, order, &mut key);
            key.push(b':');
            (place, key)
        };
        Self { keys: names.into_iter().map(key).collect(), count, order }
    }

    /// Values that a row must have.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of the keys in each object.
    pub(super) fn bytes(&self) -> usize {
        self.keys.iter().map(|(_, key)| key.len() + 3).sum()
    }

    /// Appends the object of a row with as many values as there are names; `ends` are their ends in `text`.
    pub(super) fn write(&self, text: &[u8], ends: &[usize], into: &mut Vec<u8>) {
        into.push(b'{');
        for (number, (place, key)) in self.keys.iter().enumerate() {
            if number > 0 {
                into.push(b',');
            }
            into.extend_from_slice(key);
            let start = place.checked_sub(1).map_or(0, |before| ends[before]);
            push_string(&text[start..ends[*place]], self.order, into);
        }
        into.push(b'}');
    }
}

/// Appends a string with its quotes. Bytes that are not UTF-8 become U+FFFD, each one by itself as in Go.
fn push_string(text: &[u8], order: CsvKeys, into: &mut Vec<u8>) {
    let as_map = order == CsvKeys::Sorted;
    into.push(b'"');
    for chunk in text.utf8_chunks() {
        let mut rest = chunk.valid().as_bytes();
        while let Some(at) = rest.iter().position(|byte| is_special(*byte, as_map)) {
            into.extend_from_slice(&rest[..at]);
            let count = push_special(&rest[at..], into);
            rest = &rest[at + count..];
        }
        into.extend_from_slice(rest);
        for _ in chunk.invalid() {
            into.extend_from_slice(if as_map { b"\\ufffd" } else { "\u{fffd}".as_bytes() });
        }
    }
    into.push(b'"');
}

/// Whether a byte is escaped, or may begin something that is.
fn is_special(byte: u8, as_map: bool) -> bool {
    match byte {
        b'"' | b'\\' | 0..0x20 => true,
        b'<' | b'>' | b'&' | 0xe2 => as_map,
        _ => false,
    }
}

/// Appends what stands for the first byte, or for the character that it begins; returns their bytes.
fn push_special(rest: &[u8], into: &mut Vec<u8>) -> usize {
    let byte = rest[0];
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
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
