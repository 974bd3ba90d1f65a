//! `key=value` pairs of an audit record.

use super::Field;
use skidder_event::{EventMut, Text};

/// More pairs than this are left in the message: keys are compared one by one.
pub(super) const PAIRS_MAX: usize = 1024;

/// Reads the pairs of a record's body; of equal keys the last counts. Returns `false` if there are
/// more than [`PAIRS_MAX`].
pub(super) fn read(
    event: &mut EventMut<'_>,
    record_type: &[u8],
    body: Text,
    fields: &mut Vec<Field>,
) -> bool {
    let body = without_interpretation(event, body);
    let body = match record_type {
        b"AVC" => selinux(event, body).unwrap_or(body),
        b"LOGIN" => login(event, body),
        b"CRED_DISP" | b"USER_START" | b"USER_END" => {
            let text = event.text(body);
            let end = text.iter().rposition(|byte| !matches!(byte, b')' | b'\''));
            Text { len: end.map_or(0, |end| end as u32 + 1), ..body }
        }
        _ => body,
    };
    collect(event, body, fields, 0)
}

/// A record without the names of its numbers, which `log_format = ENRICHED` of the daemon appends behind this byte.
fn without_interpretation(event: &EventMut<'_>, body: Text) -> Text {
    const INTERPRETATION: u8 = 0x1d;
    let len = memchr::memchr(INTERPRETATION, event.text(body));
    Text { len: len.map_or(body.len, |len| len as u32), ..body }
}

/// Messages inside each other; the daemon writes one in a record.
const INSIDE_MAX: usize = 4;

fn collect(event: &EventMut<'_>, body: Text, fields: &mut Vec<Field>, inside: usize) -> bool {
    let text = event.text(body);
    let span =
        |start: usize, len: usize| Text { start: body.start + start as u32, len: len as u32 };
    let mut at = 0;
    while let Some((key, value)) = next_pair(text, at) {
        at = value.end;
        let (trimmed, len) = trim(&text[value.clone()]);
        let trimmed_at = value.start + trimmed;
        if matches!(&text[trimmed_at..trimmed_at + len], b"" | b"?" | b"?," | b"(null)") {
            continue;
        }
        let plain = span(trimmed_at, len);
        if &text[key.clone()] == b"msg" && inside < INSIDE_MAX {
            if !collect(event, plain, fields, inside + 1) {
                return false;
            }
            continue;
        }
        let written = span(value.start, value.len());
        if !put(event, fields, Field::new(span(key.start, key.len()), written, plain)) {
            return false;
        }
    }
    true
}

impl Field {
    pub(super) fn new(key: Text, written: Text, value: Text) -> Self {
        Self { key, written, value, cell: None, gone: false }
    }
}

/// Adds a pair, or puts it in the place of one with the same key.
pub(super) fn put(event: &EventMut<'_>, fields: &mut Vec<Field>, field: Field) -> bool {
    let key = event.text(field.key);
    match fields.iter().position(|there| !there.gone && event.text(there.key) == key) {
        Some(there) => fields[there] = field,
        None if fields.len() >= PAIRS_MAX => return false,
        None => fields.push(field),
    }
    true
}

/// The key and the value, with its quotes, of the next pair from `at` on.
fn next_pair(
    text: &[u8],
    mut at: usize,
) -> Option<(std::ops::Range<usize>, std::ops::Range<usize>)> {
    loop {
        let equals = at + memchr::memchr(b'=', text.get(at..)?)?;
        let is_key = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-');
        let len = text[at..equals].iter().rev().take_while(|byte| is_key(byte)).count();
        at = equals + 1;
        if len == 0 {
            continue;
        }
        if let Some(end) = value_end(text, at) {
            return Some((equals - len..equals, at..end));
        }
    }
}

/// Where the value ends that begins at `start`; `None` if there is none.
fn value_end(text: &[u8], start: usize) -> Option<usize> {
    let quote = *text.get(start)?;
    if !matches!(quote, b'"' | b'\'') {
        let len = text[start..]
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\'' | b' ' | b'\t' | b'\n' | 0x0c | b'\r'))
            .unwrap_or(text.len() - start);
        return (len > 0).then_some(start + len);
    }
    // A quote behind a backslash ends the value only if no other does.
    let mut escaped = None;
    let mut at = start + 1;
    loop {
        let Some(found) = memchr::memchr2(quote, b'\\', &text[at..]) else { return escaped };
        let found = at + found;
        if text[found] == quote {
            return Some(found + 1);
        }
        if text.get(found + 1) == Some(&quote) {
            escaped = Some(found + 2);
            at = found + 2;
        } else {
            at = found + 1;
        }
    }
}

/// Where a value begins and how long it is without quotes and spaces around it.
fn trim(value: &[u8]) -> (usize, usize) {
    let around = |byte: &&u8| matches!(byte, b'\'' | b'"' | b' ');
    let start = value.iter().take_while(around).count();
    let end = value[start..].iter().rev().take_while(around).count();
    (start, value.len() - start - end)
}

/// The parts of `avc:  denied  { read write } for  pid=1`: the result, the requested permissions,
/// and where the pairs begin.
pub(super) fn avc(text: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let skip =
        |at: usize| at + text[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let start = memchr::memmem::find(text, b"avc:")? + 4;
    let result = skip(start);
    let len = text[result..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let open = skip(result + len);
    if result == start || len == 0 || open == result + len || text.get(open) != Some(&b'{') {
        return None;
    }
    let close = open + memchr::memchr(b'}', &text[open..])?;
    let rest = skip(close + 1);
    let behind = text[rest..].strip_prefix(b"for")?;
    let pairs = skip(text.len() - behind.len());
    if rest == close + 1 || pairs == text.len() - behind.len() {
        return None;
    }
    Some((&text[result..result + len], text[open + 1..close].trim_ascii(), pairs))
}

/// A message of SELinux as pairs; `None` if it is another kind of AVC.
fn selinux(event: &mut EventMut<'_>, body: Text) -> Option<Text> {
    let text = event.text(body);
    let (result, asked, pairs) = avc(text)?;
    let asked: Vec<&[u8]> =
        asked.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
    let parts =
        [b"seresult=", result, b" seperms=", &asked.join(&b','), b" ", &text[pairs..]].concat();
    Some(event.store_text(&parts))
}

/// `old auid=… new auid=…` with one word for each key.
fn login(event: &mut EventMut<'_>, body: Text) -> Text {
    let mut text = event.text(body).to_vec();
    for word in [b"old ", b"new "] {
        let mut at = 0;
        for _ in 0..2 {
            if let Some(found) = memchr::memmem::find(&text[at..], word) {
                at += found + word.len();
                text[at - 1] = b'_';
            }
        }
    }
    event.store_text(&text)
}
