//! RFC 5424: `<13>1 2026-11-21T20:52:57Z host program 1 id [data a="b"] text`.
//!
//! The grammar is that of Filebeat's input (filebeat/input/syslog/parser/syslog_rfc5424.rl), but for structured data: where
//! Filebeat stops there and loses the text, an empty value and a backslash before another character are read as the RFC
//! says, and if something else is wrong the text begins with the structured data.

use super::message::{Datum, Find, Message, digits, number};
use std::ops::Range;

/// Most bytes of the host, the program, the process and the kind of message.
const WORDS_MAX: [usize; 4] = [255, 48, 128, 32];

/// Most bytes of the id of an element, and of the name of a parameter.
const NAME_MAX: usize = 32;

/// Elements and parameters of a message, together: names are compared one by one.
const DATA_MAX: usize = 512;

/// Whether a line begins as this format: priority, version, and a digit.
pub(super) fn begins(line: &[u8]) -> bool {
    let mut message = Message::default();
    head(line, &mut message).is_some_and(|at| line.get(at).is_some_and(u8::is_ascii_digit))
}

/// Cuts a line; `false` if its header is wrong. `find` may know what stands from behind the time on.
pub(super) fn parse(line: &[u8], message: &mut Message, find: Find<'_>) -> bool {
    let Some(at) = head(line, message) else { return false };
    let Some(at) = timestamp(line, at, message) else { return false };
    if let Some(known) = find(message, &line[at..]) {
        message.text = at + known.len..line.len();
        message.known = Some(known);
        return true;
    }
    fields(line, at, message).is_some()
}

/// Cuts what stands behind the time.
fn fields(line: &[u8], mut at: usize, message: &mut Message) -> Option<()> {
    let header = at;
    let mut words = [0..0, 0..0, 0..0, 0..0];
    for (word, most) in words.iter_mut().zip(WORDS_MAX) {
        let length = line[at..].iter().take_while(|byte| byte.is_ascii_graphic()).count();
        if !(1..=most).contains(&length) || line.get(at + length) != Some(&b' ') {
            return None;
        }
        *word = at..at + length;
        at += length + 1;
    }
    [message.hostname, message.app_name, message.process_id, message.kind] = words;
    let start = at;
    match line.get(at)? {
        b'-' => at += 1,
        b'[' => match structured_data(line, at, message) {
            Ok(end) => at = end,
            Err(Wrong) => {
                message.text = start..line.len();
                // Nothing of it is known: no message for Filebeat.
                return (!message.data.is_empty()).then_some(());
            }
        },
        _ => return None,
    }
    match line.get(at) {
        None => message.text = at..at,
        Some(b' ') => {
            message.header = header..at + 1;
            message.text = at + 1..line.len();
        }
        Some(_) if message.data.is_empty() => return None,
        Some(_) => message.text = start..line.len(),
    }
    Some(())
}

/// `<13>1 `.
fn head(line: &[u8], message: &mut Message) -> Option<usize> {
    let rest = line.strip_prefix(b"<")?;
    let count = digits(rest);
    // No zero in front.
    if !(1..=3).contains(&count) || (count > 1 && rest[0] == b'0') || rest.get(count) != Some(&b'>')
    {
        return None;
    }
    let priority = number(&rest[..count]);
    let at = count + 2;
    let count = digits(&line[at..]);
    if priority > 191
        || !(1..=3).contains(&count)
        || line[at] == b'0'
        || line.get(at + count) != Some(&b' ')
    {
        return None;
    }
    message.priority = Some(priority as u32);
    message.version = Some(number(&line[at..at + count]) as u32);
    Some(at + count + 1)
}

