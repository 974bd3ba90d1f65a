//! RFC 3164, and what devices send that is similar: `<13>Oct 11 22:14:15 host program[1024]: text`.
//!
//! The grammar is that of Filebeat's input (filebeat/input/syslog/parser/syslog_rfc3164.rl), which has no errors: what
//! is known of a line when something unexpected comes stays, and the text begins with the part that was begun last. Only
//! the time must be there.

use super::message::{Message, digits, number};

/// The longest priority.
const PRIORITY_DIGITS_MAX: usize = 5;

/// Names of the months, short and what may follow. Filebeat's grammar has `Ma` for May, too, and does not know it then.
const MONTHS: [(&[u8], &[u8]); 12] = [
    (b"Jan", b"uary"),
    (b"Feb", b"ruary"),
    (b"Mar", b"ch"),
    (b"Apr", b"il"),
    (b"May", b""),
    (b"Jun", b"e"),
    (b"Jul", b"y"),
    (b"Aug", b"ust"),
    (b"Sep", b"tember"),
    (b"Oct", b"ober"),
    (b"Nov", b"ember"),
    (b"Dec", b"ember"),
];

/// What a time ends with.
enum Ends {
    /// A space; what follows begins here.
    Whole(usize),
    /// Something else: the header ends here.
    Broken,
}

/// Cuts a line; `false` if it has no time.
pub(super) fn parse(line: &[u8], message: &mut Message) -> bool {
    let mut at = 0;
    if line.first() == Some(&b'<') {
        let count = digits(&line[1..]);
        if !(1..=PRIORITY_DIGITS_MAX).contains(&count) || line.get(count + 1) != Some(&b'>') {
            return false;
        }
        message.priority = Some(number(&line[1..=count]) as u32);
        at = count + 2;
    }
    let count = digits(&line[at..]);
    if count > 0 && line.get(at + count) == Some(&b':') && is_space(line, at + count + 1) {
        message.sequence = Some(number(&line[at..at + count]));
        at += count + 2;
    }
    // NTP of Cisco: whether the clock is in step.
    if matches!(line.get(at), Some(b' ' | b'*' | b'.')) {
        at += 1;
    }
    let Some((is_rfc3339, at)) = date(line, at, message) else { return false };
    let Some((ends, begun)) = time(line, at, is_rfc3339, message) else { return false };
    message.text = begun..line.len();
    if let Ends::Whole(at) = ends
        && at < line.len()
    {
        message.text.start = at;
        if let Some(at) = hostname(line, at, message)
            && at < line.len()
        {
            message.text.start = at;
            tag(line, at, message);
        }
    }
    true
}

/// `2026-10-11T` or `Oct 11 `: whether it is the first, and where the time begins.
fn date(line: &[u8], at: usize, message: &mut Message) -> Option<(bool, usize)> {
    let rest = &line[at..];
    let stamp = &mut message.stamp;
    if rest.first()?.is_ascii_digit() {
        let date = rest.first_chunk::<11>()?;
        let is_number = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
        let [year, month, day] = [&date[..4], &date[5..7], &date[8..10]];
        let is_date = is_number(year) && is_number(month) && is_number(day);
        let is_separator = matches!(date[10], b'T' | b't') || is_space(date, 10);
        if !is_date || date[4] != b'-' || date[7] != b'-' || day[0] > b'3' || !is_separator {
            return None;
        }
        stamp.year = Some(number(year));
        if let month @ 0..=12 = number(month) {
            stamp.month = month;
        }
        stamp.day = number(day);
        return Some((true, at + date.len()));
    }
    let (month, length) = month(rest)?;
    if let Some(month) = month {
        stamp.month = month;
    }
    if !is_space(rest, length) {
        return None;
    }
    let day = length + 1;
    let (day, end) = match *rest.get(day..)? {
        [tens @ b'0'..=b'2', ones @ b'0'..=b'9', ..] | [tens @ b'3', ones @ (b'0' | b'1'), ..] => {
            (i64::from(tens - b'0') * 10 + i64::from(ones - b'0'), day + 2)
        }
        [ones @ b'1'..=b'9', ..] => (i64::from(ones - b'0'), day + 1),
        [_, ones @ b'1'..=b'9', ..] if is_space(rest, day) => (i64::from(ones - b'0'), day + 2),
        _ => return None,
    };
    stamp.day = day;
    is_space(rest, end).then_some((false, at + end + 1))
}

/// The month that a text begins with, and its length.
fn month(text: &[u8]) -> Option<(Option<i64>, usize)> {
    for ((short, more), month) in MONTHS.iter().zip(1..) {
        if let Some(rest) = text.strip_prefix(*short) {
            let length = if rest.starts_with(more) { more.len() } else { 0 };
            return Some((Some(month), short.len() + length));
        }
    }
    text.starts_with(b"Ma").then_some((None, 2))
}

