//! RFC 5424: `<13>1 2026-11-21T20:52:57Z host program 1024 id [data a="b"] text`.

use super::structured;
use super::{Message, Problem, Reader, SyslogError, message_from};
use crate::time::{digits, rfc3339};

/// Whether a message begins as RFC 5424 does and RFC 3164 does not: a version, and a full date or
/// none behind it.
pub(super) fn begins(text: &[u8]) -> bool {
    let mut reader = Reader::new(text);
    if reader.priority().is_err() {
        return false;
    }
    let rest = reader.rest();
    let version = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if !(1..=3).contains(&version) || rest[0] == b'0' {
        return false;
    }
    match &rest[version..] {
        [b' ', b'-', b' ', ..] => true,
        [b' ', date @ ..] => date.len() >= 4 && date[..4].iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

pub(super) fn parse(text: &[u8], message: &mut Message) -> Result<(), SyslogError> {
    let mut reader = Reader::new(text);
    message.priority = Some(reader.priority()?);
    let word = reader.word()?;
    let version = digits(&text[word.clone()])
        .and_then(|version| u32::try_from(version).ok())
        .filter(|_| word.len() <= 9)
        .ok_or(SyslogError::new(word.start, Problem::Version))?;
    message.version = Some(version).filter(|&version| version > 0);
    let word = reader.word_or_none()?;
    if !word.is_empty() {
        let bad = SyslogError::new(word.start, Problem::Timestamp);
        message.time = Some(rfc3339(&text[word]).ok_or(bad)?);
    }
    message.hostname = reader.word_or_none()?;
    message.appname = reader.word_or_none()?;
    message.procid = reader.word_or_none()?;
    message.msgid = reader.word_or_none()?;
    let data = reader.at;
    let data_end = match reader.rest().first() {
        Some(b'-') => data + 1,
        Some(b'[') => brackets(text, data)?,
        _ => return reader.fail(Problem::StructuredData),
    };
    message.message = match text.get(data_end) {
        None => text.len()..text.len(),
        Some(b' ') => message_from(text, data_end + 1),
        Some(_) => return Err(SyslogError::new(data_end, Problem::StructuredData)),
    };
    if structured::has_element(&text[data..data_end]) {
        message.structured_data = data..data_end;
    } else if text[data] == b'[' {
        // As Filebeat does it, so that it is not lost.
        message.message = data..text.len();
    }
    Ok(())
}

/// Where elements in brackets end that begin at `start`; a backslash takes the meaning of what follows it.
fn brackets(text: &[u8], start: usize) -> Result<usize, SyslogError> {
    let mut at = start;
    while text.get(at) == Some(&b'[') {
        loop {
            match memchr::memchr2(b'\\', b']', text.get(at..).unwrap_or_default()) {
                Some(stop) if text[at + stop] == b']' => {
                    // They are not empty.
                    if text[at..].starts_with(b"[]") {
                        return Err(SyslogError::new(at + 1, Problem::StructuredData));
                    }
                    at += stop + 1;
                    break;
                }
                Some(stop) => at += stop + 2,
                None => return Err(SyslogError::new(text.len(), Problem::Unfinished)),
            }
        }
    }
    Ok(at)
}