/// `2026-11-21T20:52:57.000123+01:00 `.
fn timestamp(line: &[u8], start: usize, message: &mut Message) -> Option<usize> {
    let stamp = &mut message.stamp;
    let time = line.get(start..)?.first_chunk::<19>()?;
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let mut is_number = true;
    let parts = [0..4, 5..7, 8..10, 11..13, 14..16, 17..19].map(|part: Range<usize>| {
        let digits = &time[part];
        is_number &= digits.iter().all(u8::is_ascii_digit);
        number_of(digits)
    });
    if !is_number || !separators.iter().all(|(at, byte)| time[*at] == *byte) {
        return None;
    }
    let [year, month, day, hour, minute, second] = parts;
    let is_date = (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    stamp.year = Some(year);
    [stamp.month, stamp.day, stamp.hour, stamp.minute, stamp.second] =
        [month, day, hour, minute, second];
    let mut at = start + time.len();
    if line.get(at) == Some(&b'.') {
        let count = digits(&line[at + 1..]);
        if !(1..=6).contains(&count) {
            return None;
        }
        stamp.set_fraction(&line[at + 1..=at + count]);
        at += count + 1;
    }
    let length = match line.get(at..)? {
        [b'Z', ..] => 1,
        [b'+' | b'-', b'0'..=b'5', b'0'..=b'9', b':', b'0'..=b'5', b'0'..=b'9', ..] => 6,
        _ => return None,
    };
    stamp.set_offset(&line[at..at + length]);
    (line.get(at + length) == Some(&b' ')).then_some(at + length + 1)
}

/// The number of a few digits; of no meaning if they are none.
fn number_of(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit.wrapping_sub(b'0')))
}

/// Structured data is not as it should be from some place on.
struct Wrong;

/// `[id name="value" …]…` at `at`: where it ends.
fn structured_data(line: &[u8], mut at: usize, message: &mut Message) -> Result<usize, Wrong> {
    while line.get(at) == Some(&b'[') {
        let id = name(line, at + 1)?;
        at = id.end;
        // It counts as soon as it has ended.
        if !matches!(line.get(at), Some(b' ' | b']')) {
            return Err(Wrong);
        }
        let is_twice = message.data.iter().any(
            |datum| matches!(datum, Datum::Element(other) if line[other.clone()] == line[id.clone()]),
        );
        if is_twice {
            return Err(Wrong);
        }
        push(message, Datum::Element(id))?;
        while line.get(at) == Some(&b' ') {
            at += 1;
            loop {
                let name = name(line, at)?;
                let value = name.end + 2;
                if line.get(name.end..value) != Some(b"=\"") {
                    return Err(Wrong);
                }
                let (end, is_escaped) = value_end(line, value)?;
                push(message, Datum::Parameter { name, value: value..end, is_escaped })?;
                at = end + 1;
                if matches!(line.get(at), None | Some(b' ' | b']')) {
                    break;
                }
            }
        }
        if line.get(at) != Some(&b']') {
            return Err(Wrong);
        }
        at += 1;
    }
    Ok(at)
}

fn push(message: &mut Message, datum: Datum) -> Result<(), Wrong> {
    if message.data.len() == DATA_MAX {
        return Err(Wrong);
    }
    message.data.push(datum);
    Ok(())
}

/// The name at `start`.
fn name(line: &[u8], start: usize) -> Result<Range<usize>, Wrong> {
    let is_name = |byte: &&u8| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"');
    let length = line[start..].iter().take_while(is_name).count();
    if (1..=NAME_MAX).contains(&length) { Ok(start..start + length) } else { Err(Wrong) }
}

/// Where a value ends, and whether something in it is escaped.
fn value_end(line: &[u8], mut at: usize) -> Result<(usize, bool), Wrong> {
    let mut is_escaped = false;
    loop {
        match line.get(at).ok_or(Wrong)? {
            b'"' => return Ok((at, is_escaped)),
            b']' => return Err(Wrong),
            b'\\' if matches!(line.get(at + 1), Some(b'"' | b'\\' | b']')) => {
                is_escaped = true;
                at += 2;
            }
            _ => at += 1,
        }
    }
}