/// `22:14:15.003+02:00`: how it ends, and where its last part begins. `None` if it is no time.
fn time(
    line: &[u8],
    start: usize,
    is_rfc3339: bool,
    message: &mut Message,
) -> Option<(Ends, usize)> {
    let stamp = &mut message.stamp;
    let clock = line.get(start..)?.first_chunk::<8>()?;
    let [hour, minute, second] = [[clock[0], clock[1]], [clock[3], clock[4]], [clock[6], clock[7]]];
    let is_hour = matches!(hour, [b'0'..=b'1', b'0'..=b'9'] | [b'2', b'0'..=b'3']);
    let is_sixty = |number: [u8; 2]| matches!(number, [b'0'..=b'5', b'0'..=b'9']);
    if !is_hour || clock[2] != b':' || !is_sixty(minute) || clock[5] != b':' || !is_sixty(second) {
        return None;
    }
    [stamp.hour, stamp.minute, stamp.second] = [hour, minute, second].map(|of| number(&of));
    let (mut begun, mut at) = (start + 6, start + 8);
    let ends = |at: usize| {
        let is_zone = || is_rfc3339 && matches!(line.get(at), Some(b'Z' | b'z' | b'+' | b'-'));
        line.get(at) == Some(&b':') || is_space(line, at) || is_zone()
    };
    if line.get(at) == Some(&b'.') {
        let count = digits(&line[at + 1..]);
        if count == 0 {
            return Some((Ends::Broken, begun));
        }
        begun = at + 1;
        at = begun + count;
        if !ends(at) {
            return Some((Ends::Broken, begun));
        }
        stamp.set_fraction(&line[begun..at]);
    } else if !ends(at) {
        return None;
    }
    if line[at] != b':' && !is_space(line, at) {
        begun = at;
        let Some(end) = zone(line, at, message) else { return Some((Ends::Broken, begun)) };
        at = end;
    }
    if line.get(at) == Some(&b':') {
        at += 1;
    }
    let ends = if is_space(line, at) { Ends::Whole(at + 1) } else { Ends::Broken };
    Some((ends, begun))
}

/// The zone at `start`, and where it ends. `None` if something else than a colon or a space follows.
fn zone(line: &[u8], start: usize, message: &mut Message) -> Option<usize> {
    let ends = |at: usize| line.get(at) == Some(&b':') || is_space(line, at);
    let two = |at: usize| line.get(at..at + 2).is_some_and(|two| digits(two) == 2);
    let mut at = start;
    if matches!(line[at], b'Z' | b'z') {
        at += 1;
    }
    if matches!(line.get(at), Some(b'+' | b'-')) {
        at += 1;
        if !two(at) {
            return None;
        }
        at += 2;
        if ends(at) {
            message.stamp.set_offset(&line[start..at]);
        }
        let minutes = if line.get(at) == Some(&b':') { at + 1 } else { at };
        if two(minutes) {
            at = minutes + 2;
        }
    }
    ends(at).then(|| {
        message.stamp.set_offset(&line[start..at]);
        at
    })
}

/// The host at `start`, and where the text behind it begins. `None` if it does not end with a space; it may be known
/// all the same then.
fn hostname(line: &[u8], start: usize, message: &mut Message) -> Option<usize> {
    // It ends with a letter, a digit or two colons.
    let is_end = |at: usize| match line[start..at] {
        [.., b':', b':'] => true,
        [.., last] => last.is_ascii_alphanumeric(),
        [] => false,
    };
    let mut at = start;
    loop {
        match *line.get(at)? {
            b':' => {
                if is_end(at) {
                    message.hostname = start..at;
                }
            }
            b'_' => {}
            // No name has two of them in a row.
            twice @ (b'-' | b'.') if at == start || line[at - 1] != twice => {}
            byte if byte.is_ascii_alphanumeric() => {}
            _ if is_space(line, at) && is_end(at) => {
                message.hostname = start..at;
                return Some(at + 1);
            }
            _ => {
                let has_colon = at > start && line[at - 1] == b':' && is_end(at - 1);
                return (has_colon && is_space(line, at)).then_some(at + 1);
            }
        }
        at += 1;
    }
}

/// `program[1024]: ` at `start`, if something follows.
fn tag(line: &[u8], start: usize, message: &mut Message) {
    let mut at = start;
    loop {
        match line.get(at) {
            Some(b':') if at > start => {
                message.program = start..at;
                if is_space(line, at + 1) {
                    break;
                }
            }
            Some(b'[') if at > start => {
                message.program = start..at;
                let pid = at + 1;
                let count = digits(&line[pid..]);
                if count == 0 {
                    return;
                }
                message.text.start = pid;
                at = pid + count;
                if line.get(at) != Some(&b']') {
                    return;
                }
                message.pid = number(&line[pid..at]);
                at += 1;
                if line.get(at) != Some(&b':') || !is_space(line, at + 1) {
                    return;
                }
                break;
            }
            None | Some(b'[' | b']') => return,
            Some(_) if is_space(line, at) => return,
            Some(_) => {}
        }
        at += 1;
    }
    if at + 2 < line.len() {
        message.text.start = at + 2;
    }
}

/// `space` of ragel.
fn is_space(line: &[u8], at: usize) -> bool {
    matches!(line.get(at), Some(b' ' | b'\t'..=b'\r'))
}
