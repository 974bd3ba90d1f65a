//! Quoted texts over several lines whose further lines begin where their key does.
//!
//! YAML wants those further in, and so does `saphyr-parser`. The parser of Filebeat takes them as they are, and
//! its own module `coredns` has one. White space at the beginning of such a line is no part of the text, so that
//! more of it changes nothing.

use saphyr_parser::{Event, Parser, ScanError};

/// Texts of a file that are moved. Each costs one more look at the file.
const TEXTS_MAX: usize = 64;

/// The same YAML with further lines of such texts moved to the right, if that is all that is wrong with it.
pub(crate) fn indented(text: &str, error: &ScanError) -> Option<String> {
    let mut text = moved(text, error)?;
    for _ in 0..TEXTS_MAX {
        match first_error(&text) {
            None => return Some(text),
            Some(error) => text = moved(&text, &error)?,
        }
    }
    None
}

/// The first mistake of the first document.
fn first_error(text: &str) -> Option<ScanError> {
    let mut documents = 0;
    let mut parser = Parser::new_from_str(text);
    while let Some(next) = parser.next_event() {
        match next {
            Err(error) => return Some(error),
            Ok((Event::DocumentStart(_), _)) if documents > 0 => return None,
            Ok((Event::DocumentStart(_), _)) => documents += 1,
            Ok(_) => {}
        }
    }
    None
}

/// The text with the lines of the quoted text moved at which the parser stopped.
fn moved(text: &str, error: &ScanError) -> Option<String> {
    if error.info() != "invalid indentation in quoted scalar" {
        return None;
    }
    let marker = error.marker();
    let line_start: usize =
        text.split_inclusive('\n').take(marker.line().checked_sub(1)?).map(str::len).sum();
    let line = &text[line_start..];
    let (offset, quote) = line.char_indices().nth(marker.col())?;
    let is_single = match quote {
        '\'' => true,
        '"' => false,
        _ => return None,
    };
    let start = line_start + offset;
    let end = start + 1 + length(&text[start + 1..], is_single)?;
    let lines = text[start..end].replace('\n', &format!("\n{:1$}", "", marker.col() + 1));
    // Nothing moves if the text ends in its own line.
    (lines.len() > end - start).then(|| [&text[..start], &lines, &text[end..]].concat())
}

/// Bytes up to the quote at the end of a text.
fn length(text: &str, is_single: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'\'' if is_single && bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' if is_single => return Some(at),
            b'"' if !is_single => return Some(at),
            b'\\' if !is_single => at += 2,
            _ => at += 1,
        }
    }
}
